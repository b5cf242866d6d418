"""The compiled loops: one round of a sequential gap policy in one pass over the plans.

The state keeps, for the current lead i, each plan's estimated value and its pair spread and threshold
against i (see `radius`). Measuring arm p changes one mean and one count, so values, spreads and thresholds
change along one column of the plan matrix. Only a change of lead costs a pass over all of the plans.

Finding the rival needs score_k = value_k + sqrt(2 spread_k threshold_k) for every plan, and the square root
is the dearest part. With any a > 0, sqrt(q) <= (q/a + a)/2, tight when a is near sqrt(q). So a stale root a
is kept for each plan, the cheap bound is computed for all, and the exact score only where the bound can
still win. The argmax is exact.

Sparse plans touch only their non-zeros: what a measurement of an arm of the lead does to all plans that do
not use that arm is kept in two offsets.

Rounding drift is cut by recomputing everything every `REFRESH` rounds, and before every stop. Both the
step-by-step run and the compiled driver execute `advance`, so they take the same decisions to the last bit.
Ties go to the lowest index.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from surepick.core.arrays import FloatArray, IntArray, Plans
from surepick.core.problem import Problem
from surepick.kernels.compiled import compiled, compiled_fast
from surepick.kernels.feed import AFFINE, Feed, measured
from surepick.policies.gap import radius

BLOCK = 32  # plans a block; columns are padded to whole blocks
REFRESH = 4096
THIN = 0.1  # a share of non-zeros below which going through them beats streaming through all entries
NOWHERE = -1e300  # the value of padding: never a lead, never a rival
TINY = 1e-300  # keeps roots positive
NO_ARM = 2**62  # beyond the last arm

GAP, NAIVE, CYCLE, RATIO = 0, 1, 2, 3

# Places in `Race.integers` and `Race.floats`.
LEAD, RIVAL, ARM, STOPPED, MEASURED, FRESH, LAM, CODE, RULE, SPARSE, SWITCH = range(11)
OFF_SPREAD, OFF_PAIR, LEVEL, SCORE, EPSILON, LOG_DELTA, LOG_PLANS, JOINT, LAM_VALUE, LAM_WEIGHT = range(10)
NORM_BOUND = 10

RECTANGLE, RIDGE = radius.RECTANGLE, radius.RIDGE

_inflation = compiled(radius.inflation)
_term = compiled(radius.term)
_level = compiled(radius.level)
_ridge_level = compiled(radius.ridge_level)
_lam_index = compiled(radius.lam_index)
_lam_value = compiled(radius.lam_value)
_lam_log_weight = compiled(radius.lam_log_weight)


Vector: TypeAlias = FloatArray


class Field(NamedTuple):
    """What does not change in a run: the plans both ways round, noise, costs.

    Dense plans fill `columns` and `rows`, sparse ones the compressed arrays; the others are empty.
    """

    columns: FloatArray  # (n_arms, n_blocks * BLOCK), zero-padded
    rows: FloatArray  # (n_plans, n_arms)
    column_start: IntArray
    column_plan: IntArray
    column_value: FloatArray
    row_start: IntArray
    row_arm: IntArray
    row_value: FloatArray
    variance: FloatArray  # (n_arms,) noise_scale squared
    costs: FloatArray  # (n_arms,)
    arms: IntArray  # the arms that may be measured
    base: FloatArray  # threshold by size of support


class Race(NamedTuple):
    """What changes: the evidence, and the standing of every plan against the lead."""

    value: FloatArray  # (width,)
    spread: FloatArray  # (width,)
    pair: FloatArray  # (width,) threshold without the level
    root: FloatArray  # (width,) a stale root of twice their product
    hits: IntArray  # (n_blocks,) plans of a block that could be rival or lead
    counts: IntArray  # (n_arms,)
    sums: FloatArray
    means: FloatArray
    weight: FloatArray  # (n_arms,) variance * inflation(count)
    term: FloatArray
    gain: FloatArray  # variance / (T (T+1) cost): what one more measurement takes off a pair's variance
    lead_row: FloatArray  # (n_arms,) the lead as a dense vector
    support: IntArray  # (width,) scratch
    integers: IntArray
    floats: FloatArray


def make_field(problem: Problem, variance: FloatArray, arms: IntArray, base: FloatArray) -> Field:
    """The plans in the layouts the loops read; always fresh arrays, so that one compilation serves all."""
    plans = _stored(problem)
    if isinstance(plans, np.ndarray):
        width = -(-problem.n_plans // BLOCK) * BLOCK
        columns = np.zeros((problem.n_arms, width))
        columns[:, : problem.n_plans] = plans.T
        rows = np.array(plans, order="C")
        nothing = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0)
        by_arm = by_plan = nothing
    else:
        columns = rows = np.zeros((0, 0))
        by_arm, by_plan = _compressed(plans.tocsc()), _compressed(plans.tocsr())
    return Field(columns, rows, *by_arm, *by_plan, variance.copy(), problem.costs.copy(), arms, base)


def _is_thin(problem: Problem) -> bool:
    """Whether the loops keep the plans as their non-zeros alone: where these are few."""
    plans = problem.plans
    return not isinstance(plans, np.ndarray) or int(np.count_nonzero(plans)) < THIN * plans.size


def _stored(problem: Problem) -> Plans:
    """The plans as the loops keep them."""
    plans = problem.oriented
    if isinstance(plans, np.ndarray) and _is_thin(problem):
        from scipy import sparse

        return sparse.csr_array(plans)
    return plans


def _compressed(matrix: Any) -> tuple[IntArray, IntArray, FloatArray]:
    """Where each row (or column) starts, the indices of its non-zeros in order, and their values."""
    matrix = matrix.copy()
    matrix.sort_indices()
    return matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64), matrix.data.astype(float)


def make_race(
    problem: Problem, *, code: int, rule: int, delta: float, epsilon: float, norm_bound: float = 0.0
) -> Race:
    """A race in which nothing has been measured yet."""
    n_blocks = -(-problem.n_plans // BLOCK)
    width, n_arms = n_blocks * BLOCK, problem.n_arms
    value = np.full(width, NOWHERE)
    integers = np.zeros(11, dtype=np.int64)
    integers[[LEAD, RIVAL, ARM]] = -1
    integers[[CODE, RULE, SPARSE]] = code, rule, _is_thin(problem)
    floats = np.zeros(11)
    floats[[EPSILON, LOG_DELTA, NORM_BOUND]] = epsilon, math.log(delta), norm_bound
    floats[LOG_PLANS] = math.log(_size(problem, code))
    whole = (np.zeros(n, dtype=np.int64) for n in (n_blocks, n_arms, width))
    hits, counts, support = whole
    per_arm = (np.zeros(n_arms) for _ in range(6))
    sums, means, weight, term, gain, lead_row = per_arm
    return Race(
        value=value,
        spread=np.zeros(width),
        pair=np.zeros(width),
        root=np.zeros(width),
        hits=hits,
        counts=counts,
        sums=sums,
        means=means,
        weight=weight,
        term=term,
        gain=gain,
        lead_row=lead_row,
        support=support,
        integers=integers,
        floats=floats,
    )


@functools.cache
def warm_up() -> None:
    """Compile the loops, or load them from the cache, so that no run has to wait for it half-way."""
    problem = Problem([[1.0, 0.0], [0.0, 1.0]])
    ones, arms = np.ones(2), np.arange(2, dtype=np.int64)
    field = make_field(problem, ones, arms, np.zeros(3))
    race = make_race(problem, code=radius.PUBLISHED, rule=GAP, delta=0.5, epsilon=0.0)
    race.counts[:] = 1
    race.integers[MEASURED] = 2
    settle(field, race, 2)
    feed = Feed(AFFINE, ones, ones, np.zeros(0), np.zeros(1, dtype=np.int64))
    advance(field, race, feed, np.zeros(1), 2)


def _size(problem: Problem, code: int) -> int:
    """What a radius unites over: all plans, the rivals of the best one, or the arms."""
    if code == RECTANGLE:
        return int(problem.relevant.sum())
    return problem.n_plans if code in (radius.PUBLISHED, RIDGE) else problem.n_plans - 1


@compiled
def settle(field: Field, race: Race, n_plans: int) -> None:
    """Compute everything from the counts and sums, and decide."""
    refresh(field, race, n_plans)
    _decide(field, race, n_plans)


@compiled
def advance(field: Field, race: Race, feed: Feed, draws: FloatArray, n_plans: int) -> int:
    """Measure the arm decided on and decide again, once per draw or until the stop; how often."""
    for used in range(len(draws)):
        if race.integers[STOPPED]:
            return used
        arm = race.integers[ARM]
        absorb_one(field, race, arm, measured(feed, arm, draws[used]))
        _decide(field, race, n_plans)
    return len(draws)


@compiled
def absorb_one(field: Field, race: Race, arm: int, x: float) -> None:
    """Take one measurement of this arm into the evidence and the standing of every plan."""
    race.counts[arm] += 1
    race.sums[arm] += x
    race.integers[MEASURED] += 1
    race.integers[FRESH] += 1
    old_mean, old_weight, old_term = race.means[arm], race.weight[arm], race.term[arm]
    _arm_changed(field, race, arm)
    d_mean = race.means[arm] - old_mean
    d_weight = race.weight[arm] - old_weight
    d_term = race.term[arm] - old_term
    race.floats[JOINT] += d_term
    if race.integers[SPARSE]:
        _touch_sparse(field, race, arm, d_mean, d_weight, d_term)
    elif race.integers[CODE] == RECTANGLE:
        _touch_sizes(field.columns[arm], race.value, race.spread, race.lead_row[arm], d_mean, d_weight)
    elif race.integers[CODE] == 0 or race.integers[CODE] == 2 or race.integers[CODE] == RIDGE:
        _touch(field.columns[arm], race.value, race.spread, race.lead_row[arm], d_mean, d_weight)
    else:
        _touch(field.columns[arm], race.value, race.spread, race.lead_row[arm], d_mean, d_weight)
        _touch_pair(field.columns[arm], race.pair, race.lead_row[arm], d_term)


@compiled
def _arm_changed(field: Field, race: Race, arm: int) -> None:
    """Bring what is kept per arm in line with its count and sum."""
    count = float(race.counts[arm])
    code, lam = race.integers[CODE], race.floats[LAM_VALUE]
    ridge = 1.0 if code == RIDGE else 0.0
    race.means[arm] = race.sums[arm] / (count + ridge)
    race.weight[arm] = field.variance[arm] * _inflation(code, count, lam)
    race.term[arm] = _term(code, count, lam)
    race.gain[arm] = field.variance[arm] / ((count + ridge) * (count + ridge + 1.0) * field.costs[arm])
    if code == RECTANGLE:
        race.weight[arm] = math.sqrt(field.variance[arm] / count)
        race.gain[arm] = field.variance[arm] / (count * field.costs[arm])  # y^2 gain orders as |y| rad


@compiled_fast
def _touch(
    column: Vector, value: Vector, spread: Vector, lead: float, d_mean: float, d_weight: float
) -> None:
    for k in range(len(column)):
        c = column[k]
        value[k] += c * d_mean
        spread[k] += (c - lead) * (c - lead) * d_weight


@compiled_fast
def _touch_sizes(
    column: Vector, value: Vector, spread: Vector, lead: float, d_mean: float, d_weight: float
) -> None:
    for k in range(len(column)):
        value[k] += column[k] * d_mean
        spread[k] += abs(column[k] - lead) * d_weight


@compiled_fast
def _touch_pair(column: Vector, pair: Vector, lead: float, d_term: float) -> None:
    for k in range(len(column)):
        pair[k] += d_term if column[k] != lead else 0.0


@compiled
def _touch_sparse(field: Field, race: Race, arm: int, d_mean: float, d_weight: float, d_term: float) -> None:
    lead = race.lead_row[arm]
    paired = race.integers[CODE] == 1 or race.integers[CODE] == 3
    code = race.integers[CODE]
    race.floats[OFF_SPREAD] += _size_of(code, lead) * d_weight
    if paired and lead != 0.0:
        race.floats[OFF_PAIR] += d_term
    for at in range(field.column_start[arm], field.column_start[arm + 1]):
        k, c = field.column_plan[at], field.column_value[at]
        race.value[k] += c * d_mean
        race.spread[k] += (_size_of(code, c - lead) - _size_of(code, lead)) * d_weight
        if paired:
            race.pair[k] += d_term * (int(c != lead) - int(lead != 0.0))


@compiled
def _size_of(code: int, y: float) -> float:
    """What a difference of y in one arm adds to a spread, before the arm's weight."""
    return abs(y) if code == RECTANGLE else y * y


