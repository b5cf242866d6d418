"""A ledger that keeps up with its log: what others append is taken in, what is appended here is applied.

Any number of replicas, in as many processes, may follow one log. Each has folded the log up to its head; an
append that comes too late, or fails, makes a replica read again what the log says.
"""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import NamedTuple

from surepick._version import __version__
from surepick.core.policy import Policy
from surepick.errors import (
    ConflictError,
    DamageError,
    ParameterError,
    SessionError,
    StoreError,
    SurepickError,
)
from surepick.sessions import codec
from surepick.sessions.ledger import Ledger, NewEvent
from surepick.sessions.requests import Token
from surepick.sessions.settings import Body, Setup
from surepick.sessions.tapes import LostTapesError
from surepick.store import Draft, Event, Head, Lease, Snapshot, Store, View

SNAPSHOT_EVERY = 3000  # events and measurements, which may come many in one event
SNAPSHOT_FORMAT = 2
SMALL_SNAPSHOT = 2**20  # bytes of one that is kept whenever a command ends
QUICK = 0.02  # seconds; a slower decision is made without holding the log
ALONE_AFTER = 20  # consecutive events of its own after which a session assumes that it is the only writer


class Change(NamedTuple):
    """What is to be written together: events, and the tokens whose leases end with them."""

    events: list[NewEvent]
    release: Sequence[str] = ()


class UndecidedError(Exception):
    """The policy failed while the log was held; what it was to decide on is written first, without it."""


class LostRaceError(Exception):
    """What was to be written is in the log already: somebody else was faster, or this was repeated."""


