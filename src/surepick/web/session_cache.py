"""Sessions kept open for the pages, each behind a lock; opening one happens in threads of its own.

Opening reads the log, which can take long. A page says how many seconds it waits for that (`patience`).
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from surepick.errors import DeletedError, MissingFunctionError, SessionError
from surepick.sessions.session import Session
from surepick.store import Store, open_store
from surepick.views.build import build

T = TypeVar("T")

MOST_OPEN = 32  # sessions; the one that was not used for longest is closed
THREADS = 4  # that use sessions
OPENING_THREADS = 4  # that open them

_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._-]{0,80}")


class UnknownSessionError(SessionError):
    """There is no session of this name in the store."""


class OpeningError(SessionError):
    """The session is still being opened."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the session {name!r} is still being opened; try again in a few seconds")
        self.session = name


class SessionCache:
    """The sessions of one store; with `read_only` the store itself is opened for reading only.

    `patience` is how many seconds a page waits for a session.
    """

    def __init__(self, store: str | Store, *, read_only: bool, patience: float = 2.0) -> None:
        self.patience = patience
        self.store = (
            open_store(store, create=not read_only, read_only=read_only) if isinstance(store, str) else store
        )
        self._open: OrderedDict[str, _Entry] = OrderedDict()
        self._lock = threading.Lock()
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="surepick-session")
        self._openers = ThreadPoolExecutor(OPENING_THREADS, thread_name_prefix="surepick-opening")

    async def run(self, work: Callable[[], T]) -> T:
        """Return what `work` returns, called in a thread."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    async def at(self, slug: str, work: Callable[[Session], T], *, patience: float | None = None) -> T:
        """Return what `work` returns for the session at this part of a URL, called in a thread."""
        return await self.run(lambda: self.use(name_of(slug), work, patience=patience))

    def use(self, name: str, work: Callable[[Session], T], *, patience: float | None = None) -> T:
        """Return what `work` returns for this session, which no other thread uses meanwhile.

        With patience, raise `OpeningError` if it cannot be had within so many seconds.
        """
        until = None if patience is None else time.monotonic() + patience
        entry = self._entry(name)
        opening = self._opening(name, entry)
        try:
            session = opening.result(patience)
        except TimeoutError:
            if opening.done():  # the error of opening itself
                raise
            raise OpeningError(name) from None
        if not entry.lock.acquire(timeout=-1 if until is None else max(0.0, until - time.monotonic())):
            raise OpeningError(name)
        try:
            return work(session)
        except DeletedError as error:
            self.forget(name)  # the next request opens the new session of this name, if there is one
            raise UnknownSessionError(str(error)) from error
        finally:
            entry.lock.release()

    def open(self, name: str) -> Future[Session]:
        """Start opening this session, unless it is open."""
        return self._opening(name, self._entry(name))

    def names(self) -> list[str]:
        """Return the names of all sessions, the newest first."""
        return self.store.names()[::-1]

    def forget(self, name: str) -> None:
        """Drop this session, which is no longer in the store."""
        with self._lock:
            self._open.pop(name, None)

    def close(self) -> None:
        """Close the store, once what was started has ended."""
        self._openers.shutdown(wait=True, cancel_futures=True)
        self._threads.shutdown(wait=True, cancel_futures=True)
        self.store.close()

    def _entry(self, name: str) -> _Entry:
        with self._lock:
            if name in self._open:
                self._open.move_to_end(name)
                return self._open[name]
        if name not in self.store.names():
            raise UnknownSessionError(f"there is no session named {name!r} in this store")
        with self._lock:
            entry = self._open.setdefault(name, _Entry())
            while len(self._open) > MOST_OPEN:
                self._open.popitem(last=False)
        return entry

    def _opening(self, name: str, entry: _Entry) -> Future[Session]:
        """Return the session once it is opened; one that failed is tried once more."""
        with self._lock:
            if entry.opening is None or (entry.opening.done() and entry.opening.exception() is not None):
                entry.opening = self._openers.submit(self._open_now, name, entry)
            return entry.opening

    def _open_now(self, name: str, entry: _Entry) -> Session:
        """Load the session and view it once, so that the first page does not wait for that."""
        session = self._load(name)
        with entry.lock, contextlib.suppress(Exception):  # the next request reports it
            build(session)
        return session

    def _load(self, name: str) -> Session:
        try:
            return Session.load(self.store, name)
        except MissingFunctionError:  # only the Python program that began it can continue it
            return Session.load(self.store, name, read_only=True)


class _Entry:
    """A session that is open or being opened, and the lock of the thread that uses it."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.opening: Future[Session] | None = None


def slug_of(name: str) -> str:
    """Return a session's name as a part of a URL: itself where it is plain, otherwise encoded.

    >>> slug_of("trips 2026"), slug_of("../<b>"), name_of(slug_of("../<b>"))
    ('trips 2026', '~Li4vPGI-', '../<b>')
    """
    if _PLAIN.fullmatch(name):
        return name
    return "~" + base64.urlsafe_b64encode(name.encode()).decode().rstrip("=")


def name_of(slug: str) -> str:
    """Return the name that a part of a URL stands for."""
    if not slug.startswith("~"):
        return slug
    try:
        return base64.urlsafe_b64decode(slug[1:] + "=" * (-len(slug[1:]) % 4)).decode()
    except ValueError:  # neither base64 nor UTF-8
        raise UnknownSessionError(f"there is no session at {slug!r} in this store") from None
