"""Allocations over all pairs of plans, against listed pairs and brute force."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common import refuses
from surepick.design.allocation import optimal_allocation, pair_allocation, width_allocation
from surepick.errors import ParameterError


def listed_pairs(plans):
    return np.array([(a - b) ** 2 for a, b in itertools.combinations(plans, 2)], dtype=float)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**31), st.integers(2, 25), st.integers(1, 12), st.booleans())
def test_pairs_need_not_be_listed(seed, n_plans, n_arms, binary):
    rng = np.random.default_rng(seed)
    plans = rng.integers(0, 2 if binary else 5, (n_plans, n_arms)).astype(float)
    plans[0], plans[1] = 0.0, 1.0
    found = pair_allocation(plans, tolerance=1e-7)
    listed = optimal_allocation(listed_pairs(plans), tolerance=1e-9)
    assert found.converged
    assert found.lower <= listed.value * (1 + 1e-9)
    assert found.value >= listed.lower * (1 - 1e-9)
    used = found.weights > 0
    values = (listed_pairs(plans[:, used]) / found.weights[used]).sum(axis=1)
    assert found.value == pytest.approx(values.max())


def test_the_dual_of_a_pair_allocation_certifies_its_lower_end():
    plans = np.random.default_rng(0).normal(size=(60, 10))
    found = pair_allocation(plans, tolerance=1e-6)
    rows = (plans[found.pairs[:, 0]] - plans[found.pairs[:, 1]]) ** 2
    assert np.sqrt(found.dual @ rows).sum() ** 2 == pytest.approx(found.lower, rel=1e-6)


@pytest.mark.parametrize("plans", [np.eye(60), np.diag(np.linspace(0.5, 2, 40))])
def test_many_pairs_may_bind_at_once(plans):
    assert pair_allocation(plans, tolerance=1e-4).converged


def test_adding_a_vector_to_all_plans_changes_nothing():
    plans = np.random.default_rng(1).integers(0, 4, (40, 6)).astype(float)
    plain = pair_allocation(plans, tolerance=1e-8)
    moved = pair_allocation(plans + 1e4, tolerance=1e-8)
    assert moved.value == pytest.approx(plain.value, rel=1e-6)


def test_a_single_plan_has_no_pairs():
    with refuses("plans", ParameterError):
        pair_allocation([[1.0, 2.0], [1.0, 2.0]])


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


@pytest.mark.parametrize("log_term", [0.0, 1.0])
def test_no_nearby_weights_have_a_much_smaller_tau(log_term):
    plans = np.random.default_rng(1).integers(0, 4, (15, 4)).astype(float)
    found = width_allocation(plans, log_term=log_term, rng=np.random.default_rng(2))
    ours = brute_force_tau(plans, found.weights, log_term, np.random.default_rng(3), 4000)
    others = np.random.default_rng(4).dirichlet(60 * found.weights, 60)
    best = min(brute_force_tau(plans, w, log_term, np.random.default_rng(3), 4000) for w in others)
    assert ours <= 1.01 * best
