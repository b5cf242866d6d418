"""Cost ranging: just inside an interval the plan is best, just outside another one is."""

import numpy as np
import pytest
from surepick.core.answers import ranging

import surepick as sp
from polytopes import KINDS


@pytest.mark.parametrize(("kind", "seed"), [("3x3", 308), ("5x4", 308), ("mix", 303)])
def test_linear_programs_agree_on_both_sides_of_every_end(kind, seed):
    problem, means = KINDS[kind](seed)
    plan = tuple(problem.best_plan(means).tolist())
    ends, checked = ranging(problem, plan, means), 0
    for s, side in np.argwhere(np.isfinite(ends)).tolist():
        for inside in (True, False):
            moved = means.copy()
            moved[s] = ends[s, side] + (1e-4 if inside == (side == 0) else -1e-4)
            ahead = problem.sign * float((problem.best_plan(moved) - np.array(plan)) @ moved)
            assert (ahead < 1e-9) == inside
            checked += 1
    assert checked >= 10


def test_an_outcome_says_what_would_have_to_change():
    problem = sp.Polytope(A_eq=[[1, 1, 1]], b_eq=[1.0], arms=["tea", "milk", "jam"], noise=1, goal="largest")
    outcome = sp.simulate(problem, sp.Gaussian([2.0, 1.0, 0.0], 0.1), policy=sp.BetGapE(), seed=0)
    low, high = outcome.ranging["tea"]
    assert low == pytest.approx(outcome.means[1])
    assert high == np.inf
    assert outcome.ranging["jam"] == (-np.inf, pytest.approx(outcome.means[0]))


def test_there_is_none_without_an_answer_or_where_the_plan_is_not_best():
    problem = sp.Polytope(A_eq=[[1, 1]], b_eq=[1.0], noise=1, goal="largest")
    assert ranging(problem, (0.5, 0.5), np.array([1.0, 0.0])) is None
    assert ranging(problem, (0.0, 1.0), np.array([1.0, 0.0])) is None
    spent = sp.simulate(problem, sp.Gaussian([0.0, 0.0]), policy=sp.BetGapE(), budget=50)
    assert spent.ranging is None
    tied = sp.simulate(
        sp.Problem([[1, 0], [0, 1]], noise=1, goal="largest"),
        sp.Gaussian([0.0, 0.0]),
        policy=sp.BetGapE(),
        budget=50,
    )
    assert tied.plan is None
    assert tied.ranging is None
