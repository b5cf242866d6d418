"""The SQL store: one code path for SQLite and PostgreSQL.

The statements are SQLAlchemy text, compiled once for the driver's way of writing parameters, and run on the
driver's own connection: an append is three short statements, and the ORM-free execution layer would cost as
much as the database does.
"""

from __future__ import annotations

import hashlib
import os
import random
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

import sqlalchemy as sa

from surepick.errors import ConflictError, StoreError, suggestion
from surepick.store import migrations
from surepick.store.drivers import Driver
from surepick.store.events import START, Draft, Event, Head, Lease, Snapshot, checked, seal

T = TypeVar("T")
Parameters = Mapping[str, object]
NO_PARAMETERS: Parameters = {}

PATIENCE = 60.0  # seconds to wait for other writers before giving up
# Seconds between two tries for the writer's lock: those who have waited longer try more often and go first.
LONGEST_PAUSE, SHORTEST_PAUSE, SENIORITY = 0.003, 0.001, 0.02
PAGE = 5000  # events read at a time, so that a long read never holds back the writers' clean-up

_MAKE_SESSION = (
    "INSERT INTO surepick_sessions (name, position, checksum) VALUES (:name, :position, :checksum) "
    "ON CONFLICT (name) DO NOTHING"
)
_NAMES = "SELECT name FROM surepick_sessions ORDER BY id"
_SESSION = "SELECT id, position, checksum FROM surepick_sessions WHERE name = :name"
_MOVE_HEAD = (
    "UPDATE surepick_sessions SET position = :position, checksum = :checksum "
    "WHERE id = :session_id AND position = :expected_position AND checksum = :expected_checksum"
)
# Only where the head was moved just before: all of an append travels to the server at once.
_APPEND = (
    "INSERT INTO surepick_events (session_id, position, kind, key, time, body, checksum) "
    "SELECT :session_id, :position, :kind, :key, :time, :body, :checksum WHERE EXISTS ("
    "SELECT 1 FROM surepick_sessions WHERE id = :session_id AND checksum = :last_checksum)"
)
_READ = (
    "SELECT position, kind, key, time, body, checksum FROM surepick_events "
    "WHERE session_id = :session_id AND position > :after ORDER BY position LIMIT :limit"
)
_FIND = (
    "SELECT position, kind, key, time, body, checksum FROM surepick_events "
    "WHERE session_id = :session_id AND key = :key"
)
_CLAIM = (
    "INSERT INTO surepick_leases (session_id, token, worker, expires) "
    "VALUES (:session_id, :token, :worker, :expires) "
    "ON CONFLICT (session_id, token) DO UPDATE SET worker = excluded.worker, expires = excluded.expires "
    "WHERE surepick_leases.expires <= :now OR surepick_leases.worker = excluded.worker"
)
_RELEASE_WITH_APPEND = (
    "DELETE FROM surepick_leases WHERE session_id = :session_id AND token = :token AND EXISTS ("
    "SELECT 1 FROM surepick_sessions WHERE id = :session_id AND checksum = :last_checksum)"
)
_RELEASE = "DELETE FROM surepick_leases WHERE session_id = :session_id AND token = :token"
_LEASES = "SELECT token, worker, expires FROM surepick_leases WHERE session_id = :session_id ORDER BY token"
_SAVE_SNAPSHOT = (
    "INSERT INTO surepick_snapshots (session_id, position, checksum, body, body_checksum) "
    "VALUES (:session_id, :position, :checksum, :body, :body_checksum) "
    "ON CONFLICT (session_id) DO UPDATE SET position = excluded.position, checksum = excluded.checksum, "
    "body = excluded.body, body_checksum = excluded.body_checksum"
)
_SNAPSHOT = (
    "SELECT position, checksum, body, body_checksum FROM surepick_snapshots WHERE session_id = :session_id"
)


def _nothing() -> None:
    pass


