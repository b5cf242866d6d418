"""Polytopes from prior data, which win no bet, to the end of a budget or a final batch."""

import dataclasses
import json
import math
from functools import partial

import numpy as np
import pytest

import surepick as sp
from common import errs_more_often_than, measured
from polytopes import KINDS, run_of
from surepick.core.polytopes.proofs import objections
from surepick.core.run import Measure, Stop
from surepick.policies.betting.best_vertex import BestVertex
from surepick.policies.betting.within_polytope import PlanTest, WithinPolytope
from surepick.policies.polytopes.edges import basis_text
from surepick.simulation import Gaussian

LEVELS = np.array([0.5, 0.2, 0.05])
TWO = sp.Polytope(A_eq=[[1, 1]], b_eq=[1.0], noise=1, goal="largest")
NOTHING_OR_ONE = sp.Polytope(
    A_ub=np.ones((1, 5)), b_ub=[1.0], noise=1, goal="largest"
)  # nothing, or one of five, or mixtures


class Afterwards(BestVertex):
    """Chooses the vertex to test after the batch."""

    def settle(self, bets, result):
        if result.is_final:
            best = self._vertices.best(result.arm_means, self._vertices.first)
            decision, estimates = self._last
            decision = dataclasses.replace(decision, leader=basis_text(best.at), rivals=best.leaves)
            self.follow(decision, estimates)
            bets = self.bets(decision, estimates)
        super().settle(bets, result)

    def follow(self, decision, estimates):
        self._last = decision, estimates
        super().follow(decision, estimates)


class AfterwardsWithin(WithinPolytope):
    """Chooses the plan to test after the batch."""

    def settle(self, bets, result):
        if result.is_final:
            bets = [PlanTest(self.rivals.best(self._scale * result.averages), bets[0].log_wealth, -1)]
        super().settle(bets, result)


def risk_of_a_wrong_lead(kind, epsilon, seed):
    """The risk after some bets and a final batch of 60, where the lead is wrong; 1 where it is right.

    To do nothing is best; each of five things to do is worse, by a hair's breadth more than epsilon.
    """
    run, rng = run_of(kind, NOTHING_OR_ONE, 0.001, epsilon), np.random.default_rng(seed)
    means = np.full(5, -epsilon - 1e-9)
    measured(run, means, rng, 2)
    run.call_final_batch(60, gaussian=True)
    measured(run, means, rng, 7)
    standing = run.standing()
    return standing.risk if np.sum(standing.leader) > 1 - 1e-9 else 1.0


def is_too_often_small(risk_of, runs):
    """Return whether the risk of a wrong lead is at most a more often than that, at one of the levels a."""
    return errs_more_often_than(LEVELS, lambda seed: risk_of(seed) <= LEVELS * (1 + 1e-9), runs).any()


@pytest.mark.parametrize(
    ("kind", "epsilon", "is_caught"),
    [
        (BestVertex, 0.0, False),
        (WithinPolytope, 0.05, False),
        (Afterwards, 0.0, True),
        (AfterwardsWithin, 0.05, True),
    ],
)
def test_a_final_batch_rarely_proves_a_wrong_plan_and_one_chosen_afterwards_is_caught(
    kind, epsilon, is_caught
):
    assert is_too_often_small(partial(risk_of_a_wrong_lead, kind, epsilon), 120) == is_caught


@pytest.mark.parametrize("epsilon", [0.0, 0.1])
def test_a_final_batch_proves_more_than_bets_with_the_same_budget(epsilon):
    problem, means = KINDS["3x3"](301)
    sure = {}
    for final_batch in (None, 0.6):
        how = {"budget": 160, "final_batch": final_batch, "gaussian": final_batch is not None}
        policy, truth = sp.BetGapE(0.05, epsilon), Gaussian(means)
        outcomes = [sp.simulate(problem, truth, policy=policy, seed=seed, **how) for seed in range(25)]
        sure[final_batch] = sum(outcome.plan is not None for outcome in outcomes)
        assert all(outcome.n_measured <= 160 for outcome in outcomes)
        for outcome in outcomes:
            assert outcome.plan is None or outcome.risk <= 0.05
    assert sure[0.6] > sure[None]


