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
from surepick.core.probes import VALUE
from surepick.sessions.events import AHEAD
from surepick.sessions.journal import Journal
from surepick.sessions.state import SessionState
from surepick.sessions.streams import Place
from surepick.store import Claim, Lease

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

    @property
    def seed(self) -> int:
        """A number that no other measurement of the session has, the same if this one is made again.

        Two arms never share it: equal random numbers in separate measurements would break their independence.

        >>> [Request(token, 0, "", 1, "", 0.0).seed for token in ("0.0", "0.1", "1.0", "0.7")]
        [0, 1, 2, 28]
        """
        probe, index = map(int, self.token.split("."))
        return (probe + index) * (probe + index + 1) // 2 + probe  # Cantor's numbering of pairs


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


class Leasing:
    """Claims requests of one session for workers; it remembers the leases as they were at its last look."""

    def __init__(self, journal: Journal, longest: float) -> None:
        self._journal = journal
        self._longest = longest  # seconds that a lease may last from now
        self._leases: Leases = {}  # those of recorded requests mean nothing

    def claim(self, n: int, worker: str, seconds: float) -> list[Request]:
        """Return up to n measurements that are the worker's for these seconds, most urgent first.

        Without other processes, claim at once what should be free and check the answer (optimistic). With
        others, read first and lock the leases while claiming: otherwise all that read at the same moment
        would choose the same requests, and all but one would fail.
        """
        journal, store = self._journal, self._journal.store
        chosen, claim = list[Place](), None
        if journal.is_alone() and not journal.state.is_over:
            chosen, is_held = self._choose(n, worker, seconds)
            claim = None if is_held else self._claim_of(chosen, worker, seconds)
        view = store.look(journal.name, after=journal.head, claim=claim)
        self._leases = leased(view.leases)
        granted = [] if claim is None else self._note_granted(chosen, claim, view.held)
        is_current = (
            granted
            and len(granted) == len(chosen)
            and not (view.events or journal.is_stale)
            and journal.state.streams.n_missing
        )
        if not is_current:
            journal.read_on(view.events)
            journal.decide()  # the process that completed the batch may have died before it could
        if recorded := journal.recorded(view.leases):
            store.release(journal.name, recorded)
        latest = journal.clock() + self._longest + CLOCKS_DIFFER
        if any(is_dead(lease.worker) or lease.expires > latest for lease in view.leases):
            return self._claim_in_turn(n, worker, seconds)
        if is_current:
            return self._requests(granted)
        if journal.state.is_over:
            store.release(journal.name, list(map(str, granted)))  # they were claimed in vain
            return []
        chosen, is_held = self._choose(n, worker, seconds)
        return self._requests(chosen) if is_held else self._claim_in_turn(n, worker, seconds)

    def forget(self, token: Place) -> None:
        """Forget the lease on this request, which has ended."""
        self._leases.pop(token, None)

    def next_end(self) -> float:
        """When the next lease ends that had not ended at the last look."""
        now, leases = self._journal.clock(), self._leases.values()
        return min((lease.expires for lease in leases if lease.expires > now), default=math.inf)

    def _claim_in_turn(self, n: int, worker: str, seconds: float) -> list[Request]:
        """Choose and claim while no other process claims anything.

        Leases on recorded requests and those of workers that have ended are deleted; one that ends further
        away than a lease lasts, because a clock was put back, is cut to that length.
        """
        journal, store, name = self._journal, self._journal.store, self._journal.name
        with journal.write_transaction(durable=False) as view:
            dead = [lease.token for lease in view.leases if is_dead(lease.worker)]
            ended = {*journal.recorded(view.leases), *dead}
            store.release(name, sorted(ended))
            now = journal.clock()
            until = now + self._longest
            self._leases = leased(lease for lease in view.leases if lease.token not in ended)
            for place, lease in self._leases.items():
                if lease.expires > until + CLOCKS_DIFFER:
                    store.claim(name, [lease.token], worker=lease.worker, until=until, now=now)
                    self._leases[place] = lease._replace(expires=until)
            if journal.state.is_over:
                return []
            chosen, _ = self._choose(n, worker, seconds)
            claim = self._claim_of(chosen, worker, seconds)
            held = store.claim(name, claim.tokens, worker=worker, until=claim.until, now=claim.now)
            return self._requests(self._note_granted(chosen, claim, held))

    def _claim_of(self, chosen: Iterable[Place], worker: str, seconds: float) -> Claim:
        now = self._journal.clock()
        return Claim(list(map(str, chosen)), worker, now + seconds, now)

    def _requests(self, tokens: Iterable[Place]) -> list[Request]:
        return [request_for(self._journal.state, token, self._leases[token]) for token in tokens]

    def _note_granted(self, chosen: Iterable[Place], claim: Claim, held: Iterable[str]) -> list[Place]:
        """Remember the leases that the store granted, and return their requests."""
        held, granted = set(held), []
        for token, text in zip(chosen, claim.tokens, strict=True):
            if text in held:
                self._leases[token] = Lease(text, claim.worker, claim.until)
                granted.append(token)
        return granted

    def _choose(self, n: int, worker: str, seconds: float) -> tuple[list[Place], bool]:
        """Return up to n requests for this worker, and whether it holds all of them for long enough.

        They are its own, unassigned ones, and some ahead of the batch. The most urgent come first, in the
        same order every time: what the batch waits for, in its order.
        """
        state, now = self._journal.state, self._journal.clock()
        active = {token: lease for token, lease in self._leases.items() if lease.expires > now}
        busy = [urgency_of(state, t) for t in active if not state.streams.of[t.probe].is_recorded(t.index)]
        chosen = sorted([one for one in busy if active[one.token].worker == worker])[:n]
        own, enough = {one.token for one in chosen}, now + seconds / 2  # half a lease is left to measure
        if len(chosen) < n:
            free = (one for one in in_turn(state) if one.token not in active)
            chosen += itertools.islice(free, n - len(chosen))
        if len(chosen) < n and not state.has_final_batch:  # nothing follows a final batch
            workers = {worker, *[lease.worker for lease in active.values()], *state.recent_workers}
            busy_ahead = sum([one.is_ahead for one in busy])
            left = min(AHEAD, max(n, AHEAD_PER_WORKER * len(workers))) - busy_ahead - state.streams.n_ahead
            free = (one for one in _ahead(state) if one.token not in active)
            chosen += itertools.islice(free, min(max(left, 0), n - len(chosen)))
        tokens = [one.token for one in sorted(chosen)]
        return tokens, all(token in own and active[token].expires >= enough for token in tokens)


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


