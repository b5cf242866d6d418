"""What listed plans and an oracle have in common, so that nobody needs to ask which of the two it is."""

import copy

import numpy as np
import pytest

import surepick as sp
from surepick.core.oracle_problem import absent

PLANS = np.array([[1.0, 0.0, 2.0], [0.0, 1.0, 2.0]])


def cheapest(weights):
    return PLANS[np.argmin(PLANS @ weights)]


KINDS = {
    "listed": sp.Problem(PLANS, goal="smallest", noise=1),
    "oracle": sp.OracleProblem(cheapest, 3, goal="smallest", n_plans=2, noise=1),
}
both = pytest.mark.parametrize("problem", KINDS.values(), ids=list(KINDS))


@both
def test_the_best_plan_is_a_vector_and_its_sign_makes_larger_better(problem):
    means = np.array([3.0, 1.0, 5.0])
    best = problem.best_plan(means)
    assert best.tolist() == PLANS[1].tolist()
    other = PLANS[0]
    assert problem.sign * (best @ means) > problem.sign * (other @ means)


@both
def test_another_noise_scale_leaves_the_problem_itself_as_it_was(problem):
    other = problem.with_noise(np.array([1.0, 2.0, 3.0]))
    assert other.noise_scale is not None
    assert other.noise_scale.tolist() == [1.0, 2.0, 3.0]
    assert problem.noise_scale is not None
    assert problem.noise_scale.tolist() == [1.0, 1.0, 1.0]
    assert type(other) is type(problem)


@both
def test_a_copy_is_as_read_only_as_the_problem(problem):
    with pytest.raises(ValueError, match="read-only"):
        copy.deepcopy(problem).costs[0] = 7.0


def test_each_kind_says_what_is_known_of_its_plans():
    listed, oracle = KINDS["listed"], KINDS["oracle"]
    assert (listed.is_listed, oracle.is_listed) == (True, False)
    assert (listed.completeness, oracle.completeness) == (
        "2 plans, as listed",
        "at most 2 plans, none of them listed",
    )
    assert sp.Problem([[1, 0], [1, 0], [0, 1]], noise=1, goal="largest").duplicates == (("plan 1", "plan 0"),)
    assert oracle.duplicates == ()


def test_an_oracle_problem_without_its_function_cannot_decide():
    assert (KINDS["listed"].can_decide, KINDS["oracle"].can_decide) == (True, True)
    assert not sp.OracleProblem(absent, 3, noise=1, goal="largest").can_decide
