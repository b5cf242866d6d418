"""Replay a log and check every step: the chain, then decode, check and apply of each event.

These are the lines that `Journal.commit` ran when it wrote the event: what can be written is what verifies.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from surepick.certificates.certificate import as_certificate
from surepick.core import proofs
from surepick.core.guarantee import Doubt, Promise
from surepick.core.oracle_problem import Best, OracleProblem, absent
from surepick.core.policy import delta_of, epsilon_of
from surepick.core.polytope import Polytope
from surepick.core.wording import how_many
from surepick.errors import DamageError, MissingFunctionError, SurepickError
from surepick.sessions import codec
from surepick.sessions.certify import assumption_of, certify, claim_of
from surepick.sessions.codec import VersionError
from surepick.sessions.events import decode, decode_strictly, require
from surepick.sessions.setup import Body, Setup, checked_setup, is_version
from surepick.sessions.state import SessionState
from surepick.simulation.outcome import State
from surepick.store import START, Event, Head, Store
from surepick.store.log import checked

LAST_BITS = 1e-9  # of a number: what another machine may compute otherwise

NOTHING = "not even the first event can be read; run `surepick verify --all`"


@dataclass(frozen=True)
class Verdict:
    """What a check of a session and its certificate found, and what is claimed if it holds.

    It holds when there is nothing to object.
    """

    objections: tuple[str, ...]
    n_events: int = 0
    n_rounds: int = 0
    status: str = "unknown"
    plan_name: str | None = None
    remarks: tuple[str, ...] = ()  # what to know of it besides; no objections
    question: str = ""  # the fingerprint of what the session began with, as `new --announce` prints it
    claim: str = ""
    delta: float | None = None
    epsilon: float | None = None
    assumption: str = ""
    n_values: int = 0  # recorded and not removed
    n_removed: int = 0
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
    store: Store,
    name: str,
    certificate: Mapping[str, Any] | None = None,
    *,
    oracle: Best | OracleProblem | None = None,
) -> Verdict:
    """Replay the log from its first event and say whether it, and the certificate if given, hold.

    Every event has to be one that a session writes at that point, and the policy decides every round again.
    Where plans are known by a function, it is needed as `oracle`.
    """
    given = None if certificate is None else as_certificate(certificate)
    log = _Log(name, store.head(name), lambda: store.head(name))
    return log.judged(store.read(name), given, oracle)


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
    return _Log(name, head, lambda: head).judged(checked(events, START, name), given, oracle)


# A log that makes a policy fail was not written by a session that went on with it.
FAILURES = (SurepickError, ArithmeticError, LookupError, ValueError, AssertionError, TypeError)


class RefusedError(Exception):
    """An event that no session writes at this point of its log."""


class Replay:
    """A state that takes nothing but what a session can write."""

    def __init__(self, first: Event, oracle: Best | OracleProblem | None = None) -> None:
        with _refusing():
            require(first.kind == "created" and first.key is None, "a log begins with 'created'", "kind")
            body = json.loads(first.body)
            decode_strictly(first.kind, first.body)
            self.setup = checked_setup(body, oracle)
        self.name: str = body["name"]
        self.surepick: str = body["surepick"]
        self.state = SessionState(self.setup)
        self._time = -math.inf
        self._keys: set[str] = set()
        with _refusing():
            self._check_time(first)

    def take(self, row: Event) -> None:
        """Check and apply the next event; a RefusedError says why no session writes it here."""
        with _refusing():
            self._check_time(row)
            event = decode_strictly(row.kind, row.body)
            require(row.kind != "created", "'created' comes once", "kind")
            require(row.key == event.key(), f"its key is {row.key!r} and should be {event.key()!r}", "key")
            require(row.key is None or row.key not in self._keys, f"{row.key!r} is in the log already", "key")
            event.check(self.state)
            self.state.apply(event)
        if row.key is not None:
            self._keys.add(row.key)

    def _check_time(self, row: Event) -> None:
        """Times are finite, and none is before another."""
        require(type(row.time) is float and math.isfinite(row.time), "its time is no finite number", "time")
        require(row.time >= self._time, "it is dated before the event that it follows", "time")
        self._time = row.time


@contextmanager
def _refusing() -> Iterator[None]:
    """Turn a refusal, and what a policy cannot take, into a RefusedError."""
    try:
        yield
    except (MissingFunctionError, VersionError):
        raise
    except FAILURES as error:
        raise RefusedError(str(error)) from None


class _Log:
    """A log that is being checked; it changes by `judged` alone, which is called once.

    Others may append meanwhile: it reaches where it ended `before`, and not beyond where it ends `after`.
    """

    def __init__(self, name: str, before: Head, after: Callable[[], Head]) -> None:
        self.name = name
        self.before, self.after = before, after
        self.last: Event | None = None
        self.ends: list[Event] = []
        self.first: Event | None = None
        self.all: list[Event] = []  # where the plans are known by a function
        self.n_extra = 0  # when the session last ended
        self.event: int | None = None
        self.fields: list[str] = []

    def judged(
        self, events: Iterable[Event], given: Body | None, oracle: Best | OracleProblem | None
    ) -> Verdict:
        replay: Replay | None = None
        objections = list[str]()
        try:
            for event in events:
                self.first, self.last = self.first or event, event
                if event.position == self.before.position and event.head != self.before:
                    raise DamageError(
                        f"event {event.position} of session {self.name!r} is not the one that the log says "
                        "it ends with; run `surepick verify --all`"
                    )
                if oracle is not None:
                    self.all.append(event)
                if replay is None:
                    replay = Replay(event, oracle)
                    continue
                replay.take(event)
                if event.kind in ("stopped", "closed"):
                    self.ends.append(event)
                    self.n_extra = replay.state.n_extra
            n = 0 if self.last is None else self.last.position
            if not self.before.position <= n <= self.after().position:
                objections.append(
                    f"the log should have {how_many(self.before.position, 'event')} and has {n:,}"
                )
        except DamageError as error:
            objections.append(str(error))
        except RefusedError as error:
            assert self.last is not None
            self.event = self.last.position
            objections.append(
                f"event {self.last.position} ({self.last.kind}) is none that a session writes there: "
                f"{error}; what follows was not looked at"
            )
        except SurepickError:
            raise  # the store cannot be read, a function is missing, a policy has another version
        except Exception as error:  # a log may hold any JSON: what cannot be checked does not hold
            self.event = 1 if self.last is None else self.last.position
            objections.append(f"event {self.event} cannot be checked: {type(error).__name__}: {error}")
        if replay is None:
            return Verdict((*objections, NOTHING), event=self.event)
        if given is not None and not objections:
            objections += self._compare(replay, given)
        return self._verdict(replay, objections)

    def _compare(self, replay: Replay, given: Body) -> list[str]:
        """Return where the certificate differs from the log."""
        end = next((end for end in self.ends if end.position == given.get("log_position")), None)
        if end is None:
            return ["the log has no end where the certificate says it ended"]
        if end.checksum != given.get("log_checksum"):
            return ["the certificate is of another log: the fingerprints differ"]
        if end is not self.ends[-1] or replay.state.status is None:
            return ["the session went on after this certificate; ask for a new one"]
        state = replay.state
        needs_function = codec.needs_function(codec.problem_to_json(replay.setup.problem))
        if given.get("knows_plans") is False and needs_function:  # as a reader sees it without the function
            created, *rest = self.all
            state = SessionState(Setup.from_json(json.loads(created.body), absent))
            for event in rest:
                state.apply(decode(event.kind, event.body))
        mine = as_certificate(certify(self.name, state, end).to_json())
        accepted = {
            "session": given.get("session") in (self.name, replay.name),
            "surepick": is_version(given.get("surepick")),  # which may be another than began the session
            "n_extra": type(given.get("n_extra")) is int
            and self.n_extra <= given["n_extra"] <= replay.state.n_extra,
            "signature": True,  # which is about the certificate, not a part of it
        }
        names = sorted(mine.keys() | given.keys())
        self.fields = [
            n
            for n in names
            if not accepted.get(n, n in mine and n in given and same(mine[n], given[n], LAST_BITS))
        ]
        found = [f"the certificate's {name!r} is not what the log gives" for name in self.fields]
        return found + _of_proof(replay.state, given.get("proof"))

    def _verdict(self, replay: Replay, objections: list[str]) -> Verdict:
        state = replay.state
        assert self.first is not None
        assert self.last is not None
        status = "running" if state.status is None else str(state.status)
        confident = state.status is State.CONFIDENT
        return Verdict(
            tuple(objections),
            n_events=self.last.position,
            n_rounds=state.n_rounds,
            status=status,
            plan_name=state.problem.name_of(state.plan),
            remarks=() if replay.name == self.name else (f"it began under the name {replay.name!r}",),
            question=replay.setup.fingerprint,
            claim=claim_of(state) if confident else Promise.none(status).text,
            delta=delta_of(state.setup.policy),
            epsilon=epsilon_of(state.setup.policy),
            assumption=assumption_of(state),
            n_values=state.n_values,
            n_removed=state.n_removed,
            extensions=tuple(state.extensions),
            event=self.event,
            fields=tuple(self.fields),
            first_time=self.first.time,
            last_time=self.last.time,
            doubts=state.doubts(),
        )


def _of_proof(state: SessionState, proof: Any) -> list[str]:
    """Return what is wrong with the proof of a certificate, checked by arithmetic alone."""
    if not (isinstance(state.problem, Polytope) and state.plan is not None and proof):
        return []
    try:
        policy = state.run.policy
        wrong = proofs.objections(state.problem, state.plan, proof, policy.delta, epsilon_of(policy))
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
