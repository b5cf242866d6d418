"""In which order the measurements of a round are made: first to last, or balanced and shuffled (ABBA).

Nothing is decided by it: a round is complete when all of it is told, in whatever order. But what runs later
may run slower, and a warm machine faster; measured one arm after the other, such an effect of the order would
be taken for a difference of the arms. In balanced order a round is made in passes, each with one use of every
probe that is still to be used. Passes come in pairs, the second of which is the first backwards: ABC, CBA.
So a drift that is steady over a pair cancels in every difference, and the order of a pair is drawn, from the
seed, the round and the pair alone, so that nothing else can follow it.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Iterator
from typing import NamedTuple

from surepick.core.about import BALANCED
from surepick.core.oracle_problem import AnyProblem
from surepick.sessions.ledger import Ledger
from surepick.sessions.requests import Token


class Urgency(NamedTuple):
    """When a measurement is to be made: what the open round waits for comes first, in their order."""

    is_ahead: bool  # of the open round, which does not wait for it
    at: int  # the pass of the round,
    place: float  # and the place in it
    token: Token


def is_balanced(problem: AnyProblem) -> bool:
    """Whether rounds are made in balanced order: where it was asked for, and of probes unless it was not."""
    order = problem.about.order
    return order == BALANCED or (not order and not problem.arms_alone)


def in_turn(ledger: Ledger) -> Iterator[Urgency]:
    """The measurements that the open round waits for, in the order in which they are handed out."""
    if not is_balanced(ledger.setup.problem):
        for token in ledger.tapes.wanted():
            yield Urgency(False, 0, 0.0, token)
        return
    yield from heapq.merge(*[_balanced_of(ledger, probe) for probe in ledger.tapes.probes_of_round()])


def urgency_of(ledger: Ledger, token: Token) -> Urgency:
    """How urgent this measurement is."""
    if not ledger.tapes.of[token.probe].is_wanted(token.index):
        return Urgency(True, 0, 0.0, token)
    return _balanced(ledger, token) if is_balanced(ledger.setup.problem) else Urgency(False, 0, 0.0, token)


def _balanced_of(ledger: Ledger, probe: int) -> Iterator[Urgency]:
    """Those of one probe, in balanced order."""
    return (_balanced(ledger, Token(probe, index)) for index in ledger.tapes.of[probe].wanted())


def _balanced(ledger: Ledger, token: Token) -> Urgency:
    at = token.index - ledger.tapes.of[token.probe].begin_of_round
    place = random.Random(f"{ledger.setup.seed} {ledger.n_rounds} {at // 2} {token.probe}").random()
    return Urgency(False, at, place if at % 2 == 0 else -place, token)
