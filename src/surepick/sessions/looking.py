"""What can be read of a session: its settings, where it stands, its log, what it proves.

Every look takes in first what other processes have written, and nothing here changes the session.
"""

from __future__ import annotations

import bisect
import itertools
import json
import math
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from surepick.certificates.certificate import Certificate
from surepick.core.guarantee import Doubt, no_guarantee
from surepick.core.layout import Layout
from surepick.core.oracle_problem import AnyProblem, Best, OracleProblem, absent
from surepick.core.policy import Policy
from surepick.core.run import Standing
from surepick.core.tables import count_in
from surepick.errors import DamageError, NoiseWarning, ParameterError, SessionError
from surepick.noise.plausible import doubt
from surepick.sessions import codec
from surepick.sessions.certify import certify
from surepick.sessions.ending import outcome_of
from surepick.sessions.leasing import Leases, leased, request_for
from surepick.sessions.ledger import Ledger
from surepick.sessions.replica import Replica, making_sense_of
from surepick.sessions.requests import Measurement, Request, Token, measurements_in, probe_in, told_key
from surepick.sessions.settings import Setup
from surepick.sessions.showing import Shown
from surepick.sessions.told_values import takes, token_of
from surepick.sessions.turns import in_turn
from surepick.sessions.verify import Verdict, verify
from surepick.simulation.outcome import Outcome, Status
from surepick.store import START, Event, Head, Lease, Store


