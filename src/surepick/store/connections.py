"""Connections and transactions: one connection per thread, waiting for other writers, and failures.

`Database` is what SQLite and PostgreSQL have to say about themselves; all else is written here once.
"""

from __future__ import annotations

import os
import random
import threading
import time
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, NamedTuple, TypeVar

from surepick.errors import StoreError
from surepick.store.log import Event, Head

T = TypeVar("T")
Parameters = Mapping[str, object]
Statement = tuple[str, Parameters]  # parameters are written :name, for every database
NO_PARAMETERS: Parameters = {}
COMMIT: Statement = ("COMMIT", NO_PARAMETERS)
PAUSE = 0.005  # seconds between two tries, times a random number about 1, where the database does not wait


class Answer(NamedTuple):
    """The result of a statement: how many rows it changed or found, and the rows that it found."""

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
        """Return the session and both heads as parameters of a statement."""
        return {
            "session_id": self.session_id,
            "position": self.head.position,
            "checksum": self.head.checksum,
            "expected_position": self.expected.position,
            "expected_checksum": self.expected.checksum,
        }


class OutcomeUnknownError(StoreError):
    """The connection broke while the server was asked to commit: it may have done so, or not."""


class Database(ABC):
    """One kind of database: connections, locks, and errors in the user's words."""

    dialect: ClassVar[str]
    lock_schema: ClassVar[str | None]  # within a transaction: no other process makes tables
    lock_session: ClassVar[str | None]  # within a transaction: no other process appends to this session
    lock_leases: ClassVar[str | None]  # within a transaction: no other process claims its leases
    list_tables: ClassVar[str]
    remote: ClassVar[bool]  # a statement is a round trip: few long ones, and an append is a single one
    place: str  # for people; without password
    read_only: bool
    errors: tuple[type[Exception], ...]  # that its connections raise

    def exists(self) -> bool:
        """Return whether there is something to open; a server says so itself."""
        return True

    def check(self) -> None:  # noqa: B027
        """Raise an error if what was opened is no longer there; a server says so itself."""

    @abstractmethod
    def connect(self) -> Any:
        """Return a new DB-API connection in autocommit mode."""

    @abstractmethod
    def begin(self, *, durable: bool) -> list[Statement]:
        """Return the statements that open a writing transaction; one for leases need not reach the disk."""

    @abstractmethod
    def run_all(self, connection: Any, batch: Sequence[Statement]) -> list[Answer]:
        """Run these statements, in one round trip if the database is elsewhere."""

    def run_whole(self, connection: Any, batch: Sequence[Statement], *, durable: bool) -> list[Answer]:
        """Run these statements as one transaction, in one round trip if the database is elsewhere."""
        begin = self.begin(durable=durable)
        return self.run_all(connection, [*begin, *batch, COMMIT])[len(begin) : -1]

    @abstractmethod
    def append(self, run: Run, step: Step) -> bool:
        """Move the head, write the events and end the leases; False if the head was elsewhere."""

    @abstractmethod
    def in_transaction(self, connection: Any) -> bool:
        """Return whether a transaction is open on this connection."""

    @abstractmethod
    def is_busy(self, error: Exception) -> bool:
        """Return whether this error means: another process is in the way, try again."""

    def is_gone(self, error: Exception) -> bool:
        """Return whether this error means that the connection cannot be used any more; a file stays."""
        return False

    @abstractmethod
    def explain(self, error: Exception) -> StoreError:
        """Return the same error in the user's words."""


class Connection:
    """A connection of one thread of one process; `inside` tells whether a transaction of ours is open."""

    def __init__(self, database: Database) -> None:
        self.inside = False
        self.durable = True  # of the open transaction
        self.is_open = True
        self.process = os.getpid()  # a forked child must leave it alone
        self._database = database
        self._raw = database.connect()

    def run(self, batch: Sequence[Statement]) -> list[Answer]:
        """Run statements in one round trip; if one fails, no transaction that they began stays open.

        Inside a transaction no other process can be in the way, and nothing is repeated, since what came
        before in it would be missing: an error is the user's.
        """
        try:
            return self._database.run_all(self._raw, batch) if batch else []
        except BaseException as error:
            if not self.inside:
                self.roll_back()
            elif isinstance(error, self._database.errors):
                raise self._database.explain(error) from error
            raise

    def run_whole(self, batch: Sequence[Statement], *, durable: bool) -> list[Answer]:
        """Run statements as one transaction; if one fails, nothing is left of it."""
        try:
            return self._database.run_whole(self._raw, batch, durable=durable)
        except BaseException:
            self.roll_back()
            raise

    def roll_back(self) -> None:
        """End the open transaction without a trace; a connection that cannot do so is not used again."""
        try:
            if self._database.in_transaction(self._raw):
                self._database.run_all(self._raw, [("ROLLBACK", NO_PARAMETERS)])
        except Exception:
            self.close()

    def close(self) -> None:
        """Close the connection, if it is of this process."""
        if self.is_open and self.process == os.getpid():
            self.is_open = False
            self._raw.close()


