"""Track-and-Stop, top two, LUCB and lil'UCB: allocations, stops, and what each promises."""

import math

import numpy as np
import pytest

import surepick as sp
from common import largest
from surepick.peers.sequential import PairRadius
from surepick.peers.tracking import best_shares
from surepick.policies import EBTCI, LUCB, TTTS, TTUCB, TrackAndStop, Uniform
from surepick.policies.gap.radius import kaufmann_koolen_c
from surepick.simulation import Gaussian
from surepick.testing import Tape, decisions

MEANS = np.array([0.5, 0.9, 0.1, 0.4])


@pytest.mark.parametrize("seed", range(5))
def test_the_tracked_shares_attain_the_limit(seed):
    rng = np.random.default_rng(seed)
    means, scale = rng.normal(size=6), rng.uniform(0.3, 2.0, 6)
    lead = int(np.argmax(means))
    found = best_shares(np.where(np.arange(6) == lead, 1.0, means[lead] - means), lead, scale)
    limit = sp.limit(sp.Problem(np.eye(6), noise=scale, goal="largest"), means)
    assert found == pytest.approx(limit.shares, abs=1e-4)


@pytest.mark.parametrize("tracking", ["C", "D"])
def test_track_and_stop_comes_to_the_best_shares(tracking):
    problem = largest(np.eye(4))
    policy = TrackAndStop(delta=1e-200, tracking=tracking)
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
    found = PairRadius.of("heuristic", 0.05, 3)(1, counts, scale)
    level = math.log((1 + math.log(155)) / 0.05)
    assert found == pytest.approx(np.sqrt(2 * (variance[1] + variance) * level))
    found = PairRadius.of("kaufmann-koolen", 0.05, 3)(1, counts, scale)
    term = 2 * np.log(4 + np.log(counts))
    level = 2 * kaufmann_koolen_c(math.log(2 / 0.05) / 2) + term[1] + term
    assert found == pytest.approx(np.sqrt(2 * (variance[1] + variance) * level))


@pytest.mark.parametrize("radius", ["heuristic", "kaufmann-koolen", "normal-mixture"])
def test_a_radius_means_the_same_here_and_in_the_gap_policies(radius):
    """Uniform stops on the very measurement at which the same radius would stop a run of single arms."""
    problem, means = largest(np.eye(3)), [0.9, 0.3, 0.0]
    for seed in range(4):
        outcome = sp.simulate(problem, Gaussian(means), policy=Uniform(radius=radius), seed=seed)
        ahead = outcome.means[outcome.plan] - outcome.means
        ahead[outcome.plan] = np.inf
        assert (ahead > PairRadius.of(radius, 0.05, 3)(outcome.plan, outcome.counts, np.ones(3)) - 1e-9).all()


def test_lucb_measures_the_lead_and_the_largest_upper_bound_of_the_others():
    taken = decisions(LUCB(delta=0.1), largest(np.eye(4)), Tape(MEANS, keys=range(4)), 30)
    assert taken[0] == (1, 1, 1, 1)
    assert all(sum(counts) == 2 for counts in taken[1:])
