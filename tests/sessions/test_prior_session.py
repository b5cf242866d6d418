"""Prior data in a session: kept in its log, part of the question, decided and verified with; in files too."""

import json

import numpy as np
import pytest

import surepick as sp
from command_line import surepick
from common import largest
from session_tools import answer, gaussian
from surepick.errors import SessionError
from surepick.inputs.load import read_problem
from surepick.problems import PriorData

PROBLEM = largest(np.eye(2), arms=["road", "rail"], plan_names=["drive", "ride"])
PAST = PriorData.from_guess(PROBLEM, [0.0, 1.0], spread=1.0)
FILE = """
kind = "table"
goal = "largest"
plans = [[1, 0], [0, 1]]
arms = ["road", "rail"]
guess = [0.0, 1.0]
spread = 1.0
noise = 2.0
"""


def measured(session):
    """The same session, measured to its end."""
    return answer(session, gaussian({"road": 0.0, "rail": 1.5}), at_once=8)


def begun(**settings):
    return sp.Session.create("memory://", "trips", PROBLEM, policy=sp.BetGapE(), **settings)


def test_it_is_in_the_log_the_question_and_the_certificate_and_is_verified():
    bare, session = begun(), begun(prior=PAST)
    assert bare.state().given.fingerprint != session.state().given.fingerprint
    assert json.loads(next(iter(bare.events())).body)["prior"] is None
    assert session.state().standing().leader == 1  # before anything is measured
    certificate = measured(session).certificate()
    assert certificate.prior == {"road": 1.0, "rail": 1.0}
    assert session.verify().holds
    assert measured(bare).certificate().to_json().get("prior") is None


def test_open_refuses_another_past():
    session = begun(prior=PAST)
    other = PriorData.from_guess(PROBLEM, [0.0, 2.0], spread=1.0)
    same = sp.Session.open(session.store, "trips", PROBLEM, policy=sp.BetGapE(), prior=PAST)
    assert same.state().given.fingerprint == session.state().given.fingerprint
    with pytest.raises(SessionError):
        sp.Session.open(session.store, "trips", PROBLEM, policy=sp.BetGapE(), prior=other)


def test_a_file_with_a_spread_brings_its_guess_unless_told_otherwise(tmp_path):
    file = tmp_path / "trips.toml"
    file.write_text(FILE, encoding="utf-8")
    assert read_problem(file).prior.worth.tolist() == [4.0, 4.0]
    file.with_stem("bare").write_text(FILE.replace("spread = 1.0", ""), encoding="utf-8")
    assert read_problem(file.with_stem("bare")).prior is None  # a width that nobody stated is no knowledge
    store = f"sqlite:///{tmp_path}/trips.db"
    for options, prior in (([], PAST), (["--policy", "CombGapE"], None)):
        name = "-".join(options) or "plain"
        assert surepick("new", str(file), "-s", name, "--store", store, *options).code == 0
        setup = sp.Session.load(store, name).state().setup
        assert (setup.prior is None) == (prior is None)
