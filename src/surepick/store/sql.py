"""The SQL store: one code path for SQLite and PostgreSQL."""

from __future__ import annotations

import copy
import hashlib
import itertools
import json
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from surepick.errors import DamageError, StoreError, name_taken, suggestion
from surepick.store import schema, statements
from surepick.store.drivers import Answer, Driver, Statement, Step
from surepick.store.events import START, Claim, Draft, Event, Head, Lease, Snapshot, View, checked, seal
from surepick.store.memory import deleted, moved_on
from surepick.store.transactions import OutcomeUnknownError, Transactions

PATIENCE = 60.0  # seconds to wait for other writers before an error
PAGE = 5000  # events read at a time, so that a long read never holds back SQLite's checkpoints


class SqlStore:
    """Logs in a SQL database; logs change only by appending."""

    def __init__(self, driver: Driver, *, patience: float = PATIENCE) -> None:
        self._driver = driver
        self._transactions = Transactions(driver, patience)
        self._pinned: tuple[str, int] | None = None  # a name and the id of the log that it means here
        self._written = threading.local()  # `step`: what this thread last wrote in its open transaction
        schema.make_tables(self._transactions, driver)

    @property
    def place(self) -> str:
        """The file, or the address of the database without its password."""
        return self._driver.place

    def create(self, name: str, drafts: Sequence[Draft]) -> Head:
        """Begin a log with these events; refused when the name is taken."""
        row = {"name": name, "position": START.position, "checksum": START.checksum}
        with self._transaction():
            (made,) = self._transactions.run([(statements.MAKE_SESSION, row)])
            if made.rowcount != 1:
                raise name_taken(name, self.place)
            number = self._transactions.query(statements.SESSION, {"name": name})[0][0]
            return self._append(name, number, drafts, START, ())

    def names(self) -> list[str]:
        """Return the names of all logs, oldest first."""
        return [row[0] for row in self._transactions.query(statements.NAMES)]

    def pin(self, name: str) -> SqlStore:
        """Return this store with `name` fixed to the log that has it now."""
        pinned = copy.copy(self)
        pinned._pinned = None
        pinned._pinned = (name, pinned._session(name)[0])
        return pinned

    def head(self, name: str) -> Head:
        """Return where this log ends now."""
        _, position, checksum = self._session(name)
        return Head(position, checksum)

    def read(self, name: str, *, after: Head = START, limit: int | None = None) -> Iterator[Event]:
        """Yield the events after this head in their order, each checked against its checksum."""
        return itertools.chain.from_iterable(self._pages(name, after, limit))

    def _pages(self, name: str, after: Head, limit: int | None) -> Iterator[Iterable[Event]]:
        number, left = self._id(name), sys.maxsize if limit is None else limit
        while left > 0:
            size = min(left, PAGE)
            row = {"session_id": number, "after": after.position, "limit": size + (after != START)}
            rows = self._after(name, number, after, self._transactions.query(statements.READ, row))
            yield checked(rows, after, name)
            if len(rows) < size:
                return
            left, after = left - size, Event(*rows[-1]).head

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
        if not self._transactions.query(statements.SESSION_BY_ID, {"session_id": number}):
            raise deleted(name, self.place)
        raise DamageError(
            f"session {name!r} no longer has the event {after.position} that was read before; run "
            "`surepick doctor`"
        )

    def look(self, name: str, *, after: Head, claim: Claim | None = None) -> View:
        """Return the events after this head and all leases, in one round trip."""
        number = self._id(name)
        look = _look(number, after)
        if claim is None:
            return self._view(name, number, after, self._transactions.query(*look))
        if self._driver.remote and self._transactions.inside() is None:
            tokens, worker, until, now = claim
            wanted = {"tokens": json.dumps(sorted(tokens)), "worker": worker, "expires": until, "now": now}
            statement = (statements.CLAIM_AND_LOOK, {**look[1], **wanted})
            (answer,) = self._transactions.run([statement], durable=False)
            return self._view(name, number, after, answer.rows)
        *claimed, answer = self._transactions.run([*_claims(number, claim), look], durable=False)
        return self._view(name, number, after, answer.rows)._replace(held=_granted(claim, claimed))

    def find(self, name: str, key: str) -> Event | None:
        """Return the event with this key, at the same cost however long the log is."""
        rows = self._transactions.query(statements.FIND, {"session_id": self._id(name), "key": key})
        if not rows:
            self._session(name)  # which says so if it was deleted
        return Event(*rows[0]) if rows else None

    def append(
        self, name: str, drafts: Sequence[Draft], *, expected: Head, release: Sequence[str] = ()
    ) -> Head:
        """Write all of the drafts or none as the next events, if the log still ends at `expected`."""
        return self._append(name, self._id(name), drafts, expected, release)

    def _append(
        self, name: str, number: int, drafts: Sequence[Draft], expected: Head, release: Sequence[str]
    ) -> Head:
        events = seal(drafts, expected)
        head = events[-1].head if events else expected
        if not self._write(Step(number, expected, head, events, release)):
            self._session(name)  # which says so if it was deleted
            raise moved_on(name, expected)
        return head

    def _write(self, step: Step) -> bool:
        transactions = self._transactions
        self._written.step = step
        if self._driver.remote and transactions.inside() is None:
            try:
                return self._driver.append(transactions.run, step)
            except OutcomeUnknownError:
                return self._arrived(step) or self._driver.append(transactions.run, step)
        with transactions.open() as (link, _):
            if not link.durable:
                raise StoreError("events cannot be written in a transaction that need not survive a crash")
            return self._driver.append(link.run, step)

    @contextmanager
    def exclusive(
        self, name: str, *, after: Callable[[], Head] | None = None, durable: bool = True
    ) -> Iterator[View]:
        """Hold the write lock of this log; what this thread writes within is one transaction."""
        number, seen = self._id(name), [START]

        def first() -> list[Statement]:
            lock = self._driver.lock_session if durable else self._driver.lock_leases
            begin: list[Statement] = [] if lock is None else [(lock, {"session_id": number})]
            if after is not None:
                seen[0] = after()
                begin.append(_look(number, seen[0]))
            return begin

        with self._transaction(first, durable=durable) as answers:
            yield View([], []) if after is None else self._view(name, number, seen[0], answers[-1].rows)

    @contextmanager
    def _transaction(
        self, first: Callable[[], Sequence[Statement]] = tuple, *, durable: bool = True
    ) -> Iterator[list[Answer]]:
        """Open a transaction; if the connection breaks at its end, look whether the server committed it."""
        self._written.step = None
        try:
            with self._transactions.open(first, durable=durable) as (_, answers):
                yield answers
        except OutcomeUnknownError:
            if self._written.step is None or not self._arrived(self._written.step):
                raise

    def _arrived(self, step: Step) -> bool:
        """Return whether these very events are in the log, after the connection that sent them was lost.

        A connection can break after the server was told to commit and before it could say that it did. The
        lock waits until the server has ended, either way, what it may still be doing for that connection.
        Then the checksum tells, since it stands for these events and all before them.
        """
        self._transactions.drop_link()
        lock = self._driver.lock_session
        row = {"session_id": step.session_id, "position": step.head.position}
        with self._transactions.open(lambda: [] if lock is None else [(lock, row)]):
            return self._transactions.query(statements.CHECKSUM_AT, row) == [(step.head.checksum,)]

    def claim(self, name: str, tokens: Iterable[str], *, worker: str, until: float, now: float) -> list[str]:
        """Lease these tokens and return those the worker now holds: free, expired, or its own already."""
        claim = Claim(list(tokens), worker, until, now)
        held = _granted(claim, self._transactions.run(_claims(self._id(name), claim), durable=False))
        if not held:
            self._session(name)  # which says so if it was deleted
        return held

    def release(self, name: str, tokens: Sequence[str]) -> None:
        """End the leases on these tokens, if there are any."""
        session = {"session_id": self._id(name)}
        self._transactions.run(
            [(statements.RELEASE, {**session, "token": token}) for token in tokens], durable=False
        )

    def leases(self, name: str) -> list[Lease]:
        """Return all leases, expired ones included, ordered by token."""
        rows = self._transactions.query(statements.LEASES, {"session_id": self._id(name)})
        return [Lease(*row) for row in rows]

    def save_snapshot(self, name: str, snapshot: Snapshot) -> None:
        """Keep this snapshot instead of an earlier one; do nothing if it is not of this log."""
        row = {
            "session_id": self._id(name),
            **snapshot.head._asdict(),
            "first": snapshot.first,
            "body": snapshot.body,
            "digest": hashlib.sha256(snapshot.body).hexdigest(),
        }
        self._transactions.run([(statements.SAVE_SNAPSHOT, row)], durable=False)

    def snapshot(self, name: str) -> Snapshot | None:
        """Return the snapshot, if there is one of this very log and it is as it was written."""
        rows = self._transactions.query(statements.SNAPSHOT, {"session_id": self._id(name)})
        for position, checksum, first, body, digest in rows:
            if hashlib.sha256(body).hexdigest() == digest:
                return Snapshot(Head(position, checksum), first, body)
        return None

    def delete(self, name: str, *, expected: Head) -> None:
        """Delete a whole log with its leases and its snapshot, if it still ends at `expected`."""
        session: dict[str, object] = {"session_id": self._id(name)}
        with self._transaction():
            (gone,) = self._transactions.run([(statements.DELETE_SESSION, {**session, **expected._asdict()})])
            if gone.rowcount != 1:
                self._session(name)  # which says so if it was deleted
                raise moved_on(name, expected)
            self._transactions.run([(text, session) for text in statements.DELETE_REST])

    def let_go(self) -> None:
        """Close this thread's connection, unless it is in a transaction; it is opened again when needed."""
        if self._transactions.inside() is None:
            self._transactions.drop_link()

    def close(self) -> None:
        """Close files and connections; what was acknowledged stays."""
        self._transactions.close()

    def _view(self, name: str, number: int, after: Head, rows: Sequence[tuple[Any, ...]]) -> View:
        held = [token for at, _, token, *_ in rows if at == -1]
        leases = [Lease(token, worker, expires) for at, _, token, expires, worker, _ in rows if at == 0]
        news = self._after(name, number, after, rows[len(held) + len(leases) :])
        events = list(checked(news, after, name))
        if len(events) == PAGE:
            events += self.read(name, after=events[-1].head)
        return View(events, leases, held)

    def _session(self, name: str) -> tuple[int, int, str]:
        """Return the id of a log and where it ends; an error if there is none."""
        if self._pinned is not None and self._pinned[0] == name:
            rows = self._transactions.query(statements.SESSION_BY_ID, {"session_id": self._pinned[1]})
            if not rows:
                raise deleted(name, self.place)
        else:
            rows = self._transactions.query(statements.SESSION, {"name": name})
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
    row = {"session_id": number, "after": after.position, "limit": PAGE + (after != START)}
    return statements.LOOK, row


def _claims(number: int, claim: Claim) -> list[Statement]:
    tokens, worker, until, now = claim
    lease = {"session_id": number, "worker": worker, "expires": until, "now": now}
    return [(statements.CLAIM_ONE, {**lease, "token": token}) for token in tokens]


def _granted(claim: Claim, answers: Iterable[Answer]) -> list[str]:
    """Return the tokens of a claim whose statements had an effect."""
    return [token for token, answer in zip(claim.tokens, answers, strict=True) if answer.rowcount == 1]
