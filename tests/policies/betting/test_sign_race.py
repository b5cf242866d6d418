"""SignRace: exact factors, error rates on drifting timings, and controls that must be caught."""

import itertools
from functools import partial

import numpy as np
import pytest
from scipy.stats import binom

import hard_families
import surepick as sp
from common import refuses
from surepick.core.run import Measure, Stop
from surepick.errors import ParameterError
from surepick.policies import SignRace
from surepick.policies.betting.sign_race import SIZES, SignRaceRun

DELTA, RUNS, ROUNDS = 0.2, 150, 300
RACE = SignRace(DELTA)


def problem(n, goal="smallest"):
    return sp.Problem(np.eye(n), goal=goal)


def answer_of(run, times):
    """Return the answer on these times, (rounds, plans), or None."""
    for row in times:
        decision = run.decide(None)
        if isinstance(decision, Stop):
            return decision.plan
        run.absorb(decision.counts, np.where(decision.counts > 0, row, 0.0))
    decision = run.decide(None)
    return decision.plan if isinstance(decision, Stop) else None


def machine(rng, n):
    """Return how slow a machine is at n moments: waves, bursts and a trend."""
    at = np.arange(n)
    wave = 1 + 0.3 * np.sin(at / 40 + rng.uniform(0, 6))
    burst = np.where((at // 60) % 3 == rng.integers(3), 1.5, 1.0)
    return wave * burst * (1 + at / n)


def timings(rng, factors, *, in_rounds=True):
    """Return skewed times of commands on a drifting machine, by rounds or each command 50 times in a row."""
    n, k = ROUNDS, len(factors)
    slow = machine(rng, n * k)
    slow = (
        rng.permuted(slow.reshape(n, k), axis=1)
        if in_rounds
        else slow.reshape(-1, k, 50).swapaxes(1, 2).reshape(n, k)
    )
    return np.array(factors) * slow * (1 + rng.gamma(0.5, 0.1, (n, k)))


def wrong_answers(factors, *, winner, start=RACE.start, **order):
    """Return in how many runs another plan than the winner is named."""
    found = 0
    for seed in range(RUNS):
        rng = np.random.default_rng([47, seed])
        answer = answer_of(start(problem(len(factors))), timings(rng, factors, **order))
        found += answer is not None and answer != winner
    return found


is_refuted = partial(hard_families.is_refuted, runs=RUNS, delta=DELTA)


def is_plausible(n_wrong):
    return binom.sf(n_wrong - 1, RUNS, DELTA) > 1e-3


class Choosing(SignRaceRun):
    """A control: a bet is made after the round, if it would have won."""

    def absorb(self, counts, sums):
        before = self.wealth.copy()
        super().absorb(counts, sums)
        self.wealth = np.maximum(before, self.wealth)


@pytest.mark.parametrize("n", [2, 4])
def test_of_equal_commands_on_a_drifting_machine_each_is_missed_with_probability_delta_at_most(n):
    assert is_plausible(wrong_answers([1.0] * n, winner=0))


def test_commands_measured_one_after_the_other_are_caught():
    assert is_refuted(wrong_answers([1.0] * 2, winner=0, in_rounds=False))


def test_bets_chosen_after_the_round_are_caught():
    assert is_refuted(wrong_answers([1.0] * 4, winner=0, start=lambda given: Choosing(given, RACE)))


@pytest.mark.parametrize(("kind", "fits"), [(SignRaceRun, is_plausible), (Choosing, is_refuted)])
def test_within_a_margin_a_command_just_outside_is_named_with_probability_delta_at_most(kind, fits):
    # the others are slower than the winner by more than the margin in half of the rounds, else faster
    found = 0
    for seed in range(RUNS):
        rng = np.random.default_rng([48, seed])
        first = timings(rng, [1.0])
        others = first * np.where(rng.random((ROUNDS, 3)) < 0.5, 1.2, 0.9)
        answer = answer_of(kind(problem(4), SignRace(DELTA, margin=0.1)), np.hstack([others, first]))
        found += answer is not None and answer != 3
    assert fits(found)


@pytest.mark.parametrize("goal", ["smallest", "largest"])
def test_ties_end_within_a_margin(goal):
    rng = np.random.default_rng(1)
    times = 10 + 0.1 * rng.standard_normal((ROUNDS, 3))
    assert answer_of(SignRace(margin=0.05).start(problem(3, goal)), times) is not None
    assert answer_of(SignRace().start(problem(3, goal)), times[:50]) is None


def test_the_wealth_is_a_fair_game_to_the_last_bit():
    wealth = []
    for signs in itertools.product([-1.0, 1.0], repeat=10):
        run = SignRace(1e-9).start(problem(2))
        for sign in signs:
            run.absorb(np.ones(2, dtype=np.int64), np.array([1.0 + sign, 1.0]))
        wealth.append(np.exp(run.wealth[0]).sum(axis=1))
    assert np.mean(wealth, axis=0) == pytest.approx([1.0, 1.0], rel=1e-12)


def test_it_ends_as_soon_as_the_mean_of_the_products_has_reached_one_over_delta():
    n = next(n for n in itertools.count() if np.mean((1 + SIZES) ** n) >= 1 / 0.05)
    run, row = SignRace(0.05).start(problem(2)), np.array([1.0, 2.0])
    assert answer_of(run, [row] * (n - 1)) is None
    assert answer_of(run, [row]) == 0


def test_a_plan_that_is_ruled_out_is_measured_no_more_and_a_lost_value_sits_out_its_round():
    run = SignRace().start(problem(3))
    for _ in range(12):
        assert isinstance(run.decide(None), Measure)
        run.absorb(np.array([1, 1, 1]), np.array([1.0, 1.0, 2.0]))
    assert run.decide(None).counts.tolist() == [1, 1, 0]
    before = run.wealth.copy()
    run.absorb(np.array([0, 1, 0]), np.array([0.0, 1.0, 0.0]))
    assert (run.wealth == before).all()


def test_plans_of_several_arms_are_compared_by_their_totals_in_a_round():
    given = sp.Problem([[1, 1, 0], [1, 0, 1]], goal="largest")
    run = SignRace().start(given)
    assert run.decide(None).counts.tolist() == [0, 1, 1], "the first arm is the same in both"
    assert answer_of(run, [[0.0, 1.0, 3.0]] * 20) == 1


def test_a_margin_is_a_share():
    with refuses("margin", ParameterError):
        SignRace(margin=2.0)
