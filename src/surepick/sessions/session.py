"""Sessions: real measurements by many workers, kept in a store, decided as a simulation would.

A session is where the policies and the store meet. The log is the truth, the `Ledger` is its fold, a
`Replica` keeps them together. `Leasing` hands out tokens, `Telling` takes measurements in. Whatever changes
the session catches up with the log, makes an event from the ledger, and appends it in one transaction.

Longer than other files: all that a user calls stands in one class, most of it as documentation.
"""

from __future__ import annotations

import bisect
import json
import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Unpack

from surepick.core.layout import Layout
from surepick.core.oracle_problem import AnyProblem, Best, OracleProblem, absent
from surepick.core.pilot import Pilot, check_gaussian
from surepick.core.policy import Policy, Standing
from surepick.core.ranging import named_ranging
from surepick.errors import DamageError, NameTakenError, ParameterError, SessionError
from surepick.sessions import codec
from surepick.sessions.certificate import Certificate, certify, promised
from surepick.sessions.heartbeat import Heartbeat, Hold
from surepick.sessions.leasing import Leasing, leased
from surepick.sessions.ledger import Ledger, NewEvent
from surepick.sessions.plausible import doubt
from surepick.sessions.replica import Change, Replica, drafts_of, making_sense_of
from surepick.sessions.requests import Measurement, Receipt, Request, Token, measurements_in
from surepick.sessions.settings import LEASE, NewSession, Settings, Setup, check_last_call, refuse_other
from surepick.sessions.showing import Shown
from surepick.sessions.telling import Telling, takes, told_key
from surepick.sessions.verify import Verdict, verify
from surepick.simulation.outcome import Outcome, Status
from surepick.store import START, Event, Head, Lease, Store, open_store

FIRST_WAIT, LONGEST_WAIT = 0.002, 0.5  # seconds between two looks for a free token