class Replica:
    """The state of one session as its log has it, and the way to append to that log.

    `ledger` has taken in the log up to `head`. It is changed here and nowhere else, and is `stale` from its
    first change until the log has taken the same: a stale one is read again before it is used.
    """

    def __init__(
        self, store: Store, name: str, setup: Setup, created: Event, clock: Callable[[], float]
    ) -> None:
        self.store = store
        self.name = name
        self.clock = clock
        self._setup = setup
        self._created = created
        self._kept = 0  # how far the last snapshot was
        self._next_snapshot = 0.0  # when the next one is due, at the earliest
        self._slow = False
        self._latest = created.time  # no event is dated before one that it follows, whatever the clock says
        self.is_stale = False
        self.ledger, self.head = self._open()
        self._company_at = self.head.position  # where the log was when another process had last appended

    def catch_up(self) -> None:
        """Take in what other processes have appended."""
        self.take_in([] if self.is_stale else self.store.read(self.name, after=self.head))

    def take_in(self, news: Iterable[Event]) -> None:
        """Take in these events, the next of the log; or all of it, when the ledger had to be given up."""
        if self.is_stale:
            self.ledger, self.head = self._open()
            self.is_stale = False
            return
        self.is_stale = True
        try:
            head = self._fold(self.ledger, news, self.head)
        except LostTapesError:
            self.ledger, head = self._open()  # who extended the session keeps a snapshot of what became of it
        self.is_stale = False
        if head != self.head:
            self.head, self._company_at = head, head.position
            if self._progress() - self._kept >= SNAPSHOT_EVERY:
                self._kept = self._progress()  # a snapshot is due, and up to who appended the last event

    def read_whole(self) -> None:
        """Read the log from its first event, where a snapshot lacks what is asked of the ledger."""
        self.ledger, self.head = self._open_whole()

    def is_alone(self) -> bool:
        """Whether nobody else has appended for a while."""
        return not self.is_stale and self.head.position - self._company_at > ALONE_AFTER

    def commit(self, make: Callable[[], Change], *, quick: bool = True) -> None:
        """Append what `make` gives, and the decisions that follow from it, in one transaction.

        `make` looks at the ledger, changes nothing, and may be called twice. There are two ways to know that
        it looks at the end of the log. A session that has been alone for a while appends where it believes
        the log to end, and the store refuses if it does not: one trip to the store. One that has company
        would be refused more often than not, so it holds the log, reads what it has missed, and only then
        makes and appends. What `make` refuses without holding the log may be out of date: it is asked again.

        With `quick=False`, and where the policy takes its time, it decides after the transaction, so that the
        others do not wait for it. A policy that fails, a plug-in perhaps, does so when all that was to be
        written is on disk.
        """
        try:
            self._commit(make, quick=quick)
        except UndecidedError:
            self._commit(make, quick=False)
        self.decide()
        self._keep_snapshot()

    def _commit(self, make: Callable[[], Change], *, quick: bool) -> None:
        if self.is_alone():
            try:
                self.head = self._append(make, quick)
                self.is_stale = False
                return
            except ConflictError:  # it came too late, and has to be made again at the end of the log
                self._company_at = self.head.position
            except (ParameterError, SessionError, LostRaceError):
                pass
        self.catch_up()
        with self.my_turn() as view:
            head = self._append(make, quick, view.leases)
        self.head, self.is_stale = head, False

    @contextmanager
    def my_turn(self, *, durable: bool = True) -> Iterator[View]:
        """Hold the write lock of the log, with the ledger at its end."""
        with self.store.transaction(self.name, after=self.head, durable=durable) as view:
            self.take_in(view.events)
            yield view

    def recorded(self, leases: Iterable[Lease]) -> list[str]:
        """Return the tokens of these leases whose measurements are recorded, so that no worker needs them.

        A heartbeat, or a claim of a worker who had not read the log to its end, can lease what was recorded
        a moment before.
        """
        of = self.ledger.tapes.of
        found = ((lease.token, Token.parse(lease.token)) for lease in leases)
        return [text for text, token in found if of[token.probe].is_told(token.index)]

    def decide(self) -> None:
        """Record what the policy decides, for as long as its rounds are complete."""
        while self.ledger.is_due:
            self.is_stale = True
            drafts = self._decisions()
            try:
                self.head = self.store.append(self.name, drafts, expected=self.head)
            except ConflictError:
                self._decide_behind(drafts)
            self.is_stale = False

    def _open(self) -> tuple[Ledger, Head]:
        """The ledger from the last snapshot, or from the beginning of the log."""
        kept = self._kept_ledger()
        if kept is not None:
            ledger, head = kept
            try:
                return ledger, self._fold(ledger, self.store.read(self.name, after=head), head)
            except (LostTapesError, DamageError):
                self._kept = 0  # the log itself decides; whoever writes next keeps a better snapshot
        return self._open_whole()

    def _kept_ledger(self) -> tuple[Ledger, Head] | None:
        """The ledger of the last snapshot and where the log was then, if there is one that can be read."""
        problem = self._setup.problem
        looks_only = not problem.is_listed and not problem.has_oracle
        snapshot = None if looks_only else self.store.snapshot(self.name)
        if snapshot is None:
            return None
        try:
            kept = json.loads(snapshot.body)
            if kept["format"] != _snapshot_format(self._setup.policy):
                return None
            if "digest" in kept and kept["digest"] != _digest(kept["ledger"]):
                return None
            ledger = Ledger.from_json(self._setup, kept["ledger"])
            latest = float(kept.get("time", 0.0))
        except (LookupError, TypeError, ValueError, AttributeError, AssertionError):
            return None  # a cache that does not fit is no cache: the log has everything
        self._kept = snapshot.head.position + ledger.n_told
        self._latest = max(self._latest, latest)
        return ledger, snapshot.head

    def _open_whole(self) -> tuple[Ledger, Head]:
        ledger, begin = Ledger(self._setup), self._created.head
        return ledger, self._fold(ledger, self.store.read(self.name, after=begin), begin)

    def _fold(self, ledger: Ledger, events: Iterable[Event], head: Head) -> Head:
        event = self._created
        with making_sense_of(lambda: event, self.name):  # around the loop, of which every open feels the cost
            for event in events:
                ledger.apply(event.kind, json.loads(event.body), event.position)
        self._latest = max(self._latest, event.time)
        return head if event is self._created else event.head

    def _append(self, make: Callable[[], Change], quick: bool, leases: Iterable[Lease] = ()) -> Head:
        """Append what `make` gives; of these leases, those on recorded measurements end with it."""
        events, release = make()
        if not events:
            return self.head
        drafts = self._applied(events, quick, self.head.position + 1)
        ended = list({*release, *self.recorded(leases)})
        return self.store.append(self.name, drafts, expected=self.head, release=ended)

    def _applied(self, events: Sequence[NewEvent], quick: bool, first: int) -> list[Draft]:
        """Take in these events and what the policy decides on them; all of it, to be appended from there."""
        drafts = self._dated(events)
        self.is_stale = True
        for position, (kind, body, _) in enumerate(events, first):
            try:
                self.ledger.apply(kind, body, position)
            except LostTapesError:
                self.ledger, _ = self._open_whole()
                self.ledger.apply(kind, body, position)
            if kind == "extended":
                self._kept = self._next_snapshot = 0  # from the snapshot before it nobody can go on
        if quick and self.ledger.is_due and self._is_quick():
            try:
                drafts += self._decisions()
            except Exception as error:
                raise UndecidedError from error
        return drafts

    def _decide_behind(self, drafts: list[Draft]) -> None:
        """Somebody appended while the policy was deciding; measurements alone do not matter to it."""
        with self.store.transaction(self.name, after=self.head) as view:
            missed = view.events
            if missed and all(self._is_beside(event.kind) for event in missed):
                self._fold(self.ledger, missed, self.head)
                dated = [draft._replace(time=max(draft.time, self._latest)) for draft in drafts]
                self.head = self.store.append(self.name, dated, expected=missed[-1].head)
            else:
                self.ledger, self.head = self._open()

    def _is_beside(self, kind: str) -> bool:
        """Whether such an event changes no decision that is being made."""
        if (
            kind == "withdrawn"
        ):  # an end counts what was given back before it, and this ledger has it behind it
            return not self.ledger.is_over
        return kind in ("measured", "noted") or (kind == "recorded" and not self.ledger.run.counts_unasked)

    def _decisions(self) -> list[Draft]:
        """What the policy decides now, as far as its rounds are complete."""
        began = time.thread_time()  # on a busy machine the time by the clock says nothing of the policy
        made = self.ledger.decide()
        self._slow = time.thread_time() - began > QUICK * max(1, len(made))
        return self._dated(made)

    def _dated(self, events: Iterable[NewEvent]) -> list[Draft]:
        """These events as the store takes them, with the time by the clock unless the log is ahead of it.

        Workers have clocks of their own, and clocks are put back; the order of the log is that of its times.
        """
        self._latest = max(self._latest, self.clock())
        return drafts_of(events, self._latest)

    def _is_quick(self) -> bool:
        """Whether the policy decides fast enough to do so while others wait; its first rounds may compile."""
        if not self._setup.problem.is_listed:
            return False  # a solver may take long, or fail: what was told is on disk before it is called
        return not self._slow and self.ledger.n_rounds > 1

    def _progress(self) -> int:
        """How much there is to read for who opens the session: events, and the measurements in them."""
        return self.head.position + self.ledger.tapes.n_told

    def _keep_snapshot(self) -> None:
        """Now and then keep the ledger beside the log, never for more than a twentieth of the time."""
        began = time.monotonic()
        if self._progress() - self._kept < SNAPSHOT_EVERY or began < self._next_snapshot:
            return
        self._save_snapshot()
        self._kept = self._progress()
        self._next_snapshot = began + 20 * (time.monotonic() - began)

    def keep_if_small(self) -> None:
        """Keep the ledger for who opens the session next, if the policy was at work and the state is small.

        For commands that end now: the next of them then needs neither the policy nor compiled code until a
        round is complete. Whoever works on decides often, and keeps a snapshot now and then.
        """
        if not self.is_stale and self.ledger.is_awake:
            self._save_snapshot(most=SMALL_SNAPSHOT)

    def _save_snapshot(self, most: float = math.inf) -> None:
        ledger = self.ledger.to_json()
        if ledger is None:
            return
        form = _snapshot_format(self.ledger.setup.policy)
        kept = {"format": form, "digest": _digest(ledger), "ledger": ledger, "time": self._latest}
        body = json.dumps(kept).encode()
        if len(body) <= most:
            with suppress(StoreError):  # a full disk: what matters was acknowledged, and says so itself
                self.store.save_snapshot(self.name, Snapshot(self.head, self._created.checksum, body))


