"""The compiled loops: one round of a sequential gap policy in one pass over the plans.

The state keeps, for the current lead i, each plan's estimated value and its pair spread and threshold
against i (see `radius`). Measuring arm p changes one mean and one count, so values, spreads and thresholds
change along one column of the plan matrix. Only a change of lead costs a pass over all of the plans.

Finding the rival needs score_k = value_k + sqrt(2 spread_k threshold_k) for every plan, and the square root
is the most expensive part. With any a > 0, sqrt(q) <= (q/a + a)/2, tight when a is near sqrt(q). So a stale
root a is kept for each plan, the cheap bound is computed for all, and the exact score only where the bound
can still win. The argmax is exact.

Thin plans touch only their non-zeros: what a measurement of an arm of the lead does to all plans that do not
use that arm is kept in two offsets.

Rounding drift is cut by recomputing everything every `REFRESH` rounds, and before every stop. Both the
step-by-step run and the compiled driver execute `advance`, so they take the same decisions to the last bit.
Ties go to the lowest index.

Longer than other files: the passes of one round call each other, and are read together.
"""

from __future__ import annotations

import math

import numpy as np

from surepick.core.arrays import FloatArray, IntArray
from surepick.kernels.compiled import compiled, compiled_in_place, compiled_inner_fast
from surepick.kernels.feed import Feed
from surepick.kernels.measured import measured
from surepick.kernels.plan_rows import NonZeros
from surepick.policies.gap import radius
from surepick.policies.gap.arms import chosen_arm
from surepick.policies.gap.radius import (
    COUNTS_PER_LAM,
    KAUFMANN_KOOLEN,
    NORMAL_MIXTURE_JOINT,
    RECTANGLE,
    RIDGE,
)
from surepick.policies.gap.state import (
    BLOCK,
    EPS,
    NEGLIGIBLE,
    Arm,
    Dense,
    Now,
    Race,
    Rule,
    Thin,
)

REFRESH = 4096
TINY = 1e-300  # keeps roots positive
ROUNDING = 1e-12  # a bound computed in floating point may fall short by a few units in the last place

_inflation = compiled_in_place(radius.inflation)
_term = compiled_in_place(radius.term)
_level = compiled_in_place(radius.level)
_ridge_level = compiled_in_place(radius.ridge_level)
_lam_index = compiled_in_place(radius.lam_index)
_lam_value = compiled_in_place(radius.lam_value)
_lam_log_weight = compiled_in_place(radius.lam_log_weight)


@compiled
def advance(
    dense: Dense | None, thin: Thin | None, race: Race, feed: Feed, draws: FloatArray, stale: bool
) -> int:
    """Measure the arm decided on and decide again, once per draw or until the stop; how many draws were used.

    `stale` says that counts and sums have changed otherwise: then all is computed and decided anew first.
    """
    now, rule, n_used = race.now, race.rule, 0
    while True:
        if not stale:
            if now.stopped or n_used == len(draws):
                return n_used
            absorb_one(dense, thin, race, now.arm, measured(feed, now.arm, draws[n_used]))
            n_used += 1
            stale = now.fresh >= REFRESH or (rule.mixture and now.measured >= now.switch)
        new_lead = False
        while True:
            if stale:
                refresh(dense, thin, race)
            if stale or new_lead:
                relead(dense, thin, race)
            _set_level(now, rule)
            new_lead = _find_rival(race)
            now.stopped = not new_lead and _lacks(race) <= rule.epsilon
            if stale or not (new_lead or now.stopped):
                break
            stale = now.stopped  # stop only on numbers computed from scratch
        stale = False
        now.arm = chosen_arm(dense, thin, race)


@compiled_in_place
def _lacks(race: Race) -> float:
    """How far the rival's upper bound lies above the lead, rounding included.

    Differences first: next to values of 1e16 noise scales a radius is lost in rounding.
    """
    lead, rival = race.value[race.now.lead], race.value[race.now.rival]
    radius = race.now.score - rival if race.rule.radius == RECTANGLE else race.root[race.now.rival]
    lacks = (rival - lead) + radius + 4.0 * EPS * (abs(rival) + abs(lead))
    if lacks > race.rule.epsilon:
        return lacks
    gathered = _gathered(race)
    return lacks if gathered <= NEGLIGIBLE * radius else lacks + gathered


@compiled_in_place
def _gathered(race: Race) -> float:
    """`state.gathered_rounding`, compiled."""
    total = 0.0
    for s in race.used:
        arm = race.arms[s]
        total += arm.reach * abs(arm.estimate) * (arm.count + len(race.used))
    return EPS * total


