"""Who measures what: the requests that a worker gets, and keeps until it answers or its lease ends.

First come those that the worker has already, then what the open batch waits for, then some ahead of it, so
that no worker is idle; in the same order however often it asks.

The order within a batch is balanced and shuffled (ABBA) unless the problem says "listed". It never changes a
decision, but what runs later may run slower: measured one arm after the other, such an effect of the order
would be taken for a difference between arms. A batch is made in passes, each with one use of every probe that
is still to be used. Passes come in pairs, the second of which is the first backwards: ABC, CBA. So a steady
drift cancels in every difference. The order of a pair is drawn from the seed, the batch and the pair.
"""

from __future__ import annotations

import heapq
import itertools
import math
import os
import re
import socket
import threading
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from surepick.core.about import LISTED
from surepick.core.oracle_problem import AnyProblem
from surepick.core.probes import VALUE
from surepick.sessions.events import AHEAD
from surepick.sessions.journal import Journal
from surepick.sessions.state import SessionState
from surepick.sessions.streams import Place
from surepick.store import Claim, Lease, View

AHEAD_PER_WORKER = 4  # requests ahead of the batch for each worker that has something to measure
CLOCKS_DIFFER = 1.0  # seconds between the clocks of two workers that are no reason to cut a lease
_WORKER = re.compile(
    r"(?:run on )?(?P<host>.*), process (?P<process>\d+)(?:, call \d+)?(?:, thread (?P<thread>\d+))?"
)

Leases = dict[Place, Lease]


@dataclass(frozen=True)
class Request:
    """A measurement that a worker should make: one use of this probe.

    `readings` are the names of the numbers that one use gives; where each arm is measured by itself it is
    one, and the probe is the arm. `wanted` is how many uses of the probe the batch waits for from this one
    on; 0 means that it is made ahead, to keep a worker busy.
    """

    token: str
    probe: int
    probe_name: str
    wanted: int
    worker: str
    expires: float  # seconds since 1970, UTC
    readings: tuple[str, ...] = (VALUE,)

    @property
    def id(self) -> str:
        """The text by which `tell` and `release` know the request."""
        return self.token

    @property
    def arm(self) -> str:
        """The name of the arm to measure, or of the probe to use."""
        return self.probe_name


def leased(leases: Iterable[Lease]) -> Leases:
    """Return the leases of a store by their places."""
    return {Place(*map(int, lease.token.split("."))): lease for lease in leases}


def request_for(state: SessionState, token: Place, lease: Lease) -> Request:
    """Return the request that a worker gets for this token."""
    problem, (probe, index) = state.setup.problem, token
    of, reads = state.streams.of[probe], problem.reads(probe)
    return Request(
        token=lease.token or str(token),
        probe=probe,
        probe_name=problem.probe_names[probe],
        wanted=of.n_missing_from(index),
        worker=lease.worker,
        expires=lease.expires,
        readings=reads,
    )


class Asked(NamedTuple):
    """A worker's request: up to n tokens, for so many seconds."""

    n: int
    worker: str
    seconds: float


