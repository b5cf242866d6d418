import numpy as np
import pytest

import surepick as sp


@pytest.mark.parametrize(
    "answer", [[1, 0], (True, False), np.array([1, 0]), np.array([True, False])], ids=lambda a: repr(a)
)
def test_a_plan_may_be_any_sequence_of_numbers(answer):
    problem = sp.OracleProblem(lambda weights: answer, n_arms=2, n_plans=2, noise=1, goal="largest")
    assert problem.best_plan([1.0, 2.0]).tolist() == [1.0, 0.0]


def test_an_oracle_may_do_as_it_likes_with_the_weights_it_is_given():
    def best(weights):
        weights[:] = -weights
        return np.eye(3)[np.argmin(weights)]

    problem, weights = sp.OracleProblem(best, n_arms=3, noise=1, goal="largest"), np.array([0.3, 0.9, 0.1])
    assert problem.best_plan(weights).tolist() == [0.0, 1.0, 0.0]
    assert weights.tolist() == [0.3, 0.9, 0.1]
