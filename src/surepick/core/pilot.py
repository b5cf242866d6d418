"""Unknown noise: measure every arm a few times first, and go on with a scale that is large enough.

Under Gaussian noise of unknown scale sigma, (n - 1) s^2 / sigma^2 of n pilot measurements is chi-square with
n - 1 degrees of freedom. So s * sqrt((n - 1) / q), with q its quantile at the arm's share of the error, is at
least sigma except with that probability. The shares of all arms add up to `share * delta` (a union bound),
and the policy runs with what is left, (1 - share) * delta: the whole answer is wrong with probability at most
delta.

The bound is a function of the spreads s alone, and for Gaussian noise the spread and the mean of a sample are
independent. Given the bound, the pilot's sums are therefore like fresh ones with counts fixed in advance, and
a policy with a proof may pool them (BetGapE needs less: to it they are past). docs/guarantees.md has the
proof for each policy; one without a proof starts from nothing.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np

from surepick.core.arrays import MOST_SCALES, SMALLEST, FloatArray, IntArray, furthest_value
from surepick.core.evidence import Evidence
from surepick.core.measurable import BOUNDED_VARIANCE
from surepick.core.oracle_problem import AnyProblem
from surepick.core.past import Past
from surepick.core.policy import Policy, needs_pilot, recalling, start
from surepick.core.run import Run, Standing
from surepick.errors import ParameterError, ProblemError


@dataclass(frozen=True)
class Pilot:
    """How to learn an unknown noise scale: `size` measurements of each relevant arm.

    `share` is the part of delta that the scale may cost. `pooled` says that all arms have the same scale,
    which then is known much better.
    """

    size: int = 12
    share: float = 0.2
    pooled: bool = False

    def __post_init__(self) -> None:
        if self.size < 2:
            raise ParameterError(
                f"a pilot needs at least 2 measurements of each arm, got size={self.size!r}", field="size"
            )
        if not 0 < self.share < 1:
            raise ParameterError(
                f"share is the pilot's part of delta, between 0 and 1, got {self.share!r}", field="share"
            )

    def counts(self, problem: AnyProblem) -> IntArray:
        """How often the pilot measures each arm."""
        return np.where(problem.relevant, self.size, 0).astype(np.int64)

    def factor(self, problem: AnyProblem, delta: float) -> float:
        """How many times the spread that is seen the bound on the scale is.

        >>> import surepick as sp
        >>> round(Pilot().factor(sp.Problem([[1, 0], [0, 1]], noise_scale=None), 0.05), 2)
        2.06
        """
        from scipy.special import gammaincinv  # the chi-square quantile; scipy.stats is slow to import

        n_arms = int(problem.relevant.sum())
        freedom = self.size - 1 if not self.pooled else n_arms * (self.size - 1)
        level = self.share * delta / (1 if self.pooled else n_arms)
        return math.sqrt(freedom / (2.0 * float(gammaincinv(freedom / 2, level))))

    def scale_bound(self, variances: FloatArray, problem: AnyProblem, delta: float) -> FloatArray:
        """For each arm a scale that is not too small, except with probability share * delta in all.

        `variances` are the arms' sample variances; arms that are not measured get the largest bound.
        """
        relevant = problem.relevant
        seen = variances[relevant]
        _refuse_constant(seen, problem)
        if self.pooled:
            seen = np.full(len(seen), seen.mean())
        factor = self.factor(problem, delta)
        bound = np.full(problem.n_arms, factor * math.sqrt(float(seen.max())))
        bound[relevant] = factor * np.sqrt(seen)
        return bound

    def to_json(self) -> dict[str, Any]:
        """As JSON values."""
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Pilot:
        """The pilot that these JSON values describe."""
        return cls(**data)


class Begun(NamedTuple):
    """What goes on after a pilot: the problem with its noise scale, the policy with its delta, their run."""

    problem: AnyProblem
    policy: Policy
    run: Run


def pilot_for(problem: AnyProblem, policy: Policy, given: Pilot | None, budget: int | None) -> Pilot | None:
    """Return the given pilot, or the usual one where the policy cannot learn the noise without one.

    >>> import surepick as sp
    >>> problem = sp.Problem([[1, 0], [0, 1]], noise_scale=None)
    >>> pilot_for(problem, sp.BetGapE(), None, budget=1000)
    >>> pilot_for(problem, sp.CombGapE(), None, budget=1000)
    Pilot(size=12, share=0.2, pooled=False)
    """
    if problem.noise_scale is not None:
        if given is not None:
            raise ParameterError(
                "a pilot is for noise_scale=None, and this problem has a noise scale; leave one out",
                field="pilot",
            )
        return None
    if given is None and not needs_pilot(policy, problem):
        return None
    pilot = given or Pilot()
    needed = int(pilot.counts(problem).sum())
    if budget is not None and needed > budget:
        raise ParameterError(
            f"the noise scale is unknown, and the pilot that bounds it takes {needed} measurements "
            f"({pilot.size} per arm), more than the budget of {budget}; give a larger budget, or a smaller "
            "pilot",
            field="budget",
        )
    return pilot


def check_gaussian(problem: AnyProblem, gaussian: bool) -> None:
    """Refuse to take noise within bounds, or noise with long tails, for Gaussian noise."""
    if gaussian and problem.noise == BOUNDED_VARIANCE:
        raise ParameterError(
            "the problem says that no more is known of its noise than its variance; leave out gaussian, or "
            "that",
            field="gaussian",
        )
    if gaussian and problem.bounds is not None:
        raise ParameterError(
            "measurements within bounds have no Gaussian noise; leave out gaussian, or the bounds",
            field="gaussian",
        )


def begin(
    problem: AnyProblem, policy: Policy, pilot: Pilot, scale: FloatArray, past: Past | None = None
) -> Begun:
    """A fresh run with this bound on the noise scale and with the part of delta that the pilot leaves."""
    known, left = known_after(problem, policy, pilot, scale)
    return Begun(known, left, start(left, known, past))


def known_after(
    problem: AnyProblem, policy: Policy, pilot: Pilot, scale: FloatArray
) -> tuple[AnyProblem, Policy]:
    """The problem with this bound on the noise scale, and the policy with what the pilot leaves of delta."""
    return problem.with_noise(scale), after_pilot(policy, pilot)


def hand_over(begun: Begun, seen: Evidence) -> bool:
    """Let the run take in the pilot's measurements if its proof allows it; whether it did."""
    _refuse_far(begun.problem, seen)
    run = recalling(begun.policy, begun.run, unasked=False)
    if run is None:
        return False
    run.recall(seen.counts, seen.sums)
    return True