class SqlStore:
    """Logs in a SQL database; it changes only by appending, and keeps one connection per thread."""

    def __init__(self, driver: Driver, *, read_only: bool = False, patience: float = PATIENCE) -> None:
        self._driver = driver
        self._patience = patience
        self._local = threading.local()
        self._links: weakref.WeakSet[_Link] = weakref.WeakSet()
        self._ids: dict[str, int] = {}
        self._sql = cache(lambda text: str(sa.text(text).compile(dialect=driver.sql)))
        self._prepare_schema(read_only=read_only)

    @property
    def place(self) -> str:
        """The file, or the address of the database without its password."""
        return self._driver.place

    def create(self, name: str, drafts: Sequence[Draft]) -> Head:
        """Begin a log with these events; refused when the name is taken."""
        try:
            with self._transaction() as link:
                row = {"name": name, "position": START.position, "checksum": START.checksum}
                if self._execute(link, _MAKE_SESSION, row).rowcount != 1:
                    raise StoreError(
                        f"there is already a session named {name!r} in {self.place}; "
                        "load it, or choose another name"
                    )
                return self.append(name, drafts, expected=START)
        except BaseException:
            self._ids.pop(name, None)  # it may be the number of a session that was rolled back
            raise

    def names(self) -> list[str]:
        """The names of all logs, oldest first."""
        return [row[0] for row in self._query(_NAMES)]

    def head(self, name: str) -> Head:
        """Where this log ends now."""
        _, position, checksum = self._session(name)
        return Head(position, checksum)

    def read(self, name: str, *, after: Head = START) -> Iterator[Event]:
        """The events after this head in their order, each checked against its checksum."""
        session_id = self._id(name)
        while rows := self._query(_READ, {"session_id": session_id, "after": after.position, "limit": PAGE}):
            for event in checked(rows, after, name):
                yield event
                after = event.head
            if len(rows) < PAGE:
                return

    def find(self, name: str, key: str) -> Event | None:
        """The event with this key, at the same cost however long the log is."""
        rows = self._query(_FIND, {"session_id": self._id(name), "key": key})
        return Event(*rows[0]) if rows else None

    def append(
        self, name: str, drafts: Sequence[Draft], *, expected: Head, release: Sequence[str] = ()
    ) -> Head:
        """All of the drafts or none become the next events, if the log still ends at `expected`."""
        events = seal(drafts, expected)
        head = events[-1].head if events else expected
        session_id = self._id(name)
        batch = _append_batch(session_id, events, release, expected, head)
        if self._write_all(batch) != 1:
            raise ConflictError(
                f"session {name!r} no longer ends at event {expected.position}; read on and try again"
            )
        return head

    @contextmanager
    def exclusive(self, name: str, *, meanwhile: Callable[[], None] = _nothing) -> Iterator[None]:
        """Within it nobody else appends to this log, and what this thread appends is one transaction."""
        with self._transaction(self._driver.begin_exclusive.format(self._id(name)), meanwhile):
            yield

    def claim(self, name: str, tokens: Iterable[str], *, worker: str, until: float, now: float) -> list[str]:
        """The tokens of these that the worker holds from now on: free, expired, or its own already."""
        lease = {"session_id": self._id(name), "worker": worker, "expires": until, "now": now}
        return [token for token in tokens if self._note(_CLAIM, {**lease, "token": token}) == 1]

    def release(self, name: str, tokens: Sequence[str]) -> None:
        """End the leases on these tokens, if there are any."""
        for token in tokens:
            self._note(_RELEASE, {"session_id": self._id(name), "token": token})

    def leases(self, name: str) -> list[Lease]:
        """All leases, expired ones included, ordered by token."""
        return [Lease(*row) for row in self._query(_LEASES, {"session_id": self._id(name)})]

    def save_snapshot(self, name: str, snapshot: Snapshot) -> None:
        """Keep this snapshot instead of an earlier one."""
        row = {
            "session_id": self._id(name),
            "position": snapshot.head.position,
            "checksum": snapshot.head.checksum,
            "body": snapshot.body,
            "body_checksum": _body_checksum(snapshot.body),
        }
        self._note(_SAVE_SNAPSHOT, row)

    def snapshot(self, name: str) -> Snapshot | None:
        """The snapshot that was kept, or None: there is none, or it is not as it was written."""
        for position, checksum, body, body_checksum in self._query(_SNAPSHOT, {"session_id": self._id(name)}):
            if _body_checksum(body) == body_checksum:
                return Snapshot(Head(position, checksum), body)
        return None

    def close(self) -> None:
        """Let go of files and connections; what was acknowledged stays."""
        for link in list(self._links):
            link.close()

    def _session(self, name: str) -> tuple[int, int, str]:
        rows = self._query(_SESSION, {"name": name})
        if not rows:
            raise StoreError(
                f"there is no session named {name!r} in {self.place}; {suggestion(name, self.names())}"
            )
        session_id, position, checksum = rows[0]
        return session_id, position, checksum

    def _id(self, name: str) -> int:
        """The number of a log; it never changes, so it is asked for once."""
        if name not in self._ids:
            self._ids[name] = self._session(name)[0]
        return self._ids[name]

    def _prepare_schema(self, *, read_only: bool) -> None:
        version = self._schema_version()
        if version > migrations.VERSION:
            raise StoreError(
                f"{self.place} was written by a newer surepick (schema {version}, this one knows up to "
                f"{migrations.VERSION}); upgrade surepick to open it"
            )
        if version == migrations.VERSION:
            return
        if read_only:
            raise StoreError(
                f"{self.place} has schema {version} and needs {migrations.VERSION}, but was opened for "
                "reading only; open it once for writing, e.g. with `surepick list`"
            )
        self._migrate()

    def _schema_version(self) -> int:
        tables = {row[0] for row in self._query(self._driver.list_tables)}
        if "surepick_schema" not in tables:
            return 0
        return int(self._query("SELECT max(version) FROM surepick_schema")[0][0])

    def _migrate(self) -> None:
        """Apply the steps that are missing, in one transaction; of many processes only the first does it."""
        with self._transaction() as link:
            if self._driver.lock_schema:
                self._execute(link, self._driver.lock_schema)
            version = self._schema_version()
            if version == 0:
                self._execute(link, "CREATE TABLE surepick_schema (version INTEGER NOT NULL)")
            for statement in migrations.statements_from(version, self._driver.dialect):
                self._execute(link, statement)
            for step in range(version + 1, migrations.VERSION + 1):
                self._execute(link, "INSERT INTO surepick_schema VALUES (:step)", {"step": step})

    @contextmanager
    def _transaction(
        self, begin: str | None = None, meanwhile: Callable[[], None] = _nothing
    ) -> Iterator[_Link]:
        """A connection inside a writing transaction: the one that is open in this thread, or a new one."""
        link = self._open_link(durable=True)
        if link is not None and link.inside:
            yield link
            return
        link = self._retry(lambda link: link.begin(begin or self._driver.begin), meanwhile=meanwhile)
        try:
            yield link
            self._execute(link, "COMMIT")
        except BaseException:
            link.roll_back()
            raise
        finally:
            link.inside = False

    def _execute(self, link: _Link, text: str, parameters: Parameters = NO_PARAMETERS) -> Any:
        """Run a statement inside a transaction, where nobody can be in the way."""
        try:
            return link.execute(self._sql(text), parameters)
        except self._driver.errors as error:
            raise self._driver.explain(error) from error

    def _write_all(self, batch: Sequence[tuple[str, Parameters]]) -> int:
        """Run statements in one transaction, and where it can be in one journey; rows the first changed."""
        sql = [(self._sql(text), row) for text, row in batch]
        link = self._open_link(durable=True)
        if self._driver.pipelines and not (link and link.inside):
            whole = [("BEGIN", NO_PARAMETERS), *sql, ("COMMIT", NO_PARAMETERS)]
            return self._retry(lambda link: link.run_or_roll_back(self._driver, whole))[1]
        with self._transaction() as link:
            try:
                return self._driver.run_all(link.connection, sql)[0]
            except self._driver.errors as error:
                raise self._driver.explain(error) from error

    def _query(self, text: str, parameters: Parameters = NO_PARAMETERS) -> list[tuple[Any, ...]]:
        """All rows of a reading statement; inside a transaction it sees what was written there."""
        sql = self._sql(text)
        return self._retry(lambda link: link.execute(sql, parameters).fetchall())

    def _note(self, text: str, parameters: Parameters) -> int:
        """Run one writing statement that a crash of the machine may undo; how many rows it changed."""
        sql = self._sql(text)
        changed: int = self._retry(lambda link: link.execute(sql, parameters).rowcount, durable=False)
        return changed

    def _retry(
        self,
        attempt: Callable[[_Link], T],
        *,
        durable: bool = True,
        meanwhile: Callable[[], None] = _nothing,
    ) -> T:
        """What the attempt returns, once nobody is in its way; a lost connection is opened again once."""
        began = time.monotonic()
        reconnected = False
        while True:
            try:
                return attempt(self._link(durable=durable))
            except self._driver.errors as error:
                if self._inside():
                    raise self._driver.explain(error) from error
                if self._driver.is_gone(error) and not reconnected:
                    reconnected = True
                    self._drop_link(durable=durable)
                elif not self._driver.is_busy(error) or time.monotonic() > began + self._patience:
                    raise self._final(error) from error
            meanwhile()
            junior = max(0.0, 1.0 - (time.monotonic() - began) / SENIORITY)
            pause = SHORTEST_PAUSE + junior * (LONGEST_PAUSE - SHORTEST_PAUSE)
            time.sleep(pause * random.uniform(0.5, 1.0))  # jitter, or all who wait would come back together

    def _final(self, error: Exception) -> StoreError:
        if not self._driver.is_busy(error):
            return self._driver.explain(error)
        return StoreError(
            f"{self.place} has been in use by another process for more than {self._patience:g} s ({error}); "
            "nothing was written, look for a process that is stopped in the middle and repeat this step"
        )

    def _link(self, *, durable: bool) -> _Link:
        """This thread's connection of that kind; inside a transaction there is only the one that is in it."""
        link = self._open_link(durable=True)
        if link is None or not (durable or link.inside):
            link = self._open_link(durable=durable) or self._new_link(durable=durable)
        return link

    def _open_link(self, *, durable: bool) -> _Link | None:
        """This thread's connection if it has one; one of a parent process must not be shared."""
        link: _Link | None = getattr(self._local, _ROLE[durable], None)
        if link is None or link.usable():
            return link
        if link.inherited():
            _INHERITED.append(link)  # kept from being closed here, which would end the parent's connection
        setattr(self._local, _ROLE[durable], None)
        return None

    def _new_link(self, *, durable: bool) -> _Link:
        link = _Link(self._driver.connect(durable=durable))
        setattr(self._local, _ROLE[durable], link)
        self._links.add(link)
        return link

    def _drop_link(self, *, durable: bool) -> None:
        link = self._open_link(durable=durable)
        if link is not None:
            link.close()

    def _inside(self) -> bool:
        link = self._open_link(durable=True)
        return link is not None and link.inside


