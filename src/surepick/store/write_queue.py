"""The line in which the writers of one file stand: who came first writes first.

SQLite lets whoever tries at the right moment write, so that in a crowd some wait a hundred times longer than
others. Here a place in line is a locked byte of a small file beside the store: everybody moves up into the
next byte that is free, and the first in line alone tries for the writer's lock. It is about fairness only.
That one process writes at a time is SQLite's promise, with or without a line, so these locks need not be
perfect: threads of one process share a place, and where bytes cannot be locked there is no line. The kernel
frees the bytes of a process that dies.

Who has to wait posts a wish, which whoever writes does for it (`mailbox`): it is woken with the reply and has
written nothing. Who was served once is soon served again: in a crowd one process writes for all, which has
read the whole log, and the others neither read it nor try. It waits a moment for those it has served, so that
it does no more of its own work than of theirs. When it is gone, the first in line takes its place.
"""

from __future__ import annotations

import os
import random
import stat
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

from surepick.errors import StoreError
from surepick.store import mailbox
from surepick.store.byte_locks import ARE_THERE, LockedFile, SharedBytes

CHAIRS = 64  # those who come when all are taken wait for the last one
FIRST_CHAIRS = (0, 4, 16, 40)  # where a newcomer looks for the end of the line
# Looking whether it is one's turn costs as much as a tenth of a turn: in a long line all who look every
# millisecond would leave the writer no processor to run on. So the pause between two looks is a share of the
# time until the turn should come, by the pace of the line so far.
SHARE = 0.4
PAUSE, LONGEST_PAUSE = 0.00005, 0.05  # seconds
FIRST_PACE = 0.001  # seconds for a turn, before anything is known,
FIRST_SERVICE = 0.01  # and until a wish is done, which takes a write of the disk
LATE = 4.0  # a wish that is not done after this many times as long waits for nobody,
LEAST_WINDOW, LONGEST_WINDOW = 0.03, 0.2  # within these bounds, in seconds
CLOSE = 4  # with this many ahead in line it is time to get ready
STUCK = 1.0  # seconds: in a line that stands still for this long somebody is stopped, and all try their luck


class ServedError(Exception):
    """Whoever wrote has done the wish along with its own work; `reply` is what it says to it."""

    def __init__(self, reply: str) -> None:
        super().__init__("somebody else has written this")
        self.reply = reply


class Wait(NamedTuple):
    """What to do while waiting for others to write: something now and then, and a wish to be done by them."""

    meanwhile: Callable[[], None] = lambda: None
    log: str = ""
    wish: str | None = None
    yields: bool = False  # to who has read more of the log, and does it sooner; for a while


class WriteQueue:
    """The line beside one file; the file of the line is made when somebody first has to wait."""

    def __init__(self, path: Path, store: Path) -> None:
        self._path = path
        self._store = store  # whoever may write to it may stand in line
        self._file: SharedBytes | None = None
        self.pace = FIRST_PACE  # seconds for a turn, as this process has seen it,
        self.service = FIRST_SERVICE  # and until a wish is done
        self._n_served = 0  # wishes that this process did in its last turn,
        self._back_by = 0.0  # and when those who had them should be back

    def note_pace(self, seconds: float, turns: int) -> None:
        """Take note that so many turns of the line took so long."""
        self.pace = 0.8 * self.pace + 0.2 * seconds / turns

    def note_service(self, seconds: float) -> None:
        """Take note that a wish was done by others after so long."""
        self.service = 0.5 * (self.service + seconds)

    def note_served(self, n: int, seconds: float) -> None:
        """Take note that this process did so many wishes, in a turn that took so long."""
        self._n_served, self._back_by = n, time.monotonic() + min(seconds, LONGEST_PAUSE)

    def expects_wishes(self) -> bool:
        """Whether those whom this process has served are on their way back; not for longer than that took.

        One that did not wait for them would do its own work several times as often as theirs, and would do
        theirs a few at a time.
        """
        if not self._n_served or time.monotonic() > self._back_by:
            return False
        file = self._open(create=False)
        return file is not None and mailbox.n_posted(file) < self._n_served

    def is_empty(self) -> bool:
        """Whether nobody is waiting; the file is not made to find out."""
        file = self._open(create=False)
        if file is None or not file.lock(0, CHAIRS):
            return file is None
        file.unlock(0, CHAIRS)
        return True

    def join(self) -> InLine:
        """Stand at the end of the line."""
        return InLine(self._open(create=True))

    def post(self, log: str, wish: str) -> mailbox.Post | None:
        """Let whoever writes to this log know of a wish, if there is a way to."""
        file = self._open(create=True)
        return None if file is None else mailbox.post(file, log, wish)

    def wishes(self, log: str) -> list[mailbox.Wish]:
        """What those who wait to write to this log have asked for."""
        file = self._open(create=False)
        return [] if file is None else [wish for wish in mailbox.wishes(file) if wish.log == log]

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not None:
            self._file.close()
        self._file = None

    def _open(self, *, create: bool) -> SharedBytes | None:
        if self._file is not None and self._file.process != os.getpid():
            self.close()
        if self._file is None and ARE_THERE:
            try:
                self._file = opened = LockedFile(self._path, create=create)
                mode = stat.S_IMODE(self._store.stat().st_mode)
                with suppress(OSError):  # the file is somebody else's
                    os.fchmod(opened.handle, mode)
            except OSError:
                return None  # no line here; the writers try their luck
        return self._file


