"""What a store promises; memory, SQLite and PostgreSQL all pass the same contract suite."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Protocol, runtime_checkable

from surepick.store.events import START, Claim, Draft, Event, Head, Lease, Snapshot, View
from surepick.store.write_queue import Wait


class Store(Protocol):
    """Append-only logs, one per session, safe to use from many threads and processes at once.

    What `append` has acknowledged survives the death of the process and of the machine.
    """

    @property
    def place(self) -> str:
        """Where the store is, for people; without password."""
        ...

    def create(self, name: str, drafts: Sequence[Draft], *, start: Head = START) -> Head:
        """Begin a log with these events; refused when the name is taken.

        `start` is the head before its first event, which says how long its checksums are.
        """
        ...

    def names(self) -> list[str]:
        """The names of all logs, oldest first."""
        ...

    def head(self, name: str) -> Head:
        """Where this log ends now."""
        ...

    def read(self, name: str, *, after: Head = START, limit: int | None = None) -> Iterator[Event]:
        """The events after this head in their order, each checked against its checksum."""
        ...

    def look(self, name: str, *, after: Head, claim: Claim | None = None) -> View:
        """What `read` gives after this head, and all leases as `leases` gives them, in one round trip.

        With a claim its tokens are claimed first; its leases may or may not be among those of the view.
        """
        ...

    def find(self, name: str, key: str) -> Event | None:
        """The event with this key, at the same cost however long the log is."""
        ...

    def append(
        self, name: str, drafts: Sequence[Draft], *, expected: Head, release: Sequence[str] = ()
    ) -> Head:
        """All of the drafts or none become the next events, if the log still ends at `expected`.

        Otherwise, and when a key is already in the log, a ConflictError says so and nothing is written.
        Leases on the tokens in `release` end together with it.
        """
        ...

    def exclusive(
        self,
        name: str,
        *,
        after: Callable[[], Head] | None = None,
        durable: bool = True,
        meanwhile: Callable[[], None] = ...,
    ) -> AbstractContextManager[View]:
        """Within it nobody else writes to this log, and what this thread writes is one transaction.

        It begins with a look at what came after the head that `after` gives, if it is given. Those who come
        first are served first; `meanwhile` is called now and then while waiting, where the store has to ask
        for its turn, and `after` when the turn has come.
        Without `durable` it is for leases: nobody else who asks so claims any, others may append, and the
        transaction need not survive a crash of the machine.
        """
        ...

    def claim(self, name: str, tokens: Iterable[str], *, worker: str, until: float, now: float) -> list[str]:
        """The tokens of these that the worker holds from now on: free, expired, or its own already.

        Leases are shared by all processes at once but need not survive a crash of the machine.
        """
        ...

    def release(self, name: str, tokens: Sequence[str]) -> None:
        """End the leases on these tokens, if there are any."""
        ...

    def leases(self, name: str) -> list[Lease]:
        """All leases, expired ones included, ordered by token."""
        ...

    def save_snapshot(self, name: str, snapshot: Snapshot) -> None:
        """Keep this snapshot instead of an earlier one."""
        ...

    def snapshot(self, name: str) -> Snapshot | None:
        """The snapshot that was kept, or None: there is none, or it is not as it was written."""
        ...

    def delete(self, name: str, *, expected: Head) -> None:
        """Delete a whole log with its leases and its snapshot, if it still ends at `expected`.

        Otherwise a ConflictError says so and nothing is deleted. Whoever still has it open can write nothing
        more to it.
        """
        ...

    def settle(self) -> None:
        """What was read here before is on disk when this returns, whoever wrote it."""
        ...

    def let_go(self) -> None:
        """Close what this thread has open, if nothing is under way there; it is opened again when needed."""
        ...

    def close(self) -> None:
        """Let go of files and connections; what was acknowledged stays."""
        ...


@runtime_checkable
class CombiningStore(Store, Protocol):
    """A store in which whoever writes can do the work of those who wait; a store need not be one."""

    def combined(
        self,
        name: str,
        wait: Wait,
        *,
        after: Callable[[], Head],
        durable: bool = True,
    ) -> AbstractContextManager[View]:
        """As `exclusive`; who has to wait for it posts its wish, and the view has the wishes of others.

        Whoever is served while it waits gets a ServedError with the reply. Within, what is given a reply is
        answered when all that was written is on disk; the other wishes stay. One that `yields` gives others
        some time to do its wish before it takes its turn.
        """
        ...