class Looking(Shown):
    """A session that is open, as far as looking goes; `Session` adds what changes it.

    Threads may share one: whoever uses its ledger holds its lock.
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
        self.store = store.pin(name)  # what another process begins under this name is another session
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
        self._replica = Replica(self.store, name, self._setup, self._created, self._clock)

    @property
    def problem(self) -> AnyProblem:
        """The problem."""
        return self._ledger.problem

    @property
    def given_problem(self) -> AnyProblem:
        """The problem as it was given, with an unknown noise scale still unknown."""
        return self._setup.problem

    @property
    def arm_names(self) -> tuple[str, ...]:
        """The names of the arms; those that came with a plan are the last."""
        return self._ledger.setup.problem.arm_names

    @property
    def probe_names(self) -> tuple[str, ...]:
        """The names of what is measured: of the arms, or of the probes."""
        return self._ledger.setup.problem.probe_names

    def reads(self, probe: int) -> tuple[str, ...]:
        """The names of the readings that one use of this probe gives; a play may have come a moment ago."""
        return self._ledger.setup.problem.reads(probe)

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
    def status(self) -> Status:
        """The state: running, confident, budget spent or closed (or done, by a policy without guarantee)."""
        return self.ledger().status or Status.RUNNING

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
    def outcome(self) -> Outcome:
        """Where the session stands, or how it ended; warns where the guarantee does not apply.

        While it runs its `status` is RUNNING and its `plan` None; `lead` is the plan that looks best.
        """
        with self.held() as ledger:
            outcome = outcome_of(ledger, self._clock() - self.created_at)
        if outcome.doubts:
            warnings.warn(f"{self.name}: {no_guarantee(outcome.doubts)}", NoiseWarning, stacklevel=2)
        return outcome

    @property
    def doubts(self) -> tuple[Doubt, ...]:
        """What the values show that contradicts the assumption of the guarantee; usually nothing."""
        with self.held() as ledger:
            return ledger.doubts()

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

    @contextmanager
    def held_with_leases(self) -> Iterator[tuple[Ledger, Leases]]:
        """The same, and who is measuring what, in one trip to the store."""
        with self._lock:
            view = self.store.look(self.name, after=self._replica.head)
            self._replica.take_in(view.events)
            of, leases = self._ledger.tapes.of, leased(view.leases)
            yield self._ledger, {t: lease for t, lease in leases.items() if not of[t.probe].is_told(t.index)}

    def standing(self) -> Standing:
        """The lead, its closest rival and how far apart they are."""
        with self.held() as ledger:
            return ledger.standing()

    def events(self, *, after: int = 0) -> Iterator[Event]:
        """The log, from its beginning or after this position; late pages cost no more than early ones."""
        events = self.store.read(self.name, after=self._known_head(after))
        return (event for event in events if event.position > after)

    def unasked(self, position: int) -> Event:
        """The event of this number, which recorded a measurement that nobody had asked for."""
        found = next(self.events(after=position - 1), None) if position > 0 else None
        if found is None or found.kind != "recorded":
            kind = "there is none" if found is None else f"it is of kind {found.kind!r}"
            raise SessionError(
                f"event {position} of session {self.name!r} records no measurement that nobody asked for "
                f"({kind}); `surepick log` has their numbers, and one that was asked for has a token",
                field="token",
            )
        return found

    def exported_key(self, position: int) -> str:
        """Return the key that exports give to an extra measurement without one: by it `record` knows it."""
        return f"{self._created.checksum[:12]}-{position}"

    def measurements(self) -> Iterator[Measurement]:
        """Everything that was told or recorded, in its order; what was taken back is marked `voided`."""
        ledger, number, before = self.ledger(), 0, ("", 0)
        for event in self.events():
            for found in measurements_in(event, self._ledger.setup.problem):
                use = (found.name, event.position)
                number, before = number + (use != before), use
                yield replace(found, voided=ledger.is_voided(found.name), number=number)

    def pending(self, n: int | None = None, *, probe: int | None = None) -> list[Request]:
        """What the open round waits for, whoever holds it; nothing is leased by looking.

        The first `n` of it, where a round may be long; of one arm or probe alone, by its number.
        """
        with self.held_with_leases() as (ledger, leases):
            nobody = Lease("", "", 0.0)
            wanted: Iterator[Token] = (one.token for one in in_turn(ledger))
            if probe is not None:
                wanted = (Token(probe, index) for index in ledger.tapes.of[probe].wanted())
            first = itertools.islice(wanted, n)
            return [request_for(ledger, token, leases.get(token, nobody)) for token in first]

    def is_pending(self, token: str) -> bool:
        """Whether the open round waits for the measurement with this token."""
        with self.held() as ledger:
            try:
                asked = Token.parse(token)
            except ValueError:
                return False
            known = asked.probe < ledger.problem.n_probes
            return known and ledger.tapes.of[asked.probe].is_wanted(asked.index)

    def leases(self) -> list[Lease]:
        """Who is measuring what, and until when; leases that ended without a value are among them."""
        with self.held_with_leases() as (_, leases):
            return list(leases.values())

    def decision(self, n_rounds: int) -> Event | None:
        """The event with the decision after so many complete rounds, if there is one."""
        return self.store.find(self.name, self._ledger.round_key(n_rounds))

    def now(self) -> float:
        """The time by the session's clock, in seconds since 1970, UTC."""
        return self._clock()

    def is_told(self, token: str) -> bool:
        """Whether this token has its measurement."""
        with self.held() as ledger:
            probe, index = self._token(token)
            return ledger.tapes.of[probe].is_told(index)

    def probe_of(self, token: str) -> int:
        """The index of the probe, or the arm, that this is a measurement of.

        By its token, or by the number of the event of one that nobody asked for.
        """
        event = count_in(token)
        if event is not None:
            return probe_in(json.loads(self.unasked(event).body))
        return self._token(token).probe

    def arm_of(self, token: str) -> int:
        """The same as `probe_of`, for problems where each arm is measured by itself."""
        return self.probe_of(token)

    def readings_wanted(self, token: str) -> tuple[str, ...]:
        """The names of the readings that are still to come under this token."""
        with self.held() as ledger:
            probe, index = self._token(token)
            reads = ledger.setup.problem.reads(probe)
            return tuple(reads[k] for k in ledger.tapes.of[probe].untold(index))

    def told(self, token: str) -> list[Measurement]:
        """What was told under this token; nothing if it waits for its value, or came with another token's."""
        found: list[Measurement] = []
        for part in itertools.count():
            event = self.store.find(self.name, told_key(self._token(token), part))
            if event is None:
                break
            found += measurements_in(event, self._ledger.setup.problem)
        return found

    def takes(self, token: str) -> bool:
        """Whether a value for this token can be told now: it is asked for, told already, or not far ahead."""
        with self.held() as ledger:
            return takes(ledger, self._token(token))

    def doubt(self, arm: int | str, *values: float | Mapping[str, float]) -> str | None:
        """Why one of these values would surprise as a measurement of the arm or probe; None if none would.

        A use of a probe with several readings is a mapping by their names.
        """
        with self.held() as ledger:
            problem, index = ledger.setup.problem, self._probe(arm)
            reads, readings = problem.reads(index), problem.readings_of(index)
            told: list[tuple[int, float]] = []
            for value in values:
                by_name = value if isinstance(value, Mapping) else {reads[0]: value}
                told += [(readings[reads.index(name)], one) for name, one in by_name.items() if name in reads]
            found = (doubt(problem, r, ledger.tapes.told_values(r), [one]) for r, one in told)
            return next((words for words in found if words is not None), None)

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
            return certify(self.name, ledger, end)

    def verify(self, certificate: Mapping[str, Any] | None = None) -> Verdict:
        """Replay the log from its first event and say whether it, and a certificate if given, hold."""
        return verify(self.store, self.name, certificate, oracle=oracle_of(self.given_problem))

    # How it does it

    @property
    def _ledger(self) -> Ledger:
        """The state of the session at the last look."""
        return self._replica.ledger

    def _first_event(self) -> Event:
        for event in self.store.read(self.name, limit=1):
            return event
        raise DamageError(f"the log of session {self.name!r} is empty; run `surepick doctor`")

    def _known_head(self, position: int) -> Head:
        """Where the log ended at the last decision up to this position, found by the keys of rounds."""
        found: dict[int, Event | None] = {}

        def decided(n_rounds: int) -> int:
            if n_rounds not in found:
                found[n_rounds] = self.decision(n_rounds)
            event = found[n_rounds]
            return position + 1 if event is None else event.position

        low, high, step = self._ledger.n_rounds, self._ledger.n_rounds + 1, 1
        while low > 0 and decided(low) > position:  # from the end, where most look
            low, high, step = max(low - step, 0), low, 2 * step
        n_before = bisect.bisect_right(range(high), position, lo=low, key=decided)
        event = found.get(n_before - 1)
        return START if event is None else event.head

    def _probe(self, probe: int | str) -> int:
        if probe not in self.probe_names and probe not in range(len(self.probe_names)):
            self.ledger()  # it may have come with a plan meanwhile
        problem = self._ledger.setup.problem
        if isinstance(probe, str):
            return problem.probe(probe)
        if not 0 <= probe < problem.n_probes:
            word = problem.probe_word
            raise SessionError(
                f"there is no {word} {probe}; the session has {word}s 0 to {problem.n_probes - 1}"
            )
        return int(probe)

    def _last_title(self) -> tuple[int, str | None]:
        """How many titles it was given, and the last of them."""
        n, title = 0, None
        while event := self.store.find(self.name, title_key(n + 1)):
            n, title = n + 1, json.loads(event.body)["title"]
        return n, title

    def _token(self, text: object) -> Token:
        return token_of(self._replica, text)


def title_key(number: int) -> str:
    """The key of the event that gives this title, the first, the second and so on."""
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


def oracle_of(problem: AnyProblem) -> OracleProblem | None:
    """The problem if it has a function that a log does not hold."""
    return problem if not problem.is_listed and problem.has_oracle else None
