"""The state of the compiled loops of gap policies: plans, evidence, and the standing of every plan."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from surepick.core.arrays import FloatArray, IntArray
from surepick.core.policy import known_noise_scale
from surepick.core.problem import Problem
from surepick.kernels.plan_rows import (
    NonZeros,
    dense_plans,
    is_thin,
    non_zeros_by_arm,
    non_zeros_by_plan,
)
from surepick.kernels.records import RecordArray, arrays_of, make_record, make_records, put, refill
from surepick.policies.gap.radius import (
    KAUFMANN_KOOLEN,
    NORMAL_MIXTURE,
    NORMAL_MIXTURE_JOINT,
    PUBLISHED,
    RECTANGLE,
    RIDGE,
)

BLOCK = 32  # plans a block; columns are padded to whole blocks
EPS = 2.0**-52  # of a double
NEGLIGIBLE = 1e-4  # of a radius: rounding that may be left out, since it changes a risk by less than 1%
NOWHERE = -1e300  # the value of padding: never a lead, never a rival

GAP, NAIVE, CYCLE, RATIO = range(4)  # the rules for choosing an arm
ARM_RULES = {"gap": GAP, "naive": NAIVE, "cycle": CYCLE, "ratio": RATIO}


class Dense(NamedTuple):
    """Plans kept with all entries, both ways round."""

    columns: FloatArray  # (n_arms, width), zero-padded
    rows: FloatArray  # (n_plans, n_arms)


class Thin(NamedTuple):
    """Plans kept as their non-zeros, both ways round."""

    by_arm: NonZeros
    by_plan: NonZeros


class Rule:
    """How lead and rival are compared and an arm chosen; does not change in a run."""

    radius: int  # PUBLISHED, NORMAL_MIXTURE, ...
    arm_rule: int  # GAP, NAIVE, CYCLE or RATIO
    mixture: bool  # the radius has a lam that follows the counts
    paired: bool  # each pair has a threshold of its own
    thin: bool  # plans are kept as their non-zeros
    n_plans: int
    epsilon: float
    log_delta: float
    log_plans: float
    norm_bound: float


class Now:
    """Where the race stands."""

    lead: int
    rival: int
    arm: int  # to be measured next
    stopped: bool
    measured: int  # measurements so far; 0 until every arm has one
    fresh: int  # measurements since everything was computed from counts and sums
    lam: int  # which one of the grid
    switch: int  # measurements after which another lam may be better
    off_spread: float  # to be added to all spreads: what the lead's own arms contribute, for thin plans
    off_pair: float  # the same for thresholds
    level: float
    score: float  # of the rival
    joint: float  # sum of the arms' terms
    lam_value: float
    lam_weight: float  # logarithm


class Arm:
    """What is known of an arm, and what follows from it for every pair of plans that differ there."""

    count: int
    total: float
    estimate: float
    weight: float  # variance * inflation(count)
    term: float
    gain: float  # variance / (T (T+1) cost): what one more measurement takes off a pair's variance
    lead: float  # the lead's entry
    variance: float  # noise scale squared
    cost: float
    reach: float  # the largest entry of any plan, without its sign


class Race(NamedTuple):
    """What changes: the evidence, and the standing of every plan against the lead."""

    value: FloatArray  # (width,) of every plan
    spread: FloatArray  # (width,)
    pair: FloatArray  # (width,) threshold without the level
    root: FloatArray  # (width,) a stale root of twice their product
    hits: IntArray  # (n_blocks,) plans of a block that could be rival or lead
    support: IntArray  # (width,) workspace
    arms: RecordArray  # (n_arms,) of Arm
    used: IntArray  # the arms that may be measured
    base: FloatArray  # threshold by size of support
    now: Now
    rule: Rule


@dataclass(frozen=True)
class Settings:
    """What tells the races of one policy from those of another."""

    radius: int
    arm_rule: str
    delta: float
    epsilon: float = 0.0
    norm_bound: float = 0.0


def make_plans(problem: Problem) -> tuple[Dense | None, Thin | None]:
    """The plans in the form that suits them, and None for the other.

    Compiled code asks which one is None, so that loops are compiled for a form when it is first used.
    """
    if is_thin(problem):
        return None, Thin(non_zeros_by_arm(problem), non_zeros_by_plan(problem))
    return Dense(*dense_plans(problem, BLOCK)), None


def make_race(problem: Problem, settings: Settings, used: IntArray, base: FloatArray | None = None) -> Race:
    """A race in which nothing has been measured yet."""
    n_blocks = -(-problem.n_plans // BLOCK)
    width, n_arms = n_blocks * BLOCK, problem.n_arms
    arms = make_records(Arm, n_arms)
    arms["variance"], arms["cost"] = known_noise_scale(problem) ** 2, problem.costs
    largest: Any = np.abs(problem.plans).max(axis=0)  # type: ignore[arg-type]
    arms["reach"] = largest if isinstance(largest, np.ndarray) else largest.toarray()[0]
    value, spread, pair, root = (np.full(width, start) for start in (NOWHERE, 0.0, 0.0, 0.0))
    hits, support = np.zeros(n_blocks, dtype=np.int64), np.zeros(width, dtype=np.int64)
    base = np.zeros(n_arms + 1) if base is None else base
    now = make_record(Now, lead=-1, rival=-1, arm=-1)
    rule = _rule(problem, settings)
    return Race(value, spread, pair, root, hits, support, arms, used, base, now, rule)


def _rule(problem: Problem, settings: Settings) -> Rule:
    radius = settings.radius
    return make_record(
        Rule,
        radius=radius,
        arm_rule=ARM_RULES[settings.arm_rule],
        mixture=radius in (NORMAL_MIXTURE, NORMAL_MIXTURE_JOINT),
        paired=radius in (NORMAL_MIXTURE, KAUFMANN_KOOLEN),
        thin=is_thin(problem),
        n_plans=problem.n_plans,
        epsilon=settings.epsilon,
        log_delta=math.log(settings.delta),
        log_plans=math.log(_size(problem, radius)),
        norm_bound=settings.norm_bound,
    )


def _size(problem: Problem, radius: int) -> int:
    """What a radius unites over: the arms, all plans, or the rivals of the best one."""
    if radius == RECTANGLE:
        return int(problem.relevant.sum())
    return problem.n_plans if radius in (PUBLISHED, RIDGE) else problem.n_plans - 1


def gathered_rounding(race: Race) -> float:
    """More than the difference of two plans' values is off by rounding, if values were added up one by one.

    A sum of n numbers of about one size m errs by less than n eps n m / 2, its mean by n eps m / 2. That
    grows with n while the radius shrinks: at 1e10 noise scales from zero it is the larger one from about 1e5
    on. What adding up the arms of a plan contributes is `len(used)`.
    """
    arms = race.arms[race.used]
    return EPS * float(arms["reach"] @ (np.abs(arms["estimate"]) * (arms["count"] + len(race.used))))


# The form in which sessions keep a race: two arrays of numbers, and one array for what there is per arm.
_INTEGERS = "lead rival arm stopped measured fresh lam radius arm_rule thin switch"
_FLOATS = "off_spread off_pair level score epsilon log_delta log_plans joint lam_value lam_weight norm_bound"
_PER_ARM = {
    "counts": "count",
    "sums": "total",
    "means": "estimate",
    "weight": "weight",
    "term": "term",
    "gain": "gain",
    "lead_row": "lead",
}
_PER_PLAN = ("value", "spread", "pair", "root", "hits")


def race_state(race: Race) -> dict[str, Any]:
    """Copies of all that a race needs to go on."""
    numbers = {name: record[name] for record in _records(race) for name in record.dtype.names}
    return {
        **arrays_of(race, _PER_PLAN),
        **{kept: race.arms[name].copy() for kept, name in _PER_ARM.items()},
        "integers": np.array([numbers[name] for name in _INTEGERS.split()], dtype=np.int64),
        "floats": np.array([numbers[name] for name in _FLOATS.split()]),
    }


def restore_race(race: Race, state: Mapping[str, Any]) -> None:
    """Go on with a race that `race_state` gave."""
    refill(race, {name: state[name] for name in _PER_PLAN})
    for kept, name in _PER_ARM.items():
        put(race.arms[name], state[kept], kept)
    numbers = dict(zip(_INTEGERS.split(), state["integers"], strict=True))
    numbers |= dict(zip(_FLOATS.split(), state["floats"], strict=True))
    for record in _records(race):
        for name in record.dtype.names:
            if name in numbers:
                record[name] = numbers[name]


def _records(race: Race) -> tuple[Any, Any]:
    return race.now, race.rule
