import numpy as np
import pytest

import surepick as sp
from common import refuses
from surepick import problems
from surepick.problems.truth import Truth

PROBLEM = sp.Problem([[1, 0], [0, 1]], noise=None, goal="largest")
MEANS = np.array([1.0, 2.0])


def test_means_that_are_needed_and_not_known_are_refused():
    assert Truth(PROBLEM, MEANS).true_means is MEANS
    with refuses("truth.means", sp.errors.FileError):
        _ = Truth(PROBLEM).true_means


def test_the_noise_of_the_truth_stands_in_for_an_unknown_one():
    assert Truth(PROBLEM, MEANS, np.array([2.0, 3.0])).known.noise_scale.tolist() == [2, 3]
    known = sp.Problem([[1, 0], [0, 1]], noise=4, goal="largest")
    assert Truth(known, MEANS, np.array([2.0, 3.0])).known is known


@pytest.mark.parametrize(
    "make", [lambda: problems.knapsack_instance(5, 0), lambda: problems.transport_instance(0, n_draws=20)]
)
def test_the_paper_s_instances_are_truths_with_means(make):
    instance = make()
    assert isinstance(instance, problems.Truth)
    assert instance.means.shape == (instance.problem.n_arms,)
    assert "seed 0" in instance.title
