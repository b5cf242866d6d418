"""Connections and transactions: one connection per thread, waiting for other writers, failures, forks.

The modules `sqlite` and `postgres` have the differences between the databases; the rest is written here once.
"""

from __future__ import annotations

import os
import random
import threading
import time
import weakref
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any, ClassVar, NamedTuple

from surepick.errors import StoreError
from surepick.store.log import Event

Parameters = Mapping[str, object]
Statement = tuple[str, Parameters]  # parameters are written :name, for every database
NO_PARAMETERS: Parameters = {}
COMMIT: Statement = ("COMMIT", NO_PARAMETERS)
PAUSE = 0.002  # seconds between two tries, times a random number about 1, where the database does not wait
FORK_WAIT = 5.0  # seconds that a fork waits for the transactions of other threads


class Answer(NamedTuple):
    """The result of a statement: how many rows it changed or found, and the rows that it found."""

    rowcount: int
    rows: list[tuple[Any, ...]]


class OutcomeUnknownError(StoreError):
    """The connection broke while the server was asked to commit: it may have done so, or not."""


class ClosedError(Exception):
    """The connection was closed between two transactions, before a fork for example: open it again."""


class Connection:
    """A connection of one thread of one process; `inside` says whether a transaction of ours is open."""

    def __init__(self, database: Database) -> None:
        self.is_open = False  # until it is; `__del__` also sees an object that could not connect
        self.inside = False
        self.durable = True  # of the open transaction
        self.process = os.getpid()  # a forked child must leave it alone
        self.thread = threading.get_ident()
        self.lock = threading.Lock()  # held for each batch of statements, so that a fork cuts none in two
        self.database = database
        self._raw = database.connect()
        self.is_open = True

    def __del__(self) -> None:
        # sqlite3's connections are parts of reference cycles: left to the garbage collector, one would stay
        # open after its store is gone, and a forked child would inherit it.
        self.close()

    def run(self, batch: Sequence[Statement], *, opens: bool = False, ends: bool = False) -> list[Answer]:
        """Run statements in one round trip and return their answers.

        - opens: the statements open a transaction, which stays open if all succeed.
        - ends: they end the open transaction.

        An error outside of a transaction, or of the statement that ends one, is raised as the database raised
        it, after a rollback. Then the caller can try again, or find out whether a commit succeeded. An error
        inside a transaction is raised as a StoreError for the user: to try again would lose the statements
        before it. There `Database.transaction` rolls back.
        """
        if not batch:
            return []
        with self.lock:
            if not self.is_open:
                raise ClosedError
            if ends:
                self.inside = False
            try:
                answers = self.database.run_all(self._raw, batch)
                if opens:
                    self.inside = True
                return answers
            except BaseException as error:
                if not self.inside:
                    self.roll_back()
                elif isinstance(error, self.database.errors):
                    raise self.database.explain(error) from error
                raise

    def roll_back(self) -> None:
        """Undo the open transaction, if there is one; close the connection if that fails.

        The caller holds the lock.
        """
        try:
            if self.database.in_transaction(self._raw):
                self.database.run_all(self._raw, [("ROLLBACK", NO_PARAMETERS)])
        except Exception:
            self.close()

    def close(self) -> None:
        """Close the connection, if it is of this process."""
        if self.is_open and self.process == os.getpid():
            self.is_open = False
            self._raw.close()


