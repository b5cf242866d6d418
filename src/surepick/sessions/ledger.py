"""What a session's log means: a fold of its events, with the run of the policy inside.

Every arm has a *tape*: its first, second, third measurement. A round asks for the next stretch of some tapes,
and is complete when all of it is told; in which order, by whom, and whether some of it was told early, makes
no difference to the run. That is why many workers may measure ahead of a policy that asks for one measurement
at a time: it reads the same tapes as it would alone.

Nothing here knows the store or the clock.
"""

from __future__ import annotations

import itertools
import math
from array import array
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from surepick.core.arrays import FloatArray, IntArray
from surepick.core.evidence import Evidence, Moments
from surepick.core.oracle_problem import AnyProblem, Best, OracleProblem
from surepick.core.pilot import Begun, Pilot, begin, hand_over, standing_after
from surepick.core.policy import Answer, Onlooker, Policy, Run, Standing, Stop, WeighingRun, recalling, start
from surepick.errors import SessionError
from surepick.policies import policy_named
from surepick.sessions import codec
from surepick.sessions.history import Sample, Trace
from surepick.sessions.snapshot import from_json, restore_run, run_to_json, to_json
from surepick.simulation.outcome import Status
from surepick.simulation.seeds import round_rng

# Sessions begun before other policies could take in a pilot, and any of them unasked measurements.
ONCE_RECALLING = ("CombGapE", "Uniform")
RECENT = 256  # rounds whose arms are remembered, to guess what will be asked next
RECENT_TELLS = 64  # whose workers are remembered, to know how many there are

Body = dict[str, Any]
Places = range | tuple[int, ...]


class Slot(NamedTuple):
    """One place on an arm's tape: its first measurement is at place 0."""

    arm: int
    place: int


class Decision(NamedTuple):
    """An event that the ledger wants to have recorded before anybody acts on it."""

    kind: str
    body: Body
    key: str


@dataclass(frozen=True)
class Setup:
    """What a session was created with, or extended to."""

    problem: AnyProblem
    policy: Policy
    seed: int
    budget: int | None
    pilot: Pilot | None  # None: the noise scale is known
    recalls: bool = True  # False in sessions begun by a surepick that counted no unasked measurements

    def to_json(self) -> Body:
        """As JSON values."""
        return {
            "format": codec.FORMAT,
            "problem": codec.problem_to_json(self.problem),
            "policy": codec.policy_to_json(self.policy),
            "seed": self.seed,
            "budget": self.budget,
            "pilot": None if self.pilot is None else self.pilot.to_json(),
            "recalls": self.recalls,
        }

    @classmethod
    def from_json(cls, body: Mapping[str, Any], oracle: Best | OracleProblem | None = None) -> Setup:
        """The setup that these JSON values describe; a function that they do not hold comes as `oracle`."""
        _check_version(body["policy"])
        pilot = body["pilot"]
        return cls(
            codec.problem_from_json(body["problem"], oracle),
            codec.policy_from_json(body["policy"]),
            body["seed"],
            body["budget"],
            None if pilot is None else Pilot.from_json(pilot),
            body.get("recalls", False),
        )


def _check_version(kept: Mapping[str, Any]) -> None:
    current = policy_named(kept["name"]).version
    if kept["version"] != current:
        raise SessionError(
            f"this session was begun with {kept['name']} version {kept['version']}, and this surepick has "
            f"version {current}, which may decide otherwise; nothing was changed: go on with the surepick "
            "that began it, or export the measurements and import them into a new session"
        )


