"""A ledger that keeps up with its log: what others append is taken in, what is appended here is applied.

Any number of replicas, in as many processes, may follow one log. Each has folded the log up to its head; an
append that comes too late, or fails, makes a replica read again what the log says.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import NamedTuple

from surepick._version import __version__
from surepick.core.oracle_problem import OracleProblem
from surepick.core.policy import Policy
from surepick.errors import ConflictError, DamageError, StoreError
from surepick.sessions import codec
from surepick.sessions.ledger import Decision, Ledger, LostTapesError, Setup
from surepick.store import Draft, Event, Head, Snapshot, Store, View

SNAPSHOT_EVERY = 3000  # events and measurements, which may come many in one event
SNAPSHOT_FORMAT = 2
QUICK = 0.02  # seconds; a slower decision is made without holding the log
ALONE_AFTER = 20  # own events in a row after which a session takes it that it is alone


class Change(NamedTuple):
    """What is to be written together: events, and the tokens whose leases end with them."""

    drafts: list[Draft]
    release: Sequence[str] = ()


class LostRaceError(Exception):
    """The token was told by somebody else a moment ago."""


class Replica:
    """The state of one session as its log has it, and the way to append to that log.

    `ledger` has taken in the log up to `head`; when `is_stale`, it is read again before it is used.
    """

    def __init__(
        self, store: Store, name: str, setup: Setup, created: Event, clock: Callable[[], float]
    ) -> None:
        self._store = store
        self._name = name
        self._setup = setup
        self._created = created
        self._clock = clock
        self._kept = 0  # how far the last snapshot was
        self._next_snapshot = 0.0  # when the next one is due, at the earliest
        self.is_stale = self._slow = False
        self.ledger, self.head = self._open()
        self._company_at = self.head.position  # where the log was when somebody else had last appended

    def catch_up(self) -> None:
        """Take in what other processes have appended."""
        self.take_in([] if self.is_stale else self._store.read(self._name, after=self.head))

    def settle(self) -> None:
        """Read the ledger again if an append has failed: it may hold what the log does not."""
        if self.is_stale:
            self.catch_up()

    def take_in(self, news: Iterable[Event]) -> None:
        """Take in these events, the next of the log; or all of it, when the ledger had to be given up."""
        with self._reread_on_error():
            try:
                if self.is_stale:
                    self.ledger, self.head = self._open()
                    self.is_stale = False
                    return
                head = self._fold(self.ledger, news, self.head)
            except LostTapesError:
                self.ledger, head = self._open_whole()
                self.is_stale = False
        if head != self.head:
            self.head, self._company_at = head, head.position
            if self._progress() - self._kept >= SNAPSHOT_EVERY:
                self._kept = self._progress()  # a snapshot is due, and up to who appended the last event

    def is_alone(self) -> bool:
        """Whether nobody else has appended for a while."""
        return not self.is_stale and self.head.position - self._company_at > ALONE_AFTER

    def commit(self, make: Callable[[], Change], *, quick: bool = True) -> None:
        """Append what `make` gives, and the decisions that follow from it, in one transaction.

        A session that has been alone for a while appends where it knows the log to end. One that has company
        holds the log first, since it would be too late more often than not. A policy that takes its time
        decides afterwards, without keeping the others waiting.
        """
        if not (self.is_alone() and self._append_alone(make, quick)):
            with self._reread_on_error(), self.my_turn():
                head = self._append(make, quick)
            self.head = head
        self.decide()
        self._keep_snapshot()

    @contextmanager
    def my_turn(self, *, durable: bool = True) -> Iterator[View]:
        """Hold the log, with the ledger at its end; most of the way is gone while waiting for others."""
        with self._store.exclusive(
            self._name, after=lambda: self.head, durable=durable, meanwhile=self.catch_up
        ) as view:
            self.take_in(view.events)
            yield view

    def decide(self) -> None:
        """Record what the policy decides, for as long as its rounds are complete."""
        while not self.ledger.is_over and self.ledger.n_missing == 0:
            with self._reread_on_error():
                drafts = drafts_of(self._decisions(), self._clock())
                try:
                    self.head = self._store.append(self._name, drafts, expected=self.head)
                except ConflictError:
                    self._decide_behind(drafts)

    def _open(self) -> tuple[Ledger, Head]:
        """The ledger from the last snapshot, or from the beginning of the log."""
        kept = self._kept_ledger()
        if kept is not None:
            ledger, head = kept
            try:
                return ledger, self._fold(ledger, self._store.read(self._name, after=head), head)
            except (LostTapesError, DamageError):
                pass  # the log itself decides
        return self._open_whole()

    def _kept_ledger(self) -> tuple[Ledger, Head] | None:
        """The ledger of the last snapshot and where the log was then, if there is one that can be read."""
        snapshot = None if self._looks_only() else self._store.snapshot(self._name)
        if snapshot is None:
            return None
        try:
            kept = json.loads(snapshot.body)
            if kept["format"] != _snapshot_format(self._setup.policy):
                return None
            ledger = Ledger.from_json(self._setup, kept["ledger"])
        except (LookupError, TypeError, ValueError, AttributeError, AssertionError):
            return None  # a cache that does not fit is no cache: the log has everything
        self._kept = snapshot.head.position + ledger.n_told
        return ledger, snapshot.head

    def _fold(self, ledger: Ledger, events: Iterable[Event], head: Head) -> Head:
        for event in events:
            ledger.apply(event.kind, json.loads(event.body))
            head = event.head
        return head

    def _open_whole(self) -> tuple[Ledger, Head]:
        ledger, begin = Ledger(self._setup), self._created.head
        return ledger, self._fold(ledger, self._store.read(self._name, after=begin), begin)

    def _append_alone(self, make: Callable[[], Change], quick: bool) -> bool:
        """Whether the append came in time; if not, the ledger will be read again."""
        try:
            with self._reread_on_error():
                self.head = self._append(make, quick)
        except ConflictError:
            self._company_at = self.head.position
            return False
        return True

    def _append(self, make: Callable[[], Change], quick: bool) -> Head:
        drafts, release = make()
        self._apply(drafts)
        if quick and self._is_quick():
            drafts += drafts_of(self._decisions(), self._clock())
        return self._store.append(self._name, drafts, expected=self.head, release=release)

    @contextmanager
    def _reread_on_error(self) -> Iterator[None]:
        """If the log does not take what the ledger has taken, the ledger is read again from the log."""
        try:
            yield
        except LostRaceError:
            raise  # nothing was changed
        except BaseException:
            self.is_stale = True
            raise

    def _apply(self, drafts: Iterable[Draft]) -> None:
        for draft in drafts:
            body = json.loads(draft.body)
            try:
                self.ledger.apply(draft.kind, body)
            except LostTapesError:
                self.ledger, _ = self._open_whole()
                self.ledger.apply(draft.kind, body)

    def _decide_behind(self, drafts: list[Draft]) -> None:
        """Somebody appended while the policy was deciding; measurements alone do not matter to it."""
        with self._store.exclusive(self._name, after=lambda: self.head) as view:
            missed = view.events
            if all(self._is_beside(event.kind) for event in missed):
                for event in missed:
                    self.ledger.apply(event.kind, json.loads(event.body))
                self.head = self._store.append(self._name, drafts, expected=missed[-1].head)
            else:
                self.ledger, self.head = self._open()

    def _is_beside(self, kind: str) -> bool:
        """Whether such an event changes no decision that is being made."""
        return kind in ("measured", "withdrawn", "noted") or (
            kind == "recorded" and not self.ledger.counts_unasked
        )

    def _decisions(self) -> list[Decision]:
        began = time.perf_counter()
        made = self.ledger.decide()
        self._slow = time.perf_counter() - began > QUICK * max(1, len(made))
        return made

    def _is_quick(self) -> bool:
        """Whether the policy decides fast enough to do so while others wait; its first rounds may compile."""
        if isinstance(self._setup.problem, OracleProblem):
            return False  # a solver may take long, or fail: what was told is on disk before it is called
        return not self._slow and self.ledger.n_rounds > 1

    def _looks_only(self) -> bool:
        """Whether the function that finds the best plan is missing."""
        problem = self._setup.problem
        return isinstance(problem, OracleProblem) and not problem.has_oracle

    def _progress(self) -> int:
        """How much there is to read for who opens the session: events, and the measurements in them."""
        return self.head.position + self.ledger.n_told

    def _keep_snapshot(self) -> None:
        """Now and then keep the ledger beside the log, never for more than a twentieth of the time."""
        began = time.monotonic()
        if self._progress() - self._kept < SNAPSHOT_EVERY or began < self._next_snapshot:
            return
        ledger = self.ledger.to_json()
        if ledger is not None:
            kept = {"format": _snapshot_format(self.ledger.setup.policy), "ledger": ledger}
            with suppress(StoreError):  # a full disk: what matters was acknowledged, and says so itself
                self._store.save_snapshot(self._name, Snapshot(self.head, json.dumps(kept).encode()))
        self._kept = self._progress()
        self._next_snapshot = began + 20 * (time.monotonic() - began)


def drafts_of(decisions: Iterable[Decision], now: float) -> list[Draft]:
    """The events that record these decisions."""
    return [Draft(kind, codec.dumps(body), now, key) for kind, body, key in decisions]


def _snapshot_format(policy: Policy) -> list[str | int]:
    """What a snapshot must have been written by to be read."""
    return [__version__, SNAPSHOT_FORMAT, policy.name, policy.version]
