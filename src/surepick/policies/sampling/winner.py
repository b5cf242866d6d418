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

**Tables.** In place of p_k any larger mass serves, if a proposal is thinned by the ratio: here the mass of
an exponential density above the normal one (`_mass`), at bounds slightly below the current (gap + u) / sd.
So one table of masses lasts for as many rounds as the bounds hold, which `absorb` checks for every plan
after every measurement, and no error function is needed. Level and table only steer the work, never the
law. They are set by `absorb`, not by `decide`: a decision depends on what was absorbed and on the random
words alone.

Cost of a round: four passes over the plans; about a hundred proposals of some tens of nanoseconds; for each
vector z, of which there are some 2 to 20, one normal number per arm and the products with the plans until one
beats the proposer, all plans for the accepted one.
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import numpy as np

from surepick.core.arrays import FloatArray, IntArray
from surepick.core.problem import Problem
from surepick.kernels.compiled import compiled, compiled_fast
from surepick.kernels.feed import AFFINE, Feed, measured
from surepick.kernels.round_words import N_WORDS, WordArray, first_words, normal, uniform
from surepick.policies.gap import radius, rounds
from surepick.policies.gap.rounds import Field, Race

WANTED = 120.0  # proposals a round: one in some ten to twenty is accepted where plans are alike
LARGEST_SHARE = 0.8  # of the draws that may make a proposal
SLACK = 0.01  # a table is built with bounds this much below, so that it lasts for some rounds
LEAST_RATE = 1.0  # of the exponential proposals where the bound is near 0
N_KILLERS = 8
FITTING = 40  # bisections for a level
NO_PLAN = -1
_LOG_ROOT_TWO_PI = 0.5 * math.log(2.0 * math.pi)


class Room(NamedTuple):
    """Working room of the rounds of one run; only the table is kept from one round to the next.

    The table: `level`, and for every plan a lower bound of (gap + level) / sd with the mass of its proposals.
    """

    rows: FloatArray  # (n_plans, len(arms)) the plans on the arms that matter; empty for sparse plans
    place: IntArray  # (n_arms,) where an arm is among those; len(arms) if it is not
    bound: FloatArray  # (width,)
    mass: FloatArray  # (width,) cumulative
    trial_bound: FloatArray  # (width,) the same for a lower level, when the table's was too high
    trial_mass: FloatArray  # (width,)
    level: FloatArray  # (1,)
    killers: IntArray  # plans that won lately: asked first, whether they win again
    plan: IntArray  # (n_draws,) proposals: who
    margin: FloatArray  # (n_draws,) and by how much
    noise: FloatArray  # (len(arms) + 1,) theta - means; 0 at the end
    scale: FloatArray  # (len(arms),) D_s
    words: WordArray  # (4,) the generator


def make_room(field: Field, race: Race, n_draws: int) -> Room:
    """Room for rounds of at most `n_draws` draws."""
    width, n_arms, n_used = len(race.value), len(race.counts), len(field.arms)
    place = np.full(n_arms, n_used)
    place[field.arms] = np.arange(n_used)
    return Room(
        rows=np.ascontiguousarray(field.rows[:, field.arms]) if field.rows.size else np.zeros((0, 0)),
        place=place,
        bound=np.zeros(width),
        mass=np.zeros(width),
        trial_bound=np.zeros(width),
        trial_mass=np.zeros(width),
        level=np.zeros(1),
        killers=np.zeros(N_KILLERS, dtype=np.int64),
        plan=np.zeros(n_draws, dtype=np.int64),
        margin=np.zeros(n_draws),
        noise=np.zeros(n_used + 1),
        scale=np.zeros(n_used),
        words=np.zeros(N_WORDS, dtype=np.uint64),
    )


def larger_room(room: Room, n_draws: int) -> Room:
    """The same with room for more draws."""
    return room._replace(plan=np.zeros(n_draws, dtype=np.int64), margin=np.zeros(n_draws))


