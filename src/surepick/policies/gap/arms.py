"""Which arm to measure for the current lead and rival: the arm rules of the gap policies, compiled."""

from __future__ import annotations

import numpy as np

from surepick.core.arrays import FloatArray, IntArray
from surepick.kernels.compiled import compiled_in_place
from surepick.kernels.plan_rows import NonZeros
from surepick.kernels.records import RecordArray
from surepick.policies.gap.state import CYCLE, GAP, RATIO, Arm, Dense, Race, Thin

NO_ARM = 2**62  # beyond the last arm


@compiled_in_place
def chosen_arm(dense: Dense | None, thin: Thin | None, race: Race) -> int:
    """The arm to measure; ties go to the lowest index."""
    if race.rule.arm_rule == CYCLE:
        return _least_measured(race.used, race.arms)
    if dense is not None:
        return _best_of_all(dense.rows[race.now.rival], race.arms, race.rule.arm_rule)
    if thin is not None:
        return _best_of_non_zeros(thin.by_plan, race)
    return NO_ARM


@compiled_in_place
def _least_measured(used: IntArray, arms: RecordArray) -> int:
    """The least measured arm, the first of several: one after the other when nobody measures unasked."""
    least = used[0]
    for s in used:
        if arms[s].count < arms[least].count:
            least = s
    return least


@compiled_in_place
def _best_of_all(rival: FloatArray, arms: RecordArray, arm_rule: int) -> int:
    best, chosen = -np.inf, -1
    for s in range(len(arms)):
        merit = _merit(arms[s], arms[s].lead - rival[s], arm_rule)
        if merit > best:
            best, chosen = merit, s
    return chosen


@compiled_in_place
def _best_of_non_zeros(rows: NonZeros, race: Race) -> int:
    """The same over the arms that lead or rival use, in the order of arms."""
    a, a_end = rows.start[race.now.lead], rows.start[race.now.lead + 1]
    b, b_end = rows.start[race.now.rival], rows.start[race.now.rival + 1]
    best, chosen = -np.inf, -1
    while a < a_end or b < b_end:
        left = rows.where[a] if a < a_end else NO_ARM
        right = rows.where[b] if b < b_end else NO_ARM
        s, y = left if left < right else right, 0.0
        if left == s:
            y += rows.value[a]
            a += 1
        if right == s:
            y -= rows.value[b]
            b += 1
        merit = _merit(race.arms[s], y, race.rule.arm_rule)
        if merit > best:
            best, chosen = merit, s
    return chosen


@compiled_in_place
def _merit(arm: Arm, y: float, arm_rule: int) -> float:
    """How much a measurement of this arm is worth where lead and rival differ by y.

    GAP: y^2 gain, what it takes off the pair's variance. RATIO: y^2 R^2 / T^2, which orders as |y| R / T: how
    far the arm is behind the best allocation for this pair. NAIVE: the fewer measurements the better.
    """
    if arm_rule == GAP:
        return y * y * arm.gain
    if arm_rule == RATIO:
        count = float(arm.count) if arm.count > 1 else 1.0
        return y * y * arm.variance / (count * count)
    return -float(arm.count) if y != 0.0 else -np.inf
