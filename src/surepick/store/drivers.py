"""How to reach SQLite and PostgreSQL: connections, locks, and errors in the user's words."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol
from urllib.parse import quote

from sqlalchemy.engine import URL, Dialect, make_url
from sqlalchemy.exc import ArgumentError

from surepick.errors import ConflictError, DamageError, StoreError, missing_extra
from surepick.store.events import Event, Head
from surepick.store.write_queue import WaitingLine

Parameters = Mapping[str, object]
Statement = tuple[str, Parameters]

_MOVE_HEAD = (
    "UPDATE surepick_sessions SET position = :position, checksum = :checksum "
    "WHERE id = :session_id AND position = :expected_position AND checksum = :expected_checksum"
)
_INSERT = (
    "INSERT INTO surepick_events (session_id, position, kind, key, time, body, checksum) "
    "VALUES (:session_id, :position, :kind, :key, :time, :body, :checksum)"
)
_RELEASE = "DELETE FROM surepick_leases WHERE session_id = :session_id AND token = :token"
# All of an append in one statement, which is one journey, and a transaction by itself.
_APPEND_AT_ONCE = f"""WITH moved AS ({_MOVE_HEAD} RETURNING id),
    appended AS (
        INSERT INTO surepick_events (session_id, position, kind, key, time, body, checksum)
        SELECT moved.id, event.* FROM moved, json_to_recordset(CAST(:events AS JSON)) AS event(
            position BIGINT, kind TEXT, key TEXT, time DOUBLE PRECISION, body TEXT, checksum TEXT
        )
    ),
    released AS (
        DELETE FROM surepick_leases USING moved WHERE session_id = moved.id
        AND token IN (SELECT json_array_elements_text(CAST(:tokens AS JSON)))
    )
    SELECT count(*) FROM moved"""


class Answer(NamedTuple):
    """What a statement gave: how many rows it changed or found, and the rows that it found."""

    rowcount: int
    rows: list[tuple[Any, ...]]


class Step(NamedTuple):
    """An append: from which head to which, with these events, and these tokens no longer leased."""

    session_id: int
    expected: Head
    head: Head
    events: Sequence[Event]
    release: Sequence[str]

    def heads(self) -> dict[str, object]:
        """Both heads as parameters of a statement."""
        return {
            "position": self.head.position,
            "checksum": self.head.checksum,
            "expected_position": self.expected.position,
            "expected_checksum": self.expected.checksum,
        }


class Driver(Protocol):
    """What the SQL store needs to know about one kind of database."""

    dialect: ClassVar[str]
    begin: ClassVar[str]  # opens a transaction that writes
    lock_schema: ClassVar[str | None]  # within a transaction: nobody else migrates
    lock_session: ClassVar[str | None]  # within a transaction: nobody else appends to this session
    lock_leases: ClassVar[str | None]  # within a transaction: nobody else who holds them claims its leases
    list_tables: ClassVar[str]
    remote: ClassVar[bool]  # a statement is a journey: few long ones, and an append is a single one
    sql: Dialect
    place: str  # for people; without password
    line: WaitingLine | None  # where writers wait for each other, if the database does not see to it

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        """What its connections raise."""
        ...

    def connect(self, *, durable: bool) -> Any:
        """A new DB-API connection in autocommit mode; without `durable` commits need not reach the disk."""
        ...

    def exists(self) -> bool:
        """Whether there is something to open."""
        ...

    def run_all(self, connection: Any, batch: Sequence[Statement]) -> list[Answer]:
        """Run these statements, in one journey if the database is elsewhere."""
        ...

    def append(self, run: Callable[[str, Parameters], Any], step: Step) -> bool:
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
        """The same error in the user's words."""
        ...


