import numpy as np
import pytest

import surepick as sp
from surepick.errors import ProblemError


def families():
    names = [str(s) for s in range(8)]
    return {
        "choices": sp.problems.top_k_family(names, 3),
        "trees": sp.problems.tree_family([("A", "B"), ("B", "C"), ("A", "C"), ("C", "D"), ("B", "D")]),
        "assignments": sp.problems.matching_family(names[:4], names[:4]),
        "paths": sp.problems.path_family(
            [("A", "B"), ("B", "D"), ("A", "C"), ("C", "D"), ("B", "C"), ("A", "D")], "A", "D", directed=True
        ),
    }


@pytest.mark.parametrize("name", families())
def test_finds_the_best_plan_of_every_kind(name):
    family = families()[name]
    means = np.random.default_rng(3).uniform(0, 3, family.n_arms)
    outcome = sp.simulate(family.oracle_problem(), sp.OBet(), sp.Gaussian(means), seed=1)
    assert outcome.status is sp.Status.CONFIDENT
    assert outcome.plan == tuple(family.best(means))
    assert outcome.risk == pytest.approx(0.05)


def test_plans_that_contain_others_are_not_lost():
    """All subsets: each plan contains many others, and the best is the set of arms with positive means."""
    problem = sp.OracleProblem(lambda weights: weights > 0, n_arms=6)
    means = np.array([1.0, -1.0, 0.7, -0.7, 0.5, -2.0])
    outcome = sp.simulate(problem, sp.OBet(), sp.Gaussian(means), seed=2)
    assert outcome.plan == tuple((means > 0).astype(float))


def test_a_single_plan_is_the_answer_at_once():
    problem = sp.OracleProblem(lambda weights: [1.0, 0.0, 1.0], n_arms=3)
    outcome = sp.simulate(problem, sp.OBet(), sp.Gaussian([1.0, 0.0, 0.0]))
    assert (outcome.plan, outcome.n_measurements) == ((1.0, 0.0, 1.0), 0)


def test_a_plan_that_is_not_zeros_and_ones_is_a_clear_error():
    problem = sp.OracleProblem(lambda weights: [2.0, 0.0], n_arms=2)
    with pytest.raises(ProblemError, match=r"zeros and ones, got 2 for arm 0 \('arm 0'\)"):
        sp.OBet().start(problem)