@compiled_in_place
def absorb_one(dense: Dense | None, thin: Thin | None, race: Race, s: int, x: float) -> None:
    """Take one measurement of arm s into the evidence and the standing of every plan."""
    now, rule, arm = race.now, race.rule, race.arms[s]
    estimate, weight, term = arm.estimate, arm.weight, arm.term
    arm.count += 1
    arm.total += x
    now.measured += 1
    now.fresh += 1
    _arm_changed(arm, now, rule)
    d_mean, d_weight, d_term = arm.estimate - estimate, arm.weight - weight, arm.term - term
    now.joint += d_term
    if dense is not None:
        _touch_all(dense.columns[s], race, arm.lead, d_mean, d_weight, d_term)
    if thin is not None:
        _touch_non_zeros(thin.by_arm, race, s, d_mean, d_weight, d_term)


@compiled_in_place
def _arm_changed(arm: Arm, now: Now, rule: Rule) -> None:
    """Bring what is kept of an arm in line with its count and sum."""
    count = float(arm.count)
    ridge = 1.0 if rule.radius == RIDGE else 0.0
    arm.estimate = arm.total / (count + ridge)
    arm.weight = arm.variance * _inflation(rule.radius, count, now.lam_value)
    arm.term = _term(rule.radius, count, now.lam_value)
    arm.gain = arm.variance / ((count + ridge) * (count + ridge + 1.0) * arm.cost)
    if rule.radius == RECTANGLE:
        arm.weight = math.sqrt(arm.variance / count)
        arm.gain = arm.variance / (count * arm.cost)  # y^2 gain orders as |y| rad


@compiled_in_place
def _touch_all(
    column: FloatArray, race: Race, lead: float, d_mean: float, d_weight: float, d_term: float
) -> None:
    """Move values, spreads and thresholds of all plans by what one arm changed."""
    if race.rule.radius == RECTANGLE:
        _touch(column, race.value, race.spread, lead, d_mean, 0.0)
        _add_sizes(column, race.spread, lead, d_weight)
    else:
        _touch(column, race.value, race.spread, lead, d_mean, d_weight)
    if race.rule.paired:
        _add_where_apart(column, race.pair, lead, d_term)


@compiled_in_place
def _touch_non_zeros(
    columns: NonZeros, race: Race, s: int, d_mean: float, d_weight: float, d_term: float
) -> None:
    """The same for the plans that use the arm; for all others the offsets hold the lead's own part."""
    now, rule, lead = race.now, race.rule, race.arms[s].lead
    own_size, own_share = _size(rule.radius, lead), 1.0 if rule.paired and lead != 0.0 else 0.0
    now.off_spread += own_size * d_weight
    now.off_pair += own_share * d_term
    for at in range(columns.start[s], columns.start[s + 1]):
        k, c = columns.where[at], columns.value[at]
        race.value[k] += c * d_mean
        race.spread[k] += (_size(rule.radius, c - lead) - own_size) * d_weight
        if rule.paired:
            race.pair[k] += d_term * ((1.0 if c != lead else 0.0) - own_share)


@compiled_in_place
def _size(code: int, y: float) -> float:
    """What a difference of y in one arm adds to a spread, before the arm's weight."""
    return abs(y) if code == RECTANGLE else y * y


@compiled_in_place
def refresh(dense: Dense | None, thin: Thin | None, race: Race) -> None:
    """Compute arms, values and lead from the counts and sums; `relead` must follow."""
    now, arms, value = race.now, race.arms, race.value
    _choose_lam(now, len(race.used))
    now.joint, now.fresh = 0.0, 0
    for s in race.used:
        arm = arms[s]
        _arm_changed(arm, now, race.rule)
        now.joint += arm.term
    for k in range(race.rule.n_plans):
        total = 0.0
        if thin is not None:
            for at in range(thin.by_plan.start[k], thin.by_plan.start[k + 1]):
                total += thin.by_plan.value[at] * arms[thin.by_plan.where[at]].estimate
        value[k] = total
    if dense is not None:
        for s in race.used:
            _touch(dense.columns[s], value, race.spread, 0.0, arms[s].estimate, 0.0)
    top = -np.inf
    for k in range(race.rule.n_plans):
        if value[k] > top:
            top, now.lead = value[k], k