class _Sqlite:
    """One file: write-ahead log, every commit on disk before it is acknowledged."""

    dialect: ClassVar[str] = "sqlite"
    begin: ClassVar[str] = "BEGIN IMMEDIATE"  # take the writer's lock first, so that no statement later fails
    lock_schema: ClassVar[str | None] = None  # BEGIN IMMEDIATE holds the only writer's lock already
    lock_session: ClassVar[str | None] = None
    lock_leases: ClassVar[str | None] = None
    remote: ClassVar[bool] = False
    list_tables: ClassVar[str] = "SELECT name FROM sqlite_master WHERE type = 'table'"

    def __init__(self, url: URL, *, read_only: bool) -> None:
        if not url.database or url.database == ":memory:":
            raise StoreError(
                f"a SQLite store needs a file, got {url.render_as_string()!r}; "
                "write sqlite:///name.db, or memory:// for a store that is gone when the program ends"
            )
        self.path = Path(url.database)
        self.place = str(self.path)
        self.read_only = read_only
        self.line: WaitingLine | None = WaitingLine(self.path.with_name(self.path.name + "-queue"))
        self.sql = url.get_dialect()(paramstyle="named")  # type: ignore[call-arg]

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        return (sqlite3.Error,)

    def exists(self) -> bool:
        return self.path.exists()

    def connect(self, *, durable: bool) -> sqlite3.Connection:
        sealed = self._is_sealed()
        mode = "ro&immutable=1" if sealed else "ro" if self.read_only else "rwc"
        connection = sqlite3.connect(
            f"file:{quote(str(self.path))}?mode={mode}",
            uri=True,
            timeout=0,  # waiting is the store's own business: SQLite's way of it is unfair and gives up
            isolation_level=None,
            check_same_thread=False,
            cached_statements=64,
        )
        try:
            if not (self.read_only or sealed):
                connection.execute("PRAGMA journal_mode = WAL")
            connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
        except BaseException:
            connection.close()
            raise
        return connection

    def _is_sealed(self) -> bool:
        """Whether nobody writes here and nobody can: SQLite would make files beside it, to read it."""
        beside = (self.path.with_name(self.path.name + end) for end in ("-wal", "-shm"))
        return (
            self.path.exists()
            and not os.access(self.path.absolute().parent, os.W_OK)
            and not any(file.exists() for file in beside)
        )

    def run_all(self, connection: sqlite3.Connection, batch: Sequence[Statement]) -> list[Answer]:
        cursors = (connection.execute(text, row) for text, row in batch)
        return [Answer(cursor.rowcount, cursor.fetchall()) for cursor in cursors]

    def append(self, run: Callable[[str, Parameters], Any], step: Step) -> bool:
        session = {"session_id": step.session_id}
        if run(_MOVE_HEAD, {**session, **step.heads()}).rowcount != 1:
            return False
        for event in step.events:
            run(_INSERT, {**session, **event._asdict()})
        for token in step.release:
            run(_RELEASE, {**session, "token": token})
        return True

    def in_transaction(self, connection: sqlite3.Connection) -> bool:
        return connection.in_transaction

    def is_busy(self, error: Exception) -> bool:
        waits = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL)
        return _sqlite_code(error) in waits

    def is_gone(self, error: Exception) -> bool:
        return False

    def explain(self, error: Exception) -> StoreError:
        code, place = _sqlite_code(error), self.place
        if isinstance(error, sqlite3.IntegrityError):
            return ConflictError(f"an event with this key is already in the log ({error})")
        if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            return DamageError(
                f"{place} is damaged or is not a SQLite file ({error}); nothing was changed, "
                "run `surepick doctor` to see what can be read"
            )
        if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
            return StoreError(
                f"{place} could not be written ({error}): the disk is full or failing; what was acknowledged "
                "before is safe, make room and repeat this step"
            )
        if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
            return StoreError(
                f"{place} cannot be opened for this ({error}); check that its folder exists and that you may "
                "write to both"
            )
        return StoreError(f"{place}: {error}")


