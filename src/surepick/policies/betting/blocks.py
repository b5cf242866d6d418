"""The compiled blocks of BetGapE: open one, settle its bets, choose the lead, and many in one call.

`Table` is what a run never changes, `Books` what it changes and `Scratch` what nobody reads twice. Nothing
here allocates. Step by step and driven (`advance`) a run goes through the same machine code. Names follow
docs/bet-gap-e.md; the passes over the plans are those of `bet_kernels`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from surepick.core.arrays import BoolArray, FloatArray, IntArray
from surepick.core.problem import Problem
from surepick.kernels.compiled import compiled, compiled_inner
from surepick.policies.betting import bets
from surepick.policies.betting.bets import (
    NOTHING,
    Rows,
    add_up,
    centre_bets,
    compare,
    divide,
    evaluate,
    fill_squares,
    judge_urgency,
    largest_product,
    log_add,
    mark_differing,
    round_shares,
    settle_ladder,
    settle_mixture,
    weigh,
)
from surepick.policies.betting.tuning import Tuning

_LEAST_DEFICIT = 0.1  # nats: a rival about to be dropped still counts a little
_WORKING_SET = 256  # rivals an allocation looks at
_STEPS, _TOLERANCE = 40, 0.02  # of the allocation; a rough one costs measurements, never correctness
_WARMTH = 0.9  # of the start of an allocation from the last one
_LEAST_SHARE = 1e-3  # of an equal share: keeps prices finite
_OLD_LEADS = 8  # leads whose pieces are kept; forgetting one only loses wealth
_NOMINATIONS = 64  # leads whose nomination is remembered; a forgotten one counts as new


class Question(NamedTuple):
    """What is asked, and numbers that follow from it and the problem."""

    target: float  # log(1/delta)
    epsilon: float
    smoothing: float
    distrust: float
    ladder_share: float  # of the first stake
    n_relevant: int


class Table(NamedTuple):
    """The problem as the blocks see it."""

    rows: Rows
    variance: FloatArray  # (n_arms,) of one measurement
    costs: FloatArray  # (n_arms,)
    price: FloatArray  # (n_arms,) variance times cost
    relevant: BoolArray  # (n_arms,)
    question: Question


class Past(NamedTuple):
    """All complete blocks, and what was recalled."""

    counts: IntArray  # (n_arms,)
    sums: FloatArray  # (n_arms,)
    means: FloatArray  # (n_arms,) 0 for arms without a measurement


class Lead(NamedTuple):
    """The plan that all others are compared with."""

    whole: IntArray  # PLAN, N_SUPPORT
    vector: FloatArray  # (n_arms,)
    support: IntArray  # (n_arms,) its non-zero arms, the first N_SUPPORT entries
    unit: FloatArray  # (n_plans,) noise of the gap to each plan, with one measurement of each arm


class Bets(NamedTuple):
    """What is bet in the open block, fixed before it is measured.

    One entry per rival: that the lead is better. With a single rival left there is a second entry: that it
    is better than the lead.
    """

    size: IntArray  # N_RIVALS, N_BETS
    rivals: IntArray  # (n_plans,) and the lead, where it is bet against
    centre: FloatArray  # (n_plans,) of the mixture over gaps; no bet where it is negative
    prior: FloatArray  # (n_plans,) variance of the mixture
    unit: FloatArray  # (n_plans,) of the ladder's rungs


class Wealth(NamedTuple):
    """Log wealth of the bets against every plan."""

    cash: FloatArray  # LOG_CASH, NEXT_STAKE
    rung: FloatArray  # (n_rungs,) the bets of the ladder; none with epsilon
    mixture: FloatArray  # (n_plans,) purse
    ladder: FloatArray  # (n_plans, n_rungs) purses
    now: FloatArray  # (n_plans,) all together, with the lead's piece
    peak: FloatArray  # (n_plans,) the largest so far, without pieces: what Ville's inequality bounds


class Pieces(NamedTuple):
    """With epsilon: bets that are fair only if one certain lead is more than epsilon worse."""

    owner: IntArray  # (n_pieces,) which lead; -1: nobody
    used: IntArray  # (n_pieces,) when it was used last
    purse: FloatArray  # (n_pieces, n_plans) log wealth
    peak: FloatArray  # (n_pieces, n_plans) the largest log wealth, cash and general bets included


class Nominations(NamedTuple):
    """What had been measured when each lead was nominated first."""

    owner: IntArray  # (n_nominations,)
    used: IntArray  # (n_nominations,)
    counts: IntArray  # (n_nominations, n_arms)


class Division(NamedTuple):
    """How the measurements of a block are divided."""

    block: IntArray  # (n_arms,) counts of the open block
    share: FloatArray  # (n_arms,) of cost
    dual: FloatArray  # (n_plans,) how much each rival binds


class Books(NamedTuple):
    """All that a run knows."""

    status: IntArray  # STOPPED, CLOCK
    past: Past
    lead: Lead
    bets: Bets
    wealth: Wealth
    pieces: Pieces
    nominations: Nominations
    division: Division


class Scratch(NamedTuple):
    """Room to work in."""

    gap: FloatArray  # (n_plans,)
    spread: FloatArray  # (n_plans,)
    other: FloatArray  # (n_plans,)
    urgency: FloatArray  # (n_plans,)
    unused: FloatArray  # (n_plans,)
    weight: FloatArray  # (n_arms,)
    mean: FloatArray  # (n_arms,)
    sums: FloatArray  # (n_arms,)
    since: IntArray  # (n_arms,)
    differing: BoolArray  # (n_arms,)


class Working(NamedTuple):
    """The rivals that a division looks at."""

    ids: IntArray  # (n_working,)
    numbers: FloatArray  # (3, n_working): factor, dual, value
    squares: FloatArray  # (n_working, n_arms)
    inverse: FloatArray  # (n_arms,)


# where things are
PLAN, N_SUPPORT = range(2)
N_RIVALS, N_BETS = range(2)
LOG_CASH, NEXT_STAKE = range(2)
STOPPED, CLOCK = range(2)
FACTOR, DUAL, VALUE = range(3)


def make_table(problem: Problem, variance: FloatArray, delta: float, epsilon: float, tuning: Tuning) -> Table:
    """The problem as the blocks see it; always fresh arrays, so that one compilation serves all."""
    relevant, costs = problem.relevant.copy(), problem.costs.copy()
    priced, log_plans = np.ptp(costs[relevant]) > 0, math.log(problem.n_plans)
    question = Question(
        target=-math.log(delta),
        epsilon=float(epsilon),
        smoothing=tuning.smoothing_with_costs if priced else tuning.smoothing,
        distrust=tuning.selection * log_plans,
        ladder_share=max(
            tuning.least_ladder_share, tuning.ladder_share - tuning.ladder_share_per_log * log_plans
        ),
        n_relevant=int(np.count_nonzero(relevant)),
    )
    rows = bets.make_rows(problem)
    return Table(rows, variance, costs, variance * costs, relevant, question)


def make_books(problem: Problem, epsilon: float, tuning: Tuning) -> Books:
    """The books of a run that has measured nothing."""
    n_plans, n_arms = problem.n_plans, problem.n_arms
    n_rungs, n_pieces = (0, _OLD_LEADS) if epsilon else (tuning.rungs, 0)
    n_nominations = min(n_plans, _NOMINATIONS)
    return Books(
        status=_whole(2),
        past=Past(_whole(n_arms), np.zeros(n_arms), np.zeros(n_arms)),
        lead=Lead(np.array([-1, 0]), np.zeros(n_arms), _whole(n_arms), np.zeros(n_plans)),
        bets=Bets(_whole(2), _whole(n_plans), *(np.zeros(n_plans) for _ in range(3))),
        wealth=Wealth(
            cash=np.zeros(2),
            rung=tuning.top_rung * 0.5 ** (np.arange(n_rungs) / 2),
            mixture=np.full(n_plans, NOTHING),
            ladder=np.full((n_plans, n_rungs), NOTHING),
            now=np.zeros(n_plans),
            peak=np.zeros(n_plans),
        ),
        pieces=Pieces(
            owner=np.full(n_pieces, -1),
            used=_whole(n_pieces),
            purse=np.full((n_pieces, n_plans), NOTHING),
            peak=np.zeros((n_pieces, n_plans)),
        ),
        nominations=Nominations(
            owner=np.full(n_nominations, -1),
            used=_whole(n_nominations),
            counts=np.zeros((n_nominations, n_arms), dtype=np.int64),
        ),
        division=Division(_whole(n_arms), np.full(n_arms, 1.0 / n_arms), np.zeros(n_plans)),
    )


def _whole(size: int) -> IntArray:
    return np.zeros(size, dtype=np.int64)


def make_scratch(problem: Problem) -> tuple[Scratch, Working]:
    """Room for the blocks of this problem."""
    n_plans, n_arms = problem.n_plans, problem.n_arms
    n_working = min(n_plans, _WORKING_SET)
    gap, spread, other, urgency, unused = np.empty((5, n_plans))
    weight, mean, sums = np.empty((3, n_arms))
    since, differing = np.empty(n_arms, dtype=np.int64), np.empty(n_arms, dtype=np.bool_)
    scratch = Scratch(gap, spread, other, urgency, unused, weight, mean, sums, since, differing)
    ids, squares = np.empty(n_working, dtype=np.int64), np.empty((n_working, n_arms))
    return scratch, Working(ids, np.empty((3, n_working)), squares, np.empty(n_arms))


@compiled
def advance(
    table: Table,
    books: Books,
    scratch: Scratch,
    working: Working,
    tuning: Tuning,
    means: FloatArray,  # (n_arms,) of normal measurements
    scale: FloatArray,  # (n_arms,)
    draws: FloatArray,  # standard normal, one for each arm of a block
    budget: int,
) -> tuple[int, int]:
    """Measure the open block, settle it and open the next, until the stop or while draws and budget last.

    How many draws were used, and how many blocks measured. The next block is open afterwards, unless stopped.
    """
    block, sums, past = books.division.block, scratch.sums, books.past
    used, n_blocks = 0, 0
    while not books.status[STOPPED]:
        n_measured, n_drawn = 0, 0
        for count in block:
            n_measured += count
            n_drawn += count > 0
        if n_measured > budget or used + n_drawn > len(draws):
            break
        for s in range(len(means)):
            sums[s] = 0.0
            if block[s] > 0:
                sums[s] = block[s] * means[s] + math.sqrt(block[s]) * scale[s] * draws[used]
                used += 1
        settle_block(table, books, scratch, sums)
        for s in range(len(means)):
            past.counts[s] += block[s]
            past.sums[s] += sums[s]
        choose_lead(table, books, scratch, tuning)
        open_block(table, books, scratch, working, tuning)
        budget -= n_measured
        n_blocks += 1
    return used, n_blocks


@compiled
def open_block(table: Table, books: Books, scratch: Scratch, working: Working, tuning: Tuning) -> None:
    """Counts and bets of the next block, from the past alone; or the stop, when no rival is left."""
    question, past, lead, bets = table.question, books.past, books.lead, books.bets
    bets.size[:] = 0
    n = _find_rivals(question, lead.whole[PLAN], books.wealth.peak, books.pieces, bets.rivals)
    if n == 0:
        books.status[STOPPED] = 1
        return
    bets.size[N_RIVALS] = n
    rivals, gap, spread = bets.rivals[:n], scratch.gap[:n], scratch.spread[:n]
    weigh(table.variance, past.counts, scratch.weight)
    _compare(table.rows, lead, rivals, scratch.weight, past.means, spread, gap)
    if _is_ripe(question.epsilon, gap, spread, tuning.ripe):
        _put_stakes(
            past.counts,
            books.wealth,
            books.pieces,
            lead.whole[PLAN],
            books.status,
            question.ladder_share,
            tuning,
        )
    slot = _slot_of(books.nominations.owner, books.nominations.used, lead.whole[PLAN], books.status)
    for s in range(len(past.counts)):
        scratch.since[s] = past.counts[s] - books.nominations.counts[slot, s]
    weigh(table.variance, scratch.since, scratch.weight)
    _compare(table.rows, lead, rivals, scratch.weight, past.means, scratch.other, scratch.unused)
    _place_bets(question.distrust, tuning.caution, gap, spread, scratch.other, lead.unit, bets)
    _bet_against_lead(lead.whole[PLAN], bets)
    if question.epsilon > 0.0:
        for q in range(n):
            gap[q] += question.epsilon
    urgency, now = scratch.urgency[:n], books.wealth.now
    judge_urgency(rivals, now, gap, spread, question.target, _LEAST_DEFICIT, question.smoothing, urgency)
    _divide(table, lead, books.division, rivals, urgency, scratch, working)
    judge_urgency(rivals, now, gap, spread, question.target, _LEAST_DEFICIT, tuning.need_smoothing, urgency)
    _count(table, past, lead, books.division, rivals, urgency, scratch, tuning)


@compiled
def settle_block(table: Table, books: Books, scratch: Scratch, sums: FloatArray) -> None:
    """Multiply every stake by its bet's factor, a function of what this block alone has shown."""
    bets, wealth, block, epsilon = books.bets, books.wealth, books.division.block, table.question.epsilon
    n, n_bets = bets.size[N_RIVALS], bets.size[N_BETS]
    rivals, gap, spread = bets.rivals[:n_bets], scratch.gap[:n_bets], scratch.spread[:n_bets]
    _average(block, sums, scratch.mean)
    weigh(table.variance, block, scratch.weight)
    _compare(table.rows, books.lead, rivals[:n], scratch.weight, scratch.mean, spread, gap)
    if n_bets > n:
        gap[n], spread[n] = -gap[0], spread[0]
    settle_mixture(rivals, gap, spread, bets.centre, bets.prior, wealth.mixture)
    settle_ladder(rivals, gap, spread, wealth.rung, bets.unit, wealth.ladder)
    slot = -1
    if epsilon > 0.0:
        slot = _own_piece(books.pieces, books.lead.whole[PLAN], books.status)
        for q in range(n):
            gap[q] += epsilon
            scratch.other[q] = bets.centre[q] + epsilon
        settle_mixture(rivals[:n], gap, spread, scratch.other, bets.prior, books.pieces.purse[slot])
    _count_wealth(wealth, books.pieces, slot, rivals, scratch.urgency)


