"""CombGapE: compare the lead with the plan that may still beat it, measure what tells them apart.

Paper: Nakamura & Sugiyama, A Fast Algorithm for the Real-Valued Combinatorial Pure Exploration of
Multi-Armed Bandit, Algorithms 1 and 2.

Assumption: measurements are independent and sub-Gaussian (`kaufmann-koolen`: Gaussian) with the noise scale
of the problem.

Proof status: wrong with probability at most delta for the radii `normal-mixture` (the default),
`normal-mixture-joint` and `kaufmann-koolen`, under any rule for choosing arms; see `radius` and
docs/guarantees.md. **Not for `published`**, the radius that the paper prints: with plans = identity(2), means
(.02, 0) it was wrong in 9.5% of 2,000 runs at delta = .05, and in 6.6% at delta = .01.

Deviations: arms on which all plans agree are not measured (with `published` they are, once each, as in the
paper); noise scales and costs per arm enter the choice of the arm; `epsilon` stops at "within epsilon of the
best"; the default radius is a sound one.

Cost of a round: one pass over the plans, and one over all of their entries when the lead changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from surepick.core.problem import Problem
from surepick.errors import ParameterError
from surepick.policies.gap import radius as radii
from surepick.policies.gap.run import GapRule, GapRun
from surepick.policies.sound import RadiusPolicy


@dataclass(frozen=True)
class CombGapE(RadiusPolicy):
    """The paper's policy: measure the arm that most shrinks the uncertainty between the lead and its rival.

    `arm_rule="naive"` measures the least measured arm on which they differ, the paper's baseline. `radius` is
    one of `normal-mixture`, `normal-mixture-joint`, `kaufmann-koolen` (proved), `published` (to reproduce the
    paper; its guarantee does not hold, see docs/guarantees.md) or `heuristic` (to compare with published
    tables; it has no proof).

    >>> import surepick as sp
    >>> problem = sp.Problem([[1, 0], [0, 1]], noise=1, goal="largest")
    >>> sp.simulate(problem, sp.Gaussian([1.0, 0.0]), policy=sp.CombGapE(delta=0.05), seed=1).plan
    0
    """

    arm_rule: str = "gap"

    name: ClassVar[str] = "CombGapE"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.arm_rule not in ("gap", "naive"):
            raise ParameterError(
                f"arm_rule must be 'gap' or 'naive', got {self.arm_rule!r}", field="arm_rule"
            )

    def start(self, problem: Problem) -> GapRun:
        """A fresh run on this problem."""
        radius = radii.radius_named(self.radius)
        faithful = radius.code == radii.PUBLISHED
        return GapRun(problem, GapRule(self.delta, self.epsilon, radius, self.arm_rule, faithful))
