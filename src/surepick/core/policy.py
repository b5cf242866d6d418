"""What a policy is: a value that starts runs; a run says what to measure next, or stops with a plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol, TypeAlias, TypeVar, cast, runtime_checkable

import numpy as np

from surepick.core.arrays import FloatArray, IntArray
from surepick.core.measurable import BOUNDED_VARIANCE
from surepick.core.oracle_problem import AnyProblem, OracleProblem
from surepick.core.past import Past
from surepick.core.plays import Plays
from surepick.core.probes import refuse_probes
from surepick.core.problem import Problem
from surepick.core.promise import Promise
from surepick.core.wording import shortened
from surepick.errors import ParameterError, PluginError, ProblemError

# A plan by its index in the problem's list; where plans cannot be listed, by its vector.
Answer: TypeAlias = int | tuple[float, ...]


@dataclass(frozen=True, eq=False)
class Measure:
    """A request: measure each arm this many times; order and parallelism within it do not matter.

    Where plans are played, `plays` are what is asked for, and the counts are those of their readings.
    """

    counts: IntArray  # (n_arms,)
    plays: Plays | None = None

    @property
    def n_measurements(self) -> int:
        """How many measurements it asks for; a play is one."""
        return int(self.counts.sum()) if self.plays is None else self.plays.n_uses


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


@dataclass(frozen=True)
class Stop:
    """The policy has seen enough and answers with this plan; None after a last call that proved none.

    A plan is no answer while the `risk` of the standing exceeds delta: `simulation.outcome.proved_stop`.
    """

    plan: Answer | None


@dataclass(frozen=True)
class Standing:
    """Where a run stands, for people to look at; nothing is decided by it, but see `Stop`.

    `gap` is the estimated lead over the rival and `radius` its uncertainty in the policy's own terms.
    `risk` is a proved bound on the probability that declaring the lead now would be wrong, where the policy
    has one at every moment; otherwise None.

    `remaining` are the plans that are not ruled out, the lead among them: the best plan is one of them (with
    epsilon: one of them is within epsilon of the best), now and at every other moment of the run, except with
    probability delta in all. None where the policy proves no such set. `good` are plans proved to be within
    epsilon of the best, right as a list except with probability delta.

    `unless` is for polytopes, whose plans cannot be listed: the lead is best, or the best plan has another
    amount than the lead of one of these (arms, or slacks of rows), except with probability delta as above.
    """

    lead: Answer | None = None
    rival: Answer | None = None
    gap: float | None = None
    radius: float | None = None
    risk: float | None = None
    remaining: tuple[Answer, ...] | None = None
    good: tuple[Answer, ...] = ()
    unless: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        # a policy that keeps its standing as JSON values gets lists back
        for name in ("remaining", "good", "unless"):
            if isinstance(getattr(self, name), list):
                object.__setattr__(self, name, tuple(getattr(self, name)))


def parts_of(standing: Standing) -> list[Any]:
    """Lead, rival, gap, radius and risk, as logs and snapshots keep a standing of the past.

    >>> parts_of(Standing(3, 1, 0.5))
    [3, 1, 0.5, None, None]
    """
    return [standing.lead, standing.rival, standing.gap, standing.radius, standing.risk]


def standing_of(parts: Sequence[Any]) -> Standing:
    """The standing with these parts; a plan vector may come as a list.

    >>> standing_of([[1.0, 0.0], None, 0.5, None, None]).lead
    (1.0, 0.0)
    """
    lead, rival, *numbers = parts
    return Standing(_as_answer(lead), _as_answer(rival), *numbers)


def _as_answer(plan: Any) -> Answer | None:
    return tuple(plan) if isinstance(plan, list) else plan


class Run(Protocol):
    """One run of a policy on one problem: mutable, owned by the loop or session that started it.

    What else a run can do is said by further protocols, here and in `simulation`, and asked by `isinstance`.

    `decide` is called once per round and its answer is recorded before it is shown; calling it again before
    anything is absorbed gives the same decision for the same `rng`. `absorb` takes the complete answer to
    the last request.
    """

    def decide(self, rng: np.random.Generator) -> Measure | Stop:
        """What to measure next, or the plan to stop with."""
        ...

    def absorb(self, counts: IntArray, sums: FloatArray) -> None:
        """Take in the measurements that were asked for: how many of each arm, and their sums."""
        ...

    def standing(self) -> Standing:
        """The lead, its closest rival and how far apart they are."""
        ...


@runtime_checkable
class RecallingRun(Run, Protocol):
    """A run whose proof allows measurements that it did not ask for, between two rounds.

    Every such run may take in a pilot, whose counts were fixed in advance, before its first round.
    """

    @property
    def recalls_unasked(self) -> bool:
        """Whether the proof allows any number of them, at any time, and not the pilot's alone."""
        ...

    def recall(self, counts: IntArray, sums: FloatArray) -> None:
        """Take in measurements of arms that matter which no request asked for."""
        ...