@compiled
def choose_lead(table: Table, books: Books, scratch: Scratch, tuning: Tuning) -> None:
    """The plan that looks best now, ruled out or not: a lead that was dropped by bad luck must lead."""
    past, lead, epsilon = books.past, books.lead, table.question.epsilon
    books.status[STOPPED] = 0  # a stop is decided anew, with all that is known
    _average(past.counts, past.sums, past.means)
    evaluate(table.rows, past.means, scratch.other)
    best = _largest(scratch.other)
    if best == lead.whole[PLAN]:
        return
    if epsilon > 0.0 and lead.whole[PLAN] >= 0:
        weigh(table.variance, past.counts, scratch.weight)
        gap, spread = compare_one(table.rows, lead, best, scratch.weight, past.means, scratch)
        if _stays(table.question, -gap, spread, books.wealth.now[best], tuning):
            return
    everyone = books.bets.rivals
    for j in range(len(everyone)):
        everyone[j] = j
    _follow(table.rows, best, lead)
    _compare(table.rows, lead, everyone, table.variance, past.means, lead.unit, scratch.unused)
    for j in range(len(everyone)):
        lead.unit[j] = math.sqrt(lead.unit[j])
    _nominate(books.nominations, best, past.counts, books.status)
    if epsilon > 0.0:
        books.wealth.cash[NEXT_STAKE] = 0.0  # its piece is empty: a stake as soon as it is ripe
        _count_wealth(books.wealth, books.pieces, _piece_of(books.pieces, best), everyone, scratch.urgency)


