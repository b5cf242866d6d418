"""Policies: the base class of values that start runs, how one is started, and checks that they share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np

from surepick.core.arrays import FloatArray, IntArray
from surepick.core.base_problem import BOUNDED_VARIANCE
from surepick.core.given.numbers import LARGEST
from surepick.core.guarantee import Guarantee
from surepick.core.oracle_problem import AnyProblem
from surepick.core.prior_data import PriorData
from surepick.core.probes import refuse_probes
from surepick.core.run import Answer, Measure, Run, Standing, Stop
from surepick.core.wording import shortened
from surepick.errors import ParameterError, PluginError, ProblemError


class Policy(ABC):
    """Base of all policies: a policy is a frozen dataclass of settings that can start a run on a problem.

    It states `name`, its stable name in files and on the command line, `guarantee` and `start`; `version`
    rises whenever its decisions change, and `randomized` says whether its runs draw from their generator.
    The other attributes say what it can do besides.
    """

    name: ClassVar[str]
    version: ClassVar[int] = 1
    randomized: ClassVar[bool] = False

    takes_oracle: ClassVar[bool] = False  # problems whose plans are not listed
    takes_probes: ClassVar[bool] = False  # problems whose measurements are not those of single arms
    takes_plays: ClassVar[bool] = False  # problems whose plans are played and not listed
    takes_known: ClassVar[bool] = False  # means that are known
    takes_prior: ClassVar[bool] = False  # prior data: its runs have `remember(prior)`
    may_find_none: ClassVar[bool] = False  # whether "no plan will do" can be its answer
    one_at_a_time: ClassVar[bool] = False  # whether measurements of a round would disturb each other
    # whether the guarantee is about the problem's noise, so that values can contradict it; if not, the
    # guarantee names all that it assumes
    assumes_noise: ClassVar[bool] = True

    delta: float = 1.0  # the allowed probability of a wrong answer
    epsilon: float = 0.0  # how much worse than the best plan an answer may be

    @property
    @abstractmethod
    def guarantee(self) -> Guarantee:
        """The proof of an answer and its assumption, or why there is none."""

    @abstractmethod
    def start(self, problem: Any) -> Run:
        """Return a fresh run on this problem, or refuse it."""

    def learns_noise(self, problem: AnyProblem) -> bool:
        """Return whether a run learns the noise of this problem while it measures."""
        return False

    def learns_variance(self, problem: AnyProblem) -> bool:
        """Return whether bounds on readings are all that the guarantee needs, neither scale nor shape."""
        return False

    def incumbent_name(self, problem: AnyProblem) -> str | None:
        """Return the name of the plan in use, where the question is whether another is better."""
        return None

    def is_incumbent(self, problem: AnyProblem, plan: Answer) -> bool:
        """Return whether this answer is the plan in use."""
        return False

    def can_start(self, problem: AnyProblem) -> bool:
        """Return whether the noise is stated, or the policy learns it.

        >>> import surepick as sp
        >>> problem = sp.Problem([[1, 0], [0, 1]], noise=None, goal="largest")
        >>> sp.BetGapE().can_start(problem), sp.CombGapE().can_start(problem)
        (True, False)
        """
        return problem.noise_scale is not None or self.learns_noise(problem)

    def guarantee_on(self, problem: AnyProblem) -> Guarantee:
        """Return the guarantee on this problem, whose noise may be unknown or bounded."""
        return self.guarantee.on(problem, learns_variance=self.learns_variance(problem))

    def finds_none(self, standing: Standing) -> bool:
        """Return whether it is proved that no plan will do: none is left."""
        return self.may_find_none and standing.remaining == ()

    def is_right(self, problem: Any, means: FloatArray, plan: Any) -> bool | None:
        """Return whether an answer is right by the true means; None: if it is within epsilon of the best."""
        return None


class OwnQuestion(Policy):
    """A policy that asks something else than which plan has the best mean, and words question and claim."""

    @abstractmethod
    def question(self, problem: AnyProblem) -> str:
        """Return what is to be found out."""

    @abstractmethod
    def claim(self, problem: AnyProblem, standing: Standing) -> str:
        """Return what an answer says, as a sentence."""


class Onlooker(Run):
    """A run without the oracle's function, for a session that is only looked at."""

    def decide(self, rng: np.random.Generator) -> Measure | Stop:
        """Refused: without its function nothing can be decided."""
        raise ProblemError(
            "the function that finds the best plan is not at hand, so nothing can be decided; give it",
            field="best",
        )

    def absorb(self, counts: IntArray, sums: FloatArray) -> None:
        """Measurements change nothing here."""

    def remember(self, prior: PriorData) -> None:
        """Nor do prior data."""

    def standing(self) -> Standing:
        """Unknown."""
        return Standing()


def start(policy: Policy, problem: AnyProblem, prior: PriorData | None = None) -> Run:
    """Return a fresh run that begins with these prior data; refuse what the policy cannot take."""
    if not (policy.takes_plays if problem.plays else policy.takes_probes):
        refuse_probes(problem, policy.name)
    if problem.mean_bounds is not None and not policy.takes_known:
        raise ParameterError(
            f"{policy.name} cannot use known means; use BetGapE, or leave known out to measure them too",
            field="policy",
        )
    if not policy.can_start(problem):
        raise ProblemError(
            f"{policy.name} needs the noise of one measurement, and it is not stated; state noise=, or use "
            "BetGapE, which learns it",
            field="noise",
        )
    if not problem.is_listed and not policy.takes_oracle:
        raise ParameterError(
            f"{policy.name} needs a list of plans and the problem has none; use BetGapE, or list the plans "
            "(list_plans=True in builders and files)",
            field="policy",
        )
    run = policy.start(problem) if problem.can_decide else Onlooker()
    if not isinstance(run, Run):
        raise PluginError(f"{policy.name} must start a surepick.policy.Run, got {run!r:.80}")
    if prior is not None:
        refuse_probes(problem, "prior data", field="prior")
        if not policy.takes_prior:
            raise ParameterError(
                f"{policy.name} takes no prior data; leave them out, or use BetGapE, Challenge or Pick",
                field="prior",
            )
        run.remember(prior)
    return run


def n_asked(policy: Policy, request: object) -> int:
    """Return how many measurements a request asks for: at least one, or a loop would never end."""
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


def check_final_batch(policy: Policy, run: Run) -> None:
    """Refuse a final batch where runs of this policy have none."""
    if not run.has_final_batch:
        raise ParameterError(
            f"{policy.name} has no final batch here; use BetGapE on a list of plans or a Polytope",
            field="final_batch",
        )


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
    """Return the sub-Gaussian scale of each arm; refuse a problem that does not state it.

    `plays` says that the caller knows what to do where plans are played.
    """
    if problem.noise_kind == BOUNDED_VARIANCE:
        raise ProblemError(
            "this policy needs noise with tails like those of a Gaussian, and the problem bounds only its "
            "standard deviation; use BetGapE, Challenge, or Pick without a guarantee",
            field="policy",
        )
    return known_deviation(problem, plays=plays)


def known_deviation(problem: AnyProblem, *, plays: bool = False) -> FloatArray:
    """Return a bound on the standard deviation of each arm; refuse a problem that does not state it."""
    if not (plays and problem.plays):
        refuse_probes(problem, "this policy")
    if problem.noise_scale is None:
        raise ProblemError(
            "this policy needs the noise, and the problem does not state it; pass the standard deviation of "
            "one measurement (or half the width of its range) as noise",
            field="noise",
        )
    return problem.noise_scale
