"""What an answer promises: one sentence for a policy on a problem, the same one wherever it is shown."""

import html

import pytest

import session_tools as tools
import surepick as sp
from command_line import surepick
from policy_contract import WITHOUT_DELTA
from surepick.core.policy import GAUSSIAN, UNKNOWN_NOISE, Promise
from surepick.policies import POLICIES, Peace, parse_policy
from surepick.report import report
from surepick.sessions.session import Session

UNPROVED = {"GenTSExplore", "TSExplore", "PFWS", "CombGame"}
UNPROVED |= {policy.name for policy in WITHOUT_DELTA}


@pytest.fixture
def finished(tmp_path):
    """A finished session whose promise is not the policy's own sentence, and that promise."""
    problem = tools.problem(noise=None, low=-3, high=3)
    session = Session.create(f"sqlite:///{tmp_path}/s.db", "trips", problem, policy=sp.BetGapE())
    tools.run_to_end(session, tools.Tapes(scale=0.1))
    text = Promise.of(session.policy, session.problem).text
    assert text != session.policy.guarantee
    return text, session


def test_every_surface_prints_the_promise_for_this_problem(finished):
    text, session = finished
    url = session.store.place
    assert session.status != "running"
    assert session.outcome.guarantee == text
    assert session.certificate().claim == text
    assumes = session.view().proved.assumes
    assert "-3 and 3" in assumes
    assert assumes in html.unescape(report(session))
    assert surepick("status", "--json", "--store", url).json["proved"]["assumes"] == assumes


@pytest.mark.parametrize("name", sorted(POLICIES))
def test_a_promise_gives_its_sentence_back_as_it_was(name):
    policy = parse_policy(name, **({"norm_bound": 1.0} if name == "LinGapE" else {}))
    promise = Promise.read(policy.guarantee)
    assert promise.text == policy.guarantee
    assert promise.proved is (name not in UNPROVED)
    assert promise.proved or promise.reason


def test_what_else_is_assumed_stays_when_the_noise_is_unknown():
    policy = Peace()
    unknown = Promise.of(policy, sp.Problem([[1, 0], [0, 1]], noise=None, goal="largest"))
    assert unknown.text == policy.guarantee.replace(GAUSSIAN, UNKNOWN_NOISE)
    assert unknown.text.endswith(", up to the Monte-Carlo error of the widths")


def test_bounds_are_no_gaussian_noise():
    policy = sp.CombGapE(radius="kaufmann-koolen")
    assert (
        Promise.of(policy, sp.Problem([[1, 0], [0, 1]], low=0, high=1, goal="largest")).text
        == policy.guarantee
    )
