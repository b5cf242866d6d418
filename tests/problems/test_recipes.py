"""Families of plans as JSON and back: the same problem, to the last bit."""

import json
import pickle

import networkx as nx
import numpy as np
import pytest

import surepick as sp
from common import largest
from surepick import problems
from surepick.core.oracle_problem import absent
from surepick.errors import FileError, MissingFunctionError, ParameterError, ProblemError
from surepick.problems.family import FamilyProblem
from surepick.sessions import codec

DIAMOND = [("A", "B"), ("B", "D"), ("A", "C"), ("C", "D"), ("B", "C"), ("B", "D")]
NAMES = ["tea", "coffee", "cocoa", "milk"]


ALL = {"list_plans": False, "cost": 2.5, "noise": 0.3}
FAMILIES = {
    "assign": problems.assign([[1, 3, np.nan], [1, 3, 2]], 4, goal="largest", **ALL),
    "paths": problems.paths(DIAMOND, "A", "D", directed=True, **ALL),
    "paths both ways": problems.paths(DIAMOND, "A", "D", goal="largest", **ALL),
    "trees": problems.trees(nx.complete_graph(6), **ALL),
    "tours": problems.tours(list("abcde"), **ALL),
    "matchings": problems.matchings(row_names=list("abc"), column_names=list("xyzw"), goal="smallest", **ALL),
    "matchings of some": problems.matchings(
        [[1, np.nan, 1], [1, 1, 1], [np.nan, 1, 1]], goal="smallest", **ALL
    ),
    "top-k": problems.top_k(NAMES, 2, goal="largest", **ALL),
    "knapsack": problems.knapsack([3, 4, 5], None, 9, copies=1, **ALL),
    "knapsack of any": problems.knapsack([2, 4, 6], [1, 2, 3], 9, **ALL),
    "program": problems.production(
        [[1, 2, 0], [3, 1, 0]], [8, 9], [1.0, 2.0, 0.1], whole=True, upper=[5.0, np.inf, 2.0], **ALL
    ),
}


@pytest.mark.parametrize("kind", FAMILIES)
def test_a_family_is_read_back_and_pickled_to_an_equal_problem(kind):
    problem = FAMILIES[kind]
    data = json.loads(codec.dumps(codec.problem_to_json(problem)))
    read = codec.problem_from_json(data)
    noisy = problem.with_about(title="Where to").with_settings(noise_kind="bounded variance")
    pickled = pickle.loads(pickle.dumps(noisy))
    assert (pickled.about.title, pickled.noise_kind) == ("Where to", "bounded variance")
    assert codec.problem_to_json(read) == data
    for again in (read, pickled):
        assert isinstance(again, FamilyProblem)
        assert again.n_plans == problem.n_plans
        for weights in np.random.default_rng(1).normal(size=(20, problem.n_arms)):
            plan = problem.best_plan(weights)
            assert again.best_plan(weights).tobytes() == plan.tobytes()
            assert again.name_of(plan) == problem.name_of(plan)


@pytest.mark.parametrize(
    ("kind", "changed"),
    [("trees", {"graph": "edges.csv"}), ("program", {"use": "a.mps"}), ("trees", {"kind": "x"})],
)
def test_a_recipe_names_no_file_and_no_builder_that_is_unknown(kind, changed):
    data = codec.problem_to_json(FAMILIES[kind])
    data["oracle"] = {**data["oracle"], **changed}
    with pytest.raises(FileError):
        codec.problem_from_json(data)


def top_two(weights):
    plan = np.zeros(4)
    plan[np.argsort(-np.asarray(weights))[:2]] = 1
    return plan


def own(best=top_two, **options):
    return sp.OracleProblem(
        best, 4, **{"noise": 0.5, "arms": NAMES, "n_plans": 6, "goal": "largest", **options}
    )


def test_all_but_the_function_is_kept_and_the_function_known_again():
    data = json.loads(codec.dumps(codec.problem_to_json(own())))
    for oracle in (top_two, own(), lambda weights: top_two(weights) * (1 + 1e-12)):  # rounding is no other
        again = codec.problem_from_json(data, oracle)
        assert codec.problem_to_json(again) == data
        assert again.best_plan([1.0, 2.0, 4.0, 3.0]) == pytest.approx([0, 0, 1, 1])
    assert own().name_of(top_two([3, 1, 0, 2])) == "tea + milk"


OTHERS = [
    None,
    lambda weights: top_two(-weights),
    own(lambda weights: top_two(-weights)),
    lambda weights: [1.0, 0.0],
    own(noise=0.4),
    own(n_plans=7),
    own(goal="smallest"),
    sp.OracleProblem(lambda w: w[:3] > 1, 3, noise=1, goal="largest"),
    FAMILIES["top-k"],
]
WITHOUT = [largest([[1, 0], [0, 1]]), FAMILIES["top-k"]]


@pytest.mark.parametrize(
    ("oracle", "problem"),
    [
        *((top_two, without) for without in WITHOUT),
        *((oracle, own()) for oracle in OTHERS),
    ],
)
def test_another_function_or_other_settings_are_refused(oracle, problem):
    with pytest.raises((ParameterError, ProblemError)):
        codec.problem_from_json(codec.problem_to_json(problem), oracle)


def whole_within(weights, lower, upper):
    """The best of all whole numbers within the bounds, none beyond 0 and 3."""
    return np.where(weights > 0, np.minimum(upper, 3), np.maximum(lower, 0))


def test_an_oracle_that_respects_bounds_is_asked_for_again_too():
    problem = sp.OracleProblem(
        lambda weights: whole_within(weights, 0, 3), 2, best_within=whole_within, noise=1, goal="largest"
    )
    data = codec.problem_to_json(problem)
    assert codec.problem_from_json(data, problem).best_within is whole_within
    with pytest.raises(MissingFunctionError):
        codec.problem_from_json(data, problem.best)
    assert not codec.problem_from_json(data, absent).can_decide