@compiled
def compare_one(
    rows: Rows, lead: Lead, plan: int, weight: FloatArray, mean: FloatArray, scratch: Scratch
) -> tuple[float, float]:
    """The lead's gap to one plan under these means, and its variance under these weights."""
    only, spread, gap = scratch.since[:1], scratch.spread[:1], scratch.gap[:1]
    only[0] = plan
    _compare(rows, lead, only, weight, mean, spread, gap)
    return gap[0], spread[0]


@compiled_inner
def _compare(
    rows: Rows,
    lead: Lead,
    ids: IntArray,
    weight: FloatArray,
    mean: FloatArray,
    spread: FloatArray,
    gap: FloatArray,
) -> None:
    compare(rows, ids, lead.vector, lead.support[: lead.whole[N_SUPPORT]], weight, mean, spread, gap)


@compiled_inner
def _average(counts: IntArray, sums: FloatArray, means: FloatArray) -> None:
    """The means, and 0 where nothing was measured: on such arms no plan is compared."""
    for s in range(len(counts)):
        means[s] = sums[s] / counts[s] if counts[s] > 0 else 0.0


@compiled_inner
def _largest(values: FloatArray) -> int:
    """Where the largest number is, the first of equals."""
    best = 0
    for j in range(len(values)):
        if values[j] > values[best]:
            best = j
    return best