class Ledger:
    """The state of a session; it changes by `apply` and `decide` alone, in the order of the log."""

    def __init__(self, setup: Setup) -> None:
        self.n_told = 0
        self.n_recorded = 0
        self.surprises: list[int] = []  # rounds where the log decided otherwise than this machine would
        self.has_tapes = True
        self.recent_workers: deque[str] = deque(maxlen=RECENT_TELLS)
        self._tapes = [array("d") for _ in range(setup.problem.n_arms)]
        self._stock: list[dict[int, float]] = [{} for _ in range(setup.problem.n_arms)]
        self._last_told = [-1] * setup.problem.n_arms  # the largest place of each tape that is told
        # Places told as one mean: a round takes them as a whole, a run that starts over skips them.
        self._averaged: list[set[int]] = [set() for _ in range(setup.problem.n_arms)]
        self._skipped: list[set[int]] = [set() for _ in range(setup.problem.n_arms)]
        self.epoch = 0
        self._begin(setup)

    def _begin(self, setup: Setup) -> None:
        """Start a run at the beginning of the tapes."""
        n_arms = setup.problem.n_arms
        self.setup = setup
        self.problem = setup.problem  # with the noise scale, once it is known
        self.policy = setup.policy  # with the delta that is left after a pilot
        self.status: Status | None = None
        self.plan: Answer | None = None
        self.end_key = ""  # of the event that ended the session
        self.n_rounds = 0
        self._idle_rng = round_rng(setup.seed, 0)  # for policies that draw nothing
        self.evidence = Evidence.none(n_arms)
        self.n_used = 0
        self.n_counted = 0  # of the unasked measurements
        self._unasked: list[tuple[int, float]] = []  # to be counted when the open round is complete
        self.moments = Moments(n_arms)
        self.trace = Trace(n_arms)
        self.recent: deque[int] = deque(maxlen=RECENT)
        self._cursor = [0] * n_arms
        self._asked: dict[int, Places] | None = None  # the round that is open: places wanted on each tape
        # For each arm, where stretches of told places in the open round begin and end.
        self._stretch_ends: dict[int, dict[int, int]] = {}
        self._missing = 0
        self._run: Run | None = None
        if setup.pilot is None:
            self._run = start(self.policy, self.problem)

    # What it says

    @property
    def is_over(self) -> bool:
        """Whether the session has ended."""
        return self.status is not None

    @property
    def is_piloting(self) -> bool:
        """Whether the noise scale is still being learned."""
        return self._run is None

    @property
    def n_missing(self) -> int:
        """How many measurements of the open round are still to be told."""
        return self._missing

    @property
    def n_unused(self) -> int:
        """How many told measurements no round has used yet."""
        return sum(len(stock) for stock in self._stock)

    @property
    def n_ahead(self) -> int:
        """How many of them the open round has no use for either."""
        asked = sum(len(places) for places in (self._asked or {}).values())
        return self.n_unused - (asked - self._missing)

    @property
    def counts_unasked(self) -> bool:
        """Whether the policy's proof allows measurements that nobody asked for, so that they are counted."""
        run = self._run
        if run is None:  # any scale will do to see what kind of run it will be
            run = self._begun(np.ones(self.problem.n_arms)).run
        return self.setup.recalls and recalling(self.policy, run, unasked=True) is not None

    def standing(self) -> Standing:
        """Where the run stands."""
        if self._run is None:
            return Standing()
        return standing_after(self.setup.pilot, self.setup.policy.delta, self._run.standing())

    def log_evidence(self) -> FloatArray | None:
        """Log of the proved evidence against each plan as a rival of the lead, where the policy has it."""
        return self._run.log_evidence() if isinstance(self._run, WeighingRun) else None

    def is_told(self, slot: Slot) -> bool:
        """Whether this place already has its measurement."""
        arm, index = slot
        return index < self._cursor[arm] or index in self._stock[arm] or index in self._skipped[arm]

    def is_wanted(self, slot: Slot) -> bool:
        """Whether the open round waits for this place."""
        return slot.place in (self._asked or {}).get(slot.arm, ()) and not self.is_told(slot)

    def wanted(self) -> Iterator[Slot]:
        """The places that the open round waits for, by arm and index."""
        stretch_ends = self._stretch_ends  # of this round, also for who reads on when it is over
        for arm, places in (self._asked or {}).items():
            stock, ends, at = self._stock[arm], stretch_ends.setdefault(arm, {}), 0
            while at < len(places):
                begin = at
                while at < len(places) and places[at] in stock:
                    at = ends.get(at, at + 1)  # what is told stays told: not walked again
                if at > begin:
                    ends[begin] = at
                if at < len(places):
                    yield Slot(arm, places[at])
                    at += 1

    def n_wanted(self, slot: Slot) -> int:
        """How many measurements of its arm the open round still takes, from this place on, without a gap."""
        arm, first = slot
        places = (self._asked or {}).get(arm, ())
        if not isinstance(places, range):
            rest: Iterator[int] = itertools.takewhile(lambda place: place in places, itertools.count(first))
        else:  # a round may be long: beyond the last place that is told nothing is
            if first not in places:
                return 0
            if first > self._last_told[arm]:
                return places.stop - first
            rest = iter(range(first, places.stop))
        return sum(1 for _ in itertools.takewhile(lambda place: not self.is_told(Slot(arm, place)), rest))

    def ahead(self) -> Iterator[Slot]:
        """Places beyond the open round that may be wanted next, the likeliest first, without end.

        The guess is that each arm is followed by the arm that followed it the last time. A wrong guess costs
        a measurement that may never be used, and nothing else.
        """
        following: dict[int, Iterator[int]] = {}
        for arm in self._guesses():
            if arm not in following:
                following[arm] = itertools.count(self.end_of_round(arm))
            yield next(slot for i in following[arm] if not self.is_told(slot := Slot(arm, i)))

    def _guesses(self) -> Iterator[int]:
        arms = list(self.recent) or [0]
        after = dict(itertools.pairwise([*arms, arms[0]]))
        after.update(itertools.pairwise(arms))
        arm = arms[-1]
        while True:
            arm = after[arm]
            yield arm

    def round_key(self, n_rounds: int) -> str:
        """The key of the event that holds the decision after so many complete rounds."""
        return f"{self.epoch}:round:{n_rounds}"

    def first_place(self, arm: int) -> int:
        """The first place of this tape that no complete round has used."""
        return self._cursor[arm]

    def end_of_round(self, arm: int) -> int:
        """The first place of this tape that the open round does not want."""
        places = (self._asked or {}).get(arm)
        return self._cursor[arm] if not places else places[-1] + 1

    # How it changes

    def apply(self, kind: str, body: Body) -> None:
        """Take in the next event of the log."""
        change = _CHANGES.get(kind)
        if change is None:
            raise SessionError(
                f"the log has an event of kind {kind!r}, which this surepick does not know; upgrade surepick"
            )
        change(self, body)

    def decide(self) -> list[Decision]:
        """What the policy decides now that its round is complete; empty while it is not."""
        made = []
        while self._missing == 0 and self.status is None:
            decision = self._next()
            if decision is None:
                raise SessionError("this session was opened to look at, without its function; load it again")
            self._take(decision.kind, decision.body)
            made.append(decision)
        return made

    def _measured(self, body: Body) -> None:
        arm, count = body["arm"], body.get("count", 1)
        stock, wanted = self._stock[arm], (self._asked or {}).get(arm, ())
        self.recent_workers.append(body.get("worker", ""))
        for first, value in told_in(body):
            self._last_told[arm] = max(self._last_told[arm], first + count - 1)
            for place in range(first, first + count):
                stock[place] = value
                self._missing -= place in wanted
                self.n_told += 1
            if count > 1:
                self._averaged[arm].update(range(first, first + count))

    def _recorded(self, body: Body) -> None:
        self.n_recorded += 1
        if self.setup.recalls and not body.get("picked") and self.problem.relevant[body["arm"]]:
            self._unasked.append((body["arm"], body["value"]))

    def _no_change(self, body: Body) -> None:
        pass

    def _closed(self, body: Body) -> None:
        self.status, self.plan, self.end_key = Status.CLOSED, None, self.closing_key()

    def _extended(self, body: Body) -> None:
        policy = codec.policy_from_json(body["policy"])
        self.epoch += 1
        if policy != self.setup.policy:
            self._rewind()
            self._begin(replace(self.setup, policy=policy, budget=body["budget"]))
            return
        self.setup = replace(self.setup, budget=body["budget"])
        if self.status is not Status.CONFIDENT:
            self.status = None

    def _rewind(self) -> None:
        """Put everything that was told back on the tapes, for a run that starts at their beginning."""
        if not self.has_tapes:
            raise LostTapesError
        for arm, tape in enumerate(self._tapes):
            told = {index: value for index, value in enumerate(tape) if not math.isnan(value)}
            told.update(self._stock[arm])
            self._skipped[arm] |= self._averaged[arm]
            self._stock[arm] = {i: value for i, value in told.items() if i not in self._skipped[arm]}
            del tape[:]

    def _asked_or_stopped(self, kind: str, body: Body) -> None:
        """A decision of the log: the run decides too, to be in the same state, but the log is right."""
        if self.status is None and self._missing == 0:
            mine = self._next()
            if mine is not None and (mine.kind, mine.body) != (kind, body):
                self.surprises.append(self.n_rounds)
        self._take(kind, body)

    def _take(self, kind: str, body: Body) -> None:
        if kind == "stopped":
            self.status, self.plan, self._asked = Status(body["status"]), _as_answer(body["plan"]), None
            self.end_key = self._round_key()
            return
        self._asked = {arm: self._places(arm, count) for arm, count in body["counts"]}
        self._stretch_ends = {}
        told = (place in places for arm, places in self._asked.items() for place in self._stock[arm])
        self._missing = sum(map(len, self._asked.values())) - sum(told)
        self.recent.extend(self._asked)

    def _places(self, arm: int, count: int) -> Places:
        """The next places of this tape."""
        first, skipped = self._cursor[arm], self._skipped[arm]
        if not skipped:
            return range(first, first + count)
        return tuple(itertools.islice((i for i in itertools.count(first) if i not in skipped), count))

    def _next(self) -> Decision | None:
        """Hand the complete round to the run and let it decide; None when the run is an onlooker."""
        if self._asked is not None:
            self._absorb(self._asked)
            self._asked = None
        self._recall()
        key = self._round_key()
        if self._run is None:
            assert self.setup.pilot is not None
            counts = self.setup.pilot.counts(self.problem)
            return Decision("asked", {"pilot": True, "counts": _sparse(counts)}, f"{self.epoch}:pilot")
        if isinstance(self._run, Onlooker):
            return None
        rng = round_rng(self.setup.seed, self.n_rounds) if self.policy.randomized else self._idle_rng
        decision = self._run.decide(rng)
        if self.trace.wants(self.n_rounds):
            self.trace.add(Sample(self.n_rounds, self.standing(), self.evidence))
        if isinstance(decision, Stop):
            plan = list(decision.plan) if isinstance(decision.plan, tuple) else decision.plan
            return Decision("stopped", {"status": str(Status.CONFIDENT), "plan": plan}, key)
        if self.setup.budget is not None and self.n_used + int(decision.counts.sum()) > self.setup.budget:
            return Decision("stopped", {"status": str(Status.BUDGET_SPENT), "plan": None}, key)
        return Decision("asked", {"round": self.n_rounds, "counts": _sparse(decision.counts)}, key)

    def _round_key(self) -> str:
        return self.round_key(self.n_rounds)

    def closing_key(self) -> str:
        """The key for an event that closes the session now."""
        return f"{self.epoch}:closed"

    def _absorb(self, asked: dict[int, Places]) -> None:
        """Move the complete round from the stock to the run."""
        counts, sums = np.zeros(len(self._cursor), dtype=np.int64), np.zeros(len(self._cursor))
        for arm, places in asked.items():
            values = [self._stock[arm].pop(index) for index in places]
            counts[arm], sums[arm] = len(values), math.fsum(values)
            self._keep(arm, places, values)
            self._cursor[arm] = places[-1] + 1
            self.n_used += len(values)
        self.evidence = self.evidence + Evidence(counts, sums)
        if self._run is None:
            self._end_pilot(counts, sums)
        else:
            self._run.absorb(counts, sums)
            self.n_rounds += 1

    def _recall(self) -> None:
        """Count what was recorded unasked since the last round, if the policy's proof allows it.

        Only now: whoever recorded it may have seen the measurements of the round that has just been absorbed.
        """
        run = recalling(self.policy, self._run, unasked=True) if self._unasked else None
        if run is None:
            return
        counts, sums = np.zeros(len(self._cursor), dtype=np.int64), np.zeros(len(self._cursor))
        for arm, value in self._unasked:
            counts[arm] += 1
            sums[arm] += value
            self.moments.add(arm, value)
        run.recall(counts, sums)
        self.evidence = self.evidence + Evidence(counts, sums)
        self.n_used += len(self._unasked)
        self.n_counted += len(self._unasked)
        self._unasked = []

    def _keep(self, arm: int, places: Places, values: list[float]) -> None:
        """Remember what was used: its spread, and the values for a run that may start over."""
        averaged = self._averaged[arm]
        for index, value in zip(places, values, strict=True):
            if index not in averaged:
                self.moments.add(arm, value)
        if not self.has_tapes:
            return
        tape = self._tapes[arm]
        for index, value in zip(places, values, strict=True):
            tape.extend(itertools.repeat(math.nan, index - len(tape)))
            tape.append(math.nan if index in averaged else value)

    def _end_pilot(self, counts: IntArray, sums: FloatArray) -> None:
        pilot = self.setup.pilot
        assert pilot is not None
        scale = pilot.scale_bound(self.moments.variances(), self.problem, self.setup.policy.delta)
        begun = self._start(scale)
        if self.setup.recalls:
            hand_over(begun, Evidence(counts, sums))
        elif begun.policy.name in ONCE_RECALLING:
            begun.run.absorb(counts, sums)

    def _start(self, scale: FloatArray) -> Begun:
        """Start the run on the problem with the scale that the pilot found."""
        begun = self._begun(scale)
        self.problem, self.policy, self._run = begun
        return begun

    def _begun(self, scale: FloatArray) -> Begun:
        assert self.setup.pilot is not None
        return begin(self.setup.problem, self.setup.policy, self.setup.pilot, scale)

    # How it is kept

    def to_json(self) -> Body | None:
        """All of it but the tapes, or None when the run's state cannot be kept."""
        run = None
        if self._run is not None:
            run = run_to_json(self._run)
            if run is None:
                return None
        scale = None if self.setup.pilot is None or self._run is None else self.problem.noise_scale
        return {
            **{name: getattr(self, name) for name in _PLAIN},
            "plan": list(self.plan) if isinstance(self.plan, tuple) else self.plan,
            "policy": codec.policy_to_json(self.setup.policy),
            "budget": self.setup.budget,
            "status": self.status,
            "counts": self.evidence.counts.tolist(),
            "sums": self.evidence.sums.tolist(),
            "moments": self.moments.to_json(),
            "trace": self.trace.to_json(),
            "recent": list(self.recent),
            "stock": [to_json([_whole(stock), np.array(list(stock.values()))]) for stock in self._stock],
            "averaged": [to_json(_whole(self._ahead_of(arm, of))) for arm, of in enumerate(self._averaged)],
            "skipped": [to_json(_whole(self._ahead_of(arm, of))) for arm, of in enumerate(self._skipped)],
            "asked": None if self._asked is None else [_kept_places(*item) for item in self._asked.items()],
            "scale": None if scale is None else scale.tolist(),
            "unasked": self._unasked,
            "run": run,
        }

    def _ahead_of(self, arm: int, places: Iterable[int]) -> list[int]:
        """The places that no round has used yet: of the others nothing is asked without the tapes."""
        return sorted(place for place in places if place >= self._cursor[arm])

    @classmethod
    def from_json(cls, setup: Setup, body: Body) -> Ledger:
        """The ledger that was kept, for a session that was created with this setup."""
        policy = codec.policy_from_json(body["policy"])
        ledger = cls(replace(setup, policy=policy, budget=body["budget"]))
        for name in _PLAIN:
            setattr(ledger, name, body[name])
        ledger.plan = _as_answer(body["plan"])
        ledger.has_tapes = False
        ledger.status = None if body["status"] is None else Status(body["status"])
        ledger.evidence = Evidence(np.array(body["counts"], dtype=np.int64), np.array(body["sums"]))
        ledger.moments = Moments.from_json(body["moments"])
        ledger.trace = Trace.from_json(setup.problem.n_arms, body.get("trace"))
        ledger.recent.extend(body["recent"])
        stocks = [[part.tolist() for part in from_json(stock)] for stock in body["stock"]]
        ledger._stock = [dict(zip(places, values, strict=True)) for places, values in stocks]
        ledger._averaged = [set(from_json(places).tolist()) for places in body["averaged"]]
        ledger._skipped = [set(from_json(places).tolist()) for places in body["skipped"]]
        ledger._unasked = [(arm, value) for arm, value in body["unasked"]]
        if body["asked"] is not None:
            ledger._asked = {arm: _places_kept(kept) for arm, *kept in body["asked"]}
        if body["scale"] is not None:
            ledger._start(np.array(body["scale"]))
        if body["run"] is not None:
            assert ledger._run is not None
            restore_run(ledger._run, body["run"])
        return ledger


