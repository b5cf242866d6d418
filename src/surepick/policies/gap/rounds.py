"""Rounds of a sequential gap policy: measure an arm, move what it changes, decide again.

Against the leader i every plan k has an estimated value, the variance of its gap to i and a threshold (see
`radius`); its score is value_k + sqrt(2 variance_k threshold_k). A measurement of arm s changes one mean and
one count, so that all three move along column s of the plans. Only a new leader, a stop and the cut of
rounding every `REFRESH` rounds take a pass over all entries, which `run` makes.

The same source runs compiled and, without Numba, as it is. The two passes of every round, `move` and `score`,
have two forms each: a loop for the compiler, and array operations. Both round alike, so that decisions are
the same. Ties go to the lowest index.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from surepick.core.arrays import FloatArray, IntArray
from surepick.kernels import Feed, compiled, is_compiling, measured
from surepick.policies.gap import radius
from surepick.policies.gap.radius import NORMAL_MIXTURE_JOINT, RECTANGLE

REFRESH = 4096  # rounds between two passes over all entries
TINY = 1e-300  # keeps roots positive
EPS = 2.0**-52  # of a double
NEGLIGIBLE = 1e-4  # of a radius: rounding that may be left out, since it changes a risk by less than 1%

ARM_RULES = ("gap", "naive", "cycle")
GAP, NAIVE, CYCLE = range(3)  # their codes

_measured = compiled(measured)
_inflation = compiled(radius.inflation)
_term = compiled(radius.term)
_level = compiled(radius.level)
_lam_value = compiled(radius.lam_value)
_lam_log_weight = compiled(radius.lam_log_weight)


class Rule(NamedTuple):
    """How leader and rival are compared and an arm is chosen; the same in all of a run."""

    code: int  # of the radius: PUBLISHED, NORMAL_MIXTURE, ...
    arm_rule: int  # GAP, NAIVE or CYCLE
    mixture: bool  # whether the radius has a lam that follows the counts
    paired: bool  # whether each pair has a threshold of its own
    epsilon: float
    log_delta: float
    log_union: float  # of the number of events in the union bound, see `radius.level`


class Arms(NamedTuple):
    """What is known of each arm; changed by every measurement."""

    counts: IntArray
    total: FloatArray
    mean: FloatArray
    weight: FloatArray  # variance * inflation(count)
    term: FloatArray  # of the threshold
    gain: FloatArray  # variance / (T (T+1) cost): what one more measurement takes off a pair's variance
    variance: FloatArray  # noise scale squared
    cost: FloatArray
    reach: FloatArray  # the largest entry of any plan, without its sign


class Rivals(NamedTuple):
    """Every plan against the leader; changed by every measurement."""

    value: FloatArray
    variance: FloatArray
    threshold: FloatArray  # without the level


class Now(NamedTuple):
    """Where a run stands."""

    leader: int
    rival: int
    arm: int  # to measure next
    is_stopped: bool
    n_measured: int
    refresh_at: int  # the number of measurements at which everything is computed from scratch
    lam: int  # index of the mixture's lam
    joint: float  # sum of the terms of all arms
    level: float
    radius: float  # of the gap between leader and rival


@compiled
def play_rounds(
    columns: FloatArray,
    rows: FloatArray,
    used: IntArray,
    arms: Arms,
    rivals: Rivals,
    rule: Rule,
    now: Now,
    feed: Feed,
    draws: FloatArray,
) -> tuple[Now, int, bool]:
    """Play rounds against a fixed leader: measure `now.arm`, update its rivals, choose the next arm.

    - columns, rows: the plans' coefficients, (n_arms, n_plans) and (n_plans, n_arms).
    - used: the arms that are measured at all.
    - arms, rivals: updated in place.
    - feed, draws: draw k becomes the measurement of round k (`kernels.measured`).

    Return where the run stands, how many draws were used, and whether it ended early because a pass over all
    plans is due: another plan's estimate exceeds the leader's, or the run could stop. The pass decides both,
    since a new leader needs new variances against it, and a stop needs numbers free of accumulated rounding.
    The rounds also end at `now.refresh_at` measurements.
    """
    leader = now.leader
    rival = now.rival
    arm = now.arm
    level = now.level
    width = now.radius
    n_measured = now.n_measured
    joint = now.joint
    n_used = 0
    is_pass_due = False
    while n_used < len(draws) and n_measured < now.refresh_at and not is_pass_due:
        old_mean, old_weight, old_term = arms.mean[arm], arms.weight[arm], arms.term[arm]
        arms.counts[arm] += 1
        arms.total[arm] += _measured(feed, arm, draws[n_used])
        update_arm(arms, arm, rule, now.lam)
        n_used += 1
        n_measured += 1

        term_change = arms.term[arm] - old_term
        changes = (arms.mean[arm] - old_mean, arms.weight[arm] - old_weight, term_change)
        move(columns[arm], rows[leader, arm], changes, rivals, rule)
        joint += term_change
        level = level_of(rule, n_measured, joint, now.lam)

        is_overtaken, rival = score(level, rivals, leader, rule)
        width = radius_of(rule, rivals, rival, level)
        may_stop = rival_excess(arms, used, rivals, rule, leader, rival, width) <= rule.epsilon
        is_pass_due = is_overtaken or may_stop
        arm = choose_arm(arms, used, rows[leader], rows[rival], rule)
    found = Now(leader, rival, arm, False, n_measured, now.refresh_at, now.lam, joint, level, width)
    return found, n_used, is_pass_due


@compiled
def update_arm(arms: Arms, s: int, rule: Rule, lam: int) -> None:
    """Bring what is kept of an arm in line with its count and sum."""
    count, variance, lam_value = float(arms.counts[s]), arms.variance[s], _lam_value(lam)
    arms.mean[s] = arms.total[s] / count
    arms.term[s] = _term(rule.code, count, lam_value)
    if rule.code == RECTANGLE:
        arms.weight[s] = math.sqrt(variance / count)
        arms.gain[s] = variance / (count * arms.cost[s])  # y^2 gain orders as |y| rad
    else:
        arms.weight[s] = variance * _inflation(rule.code, count, lam_value)
        arms.gain[s] = variance / (count * (count + 1.0) * arms.cost[s])


@compiled
def update_arms(arms: Arms, used: IntArray, rule: Rule, lam: int) -> float:
    """Bring all arms in line with their counts and sums; return the sum of their terms."""
    joint = 0.0
    for s in used:
        update_arm(arms, s, rule, lam)
        joint += arms.term[s]
    return joint


@compiled
def level_of(rule: Rule, n_measured: int, joint: float, lam: int) -> float:
    """Return the part of the threshold that all pairs share."""
    found = _level(rule.code, float(n_measured), rule.log_delta, rule.log_union, _lam_log_weight(lam))
    return found + joint if rule.code == NORMAL_MIXTURE_JOINT else found


@compiled
def radius_of(rule: Rule, rivals: Rivals, k: int, level: float) -> float:
    """Return the radius of plan k's gap to the leader."""
    if rule.code == RECTANGLE:
        return math.sqrt(2.0 * level) * rivals.variance[k]
    square = 2.0 * rivals.variance[k] * (rivals.threshold[k] + level)
    return math.sqrt(square if square > TINY else TINY)


