from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binomtest

import surepick as sp
from common import largest, refuses
from surepick.policies import Uniform
from surepick.simulation import Gaussian
from surepick.simulation.comparison import binomial_interval, compare


@pytest.mark.parametrize(("k", "n"), [(0, 10), (3, 10), (10, 10), (1, 2000), (112, 1000)])
def test_the_binomial_interval_is_clopper_pearson(k, n):
    expected = binomtest(k, n).proportion_ci(0.95, method="exact")
    assert binomial_interval(k, n) == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_compare_reports_each_policy_on_the_same_seeds():
    problem, truth = largest(np.eye(2)), Gaussian([0.6, 0.0])
    seen = []
    rows = compare(
        problem, [sp.CombGapE(), Uniform()], truth, runs=6, seed=10, progress=lambda *done: seen.append(done)
    )
    alone = [sp.simulate(problem, truth, policy=sp.CombGapE(), seed=10 + r).n_measured for r in range(6)]
    assert rows[0].mean == np.mean(alone)
    assert rows[0].deviation == pytest.approx(np.std(alone, ddof=1))
    assert [row.runs for row in rows] == [6, 6]
    assert seen[-1] == (12, 12)


def test_cut_off_runs_are_counted_and_are_no_errors():
    (row,) = compare(largest(np.eye(2)), [sp.CombGapE()], Gaussian([0.0, 0.0]), runs=3, budget=100)
    assert (row.cut_off, row.errors, row.mean) == (3, 0, 100.0)


def test_only_plans_worse_by_more_than_epsilon_are_errors():
    problem, truth = sp.Problem(np.eye(3), goal="smallest", noise=1), Gaussian([1.0, 1.2, 1.0])
    outcome = sp.simulate(problem, truth, policy=sp.CombGapE(epsilon=5.0))
    for plan, epsilon, wrong in ((0, 0.0, False), (2, 0.0, False), (1, 0.0, True), (1, 0.3, False)):
        case = replace(outcome, plan=plan, leader=plan, policy=sp.CombGapE(epsilon=epsilon))
        assert case.correct is not wrong


def test_no_runs_is_refused():
    with refuses("runs"):
        compare(largest(np.eye(2)), [sp.CombGapE()], Gaussian([0.0, 0.0]), runs=0)