@compiled
def refresh(field: Field, race: Race, n_plans: int) -> None:
    """Recompute values, lead, spreads and thresholds from the counts and sums."""
    _choose_lam(field, race)
    for arm in field.arms:
        _arm_changed(field, race, arm)
    race.floats[JOINT] = race.term.sum()
    race.integers[FRESH] = 0
    if race.integers[SPARSE]:
        for k in range(n_plans):
            race.value[k] = 0.0
            for at in range(field.row_start[k], field.row_start[k + 1]):
                race.value[k] += field.row_value[at] * race.means[field.row_arm[at]]
    else:
        race.value[:n_plans] = 0.0
        for arm in field.arms:
            _add_scaled(field.columns[arm], race.value, race.means[arm], n_plans)
    race.integers[LEAD] = np.argmax(race.value[:n_plans])
    relead(field, race, n_plans)


@compiled_fast
def _add_scaled(column: Vector, out: Vector, factor: float, n: int) -> None:
    for k in range(n):
        out[k] += column[k] * factor


@compiled
def _choose_lam(field: Field, race: Race) -> None:
    """Pick the mixture's lam for the counts so far, and when to look again."""
    index = _lam_index(race.integers[MEASURED] / len(field.arms))
    race.integers[LAM] = index
    race.floats[LAM_VALUE] = _lam_value(index)
    race.floats[LAM_WEIGHT] = _lam_log_weight(index)
    # round() in lam_index changes half-way between two powers of 4
    race.integers[SWITCH] = int(radius.COUNTS_PER_LAM * len(field.arms) * 4.0 ** (index + 0.5)) + 1


