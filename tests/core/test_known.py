"""Means that are known before anything is measured: what a problem says of them."""

import numpy as np
import pytest
from scipy import sparse

import surepick as sp
from common import largest, refuses
from surepick.core.evidence import Evidence, between, estimates
from surepick.core.problem import contenders
from surepick.errors import ParameterError, ProblemError
from surepick.sessions.codec import problem_from_json, problem_to_json
from surepick.simulation import Gaussian

ARMS = ["road", "rail", "toll"]


def ways(**more):
    plans = {"by road": "road + toll", "by rail": "rail", "by rail and toll": "rail + 2*toll"}
    return sp.Problem(plans, arms=ARMS, noise=1.0, goal="smallest", **more)


def test_known_arms_are_never_relevant_and_rule_out_plans_that_differ_in_them_alone():
    problem = ways(known={"toll": 3.0})
    parts = problem.plan_parts
    assert problem.relevant.tolist() == [True, True, False]
    assert parts.may_be_best.tolist() == [True, True, False]  # the same way by rail, and a toll on top
    assert parts.constants.tolist() == [-3.0, 0.0, -6.0]
    assert problem.is_known.tolist() == [False, False, True]


def test_bounds_on_means_rule_out_what_cannot_be_best():
    assert ways(known={"toll": 3.0, "road": (0, 5), "rail": (6, 9)}).plan_parts.may_be_best.tolist() == [
        *(True, True, False)
    ]  # 3 to 8 by road, 6 to 9 by rail
    decided = ways(known={"toll": 3.0, "road": (0, 5), "rail": (9, 12)})
    assert decided.plan_parts.may_be_best.tolist() == [True, False, False]
    assert not decided.relevant.any()


@pytest.mark.parametrize("wrap", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_no_plan_is_ruled_out_that_is_best_somewhere_in_the_box(wrap):
    rng = np.random.default_rng(5)
    n_out = 0
    for _ in range(40):
        plans = rng.integers(-1, 3, (12, 5)).astype(float)
        low = rng.normal(size=5)
        means = np.column_stack([low, low + rng.choice([0.0, 0.3, np.inf], 5)])
        is_known = means[:, 0] == means[:, 1]
        exact = np.where(is_known, means[:, 0], 0.0)
        means[np.isinf(means[:, 1])] = [-np.inf, np.inf]
        stays = contenders(wrap(np.where(is_known, 0.0, plans)), plans @ exact, means)
        n_out += int((~stays).sum())
        for _ in range(200):
            drawn = np.where(np.isfinite(means[:, 0]), rng.uniform(low, low + 0.3), rng.normal(0, 5, 5))
            value = plans @ np.where(is_known, exact, drawn)
            assert value[stays].max() >= value.max() - 1e-9
    assert n_out > 100


def test_the_value_of_a_plan_has_its_known_parts():
    problem = ways(known={"toll": 3.0})
    seen = Evidence(np.array([4, 4, 0]), np.array([40.0, 48.0, 0.0]))
    assert estimates(problem, seen).means.tolist() == [10.0, 12.0, 3.0]
    assert estimates(problem, seen).variances.tolist() == [0.25, 0.25, 0.0]
    assert between(problem, 1, 0, seen) == (1.0, np.sqrt(0.5))


def test_readings_of_probes_are_freed_of_their_known_parts():
    probes = {"way out": {"road": 1, "toll": 1}, "train": ["rail"]}
    problem = ways(known={"toll": 3.0}, measure=probes)
    seen = Evidence.none_of(problem).with_sums(np.array([2, 2]), np.array([26.0, 24.0]))
    assert estimates(problem, seen).means.round(9).tolist() == [10.0, 12.0, 3.0]
    assert between(problem, 1, 0, seen) == (pytest.approx(1.0), pytest.approx(1.0))


def test_what_is_known_survives_a_file_and_new_arms():
    problem = ways(known={"toll": 3.0, "rail": (0, 20)})
    kept = problem_from_json(problem_to_json(problem))
    assert np.array_equal(kept.mean_bounds, problem.mean_bounds)
    assert kept.relevant.tolist() == problem.relevant.tolist()
    longer = problem.with_arms(["sea"]).with_plan("by sea", "sea + toll")
    assert longer.is_known.tolist() == [False, False, True, False]
    assert longer.relevant.tolist() == [True, True, False, True]


def test_contradictions_are_refused():
    with refuses("environment", ProblemError):
        sp.simulate(ways(known={"toll": 3.0}), Gaussian([10.0, 12.0, 4.0]), policy=sp.BetGapE())
    with refuses("means", ProblemError):
        sp.limit(ways(known={"toll": 3.0}), [10.0, 12.0, 4.0])


def test_the_limit_leaves_known_arms_out():
    means = [10.0, 12.0, 3.0]
    known, unknown = sp.limit(ways(known={"toll": 3.0}), means), sp.limit(ways(), means)
    assert known.shares.tolist() == pytest.approx([0.5, 0.5, 0.0], abs=1e-6)
    assert known.time.value < 0.8 * unknown.time.value
    # the same as two arms whose gap is 1
    two = sp.limit(largest(np.eye(2)), [1.0, 0.0])
    assert known.time.value == pytest.approx(two.time.value)


def test_a_policy_that_cannot_use_them_says_so():
    with refuses("policy", ParameterError):
        sp.simulate(ways(known={"toll": 3.0}), Gaussian([10.0, 12.0, 3.0]), policy=sp.CombGapE())
