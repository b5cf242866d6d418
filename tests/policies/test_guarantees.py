"""Error rates of the radii on the instances of docs/benchmarks.md, with a negative control.

A sound radius passes the exact binomial test of "wrong with probability at most delta"; the published radius
must fail the very same test.
"""

import numpy as np
import pytest

import surepick as sp
from common import answers_wrongly, errs_more_often_than, largest
from surepick.simulation import Bernoulli, Gaussian, State

RUNS, DELTA = 300, 0.01
# The smaller the gap, the more chances to err before it shows; on the larger one the sound radii do stop.
INSTANCES = [[0.02, 0.0], [0.05, 0.0, 0.0]]
SOUND = ["normal-mixture", "normal-mixture-joint", "kaufmann-koolen"]


def is_refuted(policy, means, runs=RUNS, budget=2_000):
    """Return whether the policy is wrong more often than its delta, with arms of these means as plans."""
    is_wrong = answers_wrongly(largest(np.eye(len(means))), Gaussian(means), policy, budget)
    return errs_more_often_than(policy.delta, is_wrong, runs)


@pytest.mark.parametrize("radius", SOUND)
@pytest.mark.parametrize("means", INSTANCES)
def test_sound_radii_keep_their_promise(radius, means):
    assert not is_refuted(sp.CombGapE(delta=DELTA, radius=radius), means)


def test_the_published_radius_fails_the_same_test():
    assert is_refuted(sp.CombGapE(delta=DELTA, radius="published"), INSTANCES[0])


@pytest.mark.parametrize("radius", ["normal-mixture", "kaufmann-koolen"])
def test_epsilon_keeps_its_promise_where_the_gap_is_just_beyond_it(radius):
    assert not is_refuted(sp.CombGapE(delta=DELTA, epsilon=0.1, radius=radius), [0.11, 0.0])


def test_epsilon_ends_exact_ties_with_confidence():
    problem, truth = largest(np.eye(3)), Gaussian([0.3, 0.3, 0.0])
    outcome = sp.simulate(problem, truth, policy=sp.CombGapE(epsilon=0.2), seed=4)
    assert outcome.state is State.CONFIDENT
    assert outcome.plan in (0, 1)


def test_the_mixture_radius_holds_for_bernoulli_noise_of_scale_one_half():
    problem, truth = sp.Problem(np.eye(2), noise=0.5, goal="largest"), Bernoulli([0.5, 0.48])
    assert not errs_more_often_than(0.05, answers_wrongly(problem, truth, sp.CombGapE(), 3_000), 100)


@pytest.mark.slow
@pytest.mark.parametrize("radius", ["published", *SOUND])
@pytest.mark.parametrize("delta", [0.05, 0.01])
def test_long_runs_refute_the_published_radius_alone(radius, delta):
    policy = sp.CombGapE(delta=delta, radius=radius)
    assert is_refuted(policy, [0.02, 0.0], runs=2000, budget=200_000) == (radius == "published")
