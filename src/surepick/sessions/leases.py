"""Assign requests to workers: a worker keeps its own until it answers or its lease ends.

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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from surepick.core.about import LISTED
from surepick.core.probes import VALUE
from surepick.sessions.events import AHEAD
from surepick.sessions.journal import Journal, leased
from surepick.sessions.state import SessionState
from surepick.sessions.streams import Place
from surepick.store import Lease

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


def claim(journal: Journal, n: int, worker: str, seconds: float) -> tuple[list[Request], float]:
    """Lease up to n requests to this worker, the most urgent first; return them and when a lease ends next.

    They are the worker's for `seconds`. No other process claims meanwhile: those that read at the same moment
    would all choose the same requests.
    """
    while True:
        with journal.write_transaction(durable=False) as view:
            if not journal.state.is_due:
                return _claim(journal, view.leases, n, worker, seconds)
        journal.decide()  # the process that completed the batch has died before it could


def _claim(
    journal: Journal, known: Sequence[Lease], n: int, worker: str, seconds: float
) -> tuple[list[Request], float]:
    """Lease up to n requests to this worker; return them and the next end of the leases held before.

    The caller holds a write transaction; `known` are all leases that the store has in it.
    """
    now = journal.clock()
    leases = _tidied(journal, known, now)
    active = {place: lease for place, lease in leases.items() if lease.expires > now}
    next_end = min((lease.expires for lease in active.values()), default=math.inf)
    state = journal.state
    chosen = [] if state.is_over else _choose(state, active, n, worker)

    # The chosen requests that are leased are this worker's own. A lease with at least half of its time left
    # is not renewed, so that a worker that asks again and again writes little.
    held = {place for place in chosen if place in active and active[place].expires >= now + seconds / 2}
    tokens = [str(place) for place in chosen if place not in held]
    if tokens:
        until = now + seconds
        for token in journal.log.claim(tokens, worker=worker, until=until, now=now):
            place = Place.parse(token)
            active[place] = Lease(token, worker, until)
            held.add(place)
    return [request_for(state, place, active[place]) for place in chosen if place in held], next_end


def _tidied(journal: Journal, known: Sequence[Lease], now: float) -> Leases:
    """Delete leases that serve no worker, shorten those that are too long, and return the rest by place.

    A lease cannot outlast a new one of this session, unless a clock was put back since; then it is cut to
    that length.
    """
    log, state = journal.log, journal.state
    leases = {place: lease for place, lease in leased(known).items() if _is_needed(state, place, lease)}
    log.release([lease.token for lease in known if lease not in leases.values()])
    latest = now + state.setup.lease
    for place, lease in leases.items():
        if lease.expires > latest + CLOCKS_DIFFER:
            log.claim([lease.token], worker=lease.worker, until=latest, now=now)
            leases[place] = lease._replace(expires=latest)
    return leases


def _is_needed(state: SessionState, place: Place, lease: Lease) -> bool:
    """Return whether a lease serves a worker: its request is not recorded, and the worker has not ended.

    Where a claim does not wait for those who append, it can lease what was recorded a moment before.
    """
    return not (state.streams.of[place.probe].is_recorded(place.index) or is_dead(lease.worker))


def _choose(state: SessionState, active: Leases, n: int, worker: str) -> list[Place]:
    """Return up to n requests for this worker: its own, unassigned ones, and some ahead of the batch.

    The most urgent come first, in the same order every time: what the batch waits for, in its order.
    """
    busy = [urgency_of(state, place) for place in active]
    chosen = sorted(one for one in busy if active[one.token].worker == worker)[:n]
    if len(chosen) < n:
        free = (one for one in in_turn(state) if one.token not in active)
        chosen += itertools.islice(free, n - len(chosen))
    if len(chosen) < n and state.final is None:  # nothing follows a final batch
        workers = {worker, *[lease.worker for lease in active.values()], *state.recent_workers}
        busy_ahead = sum(one.is_ahead for one in busy)
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


def in_turn(state: SessionState) -> Iterator[Urgency]:
    """Yield the measurements that the open batch waits for, in the order in which they are handed out."""
    streams = state.streams
    of_probes = [map(partial(Place, probe), streams.of[probe].missing()) for probe in streams.batch]
    return heapq.merge(*[map(partial(urgency_of, state), places) for places in of_probes])


def urgency_of(state: SessionState, token: Place) -> Urgency:
    """Return the place of this measurement in the order of handing out.

    Measurements that the open batch waits for come before prefetched ones. Each of the two groups has its own
    balanced order: passes are counted from the batch's first place, or from its end, and passes 2k and 2k + 1
    have opposite orders, which are drawn for each pair.
    """
    stream = state.streams.of[token.probe]
    is_ahead = not stream.is_missing(token.index)
    if state.setup.problem.about.order == LISTED:
        return Urgency(is_ahead, 0, 0.0, token)
    at = token.index - (stream.end if is_ahead else stream.begin)
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
