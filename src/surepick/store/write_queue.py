"""The line in which the writers of one file stand: who came first writes first.

SQLite lets whoever tries at the right moment write, so that in a crowd some wait a hundred times longer than
others. Here a place in line is a locked byte of a small file beside the store: everybody moves up into the
next byte that is free, and the first in line alone tries for the writer's lock. It is about fairness only.
That one process writes at a time is SQLite's promise, with or without a line, so these locks need not be
perfect: threads of one process share a place, and where bytes cannot be locked there is no line. The kernel
frees the bytes of a process that dies.
"""

from __future__ import annotations

import os
from pathlib import Path

try:
    import fcntl
except ModuleNotFoundError:  # no such locks on this system
    fcntl = None  # type: ignore[assignment]

CHAIRS = 12  # those who come when all are taken wait for the last one


class WaitingLine:
    """The line beside one file; the file of the line is made when somebody first has to wait."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._handle: int | None = None
        self._process = 0

    def is_empty(self) -> bool:
        """Whether nobody is waiting, as far as this process can know without making the file."""
        handle = self._open(create=False)
        if handle is None or not _lock(handle, 0, CHAIRS):
            return handle is None
        _unlock(handle, 0, CHAIRS)
        return True

    def join(self) -> Place:
        """Stand at the end of the line."""
        return Place(self._open(create=True))

    def close(self) -> None:
        """Let go of the file."""
        if self._handle is not None and self._process == os.getpid():
            os.close(self._handle)
        self._handle = None

    def _open(self, *, create: bool) -> int | None:
        if self._process != os.getpid():
            self.close()
            self._process = os.getpid()
        if self._handle is None and create and fcntl is not None:
            try:
                self._handle = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o666)
            except OSError:
                return None  # no line here; the writers try their luck
        return self._handle


class Place:
    """A place in line; it changes by `move_up` alone, and ends with `leave`."""

    def __init__(self, handle: int | None) -> None:
        self._handle = handle
        self.ahead = CHAIRS if handle is not None else 0  # chairs before this one

    def move_up(self) -> bool:
        """Take the chairs ahead that are free; whether this is the first in line now."""
        before = self.ahead
        while self.ahead and self._handle is not None and _lock(self._handle, self.ahead - 1, 1):
            self.ahead -= 1
        if self._handle is not None and self.ahead < before:
            _unlock(self._handle, self.ahead + 1, min(before, CHAIRS - 1) - self.ahead)
        return self.ahead == 0

    def leave(self) -> None:
        """Let the next one move up."""
        if self._handle is not None and self.ahead < CHAIRS:
            _unlock(self._handle, self.ahead, 1)
        self._handle, self.ahead = None, 0


def _lock(handle: int, first: int, count: int) -> bool:
    try:
        fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB, count, first)
    except OSError:
        return False
    return True


def _unlock(handle: int, first: int, count: int) -> None:
    if count:  # lockf takes 0 for everything from there on
        fcntl.lockf(handle, fcntl.LOCK_UN, count, first)