@pytest.mark.parametrize("epsilon", [0.0, 0.1])
def test_a_final_batch_too_small_for_all_arms_proves_nothing_and_ends(epsilon):
    run = sp.BetGapE(0.05, epsilon).start(NOTHING_OR_ONE)
    run.absorb(run.decide().counts, np.zeros(5))
    run.call_final_batch(2, gaussian=True)
    decision = run.decide()
    assert decision.counts.sum() == 2
    run.absorb(decision.counts, 100.0 * decision.counts)
    assert run.decide() == Stop(None)


@pytest.mark.parametrize("gaussian", [True, False])
def test_within_epsilon_the_test_of_a_final_batch_is_checked_by_arithmetic_alone(gaussian):
    """Boxes for the wealth before it, and for the test; whatever is spoilt is noticed."""
    problem, means = KINDS["3x3"](301)
    run, rng = sp.BetGapE(0.05, 0.1).start(problem), np.random.default_rng(2)
    measured(run, means, rng, 12)
    run.call_final_batch(400, gaussian=gaussian)
    decision = measured(run, means, rng, 28)
    plan, proof = decision.plan, json.loads(json.dumps(run.proof()))
    assert plan is not None
    assert proof["series"] is not None
    assert objections(problem, plan, proof, 0.05, 0.1) == []
    again = sp.BetGapE(0.05, 0.1).start(problem)
    again.restore(run.state())
    assert json.loads(json.dumps(again.proof())) == proof
    for delta, epsilon in ((0.04, 0.1), (0.05, 0.09)):
        assert objections(problem, plan, proof, delta, epsilon) != []
    test = proof["test"]
    for change in (
        *({"test": {**test, name: test[name] + by}} for name, by in (("target", -0.1), ("gain", 0.01))),
        *({name: {**proof[name], "boxes": proof[name]["boxes"][1:]}} for name in ("test", "series")),
        *({"log_wealth": proof["log_wealth"] + 0.1}, {"series": None}),
        {"average": [x + 1e-3 for x in proof["average"]]},
    ):
        assert objections(problem, plan, {**proof, **change}, 0.05, 0.1) != [], change
    with pytest.raises(ValueError):
        objections(problem, plan, {**proof, "test": {**test, "gain": math.inf}}, 0.05, 0.1)


def budget_spent(run, rng, means, budget, peek=False):
    """Measure until the budget is spent; whoever peeks measures a cut block twice and keeps the better."""
    used, counts = 0, []
    while True:
        run.allow(budget - used)
        decision = run.decide()
        if isinstance(decision, Stop) or decision.counts.sum() > budget - used:
            return used, counts
        n, draw = decision.counts, lambda n: n * means + np.sqrt(n) * rng.standard_normal(len(means))
        sums = draw(n)
        if peek and counts:
            lead = np.array(run.standing().leader)
            sums = max((draw(n) for _ in range(8)), key=lambda seen: lead @ seen)
        used += int(n.sum())
        counts.append(n)
        run.absorb(n, sums)


def risk_at_the_end(kind, epsilon, peek, seed):
    """The risk of a wrong lead after a few blocks, the last of them cut; of two plans one is hardly worse."""
    run, rng = run_of(kind, TWO, 0.001, epsilon), np.random.default_rng(seed)
    budget_spent(run, rng, np.array([0.0, -epsilon - 1e-9]), 61, peek)
    standing = run.standing()
    return standing.risk if standing.leader[1] > 1 - 1e-9 else 1.0


@pytest.mark.parametrize("peek", [False, True])
@pytest.mark.parametrize(("kind", "epsilon"), [(BestVertex, 0.0), (WithinPolytope, 0.3)])
def test_cut_blocks_keep_the_promise_and_one_that_is_chosen_afterwards_is_caught(kind, epsilon, peek):
    assert is_too_often_small(partial(risk_at_the_end, kind, epsilon, peek), 60) == peek


def test_the_lead_is_best_unless_the_best_plan_differs_in_one_of_those_named():
    problem = sp.Polytope(A_ub=[[1, 1, 1]], b_ub=[1.0], arms=["tea", "milk", "jam"], noise=1, goal="largest")
    run, rng = sp.BetGapE(0.05).start(problem), np.random.default_rng(0)
    means, named = np.array([1.0, 0.9, 0.2]), []
    while isinstance(measured(run, means, rng, 1), Measure):
        named.append(run.standing().unless)
    assert set(named[0]) == {"milk", "jam", "slack of row 0"}
    assert named[-1] == ()
    assert ("milk",) in named  # the closest call is left over
