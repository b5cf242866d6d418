"""The steps of a block of BetGapE, compiled: open it, settle its bets, choose the lead.

`advance` is the only function that Python calls: records by their address, one wide function instead of four.
Step by step and driven a run goes through the same machine code. Nothing here allocates.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from surepick.core.arrays import FloatArray, IntArray
from surepick.kernels.compiled import compiled, compiled_inner
from surepick.kernels.plan_rows import NonZeros
from surepick.kernels.records import RecordArray
from surepick.policies.betting.bets import (
    compare,
    log_add,
    log_mixture,
    log_mixture_by_variance,
    settle_ladder,
    settle_ladder_by_variance,
)
from surepick.policies.betting.books import NOTHING, Books, Now, Pieces, Question
from surepick.policies.betting.division import count_block, divide_cost
from surepick.policies.betting.tuning import TUNING

SETTLE, CHOOSE, OPEN, DRIVE = range(4)


class World(NamedTuple):
    """Normal measurements to drive a run with."""

    means: FloatArray  # (n_arms,)
    scale: FloatArray  # (n_arms,)
    draws: FloatArray  # standard normal, one for each arm of a block


NO_WORLD = World(np.empty(0), np.empty(0), np.empty(0))  # of a single step


@compiled
def advance(books: Books, step: int, world: World, budget: int) -> tuple[int, int]:
    """Take one step; or DRIVE: measure the open block, take all three, and again, while the budget lasts.

    How many draws were used, and how many blocks measured; it ends when the run stops, too. The next block is
    open afterwards, unless stopped.
    """
    arms, used, n_blocks = books.arms, 0, 0
    while step != DRIVE or not books.now.is_stopped:
        if step == DRIVE:
            n_measured, n_drawn = 0, 0
            for arm in arms:
                n_measured += arm.block
                n_drawn += arm.block > 0
            if n_measured > budget or used + n_drawn > len(world.draws):
                break
            _measure(arms, world, used)
            used, budget, n_blocks = used + n_drawn, budget - n_measured, n_blocks + 1
        if step in (SETTLE, DRIVE):
            settle_block(books)
        if step == DRIVE:
            for arm in arms:
                arm.count += arm.block
                arm.total += arm.block_sum
        if step in (CHOOSE, DRIVE):
            choose_lead(books)
        if step in (OPEN, DRIVE):
            open_block(books)
            if not books.now.is_stopped:
                divide_cost(books)
                count_block(books)
        if step != DRIVE:
            break
    return used, n_blocks


@compiled_inner
def _measure(arms: RecordArray, world: World, used: int) -> None:
    """The sums of the open block, with the draws from this one on."""
    for s in range(len(arms)):
        arm = arms[s]
        arm.block_sum = 0.0
        if arm.block > 0:
            noise = math.sqrt(arm.block) * world.scale[s] * world.draws[used]
            arm.block_sum = arm.block * world.means[s] + noise
            used += 1


@compiled_inner
def open_block(books: Books) -> None:
    """The bets of the next block, from the past alone; or the stop, when no rival is left."""
    question, now, rows, arms = books.question, books.now, books.rows, books.arms
    now.n_rivals = now.n_bets = _find_rivals(books.plans, books.bets, books.pieces, now.lead, question.target)
    if now.n_rivals == 0:
        now.is_stopped = True
        return
    bets, support = books.bets[: now.n_rivals], books.support[: now.n_support]
    _estimate(rows, arms, support, bets)
    for bet in bets:
        bet.estimate, bet.prior = bet.gap, bet.spread
    measured = 0.0
    for arm in arms:
        measured += arm.count + arm.past
    if measured >= now.next_stake and _is_ripe(question.epsilon, bets):
        _put_stakes(now, books.plans, books.ladder, books.pieces, question.ladder_share)
        now.next_stake = TUNING.restart * measured
    first = books.nominations.counts[_slot_of(books.nominations.slots, now)]
    for s in range(len(arms)):
        arms[s].weight = _mean_variance(arms[s].variance, float(arms[s].count - first[s]))
    compare(rows, arms, support, bets)
    _place_bets(question.distrust, books.plans, bets)
    if now.n_rivals == 1:
        _bet_against_lead(books.bets, now)
    if question.epsilon > 0.0:
        for bet in bets:
            bet.estimate += question.epsilon


@compiled_inner
def settle_block(books: Books) -> None:
    """Multiply every stake by its bet's factor, a function of what this block alone has shown."""
    now, arms, epsilon = books.now, books.arms, books.question.epsilon
    variance_alone = books.question.variance_alone
    bets, rivals = books.bets[: now.n_bets], books.bets[: now.n_rivals]
    for arm in arms:
        arm.average = arm.block_sum / arm.block if arm.block > 0 else 0.0
        arm.weight = _mean_variance(arm.variance, float(arm.block))
    compare(books.rows, arms, books.support[: now.n_support], rivals)
    if now.n_bets > now.n_rivals:
        bets[1].gap, bets[1].spread = -bets[0].gap, bets[0].spread
    for bet in bets:
        if bet.centre >= 0.0:
            plan = books.plans[bet.rival]
            plan.mixture += _log_mixture(variance_alone, bet.gap, bet.spread, bet.centre, bet.prior)
        if variance_alone:
            settle_ladder_by_variance(bet.gap, bet.spread, bet.unit, books.rung, books.ladder[bet.rival])
        else:
            settle_ladder(bet.gap, bet.spread, bet.unit, books.rung, books.ladder[bet.rival])
    slot = -1
    if epsilon > 0.0:
        slot = _own_piece(books.pieces, now)
        purse = books.pieces.purse[slot]
        for bet in rivals:
            gap, centre = bet.gap + epsilon, bet.centre + epsilon
            if centre >= 0.0:
                purse[bet.rival] += _log_mixture(variance_alone, gap, bet.spread, centre, bet.prior)
    _count_wealth(books, slot, bets)


