"""Runs: a run says what to measure next, or stops with a plan. Its requests, answers and standing."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from surepick.core.arrays import FloatArray, IntArray
from surepick.core.plays import Plays
from surepick.core.prior_data import PriorData

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
    """The policy has seen enough and answers with this plan; None after a final batch that proved none.

    A plan is no answer while the `risk` of the standing exceeds delta: `simulation.outcome.proved_stop`.
    """

    plan: Answer | None


@dataclass(frozen=True)
class Standing:
    """The standing of a run, for people to look at; nothing is decided by it, but see `Stop`.

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


class Run(ABC):
    """Base of all runs: one run of a policy on one problem, owned by the loop or session that started it.

    `decide` is called once per round and its answer is recorded before it is shown; calling it again before
    anything is absorbed gives the same decision for the same `rng`. `absorb` takes the complete answer to
    the last request. The other methods are abilities that a run may have.
    """

    @abstractmethod
    def decide(self, rng: np.random.Generator) -> Measure | Stop:
        """Return what to measure next, or the plan to stop with."""

    @abstractmethod
    def absorb(self, counts: IntArray, sums: FloatArray) -> None:
        """Take in the measurements that were asked for: how many of each arm, and their sums."""

    @abstractmethod
    def standing(self) -> Standing:
        """Return the leader, its closest rival and how far apart they are."""

    def allow(self, left: int) -> None:
        """Ask for no more than this many from the next request on, if that makes sense."""
        return  # a run that ignores a budget is ended by it

    def remember(self, prior: PriorData) -> None:
        """Begin with prior data; for policies that take them (`takes_prior`)."""
        raise NotImplementedError

    def log_evidence(self) -> FloatArray | None:
        """Return for each plan the log of the proved evidence that it is no better than the leader, or None.

        A plan is ruled out at log(1/delta). The entry of the leader itself has no meaning.
        """
        return None

    @property
    def has_final_batch(self) -> bool:
        """Whether the run can end with a final batch."""
        return False

    def call_final_batch(self, n: int, *, gaussian: bool) -> None:
        """Make these n measurements the last; with `gaussian` their noise is known to be Gaussian.

        The final batch is settled by itself, as a test, and proves more than bets do. A batch that has been
        begun is finished first, from the same n. Then the run stops, with a plan if one is proved.
        """
        raise NotImplementedError

    def state(self) -> dict[str, Any] | None:
        """Return everything that a fresh run of the same policy on the same problem needs to become this one.

        It is arrays, numbers, text, None, and lists and dictionaries (with text as keys) of them, kept beside
        a session's log, which is then opened without a replay; None where a replay is needed. It may share
        arrays with the run: the caller writes it down at once.
        """
        return None

    def restore(self, state: Mapping[str, Any]) -> None:
        """Become the run whose state this is; called on a fresh run, before anything else."""
        raise NotImplementedError
