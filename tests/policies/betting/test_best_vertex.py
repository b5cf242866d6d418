"""The best of all vertices: its evidence and its guarantee, and the cheat that tests must catch."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import surepick as sp
from common import answers_wrongly, errs_more_often_than, measured, refuses
from polytopes import PeekingPolicy, all_vertices, assignment, transport
from surepick.core.polytopes.proofs import objections
from surepick.inference.wealth import EMPTY
from surepick.policies.polytopes.edges import Vertices
from surepick.simulation import Gaussian


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(["3x3", "box"]))
def test_without_noise_the_best_of_all_vertices_wins(seed, kind):
    rng = np.random.default_rng(seed)
    if kind == "3x3":
        problem, means = transport(seed, 3, 3)
    else:
        problem, means = (
            sp.Polytope(A_ub=rng.uniform(0, 1, (2, 3)), b_ub=[0.8, 0.9], upper=1.0, noise=1, goal="largest"),
            rng.normal(size=3),
        )
    values = problem.sign * (all_vertices(problem) @ means)
    first, second = np.sort(values)[::-1][:2]
    if first - second < 1e-3:
        return
    outcome = sp.simulate(problem, Gaussian(means, 0.0), policy=sp.BetGapE(), seed=seed, budget=10**10)
    assert problem.sign * (np.array(outcome.plan) @ means) == pytest.approx(first, abs=1e-6)
    assert outcome.risk <= 0.05


def test_the_clearest_basis_of_a_degenerate_vertex_is_clearer_and_of_the_same_vertex():
    problem, means = assignment(4, 7)
    vertices = Vertices(problem)
    first = vertices.best(means, vertices.first)
    clearest = vertices.clearest(first, means, np.ones(16))
    assert np.allclose(first.values, clearest.values)
    z = [float((-e.gains @ means / np.sqrt((e.gains**2).sum(axis=1))).min()) for e in (first, clearest)]
    assert z[1] > z[0]
    assert z[1] > 0


def test_noise_of_bounded_variance_is_decided_exactly_and_refused_within_epsilon():
    problem = sp.Polytope(A_eq=[[1, 1, 1]], b_eq=[1.0], noise=1, goal="largest").with_settings(
        noise_kind="bounded variance"
    )
    outcome = sp.simulate(problem, Gaussian([2.0, 0.0, 0.0]), policy=sp.BetGapE(), seed=0)
    assert outcome.plan == (1.0, 0.0, 0.0)
    with refuses("policy"):
        sp.BetGapE(0.05, 0.1).start(problem)


@pytest.mark.parametrize("policy", [sp.BetGapE, PeekingPolicy])
def test_keeps_its_promise_and_bets_chosen_after_the_block_are_caught(policy):
    problem = sp.Polytope(A_eq=[[1, 1]], b_eq=[1.0], noise=1, goal="largest")
    is_wrong = answers_wrongly(problem, Gaussian([0.05, 0.0]), policy(delta=0.05), 1_000)
    assert errs_more_often_than(0.05, is_wrong, 150) == (policy is PeekingPolicy)


def test_keeps_its_promise_where_leads_change():
    for problem, means in (transport(2005, 3, 3), assignment(3, 1)):
        is_wrong = answers_wrongly(problem, Gaussian(0.1 * np.asarray(means)), sp.BetGapE(delta=0.2), 400)
        assert not errs_more_often_than(0.2, is_wrong, 40)


def test_no_account_grows_on_average_where_its_edge_improves():
    """The mean of cash and the account of the wrong basis stays at 1: the supermartingale of the proof."""
    problem, values = sp.Polytope(A_eq=[[1, 1]], b_eq=[1.0], noise=1, goal="largest"), []
    for seed in range(400):
        rng, run = np.random.default_rng(seed), sp.BetGapE(delta=1e-9).start(problem)
        measured(run, [0.001, 0.0], rng, 8)
        wealth, question = run._question.wealth, run._question
        total = math.exp(wealth.log_cash)
        for basis, account in wealth.accounts.items():
            is_right = question.edges(basis).values[0] > 0
            staked = account.components[0, 0] > EMPTY / 2
            stake = 1 - math.exp(wealth.log_cash) if is_right and staked else 0.0
            total += stake if is_right else float(np.exp(np.maximum(account.components, -700)).max())
        values.append(min(total, 50.0))
    assert np.mean(values) < 1 + 4 * np.std(values) / math.sqrt(len(values))


@pytest.mark.parametrize("epsilon", [0.0, 0.1])
def test_arms_of_known_mean_are_not_measured_and_the_proof_counts_them(epsilon):
    rows = {"A_eq": [[1, 1, 1, 1]], "b_eq": [1.0], "noise": 1}
    means = np.array([2.0, 0.5, 1.2, -1.0])
    problem = sp.Polytope(**rows, arms=list("abcd"), known={"c": 1.2, "d": -1.0}, goal="largest")
    run, rng = sp.BetGapE(0.05, epsilon).start(problem), np.random.default_rng(1)
    decision = measured(run, means, rng)
    assert not run.counts[2:].any()
    assert decision.plan[0] == pytest.approx(1.0, abs=0.2)
    if epsilon:
        assert objections(problem, decision.plan, run.proof(), 0.05, epsilon) == []
    else:
        assert objections(problem, decision.plan, run.proof(), 0.05) == []
        other = sp.Polytope(**rows, arms=list("abcd"), known={"c": 2.5, "d": -1.0}, goal="largest")
        assert objections(other, decision.plan, run.proof(), 0.05) == []  # a - c is measured
        moved = sp.Polytope(**rows, arms=list("abcd"), known={"a": 2.0, "c": 2.5, "d": -1.0}, goal="largest")
        assert objections(moved, decision.plan, run.proof(), 0.05) != []


def test_with_all_means_known_nothing_is_measured():
    problem = sp.Polytope(
        A_eq=[[1, 1]], b_eq=[1.0], arms=["a", "b"], known={"a": 0.0, "b": 1.0}, goal="largest"
    )
    for epsilon in (0.0, 0.1):
        assert sp.BetGapE(0.05, epsilon).start(problem).decide().plan == (0.0, 1.0)
