"""The constants of BetGapE; OBet makes the same single bets with some of them changed."""

from __future__ import annotations

import math
from typing import NamedTuple


class Tuning(NamedTuple):
    """Every constant of BetGapE. None of them bears on the guarantee; all were set on other instances.

    The caution is in standard errors of the estimated gap, times log(n_plans) for `selection`.
    """

    first_stake: float = 0.73  # of the cash at the first chance
    ladder_share: float = 0.7  # of the first stake on fixed bets, the others are adaptive ...
    ladder_share_per_log: float = 0.06  # ... less this times log(n_plans): with many plans gaps are learnt
    least_ladder_share: float = 0.2
    stake: float = 0.3  # of the cash at every restart
    stake_with_epsilon: float = 0.35  # the same with epsilon, where every new lead is a restart too
    ripe: float = (
        1.8  # with epsilon, standard errors that a lead is ahead of every rival before it gets a stake
    )
    keep_gap: float = 0.5  # with epsilon, a lead stays unless it is this many standard errors behind ...
    new_lead: float = 10.0  # ... and by so many nats the wealth of its piece is not worth keeping
    restart: float = 1.4  # growth of the measurements between restarts
    selection: float = 0.3  # how much the gap of a lead that won by luck is distrusted
    caution: float = 0.15  # how far below the estimated gap adaptive bets are centred
    top_rung: float = 2.0  # largest ladder bet, in units of the noise of one measurement of each arm
    rungs: int = 15  # each a factor sqrt(2) below the last
    smoothing: float = 32.0  # squared standard errors added to squared gaps: calm allocations
    smoothing_with_costs: float = 4.0  # less where prices differ: calm divisions stay near one of each arm
    need_smoothing: float = 4.0  # the same, where the length of a block is planned
    block_share: float = 0.1  # a block is at most this share of what was measured
    need_share: float = 0.1  # and about this share of what seems to be needed still
    side_share: float = 0.02  # of a block for arms on which no rival is left
    piece_share: float = 0.9  # of a stake on "better than the lead by more than epsilon"


TUNING = Tuning()


def block_cost(wished: float, need: float, setup_cost: float) -> float:
    """What a block should cost where starting one has a price of its own; as wished where it has none.

    Blocks of cost L would take need / L more set-ups, and half a block too much at the end: least together at
    L = sqrt(2 need setup_cost). No block is longer than what seems to be needed for that.

    >>> block_cost(10.0, 400.0, 0.0), block_cost(10.0, 400.0, 50.0), block_cost(10.0, 40.0, 500.0)
    (10.0, 200.0, 40.0)
    """
    return max(wished, min(math.sqrt(2.0 * need * setup_cost), need))


def first_uses(once: float, setup_cost: float) -> int:
    """How often a first block, which costs so much once, is measured: a quarter of its set-up's price, say.

    >>> first_uses(10.0, 0.0), first_uses(10.0, 120.0)
    (1, 3)
    """
    return max(1, round(0.25 * setup_cost / once)) if once > 0.0 else 1
