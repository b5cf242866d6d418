"""Sessions: real measurements by many workers, kept in a store, decided as a simulation would.

A session is where the kernel and the store meet. The log is the truth, the `Ledger` is its fold, a `Replica`
keeps them together, and every method is: catch up with the log, change the ledger, append what changed in one
transaction.
"""

from __future__ import annotations

import bisect
import enum
import itertools
import json
import math
import time
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from surepick._version import __version__
from surepick.core.arrays import outside
from surepick.core.layout import Layout
from surepick.core.oracle_problem import AnyProblem, Best, OracleProblem, absent
from surepick.core.pilot import Pilot, pilot_for
from surepick.core.policy import Policy, Standing
from surepick.core.problem import Problem
from surepick.core.promise import Promise
from surepick.errors import DamageError, ParameterError, SessionError
from surepick.sessions import codec
from surepick.sessions.certificate import Certificate, Verdict, certify, verify
from surepick.sessions.leasing import AHEAD, HandingOut, slot_of, token_of
from surepick.sessions.ledger import Body, Ledger, Setup, Slot, told_in
from surepick.sessions.replica import Change, LostRaceError, Replica, drafts_of
from surepick.simulation.outcome import Outcome, Status
from surepick.store import START, Draft, Event, Head, Lease, Store, open_store

LEASE = 3600.0  # seconds a worker has for a measurement before somebody else may get it
FIRST_WAIT, LONGEST_WAIT = 0.002, 0.5  # seconds between two looks for a free token


@dataclass(frozen=True)
class Request:
    """A measurement that a worker should make: of this arm, told under this token.

    `wanted` is how many measurements of the arm the policy waits for from this token on, for those who can
    make several at once; 0 means that it is made ahead, to keep a worker busy.
    """

    token: str
    arm: int
    arm_name: str
    wanted: int
    worker: str
    expires: float  # seconds since 1970, UTC


class Receipt(enum.StrEnum):
    """What became of a told value."""

    ACCEPTED = "accepted"
    REPEATED = "repeated"  # it was told before with the same value; nothing changed
    LATE = "late"  # another worker told this token first; noted in the log, not counted


@dataclass(frozen=True)
class Measurement:
    """A measurement as it was told; `token` is None for one that nobody asked for.

    `picked` says of such a one that it was chosen after looking, and is not counted for that.
    """

    arm: int
    arm_name: str
    value: float
    count: int  # of how many measurements `value` is the mean
    time: float
    token: str | None
    worker: str
    picked: bool = False


