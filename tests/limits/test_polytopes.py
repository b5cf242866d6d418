"""The limit of a polytope: against all vertices, closed forms and published values."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import surepick as sp
from polytopes import KINDS, all_vertices, assignment, transport
from surepick.limits import unlisted

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
    monkeypatch.setattr(unlisted, "MOST_BASES", 3)
    rough = sp.limit(problem, means)
    assert rough.time.lower <= listed.time.lower * (1 + 1e-6)
    assert rough.time.upper == np.inf


def test_ties_are_named_by_the_plan_that_ties():
    problem = sp.Polytope(A_eq=[[1, 1, 1]], b_eq=[1.0], noise=1, goal="largest")
    found = sp.limit(problem, [1.0, 0.0, 1.0])
    assert not found.is_finite
    assert {found.best, *found.tied} == {(1.0, 0.0, 0.0), (0.0, 0.0, 1.0)}