def _move_by_loop(
    column: FloatArray, entry: float, moved: tuple[float, float, float], rivals: Rivals, rule: Rule
) -> None:
    value, variance, threshold = rivals
    mean, weight, term = moved
    for k in range(len(column)):  # short loops without branches are vectorised
        value[k] += column[k] * mean
    if rule.paired:
        for k in range(len(column)):
            threshold[k] += term if column[k] != entry else 0.0
    if rule.code == RECTANGLE:
        for k in range(len(column)):
            variance[k] += abs(column[k] - entry) * weight
    else:
        for k in range(len(column)):
            y = column[k] - entry
            variance[k] += y * y * weight


def _move_by_arrays(
    column: FloatArray, entry: float, moved: tuple[float, float, float], rivals: Rivals, rule: Rule
) -> None:
    value, variance, threshold = rivals
    mean, weight, term = moved
    value += column * mean
    y = column - entry
    if rule.paired:
        threshold += (y != 0.0) * term
    variance += (np.abs(y) if rule.code == RECTANGLE else y * y) * weight


# Move every plan by what one arm changed. `entry` is the leader's entry in the arm's column, `moved` the
# changes of its mean, weight and term: value_k by column_k mean, variance_k by y_k^2 weight (rectangle: by
# |y_k| weight), and where y_k = column_k - entry is not 0, threshold_k by the term.
move = compiled(_move_by_loop) if is_compiling() else _move_by_arrays


