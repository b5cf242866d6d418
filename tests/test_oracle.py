import numpy as np
import pytest

import surepick as sp


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ([1.0, 0.0, 0.0], r"one number for each of 2 arms, got shape \(3,\)"),
        ([1.0, float("nan")], r"finite numbers, got nan for arm 1 \('arm 1'\)"),
        ("none", "one number per arm"),
    ],
)
def test_an_oracle_that_answers_nonsense_is_named(answer, message):
    problem = sp.OracleProblem(lambda weights: answer, n_arms=2, n_plans=2)
    with pytest.raises(sp.SurepickError, match=message):
        problem.best_plan([1.0, 2.0])


@pytest.mark.parametrize(
    "settings",
    [{"n_arms": 0}, {"n_arms": True}, {"n_arms": 2, "n_plans": 1}, {"n_arms": 2, "noise_scale": -1.0}],
)
def test_refuses_odd_sizes(settings):
    with pytest.raises(sp.SurepickError, match=r"n_arms|n_plans|noise_scale"):
        sp.OracleProblem(lambda weights: weights, **settings)


def test_refuses_what_cannot_be_called():
    with pytest.raises(sp.SurepickError, match="function from weights"):
        sp.OracleProblem(np.eye(2), n_arms=2)


def test_is_immutable_and_says_what_it_is():
    problem = sp.OracleProblem(lambda weights: weights, n_arms=2, n_plans=2**70)
    with pytest.raises(ValueError, match="read-only"):
        problem.costs[0] = 3.0
    assert "2 arms" in repr(problem)
