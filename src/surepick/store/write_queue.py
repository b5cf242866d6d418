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
import random
import stat
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from surepick.errors import StoreError

try:
    import fcntl
except ModuleNotFoundError:  # no such locks on this system
    fcntl = None  # type: ignore[assignment]

CHAIRS = 64  # those who come when all are taken wait for the last one
FIRST_CHAIRS = (0, 4, 16, 40)  # where a newcomer looks for the end of the line
# Looking whether it is one's turn costs as much as a tenth of a turn: in a long line all who look every
# millisecond would leave the writer no processor to run on. So the pause between two looks is a share of the
# time until the turn should come, by the pace of the line so far.
SHARE = 0.4
PAUSE, LONGEST_PAUSE = 0.00005, 0.05  # seconds
FIRST_PACE = 0.001  # seconds for a turn, before anything is known
RETURN = 0.02  # seconds within which one who has had its turn may write once more,
LONG = 8  # and a pair more for every so many in line
CLOSE = 4  # with this many ahead in line it is time to get ready
STUCK = 1.0  # seconds: in a line that stands still for this long somebody is stopped, and all try their luck


class WriteQueue:
    """The line beside one file; the file of the line is made when somebody first has to wait."""

    def __init__(self, path: Path, store: Path) -> None:
        self._path = path
        self._store = store  # whoever may write to it may stand in line
        self._handle: int | None = None
        self._process = 0
        self.pace = FIRST_PACE  # seconds for a turn, as this process has seen it
        self._n_returns = 0  # how often this process may write again without standing in line,
        self._return_until = 0.0  # and until when

    def note_pace(self, seconds: float, turns: int) -> None:
        """Take note that so many turns of the line took so long."""
        self.pace = 0.8 * self.pace + 0.2 * seconds / turns

    def let_return(self, n_waited: int) -> None:
        """Whoever has stood in line for so many turns may write once more, or more often, if it is quick.

        A worker asks, and tells. On a busy machine it takes far longer until the next process runs than both
        take together, and so they are one turn of the line; in a long line more of them, so that it does not
        get slower the more there are.
        """
        self._n_returns = 1 + 2 * (n_waited // LONG)
        self._return_until = time.monotonic() + RETURN * self._n_returns

    def may_return(self) -> bool:
        """Whether to try without standing in line; one return is used up by asking."""
        self._n_returns -= 1
        return self._n_returns >= 0 and time.monotonic() < self._return_until

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
                self._handle = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
                mode = stat.S_IMODE(self._store.stat().st_mode)
                with suppress(OSError):  # the file is somebody else's
                    os.fchmod(self._handle, mode)
            except OSError:
                return None  # no line here; the writers try their luck
        return self._handle


class Turn:
    """One writer's wait: when to try, how long to sleep, and when to give up. It ends with the `with` block.

    Without a queue, and in an empty one, the first try is made at once; whoever then finds the database busy
    joins the line.
    """

    def __init__(self, queue: WriteQueue | None, patience: float) -> None:
        self._queue = queue
        self._patience = patience
        at_once = queue is None or queue.may_return() or queue.is_empty()
        self._place = None if queue is None or at_once else queue.join()
        self._began = self._moved_at = time.monotonic()
        self._n_turns = 1  # of others and this one, from joining on
        self._give_up_at = self._moved_at + patience
        self._noticed: int | None = None  # how many were ahead at the last look
        self._error: Exception | None = None

    def __enter__(self) -> Turn:
        return self

    def __exit__(self, *raised: object) -> None:
        if self._place is not None and self._queue is not None:
            self._place.leave()
            self._queue.note_pace(time.monotonic() - self._began, self._n_turns)
            self._queue.let_return(self._n_turns)

    def is_mine(self) -> bool:
        """Whether to try now."""
        return self._place is None or self._place.move_up() or time.monotonic() > self._moved_at + STUCK

    def was_busy(self, error: Exception) -> None:
        """Take note that the try failed because somebody else is writing."""
        self._error = error
        if self._queue is not None and self._place is None:
            self._place = self._queue.join()
            self._place.move_up()  # to know how many are ahead

    def wait(self, store: str, meanwhile: Callable[[], None]) -> None:
        """Sleep until the next try, or give up; call `meanwhile` when the turn comes closer."""
        if time.monotonic() > self._give_up_at:
            raise StoreError(
                f"{store} has been in use by another process for more than {self._patience:g} s "
                f"({self._error or 'others are first in line'}); nothing was written, look for a process "
                "that is stopped in the middle and repeat this step"
            ) from self._error
        ahead = None if self._place is None else self._place.ahead
        if ahead is None or ahead != self._noticed:
            if self._noticed is None:
                self._n_turns += ahead or 0
            self._noticed, self._moved_at = ahead, time.monotonic()
            if ahead is None or ahead <= CLOSE:
                meanwhile()
        pace = FIRST_PACE if self._queue is None else self._queue.pace
        pause = min(max(SHARE * pace * max(ahead or 0, 0.5), PAUSE), LONGEST_PAUSE)
        time.sleep(pause * random.uniform(0.5, 1.0))  # or all who wait would come back together


class Place:
    """A place in line; it changes by `move_up` alone, and ends with `leave`."""

    def __init__(self, handle: int | None) -> None:
        self._handle = handle
        self.ahead = CHAIRS if handle is not None else 0  # chairs before this one

    def move_up(self) -> bool:
        """Take the chairs ahead that are free; whether this is the first in line now."""
        if self._handle is None:
            return True
        if self.ahead == CHAIRS:
            self._sit_down(self._handle)
        before = self.ahead
        while self.ahead and self._handle is not None and _lock(self._handle, self.ahead - 1, 1):
            self.ahead -= 1
        if self._handle is not None and self.ahead < before:
            _unlock(self._handle, self.ahead + 1, min(before, CHAIRS - 1) - self.ahead)
        return self.ahead == 0

    def _sit_down(self, handle: int) -> None:
        """Take the first chair of all from some place on to the end that are free, without trying each."""
        for chair in FIRST_CHAIRS:
            if _lock(handle, chair, CHAIRS - chair):
                _unlock(handle, chair + 1, CHAIRS - chair - 1)
                self.ahead = chair
                return

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