class _Postgres:
    """One schema of a PostgreSQL database, through psycopg 3."""

    dialect: ClassVar[str] = "postgresql"
    begin: ClassVar[str] = "BEGIN"
    lock_schema: ClassVar[str | None] = "SELECT pg_advisory_xact_lock(7305806)"
    lock_session: ClassVar[str | None] = "SELECT 1 FROM surepick_sessions WHERE id = :session_id FOR UPDATE"
    # A lock of its own: those who claim need not wait until an append has reached the disk.
    lock_leases: ClassVar[str | None] = "SELECT pg_advisory_xact_lock(7305807000000 + :session_id)"
    remote: ClassVar[bool] = True
    list_tables: ClassVar[str] = (
        "SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema()"
    )

    def __init__(self, url: URL, *, read_only: bool) -> None:
        if find_spec("psycopg") is None:
            raise missing_extra("psycopg", "postgres")
        self.place = url.render_as_string(hide_password=True)
        self.line: WaitingLine | None = None  # the server wakes those who wait, in their order
        self.url = url.set(drivername="postgresql+psycopg")
        self.sql = self.url.get_dialect()()
        self.read_only = read_only

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        import psycopg

        return (psycopg.Error,)

    def exists(self) -> bool:
        return True  # a server that cannot be reached says so when connecting

    def connect(self, *, durable: bool) -> Any:
        import psycopg

        _, arguments = self.sql.create_connect_args(self.url)
        connection = psycopg.connect(**arguments, autocommit=True)
        connection.prepare_threshold = 2  # the same dozen statements for hours,
        connection.execute("SET plan_cache_mode = force_generic_plan")  # with plans that never change
        if not durable:
            connection.execute("SET synchronous_commit = off")
        if self.read_only:
            connection.execute("SET default_transaction_read_only = on")
        return connection

    def run_all(self, connection: Any, batch: Sequence[Statement]) -> list[Answer]:
        import psycopg

        cursor = psycopg.ClientCursor(
            connection
        )  # writes the parameters into the text: half of a pipeline's cost
        cursor.execute("; ".join(cursor.mogrify(text, row) for text, row in batch))
        answers = [_answer(cursor)]
        while cursor.nextset():
            answers.append(_answer(cursor))
        return answers

    def append(self, run: Callable[[str, Parameters], Any], step: Step) -> bool:
        events = json.dumps([event._asdict() for event in step.events])
        tokens = json.dumps(list(step.release))
        row = {"session_id": step.session_id, **step.heads(), "events": events, "tokens": tokens}
        return bool(run(_APPEND_AT_ONCE, row).fetchone()[0])

    def in_transaction(self, connection: Any) -> bool:
        return bool(connection.info.transaction_status)  # 0: idle

    def is_busy(self, error: Exception) -> bool:
        return getattr(error, "sqlstate", None) in ("40001", "40P01", "55P03", "53300")

    def is_gone(self, error: Exception) -> bool:
        import psycopg

        return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)

    def explain(self, error: Exception) -> StoreError:
        import psycopg

        if isinstance(error, psycopg.errors.UniqueViolation):
            return ConflictError(f"an event with this key is already in the log ({error})")
        if isinstance(error, psycopg.errors.DiskFull):
            return StoreError(f"{self.place}: the server's disk is full ({error}); make room and repeat")
        if isinstance(error, psycopg.OperationalError):
            return StoreError(
                f"{self.place} does not answer ({str(error).strip()}); check that the server is running and "
                "repeat this step: what is told, or recorded under a key, counts once"
            )
        return StoreError(f"{self.place}: {str(error).strip()}")


def _answer(cursor: Any) -> Answer:
    return Answer(cursor.rowcount, cursor.fetchall() if cursor.description else [])


def _sqlite_code(error: Exception) -> int | None:
    """The primary result code; the extended one only adds where it happened."""
    code = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


def driver_for(url: str, *, read_only: bool) -> Driver:
    """The driver for this address; an address without :// is the path of a SQLite file."""
    try:
        parsed = make_url(url) if "://" in url else URL.create("sqlite", database=url)
    except ArgumentError:
        raise StoreError(f"the store address {url!r} cannot be read; {_EXAMPLES}") from None
    backend = parsed.drivername.split("+")[0]
    if backend == "sqlite":
        return _Sqlite(parsed, read_only=read_only)
    if backend in ("postgresql", "postgres"):
        return _Postgres(parsed, read_only=read_only)
    raise StoreError(f"surepick has no store of kind {backend!r}; {_EXAMPLES}")


_EXAMPLES = "write sqlite:///trips.db, postgresql://user@host/database, or the path of a file"
