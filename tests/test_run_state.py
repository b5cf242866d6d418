"""A run that was kept and restored goes on exactly as the one that was never kept."""

import json

import numpy as np
import pytest

import surepick as sp
from policy_contract import CASES
from surepick.run_state import restore_run, run_to_json
from surepick.simulation import round_rng

PROBLEM = sp.Problem(np.array([[1, 1, 0], [0, 1, 1], [1, 0, 1], [0, 0, 1]], dtype=float))
MEANS = np.array([0.3, 0.1, 0.2])
WITH_EPSILON = sp.BetGapE(delta=0.1, epsilon=0.05)
# Phases hold functions, draws hold scratch that has grown: their sessions are replayed from the log.
REPLAYED = {"RAGE", "Peace", "GenTSExplore", "TSExplore"}
KEPT = [*(policy for policy in CASES if policy.name not in REPLAYED), WITH_EPSILON]


def play(run, first, n_rounds, seed=0):
    """The decisions of some rounds; what is measured depends on the round alone."""
    decisions = []
    for r in range(first, first + n_rounds):
        decision = run.decide(round_rng(seed, r))
        if isinstance(decision, sp.Stop):
            decisions.append(decision.plan)
            break
        noise = np.random.default_rng(r).standard_normal(3)
        decisions.append(decision.counts.tolist())
        run.absorb(decision.counts, decision.counts * MEANS + np.sqrt(decision.counts) * noise)
    return decisions


@pytest.mark.parametrize("policy", KEPT, ids=repr)
def test_a_restored_run_decides_as_the_kept_one_would_have(policy):
    run = policy.start(PROBLEM)
    play(run, 0, 7)
    kept = run_to_json(run, lambda: policy.start(PROBLEM))
    assert kept is not None, "its sessions would be replayed from the beginning"
    again = policy.start(PROBLEM)
    restore_run(again, json.loads(json.dumps(kept)))
    assert again.standing() == run.standing()
    assert play(again, 7, 12) == play(run, 7, 12)


def test_a_run_in_the_middle_of_a_block_is_kept_with_its_bets():
    policy = sp.BetGapE(delta=0.1, max_batch=1)
    run = policy.start(PROBLEM)
    play(run, 0, 4)
    assert run.state()["block"]
    assert run.state()["bets"]
    again = policy.start(PROBLEM)
    restore_run(again, json.loads(json.dumps(run_to_json(run, lambda: policy.start(PROBLEM)))))
    assert play(again, 4, 30) == play(run, 4, 30)


def test_what_came_unasked_during_a_block_is_kept():
    policy = sp.BetGapE(delta=0.1)
    run = policy.start(PROBLEM)
    play(run, 0, 4)
    run.decide()
    run.recall(np.array([5, 5, 5]), 5 * MEANS)
    again = policy.start(PROBLEM)
    restore_run(again, json.loads(json.dumps(run_to_json(run, lambda: policy.start(PROBLEM)))))
    assert play(again, 4, 12) == play(run, 4, 12)
    assert again.evidence.counts.tolist() == run.evidence.counts.tolist()


def test_a_run_on_an_oracle_is_kept_with_the_vectors_of_its_plans():
    problem = sp.problems.top_k_family(["a", "b", "c"], 2).oracle_problem()
    policy = sp.GenTSExplore(delta=0.1)
    run = policy.start(problem)
    play(run, 0, 7)
    again = policy.start(problem)
    restore_run(again, json.loads(json.dumps(run_to_json(run, lambda: policy.start(problem)))))
    assert isinstance(again.standing().lead, tuple)
    assert again.standing() == run.standing()
    assert play(again, 7, 12) == play(run, 7, 12)
