"""Recorded decisions are followed when a session is reopened, loses a value or gets a smaller delta."""

import copy
import itertools
from typing import Any

import numpy as np
import pytest

import surepick as sp
from common import largest
from forged_logs import lines_of, verdict_on
from session_tools import Tapes, answer, holds, run_to_end
from surepick.inference.wealth import COMMON
from surepick.policies import Challenge
from surepick.policy import Policy
from surepick.sessions.session import Session

PLANS = np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0], [1.0, 0.0, 1.0], [0.0, 0.0, 1.0]])
MEANS = np.array([0.8, 0.4, 0.0])
MANY = np.array(list(itertools.product([0.0, 1.0], repeat=7)))[1:70]
QUESTIONS: dict[str, tuple[Policy, Any]] = {
    "best": (sp.BetGapE(0.1), PLANS),
    "few": (sp.BetGapE(0.1, epsilon=0.2), PLANS),
    "many": (sp.BetGapE(0.1, epsilon=0.4, max_batch=20), MANY),
    "challenge": (Challenge(1, 0.1, epsilon=0.1), PLANS),
}
NOISE: dict[str, dict[str, Any]] = {
    "known": {"noise": 1.0},
    "variance": {"noise": 1.0, "noise_kind": "bounded variance"},
    "unknown": {"noise": None},
    "probes": {"noise": 1.0, "measure": "plans"},
}


def begun(question="best", noise="known", **settings):
    policy, plans = QUESTIONS[question]
    problem = sp.Problem(plans, goal="largest", **NOISE[noise])
    return Session.create("memory://", "s", problem, policy=policy, **settings)


def value_of(session, token):
    """Return the value at this place of the tapes, the same in every session."""
    probe, place = map(int, token.split("."))
    problem = session.problem
    rows = np.eye(problem.n_arms) if problem.probes is None else problem.probes.rows
    means = np.append(MEANS, np.linspace(0.3, -0.5, 6))[: problem.n_arms]
    return float(rows[probe] @ means + np.random.default_rng([probe, place]).standard_normal())


def measured(session, most=5000):
    """Answer what is asked, this many times at most."""
    return answer(session, lambda one: value_of(session, one.token), n=most, at_once=min(50, most))


def numbers_of(session):
    return session.state().run._run.numbers()


@pytest.mark.parametrize(("question", "noise"), list(itertools.product(QUESTIONS, NOISE)))
def test_a_reopened_session_has_the_same_wealth_and_every_log_verifies(question, noise):
    session = measured(begun(question, noise), 120)
    again = Session.load(session.store, "s")
    assert numbers_of(again) == pytest.approx(numbers_of(session), rel=1e-9)
    assert again.verify().holds
    assert measured(again).outcome.plan is not None
    assert holds(again)


def decisions(log):
    return [k for k, line in enumerate(log) if line.kind == "asked" and "decision" in line.body]


def of_decision(at, **changes):
    def break_it(log):
        line = log[decisions(log)[at]]
        line.body = {**line.body, "decision": {**line.body["decision"], **changes}}

    return break_it


NO_DECISIONS = [
    *({"uses": uses} for uses in ([[0, 10**7]], [], [[0, -1]], [[99, 1]], [[0, 2], [1, 1], [2, 1]])),
    *({"stake": stake} for stake in ([1.5, 0.0], [0.5])),
    *({"bets": bets} for bets in ([[3], [0]], [[0.5, 1, 1], [0, 0, 0]], None)),
    *({"leader": leader} for leader in (99, -1)),
    *({"rivals": rivals} for rivals in ([], [[0, 1]], [[0, 2], [1, 3]], [[0, 4]])),
    *({"replicates": 99}, {"replicates": 0}, {"final": True}, {"final": 0}, {"noise": [0, 0, 0]}),
    *({"mood": "good"}, {"value_sum": 0.5}, {"wealth": 0.5}),
]
NO_ENDS = [{"plan": 3}, {"plan": None, "status": "budget spent"}, {"status": "done"}, {"value_sum": 0.5}]


def test_no_decision_or_end_can_be_forged():
    log = lines_of(measured(begun()))
    assert verdict_on(log).holds
    for changes in NO_DECISIONS:
        forged = copy.deepcopy(log)
        of_decision(1, **changes)(forged)
        assert not verdict_on(forged).holds, changes
    for changes in [*NO_ENDS, {"wealth": 99.0}]:
        forged = copy.deepcopy(log)
        next(line for line in forged if line.kind == "stopped").body |= changes
        assert not verdict_on(forged).holds, changes


def test_another_leader_is_a_legal_history():
    """Who leads a batch is free; the wealth that follows is computed with the leader that was recorded."""
    session = measured(begun(), 3)
    log = lines_of(session)
    decision = log[decisions(log)[1]].body["decision"]
    leader = (decision["leader"] + 1) % 4
    ranges = [part for part in ([0, leader], [leader + 1, 4]) if part[0] < part[1]]
    of_decision(1, leader=leader, rivals=ranges)(log)
    assert verdict_on(log).holds


def test_a_smaller_delta_continues_with_the_same_wealth():
    """It takes no more measurements than a fresh session, up to chance, and asks for none again."""
    continued, fresh = [], []
    problem = largest(np.eye(4))
    for seed in range(8):
        tapes = Tapes(seed, means=np.array([0.5, 0.2, 0.1, 0.0]), scale=1.0)
        sessions = [
            Session.create("memory://", "s", problem, policy=sp.BetGapE(delta)) for delta in (0.1, 0.01)
        ]
        for session in sessions:
            run_to_end(session, tapes)
        first = sessions[0].state().n_measurements
        wealth = numbers_of(sessions[0])[0]
        sessions[0].extend(delta=0.01)
        assert numbers_of(sessions[0])[0] == wealth
        assert sessions[0].state().n_measurements == first
        run_to_end(sessions[0], tapes)
        assert holds(sessions[0])
        assert sessions[0].certificate().first_delta == 0.1
        continued.append(sessions[0].state().n_measurements)
        fresh.append(sessions[1].state().n_measurements)
    assert np.mean(continued) <= 1.1 * np.mean(fresh)


def test_a_removed_value_drops_its_replicate_and_two_are_needed():
    session = measured(begun("best", "unknown"), 12)  # four replicates of three arms
    run = lambda: session.state().run._run  # noqa: E731
    assert run().counts.tolist() == [4, 4, 4]
    for token, left in (("0.0", 3), ("1.0", 3), ("1.1", 2), ("2.3", 0)):
        session.remove(token, "a slip")
        assert run().counts.tolist() == [left] * 3


def test_values_of_an_arm_may_all_be_removed():
    """There is no estimate then, so that mixtures make no bet; fixed sizes still do."""
    session = measured(begun(), 3)
    measured(session, 9)
    session.remove("0.0", "a slip")
    account = session.state().run._run._question.account(COMMON)
    assert np.isfinite(account.current).all()
    measured(session)
    assert session.verify().holds
    assert session.outcome.plan is not None


def test_a_removed_answer_is_decided_anew_and_plans_that_came_stay():
    session = measured(begun("best", "known"))
    plan, n_rounds = session.outcome.plan, session.state().n_rounds
    session.add_plan("another", [0.2, 0.1, 0.0])
    measured(session)
    session.remove("0.2", "a slip")
    session.extend(delta=0.05)
    measured(session)
    assert (session.outcome.plan, session.state().problem.n_plans) == (plan, 5)
    assert session.state().n_rounds >= n_rounds
    assert holds(session)
