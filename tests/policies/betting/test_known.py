"""Known parts in BetGapE: they are never measured, count in every gap, and the guarantee holds."""

import numpy as np
import pytest

import surepick as sp
from common import errs_more_often_than, largest, measured
from surepick.core.run import Stop
from surepick.policies import Challenge
from surepick.policies.betting.batch_run import BatchRun
from surepick.simulation import Gaussian

PLANS = np.array([[1, 0, 1, 0, 1], [0, 1, 1, 1, 0], [1, 1, 0, 0, 2], [0, 0, 1, 1, 1], [1, 0, 1, 0, 3]], float)
MEANS = np.array([1.0, 1.6, 0.4, 0.9, 0.5])
NAMES = [f"arm {s}" for s in range(5)]


def problem(known=(), **more):
    return sp.Problem(
        PLANS, noise=1.0, known={NAMES[s]: MEANS[s] for s in known}, **{"goal": "largest", **more}
    )


def measurements(chosen, n=40, **more):
    policy = sp.BetGapE(0.1, **more)
    return [sp.simulate(chosen, Gaussian(MEANS), policy=policy, seed=seed) for seed in range(n)]


def is_mostly_right(outcomes):
    """Whether there are no more errors than a probability of .1 allows."""
    best = int(np.argmax(PLANS @ MEANS))
    return not errs_more_often_than(0.1, lambda k: outcomes[k].plan != best, len(outcomes))


@pytest.mark.parametrize("epsilon", [0.0, 0.05])
def test_known_arms_are_never_measured_and_save_measurements(epsilon):
    full, part = measurements(problem(), epsilon=epsilon), measurements(problem([1, 4]), epsilon=epsilon)
    assert not any(outcome.counts[[1, 4]].any() for outcome in part)
    assert is_mostly_right(part)
    assert np.mean([o.n_measured for o in part]) < 0.8 * np.mean([o.n_measured for o in full])


def test_bounds_on_means_save_measurements():
    box = {NAMES[s]: (MEANS[s] - 0.3, MEANS[s] + 0.3) for s in range(5)}
    wide, narrow = problem(), problem().with_settings(known=box)
    assert not narrow.plan_parts.may_be_best.all()
    saved = measurements(narrow)
    assert is_mostly_right(saved)
    assert np.mean([o.n_measured for o in saved]) < np.mean([o.n_measured for o in measurements(wide)])


class Forgetful(BatchRun):
    """A control: settles bets as if known arms were worth nothing."""

    def __init__(self, chosen, policy, question):
        super().__init__(chosen, policy, question)
        question.constants = 0.0 * question.constants


@pytest.mark.parametrize("policy", [sp.BetGapE(0.2), Challenge(1, 0.2)], ids=["best", "keep or replace"])
@pytest.mark.parametrize(("kind", "runs"), [(BatchRun, 150), (Forgetful, 40)])
def test_errors_at_a_near_tie_that_known_arms_make(policy, kind, runs):
    """0.3 + 0 against 0 + 0.31: without the known part the wrong plan is far ahead."""
    chosen = largest([[1, 0, 0], [0, 1, 1]], known={"arm 2": 0.31})

    def is_wrong(seed):
        run = kind(chosen, policy, policy.start(chosen)._question)
        return measured(run, [0.3, 0.0, 0.31], np.random.default_rng([8, seed]), 60) == Stop(0)

    assert errs_more_often_than(0.2, is_wrong, runs) == (kind is Forgetful)


def test_a_run_is_restored_and_plans_arrive():
    chosen = problem([1, 4])
    rng, run = np.random.default_rng(2), sp.BetGapE(0.1).start(chosen)
    measured(run, MEANS, rng, 1)
    longer = chosen.with_plan("more", [0, 2, 0, 0, 1])
    run.grow(longer)
    measured(run, MEANS, rng, 1)
    other = sp.BetGapE(0.1).start(longer)
    other.restore(run.state())
    assert np.array_equal(other.decide().counts, run.decide().counts)
    assert not run.counts[[1, 4]].any()


@pytest.mark.parametrize(("known", "answer"), [(1.0, 1), (-1.0, 0), (0.0, 0)])
def test_keep_or_replace_where_known_arms_decide(known, answer):
    """Plans 0 and 1 differ in a known arm alone, so that nothing is measured."""
    chosen = largest([[1, 0], [1, 1]], known={"arm 1": known})
    outcome = sp.simulate(chosen, Gaussian([0.0, known]), policy=Challenge(0, 0.1), seed=1)
    assert (outcome.plan, outcome.n_measured) == (answer, 0)


def test_keep_or_replace_within_known_means():
    plans = [[1, 0, 0, 1], [0, 1, 0, 1], [0, 0, 1, 0]]
    known = {"arm 3": 0.5, "arm 2": (-3.0, 3.0)}
    chosen = largest(plans, known=known)
    for means, answers in (([1.0, 0.0, 0.2, 0.5], {0}), ([0.0, 1.5, 2.9, 0.5], {1, 2})):
        for seed in range(5):
            policy = Challenge(0, 0.1, 0.1)
            outcome = sp.simulate(chosen, Gaussian(means), policy=policy, seed=seed)
            assert outcome.plan in answers
            assert outcome.counts[3] == 0


@pytest.mark.parametrize(("mean", "answer"), [(3.0, 0), (0.2, 2)])
def test_a_plan_that_is_surely_no_worse_than_the_incumbent_may_be_better(mean, answer):
    """Plan 1 is worth as much as the incumbent, plan 0 up to 5 more."""
    chosen = largest([[1, 1, 0], [1, 0, 0], [1, 0, 1]], known={"arm 1": (0.0, 5.0), "arm 2": 0.0})
    outcome = sp.simulate(chosen, Gaussian([1.0, mean, 0.0]), policy=Challenge(2, 0.1, 0.5), seed=1)
    assert outcome.plan == answer