@compiled_inner
def _log_mixture(variance_alone: bool, gap: float, spread: float, centre: float, prior: float) -> float:
    """The log factor of the mixture, by what is known of the noise."""
    if variance_alone:
        return float(log_mixture_by_variance(gap, spread, centre, prior))
    return float(log_mixture(gap, spread, centre, prior))


@compiled_inner
def choose_lead(books: Books) -> None:
    """The plan that looks best now, ruled out or not: a lead that was dropped by bad luck must lead."""
    now, rows, arms, bets = books.now, books.rows, books.arms, books.bets
    question, nominations = books.question, books.nominations
    now.is_stopped = False  # a stop is decided anew, with all that is known
    for arm in arms:
        n = arm.count + arm.past
        arm.average = (arm.total + arm.past_total) / n if n > 0.0 else 0.0
    best = _best_looking(rows, arms)
    if best == now.lead:
        return
    if question.epsilon > 0.0 and now.lead >= 0:
        single = books.single[0]
        single.rival = best
        _estimate(rows, arms, books.support[: now.n_support], books.single)
        if _stays(question, -single.gap, single.spread, books.plans[best].now):
            return
    _follow(rows, best, arms, books.support, now)
    for j in range(len(bets)):
        bets[j].rival = j
    for arm in arms:
        arm.weight = arm.variance
    compare(rows, arms, books.support[: now.n_support], bets)
    for j in range(len(bets)):
        books.plans[j].unit = math.sqrt(bets[j].spread)
    slot = _slot_of(nominations.slots, now)
    if nominations.slots[slot].owner != best:
        nominations.slots[slot].owner = best
        for s in range(len(arms)):
            nominations.counts[slot, s] = arms[s].count
    if question.epsilon > 0.0:
        now.next_stake = 0.0  # its piece is empty: a stake as soon as it is ripe
        _count_wealth(books, _find_slot(books.pieces.slots, best), bets)


@compiled_inner
def _estimate(rows: NonZeros, arms: RecordArray, support: IntArray, bets: RecordArray) -> None:
    """The estimated gap of the lead to each rival, and its variance, by all that is known."""
    for arm in arms:
        arm.weight = _mean_variance(arm.variance, arm.count + arm.past)
    compare(rows, arms, support, bets)


@compiled_inner
def _mean_variance(variance: float, n: float) -> float:
    """The variance of the mean of n measurements; inf for none."""
    return variance / n if n > 0 else math.inf


@compiled_inner
def _best_looking(rows: NonZeros, arms: RecordArray) -> int:
    """The plan of the largest value under the means of the arms, the first of equals."""
    best, largest = 0, -math.inf
    for j in range(len(rows.start) - 1):
        value = 0.0
        for t in range(rows.start[j], rows.start[j + 1]):
            value += rows.value[t] * arms[rows.where[t]].average
        if value > largest:
            best, largest = j, value
    return best


@compiled_inner
def _stays(question: Question, behind: float, spread: float, against: float) -> bool:
    """With epsilon, whether a lead this far behind the best-looking plan is not worth changing.

    Its piece needs deficit / (epsilon - behind)^2 more, that of a new lead all of it, and a stake. `against`
    is the log wealth of the bets against the best-looking plan.
    """
    room = 1.0 - behind / question.epsilon
    deficit = max(question.target - against, 0.0) / (question.target + TUNING.new_lead)
    return behind <= TUNING.keep_gap * math.sqrt(spread) or (room > 0.0 and room * room >= deficit)


@compiled_inner
def _follow(rows: NonZeros, plan: int, arms: RecordArray, support: IntArray, now: Now) -> None:
    """Make this plan the lead."""
    for arm in arms:
        arm.lead = 0.0
    first, last = rows.start[plan], rows.start[plan + 1]
    for t in range(first, last):
        arms[rows.where[t]].lead = rows.value[t]
        support[t - first] = rows.where[t]
    now.lead, now.n_support = plan, last - first


@compiled_inner
def _find_rivals(plans: RecordArray, bets: RecordArray, pieces: Pieces, lead: int, target: float) -> int:
    """Bet against the plans that may still be better than the lead, by more than epsilon; how many."""
    slot, n = _find_slot(pieces.slots, lead), 0
    for j in range(len(plans)):
        largest = plans[j].peak
        if slot >= 0:
            largest = max(largest, pieces.peak[slot, j])
        if j != lead and largest < target:
            bets[n].rival = j
            n += 1
    return n


