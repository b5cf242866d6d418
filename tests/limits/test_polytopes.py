"""The limit of a polytope: against all vertices and closed forms, exact and within epsilon."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq, linprog

import surepick as sp
from common import largest, refuses
from polytopes import KINDS, all_vertices, assignment, transport
from surepick.errors import ParameterError
from surepick.limits import polytope
from surepick.limits.near_best import QUICK, GoodPlans, NearBest
from surepick.limits.value import binary_kl, half_kl
from surepick.policies.polytopes.rivals import Rivals

# T* kl(.05, .95) of the studies' instances, computed by the prototype
CHECK_VALUES = [
    ("3x3", 301, 109.9),
    ("3x3", 305, 1196.7),
    ("5x4", 301, 234.2),
    ("9x9", 301, 9251.4),
    ("9x9", 310, 6340.1),
    ("mix", 303, 66294.3),
    ("program", 309, 1095656.3),
    ("program", 311, 507842.4),
]


@pytest.mark.parametrize(("kind", "seed", "value"), CHECK_VALUES)
def test_check_values(kind, seed, value):
    problem, means = KINDS[kind](seed)
    found = sp.limit(problem, means)
    assert found.measurements == pytest.approx(value, abs=0.06)
    assert found.time.upper == pytest.approx(found.time.lower, rel=1e-6)
    assert found.shares.sum() == pytest.approx(1.0)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6))
def test_is_the_limit_over_all_vertices(seed):
    problem, means = transport(seed, 3, 3)
    costs = np.random.default_rng(seed).uniform(1, 3, 9)
    problem = sp.Polytope(
        A_eq=problem.rows.a_eq, b_eq=problem.rows.b_eq, goal="smallest", cost=costs, noise=1
    )
    listed = sp.Problem(all_vertices(problem), goal="smallest", cost=costs, noise=1)
    one, other = sp.limit(problem, means), sp.limit(listed, means)
    if other.time.lower > 1e9:
        return
    # vertices that are solved for carry rounding, which small gaps enlarge: T* goes with their squares
    assert one.time.lower == pytest.approx(other.time.lower, rel=1e-3)
    assert one.cost.lower == pytest.approx(other.cost.lower, rel=1e-3)
    assert one.once.n == other.once.n


@pytest.mark.parametrize("seed", range(3))
def test_is_exact_at_degenerate_vertices_too(seed, monkeypatch):
    problem, means = assignment(4, seed)
    plans = [np.eye(4)[list(order)].ravel() for order in itertools.permutations(range(4))]
    listed, found = sp.limit(sp.Problem(plans, goal="smallest", noise=1), means), sp.limit(problem, means)
    assert found.time.lower == pytest.approx(listed.time.lower, rel=1e-6)
    assert found.time.upper == pytest.approx(listed.time.lower, rel=1e-6)
    monkeypatch.setattr(polytope, "MOST_BASES", 3)
    rough = sp.limit(problem, means)
    assert rough.time.lower <= listed.time.lower * (1 + 1e-6)
    assert rough.time.upper >= listed.time.lower * (1 - 1e-6)


def test_ties_are_named_by_the_plan_that_ties():
    problem = sp.Polytope(A_eq=[[1, 1, 1]], b_eq=[1.0], noise=1, goal="largest")
    found = sp.limit(problem, [1.0, 0.0, 1.0])
    assert not found.is_finite
    assert {found.best, *found.tied} == {(1.0, 0.0, 0.0), (0.0, 0.0, 1.0)}
    assert found.suggested_epsilon == pytest.approx(1.0)


def test_of_two_arms_it_is_the_limit_of_two_plans():
    found = sp.limit(sp.Polytope(A_eq=[[1, 1]], b_eq=[1.0], noise=1, goal="largest"), [1.0, 0.0])
    assert found.measurements == pytest.approx(8 * binary_kl(0.05), rel=1e-6)


TWO = sp.Polytope(A_eq=[[1, 1]], b_eq=[1.0], noise=1, goal="largest")


@pytest.mark.parametrize(("gap", "epsilon"), [(1.0, 0.1), (1.0, 0.5), (0.3, 0.2)])
@pytest.mark.parametrize("n_known", [0, 1])
def test_of_two_arms_both_ends_have_a_closed_form(gap, epsilon, n_known):
    # plans (p, 1 - p); the answer p of the upper end is as far from one rival as from the other
    p = brentq(lambda p: epsilon / (1 - p) - gap - (gap + epsilon / p), 1e-9, 1 - 1e-9)
    problem = TWO.with_known({TWO.arm_names[1]: 0.0}) if n_known else TWO
    found, unit = sp.limit(problem, [gap, 0.0], epsilon=epsilon), 2.0 if n_known else 8.0
    assert found.time.upper == pytest.approx(unit / (gap + epsilon / p) ** 2, rel=0.03)
    assert found.time.upper >= unit / (gap + epsilon / p) ** 2 * (1 - 1e-9)
    # all plans with p >= 1 - epsilon / gap are good, and must be bad in the other world
    other = epsilon / (1 - epsilon / gap)
    assert found.time.lower == pytest.approx(unit / (gap + other) ** 2, rel=1e-3)
    assert found.pair_time == pytest.approx(unit / (gap + 2 * epsilon) ** 2, rel=0.01)
    assert found.once.n == 2 - n_known


def test_ties_have_a_bracket_within_epsilon():
    assert not sp.limit(TWO, [0.0, 0.0]).is_finite
    found = sp.limit(TWO, [0.0, 0.0], epsilon=0.1)
    assert found.is_finite
    assert found.measurements == pytest.approx(200 * half_kl(0.05), rel=0.01)
    assert found.upper_bound == pytest.approx(200 * binary_kl(0.05), rel=0.05)


def test_becomes_the_exact_limit_as_epsilon_vanishes():
    problem, means = KINDS["3x3"](301)
    exact, near = sp.limit(problem, means), sp.limit(problem, means, epsilon=1e-6)
    assert near.time.lower == pytest.approx(exact.time.lower, rel=0.03)
    assert near.time.upper == pytest.approx(exact.time.upper, rel=0.01)
    assert near.best == pytest.approx(exact.best)


def test_check_values_of_ten_transports():
    # lower end 41, upper end 140 by the rivals found and 147 certified, computed by the prototype
    found = [sp.limit(*KINDS["3x3"](seed), epsilon=0.05) for seed in range(201, 211)]
    assert np.mean([one.time.lower * binary_kl(0.05) for one in found]) > 41
    assert 135 < np.mean([one.upper_bound for one in found]) < 147


def small(seed):
    """A small transport or mix with a seed of its own, with costs and scales."""
    rng = np.random.default_rng(seed)
    if seed % 2:
        problem, means = transport(seed, 3, 3)
        rows = {"A_eq": problem.rows.a_eq, "b_eq": problem.rows.b_eq, "goal": "smallest"}
    else:
        use = rng.uniform(0.1, 1, (2, 4))
        rows = {"A_ub": use, "b_ub": use.sum(1) * 0.4, "upper": 1.0}
        means = rng.uniform(0.5, 1.5, 4)
    n = len(means)
    problem = sp.Polytope(
        **{"goal": "largest", **rows}, noise=rng.uniform(0.5, 2, n), cost=rng.uniform(1, 3, n)
    )
    return problem, means, float(10 ** rng.uniform(-2, -0.5))


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10**6))
def test_the_upper_end_holds_against_every_vertex(seed):
    problem, means, epsilon = small(seed)
    found = NearBest(problem, means, epsilon, QUICK).ends(problem.noise_scale**2)
    plan, turned = found.plan * problem.form.unit, problem.sign * means
    away = plan - all_vertices(problem)
    gap = away @ turned + epsilon
    used = found.shares > 0
    need = 2 * (away**2 * problem.noise_scale**2)[:, used] @ (1 / found.shares[used]) / gap**2
    assert gap.min() > 0
    assert need.max() <= found.upper * (1 + 1e-9)
    assert need.max() >= found.upper / 4  # a bound that proves little would be no test
    assert found.lower <= found.upper
    assert found.pairs <= found.upper


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10**6))
def test_worlds_make_every_good_plan_bad(seed):
    problem, means, epsilon = small(seed)
    near = Noting(problem, means, epsilon, QUICK)
    near.ends(problem.noise_scale**2)
    plans, turned = all_vertices(problem), problem.sign * means
    for world in near.worlds[:10]:
        loss = least_loss(plans, turned, world / problem.form.unit, epsilon)
        assert loss >= epsilon - 1e-6  # what solver and rounded vertices may err by
        assert loss <= 1.1 * epsilon  # and no further from the means than is needed
    assert least_loss(plans, turned, turned, epsilon) == pytest.approx(0.0, abs=1e-6)


def most_of_good(plans, means, weights, epsilon):
    """The largest total of these weights by mixtures of plans that are within epsilon of the best."""
    values = plans @ means
    near = {"A_ub": [-values], "b_ub": [epsilon - values.max()]}
    return -linprog(-(plans @ weights), **near, A_eq=np.ones((1, len(plans))), b_eq=[1.0]).fun


def least_loss(plans, means, world, epsilon):
    """What mixtures of these plans that are within epsilon of the best lose in another world at least."""
    return float((plans @ world).max() - most_of_good(plans, means, world, epsilon))


class Noting(NearBest):
    """Notes the worlds that it uses."""

    def __init__(self, *args):
        self.worlds = []
        super().__init__(*args)

    def _checked(self, change):
        found = super()._checked(change)
        if found is not None:
            self.worlds.append(self._means + found)
        return found


def test_arms_that_no_good_plan_uses_fully_have_to_be_measured():
    problem = sp.Polytope(A_eq=[[1, 1, 1]], b_eq=[1.0], noise=1, goal="largest")
    assert sp.limit(problem, [1.0, 0.0, 0.9], epsilon=0.01).once.n == 3
    # everything of the first or all of the third is good: only the second could make both bad, or all could
    some = sp.limit(problem, [1.0, 0.0, 0.9], epsilon=0.2)
    assert some.once.n == 1
    assert sp.limit(problem, [1.0, 0.0, 0.9], epsilon=2.0).once.n == 0


def test_costs_count_and_other_problems_are_refused():
    dear = sp.Polytope(A_eq=[[1, 1]], b_eq=[1.0], cost=[4.0, 4.0], noise=1, goal="largest")
    found, plain = sp.limit(dear, [1.0, 0.0], epsilon=0.1), sp.limit(TWO, [1.0, 0.0], epsilon=0.1)
    assert found.cost.lower == pytest.approx(4 * plain.time.lower)
    assert found.price == pytest.approx(4 * plain.measurements)
    with refuses("epsilon", ParameterError):
        sp.limit(largest([[1, 0], [0, 1]]), [1.0, 0.0], epsilon=0.1)


def test_a_bound_on_good_plans_holds_whatever_the_weights():
    problem, means = KINDS["3x3"](302)
    plans, turned = all_vertices(problem) / problem.form.unit, -means * problem.form.unit
    near = NearBest(problem, means, 0.3, QUICK)
    good = GoodPlans(problem, turned, near.best, Rivals(problem).first, 0.3)
    rng = np.random.default_rng(0)
    for _ in range(10):
        weights = rng.normal(size=9)
        exact = most_of_good(plans, turned, weights, 0.3)
        assert good.most(weights)[0] == pytest.approx(exact, rel=1e-6, abs=1e-7)
