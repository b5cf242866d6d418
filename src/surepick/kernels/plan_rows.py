"""How compiled loops see the plans of a problem: all entries, or the non-zeros alone.

Plans are oriented (larger is better), and arrays are always fresh, so that one compilation serves all.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from surepick.core.arrays import FloatArray, IntArray
from surepick.core.problem import Problem

THIN = 0.1  # a share of non-zeros below which going through them beats streaming through all entries


class NonZeros(NamedTuple):
    """The non-zeros of line k (a plan, or an arm) are those at start[k] to start[k + 1], in order."""

    start: IntArray
    where: IntArray  # the arm (or the plan)
    value: FloatArray


def is_thin(problem: Problem) -> bool:
    """Whether so few entries differ from zero that loops should keep these alone."""
    plans = problem.plans
    return not isinstance(plans, np.ndarray) or int(np.count_nonzero(plans)) < THIN * plans.size


def dense_plans(problem: Problem, multiple: int) -> tuple[FloatArray, FloatArray]:
    """The plans as columns, padded with zero plans to a multiple, and as rows; sparse plans are filled up.

    >>> columns, rows = dense_plans(Problem([[1, 2], [3, 4], [5, 6]]), multiple=4)
    >>> columns.tolist()
    [[1.0, 3.0, 5.0, 0.0], [2.0, 4.0, 6.0, 0.0]]
    """
    plans = problem.oriented
    rows = np.array(plans if isinstance(plans, np.ndarray) else plans.toarray(), order="C")
    columns = np.zeros((problem.n_arms, -(-problem.n_plans // multiple) * multiple))
    columns[:, : problem.n_plans] = rows.T
    return columns, rows


def non_zeros_by_plan(problem: Problem) -> NonZeros:
    """The non-zeros of each plan.

    >>> non_zeros_by_plan(Problem([[0, 2], [3, 4]]))
    NonZeros(start=array([0, 1, 3]), where=array([1, 0, 1]), value=array([2., 3., 4.]))
    """
    return _compressed(problem.oriented)


def non_zeros_by_arm(problem: Problem) -> NonZeros:
    """The non-zeros on each arm.

    >>> non_zeros_by_arm(Problem([[0, 2], [3, 4]])).start.tolist()
    [0, 1, 3]
    """
    return _compressed(problem.oriented.T)


def _compressed(lines: Any) -> NonZeros:
    """The non-zeros of each row of a dense or sparse array."""
    if isinstance(lines, np.ndarray):
        line, where = np.nonzero(lines)
        start = np.zeros(len(lines) + 1, dtype=np.int64)
        np.cumsum(np.bincount(line, minlength=len(lines)), out=start[1:])
        return NonZeros(start, where.astype(np.int64), lines[line, where].astype(float))
    rows = lines.tocsr(copy=True)
    rows.eliminate_zeros()
    rows.sort_indices()
    return NonZeros(rows.indptr.astype(np.int64), rows.indices.astype(np.int64), rows.data.astype(float))
