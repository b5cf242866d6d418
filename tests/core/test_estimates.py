"""Estimates of gaps, and of how good the lead is: calibrated, and not there where they cannot be made."""

import math

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import norm

import surepick as sp
from common import largest
from surepick.core.evidence import Evidence, between, estimate, estimates, quantile
from surepick.policies import Pick
from surepick.simulation import Gaussian


def test_two_arms_have_the_normal_chance_and_loss():
    seen = Evidence(np.array([8, 2]), np.array([8.0, 1.0]))
    found = estimate(sp.Problem(np.eye(2), noise=2.0, goal="largest"), seen, 0)
    error = 2.0 * np.sqrt(1 / 8 + 1 / 2)
    z = 0.5 / error
    assert found.chance == pytest.approx(norm.cdf(z), abs=0.09)
    assert found.expected_loss == pytest.approx(error * (norm.pdf(z) - z * norm.sf(z)), rel=0.25)
    assert estimate(sp.Problem(np.eye(2), noise=2.0, goal="largest"), seen, 0) == found


def looks(n_runs, *, scale=1.0):
    """Stated chance and expected loss of the lead, and what was so; noise of this scale instead of 1."""
    problem, rng = largest(np.eye(4)), np.random.default_rng(4)
    for seed in range(n_runs):
        means = rng.normal(0, 1.0, 4)
        world = Gaussian(means, scale=scale)
        outcome = sp.simulate(problem, world, policy=Pick(), seed=seed, budget=24, allow_noisier=scale > 1)
        right = outcome.leader == int(np.argmax(means))
        yield outcome.chance, right, outcome.expected_loss, means.max() - means[outcome.leader]


def overstated(found):
    """In how many bins of stated chance the lead is right less often than stated, by three errors."""
    worse = 0
    for low, high in ((0.4, 0.6), (0.6, 0.8), (0.8, 0.95), (0.95, 1.01)):
        some = found[(found[:, 0] >= low) & (found[:, 0] < high)]
        stated, share = some[:, 0].mean(), some[:, 1].mean()
        worse += share < stated - 3 * np.sqrt(stated * (1 - stated) / len(some)) - 1e-9
    return worse


def test_leads_are_right_at_least_as_often_as_the_chance_says():
    found = np.array(list(looks(300)))
    assert overstated(found) == 0
    assert found[:, 2].mean() == pytest.approx(found[:, 3].mean(), rel=0.35)


def test_a_noise_scale_that_is_too_small_is_caught_by_the_same_test():
    assert overstated(np.array(list(looks(200, scale=3.0)))) > 0


def test_there_is_none_where_it_cannot_be_made():
    problem = largest(np.eye(3))
    assert estimate(problem, Evidence(np.array([1, 1, 0]), np.zeros(3)), 0) is None
    assert estimate(problem, Evidence(np.array([1, 1, 1]), np.zeros(3)), None) is None
    family = sp.problems.top_k(["a", "b", "c"], 1, goal="largest", list_plans=False, noise=1)
    assert estimate(family, Evidence(np.array([1, 1, 1]), np.zeros(3)), (1.0, 0.0, 0.0)) is None


@pytest.mark.parametrize("n_worlds", [1, 10, 70])
@pytest.mark.parametrize("share", [0.1, 0.7, 1.0])
def test_a_quantile_is_enough_in_its_share_of_the_worlds_and_the_next_smaller_one_is_not(n_worlds, share):
    values = np.random.default_rng(0).permutation(n_worlds).astype(float)
    found = quantile(values, share)
    assert np.mean(values <= found) >= share - 1e-12
    assert np.mean(values < found) < share


PLANS = np.array([[2.0, 0, 1, 0], [0, 1, 1, 0], [1, 0, 0, 3], [0, 2, 1, 0], [1, 1, 1, 0]])


@pytest.mark.parametrize("minimize", [False, True])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("counts", [(3, 5, 2, 4), (3, 5, 2, 0), (0, 5, 0, 4), (0, 0, 0, 0)], ids=str)
def test_all_at_once_is_pair_by_pair_also_for_unmeasured_arms(counts, kind, minimize):
    problem = sp.Problem(kind(PLANS), noise=[0.5, 1.0, 2.0, 0.1], goal="smallest" if minimize else "largest")
    evidence = Evidence(np.array(counts), np.array(counts) * np.array([1.3, -2.0, 0.7, 5.0]))
    for plan in range(5):
        gap, error = estimates(problem, evidence).behind(problem, plan)
        for rival in range(5):
            one = between(problem, plan, rival, evidence)
            assert gap[rival] == pytest.approx(one[0])
            assert error[rival] == pytest.approx(one[1], abs=1e-7)
            unknown = (PLANS[plan] != PLANS[rival]) & (np.array(counts) == 0)
            assert math.isinf(error[rival]) == unknown.any()
