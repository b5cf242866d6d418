"""The limit of lists and behind oracles: check values, closed forms, and what attains it."""

import math
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import sparse

import probe_cases
import surepick as sp
from common import asked, largest, refuses
from probe_cases import published_tree
from surepick.design.allocation import optimal_allocation
from surepick.errors import ProblemError
from surepick.limits.limit import limit
from surepick.limits.value import binary_kl, half_kl


def random_instance(seed, n_arms, n_plans, **settings):
    rng = np.random.default_rng(seed)
    means = rng.normal(size=n_arms)
    return largest(rng.integers(0, 5, (n_plans, n_arms)), **settings), means


@pytest.mark.parametrize(
    ("n_arms", "n_plans", "expected"), [(3, 5, 140.7889), (10, 30, 65.6146), (20, 100, 1314.4091)]
)
def test_the_random_check_values(n_arms, n_plans, expected):
    problem, means = random_instance(0, n_arms, n_plans)
    time = limit(problem, means).time
    assert time.value == pytest.approx(expected, abs=1e-4)
    assert time.lower <= time.value <= time.upper <= time.lower * (1 + 1e-8)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**31), st.integers(1, 8), st.floats(0.1, 10))
def test_two_plans_have_a_closed_form(seed, n_arms, scale):
    rng = np.random.default_rng(seed)
    plans, means = rng.normal(size=(2, n_arms)), rng.normal(size=n_arms)
    found = limit(largest(plans, noise=scale), means)
    y = plans[0] - plans[1]
    assert found.time.value == pytest.approx(2 * (scale * np.abs(y).sum() / (y @ means)) ** 2)
    np.testing.assert_allclose(found.shares, np.abs(y) / np.abs(y).sum(), atol=1e-4)


def test_costs_are_counted_as_money():
    costs = np.array([1.0, 5.0, 0.5, 2.0, 1.0, 9.0])
    problem, means = random_instance(3, 6, 25, cost=costs)
    found = limit(problem, means)
    y = np.delete(problem.plans[found.best] - problem.plans, found.best, axis=0)
    squares = (y / (y @ means)[:, None]) ** 2
    for shares, expected in ((found.cost.shares, found.cost.upper), (found.shares, None)):
        cost = 2 * (shares @ costs) * (squares / shares).sum(axis=1).max()
        assert cost >= found.cost.lower * (1 - 1e-12)
        assert expected is None or cost == pytest.approx(expected)
    assert found.cost.lower <= found.cost.value <= found.cost.upper
    assert found.price == found.cost.lower * binary_kl(0.05)


def test_a_minimised_problem_is_the_maximised_one_with_signs_changed():
    problem, means = random_instance(4, 5, 20)
    other = sp.Problem(problem.plans, goal="smallest", noise=1)
    assert limit(other, -means).time.value == limit(problem, means).time.value
    assert limit(other, -means).best == limit(problem, means).best


def test_sparse_plans_have_the_same_limit():
    rng = np.random.default_rng(8)
    plans = rng.integers(1, 4, (300, 60)) * (rng.random((300, 60)) < 0.1)
    means = rng.normal(size=60)
    dense = limit(largest(plans), means)
    thin = limit(largest(sparse.csr_array(plans)), means)
    assert thin.time.value == pytest.approx(dense.time.value, rel=1e-7)
    np.testing.assert_allclose(thin.shares, dense.shares, atol=1e-4)


@pytest.mark.parametrize(
    ("plans", "means"),
    [(np.eye(3), [0.5, 0.5, 0.1]), ([[1, 1, 1], [3, 0, 0]], [0.1, 0.1, 0.1])],
    ids=["exact", "rounding alone"],
)
def test_ties_make_the_limit_infinite_and_are_named(plans, means):
    found = limit(largest(plans), means)
    assert not found.is_finite
    assert {found.best, *found.tied} == {0, 1}
    assert found.time.value == found.measurements == math.inf


def test_there_is_one_limit():
    problem, means = random_instance(0, 20, 100)
    found = limit(problem, means, delta=0.1)
    assert found.measurements == pytest.approx(found.time.lower * 0.8 * math.log(9))
    assert found.at(0.05) == limit(problem, means, delta=0.05).measurements
    assert found.at(0.4) < found.measurements < found.at(0.01)


def test_an_easy_problem_still_needs_nearly_every_relevant_arm_once():
    found = limit(largest(np.eye(4), cost=[1, 2, 3, 4]), [1e6, 0, 0, 0], delta=0.05)
    assert found.measurements == pytest.approx(0.9 * 4)
    assert found.price == pytest.approx(0.9 * 10)


def test_the_bound_by_unseen_arms_is_attained_by_a_method_that_sometimes_guesses():
    """So the number of relevant arms itself would be no bound: this method keeps its promise below it.

    On plans e_1, e_2 with a huge gap it measures both arms once, or with probability 2 delta neither.
    """
    rng, delta, n_runs = np.random.default_rng(5), 0.1, 200_000
    guesses = rng.random(n_runs) < 2 * delta
    errors = guesses & (rng.random(n_runs) < 0.5)
    found = limit(largest(np.eye(2)), [1e6, 0.0], delta=delta)
    mean = np.where(guesses, 0, 2).mean()
    assert errors.mean() <= delta + 4 * math.sqrt(delta / n_runs)
    assert mean < found.once.n
    assert mean == pytest.approx(found.measurements, abs=0.01)


