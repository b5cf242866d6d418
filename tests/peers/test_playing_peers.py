"""P-FWS and CombGame against their formulas, on oracles and on lists; that they have no guarantee."""

import numpy as np
import pytest

import surepick as sp
from common import largest
from surepick import problems
from surepick.peers.playing import Estimates, PlayOracle, Search, gradient
from surepick.policies import PFWS, CombGame
from surepick.policy import Stop
from surepick.simulation import Gaussian

METHODS = [PFWS, CombGame]
PLANS = np.array([[1.0, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1], [1, 0, 0, 1]])
MEANS = np.array([2.0, 1.5, 0.0, 0.5])


def oracle(*, goal="largest", **settings):
    sign = -1.0 if goal == "smallest" else 1.0
    return sp.OracleProblem(
        lambda weights: PLANS[np.argmax(sign * (PLANS @ weights))], 4, goal=goal, **{"noise": 1, **settings}
    )


@pytest.mark.parametrize("method", METHODS)
def test_a_list_is_played_as_the_oracle_is(method):
    """The same plays, and the same readings without noise, so the same decisions."""
    listed, truth = (largest(PLANS, measure="plan arms"), Gaussian(MEANS, scale=0.0))
    one = sp.simulate(oracle(measure="plan arms"), truth, policy=method(delta=0.1), seed=3, budget=400)
    other = sp.simulate(listed, truth, policy=method(delta=0.1), seed=3, budget=400)
    assert one.n_measured == other.n_measured
    assert one.plan == tuple(listed.plans[other.plan])


def least_distance(counts, sums):
    means = sums / counts
    away = PLANS[np.argmax(PLANS @ means)] - PLANS
    away = away[away.any(axis=1)]
    return float(((away @ means) ** 2 / (2 * away**2 @ (1 / counts))).min())


@pytest.mark.parametrize("method", METHODS)
def test_the_stop_is_a_threshold_on_the_closest_plan(method):
    """The least gap^2 / (2 sum of 1/N) over all others."""
    run = method(delta=0.1).start(oracle(measure="plan arms"))
    rng, n_plays = np.random.default_rng(5), 0
    counts, sums = np.zeros(4), np.zeros(4)
    while not isinstance(decision := run.decide(np.random.default_rng([1, n_plays])), Stop):
        if n_plays:
            assert least_distance(counts, sums) <= np.log((1 + np.log(n_plays)) / 0.1)
        seen = decision.counts * MEANS + np.sqrt(decision.counts) * rng.normal(size=4)
        run.absorb(decision.counts, seen)
        counts, sums, n_plays = counts + decision.counts, sums + seen, n_plays + decision.n_measurements
    assert least_distance(counts, sums) > np.log((1 + np.log(n_plays)) / 0.1)


def all_distances(seen, plans, readings):
    """By hand."""
    differs = seen.leader != plans
    gaps, variance = (seen.leader - plans) @ seen.means, (differs * seen.variance / readings).sum(axis=1)
    return np.where(variance > 0, gaps**2 / np.maximum(2 * variance, 1e-300), np.inf)


def a_game(seed):
    """Trees of a small graph behind an oracle, all of them as a list, and something that was read."""
    edges = [(a, b) for a in "ABCDE" for b in "ABCDE" if a < b]
    problem = problems.trees(edges, goal="largest", list_plans=False, measure="plan arms", noise=1)
    listed = problems.trees(edges, goal="largest")
    rng = np.random.default_rng(seed)
    means, readings = rng.normal(size=10), rng.integers(1, 40, 10).astype(float)
    ground = PlayOracle(problem, "P-FWS")
    plans = np.asarray(listed.plans, dtype=float)
    return ground, plans, Estimates(ground.best(means), means, rng.uniform(0.5, 2.0, 10)), readings


def test_what_is_remembered_finds_the_closest_of_125_trees():
    missed = 0
    for seed in range(12):
        ground, plans, seen, readings = a_game(seed)
        search, rng = Search(ground), np.random.default_rng(seed)
        for _ in range(15):
            search.remember_neighbours(seen, readings)
            _, distance = search.closest(seen, readings, rng)
        missed += distance > 1.0001 * all_distances(seen, plans, readings).min()
    assert missed <= 1


def test_the_gradient_is_that_of_the_distance():
    _, plans, seen, readings = a_game(2)
    plan = plans[(plans != seen.leader).any(axis=1)][7]
    shares = readings / 50
    found = gradient(seen, plan, shares)
    for s in range(10):
        near = np.tile(shares, (2, 1))
        near[0, s] += 1e-6
        near[1, s] -= 1e-6
        up, down = (all_distances(seen, plan[None], one)[0] for one in near)
        assert found[s] == pytest.approx((up - down) / 2e-6, rel=1e-4, abs=1e-9)