@compiled
def relead(field: Field, race: Race, n_plans: int) -> None:
    """Compute spreads and thresholds against the current lead, and fresh roots."""
    lead = race.integers[LEAD]
    race.floats[OFF_SPREAD] = 0.0
    race.floats[OFF_PAIR] = 0.0
    race.lead_row[:] = 0.0
    if race.integers[SPARSE]:
        for at in range(field.row_start[lead], field.row_start[lead + 1]):
            race.lead_row[field.row_arm[at]] = field.row_value[at]
        _relead_sparse(field, race, n_plans)
    else:
        for arm in range(len(race.lead_row)):
            race.lead_row[arm] = field.rows[lead, arm]
        _relead_dense(field, race)
    _set_level(race)
    if race.integers[CODE] != RECTANGLE:
        _fresh_roots(race.spread, race.pair, race.floats[LEVEL], race.root, n_plans)


@compiled
def _relead_dense(field: Field, race: Race) -> None:
    paired = race.integers[CODE] == 1 or race.integers[CODE] == 3
    race.spread[:] = 0.0
    race.pair[:] = 0.0
    race.support[:] = 0
    for arm in field.arms:
        if race.integers[CODE] == RECTANGLE:
            _add_sizes(field.columns[arm], race.spread, race.lead_row[arm], race.weight[arm])
        else:
            _add_squares(field.columns[arm], race.spread, race.lead_row[arm], race.weight[arm])
        if paired:
            _touch_pair(field.columns[arm], race.pair, race.lead_row[arm], race.term[arm])
            _count_support(field.columns[arm], race.support, race.lead_row[arm])
    if paired:
        for k in range(len(race.pair)):
            race.pair[k] += field.base[race.support[k]]