class Database(ABC):
    """A database: one connection per thread, transactions, and errors in the user's words.

    Subclasses say what differs between SQLite and PostgreSQL. It changes by opening and closing connections.
    """

    dialect: ClassVar[str]
    remote: ClassVar[bool]  # a server, to which several statements go in one round trip
    list_tables: ClassVar[str]
    lock_schema: ClassVar[str | None] = None  # within a transaction: no other process makes tables
    place: str  # for people; without password
    where: str  # the same for two drivers of one database
    read_only: bool
    errors: tuple[type[Exception], ...]  # that its connections raise
    patience: float = 60.0  # seconds to wait for other writers before an error

    def __init__(self) -> None:
        self._local = threading.local()  # `connection`: of this thread

    def exists(self) -> bool:
        """Return whether there is something to open; a server says so itself."""
        return True

    def check(self) -> None:  # noqa: B027
        """Raise an error if the file that was opened is no longer there; a server says so itself."""

    @abstractmethod
    def connect(self) -> Any:
        """Return a new DB-API connection in autocommit mode."""

    @abstractmethod
    def begin(self, *, durable: bool, log: int | None = None) -> list[Statement]:
        """Return the statements that open a writing transaction.

        durable: False is for leases, which need not reach the disk.
        log:     the id of a log that no other process appends to meanwhile (claims in, if not durable).
        """

    @abstractmethod
    def run_all(self, connection: Any, batch: Sequence[Statement]) -> list[Answer]:
        """Run these statements, in one round trip if the database is remote."""

    @abstractmethod
    def inserting(self, row: Parameters, events: Sequence[Event]) -> list[Statement]:
        """Return the statements that insert events after `schema.MOVE_HEAD`, whose parameters are `row`."""

    @abstractmethod
    def in_transaction(self, connection: Any) -> bool:
        """Return whether a transaction is open on this connection."""

    @abstractmethod
    def is_busy(self, error: Exception) -> bool:
        """Return whether this error means: another process is in the way, try again."""

    def is_gone(self, error: Exception) -> bool:
        """Return whether this error means that the connection is lost; a file stays."""
        return False

    @abstractmethod
    def explain(self, error: Exception) -> StoreError:
        """Return the same error in the user's words."""

    def query(self, text: str, parameters: Parameters = NO_PARAMETERS) -> list[tuple[Any, ...]]:
        """Return all rows of a reading statement, which sees the writes of an open transaction."""
        batch = [(text, parameters)]
        inside = self.inside()
        if inside is not None:
            return inside.run(batch)[0].rows
        return self._attempt(batch, writes=False)[0].rows

    def run(self, batch: Sequence[Statement]) -> list[Answer]:
        """Run writing statements in the open transaction, or in one of their own.

        Their own need not survive a crash of the machine, and they may be run twice: it is for leases and
        snapshots.
        """
        inside = self.inside()
        if inside is not None:
            return inside.run(batch)
        begin = self.begin(durable=False)
        return self._attempt([*begin, *batch, COMMIT])[len(begin) : -1]

    def commit(self, batch: Sequence[Statement]) -> list[Answer]:
        """Run writing statements and commit, in one round trip; what was committed survives a crash.

        They end the open transaction, or one of their own. If the connection breaks meanwhile they may have
        been committed, or not: that is an OutcomeUnknownError.
        """
        inside = self.inside()
        if inside is None:
            with self.transaction():
                return self.commit(batch)
        if not inside.durable:
            raise StoreError("events cannot be written in a transaction that need not survive a crash")
        try:
            return inside.run([*batch, COMMIT], ends=True)[:-1]
        except self.errors as error:
            if self.is_gone(error):
                raise OutcomeUnknownError(str(self.explain(error))) from error
            raise self.explain(error) from error

    @contextmanager
    def transaction(
        self, *first: Statement, log: int | None = None, durable: bool = True
    ) -> Iterator[list[Answer]]:
        """Open a writing transaction; it ends at the first `commit` within, or with the block.

        first: statements that are sent together with its beginning; their answers are yielded.

        See `begin` for `log` and `durable`.
        """
        begin = self.begin(durable=durable, log=log)
        answers = self._attempt([*begin, *first], opens=True)
        connection = self._connection()
        connection.durable = durable
        try:
            yield answers[len(begin) :]
            if connection.inside:
                connection.run([COMMIT], ends=True)
        except BaseException as error:
            with connection.lock:
                connection.roll_back()
            if isinstance(error, self.errors):
                raise self.explain(error) from error
            raise
        finally:
            connection.inside = False

    def inside(self) -> Connection | None:
        """Return the connection on which this thread has a transaction open."""
        connection = self._usable()
        return connection if connection is not None and connection.inside else None

    def close(self) -> None:
        """Close all connections of this store; they are opened again when needed."""
        for connection in _open_connections():
            if connection.database is self:
                connection.close()

    def disconnect(self) -> None:
        """Close this thread's connection, whatever state it is in."""
        connection = self._usable()
        if connection is not None:
            connection.inside = False
            connection.close()

    def _attempt(
        self, batch: Sequence[Statement], *, writes: bool = True, opens: bool = False
    ) -> list[Answer]:
        """Run statements that may run twice, outside of a transaction, and return their answers.

        - writes: they write, which a store that was opened for reading refuses.
        - opens:  they open a transaction, which stays open.

        While the database is busy it tries again, for `patience` seconds. If the connection is lost, perhaps
        hours ago, it reconnects once and tries again.
        """
        began = time.monotonic()
        reconnected = False
        if writes and self.read_only:
            raise StoreError(f"{self.place} was opened for reading only; open it for writing")
        self.check()
        while True:
            try:
                return self._connection().run(batch, opens=opens)
            except ClosedError:
                continue
            except self.errors as error:
                if self.is_busy(error):
                    if time.monotonic() - began > self.patience:
                        raise StoreError(
                            f"{self.place} has been in use by another process for more than "
                            f"{self.patience:g} s ({error}); nothing was written. Look for a stopped "
                            "process, and repeat"
                        ) from error
                    time.sleep(random.uniform(0.5, 1.5) * PAUSE)
                elif self.is_gone(error) and not reconnected:
                    self.disconnect()
                    reconnected = True
                else:
                    raise self.explain(error) from error

    def _connection(self) -> Connection:
        """Return this thread's connection, opened if it has none."""
        connection = self._usable()
        if connection is not None:
            return connection
        if not self.remote and any(old.database.where == self.where for old in _INHERITED):
            raise StoreError(
                f"this process was forked while a transaction on {self.place} was open, and cannot open "
                "the file safely; start processes with multiprocessing's 'spawn' method"
            )
        with nullcontext() if self.remote else _FORKING:  # no fork while a file is being opened
            self._local.connection = connection = Connection(self)
            with _FORKING:
                _OPEN.add(connection)
        return connection

    def _usable(self) -> Connection | None:
        """Return this thread's connection if it has one; one of a parent process must not be shared."""
        connection: Connection | None = getattr(self._local, "connection", None)
        if connection is None or (connection.is_open and connection.process == os.getpid()):
            return connection
        self._local.connection = None
        return None


