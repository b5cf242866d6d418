"""Who measures what: the tokens that a worker gets, and keeps until it tells them or its lease ends.

First come those that the worker has already, then what the open round waits for, then some ahead of it, so
that no worker is idle; in the same order however often it is asked.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from surepick.sessions.ledger import Ledger
from surepick.sessions.replica import Replica
from surepick.sessions.requests import Request, Token
from surepick.sessions.turns import Urgency, in_turn, urgency_of
from surepick.sessions.workers import is_dead
from surepick.store import Claim, Lease, View

AHEAD = 64  # measurements that may be made before the policy asks for them, in all,
AHEAD_PER_WORKER = 4  # and for each worker that has something in hand
CLOCKS_DIFFER = 1.0  # seconds between the clocks of two workers that are no reason to cut a lease

Leases = dict[Token, Lease]


def leased(leases: Iterable[Lease]) -> Leases:
    """The leases of a store by their tokens."""
    return {Token.parse(lease.token): lease for lease in leases}


def request_for(ledger: Ledger, token: Token, lease: Lease) -> Request:
    """The token as a worker gets it."""
    problem, (probe, index) = ledger.setup.problem, token
    of, reads = ledger.tapes.of[probe], problem.reads(probe)
    return Request(
        token=lease.token or str(token),
        probe=probe,
        probe_name=problem.probe_names[probe],
        wanted=of.n_wanted(index),
        worker=lease.worker,
        expires=lease.expires,
        readings=reads if len(reads) == 1 else tuple([reads[k] for k in of.untold(index)]) or reads,
    )


class Asked(NamedTuple):
    """What a worker asks for: so many tokens, for so many seconds."""

    n: int
    worker: str
    seconds: float


class Leasing:
    """Claims tokens of one session for workers; it remembers the leases as they were at its last look."""

    def __init__(self, replica: Replica, longest: float) -> None:
        self._replica = replica
        self._longest = longest  # seconds that a lease may last from now
        self._leases: Leases = {}  # those of told tokens mean nothing

    def claim(self, n: int, worker: str, seconds: float) -> list[Request]:
        """Return up to n measurements that are the worker's for these seconds, most urgent first.

        A session that is alone claims what should be free by all it knows, and looks whether it is. One that
        has company looks first, and holds the leases while it claims: all who look at the same moment
        would otherwise choose the same tokens, and all but one in vain.
        """
        replica, asked = self._replica, Asked(n, worker, seconds)
        view, granted = self._look(asked)
        is_current = granted and not view.events and not replica.is_stale and replica.ledger.tapes.n_missing
        if not is_current:
            replica.take_in(view.events)
            replica.decide()  # the process that completed the round may have died before it could
        if recorded := replica.recorded(view.leases):
            replica.store.release(replica.name, recorded)
        if any(is_dead(lease.worker) or self._is_too_long(lease) for lease in view.leases):
            return self._claim_in_turn(asked)
        if is_current:
            return self._requests(granted)
        if replica.ledger.is_over:
            replica.store.release(replica.name, list(map(str, granted)))  # they were claimed in vain
            return []
        now = replica.clock()
        chosen = self._choose(asked, now)
        return self._requests(chosen) if self._are_fresh(chosen, asked, now) else self._claim_in_turn(asked)

    def forget(self, token: Token) -> None:
        """The lease on this token has ended."""
        self._leases.pop(token, None)

    def _look(self, asked: Asked) -> tuple[View, list[Token]]:
        """What is new; and, claimed in the same trip by who seems to be alone, the tokens it was granted."""
        replica, claim, chosen = self._replica, None, list[Token]()
        if replica.is_alone() and not replica.ledger.is_over:
            now = replica.clock()
            chosen = self._choose(asked, now)
            if not self._are_fresh(chosen, asked, now):
                claim = Claim(list(map(str, chosen)), asked.worker, now + asked.seconds, now)
        view = replica.store.look(replica.name, after=replica.head, claim=claim)
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
        replica = self._replica
        with replica.my_turn(durable=False) as view:
            dead = [lease.token for lease in view.leases if is_dead(lease.worker)]
            ended = {*replica.recorded(view.leases), *dead}
            replica.store.release(replica.name, sorted(ended))
            kept = [lease for lease in view.leases if lease.token not in ended]
            self._leases = leased(self._cut(lease) for lease in kept)
            return self._claim_here(asked)

    def _is_too_long(self, lease: Lease) -> bool:
        return lease.expires > self._replica.clock() + self._longest + CLOCKS_DIFFER

    def _cut(self, lease: Lease) -> Lease:
        """Return this lease, cut to its length from now in the store too if it is longer."""
        if not self._is_too_long(lease):
            return lease
        replica, now = self._replica, self._replica.clock()
        until = now + self._longest
        replica.store.claim(replica.name, [lease.token], worker=lease.worker, until=until, now=now)
        return lease._replace(expires=until)

    def _claim_here(self, asked: Asked) -> list[Request]:
        """Choose and claim, in the open transaction."""
        replica = self._replica
        if replica.ledger.is_over:
            return []
        now = replica.clock()
        chosen = self._choose(asked, now)
        claim = Claim(list(map(str, chosen)), asked.worker, now + asked.seconds, now)
        held = replica.store.claim(
            replica.name, claim.tokens, worker=claim.worker, until=claim.until, now=now
        )
        return self._requests(self._note_granted(chosen, claim, held))

    def _requests(self, tokens: Iterable[Token]) -> list[Request]:
        ledger, leases = self._replica.ledger, self._leases
        return [request_for(ledger, token, leases[token]) for token in tokens]

    def _note_granted(self, chosen: Iterable[Token], claim: Claim, held: Iterable[str]) -> list[Token]:
        """Remember the leases that a claim has got; its tokens, of those chosen."""
        held, granted = set(held), []
        for token, text in zip(chosen, claim.tokens, strict=True):
            if text in held:
                self._leases[token] = Lease(text, claim.worker, claim.until)
                granted.append(token)
        return granted

    def _are_fresh(self, tokens: Iterable[Token], asked: Asked, now: float) -> bool:
        """Whether the worker holds all of these for long enough to begin measuring."""
        for token in tokens:
            lease = self._leases.get(token)
            if lease is None or lease.worker != asked.worker or lease.expires < now + asked.seconds / 2:
                return False
        return True

    def next_end(self) -> float:
        """When the next lease ends that had not ended at the last look."""
        now, leases = self._replica.clock(), self._leases.values()
        return min((lease.expires for lease in leases if lease.expires > now), default=math.inf)

    def _choose(self, asked: Asked, now: float) -> list[Token]:
        """Up to n tokens for this worker: its own, what nobody measures, and some ahead of the round.

        The most urgent come first, in the same order every time: what the round waits for, in its order.
        """
        ledger, (n, worker, _) = self._replica.ledger, asked
        active = {token: lease for token, lease in self._leases.items() if lease.expires > now}
        busy = [urgency_of(ledger, t) for t in active if not ledger.tapes.of[t.probe].is_told(t.index)]
        chosen = sorted([one for one in busy if active[one.token].worker == worker])[:n]
        if len(chosen) < n:
            free = (one for one in in_turn(ledger) if one.token not in active)
            chosen += itertools.islice(free, n - len(chosen))
        if len(chosen) < n and ledger.run.called is None:  # after a last call nothing comes next
            workers = {worker, *[lease.worker for lease in active.values()], *ledger.recent_workers}
            busy_ahead = sum([one.is_ahead for one in busy])
            left = min(AHEAD, max(n, AHEAD_PER_WORKER * len(workers))) - busy_ahead - ledger.tapes.n_ahead
            free = (one for one in _ahead(ledger) if one.token not in active)
            chosen += itertools.islice(free, min(max(left, 0), n - len(chosen)))
        return [one.token for one in sorted(chosen)]


def _ahead(ledger: Ledger) -> Iterator[Urgency]:
    """Measurements beyond the open round that may be wanted next, the likeliest first, without end.

    The guess is that each probe is followed by the one that followed it the last time. A wrong guess costs
    a measurement that may never be used, and nothing else.
    """
    probes = list(ledger.recent_probes) or [0]
    after = dict(itertools.pairwise([*probes, probes[0]]))
    after.update(itertools.pairwise(probes))
    following: dict[int, int] = {}
    probe = probes[-1]
    while True:
        probe = after[probe]
        of = ledger.tapes.of[probe]
        index = following.get(probe, of.end_of_round)
        while of.is_told(index):
            index += 1
        following[probe] = index + 1
        yield urgency_of(ledger, Token(probe, index))
