"""Which means keep an answer, and what an answer does."""

import math

import numpy as np
import pytest
from scipy.sparse import csr_array

import surepick as sp
from common import largest
from polytopes import KINDS, all_vertices
from surepick.core.answers import amounts, ranging, whole_plan
from surepick.simulation.environments import Gaussian

HOURS = np.array([[2.0, 3.0, 4.0], [3.0, 4.0, 6.0]])
SIMPLEX = sp.Polytope(A_eq=[[1, 1]], b_eq=[1.0], noise=1, goal="largest")


def commutes(plans):
    problem = sp.Problem(plans, noise=[4.0, 2.0, 1.0], goal="smallest")
    return problem, np.array([20.0, 22.0, 12.0])


CASES = {
    **{f"{kind} {seed}": KINDS[kind](seed) for kind, seed in (("3x3", 308), ("5x4", 308), ("mix", 303))},
    "list": commutes([[1, 0, 1], [0, 1, 1], [0, 0, 3]]),
    "sparse": commutes(csr_array(np.array([[1, 0, 1], [0, 1, 1], [0, 0, 3]]))),
}


@pytest.mark.parametrize("case", CASES)
def test_just_inside_its_ranging_the_plan_is_best_and_just_outside_another_one_is(case):
    problem, means = CASES[case]
    plan = problem.best(means) if problem.is_listed else tuple(problem.best_plan(means).tolist())
    ends, checked = ranging(problem, plan, means), 0
    for s, side in np.argwhere(np.isfinite(ends)).tolist():
        for inside in (True, False):
            moved = means.copy()
            moved[s] = ends[s, side] + (1e-4 if inside == (side == 0) else -1e-4)
            ahead = problem.sign * float((problem.best_plan(moved) - problem.vector(plan)) @ moved)
            assert (ahead < 1e-9) == inside
            checked += 1
    assert checked >= 4


def test_an_outcome_says_what_would_have_to_change():
    problem = sp.Polytope(A_eq=[[1, 1, 1]], b_eq=[1.0], arms=["tea", "milk", "jam"], noise=1, goal="largest")
    outcome = sp.simulate(problem, Gaussian([2.0, 1.0, 0.0], 0.1), policy=sp.BetGapE(), seed=0)
    assert outcome.ranging["tea"] == (pytest.approx(outcome.means[1]), math.inf)
    assert outcome.ranging["jam"] == (-math.inf, pytest.approx(outcome.means[0]))


def test_there_is_no_ranging_without_an_answer_or_where_the_plan_is_not_best():
    assert ranging(SIMPLEX, (0.5, 0.5), np.array([1.0, 0.0])) is None
    assert ranging(SIMPLEX, (0.0, 1.0), np.array([1.0, 0.0])) is None
    problem, means = CASES["list"]
    assert ranging(problem, 1, means) is None
    for tied in (SIMPLEX, largest(np.eye(2))):
        spent = sp.simulate(tied, Gaussian([0.0, 0.0]), policy=sp.BetGapE(), budget=50)
        assert spent.plan is None
        assert spent.ranging is None


def test_amounts_have_no_rounding_dust():
    problem = sp.Polytope(A_eq=[[1, 1, 1]], b_eq=[1.0], arms=["tea", "milk", "jam"], goal="largest")
    assert amounts(problem, (0.1 + 0.2, 0.7, 1e-17)) == {"tea": 0.3, "milk": 0.7}


@pytest.fixture
def freight():
    return sp.problems.transport([60, 40], [50, 30, 20], HOURS, noise=1)


def test_the_whole_plan_near_an_average_is_a_plan_and_no_whole_plan_is_nearer(freight):
    rng = np.random.default_rng(0)
    vertices = all_vertices(freight)
    for _ in range(10):
        average = rng.dirichlet(np.ones(len(vertices))) @ vertices
        whole = np.array(whole_plan(freight, tuple(average)))
        assert (whole == np.rint(whole)).all()
        assert (whole >= 0).all()
        table = whole.reshape(2, 3)
        assert table.sum(axis=0).tolist() == [50, 30, 20]
        assert table.sum(axis=1).tolist() == [60, 40]
        rounded = np.rint(average)
        assert np.abs(whole - average).sum() <= np.abs(vertices - average).sum(axis=1).min() + 1e-6
        assert np.abs(whole - rounded).max() <= 2


def test_there_is_no_whole_plan_beside_one_that_is_whole_or_where_rows_are_not(freight):
    mix = sp.Polytope(A_ub=[[0.4, 0.8, 0.3]], b_ub=[0.8], upper=1.0, noise=1, goal="largest")
    assert whole_plan(freight, (40, 0, 20, 10, 30, 0)) is None
    assert whole_plan(mix, (0.3, 0.2, 0.1)) is None
    assert whole_plan(sp.Problem(np.eye(2), goal="largest"), 0) is None


def test_a_session_within_epsilon_shows_the_whole_plan_beside_the_average(freight):
    session = sp.Session.create("memory://", "ship", freight, policy=sp.BetGapE(0.1, epsilon=60.0), seed=1)
    rng, hours = np.random.default_rng(1), dict(zip(freight.arm_names, HOURS.ravel(), strict=True))
    while requests := session.ask(100):
        for request in requests:
            session.tell(request, hours[request.arm] + rng.normal())
    view = session.view()
    is_whole = all(float(x).is_integer() for x in view.amounts.values())
    beside = [row for row in view.plans if row.name.startswith("whole amounts")]
    assert len(beside) == (0 if is_whole else 1)
    assert all(row.behind_se > 0 for row in beside)
