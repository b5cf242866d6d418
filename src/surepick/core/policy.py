"""What a policy is, a value that starts runs, and its guarantee: what it proves on which assumption."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol, cast, runtime_checkable

import numpy as np

from surepick.core.arrays import LARGEST, FloatArray, IntArray
from surepick.core.measurable import BOUNDED_VARIANCE
from surepick.core.oracle_problem import AnyProblem
from surepick.core.probes import refuse_probes
from surepick.core.problem import Problem
from surepick.core.run import LastCallRun, Measure, Past, Run, Standing, Stop
from surepick.core.wording import shortened
from surepick.errors import ParameterError, PluginError, ProblemError


@runtime_checkable
class Policy(Protocol):
    """A frozen dataclass of hyper-parameters that can start a run on any problem it supports.

    `name` is its stable name in files and on the command line. `version` rises whenever its decisions
    change. `randomized` says whether `decide` draws from its generator. `guarantee` is one sentence: the
    guarantee and its assumption, or what is missing for one.

    What else it can do is said by flags, False where they are missing: `takes_oracle` (problems without a
    list), `takes_probes`, `takes_plays`, `takes_known` (means), `takes_past` (prior data: its runs have
    `remember(past)`); and by `learns_noise(problem)` and `learns_variance(problem)`.
    """

    name: ClassVar[str]
    version: ClassVar[int]
    randomized: ClassVar[bool]

    @property
    def delta(self) -> float:
        """The allowed probability of a wrong answer."""

    @property
    def guarantee(self) -> str:
        """The guarantee and its assumption, or a sentence that begins with "none"."""

    def start(self, problem: Problem) -> Run:
        """A fresh run on this problem."""


@runtime_checkable
class OwnQuestion(Policy, Protocol):
    """A policy whose question is not just which plan has the best mean; it words question and claim itself.

    `assumes_noise` says whether its guarantee is about the noise of the problem, so that values can
    contradict it; if not, the guarantee names all that it assumes.
    """

    assumes_noise: ClassVar[bool]

    def question(self, problem: AnyProblem) -> str:
        """Return what is to be found out."""

    def claim(self, problem: AnyProblem, standing: Standing) -> str:
        """Return what an answer says, as a sentence."""


def finds_none(policy: Policy, standing: Standing) -> bool:
    """Return whether it is proved that no plan will do: a policy with `may_find_none` has none left."""
    return bool(getattr(policy, "may_find_none", False)) and standing.remaining == ()


class Onlooker:
    """A run without the oracle's function, for a session that is only looked at."""

    def decide(self, rng: np.random.Generator) -> Measure | Stop:
        """Refused: without its function nothing can be decided."""
        raise ProblemError(
            "the function that finds the best plan is not at hand, so nothing can be decided; give it",
            field="best",
        )

    def absorb(self, counts: IntArray, sums: FloatArray) -> None:
        """Measurements change nothing here."""

    def standing(self) -> Standing:
        """Unknown."""
        return Standing()


def start(policy: Policy, problem: AnyProblem, past: Past | None = None) -> Run:
    """A fresh run, which begins with this past; a clear error where the policy cannot take the problem."""
    takes_it = "takes_plays" if problem.plays else "takes_probes"
    if not getattr(policy, takes_it, False):
        refuse_probes(problem, policy.name)
    if problem.mean_bounds is not None and not getattr(policy, "takes_known", False):
        raise ParameterError(
            f"{policy.name} cannot use known means; use BetGapE, or leave known out to measure them too",
            field="policy",
        )
    if not can_start(policy, problem):
        raise ProblemError(
            f"{policy.name} needs the noise of one measurement, and it is not stated; state noise=, or use "
            "BetGapE, which learns it",
            field="noise",
        )
    if not problem.is_listed and not getattr(policy, "takes_oracle", False):
        raise ParameterError(
            f"{policy.name} needs a list of plans and the problem has none; use a policy that needs no list "
            "such as BetGapE, or list the plans in a Problem; "
            "builders and files list candidates with list_plans=True",
            field="policy",
        )
    run = policy.start(cast(Problem, problem)) if problem.can_decide else Onlooker()
    if past is not None:
        refuse_probes(problem, "a run with a past", field="past")
        if not takes_past(policy) or not hasattr(run, "remember"):
            raise ParameterError(
                f"{policy.name} cannot begin with a past; leave it out, or use BetGapE, Challenge or Pick",
                field="past",
            )
        run.remember(past)
    return run


