"""Transactions on a SQL database: a connection per thread, waiting for other writers, and failures."""

from __future__ import annotations

import os
import random
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from surepick.errors import StoreError
from surepick.store.drivers import COMMIT, NO_PARAMETERS, Answer, Driver, Parameters, Statement

T = TypeVar("T")
# Seconds between two tries for the write lock, times a random number about 1: all who wait try equally often,
# so that none starves. A try costs some tens of microseconds of processor, which in a crowd the writer lacks:
# shorter pauses make all of them slower.
FIRST_PAUSE, PAUSE = 0.001, 0.005


class OutcomeUnknownError(StoreError):
    """The connection broke while the server was asked to commit: it may have done so, or not."""


class Transactions:
    """Runs statements for any number of threads; it changes by opening and closing connections."""

    def __init__(self, driver: Driver, patience: float) -> None:
        self._driver = driver
        self._patience = patience  # seconds to wait for other writers before an error
        self._local = threading.local()
        self._links: weakref.WeakSet[Link] = weakref.WeakSet()
        _OPEN.add(self)

    def query(self, text: str, parameters: Parameters = NO_PARAMETERS) -> list[tuple[Any, ...]]:
        """All rows of a reading statement; inside a transaction it sees what was written there."""
        batch, inside = [(text, parameters)], self.inside()
        if inside is not None:
            return inside.run(batch)[0].rows
        return self._attempt(lambda link: link.run(batch)[0].rows, writes=False)

    def run(self, batch: Sequence[Statement], *, durable: bool = True) -> list[Answer]:
        """Run writing statements in the open transaction, or in one of their own that is one round trip.

        Without `durable` a crash of the machine may undo them, and they must not mind being run twice.
        """
        inside = self.inside()
        if inside is not None or not batch:
            return [] if inside is None else inside.run(batch)
        return self._attempt(lambda link: link.run_whole(batch, durable=durable), sure=durable)

    @contextmanager
    def open(
        self,
        first: Callable[[], Sequence[Statement]] = tuple,
        *,
        durable: bool = True,
    ) -> Iterator[tuple[Link, list[Answer]]]:
        """Open a writing transaction, or join the open one; yield its connection and the answers to `first`.

        first:   called for each try; its statements are sent together with the beginning.
        durable: whether it must survive a crash of the machine (default yes).
        """
        inside = self.inside()
        if inside is not None:
            yield inside, inside.run(first())
            return
        begin = self._driver.begin(durable=durable)
        link, answers = self._attempt(lambda link: (link, link.run([*begin, *first()])))
        link.inside, link.durable = True, durable
        try:
            yield link, answers[len(begin) :]
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
        link.inside = False  # so that the error, if there is one, is the driver's own
        try:
            link.run([COMMIT])
        except self._driver.errors as error:
            why = self._driver.explain(error)
            raise (OutcomeUnknownError(str(why)) if self._driver.is_gone(error) else why) from error

    def _attempt(self, attempt: Callable[[Link], T], *, writes: bool = True, sure: bool = False) -> T:
        """Return what the attempt returns, once no other writer is in its way; outside of transactions.

        It tries again while the database is busy, until its patience ends. A connection that was lost,
        perhaps hours ago, is opened again once: what was sent before had no effect, except that with `sure`
        it included a commit, and then only the caller can find out.
        """
        driver, began, reconnected = self._driver, time.monotonic(), False
        if writes and driver.read_only:
            raise StoreError(f"{driver.place} was opened for reading only; open it for writing to change it")
        driver.check()
        while True:
            try:
                return attempt(self._link())
            except driver.errors as error:
                if driver.is_busy(error):
                    self._wait(time.monotonic() - began, error)
                elif driver.is_gone(error):
                    self.drop_link()
                    if sure or reconnected:
                        kind = OutcomeUnknownError if sure else StoreError
                        raise kind(str(driver.explain(error))) from error
                    reconnected = True
                else:
                    raise driver.explain(error) from error

    def _wait(self, waited: float, error: Exception) -> None:
        """Sleep until the next try, or raise a StoreError if it has waited for too long."""
        if waited > self._patience:
            raise StoreError(
                f"{self._driver.place} has been in use by another process for more than {self._patience:g} s "
                f"({error}); nothing was written. Look for a stopped process, and repeat this step"
            ) from error
        time.sleep(random.uniform(0.5, 1.5) * (FIRST_PAUSE if waited < FIRST_PAUSE else PAUSE))

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
        if link is None or (link.is_open and link.process == os.getpid()):
            return link
        if link.process != os.getpid():
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
        self.process = os.getpid()  # a forked child must leave it alone
        self.is_open = True

    def run(self, batch: Sequence[Statement]) -> list[Answer]:
        """Run statements in one round trip; if one fails, no transaction that they began stays open.

        Inside a transaction nobody can be in the way, and nothing is repeated, since what came before in it
        would be missing: an error is the user's.
        """
        try:
            return self._driver.run_all(self._connection, batch) if batch else []
        except BaseException as error:
            if not self.inside:
                self.roll_back()
            elif isinstance(error, self._driver.errors):
                raise self._driver.explain(error) from error
            raise

    def run_whole(self, batch: Sequence[Statement], *, durable: bool) -> list[Answer]:
        """Run statements as one transaction; if one fails, nothing is left of it."""
        try:
            return self._driver.run_whole(self._connection, batch, durable=durable)
        except BaseException:
            self.roll_back()
            raise

    def roll_back(self) -> None:
        """End the open transaction without a trace; a connection that cannot do so is not used again."""
        try:
            if self._driver.in_transaction(self._connection):
                self._driver.run_all(self._connection, [("ROLLBACK", NO_PARAMETERS)])
        except Exception:
            self.close()

    def close(self) -> None:
        """Let go of the connection."""
        if self.is_open and self.process == os.getpid():
            self.is_open = False
            self._connection.close()


_OPEN: weakref.WeakSet[Transactions] = weakref.WeakSet()
_INHERITED: list[Link] = []


def _before_fork() -> None:
    for transactions in list(_OPEN):
        transactions.let_go_before_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork)
