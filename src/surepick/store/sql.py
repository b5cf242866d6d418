"""The SQL store: one code path for SQLite and PostgreSQL."""

from __future__ import annotations

import hashlib
import itertools
import json
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from surepick.errors import StoreError, name_taken, suggestion
from surepick.store import migrations, statements
from surepick.store.drivers import Answer, Driver, Statement, Step
from surepick.store.events import START, Claim, Draft, Event, Head, Lease, Snapshot, View, checked, seal
from surepick.store.memory import moved_on
from surepick.store.transactions import AT_EASE, OutcomeUnknownError, Transactions
from surepick.store.write_queue import Service, Wait

PATIENCE = 60.0  # seconds to wait for other writers before giving up
PAGE = 5000  # events read at a time, so that a long read never holds back the writers' clean-up


class SqlStore:
    """Logs in a SQL database; logs change only by appending."""

    def __init__(self, driver: Driver, *, patience: float = PATIENCE) -> None:
        self._driver = driver
        self._transactions = Transactions(driver, patience)
        self._ids: dict[str, int] = {}
        self._written = threading.local()  # `step`: what this thread last wrote in its open transaction
        migrations.bring_up_to_date(self._transactions, driver)

    @property
    def place(self) -> str:
        """The file, or the address of the database without its password."""
        return self._driver.place

    def create(self, name: str, drafts: Sequence[Draft], *, start: Head = START) -> Head:
        """Begin a log with these events; refused when the name is taken."""
        row = {"name": name, "position": start.position, "checksum": start.checksum}
        self._ids.pop(name, None)  # it may be the number of one that somebody has deleted
        try:
            with self._transaction():
                (made,) = self._transactions.run([(statements.MAKE_SESSION, row)])
                if made.rowcount != 1:
                    raise name_taken(name, self.place)
                return self.append(name, drafts, expected=start)
        except BaseException:
            self._ids.pop(name, None)  # it may be the number of a session that was rolled back
            raise

    def names(self) -> list[str]:
        """The names of all logs, oldest first."""
        return [row[0] for row in self._transactions.query(statements.NAMES)]

    def head(self, name: str) -> Head:
        """Where this log ends now."""
        _, position, checksum = self._session(name)
        return Head(position, checksum)

    def read(self, name: str, *, after: Head = START, limit: int | None = None) -> Iterator[Event]:
        """The events after this head in their order, each checked against its checksum."""
        return itertools.chain.from_iterable(self._pages(name, after, limit))

    def _pages(self, name: str, after: Head, limit: int | None) -> Iterator[Iterable[Event]]:
        session, left = self._by_id(name), sys.maxsize if limit is None else limit
        while left > 0:
            size = min(left, PAGE)
            rows = self._transactions.query(
                statements.READ, {**session, "after": after.position, "limit": size}
            )
            yield checked(rows, after, name)
            if len(rows) < size:
                return
            left, after = left - size, Event(*rows[-1]).head

    def look(self, name: str, *, after: Head, claim: Claim | None = None) -> View:
        """What `read` gives after this head, and all leases as `leases` gives them, in one round trip."""
        look = self._look(name, after)
        if claim is None:
            return self._view(name, after, self._transactions.query(*look))
        if self._driver.remote and self._transactions.inside() is None:
            tokens, worker, until, now = claim
            wish = {"tokens": json.dumps(sorted(tokens)), "worker": worker, "expires": until, "now": now}
            statement = (statements.CLAIM_AND_LOOK, {**look[1], **wish})
            (answer,) = self._transactions.run([statement], durable=False)
            return self._view(name, after, answer.rows)
        *claimed, answer = self._transactions.run([*self._claims(name, claim), look], durable=False)
        return self._view(name, after, answer.rows)._replace(held=_granted(claim, claimed))

    def find(self, name: str, key: str) -> Event | None:
        """The event with this key, at the same cost however long the log is."""
        rows = self._transactions.query(statements.FIND, {**self._by_id(name), "key": key})
        return Event(*rows[0]) if rows else None

    def append(
        self, name: str, drafts: Sequence[Draft], *, expected: Head, release: Sequence[str] = ()
    ) -> Head:
        """All of the drafts or none become the next events, if the log still ends at `expected`."""
        events = seal(drafts, expected)
        head = events[-1].head if events else expected
        step = Step(self._id(name), expected, head, events, release)
        if not self._append(step):
            raise self._refused(name, step.session_id, expected)
        return head

    def _refused(self, name: str, number: int, expected: Head) -> StoreError:
        """Why nothing was written to the log of this number: somebody was faster, or it is gone."""
        self._ids.pop(name, None)
        if self._session(name)[0] != number:
            return StoreError(
                f"session {name!r} was deleted and begun again; nothing was written: load it again"
            )
        return moved_on(name, expected)

    def _append(self, step: Step) -> bool:
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
        self,
        name: str,
        *,
        after: Callable[[], Head] | None = None,
        durable: bool = True,
        meanwhile: Callable[[], None] = AT_EASE.meanwhile,
    ) -> Iterator[View]:
        """Within it nobody else writes to this log, and what this thread writes is one transaction."""
        with self._exclusive(name, after, durable=durable, wait=Wait(meanwhile)) as view:
            yield view

    @contextmanager
    def combined(
        self, name: str, wait: Wait, *, after: Callable[[], Head], durable: bool = True
    ) -> Iterator[View]:
        """As `exclusive`; who has to wait for it posts a wish, and the view has the wishes of others.

        Whoever is served while waiting gets a ServedError with the reply. Within, the wishes that are given a
        reply are answered when all that was written is on disk; the others stay.
        """
        with (
            Service(self._driver.queue, name) as service,
            self._exclusive(name, after, durable=durable, wait=wait) as view,
        ):
            yield view._replace(wishes=service.begin())
            service.take()

    @contextmanager
    def _exclusive(
        self, name: str, after: Callable[[], Head] | None, *, durable: bool, wait: Wait
    ) -> Iterator[View]:
        seen = [START]

        def first() -> list[Statement]:
            lock = self._driver.lock_session if durable else self._driver.lock_leases
            statements: list[Statement] = [] if lock is None else [(lock, self._by_id(name))]
            if after is not None:
                seen[0] = after()
                statements.append(self._look(name, seen[0]))
            return statements

        with self._transaction(first, durable=durable, wait=wait) as answers:
            yield View([], []) if after is None else self._view(name, seen[0], answers[-1].rows)

    @contextmanager
    def _transaction(
        self,
        first: Callable[[], Sequence[Statement]] = tuple,
        *,
        durable: bool = True,
        wait: Wait = AT_EASE,
    ) -> Iterator[list[Answer]]:
        """A transaction; if the connection breaks while it ends, look whether the server ended it well."""
        self._written.step = None
        try:
            with self._transactions.open(first, durable=durable, wait=wait) as (_, answers):
                yield answers
        except OutcomeUnknownError:
            if self._written.step is None or not self._arrived(self._written.step):
                raise

    def _arrived(self, step: Step) -> bool:
        """Whether these very events are in the log, now that the connection on which they were sent is lost.

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
        """The tokens of these that the worker holds from now on: free, expired, or its own already."""
        claim = Claim(list(tokens), worker, until, now)
        return _granted(claim, self._transactions.run(self._claims(name, claim), durable=False))

    def _claims(self, name: str, claim: Claim) -> list[Statement]:
        tokens, worker, until, now = claim
        lease = {"session_id": self._id(name), "worker": worker, "expires": until, "now": now}
        return [(statements.CLAIM_ONE, {**lease, "token": token}) for token in tokens]

    def release(self, name: str, tokens: Sequence[str]) -> None:
        """End the leases on these tokens, if there are any."""
        session = self._by_id(name)
        self._transactions.run(
            [(statements.RELEASE, {**session, "token": token}) for token in tokens], durable=False
        )

    def leases(self, name: str) -> list[Lease]:
        """All leases, expired ones included, ordered by token."""
        return [Lease(*row) for row in self._transactions.query(statements.LEASES, self._by_id(name))]

    def save_snapshot(self, name: str, snapshot: Snapshot) -> None:
        """Keep this snapshot instead of an earlier one."""
        row = {
            **self._by_id(name),
            "position": snapshot.head.position,
            "checksum": snapshot.head.checksum,
            "body": snapshot.body,
            "body_checksum": _body_checksum(snapshot.body),
        }
        self._transactions.run([(statements.SAVE_SNAPSHOT, row)], durable=False)

    def snapshot(self, name: str) -> Snapshot | None:
        """The snapshot that was kept, or None: there is none, or it is not as it was written."""
        rows = self._transactions.query(statements.SNAPSHOT, self._by_id(name))
        for position, checksum, body, body_checksum in rows:
            if _body_checksum(body) == body_checksum:
                return Snapshot(Head(position, checksum), body)
        return None

    def delete(self, name: str, *, expected: Head) -> None:
        """Delete a whole log with its leases and its snapshot, if it still ends at `expected`."""
        number = self._id(name)
        session: dict[str, object] = {"session_id": number}
        head = {**session, "position": expected.position, "checksum": expected.checksum}
        with self._transaction():
            (gone,) = self._transactions.run([(statements.DELETE_SESSION, head)])
            if gone.rowcount != 1:
                raise self._refused(name, number, expected)
            self._transactions.run([(text, session) for text in statements.DELETE_REST])
        self._ids.pop(name, None)

    def settle(self) -> None:
        """What was read here before is on disk when this returns, whoever wrote it."""
        self._driver.sync()

    def let_go(self) -> None:
        """Close this thread's connection, unless it is in a transaction; it is opened again when needed."""
        if self._transactions.inside() is None:
            self._transactions.drop_link()

    def close(self) -> None:
        """Let go of files and connections; what was acknowledged stays."""
        self._transactions.close()

    def _look(self, name: str, after: Head) -> Statement:
        return statements.LOOK, {**self._by_id(name), "after": after.position, "limit": PAGE}

    def _view(self, name: str, after: Head, rows: Sequence[tuple[Any, ...]]) -> View:
        held = [token for at, _, token, *_ in rows if at == -1]
        leases = [Lease(token, worker, expires) for at, _, token, expires, worker, _ in rows if at == 0]
        events = list(checked(rows[len(held) + len(leases) :], after, name))
        if len(events) == PAGE:
            events += self.read(name, after=events[-1].head)
        return View(events, leases, held)

    def _session(self, name: str) -> tuple[int, int, str]:
        rows = self._transactions.query(statements.SESSION, {"name": name})
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

    def _by_id(self, name: str) -> dict[str, object]:
        return {"session_id": self._id(name)}


def _granted(claim: Claim, answers: Iterable[Answer]) -> list[str]:
    """The tokens of a claim whose statements had an effect."""
    return [token for token, answer in zip(claim.tokens, answers, strict=True) if answer.rowcount == 1]


def _body_checksum(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()[:32]
