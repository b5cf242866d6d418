"""What a run of BetGapE keeps: a record for every arm, plan and bet, and a few numbers.

Records are written in place by the compiled steps of `blocks`; nothing is allocated after `make_books`. Names
follow docs/bet-gap-e.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from surepick.core.arrays import FloatArray, IntArray
from surepick.core.measurable import BOUNDED_VARIANCE
from surepick.core.past import Past
from surepick.core.problem import Problem
from surepick.kernels.plan_rows import NonZeros, non_zeros_by_plan
from surepick.kernels.records import RecordArray, make_record, make_records
from surepick.policies.betting.tuning import TUNING

NOTHING = -1e300  # log of an empty purse: finite, so that differences of logs stay numbers
WORKING_SET = 256  # rivals an allocation looks at
_OLD_LEADS = 8  # leads whose pieces are kept; forgetting one only loses wealth
_NOMINATIONS = 64  # leads whose nomination is remembered; a forgotten one counts as new


class Question:
    """What is asked, and numbers that follow from it and the problem."""

    target: float  # log(1/delta)
    epsilon: float
    smoothing: float
    distrust: float
    ladder_share: float  # of the first stake
    n_relevant: int
    setup_cost: float  # the price of starting a block
    variance_alone: bool  # whether no more than the variance of the noise is bounded: other factors of bets


class Now:
    """The numbers that change from block to block."""

    lead: int  # the plan that all others are compared with; -1 before the first block
    n_support: int  # its non-zero arms
    n_rivals: int
    n_bets: int  # one more than rivals when the only rival left is bet on, against the lead
    is_stopped: bool
    clock: int  # ticks when a slot is used
    log_cash: float
    next_stake: float  # measurements at which cash is staked again


class Arm:
    """One arm."""

    variance: float  # of one measurement
    cost: float
    price: float  # variance times cost
    is_relevant: bool
    count: int  # in all complete blocks and recalled
    total: float
    past: float  # measurements that what was thought of it before is worth; they win no bet
    past_total: float
    block: int  # measurements in the open block
    block_sum: float
    lead: float  # the lead's entry
    average: float  # of all measurements and the past, and in `settle_block` of the block; 0 for none
    weight: float  # scratch: the variance of a mean, inf for none
    seen: int  # scratch: the last plan looked at that has a non-zero here
    differs: bool  # scratch: whether a rival differs from the lead here


class Plan:
    """One plan: log wealth of the bets against it."""

    mixture: float  # purse
    now: float  # all together, with the lead's piece
    peak: float  # the largest so far, without pieces: what Ville's inequality bounds
    unit: float  # noise of its gap to the lead, with one measurement of each arm
    dual: float  # how much it bound in the last division


class Bet:
    """What is bet in the open block, fixed before it is measured: that the lead is better than this rival."""

    rival: int  # or the lead, where it is bet against
    centre: float  # of the mixture over gaps; no bet where it is negative
    prior: float  # variance of the mixture: that of the estimate
    unit: float  # of the ladder's rungs
    estimate: float  # of the gap, from all that was measured before
    urgency: float  # scratch of the division
    gap: float  # scratch of `compare`
    spread: float  # its variance


class Slot:
    """Whose turn in a table that forgets whoever was not used for longest."""

    owner: int  # a lead; -1: nobody
    used: int


class Pieces(NamedTuple):
    """With epsilon: bets that are fair only if one certain lead is more than epsilon worse."""

    slots: RecordArray  # (n_pieces,)
    purse: FloatArray  # (n_pieces, n_plans) log wealth
    peak: FloatArray  # (n_pieces, n_plans) the largest log wealth, cash and general bets included


class Nominations(NamedTuple):
    """What had been measured when each lead was nominated first."""

    slots: RecordArray  # (n_nominations,)
    counts: IntArray  # (n_nominations, n_arms)


class Division(NamedTuple):
    """How the measurements of a block are divided, and room to find out."""

    share: FloatArray  # (n_arms,) of cost
    chosen: IntArray  # (n_working,) the bets that a division looks at
    squares: FloatArray  # (n_working, n_arms)
    dual: FloatArray  # (n_working,)
    value: FloatArray  # (n_working,)
    inverse: FloatArray  # (n_arms,)
    needs: FloatArray  # (n_plans,)


class Books(NamedTuple):
    """All that a run knows."""

    question: Question
    now: Now
    rows: NonZeros  # of the plans
    arms: RecordArray  # (n_arms,)
    plans: RecordArray  # (n_plans,)
    bets: RecordArray  # (n_plans,) the first now.n_bets of them
    single: RecordArray  # (1,) a bet that nobody makes, to look at one plan
    support: IntArray  # (n_arms,) the lead's non-zero arms, the first now.n_support
    rung: FloatArray  # (n_rungs,) the bets of the ladder; none with epsilon
    ladder: FloatArray  # (n_plans, n_rungs) purses
    pieces: Pieces  # none without epsilon
    nominations: Nominations
    division: Division


def make_books(problem: Problem, variance: FloatArray, delta: float, epsilon: float) -> Books:
    """The books of a run that has measured nothing."""
    n_plans, n_arms = problem.n_plans, problem.n_arms
    n_rungs, n_pieces = (0, _OLD_LEADS) if epsilon else (TUNING.rungs, 0)
    n_nominations, n_working = min(n_plans, _NOMINATIONS), min(n_plans, WORKING_SET)
    arms, plans = make_records(Arm, n_arms), make_records(Plan, n_plans)
    arms["variance"], arms["cost"], arms["price"] = variance, problem.costs, variance * problem.costs
    arms["is_relevant"], arms["seen"] = problem.relevant, -1
    plans["mixture"] = NOTHING
    return Books(
        question=_make_question(problem, delta, epsilon),
        now=make_record(Now, lead=-1),
        rows=non_zeros_by_plan(problem),
        arms=arms,
        plans=plans,
        bets=make_records(Bet, n_plans),
        single=make_records(Bet, 1),
        support=np.zeros(n_arms, dtype=np.int64),
        rung=TUNING.top_rung * 0.5 ** (np.arange(n_rungs) / 2),
        ladder=np.full((n_plans, n_rungs), NOTHING),
        pieces=Pieces(
            _free_slots(n_pieces), np.full((n_pieces, n_plans), NOTHING), np.zeros((n_pieces, n_plans))
        ),
        nominations=Nominations(
            _free_slots(n_nominations), np.zeros((n_nominations, n_arms), dtype=np.int64)
        ),
        division=Division(
            share=np.full(n_arms, 1.0 / n_arms),
            chosen=np.empty(n_working, dtype=np.int64),
            squares=np.empty((n_working, n_arms)),
            dual=np.empty(n_working),
            value=np.empty(n_working),
            inverse=np.empty(n_arms),
            needs=np.empty(n_plans),
        ),
    )


def put_past(books: Books, past: Past) -> None:
    """Begin with what was thought of the arms before: part of what bets are based on, and of none of them."""
    books.arms["past"], books.arms["past_total"] = past.worth, past.worth * past.means


def _make_question(problem: Problem, delta: float, epsilon: float) -> Question:
    log_plans = math.log(problem.n_plans)
    priced = np.ptp(problem.costs[problem.relevant]) > 0
    learnt = TUNING.ladder_share - TUNING.ladder_share_per_log * log_plans
    return make_record(
        Question,
        target=-math.log(delta),
        epsilon=float(epsilon),
        smoothing=TUNING.smoothing_with_costs if priced else TUNING.smoothing,
        distrust=TUNING.selection * log_plans,
        ladder_share=max(TUNING.least_ladder_share, learnt),
        n_relevant=int(np.count_nonzero(problem.relevant)),
        setup_cost=problem.setup_cost,
        variance_alone=problem.noise == BOUNDED_VARIANCE,
    )


def _free_slots(n: int) -> RecordArray:
    slots = make_records(Slot, n)
    slots["owner"] = -1
    return slots


_NUMBERS = {  # as sessions keep them, two and two
    ("status", ""): ("is_stopped", "clock"),
    ("lead", "whole"): ("lead", "n_support"),
    ("bets", "size"): ("n_rivals", "n_bets"),
    ("wealth", "cash"): ("log_cash", "next_stake"),
}


def state_of(books: Books) -> dict[str, Any]:
    """All that empty books need to become these, as arrays."""
    state: dict[str, Any] = {
        part: {name: array.copy() for name, array in arrays.items()}
        for part, arrays in _arrays(books).items()
    }
    for (part, name), pair in _NUMBERS.items():
        kind = float if name == "cash" else np.int64
        numbers = np.array([getattr(books.now, field) for field in pair], dtype=kind)
        if name:
            state[part][name] = numbers
        else:
            state[part] = numbers
    return state


def refill(books: Books, state: Mapping[str, Any]) -> None:
    """Become the books whose state this is."""
    for part, arrays in _arrays(books).items():
        for name, array in arrays.items():
            kept = state[part][name]
            if kept.shape != array.shape:
                raise ValueError(
                    f"{part} {name} has shape {kept.shape} in the state, {array.shape} in the run"
                )
            array[...] = kept
    for (part, name), pair in _NUMBERS.items():
        for field, number in zip(pair, state[part][name] if name else state[part], strict=True):
            setattr(books.now, field, number)


def _arrays(books: Books) -> dict[str, dict[str, npt.NDArray[Any]]]:
    """The arrays that change, by the names under which sessions keep them."""
    arms, plans, bets, pieces = books.arms, books.plans, books.bets, books.pieces
    nominations = books.nominations
    return {
        "past": {"counts": arms["count"], "sums": arms["total"], "means": arms["average"]},
        "lead": {"vector": arms["lead"], "support": books.support, "unit": plans["unit"]},
        "bets": {"rivals": bets["rival"]} | {name: bets[name] for name in ("centre", "prior", "unit")},
        "wealth": {"rung": books.rung, "ladder": books.ladder}
        | {name: plans[name] for name in ("mixture", "now", "peak")},
        "pieces": {
            "owner": pieces.slots["owner"],
            "used": pieces.slots["used"],
            "purse": pieces.purse,
            "peak": pieces.peak,
        },
        "nominations": {
            "owner": nominations.slots["owner"],
            "used": nominations.slots["used"],
            "counts": nominations.counts,
        },
        "division": {"block": arms["block"], "share": books.division.share, "dual": plans["dual"]},
    }
