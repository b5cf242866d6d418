"""The guarantee of a policy: what is proved of its answer, on which assumption, and what contradicts it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from surepick.core.base_problem import BOUNDED_VARIANCE
from surepick.core.oracle_problem import AnyProblem

# Assumptions about the noise on which guarantees rest.
SUB_GAUSSIAN = "independent sub-Gaussian noise of the given scale"
GAUSSIAN = "independent Gaussian noise of the given scale"
# in place of the first where readings have bounds; the second where their variance is learned
BOUNDED = "independent measurements within the given bounds"
BOUNDED_MEANS = "measurements within the given bounds, each with its mean given those before it"
# in place of the first where a bound on the standard deviation is all that is known
OF_VARIANCE = "independent noise whose standard deviation is at most the given scale"
# in place of any of them where noise is learned from replicates
UNKNOWN_NOISE = "independent Gaussian noise of unknown scale, the same in every use"
# besides, where one use of a probe gives several readings
SHARED_USE = ", where the readings of one use are independent or have the given covariance"
DEPENDENT_USE = ", however the readings of one use depend on each other beyond the given covariances"


@dataclass(frozen=True)
class Guarantee:
    """An answer is its `goal`, except with probability `delta`, if an `assumption` about the noise holds.

    `besides` is what else is assumed, worded to follow the assumption. Where nothing is proved, `missing`
    says why.

    >>> Guarantee.best(0.05, "luck").text
    'the best plan, wrong with probability at most 0.05, given luck'
    >>> Guarantee.none("the radius has no proof").text
    'none: the radius has no proof'
    """

    goal: str = ""
    delta: float = 1.0
    assumption: str = ""
    besides: str = ""
    missing: str = ""

    @classmethod
    def best(
        cls, delta: float, assumption: str = SUB_GAUSSIAN, *, epsilon: float = 0.0, besides: str = ""
    ) -> Guarantee:
        """Return the guarantee to find the best plan, or one within epsilon of it."""
        goal = "the best plan" if epsilon == 0 else f"a plan within {epsilon:g} of the best"
        return cls(goal, delta, assumption, besides)

    @classmethod
    def none(cls, missing: str) -> Guarantee:
        """Return "no guarantee", with its reason."""
        return cls(missing=missing)

    @property
    def proved(self) -> bool:
        """Whether there is a proof."""
        return not self.missing

    @property
    def text(self) -> str:
        """The guarantee in one sentence."""
        if self.missing:
            return f"none: {self.missing}"
        return (
            f"{self.goal}, wrong with probability at most {self.delta:g}, "
            f"given {self.assumption}{self.besides}"
        )

    def on(self, problem: AnyProblem, *, learns_variance: bool) -> Guarantee:
        """Return this guarantee on a problem, whose noise may be unknown or bounded and its list incomplete.

        `learns_variance` says whether the policy needs no more than bounds on the readings of this problem.

        >>> from surepick.core.problem import Problem
        >>> problem = Problem([[1, 0], [0, 1]], low=0, high=1, goal="largest")
        >>> Guarantee.best(0.05).on(problem, learns_variance=False).assumption
        'independent measurements within the given bounds'
        """
        if not self.proved:
            return self
        goal, assumption, besides = self.goal, self.assumption, self.besides
        listing, probes = problem.about.listing, problem.probes
        if listing is not None and not listing.is_complete:
            goal = f"{'the best' if goal == 'the best plan' else goal} of {listing.words}"
        if probes is not None and probes.unknown:
            assumption = UNKNOWN_NOISE
        else:
            if problem.plays or (probes is not None and probes.share_uses):
                besides += DEPENDENT_USE if learns_variance else SHARED_USE
            if problem.noise_scale is None and assumption in (SUB_GAUSSIAN, GAUSSIAN):
                assumption = UNKNOWN_NOISE
            elif problem.noise_kind == BOUNDED_VARIANCE and assumption == SUB_GAUSSIAN:
                assumption = OF_VARIANCE
            elif problem.bounds is not None and assumption == SUB_GAUSSIAN:
                assumption = BOUNDED_MEANS if learns_variance else BOUNDED
        return replace(self, goal=goal, assumption=assumption, besides=besides)

    def if_gaussian(self, gaussian: bool) -> Guarantee:
        """Return this guarantee, with Gaussian noise as its assumption if the proof has used that."""
        return replace(self, assumption=GAUSSIAN) if gaussian and self.assumption == SUB_GAUSSIAN else self


@dataclass(frozen=True)
class Doubt:
    """Something that the guarantee does not allow, seen in one arm, or in all arms together (`arm` None).

    `stated` is the standard deviation of one measurement that the guarantee assumes, None where it is
    unknown; `seen` is the one that the values show. With the code "limits" they are the nearest stated limit
    of the mean, and the mean of the values.
    """

    code: str  # noise_larger, heavy_tails, coarse, dependent, drift, limits or released
    arm: str | None
    n_measurements: int
    stated: float | None
    seen: float
    text: str
    advice: str

    def __str__(self) -> str:
        return f"{self.text}; {self.advice}"


def no_guarantee(doubts: Sequence[Doubt]) -> str:
    """Return why the guarantee does not apply, in one line: the first doubt, and how many more there are."""
    more = f" (and {len(doubts) - 1} more)" if len(doubts) > 1 else ""
    return f"the guarantee does not apply: {doubts[0].text}{more}"
