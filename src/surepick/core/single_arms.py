"""Plans that each stand for one arm of their own, as methods for single arms need them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from surepick.core.arrays import FloatArray, IntArray
from surepick.core.policy import known_noise_scale
from surepick.core.problem import Problem
from surepick.errors import ProblemError


@dataclass(frozen=True, eq=False)
class SingleArms:
    """For each plan its own arm: up to a constant common to all, the value is `factor` times the mean.

    Methods for single arms then see candidates, in the order of plans, with noise of scale `scale`.
    """

    n_arms: int
    arm: IntArray  # (n_plans,)
    factor: FloatArray  # (n_plans,) larger is better, whatever the problem says
    scale: FloatArray  # (n_plans,) noise of one measurement of the candidate
    costs: FloatArray  # (n_plans,)

    @property
    def n_plans(self) -> int:
        """The number of candidates."""
        return len(self.arm)

    def counts(self, of_plans: IntArray) -> IntArray:
        """Counts of the candidates as counts of the arms."""
        found = np.zeros(self.n_arms, dtype=np.int64)
        found[self.arm] = of_plans
        return found

    def seen(self, counts: IntArray, sums: FloatArray) -> tuple[IntArray, FloatArray]:
        """Counts and sums of the arms as counts and sums of the candidates."""
        return counts[self.arm], self.factor * sums[self.arm]


def single_arms(problem: Problem, policy: str) -> SingleArms:
    """The arm of each plan, or a clear error that this policy needs plans of single arms.

    What all plans have in common does not matter: the plans may share amounts of every arm.

    >>> found = single_arms(Problem([[5, 2], [3, 4]]), "LUCB")
    >>> found.arm.tolist(), found.factor.tolist()
    ([0, 1], [2.0, 2.0])
    """
    scale = known_noise_scale(problem)
    plans = problem.oriented
    dense = plans if isinstance(plans, np.ndarray) else plans.toarray()
    arms = np.flatnonzero(problem.relevant)
    own = _own_arms(dense[:, arms])
    if own is None:
        raise ProblemError(
            f"{policy} chooses between single arms, each measured by itself, and here plans share arms or "
            f"have several ({problem.n_plans} plans, {len(arms)} arms on which they differ); use BetGapE, "
            "or CombGapE, which take any plans"
        )
    place, factor = own
    arm = arms[place]
    return SingleArms(problem.n_arms, arm, factor, np.abs(factor) * scale[arm], problem.costs[arm])


def _own_arms(plans: FloatArray) -> tuple[IntArray, FloatArray] | None:
    """For each plan the column in which it alone differs from all others, and by how much."""
    n_plans, n_arms = plans.shape
    if n_plans != n_arms:
        return None
    if n_plans == 2:  # either reading of the two columns is right: each plan gets the one it has more of
        more = plans[0] - plans[1]
        return np.arange(2), np.array([more[0], -more[1]])
    place, factor = np.full(n_plans, -1), np.zeros(n_plans)
    for s in range(n_arms):
        common = np.median(plans[:, s])  # at least three plans, all but one of which are equal
        odd = np.flatnonzero(plans[:, s] != common)
        if len(odd) != 1 or place[odd[0]] >= 0:
            return None
        place[odd[0]], factor[odd[0]] = s, plans[odd[0], s] - common
    return place, factor
