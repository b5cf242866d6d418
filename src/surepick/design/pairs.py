"""The shares of measurements for the hardest of all pairs of plans, which are too many to list."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from surepick.core.arrays import BoolArray, FloatArray, IntArray
from surepick.design.allocation import Bracket, Rows, checked_tolerance, column_generation, largest
from surepick.errors import ParameterError

_PARTS = 8  # parts of the plans that each offer a farthest plan
_MOST_ITERATIONS = 500
_BLOCK = 1024  # plans per block of the pairwise distances: a block of 1024 x 1024 stays near 8 MB


@dataclass(frozen=True, eq=False)
class PairAllocation(Bracket):
    """Shares of measurements for the hardest pair of plans; see `diameter` for what `value` is."""

    pairs: IntArray  # (m, 2) the pairs that bind, one for each entry of `dual`


def pair_allocation(plans: npt.ArrayLike, *, tolerance: float = 1e-3) -> PairAllocation:
    """The shares w that minimise the max over pairs of plans of sum_s (z_s - z'_s)^2 / w_s, certified.

    Pairs are never listed: for given weights the worst pair is the diameter of the points z / sqrt(w), exact
    from blocks of a Gram matrix. For noise that differs between arms, pass `plans * noise_scale`.

    >>> found = pair_allocation([[1, 0, 5], [0, 2, 5], [0, 0, 5]], tolerance=1e-6)
    >>> found.weights.round(3).tolist(), round(found.value, 3), found.pairs[found.dual.argmax()].tolist()
    ([0.333, 0.667, 0.0], 9.0, [0, 1])
    """
    rows = _PairRows(checked_plans(plans))
    found = column_generation(rows, checked_tolerance(tolerance), _MOST_ITERATIONS, None)
    live = found.dual > 1e-9 * found.dual.max()
    pairs = np.column_stack(np.divmod(found.ids[live], rows.n_plans))
    dual = found.dual[live] / found.dual[live].sum()
    return PairAllocation(found.weights, found.value, found.lower, found.converged, dual, pairs)


def diameter(plans: FloatArray, weights: FloatArray) -> float:
    """The max over pairs of plans of sum_s (z_s - z'_s)^2 / w_s."""
    return _PairRows(plans).worst(1 / weights, 1)[0]


class _PairRows(Rows):
    """The squared differences of all pairs of plans; pair (i, j) has the id i * n_plans + j, i < j."""

    def __init__(self, plans: FloatArray) -> None:
        self._plans = plans - plans.mean(axis=0)  # only differences count; centred, the Gram matrix is exact
        self.n_plans = len(plans)
        self.shape = (self.n_plans * (self.n_plans - 1) // 2, plans.shape[1])

    def peaks(self) -> FloatArray:
        return np.asarray(np.ptp(self._plans, axis=0) ** 2)

    def worst(self, inverse: FloatArray, count: int) -> tuple[float, IntArray, FloatArray]:
        pairs = self._far_pairs(self._plans * np.sqrt(inverse), 4 * count)
        values = self.take(pairs) @ inverse  # again from the differences: no cancellation
        order = largest(values, len(values))
        spread = _first_disjoint(np.divmod(pairs[order], self.n_plans), self.n_plans)
        order = np.concatenate([order[spread], order[~spread]])[:count]
        return float(values.max()), pairs[order], values[order]

    def _far_pairs(self, points: FloatArray, count: int) -> IntArray:
        """The ids of the farthest of: each plan with the plan farthest from it in each part of the plans."""
        far, squares = _farthest_by_part(points)  # (n_parts, n_plans)
        near = np.broadcast_to(np.arange(self.n_plans), far.shape)
        ids = np.minimum(near, far) * self.n_plans + np.maximum(near, far)
        apart = near != far
        chosen = largest(squares[apart], 2 * count)  # most come twice
        return np.unique(ids[apart][chosen])

    def covering(self, arms: IntArray) -> IntArray:
        low, high = self._plans[:, arms].argmin(axis=0), self._plans[:, arms].argmax(axis=0)
        return np.unique(np.minimum(low, high) * self.n_plans + np.maximum(low, high))

    def take(self, ids: IntArray) -> FloatArray:
        i, j = np.divmod(ids, self.n_plans)
        return np.asarray((self._plans[i] - self._plans[j]) ** 2)


def _farthest_by_part(points: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return, for each part and each point, the farthest point of the part and its squared distance."""
    norms = np.einsum("ks,ks->k", points, points)
    parts = np.array_split(np.arange(len(points)), min(_PARTS, len(points)))
    far = np.empty((len(parts), len(points)), dtype=np.int64)
    squares = np.empty((len(parts), len(points)))
    for low in range(0, len(points), _BLOCK):
        block = slice(low, low + _BLOCK)
        for p, part in enumerate(parts):
            gram = norms[part] - 2 * (points[block] @ points[part].T)  # |x - y|^2 - |x|^2
            at = gram.argmax(axis=1)
            far[p, block] = part[at]
            squares[p, block] = norms[block] + np.take_along_axis(gram, at[:, None], axis=1)[:, 0]
    return far, squares


def _first_disjoint(pairs: tuple[IntArray, IntArray], n_plans: int) -> BoolArray:
    """Which pairs share no plan with an earlier chosen one: spread over the plans, they bind together."""
    taken = np.zeros(n_plans, dtype=bool)
    chosen = np.zeros(len(pairs[0]), dtype=bool)
    for k, (i, j) in enumerate(zip(*(part.tolist() for part in pairs), strict=True)):
        if not (taken[i] or taken[j]):
            taken[i] = taken[j] = chosen[k] = True
    return chosen


def checked_plans(plans: npt.ArrayLike) -> FloatArray:
    """At least two plans that differ, as an array."""
    points = np.asarray(plans, dtype=float)
    if points.ndim != 2 or not np.isfinite(points).all() or not np.ptp(points, axis=0).any():
        raise ParameterError(
            "plans must be a finite (n_plans, n_arms) array with at least two plans that differ, "
            f"got shape {points.shape}",
            field="plans",
        )
    return points