@functools.cache
def warm_up() -> None:
    """Compile the loops, or load them from the cache, so that no run has to wait for it half-way."""
    problem = Problem([[1.0, 0.0], [0.0, 1.0]])
    ones, none, start = np.ones(2), np.zeros(0), np.zeros(1, dtype=np.int64)
    field = rounds.make_field(problem, ones, np.arange(2, dtype=np.int64), np.zeros(3))
    race = rounds.make_race(problem, code=radius.PUBLISHED, rule=rounds.GAP, delta=0.5, epsilon=0.0)
    room = make_room(field, race, 200)
    race.counts[:] = 1
    race.integers[rounds.MEASURED] = 2
    room.words[:] = 1
    settle(field, race, room, 1.0, 0.1, 2)
    decide(field, race, room, 1.0, 0.1, 2)
    feed = Feed(AFFINE, ones, ones, none, start)
    advance(field, race, room, feed, np.zeros(1), np.zeros(5, dtype=np.int64), 0, 1.0, 0.1, 2)


@compiled
def log_factor(n_measured: int, log_plans: float, log_delta: float) -> float:
    """L = log(12 K^2 t^2 / delta), t = measurements so far + 1."""
    return math.log(12.0) + 2.0 * log_plans + 2.0 * math.log(n_measured + 1.0) - log_delta