class Transactions:
    """Runs statements for any number of threads; it changes by opening and closing connections."""

    def __init__(self, database: Database, patience: float) -> None:
        self._database = database
        self._patience = patience  # seconds to wait for other writers before an error
        self._local = threading.local()
        self._all: weakref.WeakSet[Connection] = weakref.WeakSet()
        _OPEN.add(self)

    def query(self, text: str, parameters: Parameters = NO_PARAMETERS) -> list[tuple[Any, ...]]:
        """Return all rows of a reading statement; inside a transaction it sees what was written there."""
        batch, inside = [(text, parameters)], self.inside()
        if inside is not None:
            return inside.run(batch)[0].rows
        return self._attempt(lambda connection: connection.run(batch)[0].rows, writes=False)

    def run(self, batch: Sequence[Statement], *, durable: bool = True) -> list[Answer]:
        """Run writing statements in the open transaction, or in one of their own that is one round trip.

        Without `durable` a crash of the machine may undo them, and they must not mind being run twice.
        """
        inside = self.inside()
        if inside is not None or not batch:
            return [] if inside is None else inside.run(batch)
        return self._attempt(lambda connection: connection.run_whole(batch, durable=durable), commits=durable)

    @contextmanager
    def open(
        self, first: Sequence[Statement] = (), *, durable: bool = True
    ) -> Iterator[tuple[Connection, list[Answer]]]:
        """Open a writing transaction, or join the open one; yield its connection and the answers to `first`.

        first:   statements that are sent together with the beginning.
        durable: whether it must survive a crash of the machine (default yes).
        """
        inside = self.inside()
        if inside is not None:
            yield inside, inside.run(first)
            return
        begin = self._database.begin(durable=durable)
        connection, answers = self._attempt(lambda found: (found, found.run([*begin, *first])))
        connection.inside, connection.durable = True, durable
        try:
            yield connection, answers[len(begin) :]
            self._commit(connection)
        except BaseException:
            connection.roll_back()
            raise
        finally:
            connection.inside = False

    def inside(self) -> Connection | None:
        """Return the connection on which this thread has a transaction open."""
        connection = self._usable()
        return connection if connection is not None and connection.inside else None

    def close(self) -> None:
        """Close all connections; they are opened again when needed."""
        for connection in list(self._all):
            connection.close()

    def disconnect_before_fork(self) -> None:
        """Close this thread's connection, to be opened again when needed, unless it is in a transaction.

        SQLite knows the locks of a process by what it remembers. A forked child would remember those of its
        parent, which it does not have, and write to files that others take for abandoned.
        """
        if not self._database.remote and self.inside() is None:
            self.disconnect()

    def disconnect(self) -> None:
        """Close this thread's connection, whatever state it is in."""
        connection = self._usable()
        if connection is not None:
            connection.inside = False
            connection.close()

    def _commit(self, connection: Connection) -> None:
        connection.inside = False  # so that the error, if there is one, is the database's own
        try:
            connection.run([COMMIT])
        except self._database.errors as error:
            why = self._database.explain(error)
            raise (OutcomeUnknownError(str(why)) if self._database.is_gone(error) else why) from error

    def _attempt(
        self, attempt: Callable[[Connection], T], *, writes: bool = True, commits: bool = False
    ) -> T:
        """Return what the attempt returns, once no other writer is in its way; outside of transactions.

        It tries again while the database is busy, until its patience ends. A connection that was lost,
        perhaps hours ago, is opened again once: what was sent before had no effect, except that an attempt
        that `commits` may have done so, which only the caller can find out.
        """
        database, began, reconnected = self._database, time.monotonic(), False
        if writes and database.read_only:
            raise StoreError(
                f"{database.place} was opened for reading only; open it for writing to change it"
            )
        database.check()
        while True:
            try:
                return attempt(self._connection())
            except database.errors as error:
                if database.is_busy(error):
                    self._wait(time.monotonic() - began, error)
                elif database.is_gone(error):
                    self.disconnect()
                    if commits or reconnected:
                        kind = OutcomeUnknownError if commits else StoreError
                        raise kind(str(database.explain(error))) from error
                    reconnected = True
                else:
                    raise database.explain(error) from error

    def _wait(self, waited: float, error: Exception) -> None:
        """Sleep until the next try, or raise a StoreError if it has waited for too long."""
        if waited > self._patience:
            raise StoreError(
                f"{self._database.place} has been in use by another process for more than "
                f"{self._patience:g} s ({error}); nothing was written. Look for a stopped process, and repeat"
            ) from error
        time.sleep(random.uniform(0.5, 1.5) * PAUSE)

    def _connection(self) -> Connection:
        """Return this thread's connection, opened if it has none."""
        connection = self._usable()
        if connection is None:
            self._local.connection = connection = Connection(self._database)
            self._all.add(connection)
        return connection

    def _usable(self) -> Connection | None:
        """Return this thread's connection if it has one; one of a parent process must not be shared."""
        connection: Connection | None = getattr(self._local, "connection", None)
        if connection is None or (connection.is_open and connection.process == os.getpid()):
            return connection
        if connection.process != os.getpid():
            _INHERITED.append(connection)  # never closed here, which would end the parent's connection
        self._local.connection = None
        return None


_OPEN: weakref.WeakSet[Transactions] = weakref.WeakSet()
_INHERITED: list[Connection] = []


def _before_fork() -> None:
    for transactions in list(_OPEN):
        transactions.disconnect_before_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork)
