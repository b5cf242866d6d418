"""Sessions kept open for looking: each behind a lock, since a session belongs to one thread at a time.

To open one may take long: its log is read, and loops may have to be compiled. Threads of their own do that,
and whoever has a page to show says how long it can wait for them (`patience`).
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

from surepick import views
from surepick.core.policy import start
from surepick.errors import DeletedError, MissingFunctionError, SessionError
from surepick.sessions.session import Session
from surepick.store import Store, open_store

T = TypeVar("T")

MOST_OPEN = 32  # sessions; the one that was not looked at for longest is let go
THREADS = 4  # that talk to the store
OPENING_THREADS = 4  # that open sessions

_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._-]{0,80}")


class UnknownSessionError(SessionError):
    """There is no session of this name in the store."""


class NotYetError(SessionError):
    """The session is still being opened."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the session {name!r} is still being opened; try again in a few seconds")
        self.session = name


class SessionCache:
    """The sessions of one store; without `write` the store itself is opened for reading only.

    Sessions are opened as they are asked for, by any thread, and the oldest are let go. `patience` is for how
    many seconds a page can wait for one.
    """

    def __init__(self, store: str | Store, *, write: bool, patience: float = 2.0) -> None:
        self.patience = patience
        self.store = open_store(store, create=write, read_only=not write) if isinstance(store, str) else store
        self._open: OrderedDict[str, _Entry] = OrderedDict()
        self._lock = threading.Lock()
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="surepick-session")
        self._openers = ThreadPoolExecutor(OPENING_THREADS, thread_name_prefix="surepick-opening")

    async def run(self, work: Callable[[], T]) -> T:
        """What `work` returns, done in a thread so that nobody else has to wait."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    async def at(self, slug: str, work: Callable[[Session], T], *, patience: float | None = None) -> T:
        """What `work` makes of the session at this part of a URL, done in a thread."""
        return await self.run(lambda: self.use(name_of(slug), work, patience=patience))

    def use(self, name: str, work: Callable[[Session], T], *, patience: float | None = None) -> T:
        """What `work` makes of the session of this name, which is this thread's alone meanwhile.

        With patience: NotYetError where it cannot be had within so many seconds.
        """
        until = None if patience is None else time.monotonic() + patience
        entry = self._entry(name)
        opening = self._opening(name, entry)
        try:
            session = opening.result(patience)
        except TimeoutError:
            if opening.done():  # that was the error
                raise
            raise NotYetError(name) from None
        if not entry.lock.acquire(timeout=-1 if until is None else max(0.0, until - time.monotonic())):
            raise NotYetError(name)
        try:
            return work(session)
        except DeletedError as error:
            self.forget(name)  # the next request opens the new session of this name, if there is one
            raise UnknownSessionError(str(error)) from error
        finally:
            entry.lock.release()

    def open(self, name: str) -> Future[Session]:
        """Have this session opened, by somebody else, if it is not."""
        return self._opening(name, self._entry(name))

    def _opening(self, name: str, entry: _Entry) -> Future[Session]:
        """The session once it is opened; one that could not be is tried once more."""
        with self._lock:
            if entry.opening is None or (entry.opening.done() and entry.opening.exception() is not None):
                entry.opening = self._openers.submit(self._open_now, name, entry)
            return entry.opening

    def names(self) -> list[str]:
        """The names of all sessions, the youngest first."""
        return self.store.names()[::-1]

    def forget(self, name: str) -> None:
        """Let go of this session, which is no longer in the store."""
        with self._lock:
            self._open.pop(name, None)

    def close(self) -> None:
        """Let go of everything."""
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

    def _open_now(self, name: str, entry: _Entry) -> Session:
        """Load it and look at it once: who comes then waits for neither log nor compiler."""
        session = self._load(name)
        with entry.lock, contextlib.suppress(Exception):  # whoever asks for it is told
            views.summary(views.look(session))
        with contextlib.suppress(RuntimeError):  # the server stops
            self._openers.submit(_compile, session)
        return session

    def _load(self, name: str) -> Session:
        try:
            return Session.load(self.store, name)
        except MissingFunctionError:  # only the Python program that began it can go on with it
            return Session.load(self.store, name, read_only=True)


def _compile(session: Session) -> None:
    """Have the loops ready that its policy will need once a round is complete: nobody waits for them then."""
    with contextlib.suppress(Exception):  # whoever needs them is told
        if session.status == "running":
            start(session.policy, session.problem)


class _Entry:
    """A session that is being opened, or is open, and who may use it."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.opening: Future[Session] | None = None


def slug_of(name: str) -> str:
    """A session's name as a part of a URL: itself where it is plain, otherwise encoded.

    >>> slug_of("trips 2026"), slug_of("../<b>"), name_of(slug_of("../<b>"))
    ('trips 2026', '~Li4vPGI-', '../<b>')
    """
    if _PLAIN.fullmatch(name):
        return name
    return "~" + base64.urlsafe_b64encode(name.encode()).decode().rstrip("=")


def name_of(slug: str) -> str:
    """The name that a part of a URL stands for."""
    if not slug.startswith("~"):
        return slug
    try:
        coded = slug[1:] + "=" * (-len(slug[1:]) % 4)
        return base64.urlsafe_b64decode(coded).decode()
    except ValueError:  # no base64, or no UTF-8
        raise UnknownSessionError(f"there is no session at {slug!r} in this store") from None
