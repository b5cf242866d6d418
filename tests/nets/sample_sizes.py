"""How many measurements the betting policies need, by family, on fixed tapes of noise.

A tape gives the k-th use of each probe the same value whichever policy asks, so that two versions are
compared on the same noise. `python tests/nets/sample_sizes.py --write` stores the means and their standard
errors.
"""

from __future__ import annotations

import itertools
import json
import math
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

import probe_cases
import surepick as sp
from polytopes import assignment, product_mix, transport
from surepick.core.arrays import FloatArray
from surepick.core.oracle_problem import AnyProblem
from surepick.core.plan_sets import plan_set, spanned
from surepick.core.run import Measure
from surepick.inference.contrasts import arm_probes
from surepick.policies import Challenge
from surepick.policies.betting.batch_run import BatchRun
from surepick.policy import Policy

KEPT = Path(__file__).with_name("sample_sizes.json")
LENGTH = 8_000  # uses of each probe on a tape
Family = tuple[Callable[[], tuple[AnyProblem, FloatArray]], Policy, int]


def arms(n: int, gap: float = 0.5, **given: object) -> Callable[[], tuple[sp.Problem, FloatArray]]:
    """n arms, the first of which is better by this gap."""
    return lambda: (
        sp.Problem(np.eye(n), **{"noise": 1.0, **given}, goal="largest"),
        np.r_[gap, np.zeros(n - 1)],
    )  # type: ignore[arg-type]


def top(k: int, n: int, seed: int) -> tuple[sp.Problem, FloatArray]:
    """All sets of k of n arms."""
    plans = [[float(i in some) for i in range(n)] for some in itertools.combinations(range(n), k)]
    return sp.Problem(plans, noise=1, goal="largest"), np.random.default_rng(seed).normal(size=n)


def together() -> tuple[sp.Problem, FloatArray]:
    """Five arms in pairs with common noise."""
    names = list("abcde")
    probes = {
        first + second: sp.Probe([first, second], covariance=[[1.0, 0.9], [0.9, 1.0]])
        for first, second in itertools.combinations(names, 2)
    }
    return sp.Problem(np.eye(5), arms=names, measure=probes, noise=1, goal="largest"), np.r_[0.5, np.zeros(4)]


def costly_transport() -> tuple[sp.Polytope, FloatArray]:
    """A transport whose arms cost from 1 to 9."""
    problem, means = transport(301, 3, 3)
    rows = {"A_eq": problem.rows.a_eq, "b_eq": problem.rows.b_eq}
    return sp.Polytope(**rows, goal="smallest", noise=1, cost=np.arange(1.0, 10.0)), means


def clear(
    plans_of: Callable[..., sp.OracleProblem], seed: int, **given: object
) -> tuple[sp.OracleProblem, FloatArray]:
    """Plans behind an oracle; the best is ahead by .5 or more."""
    problem = plans_of(list_plans=False, noise=1, **given)
    means = 1 + np.random.default_rng([5, seed]).normal(size=problem.n_arms)
    plans = plan_set(problem)
    box = spanned(plans)
    best = plans.best(means, box)
    others = [plan for part in box.without(best, plans.step) if (plan := plans.best(means, part)) is not None]
    return problem, means * max(1.0, 0.5 / min(float((best - plan) @ means) for plan in others))


def unknown(stated: tuple[AnyProblem, FloatArray]) -> tuple[AnyProblem, FloatArray]:
    """The same problem without its noise."""
    problem, means = stated
    return problem.with_noise(None), means


def numbered(n: int) -> list[str]:
    return [str(s) for s in range(n)]


