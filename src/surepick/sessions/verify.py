"""Replay a log and check every step: the chain, then decode, check and apply of each event.

These are the lines that `Journal.commit` ran when it wrote the event: what can be written is what verifies.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from surepick.certificates.certificate import as_certificate
from surepick.core.guarantee import Doubt, Guarantee
from surepick.core.oracle_problem import Best, OracleProblem, absent
from surepick.core.polytopes import proofs
from surepick.core.polytopes.polytope import Polytope
from surepick.core.wording import how_many
from surepick.errors import DamageError, MissingFunctionError, SurepickError
from surepick.sessions import codec
from surepick.sessions.certify import certify, claim_of
from surepick.sessions.codec import VersionError
from surepick.sessions.events import decode, decode_strictly, require
from surepick.sessions.setup import Body, Setup, checked_setup, is_version
from surepick.sessions.state import SessionState
from surepick.simulation.outcome import State
from surepick.store import START, Event, Head, Log
from surepick.store.log import checked

LAST_BITS = 1e-9  # of a number: what another machine may compute otherwise

NOTHING = "not even the first event can be read; run `surepick verify --all`"


@dataclass(frozen=True)
class Verdict:
    """The result of a check of a session and its certificate; it holds if there is no objection."""

    objections: tuple[str, ...]
    n_events: int = 0
    status: str = "unknown"
    plan_name: str | None = None
    remarks: tuple[str, ...] = ()  # what to know of it besides; no objections
    claim: str = ""
    n_values: int = 0  # recorded and not removed
    extensions: tuple[Mapping[str, Any], ...] = ()  # delta and budget after each
    event: int | None = None  # the first one that no session writes there
    fields: tuple[str, ...] = ()  # of the certificate, that are not what the log gives
    first_time: float | None = None  # of the first and the last event, in seconds since 1970, UTC
    last_time: float | None = None
    doubts: tuple[Doubt, ...] = ()  # what contradicts the assumption of the guarantee

    @property
    def holds(self) -> bool:
        """Whether everything was found as it should be."""
        return not self.objections

    @property
    def trusted(self) -> bool:
        """Whether nothing contradicts the assumption of the guarantee; else it does not apply."""
        return not self.doubts


def verify(
    log: Log,
    certificate: Mapping[str, Any] | None = None,
    *,
    oracle: Best | OracleProblem | None = None,
) -> Verdict:
    """Replay the log from its first event and say whether it, and the certificate if given, hold.

    Every event has to be one that a session writes at that point, and the policy decides every round again.
    A session whose plans are known by a function needs it as `oracle`.
    """
    given = None if certificate is None else as_certificate(certificate)
    replay = Replay(log.name, log.head(), oracle)
    # others may append meanwhile: the events read must reach the head seen before reading, and not pass the
    # head seen after it
    return replay.judge(log.read(), lambda: log.head().position, given)


def verify_events(
    name: str,
    events: Sequence[Event],
    head: Head,
    certificate: Mapping[str, Any] | None = None,
    *,
    oracle: Best | OracleProblem | None = None,
) -> Verdict:
    """The same for a log that is in no store: these events, which should end at this head."""
    given = None if certificate is None else as_certificate(certificate)
    return Replay(name, head, oracle).judge(checked(events, START, name), lambda: head.position, given)


# A log that makes a policy fail was not written by a session that went on with it.
FAILURES = (SurepickError, ArithmeticError, LookupError, ValueError, AssertionError, TypeError)


class Replay:
    """A state that takes nothing but what a session can write; it changes by `judge`, called once."""

    state: SessionState  # once the first event is taken
    first: Event

    def __init__(self, name: str, head: Head, oracle: Best | OracleProblem | None) -> None:
        self.name = name
        self.head = head
        self.oracle = oracle
        self.reached: Event | None = None  # the last row that was read
        self.last: Event | None = None  # the last row that was accepted
        self.ends: list[Event] = []  # rows with which the session ended; it may have been extended since
        # All rows if an oracle is given. A certificate may have been made without the oracle; `_compare` then
        # replays the rows without it, to make the same certificate.
        self.rows: list[Event] = []
        # Extra measurements when the session last ended; a certificate stays valid when others come later.
        self.n_extra = 0
        self._keys: set[str] = set()  # of the rows so far; no key comes twice

    def judge(self, rows: Iterable[Event], end: Callable[[], int], given: Body | None) -> Verdict:
        """Replay the log, compare the certificate with it if there is one, and return the verdict.

        - rows: the events of the log, from the first
        - end: called after the last row, returns the position at which the log ends by then
        - given: the certificate
        """
        objections, event = self._replay(rows, end)
        if self.last is None or self.reached is None:  # there is no state to describe
            return Verdict((*objections, NOTHING), event=event)
        fields: list[str] = []
        if given is not None and not objections:
            objections, fields = self._compare(given)
        state = self.state
        status = "running" if state.status is None else str(state.status)
        first_name = state.given.name
        return Verdict(
            tuple(objections),
            n_events=self.reached.position,
            status=status,
            plan_name=state.problem.name_of(state.plan),
            remarks=() if first_name == self.name else (f"it began under the name {first_name!r}",),
            claim=claim_of(state) if state.status is State.CONFIDENT else Guarantee.none(status).text,
            n_values=state.n_values,
            extensions=tuple(state.extensions),
            event=event,
            fields=tuple(fields),
            first_time=self.first.time,
            last_time=self.reached.time,
            doubts=state.doubts(),
        )

    def _replay(self, rows: Iterable[Event], end: Callable[[], int]) -> tuple[list[str], int | None]:
        """Check and apply rows until one fails; return the objection, in a list, and that row's position.

        The list is empty if the log holds. The position is None if no single event is to blame. Errors that
        say nothing about the log are raised: the store cannot be read, a function is missing, or the policy
        has another version.
        """
        try:
            for row in rows:
                self.reached = row
                if row.position == self.head.position and row.head != self.head:
                    raise DamageError(
                        f"event {row.position} of session {self.name!r} is not the one that the log says it "
                        "ends with; run `surepick verify --all`"
                    )
                try:
                    self._take(row)
                except (MissingFunctionError, VersionError):
                    raise
                except FAILURES as error:
                    words = f"event {row.position} ({row.kind}) is none that a session writes there: {error}"
                    return [f"{words}; what follows was not looked at"], row.position
                self.last = row
            n_events = 0 if self.reached is None else self.reached.position
            if not self.head.position <= n_events <= end():
                expected = how_many(self.head.position, "event")
                return [f"the log should have {expected} and has {n_events:,}"], None
        except DamageError as error:
            return [str(error)], None
        except SurepickError:
            raise
        except Exception as error:  # a log may hold any JSON; an event that cannot be checked does not hold
            position = 1 if self.reached is None else self.reached.position
            return [f"event {position} cannot be checked: {type(error).__name__}: {error}"], position
        return [], None

    def _take(self, row: Event) -> None:
        """Check and apply the next event; an error says why no session writes it here."""
        require(type(row.time) is float and math.isfinite(row.time), "its time is no finite number", "time")
        event = decode_strictly(row.kind, row.body)
        if self.oracle is not None:
            self.rows.append(row)
        if self.last is None:
            require(row.kind == "created" and row.key is None, "a log begins with 'created'", "kind")
            self.state = SessionState(checked_setup(json.loads(row.body), self.oracle))
            self.first = row
            return
        require(row.time >= self.last.time, "it is dated before the event that it follows", "time")
        require(row.kind != "created", "'created' comes once", "kind")
        key = event.log_key()
        require(row.key == key, f"its key is {row.key!r} and should be {key!r}", "key")
        require(row.key is None or row.key not in self._keys, f"{row.key!r} is in the log already", "key")
        event.check(self.state)
        self.state.apply(event)
        if row.key is not None:
            self._keys.add(row.key)
        if row.kind in ("stopped", "closed"):
            self.ends.append(row)
            self.n_extra = self.state.n_extra

    def _compare(self, given: Body) -> tuple[list[str], list[str]]:
        """Return where the certificate differs from the log, in words, and its fields that do."""
        state = self.state
        end = next((end for end in self.ends if end.position == given.get("log_position")), None)
        if end is None:
            return ["the log has no end where the certificate says it ended"], []
        if end.checksum != given.get("log_checksum"):
            return ["the certificate is of another log: the fingerprints differ"], []
        if end is not self.ends[-1] or state.status is None:
            return ["the session went on after this certificate; ask for a new one"], []
        needs_function = codec.needs_function(codec.problem_to_json(state.given.problem))
        if given.get("knows_plans") is False and needs_function:  # as it is shown without the function
            created, *rest = self.rows
            state = SessionState(Setup.from_json(json.loads(created.body), absent))
            for event in rest:
                state.apply(decode(event.kind, event.body))
        mine = as_certificate(certify(self.name, state, end).to_json())
        accepted = {
            "session": given.get("session") in (self.name, state.given.name),
            "surepick": is_version(given.get("surepick")),  # which may be another than began the session
            "n_extra": type(given.get("n_extra")) is int
            and self.n_extra <= given["n_extra"] <= self.state.n_extra,
            "signature": True,  # which is about the certificate, not a part of it
        }
        fields = [
            name
            for name in sorted(mine.keys() | given.keys())
            if not accepted.get(
                name, name in mine and name in given and same(mine[name], given[name], LAST_BITS)
            )
        ]
        found = [f"the certificate's {name!r} is not what the log gives" for name in fields]
        return found + _of_proof(self.state, given.get("proof")), fields


def _of_proof(state: SessionState, proof: Any) -> list[str]:
    """Return what is wrong with the proof of a certificate, checked by arithmetic alone."""
    if not (isinstance(state.problem, Polytope) and state.plan is not None and proof):
        return []
    try:
        policy = state.setup.policy
        wrong = proofs.objections(state.problem, state.plan, proof, policy.delta, policy.epsilon)
    except Exception:  # any JSON may stand there
        wrong = ["it has another form"]
    return [f"the certificate's proof does not hold: {words}" for words in wrong]


def same(mine: object, theirs: object, last_bits: float = 0.0) -> bool:
    """Whether two JSON values are equal: 1 and 1.0 are, which some programs write alike; true is neither.

    Fractions may differ by `last_bits` of them: linear algebra libraries round differently.
    """
    if isinstance(mine, dict) and isinstance(theirs, dict):
        return mine.keys() == theirs.keys() and all(
            same(mine[name], theirs[name], last_bits) for name in mine
        )
    if isinstance(mine, list) and isinstance(theirs, list):
        return len(mine) == len(theirs) and all(
            same(a, b, last_bits) for a, b in zip(mine, theirs, strict=True)
        )
    if isinstance(mine, bool) or isinstance(theirs, bool):
        return mine is theirs
    if last_bits and isinstance(mine, float) and isinstance(theirs, float | int):
        # an integer beyond all floats is compared, never converted
        return abs(theirs) < 1e308 and math.isclose(mine, theirs, rel_tol=last_bits)
    return mine == theirs
