"""The compiled passes of BetGapE: comparing plans with the lead, settling bets, dividing measurements.

Plans are compressed rows (the non-zeros of each plan), whatever the problem keeps, so that a pass costs the
non-zeros and dense and sparse problems take the same decisions. `ids` are the plans a pass looks at, and
every output has one entry per id. Nothing here allocates; log wealth of nothing is `NOTHING`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from surepick.core.arrays import BoolArray, FloatArray, IntArray
from surepick.core.problem import Problem
from surepick.kernels.compiled import compiled, compiled_fast
from surepick.kernels.plan_rows import non_zeros_by_plan

NOTHING = -1e300  # log of an empty stake: finite, so that differences of logs stay numbers
_HALF_LOG_TWO_PI = 0.9189385332046727
_ROOT_HALF = 0.7071067811865476
_FAR_TAIL = -8.0  # below it the normal distribution function is taken from its asymptotic series
_STEEPNESS = 1.5  # of the multiplicative step: above 1 it converges faster, at 2 it may swing


class Rows(NamedTuple):
    """The plans as compressed rows."""

    start: IntArray  # (n_plans + 1,)
    arm: IntArray  # (n_non_zeros,)
    value: FloatArray  # (n_non_zeros,)
    seen: IntArray  # (n_arms,) scratch: a plan with a non-zero on this arm, the last one looked at


def make_rows(problem: Problem) -> Rows:
    """The oriented plans as compressed rows."""
    return Rows(*non_zeros_by_plan(problem), np.full(problem.n_arms, -1, dtype=np.int64))


@compiled
def evaluate(rows: Rows, mean: FloatArray, value: FloatArray) -> None:
    """The value of every plan under these means."""
    for j in range(len(value)):
        value[j] = 0.0
        for t in range(rows.start[j], rows.start[j + 1]):
            value[j] += rows.value[t] * mean[rows.arm[t]]


@compiled
def compare(
    rows: Rows,
    ids: IntArray,
    lead: FloatArray,  # (n_arms,) the lead's vector
    support: IntArray,  # its non-zero arms
    weight: FloatArray,  # (n_arms,) variance of an arm's mean; inf where there is none
    mean: FloatArray,  # (n_arms,)
    spread: FloatArray,  # out: sum_s y_s^2 weight_s, y = lead - plan
    gap: FloatArray,  # out: sum_s y_s mean_s
) -> None:
    """The gap of every plan to the lead under these means, and its variance under these weights."""
    for q in range(len(ids)):
        j = ids[q]
        total, value = 0.0, 0.0
        for t in range(rows.start[j], rows.start[j + 1]):
            s = rows.arm[t]
            rows.seen[s] = j
            y = lead[s] - rows.value[t]
            if y != 0.0:
                total += y * y * weight[s]
                value += y * mean[s]
        for t in range(len(support)):
            s = support[t]
            if rows.seen[s] != j:
                total += lead[s] * lead[s] * weight[s]
                value += lead[s] * mean[s]
        spread[q] = total
        gap[q] = value


@compiled
def weigh(variance: FloatArray, counts: IntArray, weight: FloatArray) -> None:
    """The variance of each arm's mean of so many measurements; inf for none."""
    for s in range(len(counts)):
        weight[s] = variance[s] / counts[s] if counts[s] > 0 else np.inf


@compiled
def centre_bets(
    gap: FloatArray,
    spread: FloatArray,
    fresh: FloatArray,  # the same with the measurements since the lead's nomination alone
    distrust: float,
    caution: float,
    centre: FloatArray,  # out
) -> None:
    """Below the estimated gap, the more so the more of what is known is older than the nomination."""
    for q in range(len(gap)):
        old = 1.0 - min(max(spread[q] / fresh[q], 0.0), 1.0)
        centre[q] = gap[q] - (distrust * math.sqrt(old) + caution) * math.sqrt(spread[q])


@compiled
def judge_urgency(
    ids: IntArray,
    wealth: FloatArray,  # (n_plans,)
    gap: FloatArray,
    spread: FloatArray,
    target: float,
    least: float,  # deficit
    smoothing: float,
    urgency: FloatArray,  # out
) -> None:
    """What each plan still lacks, by the square of its gap and so many squared standard errors."""
    for q in range(len(ids)):
        deficit = min(max(target - wealth[ids[q]], least), 2.0 * target)
        positive = max(gap[q], 0.0)
        urgency[q] = deficit / (positive * positive + smoothing * spread[q])


@compiled
def largest_product(first: FloatArray, second: FloatArray) -> float:
    """max_q first_q second_q."""
    largest = -np.inf
    for q in range(len(first)):
        largest = max(largest, first[q] * second[q])
    return largest


