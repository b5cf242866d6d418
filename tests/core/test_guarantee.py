"""What an answer guarantees: one sentence for a policy on a problem, the same one wherever it is shown."""

import html

import pytest

import session_tools as tools
import surepick as sp
from command_line import surepick
from policy_contract import WITHOUT_DELTA
from surepick.core.guarantee import GAUSSIAN, UNKNOWN_NOISE
from surepick.policies import POLICIES, Peace, parse_policy
from surepick.report import report
from surepick.sessions.session import Session

UNPROVED = {"GenTSExplore", "TSExplore", "PFWS", "CombGame"}
UNPROVED |= {policy.name for policy in WITHOUT_DELTA}


def test_every_surface_prints_the_guarantee_for_this_problem(tmp_path):
    url = f"sqlite:///{tmp_path}/s.db"
    problem = tools.problem(noise=None, low=-3, high=3)
    session = Session.create(url, "trips", problem, policy=sp.BetGapE())
    tools.run_to_end(session, tools.Tapes(scale=0.1))
    text = session.policy.guarantee_on(session.problem).text
    assert text != session.policy.guarantee.text
    assert session.outcome.guarantee == text
    assert session.certificate().claim == text
    assumes = session.view().proved.assumes
    assert "-3 and 3" in assumes
    assert assumes in html.unescape(report(session))
    assert surepick("status", "--json", "--store", url).json["proved"]["assumes"] == assumes


@pytest.mark.parametrize("name", sorted(POLICIES))
def test_a_policy_without_a_proof_says_what_is_missing(name):
    guarantee = parse_policy(name).guarantee
    assert guarantee.proved is (name not in UNPROVED)
    assert guarantee.text.startswith("none: ") is not guarantee.proved


def test_other_assumptions_stay_when_the_noise_is_unknown():
    policy = Peace()
    unknown = policy.guarantee_on(sp.Problem([[1, 0], [0, 1]], noise=None, goal="largest"))
    assert unknown.text == policy.guarantee.text.replace(GAUSSIAN, UNKNOWN_NOISE)
    assert unknown.text.endswith(", up to the Monte-Carlo error of the widths")


def test_bounds_are_no_gaussian_noise():
    policy = sp.CombGapE(radius="kaufmann-koolen")
    bounded = sp.Problem([[1, 0], [0, 1]], low=0, high=1, goal="largest")
    assert policy.guarantee_on(bounded) == policy.guarantee
