"""Shares of measurements for the hardest of all pairs of plans, which are too many to list (RAGE).

`width_allocation` adds a term that counts how many plans there are, the Gaussian width (Peace).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from surepick.core.arrays import FloatArray, IntArray
from surepick.design.allocation import Allocation, Rows, column_generation, largest, normalised
from surepick.errors import ParameterError

_PARTS = 8  # parts of the plans that each offer a farthest plan
_BLOCK = 1024  # plans per block of the pairwise distances: a block of 1024 x 1024 stays near 8 MB
_STEPS = 80  # of the descent for the width
_DRAWS = 64  # for each of them
_CHECKED = 2000  # draws that judge what was found


@dataclass(frozen=True, eq=False)
class PairAllocation(Allocation):
    """Shares of measurements for the hardest pair of plans."""

    pairs: IntArray  # (m, 2) the pairs that bind, one for each entry of `dual`


def pair_allocation(plans: npt.ArrayLike, *, tolerance: float = 1e-3) -> PairAllocation:
    """Return the shares w that minimise the max over pairs of sum_s (z_s - z'_s)^2 / w_s, certified.

    Pairs are never listed: for given weights the worst pair is the diameter of the points z / sqrt(w), exact
    from blocks of a Gram matrix. For noise that differs between arms, pass `plans * noise_scale`.

    >>> found = pair_allocation([[1, 0, 5], [0, 2, 5], [0, 0, 5]], tolerance=1e-6)
    >>> found.weights.round(3).tolist(), round(found.value, 3), found.pairs[found.dual.argmax()].tolist()
    ([0.333, 0.667, 0.0], 9.0, [0, 1])
    """
    points = np.asarray(plans, dtype=float)
    if points.ndim != 2 or not np.isfinite(points).all() or not np.ptp(points, axis=0).any():
        raise ParameterError(
            f"plans must be a finite array with at least two plans that differ, got shape {points.shape}",
            field="plans",
        )
    rows = _PairRows(points)
    found, ids = column_generation(rows, tolerance)
    live = found.dual > 1e-9 * found.dual.max()
    pairs, dual = np.column_stack(np.divmod(ids[live], rows.n_plans)), normalised(found.dual[live])
    return PairAllocation(found.weights, found.value, found.lower, found.converged, dual, pairs)


class _PairRows(Rows):
    """The squared differences of all pairs of plans; pair (i, j) has the id i * n_plans + j, i < j."""

    def __init__(self, plans: FloatArray) -> None:
        self._plans = plans - plans.mean(axis=0)  # only differences count; centred, the Gram matrix is exact
        self.n_plans = len(plans)
        self.shape = (self.n_plans * (self.n_plans - 1) // 2, plans.shape[1])
        self.peaks = np.ptp(self._plans, axis=0) ** 2

    def worst(self, inverse: FloatArray, count: int) -> tuple[float, IntArray, FloatArray]:
        pairs = self._far_pairs(self._plans * np.sqrt(inverse), 8 * count)
        values = self.take(pairs) @ inverse  # again from the differences: no cancellation
        order = largest(values, len(values))
        # pairs without a common plan first: spread over the plans, they bind together
        taken, disjoint = np.zeros(self.n_plans, dtype=bool), np.zeros(len(pairs), dtype=bool)
        for k, (i, j) in enumerate(zip(*np.divmod(pairs[order], self.n_plans), strict=True)):
            if not (taken[i] or taken[j]):
                taken[i] = taken[j] = disjoint[k] = True
        order = np.concatenate([order[disjoint], order[~disjoint]])[:count]
        return float(values.max()), pairs[order], values[order]

    def _far_pairs(self, points: FloatArray, count: int) -> IntArray:
        """Return the ids of the farthest of: each plan with the plan farthest from it in each part."""
        n, near = len(points), np.arange(len(points))
        norms = np.einsum("ks,ks->k", points, points)
        ids, squares = list[IntArray](), list[FloatArray]()
        for part in np.array_split(near, min(_PARTS, n)):
            for low in range(0, n, _BLOCK):
                here = near[low : low + _BLOCK]
                gram = norms[part] - 2 * (points[here] @ points[part].T)  # |x - y|^2 - |x|^2
                far = gram.argmax(axis=1)
                squares.append(norms[here] + np.take_along_axis(gram, far[:, None], axis=1)[:, 0])
                ids.append(np.minimum(here, part[far]) * n + np.maximum(here, part[far]))
        every, square = np.concatenate(ids), np.concatenate(squares)
        apart = every % (n + 1) != 0  # no plan with itself
        return np.unique(every[apart][largest(square[apart], count)])  # most come twice

    def covering(self, arms: IntArray) -> IntArray:
        low, high = self._plans[:, arms].argmin(axis=0), self._plans[:, arms].argmax(axis=0)
        return np.unique(np.minimum(low, high) * self.n_plans + np.maximum(low, high))

    def take(self, ids: IntArray) -> FloatArray:
        i, j = np.divmod(ids, self.n_plans)
        return np.asarray((self._plans[i] - self._plans[j]) ** 2)


@dataclass(frozen=True, eq=False)
class WidthAllocation:
    """Shares of measurements that make tau of Peace small, and what tau is there."""

    weights: FloatArray  # (n_arms,), sums to 1
    value: float  # estimate of tau(weights)
    standard_error: float  # Monte-Carlo standard error of `value`
    width: float  # estimate of the Gaussian width E max_{z,z'} (z - z')^T diag(weights)^(-1/2) eta
    diameter: float  # max_{z,z'} sum_s (z - z')_s^2 / weights_s, exact


def width_allocation(plans: npt.ArrayLike, *, log_term: float, rng: np.random.Generator) -> WidthAllocation:
    """Return shares w that nearly minimise tau(w) of Peace, with an unbiased estimate of tau there.

    tau(w) = (E max_{z,z'} (z - z')^T diag(w)^(-1/2) eta)^2 + 2 log_term max_{z,z'} sum_s (z - z')_s^2 / w_s,
    eta ~ N(0, I), log_term = log(1/delta_k). Stochastic mirror descent in log w from the best allocation of
    the second term: each of 80 steps averages 64 fresh draws, and the later half of the iterates is
    averaged (tau is convex). The better of start and average is kept, and judged on 2,000 new draws.

    >>> found = width_allocation([[1, 0], [0, 1]], log_term=3.0, rng=np.random.default_rng(0))
    >>> found.weights.round(2).tolist(), round(found.diameter, 2)
    ([0.5, 0.5], 4.0)
    """
    start = pair_allocation(plans, tolerance=1e-2)
    used = start.weights > 0
    points, first = np.asarray(plans, dtype=float)[:, used], start.weights[used]
    averaged = _mirror_descent(points, first, start, log_term, rng)
    draws = rng.standard_normal((points.shape[1], _CHECKED))
    chosen = min((first, averaged), key=lambda w: _tau(points, w, log_term, draws).value)
    found = _tau(points, chosen, log_term, rng.standard_normal((points.shape[1], _CHECKED)))
    weights = np.zeros(len(used))
    weights[used] = found.weights
    return WidthAllocation(weights, found.value, found.standard_error, found.width, found.diameter)


def _mirror_descent(
    points: FloatArray,
    weights: FloatArray,
    start: PairAllocation,
    log_term: float,
    rng: np.random.Generator,
) -> FloatArray:
    """Return the average of the later half of the iterates of entropic mirror descent on tau."""
    rows = (points[start.pairs[:, 0]] - points[start.pairs[:, 1]]) ** 2  # (m, d) the pairs that bind
    dual, total = start.dual, np.zeros_like(weights)
    for step in range(_STEPS):
        draws = rng.standard_normal((points.shape[1], _DRAWS)) / np.sqrt(weights)[:, None]  # (d, n)
        heights = points @ draws  # (K, n)
        y = points[heights.argmax(axis=0)] - points[heights.argmin(axis=0)]  # (n, d)
        parts = np.einsum("ns,sn->s", y, draws) / _DRAWS  # (d,) sums to the mean maximum
        values = rows @ (1 / weights)
        dual = dual * values / (dual @ values)  # the multiplicative dual follows the hardest pairs
        share = parts.sum() * parts + 2 * log_term * (dual @ rows) / weights  # -w_s d tau / d w_s
        descent = share / share.sum() / weights  # -(d tau / d w_s) / tau: all 1 at the optimum
        weights = normalised(weights * np.exp(np.clip(descent - 1, -1, 1) / (2 + 0.1 * step)))
        if step >= _STEPS // 2:
            total += weights
    return normalised(total)


def _tau(points: FloatArray, weights: FloatArray, log_term: float, draws: FloatArray) -> WidthAllocation:
    """Return tau at these weights: the width from the draws, the diameter exactly."""
    heights = points @ (draws / np.sqrt(weights)[:, None])
    widths = np.ptp(heights, axis=0)
    width, error = float(widths.mean()), float(widths.std(ddof=1) / np.sqrt(len(widths)))
    diameter = _PairRows(points).worst(1 / weights, 1)[0]
    return WidthAllocation(weights, width**2 + 2 * log_term * diameter, 2 * width * error, width, diameter)
