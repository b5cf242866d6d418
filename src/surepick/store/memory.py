"""The store that lives as long as the program: for tests, notebooks and `surepick demo`."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from surepick.errors import ConflictError, StoreError, name_taken, suggestion
from surepick.store.events import START, Claim, Draft, Event, Head, Lease, Snapshot, View, checked, seal


class MemoryStore:
    """Logs in lists, for the threads of one process; logs change only by appending."""

    place = "memory"

    def __init__(self) -> None:
        self._logs: dict[str, _Log] = {}
        self._lock = threading.RLock()

    def copy(self) -> MemoryStore:
        """A store with the same logs, leases and snapshots; from now on each goes its own way."""
        other = MemoryStore()
        with self._lock:
            other._logs = {name: log.copy() for name, log in self._logs.items()}
        return other

    def create(self, name: str, drafts: Sequence[Draft], *, start: Head = START) -> Head:
        """Begin a log with these events; refused when the name is taken."""
        with self._lock:
            if name in self._logs:
                raise name_taken(name, self.place)
            self._logs[name] = log = _Log(start)
            return log.append(drafts)

    def names(self) -> list[str]:
        """The names of all logs, oldest first."""
        return list(self._logs)

    def head(self, name: str) -> Head:
        """Where this log ends now."""
        return self._log(name).head

    def read(self, name: str, *, after: Head = START, limit: int | None = None) -> Iterator[Event]:
        """The events after this head in their order, each checked against its checksum."""
        with self._lock:
            rows = self._log(name).events[after.position :][:limit]
        return checked(rows, after, name)

    def look(self, name: str, *, after: Head, claim: Claim | None = None) -> View:
        """What `read` gives after this head, and all leases."""
        with self._lock:
            held = (
                []
                if claim is None
                else self.claim(name, claim.tokens, worker=claim.worker, until=claim.until, now=claim.now)
            )
            return View(list(self.read(name, after=after)), self.leases(name), held)

    def find(self, name: str, key: str) -> Event | None:
        """The event with this key, at the same cost however long the log is."""
        return self._log(name).keyed.get(key)

    def append(
        self, name: str, drafts: Sequence[Draft], *, expected: Head, release: Sequence[str] = ()
    ) -> Head:
        """All of the drafts or none become the next events, if the log still ends at `expected`."""
        with self._lock:
            log = self._log(name)
            if log.head != expected:
                raise moved_on(name, expected)
            head = log.append(drafts)
            self.release(name, release)
            return head

    @contextmanager
    def exclusive(
        self,
        name: str,
        *,
        after: Callable[[], Head] | None = None,
        durable: bool = True,
        meanwhile: Callable[[], None] = lambda: None,
    ) -> Iterator[View]:
        """Within it nobody else writes to this log, and what this thread appends is one transaction."""
        with self._lock:
            log = self._log(name)
            before = log.head
            try:
                yield self.look(name, after=before if after is None else after())
            except BaseException:
                log.cut(before)
                raise

    def claim(self, name: str, tokens: Iterable[str], *, worker: str, until: float, now: float) -> list[str]:
        """The tokens of these that the worker holds from now on: free, expired, or its own already."""
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
        """End the leases on these tokens, if there are any."""
        with self._lock:
            for token in tokens:
                self._log(name).leases.pop(token, None)

    def leases(self, name: str) -> list[Lease]:
        """All leases, expired ones included, ordered by token."""
        with self._lock:
            return sorted(self._log(name).leases.values())

    def save_snapshot(self, name: str, snapshot: Snapshot) -> None:
        """Keep this snapshot instead of an earlier one."""
        self._log(name).snapshot = snapshot

    def snapshot(self, name: str) -> Snapshot | None:
        """The snapshot that was kept, or None."""
        return self._log(name).snapshot

    def delete(self, name: str, *, expected: Head) -> None:
        """Delete a whole log, if it still ends at `expected`."""
        with self._lock:
            if self._log(name).head != expected:
                raise moved_on(name, expected)
            del self._logs[name]

    def settle(self) -> None:
        """Nothing to wait for."""

    def let_go(self) -> None:
        """Nothing to let go of."""

    def close(self) -> None:
        """Nothing to let go of."""

    def _log(self, name: str) -> _Log:
        if name not in self._logs:
            raise StoreError(f"there is no session named {name!r} in memory; {suggestion(name, self._logs)}")
        return self._logs[name]


def moved_on(name: str, expected: Head) -> ConflictError:
    """The error of who believed that a log ends where it no longer does."""
    return ConflictError(
        f"session {name!r} no longer ends at event {expected.position}; read on and try again"
    )


class _Log:
    """One log: its events in order, those that have a key, its leases and its snapshot."""

    def __init__(self, start: Head) -> None:
        self.start = start
        self.events: list[Event] = []
        self.keyed: dict[str, Event] = {}
        self.leases: dict[str, Lease] = {}
        self.snapshot: Snapshot | None = None

    def copy(self) -> _Log:
        other = _Log(self.start)
        other.events, other.keyed = list(self.events), dict(self.keyed)
        other.leases, other.snapshot = dict(self.leases), self.snapshot
        return other

    @property
    def head(self) -> Head:
        return self.events[-1].head if self.events else self.start

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
        """Forget what was appended after this head."""
        for event in self.events[head.position :]:
            if event.key is not None:
                del self.keyed[event.key]
        del self.events[head.position :]
