"""Errors name the field that they are about; no reader has to search their sentence for it."""

import pickle

import numpy as np
import pytest

import surepick as sp
from common import largest, refuses
from surepick.errors import ParameterError
from surepick.policies import parse_policy
from surepick.simulation import Gaussian


@pytest.mark.parametrize(
    ("field", "text", "settings"),
    [
        ("delta", "CombGapE", {"delta": 2.0}),
        ("epsilon", "BetGapE", {"epsilon": -1.0}),
        ("epsilon", "RAGE", {"epsilon": 0.5}),
    ],
)
def test_a_setting_that_is_refused_is_named(field, text, settings):
    with refuses(field, ParameterError):
        parse_policy(text, **settings)


@pytest.mark.parametrize(
    ("field", "make"),
    [
        ("noise_kind", lambda: largest(np.eye(2), noise_kind="loud")),
        ("b_ub", lambda: sp.Polytope(A_ub=[[1, 1]], goal="largest")),
        ("radius", lambda: sp.CombGapE(radius="wide")),
        ("scale", lambda: Gaussian([1, 2], -1)),
    ],
)
def test_an_argument_that_is_refused_is_named(field, make):
    with refuses(field):
        make()


def test_an_error_keeps_its_field_on_the_way_to_another_process():
    error = pickle.loads(pickle.dumps(ParameterError("too large", field="delta")))
    assert (str(error), error.field) == ("too large", "delta")


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({"minimize": True}, "goal"),
        ({"direction": "minimize"}, "goal"),
        ({"noise_scale": 1}, "noise"),
        ({"sigma": 1}, "noise"),
        ({"bounds": (0, 1)}, "low"),
        ({"arm_names": ["a", "b"]}, "arms"),
        ({"nois": 1}, "noise"),
    ],
)
def test_a_foreign_word_is_answered_with_ours(given, word):
    for build in (
        lambda: sp.Problem(["a", "b"], goal="largest", **given),
        lambda: sp.Polytope(A_ub=[[1, 1]], b_ub=[1], goal="largest", **given),
    ):
        with pytest.raises(TypeError, match=rf"(use|mean) '?{word}"):
            build()


def test_a_goal_is_required_and_one_of_two():
    with pytest.raises(TypeError, match="goal"):
        sp.Problem(["a", "b"])
    with refuses("goal"):
        sp.Problem(["a", "b"], goal="best")
