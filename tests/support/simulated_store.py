"""A database that many simulated processes share, and what can go wrong between them and it.

Its laws are those of the real stores: transactions one after the other, an append at an expected head,
readers see what was committed. Statements are pauses of a `Scheduler`. Faults are drawn at every one of them:
the process dies before or after it, the answer is lost before or after it took effect, a reader sees a state
that was committed a moment ago (never one older than it has seen itself).
"""

import copy
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random
from typing import TypeVar

from surepick.errors import StoreError
from surepick.store import START, Event, Head, MemoryStore, Snapshot, Store

T = TypeVar("T")
REMEMBERED = 6  # committed states that a stale reader may see


class DiedError(BaseException):
    """The process was killed; nothing of it goes on."""


class Process:
    """A process of the simulation: whether it lives, and the last state that it has seen."""

    def __init__(self, name):
        self.name = name
        self.is_dead = False
        self.seen = 0


@dataclass
class Faults:
    """How likely each fault is at a statement; `rng` draws them. `rates` may be set to nothing at the end."""

    rng: Random
    death: float = 0.0
    lost: float = 0.0
    stale: float = 0.0

    def strikes(self, rate):
        return rate > 0 and self.rng.random() < rate

    def end(self):
        """From now on nothing goes wrong."""
        self.death = self.lost = self.stale = 0.0


class Database:
    """What is committed, and who holds the writer's lock; it changes by commits alone.

    With `one_lock` those who claim leases wait for those who append, as in SQLite; else not, as in
    PostgreSQL.
    """

    def __init__(self, scheduler, *, one_lock=True):
        self.scheduler = scheduler
        self.one_lock = one_lock
        self.states = [MemoryStore()]  # the last of them is what is committed now
        self.number = 0  # of the last one
        self.on_disk = self.states[-1]  # what a power cut leaves
        self.writer: object | None = None
        self.claimer: object | None = None
        self.granted: set[tuple[int, str, str, float]] = set()  # log, token, worker, until when
        self.graves: dict[int, list[Event]] = {}  # logs that were deleted, as they were then, by their ids

    @property
    def now(self):
        return self.states[-1]

    def commit(self, state, *, durable):
        self.states = [*self.states[1 - REMEMBERED :], state]
        self.number += 1
        if durable:
            self.on_disk = state

    def power_cut(self):
        """What was not on disk is gone: leases and snapshots, never an event."""
        self.writer = self.claimer = None
        self.states, self.number = [self.on_disk], self.number + 1


def _reading(method):
    """A method of a store that reads, as one statement."""

    def read(self, *given, **named):
        return self._read(lambda state: getattr(state, method)(*given, **named))

    return read


def _writing(method, *, durable=True):
    """A method of a store that writes, as one statement."""

    def write(self, *given, **named):
        return self._write(lambda state: getattr(state, method)(*given, **named), durable=durable)

    return write


