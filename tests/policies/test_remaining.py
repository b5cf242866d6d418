"""The set that is said to hold the best plan holds it, at all times together; a cheat is caught."""

import itertools
from functools import partial

import numpy as np
import pytest

import surepick as sp
from common import errs_more_often_than, largest
from surepick.core.run import Stop
from surepick.policies import CLUCB, RAGE, GenTSExplore, LinGapE
from surepick.simulation import Gaussian, State

DELTA, RUNS = 0.2, 60
MEANS = np.array([0.25, 0.2, 0.2, 0.0])
POLICIES = [
    sp.BetGapE(delta=DELTA),
    sp.CombGapE(delta=DELTA),
    sp.CombGapE(delta=DELTA, radius="kaufmann-koolen"),
    CLUCB(delta=DELTA),
    LinGapE(delta=DELTA, norm_bound=2.0),
    RAGE(delta=DELTA, variant="authors"),
]


def is_ever_lost(policy, scale, seed):
    """Whether at any round no remaining plan is within epsilon of the best, with noise of this scale."""
    run, rng = policy.start(largest(np.eye(4))), np.random.default_rng(seed)
    for _ in range(40):
        decision = run.decide(rng)
        left = run.standing().remaining
        if left is not None and MEANS[list(left)].max() < MEANS.max() - policy.epsilon:
            return True
        if isinstance(decision, Stop):
            return False
        counts = decision.counts
        run.absorb(counts, counts * MEANS + scale * np.sqrt(counts) * rng.standard_normal(4))
    return False


@pytest.mark.parametrize(
    ("policy", "scale"),
    [
        (sp.CombGapE(delta=DELTA), 1.0),
        *itertools.product([sp.BetGapE(delta=DELTA), sp.BetGapE(delta=DELTA, epsilon=0.04)], [1.0, 4.0]),
    ],
    ids=str,
)
def test_a_plan_within_epsilon_always_remains_and_noise_beyond_the_stated_scale_is_caught(policy, scale):
    is_refuted = errs_more_often_than(DELTA, partial(is_ever_lost, policy, scale), RUNS)
    assert is_refuted == (scale > 1)


@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_an_answer_is_what_remains(policy):
    truth = Gaussian([1.0, 0.0, 0.0, 0.0], scale=0.1)
    outcome = sp.simulate(largest(np.eye(4)), truth, policy=policy)
    assert outcome.state is State.CONFIDENT
    assert outcome.remaining == outcome.good == (0,)


@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_a_budget_ends_with_the_plans_that_are_left(policy):
    means = [1.0, 0.999, -5.0, 0.0]
    outcome = sp.simulate(largest(np.eye(4)), Gaussian(means, scale=0.01), policy=policy, budget=3_000)
    assert outcome.plan is None
    assert {0, 1} <= set(outcome.remaining) <= {0, 1, 3}
    assert outcome.leader in outcome.remaining
    assert outcome.good == ()


def test_an_unsound_policy_names_no_set():
    truth = Gaussian([1.0, 0.0, 0.0, 0.0], scale=0.1)
    for policy in (sp.CombGapE(radius="published"), GenTSExplore()):
        assert sp.simulate(largest(np.eye(4)), truth, policy=policy).remaining is None