@compiled_fast
def _add_squares(column: Vector, spread: Vector, lead: float, weight: float) -> None:
    for k in range(len(column)):
        spread[k] += (column[k] - lead) * (column[k] - lead) * weight


@compiled_fast
def _add_sizes(column: Vector, spread: Vector, lead: float, weight: float) -> None:
    for k in range(len(column)):
        spread[k] += abs(column[k] - lead) * weight


@compiled
def _count_support(column: Vector, support: IntArray, lead: float) -> None:
    for k in range(len(column)):
        support[k] += column[k] != lead


@compiled
def _relead_sparse(field: Field, race: Race, n_plans: int) -> None:
    paired = race.integers[CODE] == 1 or race.integers[CODE] == 3
    lead, code = race.integers[LEAD], race.integers[CODE]
    own_spread, own_pair, own_support = 0.0, 0.0, 0
    for at in range(field.row_start[lead], field.row_start[lead + 1]):
        arm, c = field.row_arm[at], field.row_value[at]
        own_spread += _size_of(code, c) * race.weight[arm]
        own_pair += race.term[arm]
        own_support += 1
    for k in range(n_plans):
        spread, pair, support = own_spread, own_pair, own_support
        for at in range(field.row_start[k], field.row_start[k + 1]):
            arm, c = field.row_arm[at], field.row_value[at]
            mine = race.lead_row[arm]
            spread += (_size_of(code, c - mine) - _size_of(code, mine)) * race.weight[arm]
            change = int(c != mine) - int(mine != 0.0)
            pair += change * race.term[arm]
            support += change
        race.spread[k] = spread
        race.pair[k] = pair + field.base[support] if paired else 0.0


