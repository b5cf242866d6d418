"""The file of a line of writers, shared by simulated processes: bytes, locks, and deaths in between.

`SimulatedQueue` is the line of `store/write_queue.py`, with the mailbox in it, on such a file.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from scheduler import Scheduler
from surepick.store.bells import Bell
from surepick.store.byte_locks import SharedBytes
from surepick.store.mailbox import LOCKS, SIZE, SLOTS, TEXTS, Wish
from surepick.store.write_queue import WriteQueue


class DiedError(BaseException):
    """The process was killed; nothing of it goes on."""


class Process:
    """A process of the simulation: whether it lives, and the last state that it has seen."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_dead = False
        self.seen = 0


class SimulatedBell(Bell):
    """A bell of the simulation: who sleeps by it takes turns with the others."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._is_rung = False

    @property
    def can_ring(self) -> bool:
        return True

    def sleep(self, seconds: float) -> None:
        self._scheduler.sleep(seconds, unless=lambda: self._is_rung)
        self._is_rung = False

    def ring(self) -> None:
        self._is_rung = True

    def close(self) -> None:
        """Nothing is left of it."""


class SimulatedFile:
    """What is in the file, and who has locked which byte; a process that is dead has none."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler
        self.content = bytearray(TEXTS + SLOTS * SIZE)
        self.owners: dict[int, Process] = {}
        self.alone: set[int] = set()  # bytes that are one thread's, of those that have an owner
        self.bells: dict[int, SimulatedBell] = {}

    def owner(self, byte: int) -> Process | None:
        """The living process that has this byte locked."""
        owner = self.owners.get(byte)
        if owner is not None and owner.is_dead:
            del self.owners[byte]
            self.alone.discard(byte)
            return None
        return owner


class ProcessBytes:
    """One process's way to the file. At every write others may go first, and the process may die over it."""

    def __init__(self, file: SimulatedFile, process: Process, dies: Callable[[], bool]) -> None:
        self.file = file
        self._process = process
        self._dies = dies
        self.process = sum(process.name.encode())  # as a number

    def _stay_alive(self) -> None:
        if self._process.is_dead:
            raise DiedError

    def read(self, count: int, at: int) -> bytes:
        self._stay_alive()
        return bytes(self.file.content[at : at + count])

    def write(self, content: bytes, at: int) -> None:
        self.file.scheduler.pause()
        self._stay_alive()
        dies = self._dies()
        written = content[: len(content) // 2] if dies else content
        self.file.content[at : at + len(written)] = written
        if dies:
            raise DiedError

    def lock(self, first: int, count: int) -> bool:
        self._stay_alive()
        wanted = range(first, first + count)
        if any(self.file.owner(byte) not in (None, self._process) for byte in wanted):
            return False
        self.file.owners.update(dict.fromkeys(wanted, self._process))
        return True

    def unlock(self, first: int, count: int) -> None:
        self._stay_alive()
        for byte in range(first, first + count):
            if self.file.owner(byte) is self._process:
                del self.file.owners[byte]

    def lock_alone(self, byte: int) -> bool:
        self._stay_alive()
        if self.file.owner(byte) is not None and byte in self.file.alone:
            return False
        if not self.lock(byte, 1):
            return False
        self.file.alone.add(byte)
        return True

    def unlock_alone(self, byte: int) -> None:
        self._stay_alive()
        self.file.alone.discard(byte)
        self.unlock(byte, 1)

    def bell(self, number: int) -> Bell:
        return self.file.bells.setdefault(number, SimulatedBell(self.file.scheduler))

    def ring(self, number: int) -> None:
        if number in self.file.bells:
            self.file.bells[number].ring()

    def close(self) -> None:
        """The simulation ends with its processes."""


class SimulatedQueue(WriteQueue):
    """The line beside a simulated database, as one process sees it."""

    def __init__(self, shared: ProcessBytes) -> None:
        super().__init__(Path(), Path())
        self._file: SharedBytes = shared
        self._slots = shared.file

    def _open(self, *, create: bool) -> SharedBytes:
        return self._file

    def n_of_the_dead(self, wishes: Sequence[Wish]) -> int:
        """How many of these that were done are of processes which have died since they posted them."""
        slots = [wish._slot for wish in wishes if wish.reply is not None]
        return sum(self._slots.owner(LOCKS + slot) is None for slot in slots)
