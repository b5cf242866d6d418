"""What a run is: it says what to measure next, or stops with a plan. Its optional abilities; prior data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias, TypeVar, runtime_checkable

import numpy as np

from surepick.core.arrays import LARGEST, FloatArray, IntArray, Numbers, furthest_values, read_only, vector
from surepick.core.oracle_problem import AnyProblem
from surepick.core.probes import Plays
from surepick.core.problem import Problem
from surepick.errors import ParameterError, ProblemError

MOST_MEASUREMENTS = 10**6  # in a batch: a forged log exhausts no memory
TOLERANCE = 1e-9  # relative: what another machine may compute otherwise


@dataclass(frozen=True, eq=False)
class Decision:
    """A batch: all that fixes its bets, beside the batches before it.

    Every value so far moves the last two numbers: a run that follows recorded decisions with other values
    finds other numbers.
    """

    leader: Any  # a plan by its number, a basis as text, or a plan as a list; -1 in a first batch
    rivals: Any  # (n,) plans that the leader bets against; those that are not ruled out
    uses: IntArray  # (n_probes,) of each replicate
    n_replicates: int
    is_final: bool = False
    more: Mapping[str, Any] = field(default_factory=dict)  # stakes and bets: JSON values, or arrays for lists
    value_sum: float = 0.0  # of all values before the batch, with a weight for each reading
    wealth: float = 0.0  # mean log wealth against the rivals of the leader, before the batch

    @property
    def is_first(self) -> bool:
        """Whether nothing leads yet: the batch only makes a start."""
        return isinstance(self.leader, int) and self.leader < 0

    @property
    def n_measurements(self) -> int:
        """How many measurements the batch takes."""
        return int(self.uses.sum()) * self.n_replicates

    def to_json(self) -> dict[str, Any]:
        """Return the decision as JSON values: rivals as ranges, and the probes that are used.

        >>> Decision(1, np.array([0, 2, 3]), np.array([4, 0, 5]), 1).to_json()["rivals"]
        [[0, 1], [2, 4]]
        """
        return {
            "leader": self.leader if isinstance(self.leader, str | list) else int(self.leader),
            "rivals": as_ranges(self.rivals),
            "uses": [[probe, n] for probe, n in enumerate(self.uses.tolist()) if n],
            "replicates": int(self.n_replicates),
            "final": bool(self.is_final),
            **{name: _plain(value) for name, value in self.more.items()},
            "value_sum": float(self.value_sum),
            "wealth": float(self.wealth),
        }

    @classmethod
    def from_json(cls, body: Mapping[str, Any], n_plans: int, n_probes: int) -> Decision:
        """Return the decision that was recorded; a ValueError if it is none on so many plans and probes.

        A leader that is no number is checked by the run that follows the decision.
        """
        named = {"leader", "rivals", "uses", "replicates", "final", "value_sum", "wealth"}
        leader, replicates = body["leader"], body["replicates"]
        uses = np.zeros(n_probes, dtype=np.int64)
        for probe, n in body["uses"]:
            if not (0 <= probe < n_probes and 0 < n <= MOST_MEASUREMENTS):
                raise ValueError(f"a batch cannot use probe {probe!r} {n!r} times")
            uses[probe] = n
        in_range = isinstance(leader, str | list) or -1 <= leader < n_plans
        if not (in_range and 0 < replicates * max(int(uses.sum()), 1) <= MOST_MEASUREMENTS):
            raise ValueError(f"leader {leader!r} or replicates {replicates!r} are out of range")
        rivals = from_ranges(body["rivals"], n_plans)
        more = {name: value for name, value in body.items() if name not in named}
        numbers = float(body["value_sum"]), float(body["wealth"])
        return cls(leader, rivals, uses, replicates, bool(body["final"]), more, *numbers)


def _plain(value: Any) -> Any:
    """Return a value with lists in place of arrays."""
    if isinstance(value, list):
        return [_plain(part) for part in value]
    return value.tolist() if isinstance(value, np.ndarray) else value


def as_ranges(numbers: IntArray) -> list[list[int]]:
    """Return ascending numbers as ranges [begin, end)."""
    if not len(numbers):
        return []
    breaks = np.flatnonzero(np.diff(numbers) != 1) + 1
    return [[int(part[0]), int(part[-1]) + 1] for part in np.split(np.asarray(numbers), breaks)]


def from_ranges(ranges: Iterable[tuple[int, int]], n: int) -> IntArray:
    """Return the numbers below n in these ascending ranges."""
    found, last = list[IntArray](), -1
    for begin, end in ranges:
        if not last < begin < end <= n:
            raise ValueError(f"[{begin!r}, {end!r}] is no range of plans")
        found.append(np.arange(begin, end))
        last = end
    return np.concatenate(found) if found else np.zeros(0, dtype=np.int64)


def is_close(mine: float, theirs: float) -> bool:
    """Return whether two numbers are equal up to the rounding of another machine."""
    return abs(mine - theirs) <= TOLERANCE * max(1.0, abs(mine))


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
    `risk` is a proved bound on the probability that declaring the leader now would be wrong, where the policy
    has one at every moment; otherwise None.

    `remaining` are the plans that are not ruled out, the leader among them: the best plan is one of them
    (with epsilon: one of them is within epsilon of the best), now and at every other moment of the run,
    except with probability delta in all. None where the policy proves no such set. `good` are plans proved to
    be within epsilon of the best, right as a list except with probability delta.

    `unless` is for polytopes, whose plans cannot be listed: the leader is best, or the best plan has another
    amount than the leader of one of these (arms, or slacks of rows), except with probability delta as above.
    """

    leader: Answer | None = None
    rival: Answer | None = None
    gap: float | None = None
    radius: float | None = None
    risk: float | None = None
    remaining: tuple[Answer, ...] | None = None
    good: tuple[Answer, ...] = ()
    unless: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        # a standing that was kept as JSON values has lists, also in place of plan vectors
        for name, value in vars(self).items():
            if isinstance(value, list):
                plain = tuple(tuple(one) if isinstance(one, list) else one for one in value)
                object.__setattr__(self, name, plain)


