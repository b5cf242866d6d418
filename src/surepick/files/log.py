"""A session's log as JSON, to be checked and continued elsewhere.

`export` writes it, `verify` and `import` read it. Nothing else stands beside the log and the certificate in a
file, so that everything in it is checked.
Bodies stay the text that was sealed, so that every checksum can be computed again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from surepick.core.oracle_problem import Best, OracleProblem
from surepick.errors import FileError, ProblemError, SessionError
from surepick.sessions.session import Session
from surepick.sessions.verify import Verdict, verify_events
from surepick.store import Draft, Event, Head, Store, open_store
from surepick.tables import refuse_endless

_FIELDS = ("position", "kind", "key", "time", "body", "checksum")
_LOG = ("session", "position", "checksum", "events")


@dataclass(frozen=True)
class LogFile:
    """A log that is in no store: the name of its session, its events, and where it says that it ends."""

    name: str
    events: tuple[Event, ...]
    head: Head

    def to_json(self) -> dict[str, Any]:
        """Return this as JSON values."""
        events = [dict(zip(_FIELDS, event, strict=True)) for event in self.events]
        return {"session": self.name, **self.head._asdict(), "events": events}

    def verify(
        self, certificate: Mapping[str, Any] | None = None, *, oracle: Best | OracleProblem | None = None
    ) -> Verdict:
        """Verify this log, and a certificate if given, as `Session.verify` does."""
        return verify_events(self.name, self.events, self.head, certificate, oracle=oracle)

    def session(self) -> Session:
        """Return the session of this log, in memory, to be looked at; a log that does not hold is refused."""
        verdict = self.verify()
        if not verdict.holds:
            raise SessionError(f"the log of session {self.name!r} does not hold: {verdict.objections[0]}")
        store = open_store("memory://")
        store.create(
            self.name, [Draft(event.kind, event.body, event.time, event.key) for event in self.events]
        )
        return Session.load(store, self.name, read_only=True)


def log_of(store: Store, name: str) -> LogFile:
    """The log of this session of a store."""
    events = tuple(store.log(name).read())
    if not events:
        raise SessionError(f"the log of session {name!r} is empty; run `surepick verify --all`")
    return LogFile(name, events, events[-1].head)


def read_json(path: Path) -> Any:
    """The JSON in this file; whatever is wrong with it is a FileError."""
    try:
        refuse_endless(path)
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError, ProblemError) as error:
        raise FileError(f"cannot read JSON from {str(path)!r}: {error}") from None


def log_in(data: object) -> LogFile | None:
    """Return the log in these JSON values, which are one or an export that has one; None if there is none."""
    log = data.get("log", data) if isinstance(data, dict) else None
    if not isinstance(log, dict) or "events" not in log:
        return None
    assert isinstance(data, dict)
    _refuse_unchecked(data, ("log", "certificate") if log is not data else _LOG)
    _refuse_unchecked(log, _LOG)
    for row in log["events"] if isinstance(log["events"], list) else ():
        _refuse_unchecked(row if isinstance(row, dict) else {}, _FIELDS)
    try:
        name = log["session"]
        head = Head(log["position"], log["checksum"])
        events = tuple(map(_event, log["events"]))
        _is(name, str), _is(head.position, int), _is(head.checksum, str)
    except (LookupError, TypeError, ValueError, OverflowError) as error:
        raise FileError(
            f"this is no log as `surepick export -o log.json` writes it: {type(error).__name__}: {error}"
        ) from None
    return LogFile(name, events, head)


def _refuse_unchecked(found: Mapping[str, Any], known: Sequence[str]) -> None:
    """Refuse what no check looks at: people would believe it."""
    more = [name for name in found if name not in known]
    if more:
        raise FileError(
            f"this file has {str(more[0])[:80]!r} beside the log, which nothing checks; take it out, or "
            "export the session again",
            field=str(more[0]),
        )


def certificate_in(data: object) -> dict[str, Any] | None:
    """The certificate in these JSON values: they are one, or what `status` and `export` write; else None."""
    certificate = data.get("certificate", data) if isinstance(data, dict) else None
    return certificate if isinstance(certificate, dict) and "log_checksum" in certificate else None


def _event(row: Mapping[str, Any]) -> Event:
    position, kind, key, time, body, checksum = (row[name] for name in _FIELDS)
    _is(position, int)
    for text in (kind, body, checksum, "" if key is None else key):
        _is(text, str).encode()  # half of a surrogate pair is a ValueError
    _is(time, (int, float))
    return Event(position, kind, key, float(time), body, checksum)


def _is(value: Any, kind: type | tuple[type, ...]) -> Any:
    if isinstance(value, bool) or not isinstance(value, kind):
        raise TypeError(f"{str(value)[:80]!r} stands where something else should")
    return value
