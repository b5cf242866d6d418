"""Forecasts are judged by what comes true; choices by what they save."""

import math

import numpy as np
import pytest

import surepick as sp
from common import largest, refuses
from surepick.errors import ParameterError
from surepick.problems import PriorData
from surepick.simulation import Gaussian
from surepick.simulation.forecast import Rehearsals

PLANS = [[2, 0, 1, 0], [0, 2, 0, 1], [1, 1, 1, 0], [0, 0, 2, 2]]
GUESS, SPREAD = [1.0, 0.7, 0.4, 0.3], 0.2


def problem(**settings):
    return sp.Problem(PLANS, goal="largest", **{"noise": 1.0, **settings})


def advise(question, spread, *, guess=GUESS, epsilon=0.0, prior=None, **settings):
    stage = Rehearsals.around(question, guess, spread, **settings)
    return stage.advise(question, sp.BetGapE(epsilon=epsilon), prior)


def test_the_forecast_comes_true_in_other_worlds():
    found, rng, taken = sp.forecast(problem(), GUESS, SPREAD), np.random.default_rng(99), []
    for seed in range(14):
        truth = Gaussian(np.array(GUESS) + SPREAD * rng.uniform(-1, 1, 4))
        taken.append(sp.simulate(problem(), truth, policy=sp.BetGapE(), seed=1000 + seed).n_measured)
    assert found.low <= np.median(taken) <= found.high
    assert np.median(taken) == pytest.approx(found.median, rel=0.7)
    assert sum(found.shares.values()) == pytest.approx(1.0)
    again = sp.forecast(problem(), GUESS, SPREAD)
    assert again.measurements.tolist() == found.measurements.tolist()


def test_a_budget_cuts_rehearsals_off():
    found = sp.forecast(problem(), GUESS, SPREAD, budget=30)
    assert 0 <= found.confident < 1
    assert found.high == math.inf
    tied = sp.forecast(largest(np.eye(2)), [1.0, 1.0], budget=50)
    assert (tied.median, tied.confident) == (math.inf, 0.0)


def test_an_epsilon_and_a_stated_noise_save_measurements():
    found, choices = advise(problem(noise=None), 0.1, noise=1.0, rehearsals=6, budget=50_000)
    by = {choice.setting: choice for choice in choices}
    assert (by["noise"].value, math.isfinite(by["noise"].median)) == (1.0, True)
    assert by["epsilon"].value > 0
    assert by["epsilon"].median <= 0.8 * found.median
    _, near = advise(problem(), 0.1, epsilon=0.5, rehearsals=4)
    assert (near[0].setting, near[0].value) == ("epsilon", 0.0)


def test_what_a_guess_saves_is_said_where_one_guides():
    prior = PriorData.from_guess(problem(), GUESS, spread=SPREAD)
    _, choices = advise(problem(), SPREAD, rehearsals=4, prior=prior)
    assert [choice.value for choice in choices if choice.setting == "guess"] == [None]


@pytest.mark.parametrize(
    "other",
    [
        sp.Polytope(A_ub=[[1, 2], [3, 1]], b_ub=[8, 9], noise=1, goal="largest"),
        sp.problems.top_k(["a", "b"], 1, goal="largest", list_plans=False, noise=1),
        largest(np.eye(2), measure="plans"),
    ],
    ids=["polytope", "oracle", "probes"],
)
def test_every_kind_of_problem_is_rehearsed(other):
    found, _ = advise(other, 0.2, guess=[3.0, 1.0], rehearsals=2, epsilon=0.2)
    assert 0 < found.low <= found.median <= found.high


@pytest.mark.parametrize(
    ("wrong", "field"),
    [({"rehearsals": 0}, "rehearsals"), ({"budget": 0}, "budget"), ({"delta": 2.0}, "delta")],
)
def test_nonsense_and_noise_to_draw_with_are_asked_for(wrong, field):
    with refuses(field, ParameterError):
        sp.forecast(problem(), GUESS, **wrong)
    with refuses("noise", ParameterError):
        sp.forecast(problem(noise=None), GUESS)


def test_what_is_known_holds_in_every_rehearsed_world():
    problem = largest(np.eye(3), known={"arm 0": 2.0, "arm 1": (0.0, 1.0)})
    stage = Rehearsals.around(problem, [2.5, 1.5, 0.0], 2.0)
    assert {means[0] for means in stage.worlds} == {2.0}
    assert all(0 <= means[1] <= 1 for means in stage.worlds)
    assert stage.forecast(problem, sp.BetGapE()).confident > 0
