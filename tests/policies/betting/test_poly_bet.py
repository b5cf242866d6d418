"""PolyBet: the best of all vertices, its evidence and its promise, and the cheat that tests must catch."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import surepick as sp
from hard_families import is_refuted
from polytopes import KINDS, Peeking, all_vertices, assignment, transport
from surepick.core.run import Measure
from surepick.planning.comparison import is_error
from surepick.policies.betting.edges import Vertices


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(["3x3", "box"]))
def test_without_noise_the_best_of_all_vertices_wins(seed, kind):
    rng = np.random.default_rng(seed)
    if kind == "3x3":
        problem, means = transport(seed, 3, 3)
    else:
        problem, means = (
            sp.Polytope(A_ub=rng.uniform(0, 1, (2, 3)), b_ub=[0.8, 0.9], upper=1.0, noise_scale=1),
            rng.normal(size=3),
        )
    values = problem.sign * (all_vertices(problem) @ means)
    first, second = np.sort(values)[::-1][:2]
    if first - second < 1e-3:
        return
    outcome = sp.simulate(problem, sp.PolyBet(), sp.Gaussian(means, 0.0), seed=seed, budget=10**10)
    assert problem.sign * (np.array(outcome.plan) @ means) == pytest.approx(first, abs=1e-6)
    assert outcome.risk <= 0.05


def test_degenerate_vertices_are_decided_too():
    problem, means = assignment(4, 2)
    outcome = sp.simulate(problem, sp.PolyBet(), sp.Gaussian(means), seed=0, budget=10**7)
    assert outcome.plan is not None
    assert not is_error(problem, sp.Gaussian(means), outcome)
    assert set(outcome.plan) == {0.0, 1.0}


def test_the_clearest_basis_of_a_degenerate_vertex_is_clearer_and_of_the_same_vertex():
    problem, means = assignment(4, 7)
    vertices = Vertices(problem)
    first = vertices.best(means, vertices.first)
    clearest = vertices.clearest(first, means, np.ones(16))
    assert np.allclose(first.values, clearest.values)
    z = [float((-e.gains @ means / np.sqrt(e.squares.sum(axis=1))).min()) for e in (first, clearest)]
    assert z[1] > z[0]
    assert z[1] > 0


@pytest.mark.parametrize("kind", ["3x3", "mix", "program"])
def test_no_more_than_a_few_times_the_limit(kind):
    """A net for the tuning: `surepick reproduce polytope` has the figures."""
    multiples = []
    for seed in (301, 302):
        problem, means = KINDS[kind](seed)
        least = sp.limit(problem, means).lower_bound
        outcome = sp.simulate(problem, sp.PolyBet(), sp.Gaussian(means), seed=seed, budget=10**12)
        assert not is_error(problem, sp.Gaussian(means), outcome)
        multiples.append(outcome.n_measurements / least)
    assert max(multiples) < 5


def test_costs_and_scales_enter_what_is_measured():
    problem, means = transport(3, 3, 3)
    truth, rows = sp.Gaussian(means, 0.5), {"A_eq": problem.rows.a_eq, "b_eq": problem.rows.b_eq}
    plain = sp.simulate(problem.with_noise(np.full(9, 0.5)), sp.PolyBet(), truth, seed=2, budget=10**7)
    busiest = int(plain.counts.argmax())
    costs = np.where(np.arange(9) == busiest, 9.0, 1.0)
    costly = sp.Polytope(**rows, minimize=True, costs=costs, noise_scale=0.5)
    dear = sp.simulate(costly, sp.PolyBet(), truth, seed=2, budget=10**7)
    assert plain.plan == dear.plan
    assert dear.counts[busiest] / dear.n_measurements < 0.7 * plain.counts[busiest] / plain.n_measurements


def test_epsilon_ends_ties_and_the_answer_is_that_good():
    problem = sp.Polytope(A_eq=[[1, 1, 1]], b_eq=[1.0], noise_scale=1)
    truth = sp.Gaussian([1.0, 1.0, 0.2])
    outcome = sp.simulate(problem, sp.PolyBet(epsilon=0.1), truth, seed=0, budget=10**5)
    assert outcome.status is sp.Status.CONFIDENT
    assert not is_error(problem, truth, outcome)
    assert "within 0.1 of the best" in outcome.guarantee


def test_standing_names_the_neighbour_that_is_the_closest_call():
    problem = sp.Polytope(A_eq=[[1, 1, 1]], b_eq=[1.0], arm_names=["a", "b", "c"], noise_scale=1)
    run = sp.PolyBet().start(problem)
    for _ in range(3):
        decision = run.decide()
        assert isinstance(decision, Measure)
        run.absorb(decision.counts, decision.counts * np.array([3.0, 2.9, 0.0]))
    standing = run.standing()
    assert standing.lead == (1.0, 0.0, 0.0)
    assert standing.rival == (0.0, 1.0, 0.0)
    assert standing.gap == pytest.approx(0.1)
    assert 0 < standing.risk <= 1


def test_an_unknown_noise_scale_is_learned_by_a_pilot():
    problem = sp.Polytope(A_eq=[[1, 1, 1]], b_eq=[1.0], noise_scale=None)
    outcome = sp.simulate(problem, sp.PolyBet(), sp.Gaussian([2.0, 0.0, 0.0], 0.5), seed=0)
    assert outcome.plan == (1.0, 0.0, 0.0)
    assert outcome.n_pilot == 36


RUNS = 150


def errors_of(policy, problem, means, budget, runs=RUNS):
    truth = sp.Gaussian(means)
    outcomes = [sp.simulate(problem, policy, truth, seed=r, budget=budget) for r in range(runs)]
    return sum(is_error(problem, truth, outcome) for outcome in outcomes)


@pytest.mark.parametrize("policy", [sp.PolyBet, Peeking])
def test_keeps_its_promise_and_bets_chosen_after_the_block_are_caught(policy):
    problem = sp.Polytope(A_eq=[[1, 1]], b_eq=[1.0], noise_scale=1)
    wrong = errors_of(policy(delta=0.05), problem, [0.05, 0.0], 1_000)
    assert is_refuted(wrong, RUNS, 0.05) == (policy is Peeking)


def test_keeps_its_promise_where_leads_change():
    for problem, means in (transport(2005, 3, 3), assignment(3, 1)):
        wrong = errors_of(sp.PolyBet(delta=0.2), problem, np.asarray(means) * 0.1, 400, runs=40)
        assert not is_refuted(wrong, 40, 0.2)


def test_no_purse_grows_on_average_where_its_edge_improves():
    """The mean of cash and a fixed improving edge's purse stays at 1: the supermartingale of the proof."""
    problem, values = sp.Polytope(A_eq=[[1, 1]], b_eq=[1.0], noise_scale=1), []
    for seed in range(400):
        rng, run = np.random.default_rng(seed), sp.PolyBet(delta=1e-9).start(problem)
        for _ in range(8):
            counts = run.decide().counts
            run.absorb(counts, counts * np.array([0.001, 0.0]) + np.sqrt(counts) * rng.normal(size=2))
        state, total = run.state(), 0.0
        for at, _, purse, _, next_stake, _ in state["accounts"]:
            right = run._vertices.edges(at).values[0] > 0
            staked = 1 - math.exp(state["log_cash"]) if next_stake else 0.0
            total += staked if right else float(np.exp(np.maximum(purse, -700)).max())
        values.append(min(total + math.exp(state["log_cash"]), 50.0))
    assert np.mean(values) < 1 + 4 * np.std(values) / math.sqrt(len(values))
