"""The SQL store: one code path for SQLite and PostgreSQL.

The statements are SQLAlchemy text, compiled once for the driver's way of writing parameters, and run on the
driver's own connection: an append is three short statements, and the ORM-free execution layer would cost as
much as the database does.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

import sqlalchemy as sa

from surepick.errors import ConflictError, StoreError, name_taken, suggestion
from surepick.store import migrations
from surepick.store.drivers import Answer, Driver, Parameters, Statement, Step
from surepick.store.events import START, Claim, Draft, Event, Head, Lease, Snapshot, View, checked, seal

T = TypeVar("T")
NO_PARAMETERS: Parameters = {}

PATIENCE = 60.0  # seconds to wait for other writers before giving up
# Seconds between two tries for the writer's lock; farther back in line, where a turn is far off, longer ones.
PAUSE, LONGER_PAUSE, LONGEST_PAUSE = 0.00005, 0.0001, 0.002
CLOSE = 4  # so many ahead in line, and it is time to get ready
STUCK = 1.0  # seconds: in a line that stands still for so long somebody is stopped, and all try their luck
PAGE = 5000  # events read at a time, so that a long read never holds back the writers' clean-up

_MAKE_SESSION = (
    "INSERT INTO surepick_sessions (name, position, checksum) VALUES (:name, :position, :checksum) "
    "ON CONFLICT (name) DO NOTHING"
)
_NAMES = "SELECT name FROM surepick_sessions ORDER BY id"
_SESSION = "SELECT id, position, checksum FROM surepick_sessions WHERE name = :name"
_READ = (
    "SELECT position, kind, key, time, body, checksum FROM surepick_events "
    "WHERE session_id = :session_id AND position > :after ORDER BY position LIMIT :limit"
)
# Both in one journey: the leases come first, as rows at position 0.
_LOOK = (
    "SELECT 0 AS position, '' AS kind, token AS key, expires AS time, worker AS body, '' AS checksum "
    "FROM surepick_leases WHERE session_id = :session_id "
    f"UNION ALL SELECT * FROM ({_READ}) AS news ORDER BY position, key"
)
# A claim and a look in one journey: the tokens that the worker holds come as rows at position -1.
_CLAIM_AND_LOOK = f"""WITH claimed AS (
        INSERT INTO surepick_leases (session_id, token, worker, expires)
        SELECT :session_id, token, :worker, :expires
        FROM json_array_elements_text(CAST(:tokens AS JSON)) AS token
        ON CONFLICT (session_id, token) DO UPDATE SET worker = excluded.worker, expires = excluded.expires
        WHERE surepick_leases.expires <= :now OR surepick_leases.worker = excluded.worker
        RETURNING token
    )
    SELECT -1 AS position, '' AS kind, token AS key, 0 AS time, '' AS body, '' AS checksum FROM claimed
    UNION ALL {_LOOK}"""
_FIND = (
    "SELECT position, kind, key, time, body, checksum FROM surepick_events "
    "WHERE session_id = :session_id AND key = :key"
)
_CHECKSUM_AT = "SELECT checksum FROM surepick_events WHERE session_id = :session_id AND position = :position"
_CLAIM = (
    "INSERT INTO surepick_leases (session_id, token, worker, expires) "
    "VALUES (:session_id, :token, :worker, :expires) "
    "ON CONFLICT (session_id, token) DO UPDATE SET worker = excluded.worker, expires = excluded.expires "
    "WHERE surepick_leases.expires <= :now OR surepick_leases.worker = excluded.worker"
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
        _OPEN.add(self)
        self._prepare_schema(read_only=read_only)

    @property
    def place(self) -> str:
        """The file, or the address of the database without its password."""
        return self._driver.place

    def create(self, name: str, drafts: Sequence[Draft]) -> Head:
        """Begin a log with these events; refused when the name is taken."""
        try:
            with self._transaction():
                row = {"name": name, "position": START.position, "checksum": START.checksum}
                if self._execute(_MAKE_SESSION, row).rowcount != 1:
                    raise name_taken(name, self.place)
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

    def read(self, name: str, *, after: Head = START, limit: int | None = None) -> Iterator[Event]:
        """The events after this head in their order, each checked against its checksum."""
        session_id, left = self._id(name), sys.maxsize if limit is None else limit
        while left > 0:
            size = min(left, PAGE)
            rows = self._query(_READ, {"session_id": session_id, "after": after.position, "limit": size})
            for event in checked(rows, after, name):
                yield event
                after = event.head
            left = left - size if len(rows) == size else 0

    def look(self, name: str, *, after: Head, claim: Claim | None = None) -> View:
        """What `read` gives after this head, and all leases as `leases` gives them, in one journey."""
        if claim is None:
            return self._view(name, after, self._query(_LOOK, self._look(name, after)))
        tokens, worker, until, now = claim
        if not self._driver.remote:
            held = self.claim(name, tokens, worker=worker, until=until, now=now)
            return self.look(name, after=after)._replace(held=held)
        wish = {"tokens": json.dumps(tokens), "worker": worker, "expires": until, "now": now}
        sql, row = self._sql(_CLAIM_AND_LOOK), {**self._look(name, after), **wish}
        rows = self._retry(lambda link: link.execute(sql, row).fetchall(), durable=False)
        return self._view(name, after, rows)

    def _look(self, name: str, after: Head) -> dict[str, object]:
        return {"session_id": self._id(name), "after": after.position, "limit": PAGE}

    def _view(self, name: str, after: Head, rows: Sequence[tuple[Any, ...]]) -> View:
        held = [token for at, _, token, *_ in rows if at == -1]
        leases = [Lease(token, worker, expires) for at, _, token, expires, worker, _ in rows if at == 0]
        events = list(checked(rows[len(held) + len(leases) :], after, name))
        if len(events) == PAGE:
            events += self.read(name, after=events[-1].head)
        return View(events, leases, held)

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
        step = Step(self._id(name), expected, head, events, release)
        if not self._append(step):
            raise ConflictError(
                f"session {name!r} no longer ends at event {expected.position}; read on and try again"
            )
        return head

    def _append(self, step: Step) -> bool:
        inside = self._inside()
        if inside is not None and not inside.durable:
            raise StoreError("events cannot be written in a transaction that need not survive a crash")

        tries = 0

        def append(link: _Link) -> bool:
            nonlocal tries
            tries += 1
            return self._driver.append(lambda text, row: link.execute(self._sql(text), row), step)

        if not self._driver.remote and inside is None:
            return self._retry(lambda link: link.transact(self._driver, append))
        self._local.last_step = step
        return self._retry(append) or (tries > 1 and self._has(step))

    def _has(self, step: Step) -> bool:
        """Whether these very events are in the log: a connection can break after they were written."""
        row = {"session_id": step.session_id, "position": step.head.position}
        return self._query(_CHECKSUM_AT, row) == [(step.head.checksum,)]

    @contextmanager
    def exclusive(
        self,
        name: str,
        *,
        after: Callable[[], Head] | None = None,
        durable: bool = True,
        meanwhile: Callable[[], None] = _nothing,
    ) -> Iterator[View]:
        """Within it nobody else writes to this log, and what this thread writes is one transaction."""
        seen = [START]

        def first() -> list[Statement]:
            lock = self._driver.lock_session if durable else self._driver.lock_leases
            statements: list[Statement] = [] if lock is None else [(lock, {"session_id": self._id(name)})]
            if after is not None:
                seen[0] = after()
                statements.append((_LOOK, self._look(name, seen[0])))
            return statements

        with self._transaction(first, durable=durable, meanwhile=meanwhile) as answers:
            yield View([], []) if after is None else self._view(name, seen[0], answers[-1].rows)

    def claim(self, name: str, tokens: Iterable[str], *, worker: str, until: float, now: float) -> list[str]:
        """The tokens of these that the worker holds from now on: free, expired, or its own already."""
        lease = {"session_id": self._id(name), "worker": worker, "expires": until, "now": now}
        rows = [{**lease, "token": token} for token in tokens]
        if len(rows) == 1:
            return [str(row["token"]) for row in rows if self._note(_CLAIM, row) == 1]
        with self._transaction(lambda: [(_CLAIM, row) for row in rows], durable=False) as answers:
            return [
                str(row["token"]) for row, answer in zip(rows, answers, strict=True) if answer.rowcount == 1
            ]

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
        if self._driver.line is not None:
            self._driver.line.close()

    def let_go_before_fork(self) -> None:
        """Close this thread's connections, to be opened again when needed, unless one is in a transaction.

        SQLite knows the locks of a process by what it remembers. A forked child would remember those of its
        parent, which it does not have, and write to files that others take for abandoned.
        """
        if not self._driver.remote and self._inside() is None:
            for durable in _ROLE:
                self._drop_link(durable=durable)

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
        with self._transaction():
            if self._driver.lock_schema:
                self._execute(self._driver.lock_schema)
            version = self._schema_version()
            if version == 0:
                self._execute("CREATE TABLE surepick_schema (version INTEGER NOT NULL)")
            for statement in migrations.statements_from(version, self._driver.dialect):
                self._execute(statement)
            for step in range(version + 1, migrations.VERSION + 1):
                self._execute("INSERT INTO surepick_schema VALUES (:step)", {"step": step})

    @contextmanager
    def _transaction(
        self,
        first: Callable[[], Sequence[Statement]] = tuple,
        *,
        durable: bool = True,
        meanwhile: Callable[[], None] = _nothing,
    ) -> Iterator[list[Answer]]:
        """A writing transaction, or a part of the one that is open; its first statements travel together.

        It gives their answers.
        """
        begin = [(self._driver.begin, NO_PARAMETERS)] if self._inside() is None else []

        def attempt(link: _Link) -> list[Answer]:
            batch = [*begin, *((self._sql(text), row) for text, row in first())]
            return link.run_all(self._driver, batch)[len(begin) :]

        answers = self._retry(attempt, durable=durable, meanwhile=meanwhile)
        if not begin:
            yield answers
            return
        link = self._link(durable=durable)
        self._local.inside, self._local.last_step = link, None
        try:
            yield answers
            self._commit(link)
        except BaseException:
            link.roll_back(self._driver)
            raise
        finally:
            self._local.inside = None

    def _commit(self, link: _Link) -> None:
        """End the open transaction; if the connection breaks just then, look whether the server ended it."""
        try:
            link.execute("COMMIT", NO_PARAMETERS)
        except self._driver.errors as error:
            step: Step | None = self._local.last_step
            if step is None or not self._driver.is_gone(error) or not self._arrived(step):
                raise self._driver.explain(error) from error

    def _arrived(self, step: Step) -> bool:
        """Whether these events are in the log, once the transaction that wrote them has ended either way."""
        self._local.inside = None
        for durable in _ROLE:
            self._drop_link(durable=durable)
        lock = self._driver.lock_session
        with self._transaction(lambda: [] if lock is None else [(lock, {"session_id": step.session_id})]):
            return self._has(step)

    def _execute(self, text: str, parameters: Parameters = NO_PARAMETERS) -> Any:
        """Run a statement of the open transaction."""
        sql = self._sql(text)
        return self._retry(lambda link: link.execute(sql, parameters))

    def _query(self, text: str, parameters: Parameters = NO_PARAMETERS) -> list[tuple[Any, ...]]:
        """All rows of a reading statement; inside a transaction it sees what was written there."""
        sql = self._sql(text)
        return self._retry(lambda link: link.execute(sql, parameters).fetchall(), writes=False)

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
        writes: bool = True,
        meanwhile: Callable[[], None] = _nothing,
    ) -> T:
        """What the attempt returns, once nobody is in its way; a lost connection is opened again once.

        Writers stand in line, where the driver has one; reading is never in anybody's way.
        """
        if self._inside() is not None:
            return self._attempt_inside(attempt)
        line = self._driver.line if writes else None
        place = None if line is None or line.is_empty() else line.join()
        give_up_at, reconnected = time.monotonic() + self._patience, False
        error: Exception | None = None
        noticed: int | None = None  # how many were ahead at the last look
        moved_at = time.monotonic()
        try:
            while True:
                if place is None or place.move_up() or time.monotonic() > moved_at + STUCK:
                    try:
                        return attempt(self._link(durable=durable))
                    except self._driver.errors as caught:
                        error = caught
                        if self._driver.is_gone(error) and not reconnected:
                            reconnected = True
                            self._drop_link(durable=durable)
                        elif not self._driver.is_busy(error):
                            raise self._driver.explain(error) from error
                    place = line.join() if line is not None and place is None else place
                if time.monotonic() > give_up_at:
                    raise self._out_of_patience(error) from error
                ahead = None if place is None else place.ahead
                if ahead is None or ahead != noticed:
                    noticed, moved_at = ahead, time.monotonic()
                    if ahead is None or ahead <= CLOSE:
                        meanwhile()
                pause = min(PAUSE + LONGER_PAUSE * (ahead or 0) ** 2, LONGEST_PAUSE)
                time.sleep(pause * random.uniform(0.5, 1.0))  # or all who wait would come back together
        finally:
            if place is not None:
                place.leave()

    def _attempt_inside(self, attempt: Callable[[_Link], T]) -> T:
        """Inside a transaction nobody can be in the way."""
        try:
            return attempt(self._link(durable=True))
        except self._driver.errors as error:
            raise self._driver.explain(error) from error

    def _out_of_patience(self, error: Exception | None) -> StoreError:
        return StoreError(
            f"{self.place} has been in use by another process for more than {self._patience:g} s "
            f"({error or 'others are first in line'}); nothing was written, look for a process that is "
            "stopped in the middle and repeat this step"
        )

    def _link(self, *, durable: bool) -> _Link:
        """This thread's connection of that kind; inside a transaction there is only the one that is in it."""
        return self._inside() or self._open_link(durable=durable) or self._new_link(durable=durable)

    def _inside(self) -> _Link | None:
        """The connection on which this thread has a transaction open."""
        link: _Link | None = getattr(self._local, "inside", None)
        return link if link is not None and link.usable() else None

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
        link = _Link(self._driver.connect(durable=durable), durable=durable)
        setattr(self._local, _ROLE[durable], link)
        self._links.add(link)
        return link

    def _drop_link(self, *, durable: bool) -> None:
        link = self._open_link(durable=durable)
        if link is not None:
            link.close()