def standing_after(pilot: Pilot | None, delta: float, standing: Standing) -> Standing:
    """Where a run stands after a pilot, whose bound may be too small: that risk is added to its own.

    >>> standing_after(Pilot(share=0.2), 0.1, Standing(risk=0.05)).risk
    0.07
    """
    if pilot is None or standing.risk is None:
        return standing
    return dataclasses.replace(standing, risk=min(1.0, standing.risk + pilot.share * delta))


def evidence_after(pilot: Pilot | None, delta: float, log_evidence: FloatArray | None) -> FloatArray | None:
    """Return the log evidence against each plan with the risk of the pilot in it, as `standing_after` has it.

    A plan that the run has ruled out at its own part of delta is then ruled out at delta.

    >>> evidence_after(Pilot(share=0.2), 0.1, np.log([1 / 0.08])).round(4).tolist()
    [2.3026]
    """
    if pilot is None or log_evidence is None:
        return log_evidence
    return -np.logaddexp(-log_evidence, math.log(pilot.share * delta))


def after_pilot(policy: Policy, pilot: Pilot) -> Policy:
    """The same policy with the part of delta that the pilot leaves; as it is where it has none."""
    if "delta" not in {setting.name for setting in dataclasses.fields(cast(Any, policy))}:
        return policy
    left = (1.0 - pilot.share) * policy.delta
    return cast(Policy, dataclasses.replace(cast(Any, policy), delta=left))


def _refuse_constant(variances: FloatArray, problem: AnyProblem) -> None:
    large_enough = variances >= SMALLEST**2
    if not large_enough.all():
        arm = int(np.flatnonzero(problem.relevant)[int(np.argmin(large_enough))])
        raise ProblemError(
            f"all pilot measurements of arm {arm} ({problem.arm_names[arm]!r}) are equal, so its noise "
            "cannot be learned from them; give noise_scale yourself",
            field="noise_scale",
        )


def _refuse_far(problem: AnyProblem, seen: Evidence) -> None:
    """Refuse values that are so far from zero that rounding outweighs the noise that the pilot found."""
    for arm, mean in enumerate(seen.means.tolist()):
        if abs(mean) > furthest_value(problem.noise_scale, arm):
            assert problem.noise_scale is not None
            raise ProblemError(
                f"the pilot measurements of arm {arm} ({problem.arm_names[arm]!r}) lie around {mean:g} and "
                f"their noise scale is at most {problem.noise_scale[arm]:.3g}, a ratio of more than "
                f"{MOST_SCALES:g}; begin again with a constant subtracted from all values"
            )