@compiled_inner
def _stays(question: Question, behind: float, spread: float, against: float, tuning: Tuning) -> bool:
    """With epsilon, whether a lead this far behind the best-looking plan is not worth changing.

    Its piece needs deficit / (epsilon - behind)^2 more, that of a new lead all of it, and a stake. `against`
    is the log wealth of the bets against the best-looking plan.
    """
    room = 1.0 - behind / question.epsilon
    deficit = max(question.target - against, 0.0) / (question.target + tuning.new_lead)
    return behind <= tuning.keep_gap * math.sqrt(spread) or (room > 0.0 and room * room >= deficit)


@compiled_inner
def _is_ripe(epsilon: float, gap: FloatArray, spread: FloatArray, least: float) -> bool:
    """With epsilon, whether the lead is so far ahead of every rival that a stake on its piece can win."""
    if epsilon > 0.0:
        for q in range(len(gap)):
            if gap[q] + epsilon < least * math.sqrt(spread[q]):
                return False
    return True


@compiled_inner
def _follow(rows: Rows, plan: int, lead: Lead) -> None:
    """Make this plan the lead."""
    lead.vector[:] = 0.0
    n = 0
    for t in range(rows.start[plan], rows.start[plan + 1]):
        lead.vector[rows.arm[t]] = rows.value[t]
        lead.support[n] = rows.arm[t]
        n += 1
    lead.whole[PLAN], lead.whole[N_SUPPORT] = plan, n