class Leasing:
    """Claims tokens of one session for workers; it remembers the leases as they were at its last look."""

    def __init__(self, journal: Journal, longest: float) -> None:
        self._journal = journal
        self._longest = longest  # seconds that a lease may last from now
        self._leases: Leases = {}  # those of recorded tokens mean nothing

    def claim(self, n: int, worker: str, seconds: float) -> list[Request]:
        """Return up to n measurements that are the worker's for these seconds, most urgent first.

        Without other processes, claim at once what should be free and check the answer (optimistic). With
        others, read first and lock the leases while claiming: otherwise all that read at the same moment
        would choose the same tokens, and all but one would fail.
        """
        journal, asked = self._journal, Asked(n, worker, seconds)
        view, granted = self._look(asked)
        is_current = granted and not view.events and not journal.is_stale and journal.state.streams.n_missing
        if not is_current:
            journal.read_on(view.events)
            journal.decide()  # the process that completed the round may have died before it could
        if recorded := journal.recorded(view.leases):
            journal.store.release(journal.name, recorded)
        if any(is_dead(lease.worker) or self._is_too_long(lease) for lease in view.leases):
            return self._claim_in_turn(asked)
        if is_current:
            return self._requests(granted)
        if journal.state.is_over:
            journal.store.release(journal.name, list(map(str, granted)))  # they were claimed in vain
            return []
        now = journal.clock()
        chosen = self._choose(asked, now)
        return self._requests(chosen) if self._are_fresh(chosen, asked, now) else self._claim_in_turn(asked)

    def forget(self, token: Place) -> None:
        """Forget the lease on this token, which has ended."""
        self._leases.pop(token, None)

    def _look(self, asked: Asked) -> tuple[View, list[Place]]:
        """Return the new events and leases, and the tokens granted.

        Tokens are claimed in the same round trip if no other process seems to be at work. If the store does
        not grant all of them, none are returned.
        """
        journal, claim, chosen = self._journal, None, list[Place]()
        if journal.is_alone() and not journal.state.is_over:
            now = journal.clock()
            chosen = self._choose(asked, now)
            if not self._are_fresh(chosen, asked, now):
                claim = Claim(list(map(str, chosen)), asked.worker, now + asked.seconds, now)
        view = journal.store.look(journal.name, after=journal.head, claim=claim)
        self._leases = leased(view.leases)
        if claim is None:
            return view, []
        granted = self._note_granted(chosen, claim, view.held)
        return view, granted if len(granted) == len(chosen) else []

    def _claim_in_turn(self, asked: Asked) -> list[Request]:
        """Choose and claim while no other process claims anything.

        Leases on recorded requests and those of workers that have ended are deleted; one that ends further
        away than a lease lasts, because a clock was put back, is cut to that length.
        """
        journal = self._journal
        with journal.write_transaction(durable=False) as view:
            dead = [lease.token for lease in view.leases if is_dead(lease.worker)]
            ended = {*journal.recorded(view.leases), *dead}
            journal.store.release(journal.name, sorted(ended))
            kept = [lease for lease in view.leases if lease.token not in ended]
            self._leases = leased(self._cut(lease) for lease in kept)
            return self._claim_here(asked)

    def _is_too_long(self, lease: Lease) -> bool:
        return lease.expires > self._journal.clock() + self._longest + CLOCKS_DIFFER

    def _cut(self, lease: Lease) -> Lease:
        """Return this lease, cut to its length from now in the store too if it is longer."""
        if not self._is_too_long(lease):
            return lease
        journal, now = self._journal, self._journal.clock()
        until = now + self._longest
        journal.store.claim(journal.name, [lease.token], worker=lease.worker, until=until, now=now)
        return lease._replace(expires=until)

    def _claim_here(self, asked: Asked) -> list[Request]:
        """Choose and claim, in the open transaction."""
        journal = self._journal
        if journal.state.is_over:
            return []
        now = journal.clock()
        chosen = self._choose(asked, now)
        claim = Claim(list(map(str, chosen)), asked.worker, now + asked.seconds, now)
        held = journal.store.claim(
            journal.name, claim.tokens, worker=claim.worker, until=claim.until, now=now
        )
        return self._requests(self._note_granted(chosen, claim, held))

    def _requests(self, tokens: Iterable[Place]) -> list[Request]:
        state, leases = self._journal.state, self._leases
        return [request_for(state, token, leases[token]) for token in tokens]

    def _note_granted(self, chosen: Iterable[Place], claim: Claim, held: Iterable[str]) -> list[Place]:
        """Remember the leases that the store granted, and return their tokens."""
        held, granted = set(held), []
        for token, text in zip(chosen, claim.tokens, strict=True):
            if text in held:
                self._leases[token] = Lease(text, claim.worker, claim.until)
                granted.append(token)
        return granted

    def _are_fresh(self, tokens: Iterable[Place], asked: Asked, now: float) -> bool:
        """Return whether the worker holds all of these for long enough to begin measuring."""
        for token in tokens:
            lease = self._leases.get(token)
            if lease is None or lease.worker != asked.worker or lease.expires < now + asked.seconds / 2:
                return False
        return True

    def next_end(self) -> float:
        """When the next lease ends that had not ended at the last look."""
        now, leases = self._journal.clock(), self._leases.values()
        return min((lease.expires for lease in leases if lease.expires > now), default=math.inf)

    def _choose(self, asked: Asked, now: float) -> list[Place]:
        """Return up to n tokens for this worker: its own, unassigned ones, and some ahead of the round.

        The most urgent come first, in the same order every time: what the round waits for, in its order.
        """
        state, (n, worker, _) = self._journal.state, asked
        active = {token: lease for token, lease in self._leases.items() if lease.expires > now}
        busy = [urgency_of(state, t) for t in active if not state.streams.of[t.probe].is_recorded(t.index)]
        chosen = sorted([one for one in busy if active[one.token].worker == worker])[:n]
        if len(chosen) < n:
            free = (one for one in in_turn(state) if one.token not in active)
            chosen += itertools.islice(free, n - len(chosen))
        if len(chosen) < n and not state.has_final_batch:  # nothing follows a final batch
            workers = {worker, *[lease.worker for lease in active.values()], *state.recent_workers}
            busy_ahead = sum([one.is_ahead for one in busy])
            left = min(AHEAD, max(n, AHEAD_PER_WORKER * len(workers))) - busy_ahead - state.streams.n_ahead
            free = (one for one in _ahead(state) if one.token not in active)
            chosen += itertools.islice(free, min(max(left, 0), n - len(chosen)))
        return [one.token for one in sorted(chosen)]


