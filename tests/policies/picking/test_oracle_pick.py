"""Pick where plans cannot be listed: about as good as with a list, and the same decisions each time."""

import numpy as np
import pytest

import surepick as sp
from surepick.policies import Pick, Uniform
from surepick.problems import Past, top_k_family
from surepick.simulation import Gaussian

NAMES = [f"arm {s}" for s in range(8)]


def losses(problem, policy, budget, n_runs=60):
    """What the pick loses on average, with means N(0, 1/4)."""
    found = []
    for seed in range(n_runs):
        means = np.random.default_rng(seed).normal(size=8) / 2
        outcome = sp.simulate(problem, Gaussian(means), policy=policy, seed=seed, budget=budget)
        found.append(outcome.loss)
    return np.mean(found)


def test_it_loses_about_as_little_as_with_a_list_and_less_than_equal_shares():
    family = top_k_family(NAMES, 3, goal="largest")
    oracle = losses(family.oracle_problem(noise=1), Pick(), 30)
    listed = family.problem(noise=1)
    assert oracle < 1.4 * losses(listed, Pick(), 30)
    assert oracle < 0.9 * losses(listed, Uniform(), 30)


def test_no_rival_in_sight_is_no_reason_to_stop_measuring():
    problem = top_k_family(NAMES[:3], 1, goal="largest").oracle_problem(noise=1e-6)
    outcome = sp.simulate(problem, Gaussian([3.0, 2.0, 1.0], 1e-6), policy=Pick(), budget=40)
    assert outcome.leader == (1.0, 0.0, 0.0)
    assert outcome.n_measured == 40
    assert outcome.counts.min() > 5


def test_it_picks_from_a_polytope_and_with_a_past_too():
    plants = sp.Polytope(A_ub=[[1, 2, 1]], b_ub=[4], upper=2.0, noise=0.5, goal="largest")
    truth = Gaussian([1.0, 3.0, 0.5], 0.5)
    outcome = sp.simulate(plants, truth, policy=Pick(), budget=30)
    assert np.asarray(outcome.leader) @ [1.0, 3.0, 0.5] == pytest.approx(6.0)
    past = Past.from_guess(plants, [1.0, 3.0, 0.5], spread=1.0)
    short = sp.simulate(plants, truth, policy=Pick(), budget=2, past=past)
    assert short.n_measured == 2