@compiled_inner
def _find_rivals(question: Question, lead: int, peak: FloatArray, pieces: Pieces, rivals: IntArray) -> int:
    """The plans that may still be better than the lead, by more than epsilon; how many."""
    slot, n = _piece_of(pieces, lead), 0
    for j in range(len(peak)):
        largest = peak[j]
        if slot >= 0:
            largest = max(largest, pieces.peak[slot, j])
        if j != lead and largest < question.target:
            rivals[n] = j
            n += 1
    return n


@compiled_inner
def _count_wealth(wealth: Wealth, pieces: Pieces, slot: int, ids: IntArray, room: FloatArray) -> None:
    """Bring log wealth and its peaks up to date; a plan whose peak reaches log(1/delta) is ruled out."""
    add_up(ids, wealth.cash[LOG_CASH], wealth.mixture, wealth.ladder, room)
    for q in range(len(ids)):
        j, total = ids[q], room[q]
        wealth.peak[j] = max(wealth.peak[j], total)
        if slot >= 0:
            total = log_add(total, pieces.purse[slot, j])
            pieces.peak[slot, j] = max(pieces.peak[slot, j], total)
        wealth.now[j] = total


@compiled_inner
def _nominate(nominations: Nominations, plan: int, counts: IntArray, status: IntArray) -> None:
    """Remember what was known when this plan first became the lead."""
    slot = _slot_of(nominations.owner, nominations.used, plan, status)
    if nominations.owner[slot] != plan:
        nominations.owner[slot] = plan
        for s in range(len(counts)):
            nominations.counts[slot, s] = counts[s]


@compiled_inner
def _slot_of(owner: IntArray, used: IntArray, plan: int, status: IntArray) -> int:
    """The slot of this plan, or else the one that was not used for longest; it counts as used now."""
    slot = 0
    for k in range(len(owner)):
        if owner[k] == plan:
            slot = k
            break
        if used[k] < used[slot]:
            slot = k
    status[CLOCK] += 1
    used[slot] = status[CLOCK]
    return slot


