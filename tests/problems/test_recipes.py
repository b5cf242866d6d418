"""Families of plans as JSON and back: the same problem, to the last bit."""

import json

import networkx as nx
import numpy as np
import pytest

import surepick as sp
from common import largest
from surepick import problems
from surepick.core.oracle_problem import absent
from surepick.errors import MissingFunctionError, ParameterError, ProblemError
from surepick.problems.family import FamilyProblem
from surepick.sessions import codec

DIAMOND = [("A", "B"), ("B", "D"), ("A", "C"), ("C", "D"), ("B", "C"), ("B", "D")]
NAMES = ["tea", "coffee", "cocoa", "milk"]


def families():
    program = problems.as_program(
        [[1, 2, 0], [3, 1, 0]], [8, 9], [1.0, 2.0, 0.1], whole=True, upper=[5.0, np.inf, 2.0]
    )
    return {
        "paths": problems.path_family(DIAMOND, "A", "D", directed=True),
        "paths both ways": problems.path_family(DIAMOND, "A", "D", goal="largest"),
        "trees": problems.tree_family(nx.complete_graph(6)),
        "matchings": problems.matching_family(list("abc"), list("xyzw"), goal="smallest"),
        "matchings of some": problems.matching_family(
            list("abc"), list("xyz"), possible=[[1, 0, 1], [1, 1, 1], [0, 1, 1]], goal="smallest"
        ),
        "top-k": problems.top_k_family(NAMES, 2, goal="largest"),
        "knapsack": problems.knapsack_family([3, 4, 5], 9, copies=1),
        "knapsack of any": problems.knapsack_family([2, 4, 6], 9),
        "transport": problems.transport_family([3, 2], [4, 1.0000000001]),
        "program": problems.program_family(program),
        "portfolio": problems.portfolio_family(["a", "b", "c"], upper=0.5),
    }


@pytest.mark.parametrize("kind", families())
def test_a_family_is_read_back_to_an_equal_problem(kind):
    family = families()[kind]
    problem = family.oracle_problem(noise=np.arange(1.0, family.n_arms + 1) / 7, cost=2.5)
    text = codec.dumps(codec.problem_to_json(problem))
    again = codec.problem_from_json(json.loads(text))
    assert isinstance(again, FamilyProblem)
    assert codec.fingerprint(codec.problem_to_json(again)) == codec.fingerprint(json.loads(text))
    assert again.n_plans == problem.n_plans
    rng = np.random.default_rng(1)
    for _ in range(20):
        weights = rng.normal(size=problem.n_arms)
        plan = problem.best_plan(weights)
        assert again.best_plan(weights).tobytes() == plan.tobytes()
        assert again.name_of(plan) == problem.name_of(plan)


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
    problems.top_k_family(NAMES, 2, goal="largest").oracle_problem(noise=0.5),
]
WITHOUT = [largest([[1, 0], [0, 1]]), problems.top_k_family(NAMES, 1, goal="largest").oracle_problem(noise=1)]


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
    assert not codec.problem_from_json(data, absent).has_oracle
