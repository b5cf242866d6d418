"""What a SQL store has to know about a database: the protocol that SQLite and PostgreSQL fill in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Protocol

from surepick.errors import StoreError
from surepick.store import address
from surepick.store.events import Event, Head

Parameters = Mapping[str, object]
Statement = tuple[str, Parameters]  # parameters are written :name, for every database
NO_PARAMETERS: Parameters = {}
COMMIT: Statement = ("COMMIT", NO_PARAMETERS)


class Answer(NamedTuple):
    """What a statement gave: how many rows it changed or found, and the rows that it found."""

    rowcount: int
    rows: list[tuple[Any, ...]]


Run = Callable[[Sequence[Statement]], list[Answer]]  # runs statements of a transaction, in one round trip


class Step(NamedTuple):
    """An append: from which head to which, with these events, and these tokens no longer leased."""

    session_id: int
    expected: Head
    head: Head
    events: Sequence[Event]
    release: Sequence[str]

    def heads(self) -> dict[str, object]:
        """The session and both heads as parameters of a statement."""
        return {
            "session_id": self.session_id,
            "position": self.head.position,
            "checksum": self.head.checksum,
            "expected_position": self.expected.position,
            "expected_checksum": self.expected.checksum,
        }


class Driver(Protocol):
    """One kind of database: connections, locks, and errors in the user's words."""

    dialect: ClassVar[str]
    lock_schema: ClassVar[str | None]  # within a transaction: no other process makes tables
    lock_session: ClassVar[str | None]  # within a transaction: no other process appends to this session
    lock_leases: ClassVar[str | None]  # within a transaction: no other process claims its leases
    list_tables: ClassVar[str]
    remote: ClassVar[bool]  # a statement is a round trip: few long ones, and an append is a single one
    place: str  # for people; without password
    read_only: bool

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        """What its connections raise."""
        ...

    def exists(self) -> bool:
        """Whether there is something to open."""
        ...

    def check(self) -> None:
        """Raise an error if what was opened is no longer there."""
        ...

    def connect(self) -> Any:
        """A new DB-API connection in autocommit mode."""
        ...

    def begin(self, *, durable: bool) -> list[Statement]:
        """The statements that open a writing transaction; without `durable` it need not reach the disk."""
        ...

    def run_all(self, connection: Any, batch: Sequence[Statement]) -> list[Answer]:
        """Run these statements, in one round trip if the database is elsewhere."""
        ...

    def run_whole(self, connection: Any, batch: Sequence[Statement], *, durable: bool) -> list[Answer]:
        """Run these statements as one transaction, in one round trip if the database is elsewhere."""
        ...

    def append(self, run: Run, step: Step) -> bool:
        """Move the head and write the events and the end of the leases; False: the head was elsewhere."""
        ...

    def in_transaction(self, connection: Any) -> bool:
        """Whether a transaction is open on this connection."""
        ...

    def is_busy(self, error: Exception) -> bool:
        """Whether this error means: another process is writing, try again."""
        ...

    def is_gone(self, error: Exception) -> bool:
        """Whether this error means that the connection cannot be used any more."""
        ...

    def explain(self, error: Exception) -> StoreError:
        """Return the same error in the user's words."""
        ...


def driver_for(url: str, *, read_only: bool) -> Driver:
    """The driver for this address; an address without :// is the path of a SQLite file."""
    found = address.parse(url)
    if found.kind == "sqlite":
        from surepick.store.sqlite import Sqlite

        return Sqlite(found, read_only=read_only)
    if found.kind in ("postgresql", "postgres"):
        from surepick.store.postgres import Postgres

        return Postgres(found, read_only=read_only)
    raise StoreError(f"surepick has no store of kind {found.kind!r}; {address.EXAMPLES}")
