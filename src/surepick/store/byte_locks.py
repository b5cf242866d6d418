"""A small file that processes share: its bytes are read and written at once, and locked one by one.

The kernel frees the bytes of a process that dies.
"""

from __future__ import annotations

import os
import stat
import threading
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from surepick.store.bells import Bell, ring

try:
    import fcntl
except ModuleNotFoundError:  # no such locks on this system
    fcntl = None  # type: ignore[assignment]

ARE_THERE = fcntl is not None

_mine: set[tuple[int, int]] = set()  # process and byte: a lock does not keep threads of one process apart
_choosing = threading.Lock()


class SharedBytes(Protocol):
    """What a line and its mailbox need of their file."""

    @property
    def process(self) -> int:
        """The number of the process that has it open."""
        ...

    def read(self, count: int, at: int) -> bytes:
        """So many bytes, or fewer at the end of the file."""
        ...

    def write(self, content: bytes, at: int) -> None:
        """Write these bytes; a reader may see a part of them, and if the process dies a part may be all."""
        ...

    def lock(self, first: int, count: int) -> bool:
        """Whether these bytes are this process's now: no other process had any of them."""
        ...

    def unlock(self, first: int, count: int) -> None:
        """Let go of these bytes."""
        ...

    def lock_alone(self, byte: int) -> bool:
        """Whether this byte is the caller's now: nobody had it, not even in this process."""
        ...

    def unlock_alone(self, byte: int) -> None:
        """Let go of a byte that was locked so."""
        ...

    def bell(self, number: int) -> Bell:
        """What to sleep by until another process rings this number."""
        ...

    def ring(self, number: int) -> None:
        """Wake who sleeps by the bell of this number."""
        ...

    def close(self) -> None:
        """Let go of the file, and of all locks."""
        ...


class LockedFile:
    """A file of this name, opened by this process; an OSError if anything but a plain file has that name.

    A link would let whoever made it choose which file is written to.
    """

    def __init__(self, path: Path, *, create: bool) -> None:
        if os.path.lexists(path):  # before it is opened: closing a file frees SQLite's locks on it, too
            found = path.lstat()
            if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
                raise OSError(f"{path} is no plain file")
        flags = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | (os.O_CREAT if create else 0)
        self.handle = os.open(path, flags, 0o600)
        self.process = os.getpid()

    def read(self, count: int, at: int) -> bytes:
        """So many bytes, or fewer at the end of the file; none where it cannot be read."""
        try:
            return os.pread(self.handle, count, at)
        except OSError:
            return b""

    def write(self, content: bytes, at: int) -> None:
        """Write these bytes; on a full disk some, or none: nothing rests on them."""
        with suppress(OSError):
            os.pwrite(self.handle, content, at)

    def lock(self, first: int, count: int) -> bool:
        """Whether these bytes are this process's now: no other process had any of them."""
        try:
            fcntl.lockf(self.handle, fcntl.LOCK_EX | fcntl.LOCK_NB, count, first)
        except OSError:
            return False
        return True

    def unlock(self, first: int, count: int) -> None:
        """Let go of these bytes."""
        if count:  # lockf takes 0 for everything from there on
            fcntl.lockf(self.handle, fcntl.LOCK_UN, count, first)

    def lock_alone(self, byte: int) -> bool:
        """Whether this byte is the caller's now: nobody had it, not even in this process."""
        with _choosing:
            if (self.process, byte) in _mine or not self.lock(byte, 1):
                return False
            _mine.add((self.process, byte))
            return True

    def unlock_alone(self, byte: int) -> None:
        """Let go of a byte that was locked so."""
        with _choosing:
            _mine.discard((self.process, byte))
            self.unlock(byte, 1)

    def bell(self, number: int) -> Bell:
        """What to sleep by until another process rings this number."""
        return Bell(number)

    def ring(self, number: int) -> None:
        """Wake who sleeps by the bell of this number."""
        ring(number)

    def close(self) -> None:
        """Let go of the file, and of all locks; a file of a parent process is left to it."""
        if self.process == os.getpid():
            os.close(self.handle)
