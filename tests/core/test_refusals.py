"""What makes no problem is refused, and the error names the argument to blame."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import surepick as sp
from common import refuses
from surepick.core.given.arms import filled_in
from surepick.errors import ProblemError, SurepickError
from surepick.problems import NewArm, PriorData
from surepick.simulation import Gaussian


def problem(plans=((1, 0), (0, 1)), **given):
    return sp.Problem(plans, **{"noise": 1, "goal": "largest", **given})


def routes(measure, **given):
    plans = {"coast": "A-B + B-C", "hills": "A-D + D-C"}
    return problem(plans, arms=["A-B", "B-C", "A-D", "D-C"], measure=measure, **given)


def pair(covariance, **given):
    return routes({"pair": sp.Probe(["A-B", "A-D"], covariance=covariance, **given)})


def polytope(*, goal="largest", **given):
    return sp.Polytope(goal=goal, **given)


def oracle(best=lambda weights: weights, n_arms=2, **given):
    return sp.OracleProblem(best, n_arms, goal="largest", **given)


def answer_of(best):
    """Ask an oracle that returns this, whatever the weights are."""
    return oracle(lambda weights: best).best_plan([1.0, 2.0])


NAN = float("nan")
LIMITED = {"noise": None, "low": 0, "high": 1}
ROW = {"A_ub": [[1, 1]], "b_ub": [1]}
EVERY_SUM = ("tea + 3", "2 × Café · 1", "2*(tea + coffee)", "tea coffee *", "", "road-north", "tea")
# What builds, the argument to blame, and values of it, or several arguments together.
CASES = [
    (problem, "noise", ([1, 0], [1, -1], [1, NAN], [1, np.inf], [1, 2, 3], "much")),
    (problem, "cost", ([1, 0], [1, -1], [1, NAN], [1, np.inf], [1, 2, 3], "much", {"cost": {"arm 0": 1}})),
    (problem, "arms", (["x", "x"], ["x", "y", "z"], "xy", ["x", ""])),
    (problem, "plan_names", (["x", "x"], ["x", "y", "z"], "xy", ["x", ""])),
    (problem, "low", ({**LIMITED, "low": 1}, {**LIMITED, "low": 2}, {**LIMITED, "low": "a"})),
    (
        problem,
        "high",
        ({**LIMITED, "high": np.inf}, {**LIMITED, "high": [1, 2, 3]}, {**LIMITED, "high": None}),
    ),
    (problem, "guess", ([1.0], {"guess": {"arm 0": 1.0}})),
    (problem, "spread", (4.0, {"guess": [1, 2], "spread": -1.0}, {"guess": [1, 2], "spread": [1, 2, 3]})),
    (
        problem,
        "known",
        ([3.0], pd.Series({"arm 0": 3.0}), {**LIMITED, "known": {"arm 0": 2}}, {"known": {"arm": 3}}),
    ),
    (problem, "known", ({"known": {"arm 0": mean}} for mean in ("much", (2, 1), NAN, (1, 2, 3)))),
    (problem, "plausible", ("much", (2, 1), [(0, 1)] * 3, [(0, "x"), (0, 1)])),
    (problem, "noise_kind", ("loud",)),
    (problem, "noise", ({"noise": None, "noise_kind": "bounded variance"},)),
    (problem, "setup_cost", (-1, NAN, np.inf, "much", True)),
    (problem, "plans", ([plan, "tea"] for plan in EVERY_SUM)),
    (
        problem,
        "plans",
        ({"plans": {"a": {"tea": "much"}, "b": "tea"}}, {"plans": {1: "a", "1": "b", "c": "c"}}),
    ),
    (routes, "measure", ([], 3, ["arms", "plans"], "nowhere.csv", {"measure": {}})),
    (routes, "measure", (np.ones((2, 3)), np.full((2, 4), np.inf), np.full((2, 4), "x"))),
    (routes, "measure", ({"measure": {"m": x}} for x in (3, [], ["A-X"], ["A-B", "A-B"]))),
    (routes, "measure", ({"measure": {"m": {"A-B": x}}} for x in (0, NAN, "much"))),
    (routes, "measure", ({"measure": {"": ["A-B"]}},)),
    (routes, "noise", ({"measure": "plans", "noise": [1, 2, 3, 4]},)),
    (routes, "cost", ({"measure": "plans", "cost": cost} for cost in ({"coast": 2}, [1, -1]))),
    (routes, "cost", ({"measure": {"p": sp.Probe(["A-B"], cost=2)}, "cost": 3},)),
    (pair, "covariance", ([[1.0, 1.0], [1.0, 1.0]], [[1.0, 2.0], [2.0, 1.0]], [[1.0, 0.5], [0.2, 1.0]])),
    (pair, "covariance", ([[1.0]], [[1.0, NAN], [NAN, 1.0]], "much")),
    (pair, "noise", ({"covariance": [[2.0, 1.0], [1.0, 3.0]], "noise": 1.0},)),
    (oracle, "n_arms", (0, True, 10**400)),
    (oracle, "n_plans", (1, "6")),
    (oracle, "noise", (-1.0,)),
    (oracle, "best", (np.eye(2),)),
    (answer_of, "best", ([1.0, 0.0, 0.0], [1.0, NAN], "none", ("tea", "milk"), {0, 1}, None, np.zeros(500))),
    (
        answer_of,
        "best",
        (np.array([1.0 + 0j, 0.0]), np.array([1]), np.array([[1.0, 0.0]]), ([1.0, 0.0], 0.7)),
    ),
    (answer_of, "best", ({"best": {"tea": 1.0}},)),
    (polytope, None, ({}, {"A_ub": sparse.csr_array(np.ones((1, 300_000))), "b_ub": [1]})),
    (
        polytope,
        None,
        ({"A_ub": [[1, 1]], "b_ub": [-1]}, {"A_eq": [[1, 1], [1, 1]], "b_eq": [1, 2]}),
    ),  # no plan
    (polytope, None, ({"A_ub": [[1, 1]], "b_ub": [0]}, {"A_eq": np.eye(2), "b_eq": [1, 2]})),  # one plan
    (polytope, "upper", ({"A_eq": [[1, -1]], "b_eq": [0]},)),  # amounts without an end
    (polytope, "upper", ({**ROW, "upper": upper} for upper in ([1, NAN], [1, 2, 3]))),
    (polytope, "lower", ({**ROW, "lower": -np.inf}, {**ROW, "lower": [2, 0], "upper": [1, 4]})),
    (polytope, "b_ub", ({"A_ub": [[1, 1]]},)),
    (polytope, "A_ub", ({**ROW, "b_ub": [1, 2]}, {**ROW, "A_ub": [1, 2]}, {**ROW, "A_ub": [[1, 2], [3]]})),
    (polytope, "A_ub", ({**ROW, "A_ub": [[1, NAN]]}, {**ROW, "A_ub": [["a", 2]]})),
]


@pytest.mark.parametrize(
    ("build", "field", "given"), [(build, field, value) for build, field, values in CASES for value in values]
)
def test_the_argument_to_blame_is_named(build, field, given):
    with refuses(field, ProblemError):
        build(**given if isinstance(given, dict) else {field: given})


HUGE = 10**400  # no float is as large


@pytest.mark.parametrize(
    ("field", "build"),
    [
        ("plans", lambda: problem([[HUGE, 0], [0, 1]])),
        ("noise", lambda: problem(noise=HUGE)),
        ("cost", lambda: problem(cost=[1, HUGE])),
        ("high", lambda: problem(noise=None, low=0, high=HUGE)),
        ("guess", lambda: problem(guess=[HUGE, 0])),
        ("plans", lambda: problem().with_plan("third", [HUGE, 1])),
        ("prior", lambda: PriorData.from_history(problem(), [HUGE, 1], [0.0, 0.0])),
        ("means", lambda: PriorData.from_guess(problem(), [HUGE, 1], [1.0, 1.0])),
        ("arms", lambda: filled_in(problem(), [NewArm("third", cost=HUGE)])),
        ("arms", lambda: filled_in(problem(), [NewArm("third", noise=HUGE)])),
        ("cost", lambda: problem().with_arms([NewArm("third", cost=-1)])),
        ("lease", lambda: sp.Session.create("memory://", "s", problem(), policy=sp.BetGapE(), lease=HUGE)),
        ("budget", lambda: sp.Session.create("memory://", "s", problem(), policy=sp.BetGapE(), budget=HUGE)),
        ("means", lambda: Gaussian([HUGE, 0])),
    ],
)
def test_numbers_that_cannot_be_are_refused_wherever_they_are_given(field, build):
    with refuses(field, SurepickError):
        build()