class Turn:
    """One writer's wait: when to try, how long to sleep, and when to give up. It ends with the `with` block.

    Without a queue, and in an empty one, the first try is made at once; whoever then finds the database busy
    joins the line, and posts its wish.
    """

    def __init__(self, queue: WriteQueue | None, patience: float, wait: Wait) -> None:
        self._queue = queue
        self._patience = patience
        self._wait = wait
        self._place: InLine | None = None
        self._post: mailbox.Post | None = None
        self._reply: str | None = None
        self._taken_at: float | None = None  # when somebody was first seen to do the wish
        self._began = self._moved_at = time.monotonic()
        self._n_turns = 1  # of others and this one, from joining on
        self._noticed: int | None = None  # how many were ahead at the last look
        self._error: Exception | None = None
        if queue is not None and wait.yields and wait.wish is not None:
            self._post = queue.post(wait.log, wait.wish)
        elif queue is not None and wait.wish is None and not queue.is_empty():
            self._join(queue)

    def __enter__(self) -> Turn:
        return self

    def __exit__(self, *raised: object) -> None:
        if self._post is not None:
            self._post.withdraw()
        if self._place is not None and self._queue is not None:
            self._place.leave()
            self._queue.note_pace(time.monotonic() - self._began, self._n_turns)

    def is_mine(self) -> bool:
        """Whether to try now."""
        if self.is_served() or self._yields() or self._expects_wishes():
            return False
        if self._wait.yields and self._queue is not None:  # in vain: the first in line does it for all
            self._wait = self._wait._replace(yields=False)
            if self._join(self._queue).move_up():
                self._wait.meanwhile()  # so as not to hold the log for what can be read before
        return self._place is None or self._place.move_up() or time.monotonic() > self._moved_at + STUCK

    def is_served(self) -> bool:
        """Whether somebody has done the wish, or is doing it; then this stands in line no longer.

        Who does it has let go of the file and waits for the disk. If it dies over that, or is stopped, this
        takes its place again.
        """
        if self._post is None:
            return False
        state, reply = self._post.look()
        now = time.monotonic()
        if state not in (mailbox.TAKEN, mailbox.DONE):
            return False
        self._taken_at = now if self._taken_at is None else self._taken_at
        self._reply = reply.decode(errors="replace") if state == mailbox.DONE else None
        is_alive = state == mailbox.DONE or now < self._taken_at + STUCK
        if self._place is not None:
            self._place.leave()
            self._place = None
        if not is_alive:
            self._post.withdraw()
            self._post, self._wait = None, self._wait._replace(wish=None)
        return is_alive

    def was_busy(self, error: Exception) -> None:
        """Take note that the try failed because somebody else is writing."""
        self._error = error
        if self._queue is not None and self._place is None:
            self._join(self._queue).move_up()  # to know how many are ahead

    def wait(self, store: str) -> None:
        """Sleep until the next try, or give up; a ServedError when somebody else has done the wish."""
        now = time.monotonic()
        if self._reply is not None:
            if self._queue is not None:
                self._queue.note_service(now - self._began)
            raise ServedError(self._reply)
        if now > self._began + self._patience:
            raise StoreError(
                f"{store} has been in use by another process for more than {self._patience:g} s "
                f"({self._error or 'others are first in line'}); {self._what_is_written()}, look for a "
                "process that is stopped in the middle and repeat this step"
            ) from self._error
        ahead = None if self._place is None else self._place.ahead
        if self._taken_at is None and (ahead is None or ahead != self._noticed):
            if self._noticed is None:
                self._n_turns += ahead or 0
            self._noticed, self._moved_at = ahead, now
            if not self._yields() and (ahead is None or ahead <= (CLOSE if self._post is None else 0)):
                self._wait.meanwhile()
        sleep = time.sleep if self._post is None else self._post.sleep
        sleep(self._pause(ahead) * random.uniform(0.5, 1.0))  # or all would come back together

    def _join(self, queue: WriteQueue) -> InLine:
        self._place = queue.join()
        if self._wait.wish is not None and self._post is None:
            self._post = queue.post(self._wait.log, self._wait.wish)
        return self._place

    def _yields(self) -> bool:
        """Whether somebody else may do the wish any moment, by what was seen before."""
        return self._wait.yields and self._post is not None and self._left() > 0.0

    def _expects_wishes(self) -> bool:
        """Whether others will be here in a moment whose wishes can be done along with this."""
        if self._queue is None or self._place is not None or self._wait.wish is None:
            return False
        return self._queue.expects_wishes()

    def _left(self) -> float:
        """For how long from now the wish may be left to others, by what was seen before."""
        service = FIRST_SERVICE if self._queue is None else self._queue.service
        return self._began + min(max(LATE * service, LEAST_WINDOW), LONGEST_WINDOW) - time.monotonic()

    def _pause(self, ahead: int | None) -> float:
        pace = FIRST_PACE if self._queue is None else self._queue.pace
        until_turn = pace * max(ahead or 0, 0.5)
        if self._post is None or not (ahead or self._taken_at is not None or self._yields()):
            return min(max(SHARE * until_turn, PAUSE), LONGEST_PAUSE if self._post is None else FIRST_PACE)
        if self._place is None and self._post.can_be_woken:
            return max(self._left(), LONGEST_PAUSE)
        gone = time.monotonic() - self._began
        return min(max(SHARE * gone, FIRST_PACE), LONGEST_PAUSE)

    def _what_is_written(self) -> str:
        if self._post is None:
            return "nothing was written"
        return "another process may yet write this, and repeating it is harmless"


