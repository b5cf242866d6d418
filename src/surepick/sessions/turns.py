"""The order in which the measurements of a round are made: balanced and shuffled (ABBA) unless "listed".

The order never changes a decision: a round is complete when all of it is recorded. But what runs later may
run slower, and a warm machine faster; measured one arm after the other, such an effect of the order would be
taken for a difference between the arms. In balanced order a round is made in passes, each with one use of
every probe that is still to be used. Passes come in pairs, the second of which is the first backwards: ABC,
CBA. So a steady drift cancels in every difference. The order of a pair is drawn from the seed, the round and
the pair alone, so that nothing else can follow it.
"""

from __future__ import annotations

import heapq
import zlib
from collections.abc import Iterator
from typing import NamedTuple

from surepick.core.about import LISTED
from surepick.core.oracle_problem import AnyProblem
from surepick.sessions.ledger import Ledger
from surepick.sessions.requests import Token


class Urgency(NamedTuple):
    """When a measurement is to be made, in sorting order: what the open round waits for comes first."""

    is_ahead: bool  # of the open round, which does not wait for it
    at: int  # the pass of the round
    place: float  # the place in that pass
    token: Token


def is_balanced(problem: AnyProblem) -> bool:
    """Return whether rounds are made in balanced order: always, unless the problem says "listed"."""
    return problem.about.order != LISTED


def in_turn(ledger: Ledger) -> Iterator[Urgency]:
    """Yield the measurements that the open round waits for, in the order in which they are handed out."""
    if not is_balanced(ledger.setup.problem):
        for token in ledger.tapes.wanted():
            yield Urgency(False, 0, 0.0, token)
        return
    yield from heapq.merge(*[_balanced_of(ledger, probe) for probe in ledger.tapes.probes_of_round()])


def urgency_of(ledger: Ledger, token: Token) -> Urgency:
    """Return how urgent this measurement is; those ahead of the round are balanced among themselves."""
    of = ledger.tapes.of[token.probe]
    is_ahead = not of.is_wanted(token.index)
    if not is_balanced(ledger.setup.problem):
        return Urgency(is_ahead, 0, 0.0, token)
    return _balanced(ledger, token, of.end_of_round if is_ahead else of.begin_of_round, is_ahead)


def _balanced_of(ledger: Ledger, probe: int) -> Iterator[Urgency]:
    """Yield those of one probe, in balanced order."""
    of = ledger.tapes.of[probe]
    first = of.begin_of_round
    return (_balanced(ledger, Token(probe, index), first) for index in of.wanted())


def _balanced(ledger: Ledger, token: Token, first: int, is_ahead: bool = False) -> Urgency:
    at = token.index - first
    drawn = f"{ledger.setup.seed} {ledger.n_rounds} {at // 2} {token.probe}"
    place = zlib.crc32(drawn.encode()) * 0x9E3779B1 % 2**32  # CRC alone is linear: orders would repeat
    return Urgency(is_ahead, at, place if at % 2 == 0 else -place, token)