@runtime_checkable
class PoolingRun(RecallingRun, Protocol):
    """A recalling run of a policy that proves nothing, which any measurement helps and none can spoil."""

    @property
    def pools_all(self) -> bool:
        """Whether that is so."""
        ...


@runtime_checkable
class KeptRun(Run, Protocol):
    """A run whose state can be kept beside a session's log, which is then opened without a replay.

    The state is arrays, numbers, text, None, and lists and dictionaries (with text as keys) of them. Without
    these two methods a policy decides just as well, but its long sessions take longer to open.
    """

    def state(self) -> dict[str, Any]:
        """Everything that a fresh run of the same policy on the same problem needs to become this one.

        It may share arrays with the run: the caller writes it down at once.
        """
        ...

    def restore(self, state: Mapping[str, Any]) -> None:
        """Become the run whose state this is; called on a fresh run, before anything else."""
        ...


@runtime_checkable
class BudgetedRun(Run, Protocol):
    """A run whose requests can be cut to what is left of a budget, so that no part of it is lost."""

    def allow(self, left: int) -> None:
        """Ask for no more than this many from the next request on, if that makes sense."""
        ...


@runtime_checkable
class LastCallRun(Run, Protocol):
    """A run that can end with a test: one last block, settled by itself, that proves more than bets do.

    After it the run stops, with a plan if one is proved.
    """

    def call_last(self, n: int, *, gaussian: bool) -> None:
        """These n measurements are the last; with `gaussian` their noise is known to be Gaussian.

        A block that has been begun is finished first, from the same n.
        """
        ...


def last_calling(policy: Policy, run: Run | None) -> LastCallRun:
    """The run, if it can end with a last call; a clear error if not."""
    if not isinstance(run, LastCallRun):
        raise ParameterError(
            f"{policy.name} has no last call here: only bets on single arms can go over into a test; use "
            "BetGapE, or PolyBet on a Polytope, on a problem without probes",
            field="last_call",
        )
    return run


@runtime_checkable
class WeighingRun(Run, Protocol):
    """A run that knows the evidence against each plan, for people to look at."""

    def log_evidence(self) -> FloatArray | None:
        """For each plan the log of the proved evidence that it is no better than the lead, or None.

        A plan is ruled out at log(1/delta). The entry of the lead itself has no meaning.
        """
        ...


@runtime_checkable
class ProvingRun(Run, Protocol):
    """A run whose answer comes with a proof that can be checked without the run."""

    def proof(self) -> Mapping[str, Any] | None:
        """What proves the answer, as JSON values; None before there is an answer, or a proof of it."""
        ...


