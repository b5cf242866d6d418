"""Error rates at delta = .2 on near ties, for every question and kind of noise, with controls.

Every test has a control that the same test must reject: bet sizes chosen after the batch, the replicates' own
variance taken as known, newcomers that begin with wealth 1 (`tests/policies/betting/test_arriving.py`).
"""

import itertools
from typing import Any

import numpy as np
import pytest

import surepick as sp
from common import errs_more_often_than, largest, measured
from hard_families import FAMILIES, Peeking, PeekingFactor, count_errors, is_refuted
from surepick.core.run import Stop
from surepick.inference.contrasts import arm_probes
from surepick.inference.factors import SubGaussian
from surepick.policies import Challenge

DELTA, RUNS = 0.2, 60
PLANS = np.array([[float(i in some) for i in range(5)] for some in itertools.combinations(range(5), 2)])
ROWS = np.array([[1.0, 1, 0], [0, 1, 1], [1, 0, -1], [1, 1, 1]])
BEST = sp.BetGapE(DELTA)


class OwnVariance(SubGaussian):
    """A control: the variance that replicates show is taken as known."""

    replicates = (2, 2)  # few enough for their variance to be often too small

    def log_factors(self, gap, variance, sizes):
        return super().log_factors(*_moments(gap), sizes)

    def log_mixture(self, gap, variance, centre, prior_variance):
        return super().log_mixture(*_moments(gap), centre, prior_variance)


def _moments(gap):
    return gap.mean(axis=1), np.maximum(gap.var(axis=1, ddof=1), 1e-12) / gap.shape[1]


# policy, problem, means, budget, and a factor in place of the right one
CASES: dict[str, tuple[Any, ...]] = {
    "two arms": (BEST, largest(np.eye(2)), [1e-9, 0], 400),
    "sets of arms": (BEST, largest(PLANS), [0.5, 1e-9, 0, 0, -0.5], 400),
    "bounded variance": (BEST, largest(np.eye(2), noise_kind="bounded variance"), [1e-9, 0], 400),
    "unknown noise": (BEST, sp.Problem(np.eye(3), noise=None, goal="largest"), [1e-9, 0, 0], 400),
    "mixed readings": (BEST, largest(np.eye(3), measure=ROWS), [1e-9, 0, 0], 300),
    "mixed readings, unknown noise": (
        BEST,
        sp.Problem(np.eye(3), measure=ROWS, noise=None, goal="largest"),
        [1e-9, 0, 0],
        300,
    ),
    "within epsilon": (sp.BetGapE(DELTA, 0.3), largest(np.eye(3)), [0.3001, 0, 0], 300),
    "within epsilon, unknown noise": (
        sp.BetGapE(DELTA, 0.3),
        sp.Problem(np.eye(3), noise=None, goal="largest"),
        [0.3001, 0, 0],
        300,
    ),
    "keep or replace": (Challenge(0, DELTA), largest(PLANS), [0.0] * 5, 300),
}
CONTROLS = {
    "bet sizes chosen after the batch": (*CASES["two arms"], PeekingFactor),
    "variance of replicates taken as known": (*CASES["unknown noise"], OwnVariance),
}


def errs_too_often(policy, problem, means, budget, factor=None):
    """Whether runs give a wrong answer within their budget more often than delta."""
    truth, values = arm_probes(problem).rows @ np.asarray(means), problem.plans @ np.asarray(means)

    def is_wrong(seed):
        run = policy.start(problem)
        if factor is not None:
            run._factor = factor()
        decision = measured(run, truth, np.random.default_rng([77, seed]), budget=budget)
        if not isinstance(decision, Stop):
            return False
        if isinstance(policy, Challenge):
            return decision.plan != 0  # of equal plans none may be named better
        return values[decision.plan] < values.max() - policy.epsilon

    return errs_more_often_than(DELTA, is_wrong, RUNS)


@pytest.mark.parametrize("name", CASES)
def test_errors_are_no_more_frequent_than_delta(name):
    assert not errs_too_often(*CASES[name])


@pytest.mark.parametrize("name", CONTROLS)
def test_controls_are_caught(name):
    assert errs_too_often(*CONTROLS[name])


@pytest.mark.parametrize(
    "name", ["coin tosses", "very unequal scales", "leads that change often", "epsilon and many leads"]
)
def test_hard_families_keep_delta(name):
    """`benchmarks/soundness.py` has all of them with 2,000 runs and more."""
    wrong, _ = count_errors(FAMILIES[name], sp.BetGapE, 40)
    assert not is_refuted(wrong, 40, FAMILIES[name].delta)


def test_bets_chosen_after_the_batch_are_caught_on_hard_families():
    family = FAMILIES["two arms, gap .02, delta .05"]
    wrong, _ = count_errors(family, Peeking, 40)
    assert is_refuted(wrong, 40, family.delta)
