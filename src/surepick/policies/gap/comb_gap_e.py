"""CombGapE, CLUCB, and Uniform, the floor of any comparison: tell the leader from its closest rival.

All assume independent sub-Gaussian measurements with the noise scale of the problem (radius
`kaufmann-koolen`: Gaussian), stop at "within epsilon of the best" with `epsilon`, and measure no arm on which
all plans agree. A round costs one pass over the plans, and one over all of their entries when the leader
changes.

**CombGapE**: Nakamura & Sugiyama, A Fast Algorithm for the Real-Valued Combinatorial Pure Exploration of
Multi-Armed Bandit, Algorithms 1 and 2: measure what most shrinks the uncertainty between the leader and the
plan that may still beat it. Proof status: wrong with probability at most delta for the radii `normal-mixture`
(the default), `normal-mixture-joint` and `kaufmann-koolen`, under any rule for choosing arms (see `radius`).
**Not for `published`**, the radius that the paper prints: with plans = identity(2), means (.02, 0) it was
wrong in 9.5% of 2,000 runs at delta = .05, and in 6.6% at delta = .01. Deviations: noise scales and costs per
arm enter the choice of the arm; with `published` every arm is measured once first, as in the paper.

**CLUCB**: Chen, Lin, King, Lyu & Chen (2014), Combinatorial Pure Exploration of Multi-Armed Bandits, written
for sets of arms. With rad_s = R_s sqrt(2 log(4 d t^3 / delta) / T_s) and t = measurements so far + 1: lead i
by estimated value, rival argmax over k of (value_k - value_i) + sum_s |plan_ks - plan_is| rad_s, stop when
that is at most 0, else measure argmax |y_s| rad_s of the pair. Proved: every arm, every count up to t and
every round t have their own share of delta; while all intervals hold, no plan beats the leader at the stop.
Deviations: real plans weigh the intervals by |y_s|; d counts the arms on which plans differ; costs divide
y_s^2 rad_s^2.

**Uniform**: the relevant arms in turn, and the stop of CombGapE, whose radius holds for any rule.
"""

from __future__ import annotations

from dataclasses import dataclass

from surepick.core.problem import Problem
from surepick.policies.gap import radius as radii
from surepick.policies.gap.run import GapRun
from surepick.policies.sound import RadiusPolicy, WithinPolicy, check_choice


@dataclass(frozen=True)
class CombGapE(RadiusPolicy):
    """The paper's policy: measure the arm that most shrinks the uncertainty between the leader and its rival.

    `arm_rule="naive"` measures the least measured arm on which they differ, the paper's baseline. `radius` is
    one of `normal-mixture`, `normal-mixture-joint`, `kaufmann-koolen` (proved), `published` (to reproduce the
    paper; its guarantee does not hold, see docs/benchmarks.md) or `heuristic` (to compare with published
    tables; it has no proof).

    >>> import surepick as sp
    >>> problem = sp.Problem([[1, 0], [0, 1]], noise=1, goal="largest")
    >>> sp.simulate(problem, [1.0, 0.0], policy=sp.CombGapE(delta=0.05), seed=1).plan
    0
    """

    arm_rule: str = "gap"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("arm_rule", self.arm_rule, "gap", "naive")

    def start(self, problem: Problem) -> GapRun:
        """A fresh run on this problem."""
        radius = radii.radius_named(self.radius)
        faithful = radius.code == radii.PUBLISHED
        return GapRun(problem, self, radius, self.arm_rule, every_arm_first=faithful)


@dataclass(frozen=True)
class CLUCB(WithinPolicy):
    """Stop when even the sum of all arms' uncertainties cannot lift a rival above the leader.

    >>> import surepick as sp
    >>> problem = sp.Problem([[1, 0], [0, 1]], noise=1, goal="largest")
    >>> sp.simulate(problem, [1.0, 0.0], policy=sp.policies.CLUCB(delta=0.05), seed=1).plan
    0
    """

    def start(self, problem: Problem) -> GapRun:
        """A fresh run on this problem."""
        return GapRun(problem, self, radii.RECTANGLE_RADIUS, "gap")


@dataclass(frozen=True)
class Uniform(RadiusPolicy):
    """Measure every relevant arm equally often, and stop when the leader is sure.

    >>> import surepick as sp
    >>> problem = sp.Problem([[1, 0], [0, 1]], noise=1, goal="largest")
    >>> outcome = sp.simulate(problem, [1.0, 0.0], policy=sp.policies.Uniform(), seed=1)
    >>> int(outcome.counts.max() - outcome.counts.min()) <= 1
    True
    """

    def start(self, problem: Problem) -> GapRun:
        """A fresh run on this problem."""
        return GapRun(problem, self, radii.radius_named(self.radius), "cycle")