@compiled_fast
def _fresh_roots(spread: Vector, pair: Vector, level: float, root: Vector, n_plans: int) -> None:
    for k in range(n_plans):
        root[k] = math.sqrt(max(2.0 * spread[k] * (pair[k] + level), TINY))


@compiled
def _set_level(race: Race) -> None:
    code = race.integers[CODE]
    floats = race.floats
    value = _level(
        code, float(race.integers[MEASURED]), floats[LOG_DELTA], floats[LOG_PLANS], floats[LAM_WEIGHT]
    )
    if code == 2:
        value += race.floats[JOINT]
    elif code == RIDGE:
        value = _ridge_level(value + race.floats[JOINT], floats[NORM_BOUND])
    race.floats[LEVEL] = value


@compiled
def _decide(field: Field, race: Race, n_plans: int) -> None:
    """Set lead, rival and the next arm, or the stop."""
    code = race.integers[CODE]
    mixture = code == 1 or code == 2
    if race.integers[FRESH] >= REFRESH or (mixture and race.integers[MEASURED] >= race.integers[SWITCH]):
        refresh(field, race, n_plans)
    _set_level(race)
    if _find_rival(race):
        relead(field, race, n_plans)
        _find_rival(race)
    if _beaten(race):  # stop only on numbers computed from scratch
        refresh(field, race, n_plans)
        _find_rival(race)
        race.integers[STOPPED] = _beaten(race)
    choose_arm(field, race)


@compiled
def _beaten(race: Race) -> bool:
    """Whether even the rival cannot be better than the lead by more than epsilon."""
    return race.floats[SCORE] - race.value[race.integers[LEAD]] <= race.floats[EPSILON]


