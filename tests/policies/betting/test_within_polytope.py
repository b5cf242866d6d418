"""Within epsilon on a polytope: the average of the leaders, its proof, and the cheat that is caught."""

import json

import numpy as np
import pytest

import surepick as sp
from common import answers_wrongly, errs_more_often_than, measured
from polytopes import KINDS, PeekingPolicy, transport
from surepick.core.polytopes.proofs import objections
from surepick.core.run import Measure
from surepick.simulation import Gaussian, State


@pytest.mark.parametrize(("kind", "epsilon"), [("3x3", 0.05), ("5x4", 0.02), ("9x9", 0.05), ("mix", 0.1)])
def test_the_answer_is_a_plan_within_epsilon_and_its_proof_is_checked_without_a_solver(kind, epsilon):
    problem, means = KINDS[kind](302)
    run = sp.BetGapE(0.05, epsilon).start(problem)
    plan = measured(run, means, np.random.default_rng(0)).plan
    truth = problem.sign * (np.array(plan) - problem.best_plan(means)) @ means
    assert -epsilon <= truth <= 1e-9
    assert run.standing().leader == plan
    assert run.standing().risk == 0.05
    proof = json.loads(json.dumps(run.proof()))
    assert objections(problem, plan, proof, 0.05) == []
    assert objections(problem, plan, proof, 0.04) == ["the evidence asked for is not enough"]
    moved = problem.vector(plan) + 1e-3
    assert "the answer is no plan" in objections(problem, tuple(moved), proof, 0.05)
    for spoil, worse in {"target": 0.5, "gain": -epsilon / 2}.items():
        series = {**proof["series"], spoil: proof["series"][spoil] + worse}
        assert objections(problem, plan, {**proof, "series": series}, 0.05)
    richer = {**proof["series"], "log_cash": 0.5}
    assert objections(problem, plan, {**proof, "series": richer}, 0.05) == ["more was staked than there was"]
    fewer = {**proof, "series": {**proof["series"], "boxes": proof["series"]["boxes"][:-1]}}
    assert objections(problem, plan, fewer, 0.05) == ["the boxes do not rule out all plans"]
    assert objections(problem, plan, {**proof, "series": None}, 0.05) != []  # no evidence at all


def test_a_tangent_so_far_away_that_only_rounding_is_left_proves_nothing():
    problem, means = KINDS["3x3"](302)
    run = sp.BetGapE(0.05, 0.05).start(problem)
    plan = measured(run, means, np.random.default_rng(0)).plan
    proof = run.proof()
    prices = (0,) * (len(problem.form.right) + 1)
    points = 10.0 ** np.random.default_rng(1).uniform([10, -5], [25, 3], (1000, 2))
    for point in points.tolist():
        boxes = [{"cuts": [[point, 1.0, prices]], "split": None}]
        forged = {**proof, "series": {**proof["series"], "boxes": boxes}}
        assert objections(problem, plan, forged, 0.05) == ["the boxes do not rule out all plans"]


def test_ties_end_and_take_few_measurements():
    """By freeway many transports tie, and the exact question never ends."""
    problem, _ = KINDS["9x9"](7)
    means = sp.problems.cities.city_hours("freeway").numbers.ravel()
    outcome = sp.simulate(problem, Gaussian(means), policy=sp.BetGapE(epsilon=0.1), seed=0, budget=20_000)
    assert outcome.state is State.CONFIDENT
    assert outcome.correct
    assert "within 0.1 of the best" in outcome.guarantee


@pytest.mark.parametrize("epsilon", [0.0, 0.05])
def test_fixed_arms_are_never_measured_and_dear_ones_less_often(epsilon):
    rows = {"A_eq": [[1, 1, 1, 0]], "b_eq": [1.0], "lower": [0, 0, 0, 2], "upper": [1, 1, 1, 2]}
    means, noise, shares = [1.0, 0.7, 0.2, 5.0], [0.5, 0.5, 0.25, 1.0], []
    for cost in (1.0, [9.0, 1.0, 1.0, 1.0]):
        problem, policy = (
            sp.Polytope(**rows, noise=noise, cost=cost, goal="largest"),
            sp.BetGapE(0.05, epsilon),
        )
        outcome = sp.simulate(problem, Gaussian(means, noise), policy=policy, seed=1, budget=10**6)
        assert outcome.plan[3] == 2.0
        assert outcome.counts[3] == 0
        shares.append(outcome.counts[0] / outcome.n_measured)
    assert shares[1] < 0.8 * shares[0]


def test_the_risk_falls_and_is_proved_by_boxes_of_its_own():
    problem, means = transport(301, 3, 3)
    run, rng, risks = sp.BetGapE(0.01, 0.1).start(problem), np.random.default_rng(3), []
    while isinstance(measured(run, means, rng, 1), Measure):
        standing = run.standing()
        risks.append(standing.risk)
        assert standing.leader is not None
        assert standing.rival is not None
    assert risks[0] == 1.0
    assert min(risks[:-1]) < 0.9
    assert risks[-1] == 0.01


@pytest.mark.parametrize("policy", [sp.BetGapE, PeekingPolicy])
def test_keeps_its_promise_and_a_lead_chosen_after_the_block_is_caught(policy):
    """Leads of small blocks are often the wrong arm, and then so is the average."""
    problem = sp.Polytope(A_eq=[[1, 1]], b_eq=[1.0], noise=1, goal="largest")
    is_wrong = answers_wrongly(problem, Gaussian([0.3, 0.0]), policy(delta=0.05, epsilon=0.05), 400)
    assert errs_more_often_than(0.05, is_wrong, 30) == (policy is PeekingPolicy)


def test_the_wealth_against_a_best_plan_does_not_grow_on_average():
    """The supermartingale of the proof: without epsilon, and with means of 0, every plan is best."""
    problem, values = sp.Polytope(A_eq=[[1, 1, 1]], b_eq=[1.0], noise=1, goal="largest"), []
    best = np.array([[0.0, 1.0, 0.0]])
    for seed in range(200):
        rng, run = np.random.default_rng(seed), sp.BetGapE(delta=1e-9, epsilon=1.0).start(problem)
        measured(run, np.zeros(3), rng, 6)
        question = run._question
        total = np.exp(question.wealth.log_cash)
        for series in question.series:
            total += float(np.exp(series.log_stakes).sum())
            if series.begun < len(question.batches):
                inequality = question.batches.inequality(series, 0.0, 1.0, -np.inf)
                total += float(np.exp(inequality.log_wealth(best))[0] - np.exp(series.log_stakes).sum())
        values.append(min(total, 50.0))
    assert len({round(value, 6) for value in values}) > 100
    assert 0.3 < np.mean(values) < 1 + 4 * np.std(values) / np.sqrt(len(values))