@runtime_checkable
class Policy(Protocol):
    """A frozen dataclass of hyper-parameters that can start a run on any problem it supports.

    `name` is its stable name in files and on the command line. `version` rises whenever its decisions
    change. `randomized` says whether `decide` draws from its generator. `guarantee` is one sentence: the
    promise and its assumption, or what is missing for one.
    """

    name: ClassVar[str]
    version: ClassVar[int]
    randomized: ClassVar[bool]

    @property
    def delta(self) -> float:
        """The allowed probability of a wrong answer."""
        ...

    @property
    def guarantee(self) -> str:
        """The promise and its assumption, or a sentence that begins with "none"."""
        ...

    def start(self, problem: Problem) -> Run:
        """A fresh run on this problem."""
        ...


P = TypeVar("P", bound=Policy)


def decide_as(policy: Policy, *versions: int) -> None:
    """Say, in the __post_init__ of a policy, which versions of it decide with these parameters.

    New runs are of the first; sessions begun with one of the others go on with it (`earlier`).
    """
    object.__setattr__(policy, "version", versions[0])
    object.__setattr__(policy, "earlier", versions[1:])


def as_version(policy: P, version: int) -> P:
    """The policy, deciding as this version of it if it still can (`earlier`); for sessions begun with it."""
    if version != policy.version and version in getattr(policy, "earlier", ()):
        object.__setattr__(policy, "version", version)
    return policy


def changed(policy: P, **parameters: Any) -> P:
    """The same policy with these parameters, and of the same version where that depends on its age."""
    return as_version(cast(P, replace(cast(Any, policy), **parameters)), policy.version)


@runtime_checkable
class OraclePolicy(Policy, Protocol):
    """A policy that also works with an oracle in place of a list of plans; `takes_oracle` says so."""

    takes_oracle: ClassVar[bool]

    def start(self, problem: AnyProblem) -> Run:
        """A fresh run on this problem."""
        ...


class Onlooker:
    """A run without the oracle's function, for a session that is only looked at.

    The log has the decisions of others; this run makes none. It counts unasked measurements if the policy's
    own runs do.
    """

    def __init__(self, policy: OraclePolicy) -> None:
        like = policy.start(OracleProblem(lambda weights: np.eye(2)[np.argmax(weights)], 2, n_plans=2))
        self.recalls_unasked = isinstance(like, RecallingRun) and like.recalls_unasked

    def decide(self, rng: np.random.Generator) -> Measure | Stop:
        """Refused: without its function nothing can be decided."""
        raise ProblemError(
            "the function that finds the best plan is not at hand, so nothing can be decided; give it"
        )

    def absorb(self, counts: IntArray, sums: FloatArray) -> None:
        """Measurements change nothing here."""

    def recall(self, counts: IntArray, sums: FloatArray) -> None:
        """Measurements change nothing here."""

    def standing(self) -> Standing:
        """Unknown."""
        return Standing()


@runtime_checkable
class ProbingPolicy(Policy, Protocol):
    """A policy that also works where what is measured are probes; `takes_probes` says so."""

    takes_probes: ClassVar[bool]


@runtime_checkable
class PlayingPolicy(Policy, Protocol):
    """A policy that can ask for plays of plans that no list has; `takes_plays` says so."""

    takes_plays: ClassVar[bool]


@runtime_checkable
class GrowingRun(Run, Protocol):
    """A run to whose problem plans may be added, as its proof allows: between two rounds."""

    def grow(self, problem: Problem) -> None:
        """Go on with this problem, whose first plans are those that there were."""
        ...


@runtime_checkable
class RememberingRun(Run, Protocol):
    """A run that can begin with what was thought of the arms before, and whose proof does not mind."""

    def remember(self, past: Past) -> None:
        """Take it in; called on a fresh run, before anything else."""
        ...


