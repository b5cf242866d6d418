"""A run that was kept and restored goes on exactly as the one that was never kept.

The contract of policies has this law for lists of plans; here are oracles, epsilons, states that do not fit.
"""

import json

import numpy as np
import pytest

import surepick as sp
from surepick.sessions.snapshot import from_json, restore_run, run_to_json, to_json
from surepick.testing.policies import Tape, continued

PROBLEM = sp.Problem(
    np.array([[1, 1, 0], [0, 1, 1], [1, 0, 1], [0, 0, 1]], dtype=float), noise=1, goal="largest"
)
ORACLE = sp.problems.top_k_family(["a", "b", "c", "d", "e"], 2, goal="largest").oracle_problem(noise=1)
POLYTOPE = sp.Polytope(
    A_ub=[[1, 2, 1, 0, 1], [2, 1, 0, 3, 1]], b_ub=[3, 4], upper=1.0, noise=1, goal="largest"
)
MEANS = np.array([0.3, 0.1, 0.2, 0.0, 0.25])
CASES = [
    (sp.BetGapE(delta=0.1, epsilon=0.05), PROBLEM),
    (sp.BetGapE(delta=0.1, epsilon=0.05, max_batch=1), PROBLEM),
    (sp.BetGapE(delta=0.1), ORACLE),
    (sp.BetGapE(delta=0.1, epsilon=0.1, max_batch=1), ORACLE),
    (sp.GenTSExplore(delta=0.1), ORACLE),
    (sp.GenTSExplore(delta=0.1), PROBLEM),
    (sp.TSExplore(delta=0.1), ORACLE),
    (sp.BetGapE(delta=0.1, epsilon=0.05, max_batch=4), POLYTOPE),
]


def kept_and_restored(policy, problem, run):
    again = policy.start(problem)
    restore_run(again, json.loads(json.dumps(run_to_json(run))))
    return again


@pytest.mark.parametrize(("policy", "problem"), CASES, ids=repr)
@pytest.mark.parametrize("n_rounds", [1, 6, 25])
def test_a_restored_run_decides_as_the_kept_one_would_have(policy, problem, n_rounds):
    means, keys = MEANS[: problem.n_arms], range(problem.n_arms)
    run, tape = policy.start(problem), Tape(means, keys)
    continued(run, tape, range(n_rounds))
    again, rest = kept_and_restored(policy, problem, run), range(n_rounds, n_rounds + 25)
    assert again.standing() == run.standing()
    copy = Tape(means, keys, place=dict(tape.place))
    assert continued(again, copy, rest) == continued(run, tape, rest)
    assert run_to_json(again) == run_to_json(run)


@pytest.mark.parametrize("policy", [sp.BetGapE(max_batch=1), sp.CombGapE()], ids=repr)
def test_what_came_unasked_while_a_round_was_open_is_kept(policy):
    run, tape = policy.start(PROBLEM), Tape(MEANS[:3], range(3))
    continued(run, tape, range(8))
    run.decide(None)
    run.recall(np.array([3, 0, 2]), np.array([9.0, 0.0, 1.0]))
    again = kept_and_restored(policy, PROBLEM, run)
    copy = Tape(MEANS[:3], range(3), place=dict(tape.place))
    assert continued(again, copy, range(8, 40)) == continued(run, tape, range(8, 40))
    assert run_to_json(again) == run_to_json(run)


def test_a_state_of_another_problem_does_not_fit():
    kept = run_to_json(sp.CombGapE().start(PROBLEM))
    with pytest.raises(ValueError, match="shape"):
        restore_run(sp.CombGapE().start(sp.Problem(np.eye(9), noise=1, goal="largest")), kept)


def test_a_state_holds_numbers_and_text_and_nothing_else():
    state = {"a": [1, 0.1, None, True, "x", {"b": np.array([[1.5, np.inf]])}], "c": np.float64(2.0)}
    again = from_json(json.loads(json.dumps(to_json(state))))
    assert again["a"][:5] == [1, 0.1, None, True, "x"]
    assert again["a"][5]["b"].tolist() == [[1.5, np.inf]]
    assert again["c"] == 2.0
    with pytest.raises(TypeError, match="not function"):
        to_json({"f": kept_and_restored})
