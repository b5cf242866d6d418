"""The SQL store: one code path for SQLite and PostgreSQL, and the address that says which of them."""

from __future__ import annotations

import copy
import hashlib
import itertools
import json
import re
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import unquote

from surepick.errors import DamageError, StoreError, name_taken, suggestion
from surepick.store import schema
from surepick.store.connections import Answer, Database, OutcomeUnknownError, Statement
from surepick.store.log import (
    START,
    Draft,
    Event,
    Head,
    Lease,
    Snapshot,
    Store,
    View,
    checked,
    deleted,
    moved_on,
    seal,
)

PAGE = 5000  # events read at a time, so that a long read never holds back SQLite's checkpoints


class SqlStore(Store):
    """Logs in a SQL database; logs change only by appending."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.place = database.place
        self._pinned: tuple[str, int] | None = None  # a name and the id of the log that it means here
        # `last`: the log and the new head of this thread's latest append, for `_transaction`
        self._written = threading.local()
        self._make_tables()

    def _make_tables(self) -> None:
        """Make the tables if there are none; raise StoreError if another version of surepick made them."""
        database = self._database
        if self._has_tables():
            return
        if database.read_only:
            raise StoreError(f"{self.place} is empty; make a session in it with `surepick new`")
        with database.transaction():  # if several processes come here, only the first makes the tables
            if database.lock_schema:
                database.run([(database.lock_schema, {})])
            if not self._has_tables():
                words = schema.WORDS[database.dialect]
                database.run([(text.format(**words), {}) for text in schema.TABLES])

    def _has_tables(self) -> bool:
        if ("surepick_schema",) not in self._database.query(self._database.list_tables):
            return False
        version = self._database.query("SELECT max(version) FROM surepick_schema")[0][0]
        if version != schema.VERSION:
            raise StoreError(
                f"{self.place} was written by another version of surepick (schema {version}, this one has "
                f"{schema.VERSION}); open it with that version, or begin a new store"
            )
        return True

    def create(self, name: str, drafts: Sequence[Draft]) -> Head:
        row = {"name": name, "position": START.position, "checksum": START.checksum}
        with self._transaction():
            (made,) = self._database.run([(schema.MAKE_SESSION, row)])
            if made.rowcount != 1:
                raise name_taken(name, self.place)
            unpinned = copy.copy(self)  # the name may be pinned to a log that was deleted
            unpinned._pinned = None
            return unpinned.append(name, drafts, expected=START)

    def names(self) -> list[str]:
        return [row[0] for row in self._database.query(schema.NAMES)]

    def pin(self, name: str) -> SqlStore:
        pinned = copy.copy(self)
        pinned._pinned = None
        pinned._pinned = (name, pinned._session(name)[0])
        return pinned

    def head(self, name: str, *, at: int | None = None) -> Head:
        number, position, checksum = self._session(name)
        found = [] if at is None else self._checksum_at(number, at)
        return Head(position, checksum) if at is None or not found else Head(at, found[0][0])

    def _checksum_at(self, number: int, position: int) -> list[tuple[Any, ...]]:
        return self._database.query(schema.CHECKSUM_AT, {"session_id": number, "position": position})

    def read(self, name: str, *, after: Head = START, limit: int | None = None) -> Iterator[Event]:
        return itertools.chain.from_iterable(self._pages(name, after, limit))

    def _pages(self, name: str, after: Head, limit: int | None) -> Iterator[Iterable[Event]]:
        """Yield the events after this head, checked, a page at a time; at most `limit` events."""
        number = self._id(name)
        left = sys.maxsize if limit is None else limit
        while left > 0:
            size = min(left, PAGE)
            row = {"session_id": number, "after": after.position, "limit": size + (after != START)}
            rows = self._after(name, number, after, self._database.query(schema.READ, row))
            yield checked(rows, after, name)
            if len(rows) < size:
                return
            left -= size
            after = Event(*rows[-1]).head

    def _after(
        self, name: str, number: int, after: Head, rows: Sequence[tuple[Any, ...]]
    ) -> Sequence[tuple[Any, ...]]:
        """Return these rows without the first, which must be the event at `after`, if there is one."""
        if after == START:
            if not rows:
                self._session(name)  # which says so if it was deleted
            return rows
        if rows and Event(*rows[0]).head == after:
            return rows[1:]
        if not self._database.query(schema.SESSION_BY_ID, {"session_id": number}):
            raise deleted(name, self.place)
        raise DamageError(
            f"session {name!r} no longer has the event {after.position} that was read before; run "
            "`surepick verify --all`"
        )

    def look(self, name: str, *, after: Head) -> View:
        number = self._id(name)
        return self._view(name, number, after, self._database.query(*_look(number, after)))

    def find(self, name: str, key: str) -> Event | None:
        rows = self._database.query(schema.FIND, {"session_id": self._id(name), "key": key})
        if not rows:
            self._session(name)  # which says so if it was deleted
        return Event(*rows[0]) if rows else None

    def append(
        self, name: str, drafts: Sequence[Draft], *, expected: Head, release: Sequence[str] = ()
    ) -> Head:
        number = self._id(name)
        events = seal(drafts, expected)
        head = events[-1].head if events else expected
        self._written.last = (number, head)
        row = {
            "session_id": number,
            "position": head.position,
            "checksum": head.checksum,
            "expected_position": expected.position,
            "expected_checksum": expected.checksum,
            "tokens": json.dumps(list(release)),
        }
        database = self._database
        batch = database.appending(row, events)
        try:
            moved, *_ = database.run(batch, alone=database.remote)
        except OutcomeUnknownError:
            if self._arrived(number, head):
                return head
            # The lost attempt did not commit and never will. This one changes nothing if another process has
            # moved the head meanwhile.
            moved, *_ = database.run(batch, alone=database.remote)
        self._check_moved(moved, name, expected)
        return head

    def _check_moved(self, moved: Answer, name: str, expected: Head) -> None:
        """Raise an error if the head of the log was not where an append or a deletion expected it."""
        if moved.rowcount != 1:
            self._session(name)  # which says so if it was deleted
            raise moved_on(name, expected)

    @contextmanager
    def transaction(self, name: str, *, after: Head | None = None, durable: bool = True) -> Iterator[View]:
        number = self._id(name)
        lock = self._database.lock_session if durable else self._database.lock_leases
        first: list[Statement] = [] if lock is None else [(lock, {"session_id": number})]
        if after is not None:
            first.append(_look(number, after))
        with self._transaction(first, durable=durable) as answers:
            yield View([], []) if after is None else self._view(name, number, after, answers[-1].rows)

    @contextmanager
    def _transaction(
        self, first: Sequence[Statement] = (), *, durable: bool = True
    ) -> Iterator[list[Answer]]:
        """Open a transaction; if the connection breaks at its end, look whether the server committed it."""
        self._written.last = None
        try:
            with self._database.transaction(first, durable=durable) as answers:
                yield answers
        except OutcomeUnknownError:
            if self._written.last is None or not self._arrived(*self._written.last):
                raise

    def _arrived(self, number: int, head: Head) -> bool:
        """Return whether a log has reached this head, after the connection that sent its events was lost.

        A connection can break after the commit was sent and before the server has confirmed it. The
        lock waits until the server has ended, either way, what it may still be doing for that connection.
        Then the checksum tells, since it stands for these events and all before them.
        """
        self._database.disconnect()
        lock = self._database.lock_session
        with self._database.transaction([] if lock is None else [(lock, {"session_id": number})]):
            return self._checksum_at(number, head.position) == [(head.checksum,)]

    def claim(self, name: str, tokens: Iterable[str], *, worker: str, until: float, now: float) -> list[str]:
        wanted = list(tokens)
        row = {
            "session_id": self._id(name),
            "tokens": json.dumps(sorted(set(wanted))),  # in one order, or two claims could wait in a ring
            "worker": worker,
            "expires": until,
            "now": now,
        }
        (claimed,) = self._database.run([(schema.CLAIM[self._database.dialect], row)], durable=False)
        if not claimed.rows:
            self._session(name)  # which says so if it was deleted
        held = {token for (token,) in claimed.rows}
        return [token for token in wanted if token in held]

    def release(self, name: str, tokens: Sequence[str]) -> None:
        row = {"session_id": self._id(name), "tokens": json.dumps(list(tokens))}
        if tokens:
            self._database.run([(schema.RELEASE[self._database.dialect], row)], durable=False)

    def leases(self, name: str) -> list[Lease]:
        rows = self._database.query(schema.LEASES, {"session_id": self._id(name)})
        return [Lease(*row) for row in rows]

    def save_snapshot(self, name: str, snapshot: Snapshot) -> None:
        row = {
            "session_id": self._id(name),
            **snapshot.head._asdict(),
            "body": snapshot.body,
            "digest": hashlib.sha256(snapshot.body).hexdigest(),
        }
        self._database.run([(schema.SAVE_SNAPSHOT, row)], durable=False)

    def snapshot(self, name: str) -> Snapshot | None:
        rows = self._database.query(schema.SNAPSHOT, {"session_id": self._id(name)})
        for position, checksum, body, digest in rows:
            if hashlib.sha256(body).hexdigest() == digest:
                return Snapshot(Head(position, checksum), body)
        return None

    def delete(self, name: str, *, expected: Head) -> None:
        session: dict[str, object] = {"session_id": self._id(name)}
        with self._transaction():
            (gone,) = self._database.run([(schema.DELETE_SESSION, {**session, **expected._asdict()})])
            self._check_moved(gone, name, expected)
            self._database.run([(text, session) for text in schema.DELETE_REST])

    def disconnect(self) -> None:
        if self._database.inside() is None:
            self._database.disconnect()

    def close(self) -> None:
        self._database.close()

    def _view(self, name: str, number: int, after: Head, rows: Sequence[tuple[Any, ...]]) -> View:
        """Return the leases and the events after this head, from the rows that `_look` selects."""
        leases = [Lease(token, worker, expires) for at, _, token, expires, worker, _ in rows if at == 0]
        news = self._after(name, number, after, rows[len(leases) :])
        events = list(checked(news, after, name))
        if len(events) == PAGE:
            events += self.read(name, after=events[-1].head)
        return View(events, leases)

    def _session(self, name: str) -> tuple[int, int, str]:
        """Return the id of a log and where it ends; an error if there is none."""
        if self._pinned is not None and self._pinned[0] == name:
            rows = self._database.query(schema.SESSION_BY_ID, {"session_id": self._pinned[1]})
            if not rows:
                raise deleted(name, self.place)
        else:
            rows = self._database.query(schema.SESSION, {"name": name})
            if not rows:
                known = suggestion(name, self.names())
                raise StoreError(f"there is no session named {name!r} in {self.place}; {known}")
        session_id, position, checksum = rows[0]
        return session_id, position, checksum

    def _id(self, name: str) -> int:
        """Return the id of a log, which is never used again when the log is deleted."""
        if self._pinned is not None and self._pinned[0] == name:
            return self._pinned[1]
        return self._session(name)[0]


def _look(number: int, after: Head) -> Statement:
    """Return the statement that selects the leases of a log, with position 0, and a page of its events."""
    row = {"session_id": number, "after": after.position, "limit": PAGE + (after != START)}
    return schema.LOOK, row


EXAMPLES = "write sqlite:///trips.db, postgresql://user@host/database, or the path of a file"


def database_at(url: str, *, read_only: bool) -> Database:
    """Return the database at this address; without :// it is the path of a SQLite file."""
    shown = re.sub(r"(://[^:/]*:)[^@]*@", r"\1***@", url, count=1)  # without its password
    shown = re.sub(r"([?&]password=)[^&]*", r"\1***", shown)
    found = re.fullmatch(r"(\w+)(?:\+\w+)?://([^/]*)/?(.*)", url)  # +: a driver, as in SQLAlchemy
    kind, host, rest = ("", "", "") if found is None else found.groups()
    if kind in ("postgresql", "postgres") and "\0" not in unquote(url):
        from surepick.store.postgres import Postgres  # database packages are slow to import

        return Postgres(re.sub(r"\+\w+(?=://)", "", url, count=1), shown, read_only=read_only)
    path = url if "://" not in url else unquote(rest.split("?")[0]) if kind == "sqlite" and not host else ""
    if path in ("", ":memory:") or "\0" in unquote(url):
        raise StoreError(f"there can be no store at {shown!r}; {EXAMPLES}", field="store")
    from surepick.store.sqlite import Sqlite

    return Sqlite(path, read_only=read_only)