class _Link:
    """A connection of one thread of one process; `inside` says whether a transaction is open on it."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self.execute: Callable[[str, Parameters], Any] = connection.execute
        self.inside = False
        self._process = os.getpid()
        self._closed = False

    def begin(self, statement: str) -> _Link:
        self.execute(statement, {})
        self.inside = True
        return self

    def run_or_roll_back(self, driver: Driver, batch: Sequence[tuple[str, Parameters]]) -> list[int]:
        """Run a whole transaction at once; if it fails nothing of it stays open."""
        try:
            return driver.run_all(self.connection, batch)
        except BaseException:
            self.roll_back()
            raise

    def usable(self) -> bool:
        return not self._closed and not self.inherited()

    def inherited(self) -> bool:
        """Whether it was opened before this process was forked."""
        return self._process != os.getpid()

    def roll_back(self) -> None:
        """End the open transaction without a trace; a connection that cannot do so is not used again."""
        try:
            self.execute("ROLLBACK", {})
        except Exception:
            self.close()

    def close(self) -> None:
        if self.usable():
            self._closed = True
            self.connection.close()


_INHERITED: list[_Link] = []
_ROLE = {True: "durable", False: "relaxed"}


def _append_batch(
    session_id: int, events: Sequence[Event], release: Sequence[str], expected: Head, head: Head
) -> list[tuple[str, Parameters]]:
    """The statements of an append; all but the first do nothing unless the first has moved the head."""
    move = {
        "session_id": session_id,
        "position": head.position,
        "checksum": head.checksum,
        "expected_position": expected.position,
        "expected_checksum": expected.checksum,
    }
    same = {"session_id": session_id, "last_checksum": head.checksum}
    appended = [(_APPEND, {**same, **event._asdict()}) for event in events]
    released = [(_RELEASE_WITH_APPEND, {**same, "token": token}) for token in release]
    return [(_MOVE_HEAD, move), *appended, *released]


def _body_checksum(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()[:32]