def test_an_unknown_noise_scale_is_refused():
    with refuses("noise", ProblemError):
        limit(largest(np.eye(2), noise=None), [1, 0])


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), most=st.integers(1, 3))
@example(seed=2350, most=1)
def test_behind_an_oracle_it_is_nearly_the_limit_of_the_list_and_never_above(seed, most):
    rng = np.random.default_rng(seed)
    plans = rng.permutation(np.array(list(product(range(most + 1), repeat=4)), dtype=float))
    plans = plans[: int(rng.integers(3, 15))]
    means, noise, costs = rng.normal(size=4), rng.lognormal(size=4), rng.lognormal(size=4)
    listed = limit(largest(plans, noise=noise, cost=costs), means)
    found = limit(asked(plans, noise=noise, cost=costs), means)
    assert found.best == tuple(plans[listed.best])
    for one, other in ((found.time, listed.time), (found.cost, listed.cost)):
        assert 0.95 * other.lower <= one.lower <= other.upper * (1 + 1e-9)


@pytest.mark.parametrize("seed", [0, 1])
def test_the_best_twelve_of_24_arms_have_the_limit_of_their_exchanges(seed):
    """All other plans are unions of exchanges of one arm for another."""
    means = np.random.default_rng(seed).normal(size=24)
    problem = sp.problems.top_k([str(s) for s in range(24)], 12, goal="largest", noise=1)
    found = limit(problem, means, tolerance=0.01)
    order = np.argsort(-means)
    y = np.array([np.eye(24)[i] - np.eye(24)[j] for i, j in product(order[:12], order[12:])])
    known = optimal_allocation((y / (y @ means)[:, None]) ** 2, tolerance=1e-6)
    assert found.time.lower <= 2 * known.value * (1 + 1e-9)
    assert found.time.lower == pytest.approx(2 * known.value, rel=5e-3)


@pytest.mark.parametrize(("name", "low", "high"), [("E20", 409.17, 409.18), ("E25", 400.65, 400.73)])
def test_published_trees_have_their_check_values(name, low, high):
    problem, means = published_tree(name)
    found = limit(problem, means, delta=0.1)
    assert 0.999 * low <= found.time.lower <= high
    assert found.shares.max() <= 1 + 1e-9


def test_plan_probes_behind_an_oracle_have_the_limit_of_the_list():
    listed, means = probe_cases.top_k(8, 3, 1, "semi")
    problem = asked(np.asarray(listed.plans), measure="plan arms", cost=3.0)
    right, found = limit(listed, means), limit(problem, means)
    assert 0.99 * right.time.lower <= found.time.lower <= right.time.upper * (1 + 1e-6)
    assert found.cost.lower == pytest.approx(3 * found.time.lower)
    assert found.once.n == right.once.n


def test_ties_and_a_single_plan_behind_an_oracle_are_told():
    assert not limit(asked(np.eye(2)), [1.0, 1.0]).is_finite
    with pytest.raises(ProblemError):
        limit(asked(np.array([[1.0, 0.0]])), [1.0, 1.0])


@pytest.mark.parametrize("n_known", [0, 1, 2, 3])
def test_known_means_take_no_measurements_whatever_holds_the_plans(n_known):
    means = [0.9, 0.5, 0.1, 0.3]
    names, known = [f"arm {s}" for s in range(4)], {f"arm {s}": means[s] for s in range(n_known)}
    pairs = np.array([[float(s in pair) for s in range(4)] for pair in combinations(range(4), 2)])
    settings_of = {"noise": 1.0, "goal": "largest", "known": known}
    listed = sp.limit(sp.Problem(pairs, **settings_of), means)
    family = sp.problems.top_k(names, 2, goal="largest", list_plans=False, noise=1.0)
    polytope = sp.Polytope(A_eq=np.ones((1, 4)), b_eq=[2.0], upper=np.ones(4), **settings_of)
    for problem in (family.with_settings(known=known), polytope):
        found = sp.limit(problem, means)
        assert found.time.lower == pytest.approx(listed.time.lower, rel=1e-3)
        assert found.once == listed.once
        assert not found.time.shares[:n_known].any()


ARMS = np.eye(2)
TWO = {
    "list": largest(ARMS),
    "probes": largest(ARMS, measure="plans"),
    "oracle": asked(ARMS),
    "polytope": sp.Polytope(A_eq=[[1, 1]], b_eq=[1.0], noise=1, goal="largest"),
}


@pytest.mark.parametrize("gap", [0.3, 0.05, 0.0])
@pytest.mark.parametrize("kind", TWO)
def test_within_epsilon_two_arms_have_a_closed_form(kind, gap):
    """Of a polytope, mixtures are within epsilon, too; of two plans the second only where its gap is."""
    found, epsilon = sp.limit(TWO[kind], [gap, 0.0], epsilon=0.1), 0.1
    alone = gap > epsilon and kind != "polytope"
    time = 8 / (gap + (1 if alone else 2) * epsilon) ** 2
    assert found.time.lower == pytest.approx(time, rel=2e-3)
    least = time * binary_kl(0.05) if alone else time * half_kl(0.05)
    assert found.measurements == pytest.approx(least, rel=2e-3)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_no_plan_is_within_epsilon_in_both_worlds_of_a_pair(seed):
    """The worlds of the proof, for every rival: moved by as much as gaps are raised, and a hair more."""
    rng = np.random.default_rng(seed)
    plans, means, epsilon = rng.integers(0, 3, (8, 4)).astype(float), rng.normal(size=4), rng.uniform(0, 2)
    values = plans @ means
    for y in plans[values.argmax()] - plans:
        if y.any():
            u = y / (y @ y) * (y @ means + 2 * epsilon + 1e-9)
            first, second = plans @ (means + u), plans @ (means - u)
            assert not ((first >= first.max() - epsilon) & (second >= second.max() - epsilon)).any()