def can_start(policy: Policy, problem: AnyProblem) -> bool:
    """Return whether the noise is stated, or the policy learns it.

    >>> import surepick as sp
    >>> problem = sp.Problem([[1, 0], [0, 1]], noise=None, goal="largest")
    >>> can_start(sp.BetGapE(), problem), can_start(sp.CombGapE(), problem)
    (True, False)
    """
    if problem.noise_scale is not None:
        return True
    learns = getattr(policy, "learns_noise", None)
    return learns is not None and bool(learns(problem))


def n_asked(policy: Policy, request: object) -> int:
    """How many measurements a request asks for: at least one, or the policy would be asked for ever."""
    if not isinstance(request, Measure):
        wrong = f"decided {shortened(repr(request), 100)}"
    elif (n := request.n_measurements) < 1:
        wrong = "asked for nothing, and did not stop"
    elif int(request.counts.min()) < 0:
        wrong = f"asked for a negative number of measurements, {shortened(str(request.counts), 100)}"
    else:
        return n
    raise PluginError(
        f"{policy.name} {wrong}; a policy either asks for one measurement or more, Measure(counts), or stops "
        "with a plan, Stop(plan). What was measured is kept"
    )


def last_calling(policy: Policy, run: Run | None) -> LastCallRun:
    """The run, if it can end with a final batch; a clear error if not."""
    if not isinstance(run, LastCallRun) or getattr(run, "is_fixed", False):
        raise ParameterError(
            f"{policy.name} has no final batch here; use BetGapE or Challenge on a list of plans, or BetGapE "
            "on a Polytope",
            field="last_call",
        )
    return run


def takes_past(policy: Policy) -> bool:
    """Return whether runs of this policy may begin with a `Past`."""
    return bool(getattr(policy, "takes_past", False))


def delta_of(policy: object) -> float:
    """Return the allowed probability of a wrong answer; 1 for a policy without a delta, which allows all."""
    return float(getattr(policy, "delta", 1.0))


def epsilon_of(policy: Policy) -> float:
    """How much worse than the best plan the policy's answer may be; 0 for a policy without such a setting."""
    return float(getattr(policy, "epsilon", 0.0))


def is_proved(policy: Policy) -> bool:
    """Return whether the policy's answers come with a guarantee."""
    return Promise.read(policy.guarantee).proved


def assumes_noise(policy: Policy) -> bool:
    """Return whether the guarantee is about the noise, so that values can contradict it."""
    return bool(getattr(policy, "assumes_noise", True))


def check_delta(delta: float) -> None:
    """Refuse a delta outside (0, 1)."""
    if not 0 < delta < 1:
        raise ParameterError(
            f"delta is the allowed error probability, between 0 and 1, got {delta!r}; try 0.05", field="delta"
        )


def check_epsilon(epsilon: float) -> None:
    """Refuse an epsilon that is negative, or so large that sums with it overflow."""
    if not 0 <= epsilon <= LARGEST:
        raise ParameterError(
            f"epsilon is how much worse than the best is fine, from 0 to {LARGEST:g}, got {epsilon!r}",
            field="epsilon",
        )


def check_gaussian(problem: AnyProblem, *, gaussian: bool) -> None:
    """Refuse to take bounded readings, or noise of bounded variance, for Gaussian noise."""
    if gaussian and (problem.noise_kind == BOUNDED_VARIANCE or problem.bounds is not None):
        stated = "bounds of readings" if problem.bounds is not None else "no more than a variance"
        raise ParameterError(f"the problem states {stated}; leave out gaussian, or that", field="gaussian")


def known_noise_scale(problem: AnyProblem, *, plays: bool = False) -> FloatArray:
    """The sub-Gaussian scale per arm, or a clear error when the problem does not know it.

    `plays` says that the caller knows what to do where plans are played.
    """
    if problem.noise_kind == BOUNDED_VARIANCE:
        raise ProblemError(
            "of this problem's noise no more is known than a bound on its standard deviation, and this "
            "policy needs tails like those of Gaussian noise; use BetGapE, Challenge, or Pick without a "
            "guarantee",
            field="policy",
        )
    return known_deviation(problem, plays=plays)


def known_deviation(problem: AnyProblem, *, plays: bool = False) -> FloatArray:
    """A bound on the standard deviation per arm, or a clear error when the problem does not know it."""
    if not (plays and problem.plays):
        refuse_probes(problem, "this policy")
    if problem.noise_scale is None:
        raise ProblemError(
            "this policy needs the noise, and the problem does not state it; pass the standard deviation of "
            "one measurement (or half the width of its range) as noise",
            field="noise",
        )
    return problem.noise_scale


# The guarantee: what a policy proves of its answer, on which assumption, and what contradicts it.

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
        if not given:
            return cls(True, guarantee)
        noise = next((one for one in (SUB_GAUSSIAN, GAUSSIAN) if assumption.startswith(one)), assumption)
        return cls(True, goal, noise, assumption.removeprefix(noise))

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