def start(policy: Policy, problem: AnyProblem, past: Past | None = None) -> Run:
    """A fresh run, or a clear error when the policy needs the list of plans and there is none.

    It begins with this past, where there is one; a policy that cannot is refused.
    """
    run = _start(policy, problem)
    if past is not None:
        refuse_probes(problem, "a run with a past")
        if not takes_past(policy) or not isinstance(run, RememberingRun):
            raise ParameterError(
                f"{policy.name} cannot begin with a past; leave it out, or use BetGapE, OBet, "
                "PolyBet, Challenge or Pick",
                field="past",
            )
        run.remember(past)
    return run


def takes_past(policy: Policy) -> bool:
    """Whether runs of this policy may begin with a `Past`."""
    return bool(getattr(policy, "takes_past", False))


def _start(policy: Policy, problem: AnyProblem) -> Run:
    if not isinstance(policy, PlayingPolicy if problem.plays else ProbingPolicy):
        refuse_probes(problem, policy.name)
    if problem.is_listed:
        return policy.start(problem)
    if isinstance(policy, OraclePolicy):
        return policy.start(problem) if problem.has_oracle else Onlooker(policy)
    raise ParameterError(
        f"{policy.name} needs a list of plans and the problem has none; use a policy that needs no list "
        "(OBet for plans behind an oracle, PolyBet for a Polytope), or list the plans in a Problem; builders "
        "and files list candidates with list_plans=True"
    )


def recalling(policy: Policy, run: Run | None, *, unasked: bool) -> RecallingRun | None:
    """The run, if its proof allows measurements that it did not ask for; None if not, or without a proof.

    A run that has nothing to prove may say that it takes all (`PoolingRun`).

    With `unasked` these are measurements recorded by hand, otherwise the measurements of a pilot.
    """
    if isinstance(run, PoolingRun) and run.pools_all:
        return run
    if not isinstance(run, RecallingRun) or not Promise.read(policy.guarantee).proved:
        return None
    return run if run.recalls_unasked or not unasked else None


def epsilon_of(policy: Policy) -> float:
    """How much worse than the best plan the policy's answer may be; 0 for a policy without such a setting.

    >>> from surepick.policies import RAGE, BetGapE
    >>> epsilon_of(BetGapE(epsilon=0.5)), epsilon_of(RAGE())
    (0.5, 0.0)
    """
    return float(getattr(policy, "epsilon", 0.0))


def check_delta(delta: float) -> None:
    """Refuse a delta outside (0, 1).

    >>> check_delta(0.05)
    """
    if not 0 < delta < 1:
        raise ParameterError(
            f"delta is the allowed error probability, between 0 and 1, got {delta!r}; try 0.05", field="delta"
        )


def check_epsilon(epsilon: float) -> None:
    """Refuse a negative or non-finite epsilon.

    >>> check_epsilon(0.0)
    """
    if not (epsilon >= 0 and np.isfinite(epsilon)):
        raise ParameterError(
            f"epsilon is how much worse than the best is fine, 0 or more, got {epsilon!r}", field="epsilon"
        )


def known_noise_scale(problem: AnyProblem, *, plays: bool = False) -> FloatArray:
    """The sub-Gaussian scale per arm, or a clear error when the problem does not know it.

    `plays` says that the caller knows what to do where plans are played.
    """
    if problem.noise == BOUNDED_VARIANCE:
        raise ProblemError(
            "of this problem's noise no more is known than a bound on its standard deviation, and this "
            "policy needs tails like those of Gaussian noise; use BetGapE or Challenge, or Pick where no "
            "promise is needed"
        )
    return known_deviation(problem, plays=plays)


def known_deviation(problem: AnyProblem, *, plays: bool = False) -> FloatArray:
    """A bound on the standard deviation per arm, or a clear error when the problem does not know it."""
    if not (plays and problem.plays):
        refuse_probes(problem, "this policy")
    if problem.noise_scale is None:
        raise ProblemError(
            "this policy needs the noise scale and the problem has noise_scale=None; pass the standard "
            "deviation of one measurement (or half the width of its range) as noise_scale"
        )
    return problem.noise_scale