def in_turn(state: SessionState) -> Iterator[Urgency]:
    """Yield the measurements that the open batch waits for, in the order in which they are handed out."""
    if state.setup.problem.about.order == LISTED:
        return (Urgency(False, 0, 0.0, token) for token in state.streams.missing_places())
    return heapq.merge(*[_turns_of(state, probe) for probe in state.streams.batch])


def _turns_of(state: SessionState, probe: int) -> Iterator[Urgency]:
    """Yield the measurements of one probe that the open batch waits for."""
    stream = state.streams.of[probe]
    first = stream.begin
    return (_turn(state, Place(probe, index), first) for index in stream.missing())


def urgency_of(state: SessionState, token: Place) -> Urgency:
    """Return the place of this measurement in the order of handing out.

    Measurements that the open batch waits for come before prefetched ones. Each of the two groups has its own
    balanced order (see the module): passes are counted from the batch's first place, or from its end.
    """
    stream = state.streams.of[token.probe]
    is_ahead = not stream.is_missing(token.index)
    if state.setup.problem.about.order == LISTED:
        return Urgency(is_ahead, 0, 0.0, token)
    return _turn(state, token, stream.end if is_ahead else stream.begin, is_ahead)


def _turn(state: SessionState, token: Place, first: int, is_ahead: bool = False) -> Urgency:
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