def _ahead(state: SessionState) -> Iterator[Urgency]:
    """Yield measurements beyond the open round that may be requested next, the likeliest first, without end.

    The guess is that each probe is followed by the one that followed it the last time. A wrong guess costs
    a measurement that may never be used, and nothing else.
    """
    probes = list(state.recent_probes) or [0]
    after = dict(itertools.pairwise([*probes, probes[0]]))
    after.update(itertools.pairwise(probes))
    following: dict[int, int] = {}
    probe = probes[-1]
    while True:
        probe = after[probe]
        of = state.streams.of[probe]
        index = following.get(probe, of.end)
        while of.is_recorded(index):
            index += 1
        following[probe] = index + 1
        yield urgency_of(state, Place(probe, index))


class Urgency(NamedTuple):
    """The sorting key of a measurement that can be handed out; the smallest is handed out first."""

    is_ahead: bool  # prefetched: the open round does not wait for it
    at: int  # the pass of the round
    place: float  # the place in that pass
    token: Place


def is_balanced(problem: AnyProblem) -> bool:
    """Return whether rounds are made in balanced order: always, unless the problem says "listed"."""
    return problem.about.order != LISTED


def in_turn(state: SessionState) -> Iterator[Urgency]:
    """Yield the measurements that the open round waits for, in the order in which they are handed out."""
    if not is_balanced(state.setup.problem):
        for token in state.streams.missing_places():
            yield Urgency(False, 0, 0.0, token)
        return
    yield from heapq.merge(*[_balanced_of(state, probe) for probe in state.streams.batch])


def urgency_of(state: SessionState, token: Place) -> Urgency:
    """Return the place of this measurement in the order of handing out.

    Measurements that the open round waits for come before prefetched ones. Each of the two groups has its own
    balanced order (see the module): passes are counted from the round's first place, or from its end.
    """
    of = state.streams.of[token.probe]
    is_ahead = not of.is_missing(token.index)
    if not is_balanced(state.setup.problem):
        return Urgency(is_ahead, 0, 0.0, token)
    return _balanced(state, token, of.end if is_ahead else of.begin, is_ahead)


def _balanced_of(state: SessionState, probe: int) -> Iterator[Urgency]:
    """Yield the measurements of one probe that the open round waits for, in balanced order."""
    of = state.streams.of[probe]
    first = of.begin
    return (_balanced(state, Place(probe, index), first) for index in of.missing())


def _balanced(state: SessionState, token: Place, first: int, is_ahead: bool = False) -> Urgency:
    """Return the sorting key in balanced order: passes 2k and 2k + 1 have opposite orders, drawn per pair."""
    at = token.index - first
    drawn = f"{state.setup.seed} {state.n_rounds} {at // 2} {token.probe}"
    place = zlib.crc32(drawn.encode()) * 0x9E3779B1 % 2**32  # CRC alone is linear: orders would repeat
    return Urgency(is_ahead, at, place if at % 2 == 0 else -place, token)


def default_worker() -> str:
    """Return the name of this thread as a worker: host, process and thread."""
    return f"{socket.gethostname()}, process {os.getpid()}, thread {threading.get_native_id()}"


def is_dead(worker: str) -> bool:
    """Return whether this names a process on this host, or a thread of this process, that has ended.

    >>> is_dead("truck 7"), is_dead(default_worker())
    (False, False)
    """
    found = _WORKER.fullmatch(worker)
    if found is None or found["host"] != socket.gethostname() or os.name != "posix":
        return False
    if int(found["process"]) == os.getpid():
        living = {thread.native_id for thread in threading.enumerate()}
        return found["thread"] is not None and int(found["thread"]) not in living
    try:
        os.kill(int(found["process"]), 0)
    except ProcessLookupError:
        return True
    except OSError:  # it lives, and belongs to another user
        return False
    return False