@compiled_inner
def _piece_of(pieces: Pieces, lead: int) -> int:
    """Where the piece of this lead is, or -1."""
    for k in range(len(pieces.owner)):
        if pieces.owner[k] == lead:
            return k
    return -1


@compiled_inner
def _own_piece(pieces: Pieces, lead: int, status: IntArray) -> int:
    """The piece of the current lead; an old one may be forgotten for it, which only loses wealth."""
    slot = _slot_of(pieces.owner, pieces.used, lead, status)
    if pieces.owner[slot] != lead:
        pieces.owner[slot] = lead
        pieces.purse[slot] = NOTHING
        pieces.peak[slot] = 0.0
    return slot


@compiled_inner
def _put_stakes(
    counts: IntArray,
    wealth: Wealth,
    pieces: Pieces,
    lead: int,
    status: IntArray,
    ladder_share: float,
    tuning: Tuning,
) -> None:
    """At the start, and whenever the measurements have grown enough, put some of the cash on bets.

    All plans alike, and cash is never used up: a bad start cannot ruin a wealth. With epsilon, where there
    are pieces, most of a stake goes on the lead's.
    """
    measured = 0
    for count in counts:
        measured += count
    if measured < wealth.cash[NEXT_STAKE]:
        return
    first = wealth.cash[NEXT_STAKE] == 0.0
    wealth.cash[NEXT_STAKE] = tuning.restart * measured
    if len(pieces.owner) > 0:
        stake = _take_cash(wealth.cash, tuning.stake_with_epsilon)
        _receive(pieces.purse[_own_piece(pieces, lead, status)], stake + math.log(tuning.piece_share))
        _receive(wealth.mixture, stake + math.log1p(-tuning.piece_share))
    elif first:
        stake = _take_cash(wealth.cash, tuning.first_stake)
        _receive(wealth.mixture, stake + math.log1p(-ladder_share))
        for j in range(len(wealth.ladder)):
            _receive(wealth.ladder[j], stake + math.log(ladder_share / len(wealth.rung)))
    else:
        _receive(wealth.mixture, _take_cash(wealth.cash, tuning.stake))


@compiled_inner
def _take_cash(cash: FloatArray, share: float) -> float:
    """Take this share of the cash; the log of what was taken."""
    stake = float(cash[LOG_CASH] + math.log(share))
    cash[LOG_CASH] += math.log1p(-share)
    return stake


@compiled_inner
def _receive(purse: FloatArray, log_stake: float) -> None:
    """Put this stake into every purse."""
    for j in range(len(purse)):
        purse[j] = log_add(purse[j], log_stake)


@compiled_inner
def _place_bets(
    distrust: float,
    caution: float,
    gap: FloatArray,
    spread: FloatArray,
    fresh: FloatArray,  # the spread with the measurements since the lead's nomination alone
    unit: FloatArray,
    bets: Bets,
) -> None:
    """What is bet against each rival, from the past alone.

    The estimated gap of a lead is biased upwards by its selection, all of it before its nomination; so
    the centre is lowered in proportion to the share of the information that is older than that.
    """
    centre_bets(gap, spread, fresh, distrust, caution, bets.centre)
    for q in range(len(gap)):
        bets.prior[q] = spread[q]
        bets.unit[q] = unit[bets.rivals[q]]


@compiled_inner
def _bet_against_lead(lead: int, bets: Bets) -> None:
    """With one rival left, bet against the lead too: if it is not the best plan, this rival probably is."""
    bets.size[N_BETS] = bets.size[N_RIVALS]
    if bets.size[N_RIVALS] == 1:
        bets.rivals[1], bets.centre[1], bets.prior[1], bets.unit[1] = lead, 0.0, bets.prior[0], bets.unit[0]
        bets.size[N_BETS] = 2


