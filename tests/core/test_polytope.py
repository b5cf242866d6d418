"""Polytopes: what is understood, what is refused, and that every plan is vertex plus multiples of edges."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import surepick as sp
from polytopes import transport, transport_rows
from surepick.core.polytopes.polytope import polytope_from
from surepick.policies.polytopes.simplex import SOLVED, Simplex
from surepick.simulation import Gaussian


def random_polytope(seed):
    rng = np.random.default_rng(seed)
    d, k = int(rng.integers(2, 6)), int(rng.integers(1, 4))
    rows = rng.integers(-2, 4, (k, d)).astype(float)
    inside = rng.uniform(0.1, 0.9, d)
    options = {"A_ub": rows, "b_ub": rows @ inside + rng.uniform(0, 0.5, k), "upper": rng.uniform(1, 3, d)}
    if d > 2 and rng.random() < 0.5:
        row = rng.integers(1, 3, (1, d)).astype(float)
        options |= {"A_eq": row, "b_eq": row @ inside}
    return sp.Polytope(**{"noise": 1, **options}, goal="largest"), rng


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6))
def test_the_simplex_finds_what_highs_finds_and_every_plan_is_vertex_plus_edges(seed):
    problem, rng = random_polytope(seed)
    form = problem.form
    program = Simplex(form.matrix, form.right, form.lower, form.upper)
    assert program.begin()
    for _ in range(3):
        weights = rng.normal(size=problem.n_arms)
        costs = np.append(-weights, np.zeros(len(form.lower) - problem.n_arms))
        assert program.solve(costs) == SOLVED
        assert program.go_to(program.at)
        plan = form.plan(program.values)
        best = problem.rows.best(-weights).x
        assert plan @ weights == pytest.approx(best @ weights, abs=1e-8)
        other = problem.best_plan(rng.normal(size=problem.n_arms)) * 0.5 + plan * 0.5
        directions = form.directions(program.basis, program.at, program.rows[:, : len(form.lower)])
        assert np.abs(form.matrix @ directions.T).max() < 1e-9
        moving = np.flatnonzero(program.at != 2)
        full = other / form.unit
        slacks = form.right - form.matrix[:, : problem.n_arms] @ full
        full = np.append(full, slacks[: len(form.lower) - problem.n_arms])
        steps = np.abs(full[moving] - program.values[moving])
        assert np.allclose(program.values + steps @ directions, full, atol=1e-8)


def test_rows_and_bounds_that_follow_from_others_do_no_harm():
    supply, demand = [0.5, 0.3, 0.2], [0.6, 0.25, 0.15]
    plain = sp.Polytope(**transport_rows(supply, demand), noise=1)
    capped = sp.Polytope(
        **transport_rows(supply, demand), upper=np.minimum.outer(supply, demand).ravel(), noise=1
    )
    assert plain.form.matrix.shape == (5, 9)  # one of six rows follows from the others
    hours = np.random.default_rng(0).uniform(1, 5, 9)
    assert sp.limit(capped, hours).measurements == pytest.approx(sp.limit(plain, hours).measurements)


def test_two_bounds_that_imply_each_other_are_not_both_lost():
    problem = sp.Polytope(A_eq=[[1, -1]], b_eq=[0], upper=1, noise=1, goal="largest")
    assert problem.best_plan([1.0, 1.0]).tolist() == [1.0, 1.0]
    outcome = sp.simulate(problem, Gaussian([1.0, 1.0]), policy=sp.BetGapE(), seed=0)
    assert outcome.plan == (1.0, 1.0)


def test_sparse_rows_are_rows_and_recipes_make_the_same_problem():
    problem, hours = transport(1, 3, 3)
    again = polytope_from(problem.recipe(), goal="smallest")
    rows = transport_rows(problem.rows.b_eq[:3], problem.rows.b_eq[3:])
    thin = sp.Polytope(**{**rows, "A_eq": sparse.csr_array(rows["A_eq"])})
    for other in (again, thin, pickle.loads(pickle.dumps(problem)), copy.deepcopy(problem)):
        assert other.best_plan(hours).tolist() == problem.best_plan(hours).tolist()


def test_arms_that_are_the_same_in_all_plans_do_not_matter():
    problem = sp.Polytope(
        A_eq=[[1, 1, 0, 0], [0, 0, 1, 0]],
        b_eq=[1, 0.4],
        upper=[1, 1, 1, 2],
        lower=[0, 0, 0, 2],
        noise=1,
        goal="largest",
    )
    assert problem.relevant.tolist() == [True, True, False, False]
    outcome = sp.simulate(problem, Gaussian([1.0, 0.0, 0.0, 0.0]), policy=sp.BetGapE(), seed=1)
    assert outcome.counts.tolist()[2:] == [0, 0]
    assert outcome.plan == (1.0, 0.0, 0.4, 2.0)
