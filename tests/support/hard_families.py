"""Instances made to catch a policy that errs too often, and bets that cheat, to show they can.

Shared by the tests and by benchmarks/soundness.py.
"""

from dataclasses import dataclass

import numpy as np
from scipy.stats import binom

import surepick as sp
from surepick.inference.factors import SubGaussian
from surepick.policies.betting.bet_gap_e import BetGapE
from surepick.simulation import Bernoulli, Gaussian, UniformNoise

REFUTED = 1e-6  # so many errors would be an accident of this probability at error rate delta


@dataclass(frozen=True)
class Family:
    """A problem, its truth, and what is asked of the policy."""

    problem: sp.Problem
    truth: object
    delta: float
    epsilon: float = 0.0
    budget: int = 4_000


def two_arms(gap, delta, budget=2_000, epsilon=0.0):
    return Family(
        sp.Problem(np.eye(2), noise=1, goal="largest"), Gaussian([gap, 0.0]), delta, epsilon, budget
    )


def lucky_leads(scale):
    """Many plans of nearly the same value, so that the lead changes often."""
    rng = np.random.default_rng(6)
    plans = rng.integers(0, 3, (30, 6)).astype(float)
    return sp.Problem(plans, noise=1, goal="largest"), Gaussian(scale * rng.normal(size=6))


SCALES = np.array([10.0, 0.1, 1.0])

# With tiny gaps errors are frequent and most runs are cut off; with the others most runs answer.
FAMILIES = {
    "two arms, gap .02, delta .2": two_arms(0.02, 0.2),
    "two arms, gap .02, delta .05": two_arms(0.02, 0.05),
    "two arms, gap .02, delta .01": two_arms(0.02, 0.01),
    "two arms, gap .2, delta .2": two_arms(0.2, 0.2),
    "two arms, gap .2, delta .05": two_arms(0.2, 0.05),
    "two arms, gap .2, delta .01": two_arms(0.2, 0.01),
    "one best of ten, nine equal rivals": Family(
        sp.Problem(np.eye(10), noise=1, goal="largest"), Gaussian([0.4] + [0.0] * 9), 0.2
    ),
    "coin tosses": Family(
        sp.Problem(np.eye(2), noise=0.5, goal="largest"), Bernoulli([0.55, 0.5]), 0.2, budget=2_000
    ),
    "bounded noise": Family(
        sp.Problem(np.eye(2), noise=1, goal="largest"), UniformNoise([0.15, 0.0], 1.0), 0.2, budget=2_000
    ),
    "very unequal scales": Family(
        sp.Problem([[1.0, 0.0, 1.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]], noise=SCALES, goal="largest"),
        Gaussian([1.0, 0.0, 0.0], SCALES),
        0.2,
        budget=5_000,
    ),
    "two of three tie for the best": Family(
        sp.Problem(np.eye(3), noise=1, goal="largest"), Gaussian([0.0, 0.0, -0.1]), 0.2, budget=1_000
    ),
    "the same within epsilon": Family(
        sp.Problem(np.eye(3), noise=1, goal="largest"), Gaussian([0.0, 0.0, -0.25]), 0.2, 0.2
    ),
    "leads that change often": Family(*lucky_leads(2.0), 0.2, budget=5_000),
    "epsilon just below the gap": two_arms(0.22, 0.2, epsilon=0.2),
    "epsilon and many leads": Family(*lucky_leads(0.4), 0.2, epsilon=0.4, budget=5_000),
}


class PeekingFactor(SubGaussian):
    """Chooses the size of every bet after the batch, by what the batch shows: what the proof forbids."""

    def log_factors(self, gap, variance, sizes):
        best = np.broadcast_to(np.maximum(gap, 0.0)[:, None], sizes.shape)
        return super().log_factors(gap, variance, best)

    def log_mixture(self, gap, variance, centre, prior_variance):
        return np.maximum(gap, 0.0) ** 2 / (2 * variance)


class Lucky(SubGaussian):
    """Reads what a batch shows so many errors luckier than it was: a factor that is not fair."""

    def __init__(self, errors):
        self.errors = errors

    def log_factors(self, gap, variance, sizes):
        return super().log_factors(gap + self.errors * np.sqrt(variance), variance, sizes)


class Peeking(BetGapE):
    """BetGapE with bets chosen after the batch: the negative control."""

    def start(self, problem):
        run = super().start(problem)
        run._factor = PeekingFactor()
        return run


def count_errors(family, policy_class, runs, first_seed=0):
    """How many of the runs answer wrongly, and how many answer at all."""
    policy = policy_class(delta=family.delta, epsilon=family.epsilon)
    outcomes = [
        sp.simulate(family.problem, family.truth, policy=policy, seed=first_seed + r, budget=family.budget)
        for r in range(runs)
    ]
    wrong = sum(outcome.correct is False for outcome in outcomes)
    return wrong, sum(outcome.plan is not None for outcome in outcomes)


def is_refuted(wrong, runs, delta):
    """Whether "wrong with probability at most delta" is refuted by an exact binomial test."""
    return bool(binom.sf(wrong - 1, runs, delta) < REFUTED)
