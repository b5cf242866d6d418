"""The plans of a problem as gap policies read them: by column, by row, and all against one of them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from surepick.core.arrays import FloatArray, IntArray, as_dense
from surepick.core.problem import Problem

MOST_DENSE = 4_000_000  # entries; larger sparse lists stay sparse


class Comparison(NamedTuple):
    """For each plan, sums over the arms s in which it differs from the leader by y_s != 0."""

    variance: FloatArray  # the sum of y_s^2 weight_s; of |y_s| weight_s with `by_size`
    terms: FloatArray  # the sum of term_s
    support: IntArray  # the number of arms


class DensePlans:
    """All entries, both ways round, so that compiled loops read either along memory."""

    is_dense = True

    def __init__(self, plans: Any) -> None:
        self.rows: Any = np.ascontiguousarray(as_dense(plans), dtype=float)  # (n_plans, n_arms)
        self.columns: Any = np.ascontiguousarray(self.rows.T)  # (n_arms, n_plans)

    def values(self, means: FloatArray) -> FloatArray:
        """Return the estimated value of each plan, added up arm by arm: the same on every machine."""
        return np.asarray((self.columns * means[:, None]).sum(axis=0))

    def compare(self, leader: int, weight: FloatArray, term: FloatArray, *, by_size: bool) -> Comparison:
        """Return the variance of every plan's gap to the leader, and the sum of its threshold terms.

        `weight` and `term` have one number per arm; see `Comparison`.
        """
        from surepick.policies.gap.rounds import compare_columns  # imports Numba

        return Comparison(*compare_columns(self.columns, self.rows[leader], weight, term, by_size))


class SparsePlans:
    """Non-zeros alone; a row or a column is filled up when it is read."""

    is_dense = False

    def __init__(self, plans: Any) -> None:
        self.rows, self.columns = _Lines(plans.tocsr()), _Lines(plans.tocsc().T)

    def values(self, means: FloatArray) -> FloatArray:
        """Return the estimated value of each plan."""
        return np.asarray(self.rows.lines @ means)

    def compare(self, leader: int, weight: FloatArray, term: FloatArray, *, by_size: bool) -> Comparison:
        """Return the same as `DensePlans.compare`, reading non-zeros only.

        A plan that does not use an arm differs from the leader there by the leader's own entry. So all plans
        start with the sums over the leader's arms, and each non-zero of a plan changes them.
        """
        lines, lead = self.rows.lines, self.rows[leader]
        own = lead[lines.indices]
        size = np.abs if by_size else np.square
        is_used, differs = lead != 0.0, (lines.data != own).astype(float)
        changed = differs - (own != 0.0)
        variance = _sums(lines, size(lines.data - own) - size(own)) @ weight + size(lead) @ weight
        terms = _sums(lines, changed) @ term + is_used @ term
        support = _sums(lines, changed) @ np.ones(len(lead)) + is_used.sum()
        return Comparison(np.maximum(variance, 0.0), terms, np.rint(support).astype(np.int64))


class _Lines:
    """Rows of a sparse array, read as dense ones."""

    def __init__(self, lines: Any) -> None:
        self.lines = lines.tocsr(copy=True)
        self.lines.eliminate_zeros()

    def __getitem__(self, k: int) -> FloatArray:
        low, high = self.lines.indptr[k : k + 2]
        found = np.zeros(self.lines.shape[1])
        found[self.lines.indices[low:high]] = self.lines.data[low:high]
        return found


def _sums(lines: Any, data: FloatArray) -> Any:
    """Return a sparse array with the same places and these entries."""
    return type(lines)((data, lines.indices, lines.indptr), shape=lines.shape)


def plans_of(problem: Problem) -> DensePlans | SparsePlans:
    """Return the oriented plans in the form that suits their size."""
    plans = problem.oriented
    if isinstance(plans, np.ndarray) or problem.n_plans * problem.n_arms <= MOST_DENSE:
        return DensePlans(plans)
    return SparsePlans(plans)
