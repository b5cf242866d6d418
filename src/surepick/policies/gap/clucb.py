"""CLUCB for real plans: a confidence interval for every arm, a rival by their sum, the widest arm measured.

Paper: Chen, Lin, King, Lyu & Chen (2014), Combinatorial Pure Exploration of Multi-Armed Bandits, written for
sets of arms; here plans are real vectors. With rad_s = R_s sqrt(2 log(4 d t^3 / delta) / T_s) and
t = measurements so far + 1: lead i by estimated value, rival argmax over k of (value_k - value_i) +
sum_s |plan_ks - plan_is| rad_s, stop when that is at most 0, else measure argmax |y_s| rad_s of the pair.

Assumption: independent sub-Gaussian measurements with the noise scale of the problem.

Proof status: proved. Every arm, every count up to t and every round t have their own share of delta;
while all intervals hold, no plan beats the lead at the stop.

Deviations: real plans weigh the intervals by |y_s|; d counts the arms on which plans differ, and the
others are not measured; costs per arm divide y_s^2 rad_s^2; `epsilon` stops at "within epsilon of the
best".

Cost of a round: one pass over the plans, and one over all of their entries when the lead changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from surepick.core.problem import Problem
from surepick.policies.gap import radius as radii
from surepick.policies.gap.run import GapRule, GapRun
from surepick.policies.sound import WithinPolicy


@dataclass(frozen=True)
class CLUCB(WithinPolicy):
    """Stop when even the sum of all arms' uncertainties cannot lift a rival above the lead.

    >>> import surepick as sp
    >>> problem = sp.Problem([[1, 0], [0, 1]], noise=1, goal="largest")
    >>> sp.simulate(problem, sp.Gaussian([1.0, 0.0]), policy=sp.CLUCB(delta=0.05), seed=1).plan
    0
    """

    name: ClassVar[str] = "CLUCB"

    def start(self, problem: Problem) -> GapRun:
        """A fresh run on this problem."""
        rule = GapRule(self.delta, self.epsilon, radii.RECTANGLE_RADIUS, "gap", every_arm_first=False)
        return GapRun(problem, rule)
