"""What plans differ in: the best plan minus each other one, dense or sparse, scaled for allocations."""

from __future__ import annotations

from typing import Any

import numpy as np

from surepick.core.arrays import FloatArray
from surepick.core.problem import Problem


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

    n_plans, n_arms = plans.shape
    low, high = plans.indptr[best], plans.indptr[best + 1]
    repeated = sparse.csr_array(
        (
            np.tile(plans.data[low:high], n_plans),
            np.tile(plans.indices[low:high], n_plans),
            np.arange(n_plans + 1) * (high - low),
        ),
        shape=(n_plans, n_arms),
    )
    differences = sparse.csr_array(repeated - plans)
    differences.eliminate_zeros()
    return differences


def scaled_squares(differences: Any, gaps: FloatArray, noise: FloatArray) -> Any:
    """R_s^2 y_ks^2 / gap_k^2 for rows with a positive gap."""
    if isinstance(differences, np.ndarray):
        return (differences * noise / gaps[:, None]) ** 2
    squares = differences.copy()
    row_gaps = np.repeat(gaps, np.diff(differences.indptr))
    squares.data = (differences.data * noise[differences.indices] / row_gaps) ** 2
    return squares
