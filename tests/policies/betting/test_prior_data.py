"""Guesses and histories as prior data: they save measurements, and make no answer wrong, however wrong."""

import numpy as np
import pytest

import surepick as sp
from common import errs_more_often_than, largest, measured, refuses
from surepick.core.policy import start
from surepick.policies import Challenge, Pick
from surepick.policies.betting.batch_run import BatchRun
from surepick.policies.betting.bet_gap_e import question_for
from surepick.policies.betting.challenge import KeepOrReplace
from surepick.policies.oracles.oracle_best import OracleBest
from surepick.policy import Stop
from surepick.problems import PriorData, knapsack_instance
from surepick.simulation import Gaussian

TWO = largest(np.eye(2))
THREE = largest(np.eye(3))
PROBES = largest([[1, 1, 0], [0, 1, 1]], measure="plan arms")
WRONG = PriorData(np.array([20.0, 20.0]), np.array([0.0, 3.0]))  # says loudly that the worse arm is better


class BettingOnIt(BatchRun):
    """A control: prior data settle bets, their measurements stand among those of every batch."""

    def _settle(self, batch, averages):
        sums = batch.uses * averages + 20 * np.array([0.0, 3.0])
        batch.uses = batch.uses + 20
        super()._settle(batch, sums / batch.uses)
        batch.uses = batch.uses - 20


ASKED = sp.OracleProblem(lambda weights: np.eye(2)[np.argmax(weights)], 2, noise=1, goal="largest")


def best(kind):
    return kind(TWO, sp.BetGapE(), question_for(TWO, 0.2, 0.0))


def kept(kind):
    return kind(TWO, sp.BetGapE(), KeepOrReplace(TWO, 0.2, 0.1, 0))


def found(kind):
    return kind(ASKED, sp.BetGapE(), OracleBest(ASKED, 0.2))


@pytest.mark.parametrize(("kind", "runs"), [(BatchRun, 20), (BettingOnIt, 60)])
@pytest.mark.parametrize("begin", [best, found, kept])
def test_a_wrong_past_makes_no_answer_wrong_and_one_that_wins_bets_is_caught(begin, kind, runs):
    def is_wrong(seed):
        run = begin(kind)
        run.remember(WRONG)
        decision = measured(run, [0.3, 0.0], np.random.default_rng(seed), 200)
        return decision in (Stop(1), Stop((0.0, 1.0)))  # the worse of the two arms

    assert errs_more_often_than(0.2, is_wrong, runs) == (kind is BettingOnIt)


@pytest.mark.parametrize("policy", [Challenge(1, epsilon=0.3), sp.BetGapE(epsilon=0.2)], ids=str)
def test_other_policies_begin_with_it_too_and_go_on_from_their_state(policy):
    problem, means = largest(np.eye(4)), np.array([0.5, 0.1, 0.0, 0.0])
    prior = PriorData.from_guess(problem, means, spread=0.5)
    run, again = (start(policy, problem, prior) for _ in range(2))
    assert run.decide().counts.any()
    assert run.standing().leader is not None  # nothing has to be measured first
    measured(run, means, np.random.default_rng(1), 6)
    again.restore(run.state())
    assert again.decide().counts.tolist() == run.decide().counts.tolist()
    assert again.standing() == run.standing()
    half = start(policy, problem, PriorData.from_guess(problem, means, spread=[0.5, 0.5, np.inf, np.inf]))
    assert half.decide().counts.tolist() == [0, 0, 1, 1]


def test_a_guess_worth_one_measurement_saves_measurements_on_knapsacks():
    with_it, without = [], []
    for seed in range(40):
        case = knapsack_instance(7, 6_000_000 + seed)
        problem, truth = case.problem, Gaussian(case.means)
        guess = case.means + np.random.default_rng(seed).standard_normal(problem.n_arms)
        prior = PriorData.from_guess(problem, guess, spread=1.0)
        how = {"seed": seed, "budget": 20_000}
        without.append(sp.simulate(problem, truth, policy=sp.BetGapE(), **how).n_measured)
        with_it.append(sp.simulate(problem, truth, policy=sp.BetGapE(), **how, prior=prior).n_measured)
    assert np.median(np.log(with_it) - np.log(without)) < -0.1


def test_a_past_worth_nothing_changes_nothing():
    problem, truth = largest(np.eye(4)), Gaussian([0.5, 0.3, 0.2, 0.0])
    nothing = PriorData.from_guess(problem, [1.0, 2.0, 3.0, 4.0], spread=np.inf)
    for policy in (sp.BetGapE(), Pick(), Challenge(1)):
        bare = sp.simulate(problem, truth, policy=policy, seed=3, budget=500)
        with_it = sp.simulate(problem, truth, policy=policy, seed=3, budget=500, prior=nothing)
        assert bare.counts.tolist() == with_it.counts.tolist()


def test_a_guess_counts_by_its_spread_and_a_history_by_its_counts_up_to_a_limit():
    problem = sp.Problem(np.eye(3), noise=[1.0, 2.0, 4.0], arms=["a", "b", "c"], goal="largest")
    assert PriorData.from_guess(problem, [1, 2, 3], 2.0).worth.tolist() == [0.25, 1.0, 4.0]
    assert PriorData.from_guess(problem, [1, 2, 3], 0.01).worth.tolist() == [20.0] * 3
    by_name = PriorData.from_guess(problem, {"c": 3, "b": 2, "a": 1}, {"a": 1.0, "b": 2.0, "c": 4.0})
    assert (by_name.means.tolist(), by_name.worth.tolist()) == ([1, 2, 3], [1, 1, 1])
    assert PriorData.from_history(problem, [0, 7, 900], [0, 1, 2]).worth.tolist() == [0, 7, 20]
    assert PriorData.from_json(by_name.to_json()) == by_name


@pytest.mark.parametrize(
    "make",
    [
        lambda p: PriorData.from_guess(p, [1, 2], -1.0),
        lambda p: PriorData.from_guess(p, [1, 2], [1, 2, 3]),
        lambda p: PriorData.from_guess(p, [1, 2], "wide"),
        lambda p: PriorData.from_guess(p, [1, 1e30], 1.0),
        lambda p: PriorData.from_history(p, [-1, 2], [1, 2]),
        lambda p: PriorData.from_guess(p.with_noise(None), [1, 2], 1.0),
        lambda p: PriorData.from_guess(PROBES, [1.0, 2.0, 3.0], 1.0),
        lambda p: sp.simulate(p, Gaussian([1, 0]), policy=sp.CombGapE(), prior=WRONG),
        lambda p: sp.simulate(THREE, Gaussian([1, 0, 0]), policy=sp.BetGapE(), prior=WRONG),
    ],
)
def test_what_is_no_past_is_refused_in_words(make):
    with refuses("prior"):
        make(TWO)
