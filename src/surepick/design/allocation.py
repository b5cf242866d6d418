"""Shares of measurements between arms that make the hardest comparison as easy as possible, certified.

Every function minimises over the simplex of weights w the worst of many sums `sum_s squares[k, s] / w_s`,
which is the variance of comparison k per measurement. In the unnormalised form, with n_s measurements
of arm s,

    minimise sum_s n_s  subject to  sum_s a_ks / n_s <= 1 for every row k,                      (primal)
    maximise 2 sum_s sqrt(sum_k v_k a_ks) - sum_k v_k  over v >= 0,                             (dual)

with n_s = sqrt(sum_k v_k a_ks) at the optimum. Any v brackets the optimum: with r_s the inner root and
w = r / sum(r), (sum r)^2 / sum(v) is below it and max_k sum_s a_ks / w_s is above it. Both ends are computed
for every candidate, so a result is certified however it was found.

Few rows bind. A working set of them is solved by an interior-point method; all rows are checked at once, and
the worst are added until the bracket is as narrow as asked. The pairs of plans (RAGE) are rows that are never
listed. `width_allocation` adds a term that counts how many plans there are, the Gaussian width (Peace).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from surepick.core.arrays import FloatArray, IntArray, as_dense, divided
from surepick.errors import ParameterError

Squares: TypeAlias = Any  # (n_rows, n_arms) float array or scipy.sparse.csr_array

TIGHTEST = 1e-11  # relative gaps below this drown in rounding
_WEIGHT_FLOOR = 1e-13  # share of an arm no row of the working set touches: finite, and soon corrected
_LIVE = 1e-5  # rows with less than this share of the largest dual weight may leave the working set
_ROUND_GAIN = 0.01  # each working set is solved to this share of the gap that is left
_MOST_STEPS = 500  # Newton steps of one solution
_LEAST_DUAL, _LEAST_SLACK = 1e-4, 0.3  # of an interior start: no dual weight or slack is below these
_WHOLE_STEPS = 20  # Newton steps; nearly always fewer do, and as whole ones may cycle, later are halved
_TO_BOUNDARY = 0.99  # share of the way to the nearest bound that a step may go
_PARTS, _BLOCK = 8, 1024  # parts of the plans that each offer a farthest plan; plans in a block of distances
_DESCENT, _DRAWS = 80, 64  # steps for the width, and draws for each
_CHECKED = 2000  # draws that judge the result


@dataclass(frozen=True, eq=False)
class Allocation:
    """Shares of measurements per arm, with a certified bracket `lower <= optimum <= value`."""

    weights: FloatArray  # (n_arms,), sums to 1
    value: float  # the worst row under these weights: above the optimum
    lower: float  # dual value: below the optimum
    converged: bool  # whether the bracket is as narrow as was asked
    rows: IntArray  # (m,) the rows that bind
    dual: FloatArray  # (m,) how much each of them does; sums to 1

    @property
    def gap(self) -> float:
        """The relative width of the bracket."""
        return self.value / self.lower - 1


def optimal_allocation(
    squares: Squares, *, tolerance: float = 1e-3, costs: FloatArray | None = None
) -> Allocation:
    """Return the shares w that minimise max_k sum_s squares[k, s] / w_s, to a certified relative `tolerance`.

    `squares` is a non-negative (n_rows, n_arms) array or SciPy CSR array. Arms with no positive square get
    weight 0; rows of zeros are satisfied by every allocation and are ignored, but not all may be zero.
    With `costs` (one positive price per arm) the expected cost is minimised instead: `value` is in cost,
    `weights` are still shares of measurements.

    >>> found = optimal_allocation([[1.0, 4.0, 0.0], [1.0, 0.0, 0.0]], tolerance=1e-6)
    >>> found.weights.round(3).tolist(), round(found.value, 3)  # one row binds: w in proportion to |y|
    ([0.333, 0.667, 0.0], 9.0)
    """
    matrix = squares.tocsr() if hasattr(squares, "tocsr") else np.asarray(squares, dtype=float)
    if costs is not None:  # c_s n_s takes the place of n_s
        matrix = matrix * costs if isinstance(matrix, np.ndarray) else matrix.multiply(costs[None]).tocsr()
    rows = _ListedRows(matrix)
    if not (np.isfinite(rows.peaks).all() and rows.peaks.any()):
        raise ParameterError("squares must be finite, and not all of them 0", field="squares")
    found = _column_generation(rows, tolerance)
    return found if costs is None else replace(found, weights=_normalised(found.weights / costs))


def pair_allocation(plans: npt.ArrayLike, *, tolerance: float = 1e-3) -> Allocation:
    """Return the shares w that minimise the max over pairs of sum_s (z_s - z'_s)^2 / w_s, certified.

    Pairs are never listed: for given weights the worst pair is the diameter of the points z / sqrt(w), exact
    from blocks of a Gram matrix. Row i * n_plans + j of the result is the pair (i, j). For noise that differs
    between arms, pass `plans * noise_scale`.

    >>> found = pair_allocation([[1, 0, 5], [0, 2, 5], [0, 0, 5]], tolerance=1e-6)
    >>> found.weights.round(3).tolist(), round(found.value, 3), int(found.rows[found.dual.argmax()])
    ([0.333, 0.667, 0.0], 9.0, 1)
    """
    points = np.asarray(plans, dtype=float)
    if points.ndim != 2 or not np.isfinite(points).all() or not np.ptp(points, axis=0).any():
        raise ParameterError(
            f"plans must be a finite array with at least two plans that differ, got shape {points.shape}",
            field="plans",
        )
    return _column_generation(_PairRows(points), tolerance)


class _ListedRows:
    """Rows of squares given as a matrix; asked for the worst ones under weights, given as 1 / weight."""

    def __init__(self, matrix: Squares) -> None:
        self._matrix = matrix
        self.peaks = as_dense(matrix.max(axis=0)).ravel()  # (n_arms,) the largest square of each arm

    def worst(self, inverse: FloatArray, count: int) -> tuple[float, IntArray, FloatArray]:
        """Return the largest value of all rows; and the ids and values of the worst rows, worst first."""
        values = self._matrix @ inverse
        ids = _largest(values, count)
        return float(values.max()), ids, values[ids]

    def covering(self, arms: IntArray) -> IntArray:
        """Return the ids of rows that touch these arms, together."""
        return np.unique(np.asarray(self._matrix[:, arms].argmax(axis=0)).ravel())

    def take(self, ids: IntArray) -> FloatArray:
        """Return these rows as a dense array."""
        return as_dense(self._matrix[ids])


class _PairRows:
    """The same for the squared differences of all pairs of plans; pair i < j has the id i * n_plans + j."""

    def __init__(self, plans: FloatArray) -> None:
        self._plans = plans - plans.mean(axis=0)  # only differences count; centred, the Gram matrix is exact
        self.n_plans = len(plans)
        self.peaks = np.ptp(self._plans, axis=0) ** 2

    def worst(self, inverse: FloatArray, count: int) -> tuple[float, IntArray, FloatArray]:
        pairs = self._far_pairs(self._plans * np.sqrt(inverse), 8 * count)
        values = self.take(pairs) @ inverse  # again from the differences: no cancellation
        order = _largest(values, len(values))
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
        return np.unique(every[apart][_largest(square[apart], count)])  # most come twice

    def covering(self, arms: IntArray) -> IntArray:
        low, high = self._plans[:, arms].argmin(axis=0), self._plans[:, arms].argmax(axis=0)
        return np.unique(np.minimum(low, high) * self.n_plans + np.maximum(low, high))

    def take(self, ids: IntArray) -> FloatArray:
        i, j = np.divmod(ids, self.n_plans)
        return np.asarray((self._plans[i] - self._plans[j]) ** 2)


def _column_generation(rows: _ListedRows | _PairRows, tolerance: float) -> Allocation:
    """Return the best bracket: solve small working sets of rows until all rows agree that it is narrow.

    The dual of a working set is one of all rows, so that its value is a lower end. Its weights have the worst
    of all rows as upper end. Rows above the lower end join the set; those that do not bind leave it.
    """
    used = np.flatnonzero(rows.peaks > 0)
    roots = np.sqrt(rows.peaks)
    first = np.maximum(roots, 1e-3 * roots.max()) * (roots > 0)
    _, ids, _ = rows.worst(divided(1.0, first), max(10, len(used)))
    dual = np.full(len(ids), 1.0 / len(ids))
    weights, upper, lower, best = np.zeros(len(roots)), np.inf, 0.0, (ids, dual)
    scale, budget, n_new = 0.0, _MOST_STEPS, max(10, len(used) // 4)
    while True:
        bare = used[~(rows.take(ids)[:, used] > 0).any(axis=0)]  # arms that no row of the set touches
        extra = np.setdiff1d(rows.covering(bare), ids) if bare.size else bare
        ids, dual = np.append(ids, extra), np.append(dual, np.full(len(extra), 1e-2 * dual.max()))
        chosen = rows.take(ids)[:, used]
        scale = scale or _dual_value(chosen, dual)
        gap = min(upper / lower - 1, 1.0) if lower > 0 else 1.0
        inner = _interior_point(chosen / scale, dual, max(tolerance / 4, _ROUND_GAIN * gap), budget)
        budget -= inner.steps
        is_better = inner.value * scale > lower
        if is_better:
            lower, best = inner.value * scale, (ids, inner.dual)
        trial = np.zeros(len(roots))
        trial[used] = _normalised(np.maximum(inner.roots, _WEIGHT_FLOOR * inner.roots.sum()))
        worst, candidates, values = rows.worst(divided(1.0, trial), n_new + len(ids))
        if worst < upper:
            weights, upper = trial, worst
        converged = upper <= lower * (1 + tolerance)
        if converged or budget <= 0:
            break
        fresh = candidates[(values > lower) & ~np.isin(candidates, ids)][:n_new]
        live = inner.dual > _LIVE * inner.dual.max() if is_better else np.ones(len(ids), dtype=bool)
        dual = np.append(inner.dual[live], np.full(len(fresh), 1e-2 * inner.dual.max()))
        ids = np.append(ids[live], fresh)
    ids, dual = best
    # ends that are equal may be rounded past each other
    return Allocation(weights, upper, min(lower, upper), converged, ids, _normalised(dual))


@dataclass(frozen=True, eq=False)
class _Inner:
    """Dual weights of a working set A, (m, d), and the bracket they certify for it."""

    dual: FloatArray  # (m,) v
    roots: FloatArray  # (d,) r_s = sqrt(sum_k v_k A_ks): measurements of each arm, up to a factor
    loads: FloatArray  # (m,) f_k = sum_s A_ks / r_s: at the optimum 1 where v_k > 0, at most 1 elsewhere
    value: float  # (sum r)^2 / sum v: below the optimum
    gap: float  # relative width of the bracket
    steps: int  # Newton steps spent

    @classmethod
    def at(cls, rows: FloatArray, dual: FloatArray, steps: int) -> _Inner:
        """Return the bracket that this dual certifies for these rows."""
        roots = np.sqrt(dual @ rows)
        loads = rows @ (1 / roots)
        total = roots.sum()
        value = float(total * total / dual.sum())
        return cls(dual, roots, loads, value, float(loads.max() * total / value - 1), steps)


@np.errstate(divide="ignore", over="ignore", invalid="ignore")  # what is not finite is never certified
def _interior_point(rows: FloatArray, dual: FloatArray, tolerance: float, budget: int) -> _Inner:
    """Maximise 2 sum_s r_s - sum_k v_k, r = sqrt(v A), over v >= 0 for a working set A, to a relative gap.

    The gradient is f - 1. With slacks z >= 0 the optimum has f - 1 + z = 0 and v z = 0. The Hessian is -H,
    H = A diag(r^-3) A' / 2, so that a Newton step towards v z = aim (one number per row) solves

        (H + diag(z / v)) dv = f - 1 + aim / v,        dz = (aim - z dv) / v - z.

    Each step is taken twice, as Mehrotra does: a trial with aim 0 shows how far v z can fall, and what its
    linearisation has left out (dv dz); the step that counts aims at that.
    """
    v = dual * (_dual_value(rows, dual) / dual.sum())  # the best multiple of this dual
    now = best = _Inner.at(rows, v, 1)
    if now.gap <= tolerance:
        return now
    z = 1 - now.loads / now.loads.max() + _LEAST_SLACK
    now = _Inner.at(rows, np.maximum(v, _LEAST_DUAL * v.max()), 1)
    for step in range(2, budget + 1):
        v, gradient = now.dual, now.loads - 1
        solve = _newton_solver(rows * now.roots**-1.5, v / z)
        dv = solve(gradient)
        dz = -z - z * dv / v
        length = min(1.0, _distance(v, dv), _distance(z, dz))
        mean = v @ z / len(v)
        mean_of_trial = (v + length * dv) @ (z + length * dz) / len(v)
        aim = mean * (mean_of_trial / mean) ** 3 - dv * dz
        dv = solve(gradient + aim / v)
        dz = (aim - z * dv) / v - z
        length = min(1.0, _TO_BOUNDARY * _distance(v, dv), _TO_BOUNDARY * _distance(z, dz))
        length *= 1.0 if step <= _WHOLE_STEPS else 0.5
        now, z = _Inner.at(rows, v + length * dv, step), z + length * dz
        if now.value > best.value:
            best = now
        if now.gap <= tolerance:
            return now
        if not np.isfinite(now.gap):  # the end of floating point
            break
    return replace(best, steps=now.steps)


def _newton_solver(scaled: FloatArray, ratio: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """Return b -> x with (diag(1 / ratio) + B B' / 2) x = b, for B = `scaled`, (m, d).

    With S = diag(sqrt(ratio)) and g = S B / sqrt(2) the matrix is S^-1 (I + g g') S^-1: well scaled where
    ratios v / z differ by many powers of ten. Its inverse is found in the smaller of the two dimensions:
    (I + g g')^-1 = I - g (I + g' g)^-1 g' (Woodbury).
    """
    from scipy.linalg.lapack import dpotrf, dpotrs  # slow to import, and few commands solve a design

    m, d = scaled.shape
    s = np.sqrt(ratio)
    g = scaled * (s * np.sqrt(0.5))[:, None]
    gram = g @ g.T if m <= d else g.T @ g
    gram.flat[:: len(gram) + 1] += 1
    factor, _ = dpotrf(gram, lower=1, clean=0, overwrite_a=1)
    if m <= d:
        return lambda b: s * dpotrs(factor, s * b, lower=1)[0]
    return lambda b: s * (s * b - g @ dpotrs(factor, g.T @ (s * b), lower=1)[0])


def _distance(position: FloatArray, direction: FloatArray) -> float:
    """Return the longest step that keeps every coordinate non-negative."""
    steepest = float((-direction / position).max())
    return 1 / steepest if steepest > 0 else np.inf


def _dual_value(rows: FloatArray, dual: FloatArray) -> float:
    """Return (sum_s sqrt(sum_k v_k a_ks))^2 / sum v: below the optimum for any v >= 0."""
    return float(np.sqrt(dual @ rows).sum() ** 2 / dual.sum())


def _largest(values: FloatArray, count: int) -> IntArray:
    """Return the indices of the largest values, largest first."""
    if count < len(values):
        chosen = np.argpartition(-values, count)[:count]
        return np.asarray(chosen[np.argsort(-values[chosen], kind="stable")])
    return np.argsort(-values, kind="stable")


def _normalised(weights: FloatArray) -> FloatArray:
    """Return these weights as shares."""
    return np.asarray(weights / weights.sum())


@dataclass(frozen=True, eq=False)
class WidthAllocation:
    """Shares of measurements that make tau of Peace small, and what tau is there."""

    weights: FloatArray  # (n_arms,), sums to 1
    value: float  # estimate of tau(weights)
    standard_error: float  # Monte-Carlo standard error of `value`


def width_allocation(plans: npt.ArrayLike, *, log_term: float, rng: np.random.Generator) -> WidthAllocation:
    """Return shares w that nearly minimise tau(w) of Peace, with an unbiased estimate of tau there.

    tau(w) = (E max_{z,z'} (z - z')^T diag(w)^(-1/2) eta)^2 + 2 log_term max_{z,z'} sum_s (z - z')_s^2 / w_s,
    eta ~ N(0, I), log_term = log(1/delta_k). Stochastic mirror descent in log w from the best allocation of
    the second term: each of 80 steps averages 64 fresh draws, and the later half of the iterates is
    averaged (tau is convex). The better of start and average is kept, and judged on 2,000 new draws.

    >>> found = width_allocation([[1, 0], [0, 1]], log_term=3.0, rng=np.random.default_rng(0))
    >>> found.weights.round(2).tolist()
    [0.5, 0.5]
    """
    start = pair_allocation(plans, tolerance=1e-2)
    used = start.weights > 0
    points, first = np.asarray(plans, dtype=float)[:, used], start.weights[used]
    averaged = _mirror_descent(points, start, first, log_term, rng)
    draws = rng.standard_normal((points.shape[1], _CHECKED))
    chosen = min((first, averaged), key=lambda w: _tau(points, w, log_term, draws)[0])
    fresh = rng.standard_normal((points.shape[1], _CHECKED))
    weights = np.zeros(len(used))
    weights[used] = chosen
    return WidthAllocation(weights, *_tau(points, chosen, log_term, fresh))


def _mirror_descent(
    points: FloatArray, start: Allocation, weights: FloatArray, log_term: float, rng: np.random.Generator
) -> FloatArray:
    """Return the weights w that stochastic entropic mirror descent on tau reaches from `weights`.

    tau(w) = W(w)^2 + 2 log_term max_k V_k(w), with the width W = E max_y y.eta / sqrt(w), eta ~ N(0, I), over
    all differences y of two plans, and V_k = sum_s y_ks^2 / w_s. The pairs k that bind in `start` stand for
    all. By the envelope theorem, with y the pair that attains the maximum and dual weights v that sum to 1,

        -w_s d(W^2)/dw_s = W E[y_s eta_s / sqrt(w_s)],      -w_s d(max V)/dw_s = sum_k v_k y_ks^2 / w_s.

    tau(c w) = tau(w) / c, so that these parts sum over s to tau (Euler), and at the optimum on the simplex
    every -(d tau / d w_s) is tau. Steps shrink; the later half of the iterates is averaged, as tau is convex.
    """
    rows = _PairRows(points).take(start.rows)  # (m, d) y_ks^2 of the pairs that bind
    dual = start.dual
    total = np.zeros_like(weights)
    for step in range(_DESCENT):
        draws = rng.standard_normal((points.shape[1], _DRAWS)) / np.sqrt(weights)[:, None]  # (d, n)
        heights = points @ draws  # (K, n)
        # the pair with the largest difference in a draw is the highest plan minus the lowest
        y = points[heights.argmax(axis=0)] - points[heights.argmin(axis=0)]  # (n, d)
        width_parts = np.einsum("ns,sn->s", y, draws) / _DRAWS  # (d,) estimate of E[...], sums to W
        values = rows @ (1 / weights)  # V_k
        dual = dual * values / (dual @ values)  # multiplicative weights move to the hardest pairs
        tau_parts = width_parts.sum() * width_parts + 2 * log_term * (dual @ rows) / weights
        descent = tau_parts / tau_parts.sum() / weights  # -(d tau / d w_s) / tau: all 1 at the optimum
        weights = _normalised(weights * np.exp(np.clip(descent - 1, -1, 1) / (2 + 0.1 * step)))
        if step >= _DESCENT // 2:
            total += weights
    return _normalised(total)


def _tau(points: FloatArray, weights: FloatArray, log_term: float, draws: FloatArray) -> tuple[float, float]:
    """Return tau at these weights, its width from the draws, and the standard error."""
    widths = np.ptp(points @ (draws / np.sqrt(weights)[:, None]), axis=0)
    width, error = float(widths.mean()), float(widths.std(ddof=1) / np.sqrt(len(widths)))
    diameter, _, _ = _PairRows(points).worst(1 / weights, 1)
    return width**2 + 2 * log_term * diameter, 2 * width * error
