"""The store that lives as long as the program: for tests, notebooks and `surepick demo`."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from surepick.errors import ConflictError, StoreError, suggestion
from surepick.store.events import START, Draft, Event, Head, checked, seal


class MemoryStore:
    """Logs in lists, for the threads of one process; it changes only by appending."""

    place = "memory"

    def __init__(self) -> None:
        self._logs: dict[str, _Log] = {}
        self._lock = threading.RLock()

    def create(self, name: str, drafts: Sequence[Draft]) -> Head:
        """Begin a log with these events; refused when the name is taken."""
        with self._lock:
            if name in self._logs:
                raise StoreError(
                    f"there is already a session named {name!r} in memory; load it, or choose another name"
                )
            self._logs[name] = log = _Log()
            return log.append(drafts)

    def names(self) -> list[str]:
        """The names of all logs, oldest first."""
        return list(self._logs)

    def head(self, name: str) -> Head:
        """Where this log ends now."""
        return self._log(name).head

    def read(self, name: str, *, after: Head = START) -> Iterator[Event]:
        """The events after this head in their order, each checked against its checksum."""
        with self._lock:
            rows = self._log(name).events[after.position :]
        return checked(rows, after, name)

    def find(self, name: str, key: str) -> Event | None:
        """The event with this key, at the same cost however long the log is."""
        return self._log(name).keyed.get(key)

    def append(self, name: str, drafts: Sequence[Draft], *, expected: Head) -> Head:
        """All of the drafts or none become the next events, if the log still ends at `expected`."""
        with self._lock:
            log = self._log(name)
            if log.head != expected:
                raise ConflictError(
                    f"session {name!r} no longer ends at event {expected.position}; read on and try again"
                )
            return log.append(drafts)

    @contextmanager
    def exclusive(self, name: str) -> Iterator[None]:
        """Within it nobody else appends to this log, and what this thread appends is one transaction."""
        with self._lock:
            log = self._log(name)
            before = log.head
            try:
                yield
            except BaseException:
                log.cut(before)
                raise

    def close(self) -> None:
        """Nothing to let go of."""

    def _log(self, name: str) -> _Log:
        if name not in self._logs:
            raise StoreError(f"there is no session named {name!r} in memory; {suggestion(name, self._logs)}")
        return self._logs[name]


class _Log:
    """One log: its events in order, and those that have a key."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.keyed: dict[str, Event] = {}

    @property
    def head(self) -> Head:
        return self.events[-1].head if self.events else START

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
