"""Events and their chain: every event carries a checksum of itself and of all events before it.

A checksum is SHA-256 in hexadecimal, all 64 digits of it. Logs that were begun before have the first 32
digits and keep to them: each checksum is as long as the one before it, so a log is of one form from its first
event to its last, and none is ever written again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from json.encoder import encode_basestring as _text
from typing import TYPE_CHECKING, NamedTuple

from surepick.errors import DamageError

if TYPE_CHECKING:
    from surepick.store.mailbox import Wish


class Head(NamedTuple):
    """Where a log ends: how many events it has, and the fingerprint of all of them."""

    position: int
    checksum: str


DIGITS, OLD_DIGITS = 64, 32  # of a checksum: in logs begun now, and in those begun before
START = Head(0, "0" * DIGITS)


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

    @property
    def is_old(self) -> bool:
        """Whether its log was begun when checksums were shorter."""
        return len(self.checksum) == OLD_DIGITS


LEASE = 3600.0  # seconds a worker has for a measurement before somebody else may get it
HAND_LEASE = 3 * 86400.0  # who measures by hand may need days, and others get other tokens


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
    """What a log holds after some head, and who is measuring what, seen at one moment."""

    events: list[Event]
    leases: list[Lease]
    held: Sequence[str] = ()  # of a claim made with the look: the tokens that are its worker's now
    wishes: Sequence[Wish] = ()  # of others who wait to write to this log


class Snapshot(NamedTuple):
    """What a session had made of its log up to `head`: a cache, and losing it loses nothing."""

    head: Head
    body: bytes


def seal(drafts: Iterable[Draft], head: Head) -> list[Event]:
    """The drafts as the next events of a log that ends at `head`.

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
    """Whether this event is exactly what was written after this head."""
    position, kind, key, time, body, checksum = event
    before = start_of(event).checksum if head == START else head.checksum
    expected = _checksum(before, head.position + 1, Draft(kind, body, time, key))
    return position == head.position + 1 and checksum == expected


def start_of(first: Event) -> Head:
    """The head before the first event of a log: as many zeros as its checksums have digits."""
    return Head(0, "0" * OLD_DIGITS) if first.is_old else START


def checked(rows: Iterable[Sequence[object]], after: Head, log: str) -> Iterator[Event]:
    """The rows as events, each of them proved to be the one that was written after the one before."""
    head = after
    for row in rows:
        event = Event(*row)  # type: ignore[arg-type]
        if not is_successor(event, head):
            raise DamageError(_broken(log, head.position + 1, event.position))
        head = Head(event.position, event.checksum)
        yield event


def _checksum(before: str, position: int, draft: Draft) -> str:
    """Of the JSON text [before, position, kind, key, time, body]; written out, being needed so often."""
    kind, body, time, key = draft
    name = "null" if key is None else _text(key)
    line = f'["{before}",{position},{_text(kind)},{name},{time!r},{_text(body)}]'
    return hashlib.sha256(line.encode()).hexdigest()[: len(before)]


def _broken(log: str, expected: int, found: int) -> str:
    if found != expected:
        what = f"session {log!r} lacks event {expected}: the log continues with event {found}"
    else:
        what = (
            f"event {expected} of session {log!r} does not match its checksum, so it or an earlier one was "
            "changed after it was written"
        )
    return f"{what}; run `surepick doctor` to see what can be read"