GRID = [(f"{i}{j}", f"{i + a}{j + 1 - a}") for i in range(4) for j in range(4) for a in (0, 1)]
TEAMS = partial(sp.problems.top_k, numbered(10), 3, goal="largest")
PAIRS = partial(sp.problems.matchings, row_names=numbered(4), column_names=numbered(4), goal="smallest")
PATHS = partial(sp.problems.paths, [e for e in GRID if "4" not in "".join(e)], "00", "33", directed=True)
LARGE = partial(sp.problems.top_k, numbered(40), 20, goal="largest")
PACKINGS = partial(sp.problems.knapsack, [3, 5, 7, 4], None, 20)
BEST, UNKNOWN = sp.BetGapE(0.05), {"noise": None}
FAMILIES: dict[str, Family] = {
    "two arms": (arms(2), BEST, 40),
    "five arms": (arms(5), BEST, 16),
    "unequal costs": (arms(5, cost=[1.0, 4.0, 1.0, 9.0, 1.0]), BEST, 12),
    "set-up cost": (arms(2, setup_cost=30.0), BEST, 30),
    "bounded variance": (arms(3, noise_kind="bounded variance"), BEST, 16),
    "oracle: top 3 of 10": (lambda: clear(TEAMS, 0), BEST, 12),
    "oracle: top 20 of 40": (lambda: clear(LARGE, 2), BEST, 2),
    "oracle: paths": (lambda: clear(PATHS, 1), BEST, 4),
    "oracle: assignments": (lambda: clear(PAIRS, 2), BEST, 8),
    "oracle: whole numbers": (lambda: clear(PACKINGS, 3), BEST, 12),
    "oracle: within epsilon": (lambda: clear(TEAMS, 1), sp.BetGapE(0.05, 0.5), 12),
    "oracle: whole plans read": (lambda: clear(TEAMS, 3, measure="plan arms"), BEST, 8),
    "oracle: unknown noise": (lambda: unknown(clear(TEAMS, 0)), BEST, 8),
    "polytope within epsilon, unknown noise": (
        lambda: unknown(transport(303, 3, 3)),
        sp.BetGapE(0.05, 0.1),
        8,
    ),
    "two arms, unknown noise": (arms(2, **UNKNOWN), BEST, 24),
    "five arms, unknown noise": (arms(5, **UNKNOWN), BEST, 8),
    "sets of arms": (lambda: top(3, 6, 11), BEST, 16),
    "within epsilon, few plans": (arms(4, 0.3), sp.BetGapE(0.05, 0.3), 20),
    "within epsilon, many plans": (lambda: top(4, 8, 5), sp.BetGapE(0.05, 1.0), 12),
    "keep or replace": (arms(4), Challenge(1, 0.05, 0.2), 16),
    "mixed readings": (lambda: probe_cases.soare(4, 0.5), BEST, 10),
    "whole plans": (lambda: probe_cases.top_k(5, 2, 3, "full"), BEST, 6),
    "arms of plans": (lambda: probe_cases.top_k(5, 2, 3, "semi"), BEST, 10),
    "common noise": (together, BEST, 10),
    "vertices, 3 x 3": (lambda: transport(301, 3, 3), BEST, 12),
    "vertices, 5 x 4": (lambda: transport(302, 5, 4), BEST, 10),
    "degenerate vertices": (lambda: assignment(3, 1), BEST, 8),
    "vertices, unequal costs": (costly_transport, BEST, 8),
    "polytope within epsilon, 3 x 3": (lambda: transport(303, 3, 3), sp.BetGapE(0.05, 0.1), 20),
    "polytope within epsilon, 5 x 4": (lambda: transport(302, 5, 4), sp.BetGapE(0.05, 0.05), 10),
    "polytope within epsilon, limits": (lambda: product_mix(302), sp.BetGapE(0.05, 0.3), 5),
    "mixed readings, unknown noise": (
        lambda: (
            sp.Problem(probe_cases.soare(4, 0.5)[0].plans, measure="plans", **{"goal": "largest", **UNKNOWN}),
            probe_cases.soare(4, 0.5)[1],
        ),
        BEST,
        4,
    ),
}


def cost_on_tape(problem: AnyProblem, means: FloatArray, policy: Policy, seed: list[int]) -> float:
    """The cost of a run whose k-th use of each probe gives the k-th values of a tape; set-ups are counted."""
    probes, rng = arm_probes(problem), np.random.default_rng(seed)
    noise = probes.colour(rng.standard_normal((probes.n_readings, LENGTH)))
    before = np.concatenate([np.zeros((probes.n_readings, 1)), np.cumsum(noise, axis=1)], axis=1)
    truth, owner, each = probes.rows @ means, probes.owner, np.arange(probes.n_readings)
    run, used, n_requests, cost = policy.start(problem), np.zeros(len(probes), dtype=np.int64), 0, 0.0
    while isinstance(decision := run.decide(rng), Measure):
        start, stop = used[owner], (used + decision.counts)[owner]
        sums = (stop - start) * truth + before[each, stop] - before[each, start]
        if isinstance(run, BatchRun) and run.needs_values:  # of single arms
            asked = np.flatnonzero(decision.counts).tolist()
            values = {s: (truth[s] + noise[s, start[s] : stop[s]])[:, None] for s in asked}
            run.absorb(decision.counts, sums, values=values)
        else:
            run.absorb(decision.counts, sums)
        used, n_requests = used + decision.counts, n_requests + 1
        plays = decision.plays
        cost += float(decision.counts @ problem.costs) if plays is None else plays.n_uses * problem.costs[0]
    return cost + problem.setup_cost * n_requests


def sample_size(name: str) -> dict[str, float]:
    """The mean cost of a family, and its standard error."""
    build, policy, n = FAMILIES[name]
    problem, means = build()
    costs = [cost_on_tape(problem, means, policy, [20, seed]) for seed in range(n)]
    return {"mean": round(float(np.mean(costs)), 2), "error": round(float(np.std(costs)) / math.sqrt(n), 2)}


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        raise SystemExit(__doc__)
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(sample_size(name))}" for name in FAMILIES)
    KEPT.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")
