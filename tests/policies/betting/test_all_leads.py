"""BetGapE with epsilon and few plans: every plan is a possible lead."""

import math

import numpy as np
import pytest

import surepick as sp
from surepick.core.run import Stop
from surepick.policies.betting.all_leads import MOST_PLANS, AllLeadsRun
from surepick.policies.betting.bet_gap_e import BetRun

EPSILON, RUNS, CAP = 0.5, 400, 20.0


class WithoutCommonCash(AllLeadsRun):
    """A control: each piece begins with all the cash, as if the others had taken none."""

    def _put_stakes(self):
        first = self._cash == 0.0
        super()._put_stakes()
        if first:
            self._purse += math.log(len(self._plans) - 1)


class Peeking(AllLeadsRun):
    """A control: what a block shows is read half an error luckier than it was."""

    def _settle(self, bets, seen):
        lucky = seen.sums + 0.5 * np.sqrt(seen.counts) * np.where(np.arange(len(seen.sums)) == 0, -1, 1)
        super()._settle(bets, type(seen)(seen.counts, lucky))


def excess(kind):
    """How far the mean wealth against the best plan is above 1, in errors.

    All other plans are worse by just more than epsilon, where every bet is fair. The wealth is
    cash and the pieces of all these plans, cut off at `CAP`, which can only lower its mean.
    """
    means, found = np.array([EPSILON + 1e-9, 0, 0, 0, 0, 0]), []
    problem = sp.Problem(np.eye(6), noise_scale=1)
    for seed in range(RUNS):
        run, rng = kind(problem, sp.BetGapE(delta=1e-9, epsilon=EPSILON)), np.random.default_rng(seed)
        for _ in range(8):
            counts = run.decide().counts
            run.absorb(counts, counts * means + np.sqrt(counts) * rng.standard_normal(6))
        pieces = run._purse[1:, 0].max() + np.log(np.exp(run._purse[1:, 0] - run._purse[1:, 0].max()).sum())
        found.append(min(np.exp(np.logaddexp(run._cash, pieces)), CAP))
    return (np.mean(found) - 1) / (np.std(found) / math.sqrt(RUNS))


def test_the_wealth_against_the_best_plan_does_not_grow():
    assert excess(AllLeadsRun) < 4


@pytest.mark.parametrize("control", [WithoutCommonCash, Peeking])
def test_a_wealth_that_is_not_fair_is_caught(control):
    assert excess(control) > 4


@pytest.mark.parametrize(
    ("means", "textbook"),
    [([0.3, 0.0], 81), ([0.3] + [0.0] * 9, 848), ([-0.3 * i for i in range(10)], 382)],
    ids=["two", "slippage", "monotone"],
)
def test_it_needs_fewer_measurements_than_kn_prints(means, textbook):
    """Kim and Nelson's KN (2001) with a zone of .3, ten thousand runs of theirs against these few."""
    problem, policy = sp.Problem(np.eye(len(means)), noise_scale=1), sp.BetGapE(epsilon=0.3)
    outcomes = [sp.simulate(problem, policy, sp.Gaussian(means), seed=50 + s) for s in range(60)]
    assert np.mean([outcome.n_measurements for outcome in outcomes]) < textbook
    assert sum(means[outcome.plan] < max(means) - 0.3 - 1e-9 for outcome in outcomes) <= 7


def test_two_plans_divide_nothing():
    """The whole stake against one plan is on the other as the lead."""
    run = sp.BetGapE(epsilon=0.3).start(sp.Problem(np.eye(2), noise_scale=1))
    run.decide()
    staked = np.exp(run._purse).sum(axis=2)
    assert staked == pytest.approx(np.array([[0, 0.8], [0.8, 0]]))


def test_many_plans_and_no_epsilon_go_another_way():
    few, many = np.eye(MOST_PLANS), np.eye(MOST_PLANS + 1)
    assert isinstance(sp.BetGapE(epsilon=0.1).start(sp.Problem(few, noise_scale=1)), AllLeadsRun)
    assert isinstance(sp.BetGapE(epsilon=0.1).start(sp.Problem(many, noise_scale=1)), BetRun)
    assert isinstance(sp.BetGapE().start(sp.Problem(few, noise_scale=1)), BetRun)


def test_good_plans_are_within_epsilon_and_the_answer_is_one():
    problem = sp.Problem(np.eye(4), noise_scale=1)
    for seed in range(20):
        outcome = sp.simulate(problem, sp.BetGapE(epsilon=0.5), sp.Gaussian([1.0, 0.9, 0.2, 0.0]), seed=seed)
        assert outcome.plan in outcome.good
        assert set(outcome.good) <= {0, 1}


def test_prices_move_measurements_to_cheap_arms():
    plans, costs = np.eye(3), [1.0, 1.0, 50.0]
    problem = sp.Problem(plans, costs=costs, noise_scale=1)
    counts = sum(
        sp.simulate(problem, sp.BetGapE(epsilon=0.3), sp.Gaussian([0.3, 0.0, 0.0]), seed=s).counts
        for s in range(10)
    )
    assert counts[2] < counts[1]


def test_the_state_is_all_there_is():
    problem, policy = sp.Problem(np.eye(5), noise_scale=1), sp.BetGapE(epsilon=0.4, max_batch=3)
    run, rng = policy.start(problem), np.random.default_rng(0)
    means = np.array([0.4, 0.2, 0.0, 0.0, 0.0])
    for _ in range(200):
        other = policy.start(problem)
        other.restore(run.state())
        decision, same = run.decide(), other.decide()
        if isinstance(decision, Stop):
            assert same == decision
            break
        assert same.counts.tolist() == decision.counts.tolist()
        counts = decision.counts
        sums = counts * means + np.sqrt(counts) * rng.standard_normal(5)
        run.absorb(counts, sums)
    else:
        pytest.fail("the run did not stop")


def test_a_better_plan_that_arrives_is_found_and_begins_with_the_cash_alone():
    run, rng = (
        sp.BetGapE(epsilon=0.3).start(sp.Problem(np.eye(3)[:2], noise_scale=1)),
        np.random.default_rng(1),
    )
    means = np.array([0.3, 0.0, 1.5])
    for n_round in range(200):
        if n_round == 5:
            run.grow(sp.Problem(np.eye(3), noise_scale=1))
            assert run._now[:, 2] == pytest.approx(run._cash)
        decision = run.decide()
        if isinstance(decision, Stop):
            break
        run.absorb(
            decision.counts, decision.counts * means + np.sqrt(decision.counts) * rng.standard_normal(3)
        )
    assert decision == Stop(2)
