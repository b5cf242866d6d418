"""How to divide measurements between arms so that the hardest comparison is as easy as possible.

Every function minimises over the simplex of weights w the worst of many sums `sum_s squares[k, s] / w_s`,
which is the variance of comparison k per measurement. In the unnormalised form, with n_s measurements
of arm s,

    minimise sum_s n_s  subject to  sum_s a_ks / n_s <= 1 for every row k,                      (primal)
    maximise 2 sum_s sqrt(sum_k v_k a_ks) - sum_k v_k  over v >= 0,                             (dual)

with n_s = sqrt(sum_k v_k a_ks) at the optimum. Whatever v is, it brackets the optimum: with r_s the inner
root and w = r / sum(r), (sum r)^2 / sum(v) is below it and max_k sum_s a_ks / w_s is above it. Both ends are
computed for every candidate, so a result is certified however it was found.

Few rows bind. A few steps of the multiplicative iteration v_k <- v_k (f_k / v.f)^2 on a pool of rows spot
those that may; this working set is solved by a primal-dual interior-point method (Newton's method on the
dual, with Mehrotra's corrector); all rows are checked at once by one matrix product, and the worst are added
until the bracket is as narrow as asked.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.linalg.lapack import dpotrf, dpotrs

from surepick.core.problem import BoolArray, FloatArray, IntArray
from surepick.errors import ParameterError

Squares: TypeAlias = Any  # (n_rows, n_arms) float array or scipy.sparse.csr_array

TIGHTEST = 1e-11  # relative gaps below this drown in rounding
_WEIGHT_FLOOR = 1e-13  # share of an arm no row of the working set touches: finite, and soon corrected
_LIVE = 1e-5  # rows with less than this share of the largest dual weight may leave the working set
_SPOTTED = 1e-3  # the same, for the rows that survive the first sifting
_SIFTING = 8  # multiplicative steps of that sifting
_ROUND_GAIN = 0.01  # each working set is solved to this share of the gap that is left
_LEAST_DUAL = 1e-4  # an interior start: no dual weight below this share of the largest,
_LEAST_SLACK = 0.3  # and no slack below this
_FAST_STEPS = 20  # Newton steps without a line search; they nearly always do, and may cycle
_TO_BOUNDARY = 0.99  # share of the way to the nearest bound that a step may go
_SMALLEST_SHARE = 1e-280  # below it a weight is 0, so that counts / weight cannot overflow
_NOTHING = np.zeros(0, dtype=np.int64)
_PARTS = 8  # parts of the plans that each offer a farthest plan
_BLOCK = 1024  # plans per block of the pairwise distances: a block of 1024 x 1024 stays near 8 MB


@dataclass(frozen=True, eq=False)
class Allocation:
    """Shares of measurements per arm, with a certified bracket `lower <= optimum <= value`.

    `weights` are shares of the number of measurements and `spending` shares of the cost; without costs they
    are the same. `dual` says how much each row binds and is the warm start for a similar matrix.
    """

    weights: FloatArray  # (n_arms,), sums to 1
    spending: FloatArray  # (n_arms,), sums to 1
    value: float  # max_k sum_s squares[k, s] * costs[s] / spending[s]: an upper bound of the optimum
    lower: float  # dual value: a lower bound of the optimum
    dual: FloatArray  # (n_rows,), sums to 1
    converged: bool  # whether the bracket is as narrow as was asked

    @property
    def gap(self) -> float:
        """The relative width of the bracket."""
        return self.value / self.lower - 1


@dataclass(frozen=True, eq=False)
class PairAllocation:
    """Shares of measurements for the hardest pair of plans, with a certified bracket of the optimum."""

    weights: FloatArray  # (n_arms,), sums to 1
    value: float  # max over all pairs of sum_s (z_s - z'_s)^2 / weights_s: above the optimum
    lower: float  # dual value: below the optimum
    pairs: IntArray  # (m, 2) the pairs that bind
    dual: FloatArray  # (m,) how much, sums to 1
    converged: bool

    @property
    def gap(self) -> float:
        """The relative width of the bracket."""
        return self.value / self.lower - 1


@dataclass(frozen=True, eq=False)
class WidthAllocation:
    """Shares of measurements that make tau of Peace small, and what tau is there."""

    weights: FloatArray  # (n_arms,), sums to 1
    value: float  # estimate of tau(weights)
    standard_error: float  # Monte-Carlo standard error of `value`
    width: float  # estimate of the Gaussian width E max_{z,z'} (z - z')^T diag(weights)^(-1/2) eta
    diameter: float  # max_{z,z'} sum_s (z - z')_s^2 / weights_s, exact


def optimal_allocation(
    squares: Squares,
    *,
    tolerance: float = 1e-3,
    costs: npt.ArrayLike | None = None,
    start: npt.ArrayLike | None = None,
    max_iterations: int = 500,
) -> Allocation:
    """The shares w that minimise max_k sum_s squares[k, s] / w_s, to a certified relative `tolerance`.

    `squares` is a non-negative (n_rows, n_arms) array or SciPy CSR array. Arms with no positive square get
    weight 0; rows of zeros are satisfied by every allocation and are ignored, but not all may be zero.
    With `costs` (one positive price per arm) the expected cost is minimised instead: c_s n_s takes the place
    of n_s and squares * c_s that of squares, `value` is in cost, `weights` are still shares of measurements.
    `start` is the `dual` of a similar matrix. `max_iterations` bounds the Newton steps; when they run out
    the bracket is still valid, and `converged` is False.

    >>> found = optimal_allocation([[1.0, 4.0, 0.0], [1.0, 0.0, 0.0]], tolerance=1e-6)
    >>> found.weights.round(3).tolist(), round(found.value, 3)  # one row binds: w in proportion to |y|
    ([0.333, 0.667, 0.0], 9.0)
    """
    matrix = _as_matrix(squares)
    prices = _checked_costs(costs, matrix.shape[1])
    if prices is not None:
        matrix = _scale_columns(matrix, prices)
    rows = _ListedRows(matrix)
    _check_squares(matrix, rows.peaks())
    dual = None if start is None else _checked_start(start, matrix.shape[0])
    found = _column_generation(rows, _checked_tolerance(tolerance), max(1, max_iterations), dual)
    everything = np.zeros(matrix.shape[0])
    everything[found.ids] = found.dual / found.dual.sum()
    weights = found.weights if prices is None else _normalised(found.weights / prices)
    return Allocation(weights, found.weights, found.upper, found.lower, everything, found.converged)


def pair_allocation(
    plans: npt.ArrayLike, *, tolerance: float = 1e-3, max_iterations: int = 500
) -> PairAllocation:
    """The shares w that minimise the max over pairs of plans of sum_s (z_s - z'_s)^2 / w_s, certified.

    Pairs are never listed: for given weights the worst pair is the diameter of the points z / sqrt(w), exact
    from blocks of a Gram matrix. For noise that differs between arms, pass `plans * noise_scale`.

    >>> found = pair_allocation([[1, 0, 5], [0, 2, 5], [0, 0, 5]], tolerance=1e-6)
    >>> found.weights.round(3).tolist(), round(found.value, 3), found.pairs[found.dual.argmax()].tolist()
    ([0.333, 0.667, 0.0], 9.0, [0, 1])
    """
    rows = _PairRows(_checked_plans(plans))
    found = _column_generation(rows, _checked_tolerance(tolerance), max(1, max_iterations), None)
    live = found.dual > 1e-9 * found.dual.max()
    pairs = np.column_stack(np.divmod(found.ids[live], rows.n_plans))
    dual = found.dual[live] / found.dual[live].sum()
    return PairAllocation(found.weights, found.upper, found.lower, pairs, dual, found.converged)


def round_allocation(weights: npt.ArrayLike, n: int) -> IntArray:
    """Whole numbers of measurements in proportion to `weights` that sum to n (Pukelsheim's rounding).

    Start from ceil((n - p/2) w_s) with p the number of positive weights, then remove from the largest
    (n_s - 1) / w_s or add to the smallest n_s / w_s; ties go to the lowest index. Every arm of positive
    weight gets at least one measurement, so n must be at least p.

    >>> round_allocation([0.5, 0.3, 0.2, 0.0], 7).tolist()
    [3, 2, 2, 0]
    """
    shares = _normalised(np.asarray(weights, dtype=float))
    support = np.flatnonzero(shares > _SMALLEST_SHARE)
    if n < len(support):
        raise ParameterError(
            f"n must be at least the {len(support)} arms of positive weight, got {n}; "
            "drop arms of small weight or measure more"
        )
    w = shares[support]
    counts = np.maximum(np.ceil((n - len(w) / 2) * w).astype(np.int64), 1)
    while int(counts.sum()) > n:
        counts[np.argmax((counts - 1) / w)] -= 1
    while int(counts.sum()) < n:
        counts[np.argmin(counts / w)] += 1
    result = np.zeros(len(shares), dtype=np.int64)
    result[support] = counts
    return result


def width_allocation(
    plans: npt.ArrayLike,
    *,
    log_term: float,
    rng: np.random.Generator,
    n_steps: int = 80,
    n_draws: int = 64,
    n_check: int = 2000,
) -> WidthAllocation:
    """Shares w that nearly minimise tau(w) of Peace, with an unbiased look at what tau is there.

    tau(w) = (E max_{z,z'} (z - z')^T diag(w)^(-1/2) eta)^2 + 2 log_term max_{z,z'} sum_s (z - z')_s^2 / w_s,
    eta ~ N(0, I), log_term = log(1/delta_k). Stochastic mirror descent in log w from the best allocation of
    the second term: each of `n_steps` averages `n_draws` fresh draws, and the later half of the iterates is
    averaged (tau is convex). The better of start and average is kept, and judged on `n_check` new draws.

    >>> found = width_allocation([[1, 0], [0, 1]], log_term=3.0, rng=np.random.default_rng(0))
    >>> found.weights.round(2).tolist(), round(found.diameter, 2)
    ([0.5, 0.5], 4.0)
    """
    points = _checked_plans(plans)
    pairs = pair_allocation(points, tolerance=1e-2)
    used = pairs.weights > 0
    points, first = points[:, used], pairs.weights[used]
    averaged = _mirror_descent(points, first, pairs, log_term, rng, n_steps, n_draws)
    draws = rng.standard_normal((points.shape[1], n_check))
    candidates = [first, averaged]
    scores = [_tau(points, w, log_term, draws).value for w in candidates]
    chosen = candidates[int(np.argmin(scores))]
    fresh = rng.standard_normal((points.shape[1], n_check))
    found = _tau(points, chosen, log_term, fresh)
    weights = np.zeros(len(used))
    weights[used] = found.weights
    return WidthAllocation(weights, found.value, found.standard_error, found.width, found.diameter)


class _Rows(Protocol):
    """Rows of squares, listed or implicit, that can be asked for the worst under some weights."""

    @property
    def shape(self) -> tuple[int, int]: ...
    def peaks(self) -> FloatArray: ...
    def pool(self, inverse: FloatArray, warm: IntArray) -> tuple[IntArray, Squares, int]: ...
    def worst(self, inverse: FloatArray, count: int) -> tuple[float, IntArray, FloatArray]: ...
    def covering(self, arms: IntArray) -> IntArray: ...
    def take(self, ids: IntArray) -> FloatArray: ...


class _ListedRows:
    """Rows given as a matrix."""

    def __init__(self, matrix: Squares) -> None:
        self._matrix = matrix
        self._peaks = _dense(matrix.max(axis=0)).ravel()
        self.shape: tuple[int, int] = matrix.shape

    def peaks(self) -> FloatArray:
        return self._peaks

    def pool(self, inverse: FloatArray, warm: IntArray) -> tuple[IntArray, Squares, int]:
        """Candidates for the first working set, and how many cheap steps to sift them are worth it."""
        if not isinstance(self._matrix, np.ndarray):
            steps = _SIFTING + min(300, self.shape[1] ** 3 // (20 * self._matrix.nnz))
            return np.arange(self.shape[0]), self._matrix, steps
        _, ids, _ = self.worst(inverse, max(10, int(np.count_nonzero(inverse))))
        ids = np.union1d(ids, warm)
        return ids, self._matrix[ids], _SIFTING

    def worst(self, inverse: FloatArray, count: int) -> tuple[float, IntArray, FloatArray]:
        values = self._matrix @ inverse
        ids = _largest(values, count)
        return float(values.max()), ids, values[ids]

    def covering(self, arms: IntArray) -> IntArray:
        return np.unique(np.asarray(self._matrix[:, arms].argmax(axis=0)).ravel())

    def take(self, ids: IntArray) -> FloatArray:
        return _dense(self._matrix[ids])


class _PairRows:
    """The squared differences of all pairs of plans; pair (i, j) has the id i * n_plans + j, i < j."""

    def __init__(self, plans: FloatArray) -> None:
        self._plans = plans - plans.mean(axis=0)  # only differences count; centred, the Gram matrix is exact
        self.n_plans = len(plans)
        self.shape: tuple[int, int] = (self.n_plans * (self.n_plans - 1) // 2, plans.shape[1])

    def peaks(self) -> FloatArray:
        return np.asarray(np.ptp(self._plans, axis=0) ** 2)

    def pool(self, inverse: FloatArray, warm: IntArray) -> tuple[IntArray, Squares, int]:
        _, ids, _ = self.worst(inverse, max(10, int(np.count_nonzero(inverse))))
        ids = np.union1d(ids, warm)
        return ids, self.take(ids), _SIFTING

    def worst(self, inverse: FloatArray, count: int) -> tuple[float, IntArray, FloatArray]:
        pairs = self._far_pairs(self._plans * np.sqrt(inverse), 4 * count)
        values = self.take(pairs) @ inverse  # again from the differences: no cancellation
        order = _largest(values, len(values))
        spread = _first_disjoint(np.divmod(pairs[order], self.n_plans), self.n_plans)
        order = np.concatenate([order[spread], order[~spread]])[:count]
        return float(values.max()), pairs[order], values[order]

    def _far_pairs(self, points: FloatArray, count: int) -> IntArray:
        """The ids of the farthest of: each plan with the plan farthest from it in each part of the plans."""
        far, squares = _farthest_by_part(points)  # (n_parts, n_plans)
        near = np.broadcast_to(np.arange(self.n_plans), far.shape)
        ids = np.minimum(near, far) * self.n_plans + np.maximum(near, far)
        apart = near != far
        chosen = _largest(squares[apart], 2 * count)  # most come twice
        return np.unique(ids[apart][chosen])

    def covering(self, arms: IntArray) -> IntArray:
        low, high = self._plans[:, arms].argmin(axis=0), self._plans[:, arms].argmax(axis=0)
        return np.unique(np.minimum(low, high) * self.n_plans + np.maximum(low, high))

    def take(self, ids: IntArray) -> FloatArray:
        i, j = np.divmod(ids, self.n_plans)
        return np.asarray((self._plans[i] - self._plans[j]) ** 2)


@dataclass(frozen=True, eq=False)
class _Found:
    """The best bracket of a column generation and the working set behind its lower end."""

    weights: FloatArray
    upper: float
    lower: float
    ids: IntArray
    dual: FloatArray
    converged: bool


def _column_generation(rows: _Rows, tolerance: float, budget: int, start: FloatArray | None) -> _Found:
    """Solve small working sets of rows until all rows agree that the bracket is narrow enough."""
    peaks = rows.peaks()
    used = np.flatnonzero(peaks > 0)
    ids, dual = _first_rows(rows, peaks, tolerance, start)
    ids, dual = _cover(rows, used, ids, dual)
    scale = _dual_value(rows.take(ids), dual)
    weights, upper, lower, best = np.zeros(rows.shape[1]), np.inf, 0.0, (ids, dual)
    while True:
        gap = min(upper / lower - 1, 1.0) if lower > 0 else 1.0
        block = rows.take(ids)[:, used] / scale
        inner = _interior_point(block, dual, max(tolerance / 4, _ROUND_GAIN * gap), budget)
        budget -= inner.steps
        if improved := inner.value * scale > lower:
            lower, best = inner.value * scale, (ids, inner.dual)
        trial = np.zeros(rows.shape[1])
        trial[used] = _normalised(np.maximum(inner.roots, _WEIGHT_FLOOR * inner.roots.sum()))
        batch = max(10, len(used) // 4)
        worst, candidates, values = rows.worst(_inverse(trial), batch + len(ids))
        if worst < upper:
            weights, upper = trial, worst
        if (converged := upper <= lower * (1 + tolerance)) or budget <= 0:
            break
        fresh = candidates[(values > lower) & ~np.isin(candidates, ids)][:batch]
        live = inner.dual > _LIVE * inner.dual.max() if improved else np.ones(len(ids), dtype=bool)
        ids = np.concatenate([ids[live], fresh])
        dual = np.concatenate([inner.dual[live], np.full(len(fresh), 1e-2 * inner.dual.max())])
        ids, dual = _cover(rows, used, ids, dual)
    return _Found(weights, upper, lower, *best, converged)


def _first_rows(
    rows: _Rows, peaks: FloatArray, tolerance: float, start: FloatArray | None
) -> tuple[IntArray, FloatArray]:
    """The rows of a promising pool, warm ones included, on which a few multiplicative steps leave weight."""
    warm = np.flatnonzero(start > _LIVE * start.max()) if start is not None else _NOTHING
    roots = np.sqrt(peaks) if start is None else np.sqrt(start[warm] @ rows.take(warm))
    inverse = _inverse(np.maximum(roots, 1e-3 * roots.max()) * (peaks > 0))
    ids, pool, n_steps = rows.pool(inverse, warm)
    dual = np.full(len(ids), 1 / len(ids))
    if start is not None:
        dual = _normalised(start[ids]) + 0.1 * dual  # a tenth of new weight lets new rows in
    dual = _multiplicative(pool, dual, tolerance / 4, n_steps)
    live = np.flatnonzero(dual > _SPOTTED * dual.max())
    return ids[live], dual[live]


def _multiplicative(pool: Squares, v: FloatArray, tolerance: float, n_steps: int) -> FloatArray:
    """Dual weights after v_k <- v_k (f_k / v.f)^2: the classical iteration, with twice its step."""
    transposed = pool.T if isinstance(pool, np.ndarray) else pool.T.tocsr()
    for _ in range(n_steps):
        r = np.sqrt(transposed @ v)
        f = pool @ _inverse(r) / r.sum()  # v.f = 1
        if f.max() <= 1 + tolerance:
            break
        v = _normalised(v * f * f)
    return v


def _cover(rows: _Rows, used: IntArray, ids: IntArray, dual: FloatArray) -> tuple[IntArray, FloatArray]:
    """The working set with a row for every arm that it did not touch."""
    bare = used[~(rows.take(ids)[:, used] > 0).any(axis=0)]
    if not bare.size:
        return ids, dual
    extra = np.setdiff1d(rows.covering(bare), ids)
    return np.concatenate([ids, extra]), np.concatenate([dual, np.full(len(extra), 1e-2 * dual.max())])


@dataclass(frozen=True, eq=False)
class _Inner:
    """Dual weights of a working set, and the bracket they certify for it."""

    dual: FloatArray  # (m,)
    roots: FloatArray  # (d,) n_s = sqrt(v A)
    loads: FloatArray  # (m,) f = A (1/n): at the optimum 1 where v_k > 0, at most 1 elsewhere
    value: float  # (sum n)^2 / sum v: below the optimum
    gap: float  # relative width of the bracket
    steps: int  # Newton steps spent


def _certified(rows: FloatArray, v: FloatArray, steps: int) -> _Inner:
    r = np.sqrt(v @ rows)
    f = rows @ (1 / r)
    total = r.sum()
    value = float(total * total / v.sum())
    return _Inner(v, r, f, value, float(f.max() * total / value - 1), steps)


@np.errstate(divide="ignore", over="ignore", invalid="ignore")  # what is not finite is never certified
def _interior_point(rows: FloatArray, dual: FloatArray, tolerance: float, budget: int) -> _Inner:
    """Maximise 2 sum sqrt(v A) - sum v over v >= 0 for a working set A, to a relative gap.

    Newton on grad = z, v z = mu, with z_k = 1 - sum_s A_ks / r_s the slack of row k and r = sqrt(v A).
    """
    v = dual * (_dual_value(rows, dual) / dual.sum())  # the best multiple of this dual
    at = best = _certified(rows, v, 1)
    if at.gap <= tolerance:
        return at
    z = 1 - at.loads / at.loads.max() + _LEAST_SLACK
    at = _certified(rows, np.maximum(v, _LEAST_DUAL * v.max()), 1)
    for step in range(2, min(budget, _FAST_STEPS) + 1):
        v = at.dual
        dv, dz = _mehrotra_step(rows, v, z, at.roots, at.loads)
        length = min(1.0, _TO_BOUNDARY * _distance(v, dv), _TO_BOUNDARY * _distance(z, dz))
        at, z = _certified(rows, v + length * dv, step), z + length * dz
        if at.value > best.value:
            best = at
        if at.gap <= tolerance or not np.isfinite(at.gap):  # done, or the end of floating point
            return replace(at if at.gap <= tolerance else best, steps=step)
    return _barrier(rows, best, tolerance, budget)


def _barrier(rows: FloatArray, best: _Inner, tolerance: float, budget: int) -> _Inner:
    """The same by Newton with a line search on 2 sum sqrt(v A) - sum v + mu sum log v: slow and sure."""
    at = _certified(rows, np.maximum(best.dual, _LEAST_DUAL * best.dual.max()), _FAST_STEPS)
    mu, step = 0.1 * at.dual.mean(), min(budget, _FAST_STEPS)
    for step in range(_FAST_STEPS + 1, budget + 1):
        v, slope = at.dual, at.loads - 1 + mu / at.dual
        dv = _newton_solver(rows * at.roots**-1.5, v * v / mu)(slope)
        if slope @ dv <= 0.1 * mu:  # the squared Newton decrement: near enough to the central path
            mu *= 0.2
            continue
        length = min(1.0, _TO_BOUNDARY * _distance(v, dv))
        height = _barrier_height(rows, v, mu)
        while _barrier_height(rows, v + length * dv, mu) < height + 0.1 * length * (slope @ dv):
            length /= 2
            if length < 1e-12:  # the end of floating point
                return replace(best, steps=step)
        at = _certified(rows, v + length * dv, step)
        if at.value > best.value:
            best = at
        if at.gap <= tolerance:
            return at
        if not np.isfinite(at.gap):
            break
    return replace(best, steps=step)


def _barrier_height(rows: FloatArray, v: FloatArray, mu: float) -> float:
    return float(2 * np.sqrt(v @ rows).sum() - v.sum() + mu * np.log(v).sum())


def _mehrotra_step(
    rows: FloatArray, v: FloatArray, z: FloatArray, r: FloatArray, f: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The Newton direction of the central path, with the second-order correction of a trial step."""
    solve = _newton_solver(rows * r**-1.5, v / z)
    dv = solve(f - 1)
    dz = -z - z * dv / v
    length = min(1.0, _distance(v, dv), _distance(z, dz))
    mu = v @ z / len(v)
    trial = (v + length * dv) @ (z + length * dz) / len(v)
    aim = mu * (trial / mu) ** 3 - dv * dz  # (m,) what v z should become
    dv = solve(f - 1 + aim / v)
    return dv, (aim - z * dv) / v - z


def _newton_solver(scaled: FloatArray, ratio: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """Solves (diag(1/ratio) + scaled scaled^T / 2) x = b in the smaller of the two dimensions."""
    m, d = scaled.shape
    s = np.sqrt(ratio)
    g = scaled * (s * np.sqrt(0.5))[:, None]  # diag(s) M diag(s) = I + g g^T: well scaled to the end
    gram = g @ g.T if m <= d else g.T @ g
    gram.flat[:: len(gram) + 1] += 1
    factor, _ = dpotrf(gram, lower=1, clean=0, overwrite_a=1)
    if m <= d:
        return lambda b: s * dpotrs(factor, s * b, lower=1)[0]
    return lambda b: s * (s * b - g @ dpotrs(factor, g.T @ (s * b), lower=1)[0])  # Woodbury


def _distance(position: FloatArray, direction: FloatArray) -> float:
    """The longest step that keeps every coordinate non-negative."""
    steepest = float((-direction / position).max())
    return 1 / steepest if steepest > 0 else np.inf


def _dual_value(rows: FloatArray, dual: FloatArray) -> float:
    """(sum_s sqrt(sum_k v_k a_ks))^2 / sum v: below the optimum for any v >= 0."""
    return float(np.sqrt(dual @ rows).sum() ** 2 / dual.sum())


def _farthest_by_part(points: FloatArray) -> tuple[IntArray, FloatArray]:
    """For each part of the points, the one farthest from every point and its squared distance."""
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


def _mirror_descent(
    points: FloatArray,
    weights: FloatArray,
    pairs: PairAllocation,
    log_term: float,
    rng: np.random.Generator,
    n_steps: int,
    n_draws: int,
) -> FloatArray:
    """The average of the later half of the iterates of entropic mirror descent on tau."""
    rows = (points[pairs.pairs[:, 0]] - points[pairs.pairs[:, 1]]) ** 2  # (m, d) the pairs that bind
    dual = pairs.dual
    total = np.zeros_like(weights)
    for step in range(n_steps):
        spread = _width_share(points, weights, rng.standard_normal((points.shape[1], n_draws)))
        values = rows @ (1 / weights)
        dual = dual * values / (dual @ values)  # the multiplicative dual follows the hardest pairs
        share = spread + 2 * log_term * (dual @ rows) / weights  # -w_s d tau / d w_s: sums to tau
        descent = share / share.sum() / weights  # -(d tau / d w_s) / tau: all 1 at the optimum
        weights = _normalised(weights * np.exp(np.clip(descent - 1, -1, 1) / (2 + 0.1 * step)))
        if step >= n_steps // 2:
            total += weights
    return _normalised(total)


def _width_share(points: FloatArray, weights: FloatArray, draws: FloatArray) -> FloatArray:
    """-w_s d/dw_s of (mean max (z - z')^T eta / sqrt(w))^2 over these draws; sums to the square."""
    scaled = draws / np.sqrt(weights)[:, None]  # (d, n)
    heights = points @ scaled  # (K, n)
    y = points[heights.argmax(axis=0)] - points[heights.argmin(axis=0)]  # (n, d)
    parts = np.einsum("ns,sn->s", y, scaled) / draws.shape[1]  # (d,) sums to the mean maximum
    return np.asarray(parts.sum() * parts)


def _tau(points: FloatArray, weights: FloatArray, log_term: float, draws: FloatArray) -> WidthAllocation:
    """tau at these weights: the width from the draws, the diameter exactly."""
    heights = points @ (draws / np.sqrt(weights)[:, None])
    widths = np.ptp(heights, axis=0)
    width, error = float(widths.mean()), float(widths.std(ddof=1) / np.sqrt(len(widths)))
    diameter, _, _ = _PairRows(points).worst(1 / weights, 1)
    value = width**2 + 2 * log_term * diameter
    return WidthAllocation(weights, value, 2 * width * error, width, diameter)


def _largest(values: FloatArray, count: int) -> IntArray:
    """The indices of the largest values, largest first."""
    if count < len(values):
        chosen = np.argpartition(-values, count)[:count]
        return np.asarray(chosen[np.argsort(-values[chosen], kind="stable")])
    return np.argsort(-values, kind="stable")


def _checked_start(start: npt.ArrayLike, n_rows: int) -> FloatArray | None:
    dual = np.asarray(start, dtype=float)
    if dual.shape != (n_rows,) or not (dual >= 0).all():
        raise ParameterError(
            f"start must be one non-negative dual weight for each of the {n_rows} rows, "
            f"got shape {dual.shape}; pass the `dual` of an earlier allocation"
        )
    return dual if dual.any() else None


def _as_matrix(squares: Squares) -> Squares:
    matrix = squares.tocsr() if hasattr(squares, "tocsr") else np.asarray(squares, dtype=float)
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise ParameterError(f"squares must have shape (n_rows, n_arms), got {matrix.shape}")
    return matrix


def _check_squares(matrix: Squares, peaks: FloatArray) -> None:
    data = matrix if isinstance(matrix, np.ndarray) else matrix.data
    if data.size and not (data.min() >= 0 and np.isfinite(peaks).all()):
        raise ParameterError("squares must be finite and non-negative; square the differences first")
    if not peaks.any():
        raise ParameterError("all squares are 0: no comparison needs a measurement; leave such rows out")


def _checked_plans(plans: npt.ArrayLike) -> FloatArray:
    points = np.asarray(plans, dtype=float)
    if points.ndim != 2 or not np.isfinite(points).all() or not np.ptp(points, axis=0).any():
        raise ParameterError(
            "plans must be a finite (n_plans, n_arms) array with at least two plans that differ, "
            f"got shape {points.shape}"
        )
    return points


def _checked_costs(costs: npt.ArrayLike | None, n_arms: int) -> FloatArray | None:
    if costs is None:
        return None
    prices = np.asarray(costs, dtype=float)
    if prices.shape != (n_arms,) or not ((prices > 0) & np.isfinite(prices)).all():
        raise ParameterError(
            f"costs must be one positive number for each of the {n_arms} arms, got {costs!r}"
        )
    return prices


def _checked_tolerance(tolerance: float) -> float:
    if not TIGHTEST <= tolerance < 1:
        raise ParameterError(f"tolerance must be between {TIGHTEST:g} and 1, got {tolerance!r}; try 1e-3")
    return tolerance


def _scale_columns(matrix: Squares, factors: FloatArray) -> Squares:
    if isinstance(matrix, np.ndarray):
        return matrix * factors
    scaled = matrix.copy()
    scaled.data = matrix.data * factors[matrix.indices]
    return scaled


def _dense(matrix: Any) -> FloatArray:
    return matrix if isinstance(matrix, np.ndarray) else np.asarray(matrix.toarray())


def _inverse(values: FloatArray) -> FloatArray:
    """1 / values, and 0 where a value is 0: an arm of weight 0 has no positive square."""
    return np.divide(1.0, values, out=np.zeros_like(values), where=values > 0)


def _normalised(weights: FloatArray) -> FloatArray:
    return np.asarray(weights / weights.sum())
