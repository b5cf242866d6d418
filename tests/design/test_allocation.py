"""Certified allocations against an independent solver, listed pairs and brute force."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from clarabel_oracle import clarabel_allocation
from common import refuses
from surepick.design.allocation import optimal_allocation, pair_allocation, width_allocation
from surepick.errors import ParameterError

SLACK = 1e-5  # of the oracle, far above its own tolerance


def random_squares(seed, n_rows, n_arms, density=1.0):
    rng = np.random.default_rng(seed)
    squares = rng.normal(size=(n_rows, n_arms)) ** 2 * rng.lognormal(0, 1, (n_rows, 1))
    squares *= rng.random((n_rows, n_arms)) < density
    squares[0] += 0.01  # every arm counts for somebody
    return squares


def value_of(squares, weights):
    return float((squares / weights).sum(axis=1).max())


sizes = st.tuples(
    st.integers(0, 2**31), st.integers(1, 60), st.integers(1, 25), st.sampled_from([0.2, 0.6, 1.0])
)


@settings(max_examples=60, deadline=None)
@given(sizes, st.sampled_from([1e-2, 1e-4, 1e-8]))
def test_the_bracket_is_what_it_says_and_contains_the_optimum_of_an_independent_solver(size, tolerance):
    squares = random_squares(*size)
    found = optimal_allocation(squares, tolerance=tolerance)
    assert found.converged
    assert found.gap <= tolerance
    assert found.weights.sum() == pytest.approx(1)
    assert found.dual.sum() == pytest.approx(1)
    assert found.value == pytest.approx(value_of(squares, found.weights), rel=1e-9)
    assert found.lower == pytest.approx(np.sqrt(found.dual @ squares[found.rows]).sum() ** 2, rel=1e-9)
    optimum, _ = clarabel_allocation(squares)
    assert found.lower <= optimum * (1 + 1e-12)
    assert found.value >= optimum * (1 - SLACK)
    thin = optimal_allocation(sparse.csr_array(squares), tolerance=tolerance)
    assert thin.lower <= found.value * (1 + 1e-12)
    assert found.lower <= thin.value * (1 + 1e-12)


def test_arms_without_a_positive_square_and_rows_of_zeros_count_for_nothing():
    found = optimal_allocation(np.array([[1.0, 0.0, 4.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]]), tolerance=1e-9)
    assert found.weights[1] == 0
    assert found.value == pytest.approx(9)


@settings(max_examples=25, deadline=None)
@given(sizes)
def test_with_costs_no_other_split_of_the_money_does_better(size):
    squares = random_squares(*size)
    rng = np.random.default_rng(size[0])
    costs = rng.lognormal(size=squares.shape[1])
    found = optimal_allocation(squares, costs=costs, tolerance=1e-8)
    ours = found.weights * costs / (found.weights @ costs)
    for spending in (ours, *rng.dirichlet(np.ones(len(costs)), 20)):
        counts = spending / costs  # measurements for one unit of money
        assert value_of(squares, np.maximum(counts, 1e-300)) >= found.lower * (1 - 1e-12)
    assert value_of(squares, ours / costs) == pytest.approx(found.value, rel=1e-9)


@pytest.mark.parametrize("squares", [[[1.0, np.nan]], [[np.inf, 1.0]], [[0.0, 0.0]]])
def test_bad_squares_are_refused(squares):
    with refuses("squares", ParameterError):
        optimal_allocation(squares)


def large_sparse():
    rng = np.random.default_rng(0)
    arms = np.argsort(rng.random((5000, 400)), axis=1)[:, :6]
    entries = (rng.lognormal(size=arms.size), (np.repeat(np.arange(5000), 6), arms.ravel()))
    return sparse.csr_array(entries, shape=(5000, 400))


@pytest.mark.parametrize(
    ("squares", "tolerance"),
    [
        (random_squares(0, 100, 20), 1e-10),
        (random_squares(4, 50, 10) * np.logspace(-12, 12, 50)[:, None], 1e-8),
        (random_squares(5, 50, 10) * np.where(np.arange(10) == 3, 1e-26, 1.0), 1e-6),
        (random_squares(10951122, 10, 11, 0.6), 1e-8),
        (np.eye(40), 1e-8),
        (large_sparse(), 1e-4),
    ],
    ids=["tight", "sizes", "tiny entries", "whole Newton steps cycle", "all rows bind", "large"],
)
def test_awkward_instances_are_certified(squares, tolerance):
    found = optimal_allocation(squares, tolerance=tolerance)
    assert found.converged
    assert found.gap <= tolerance
    assert (found.weights > 0).all()


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
    first, second = np.divmod(found.rows, len(plans))
    rows = (plans[first] - plans[second]) ** 2
    assert np.sqrt(found.dual @ rows).sum() ** 2 == pytest.approx(found.lower, rel=1e-6)


@pytest.mark.parametrize("plans", [np.eye(60), np.diag(np.linspace(0.5, 2, 40))])
def test_many_pairs_may_bind_at_once(plans):
    assert pair_allocation(plans, tolerance=1e-4).converged


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