def _score_by_loop(level: float, rivals: Rivals, leader: int, rule: Rule) -> tuple[bool, int]:
    value, variance, threshold = rivals
    n = len(value)
    scores = np.empty(n)
    if rule.code == RECTANGLE:
        factor = math.sqrt(2.0 * level)
        for k in range(n):
            scores[k] = value[k] + factor * variance[k]
    else:
        for k in range(n):
            scores[k] = value[k] + math.sqrt(max(2.0 * variance[k] * (threshold[k] + level), TINY))
    scores[leader] = -np.inf
    lead, n_ahead, rival = value[leader], 0, 0
    for k in range(leader):  # a count is vectorised, the place of a maximum is not
        n_ahead += value[k] >= lead
    for k in range(leader + 1, n):
        n_ahead += value[k] > lead
    for k in range(1, n):
        if scores[k] > scores[rival]:
            rival = k
    return n_ahead > 0, rival


def _score_by_arrays(level: float, rivals: Rivals, leader: int, rule: Rule) -> tuple[bool, int]:
    value, variance, threshold = rivals
    if rule.code == RECTANGLE:
        scores = value + math.sqrt(2.0 * level) * variance
    else:
        scores = value + np.sqrt(np.maximum(2.0 * variance * (threshold + level), TINY))
    scores[leader] = -np.inf
    return bool(value.argmax() != leader), int(scores.argmax())


# Return whether another plan has a larger value than the leader, and the rival with the largest score.
score = compiled(_score_by_loop) if is_compiling() else _score_by_arrays


@compiled
def compare(columns: FloatArray, lead: FloatArray, arms: Arms, rivals: Rivals, rule: Rule) -> None:
    """Compute variances and thresholds of all plans against the leader whose entries are `lead`."""
    rivals.variance[:] = 0.0
    rivals.threshold[:] = 0.0
    for s in range(len(lead)):
        move(columns[s], lead[s], (0.0, arms.weight[s], arms.term[s]), rivals, rule)


@compiled
def rival_excess(
    arms: Arms, used: IntArray, rivals: Rivals, rule: Rule, leader: int, rival: int, width: float
) -> float:
    """Return how far the rival's upper bound lies above the leader's estimate, rounding included.

    The run may stop once this is at most epsilon. The estimates are subtracted before the radius is added:
    next to values of 1e16 noise scales a radius would be lost in rounding.
    """
    lead, other = rivals.value[leader], rivals.value[rival]
    found = (other - lead) + width + 4.0 * EPS * (abs(other) + abs(lead))
    if found > rule.epsilon:
        return found
    gathered = gathered_rounding(arms, used)
    return found if gathered <= NEGLIGIBLE * width else found + gathered


@compiled
def gathered_rounding(arms: Arms, used: IntArray) -> float:
    """Return a bound on the rounding error in the difference of two plans' estimated values.

    An arm's running sum of n values of size about m is off by at most n^2 m eps / 2, its mean by n m eps / 2.
    Summing over the arms of a plan adds `len(used)` roundings. The factor 1/2 cancels, since there are two
    plans. An arm enters with its largest coefficient in any plan, `reach`.

    The error grows with n while the radius shrinks. If the mean is 1e10 noise scales, it exceeds the radius
    from about 1e5 measurements on.
    """
    total = 0.0
    for s in used:
        total += arms.reach[s] * abs(arms.mean[s]) * (arms.counts[s] + len(used))
    return EPS * total


@compiled
def choose_arm(arms: Arms, used: IntArray, lead: FloatArray, rival: FloatArray, rule: Rule) -> int:
    """Return the arm to measure where leader and rival have these entries.

    GAP: y^2 gain, what a measurement takes off the pair's variance. NAIVE: the least measured arm in which
    they differ. CYCLE: the least measured arm of all.
    """
    if rule.arm_rule == CYCLE:
        return int(used[np.argmin(arms.counts[used])])
    y = lead - rival
    if rule.arm_rule == GAP:
        return int(np.argmax(y * y * arms.gain))
    return int(np.argmax(np.where(y != 0.0, -arms.counts.astype(np.float64), -np.inf)))
