import itertools

import numpy as np

from surepick.design.width import width_allocation


def brute_force_tau(plans, weights, log_term, rng, n_draws=20000):
    pairs = np.array([a - b for a, b in itertools.permutations(plans, 2)])
    draws = rng.standard_normal((plans.shape[1], n_draws))
    width = (pairs @ (draws / np.sqrt(weights)[:, None])).max(axis=0).mean()
    return width**2 + 2 * log_term * (pairs**2 / weights).sum(axis=1).max()


def test_the_estimate_of_tau_agrees_with_brute_force():
    rng = np.random.default_rng(0)
    plans = rng.integers(0, 3, (12, 5)).astype(float)
    found = width_allocation(plans, log_term=2.0, rng=rng)
    truth = brute_force_tau(plans, found.weights, 2.0, rng)
    assert abs(found.value - truth) < 5 * found.standard_error
    assert found.standard_error < 0.05 * truth


def test_no_nearby_weights_have_a_much_smaller_tau():
    plans = np.random.default_rng(1).integers(0, 4, (15, 4)).astype(float)
    found = width_allocation(plans, log_term=1.0, rng=np.random.default_rng(2))
    ours = brute_force_tau(plans, found.weights, 1.0, np.random.default_rng(3), 4000)
    others = np.random.default_rng(4).dirichlet(60 * found.weights, 60)
    best = min(brute_force_tau(plans, w, 1.0, np.random.default_rng(3), 4000) for w in others)
    assert ours <= 1.01 * best


def test_without_the_log_term_the_width_alone_is_minimised():
    plans = np.vstack([np.zeros(6), np.eye(6)[0] * 3, np.eye(6)[1:]])
    found = width_allocation(plans, log_term=0.0, rng=np.random.default_rng(0))
    uniform = brute_force_tau(plans, np.full(6, 1 / 6), 0.0, np.random.default_rng(1))
    assert found.value < uniform


def test_the_same_generator_gives_the_same_width_allocation():
    plans = np.random.default_rng(1).normal(size=(30, 6))
    one, two = (width_allocation(plans, log_term=3.0, rng=np.random.default_rng(7)) for _ in range(2))
    np.testing.assert_array_equal(one.weights, two.weights)
