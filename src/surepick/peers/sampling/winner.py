"""The compiled round of Thompson-sampling policies: the winner of M draws without making them all.

A round of GenTS-Explore draws M parameters theta^m and asks which plan k beats the lead i by most in any of
them. With y_k = plan_k - lead, gap_k = the estimated lead over plan k, and D_s the standard deviation of
theta_s, the margin of plan k in a draw is v_k = sum_s y_ks D_s z_s - gap_k with z ~ N(0, I); its standard
deviation is sd_k. Wanted: the largest margin of all plans in all M independent draws, and its plan; if no
margin is positive, the policy stops.

**Exact in law, by thinning.** Fix a level u >= 0 and let p_k = P(v_k > u), with S = sum_k p_k < 1. For one
draw: with probability S make a proposal: plan k with probability p_k / S, its margin v from the normal tail
above u, and z from its law given that margin. Accept when k has the largest margin of all plans. For every z
whose largest margin, that of k, exceeds u, the density of "proposed and accepted" is
S (p_k / S) density(z) / p_k = density(z), because z can be accepted only when its own winner proposes it. So
accepted proposals are exactly the draws whose largest margin exceeds u, with their winners, and a draw
without one has no margin above u. Hence:

- the number of proposals in M draws is Binomial(M, S), and each is first only a pair (k, v);
- taken in the order of falling v, the first one accepted is the winner of all M draws, so only a few vectors
  z are ever made;
- none accepted and u = 0: no plan beats the lead in any draw;
- none accepted and u > 0: every draw is now known to have no margin above u, and a lower level is tried
  under that condition (a draw that breaks it is drawn again); if that fails too, the M draws are made one
  by one under the condition reached.

In place of p_k any larger mass serves, if a proposal is thinned by the ratio: `table` has such masses, which
last for many rounds. Level and table only steer the work, never the law. They are made when something is
absorbed: a decision depends on what was absorbed and on the generator of the round alone.

Cost of a round: four passes over the plans; about a hundred proposals of some tens of nanoseconds; for each
vector z, of which there are some 2 to 20, one normal number per arm and the products with the plans until one
beats the proposer, all plans for the accepted one.
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import numpy as np

from surepick.core.arrays import FloatArray
from surepick.core.problem import Problem
from surepick.kernels.compiled import compiled_allocating, compiled_inner, compiled_inner_fast
from surepick.peers.sampling.table import (
    LARGEST_SHARE,
    LEAST_RATE,
    N_KILLERS,
    Workspace,
    absorb,
    fit_level,
    make_workspace,
    widen,
    with_proposals,
)
from surepick.policies.gap.arms import chosen_arm
from surepick.policies.gap.radius import PUBLISHED
from surepick.policies.gap.state import Dense, Race, Settings, Thin, make_plans, make_race

NO_PLAN = -1


class Turn(NamedTuple):
    """What a round is drawn from."""

    race: Race
    work: Workspace
    rng: np.random.Generator


@functools.cache
def warm_up(*, thin: bool) -> None:
    """Compile the loops, or load them from the cache, so that no run has to wait for it half-way."""
    problem = Problem(np.eye(11 if thin else 2), noise_scale=1)
    plans = make_plans(problem)
    race = make_race(problem, Settings(PUBLISHED, "gap", delta=0.5), np.arange(2, dtype=np.int64))
    work = with_proposals(make_workspace(plans[0], race, 1.0, 0.1), 200)
    race.arms["count"] = race.now.measured = 1
    absorb(*plans, race, work, -1, 0.0)
    decide(*plans, race, work, np.random.default_rng(0))


@compiled_allocating  # that is, with reference counting: without it Numba never lets go of a generator
def decide(
    dense: Dense | None, thin: Thin | None, race: Race, work: Workspace, rng: np.random.Generator
) -> None:
    """Draw the round: set the rival and the arm, or the stop."""
    now = race.now
    widen(work.draws, race)
    for i in range(len(race.used)):
        work.scale[i] = math.sqrt(work.draws.kappa * race.arms[race.used[i]].weight)
    rival, margin = _winner(thin, Turn(race, work, rng))
    now.stopped = rival == NO_PLAN
    if rival != NO_PLAN:
        now.rival, now.score = rival, margin
        now.arm = chosen_arm(dense, thin, race)


@compiled_inner
def _winner(thin: Thin | None, turn: Turn) -> tuple[int, float]:
    """The plan with the largest margin in all draws, and that margin; NO_PLAN if none is positive."""
    race, work, _ = turn
    level = work.draws.level
    at = _first_accepted(thin, turn, _propose(turn, work.bound, work.mass, level))
    if at >= 0:
        return work.plan[at], work.margin[at]
    if level == 0.0:
        return NO_PLAN, 0.0
    ceiling = level  # from here on no margin of any draw exceeds it
    level = fit_level(race, work.draws.kappa, work.trial_bound, work.trial_mass, LARGEST_SHARE, 1.0)
    if level >= ceiling:
        return _one_by_one(thin, turn, ceiling)
    n = _propose(turn, work.trial_bound, work.trial_mass, level)
    for i in range(n):
        _keep_below(thin, turn, i, level, ceiling)
    at = _first_accepted(thin, turn, n)
    if at >= 0:
        return work.plan[at], work.margin[at]
    if level == 0.0:
        return NO_PLAN, 0.0
    return _one_by_one(thin, turn, level)


@compiled_inner
def _propose(turn: Turn, bound: FloatArray, mass: FloatArray, level: float) -> int:
    """The proposals of all draws, each making one with probability equal to the total mass; how many."""
    race, work, rng = turn
    n, at = 0, -1
    log_miss = math.log1p(-mass[race.rule.n_plans - 1])
    if log_miss == 0.0:  # so far behind that no draw brings a rival forward
        return 0
    while True:
        skip = math.log(_uniform(rng)) / log_miss  # draws without a proposal before the next
        if skip >= work.draws.n_draws - 1 - at:
            return n
        at += int(skip) + 1
        _fill(turn, n, bound, mass, level)
        n += 1


@compiled_inner
def _fill(turn: Turn, at: int, bound: FloatArray, mass: FloatArray, level: float) -> None:
    """Choose the plan and the margin of one proposal; -inf where it is thinned away.

    x = (margin + gap) / sd comes from the exponential density above the normal one and is kept with the ratio
    of the two, exp(-(x - r)^2 / 2), and if its margin exceeds the level.
    """
    race, work, rng = turn
    work.margin[at] = -math.inf
    k = _find(mass, _uniform(rng) * mass[race.rule.n_plans - 1], race.rule.n_plans)
    rate = bound[k] if bound[k] > LEAST_RATE else LEAST_RATE
    x = bound[k] - math.log(_uniform(rng)) / rate
    if _uniform(rng) >= math.exp(-0.5 * (x - rate) * (x - rate)):
        return
    gap = race.value[race.now.lead] - race.value[k]
    margin = x * math.sqrt(work.draws.kappa * (race.spread[k] + race.now.off_spread)) - gap
    if margin > level:
        work.plan[at] = k
        work.margin[at] = margin


@compiled_inner
def _uniform(rng: np.random.Generator) -> float:
    """A number in (0, 1], whose logarithm is finite."""
    return 1.0 - rng.random()


@compiled_inner
def _find(mass: FloatArray, mark: float, n: int) -> int:
    """The first index with mass > mark; the last if rounding leaves none."""
    low, high = 0, n - 1
    while low < high:
        middle = (low + high) // 2
        if mass[middle] > mark:
            high = middle
        else:
            low = middle + 1
    return low


@compiled_inner
def _first_accepted(thin: Thin | None, turn: Turn, n: int) -> int:
    """Which of the first n proposals has the largest margin among those accepted; -1 if none is."""
    work = turn.work
    while True:
        at, best = -1, -math.inf
        for i in range(n):
            if work.margin[i] > best:
                best, at = work.margin[i], i
        if at < 0 or _wins(thin, turn, at):
            return at
        work.margin[at] = -math.inf


@compiled_inner
def _keep_below(thin: Thin | None, turn: Turn, at: int, level: float, ceiling: float) -> None:
    """Draw proposal `at` of the trial table again until its draw has no margin above the ceiling."""
    race, work, rng = turn
    while work.margin[at] > ceiling and _wins(thin, turn, at):
        work.margin[at] = -math.inf
        if _uniform(rng) < work.trial_mass[race.rule.n_plans - 1]:
            _fill(turn, at, work.trial_bound, work.trial_mass, level)
    if work.margin[at] > ceiling:  # not accepted: the draw has no margin above the level
        work.margin[at] = -math.inf


@compiled_inner
def _wins(thin: Thin | None, turn: Turn, at: int) -> bool:
    """Complete proposal `at` to a whole draw and say whether its plan has the largest margin there."""
    race, work, _ = turn
    k = work.plan[at]
    _draw_given(thin, turn, k, work.margin[at])
    height = race.value[k] + _product(thin, work, k)
    for i in range(N_KILLERS):
        other = work.killers[i]
        if other != k and race.value[other] + _product(thin, work, other) > height:
            return False
    for other in range(race.rule.n_plans):
        if race.value[other] + _product(thin, work, other) > height and other != k:
            work.killers[other % N_KILLERS] = other
            return False
    return True


@compiled_inner
def _draw_given(thin: Thin | None, turn: Turn, k: int, margin: float) -> None:
    """theta - means = D z given that plan k has this margin, into `work.noise`.

    With u = D (plan_k - lead), plan k has the margin where u.z = margin + gap_k. So z0 ~ N(0, I) is moved
    along u until it does: z = z0 + u (margin + gap_k - u.z0) / u.u.
    """
    race, work, rng = turn
    along, square = 0.0, 0.0
    for i in range(len(race.used)):
        u = _entry_above_lead(thin, race, work, k, i) * work.scale[i]
        z = rng.standard_normal()
        work.noise[i] = z
        along += u * z
        square += u * u
    gap = race.value[race.now.lead] - race.value[k]
    shift = (margin + gap - along) / square
    for i in range(len(race.used)):
        u = _entry_above_lead(thin, race, work, k, i) * work.scale[i]
        work.noise[i] = (work.noise[i] + u * shift) * work.scale[i]


@compiled_inner
def _entry_above_lead(thin: Thin | None, race: Race, work: Workspace, k: int, i: int) -> float:
    """What plan k has on the i-th of the arms that matter, less what the lead has there."""
    s = race.used[i]
    if thin is not None:
        start, end = thin.by_plan.start[k], thin.by_plan.start[k + 1]
        at = start + np.searchsorted(thin.by_plan.where[start:end], s)
        own = thin.by_plan.value[at] if at < end and thin.by_plan.where[at] == s else 0.0
        return own - race.arms[s].lead
    return work.rows[k, i] - race.arms[s].lead


@compiled_inner
def _product(thin: Thin | None, work: Workspace, k: int) -> float:
    """plan_k . noise."""
    if thin is not None:
        total = 0.0
        for at in range(thin.by_plan.start[k], thin.by_plan.start[k + 1]):
            total += thin.by_plan.value[at] * work.noise[work.position[thin.by_plan.where[at]]]
        return total
    return _dot(work.rows[k], work.noise)


@compiled_inner_fast
def _dot(row: FloatArray, noise: FloatArray) -> float:
    total = 0.0
    for i in range(len(row)):
        total += row[i] * noise[i]
    return total


@compiled_inner
def _one_by_one(thin: Thin | None, turn: Turn, ceiling: float) -> tuple[int, float]:
    """The same winner from whole draws, each made again until no margin exceeds the ceiling."""
    winner, largest = NO_PLAN, 0.0
    for _ in range(turn.work.draws.n_draws):
        best, who = _whole_draw(thin, turn)
        while best > ceiling:
            best, who = _whole_draw(thin, turn)
        if best > largest:
            largest, winner = best, who
    return winner, largest


@compiled_inner
def _whole_draw(thin: Thin | None, turn: Turn) -> tuple[float, int]:
    """The largest margin over the lead in one draw, and whose it is; 0 and NO_PLAN if the lead wins."""
    race, work, rng = turn
    for i in range(len(race.used)):
        work.noise[i] = rng.standard_normal() * work.scale[i]
    lead = race.now.lead
    home = race.value[lead] + _product(thin, work, lead)
    best, who = 0.0, NO_PLAN
    for k in range(race.rule.n_plans):
        margin = race.value[k] + _product(thin, work, k) - home
        if k != lead and margin > best:
            best, who = margin, k
    return best, who
