"""Plans that are sets of arms, as methods for sets need them."""

from __future__ import annotations

import numpy as np

from surepick.core.problem import Problem
from surepick.errors import ProblemError


def check_zeros_and_ones(problem: Problem, policy: str, advice: str) -> None:
    """Refuse plans that are not sets of arms, with the reason or what to use instead.

    >>> check_zeros_and_ones(Problem([[1, 0], [0, 1]], goal="largest"), "CSAR", "use CSA")
    """
    plans = problem.plans
    entries = plans if isinstance(plans, np.ndarray) else plans.data
    odd = entries[(entries != 0) & (entries != 1)]
    if odd.size:
        raise ProblemError(
            f"{policy} is for plans of zeros and ones, got {odd.flat[0]:g}; {advice}", field="policy"
        )
