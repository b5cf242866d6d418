"""Who measures what: the tokens that a worker gets, and keeps until it tells them or its lease ends.

First come those that the worker has already, then what the open round waits for, then some ahead of it, so
that no worker is idle; in the same order however often it is asked.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping

from surepick.sessions.ledger import Ledger, Slot
from surepick.sessions.replica import Replica
from surepick.store import Claim, Lease, Store, View

AHEAD = 64  # measurements that may be made before the policy asks for them, in all,
AHEAD_PER_WORKER = 4  # and for each worker that has something in hand


def token_of(slot: Slot) -> str:
    """The token of a place on the tape of an arm.

    >>> token_of(Slot(3, 17))
    '3.17'
    """
    return f"{slot.arm}.{slot.place}"


def slot_of(token: str) -> Slot:
    """The place that a token stands for.

    >>> slot_of("3.17")
    Slot(arm=3, place=17)
    """
    arm, place = token.split(".")
    return Slot(int(arm), int(place))


class HandingOut:
    """Claims tokens of one session for workers; it remembers the leases as they were at its last look."""

    def __init__(
        self, store: Store, name: str, replica: Replica, lease: float, clock: Callable[[], float]
    ) -> None:
        self._store = store
        self._name = name
        self._replica = replica
        self._lease = lease  # seconds
        self._clock = clock
        self._leases: dict[str, Lease] = {}  # those of told tokens mean nothing

    def claim(self, n: int, worker: str) -> list[Lease]:
        """Up to n tokens that are the worker's from now on, the most urgent first; none when it has ended.

        A session that is alone claims what should be free by all it knows, and looks whether it is. One that
        has company looks first, and holds the leases while it claims: all who look at the same moment
        would otherwise choose the same tokens, and all but one in vain.
        """
        view = self._look_and_claim(n, worker)
        unchanged = not view.events and not self._replica.is_stale and self._ledger.n_missing > 0
        self._replica.take_in(view.events)
        self._replica.decide()  # the process that completed the round may have died before it could
        if self._ledger.is_over:
            return []
        if unchanged and view.held:
            return self._in_order(view.held)
        chosen = self._choose(view.leases, n, worker)
        return self._in_order(chosen) if self._are_fresh(chosen, worker) else self._claim_in_turn(n, worker)

    def forget(self, token: str) -> None:
        """The lease on this token has ended."""
        self._leases.pop(token, None)

    @property
    def _ledger(self) -> Ledger:
        return self._replica.ledger

    def _look_and_claim(self, n: int, worker: str) -> View:
        """What is new; when nobody else seems to be about, together with a claim chosen without looking."""
        claim = None
        if self._replica.is_alone() and not self._ledger.is_over:
            chosen = self._choose(self._leases.values(), n, worker)
            if not self._are_fresh(chosen, worker):
                now = self._clock()
                claim = Claim(chosen, worker, now + self._lease, now)
        view = self._store.look(self._name, after=self._replica.head, claim=claim)
        if claim is None:
            self._remember(view.leases)
            return view
        self._remember(view.leases, (Lease(token, worker, claim.until) for token in view.held))
        return view if set(view.held) == set(claim.tokens) else view._replace(held=())

    def _claim_in_turn(self, n: int, worker: str) -> list[Lease]:
        with self._replica.my_turn(durable=False) as view:
            if self._ledger.is_over:
                return []
            chosen, now = self._choose(view.leases, n, worker), self._clock()
            until = now + self._lease
            held = self._store.claim(self._name, chosen, worker=worker, until=until, now=now)
        self._remember(view.leases, (Lease(token, worker, until) for token in held))
        return self._in_order(held)

    def _remember(self, leases: Iterable[Lease], newer: Iterable[Lease] = ()) -> None:
        self._leases = {lease.token: lease for lease in itertools.chain(leases, newer)}

    def _are_fresh(self, tokens: Iterable[str], worker: str) -> bool:
        """Whether the worker holds all of these for long enough to begin measuring."""
        enough = self._clock() + self._lease / 2
        held = (self._leases.get(token) for token in tokens)
        return all(lease is not None and lease.worker == worker and lease.expires >= enough for lease in held)

    def _choose(self, leases: Iterable[Lease], n: int, worker: str) -> list[str]:
        """Up to n tokens for this worker."""
        now = self._clock()
        active = {lease.token: lease for lease in leases if lease.expires > now}
        mine = [slot_of(token) for token, lease in active.items() if lease.worker == worker]
        own = sorted((slot for slot in mine if not self._ledger.is_told(slot)), key=self._urgency)
        candidates = itertools.chain(own, self._free(active, n, worker))
        return [token_of(slot) for slot in itertools.islice(candidates, n)]

    def _in_order(self, tokens: Iterable[str]) -> list[Lease]:
        return [self._leases[token_of(slot)] for slot in sorted(map(slot_of, tokens), key=self._urgency)]

    def _urgency(self, slot: Slot) -> tuple[bool, Slot]:
        """What the round waits for comes first, then by arm and place: the same order however often asked."""
        return not self._ledger.is_wanted(slot), slot

    def _free(self, active: Mapping[str, Lease], n: int, worker: str) -> Iterator[Slot]:
        """Places that nobody is measuring: all that the round wants, then some ahead of it."""
        yield from (slot for slot in self._ledger.wanted() if token_of(slot) not in active)
        n_workers = len({worker, *(lease.worker for lease in active.values()), *self._ledger.recent_workers})
        busy = [slot for slot in map(slot_of, active) if not self._ledger.is_told(slot)]
        busy_ahead = sum(not self._ledger.is_wanted(slot) for slot in busy)
        room = min(AHEAD, max(n, AHEAD_PER_WORKER * n_workers)) - busy_ahead - self._ledger.n_ahead
        free = (slot for slot in self._ledger.ahead() if token_of(slot) not in active)
        yield from itertools.islice(free, max(room, 0))
