"""The compiled round of Thompson-sampling policies: the winner of M draws without making them all.

A round of GenTS-Explore draws M parameters theta^m and asks which plan k beats the lead i by most in any of
them. With y_k = plan_k - lead, gap_k = the estimated lead over plan k, and D_s the standard deviation of
theta_s, the margin of plan k in a draw is v_k = sum_s y_ks D_s z_s - gap_k with z ~ N(0, I); its standard
deviation is sd_k. Wanted: the largest margin of all plans in all M independent draws, and its plan; if no
margin is positive, the policy stops.

**Exact in law, by thinning.** Fix a level u >= 0 and let p_k = P(v_k > u), a normal tail, with
S = sum_k p_k <= 1. For one draw: with probability S make a proposal: plan k with probability p_k / S, its
margin v from the normal tail above u, and z from its law given that margin. Accept when k has the largest
margin of all plans. For every z whose largest margin, that of k, exceeds u, the density of "proposed and
accepted" is S (p_k/S) density(z) / p_k = density(z), because only its own winner can propose it and be
accepted. So accepted proposals are exactly the draws whose largest margin exceeds u, with their winners, and
a draw without one has no margin above u. Hence:

- the number of proposals in M draws is Binomial(M, S); each is first only a pair (k, v);
- taken in the order of falling v, the first one accepted is the winner of all M draws, so only a few vectors z
  are ever made;
- none accepted and u = 0: no plan beats the lead in any draw;
- none accepted and u > 0: every draw is now known to have its largest margin at most u, and a lower level is
  tried under that condition (a draw that breaks it is drawn again); if S would exceed `LARGEST_SHARE`, the
  M draws are made one by one under it.

The level only steers the work. p_k is summed for the plans within `REACH` of the level; the others share one
proposal of probability Q(REACH) each, thinned to their own p_k. A far plan is shown not to have the largest
margin by Cauchy-Schwarz, |v_k + gap_k| <= sd_k |z|, or else computed. Nothing is left out.

Cost of a round: four passes over the plans, and for each vector z one product with the plans that the bound
leaves over.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from surepick import kernels
from surepick.compiled import compiled, compiled_fast
from surepick.kernels import Feed, Field, Race
from surepick.problem import FloatArray, IntArray
from surepick.round_words import (
    N_WORDS,
    WordArray,
    first_words,
    next_word,
    normal_above,
    normal_pair,
    uniform,
)

WANTED = 4.0  # the level is set where the likeliest plan has this many of the M draws above it
FEWER = 0.25  # and moved up by so much where too many plans do
LARGEST_SHARE = 0.5  # of the M draws that may make a proposal
REACH = 2.5  # standard deviations beyond the level's own within which tails are summed plan by plan
NO_PLAN = -1


class Scratch(NamedTuple):
    """Room for one round; nothing in it outlives the round."""

    sd: FloatArray  # (width,) standard deviation of theta.(plan - lead)
    close: IntArray  # (width,) plans within reach of the level
    share: FloatArray  # (width,) cumulative p_k of those
    plan: IntArray  # (n_draws,) proposals: who
    margin: FloatArray  # (n_draws,) and by how much
    noise: FloatArray  # (n_arms,) theta - means
    scale: FloatArray  # (n_arms,) D_s
    words: WordArray  # (4,) the generator


def make_scratch(race: Race, n_draws: int) -> Scratch:
    """Room for rounds of at most `n_draws` draws."""
    width, n_arms = len(race.value), len(race.counts)
    return Scratch(
        sd=np.zeros(width),
        close=np.zeros(width, dtype=np.int64),
        share=np.zeros(width),
        plan=np.zeros(n_draws, dtype=np.int64),
        margin=np.zeros(n_draws),
        noise=np.zeros(n_arms),
        scale=np.zeros(n_arms),
        words=np.zeros(N_WORDS, dtype=np.uint64),
    )


@compiled
def log_factor(n_measured: int, log_plans: float, log_delta: float) -> float:
    """L = log(12 K^2 t^2 / delta), t = measurements so far + 1."""
    return math.log(12.0) + 2.0 * log_plans + 2.0 * math.log(n_measured + 1.0) - log_delta


@compiled
def advance(
    field: Field,
    race: Race,
    scratch: Scratch,
    feed: Feed,
    draws: FloatArray,
    entropy: IntArray,
    first_round: int,
    quantile: float,
    q: float,
    n_plans: int,
) -> int:
    """Measure the arm decided on and decide again, once per draw or until the stop; how often.

    The decision after draw i is that of round first_round + i + 1.
    """
    for used in range(len(draws)):
        arm = race.integers[kernels.ARM]
        absorb(field, race, arm, kernels.measured(feed, arm, draws[used]), n_plans)
        first_words(entropy, first_round + used + 1, scratch.words)
        decide(field, race, scratch, quantile, q, n_plans)
        if race.integers[kernels.STOPPED]:
            return used + 1
    return len(draws)


@compiled
def absorb(field: Field, race: Race, arm: int, x: float, n_plans: int) -> None:
    """Take in one measurement: values and spreads along one column, and the lead."""
    kernels.absorb_one(field, race, arm, x)
    if race.integers[kernels.FRESH] >= kernels.REFRESH:
        kernels.refresh(field, race, n_plans)
        return
    lead = _argmax(race.value, n_plans)
    if lead != race.integers[kernels.LEAD]:
        race.integers[kernels.LEAD] = lead
        kernels.relead(field, race, n_plans)


@compiled_fast
def _largest(value: FloatArray, n: int) -> float:
    top = value[0]
    for k in range(n):
        top = max(top, value[k])
    return top


@compiled
def _argmax(value: FloatArray, n: int) -> int:
    top = _largest(value, n)
    for k in range(n):
        if value[k] == top:
            return k
    return 0


@compiled
def decide(field: Field, race: Race, scratch: Scratch, quantile: float, q: float, n_plans: int) -> None:
    """Draw the round from `scratch.words`: set the rival and the arm, or the stop."""
    floats = race.floats
    factor = log_factor(race.integers[kernels.MEASURED], floats[kernels.LOG_PLANS], floats[kernels.LOG_DELTA])
    kappa = 4.0 * factor / (quantile * quantile)  # C / R^2
    n_draws = int(math.ceil(factor / q))
    _set_scales(race.weight, scratch.scale, kappa)
    _set_sds(race.spread, scratch.sd, kappa, floats[kernels.OFF_SPREAD], n_plans)
    rival, margin = _winner(field, race, scratch, n_draws, n_plans)
    race.integers[kernels.STOPPED] = rival == NO_PLAN
    if rival != NO_PLAN:
        race.integers[kernels.RIVAL] = rival
        race.floats[kernels.SCORE] = margin
        kernels.choose_arm(field, race)


@compiled_fast
def _set_scales(weight: FloatArray, scale: FloatArray, kappa: float) -> None:
    for s in range(len(weight)):
        scale[s] = math.sqrt(kappa * weight[s])


@compiled_fast
def _set_sds(spread: FloatArray, sd: FloatArray, kappa: float, offset: float, n: int) -> None:
    for k in range(n):
        sd[k] = math.sqrt(kappa * max(spread[k] + offset, 0.0))


@compiled
def _winner(field: Field, race: Race, scratch: Scratch, n_draws: int, n_plans: int) -> tuple[int, float]:
    """The plan with the largest margin in n_draws draws, and that margin; NO_PLAN if none is positive."""
    ceiling, wanted = math.inf, WANTED
    while True:
        level, reach, n_close, total = _set_level(race, scratch, wanted / n_draws, n_plans)
        if level >= ceiling:
            return _one_by_one(field, race, scratch, ceiling, n_draws, n_plans)
        n = _propose(race, scratch, level, reach, n_close, total, n_draws, n_plans)
        for at in range(n):  # draws that break the condition are drawn again
            while scratch.margin[at] > ceiling and _wins(field, race, scratch, at, n_close, n_plans):
                scratch.margin[at] = -math.inf
                if uniform(scratch.words) < total:
                    _fill(race, scratch, at, level, reach, n_close, total, n_plans)
            if scratch.margin[at] > ceiling:
                scratch.margin[at] = -math.inf
        while True:
            at = _top(scratch.margin, n)
            if at < 0:
                break
            if _wins(field, race, scratch, at, n_close, n_plans):
                return scratch.plan[at], scratch.margin[at]
            scratch.margin[at] = -math.inf
        if level == 0.0:
            return NO_PLAN, 0.0
        ceiling, wanted = level, wanted / FEWER


@compiled
def _set_level(
    race: Race, scratch: Scratch, tail: float, n_plans: int
) -> tuple[float, float, int, float]:
    """A level at which the likeliest plan has probability `tail` or less, and the tails of all plans there.

    Returns the level, the reach, the number of close plans and the probability S of a proposal.
    """
    top = race.value[race.integers[kernels.LEAD]]
    while True:
        x = _upper_quantile(tail)
        level = max(0.0, _best_score(race.value, scratch.sd, x, n_plans) - top)
        reach = x + REACH
        n_close = _find_close(race.value, scratch.sd, top + level, reach, scratch.close, n_plans)
        total = 0.0
        for i in range(n_close):
            k = scratch.close[i]
            total += _tail((top - race.value[k] + level) / scratch.sd[k])
            scratch.share[i] = total
        total += n_plans * _tail(reach)
        if total <= LARGEST_SHARE:
            return level, reach, n_close, total
        tail *= FEWER


@compiled
def _upper_quantile(p: float) -> float:
    """About the x with P(N(0,1) > x) = p (Abramowitz & Stegun 26.2.23, error 5e-4): it only sets the level."""
    r = math.sqrt(-2.0 * math.log(min(p, 0.5)))
    top = 2.515517 + r * (0.802853 + r * 0.010328)
    return max(0.0, r - top / (1.0 + r * (1.432788 + r * (0.189269 + r * 0.001308))))


@compiled
def _tail(x: float) -> float:
    """P(N(0,1) > x)."""
    return 0.5 * math.erfc(x * math.sqrt(0.5))


@compiled_fast
def _best_score(value: FloatArray, sd: FloatArray, x: float, n: int) -> float:
    best = value[0] + x * sd[0]
    for k in range(n):
        best = max(best, value[k] + x * sd[k])
    return best


@compiled
def _find_close(
    value: FloatArray, sd: FloatArray, height: float, reach: float, close: IntArray, n: int
) -> int:
    """List the plans with value + reach sd > height; the lead, with sd 0, is not one of them."""
    count = 0
    for k in range(n):
        close[count] = k
        count += value[k] + reach * sd[k] > height
    return count


@compiled
def _propose(
    race: Race,
    scratch: Scratch,
    level: float,
    reach: float,
    n_close: int,
    total: float,
    n_draws: int,
    n_plans: int,
) -> int:
    """The proposals of n_draws draws, each making one with probability `total`; how many."""
    n, at = 0, -1
    log_miss = math.log1p(-total)
    while True:
        skip = math.log(uniform(scratch.words)) / log_miss  # draws without a proposal before the next
        if skip >= n_draws - 1 - at:
            return n
        at += int(skip) + 1
        _fill(race, scratch, n, level, reach, n_close, total, n_plans)
        n += 1


@compiled
def _fill(
    race: Race,
    scratch: Scratch,
    at: int,
    level: float,
    reach: float,
    n_close: int,
    total: float,
    n_plans: int,
) -> None:
    """Choose the plan and the margin of one proposal; -inf where the far plan chosen was thinned away."""
    mark = uniform(scratch.words) * total
    scratch.margin[at] = -math.inf
    top = race.value[race.integers[kernels.LEAD]]
    if n_close > 0 and mark < scratch.share[n_close - 1]:
        i = np.searchsorted(scratch.share[:n_close], mark, side="right")
        k = scratch.close[i]
        x = (top - race.value[k] + level) / scratch.sd[k]
    else:
        k = int(uniform(scratch.words) * n_plans)
        near = race.value[k] + reach * scratch.sd[k] > top + level
        if near or k == race.integers[kernels.LEAD]:
            return
        x = (top - race.value[k] + level) / scratch.sd[k]
        if uniform(scratch.words) * _tail(reach) >= _tail(x):
            return
    scratch.plan[at] = k
    scratch.margin[at] = scratch.sd[k] * normal_above(x, scratch.words) - (top - race.value[k])


@compiled
def _top(margin: FloatArray, n: int) -> int:
    best, at = -math.inf, -1
    for i in range(n):
        if margin[i] > best:
            best, at = margin[i], i
    return at


@compiled
def _wins(field: Field, race: Race, scratch: Scratch, at: int, n_close: int, n_plans: int) -> bool:
    """Complete proposal `at` to a whole draw and say whether its plan has the largest margin there."""
    k, margin = scratch.plan[at], scratch.margin[at]
    length = _draw_given(field, race, scratch, k, margin)
    height = race.value[k] + _product(field, race, k, scratch.noise)
    for i in range(n_close):
        other = scratch.close[i]
        if other != k and race.value[other] + _product(field, race, other, scratch.noise) > height:
            return False
    goal = race.value[race.integers[kernels.LEAD]] + margin
    for other in range(n_plans):
        if race.value[other] + scratch.sd[other] * length < goal or other == k:
            continue  # Cauchy-Schwarz: its margin is smaller
        if race.value[other] + _product(field, race, other, scratch.noise) > height:
            return False
    return True


@compiled
def _draw_given(field: Field, race: Race, scratch: Scratch, k: int, margin: float) -> float:
    """theta - means given that plan k has this margin, into `scratch.noise`; the length of z, rounded up.

    z = z0 + a (t - a.z0) with z0 ~ N(0, I), a the direction D y_k / sd_k and t = (margin + gap_k) / sd_k.
    """
    _draw_all(field, scratch)
    t = (margin + race.value[race.integers[kernels.LEAD]] - race.value[k]) / scratch.sd[k]
    along = 0.0
    for arm in field.arms:
        along += (_entry(field, race, k, arm) - race.lead_row[arm]) * scratch.scale[arm] * scratch.noise[arm]
    shift = (t - along / scratch.sd[k]) / scratch.sd[k]
    square = 0.0
    for arm in field.arms:
        y = _entry(field, race, k, arm) - race.lead_row[arm]
        z = scratch.noise[arm] + y * scratch.scale[arm] * shift
        square += z * z
        scratch.noise[arm] = z * scratch.scale[arm]
    return math.sqrt(square) * (1.0 + 1e-9)


@compiled
def _draw_all(field: Field, scratch: Scratch) -> None:
    """Fresh standard normal numbers for the arms, into `scratch.noise`."""
    n = len(field.arms)
    for i in range(0, n - 1, 2):
        scratch.noise[field.arms[i]], scratch.noise[field.arms[i + 1]] = normal_pair(scratch.words)
    if n % 2:
        scratch.noise[field.arms[n - 1]], _ = normal_pair(scratch.words)


@compiled
def _entry(field: Field, race: Race, k: int, arm: int) -> float:
    if not race.integers[kernels.SPARSE]:
        return field.rows[k, arm]
    start, end = field.row_start[k], field.row_start[k + 1]
    at = start + np.searchsorted(field.row_arm[start:end], arm)
    return field.row_value[at] if at < end and field.row_arm[at] == arm else 0.0


@compiled
def _product(field: Field, race: Race, k: int, noise: FloatArray) -> float:
    """plan_k . noise."""
    if not race.integers[kernels.SPARSE]:
        return _dot(field.rows[k], noise)
    total = 0.0
    for at in range(field.row_start[k], field.row_start[k + 1]):
        total += field.row_value[at] * noise[field.row_arm[at]]
    return total


@compiled_fast
def _dot(row: FloatArray, noise: FloatArray) -> float:
    total = 0.0
    for s in range(len(noise)):
        total += row[s] * noise[s]
    return total


@compiled
def _one_by_one(
    field: Field, race: Race, scratch: Scratch, ceiling: float, n_draws: int, n_plans: int
) -> tuple[int, float]:
    """The same winner from n_draws whole draws, each made again until its largest margin is below `ceiling`."""
    winner, largest = NO_PLAN, 0.0
    lead = race.integers[kernels.LEAD]
    for _ in range(n_draws):
        while True:
            _draw_all(field, scratch)
            for arm in field.arms:
                scratch.noise[arm] *= scratch.scale[arm]
            home = race.value[lead] + _product(field, race, lead, scratch.noise)
            best, who = 0.0, NO_PLAN
            for k in range(n_plans):
                margin = race.value[k] + _product(field, race, k, scratch.noise) - home
                if k != lead and margin > best:
                    best, who = margin, k
            if best <= ceiling:
                break
        if best > largest:
            largest, winner = best, who
    return winner, largest
