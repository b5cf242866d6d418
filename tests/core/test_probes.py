"""Probes in a problem: what people may give, what is refused and how, and what is kept."""

import numpy as np
import pytest
from scipy import sparse

import surepick as sp
from common import largest, refuses
from surepick.core.policy import start
from surepick.core.probes import span
from surepick.errors import ParameterError, ProblemError
from surepick.policies import POLICIES
from surepick.sessions.codec import problem_from_json, problem_to_json

ROUTES = {"coast": "A-B + B-C", "hills": "A-D + D-C"}
EDGES = ["A-B", "B-C", "A-D", "D-C"]


def routes(**given):
    return sp.Problem(ROUTES, arms=EDGES, **{"noise": 1, **given}, goal="largest")


def test_trying_a_plan_reads_each_arm_in_it():
    problem = routes(measure="plan arms")
    assert problem.probes.reading_names == (("A-B", "B-C"), ("A-D", "D-C"))
    assert problem.probes.is_diagonal
    assert problem.noise_scale.shape == (4,)
    assert problem.costs.shape == (2,)


def test_all_forms_together_keep_their_order_names_costs_and_noise():
    problem = routes(
        noise={"A-B": 1, "B-C": 2, "A-D": 3, "D-C": 4},
        measure={
            "loop": ["A-B", "D-C"],
            "mix": sp.Probe({"A-B": 0.2, "D-C": -1}, cost=5, noise=0.5),
            "survey": {"q1": {"A-D": 1}, "q2": "B-C"},
            "pair": sp.Probe({"old": "A-B", "new": "A-D"}, covariance=[[4.25, 4.0], [4.0, 4.25]]),
        },
    )
    probes = problem.probes
    assert probes.names == ("loop", "mix", "survey", "pair")
    assert probes.reading_names == (("A-B", "D-C"), ("value",), ("q1", "q2"), ("old", "new"))
    np.testing.assert_allclose(problem.noise_scale, [1, 4, 0.5, 3, 2, 4.25**0.5, 4.25**0.5])
    assert problem.costs.tolist() == [1, 5, 1, 1]


def test_whitened_readings_have_independent_noise_of_scale_one():
    covariance = np.array([[4.25, 4.0], [4.0, 4.25]])
    problem = routes(measure={"all": EDGES, "pair": sp.Probe(["A-B", "A-D"], covariance=covariance)})
    probes = problem.probes
    here = probes.readings_of(1)
    lower = np.linalg.cholesky(covariance)
    np.testing.assert_allclose(
        lower @ probes.whitened.toarray()[here], probes.rows.toarray()[here], atol=1e-12
    )
    noise = np.random.default_rng(0).standard_normal((20_000, probes.n_readings))
    coloured = np.array([probes.colour(row) for row in noise[:4000]])
    np.testing.assert_allclose(np.cov(coloured[:, here].T), covariance, rtol=0.1)
    np.testing.assert_allclose(probes.whiten(coloured[0]), noise[0], atol=1e-12)


def test_plans_that_no_probe_tells_apart_are_refused_with_what_would_help():
    plans = {"train and walk": "train + walk", "bus and walk": "bus + walk", "walk": "2*walk"}
    with refuses("measure", ProblemError):
        sp.Problem(plans, measure={"all the way": {"train": 1, "bus": 1}, "legs": ["walk"]}, goal="largest")
    largest(plans, measure={"all the way": {"train": 1, "bus": 1}, "legs": ["walk", "train"]})


def test_a_plan_that_no_probe_tells_apart_is_not_added():
    problem = routes(measure="plans")
    with refuses("measure", ProblemError):
        problem.with_plan("half", "A-B")
    assert problem.with_plan("both", "A-B + B-C + A-D + D-C").n_plans == 3


def test_the_span_is_orthonormal_and_leaves_nothing_out():
    rng = np.random.default_rng(1)
    rows = sparse.csr_array(rng.normal(size=(9, 3)) @ rng.normal(size=(3, 6)) * 1e-6)
    basis = span(rows)
    assert basis.shape == (3, 6)
    np.testing.assert_allclose(basis @ basis.T, np.eye(3), atol=1e-12)
    np.testing.assert_allclose((rows @ basis.T) @ basis, rows.toarray(), atol=1e-18)


def test_a_problem_with_probes_survives_its_file_to_the_last_bit():
    pair = sp.Probe({"old": {"A-B": 1 / 3}, "new": {"A-D": 1}}, cost=0.1, covariance=[[2.0, 1.0], [1.0, 3.0]])
    problem = routes(measure={"all": EDGES, "pair": pair})
    data = problem_to_json(problem)
    again = problem_from_json(data)
    assert problem_to_json(again) == data
    assert again.probes.covariances[1].tolist() == [[2.0, 1.0], [1.0, 3.0]]
    np.testing.assert_array_equal(again.probes.whitened.toarray(), problem.probes.whitened.toarray())


NOT_THESE = ("PFWS", "CombGame")  # of those that take probes: they play plans


@pytest.mark.parametrize("name", sorted(POLICIES))
def test_a_policy_that_measures_single_arms_says_so(name):
    limit = {"epsilon": 1.0, "loads": np.eye(2, 4)}
    settings = {"RAGE": {"variant": "authors"}, "Tied": {"epsilon": 1.0}, "Limited": limit}.get(name, {})
    policy, problem = POLICIES[name](**settings), routes(measure="plans")
    if policy.takes_probes and name not in NOT_THESE:
        start(policy, problem)
        return
    for begin in (lambda: start(policy, problem), lambda: policy.start(problem)):
        with refuses("policy", (ProblemError, ParameterError)):
            begin()