@compiled_inner
def _divide(
    table: Table,
    lead: Lead,
    division: Division,
    rivals: IntArray,
    urgency: FloatArray,
    scratch: Scratch,
    working: Working,
) -> None:
    """New shares of cost, for the rivals that are worst off under the last shares."""
    n = _pick_worst(table, lead, division.share, rivals, urgency, scratch, working)
    ids, squares, dual = working.ids[:n], working.squares[:n], working.numbers[DUAL, :n]
    squares[:] = 0.0
    support = lead.support[: lead.whole[N_SUPPORT]]
    fill_squares(table.rows, ids, lead.vector, support, table.price, working.numbers[FACTOR], squares)
    total = 0.0
    for q in range(n):
        total += division.dual[ids[q]]
    for q in range(n):
        dual[q] = _WARMTH * division.dual[ids[q]] / max(total, _LEAST_SHARE) + (1.0 - _WARMTH) / n
    divide(squares, dual, division.share, working.inverse, working.numbers[VALUE], _STEPS, _TOLERANCE)
    division.dual[:] = 0.0
    for q in range(n):
        division.dual[ids[q]] = dual[q]


@compiled_inner
def _count(
    table: Table,
    past: Past,
    lead: Lead,
    division: Division,
    rivals: IntArray,
    urgency: FloatArray,
    scratch: Scratch,
    tuning: Tuning,
) -> None:
    """Whole counts of the block in proportion to the shares of cost; no arm of a rival is left out."""
    _price_rivals(table, lead, division.share, rivals, scratch, scratch.other)
    need = 2.0 * largest_product(urgency, scratch.other)
    scratch.differing[:] = False
    support = lead.support[: lead.whole[N_SUPPORT]]
    mark_differing(table.rows, rivals, lead.vector, support, scratch.differing)
    spent, once = 0.0, 0.0
    for s in range(len(table.costs)):
        spent += past.counts[s] * table.costs[s]
        if scratch.differing[s]:
            once += table.costs[s]
    budget = max(once, min(tuning.block_share * spent, tuning.need_share * need))
    round_shares(
        division.share,
        table.costs,
        scratch.differing,
        table.relevant,
        budget,
        tuning.side_share * budget,
        table.question.n_relevant,
        division.block,
    )


@compiled_inner
def _price_rivals(
    table: Table, lead: Lead, share: FloatArray, rivals: IntArray, scratch: Scratch, per_cost: FloatArray
) -> None:
    """The variance of each rival's gap, for one unit of cost in these shares."""
    floor = _LEAST_SHARE / len(share)
    for s in range(len(share)):
        scratch.weight[s] = table.price[s] / max(share[s], floor)
    _compare(table.rows, lead, rivals, scratch.weight, scratch.weight, per_cost, scratch.unused)


@compiled_inner
def _pick_worst(
    table: Table,
    lead: Lead,
    share: FloatArray,
    rivals: IntArray,
    urgency: FloatArray,
    scratch: Scratch,
    working: Working,
) -> int:
    """The rivals that a division looks at, in order: all, or those that are worst off; how many."""
    n, n_working, factor = len(rivals), len(working.ids), working.numbers[FACTOR]
    if n <= n_working:
        for q in range(n):
            working.ids[q], factor[q] = rivals[q], urgency[q]
        return n
    product, room = scratch.other[:n], scratch.unused[:n]
    _price_rivals(table, lead, share, rivals, scratch, product)
    for q in range(n):
        product[q] *= urgency[q]
        room[q] = product[q]
    least = _nth_largest(room, n_working)
    ties = n_working  # how many of those that equal the least still fit
    for q in range(n):
        ties -= product[q] > least
    k = 0
    for q in range(n):
        fits = product[q] == least and ties > 0
        ties -= fits
        if fits or product[q] > least:
            working.ids[k], factor[k] = rivals[q], urgency[q]
            k += 1
    return k


@compiled_inner
def _nth_largest(values: FloatArray, n: int) -> float:
    """The n-th largest number, n from 1; the values are reordered."""
    low, high, wanted = 0, len(values) - 1, n - 1
    while low < high:
        pivot = values[(low + high) // 2]
        i, j = low, high
        while i <= j:
            while values[i] > pivot:
                i += 1
            while values[j] < pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if wanted <= j:
            high = j
        elif wanted >= i:
            low = i
        else:
            break
    return float(values[wanted])
