"""Checks a log and its certificate: everything is replayed from the first event by the rules of `rules`."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from surepick._version import __version__
from surepick.core import average_proof, vertex_proof
from surepick.core.oracle_problem import Best, OracleProblem
from surepick.core.policy import epsilon_of
from surepick.core.polytope import Polytope
from surepick.core.wording import how_many
from surepick.errors import DamageError, ParameterError, ProblemError
from surepick.sessions import codec
from surepick.sessions.certificate import NEWER, certify
from surepick.sessions.ledger import Ledger
from surepick.sessions.noise_check import EARLIER_WANDERING, check_noise
from surepick.sessions.replay import Replay, version_of
from surepick.sessions.rules import ForgedError
from surepick.sessions.settings import Body
from surepick.store import START, Event, Head, Store
from surepick.store.events import checked

LAST_BITS = 1e-9  # of a number: what another machine may compute otherwise

NOTHING = "not even the first event can be read; run `surepick doctor`"


@dataclass(frozen=True)
class Verdict:
    """What a check of a session and its certificate found; it holds when there is nothing to object."""

    objections: tuple[str, ...]
    n_events: int
    n_rounds: int
    status: str
    plan_name: str | None
    remarks: tuple[str, ...] = ()  # what to know of it besides; no objections
    question: str = ""  # the fingerprint of what the session began with, as `new --announce` prints it

    @property
    def holds(self) -> bool:
        """Whether everything was found as it should be."""
        return not self.objections


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


class _Log:
    """A log that is being checked; it changes by `judged` alone, which is called once.

    Others may append meanwhile: it reaches where it ended `before`, and not beyond where it ends `after`.
    """

    def __init__(self, name: str, before: Head, after: Callable[[], Head]) -> None:
        self.name = name
        self.before, self.after = before, after
        self.last: Event | None = None
        self.ends: list[Event] = []
        self.n_unasked = 0  # when the session last ended

    def judged(
        self, events: Iterable[Event], given: Body | None, oracle: Best | OracleProblem | None
    ) -> Verdict:
        replay: Replay | None = None
        objections, remarks = list[str](), list[str]()
        try:
            for event in events:
                self._note(event)
                if replay is None:
                    replay = Replay(event, oracle)
                    continue
                replay.take(event)
                if event.kind in ("stopped", "closed"):
                    self.ends.append(event)
                    self.n_unasked = replay.ledger.n_unasked
            objections += self._objections_to_its_end()
        except DamageError as error:
            objections.append(str(error))
        except ForgedError as error:
            assert self.last is not None
            objections.append(
                f"event {self.last.position} ({self.last.kind}) is none that a session writes there: "
                f"{error}; what follows was not looked at"
            )
        if replay is None:
            return Verdict((*objections, NOTHING), 0, 0, "unknown", None, tuple(remarks))
        if given is not None and not objections:
            objections += self._compare(replay, given)
        return _verdict(self.name, replay, self.last, objections, remarks)

    def _note(self, event: Event) -> None:
        """Keep the event as the last one; the log says itself where it ended before."""
        self.last = event
        if event.position == self.before.position and event.head != self.before:
            raise DamageError(
                f"event {event.position} of session {self.name!r} is not the one that the log says it ends "
                "with; run `surepick doctor`"
            )

    def _objections_to_its_end(self) -> Iterator[str]:
        n = 0 if self.last is None else self.last.position
        if not self.before.position <= n <= self.after().position:
            yield f"the log should have {how_many(self.before.position, 'event')} and has {n:,}"

    def _compare(self, replay: Replay, given: Body) -> list[str]:
        """What the certificate says otherwise than the log."""
        end = next((end for end in self.ends if end.position == given.get("log_position")), None)
        if end is None:
            return ["the log has no end where the certificate says it ended"]
        if end.checksum != given.get("log_checksum"):
            return ["the certificate is of another log: the fingerprints differ"]
        if end is not self.ends[-1] or replay.ledger.status is None:
            return ["the session went on after this certificate; ask for a new one"]
        mine = as_certificate(certify(self.name, replay.ledger, end).to_json())
        needs_function = codec.needs_function(codec.problem_to_json(replay.setup.problem))
        if needs_function:  # keys that certificates without the function do not have
            given = {**{name: mine[name] for name in NEWER if name in mine}, "n_unasked_counted": 0, **given}
        accepted = {
            "session": given.get("session") in (self.name, replay.name),
            "surepick": _is_between(given.get("surepick"), replay.surepick),
            "n_unasked": type(given.get("n_unasked")) is int
            and self.n_unasked <= given["n_unasked"] <= replay.ledger.n_unasked,
            "signature": True,  # which is about the certificate, not a part of it
        }
        if given.get("noise_findings"):
            either = (mine["noise_findings"], _found_then(replay))
            accepted["noise_findings"] = any(same(one, given["noise_findings"]) for one in either)
        if given.get("rivals") == [] and needs_function:
            accepted["rivals"] = True  # they are not known to who writes it without the function
        last_bits = LAST_BITS if replay.setup.problem.probes is not None else 0.0
        names = sorted(mine.keys() | given.keys())
        differing = [
            n
            for n in names
            if not accepted.get(n, n in mine and n in given and same(mine[n], given[n], last_bits))
        ]
        found = [f"the certificate's {name!r} is not what the log gives" for name in differing]
        return found + _of_proof(replay.ledger, given.get("proof"))


def _found_then(replay: Replay) -> Any:
    """What the noise check of surepick's first builds finds, as JSON values."""
    ledger = replay.ledger
    found = check_noise(
        ledger.problem, ledger.run.seen.noise, ledger.withdrawals, wandering=EARLIER_WANDERING
    )
    return as_certificate({"noise_findings": list(map(asdict, found))})["noise_findings"]