class _Link:
    """A connection of one thread of one process."""

    def __init__(self, connection: Any, *, durable: bool) -> None:
        self.connection = connection
        self.durable = durable
        # One cursor for all: what a statement gave is read before the next one is run.
        self.execute: Callable[[str, Parameters], Any] = connection.cursor().execute
        self._process = os.getpid()
        self._closed = False

    def run_all(self, driver: Driver, batch: Sequence[Statement]) -> list[Answer]:
        """Run statements in one journey; if one fails no transaction stays open."""
        try:
            return driver.run_all(self.connection, batch) if batch else []
        except BaseException:
            self.roll_back(driver)
            raise

    def transact(self, driver: Driver, work: Callable[[_Link], T]) -> T:
        """Do this work in a transaction of its own."""
        try:
            self.execute(driver.begin, NO_PARAMETERS)
            result = work(self)
            self.execute("COMMIT", NO_PARAMETERS)
        except BaseException:
            self.roll_back(driver)
            raise
        return result

    def usable(self) -> bool:
        return not self._closed and not self.inherited()

    def inherited(self) -> bool:
        """Whether it was opened before this process was forked."""
        return self._process != os.getpid()

    def roll_back(self, driver: Driver) -> None:
        """End the open transaction without a trace; a connection that cannot do so is not used again."""
        try:
            if driver.in_transaction(self.connection):
                self.execute("ROLLBACK", {})
        except Exception:
            self.close()

    def close(self) -> None:
        if self.usable():
            self._closed = True
            self.connection.close()


_OPEN: weakref.WeakSet[SqlStore] = weakref.WeakSet()


def _before_fork() -> None:
    for store in list(_OPEN):
        store.let_go_before_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork)

_INHERITED: list[_Link] = []
_ROLE = {True: "durable", False: "relaxed"}


def _body_checksum(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()[:32]
