"""The store that lives as long as the program: for tests, notebooks and `surepick demo`."""

from __future__ import annotations

import copy
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from surepick.errors import ConflictError, DamageError, StoreError, name_taken, suggestion
from surepick.store.log import (
    START,
    Draft,
    Event,
    Head,
    Lease,
    Snapshot,
    Store,
    View,
    checked,
    deleted,
    moved_on,
    seal,
)


class MemoryStore(Store):
    """Logs in lists, for the threads of one process; logs change only by appending."""

    place = "memory"

    def __init__(self) -> None:
        self._logs: dict[int, _Log] = {}  # by id, which is never used again
        self._ids: dict[str, int] = {}
        self._made: list[str] = []  # the names of all logs ever made
        self._pinned: tuple[str, int] | None = None  # a name and the id of the log that it means here
        self._lock = threading.RLock()

    def copy(self) -> MemoryStore:
        """Return an independent store with the same logs, leases and snapshots."""
        other = MemoryStore()
        with self._lock:
            other._logs = {number: log.copy() for number, log in self._logs.items()}
            other._ids, other._made = dict(self._ids), list(self._made)
        return other

    def create(self, name: str, drafts: Sequence[Draft]) -> Head:
        with self._lock:
            if name in self._ids:
                raise name_taken(name, self.place)
            log = _Log()
            head = log.append(drafts)
            self._made.append(name)
            self._ids[name] = len(self._made)
            self._logs[len(self._made)] = log
            return head

    def names(self) -> list[str]:
        return list(self._ids)

    def pin(self, name: str, number: int | None = None) -> MemoryStore:
        pinned = copy.copy(self)  # which shares everything but what the name means
        pinned._pinned = None
        pinned._pinned = (name, pinned.number(name) if number is None else number)
        return pinned

    def number(self, name: str) -> int:
        """Return the id of the log with this name.

        A pinned name means the log that had it then, also if that was deleted and another log has the name
        now: a session must not go on in a log that is not its own.
        """
        if self._pinned is not None:
            pinned_name, number = self._pinned
            if pinned_name == name:
                if number not in self._logs:
                    raise deleted(name, self.place)
                return number
        if name not in self._ids:
            raise StoreError(f"there is no session named {name!r} in memory; {suggestion(name, self._ids)}")
        return self._ids[name]

    def head(self, name: str, *, at: int | None = None) -> Head:
        log = self._log(name)
        return log.head if at is None or not 0 < at <= len(log.events) else log.events[at - 1].head

    def read(self, name: str, *, after: Head = START, limit: int | None = None) -> Iterator[Event]:
        with self._lock:
            events = self._log(name).events
            if after != START and [event.head for event in events[after.position - 1 :][:1]] != [after]:
                raise DamageError(f"session {name!r} no longer has the event {after.position} read before")
            rows = events[after.position :][:limit]
        return checked(rows, after, name)

    def look(self, name: str, *, after: Head) -> View:
        with self._lock:
            return View(list(self.read(name, after=after)), self.leases(name))

    def find(self, name: str, key: str) -> Event | None:
        return self._log(name).keyed.get(key)

    def append(
        self, name: str, drafts: Sequence[Draft], *, expected: Head, release: Sequence[str] = ()
    ) -> Head:
        with self._lock:
            log = self._log(name)
            if log.head != expected:
                raise moved_on(name, expected)
            head = log.append(drafts)
            self.release(name, release)
            return head

    @contextmanager
    def transaction(self, name: str, *, after: Head | None = None, durable: bool = True) -> Iterator[View]:
        with self._lock:
            log = self._log(name)
            before = log.head
            try:
                yield self.look(name, after=before if after is None else after)
            except BaseException:
                log.cut(before)
                raise

    def claim(self, name: str, tokens: Iterable[str], *, worker: str, until: float, now: float) -> list[str]:
        with self._lock:
            leases = self._log(name).leases
            held = []
            for token in tokens:
                lease = leases.get(token)
                if lease is None or lease.expires <= now or lease.worker == worker:
                    leases[token] = Lease(token, worker, until)
                    held.append(token)
            return held

    def release(self, name: str, tokens: Sequence[str]) -> None:
        with self._lock:
            for token in tokens:
                self._log(name).leases.pop(token, None)

    def leases(self, name: str) -> list[Lease]:
        with self._lock:
            return sorted(self._log(name).leases.values())

    def save_snapshot(self, name: str, snapshot: Snapshot) -> None:
        with self._lock:
            log = self._log(name)
            if log.has(snapshot):
                log.snapshot = snapshot

    def snapshot(self, name: str) -> Snapshot | None:
        return self._log(name).snapshot

    def delete(self, name: str, *, expected: Head) -> None:
        with self._lock:
            if self._log(name).head != expected:
                raise moved_on(name, expected)
            del self._logs[self.number(name)], self._ids[name]

    def _log(self, name: str) -> _Log:
        return self._logs[self.number(name)]


class _Log:
    """One log: its events in order, those that have a key, its leases and its snapshot."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.keyed: dict[str, Event] = {}
        self.leases: dict[str, Lease] = {}
        self.snapshot: Snapshot | None = None

    def copy(self) -> _Log:
        other = _Log()
        other.events, other.keyed = list(self.events), dict(self.keyed)
        other.leases, other.snapshot = dict(self.leases), self.snapshot
        return other

    @property
    def head(self) -> Head:
        return self.events[-1].head if self.events else START

    def has(self, snapshot: Snapshot) -> bool:
        """Return whether this is a snapshot of this log."""
        at = snapshot.head.position
        return 0 < at <= len(self.events) and self.events[at - 1].head == snapshot.head

    def append(self, drafts: Sequence[Draft]) -> Head:
        keys = [draft.key for draft in drafts if draft.key is not None]
        if len(set(keys)) < len(keys) or any(key in self.keyed for key in keys):
            raise ConflictError(f"an event with one of the keys {keys} is already in the log")
        for event in seal(drafts, self.head):
            self.events.append(event)
            if event.key is not None:
                self.keyed[event.key] = event
        return self.head

    def cut(self, head: Head) -> None:
        """Remove the events after this head."""
        for event in self.events[head.position :]:
            if event.key is not None:
                del self.keyed[event.key]
        del self.events[head.position :]
