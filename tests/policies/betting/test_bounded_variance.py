"""Noise of bounded variance: the promise holds under skewed noise, where the Gaussian factor breaks it."""

import math

import numpy as np
import pytest
from scipy.stats import binom

import surepick as sp
from common import errs_more_often_than, largest, refuses
from surepick.errors import ParameterError, ProblemError
from surepick.inference.wealth import COMMON
from surepick.policies import RAGE, Challenge
from surepick.policy import Measure, Stop
from surepick.simulation import Gaussian

SKEWED = largest(np.eye(2), noise_kind="bounded variance")
DELTA = 0.001


def log_normal(rng, n, sigma):
    """n draws of mean 0 and standard deviation 1."""
    mean, variance = math.exp(sigma**2 / 2), math.exp(sigma**2) * (math.exp(sigma**2) - 1)
    return (rng.lognormal(0.0, sigma, n) - mean) / math.sqrt(variance)


def test_mixed_readings_with_log_normal_noise_hold_their_guarantee():
    """Near a tie, the second plan worse by .05, at delta .2; the noise of both readings is skewed."""
    readings = np.array([[1.0, 0.5], [0.5, 1.0]])
    problem = largest(np.eye(2), measure=readings, noise_kind="bounded variance")
    means = readings @ [0.05, 0.0]

    def is_wrong(seed):
        run, rng = sp.BetGapE(0.2).start(problem), np.random.default_rng(seed)
        while isinstance(decision := run.decide(), Measure) and run.counts.sum() < 3000:
            n = decision.counts
            noise = [-log_normal(rng, n[0], 2.0).sum(), log_normal(rng, n[1], 2.0).sum()]
            run.absorb(n, n * means + noise)
        return decision == Stop(1)

    assert not errs_more_often_than(0.2, is_wrong, 60)


def test_a_final_batch_tests_by_the_variance_alone():
    how = {"budget": 300, "final_batch": 0.5}
    outcome = sp.simulate(SKEWED, Gaussian([0.6, 0.0]), policy=sp.BetGapE(), **how)
    assert outcome.risk is not None
    with refuses("gaussian", ParameterError):
        sp.simulate(SKEWED, Gaussian([0.6, 0.0]), policy=sp.BetGapE(), **how, gaussian=True)


@pytest.mark.parametrize("policy", [sp.CombGapE(), RAGE()], ids=str)
def test_a_policy_that_needs_more_is_refused(policy):
    with pytest.raises(ProblemError):
        sp.simulate(SKEWED, Gaussian([1.0, 0.0]), policy=policy)


def largest_mean_wealth(problem):
    """The mean wealth of a challenge after a block of equal means whose noise is rare and large, by plan."""
    run = Challenge(0).start(problem)
    run.absorb(run.decide().counts, np.array([0.0, 0.5]))
    counts, kept, tail = run.decide().counts, run.state(), 1e-3
    sizes = np.array([math.sqrt((1 - tail) / tail), -math.sqrt(tail / (1 - tail))])  # of variance 1
    mean, n = 0.0, int(counts[1])
    for k in range(n + 1):  # rare values among those of the challenger; the incumbent's are without noise
        run.restore(kept)
        sums = np.array([0.0, k * sizes[0] + (n - k) * sizes[1]])
        run.absorb(counts, sums)
        keep, replace = run._question.account(COMMON), run._question.account(1)
        mean += binom.pmf(k, n, tail) * np.exp([keep.current[1], replace.current[0]])
    return mean.max()


def test_a_challenge_bets_by_the_variance_alone():
    assert largest_mean_wealth(SKEWED) <= 1 + 1e-9
    assert largest_mean_wealth(largest(np.eye(2))) > 1.01  # the Gaussian factor is not fair there
    outcome = sp.simulate(SKEWED, Gaussian([0.0, 1.0]), policy=Challenge(0, epsilon=0.3), seed=1)
    assert outcome.plan == 1
    assert "standard deviation is at most the given scale" in outcome.guarantee


@pytest.mark.parametrize("given", [{"noise": None}, {"low": 0, "high": 1}, {"noise_kind": "heavy"}], ids=str)
def test_what_a_variance_cannot_be_given_with_is_refused(given):
    with pytest.raises(ProblemError):
        sp.Problem(np.eye(2), **{"noise_kind": "bounded variance", **given}, goal="largest")