@compiled
def round_shares(
    share: FloatArray,
    costs: FloatArray,
    differing: BoolArray,
    relevant: BoolArray,
    budget: float,
    side: float,  # budget of all arms together on which no rival is left
    n_relevant: int,
    counts: IntArray,  # out
) -> None:
    """Whole counts for these shares of the budget: at least one of each differing arm."""
    for s in range(len(counts)):
        if differing[s]:
            counts[s] = int(max(np.rint(share[s] * budget / costs[s]), 1.0))
        elif relevant[s]:
            counts[s] = math.floor(side / (costs[s] * n_relevant))
        else:
            counts[s] = 0


@compiled
def mark_differing(
    rows: Rows, ids: IntArray, lead: FloatArray, support: IntArray, differing: BoolArray
) -> None:
    """Mark the arms on which at least one of these plans differs from the lead."""
    for q in range(len(ids)):
        j = ids[q]
        for t in range(rows.start[j], rows.start[j + 1]):
            s = rows.arm[t]
            rows.seen[s] = j
            if lead[s] != rows.value[t]:
                differing[s] = True
        for t in range(len(support)):
            if rows.seen[support[t]] != j:
                differing[support[t]] = True


@compiled
def fill_squares(
    rows: Rows,
    ids: IntArray,
    lead: FloatArray,
    support: IntArray,
    price: FloatArray,  # (n_arms,) variance times cost of one measurement
    factor: FloatArray,  # one per id
    squares: FloatArray,  # out, (n_ids, n_arms), zeros on entry
) -> None:
    """squares[q, s] = factor_q price_s y_s^2: the dense rows of an allocation."""
    for q in range(len(ids)):
        j = ids[q]
        for t in range(rows.start[j], rows.start[j + 1]):
            s = rows.arm[t]
            rows.seen[s] = j
            y = lead[s] - rows.value[t]
            squares[q, s] = factor[q] * price[s] * y * y
        for t in range(len(support)):
            s = support[t]
            if rows.seen[s] != j:
                squares[q, s] = factor[q] * price[s] * lead[s] * lead[s]


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


@compiled_fast
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


@compiled
def log_normal_cdf(x: float) -> float:
    """log Phi(x), also far in the tail."""
    if x > _FAR_TAIL:
        return math.log(0.5 * math.erfc(-x * _ROOT_HALF))
    inverse = 1.0 / (x * x)
    return -0.5 * x * x - math.log(-x) - _HALF_LOG_TWO_PI + math.log1p(-inverse + 3.0 * inverse * inverse)


@compiled
def log_add(first: float, second: float) -> float:
    """log(exp(first) + exp(second))."""
    top = max(first, second)
    return top + math.log1p(math.exp(min(first, second) - top))


@compiled
def log_mixture(gap: float, spread: float, centre: float, prior: float) -> float:
    """log of the mean of exp((g gap - g^2/2) / spread) over g ~ N(centre, prior) given g > 0."""
    posterior = 1.0 / (1.0 / prior + 1.0 / spread)
    mode = posterior * (centre / prior + gap / spread)
    return (
        0.5 * math.log(posterior / prior)
        + mode * mode / (2.0 * posterior)
        - centre * centre / (2.0 * prior)
        + log_normal_cdf(mode / math.sqrt(posterior))
        - log_normal_cdf(centre / math.sqrt(prior))
    )


@compiled
def settle_mixture(
    ids: IntArray,
    gap: FloatArray,
    spread: FloatArray,
    centre: FloatArray,
    prior: FloatArray,
    purse: FloatArray,  # (n_plans,) log wealth, changed
) -> None:
    """Multiply each plan's purse by its mixture bet on this block; none where the centre is negative."""
    for q in range(len(ids)):
        if centre[q] >= 0.0:
            purse[ids[q]] += log_mixture(gap[q], spread[q], centre[q], prior[q])


@compiled
def settle_ladder(
    ids: IntArray,
    gap: FloatArray,
    spread: FloatArray,
    rung: FloatArray,  # (n_rungs,)
    unit: FloatArray,  # per id: what a rung is a multiple of
    purse: FloatArray,  # (n_plans, n_rungs) log wealth, changed
) -> None:
    """Multiply each rung's purse by exp((g gap - g^2/2) / spread) for its own fixed g."""
    for q in range(len(ids)):
        j = ids[q]
        for r in range(len(rung)):
            g = rung[r] * unit[q]
            purse[j, r] += (g * gap[q] - 0.5 * g * g) / spread[q]


@compiled
def add_up(
    ids: IntArray, log_cash: float, mixture: FloatArray, ladder: FloatArray, wealth: FloatArray
) -> None:
    """wealth_q = log of cash, mixture purse and all ladder purses of plan ids[q] together."""
    for q in range(len(ids)):
        j = ids[q]
        top = max(log_cash, mixture[j])
        for r in range(ladder.shape[1]):
            top = max(top, ladder[j, r])
        total = math.exp(log_cash - top) + math.exp(mixture[j] - top)
        for r in range(ladder.shape[1]):
            total += math.exp(ladder[j, r] - top)
        wealth[q] = top + math.log(total)
