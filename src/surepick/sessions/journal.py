"""A state that keeps up with its log: refresh reads what others appended, commit checks and appends.

Any number of journals, in as many processes, may follow one log. Each has applied the log up to its head; an
append that comes too late, or fails, makes a journal read again what the log says.
"""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from surepick._version import __version__
from surepick.core.oracle_problem import Best, OracleProblem, absent
from surepick.errors import (
    DamageError,
    ParameterError,
    SessionError,
    StoreError,
    SurepickError,
)
from surepick.sessions import codec
from surepick.sessions.events import AtPlace, Event, Measured, Removed, decode
from surepick.sessions.setup import Setup
from surepick.sessions.state import NotWholeError, SessionState
from surepick.sessions.streams import Place
from surepick.store import START, Draft, Head, Lease, Snapshot, Store, View
from surepick.store import Event as Row

SNAPSHOT_EVERY = 3000  # events
SNAPSHOT_FORMAT = 7
SMALL_SNAPSHOT = 2**20  # bytes of one that is kept whenever a command ends
QUICK = 0.02  # seconds; a slower decision is made without holding the log
BESIDE = {"measured", "renamed"}  # kinds of events that change no decision that is being made


class Change(NamedTuple):
    """Events to write together, and what to return; the leases on their places end with them."""

    events: Sequence[Event]
    result: Any = None


