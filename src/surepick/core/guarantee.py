"""The guarantee: what a policy proves of its answer, on which assumption, and what contradicts it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from surepick.core.measurable import BOUNDED_VARIANCE

if TYPE_CHECKING:
    from surepick.core.oracle_problem import AnyProblem
    from surepick.core.policy import Policy


# Assumptions about the noise on which guarantees rest.
SUB_GAUSSIAN = "independent sub-Gaussian noise of the given scale"
GAUSSIAN = "independent Gaussian noise of the given scale"
BOUNDED = "independent measurements within the given bounds"  # in place of the first
# the same, where the variance is learned
BOUNDED_MEANS = "measurements within the given bounds, each with its mean given those before it"
OF_VARIANCE = "independent noise whose standard deviation is at most the given scale"  # the same
# in place of any of them, where noise is learned from replicates
UNKNOWN_NOISE = "independent Gaussian noise of unknown scale, the same in every use"
# besides, where one use of a probe gives several readings
SHARED_USE = ", where the readings of one use are independent or have the given covariance"
DEPENDENT_USE = ", however the readings of one use depend on each other beyond the given covariances"

_NONE = "none"  # how the sentence begins where there is no guarantee
_GIVEN = ", given "  # what joins a goal and its assumption


@dataclass(frozen=True)
class Promise:
    """A guarantee: the `goal` reached if an `assumption` about the noise holds, and whether that is proved.

    Where nothing is proved, the goal is the sentence that says so. `besides` is what else is assumed, worded
    to follow the assumption.

    >>> from surepick.policies import Uniform
    >>> from surepick.core.problem import Problem
    >>> Promise.of(Uniform(), Problem([[1, 0], [0, 1]], low=0, high=1, goal="largest")).assumption
    'independent measurements within the given bounds'
    """

    proved: bool
    goal: str
    assumption: str = ""
    besides: str = ""

    @classmethod
    def none(cls, reason: str) -> Promise:
        """Return "no guarantee", with its reason."""
        return cls(False, f"{_NONE}: {reason}")

    @classmethod
    def read(cls, guarantee: str) -> Promise:
        """Parse the guarantee that a policy or a file states in one sentence; `text` returns that sentence.

        >>> Promise.read("none: unsound").proved, Promise.read("the best plan, given luck").assumption
        (False, 'luck')
        """
        if guarantee.lower().startswith(_NONE):
            return cls(False, guarantee)
        goal, given, assumption = guarantee.partition(_GIVEN)
        return cls(True, goal, *_split(assumption)) if given else cls(True, guarantee)

    @classmethod
    def of(cls, policy: Policy, problem: AnyProblem) -> Promise:
        """Return the guarantee of this policy on this problem, whose noise may be unknown or bounded."""
        promise = cls.read(policy.guarantee)
        listing = problem.about.listing
        if promise.proved and listing is not None and not listing.is_complete:
            what, wrong, rest = promise.goal.partition(", wrong with")
            best = "the best" if what == "the best plan" else what
            promise = replace(promise, goal=f"{best} of {listing.words}{wrong}{rest}")
        probes = problem.probes
        if promise.proved and probes is not None and probes.unknown:
            return replace(promise, assumption=UNKNOWN_NOISE)
        if promise.proved and (problem.plays or (probes is not None and probes.share_uses)):
            shared = DEPENDENT_USE if learns_variance(policy, problem) else SHARED_USE
            promise = replace(promise, besides=promise.besides + shared)
        if problem.noise_scale is None and promise.assumption in (SUB_GAUSSIAN, GAUSSIAN):
            return replace(promise, assumption=UNKNOWN_NOISE)
        if problem.noise_kind == BOUNDED_VARIANCE and promise.assumption == SUB_GAUSSIAN:
            return replace(promise, assumption=OF_VARIANCE)
        if problem.bounds is not None and promise.assumption == SUB_GAUSSIAN:
            learned = learns_variance(policy, problem)
            return replace(promise, assumption=BOUNDED_MEANS if learned else BOUNDED)
        return promise

    def if_gaussian(self, gaussian: bool) -> Promise:
        """Return this guarantee, with Gaussian noise as its assumption if the proof has used that."""
        return replace(self, assumption=GAUSSIAN) if gaussian and self.assumption == SUB_GAUSSIAN else self

    @property
    def text(self) -> str:
        """The guarantee in one sentence."""
        return self.goal + (f"{_GIVEN}{self.assumption}{self.besides}" if self.assumption else "")

    @property
    def reason(self) -> str:
        """Return why there is no guarantee; empty where there is one."""
        return "" if self.proved else self.goal[len(_NONE) :].lstrip(": ")


def learns_variance(policy: Policy, problem: AnyProblem) -> bool:
    """Return whether the policy needs bounds on readings alone, and learns their variance."""
    learns = getattr(policy, "learns_variance", None)
    return learns is not None and bool(learns(problem))


def _split(assumption: str) -> tuple[str, str]:
    """An assumption about the noise, and what follows it."""
    for noise in (SUB_GAUSSIAN, GAUSSIAN):
        if assumption.startswith(noise):
            return noise, assumption[len(noise) :]
    return assumption, ""


def promise(delta: float, epsilon: float, assumption: str) -> str:
    """Return the guarantee of a policy that is proved to find the best plan, or one within epsilon of it.

    >>> promise(0.05, 0.0, "luck")
    'the best plan, wrong with probability at most 0.05, given luck'
    """
    goal = "the best plan" if epsilon == 0 else f"a plan within {epsilon:g} of the best"
    return f"{goal}, wrong with probability at most {delta:g}{_GIVEN}{assumption}"


@dataclass(frozen=True)
class Doubt:
    """Something that the guarantee does not allow, seen in one arm, or in all arms together (`arm` None).

    `stated` is the standard deviation of one measurement that the guarantee assumes, None where it is
    unknown; `seen` is the one that the values show.
    """

    code: str  # noise_larger, heavy_tails, coarse, dependent, drift or released
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