class Service:
    """The wishes that a writer does with its own work: taken before its commit, answered once it is on disk.

    If it fails they are put back.
    """

    def __init__(self, queue: WriteQueue | None, log: str) -> None:
        self._queue = queue
        self._log = log
        self._wishes: Sequence[mailbox.Wish] = ()
        self._began = 0.0

    def __enter__(self) -> Service:
        return self

    def begin(self) -> Sequence[mailbox.Wish]:
        """What others wish, now that the turn has come."""
        self._began = time.monotonic()
        self._wishes = [] if self._queue is None else self._queue.wishes(self._log)
        return self._wishes

    def take(self) -> None:
        """Say that those which have a reply are being done; the writer commits next."""
        for wish in self._wishes:
            wish.take()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for wish in self._wishes:
            if kind is None:
                wish.send()
            else:
                wish.put_back()
        if kind is None and self._queue is not None:
            n_done = sum(wish.reply is not None for wish in self._wishes)
            self._queue.note_served(n_done, time.monotonic() - self._began)


class InLine:
    """A place in line; it changes by `move_up` alone, and ends with `leave`."""

    def __init__(self, file: SharedBytes | None) -> None:
        self._file = file
        self.ahead = CHAIRS if file is not None else 0  # chairs before this one

    def move_up(self) -> bool:
        """Take the chairs ahead that are free; whether this is the first in line now."""
        if self._file is None:
            return True
        if self.ahead == CHAIRS:
            self._sit_down(self._file)
        before = self.ahead
        while self.ahead and self._file.lock(self.ahead - 1, 1):
            self.ahead -= 1
        if self.ahead < before:
            self._file.unlock(self.ahead + 1, min(before, CHAIRS - 1) - self.ahead)
        return self.ahead == 0

    def _sit_down(self, file: SharedBytes) -> None:
        """Take the first chair of all from some place on to the end that are free, without trying each."""
        for chair in FIRST_CHAIRS:
            if file.lock(chair, CHAIRS - chair):
                file.unlock(chair + 1, CHAIRS - chair - 1)
                self.ahead = chair
                return

    def leave(self) -> None:
        """Let the next one move up."""
        if self._file is not None and self.ahead < CHAIRS:
            self._file.unlock(self.ahead, 1)
        self._file, self.ahead = None, 0