@compiled
def _find_rival(race: Race) -> bool:
    """Find the plan other than the lead with the largest score; True if instead a new lead was found."""
    if race.integers[CODE] == RECTANGLE:
        return _find_rival_by_sizes(race)
    lead, rival = race.integers[LEAD], race.integers[RIVAL]
    if rival < 0 or rival == lead:
        rival = 1 if lead == 0 else 0
    best = _score(race, rival)
    # A bound computed in floating point may fall short of the true one by a few units in the last place.
    margin = 1e-12 * (abs(best) + abs(race.value[lead]))
    off_spread, off_pair = race.floats[OFF_SPREAD], race.floats[OFF_PAIR] + race.floats[LEVEL]
    top = race.value[lead]
    if race.integers[CODE] == 1 or race.integers[CODE] == 3:
        _count_hits(
            race.value, race.spread, race.pair, race.root, best - margin, top, off_spread, off_pair, race.hits
        )
    else:
        _count_hits_of_level(
            race.value, race.spread, race.root, best - margin, top, off_spread, off_pair, race.hits
        )
    new_lead, known = lead, rival  # both always hit
    for block in range(len(race.hits)):
        if race.hits[block] <= int(lead // BLOCK == block) + int(known // BLOCK == block):
            continue
        for k in range(block * BLOCK, block * BLOCK + BLOCK):
            v, root = race.value[k], race.root[k]
            if v > top or (v == top and k < new_lead):
                top, new_lead = v, k
            product = (race.spread[k] + off_spread) * (race.pair[k] + off_pair)
            if k == lead or root * (v - best + margin + 0.5 * root) + product < 0.0:
                continue
            score = _score(race, k)
            if score > best or (score == best and k < rival):
                best, rival = score, k
    race.integers[LEAD] = new_lead
    race.integers[RIVAL] = rival
    race.floats[SCORE] = best
    return new_lead != lead


@compiled
def _find_rival_by_sizes(race: Race) -> bool:
    """The same for the rectangle, whose scores need no root: value + sqrt(2 level) spread."""
    lead = race.integers[LEAD]
    factor, offset = math.sqrt(2.0 * race.floats[LEVEL]), race.floats[OFF_SPREAD]
    top, new_lead, best, rival = race.value[lead], lead, -np.inf, -1
    for k in range(len(race.value)):
        v = race.value[k]
        if v > top or (v == top and k < new_lead):
            top, new_lead = v, k
        score = v + factor * (race.spread[k] + offset)
        if score > best and k != lead:
            best, rival = score, k
    race.integers[LEAD] = new_lead
    race.integers[RIVAL] = rival
    race.floats[SCORE] = best
    return new_lead != lead


@compiled_fast
def _count_hits(
    value: Vector,
    spread: Vector,
    pair: Vector,
    root: Vector,
    floor: float,
    top: float,
    off_spread: float,
    off_pair: float,
    hits: IntArray,
) -> None:
    """How many plans of each block could be the rival (bound >= floor) or the lead (value >= top).

    With q = 2 spread threshold, value + (q/a + a)/2 >= floor is a (value - floor + a/2) + q/2 >= 0.
    """
    for block in range(len(hits)):
        lo, hi = block * BLOCK, block * BLOCK + BLOCK
        # Slices indexed from zero: only such loops are vectorised.
        v, s, p, a = value[lo:hi], spread[lo:hi], pair[lo:hi], root[lo:hi]
        count = 0
        for k in range(BLOCK):
            count += a[k] * (v[k] - floor + 0.5 * a[k]) + (s[k] + off_spread) * (p[k] + off_pair) >= 0.0
            count += v[k] >= top
        hits[block] = count


@compiled_fast
def _count_hits_of_level(
    value: Vector,
    spread: Vector,
    root: Vector,
    floor: float,
    top: float,
    off_spread: float,
    level: float,
    hits: IntArray,
) -> None:
    """The same where all pairs have one threshold: an array less to stream through."""
    for block in range(len(hits)):
        lo, hi = block * BLOCK, block * BLOCK + BLOCK
        v, s, a = value[lo:hi], spread[lo:hi], root[lo:hi]
        count = 0
        for k in range(BLOCK):
            count += a[k] * (v[k] - floor + 0.5 * a[k]) + (s[k] + off_spread) * level >= 0.0
            count += v[k] >= top
        hits[block] = count


@compiled
def _score(race: Race, k: int) -> float:
    """The exact score of plan k; its root is kept for the bounds to come."""
    spread = race.spread[k] + race.floats[OFF_SPREAD]
    threshold = race.pair[k] + race.floats[OFF_PAIR] + race.floats[LEVEL]
    race.root[k] = math.sqrt(max(2.0 * spread * threshold, TINY))
    return race.value[k] + race.root[k]


@compiled
def choose_arm(field: Field, race: Race) -> None:
    """Set the arm to measure for the current lead and rival."""
    rule = race.integers[RULE]
    if rule == CYCLE:
        race.integers[ARM] = _arm_in_turn(field.arms, race.counts)
    elif race.integers[SPARSE]:
        race.integers[ARM] = _arm_sparse(field, race)
    elif rule == GAP:
        race.integers[ARM] = _arm_by_gap(race.lead_row, field.rows, race.integers[RIVAL], race.gain)
    elif rule == RATIO:
        race.integers[ARM] = _arm_by_ratio(field, race)
    else:
        race.integers[ARM] = _arm_naive(race.lead_row, field.rows, race.integers[RIVAL], race.counts)


@compiled
def _arm_in_turn(arms: IntArray, counts: IntArray) -> int:
    """The least measured arm, the first of several: one after the other when nobody measures unasked."""
    arm = arms[0]
    for s in arms:
        if counts[s] < counts[arm]:
            arm = s
    return arm


@compiled
def _arm_by_gap(lead: Vector, rows: FloatArray, rival: int, gain: Vector) -> int:
    """argmax (lead_s - rival_s)^2 gain_s, the arm that shrinks the pair's variance most."""
    best, arm = -1.0, 0
    for s in range(len(lead)):
        y = lead[s] - rows[rival, s]
        merit = y * y * gain[s]
        if merit > best:
            best, arm = merit, s
    return arm


@compiled
def _arm_naive(lead: Vector, rows: FloatArray, rival: int, counts: IntArray) -> int:
    """The least measured arm on which lead and rival differ."""
    arm = -1
    for s in range(len(lead)):
        if lead[s] != rows[rival, s] and (arm < 0 or counts[s] < counts[arm]):
            arm = s
    return arm


@compiled
def _arm_by_ratio(field: Field, race: Race) -> int:
    """argmin T_s / (|y_s| R_s), the arm furthest behind the best allocation for this pair."""
    best, arm, rival = -1.0, 0, race.integers[RIVAL]
    for s in range(len(race.lead_row)):
        merit = _ratio(field, race, s, race.lead_row[s] - field.rows[rival, s])
        if merit > best:
            best, arm = merit, s
    return arm


@compiled
def _ratio(field: Field, race: Race, s: int, y: float) -> float:
    """y_s^2 R_s^2 / T_s^2: orders as |y_s| R_s / T_s."""
    count = max(race.counts[s], 1)
    return y * y * field.variance[s] / (float(count) * float(count))


@compiled
def _arm_sparse(field: Field, race: Race) -> int:
    """Any of the rules, over the arms that lead or rival use, in the order of arms."""
    i, j = race.integers[LEAD], race.integers[RIVAL]
    a, a_end = field.row_start[i], field.row_start[i + 1]
    b, b_end = field.row_start[j], field.row_start[j + 1]
    rule = race.integers[RULE]
    best, arm = -np.inf, -1
    while a < a_end or b < b_end:
        left = field.row_arm[a] if a < a_end else NO_ARM
        right = field.row_arm[b] if b < b_end else NO_ARM
        s, y = min(left, right), 0.0
        if left == s:
            y += field.row_value[a]
            a += 1
        if right == s:
            y -= field.row_value[b]
            b += 1
        if rule == NAIVE:
            merit = -float(race.counts[s])
        else:
            merit = _ratio(field, race, s, y) if rule == RATIO else y * y * race.gain[s]
        if y != 0.0 and merit > best:
            best, arm = merit, s
    return arm