# SQLite knows the locks of a process by what it remembers. A forked child would remember those of its parent,
# which it does not have: the parent's last close would then delete the write-ahead log in which the child's
# values are. So no connection to a file is open during a fork; a child that inherits one does not open that
# file. Connections to a server must not be closed by a child either, which would end them for its parent.
_FORKING = threading.RLock()
_OPEN: weakref.WeakSet[Connection] = weakref.WeakSet()
_INHERITED: list[Connection] = []


def _before_fork() -> None:
    _FORKING.acquire()
    deadline = time.monotonic() + FORK_WAIT
    _INHERITED.extend(
        connection
        for connection in _open_connections()
        if connection.database.remote or not _closed_for_fork(connection, deadline)
    )


def _open_connections() -> list[Connection]:
    with _FORKING:
        return [connection for connection in _OPEN if connection.is_open]


def _closed_for_fork(connection: Connection, deadline: float) -> bool:
    """Close a connection between two transactions of its thread; False if it is in one until the deadline."""
    is_own = connection.thread == threading.get_ident()
    while True:
        with connection.lock:
            if not connection.inside:
                connection.close()
                return True
        if is_own or time.monotonic() > deadline:
            return False
        time.sleep(0.001)


def _in_parent() -> None:
    _INHERITED[:] = [connection for connection in _INHERITED if connection.process != os.getpid()]
    _FORKING.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_in_parent, after_in_child=_FORKING.release)
