"""Stores hold append-only logs of events, each event chained to all before it by its checksum.

`Store` and `Log` say what memory, SQLite and PostgreSQL do alike; all of them pass
tests/support/store_contract.py.
Every event carries the SHA-256 of itself and of all events before it, so that a changed, missing or swapped
event breaks the chain.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from json.encoder import encode_basestring as _text
from typing import NamedTuple

from surepick.errors import ConflictError, DamageError, DeletedError, StoreError, suggestion


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


class View(NamedTuple):
    """The events of a log after some head, and all its leases, read at one moment."""

    events: list[Event]
    leases: list[Lease]


class Snapshot(NamedTuple):
    """The state of a session at `head`, as a cache: losing it costs the time to replay the log.

    A store keeps and returns it only while the log has this event with this checksum, which covers all events
    before it: the snapshot of a deleted session is never read for another one.
    """

    head: Head
    body: bytes


class Log(ABC):
    """The log of one session, safe to use from many threads and processes at once.

    What `append` has acknowledged survives the death of the process and of the machine. Once the log is
    deleted, its methods raise DeletedError and change nothing, also when another log has its name by then.
    """

    name: str

    @abstractmethod
    def head(self, *, at: int | None = None) -> Head:
        """Return where this log ends now; with a position, where it ended then."""

    @abstractmethod
    def read(self, *, after: Head = START, limit: int | None = None) -> Iterator[Event]:
        """Yield the events after this head in their order, each checked against its checksum."""

    @abstractmethod
    def look(self, *, after: Head) -> View:
        """Return the events after this head and all leases, in one round trip."""

    @abstractmethod
    def find(self, key: str) -> Event | None:
        """Return the event with this key, at the same cost however long the log is."""

    @abstractmethod
    def append(self, drafts: Sequence[Draft], *, expected: Head, release: Sequence[str] = ()) -> Head:
        """Write all of the drafts or none as the next events, if the log still ends at `expected`.

        Otherwise, and when a key is already in the log, it raises ConflictError and writes nothing.
        Leases on the tokens in `release` end in the same transaction, which is committed when this returns.
        """

    @abstractmethod
    def transaction(self, *, after: Head, durable: bool = True) -> AbstractContextManager[View]:
        """Hold the write lock of this log, and look at the events after this head and at the leases.

        This thread may append once within: that commits, and lets go of the log.

        durable: False is for leases. Other claims wait, appends may continue, this thread appends nothing,
                 and what is claimed or released within need not survive a crash of the machine.
        """

    @abstractmethod
    def claim(self, tokens: Iterable[str], *, worker: str, until: float, now: float) -> list[str]:
        """Lease these tokens and return those the worker now holds: free, expired, or its own already.

        Leases are shared by all processes at once but need not survive a crash of the machine.
        """

    @abstractmethod
    def release(self, tokens: Sequence[str]) -> None:
        """End the leases on these tokens, if there are any."""

    @abstractmethod
    def leases(self) -> list[Lease]:
        """Return all leases, expired ones included, ordered by token."""

    @abstractmethod
    def save_snapshot(self, snapshot: Snapshot) -> None:
        """Keep this snapshot instead of an earlier one; do nothing if it is not of this log."""

    @abstractmethod
    def snapshot(self) -> Snapshot | None:
        """Return the snapshot, if there is one of this very log and it is as it was written."""

    @abstractmethod
    def delete(self, *, expected: Head) -> None:
        """Delete the whole log with its leases and its snapshot, if it still ends at `expected`.

        Otherwise it raises ConflictError and deletes nothing.
        """


class Store(ABC):
    """The logs of sessions, by their names."""

    place: str  # where the store is, for people; without password

    @abstractmethod
    def create(self, name: str, drafts: Sequence[Draft]) -> Log:
        """Begin a log with these events and return it; refused when the name is taken."""

    @abstractmethod
    def names(self) -> list[str]:
        """Return the names of all logs, oldest first."""

    @abstractmethod
    def log(self, name: str) -> Log:
        """Return the log that has this name now."""

    def close(self) -> None:  # noqa: B027  # memory has nothing open
        """Close files and connections; what was acknowledged stays."""


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


def checked(rows: Iterable[Sequence[object]], after: Head, log: str) -> Iterator[Event]:
    """Yield the rows as events; a DamageError if one is not what was written after the one before."""
    position, checksum = after
    for row in rows:
        event = Event(*row)  # type: ignore[arg-type]
        position += 1
        checksum = _checksum(checksum, position, Draft(event.kind, event.body, event.time, event.key))
        if event.position != position:
            what = f"session {log!r} lacks event {position}: its log continues with event {event.position}"
            raise DamageError(f"{what}; run `surepick verify --all`")
        if event.checksum != checksum:
            what = f"event {position} of session {log!r} does not match its checksum: it was changed"
            raise DamageError(f"{what}; run `surepick verify --all`")
        yield event


def _checksum(before: str, position: int, draft: Draft) -> str:
    """Return the checksum of the JSON text [before, position, kind, key, time, body].

    The text is written out here because this runs for every event that is read.
    """
    kind, body, time, key = draft
    name = "null" if key is None else _text(key)
    line = f'["{before}",{position},{_text(kind)},{name},{time!r},{_text(body)}]'
    return hashlib.sha256(line.encode()).hexdigest()


def moved_on(name: str, expected: Head) -> ConflictError:
    """Return the error of an append at a head where the log no longer ends."""
    return ConflictError(
        f"session {name!r} no longer ends at event {expected.position}; read on and try again"
    )


def deleted(name: str, place: str) -> DeletedError:
    """Return the error of a session that is open and was deleted."""
    return DeletedError(
        f"session {name!r} was deleted from {place} after it was opened here, so nothing was done; if "
        "there is a new one of this name, load it"
    )


def unknown(name: str, store: Store) -> StoreError:
    """Return the error of a name that no session of this store has."""
    return StoreError(
        f"there is no session named {name!r} in {store.place}; {suggestion(name, store.names())}"
    )