@compiled
def advance(
    field: Field,
    race: Race,
    room: Room,
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
        arm = race.integers[rounds.ARM]
        x = measured(feed, arm, draws[used])
        absorb(field, race, room, arm, x, quantile, q, n_plans)
        first_words(entropy, first_round + used + 1, room.words)
        decide(field, race, room, quantile, q, n_plans)
        if race.integers[rounds.STOPPED]:
            return used + 1
    return len(draws)


@compiled
def absorb(
    field: Field, race: Race, room: Room, arm: int, x: float, quantile: float, q: float, n_plans: int
) -> None:
    """Take in one measurement: values and spreads along one column, the lead, the table if it is stale."""
    rounds.absorb_one(field, race, arm, x)
    if race.integers[rounds.FRESH] >= rounds.REFRESH:
        settle(field, race, room, quantile, q, n_plans)
        return
    lead = _argmax(race.value, n_plans)
    if lead != race.integers[rounds.LEAD]:
        race.integers[rounds.LEAD] = lead
        rounds.relead(field, race, n_plans)
        _build(race, room, quantile, q, n_plans)
        return
    kappa, _ = widening(race, quantile, q)
    height, offset = race.value[lead] + room.level[0], race.floats[rounds.OFF_SPREAD]
    if _n_stale(race.value, race.spread, room.bound, height, kappa, offset, n_plans) > 0:
        _build(race, room, quantile, q, n_plans)


@compiled
def settle(field: Field, race: Race, room: Room, quantile: float, q: float, n_plans: int) -> None:
    """Compute everything from the counts and sums."""
    rounds.refresh(field, race, n_plans)
    _build(race, room, quantile, q, n_plans)


@compiled
def widening(race: Race, quantile: float, q: float) -> tuple[float, int]:
    """C / R^2 = 4 L / phi(q)^2 and the number of draws M = ceil(L / q)."""
    floats = race.floats
    factor = log_factor(race.integers[rounds.MEASURED], floats[rounds.LOG_PLANS], floats[rounds.LOG_DELTA])
    return 4.0 * factor / (quantile * quantile), math.ceil(factor / q)


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


@compiled_fast
def _n_stale(
    value: FloatArray,
    spread: FloatArray,
    bound: FloatArray,
    height: float,
    kappa: float,
    offset: float,
    n: int,
) -> int:
    """How many plans have (height - value) / sd below their bound; never the lead, whose bound is 0."""
    count = 0
    for k in range(n):
        gap = height - value[k]
        count += gap * gap < bound[k] * bound[k] * kappa * (spread[k] + offset)
    return count


@compiled
def _build(race: Race, room: Room, quantile: float, q: float, n_plans: int) -> None:
    """A table for the rounds to come, at a level that some `WANTED` proposals exceed."""
    kappa, n_draws = widening(race, quantile, q)
    share = min(WANTED / n_draws, LARGEST_SHARE)
    room.level[0] = _fit_level(race, room.bound, room.mass, kappa, share, 1.0 - SLACK, n_plans)


@compiled
def _fit_level(
    race: Race, bound: FloatArray, mass: FloatArray, kappa: float, share: float, slack: float, n_plans: int
) -> float:
    """A level, 0 if possible, at which the mass of all proposals is at most `share` and not far below."""
    if _fill_table(race, bound, mass, kappa, 0.0, slack, n_plans) <= share:
        return 0.0
    low, high = 0.0, _highest(race.spread, kappa, race.floats[rounds.OFF_SPREAD], n_plans)
    while _fill_table(race, bound, mass, kappa, high, slack, n_plans) > share:
        low, high = high, 2.0 * high
    for _ in range(FITTING):
        middle = 0.5 * (low + high)
        total = _fill_table(race, bound, mass, kappa, middle, slack, n_plans)
        if total > share:
            low = middle
        else:
            high = middle
            if total > 0.7 * share:
                return middle
    _fill_table(race, bound, mass, kappa, high, slack, n_plans)
    return high


@compiled_fast
def _highest(spread: FloatArray, kappa: float, offset: float, n: int) -> float:
    """The largest standard deviation of a plan's margin."""
    top = 0.0
    for k in range(n):
        top = max(top, spread[k])
    return math.sqrt(kappa * (top + offset))


@compiled
def _fill_table(
    race: Race, bound: FloatArray, mass: FloatArray, kappa: float, level: float, slack: float, n_plans: int
) -> float:
    """Bounds and cumulative masses at this level; the total mass."""
    lead = race.integers[rounds.LEAD]
    total = 0.0
    for k in range(n_plans):
        if k != lead:
            variance = kappa * (race.spread[k] + race.floats[rounds.OFF_SPREAD])
            bound[k] = slack * (race.value[lead] - race.value[k] + level) / math.sqrt(variance)
            total += _mass(bound[k])
        mass[k] = total
    bound[lead] = 0.0
    return total


@compiled
def _mass(bound: float) -> float:
    """Of an exponential density above the normal one on x > bound; see `_fill`.

    With rate r = max(bound, 1), exp(-x^2/2) <= exp(r^2/2 - r x), so the mass is
    exp(r^2/2 - r bound) / (r sqrt(2 pi)): at most a fifth more than the normal tail where that matters.
    """
    rate = max(bound, LEAST_RATE)
    return math.exp(rate * (0.5 * rate - bound) - _LOG_ROOT_TWO_PI) / rate


@compiled
def decide(field: Field, race: Race, room: Room, quantile: float, q: float, n_plans: int) -> None:
    """Draw the round from `room.words`: set the rival and the arm, or the stop."""
    kappa, n_draws = widening(race, quantile, q)
    for i in range(len(field.arms)):
        room.scale[i] = math.sqrt(kappa * race.weight[field.arms[i]])
    rival, margin = _winner(field, race, room, kappa, n_draws, n_plans)
    race.integers[rounds.STOPPED] = rival == NO_PLAN
    if rival != NO_PLAN:
        race.integers[rounds.RIVAL] = rival
        race.floats[rounds.SCORE] = margin
        rounds.choose_arm(field, race)


@compiled
def _winner(
    field: Field, race: Race, room: Room, kappa: float, n_draws: int, n_plans: int
) -> tuple[int, float]:
    """The plan with the largest margin in n_draws draws, and that margin; NO_PLAN if none is positive."""
    level = room.level[0]
    n = _propose(race, room, room.bound, room.mass, kappa, level, n_draws, n_plans)
    at = _first_accepted(field, race, room, kappa, n, n_plans)
    if at >= 0:
        return room.plan[at], room.margin[at]
    if level == 0.0:
        return NO_PLAN, 0.0
    ceiling = level  # from here on no margin of any draw exceeds it
    level = _fit_level(race, room.trial_bound, room.trial_mass, kappa, LARGEST_SHARE, 1.0, n_plans)
    if level >= ceiling:
        return _one_by_one(field, race, room, ceiling, n_draws, n_plans)
    n = _propose(race, room, room.trial_bound, room.trial_mass, kappa, level, n_draws, n_plans)
    for i in range(n):
        _keep_below(field, race, room, i, kappa, level, ceiling, n_plans)
    at = _first_accepted(field, race, room, kappa, n, n_plans)
    if at >= 0:
        return room.plan[at], room.margin[at]
    if level == 0.0:
        return NO_PLAN, 0.0
    return _one_by_one(field, race, room, level, n_draws, n_plans)


@compiled
def _propose(
    race: Race,
    room: Room,
    bound: FloatArray,
    mass: FloatArray,
    kappa: float,
    level: float,
    n_draws: int,
    n_plans: int,
) -> int:
    """The proposals of n_draws draws, each making one with probability equal to the total mass; how many."""
    n, at = 0, -1
    log_miss = math.log1p(-mass[n_plans - 1])
    while True:
        skip = math.log(uniform(room.words)) / log_miss  # draws without a proposal before the next
        if skip >= n_draws - 1 - at:
            return n
        at += int(skip) + 1
        _fill(race, room, n, bound, mass, kappa, level, n_plans)
        n += 1


@compiled
def _fill(
    race: Race,
    room: Room,
    at: int,
    bound: FloatArray,
    mass: FloatArray,
    kappa: float,
    level: float,
    n_plans: int,
) -> None:
    """Choose the plan and the margin of one proposal; -inf where it is thinned away.

    x = (margin + gap) / sd comes from the exponential density above the normal one and is kept with the ratio
    of the two, exp(-(x - r)^2 / 2), and if its margin exceeds the level.
    """
    room.margin[at] = -math.inf
    k = _find(mass, uniform(room.words) * mass[n_plans - 1], n_plans)
    rate = max(bound[k], LEAST_RATE)
    x = bound[k] - math.log(uniform(room.words)) / rate
    if uniform(room.words) >= math.exp(-0.5 * (x - rate) * (x - rate)):
        return
    gap = race.value[race.integers[rounds.LEAD]] - race.value[k]
    margin = x * math.sqrt(kappa * (race.spread[k] + race.floats[rounds.OFF_SPREAD])) - gap
    if margin > level:
        room.plan[at] = k
        room.margin[at] = margin


@compiled
def _find(mass: FloatArray, mark: float, n: int) -> int:
    """The first place with mass > mark; the last if rounding leaves none."""
    low, high = 0, n - 1
    while low < high:
        middle = (low + high) // 2
        if mass[middle] > mark:
            high = middle
        else:
            low = middle + 1
    return low


@compiled
def _first_accepted(field: Field, race: Race, room: Room, kappa: float, n: int, n_plans: int) -> int:
    """Which of the first n proposals has the largest margin among those accepted; -1 if none is."""
    while True:
        at, best = -1, -math.inf
        for i in range(n):
            if room.margin[i] > best:
                best, at = room.margin[i], i
        if at < 0 or _wins(field, race, room, at, kappa, n_plans):
            return at
        room.margin[at] = -math.inf


@compiled
def _keep_below(
    field: Field, race: Race, room: Room, at: int, kappa: float, level: float, ceiling: float, n_plans: int
) -> None:
    """Draw proposal `at` of the trial table again until its draw has no margin above the ceiling."""
    while room.margin[at] > ceiling and _wins(field, race, room, at, kappa, n_plans):
        room.margin[at] = -math.inf
        if uniform(room.words) < room.trial_mass[n_plans - 1]:
            _fill(race, room, at, room.trial_bound, room.trial_mass, kappa, level, n_plans)
    if room.margin[at] > ceiling:  # not accepted: the draw has no margin above the level
        room.margin[at] = -math.inf


@compiled
def _wins(field: Field, race: Race, room: Room, at: int, kappa: float, n_plans: int) -> bool:
    """Complete proposal `at` to a whole draw and say whether its plan has the largest margin there."""
    k = room.plan[at]
    _draw_given(field, race, room, k, room.margin[at], kappa)
    height = race.value[k] + _product(field, race, room, k)
    for i in range(N_KILLERS):
        other = room.killers[i]
        if other != k and race.value[other] + _product(field, race, room, other) > height:
            return False
    for other in range(n_plans):
        if race.value[other] + _product(field, race, room, other) > height and other != k:
            room.killers[other % N_KILLERS] = other
            return False
    return True


@compiled
def _draw_given(field: Field, race: Race, room: Room, k: int, margin: float, kappa: float) -> None:
    """theta - means given that plan k has this margin, into `room.noise`.

    z = z0 + a (x - a.z0) with z0 ~ N(0, I), a the direction D y_k / sd_k and x = (margin + gap_k) / sd_k.
    """
    along, variance = 0.0, 0.0
    for i in range(len(field.arms)):
        y = (_entry(field, race, room, k, i) - race.lead_row[field.arms[i]]) * room.scale[i]
        room.noise[i] = normal(room.words)
        along += y * room.noise[i]
        variance += y * y
    goal = margin + race.value[race.integers[rounds.LEAD]] - race.value[k]
    shift = (goal - along) / variance
    for i in range(len(field.arms)):
        y = (_entry(field, race, room, k, i) - race.lead_row[field.arms[i]]) * room.scale[i]
        room.noise[i] = (room.noise[i] + y * shift) * room.scale[i]


@compiled
def _entry(field: Field, race: Race, room: Room, k: int, i: int) -> float:
    """What plan k has on the i-th of the arms that matter."""
    if not race.integers[rounds.SPARSE]:
        return room.rows[k, i]
    start, end = field.row_start[k], field.row_start[k + 1]
    at = start + np.searchsorted(field.row_arm[start:end], field.arms[i])
    return field.row_value[at] if at < end and field.row_arm[at] == field.arms[i] else 0.0


@compiled
def _product(field: Field, race: Race, room: Room, k: int) -> float:
    """plan_k . noise."""
    if not race.integers[rounds.SPARSE]:
        return _dot(room.rows[k], room.noise)
    total = 0.0
    for at in range(field.row_start[k], field.row_start[k + 1]):
        total += field.row_value[at] * room.noise[room.place[field.row_arm[at]]]
    return total


@compiled_fast
def _dot(row: FloatArray, noise: FloatArray) -> float:
    total = 0.0
    for i in range(len(row)):
        total += row[i] * noise[i]
    return total


@compiled
def _one_by_one(
    field: Field, race: Race, room: Room, ceiling: float, n_draws: int, n_plans: int
) -> tuple[int, float]:
    """The same winner from n_draws whole draws, each made again until no margin exceeds the ceiling."""
    winner, largest = NO_PLAN, 0.0
    for _ in range(n_draws):
        best, who = _whole_draw(field, race, room, n_plans)
        while best > ceiling:
            best, who = _whole_draw(field, race, room, n_plans)
        if best > largest:
            largest, winner = best, who
    return winner, largest


@compiled
def _whole_draw(field: Field, race: Race, room: Room, n_plans: int) -> tuple[float, int]:
    """The largest margin over the lead in one draw, and whose it is; 0 and NO_PLAN if the lead wins."""
    for i in range(len(field.arms)):
        room.noise[i] = normal(room.words) * room.scale[i]
    lead = race.integers[rounds.LEAD]
    home = race.value[lead] + _product(field, race, room, lead)
    best, who = 0.0, NO_PLAN
    for k in range(n_plans):
        margin = race.value[k] + _product(field, race, room, k) - home
        if k != lead and margin > best:
            best, who = margin, k
    return best, who