@compiled_in_place
def _choose_lam(now: Now, n_arms: int) -> None:
    """Pick the mixture's lam for the counts so far, and when to look again."""
    now.lam = _lam_index(now.measured / n_arms)
    now.lam_value = _lam_value(now.lam)
    now.lam_weight = _lam_log_weight(now.lam)
    # round() in lam_index changes half-way between two powers of 4
    now.switch = int(COUNTS_PER_LAM * n_arms * 2.0 * now.lam_value) + 1


@compiled_in_place
def relead(dense: Dense | None, thin: Thin | None, race: Race) -> None:
    """Compute spreads and thresholds against the current lead, and fresh roots."""
    now, rule, arms = race.now, race.rule, race.arms
    now.off_spread = now.off_pair = 0.0
    for s in range(len(arms)):
        arms[s].lead = 0.0
        if dense is not None:
            arms[s].lead = dense.rows[now.lead, s]
    if dense is not None:
        _compare_all(dense.columns, race)
    if thin is not None:
        _compare_non_zeros(thin.by_plan, race)
    _set_level(now, rule)
    if rule.radius != RECTANGLE:
        for k in range(rule.n_plans):
            _score(race, k)


@compiled_in_place
def _compare_all(columns: FloatArray, race: Race) -> None:
    """Every plan's spread and threshold against the lead, arm by arm."""
    rule = race.rule
    for k in range(len(race.pair)):
        race.spread[k] = race.pair[k] = 0.0
        race.support[k] = 0
    for s in race.used:
        column, arm = columns[s], race.arms[s]
        if rule.radius == RECTANGLE:
            _add_sizes(column, race.spread, arm.lead, arm.weight)
        else:
            _add_squares(column, race.spread, arm.lead, arm.weight)
        if rule.paired:
            _add_where_apart(column, race.pair, arm.lead, arm.term)
        if rule.radius == KAUFMANN_KOOLEN:
            for k in range(len(column)):
                race.support[k] += 1 if column[k] != arm.lead else 0
    if rule.paired:
        for k in range(len(race.pair)):
            race.pair[k] += race.base[race.support[k]]


@compiled_in_place
def _compare_non_zeros(rows: NonZeros, race: Race) -> None:
    """The lead's own spread, terms and support, changed for each plan where the plan has non-zeros."""
    arms, code, lead = race.arms, race.rule.radius, race.now.lead
    own_spread, own_pair, own_support = 0.0, 0.0, 0
    for at in range(rows.start[lead], rows.start[lead + 1]):
        arm = arms[rows.where[at]]
        arm.lead = rows.value[at]
        own_spread += _size(code, arm.lead) * arm.weight
        own_pair += arm.term
        own_support += 1
    for k in range(race.rule.n_plans):
        spread, pair, support = own_spread, own_pair, own_support
        for at in range(rows.start[k], rows.start[k + 1]):
            arm, c = arms[rows.where[at]], rows.value[at]
            spread += (_size(code, c - arm.lead) - _size(code, arm.lead)) * arm.weight
            change = (1 if c != arm.lead else 0) - (1 if arm.lead != 0.0 else 0)
            pair += change * arm.term
            support += change
        race.spread[k] = spread
        race.pair[k] = pair + race.base[support] if race.rule.paired else 0.0


@compiled_in_place
def _set_level(now: Now, rule: Rule) -> None:
    level = _level(rule.radius, float(now.measured), rule.log_delta, rule.log_plans, now.lam_weight)
    if rule.radius == NORMAL_MIXTURE_JOINT:
        level += now.joint
    elif rule.radius == RIDGE:
        level = _ridge_level(level + now.joint, rule.norm_bound)
    now.level = level