class Run(Protocol):
    """One run of a policy on one problem: mutable, owned by the loop or session that started it.

    What else a run can do is said by further protocols, here and in `simulation`, and asked by `isinstance`.

    `decide` is called once per round and its answer is recorded before it is shown; calling it again before
    anything is absorbed gives the same decision for the same `rng`. `absorb` takes the complete answer to
    the last request.
    """

    def decide(self, rng: np.random.Generator) -> Measure | Stop:
        """Return what to measure next, or the plan to stop with."""

    def absorb(self, counts: IntArray, sums: FloatArray) -> None:
        """Take in the measurements that were asked for: how many of each arm, and their sums."""

    def standing(self) -> Standing:
        """The leader, its closest rival and how far apart they are."""


@runtime_checkable
class ValueRun(Run, Protocol):
    """A run that may need the readings of a request one by one, beside their sums."""

    @property
    def needs_values(self) -> bool:
        """Whether it does on its problem."""

    def absorb(
        self,
        counts: IntArray,
        sums: FloatArray,
        removed: IntArray | None = None,
        values: Mapping[int, FloatArray] | None = None,
    ) -> None:
        """Take in the measurements that were asked for, with the readings of each probe."""


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

    def restore(self, state: Mapping[str, Any]) -> None:
        """Become the run whose state this is; called on a fresh run, before anything else."""


@runtime_checkable
class BudgetedRun(Run, Protocol):
    """A run whose requests can be cut to what is left of a budget, so that no part of it is lost."""

    def allow(self, left: int) -> None:
        """Ask for no more than this many from the next request on, if that makes sense."""


@runtime_checkable
class LastCallRun(Run, Protocol):
    """A run that can end with a test: one last block, settled by itself, that proves more than bets do.

    After it the run stops, with a plan if one is proved.
    """

    def call_last(self, n: int, *, gaussian: bool) -> None:
        """These n measurements are the last; with `gaussian` their noise is known to be Gaussian.

        A block that has been begun is finished first, from the same n.
        """


