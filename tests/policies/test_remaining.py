"""The set that is said to hold the best plan holds it, at all times together; a cheat is caught."""

import numpy as np
import pytest

import surepick as sp
from common import largest
from hard_families import is_refuted
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


def ever_lost(policy, scale, seed, n_rounds=40, epsilon=0.0):
    """Whether at any round no remaining plan is within epsilon of the best, with noise of this scale."""
    run, rng = policy.start(largest(np.eye(4))), np.random.default_rng(seed)
    for _ in range(n_rounds):
        decision = run.decide(rng)
        left = run.standing().remaining
        if left is not None and MEANS[list(left)].max() < MEANS.max() - epsilon:
            return True
        if isinstance(decision, Stop):
            return False
        counts = decision.counts
        run.absorb(counts, counts * MEANS + scale * np.sqrt(counts) * rng.standard_normal(4))
    return False


@pytest.mark.parametrize("policy", [sp.BetGapE(delta=DELTA), sp.CombGapE(delta=DELTA)], ids=str)
def test_the_best_plan_is_among_those_that_remain_at_all_times(policy):
    assert not is_refuted(sum(ever_lost(policy, 1.0, seed) for seed in range(RUNS)), RUNS, DELTA)


def test_noise_beyond_the_stated_scale_is_caught_by_the_same_test():
    lost = sum(ever_lost(sp.BetGapE(delta=DELTA), 4.0, seed) for seed in range(RUNS))
    assert is_refuted(lost, RUNS, DELTA)


def test_with_epsilon_one_of_them_is_within_epsilon():
    policy = sp.BetGapE(delta=DELTA, epsilon=0.04)
    assert not is_refuted(sum(ever_lost(policy, 1.0, s, epsilon=0.04) for s in range(RUNS)), RUNS, DELTA)
    lost = sum(ever_lost(policy, 4.0, s, epsilon=0.04) for s in range(RUNS))
    assert is_refuted(lost, RUNS, DELTA)


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
