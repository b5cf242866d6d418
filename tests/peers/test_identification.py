"""Track-and-Stop, top two, LUCB and UGapE: allocations, stops, and standings."""

import math

import numpy as np
import pytest

import surepick as sp
from common import largest
from surepick.peers.sequential import pair_radius, single_arms
from surepick.peers.tracking import best_shares
from surepick.policies import EBTCI, TTTS, TTUCB, TrackAndStop, UGapE
from surepick.policies.gap.radius import kaufmann_koolen_c
from surepick.simulation import Gaussian

MEANS = np.array([0.5, 0.9, 0.1, 0.4])


@pytest.mark.parametrize("seed", range(5))
def test_the_tracked_shares_attain_the_limit(seed):
    rng = np.random.default_rng(seed)
    means, scale = rng.normal(size=6), rng.uniform(0.3, 2.0, 6)
    lead = int(np.argmax(means))
    found = best_shares(np.where(np.arange(6) == lead, 1.0, means[lead] - means), lead, scale)
    limit = sp.limit(sp.Problem(np.eye(6), noise=scale, goal="largest"), means)
    assert found == pytest.approx(limit.shares, abs=1e-4)


def test_track_and_stop_comes_to_the_best_shares():
    problem = largest(np.eye(4))
    policy = TrackAndStop(delta=1e-200)
    counts = sp.simulate(problem, Gaussian(MEANS, 0.0), policy=policy, budget=4000).counts
    assert counts / counts.sum() == pytest.approx(sp.limit(problem, MEANS).shares, abs=0.03)


@pytest.mark.parametrize("policy", [TTUCB(delta=1e-200), EBTCI(delta=1e-200), TTTS(delta=1e-200)], ids=str)
def test_top_two_gives_half_to_the_best_arm_and_the_rest_where_costs_are_equal(policy):
    problem = largest(np.eye(4))
    counts = sp.simulate(problem, Gaussian(MEANS, 0.0), policy=policy, budget=3000).counts
    assert counts[1] / 3000 == pytest.approx(0.5, abs=0.06)
    cost = (MEANS[1] - MEANS) ** 2 / (1 / counts[1] + 1 / counts)
    others = cost[[0, 2, 3]]
    assert others.max() / others.min() < 1.6


def test_the_stops_are_those_of_their_radii():
    counts, scale = np.array([40, 90, 25]), np.array([1.0, 2.0, 0.5])
    variance = scale**2 / counts
    found = pair_radius("heuristic", 0.05, 1, counts, scale)
    level = math.log((1 + math.log(155)) / 0.05)
    assert found == pytest.approx(np.sqrt(2 * (variance[1] + variance) * level))
    found = pair_radius("kaufmann-koolen", 0.05, 1, counts, scale)
    term = 2 * np.log(4 + np.log(counts))
    level = 2 * kaufmann_koolen_c(math.log(2 / 0.05) / 2) + term[1] + term
    assert found == pytest.approx(np.sqrt(2 * (variance[1] + variance) * level))


UGAP_MEANS = np.array([0.5, 0.45, 0.1, 0.3])
COUNTS = np.array([10, 4, 6, 5])
SCALE = np.array([1.0, 0.5, 2.0, 1.0])


def test_names_and_measures_as_the_box_of_the_paper():
    """B_k = max over i other than k of U_i, less L_k, from scratch."""
    run = UGapE(delta=0.1).start(sp.Problem(np.eye(4), noise=SCALE, goal="largest"))
    run.absorb(COUNTS, COUNTS * UGAP_MEANS)
    beta = SCALE * np.sqrt(2 * math.log(4 * 4 * 25**3 / 0.1) / COUNTS)
    upper, lower = UGAP_MEANS + beta, UGAP_MEANS - beta
    costs = [max(np.delete(upper, k)) - lower[k] for k in range(4)]
    named = int(np.argmin(costs))
    rival = max((i for i in range(4) if i != named), key=lambda i: upper[i])
    assert run._bounds() == (named, rival, pytest.approx(costs[named]))
    assert np.flatnonzero(run.decide(None).counts).tolist() == [named if beta[named] > beta[rival] else rival]
    assert run.standing().rival == rival


def test_each_plan_gets_its_own_arm_whatever_all_share():
    rng = np.random.default_rng(1)
    order = rng.permutation(5)
    own = np.diag([1.0, 2.0, -0.5, 3.0, 1.5])[order]
    plans = np.hstack([own + rng.normal(size=5), np.ones((5, 1))])  # and an arm that all have
    for problem, sign in ((largest(plans), 1), (sp.Problem(plans, goal="smallest", noise=1), -1)):
        found = single_arms(problem, "LUCB")
        assert found.numbers.tolist() == order.tolist()
        assert found.factor == pytest.approx(sign * np.array([1.0, 2.0, -0.5, 3.0, 1.5])[order])
        means = rng.normal(size=6)
        shift = problem.sign * problem.values(means) - found.factor * means[found.numbers]
        assert np.ptp(shift) < 1e-12