@runtime_checkable
class WeighingRun(Run, Protocol):
    """A run that knows the evidence against each plan, for people to look at."""

    def log_evidence(self) -> FloatArray | None:
        """Return for each plan the log of the proved evidence that it is no better than the leader, or None.

        A plan is ruled out at log(1/delta). The entry of the leader itself has no meaning.
        """


@runtime_checkable
class ProvingRun(Run, Protocol):
    """A run whose answer comes with a proof that can be checked without the run."""

    def proof(self) -> Mapping[str, Any] | None:
        """Return the proof of the answer as JSON values; None without an answer, or without a proof."""


@runtime_checkable
class NoiseLearningRun(Run, Protocol):
    """A run that learns the noise while it measures."""

    def noise_estimate(self) -> FloatArray:
        """Return the standard deviation of one measurement of each arm, as it is estimated now."""


@runtime_checkable
class GrowingRun(Run, Protocol):
    """A run to whose problem plans may be added, as its proof allows: between two blocks."""

    @property
    def may_grow(self) -> bool:
        """Whether that can be now, or a block that is measured in parts has to be complete first."""

    def grow(self, problem: Problem) -> None:
        """Continue with this problem, whose first plans are the plans so far."""


@runtime_checkable
class FollowingRun(Run, Protocol):
    """A run that follows recorded decisions: all that fixes its bets is in them and in the values before."""

    @property
    def is_open(self) -> bool:
        """Whether a batch is being measured, whose other requests follow from its decision."""

    def propose(self) -> Decision | Stop:
        """Return the next batch, or the answer; nothing changes."""

    def first_request(self, decision: Decision) -> Measure:
        """Return the first request of the batch that this decision opens."""

    def recorded(self, body: Mapping[str, Any]) -> Decision:
        """Return the decision that was recorded like this; a ValueError if it is none."""

    def objection(self, decision: Decision) -> str | None:
        """Return why no run takes this decision here, or None."""

    def follow(self, decision: Decision) -> None:
        """Open the batch of this decision: stake, and fix its bets."""

    def absorb(self, counts: IntArray, sums: FloatArray, removed: IntArray | None = None) -> None:
        """Take in the answer to a request; `removed` counts the uses of each probe that are not in it."""

    def numbers(self) -> tuple[float, float]:
        """Return the weighted sum of all values, and the mean log wealth."""

    def proves(self, plan: Answer | None) -> bool:
        """Return whether this answer is proved, up to rounding; None is the answer that no plan will do."""

    def lower_delta(self, policy: Any, delta: float) -> None:
        """Continue with this policy, which has a smaller delta."""


# Prior data: guesses of the means, or earlier measurements. They guide a run and never count as evidence.
#
# A run treats them as measurements made before its first batch: they inform which plan leads, what is
# measured and what is bet. The guarantee holds however wrong they are; wrong ones cost measurements alone.

P = TypeVar("P", bound="Past | None")

MOST_WORTH = 20.0  # measurements per arm that a history counts as; without a cap a wrong one is dear


