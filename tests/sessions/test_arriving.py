"""Plans that are added to a session: events of the log, decided, kept, verified and certified."""

import json
import math

import numpy as np
import pytest

import surepick as sp
from common import refuses
from session_tools import answer, gaussian, holds
from surepick.errors import ParameterError, SessionError, SurepickError
from surepick.problems import NewArm, PriorData
from surepick.simulation import State

ARMS = ["bus", "train", "walk", "bike"]
MINUTES = {"bus": 20.0, "train": 25.0, "walk": 6.0, "bike": 9.0}
PROBLEM = sp.Problem(
    {"by bus": "bus + walk", "by train": "train + walk"}, arms=ARMS, noise=2.0, goal="smallest"
)

SMALL = sp.Problem(
    {"by bus": "bus + walk", "by train": "train + walk"}, arms=ARMS[:3], noise=2.0, goal="smallest"
)


def begun(problem=PROBLEM, policy=None, **settings):
    return sp.Session.create("memory://", "trips", problem, policy=policy or sp.BetGapE(), **settings)


def measured(session, n=math.inf):
    """Told n measurements, or all that it wants."""
    return answer(session, gaussian(MINUTES, 2.0, session.state().n_values), n=n)


def test_a_plan_that_arrives_in_the_middle_of_a_round_can_win_and_is_verified():
    session = measured(begun(), 5)
    asked = [request.token for request in session.pending()]
    session.add_plan("by bike", "bike + walk")
    assert [request.token for request in session.pending()] == asked  # the open round stays as it was
    standing = session.state().standing()
    assert standing.risk == 1.0
    assert 2 in standing.remaining
    certificate = measured(session).certificate()
    assert (certificate.plan_name, certificate.added) == ("by bike", ("by bike",))
    assert holds(session)


@pytest.mark.parametrize("epsilon", [0.0, 1.0])
def test_one_that_arrives_while_a_block_is_measured_in_parts_waits_for_its_end(epsilon):
    policy = sp.BetGapE(delta=1e-6, epsilon=epsilon, max_batch=1)
    session = measured(begun(policy=policy, budget=120), 10)
    assert not session.state().run._run.may_grow  # the round is over soon, the block is not
    session.add_plan("by bike", "bike + walk")
    measured(session, 1)
    assert len(session.state().run._run.log_evidence()) == 2  # it still does not know
    session.final_batch(60)
    n_called = session.state().n_values
    measured(session)
    assert session.state().n_values - n_called == 60
    assert session.outcome.leader_name == "by bike"
    assert holds(session)
    assert sp.Session.load(session.store, "trips").outcome.plan == session.outcome.plan


def test_one_that_arrives_after_the_answer_reopens_the_session():
    session = measured(begun())
    assert session.outcome.plan_name == "by bus"
    session.add_plan("by bike", {"bike": 1, "walk": 1})
    assert session.status == "running"
    assert [request.arm for request in session.pending()] == ["bike"]  # the only arm never measured
    assert measured(session).outcome.plan_name == "by bike"
    assert session.verify().holds


@pytest.mark.parametrize(
    ("name", "plan"), [("by bus", "bike"), ("same", "bus + walk"), ("x", "boat"), ("", "bike"), ("x", [1, 2])]
)
def test_what_is_no_new_plan_is_refused_and_nothing_is_written(name, plan):
    session = begun()
    before = session.journal.head
    with pytest.raises(SurepickError):
        session.add_plan(name, plan)
    assert session.journal.head == before


def test_sessions_that_cannot_take_a_plan_say_so():
    probed = sp.Problem(PROBLEM.plans, arms=ARMS, noise=2.0, measure="plans", goal="largest")
    closed = begun()
    closed.close()
    for session in (begun(policy=sp.CombGapE()), begun(probed), closed):
        with refuses("plan", (ParameterError, SessionError)):
            session.add_plan("by bike", "bike")


def test_a_plan_may_bring_arms_that_there_were_not(tmp_path):
    place = f"sqlite:///{tmp_path}/trips.db"
    session = sp.Session.create(place, "trips", SMALL, policy=sp.BetGapE(delta=1e-9))
    elsewhere = sp.Session.load(place, "trips")
    measured(session, 4)
    asked = [request.token for request in session.pending()]
    session.add_plan("by bike", "bike + walk", arms=["bike"])
    assert [request.token for request in session.pending()] == asked  # decided without it
    assert session.problem.arm_names == tuple(ARMS)
    assert session.problem.noise_scale.tolist() == [2.0] * 4
    session.tell("bike", 9.5)  # unasked, before the policy knows the arm
    tokens = []
    for _ in range(200):
        tokens = [request.token for request in session.pending() if request.arm == "bike"]
        if tokens:
            break
        measured(session, 1)
    assert elsewhere.tell(tokens[0], 9.0).result == "recorded"  # who had not looked since
    again = sp.Session.load(place, "trips")
    assert again.state().standing() == session.state().standing()
    assert [r.token for r in again.pending()] == [r.token for r in session.pending()]
    session.journal.keep_if_small()
    kept = sp.Session.load(place, "trips")
    assert measured(kept).outcome.plan_name == "by bike"
    assert kept.outcome.means[3] == pytest.approx(9.0, abs=2.0)
    certificate = kept.certificate()
    assert certificate.counts["bike"] > 1
    assert sp.Session.load(place, "trips").verify(certificate.to_json()).holds
    assert {found.arm for found in kept.measurements()} == {"bus", "train", "bike"}  # nobody needs walk
    assert kept.to_frame() is not None