class Session(Shown):
    """A problem, a policy and every measurement, in a store; any number of them may share one log.

    A session changes by its methods, and by what other processes write: every method looks first. Threads may
    share one. Its methods are those that the documentation promises, more than a class should have; what they
    do is done in `leasing`, `telling` and `replica`.

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
        self._clock = in_seconds(clock)
        self._lock = threading.RLock()  # held by the thread that uses the ledger or changes it
        self._created = self._first_event()
        with making_sense_of(lambda: self._created, name):
            body = json.loads(self._created.body)
            self.lease: float = body["lease"]
            if read_only and oracle is None and codec.needs_function(body["problem"]):
                oracle = absent
            self._setup = Setup.from_json(body, oracle)
            self.layout = Layout.from_json(body.get("layout"))  # how to draw a plan, if that is known
        self._replica = Replica(store, name, self._setup, self._created, self._clock)
        self._leasing = Leasing(self._replica, self.lease)
        self._telling = Telling(self._replica)
        self._heartbeat = Heartbeat(store, name, self._clock)

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
        new = NewSession(problem, policy, name, seed, budget, lease, pilot)
        events = [NewEvent("created", new.to_json()), *Ledger(new.setup).decide()]
        place = _as_store(store, create=True)
        place.create(name, drafts_of(events, in_seconds(clock)()))
        return cls(place, name, oracle=_oracle_of(problem), clock=clock)

    @classmethod
    def open(
        cls, store: str | Store, problem: AnyProblem, policy: Policy, **settings: Unpack[Settings]
    ) -> Session:
        """The session of this name about this problem, or a new one where there is none.

        The settings are those of `create`. A session of this name that is about another problem, or was begun
        with another policy, seed, budget or pilot than given here, is refused; so a program that is started
        again goes on where it was, and never mixes two decisions.
        """
        place, name = _as_store(store, create=True), settings["name"]
        if name not in place.names():
            try:
                return cls.create(place, problem, policy, **settings)
            except NameTakenError:  # by somebody who began at the same moment
                pass
        oracle = _oracle_of(problem)
        session = cls(place, name, oracle=oracle, clock=settings.get("clock", time.time))
        refuse_other(name, session.ledger().setup, problem, policy, settings)
        return session

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
    def question(self) -> str:
        """The fingerprint of what it began with: problem, policy and settings; to be published beforehand."""
        return self._setup.fingerprint

    @property
    def created_at(self) -> float:
        """When it was created, in seconds since 1970, UTC."""
        return self._created.time

    @property
    def outcome(self) -> Outcome | None:
        """How the session ended, or None while it runs."""
        with self.held() as ledger:
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
                n_measurements=ledger.n_measurements,
                n_rounds=ledger.n_rounds,
                cost=float(ledger.evidence.counts @ ledger.problem.costs),
                counts=ledger.evidence.counts,
                means=ledger.evidence.means,
                standing=standing,
                policy=self.policy,
                guarantee=promised(ledger).text,
                seed=self.seed,
                seconds=self._clock() - self.created_at,
                noise_scale=ledger.problem.noise_scale,
                n_pilot=0 if self.pilot is None else int(self.pilot.counts(ledger.problem).sum()),
                problem=ledger.problem,
                ranging=named_ranging(ledger.problem, ledger.plan, ledger.evidence),
            )

    def ledger(self) -> Ledger:
        """The state of the session now, others' measurements included; to look at, not to change.

        It goes on to change with the session: where threads share one, look at it within `held`.
        """
        with self.held() as ledger:
            return ledger

    @contextmanager
    def held(self) -> Iterator[Ledger]:
        """The state of the session now; within it no other thread that shares this object changes it."""
        with self._lock:
            self._replica.catch_up()
            yield self._ledger

    def standing(self) -> Standing:
        """The lead, its closest rival and how far apart they are."""
        with self.held() as ledger:
            return ledger.standing()

    def events(self, *, after: int = 0) -> Iterator[Event]:
        """The log, from its beginning or after this position; late pages cost no more than early ones."""
        events = self.store.read(self.name, after=self._known_head(after))
        return (event for event in events if event.position > after)

    def measurements(self) -> Iterator[Measurement]:
        """Everything that was told or recorded, in its order; what was taken back is marked `voided`."""
        voided = {str(token) for token in self.ledger().tapes.voided}
        for event in self.events():
            for found in measurements_in(event, self._setup.problem.arm_names):
                yield replace(found, voided=True) if found.token in voided else found

    # What workers do

    def ask(
        self, n: int = 1, *, worker: str | None = None, wait: bool = True, heartbeat: float | None = None
    ) -> list[Request]:
        """Up to n measurements to make now; empty when the session has ended.

        Asking again gives the same tokens until something is told. Workers who share a session need names of
        their own: a token is one worker's until its lease ends. When the policy waits for fewer measurements
        than there are workers, the others measure ahead (never more than 64); when there is nothing left to
        hand out, this waits, or with `wait=False` returns an empty list.

        With a `heartbeat`, in seconds, the tokens are free that long after this process has died, instead of
        at the end of the lease. While it lives a thread prolongs them, until they are told or the lease ends.
        """
        if not hasattr(n, "__index__") or n < 1:
            raise ParameterError(f"ask for a whole number of measurements, 1 or more, got n={n!r}")
        if heartbeat is not None and not (heartbeat > 0 and math.isfinite(heartbeat)):
            raise ParameterError(f"heartbeat is a number of seconds, more than 0, got {heartbeat!r}")
        seconds = self.lease if heartbeat is None else min(float(heartbeat), self.lease)
        pause = FIRST_WAIT
        while True:
            with self._changing():
                held = self._leasing.claim(n, worker or "", seconds)
                requests = [self._request(token, lease) for token, lease in held]
                if requests or not wait or self._ledger.is_over:
                    break
                until_free = self._leasing.next_end() - self._clock()
            time.sleep(min(pause, max(until_free, FIRST_WAIT)))
            pause = min(1.5 * pause, LONGEST_WAIT)
        if heartbeat is not None:
            hold = Hold(worker or "", seconds, self._clock() + self.lease)
            self._heartbeat.hold([request.token for request in requests], hold)
        return requests

    def pending(self) -> list[Request]:
        """What the open round waits for, whoever holds it; nothing is leased by looking."""
        with self.held() as ledger:
            leases, nobody = leased(self.store.leases(self.name)), Lease("", "", 0.0)
            return [self._request(token, leases.get(token, nobody)) for token in ledger.tapes.wanted()]

    def leases(self) -> list[Lease]:
        """Who is measuring what, and until when; leases that ended without a value are among them."""
        with self.held() as ledger:
            leases = leased(self.store.leases(self.name))
            return [lease for token, lease in leases.items() if not ledger.tapes.is_told(token)]

    def decision(self, n_rounds: int) -> Event | None:
        """The event with the decision after so many complete rounds, if there is one."""
        return self.store.find(self.name, self._ledger.round_key(n_rounds))

    def now(self) -> float:
        """The time by the session's clock, in seconds since 1970, UTC."""
        return self._clock()

    def is_told(self, token: str) -> bool:
        """Whether this token has its measurement."""
        with self.held() as ledger:
            return ledger.tapes.is_told(self._telling.token(token))

    def arm_of(self, token: str) -> int:
        """The index of the arm that this token is a measurement of."""
        return self._telling.token(token).arm

    def told(self, token: str) -> list[Measurement]:
        """What was told under this token; nothing if it waits for its value, or came with another token's."""
        event = self.store.find(self.name, told_key(self._telling.token(token)))
        return [] if event is None else list(measurements_in(event, self._setup.problem.arm_names))

    def takes(self, token: str) -> bool:
        """Whether a value for this token can be told now: it is asked for, told already, or not far ahead."""
        with self.held() as ledger:
            return takes(ledger, self._telling.token(token))

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
        the value is kept like one that nobody asked for, and counts where those do.
        """
        if isinstance(token, Request):
            worker = token.worker if worker is None else worker
            token = token.token
        with self._changing():
            receipt = self._telling.tell(token, value, mean, count, worker or "")
        self._heartbeat.drop(token)
        return receipt

    def withdraw(self, token: str | Request, reason: str = "") -> None:
        """Give a token back unmeasured; it will be handed out again, and counts as nothing."""
        text = token.token if isinstance(token, Request) else token
        with self._changing():
            self._heartbeat.drop(text)  # first, or a beat might take it back
            self._leasing.forget(self._telling.withdraw(text, reason))

    def void(self, token: str | Request, reason: str) -> bool:
        """Take back a value that was no measurement (a slip of the pen, the wrong road); the log keeps both.

        Its arm is asked for again. A policy that has seen the value, which True says, starts over and reads
        the other measurements as if that one had never been, so that its promise stays what it is; this
        assumes that a value is not taken back for its size. Unasked measurements recorded before do not
        count any more then, nor do those told as means.
        """
        with self._changing():
            return self._telling.void(token.token if isinstance(token, Request) else token, reason)

    def doubt(self, arm: int | str, *values: float) -> str | None:
        """Why one of these values would surprise as a measurement of the arm; None if none would."""
        with self.held() as ledger:
            index = self._arm(arm)
            return doubt(ledger.setup.problem, index, ledger.tapes.told_values(index), values)

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
        with self._changing():
            remarks = {"note": str(note), **({"picked": True} if picked else {})}
            return self._telling.record(self._arm(arm), value, key, remarks)

    @property
    def counts_unasked(self) -> bool:
        """Whether the policy counts measurements that nobody asked for."""
        with self.held() as ledger:
            return ledger.run.counts_unasked

    @property
    def title(self) -> str:
        """What people call it: the last title it was given, else that of its problem; may be empty."""
        given = self._last_title()[1]
        return self._setup.problem.about.title if given is None else given

    def rename(self, title: str) -> None:
        """Give it another title, in the log like everything else; its name in a store never changes."""

        def make() -> Change:
            return Change([NewEvent("noted", {"title": title}, _title_key(self._last_title()[0] + 1))])

        with self._changing() as replica:
            replica.commit(make, quick=False)

    def delete(self, *, expected: Head) -> None:
        """Delete it from the store for good, if it has ended and its log still ends where it was seen to.

        A session that somebody may be measuring for is refused: close it first.
        """
        with self._changing():
            if not self.ledger().is_over:
                raise SessionError(
                    f"session {self.name!r} is still running, so it was not deleted; close it first"
                )
            self.store.delete(self.name, expected=expected)

    def _last_title(self) -> tuple[int, str | None]:
        """How many titles it was given, and the last of them."""
        n, title = 0, None
        while event := self.store.find(self.name, _title_key(n + 1)):
            n, title = n + 1, json.loads(event.body)["title"]
        return n, title

    def note(self, text: str) -> None:
        """Write a remark into the log."""
        with self._changing() as replica:
            replica.commit(lambda: Change([NewEvent("noted", {"text": str(text)})]))

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

        def make() -> Change:
            setup = self._ledger.setup.extended(changes, budget)
            if self._ledger.run.called is not None and setup.policy == self.policy:
                raise ParameterError(
                    "the last call ended what this session can prove at its delta; extend it to a smaller "
                    "delta or epsilon, for which it starts over, or begin a new one and record these "
                    "measurements in it",
                    field="budget",
                )
            body = {"policy": codec.policy_to_json(setup.policy), "budget": setup.budget}
            return Change([NewEvent("extended", body)])

        with self._changing() as replica:
            replica.commit(make, quick=False)

    def last_call(self, n: int | None = None, *, gaussian: bool = False) -> None:
        """Say that these n measurements are the last: one round, and a test of what leads now.

        What the open round still waits for is among them; all the others are asked for as one round, which is
        settled as a test of the lead, and then the session ends: with an answer if its risk is at most delta,
        and with its risk and the plans that remain if not. Without `n` it is the rest of the budget.
        `gaussian` says that their noise is Gaussian, under which the test proves more. When you call may
        depend on everything that the policy has seen; not on values that were told ahead of its rounds.
        """
        check_gaussian(self.given_problem, gaussian)

        def make() -> Change:
            ledger = self._ledger
            if ledger.is_over:
                raise SessionError(f"session {self.name!r} has ended: {ledger.status}; there is no last call")
            ledger.run.check_last_call()
            left = None if self.budget is None else self.budget - ledger.n_measurements
            wanted = check_last_call(n, left, ledger.tapes.n_missing)
            body = {"n": wanted, "gaussian": bool(gaussian), "n_ahead": ledger.tapes.n_ahead}
            return Change([NewEvent("called", body, ledger.calling_key())])

        with self._changing() as replica:
            replica.commit(make, quick=False)

    def close(self, reason: str = "") -> None:
        """End the session by hand; it stays readable, and `extend` lets it go on.

        One that has ended already stays as it is. So does one whose last measurement is told and whose answer
        is only not written down yet: it is decided first.
        """

        def make() -> Change:
            closed = NewEvent("closed", {"reason": str(reason)}, self._ledger.closing_key())
            return Change([] if self._ledger.is_over or self._ledger.is_due else [closed])

        with self._changing() as replica:
            replica.commit(make, quick=False)
            while not self._ledger.is_over:  # a round was complete and is decided now; maybe not the last
                replica.commit(make, quick=False)

    def certificate(self) -> Certificate:
        """What the session found and what it rests on, for anybody to check with `verify`."""
        with self.held() as ledger:
            if not ledger.is_over:
                raise SessionError(
                    f"session {self.name!r} is still running, so there is nothing to certify; ask and tell "
                    "until it stops, or close it"
                )
            end = self.store.find(self.name, ledger.end_key)
            if end is None:
                raise DamageError(
                    f"session {self.name!r} lacks the event that ended it; run `surepick doctor`"
                )
            self.store.settle()  # nobody is to hold a certificate of what a power cut could undo
            return certify(self.name, ledger, end)

    def verify(self, certificate: Mapping[str, Any] | None = None) -> Verdict:
        """Replay the log from its first event and say whether it, and a certificate if given, hold."""
        return verify(self.store, self.name, certificate, oracle=_oracle_of(self.given_problem))

    # How it does it

    @property
    def _ledger(self) -> Ledger:
        """The state of the session at the last look."""
        return self._replica.ledger

    @contextmanager
    def _changing(self) -> Iterator[Replica]:
        """The way to append to the log, for one thread at a time; refused where a session is only shown."""
        if self.read_only:
            raise SessionError(
                f"session {self.name!r} was opened to be looked at, so nothing was changed; load it without "
                "read_only to go on with it"
            )
        with self._lock:
            yield self._replica

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

    def _request(self, token: Token, lease: Lease) -> Request:
        name, wanted = self._setup.problem.arm_names[token.arm], self._ledger.tapes.n_wanted(token)
        return Request(str(token), token.arm, name, wanted, lease.worker, lease.expires)

    def _arm(self, arm: int | str) -> int:
        problem = self._setup.problem
        if isinstance(arm, str):
            return problem.arm(arm)
        if not 0 <= arm < problem.n_arms:
            raise SessionError(f"there is no arm {arm}; the session has arms 0 to {problem.n_arms - 1}")
        return int(arm)


def _title_key(number: int) -> str:
    return f"title:{number}"


def in_seconds(clock: Callable[[], float]) -> Callable[[], float]:
    """The clock with times that the log can keep: plain finite floats, whatever kind of number it gives.

    >>> in_seconds(lambda: 5)()
    5.0
    """

    def now() -> float:
        seconds = float(clock())
        if not math.isfinite(seconds):
            raise ParameterError(f"the clock must give seconds since 1970, got {seconds}", field="clock")
        return seconds

    return now


def _oracle_of(problem: AnyProblem) -> OracleProblem | None:
    return problem if not problem.is_listed and problem.has_oracle else None


def _as_store(store: str | Store, *, create: bool) -> Store:
    return open_store(store, create=create) if isinstance(store, str) else store


def only_session(store: Store) -> str:
    """The name of the session in this store, if it has only one."""
    names = store.names()
    if len(names) == 1:
        return names[0]
    found = "none" if not names else ", ".join(map(repr, names[:8])) + (" ..." if len(names) > 8 else "")
    raise SessionError(f"say which session of {store.place} is meant; it has {len(names)}: {found}")
