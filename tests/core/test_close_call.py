"""The closest call: which neighbour is hardest to tell from a plan, and the epsilon that would end it."""

import numpy as np
import pytest
from surepick.core.answers import close_call, estimated_call

import surepick as sp
from polytopes import KINDS, all_vertices
from surepick.core.evidence import Evidence

HOURS = [[2.0, 3.0, 4.0], [3.0, 4.0, 6.0]]  # North and South tie over Mill and Port


def freight(hours=HOURS, **options):
    names = {"supplier_names": ["North", "South"], "demander_names": ["Mill", "Port", "Market"]}
    return sp.problems.transport([60, 40], [50, 30, 20], np.array(hours), **names, **{"noise": 1, **options})


def test_a_tie_is_named_with_the_epsilon_that_would_end_it():
    found = sp.limit(freight(), np.ravel(HOURS))
    assert not found.is_finite
    assert found.closest.is_tie
    assert "changes nothing" in found.explanation
    assert "North -> Port" in found.explanation
    assert found.suggested_epsilon == found.closest.epsilon == pytest.approx(20.0)
    assert sp.limit(freight(), np.ravel(HOURS), epsilon=found.suggested_epsilon).is_finite


def test_of_a_near_tie_the_epsilon_is_beyond_it_and_takes_far_fewer_measurements():
    near = np.ravel(HOURS) + np.array([0, 0.001, 0, 0, 0, 0])
    found = sp.limit(freight(), near)
    assert found.closest.loss == pytest.approx(0.03)
    assert found.closest.epsilon > 0.03
    within = sp.limit(freight(), near, epsilon=found.closest.epsilon)
    assert within.upper_bound < found.measurements / 1_000


MIX = sp.Polytope(
    A_ub=[[0.4, 0.8, 0.3], [0.7, 0.2, 0.5]], b_ub=[0.8, 0.9], upper=1.0, noise=1, goal="largest"
)


@pytest.mark.parametrize("case", [KINDS["3x3"](7), (MIX, np.array([1.0, 1.3, 0.8]))])
def test_no_vertex_is_closer_than_the_closest_call_by_the_measurements_it_takes_alone(case):
    """Of all vertices the one that takes most measurements alone is a neighbour: others are further away."""
    problem, means = case
    found = sp.limit(problem, means)
    away = all_vertices(problem) - np.array(found.best)
    away = away[np.abs(away).max(axis=1) > 1e-9]
    need = (np.abs(away).sum(axis=1) / (away @ means)) ** 2
    loss = np.abs(away @ means)[int(np.argmax(need))]
    assert found.closest.loss == pytest.approx(loss, rel=1e-6)


def test_by_the_estimates_it_says_how_sure_they_are():
    problem = freight()
    counts = np.full(6, 100)
    call = estimated_call(problem, (40, 0, 20, 10, 30, 0), Evidence(counts, counts * np.ravel(HOURS)))
    assert call.loss == pytest.approx(0.0, abs=1e-9)
    assert call.error == pytest.approx(30 * 2 / 10)  # four lanes, each known to a tenth
    assert "maybe nothing; epsilon = 12 would end it" in call.sentence()
    sure = np.ravel(HOURS) + np.array([0, 1, 0, 0, 0, 0])
    call = estimated_call(problem, (40, 0, 20, 10, 30, 0), Evidence(counts, counts * sure))
    assert "maybe" not in call.sentence()


def test_there_is_none_where_it_is_not_known():
    problem, counts = freight(), np.full(6, 100)
    seen = Evidence(counts, counts * np.ravel(HOURS))
    assert estimated_call(problem, None, seen) is None
    assert estimated_call(problem, (25, 15, 20, 25, 15, 0), seen) is None  # no vertex
    assert estimated_call(problem, (40, 0, 20, 10, 30, 0), Evidence(counts * 0, counts * 0.0)) is None
    assert (
        estimated_call(
            sp.Problem([[1, 0], [0, 1]], noise=1, goal="largest"), 0, Evidence(counts[:2], counts[:2] * 1.0)
        )
        is None
    )
    assert close_call(problem, (40, 0, 20, 10, 30, 0), np.zeros((0, 6)), np.ravel(HOURS)) is None


def test_a_run_that_its_budget_ended_says_it_and_one_that_is_sure_does_not():
    problem, truth = freight(), sp.Gaussian(np.ravel(HOURS))
    spent = sp.simulate(problem, truth, policy=sp.BetGapE(), seed=0, budget=500)
    assert spent.n_measured == 500
    assert "would end it" in spent.what_if
    within = sp.simulate(problem, truth, policy=sp.BetGapE(epsilon=20.0), seed=0)
    assert within.plan is not None
    assert within.what_if is None
