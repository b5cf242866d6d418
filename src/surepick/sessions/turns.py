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

from surepick.core.about import BALANCED
from surepick.core.oracle_problem import AnyProblem
from surepick.sessions.ledger import Ledger
from surepick.sessions.requests import Token

Turn = tuple[int, float, Token]


def is_balanced(problem: AnyProblem) -> bool:
    """Whether rounds are made in balanced order: where it was asked for, and of probes unless it was not."""
    order = problem.about.order
    return order == BALANCED or (not order and problem.probes is not None)


def in_turn(ledger: Ledger) -> Iterator[Token]:
    """The measurements that the open round waits for, in the order in which they are handed out."""
    if not is_balanced(ledger.setup.problem):
        return ledger.tapes.wanted()
    by_probe: dict[int, Iterator[Turn]] = {
        probe: (turn_of(ledger, token) for token in ledger.tapes.wanted_of(probe))
        for probe in ledger.tapes.probes_of_round()
    }
    return (token for _, _, token in heapq.merge(*by_probe.values()))


def turn_of(ledger: Ledger, token: Token) -> Turn:
    """When this measurement of the open round has its turn: its pass, and its place there."""
    if not is_balanced(ledger.setup.problem):
        return 0, 0.0, token
    at = token.index - ledger.tapes.begin_of_round(token.probe)
    place = random.Random(f"{ledger.setup.seed} {ledger.n_rounds} {at // 2} {token.probe}").random()
    return at, place if at % 2 == 0 else -place, token
