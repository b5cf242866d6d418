"""A database that many simulated processes share, and what can go wrong between them and it.

Its laws are those of the real stores: transactions one after the other, an append at an expected head,
readers see what was committed. Statements are pauses of a `Scheduler`. Faults are drawn at every one of them:
the process dies before or after it, the answer is lost before or after it took effect, a reader sees a state
that was committed a moment ago (never one older than it has seen itself).
"""

from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random

from surepick.errors import StoreError
from surepick.store import START, Event, Head, Log, MemoryStore, Snapshot, Store, View
from surepick.store.log import deleted

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


class SimulatedStore(Store):
    """One process's way to the database."""

    place = "simulation"

    def __init__(self, database, process, faults):
        self.database = database
        self.process = process
        self.faults = faults
        self.changes: list[Callable[[MemoryStore], object]] | None = None  # of an open transaction of leases
        self.rehearsal: MemoryStore | None = None  # the state as they leave it
        self.holds = ""  # the lock of an open transaction in which nothing is appended yet: writer or claimer
        self.lock = object()  # of this transaction

    def create(self, name, drafts):
        number = self.write(lambda state: state.create(name, drafts).number)
        return SimulatedLog(self, name, number)

    def names(self):
        return self.read(MemoryStore.names)

    def log(self, name):
        return SimulatedLog(self, name, self.read(lambda state: state.log(name).number))

    def read(self, look):
        """Return what `look` sees in the state that this process reads, as one statement."""
        self.begin_statement()
        if self.rehearsal is not None:
            return look(self.rehearsal)
        database, age = self.database, 0
        if self.holds != "writer" and self.faults.strikes(self.faults.stale):
            newest = min(database.number - self.process.seen, len(database.states) - 1)
            age = self.faults.rng.randint(0, max(newest, 0))
        self.process.seen = max(self.process.seen, database.number - age)
        answer = look(database.states[-1 - age])
        self.end_statement()
        return answer

    def write(self, change, *, durable=True):
        """Return what `change` returns, as one statement; it is committed, unless a transaction goes on."""
        database = self.database
        self.begin_statement()
        if self.rehearsal is not None:
            self.changes.append(change)
            return change(self.rehearsal)
        while database.writer not in (None, self.lock) and (durable or database.one_lock):
            self.pause(lambda: database.writer is None)
        (answer,) = self.commit([change], durable)
        self.end_statement()
        return answer

    def commit(self, changes, durable):
        """Change what is committed now: leases may have been claimed since a transaction began."""
        state = self.database.now.copy()
        answers = [change(state) for change in changes]
        self.database.commit(state, durable=durable)
        self.process.seen = self.database.number
        if durable:
            self.let_go()
        return answers

    def let_go(self):
        """Let others have the lock, if this process has it; a power cut may have freed it for them."""
        if self.holds and getattr(self.database, self.holds) is self.lock:
            setattr(self.database, self.holds, None)
        self.holds = ""

    @contextmanager
    def transaction(self, *, durable):
        """Hold the lock of writers, or of those who claim leases; see `Log.transaction`."""
        database = self.database
        lock = "writer" if durable or database.one_lock else "claimer"
        self.begin_statement()
        try:
            while getattr(database, lock) is not None:
                self.pause(lambda: getattr(database, lock) is None)
            self.holds, self.lock = lock, object()
            setattr(database, lock, self.lock)
            if lock == "writer":
                self.process.seen = database.number
                if not durable:
                    self.changes, self.rehearsal = [], database.now.copy()
            yield
            if self.rehearsal is not None:
                self.begin_statement()
                self.rehearsal = None
                self.commit(self.changes, durable)
        finally:
            self.rehearsal = None
            self.let_go()
        self.end_statement()

    def begin_statement(self):
        """Let others go first; then the process may die, or the statement get lost on its way."""
        if self.holds != "writer":
            self.pause()
        self._strike("was not sent")

    def end_statement(self):
        """It took effect; the process may die now, or the answer get lost."""
        self._strike("was sent, and the answer is lost")

    def _strike(self, how):
        if self._dies():
            raise DiedError
        if self.faults.strikes(self.faults.lost):
            raise StoreError(f"the simulated statement {how}")

    def _dies(self):
        """Whether the process dies now, or is dead."""
        self.process.is_dead = self.process.is_dead or self.faults.strikes(self.faults.death)
        return self.process.is_dead

    def pause(self, until=lambda: True):
        """Let others go on until this holds."""
        self.database.scheduler.pause(lambda: self.process.is_dead or until())
        if self.process.is_dead:
            raise DiedError


def _reading(method):
    """A method of a log that reads, as one statement."""

    def read(self, *given, **named):
        return self._store.read(lambda state: getattr(self.of(state), method)(*given, **named))

    return read


def _writing(method, *, durable=True):
    """A method of a log that writes, as one statement."""

    def write(self, *given, **named):
        change = lambda state: getattr(self.of(state), method)(*given, **named)  # noqa: E731
        return self._store.write(change, durable=durable)

    return write


class SimulatedLog(Log):
    """A log of the database as one process sees it."""

    def __init__(self, store, name, number):
        self.name = name
        self.number = number
        self._store = store

    def of(self, state):
        """Return this log in a state of the database; refused if it was deleted."""
        log = state.logs.get(self.name)
        if log is None or log.number != self.number:
            raise deleted(self.name, self._store.place)
        return log

    head: Callable[..., Head] = _reading("head")
    look: Callable[..., View] = _reading("look")
    find: Callable[..., Event | None] = _reading("find")
    append: Callable[..., Head] = _writing("append")
    release = _writing("release", durable=False)
    leases = _reading("leases")
    save_snapshot = _writing("save_snapshot", durable=False)
    snapshot: Callable[..., Snapshot | None] = _reading("snapshot")

    def read(self, *, after=START, limit=None):
        return iter(self._store.read(lambda state: list(self.of(state).read(after=after, limit=limit))))

    @contextmanager
    def transaction(self, *, after, durable=True):
        with self._store.transaction(durable=durable):
            yield self.look(after=after)

    def claim(self, tokens, *, worker, until, now):
        wanted, store = list(tokens), self._store

        def change(state):
            log = self.of(state)
            before = {lease.token: lease for lease in log.leases()}
            held = log.claim(wanted, worker=worker, until=until, now=now)
            for token in held:
                theirs = before.get(token)
                free = theirs is None or theirs.worker == worker or theirs.expires <= now
                assert free, f"{token} was given to {worker} while it was {theirs}"
                if store.rehearsal is None:  # it is committed now
                    store.database.granted.add((self.number, token, worker, until))
            return held

        return store.write(change, durable=False)

    def delete(self, *, expected):
        def change(state):
            log = self.of(state)
            events = list(log.read())
            log.delete(expected=expected)
            self._store.database.graves[self.number] = events

        self._store.write(change)
