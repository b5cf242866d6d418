"""A state that was kept and restored continues exactly as the one that was never kept."""

import json

import numpy as np
import pytest

import surepick as sp
from common import largest
from surepick.sessions.events import Measured
from surepick.sessions.setup import NewSession
from surepick.sessions.state import SessionState

PROBLEM = largest([[1, 1, 0], [0, 1, 1], [1, 0, 1], [0, 0, 1]])
ORACLE = sp.problems.top_k_family(["a", "b", "c", "d", "e"], 2, goal="largest").oracle_problem(noise=1)
POLYTOPE = sp.Polytope(
    A_ub=[[1, 2, 1, 0, 1], [2, 1, 0, 3, 1]], b_ub=[3, 4], upper=1.0, noise=1, goal="largest"
)
MEANS = np.array([0.3, 0.1, 0.2, 0.0, 0.25])
CASES = [
    (sp.BetGapE(delta=0.1, epsilon=0.05), PROBLEM),
    (sp.BetGapE(delta=0.1, epsilon=0.05, max_batch=1), PROBLEM),
    (sp.CombGapE(delta=0.1), PROBLEM),
    (sp.BetGapE(delta=0.1), ORACLE),
    (sp.BetGapE(delta=0.1, epsilon=0.1, max_batch=1), ORACLE),
    (sp.BetGapE(delta=0.1, epsilon=0.05, max_batch=4), POLYTOPE),
]


def setup_of(policy, problem):
    return NewSession(problem, policy, "mine", 0, None, 60.0, None).setup


def continued(state, n_values):
    """Measure so many places of open batches, each with a value of its own; return what was decided."""
    decisions = []
    for _ in range(n_values):
        while (decision := state.decide()) is not None:
            decision.check(state)
            state.apply(decision)
            decisions.append(decision)
        place = next(state.streams.missing_places(), None)
        if place is None:
            break
        value = float(MEANS[place.probe] + np.random.default_rng(list(place)).standard_normal())
        state.apply(Measured(state.n_recorded + 1, *place, [value], "", str(place), "", ""))
    return decisions


def restored(state, setup):
    return SessionState.from_json(setup, json.loads(json.dumps(state.to_json())))


@pytest.mark.parametrize(("policy", "problem"), CASES, ids=repr)
@pytest.mark.parametrize("n_values", [1, 12, 45])
def test_a_restored_state_decides_as_the_kept_one_would_have(policy, problem, n_values):
    setup = setup_of(policy, problem)
    state = SessionState(setup)
    continued(state, n_values)
    again = restored(state, setup)
    assert again.standing() == state.standing()
    rest = continued(state, 60)
    assert rest
    assert continued(again, 60) == rest
    assert json.dumps(again.to_json()) == json.dumps(state.to_json())


@pytest.mark.parametrize("policy", [sp.BetGapE(max_batch=1), sp.CombGapE()], ids=repr)
def test_extra_values_that_wait_are_kept(policy):
    setup = setup_of(policy, PROBLEM)
    state = SessionState(setup)
    continued(state, 8)
    for probe in (0, 0, 2):
        event = Measured(
            state.n_recorded + 1,
            probe,
            state.streams.of[probe].appended_at,
            [9.0],
            "",
            "",
            f"row {state.n_recorded}",
            "",
        )
        event.check(state)
        state.apply(event)
    again = restored(state, setup)
    assert again.streams.n_ahead == state.streams.n_ahead > 0
    assert again.keys == state.keys
    rest = continued(state, 60)
    assert continued(again, 60) == rest
    assert again.n_extra_used == state.n_extra_used > 0
