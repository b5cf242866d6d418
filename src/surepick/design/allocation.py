"""Shares of measurements between arms that make the hardest comparison as easy as possible, certified.

Every function minimises over the simplex of weights w the worst of many sums `sum_s squares[k, s] / w_s`,
which is the variance of comparison k per measurement. In the unnormalised form, with n_s measurements
of arm s,

    minimise sum_s n_s  subject to  sum_s a_ks / n_s <= 1 for every row k,                      (primal)
    maximise 2 sum_s sqrt(sum_k v_k a_ks) - sum_k v_k  over v >= 0,                             (dual)

with n_s = sqrt(sum_k v_k a_ks) at the optimum. Any v brackets the optimum: with r_s the inner root and
w = r / sum(r), (sum r)^2 / sum(v) is below it and max_k sum_s a_ks / w_s is above it. Both ends are computed
for every candidate, so a result is certified however it was found.

Few rows bind. A few steps of the multiplicative iteration v_k <- v_k (f_k / v.f)^2 on a pool of rows spot
those that may; this working set is solved by `interior_point`; all rows are checked at once by one matrix
product, and the worst are added until the bracket is as narrow as asked. `pairs` has rows that are never
listed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

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
_MOST_STEPS = 500  # Newton steps of one solution


@dataclass(frozen=True, eq=False)
class Allocation:
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


def optimal_allocation(
    squares: Squares,
    *,
    tolerance: float = 1e-3,
    costs: FloatArray | None = None,
    start: FloatArray | None = None,
    max_steps: int = _MOST_STEPS,
) -> Allocation:
    """Return the shares w that minimise max_k sum_s squares[k, s] / w_s, to a certified relative `tolerance`.

    `squares` is a non-negative (n_rows, n_arms) array or SciPy CSR array. Arms with no positive square get
    weight 0; rows of zeros are satisfied by every allocation and are ignored, but not all may be zero.
    With `costs` (one positive price per arm) the expected cost is minimised instead: `value` is in cost,
    `weights` are still shares of measurements. `start` is the `dual` of a similar matrix. When `max_steps`
    Newton steps run out the bracket is still valid, and `converged` is False.

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
    found, ids = column_generation(rows, tolerance, start, max_steps)
    dual = np.zeros(matrix.shape[0])
    dual[ids] = found.dual
    weights = found.weights if costs is None else normalised(found.weights / costs)
    return Allocation(weights, found.value, found.lower, found.converged, dual)


class Rows(ABC):
    """Rows of squares, listed or not, that can be asked for the worst under some weights, 1 / `inverse`."""

    shape: tuple[int, int]  # n_rows, n_arms
    peaks: FloatArray  # (n_arms,) the largest square of each arm

    @abstractmethod
    def worst(self, inverse: FloatArray, count: int) -> tuple[float, IntArray, FloatArray]:
        """Return the largest value of all rows; and the ids and values of the worst rows, worst first."""

    @abstractmethod
    def covering(self, arms: IntArray) -> IntArray:
        """Return the ids of rows that touch these arms, together."""

    @abstractmethod
    def take(self, ids: IntArray) -> FloatArray:
        """Return these rows as a dense array."""

    def pool(self, inverse: FloatArray, warm: IntArray) -> tuple[IntArray, Squares, int]:
        """Return candidates for the first working set, and how many cheap steps should sift them."""
        _, ids, _ = self.worst(inverse, max(10, int(np.count_nonzero(inverse))))
        ids = np.union1d(ids, warm)
        return ids, self.take(ids), _SIFTING


class _ListedRows(Rows):
    """Rows given as a matrix."""

    def __init__(self, matrix: Squares) -> None:
        self._matrix, self.shape = matrix, matrix.shape
        self.peaks = as_dense(matrix.max(axis=0)).ravel()

    def pool(self, inverse: FloatArray, warm: IntArray) -> tuple[IntArray, Squares, int]:
        if isinstance(self._matrix, np.ndarray):
            return super().pool(inverse, warm)
        # steps on sparse rows are cheap beside the interior point
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


