"""Error rates of the radii on the instances of docs/guarantees.md, with a negative control.

The test refutes "wrong with probability at most delta" when so many wrong answers have a probability below
1e-6 under that hypothesis. A sound radius passes; the published radius must fail the very same test.
"""

import numpy as np
import pytest

import surepick as sp
from common import largest
from hard_families import is_refuted
from surepick.simulation import Bernoulli, Gaussian, State

RUNS, DELTA = 300, 0.01
# The smaller the gap, the more chances to err before it shows; on the larger one the sound radii do stop.
INSTANCES = {
    "two arms, gap .02": (np.eye(2), [0.02, 0.0], 2_000),
    "three arms, gap .05": (np.eye(3), [0.05, 0.0, 0.0], 2_000),
}


def errors(policy, plans, means, runs, budget):
    problem, truth = largest(plans), Gaussian(means)
    outcomes = (sp.simulate(problem, truth, policy=policy, seed=seed, budget=budget) for seed in range(runs))
    return sum(outcome.correct is False for outcome in outcomes)


@pytest.mark.parametrize("radius", ["normal-mixture", "normal-mixture-joint", "kaufmann-koolen"])
@pytest.mark.parametrize("instance", INSTANCES)
def test_sound_radii_keep_their_promise(radius, instance):
    plans, means, budget = INSTANCES[instance]
    wrong = errors(sp.CombGapE(delta=DELTA, radius=radius), plans, means, RUNS, budget)
    assert not is_refuted(wrong, RUNS, DELTA)


def test_the_published_radius_fails_the_same_test():
    plans, means, budget = INSTANCES["two arms, gap .02"]
    wrong = errors(sp.CombGapE(delta=DELTA, radius="published"), plans, means, RUNS, budget)
    assert is_refuted(wrong, RUNS, DELTA)


@pytest.mark.parametrize("radius", ["normal-mixture", "kaufmann-koolen"])
def test_epsilon_keeps_its_promise_where_the_gap_is_just_beyond_it(radius):
    policy = sp.CombGapE(delta=DELTA, epsilon=0.1, radius=radius)
    wrong = errors(policy, np.eye(2), [0.11, 0.0], RUNS, budget=2_000)
    assert not is_refuted(wrong, RUNS, DELTA)


def test_epsilon_ends_exact_ties_with_confidence():
    problem, truth = largest(np.eye(3)), Gaussian([0.3, 0.3, 0.0])
    outcome = sp.simulate(problem, truth, policy=sp.CombGapE(epsilon=0.2), seed=4)
    assert outcome.state is State.CONFIDENT
    assert outcome.plan in (0, 1)


def test_the_mixture_radius_holds_for_bernoulli_noise_of_scale_one_half():
    problem, truth = sp.Problem(np.eye(2), noise=0.5, goal="largest"), Bernoulli([0.5, 0.48])
    outcomes = [sp.simulate(problem, truth, policy=sp.CombGapE(), seed=s, budget=3_000) for s in range(100)]
    assert not is_refuted(sum(o.correct is False for o in outcomes), 100, 0.05)


@pytest.mark.slow
@pytest.mark.parametrize("radius", ["published", "normal-mixture", "normal-mixture-joint", "kaufmann-koolen"])
@pytest.mark.parametrize("delta", [0.05, 0.01])
def test_long_runs_refute_the_published_radius_alone(radius, delta):
    policy = sp.CombGapE(delta=delta, radius=radius)
    wrong = errors(policy, np.eye(2), [0.02, 0.0], runs=2000, budget=200_000)
    assert is_refuted(wrong, 2000, delta) == (radius == "published")
