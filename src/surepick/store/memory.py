"""The store that lives as long as the program: for tests, notebooks and `surepick demo`."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from surepick.errors import ConflictError, DamageError, name_taken
from surepick.store.log import (
    START,
    Draft,
    Event,
    Head,
    Lease,
    Log,
    Snapshot,
    Store,
    View,
    checked,
    deleted,
    moved_on,
    seal,
    unknown,
)


class MemoryStore(Store):
    """Logs in lists, for the threads of one process."""

    place = "memory"

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.logs: dict[str, MemoryLog] = {}
        self.n_made = 0  # logs, deleted ones included

    def copy(self) -> MemoryStore:
        """Return an independent store with the same logs, leases and snapshots."""
        other = MemoryStore()
        with self.lock:
            other.logs = {name: log.copy(other) for name, log in self.logs.items()}
            other.n_made = self.n_made
        return other

    def create(self, name: str, drafts: Sequence[Draft]) -> MemoryLog:
        with self.lock:
            if name in self.logs:
                raise name_taken(name, self.place)
            log = MemoryLog(self, name, self.n_made + 1)
            log.append(drafts, expected=START)
            self.n_made += 1
            self.logs[name] = log
            return log

    def names(self) -> list[str]:
        return list(self.logs)

    def log(self, name: str) -> MemoryLog:
        found = self.logs.get(name)
        if found is None:
            raise unknown(name, self)
        return found


class MemoryLog(Log):
    """A log in a list; it changes only by appending."""

    def __init__(self, store: MemoryStore, name: str, number: int) -> None:
        self.name = name
        self.number = number  # of all logs that were made in this store, deleted ones included
        self._store = store
        self._is_deleted = False
        self._events: list[Event] = []
        self._keyed: dict[str, Event] = {}
        self._leases: dict[str, Lease] = {}
        self._snapshot: Snapshot | None = None

    def copy(self, store: MemoryStore) -> MemoryLog:
        """Return an independent log with the same events, leases and snapshot, in this store."""
        other = MemoryLog(store, self.name, self.number)
        other._events, other._keyed = list(self._events), dict(self._keyed)
        other._leases, other._snapshot = dict(self._leases), self._snapshot
        return other

    @contextmanager
    def _held(self) -> Iterator[None]:
        """Hold the store; refused if this log was deleted."""
        with self._store.lock:
            if self._is_deleted:
                raise deleted(self.name, self._store.place)
            yield

    def head(self, *, at: int | None = None) -> Head:
        with self._held():
            if at is not None and 0 < at <= len(self._events):
                return self._events[at - 1].head
            return self._events[-1].head if self._events else START

    def read(self, *, after: Head = START, limit: int | None = None) -> Iterator[Event]:
        with self._held():
            if after != START and not self._has(after):
                raise DamageError(
                    f"session {self.name!r} no longer has the event {after.position} read before"
                )
            rows = self._events[after.position :][:limit]
        return checked(rows, after, self.name)

    def _has(self, head: Head) -> bool:
        """Return whether this was the head of the log, now or before."""
        return [event.head for event in self._events[head.position - 1 :][:1]] == [head]

    def look(self, *, after: Head) -> View:
        with self._held():
            return View(list(self.read(after=after)), self.leases())

    def find(self, key: str) -> Event | None:
        with self._held():
            return self._keyed.get(key)

    def append(self, drafts: Sequence[Draft], *, expected: Head, release: Sequence[str] = ()) -> Head:
        with self._held():
            if self.head() != expected:
                raise moved_on(self.name, expected)
            keys = [draft.key for draft in drafts if draft.key is not None]
            if len(set(keys)) < len(keys) or any(key in self._keyed for key in keys):
                raise ConflictError(f"an event with one of the keys {keys} is already in the log")
            for event in seal(drafts, expected):
                self._events.append(event)
                if event.key is not None:
                    self._keyed[event.key] = event
            self.release(release)
            return self.head()

    @contextmanager
    def transaction(self, *, after: Head, durable: bool = True) -> Iterator[View]:
        with self._held():
            yield self.look(after=after)

    def claim(self, tokens: Iterable[str], *, worker: str, until: float, now: float) -> list[str]:
        with self._held():
            held = []
            for token in tokens:
                lease = self._leases.get(token)
                if lease is None or lease.expires <= now or lease.worker == worker:
                    self._leases[token] = Lease(token, worker, until)
                    held.append(token)
            return held

    def release(self, tokens: Sequence[str]) -> None:
        with self._held():
            for token in tokens:
                self._leases.pop(token, None)

    def leases(self) -> list[Lease]:
        with self._held():
            return sorted(self._leases.values())

    def save_snapshot(self, snapshot: Snapshot) -> None:
        with self._held():
            if self._has(snapshot.head):
                self._snapshot = snapshot

    def snapshot(self) -> Snapshot | None:
        with self._held():
            return self._snapshot

    def delete(self, *, expected: Head) -> None:
        with self._held():
            if self.head() != expected:
                raise moved_on(self.name, expected)
            del self._store.logs[self.name]
            self._is_deleted = True