_PLAIN = (
    "end_key",
    "n_told",
    "n_recorded",
    "n_rounds",
    "n_used",
    "n_counted",
    "epoch",
    "surprises",
    "_cursor",
    "_last_told",
    "_missing",
)


def _as_answer(plan: int | list[float] | None) -> Answer | None:
    return tuple(plan) if isinstance(plan, list) else plan


class LostTapesError(Exception):
    """A run has to start over, and the ledger came from a snapshot: fold the log from its beginning."""


def told_in(body: Body) -> Iterator[tuple[int, float]]:
    """The places of the tape and the values of an event that tells some."""
    if "values" in body:
        yield from zip(body["places"], body["values"], strict=True)
    else:
        yield body["index"], body["value"]


def _sparse(counts: IntArray) -> list[list[int]]:
    return [[arm, count] for arm, count in enumerate(counts.tolist()) if count]


def _whole(places: Iterable[int]) -> IntArray:
    return np.fromiter(places, dtype=np.int64)


def _kept_places(arm: int, places: Places) -> list[Any]:
    """The places of a round for a snapshot: a round of a long session has too many to be listed."""
    return [arm, places.start, places.stop] if isinstance(places, range) else [arm, list(places)]


def _places_kept(kept: list[Any]) -> Places:
    return tuple(kept[0]) if len(kept) == 1 else range(*kept)


_CHANGES: dict[str, Callable[[Ledger, Body], None]] = {
    "asked": lambda ledger, body: ledger._asked_or_stopped("asked", body),
    "stopped": lambda ledger, body: ledger._asked_or_stopped("stopped", body),
    "measured": Ledger._measured,
    "recorded": Ledger._recorded,
    "withdrawn": Ledger._no_change,
    "noted": Ledger._no_change,
    "extended": Ledger._extended,
    "closed": Ledger._closed,
}
