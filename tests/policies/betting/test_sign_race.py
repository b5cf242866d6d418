"""SignRace: exact factors, error rates on drifting timings, and controls that must be caught."""

import itertools

import numpy as np
import pytest

import surepick as sp
from common import errs_more_often_than, refuses
from surepick.core.run import Measure, Stop
from surepick.errors import ParameterError
from surepick.policies import SignRace
from surepick.policies.betting.sign_race import SIZES, SignRaceRun

RUNS, ROUNDS = 150, 300
RACE = SignRace(0.2)


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


class Choosing(SignRaceRun):
    """A control: a bet is made after the round, if it would have won."""

    def absorb(self, counts, sums):
        before = self.wealth.copy()
        super().absorb(counts, sums)
        self.wealth = np.maximum(before, self.wealth)


@pytest.mark.parametrize(
    ("n", "kind", "in_rounds", "is_caught"),
    [
        (2, SignRaceRun, True, False),
        (4, SignRaceRun, True, False),
        (2, SignRaceRun, False, True),  # commands are measured one after the other
        (4, Choosing, True, True),
    ],
)
def test_of_equal_commands_on_a_drifting_machine_each_is_rarely_missed(n, kind, in_rounds, is_caught):
    def is_wrong(seed):
        times = timings(np.random.default_rng([47, seed]), [1.0] * n, in_rounds=in_rounds)
        return answer_of(kind(problem(n), RACE), times) not in (None, 0)

    assert errs_more_often_than(RACE.delta, is_wrong, RUNS) == is_caught


@pytest.mark.parametrize("kind", [SignRaceRun, Choosing])
def test_within_a_margin_a_command_just_outside_is_named_with_probability_delta_at_most(kind):
    """The others are slower than the winner by more than the margin in half of the rounds, else faster."""

    def is_wrong(seed):
        rng = np.random.default_rng([48, seed])
        first = timings(rng, [1.0])
        others = first * np.where(rng.random((ROUNDS, 3)) < 0.5, 1.2, 0.9)
        run = kind(problem(4), SignRace(RACE.delta, margin=0.1))
        return answer_of(run, np.hstack([others, first])) not in (None, 3)

    assert errs_more_often_than(RACE.delta, is_wrong, RUNS) == (kind is Choosing)


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