@contextmanager
def making_sense_of(current: Callable[[], Event], name: str) -> Iterator[None]:
    """Within, what goes wrong without words of ours means: the current event is none that surepick wrote."""
    try:
        yield
    except (SurepickError, LostTapesError):
        raise
    except Exception as error:
        event = current()
        raise DamageError(
            f"event {event.position} of session {name!r} ({event.kind}) is none that surepick writes "
            f"({type(error).__name__}: {error}); the log can be read with `surepick log`"
        ) from error


def drafts_of(events: Iterable[NewEvent], now: float) -> list[Draft]:
    """These events as the store takes them; refused if they hold what JSON in UTF-8 cannot."""
    try:
        drafts = [Draft(kind, codec.dumps(body), now, key) for kind, body, key in events]
        for draft in drafts:
            f"{draft.body}{draft.key}".encode()
    except (TypeError, ValueError, RecursionError) as error:  # half a surrogate pair is a ValueError
        raise ParameterError(
            f"names, notes and keys must be text that UTF-8 can hold; nothing was recorded: {error}"
        ) from None
    return drafts


def _snapshot_format(policy: Policy) -> list[str | int]:
    """What a snapshot must have been written by to be read."""
    return [__version__, SNAPSHOT_FORMAT, policy.name, policy.version]


def _digest(ledger: Body) -> str:
    """Of a ledger in a snapshot: one that was changed is not read, however well it fits."""
    return hashlib.sha256(json.dumps(ledger).encode()).hexdigest()
