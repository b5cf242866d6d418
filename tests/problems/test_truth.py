import numpy as np
import pytest

import surepick as sp
from surepick import problems
from surepick.problems.truth import Truth

PROBLEM = sp.Problem([[1, 0], [0, 1]], noise_scale=None)
MEANS = np.array([1.0, 2.0])


def test_instances_built_and_loaded_are_one_value_with_their_own_order_of_arguments():
    instance = problems.Instance(PROBLEM, MEANS, "two arms")
    built = problems.Built(PROBLEM, [1, 2], 0.5, (("a",), ("b", "c")), ": ")
    loaded = problems.Loaded(PROBLEM, MEANS, "table", "two arms", None, MEANS, MEANS / 2, np.ones(2))
    assert all(isinstance(one, Truth) and one.problem is PROBLEM for one in (instance, built, loaded))
    assert (instance.means is MEANS, instance.description, instance.title) == (True, "two arms", "two arms")
    assert (built.guess, built.spread, built.axes, built.pair) == ([1, 2], 0.5, (("a",), ("b", "c")), ": ")
    assert (loaded.kind, loaded.title, loaded.axes) == ("table", "two arms", None)
    assert loaded.true_scale.tolist() == loaded.noise_scale.tolist() == [1, 1]
    assert (loaded.guess.tolist(), loaded.spread.tolist()) == ([1, 2], [0.5, 1])


def test_the_noise_of_the_truth_stands_in_for_an_unknown_one():
    assert Truth(PROBLEM, MEANS, np.array([2.0, 3.0])).known.noise_scale.tolist() == [2, 3]
    known = sp.Problem([[1, 0], [0, 1]], noise_scale=4)
    assert Truth(known, MEANS, np.array([2.0, 3.0])).known is known


@pytest.mark.parametrize(
    "make", [lambda: problems.knapsack_instance(5, 0), lambda: problems.transport_instance(0, n_draws=20)]
)
def test_the_paper_s_instances_are_truths_with_means(make):
    instance = make()
    assert isinstance(instance, problems.Instance)
    assert instance.means.shape == (instance.problem.n_arms,)
    assert "seed 0" in instance.description
