"""Uniform: measure the relevant arms in turn and stop by CombGapE's rule; the floor for any comparison.

Assumption and proof status: those of the radius, which holds for any rule of choosing arms. Cost of a round:
one pass over the plans.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from surepick.core.policy import check_delta, check_epsilon
from surepick.core.problem import Problem
from surepick.policies.gap import radius as radii
from surepick.policies.gap.run import GapRule, GapRun


@dataclass(frozen=True)
class Uniform:
    """Measure every relevant arm equally often, and stop when the lead is sure.

    >>> import surepick as sp
    >>> outcome = sp.simulate(sp.Problem([[1, 0], [0, 1]]), sp.Uniform(), sp.Gaussian([1.0, 0.0]), seed=1)
    >>> int(outcome.counts.max() - outcome.counts.min()) <= 1
    True
    """

    delta: float = 0.05
    epsilon: float = 0.0
    radius: str = "normal-mixture"

    name: ClassVar[str] = "Uniform"
    version: ClassVar[int] = 1
    randomized: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_delta(self.delta)
        check_epsilon(self.epsilon)
        radii.radius_named(self.radius)

    @property
    def guarantee(self) -> str:
        """The promise and its assumption."""
        return radii.guarantee(self.radius, self.delta, self.epsilon)

    def start(self, problem: Problem) -> GapRun:
        """A fresh run on this problem."""
        radius = radii.radius_named(self.radius)
        return GapRun(problem, GapRule(self.delta, self.epsilon, radius, "cycle", every_arm_first=False))
