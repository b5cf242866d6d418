"""Checks a log and its certificate: everything is replayed from the first event."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from surepick.core.oracle_problem import Best, OracleProblem
from surepick.core.wording import how_many
from surepick.errors import DamageError, SessionError
from surepick.sessions import codec
from surepick.sessions.certificate import NEWER, certify
from surepick.sessions.ledger import Ledger
from surepick.sessions.settings import Setup
from surepick.store import Event, Store

OLD = (
    "an old log: its checksums have 128 bits and the fingerprint of its problem has 64, not 256 as in logs "
    "begun now; that shows damage, but not a forgery by whoever could prepare two logs with one checksum"
)


@dataclass(frozen=True)
class Verdict:
    """What a check of a session and its certificate found; it holds when there is nothing to object."""

    objections: tuple[str, ...]
    n_events: int
    n_rounds: int
    status: str
    plan_name: str | None
    remarks: tuple[str, ...] = ()  # what to know of it besides; no objections

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

    The policy decides every round again. Where plans are known by a function, it is needed as `oracle`.
    """
    objections: list[str] = []
    ledger: Ledger | None = None
    ends: dict[int, Event] = {}
    position, is_old = 0, False
    try:
        for event in store.read(name):
            position, is_old = event.position, event.is_old
            body = json.loads(event.body)
            if ledger is None:
                ledger = Ledger(Setup.from_json(body, oracle))
                continue
            ledger.apply(event.kind, body)
            if event.kind in ("stopped", "closed"):
                ends[position] = event
    except DamageError as error:
        objections.append(str(error))
    if ledger is None:
        raise SessionError(f"of session {name!r} not even the first event can be read; run `surepick doctor`")
    objections += [
        f"in round {r} the log has another decision than the policy takes" for r in ledger.surprises
    ]
    if store.head(name).position != position:
        objections.append(
            f"the log should have {how_many(store.head(name).position, 'event')} and has {position:,}"
        )
    if certificate is not None:
        objections += _compare(name, ledger, ends, certificate)
    plan = ledger.problem.name_of(ledger.plan)
    status = "running" if ledger.status is None else str(ledger.status)
    remarks = (OLD,) if is_old else ()
    return Verdict(tuple(objections), position, ledger.n_rounds, status, plan, remarks)


def _compare(name: str, ledger: Ledger, ends: Mapping[int, Event], given: Mapping[str, Any]) -> list[str]:
    """What the certificate says otherwise than the log."""
    end = ends.get(given.get("log_position", -1))
    if end is None or ledger.status is None:
        return ["the log has no end where the certificate says it ended"]
    if end.checksum != given.get("log_checksum"):
        return ["the certificate is of another log: the fingerprints differ"]
    if end != list(ends.values())[-1]:
        return ["the session was extended after this certificate; ask for a new one"]
    mine = json.loads(codec.dumps(certify(name, ledger, end).to_json()))
    theirs = json.loads(codec.dumps(dict(given)))
    ignored = ["surepick", "session", "n_unasked"]
    if not theirs.get("rivals"):
        ignored.append("rivals")  # who writes a certificate without the oracle's function does not know them
    theirs.setdefault("n_unasked_counted", 0)  # which certificates did not have at first
    for key in NEWER:
        theirs.setdefault(key, mine.get(key))
    differing = sorted(
        key for key in mine.keys() | theirs.keys() if mine.get(key) != theirs.get(key) and key not in ignored
    )
    return [f"the certificate's {key!r} is not what the log gives" for key in differing]
