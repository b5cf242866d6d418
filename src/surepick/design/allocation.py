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
those that may; this working set is solved by `interior_point`; all rows are checked at once by one matrix
product, and the worst are added until the bracket is as narrow as asked. `pairs` has rows that are never
listed, `width` a sum with one more term.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from surepick.core.arrays import FloatArray, IntArray, as_dense
from surepick.design.interior_point import dual_value, interior_point
from surepick.errors import ParameterError

Squares: TypeAlias = Any  # (n_rows, n_arms) float array or scipy.sparse.csr_array

TIGHTEST = 1e-11  # relative gaps below this drown in rounding
_WEIGHT_FLOOR = 1e-13  # share of an arm no row of the working set touches: finite, and soon corrected
_LIVE = 1e-5  # rows with less than this share of the largest dual weight may leave the working set
_SPOTTED = 1e-3  # the same, for the rows that survive the first sifting
_SIFTING = 8  # multiplicative steps of that sifting
_ROUND_GAIN = 0.01  # each working set is solved to this share of the gap that is left
_NOTHING = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Bracket:
    """Shares of measurements per arm, with a certified bracket `lower <= optimum <= value`."""

    weights: FloatArray  # (n_arms,), sums to 1
    value: float  # the worst row under these weights: above the optimum
    lower: float  # dual value: below the optimum
    converged: bool  # whether the bracket is as narrow as was asked
    dual: FloatArray  # (n_rows,) how much each row binds; sums to 1

    @property
    def gap(self) -> float:
        """The relative width of the bracket."""
        return self.value / self.lower - 1


@dataclass(frozen=True, eq=False)
class Allocation(Bracket):
    """Shares of measurements for the hardest of listed rows.

    `weights` are shares of the number of measurements and `spending` shares of the cost; without costs they
    are the same. `value` is max_k sum_s squares[k, s] * costs[s] / spending[s], and `dual` is the warm start
    for a similar matrix.
    """

    spending: FloatArray  # (n_arms,), sums to 1


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
    found = column_generation(rows, checked_tolerance(tolerance), max(1, max_iterations), dual)
    everything = np.zeros(matrix.shape[0])
    everything[found.ids] = found.dual / found.dual.sum()
    weights = found.weights if prices is None else normalised(found.weights / prices)
    return Allocation(weights, found.value, found.lower, found.converged, everything, found.weights)


class Rows(ABC):
    """Rows of squares, listed or not, that can be asked for the worst under some weights, 1 / `inverse`."""

    shape: tuple[int, int]  # n_rows, n_arms

    @abstractmethod
    def peaks(self) -> FloatArray:
        """The largest square of each arm."""

    @abstractmethod
    def worst(self, inverse: FloatArray, count: int) -> tuple[float, IntArray, FloatArray]:
        """The largest value of all rows; and the ids and values of the worst rows, worst first."""

    @abstractmethod
    def covering(self, arms: IntArray) -> IntArray:
        """The ids of rows that touch these arms, together."""

    @abstractmethod
    def take(self, ids: IntArray) -> FloatArray:
        """These rows as a dense array."""

    def pool(self, inverse: FloatArray, warm: IntArray) -> tuple[IntArray, Squares, int]:
        """Candidates for the first working set, and how many cheap steps to sift them are worth it."""
        _, ids, _ = self.worst(inverse, max(10, int(np.count_nonzero(inverse))))
        ids = np.union1d(ids, warm)
        return ids, self.take(ids), _SIFTING


