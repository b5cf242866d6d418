"""LinGapE: the gap policy of linear bandits, with ridge estimates, on measurements of single arms.

Paper: Xu, Honda & Sugiyama (2018), A Fully Adaptive Algorithm for Pure Exploration in Linear Bandits.
Estimates are ridge means sum_s / (T_s + lam), lam = 1; the radius of a pair is sqrt(V(y)) times R sqrt(2
log(K^2 prod_s (1 + T_s/lam)^(1/2) / delta)) + sqrt(lam) S with V(y) = sum_s y_s^2/(T_s + lam). Lead,
rival and stop as in CombGapE; the arm is greedy, argmax y_s^2 / ((T_s+lam)(T_s+1+lam)), or by ratio,
argmin T_s / |y_s|.

Assumption: independent sub-Gaussian measurements with the noise scale of the problem, and true means whose
Euclidean norm is at most S = `norm_bound`.

Proof status: proved under that assumption (self-normalised bound of Abbasi-Yadkori, Pal & Szepesvari
2011, which holds for all pairs and rounds at once). With means larger than `norm_bound` it has no
guarantee: ridge pulls estimates towards 0. Measure from a guess (subtract it from the measurements) to keep
the norm small.

Deviations: every arm on which plans differ is measured once first, the others never; noise scales per arm
are taken out by measuring each arm in units of its own, S divided by the smallest; costs per arm divide
the greedy gain; `epsilon` stops at "within epsilon of the best".

Probes, its own setting, are measured by `probe_ridge`, by the ratio rule.

Cost of a round: one pass over the plans, and one over all of their entries when the lead changes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from surepick.core.policy import known_noise_scale
from surepick.core.problem import Problem
from surepick.errors import ParameterError
from surepick.policies.gap import radius as radii
from surepick.policies.gap.probe_ridge import RidgeRun
from surepick.policies.gap.run import GapRule, GapRun
from surepick.policies.sound import WithinPolicy

_KERNEL_RULES = {"greedy": "gap", "ratio": "ratio"}


@dataclass(frozen=True)
class LinGapE(WithinPolicy):
    """Compare the lead with the plan that may still beat it, all means being known to be small.

    `norm_bound` is the largest that the Euclidean norm of the true means can be; the default of 1 is that
    of the paper's experiments, and rarely true elsewhere. `arm_rule` is "greedy" or "ratio".

    >>> import surepick as sp
    >>> problem = sp.Problem([[1, 0], [0, 1]], noise=1, goal="largest")
    >>> sp.simulate(problem, sp.Gaussian([1.0, 0.0]), policy=sp.LinGapE(delta=0.05), seed=1).plan
    0
    """

    arm_rule: str = "greedy"
    norm_bound: float = 1.0

    name: ClassVar[str] = "LinGapE"
    takes_probes: ClassVar[bool] = True
    _assumption: ClassVar[str] = radii.RIDGE_RADIUS.assumption

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.arm_rule not in _KERNEL_RULES:
            raise ParameterError(
                f"arm_rule must be 'greedy' or 'ratio', got {self.arm_rule!r}", field="arm_rule"
            )
        if not (self.norm_bound >= 0 and math.isfinite(self.norm_bound)):
            raise ParameterError(
                f"norm_bound is the largest norm of the true means, 0 or more, got {self.norm_bound!r}",
                field="norm_bound",
            )

    def start(self, problem: Problem) -> GapRun | RidgeRun:
        """A fresh run on this problem."""
        if problem.probes is not None:
            return RidgeRun(problem, delta=self.delta, epsilon=self.epsilon, norm_bound=self.norm_bound)
        in_units = self.norm_bound / float(known_noise_scale(problem).min())
        rule = GapRule(
            self.delta,
            self.epsilon,
            radii.RIDGE_RADIUS,
            _KERNEL_RULES[self.arm_rule],
            every_arm_first=False,
            norm_bound=in_units,
        )
        return GapRun(problem, rule)
