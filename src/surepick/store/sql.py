"""The SQL store: one code path for SQLite and PostgreSQL, and the address that says which of them."""

from __future__ import annotations

import hashlib
import itertools
import json
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import unquote

from surepick.errors import DamageError, StoreError, name_taken
from surepick.store import schema
from surepick.store.connections import Answer, Database, OutcomeUnknownError, Statement
from surepick.store.log import (
    START,
    Draft,
    Event,
    Head,
    Lease,
    Log,
    Snapshot,
    Store,
    View,
    checked,
    deleted,
    moved_on,
    seal,
    unknown,
)

PAGE = 5000  # events read at a time, so that a long read never holds back SQLite's checkpoints


class SqlStore(Store):
    """Logs in a SQL database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.place = database.place
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

    def create(self, name: str, drafts: Sequence[Draft]) -> SqlLog:
        row = {"name": name, "position": START.position, "checksum": START.checksum}
        with self._database.transaction():
            (made,) = self._database.run([(schema.MAKE_SESSION, row)])
            if made.rowcount != 1:
                raise name_taken(name, self.place)
            log = self.log(name)
            log.append(drafts, expected=START)
        return log

    def names(self) -> list[str]:
        return [row[0] for row in self._database.query(schema.NAMES)]

    def log(self, name: str) -> SqlLog:
        rows = self._database.query(schema.SESSION, {"name": name})
        if not rows:
            raise unknown(name, self)
        return SqlLog(self._database, name, rows[0][0])

    def close(self) -> None:
        self._database.close()


class SqlLog(Log):
    """A log in a SQL database; it changes only by appending."""

    def __init__(self, database: Database, name: str, number: int) -> None:
        self.name = name
        self._database = database
        self._number = number  # its id, which is never used again when the log is deleted

    def _query(self, text: str, **parameters: object) -> list[tuple[Any, ...]]:
        """Return the rows of a statement about this log."""
        return self._database.query(text, {"session_id": self._number, **parameters})

    def head(self, *, at: int | None = None) -> Head:
        rows = self._query(schema.HEAD)
        if not rows:
            raise deleted(self.name, self._database.place)
        if at is not None:
            rows = self._query(schema.HEAD_AT, position=at) or rows
        return Head(*rows[0])

    def read(self, *, after: Head = START, limit: int | None = None) -> Iterator[Event]:
        return itertools.chain.from_iterable(self._pages(after, limit))

    def _pages(self, after: Head, limit: int | None) -> Iterator[Iterable[Event]]:
        """Yield the events after this head, checked, a page at a time; at most `limit` events."""
        left = sys.maxsize if limit is None else limit
        while left > 0:
            size = min(left, PAGE)
            rows = self._query(schema.READ, after=after.position, limit=size + (after != START))
            rows = self._after(after, rows)
            yield checked(rows, after, self.name)
            if len(rows) < size:
                return
            left -= size
            after = Event(*rows[-1]).head

    def _after(self, after: Head, rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        """Return these rows without the first, which must be the event at `after`, if there is one."""
        if not rows:
            self.head()  # which says so if the log was deleted
        if after == START:
            return rows
        if rows and Event(*rows[0]).head == after:
            return rows[1:]
        raise DamageError(
            f"session {self.name!r} no longer has the event {after.position} that was read before; run "
            "`surepick verify --all`"
        )

    def look(self, *, after: Head) -> View:
        text, row = self._look(after)
        return self._view(after, self._database.query(text, row))

    def _look(self, after: Head) -> Statement:
        """Return the statement that selects all leases, with position 0, and a page of events."""
        limit = PAGE + (after != START)
        return schema.LOOK, {"session_id": self._number, "after": after.position, "limit": limit}

    def _view(self, after: Head, rows: list[tuple[Any, ...]]) -> View:
        """Return the leases and the events after this head, from the rows that `_look` selects."""
        leases = [Lease(token, worker, expires) for at, _, token, expires, worker, _ in rows if at == 0]
        events = list(checked(self._after(after, rows[len(leases) :]), after, self.name))
        if len(events) == PAGE:
            events += self.read(after=events[-1].head)
        return View(events, leases)

    def find(self, key: str) -> Event | None:
        rows = self._query(schema.FIND, key=key)
        if not rows:
            self.head()  # which says so if the log was deleted
        return Event(*rows[0]) if rows else None

    def append(self, drafts: Sequence[Draft], *, expected: Head, release: Sequence[str] = ()) -> Head:
        database, events = self._database, seal(drafts, expected)
        head = events[-1].head if events else expected
        row = {
            "session_id": self._number,
            **head._asdict(),
            "head": head.checksum,
            "expected_position": expected.position,
            "expected_checksum": expected.checksum,
            "tokens": json.dumps(list(release)),
        }
        batch = [(schema.MOVE_HEAD, row), *database.inserting(row, events)]
        if release:
            batch.append((schema.END_LEASES[database.dialect], row))
        try:
            moved, *_ = database.commit(batch)
        except OutcomeUnknownError:
            if not self._arrived(head):
                raise
            return head
        self._check_moved(moved, expected)
        return head

    def _check_moved(self, moved: Answer, expected: Head) -> None:
        """Raise an error if the head of the log was not where an append or a deletion expected it."""
        if moved.rowcount != 1:
            self.head()  # which says so if the log was deleted
            raise moved_on(self.name, expected)

    def _arrived(self, head: Head) -> bool:
        """Return whether the log has reached this head, after the connection that sent its events was lost.

        A connection can break after the commit was sent and before the server has confirmed it. The
        lock waits until the server has ended, either way, what it may still be doing for that connection.
        Then the checksum tells, since it stands for these events and all before them.
        """
        self._database.disconnect()
        with self._database.transaction(log=self._number):
            return self._query(schema.HEAD_AT, position=head.position) == [tuple(head)]

    @contextmanager
    def transaction(self, *, after: Head, durable: bool = True) -> Iterator[View]:
        look = self._look(after)
        with self._database.transaction(look, log=self._number, durable=durable) as answers:
            yield self._view(after, answers[-1].rows)

    def claim(self, tokens: Iterable[str], *, worker: str, until: float, now: float) -> list[str]:
        wanted = list(tokens)
        row = {
            "session_id": self._number,
            "tokens": json.dumps(sorted(set(wanted))),  # in one order, or two claims could wait in a ring
            "worker": worker,
            "expires": until,
            "now": now,
        }
        (claimed,) = self._database.run([(schema.CLAIM[self._database.dialect], row)])
        if not claimed.rows:
            self.head()  # which says so if the log was deleted
        held = {token for (token,) in claimed.rows}
        return [token for token in wanted if token in held]

    def release(self, tokens: Sequence[str]) -> None:
        if tokens:
            row = {"session_id": self._number, "tokens": json.dumps(list(tokens))}
            self._database.run([(schema.RELEASE[self._database.dialect], row)])

    def leases(self) -> list[Lease]:
        return [Lease(*row) for row in self._query(schema.LEASES)]

    def save_snapshot(self, snapshot: Snapshot) -> None:
        row = {
            "session_id": self._number,
            **snapshot.head._asdict(),
            "body": snapshot.body,
            "digest": hashlib.sha256(snapshot.body).hexdigest(),
        }
        self._database.run([(schema.SAVE_SNAPSHOT, row)])

    def snapshot(self) -> Snapshot | None:
        for position, checksum, body, digest in self._query(schema.SNAPSHOT):
            if hashlib.sha256(body).hexdigest() == digest:
                return Snapshot(Head(position, checksum), body)
        return None

    def delete(self, *, expected: Head) -> None:
        session: dict[str, object] = {"session_id": self._number}
        with self._database.transaction():
            (gone,) = self._database.run([(schema.DELETE_SESSION, {**session, **expected._asdict()})])
            self._check_moved(gone, expected)
            self._database.commit([(text, session) for text in schema.DELETE_REST])


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
