"""A noise scale that is left out is unknown, whichever way a problem is made; it is never taken to be 1."""

import json
from functools import partial

import numpy as np
import pytest

import surepick as sp
from command_line import surepick
from common import answers_wrongly, errs_more_often_than, refuses
from surepick import problems
from surepick.errors import ProblemError
from surepick.simulation import Gaussian

PLANS = np.eye(2)
EDGES = [("A", "B"), ("B", "C"), ("A", "C")]
DOORS = {
    "Problem": partial(sp.Problem, PLANS, goal="largest"),
    "OracleProblem": partial(sp.OracleProblem, lambda w: PLANS[np.argmax(w)], 2, n_plans=2, goal="largest"),
    "Polytope": partial(sp.Polytope, A_eq=[[1, 1]], b_eq=[1], goal="largest"),
    "choice": partial(problems.choice, ["a", "b"], goal="largest"),
    "top_k": partial(problems.top_k, ["a", "b", "c"], 2, goal="largest"),
    "top_k of a guess": partial(
        problems.top_k, ["a", "b", "c"], 2, goal="largest", guess=[3, 2, 2], n_draws=50
    ),
    "knapsack": partial(problems.knapsack, [4, 5], [4.0, 5.0], 10),
    "transport": partial(problems.transport, [3, 2], [4, 1], [[2, 3], [2, 2]]),
    "paths": partial(problems.paths, EDGES, "A", "C"),
    "trees": partial(problems.trees, EDGES),
    "matchings": partial(problems.matchings, [[1, 2], [2, 1]], goal="smallest"),
    "portfolio": partial(problems.portfolio, [1, 2, 3], upper=0.5),
    "production": partial(problems.production, [[1, 2]], [3], [1.0, 1.0]),
    "family": partial(problems.top_k, ["a", "b", "c"], 2, goal="largest", list_plans=False),
}


@pytest.mark.parametrize("door", DOORS)
def test_noise_that_was_not_stated_is_unknown_and_limits_bound_it(door):
    problem, bounded = DOORS[door](), DOORS[door](low=0, high=3)
    assert problem.noise_scale is None
    assert not problem.knows_noise
    assert bounded.noise_scale.tolist() == [1.5] * bounded.n_arms
    assert bounded.bounds.tolist() == [[0.0, 3.0]] * bounded.n_arms
    with refuses("noise", ProblemError):
        DOORS[door](low=0, high=3, noise=2.0)


@pytest.mark.parametrize("probes", ["plans", "plan arms", {"both": ["arm 0", "arm 1"]}])
def test_the_noise_of_readings_too(probes):
    problem = sp.Problem(PLANS, measure=probes, goal="largest")
    assert not problem.knows_noise
    assert sp.Problem(PLANS, measure=probes, noise=2.0, goal="largest").knows_noise


def test_probes_that_all_state_their_noise_state_it_and_one_that_does_not_makes_all_unknown():
    stated = {"a": sp.Probe(["arm 0"], noise=2.0), "b": sp.Probe(["arm 1"], covariance=[[4.0]])}
    assert sp.Problem(PLANS, measure=stated, goal="largest").knows_noise
    assert not sp.Problem(PLANS, measure={**stated, "c": ["arm 0"]}, goal="largest").knows_noise


@pytest.mark.parametrize(
    ("more", "is_stated"),
    [({}, False), ({"noise": 1}, True), ({"low": 0, "high": 1}, True), ({"measure": "plans"}, False)],
)
def test_check_says_which_noise_was_stated(tmp_path, more, is_stated):
    file = tmp_path / "p.json"
    table = {"kind": "table", "goal": "largest", "plans": [[1, 0], [0, 1]]}
    file.write_text(json.dumps({**table, **more}))
    assert (surepick("check", file, "--json").json["noise"] is not None) == is_stated


@pytest.mark.parametrize(("given", "is_caught"), [({}, False), ({"noise": 1}, True)])
def test_a_forgotten_noise_scale_breaks_no_guarantee_and_a_wrong_one_is_caught(given, is_caught):
    """Two arms are 1 apart, with noise of 20."""
    problem, truth = sp.Problem(PLANS, goal="largest", **given), Gaussian([1.0, 0.0], 20.0)
    is_wrong = answers_wrongly(problem, truth, sp.BetGapE(delta=0.05), 200, allow_noisier=True)
    assert errs_more_often_than(0.05, is_wrong, 40) == is_caught