class Journal:
    """The state of one session as its log has it, and the way to append to that log.

    `state` has taken in the log up to `head`. It is changed here and nowhere else, and is `stale` from its
    first change until the log has taken the same: a stale one is read again before it is used. Threads may
    share a journal: one that uses the state, or changes it, holds the lock.

    Plans known by a function that the log does not hold need it as `oracle`; with `read_only` they can be
    looked at without it, and nothing is written.
    """

    def __init__(
        self,
        store: Store,
        name: str,
        *,
        oracle: Best | OracleProblem | None = None,
        read_only: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.log = store.log(name)  # another session that begins under this name is another one
        self.name = name
        self.clock = in_seconds(clock)
        self.lock = threading.RLock()
        self._is_read_only = read_only
        created = next(iter(self.log.read(limit=1)), None)
        if created is None:
            raise DamageError(f"the log of session {name!r} is empty; run `surepick verify --all`")
        try:
            body = json.loads(created.body)
            if read_only and oracle is None and codec.needs_function(body["problem"]):
                oracle = absent
            self._given = Setup.from_json(body, oracle)
        except SurepickError:
            raise
        except Exception as error:
            raise not_ours(created, name, error) from error
        self.created = created
        self._kept = 0  # how far the last snapshot was
        self._next_snapshot = 0.0  # when the next one is due, at the earliest
        self._slow = False
        self._latest = created.time  # no event is dated before one that it follows, whatever the clock says
        self.is_stale = False
        self.state, self.head = self._open()

    @property
    def setup(self) -> Setup:
        """The settings as they are now."""
        return self.state.setup

    @contextmanager
    def held(self) -> Iterator[SessionState]:
        """Hold the state, with what other processes have appended: no other thread changes it within."""
        with self.lock:
            self.refresh()
            yield self.state

    @contextmanager
    def held_with_leases(self) -> Iterator[tuple[SessionState, dict[Place, Lease]]]:
        """The same, with the leases on open requests, in one trip to the store."""
        with self.lock:
            view = self.log.look(after=self.head)
            self.read_on(view.events)
            streams, leases = self.state.streams.of, leased(view.leases)
            yield (
                self.state,
                {p: lease for p, lease in leases.items() if not streams[p.probe].is_recorded(p.index)},
            )

    def events(self, *, after: int = 0) -> Iterator[Row]:
        """Yield the log, from its beginning or after this position."""
        return self.log.read(after=self.log.head(at=after) if after else START)

    def refresh(self) -> None:
        """Apply the events that other processes have appended."""
        self.read_on([] if self.is_stale else self.log.read(after=self.head))

    def read_on(self, news: Iterable[Row]) -> None:
        """Apply these events, the next of the log; if the state is stale, read it afresh instead."""
        if self.is_stale:
            self.state, self.head = self._open()
            self.is_stale = False
            return
        self.is_stale = True
        try:
            head = self._fold(self.state, news, self.head)
        except NotWholeError:
            self.state, head = self._open()  # the process that removed the value may have kept a snapshot
        self.is_stale = False
        if head != self.head:
            self.head = head
            if head.position - self._kept >= SNAPSHOT_EVERY:
                self._kept = head.position  # a snapshot is due: the writer of the last event keeps it

    def commit(self, make: Callable[[SessionState], Change]) -> Any:
        """Append what `make` gives, and the decisions that follow from it, in one transaction.

        It returns the result of `make`, which looks at the state at the end of the log and changes nothing.
        Where the policy takes its time, it decides after the transaction, so that the others do not wait for
        it. A policy that fails, a plug-in perhaps, does so when all that was to be written is on disk.
        """
        with self.lock:
            with self.write_transaction():
                change = make(self.state)
                if change.events:
                    drafts, is_current = self._taken(change.events)
                    self.is_stale = True
                    ended = leases_ended(change.events)
                    self.head = self.log.append(drafts, expected=self.head, release=ended)
                    self.is_stale = not is_current
            if self.is_stale:
                self.refresh()
            self.decide()
            self._keep_snapshot()
            return change.result

    def _taken(self, events: Sequence[Event]) -> tuple[list[Draft], bool]:
        """Check and apply these events, and what the policy decides on them if that is quick.

        Return all of them as the store takes them, and whether the state has taken nothing else: a policy
        that fails may have taken a part of its decisions.
        """
        drafts = self._dated(events)  # before anything is applied: it refuses what UTF-8 cannot hold
        for event in events:
            event.check(self.state)
            self.is_stale = True
            try:
                self.state.apply(event)
            except NotWholeError:
                self.state, _ = self._open_whole()
                self.state.apply(event)
            if isinstance(event, Removed):
                self._kept = self._next_snapshot = 0  # a snapshot from before it may be of no use
        if self.state.is_due and self._is_quick():
            with suppress(Exception):  # it fails again, and is raised, once the events are written
                return drafts + self._decisions(), True
            return drafts, False
        return drafts, True

    def refuse_read_only(self) -> None:
        """Refuse to write where the session is only shown."""
        if self._is_read_only:
            raise SessionError(
                f"session {self.name!r} was opened to be looked at, so nothing was changed; load it without "
                "read_only to continue it"
            )

    @contextmanager
    def write_transaction(self, *, durable: bool = True) -> Iterator[View]:
        """Hold the write lock of the log, with the state at its end."""
        self.refuse_read_only()
        with self.log.transaction(after=self.head, durable=durable) as view:
            self.read_on(view.events)
            yield view

    def decide(self) -> None:
        """Record what the policy decides, for as long as its batches are complete.

        The log is not held meanwhile. If others appended something that matters to the decision, theirs
        counts: they have decided as well, or this journal does so again.
        """
        while self.state.is_due:
            self.is_stale = True
            drafts = self._decisions()
            with self.log.transaction(after=self.head) as view:
                # an end counts what was released before it
                beside = BESIDE if self.state.is_over else {*BESIDE, "released"}
                if {event.kind for event in view.events} <= beside:
                    head = self._fold(self.state, view.events, self.head)
                    dated = [draft._replace(time=max(draft.time, self._latest)) for draft in drafts]
                    head = self.log.append(dated, expected=head)
                else:
                    self.state, head = self._open()
            self.head = head  # once it is committed: the log has no event that a lost commit was to append
            self.is_stale = False

    def _open(self) -> tuple[SessionState, Head]:
        """The state from the last snapshot, or from the beginning of the log."""
        kept = self._kept_state()
        if kept is not None:
            state, head = kept
            try:
                return state, self._fold(state, self.log.read(after=head), head)
            except (NotWholeError, DamageError):
                self._kept = 0  # read the log instead; the next writer keeps a better snapshot
        return self._open_whole()

    def _kept_state(self) -> tuple[SessionState, Head] | None:
        """The state of the last snapshot and where the log was then, if there is one that can be read."""
        problem = self._given.problem
        looks_only = not problem.can_decide
        snapshot = None if looks_only else self.log.snapshot()
        if snapshot is None:
            return None
        try:
            kept = json.loads(snapshot.body)
            if kept["format"] != self._format():
                return None
            state = SessionState.from_json(self._given, kept["state"])
            latest = float(kept.get("time", 0.0))
        except (LookupError, TypeError, ValueError, AttributeError, AssertionError):
            return None  # a cache that does not fit is no cache: the log has everything
        self._kept = snapshot.head.position
        self._latest = max(self._latest, latest)
        return state, snapshot.head

    def _format(self) -> list[str | int]:
        """Return the versions that must be the same to read a snapshot as when it was written."""
        policy = self._given.policy
        return [__version__, SNAPSHOT_FORMAT, policy.name, policy.version]

    def _open_whole(self) -> tuple[SessionState, Head]:
        """Return the state from the beginning of the log, with the values of all batches."""
        state, begin = SessionState(self._given), self.created.head
        return state, self._fold(state, self.log.read(after=begin), begin)

    def _fold(self, state: SessionState, rows: Iterable[Row], head: Head) -> Head:
        """Apply these rows, the next of the log after this head; return the head that they lead to."""
        row = None
        try:
            for row in rows:
                state.apply(decode(row.kind, row.body))
        except (SurepickError, NotWholeError):
            raise
        except Exception as error:
            raise not_ours(row or self.created, self.name, error) from error
        if row is None:
            return head
        self._latest = max(self._latest, row.time)
        return row.head

    def _decisions(self) -> list[Draft]:
        """Return what the policy decides now, as far as its batches are complete; it is applied."""
        began = time.thread_time()  # on a busy machine the time by the clock says nothing of the policy
        made = decided(self.state)
        self._slow = time.thread_time() - began > QUICK * max(1, len(made))
        return self._dated(made)

    def _dated(self, events: Iterable[Event]) -> list[Draft]:
        """These events as the store takes them, with the time by the clock unless the log is ahead of it.

        Workers have clocks of their own, and clocks are put back; the order of the log is that of its times.
        """
        self._latest = max(self._latest, self.clock())
        return drafts_of(events, self._latest)

    def _is_quick(self) -> bool:
        """Whether the policy decides fast enough to do so while others wait; its first rounds may compile."""
        if not self._given.problem.is_listed:
            return False  # a solver may take long, or fail: values are on disk before it is called
        return not self._slow and self.state.n_rounds > 1

    def _keep_snapshot(self) -> None:
        """Keep a snapshot now and then; snapshots take at most a twentieth of the time."""
        began = time.monotonic()
        if self.head.position - self._kept < SNAPSHOT_EVERY or began < self._next_snapshot:
            return
        self._save_snapshot()
        self._kept = self.head.position
        self._next_snapshot = began + 20 * (time.monotonic() - began)

    def keep_if_small(self) -> None:
        """Keep a snapshot for the next process, if there is news and the state is small.

        For commands that end now: the next of them then reads the snapshot and not the log. A process that
        keeps working keeps a snapshot now and then.
        """
        if not self.is_stale and self.head.position != self._kept:
            self._save_snapshot(most=SMALL_SNAPSHOT)

    def _save_snapshot(self, most: float = math.inf) -> None:
        state = self.state.to_json()
        if state is None:
            return
        body = json.dumps({"format": self._format(), "state": state, "time": self._latest}).encode()
        if len(body) <= most:
            with suppress(StoreError):  # a full disk: what matters was acknowledged, and says so itself
                self.log.save_snapshot(Snapshot(self.head, body))


def leases_ended(events: Iterable[Event]) -> list[str]:
    """Return the tokens of the leases that end with these events."""
    tokens = set[str]()
    for event in events:
        if isinstance(event, AtPlace):
            tokens.add(str(event.place))
        if isinstance(event, Measured) and event.request:  # another place, if the value is late
            tokens.add(event.request)
    return sorted(tokens)


def leased(leases: Iterable[Lease]) -> dict[Place, Lease]:
    """Return the leases of a store by their places."""
    return {Place(*map(int, lease.token.split("."))): lease for lease in leases}


def in_seconds(clock: Callable[[], float]) -> Callable[[], float]:
    """Return the clock with times that the log can keep: plain finite floats.

    >>> in_seconds(lambda: 5)()
    5.0
    """

    def now() -> float:
        seconds = float(clock())
        if not math.isfinite(seconds):
            raise ParameterError(f"the clock must give seconds since 1970, got {seconds}", field="clock")
        return seconds

    return now


def decided(state: SessionState) -> list[Event]:
    """Return what the policy decides now, as far as its batches are complete; it is checked and applied."""
    made = list[Event]()
    while (event := state.decide()) is not None:
        event.check(state)
        state.apply(event)
        made.append(event)
    return made


def not_ours(row: Row, name: str, error: Exception) -> DamageError:
    """Return the error of an event of a log that makes no sense."""
    return DamageError(
        f"event {row.position} of session {name!r} ({row.kind}) is none that surepick writes "
        f"({type(error).__name__}: {error}); `surepick export -o log.json` writes the log"
    )


def drafts_of(events: Iterable[Event], now: float) -> list[Draft]:
    """Return these events as the store takes them; refused if they hold what JSON in UTF-8 cannot."""
    try:
        drafts = [Draft(event.kind, event.encode(), now, event.log_key()) for event in events]
        for draft in drafts:
            f"{draft.body}{draft.key}".encode()
    except (TypeError, ValueError, RecursionError) as error:  # half a surrogate pair is a ValueError
        raise ParameterError(
            f"names, notes and keys must be text that UTF-8 can hold; nothing was recorded: {error}"
        ) from None
    return drafts
