"""BetGapE where the noise is unknown: bets on how equal replicates of a batch agree.

`tests/nets` has its sample sizes, and the control that takes the variance of replicates as known.
"""

import numpy as np
import pytest

import surepick as sp
from common import errs_more_often_than, largest, refuses
from surepick.simulation import Gaussian
from surepick.simulation.fitting import Readings

SHARED = 0.2 * np.eye(4) + 0.8  # of the readings of one use


def world(means=(0.0, 0.0, 0.0, 0.0), shared=SHARED):
    """Four arms in one use: the problem that knows nothing of the noise, and the world with this noise."""
    names = ["a", "b", "c", "d"]
    known = largest(np.eye(4), arms=names, measure={"all": sp.Probe(names, covariance=shared)})
    unknown = sp.Problem(np.eye(4), arms=names, measure={"all": names}, noise=None, goal="largest")
    return unknown, Readings(np.array(means), known.probes)


def test_a_tied_plan_is_ruled_out_no_more_often_than_delta_where_readings_share_noise():
    problem, truth = world()

    def is_wrong(seed):
        run, rng = sp.BetGapE(1e-9).start(problem), np.random.default_rng([31, seed])
        while run.counts.sum() < 120:
            counts = run.decide(rng).counts
            run.absorb(counts, truth.measure(counts, rng))
        return run.log_evidence()[3] >= -np.log(0.2)

    assert not errs_more_often_than(0.2, is_wrong, 30)


@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e4])
@pytest.mark.parametrize("policy", [sp.BetGapE(), sp.BetGapE(epsilon=0.1)])
def test_the_best_plan_is_found_whatever_the_scale(policy, scale):
    problem, truth = world(scale * np.array([1.0, 0.0, 0.2, 0.0]), scale**2 * SHARED)
    assert sp.simulate(problem, truth, policy=policy, seed=1, budget=3000).plan == 0


def test_noise_without_any_variation_is_refused_and_wins_no_bet():
    problem = sp.Problem(np.eye(2), measure={"both": ["arm 0", "arm 1"]}, noise=None, goal="largest")
    run = sp.BetGapE().start(problem)

    def measure_constants():
        for _ in range(100):
            counts = run.decide().counts
            run.absorb(counts, counts[[0, 0]] * np.array([2.0, 1.0]))

    with refuses("noise"):
        measure_constants()
    assert run.standing().risk == pytest.approx(1.0)


def test_the_noise_is_estimated_and_arms_that_all_plans_share_are_left_out():
    problem = sp.Problem([[1, 0, 1], [0, 1, 1]], noise=None, goal="largest")
    outcome = sp.simulate(problem, Gaussian([30.0, 0.0, 0.0], 20.0), policy=sp.BetGapE())
    assert (outcome.plan, outcome.counts[2]) == (0, 0)
    assert outcome.noise_scale[:2] == pytest.approx(20.0, rel=0.4)
