import numpy as np
import pytest

import surepick as sp
from common import refuses
from surepick import problems
from surepick.problems.truth import Truth

PROBLEM = sp.Problem([[1, 0], [0, 1]], noise=None, goal="largest")
MEANS = np.array([1.0, 2.0])


def test_a_guess_becomes_a_number_and_a_spread_for_each_arm():
    axes = (("a",), ("b", "c"))
    found = Truth.guessed(PROBLEM, {"arm 1": 2, "arm 0": 1}, 0.5, axes=axes, pair=": ")
    assert (found.guess.tolist(), found.spread.tolist()) == ([1, 2], [0.5, 0.5])
    assert (found.problem is PROBLEM, found.means, found.axes, found.pair) == (True, None, axes, ": ")


@pytest.mark.parametrize(("guess", "spread", "field"), [([1, 2, 3], 0, "guess"), ([1, 2], -1, "spread")])
def test_a_guess_that_does_not_fit_is_refused(guess, spread, field):
    with refuses(field, sp.errors.ProblemError):
        Truth.guessed(PROBLEM, guess, spread)


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
