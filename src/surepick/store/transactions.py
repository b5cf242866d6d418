"""Transactions on a SQL database: a connection per thread, turns among writers, and what to do on failure."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from surepick.errors import StoreError
from surepick.store.drivers import COMMIT, NO_PARAMETERS, Answer, Driver, Parameters, Statement
from surepick.store.write_queue import Turn

T = TypeVar("T")


class OutcomeUnknownError(StoreError):
    """The connection broke while the server was asked to commit: it may have done so, or not."""


def nothing() -> None:
    """What to do meanwhile, if there is nothing to do."""


class Transactions:
    """Runs statements for any number of threads; it changes by opening and closing connections."""

    def __init__(self, driver: Driver, patience: float) -> None:
        self._driver = driver
        self._patience = patience  # seconds to wait for other writers before giving up
        self._local = threading.local()
        self._links: weakref.WeakSet[Link] = weakref.WeakSet()
        _OPEN.add(self)

    def query(self, text: str, parameters: Parameters = NO_PARAMETERS) -> list[tuple[Any, ...]]:
        """All rows of a reading statement; inside a transaction it sees what was written there."""
        return self._attempt(lambda link: link.run([(text, parameters)])[0].rows, writes=False)

    def run(self, batch: Sequence[Statement], *, durable: bool = True) -> list[Answer]:
        """Run writing statements in the open transaction, or in one of their own that is one round trip.

        Without `durable` a crash of the machine may undo them, and they must not mind being run twice.
        """
        if self.inside() is not None or not batch:
            return self._attempt(lambda link: link.run(batch)) if batch else []
        return self._attempt(lambda link: link.run_whole(batch, durable=durable), sure=durable)

    @contextmanager
    def open(
        self,
        first: Callable[[], Sequence[Statement]] = tuple,
        *,
        durable: bool = True,
        meanwhile: Callable[[], None] = nothing,
    ) -> Iterator[list[Answer]]:
        """A writing transaction, or a part of the one that is open; it gives the answers to `first`.

        first:     called when its turn has come; its statements are sent together with the beginning.
        durable:   whether it must survive a crash of the machine (default yes).
        meanwhile: called now and then while waiting for other writers.
        """
        if self.inside() is not None:
            yield self.run(first())
            return
        begin = self._driver.begin(durable=durable)
        answers = self._attempt(lambda link: link.run([*begin, *first()]), meanwhile=meanwhile)
        link = self._link()
        link.inside, link.durable = True, durable
        try:
            yield answers[len(begin) :]
            self._commit(link)
        except BaseException:
            link.roll_back()
            raise
        finally:
            link.inside = False

    def inside(self) -> Link | None:
        """The connection on which this thread has a transaction open."""
        link = self._usable_link()
        return link if link is not None and link.inside else None

    def close(self) -> None:
        """Let go of all connections; they are opened again when needed."""
        for link in list(self._links):
            link.close()
        if self._driver.queue is not None:
            self._driver.queue.close()

    def let_go_before_fork(self) -> None:
        """Close this thread's connection, to be opened again when needed, unless it is in a transaction.

        SQLite knows the locks of a process by what it remembers. A forked child would remember those of its
        parent, which it does not have, and write to files that others take for abandoned.
        """
        link = self._usable_link()
        if link is not None and not self._driver.remote and not link.inside:
            link.close()

    def drop_link(self) -> None:
        """Close this thread's connection, whatever state it is in."""
        link = self._usable_link()
        if link is not None:
            link.inside = False
            link.close()

    def _commit(self, link: Link) -> None:
        try:
            link.run([COMMIT])
            if link.durable:
                self._driver.sync()
        except self._driver.errors as error:
            why = self._driver.explain(error)
            raise (OutcomeUnknownError(str(why)) if self._driver.is_gone(error) else why) from error

    def _attempt(
        self,
        attempt: Callable[[Link], T],
        *,
        writes: bool = True,
        sure: bool = False,
        meanwhile: Callable[[], None] = nothing,
    ) -> T:
        """What the attempt returns, once nobody is in its way.

        Readers try at once. Writers wait for their turn where the driver has a queue, and try again while
        the database is busy, until their patience ends. A connection that was lost, perhaps hours ago, is
        opened again once: what was sent before had no effect, except that with `sure` it included a commit,
        and then only its author can find out. Inside a transaction nobody can be in the way, and nothing is
        repeated, since what came before in it would be missing.
        """
        driver, inside = self._driver, self.inside()
        if writes and driver.read_only:
            raise StoreError(f"{driver.place} was opened for reading only; open it for writing to change it")
        if inside is None:
            driver.check()
        with Turn(driver.queue if writes and inside is None else None, self._patience) as turn:
            reconnected = False
            while True:
                if turn.is_mine():
                    try:
                        return attempt(self._link())
                    except driver.errors as error:
                        if inside is not None or not (driver.is_busy(error) or driver.is_gone(error)):
                            raise driver.explain(error) from error
                        if not driver.is_busy(error):
                            self.drop_link()
                            if sure or reconnected:
                                kind = OutcomeUnknownError if sure else StoreError
                                raise kind(str(driver.explain(error))) from error
                            reconnected = True
                            continue
                        turn.was_busy(error)
                turn.wait(driver.place, meanwhile)

    def _link(self) -> Link:
        """This thread's connection."""
        link = self._usable_link()
        if link is None:
            self._local.link = link = Link(self._driver)
            self._links.add(link)
        return link

    def _usable_link(self) -> Link | None:
        """This thread's connection if it has one; one of a parent process must not be shared."""
        link: Link | None = getattr(self._local, "link", None)
        if link is None or link.usable():
            return link
        if link.inherited():
            _INHERITED.append(link)  # kept from being closed here, which would end the parent's connection
        self._local.link = None
        return None


class Link:
    """A connection of one thread of one process; `inside` tells whether a transaction of ours is open."""

    def __init__(self, driver: Driver) -> None:
        self.inside = False
        self.durable = True  # of the open transaction
        self._driver = driver
        self._connection = driver.connect()
        self._process = os.getpid()
        self._closed = False

    def run(self, batch: Sequence[Statement]) -> list[Answer]:
        """Run statements in one round trip; if one fails, no transaction that they began stays open."""
        try:
            return self._driver.run_all(self._connection, batch) if batch else []
        except BaseException:
            if not self.inside:
                self.roll_back()
            raise

    def run_whole(self, batch: Sequence[Statement], *, durable: bool) -> list[Answer]:
        """Run statements as one transaction; if one fails, nothing is left of it."""
        try:
            return self._driver.run_whole(self._connection, batch, durable=durable)
        except BaseException:
            self.roll_back()
            raise

    def usable(self) -> bool:
        """Whether it is open and belongs to this process."""
        return not self._closed and not self.inherited()

    def inherited(self) -> bool:
        """Whether it was opened before this process was forked."""
        return self._process != os.getpid()

    def roll_back(self) -> None:
        """End the open transaction without a trace; a connection that cannot do so is not used again."""
        try:
            if self._driver.in_transaction(self._connection):
                self._driver.run_all(self._connection, [("ROLLBACK", NO_PARAMETERS)])
        except Exception:
            self.close()

    def close(self) -> None:
        """Let go of the connection."""
        if self.usable():
            self._closed = True
            self._connection.close()


_OPEN: weakref.WeakSet[Transactions] = weakref.WeakSet()
_INHERITED: list[Link] = []


def _before_fork() -> None:
    for transactions in list(_OPEN):
        transactions.let_go_before_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork)
