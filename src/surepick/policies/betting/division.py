"""How the measurements of a block are divided between the arms; compiled.

None of it bears on the guarantee: a rough division costs measurements, never correctness. The shares of cost
nearly minimise the largest urgency_j sum_s price_s y_s^2 / share_s, y = lead - rival j, by the multiplicative
dual of `design`.
"""

from __future__ import annotations

import math

import numpy as np

from surepick.core.arrays import FloatArray, IntArray
from surepick.kernels.compiled import compiled_fast, compiled_inner, compiled_inner_fast
from surepick.kernels.plan_rows import NonZeros
from surepick.kernels.records import RecordArray
from surepick.policies.betting.bets import compare
from surepick.policies.betting.books import Books
from surepick.policies.betting.tuning import TUNING, block_cost

_LEAST_DEFICIT = 0.1  # nats: a rival about to be dropped still counts a little
_STEPS, _TOLERANCE = 40, 0.02
_WARMTH = 0.9  # of the start of an allocation from the last one
_LEAST_SHARE = 1e-3  # of an equal share: keeps prices finite
_STEEPNESS = 1.5  # of the multiplicative step: above 1 it converges faster, at 2 it may swing


_block_cost = compiled_inner(block_cost)


@compiled_inner
def _judge_urgency(bets: RecordArray, plans: RecordArray, target: float, smoothing: float) -> None:
    """deficit / (gap^2 + smoothing spread) of each rival, the deficit in nats to the target."""
    for bet in bets:
        deficit = min(max(target - plans[bet.rival].now, _LEAST_DEFICIT), 2.0 * target)
        ahead = max(bet.estimate, 0.0)
        bet.urgency = deficit / (ahead * ahead + smoothing * bet.prior)


@compiled_inner
def divide_cost(books: Books) -> None:
    """New shares of cost, for the rivals that are worst off under the last shares."""
    plans, division, n = books.plans, books.division, books.now.n_rivals
    bets = books.bets[:n]
    _judge_urgency(bets, plans, books.question.target, books.question.smoothing)
    if n <= len(division.chosen):
        for q in range(n):
            division.chosen[q] = q
    else:
        _price_gaps(books.rows, books.arms, books.support[: books.now.n_support], division.share, bets)
        n = _choose_worst(bets, division.needs, division.chosen)
    chosen, squares, dual = division.chosen[:n], division.squares[:n], division.dual[:n]
    fill_squares(books.rows, books.arms, books.support[: books.now.n_support], bets, chosen, squares)
    total = 0.0
    for q in chosen:
        total += plans[bets[q].rival].dual
    for k in range(n):
        warm = _WARMTH * plans[bets[chosen[k]].rival].dual / max(total, _LEAST_SHARE)
        dual[k] = warm + (1.0 - _WARMTH) / n
    divide(squares, dual, division.share, division.inverse, division.value, _STEPS, _TOLERANCE)
    for plan in plans:
        plan.dual = 0.0
    for k in range(n):
        plans[bets[chosen[k]].rival].dual = dual[k]


@compiled_inner
def count_block(books: Books) -> None:
    """Whole counts of the block in proportion to the shares of cost; no arm of a rival is left out.

    The block costs a share of all that was spent, or of what still seems to be needed if that is less; at
    least one measurement of each arm on which a rival differs from the lead.
    """
    arms, share, bets = books.arms, books.division.share, books.bets[: books.now.n_rivals]
    support = books.support[: books.now.n_support]
    _judge_urgency(bets, books.plans, books.question.target, TUNING.need_smoothing)
    _price_gaps(books.rows, arms, support, share, bets)
    need = -np.inf
    for bet in bets:
        need = max(need, bet.urgency * bet.spread)
    mark_differing(books.rows, arms, support, bets)
    spent, once = 0.0, 0.0
    for arm in arms:
        spent += arm.count * arm.cost
        if arm.differs:
            once += arm.cost
    wished = min(TUNING.block_share * spent, TUNING.need_share * (2.0 * need))
    budget = max(once, _block_cost(wished, 2.0 * need, books.question.setup_cost))
    side = TUNING.side_share * budget  # of all arms together on which no rival is left
    for s in range(len(arms)):
        arm = arms[s]
        arm.block = 0
        if arm.differs:
            arm.block = int(max(np.rint(share[s] * budget / arm.cost), 1.0))
        elif arm.is_relevant:
            arm.block = math.floor(side / (arm.cost * books.question.n_relevant))


@compiled_inner
def _price_gaps(
    rows: NonZeros, arms: RecordArray, support: IntArray, share: FloatArray, bets: RecordArray
) -> None:
    """spread: the variance of each rival's gap, for one unit of cost in the last shares."""
    floor = _LEAST_SHARE / len(share)
    for s in range(len(share)):
        arms[s].weight = arms[s].price / max(share[s], floor)
    compare(rows, arms, support, bets)


