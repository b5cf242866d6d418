"""T* over rows: the best plan minus each rival, dense or sparse, scaled for an allocation."""

from __future__ import annotations

from typing import Any

import numpy as np

from surepick.core.arrays import FloatArray
from surepick.core.problem import Problem
from surepick.design.allocation import optimal_allocation
from surepick.limits.value import Bracket


def least_of(squares: Any, costs: FloatArray, tolerance: float) -> tuple[Bracket, Bracket]:
    """Return T* over these rows, and the least cost; equal costs need no second solution."""
    time = optimal_allocation(squares, tolerance=tolerance)
    cost, unit = time, float(costs[0])
    if not (costs == costs[0]).all():
        cost, unit = optimal_allocation(squares, tolerance=tolerance, costs=costs, start=time.dual), 1.0
    return (
        Bracket.twice(time.lower, time.value, time.weights),
        Bracket.twice(cost.lower, cost.value, cost.weights, unit),
    )


def differences_of(problem: Problem, means: FloatArray, best: int) -> tuple[Any, FloatArray]:
    """Return y_k = best - plan k in unknown arms, (n_plans, n_arms), and the gaps, with what is known.

    A gap is exactly 0 where rounding could be all of it.
    """
    plans, constants, _ = problem.plan_parts
    differences = plans[best] - plans if isinstance(plans, np.ndarray) else _sparse_differences(plans, best)
    sizes = abs(plans) @ np.abs(means) + np.abs(constants)
    rounding = np.finfo(float).eps * problem.n_arms * (sizes + sizes[best])
    gaps = np.asarray(differences @ means) + constants[best] - constants
    return differences, np.where(gaps > rounding, gaps, 0.0)


def _sparse_differences(plans: Any, best: int) -> Any:
    from scipy import sparse

    ones = sparse.csr_array(np.ones((plans.shape[0], 1)))
    differences = sparse.csr_array(ones @ plans[[best]] - plans)
    differences.eliminate_zeros()
    return differences


def scaled_squares(differences: Any, gaps: FloatArray, noise: FloatArray) -> Any:
    """Return R_s^2 y_ks^2 / gap_k^2 for rows with a positive gap."""
    if isinstance(differences, np.ndarray):
        return (differences * noise / gaps[:, None]) ** 2
    squares = differences.copy()
    row_gaps = np.repeat(gaps, np.diff(differences.indptr))
    squares.data = (differences.data * noise[differences.indices] / row_gaps) ** 2
    return squares