def test_a_session_with_new_arms_decides_as_one_that_had_them_from_the_start():
    grown, listed = measured(begun(SMALL), 6), measured(begun(), 6)
    grown.add_plan("by bike", "bike + walk", arms=["bike"])
    listed.add_plan("by bike", "bike + walk")
    for session in (grown, listed):
        measured(session)
    assert grown.outcome.counts.tolist() == listed.outcome.counts.tolist()
    assert grown.state().standing() == listed.state().standing()


def test_new_arms_of_a_bounded_problem_have_bounds():
    problem = sp.Problem([[1, 0], [0, 1]], arms=["a", "b"], low=0.0, high=10.0, goal="largest")
    session = begun(problem)
    with refuses("arms"):
        session.add_plan("c", "c", arms=[NewArm("c", noise=2.0)])
    session.add_plan("c", "c", arms=["c"])
    session.add_plan("d", "d", arms=[NewArm("d", low=0.0, high=4.0)])
    assert session.problem.bounds.tolist() == [[0.0, 10.0]] * 3 + [[0.0, 4.0]]
    assert session.problem.noise_scale.tolist() == [5.0, 5.0, 5.0, 2.0]
    assert session.verify().holds
    with refuses("arms"):
        begun().add_plan("c", "c", arms=[NewArm("c", low=0, high=1)])


@pytest.mark.parametrize("epsilon", [0.0, 1.0])
@pytest.mark.parametrize("n", [0, 3, 12, 60])
def test_new_arms_of_unknown_noise_are_learned(epsilon, n):
    session = begun(SMALL.with_noise(None), sp.BetGapE(epsilon=epsilon))
    session = measured(session, n) if n else session
    with refuses("arms"):
        session.add_plan("by bike", "bike + walk", arms=[NewArm("bike", noise=2.0)])
    session.add_plan("by bike", "bike + walk", arms=["bike"])
    measured(session, 45)  # so that the open batch is complete, and the plan has joined
    state = session.state()
    restored = type(state).from_json(state.given, json.loads(json.dumps(state.to_json())))
    assert restored.standing() == state.standing()
    assert measured(session).outcome.plan_name == "by bike"
    assert holds(session)


def test_an_arm_that_nobody_declared_is_taken_for_a_slip():
    session = begun()
    for plan in ("bik + walk", {"bik": 1}):
        with refuses("plan", ParameterError):
            session.add_plan("by bike", plan)
    negative = NewArm("tram", noise=-1.0)
    for arms in (["bike"], ["tram"], "tram", [""], [negative], ["tram", "tram"]):
        with pytest.raises(SurepickError):
            session.add_plan("by bike", "bike + walk", arms=arms)
    assert session.problem.n_plans == 2


def test_more_plans_than_all_leads_can_be_go_on_from_the_log(tmp_path):
    """With more than 64 plans a fresh run is of another kind, so nothing is kept that it could not read."""
    place = f"sqlite:///{tmp_path}/many.db"
    problem = sp.Problem(np.eye(70)[:64], noise=0.1, goal="largest")
    session = sp.Session.create(place, "many", problem, policy=sp.BetGapE(epsilon=0.05))
    for request in session.ask(64):
        session.tell(request, 0.0)
    session.add_plan("one more", np.eye(70)[64])
    [request] = session.ask()
    session.tell(request, 0.3)
    session.journal.keep_if_small()
    again = sp.Session.load(place)
    assert [r.token for r in again.pending()] == [r.token for r in session.pending()]


@pytest.mark.parametrize("epsilon", [0.0, 1.0])
def test_new_arms_with_prior_data_costs_epsilon_and_a_snapshot(epsilon):
    problem = sp.Problem(
        {"by bus": "bus + walk", "by train": "train + walk"}, arms=ARMS[:3], cost=[1.0, 2.0, 1.0],
        noise=[2.0, 1.0, 2.0], goal="smallest",
    )  # fmt: skip
    prior = PriorData.from_guess(problem, [20.0, 25.0, 6.0], 2.0)
    session = measured(begun(problem, sp.BetGapE(epsilon=epsilon), prior=prior), 5)
    for arm in (NewArm("bike", cost=1.0), NewArm("bike", 2.0)):  # without its noise, without its cost
        with refuses("arms"):
            session.add_plan("by bike", "bike + walk", arms=[arm])
    session.add_plan("by bike", "bike + walk", arms=[NewArm("bike", noise=3.0, cost=4.0)])
    measured(session, 30)
    state = session.state()
    assert state.setup.prior.worth.tolist() == [*prior.worth.tolist(), 0.0]
    kept = json.loads(json.dumps(state.to_json()))
    restored = type(state).from_json(session.state().given, kept)
    assert restored.standing() == state.standing()
    assert json.dumps(restored.to_json()) == json.dumps(kept)
    assert measured(session).verify().holds


def test_a_successor_takes_the_values_before_as_prior_data_alone():
    session = measured(begun(budget=100), 4)
    n_used = session.state().n_measurements
    with refuses("reason", ParameterError):
        session.successor(" ", name="after")
    later = session.successor("the bridge is closed", name="after")
    assert session.status == State.CLOSED
    assert later.journal.setup.budget == 100 - n_used
    prior = later.state().setup.prior
    assert 0 < prior.worth.max() <= 20
    assert prior.means[0] == pytest.approx(session.outcome.means[0])
    assert later.state().n_values == 0
    assert later.state().standing().risk in (None, 1.0)  # nothing is proved by it
    assert measured(later).verify().holds
    assert begun(policy=sp.CombGapE()).successor("spring", name="other").state().setup.prior is None
