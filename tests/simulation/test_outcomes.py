"""How runs end and how policies compare: nothing is called confident that is not guaranteed."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binomtest

import surepick as sp
from common import largest
from surepick.simulation import Gaussian, State
from surepick.simulation.comparison import binomial_interval, summary

PROBLEM = largest(np.eye(2))
TRUTH = Gaussian([3.0, 0.0])


def test_an_answer_without_a_guarantee_is_done_and_not_confident():
    outcome = sp.simulate(PROBLEM, TRUTH, policy=sp.CombGapE(radius="heuristic"))
    assert (outcome.state, outcome.plan, outcome.leader) == (State.DONE, 0, 0)
    assert "delta=" not in repr(outcome)


def test_an_outcome_knows_whether_it_is_right_and_shows_its_arms():
    problem = sp.Problem(["north", "south"], goal="smallest", noise=1)
    outcome = sp.simulate(problem, [5.0, 2.0], seed=1)
    assert (outcome.plan_name, outcome.correct, outcome.loss) == ("south", True, 0.0)
    wrong = replace(outcome, plan=0, leader=0)
    assert (wrong.correct, wrong.loss) == (False, 3.0)
    assert replace(outcome, plan=None).correct is None
    frame = outcome.to_frame()
    assert list(frame["arm"]) == ["north", "south"]
    assert frame["n"].sum() == outcome.n_measured


@pytest.mark.parametrize(("k", "n"), [(0, 10), (3, 10), (10, 10), (1, 2000), (112, 1000)])
def test_the_binomial_interval_is_clopper_pearson(k, n):
    expected = binomtest(k, n).proportion_ci(0.95, method="exact")
    assert binomial_interval(k, n) == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_only_plans_worse_by_more_than_epsilon_are_errors():
    problem, truth = sp.Problem(np.eye(3), goal="smallest", noise=1), Gaussian([1.0, 1.2, 1.0])
    outcome = sp.simulate(problem, truth, policy=sp.CombGapE(epsilon=5.0))
    for plan, epsilon, wrong in ((0, 0.0, False), (2, 0.0, False), (1, 0.0, True), (1, 0.3, False)):
        case = replace(outcome, plan=plan, leader=plan, policy=sp.CombGapE(epsilon=epsilon))
        assert case.correct is not wrong


def test_a_summary_counts_what_was_measured_cut_off_and_wrong():
    problem, policy = largest(np.eye(2)), sp.CombGapE()
    runs = [sp.simulate(problem, Gaussian([0.6, 0.0]), policy=policy, seed=seed) for seed in range(6)]
    row, measured = summary(policy, runs), [outcome.n_measured for outcome in runs]
    assert (row.runs, row.mean) == (6, np.mean(measured))
    assert row.deviation == pytest.approx(np.std(measured, ddof=1))
    tied = sp.simulate(problem, Gaussian([0.0, 0.0]), policy=policy, budget=100)
    assert (summary(policy, [tied]).cut_off, summary(policy, [tied]).errors) == (1, 0)
    wrong = replace(runs[0], plan=1, leader=1)
    assert summary(policy, [wrong, tied]).errors == 1