def column_generation(
    rows: Rows, tolerance: float, start: FloatArray | None = None, max_steps: int = _MOST_STEPS
) -> tuple[Allocation, IntArray]:
    """Solve small working sets of rows until all rows agree that the bracket is narrow enough.

    Return the best bracket, and the ids of the rows of its dual.
    """
    used = np.flatnonzero(rows.peaks > 0)
    ids, dual = _cover(rows, used, *_first_rows(rows, tolerance, start))
    scale = dual_value(rows.take(ids), dual)
    weights, upper, lower, best, budget = np.zeros(rows.shape[1]), np.inf, 0.0, (dual, ids), max_steps
    while True:
        gap = min(upper / lower - 1, 1.0) if lower > 0 else 1.0
        inner = interior_point(
            rows.take(ids)[:, used] / scale, dual, max(tolerance / 4, _ROUND_GAIN * gap), budget
        )
        budget -= inner.steps
        if improved := inner.value * scale > lower:
            lower, best = inner.value * scale, (inner.dual, ids)
        trial = np.zeros(rows.shape[1])
        trial[used] = normalised(np.maximum(inner.roots, _WEIGHT_FLOOR * inner.roots.sum()))
        n_new = max(10, len(used) // 4)
        worst, candidates, values = rows.worst(_inverse(trial), n_new + len(ids))
        if worst < upper:
            weights, upper = trial, worst
        if (converged := upper <= lower * (1 + tolerance)) or budget <= 0:
            break
        fresh = candidates[(values > lower) & ~np.isin(candidates, ids)][:n_new]
        live = inner.dual > _LIVE * inner.dual.max() if improved else np.ones(len(ids), dtype=bool)
        dual = np.concatenate([inner.dual[live], np.full(len(fresh), 1e-2 * inner.dual.max())])
        ids, dual = _cover(rows, used, np.concatenate([ids[live], fresh]), dual)
    return Allocation(weights, upper, lower, converged, normalised(best[0])), best[1]


def _first_rows(rows: Rows, tolerance: float, start: FloatArray | None) -> tuple[IntArray, FloatArray]:
    """Return the rows of a promising pool, warm ones included, on which multiplicative steps leave weight."""
    start = start if start is not None and start.any() else None
    warm = np.zeros(0, dtype=np.int64) if start is None else np.flatnonzero(start > _LIVE * start.max())
    roots = np.sqrt(rows.peaks) if start is None else np.sqrt(start[warm] @ rows.take(warm))
    inverse = _inverse(np.maximum(roots, 1e-3 * roots.max()) * (rows.peaks > 0))
    ids, pool, n_steps = rows.pool(inverse, warm)
    dual = np.full(len(ids), 1 / len(ids))
    if start is not None:
        dual = normalised(start[ids]) + 0.1 * dual  # a tenth of new weight lets new rows in
    transposed = pool.T if isinstance(pool, np.ndarray) else pool.T.tocsr()
    for _ in range(n_steps):
        root = np.sqrt(transposed @ dual)
        f = pool @ _inverse(root) / root.sum()  # dual.f = 1
        if f.max() <= 1 + tolerance / 4:
            break
        dual = normalised(dual * f * f)  # the classical iteration, with twice its step
    live = np.flatnonzero(dual > _SPOTTED * dual.max())
    return ids[live], dual[live]


def _cover(rows: Rows, used: IntArray, ids: IntArray, dual: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return the working set with a row for every arm that it did not touch."""
    bare = used[~(rows.take(ids)[:, used] > 0).any(axis=0)]
    if not bare.size:
        return ids, dual
    extra = np.setdiff1d(rows.covering(bare), ids)
    return np.concatenate([ids, extra]), np.concatenate([dual, np.full(len(extra), 1e-2 * dual.max())])


def largest(values: FloatArray, count: int) -> IntArray:
    """Return the indices of the largest values, largest first."""
    if count < len(values):
        chosen = np.argpartition(-values, count)[:count]
        return np.asarray(chosen[np.argsort(-values[chosen], kind="stable")])
    return np.argsort(-values, kind="stable")


def _inverse(values: FloatArray) -> FloatArray:
    """Return 1 / values, and 0 where a value is 0: an arm of weight 0 has no positive square."""
    return np.divide(1.0, values, out=np.zeros_like(values), where=values > 0)


def normalised(weights: FloatArray) -> FloatArray:
    """Return these weights as shares."""
    return np.asarray(weights / weights.sum())