class _ListedRows(Rows):
    """Rows given as a matrix."""

    def __init__(self, matrix: Squares) -> None:
        self._matrix = matrix
        self._peaks = as_dense(matrix.max(axis=0)).ravel()
        self.shape = matrix.shape

    def peaks(self) -> FloatArray:
        return self._peaks

    def pool(self, inverse: FloatArray, warm: IntArray) -> tuple[IntArray, Squares, int]:
        if isinstance(self._matrix, np.ndarray):
            return super().pool(inverse, warm)
        steps = _SIFTING + min(300, self.shape[1] ** 3 // (20 * self._matrix.nnz))
        return np.arange(self.shape[0]), self._matrix, steps

    def worst(self, inverse: FloatArray, count: int) -> tuple[float, IntArray, FloatArray]:
        values = self._matrix @ inverse
        ids = largest(values, count)
        return float(values.max()), ids, values[ids]

    def covering(self, arms: IntArray) -> IntArray:
        return np.unique(np.asarray(self._matrix[:, arms].argmax(axis=0)).ravel())

    def take(self, ids: IntArray) -> FloatArray:
        return as_dense(self._matrix[ids])


@dataclass(frozen=True, eq=False)
class Found(Bracket):
    """The best bracket of a column generation, and the rows of the working set behind its lower end."""

    ids: IntArray  # one for each entry of `dual`, which is not scaled


def column_generation(rows: Rows, tolerance: float, budget: int, start: FloatArray | None) -> Found:
    """Solve small working sets of rows until all rows agree that the bracket is narrow enough."""
    peaks = rows.peaks()
    used = np.flatnonzero(peaks > 0)
    ids, dual = _first_rows(rows, peaks, tolerance, start)
    ids, dual = _cover(rows, used, ids, dual)
    scale = dual_value(rows.take(ids), dual)
    weights, upper, lower, best = np.zeros(rows.shape[1]), np.inf, 0.0, (dual, ids)
    while True:
        gap = min(upper / lower - 1, 1.0) if lower > 0 else 1.0
        block = rows.take(ids)[:, used] / scale
        inner = interior_point(block, dual, max(tolerance / 4, _ROUND_GAIN * gap), budget)
        budget -= inner.steps
        if improved := inner.value * scale > lower:
            lower, best = inner.value * scale, (inner.dual, ids)
        trial = np.zeros(rows.shape[1])
        trial[used] = normalised(np.maximum(inner.roots, _WEIGHT_FLOOR * inner.roots.sum()))
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
    return Found(weights, upper, lower, converged, *best)


def _first_rows(
    rows: Rows, peaks: FloatArray, tolerance: float, start: FloatArray | None
) -> tuple[IntArray, FloatArray]:
    """The rows of a promising pool, warm ones included, on which a few multiplicative steps leave weight."""
    warm = np.flatnonzero(start > _LIVE * start.max()) if start is not None else _NOTHING
    roots = np.sqrt(peaks) if start is None else np.sqrt(start[warm] @ rows.take(warm))
    inverse = _inverse(np.maximum(roots, 1e-3 * roots.max()) * (peaks > 0))
    ids, pool, n_steps = rows.pool(inverse, warm)
    dual = np.full(len(ids), 1 / len(ids))
    if start is not None:
        dual = normalised(start[ids]) + 0.1 * dual  # a tenth of new weight lets new rows in
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
        v = normalised(v * f * f)
    return v


def _cover(rows: Rows, used: IntArray, ids: IntArray, dual: FloatArray) -> tuple[IntArray, FloatArray]:
    """The working set with a row for every arm that it did not touch."""
    bare = used[~(rows.take(ids)[:, used] > 0).any(axis=0)]
    if not bare.size:
        return ids, dual
    extra = np.setdiff1d(rows.covering(bare), ids)
    return np.concatenate([ids, extra]), np.concatenate([dual, np.full(len(extra), 1e-2 * dual.max())])


def largest(values: FloatArray, count: int) -> IntArray:
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
            f"got shape {dual.shape}; pass the `dual` of an earlier allocation",
            field="start",
        )
    return dual if dual.any() else None


def _as_matrix(squares: Squares) -> Squares:
    matrix = squares.tocsr() if hasattr(squares, "tocsr") else np.asarray(squares, dtype=float)
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise ParameterError(f"squares must have shape (n_rows, n_arms), got {matrix.shape}", field="squares")
    return matrix


def _check_squares(matrix: Squares, peaks: FloatArray) -> None:
    data = matrix if isinstance(matrix, np.ndarray) else matrix.data
    if data.size and not (data.min() >= 0 and np.isfinite(peaks).all()):
        raise ParameterError(
            "squares must be finite and non-negative; square the differences first", field="squares"
        )
    if not peaks.any():
        raise ParameterError(
            "all squares are 0: no comparison needs a measurement; leave such rows out", field="squares"
        )


def _checked_costs(costs: npt.ArrayLike | None, n_arms: int) -> FloatArray | None:
    if costs is None:
        return None
    prices = np.asarray(costs, dtype=float)
    if prices.shape != (n_arms,) or not ((prices > 0) & np.isfinite(prices)).all():
        raise ParameterError(
            f"costs must be one positive number for each of the {n_arms} arms, got {costs!r}", field="cost"
        )
    return prices


def checked_tolerance(tolerance: float) -> float:
    """A relative gap that can be reached."""
    if not TIGHTEST <= tolerance < 1:
        raise ParameterError(
            f"tolerance must be between {TIGHTEST:g} and 1, got {tolerance!r}; try 1e-3", field="tolerance"
        )
    return tolerance


def _scale_columns(matrix: Squares, factors: FloatArray) -> Squares:
    if isinstance(matrix, np.ndarray):
        return matrix * factors
    scaled = matrix.copy()
    scaled.data = matrix.data * factors[matrix.indices]
    return scaled


def _inverse(values: FloatArray) -> FloatArray:
    """1 / values, and 0 where a value is 0: an arm of weight 0 has no positive square."""
    return np.divide(1.0, values, out=np.zeros_like(values), where=values > 0)


def normalised(weights: FloatArray) -> FloatArray:
    """These weights as shares."""
    return np.asarray(weights / weights.sum())
