"""Events and their chain: every event carries the SHA-256 of itself and of all events before it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from json.encoder import encode_basestring as _text
from typing import NamedTuple

from surepick.errors import DamageError


class Head(NamedTuple):
    """The end of a log: its number of events, and the checksum of the last, which covers all of them."""

    position: int
    checksum: str


START = Head(0, "0" * 64)


class Draft(NamedTuple):
    """An event that is not in a log yet; `body` is JSON text and `key` is unique within its log."""

    kind: str
    body: str
    time: float  # seconds since 1970, UTC
    key: str | None = None


class Event(NamedTuple):
    """An event as the log keeps it, never to be changed; the first one has position 1."""

    position: int
    kind: str
    key: str | None
    time: float
    body: str
    checksum: str

    @property
    def head(self) -> Head:
        """The head of the log when this event was its last."""
        return Head(self.position, self.checksum)


LEASE = 3600.0  # seconds a worker has for a measurement before another worker may get it
HAND_LEASE = 3 * 86400.0  # measuring by hand may take days, and other workers get other requests


class Lease(NamedTuple):
    """A token that a worker is measuring until the lease ends; losing it costs time, never a measurement."""

    token: str
    worker: str
    expires: float  # seconds since 1970, UTC


class Claim(NamedTuple):
    """Tokens that a worker wants to hold; it gets those that are free, expired, or its own already."""

    tokens: list[str]
    worker: str
    until: float
    now: float


class View(NamedTuple):
    """The events of a log after some head, and all its leases, read at one moment."""

    events: list[Event]
    leases: list[Lease]
    held: Sequence[str] = ()  # the tokens that a claim made with the look has got


class Snapshot(NamedTuple):
    """The state of a session at `head`, as a cache: losing it costs the time to replay the log.

    `first` is the checksum of event 1. A store keeps and returns a snapshot only while both events are in the
    log with these checksums, so the snapshot of a deleted session is never read for another one.
    """

    head: Head
    first: str
    body: bytes


def seal(drafts: Iterable[Draft], head: Head) -> list[Event]:
    """Return the drafts as the next events of a log that ends at `head`.

    >>> first, second = seal([Draft("noted", "{}", 0.0), Draft("noted", "{}", 0.0)], START)
    >>> second.position, first.checksum != second.checksum
    (2, True)
    """
    events = []
    position, checksum = head
    for draft in drafts:
        position += 1
        checksum = _checksum(checksum, position, draft)
        events.append(Event(position, draft.kind, draft.key, draft.time, draft.body, checksum))
    return events


def is_successor(event: Event, head: Head) -> bool:
    """Return whether this event is exactly what was written after this head."""
    position, kind, key, time, body, checksum = event
    expected = _checksum(head.checksum, head.position + 1, Draft(kind, body, time, key))
    return position == head.position + 1 and checksum == expected


def checked(rows: Iterable[Sequence[object]], after: Head, log: str) -> Iterator[Event]:
    """Yield the rows as events; a DamageError if one is not what was written after the one before."""
    head = after
    for row in rows:
        event = Event(*row)  # type: ignore[arg-type]
        if not is_successor(event, head):
            raise DamageError(_broken(log, head.position + 1, event.position))
        head = Head(event.position, event.checksum)
        yield event


def _checksum(before: str, position: int, draft: Draft) -> str:
    """Return the checksum of the JSON text [before, position, kind, key, time, body].

    The text is written out here because this runs for every event that is read.
    """
    kind, body, time, key = draft
    name = "null" if key is None else _text(key)
    line = f'["{before}",{position},{_text(kind)},{name},{time!r},{_text(body)}]'
    return hashlib.sha256(line.encode()).hexdigest()


def _broken(log: str, expected: int, found: int) -> str:
    if found != expected:
        what = f"session {log!r} lacks event {expected}: its log continues with event {found}"
    else:
        what = f"event {expected} of session {log!r} does not match its checksum: it was changed"
    return f"{what}; run `surepick doctor`"