@compiled_in_place
def _find_rival(race: Race) -> bool:
    """Find the plan other than the lead with the largest score; True if instead a new lead was found."""
    if race.rule.radius == RECTANGLE:
        return _find_rival_by_sizes(race)
    now, value = race.now, race.value
    lead, rival = now.lead, now.rival
    if rival < 0 or rival == lead:
        rival = 1 if lead == 0 else 0
    best, top = _score(race, rival), value[lead]
    margin = ROUNDING * (abs(best) + abs(top))
    off_spread, off_pair = now.off_spread, now.off_pair + now.level
    limits = (best - margin, top, off_spread, off_pair)
    if race.rule.paired:
        _count_hits(value, race.spread, race.pair, race.root, limits, race.hits)
    else:
        _count_hits_of_level(value, race.spread, race.root, limits, race.hits)
    race.hits[lead // BLOCK] -= 1  # lead and rival always hit
    race.hits[rival // BLOCK] -= 1
    new_lead = lead
    for block in range(len(race.hits)):
        if race.hits[block] <= 0:
            continue
        for k in range(block * BLOCK, block * BLOCK + BLOCK):
            v, root = value[k], race.root[k]
            if v > top or (v == top and k < new_lead):
                top, new_lead = v, k
            product = (race.spread[k] + off_spread) * (race.pair[k] + off_pair)
            if k == lead or root * (v - best + margin + 0.5 * root) + product < 0.0:
                continue
            score = _score(race, k)
            if score > best or (score == best and k < rival):
                best, rival = score, k
    now.lead, now.rival, now.score = new_lead, rival, best
    return new_lead != lead


@compiled_in_place
def _score(race: Race, k: int) -> float:
    """The exact score of plan k; its root is kept for the bounds to come."""
    now = race.now
    square = 2.0 * (race.spread[k] + now.off_spread) * (race.pair[k] + now.off_pair + now.level)
    root = math.sqrt(square if square > TINY else TINY)
    race.root[k] = root
    return race.value[k] + root


@compiled_in_place
def _find_rival_by_sizes(race: Race) -> bool:
    """The same for the rectangle, whose scores need no root: value + sqrt(2 level) spread."""
    now, lead = race.now, race.now.lead
    factor, offset = math.sqrt(2.0 * now.level), now.off_spread
    top, new_lead, best, rival = race.value[lead], lead, -np.inf, -1
    for k in range(len(race.value)):
        v = race.value[k]
        if v > top or (v == top and k < new_lead):
            top, new_lead = v, k
        score = v + factor * (race.spread[k] + offset)
        if score > best and k != lead:
            best, rival = score, k
    now.lead, now.rival, now.score = new_lead, rival, best
    return new_lead != lead


@compiled_inner_fast
def _touch(
    column: FloatArray, value: FloatArray, spread: FloatArray, lead: float, d_mean: float, d_weight: float
) -> None:
    for k in range(len(column)):
        c = column[k]
        y = c - lead
        value[k] += c * d_mean
        spread[k] += y * y * d_weight


@compiled_inner_fast
def _add_squares(column: FloatArray, spread: FloatArray, lead: float, weight: float) -> None:
    for k in range(len(column)):
        y = column[k] - lead
        spread[k] += y * y * weight


@compiled_inner_fast
def _add_sizes(column: FloatArray, spread: FloatArray, lead: float, weight: float) -> None:
    for k in range(len(column)):
        spread[k] += abs(column[k] - lead) * weight


@compiled_inner_fast
def _add_where_apart(column: FloatArray, pair: FloatArray, lead: float, term: float) -> None:
    for k in range(len(column)):
        pair[k] += term if column[k] != lead else 0.0


@compiled_inner_fast
def _count_hits(
    value: FloatArray,
    spread: FloatArray,
    pair: FloatArray,
    root: FloatArray,
    limits: tuple[float, float, float, float],
    hits: IntArray,
) -> None:
    """How many plans of each block could be the rival (bound >= floor) or the lead (value >= top).

    With q = 2 spread threshold, value + (q/a + a)/2 >= floor is a (value - floor + a/2) + q/2 >= 0.
    """
    floor, top, off_spread, off_pair = limits
    for block in range(len(hits)):
        lo, hi = block * BLOCK, block * BLOCK + BLOCK
        # Slices indexed from zero: only such loops are vectorised.
        v, s, p, a = value[lo:hi], spread[lo:hi], pair[lo:hi], root[lo:hi]
        count = 0
        for k in range(BLOCK):
            x, r = v[k], a[k]
            count += 1 if r * (x - floor + 0.5 * r) + (s[k] + off_spread) * (p[k] + off_pair) >= 0.0 else 0
            count += 1 if x >= top else 0
        hits[block] = count


@compiled_inner_fast
def _count_hits_of_level(
    value: FloatArray,
    spread: FloatArray,
    root: FloatArray,
    limits: tuple[float, float, float, float],
    hits: IntArray,
) -> None:
    """The same where all pairs have one threshold: an array less to stream through."""
    floor, top, off_spread, level = limits
    for block in range(len(hits)):
        lo, hi = block * BLOCK, block * BLOCK + BLOCK
        v, s, a = value[lo:hi], spread[lo:hi], root[lo:hi]
        count = 0
        for k in range(BLOCK):
            x, r = v[k], a[k]
            count += 1 if r * (x - floor + 0.5 * r) + (s[k] + off_spread) * level >= 0.0 else 0
            count += 1 if x >= top else 0
        hits[block] = count
