"""Measurements within bounds: the noise scale for free, and no value outside them."""

import json

import numpy as np
import pytest

import surepick as sp
from common import answers_wrongly, errs_more_often_than, refuses
from surepick.errors import ParameterError, SessionError
from surepick.policies import Uniform
from surepick.sessions import codec
from surepick.sessions.session import Session
from surepick.simulation import Bernoulli, Gaussian, Replay, UniformNoise

TWO = [[1, 0], [0, 1]]


def test_bounds_survive_the_codec_and_change_the_fingerprint():
    bounded = sp.Problem(TWO, low=[0, 0], high=[1, 0.3], goal="largest")
    again = codec.problem_from_json(json.loads(codec.dumps(codec.problem_to_json(bounded))))
    assert again.bounds.tolist() == bounded.bounds.tolist()
    assert again.noise_scale.tolist() == bounded.noise_scale.tolist()
    prints = {
        codec.fingerprint(codec.problem_to_json(p))
        for p in (bounded, sp.Problem(TWO, noise=[0.5, 0.15], goal="largest"))
    }
    assert len(prints) == 2


def session(**options):
    problem = sp.Problem(TWO, arms=["old", "new"], **{"low": 0, "high": 1, **options}, goal="largest")
    return Session.create("memory://", "mine", problem, policy=Uniform(delta=0.1))


def test_a_session_refuses_values_outside_and_records_nothing():
    mine = session()
    token = mine.ask()[0].token
    for tell in (
        lambda: mine.tell(token, 1.2),
        lambda: mine.tell(token, [0.5, -0.1]),
        lambda: mine.tell("old", 7.0),
    ):
        with refuses("value", SessionError):
            tell()
    assert list(mine.measurements()) == []
    mine.tell(token, 1.0)  # the bounds themselves are fine
    mine.tell(mine.ask()[0], 1.0 + 1e-15)  # as is rounding


def test_simulations_refuse_environments_that_may_leave_the_bounds():
    problem = sp.Problem(TWO, low=0, high=1, goal="largest")
    for inside in (Bernoulli([0.2, 0.9]), UniformNoise([0.2, 0.9], 0.1), Replay([[0, 0.4], [0.9]])):
        assert sp.simulate(problem, inside, policy=sp.BetGapE()).plan == 1
    for other in (Gaussian([0.2, 0.9], 0.01), UniformNoise([0.2, 0.95], 0.1), Replay([[0, 1.4], [0.9]])):
        with refuses("environment", ParameterError):
            sp.simulate(problem, other, policy=Uniform())


class Silent:
    """An environment that does not say where its measurements lie."""

    means = np.array([0.2, 0.9])

    def __init__(self, worst):
        self.worst = worst

    def measure(self, counts, rng):
        return counts * np.array([0.2, self.worst])


def test_simulations_refuse_a_value_outside_the_bounds_when_it_comes():
    problem = sp.Problem(TWO, low=0, high=1, goal="largest")
    assert sp.simulate(problem, Silent(0.9), policy=Uniform()).plan == 1
    with refuses("environment", ParameterError):
        sp.simulate(problem, Silent(1.3), policy=Uniform())


@pytest.mark.parametrize(("given", "is_caught"), [({"low": 0, "high": 1}, False), ({"noise": 0.05}, True)])
def test_the_answer_holds_for_bounded_measurements_and_a_scale_that_is_too_small_is_caught(given, is_caught):
    """Coins with close means; the control claims a tenth of the width that they have."""
    problem = sp.Problem(TWO, goal="largest", **given)
    truth = Bernoulli([0.55, 0.45])
    is_wrong = answers_wrongly(problem, truth, Uniform(delta=0.1), allow_noisier=True)
    assert errs_more_often_than(0.1, is_wrong, 400) == is_caught