@compiled_inner
def _choose_worst(bets: RecordArray, needs: FloatArray, chosen: IntArray) -> int:
    """The bets with the largest urgency times spread, in order, as many as there is room for; how many."""
    needs = needs[: len(bets)]
    for q in range(len(bets)):
        needs[q] = bets[q].urgency * bets[q].spread
    least = nth_largest(needs, len(chosen))
    ties = len(chosen)  # how many of those that equal the least still fit
    for bet in bets:
        ties -= bet.urgency * bet.spread > least
    k = 0
    for q in range(len(bets)):
        need = bets[q].urgency * bets[q].spread
        fits = need == least and ties > 0
        ties -= fits
        if fits or need > least:
            chosen[k] = q
            k += 1
    return k


@compiled_inner
def nth_largest(values: FloatArray, n: int) -> float:
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


@compiled_inner
def mark_differing(rows: NonZeros, arms: RecordArray, support: IntArray, bets: RecordArray) -> None:
    """Mark the arms on which at least one rival differs from the lead."""
    for arm in arms:
        arm.differs = False
    for bet in bets:
        j = bet.rival
        for t in range(rows.start[j], rows.start[j + 1]):
            arm = arms[rows.where[t]]
            arm.seen = j
            if arm.lead != rows.value[t]:
                arm.differs = True
        for s in support:
            if arms[s].seen != j:
                arms[s].differs = True


@compiled_inner
def fill_squares(
    rows: NonZeros,
    arms: RecordArray,
    support: IntArray,
    bets: RecordArray,
    chosen: IntArray,
    squares: FloatArray,  # out, (n_chosen, n_arms)
) -> None:
    """squares[k, s] = urgency price_s y_s^2 of the k-th chosen bet: the dense rows of an allocation."""
    squares[:] = 0.0
    for k in range(len(chosen)):
        j, urgency = bets[chosen[k]].rival, bets[chosen[k]].urgency
        for t in range(rows.start[j], rows.start[j + 1]):
            s = rows.where[t]
            arm = arms[s]
            arm.seen = j
            y = arm.lead - rows.value[t]
            squares[k, s] = urgency * arm.price * y * y
        for s in support:
            arm = arms[s]
            if arm.seen != j:
                squares[k, s] = urgency * arm.price * arm.lead * arm.lead


@compiled_fast
def divide(
    squares: FloatArray,  # (n_rows, n_arms)
    dual: FloatArray,  # (n_rows,) in: positive start, out: how much each row binds; sums to 1
    share: FloatArray,  # out, (n_arms,): sums to 1
    inverse: FloatArray,  # scratch, (n_arms,)
    value: FloatArray,  # scratch, (n_rows,)
    steps: int,
    tolerance: float,
) -> float:
    """Shares that nearly minimise max_q sum_s squares[q, s] / share_s, and that maximum.

    The multiplicative dual of `design`: share_s in proportion to sqrt(sum_q dual_q squares_qs),
    dual_q growing where row q is worse than the average. The bracket is checked at every step.
    """
    n_rows, n_arms = squares.shape
    worst = 0.0
    for step in range(steps):
        share[:] = 0.0
        for q in range(n_rows):
            if dual[q] > 0.0:
                for s in range(n_arms):
                    share[s] += dual[q] * squares[q, s]
        total = 0.0
        for s in range(n_arms):
            share[s] = math.sqrt(share[s])
            total += share[s]
        for s in range(n_arms):
            inverse[s] = total / share[s] if share[s] > 0.0 else 0.0
        worst, average = 0.0, 0.0
        for q in range(n_rows):
            if dual[q] > 0.0:
                value[q] = 0.0
                for s in range(n_arms):
                    value[q] += squares[q, s] * inverse[s]
                worst = max(worst, value[q])
                average += dual[q] * value[q]
        if worst <= (1.0 + tolerance) * total * total or step == steps - 1:
            break
        _sharpen(dual, value, average, worst)
    for s in range(n_arms):
        share[s] /= total
    return worst


@compiled_inner_fast
def _sharpen(dual: FloatArray, value: FloatArray, average: float, worst: float) -> None:
    """One multiplicative step; rows that neither bind nor come close leave."""
    total = 0.0
    for q in range(len(dual)):
        if dual[q] > 0.0:
            dual[q] *= (value[q] / average) ** _STEEPNESS
            total += dual[q]
    for q in range(len(dual)):
        dual[q] /= total
        if dual[q] < 1e-4 / len(dual) and value[q] < 0.7 * worst:
            dual[q] = 0.0