class SimulatedStore(Store):
    """One process's way to the database."""

    place = "simulation"

    def __init__(self, database, process, faults):
        self._database = database
        self._process = process
        self._faults = faults
        self._is_rehearsed = False  # whether a change is tried within a transaction, before its commit
        self._pinned: tuple[str, int] | None = None  # a name, and the log that it means here
        self._open: MemoryStore | None = None  # the state within this process's transaction,
        self._changes: list[Callable[[MemoryStore], object]] = []  # and how it was changed there

    create: Callable[..., Head] = _writing("create")
    names: Callable[..., list[str]] = _reading("names")
    head: Callable[..., Head] = _reading("head")
    find: Callable[..., Event | None] = _reading("find")
    append: Callable[..., Head] = _writing("append")
    release = _writing("release", durable=False)
    leases = _reading("leases")
    save_snapshot = _writing("save_snapshot", durable=False)
    snapshot: Callable[..., Snapshot | None] = _reading("snapshot")

    def pin(self, name):
        pinned = copy.copy(self)
        pinned._pinned = None
        pinned._pinned = (name, pinned._read(lambda state: state.number(name)))
        return pinned

    def number(self, name):
        """The id of the log that this name means here, whether it is still there or not."""
        if self._pinned is not None and self._pinned[0] == name:
            return self._pinned[1]
        return self._database.now.number(name)

    def _meant(self, state):
        """This state of the database, with the pinned name meaning its log."""
        return state if self._pinned is None else state.pin(*self._pinned)

    def read(self, name, *, after=START, limit=None):
        return iter(self._read(lambda state: list(state.read(name, after=after, limit=limit))))

    def look(self, name, *, after):
        return self._read(lambda state: state.look(name, after=after))

    def claim(self, name, tokens, *, worker, until, now):
        wanted = list(tokens)

        def change(state):
            before, number = {lease.token: lease for lease in state.leases(name)}, state.number(name)
            held = state.claim(name, wanted, worker=worker, until=until, now=now)
            for token in held:
                theirs = before.get(token)
                free = theirs is None or theirs.worker == worker or theirs.expires <= now
                assert free, f"{token} was given to {worker} while it was {theirs}"
                if not self._is_rehearsed:  # it is committed now
                    self._database.granted.add((number, token, worker, until))
            return held

        return self._write(change, durable=False)

    def delete(self, name, *, expected):
        def change(state):
            log, number = list(state.read(name)), state.number(name)
            state.delete(name, expected=expected)
            self._database.graves[number] = log

        self._write(change)

    @contextmanager
    def transaction(self, name, *, after=None, durable=True):
        database, me = self._database, object()
        lock = "writer" if durable or database.one_lock else "claimer"
        self._begin_statement()
        try:
            while getattr(database, lock) is not None:
                self._pause(lambda: getattr(database, lock) is None)
            setattr(database, lock, me)
            if lock == "writer":
                self._open, self._changes = database.now.copy(), []
                self._process.seen = database.number
            yield self.look(name, after=START if after is None else after)
            self._begin_statement()  # the commit
            if self._open is not None:
                self._commit(self._changes, durable)
        finally:
            self._open = None
            if getattr(database, lock) is me:  # it was got, and no power cut has freed it for others
                setattr(database, lock, None)
        self._end_statement()

    def _read(self, look):
        self._begin_statement()
        if self._open is not None:
            return look(self._meant(self._open))
        database, age = self._database, 0
        if self._faults.strikes(self._faults.stale):
            newest = min(database.number - self._process.seen, len(database.states) - 1)
            age = self._faults.rng.randint(0, max(newest, 0))
        self._process.seen = max(self._process.seen, database.number - age)
        answer = look(self._meant(database.states[-1 - age]))
        self._end_statement()
        return answer

    def _write(self, change, *, durable=True):
        database = self._database
        self._begin_statement()
        if self._open is not None:
            self._changes.append(change)
            self._is_rehearsed = True
            try:
                return change(self._meant(self._open))
            finally:
                self._is_rehearsed = False
        while database.writer is not None and (durable or database.one_lock):
            self._pause(lambda: database.writer is None)
        (answer,) = self._commit([change], durable)
        self._end_statement()
        return answer

    def _commit(self, changes, durable):
        """Change what is committed now: leases may have been claimed since a transaction began."""
        state = self._database.now.copy()
        answers = [change(self._meant(state)) for change in changes]
        self._database.commit(state, durable=durable)
        self._process.seen = self._database.number
        return answers

    def _begin_statement(self):
        """Let others go first; then the process may die, or the statement get lost on its way."""
        if self._open is None:
            self._pause()
        self._strike("was not sent")

    def _end_statement(self):
        """It took effect; the process may die now, or the answer get lost."""
        self._strike("was sent, and the answer is lost")

    def _strike(self, how):
        if self._dies():
            raise DiedError
        if self._faults.strikes(self._faults.lost):
            raise StoreError(f"the simulated statement {how}")

    def _dies(self):
        """Whether the process dies now, or is dead."""
        self._process.is_dead = self._process.is_dead or self._faults.strikes(self._faults.death)
        return self._process.is_dead

    def _pause(self, until=lambda: True):
        self._database.scheduler.pause(lambda: self._process.is_dead or until())
        if self._process.is_dead:
            raise DiedError