class Session:
    """A problem, a policy and every measurement, in a store; any number of them may share one log.

    A session changes by its methods, and by what other processes write: every method looks first.

    >>> import surepick as sp
    >>> problem = sp.Problem([[1, 0], [0, 1]], arm_names=["road", "rail"])
    >>> session = sp.Session.create("memory://", problem, sp.CombGapE(delta=0.05), name="trips")
    >>> hours = {"road": 1.0, "rail": 9.0}
    >>> while requests := session.ask():
    ...     for request in requests:
    ...         _ = session.tell(request, hours[request.arm_name])
    >>> session.outcome.plan_name, session.outcome.status
    ('plan 1', <Status.CONFIDENT: 'confident'>)
    """

    def __init__(
        self,
        store: Store,
        name: str,
        *,
        oracle: Best | OracleProblem | None = None,
        read_only: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.store = store
        self.name = name
        self.read_only = read_only
        self._clock = clock
        self._created = self._first_event()
        body = json.loads(self._created.body)
        self.lease: float = body["lease"]
        if read_only and oracle is None and codec.needs_function(body["problem"]):
            oracle = absent
        self._setup = Setup.from_json(body, oracle)
        self.layout = Layout.from_json(body.get("layout"))  # how to draw a plan, if that is known
        self._replica = Replica(store, name, self._setup, self._created, clock)
        self._handing_out = HandingOut(store, name, self._replica, self.lease, clock)

    @classmethod
    def create(
        cls,
        store: str | Store,
        problem: AnyProblem,
        policy: Policy,
        *,
        name: str,
        seed: int = 0,
        budget: int | None = None,
        lease: float = LEASE,
        pilot: Pilot | None = None,
        clock: Callable[[], float] = time.time,
    ) -> Session:
        """Begin a session in this store.

        A problem with `noise_scale=None` begins with a pilot (`Pilot()` unless given). `lease` is how many
        seconds a worker has before its token is handed out again. Of an `OracleProblem` around a function of
        your own all is kept but the function, so `load` needs it again.
        """
        if not isinstance(problem, Problem | OracleProblem):
            raise ParameterError(
                f"a session needs a Problem or an OracleProblem, got {type(problem).__name__}"
            )
        if not name.strip():
            raise ParameterError(f"a session needs a name, got {name!r}", field="name")
        if budget is not None and budget < 1:
            raise ParameterError(
                f"budget is a number of measurements, 1 or more, got {budget!r}", field="budget"
            )
        if not lease > 0:
            raise ParameterError(f"lease is a number of seconds, more than 0, got {lease!r}", field="lease")
        setup = Setup(problem, policy, seed, budget, pilot_for(problem, pilot, budget))
        body = {**setup.to_json(), "lease": lease, "surepick": __version__}
        if problem.layout is not None:
            body["layout"] = problem.layout.to_json()
        created = Draft("created", codec.dumps(body), clock())
        place = _as_store(store, create=True)
        place.create(name, [created, *drafts_of(Ledger(setup).decide(), clock())])
        return cls(place, name, oracle=_oracle_of(problem), clock=clock)

    @classmethod
    def load(
        cls,
        store: str | Store,
        name: str | None = None,
        *,
        best: Best | None = None,
        problem: OracleProblem | None = None,
        read_only: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> Session:
        """Open a session of this store again; its name may be left out when there is only one.

        Plans that are known by a function of your own need it again, as `best`, or the whole problem as
        `problem`; one that answers otherwise than the first is refused. With `read_only=True` a session can
        be looked at without it, and nothing can be changed.
        """
        if best is not None and problem is not None:
            raise ParameterError("give either best or problem, not both: the problem has its function")
        place = _as_store(store, create=False)
        oracle = best if problem is None else problem
        chosen = only_session(place) if name is None else name
        return cls(place, chosen, oracle=oracle, read_only=read_only, clock=clock)

    # What it is

    @property
    def problem(self) -> AnyProblem:
        """The problem; its noise scale is the bound from the pilot, once there was one."""
        return self._ledger.problem

    @property
    def given_problem(self) -> AnyProblem:
        """The problem as it was given, with an unknown noise scale still unknown."""
        return self._setup.problem

    @property
    def policy(self) -> Policy:
        """The policy as it was chosen or extended."""
        return self._ledger.setup.policy

    @property
    def seed(self) -> int:
        """The seed of the policy's own randomness."""
        return self._ledger.setup.seed

    @property
    def budget(self) -> int | None:
        """How many measurements the policy may use, if there is a limit."""
        return self._ledger.setup.budget

    @property
    def pilot(self) -> Pilot | None:
        """How the noise scale is learned, or None when it was given."""
        return self._ledger.setup.pilot

    @property
    def status(self) -> Status | None:
        """Why the session ended, or None while it runs."""
        return self.ledger().status

    @property
    def fingerprint(self) -> Head:
        """Number of events and fingerprint of the log, as far as it was read."""
        return self._replica.head

    @property
    def created_at(self) -> float:
        """When it was created, in seconds since 1970, UTC."""
        return self._created.time

    @property
    def outcome(self) -> Outcome | None:
        """How the session ended, or None while it runs."""
        ledger = self.ledger()
        if ledger.status is None:
            return None
        standing = ledger.standing()
        lead = standing.lead if ledger.plan is None else ledger.plan
        return Outcome(
            plan=ledger.plan,
            plan_name=ledger.problem.name_of(ledger.plan),
            status=ledger.status,
            lead=lead,
            lead_name=ledger.problem.name_of(lead),
            n_measurements=ledger.n_used,
            n_rounds=ledger.n_rounds,
            cost=float(ledger.evidence.counts @ ledger.problem.costs),
            counts=ledger.evidence.counts,
            means=ledger.evidence.means,
            standing=standing,
            policy=self.policy,
            guarantee=Promise.of(self.policy, self._setup.problem).text,
            seed=self.seed,
            seconds=self._clock() - self.created_at,
            noise_scale=ledger.problem.noise_scale,
            n_pilot=0 if self.pilot is None else int(self.pilot.counts(ledger.problem).sum()),
        )

    def ledger(self) -> Ledger:
        """The state of the session now, others' measurements included; to look at, not to change."""
        self._replica.catch_up()
        return self._ledger

    def standing(self) -> Standing:
        """The lead, its closest rival and how far apart they are."""
        return self.ledger().standing()

    def events(self, *, after: int = 0) -> Iterator[Event]:
        """The log, from its beginning or after this position; late pages cost no more than early ones."""
        events = self.store.read(self.name, after=self._known_head(after))
        return (event for event in events if event.position > after)

    def measurements(self) -> Iterator[Measurement]:
        """Everything that was told or recorded, in its order."""
        names = self._setup.problem.arm_names
        for event in self.events():
            if event.kind in ("measured", "recorded"):
                body = json.loads(event.body)
                arm, worker, count = body["arm"], body.get("worker", ""), body.get("count", 1)
                told = told_in(body) if event.kind == "measured" else [(None, body["value"])]
                for place, value in told:
                    token = None if place is None else token_of(Slot(arm, place))
                    picked = bool(body.get("picked", False))
                    yield Measurement(arm, names[arm], value, count, event.time, token, worker, picked)

    # What workers do

    def ask(self, n: int = 1, *, worker: str | None = None, wait: bool = True) -> list[Request]:
        """Up to n measurements to make now; empty when the session has ended.

        Asking again gives the same tokens until something is told. Workers who share a session need names of
        their own: a token is one worker's until its lease ends. When the policy waits for fewer measurements
        than there are workers, the others measure ahead (never more than 64); when there is nothing left to
        hand out, this waits, or with `wait=False` returns an empty list.
        """
        if not hasattr(n, "__index__") or n < 1:
            raise ParameterError(f"ask for a whole number of measurements, 1 or more, got n={n!r}")
        self._refuse_read_only()
        pause = FIRST_WAIT
        while True:
            held = self._handing_out.claim(n, worker or "")
            requests = [self._request(slot_of(lease.token), lease.worker, lease.expires) for lease in held]
            if requests or not wait or self._ledger.is_over:
                return requests
            time.sleep(pause)
            pause = min(1.5 * pause, LONGEST_WAIT)

    def pending(self) -> list[Request]:
        """What the open round waits for, whoever holds it; nothing is leased by looking."""
        self._replica.catch_up()
        held = {lease.token: lease for lease in self.store.leases(self.name)}
        requests = []
        for slot in self._ledger.wanted():
            lease = held.get(token_of(slot), Lease("", "", 0.0))
            requests.append(self._request(slot, lease.worker, lease.expires))
        return requests

    def leases(self) -> list[Lease]:
        """Who is measuring what, and until when; leases that ended without a value are among them."""
        self._replica.catch_up()
        return [
            lease for lease in self.store.leases(self.name) if not self._ledger.is_told(slot_of(lease.token))
        ]

    def decision(self, n_rounds: int) -> Event | None:
        """The event with the decision after so many complete rounds, if there is one."""
        return self.store.find(self.name, self._ledger.round_key(n_rounds))

    def now(self) -> float:
        """The time by the session's clock, in seconds since 1970, UTC."""
        return self._clock()

    def is_told(self, token: str) -> bool:
        """Whether this token has its measurement."""
        return self.ledger().is_told(self._slot(token))

    def takes(self, token: str) -> bool:
        """Whether a value for this token can be told now: it is asked for, told already, or not far ahead."""
        slot = self._slot(token)
        self._replica.catch_up()
        return slot.place < self._ledger.end_of_round(slot.arm) + AHEAD

    def tell(
        self,
        token: str | Request,
        value: float | Sequence[float] | None = None,
        *,
        mean: float | None = None,
        count: int | None = None,
        worker: str | None = None,
    ) -> Receipt:
        """Record what was measured: one value, several, or the mean of `count` of them.

        It is on disk when this returns. Telling the same again is harmless; another value for a token that
        this worker already told is refused. When another worker told the token first (a lease had ended),
        the value is noted and not counted.
        """
        if isinstance(token, Request):
            worker = token.worker if worker is None else worker
            token = token.token
        self._replica.settle()
        slot = self._slot(token)
        body = self._body(slot, value, mean, count, worker or "")
        self._refuse_unasked(slot, token)
        try:
            if not self._ledger.is_told(slot):
                self._commit(lambda: self._measured(slot, body))
                return Receipt.ACCEPTED
        except LostRaceError:
            pass
        return self._told_before(slot, body)

    def withdraw(self, token: str | Request, reason: str = "") -> None:
        """Give a token back unmeasured; it will be handed out again, and counts as nothing."""
        token = token.token if isinstance(token, Request) else token
        self._replica.settle()
        slot = self._slot(token)
        if self._ledger.is_told(slot):
            raise SessionError(
                f"token {token!r} was told already and cannot be withdrawn; nothing was changed"
            )
        self._refuse_unasked(slot, token)
        body = {"arm": slot.arm, "index": slot.place, "reason": reason}
        self._commit(lambda: Change([self._draft("withdrawn", body)], [token]))
        self._handing_out.forget(token)

    def record(
        self, arm: int | str, value: float, *, note: str = "", picked: bool = False, key: str = ""
    ) -> Receipt:
        """Keep a measurement that nobody asked for; it is counted if the policy's proof allows it.

        This assumes that it was made and recorded whatever it showed, and not because of measurements that
        the policy has not read yet. Say `picked=True` of one that was chosen after looking: it is shown and
        exported, and never counted. It is counted when the open round is complete.

        With a `key` of your own (the number of a protocol, a row of a sheet) it is kept once however often it
        is recorded, so that repeating after an error is harmless.
        """
        index = self._arm(arm)
        body = {"arm": index, "value": self._number(value, index), "note": note}
        if picked:
            body["picked"] = True
        name = f"recorded:{key}" if key else None
        try:
            self._commit(lambda: self._recorded(name, body))
        except LostRaceError:
            return Receipt.REPEATED
        return Receipt.ACCEPTED

    @property
    def counts_unasked(self) -> bool:
        """Whether the policy counts measurements that nobody asked for."""
        return self.ledger().counts_unasked

    def note(self, text: str) -> None:
        """Write a remark into the log."""
        self._commit(lambda: Change([self._draft("noted", {"text": text})]))

    def extend(
        self, *, delta: float | None = None, epsilon: float | None = None, budget: int | None = None
    ) -> None:
        """Go on with a smaller delta or epsilon, or with a larger budget.

        With another delta or epsilon the policy starts over and reads the measurements from the beginning,
        exactly as if it had been asked for them from the start; it only waits for those that are missing.
        """
        changes = {
            name: value for name, value in (("delta", delta), ("epsilon", epsilon)) if value is not None
        }
        if not changes and budget is None:
            raise ParameterError("extend needs a smaller delta, a smaller epsilon or a larger budget")
        self._replica.catch_up()
        policy = _tightened(self.policy, changes)
        if budget is not None and self.budget is not None and budget < self.budget:
            raise ParameterError(f"the budget is {self.budget} and can only grow, got {budget}")
        body = {"policy": codec.policy_to_json(policy), "budget": self.budget if budget is None else budget}
        self._commit(lambda: Change([self._draft("extended", body)]), quick=False)

    def close(self, reason: str = "") -> None:
        """End the session by hand; it stays readable, and `extend` lets it go on."""
        self._replica.catch_up()
        if not self._ledger.is_over:
            key = self._ledger.closing_key()
            self._commit(lambda: Change([self._draft("closed", {"reason": reason}, key)]), quick=False)

    def certificate(self) -> Certificate:
        """What the session found and what it rests on, for anybody to check with `verify`."""
        ledger = self.ledger()
        if not ledger.is_over:
            raise SessionError(
                f"session {self.name!r} is still running, so there is nothing to certify; ask and tell until "
                "it stops, or close it"
            )
        end = self.store.find(self.name, ledger.end_key)
        if end is None:
            raise DamageError(f"session {self.name!r} lacks the event that ended it; run `surepick doctor`")
        return certify(self.name, ledger, end)

    def verify(self, certificate: Mapping[str, Any] | None = None) -> Verdict:
        """Replay the log from its first event and say whether it, and a certificate if given, hold."""
        return verify(self.store, self.name, certificate, oracle=_oracle_of(self.given_problem))

    # How it does it

    @property
    def _ledger(self) -> Ledger:
        """The state of the session at the last look."""
        return self._replica.ledger

    def _commit(self, make: Callable[[], Change], *, quick: bool = True) -> None:
        self._refuse_read_only()
        self._replica.commit(make, quick=quick)

    def _first_event(self) -> Event:
        for event in self.store.read(self.name, limit=1):
            return event
        raise DamageError(f"the log of session {self.name!r} is empty; run `surepick doctor`")

    def _known_head(self, position: int) -> Head:
        """Where the log ended at the last decision up to this position, found by the keys of rounds."""

        def decided(n_rounds: int) -> int:
            event = self.decision(n_rounds)
            return position + 1 if event is None else event.position

        n_before = bisect.bisect_right(range(self._ledger.n_rounds + 1), position, key=decided)
        event = self.decision(n_before - 1) if n_before else None
        return START if event is None else event.head

    def _refuse_read_only(self) -> None:
        if self.read_only:
            raise SessionError(
                f"session {self.name!r} was opened to be looked at, so nothing was changed; load it without "
                "read_only to go on with it"
            )

    def _request(self, slot: Slot, worker: str, until: float) -> Request:
        name = self._setup.problem.arm_names[slot.arm]
        return Request(token_of(slot), slot.arm, name, self._ledger.n_wanted(slot), worker, until)

    def _measured(self, slot: Slot, body: Body) -> Change:
        """The event of a told token; places for several values are chosen now that nobody else can."""
        if self._ledger.is_told(slot):
            raise LostRaceError
        if self._ledger.is_over:
            body = {**body, "after_end": True}
        count, n_places = body.get("count", 1), len(body.get("values", ()))
        if count > 1:
            self._refuse_long_mean(slot, count)
        filled: Container[int] = range(slot.place, slot.place + count)
        release = [token_of(slot)]
        if n_places or count > 1:
            leases = self.store.leases(self.name)
            if n_places:
                places = self._following(slot, n_places, body.get("worker", ""), leases)
                body, filled = {**body, "places": places}, set(places)
            release = self._needless(leases, slot.arm, filled)
        return Change([self._draft("measured", body, f"told:{token_of(slot)}")], release)

    def _following(self, slot: Slot, count: int, worker: str, leases: Iterable[Lease]) -> list[int]:
        """This place and the next ones of the tape that are not told and not another worker's."""
        now = self._clock()
        others = {lease.token for lease in leases if lease.expires > now and lease.worker != worker}
        rest = (Slot(slot.arm, place) for place in itertools.count(slot.place + 1))
        free = (s.place for s in rest if not self._ledger.is_told(s) and token_of(s) not in others)
        return [slot.place, *itertools.islice(free, count - 1)]

    def _needless(self, leases: Iterable[Lease], arm: int, filled: Container[int]) -> list[str]:
        """The tokens of leases on these places of an arm, and of any that were told before."""
        slots = (slot_of(lease.token) for lease in leases)
        return [
            token_of(slot)
            for slot in slots
            if (slot.arm == arm and slot.place in filled) or self._ledger.is_told(slot)
        ]

    def _refuse_long_mean(self, slot: Slot, count: int) -> None:
        if self._ledger.is_piloting:
            raise SessionError(
                "the noise scale is being learned from single measurements; tell the values, not their mean"
            )
        wanted = self._ledger.n_wanted(slot)
        if count > wanted:
            raise SessionError(
                f"token {token_of(slot)!r} takes the mean of at most {wanted} measurements (`wanted`), "
                f"got count={count}; tell the single values instead, of which any number may come at once"
            )

    def _recorded(self, key: str | None, body: Body) -> Change:
        """The measurement as an event, if there is none with its key; refused if that is of another one."""
        event = None if key is None else self.store.find(self.name, key)
        if event is None:
            return Change([self._draft("recorded", body, key)])
        kept: Body = json.loads(event.body)
        if (kept["arm"], kept["value"]) != (body["arm"], body["value"]):
            names = self.given_problem.arm_names
            raise SessionError(
                f"{event.key!r} is another measurement, {names[kept['arm']]!r} = {kept['value']:g}, got "
                f"{names[body['arm']]!r} = {body['value']:g}; the first one stays: give this one its own key"
            )
        raise LostRaceError

    def _told_before(self, slot: Slot, body: Body) -> Receipt:
        """What to say to a value for a token that has one: nothing new, too late, or a contradiction."""
        event = self.store.find(self.name, f"told:{token_of(slot)}")
        kept: Body = {"worker": None} if event is None else json.loads(event.body)
        if all(kept.get(name) == body.get(name) for name in ("value", "values", "count")):
            return Receipt.REPEATED
        if kept.get("worker", "") != body.get("worker", ""):
            self._commit(lambda: Change([self._draft("noted", {"late": body})], [token_of(slot)]))
            return Receipt.LATE
        raise SessionError(
            f"token {token_of(slot)!r} was told before with {kept.get('value', kept.get('values'))}, got "
            f"{body.get('value', body.get('values'))}; the first value stays. If several workers "
            "measure, each needs a name of its own: ask(worker=...)"
        )

    def _body(self, slot: Slot, value: Any, mean: float | None, count: int | None, worker: str) -> Body:
        """What was told, checked and as JSON values."""
        body: Body = {"arm": slot.arm, "index": slot.place, **({"worker": worker} if worker else {})}
        if (value is None) == (mean is None) or (mean is None) != (count is None):
            raise ParameterError("tell takes either a value (or several), or mean= together with count=")
        if mean is not None and count is not None:
            if count < 1:
                raise ParameterError(f"count is a number of measurements, 1 or more, got {count!r}")
            extra = {"count": int(count)} if count > 1 else {}
            return {**body, "value": self._number(mean, slot.arm), **extra}
        if not isinstance(value, Iterable) or isinstance(value, str):
            return {**body, "value": self._number(value, slot.arm)}
        values = [self._number(one, slot.arm) for one in value]
        if not values:
            raise ParameterError("tell takes at least one value, got none; to give a token back use withdraw")
        return {**body, "value": values[0]} if len(values) == 1 else {**body, "values": values}

    def _number(self, value: object, arm: int) -> float:
        name = self._setup.problem.arm_names[arm]
        try:
            number = float(value)  # type: ignore[arg-type]
        except (TypeError, ValueError, OverflowError):
            raise SessionError(f"the value of arm {arm} ({name!r}) must be a number, got {value!r}") from None
        if not math.isfinite(number):
            raise SessionError(
                f"the value of arm {arm} ({name!r}) must be finite, got {number}; repeat the measurement, or "
                "withdraw its token"
            )
        self._refuse_outside(number, arm)
        return number

    def _refuse_outside(self, value: float, arm: int) -> None:
        """Refuse a value, or a mean of several, that bounded measurements cannot give."""
        bounds = self._setup.problem.bounds
        if bounds is not None and outside(bounds, arm, value):
            name, (low, high) = self._setup.problem.arm_names[arm], bounds[arm].tolist()
            raise SessionError(
                f"the value of arm {arm} ({name!r}) must lie within its bounds, {low:g} to {high:g}, got "
                f"{value:g}; the guarantee rests on them, so if the value is right, begin again with wider "
                "bounds"
            )

    def _slot(self, token: str) -> Slot:
        """The place that this token stands for, if it can be one of this session."""
        try:
            slot = slot_of(token)
        except (AttributeError, ValueError):  # no text, or not such a one
            slot = Slot(-1, -1)
        if not (0 <= slot.arm < self._setup.problem.n_arms and slot.place >= 0):
            raise SessionError(
                f"{token!r} is not a token of session {self.name!r}; {_HOW_TOKENS_LOOK}", field="token"
            )
        return slot

    def _refuse_unasked(self, slot: Slot, token: str) -> None:
        if slot.place < self._ledger.end_of_round(slot.arm) + AHEAD:
            return
        self._replica.catch_up()
        if slot.place >= self._ledger.end_of_round(slot.arm) + AHEAD:
            raise SessionError(f"token {token!r} was never handed out; {_HOW_TOKENS_LOOK}", field="token")

    def _arm(self, arm: int | str) -> int:
        problem = self._setup.problem
        if isinstance(arm, str):
            return problem.arm(arm)
        if not 0 <= arm < problem.n_arms:
            raise SessionError(f"there is no arm {arm}; the session has arms 0 to {problem.n_arms - 1}")
        return int(arm)

    def _draft(self, kind: str, body: Body, key: str | None = None) -> Draft:
        return Draft(kind, codec.dumps(body), self._clock(), key)


_HOW_TOKENS_LOOK = "tokens are what `ask` gives, like 3.17 for the measurement 17 of arm 3"


def _oracle_of(problem: AnyProblem) -> OracleProblem | None:
    return problem if isinstance(problem, OracleProblem) and problem.has_oracle else None


def _as_store(store: str | Store, *, create: bool) -> Store:
    return open_store(store, create=create) if isinstance(store, str) else store


def only_session(store: Store) -> str:
    """The name of the session in this store, if it has only one."""
    names = store.names()
    if len(names) == 1:
        return names[0]
    found = "none" if not names else ", ".join(map(repr, names[:8])) + (" ..." if len(names) > 8 else "")
    raise SessionError(f"say which session of {store.place} is meant; it has {len(names)}: {found}")


def _tightened(policy: Policy, changes: dict[str, float]) -> Policy:
    for name, value in changes.items():
        now = getattr(policy, name, None)
        if now is None:
            raise ParameterError(f"policy {policy.name} has no {name}, so it cannot be made smaller")
        if value > now:
            raise ParameterError(f"{name} is {now} and can only be made smaller, got {value}")
    return cast(Policy, replace(cast(Any, policy), **changes))
