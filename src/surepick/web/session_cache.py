"""Sessions kept open for the pages, each behind a lock, and their names in URLs."""

from __future__ import annotations

import asyncio
import base64
import re
import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar

from surepick.errors import DeletedError, MissingFunctionError, SessionError
from surepick.sessions.session import Session
from surepick.store import Store, open_store

T = TypeVar("T")

MOST_OPEN = 32  # sessions; the one that was not used for longest is closed
THREADS = 12  # that use sessions

_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._-]{0,80}")


class UnknownSessionError(SessionError):
    """There is no session of this name in the store."""


@dataclass
class _Entry:
    """A session, once it is open, and the lock of the thread that uses it."""

    session: Session | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)


class SessionCache:
    """The sessions of one store; with `read_only` the store itself is opened for reading only."""

    def __init__(self, store: str | Store, *, read_only: bool) -> None:
        self.store = (
            open_store(store, create=not read_only, read_only=read_only) if isinstance(store, str) else store
        )
        self._open: OrderedDict[str, _Entry] = OrderedDict()
        self._lock = threading.Lock()
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="surepick-session")

    async def run(self, work: Callable[[], T]) -> T:
        """Return what `work` returns, called in a thread."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    async def at(self, slug: str, work: Callable[[Session], T]) -> T:
        """Return what `work` returns for the session at this part of a URL, called in a thread."""
        return await self.run(lambda: self.use(name_of(slug), work))

    def use(self, name: str, work: Callable[[Session], T]) -> T:
        """Return what `work` returns for this session, which no other thread uses meanwhile."""
        with self._lock:
            entry = self._open.setdefault(name, _Entry())
            self._open.move_to_end(name)
            while len(self._open) > MOST_OPEN:
                self._open.popitem(last=False)
        with entry.lock:
            try:
                if entry.session is None:
                    entry.session = self._load(name)
                return work(entry.session)
            except DeletedError as error:  # the next request opens the new session of this name, if any
                self.forget(name)
                raise UnknownSessionError(str(error)) from error

    def names(self) -> list[str]:
        """Return the names of all sessions, the newest first."""
        return self.store.names()[::-1]

    def forget(self, name: str) -> None:
        """Drop this session, which is no longer in the store."""
        with self._lock:
            self._open.pop(name, None)

    def close(self) -> None:
        """Close the store, once what was started has ended."""
        self._threads.shutdown(wait=True, cancel_futures=True)
        self.store.close()

    def _load(self, name: str) -> Session:
        if name not in self.store.names():
            self.forget(name)
            raise UnknownSessionError(f"there is no session named {name!r} in this store")
        try:
            return Session.load(self.store, name)
        except MissingFunctionError:  # only the Python program that began it can continue it
            return Session.load(self.store, name, read_only=True)


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
