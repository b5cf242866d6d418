"""The compiled table of proposals: how likely each plan is to beat the lead by more than a level in one draw.

`winner` says what the table is for. For every plan it has a lower bound of x_k = (gap_k + level) / sd_k and,
as the mass of its proposals, the integral of an exponential density above the normal one on x > bound. A
table lasts for as long as the bounds hold, which `absorb` checks for every plan after every measurement. It
is made when something is absorbed, never by a decision.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from surepick.core.arrays import FloatArray, IntArray
from surepick.kernels.compiled import compiled, compiled_inner, compiled_inner_fast
from surepick.kernels.records import make_record
from surepick.policies.gap import rounds
from surepick.policies.gap.state import Dense, Race, Thin

WANTED = 120.0  # proposals a round: one in some ten to twenty is accepted where plans are alike
LARGEST_SHARE = 0.8  # of the draws that may make a proposal
SLACK = 0.01  # a table is built with bounds this much below, so that it lasts for some rounds
LEAST_RATE = 1.0  # of the exponential proposals where the bound is near 0
N_KILLERS = 8
FITTING = 40  # bisections for a level
_LOG_ROOT_TWO_PI = 0.5 * math.log(2.0 * math.pi)


class Draws:
    """How many draws a round has and how wide they are."""

    quantile: float  # phi(q)
    q: float
    kappa: float  # C / R^2 = 4 L / phi(q)^2: how much wider the draws are than the estimates
    n_draws: int  # M = ceil(L / q)
    level: float  # of the table


class Workspace(NamedTuple):
    """What a run needs beside its race; bounds, masses, level and killers are kept between rounds."""

    rows: FloatArray  # (n_plans, n_used) the plans on the arms that matter; empty for thin plans
    position: IntArray  # (n_arms,) of an arm among those; n_used if it is not
    bound: FloatArray  # (width,)
    mass: FloatArray  # (width,) cumulative
    trial_bound: FloatArray  # (width,) the same for a lower level, when the table's was too high
    trial_mass: FloatArray  # (width,)
    killers: IntArray  # plans that won lately: asked first, whether they win again
    plan: IntArray  # (n_draws,) proposals: who
    margin: FloatArray  # (n_draws,) and by how much
    noise: FloatArray  # (n_used + 1,) theta - means; 0 at the end
    scale: FloatArray  # (n_used,) D_s
    draws: Draws


def make_workspace(dense: Dense | None, race: Race, quantile: float, q: float) -> Workspace:
    """A workspace without room for proposals yet: see `with_proposals`."""
    width, n_arms, n_used = len(race.value), len(race.arms), len(race.used)
    position = np.full(n_arms, n_used)
    position[race.used] = np.arange(n_used)
    bound, mass, trial_bound, trial_mass = (np.zeros(width) for _ in range(4))
    return Workspace(
        rows=np.zeros((0, 0)) if dense is None else np.ascontiguousarray(dense.rows[:, race.used]),
        position=position,
        bound=bound,
        mass=mass,
        trial_bound=trial_bound,
        trial_mass=trial_mass,
        killers=np.zeros(N_KILLERS, dtype=np.int64),
        plan=np.zeros(0, dtype=np.int64),
        margin=np.zeros(0),
        noise=np.zeros(n_used + 1),
        scale=np.zeros(n_used),
        draws=make_record(Draws, quantile=quantile, q=q),
    )


def with_proposals(work: Workspace, n_draws: int) -> Workspace:
    """The same workspace for rounds of at most this many draws."""
    if n_draws <= len(work.plan):
        return work
    return work._replace(plan=np.zeros(n_draws, dtype=np.int64), margin=np.zeros(n_draws))


@compiled
def absorb(dense: Dense | None, thin: Thin | None, race: Race, work: Workspace, s: int, x: float) -> None:
    """Take in one measurement of arm s; with s < 0 compute everything from counts and sums instead.

    Values and spreads change along one column. A new lead or a bound that fails needs a new table.
    """
    now, draws, n_plans = race.now, work.draws, race.rule.n_plans
    if s >= 0:
        rounds.absorb_one(dense, thin, race, s, x)
    anew = s < 0 or now.fresh >= rounds.REFRESH
    if anew:
        rounds.refresh(dense, thin, race)
    lead = _argmax(race.value, n_plans)
    if anew or lead != now.lead:
        now.lead, anew = lead, True
        rounds.relead(dense, thin, race)
    widen(draws, race)
    height = race.value[lead] + draws.level
    if (
        anew
        or _n_stale(race.value, race.spread, work.bound, height, draws.kappa, now.off_spread, n_plans) > 0
    ):
        share = WANTED / draws.n_draws
        share = share if share < LARGEST_SHARE else LARGEST_SHARE
        draws.level = fit_level(race, draws.kappa, work.bound, work.mass, share, 1.0 - SLACK)


@compiled_inner
def widen(draws: Draws, race: Race) -> None:
    """Set C / R^2 = 4 L / phi(q)^2 and M = ceil(L / q), L = log(12 K^2 t^2 / delta), t = measurements + 1."""
    rule = race.rule
    factor = math.log(12.0) + 2.0 * rule.log_plans + 2.0 * math.log(race.now.measured + 1.0) - rule.log_delta
    draws.kappa = 4.0 * factor / (draws.quantile * draws.quantile)
    draws.n_draws = math.ceil(factor / draws.q)


@compiled_inner_fast
def _largest(value: FloatArray, n: int) -> float:
    top = value[0]
    for k in range(n):
        top = max(top, value[k])
    return top


@compiled_inner
def _argmax(value: FloatArray, n: int) -> int:
    top = _largest(value, n)
    for k in range(n):
        if value[k] == top:
            return k
    return 0


@compiled_inner_fast
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
        least = bound[k]
        count += 1 if gap * gap < least * least * kappa * (spread[k] + offset) else 0
    return count


@compiled_inner
def fit_level(
    race: Race, kappa: float, bound: FloatArray, mass: FloatArray, share: float, slack: float
) -> float:
    """A level, 0 if possible, at which the mass of all proposals is at most `share` and not far below.

    Fills bounds and masses for that level; bounds are `slack` times the largest that hold.
    """
    if _fill_table(race, kappa, bound, mass, 0.0, slack) <= share:
        return 0.0
    low, high = 0.0, _largest_sd(race.spread, kappa, race.now.off_spread, race.rule.n_plans)
    while _fill_table(race, kappa, bound, mass, high, slack) > share:
        low, high = high, 2.0 * high
    for _ in range(FITTING):
        middle = 0.5 * (low + high)
        total = _fill_table(race, kappa, bound, mass, middle, slack)
        if total > share:
            low = middle
        else:
            high = middle
            if total > 0.7 * share:
                return middle
    _fill_table(race, kappa, bound, mass, high, slack)
    return high


@compiled_inner_fast
def _largest_sd(spread: FloatArray, kappa: float, offset: float, n: int) -> float:
    """The largest standard deviation of a plan's margin."""
    top = 0.0
    for k in range(n):
        top = max(top, spread[k])
    return math.sqrt(kappa * (top + offset))


@compiled_inner
def _fill_table(
    race: Race, kappa: float, bound: FloatArray, mass: FloatArray, level: float, slack: float
) -> float:
    """Bounds and cumulative masses at this level; the total mass.

    With rate r = max(bound, 1), exp(-x^2/2) <= exp(r^2/2 - r x), so the mass above the bound is
    exp(r^2/2 - r bound) / (r sqrt(2 pi)): at most a fifth more than the normal tail where that matters.
    """
    lead = race.now.lead
    height, total = race.value[lead], 0.0
    for k in range(race.rule.n_plans):
        if k != lead:
            variance = kappa * (race.spread[k] + race.now.off_spread)
            least = slack * (height - race.value[k] + level) / math.sqrt(variance)
            rate = least if least > LEAST_RATE else LEAST_RATE
            total += math.exp(rate * (0.5 * rate - least) - _LOG_ROOT_TWO_PI) / rate
            bound[k] = least
        mass[k] = total
    bound[lead] = 0.0
    return total
