"""Uniform: measure the relevant arms in turn and stop by CombGapE's rule; the floor for any comparison.

Assumption and proof status: those of the radius, which holds for any rule of choosing arms. Cost of a round:
one pass over the plans.

Where probes are measured, they are used equally often in growing batches, and it stops by the bets of
BetGapE: no radius here is about readings that mix arms.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from surepick.core.problem import Problem
from surepick.policies.betting.batch_run import BatchRun
from surepick.policies.betting.bet_gap_e import question_for
from surepick.policies.gap import radius as radii
from surepick.policies.gap.run import GapRule, GapRun
from surepick.policies.sound import RadiusPolicy


@dataclass(frozen=True)
class Uniform(RadiusPolicy):
    """Measure every relevant arm equally often, and stop when the lead is sure.

    >>> import surepick as sp
    >>> problem = sp.Problem([[1, 0], [0, 1]], noise=1, goal="largest")
    >>> outcome = sp.simulate(problem, sp.Gaussian([1.0, 0.0]), policy=sp.Uniform(), seed=1)
    >>> int(outcome.counts.max() - outcome.counts.min()) <= 1
    True
    """

    name: ClassVar[str] = "Uniform"
    takes_probes: ClassVar[bool] = True

    def start(self, problem: Problem) -> GapRun | BatchRun:
        """A fresh run on this problem."""
        if problem.probes is not None:
            question = question_for(problem, self.delta, self.epsilon)
            return BatchRun(problem, _Asked(self.name), question, uniform=True)
        radius = radii.radius_named(self.radius)
        return GapRun(problem, GapRule(self.delta, self.epsilon, radius, "cycle", every_arm_first=False))


class _Asked(NamedTuple):
    """What a run of batches needs to know."""

    name: str
    max_batch: int | None = None
