"""What a store does; memory, SQLite and PostgreSQL all pass the same contract suite."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from surepick.store.events import START, Claim, Draft, Event, Head, Lease, Snapshot, View


class Store(Protocol):
    """Append-only logs, one per session, safe to use from many threads and processes at once.

    What `append` has acknowledged survives the death of the process and of the machine.
    """

    @property
    def place(self) -> str:
        """Where the store is, for people; without password."""
        ...

    def create(self, name: str, drafts: Sequence[Draft]) -> Head:
        """Begin a log with these events; refused when the name is taken."""
        ...

    def names(self) -> list[str]:
        """Return the names of all logs, oldest first."""
        ...

    def pin(self, name: str) -> Store:
        """Return this store with `name` fixed to the log that has it now.

        Once that log is deleted, what is done here under this name raises DeletedError and changes nothing,
        also when another log has the name. Other names mean what they mean.
        """
        ...

    def head(self, name: str) -> Head:
        """Return where this log ends now."""
        ...

    def read(self, name: str, *, after: Head = START, limit: int | None = None) -> Iterator[Event]:
        """Yield the events after this head in their order, each checked against its checksum."""
        ...

    def look(self, name: str, *, after: Head, claim: Claim | None = None) -> View:
        """Return the events after this head and all leases, in one round trip.

        With a claim its tokens are claimed first; its leases may or may not be among those of the view.
        """
        ...

    def find(self, name: str, key: str) -> Event | None:
        """Return the event with this key, at the same cost however long the log is."""
        ...

    def append(
        self, name: str, drafts: Sequence[Draft], *, expected: Head, release: Sequence[str] = ()
    ) -> Head:
        """Write all of the drafts or none as the next events, if the log still ends at `expected`.

        Otherwise, and when a key is already in the log, it raises ConflictError and writes nothing.
        Leases on the tokens in `release` end in the same transaction.
        """
        ...

    def exclusive(
        self, name: str, *, after: Callable[[], Head] | None = None, durable: bool = True
    ) -> AbstractContextManager[View]:
        """Hold the write lock of this log; what this thread writes within is one transaction.

        It begins with a look at the events after the head that `after` returns, if it is given.
        Without `durable` it is for leases: it excludes others who claim, appends may go on, and the
        transaction need not survive a crash of the machine.
        """
        ...

    def claim(self, name: str, tokens: Iterable[str], *, worker: str, until: float, now: float) -> list[str]:
        """Lease these tokens and return those the worker now holds: free, expired, or its own already.

        Leases are shared by all processes at once but need not survive a crash of the machine.
        """
        ...

    def release(self, name: str, tokens: Sequence[str]) -> None:
        """End the leases on these tokens, if there are any."""
        ...

    def leases(self, name: str) -> list[Lease]:
        """Return all leases, expired ones included, ordered by token."""
        ...

    def save_snapshot(self, name: str, snapshot: Snapshot) -> None:
        """Keep this snapshot instead of an earlier one; do nothing if it is not of this log."""
        ...

    def snapshot(self, name: str) -> Snapshot | None:
        """Return the snapshot, if there is one of this very log and it is as it was written."""
        ...

    def delete(self, name: str, *, expected: Head) -> None:
        """Delete a whole log with its leases and its snapshot, if it still ends at `expected`.

        Otherwise it raises ConflictError and deletes nothing.
        """
        ...

    def let_go(self) -> None:
        """Close what this thread has open, if it is in no transaction; it is opened again when needed."""
        ...

    def close(self) -> None:
        """Close files and connections; what was acknowledged stays."""
        ...