@dataclass(frozen=True, eq=False)
class Past:
    """For each arm a mean, and how many measurements it is worth; 0 where nothing is thought of it.

    >>> import surepick as sp
    >>> problem = sp.Problem([[1, 0], [0, 1]], noise=4.0, goal="largest")
    >>> sp.problems.Past.from_guess(problem, [10.0, 12.0], spread=2.0).worth.tolist()
    [4.0, 4.0]
    >>> sp.problems.Past.from_history(problem, counts=[3, 400], means=[10.2, 11.7]).worth.tolist()
    [3.0, 20.0]
    """

    worth: FloatArray  # (n_arms,)
    means: FloatArray  # (n_arms,)

    @classmethod
    def from_guess(cls, problem: AnyProblem, means: Numbers, spread: Numbers) -> Past:
        """A guess of each mean, off by about `spread`: worth (noise scale / spread)^2 measurements, up to 20.

        A spread of infinity, or of 0, says that it is unknown how far off it is: it is then worth nothing.
        """
        if not problem.arms_alone:
            fitting(problem, cls(np.zeros(problem.n_arms), np.zeros(problem.n_arms)))  # says why not
        if problem.noise_scale is None:
            raise ParameterError(
                "how much a guess is worth depends on the noise scale, and this problem has none; "
                "give a scale, or no guess",
                field="past",
            )
        width = _blaming_past("spread", spread, problem)
        if (width < 0).any():
            raise ParameterError(f"the spread of a guess is 0 or more, got {width.min():g}", field="past")
        width = np.where(width > 0, width, np.inf)
        return cls._capped((problem.noise_scale / width) ** 2, means, problem)

    @classmethod
    def of_problem(cls, problem: AnyProblem) -> Past | None:
        """The guess of a problem as prior data; None without a spread of it, or without a stated noise."""
        guess, spread = problem.guess, problem.spread
        if guess is None or spread is None or problem.noise_scale is None or not problem.arms_alone:
            return None
        return cls.from_guess(problem, guess, spread) if spread.any() else None

    @classmethod
    def from_history(cls, problem: AnyProblem, counts: Numbers, means: Numbers) -> Past:
        """Return prior data from earlier measurements, with their counts and means per arm.

        An arm counts as at most 20 measurements: its mean may have moved since, and the cap limits the cost
        of that.
        """
        known = _blaming_past("counts", counts, problem)
        if (known < 0).any():
            raise ParameterError(f"counts of a history are 0 or more, got {known.min():g}", field="past")
        return cls._capped(known, means, problem)

    @classmethod
    def _capped(cls, worth: FloatArray, means: Numbers, problem: AnyProblem) -> Past:
        capped = read_only(np.minimum(worth, MOST_WORTH))
        return fitting(problem, cls(capped, read_only(problem.as_means(means))))

    def or_else(self, guess: Past) -> Past:
        """Return these prior data, with the guess for arms that have none."""
        has = self.worth > 0
        worth = np.where(has, self.worth, guess.worth)
        return Past(read_only(worth), read_only(np.where(has, self.means, guess.means)))

    def lengthened(self, n_arms: int) -> Past:
        """Return the prior data for n_arms arms; the added ones have none."""
        more = np.zeros(n_arms - len(self.worth))
        return Past(read_only(np.append(self.worth, more)), read_only(np.append(self.means, more)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Past) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash((tuple(self.worth), tuple(self.means)))

    def to_json(self) -> dict[str, Any]:
        """Return this as JSON values."""
        return {"worth": self.worth.tolist(), "means": self.means.tolist()}

    @classmethod
    def from_json(cls, kept: Mapping[str, Any]) -> Past:
        """Invert `to_json`."""
        return cls(read_only(np.array(kept["worth"], float)), read_only(np.array(kept["means"], float)))


def fitting(problem: AnyProblem, past: P) -> P:
    """Return the prior data; refuse data about other arms than this problem's. None is allowed."""
    if past is None:
        return past
    if not problem.arms_alone:
        ways = "plays" if problem.plays else "probes"
        raise ParameterError(
            f"a past is about arms that are measured by themselves, not by {ways}", field="past"
        )
    if not past.worth.shape == past.means.shape == (problem.n_arms,):
        raise ParameterError(
            f"a past has a worth and a mean for each of the {problem.n_arms} arms, got shapes "
            f"{past.worth.shape} and {past.means.shape}",
            field="past",
        )
    furthest = furthest_values(problem.noise_scale, problem.n_arms)
    wrong = ~((past.worth >= 0) & (past.worth <= LARGEST) & (np.abs(past.means) <= furthest))
    if wrong.any():
        arm = int(np.argmax(wrong))
        raise ParameterError(
            f"the past of arm {arm} ({problem.arm_names[arm]!r}) is worth {past.worth[arm]:g} measurements "
            f"of {past.means[arm]:g}; a worth is 0 or more, and means are not so far from 0 that rounding "
            "outweighs the noise",
            field="past",
        )
    return past


def _blaming_past(what: str, given: Numbers, problem: AnyProblem) -> FloatArray:
    """Return one number per arm, one of which may hold for all; infinity is allowed."""
    try:
        return vector(what, given, problem.arm_names, one_for_all=True, infinite=True)
    except ProblemError as error:
        raise ParameterError(str(error), field="past") from None
