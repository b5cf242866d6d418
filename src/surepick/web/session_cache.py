"""Sessions kept open for looking: each behind a lock, since a session belongs to one thread at a time."""

from __future__ import annotations

import asyncio
import base64
import re
import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from surepick.errors import MissingFunctionError, SessionError
from surepick.sessions.session import Session
from surepick.store import Store, open_store

T = TypeVar("T")

MOST_OPEN = 32  # sessions; the one that was not looked at for longest is let go
THREADS = 4  # that talk to the store

_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._-]{0,80}")


class UnknownSessionError(SessionError):
    """There is no session of this name in the store."""


class SessionCache:
    """The sessions of one store; without `write` the store itself is opened for reading only.

    Sessions are opened as they are asked for, by any thread, and the oldest are let go.
    """

    def __init__(self, store: str | Store, *, write: bool) -> None:
        self.store = open_store(store, create=write, read_only=not write) if isinstance(store, str) else store
        self._open: OrderedDict[str, _Entry] = OrderedDict()
        self._lock = threading.Lock()
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="surepick-session")

    async def run(self, work: Callable[[], T]) -> T:
        """What `work` returns, done in a thread so that nobody else has to wait."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    async def at(self, slug: str, work: Callable[[Session], T]) -> T:
        """What `work` makes of the session at this part of a URL, done in a thread."""
        return await self.run(lambda: self.use(name_of(slug), work))

    def use(self, name: str, work: Callable[[Session], T]) -> T:
        """What `work` makes of the session of this name, which is this thread's alone meanwhile."""
        entry = self._entry(name)
        with entry.lock:
            if entry.session is None:
                entry.session = self._load(name)
            return work(entry.session)

    def names(self) -> list[str]:
        """The names of all sessions, the youngest first."""
        return self.store.names()[::-1]

    def forget(self, name: str) -> None:
        """Let go of this session, which is no longer in the store."""
        with self._lock:
            self._open.pop(name, None)

    def close(self) -> None:
        """Let go of everything."""
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

    def _load(self, name: str) -> Session:
        try:
            return Session.load(self.store, name)
        except MissingFunctionError:  # only the Python program that began it can go on with it
            return Session.load(self.store, name, read_only=True)


class _Entry:
    """A session once it is opened, by whoever holds the lock first."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.session: Session | None = None


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
