"""Plans that arrive while a run of BetGapE is under way: longer books, and what the newcomers begin with.

A newcomer begins with the least wealth of all plans that are there. Let b be the best plan of the list at any
moment and M its wealth. M changes hands only when a better plan arrives, and the new b then has no more than
the old one had: M stays a supermartingale that began at 1, whoever arrives, whenever, and for whatever
reason. Who began with 1 would be a fresh chance to be wrong with each arrival (docs/bet-gap-e.md).
"""

from __future__ import annotations

import math

import numpy as np

from surepick.core.policy import known_deviation
from surepick.core.problem import Problem
from surepick.policies.betting.books import NOTHING, Books, make_books
from surepick.policies.betting.tuning import TUNING
from surepick.policies.betting.wealth import log_sum


def grown(books: Books, problem: Problem, delta: float, epsilon: float) -> Books:
    """The books of a run that goes on with this problem, whose first plans and arms are the old ones.

    They have no lead yet. Between two blocks alone: the bets of an open block would be lost.
    """
    n_old, n_arms = len(books.plans), len(books.arms)
    more = make_books(problem, known_deviation(problem) ** 2, delta, epsilon)
    relevant = more.arms["is_relevant"].copy()
    more.arms[:n_arms] = books.arms
    more.arms["is_relevant"], more.arms["seen"] = relevant, -1
    more.plans[:n_old] = books.plans
    for field in ("n_support", "clock", "log_cash", "next_stake"):
        setattr(more.now, field, getattr(books.now, field))
    more.ladder[:n_old] = books.ladder
    more.pieces.slots[...] = books.pieces.slots
    more.pieces.purse[:, :n_old], more.pieces.peak[:, :n_old] = books.pieces.purse, books.pieces.peak
    known = len(books.nominations.slots)
    more.nominations.slots[:known] = books.nominations.slots
    more.nominations.counts[:known, :n_arms] = books.nominations.counts
    more.division.share[:n_arms], more.division.share[n_arms:] = books.division.share, 0.0
    _give_stakes(more, n_old, int(books.now.lead))
    return more


def _give_stakes(books: Books, n_old: int, lead: int) -> None:
    """Let the new plans begin with the cash, as all do, and with the least that is staked against any other.

    With epsilon what is staked on pieces counts for nothing here: that is less than the wealth of the proof.
    """
    staked = log_sum(np.column_stack([books.plans["mixture"][:n_old], books.ladder[:n_old]]))
    least, new = float(staked.min()), slice(n_old, None)
    share, slots = books.question.ladder_share, np.flatnonzero(books.pieces.slots["owner"] == lead)
    if least > NOTHING / 2:
        if len(books.rung):
            books.ladder[new] = least + math.log(share / len(books.rung))
            books.plans["mixture"][new] = least + math.log1p(-share)
        elif len(slots) and lead >= 0:
            books.pieces.purse[slots[0], new] = least + math.log(TUNING.piece_share)
            books.plans["mixture"][new] = least + math.log1p(-TUNING.piece_share)
        else:
            books.plans["mixture"][new] = least
    total = np.logaddexp(float(books.now.log_cash), least)
    books.plans["now"][new], books.plans["peak"][new] = total, max(float(total), 0.0)