def _of_proof(ledger: Ledger, proof: Any) -> list[str]:
    """What is wrong with the proof of a certificate, by arithmetic alone."""
    if not (isinstance(ledger.problem, Polytope) and ledger.plan is not None and proof):
        return []
    try:
        policy, given = ledger.run.policy, (ledger.problem, ledger.plan, proof)
        if "series" in proof:
            wrong = average_proof.objections(*given, policy.delta, epsilon_of(policy))
        else:
            wrong = vertex_proof.objections(*given, policy.delta)
    except (ArithmeticError, KeyError, TypeError, ValueError, ProblemError):
        wrong = ["it has another form"]
    return [f"the certificate's proof does not hold: {words}" for words in wrong]


def _verdict(
    name: str, replay: Replay, last: Event | None, objections: list[str], remarks: list[str]
) -> Verdict:
    ledger = replay.ledger
    if replay.name not in (None, name):
        remarks.append(f"it began under the name {replay.name!r}")
    if replay.n_extended:
        remarks.append(
            f"it was extended {how_many(replay.n_extended, 'time')}: it began with delta "
            f"{replay.setup.policy.delta:g}, and now delta is {ledger.setup.policy.delta:g}"
        )
    if ledger.n_voided:
        remarks.append(
            f"{how_many(ledger.n_voided, 'told value was', 'told values were')} taken back as no measurement"
        )
    return Verdict(
        tuple(objections),
        0 if last is None else last.position,
        ledger.n_rounds,
        "running" if ledger.status is None else str(ledger.status),
        ledger.problem.name_of(ledger.plan),
        tuple(remarks),
        replay.setup.fingerprint,
    )


def as_certificate(given: object) -> Body:
    """The certificate as JSON values; refused if it is none."""
    if not isinstance(given, Mapping):
        raise ParameterError(
            f"a certificate is a JSON object, as `surepick status --json` has one, got {type(given).__name__}"
        )
    try:
        values: Body = json.loads(codec.dumps(dict(given)))
    except (TypeError, ValueError, RecursionError) as error:
        raise ParameterError(
            f"a certificate holds text and finite numbers, and this one does not: {error}"
        ) from None
    return values


def same(mine: object, theirs: object, last_bits: float = 0.0) -> bool:
    """Whether two JSON values are equal: 1 and 1.0 are, which some programs write alike; true is neither.

    Fractions may differ by `last_bits` of them: where probes are used, BLAS does between machines.
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
        return math.isclose(mine, theirs, rel_tol=last_bits)
    return mine == theirs


def _is_between(given: object, begun: str) -> bool:
    """Whether this is the version of a surepick that can have written it: not before the log began, not later
    than this one, which would know less than it.
    """
    version = version_of(given)
    return version is not None and (version_of(begun) or ()) <= version <= (version_of(__version__) or ())