@compiled_inner
def _is_ripe(epsilon: float, bets: RecordArray) -> bool:
    """With epsilon, whether the lead is so far ahead of every rival that a stake on its piece can win."""
    if epsilon > 0.0:
        for bet in bets:
            if bet.gap + epsilon < TUNING.ripe * math.sqrt(bet.spread):
                return False
    return True


@compiled_inner
def _put_stakes(
    now: Now, plans: RecordArray, ladder: FloatArray, pieces: Pieces, ladder_share: float
) -> None:
    """At the start, and whenever the measurements have grown enough, put some of the cash on bets.

    All plans alike, and cash is never used up: a bad start cannot ruin a wealth. With epsilon, where there
    are pieces, most of a stake goes on the lead's.
    """
    n_rungs = ladder.shape[1]
    if len(pieces.slots) > 0:
        stake = _take_cash(now, TUNING.stake_with_epsilon)
        purse = pieces.purse[_own_piece(pieces, now)]
        for j in range(len(plans)):
            purse[j] = log_add(purse[j], stake + math.log(TUNING.piece_share))
        stake += math.log1p(-TUNING.piece_share)
    elif now.next_stake == 0.0:
        stake = _take_cash(now, TUNING.first_stake)
        for j in range(len(plans)):
            for r in range(n_rungs):
                stake_of_rung = stake + math.log(ladder_share / n_rungs)
                ladder[j, r] = log_add(ladder[j, r], stake_of_rung)
        stake += math.log1p(-ladder_share)
    else:
        stake = _take_cash(now, TUNING.stake)
    for plan in plans:
        plan.mixture = log_add(plan.mixture, stake)


@compiled_inner
def _take_cash(now: Now, share: float) -> float:
    """Take this share of the cash; the log of what was taken."""
    stake = float(now.log_cash + math.log(share))
    now.log_cash += math.log1p(-share)
    return stake


@compiled_inner
def _place_bets(distrust: float, plans: RecordArray, bets: RecordArray) -> None:
    """What is bet against each rival, from the past alone; `spread` is that since the lead's nomination.

    The estimated gap of a lead is biased upwards by its selection, all of it before its nomination; so
    the centre is lowered in proportion to the share of the information that is older than that.
    """
    for bet in bets:
        old = 1.0 - min(max(bet.prior / bet.spread, 0.0), 1.0)
        errors = distrust * math.sqrt(old) + TUNING.caution
        bet.centre = bet.estimate - errors * math.sqrt(bet.prior)
        bet.unit = plans[bet.rival].unit


@compiled_inner
def _bet_against_lead(bets: RecordArray, now: Now) -> None:
    """With one rival left, bet against the lead too: if it is not the best plan, this rival probably is."""
    only, other = bets[0], bets[1]
    other.rival, other.centre, other.prior, other.unit = now.lead, 0.0, only.prior, only.unit
    now.n_bets = 2


@compiled_inner
def _count_wealth(books: Books, slot: int, bets: RecordArray) -> None:
    """Bring log wealth and its peaks up to date; a plan whose peak reaches log(1/delta) is ruled out."""
    cash, pieces = books.now.log_cash, books.pieces
    for bet in bets:
        j = bet.rival
        plan = books.plans[j]
        total = _add_up(cash, plan.mixture, books.ladder[j])
        plan.peak = max(plan.peak, total)
        if slot >= 0:
            total = log_add(total, pieces.purse[slot, j])
            pieces.peak[slot, j] = max(pieces.peak[slot, j], total)
        plan.now = total


@compiled_inner
def _add_up(log_cash: float, mixture: float, ladder: FloatArray) -> float:
    """log of cash, mixture purse and all ladder purses together."""
    top = max(log_cash, mixture)
    for purse in ladder:
        top = max(top, purse)
    total = math.exp(log_cash - top) + math.exp(mixture - top)
    for purse in ladder:
        total += math.exp(purse - top)
    return top + math.log(total)


@compiled_inner
def _find_slot(slots: RecordArray, lead: int) -> int:
    """Which slot this lead has, or -1."""
    for k in range(len(slots)):
        if slots[k].owner == lead:
            return k
    return -1


@compiled_inner
def _slot_of(slots: RecordArray, now: Now) -> int:
    """The slot of the lead, or else the one that was not used for longest; it counts as used now."""
    slot = 0
    for k in range(len(slots)):
        if slots[k].owner == now.lead:
            slot = k
            break
        if slots[k].used < slots[slot].used:
            slot = k
    now.clock += 1
    slots[slot].used = now.clock
    return slot


@compiled_inner
def _own_piece(pieces: Pieces, now: Now) -> int:
    """The piece of the lead; an old one may be forgotten for it, which only loses wealth."""
    slot = _slot_of(pieces.slots, now)
    if pieces.slots[slot].owner != now.lead:
        pieces.slots[slot].owner = now.lead
        pieces.purse[slot] = NOTHING
        pieces.peak[slot] = 0.0
    return slot
