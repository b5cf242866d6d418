"""Families: decided alike behind an oracle and listed, and the search for their plans."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import surepick as sp
from surepick import problems
from surepick.policies import GenTSExplore
from surepick.problems.candidates import SAME_PLAN, drawn_plans
from surepick.simulation import Gaussian, State


def small_families():
    diamond = [("A", "B"), ("B", "D"), ("A", "C"), ("C", "D"), ("B", "C")]
    return {
        "paths": problems.path_family(diamond, "A", "D", directed=True),
        "trees": problems.tree_family([("A", "B"), ("B", "C"), ("A", "C")]),
        "matchings": problems.matching_family(["a", "b"], ["x", "y"], goal="smallest"),
        "top-k": problems.top_k_family(["a", "b", "c"], 1, goal="largest"),
        "knapsack": problems.knapsack_family([3, 4, 5], 9, copies=1),
        "transport": problems.transport_family([3, 2], [4, 1]),
        "program": problems.program_family(problems.as_program([[1, 2], [3, 1]], [8, 9])),
        "portfolio": problems.portfolio_family(["a", "b", "c"], upper=0.5),
    }


@pytest.mark.parametrize("kind", small_families())
def test_an_oracle_problem_decides_as_the_listed_problem_does(kind):
    family = small_families()[kind]
    rng = np.random.default_rng(3)
    listed = family.problem(np.zeros(family.n_arms), spread=4.0, n_draws=200)
    assert listed.candidates.n_plans <= family.n_plans
    means = max((rng.normal(size=family.n_arms) * 3 for _ in range(20)), key=lambda m: gap(listed, m))
    oracle = family.oracle_problem(noise=0.05)
    known = sp.Problem(
        listed.plans,
        plan_names=listed.plan_names,
        goal="smallest" if listed.minimize else "largest",
        noise=0.05,
    )
    truth = Gaussian(means, 0.05)
    policy = GenTSExplore(delta=0.05)
    hidden = sp.simulate(oracle, truth, policy=policy, seed=1, budget=500)
    shown = sp.simulate(known, truth, policy=policy, seed=1, budget=500)
    assert hidden.state is shown.state is State.DONE
    assert shown.plan == known.best(means)
    assert hidden.plan == pytest.approx(known.vector(shown.plan), abs=1e-6)
    if oracle.name_plan is not None:
        assert hidden.plan_name == shown.plan_name


def gap(problem, means):
    values = np.sort(problem.values(means))
    return values[1] - values[0] if problem.minimize else values[-1] - values[-2]


def test_the_bound_on_missing_plans_holds_for_most_seeds():
    def oracle(weights):
        return np.eye(40)[int(40 * weights[0] ** 2)]

    family = problems.Family(oracle, tuple(map(str, range(40))), "largest", None)
    mass = np.sqrt(np.arange(1, 41) / 40) - np.sqrt(np.arange(40) / 40)
    broken = 0
    for seed in range(100):
        found = drawn_plans(family, (np.zeros(40), np.ones(40)), 60, seed)
        missing = 1 - mass[found.plans.sum(axis=0) > 0].sum()
        broken += missing > found.chance_of_new_at_most(0.05)
    assert broken <= 10  # binomial(100, .05) exceeds this with probability .01


def search(oracle, lower, upper, **options):
    """The candidates of the family that this function solves."""
    family = problems.Family(oracle, tuple(map(str, range(len(lower)))), "largest", None)
    return drawn_plans(family, (np.array(lower, float), np.array(upper, float)), **options)


def top_one(weights):
    """The plan that takes the largest weight only."""
    return np.eye(len(weights))[int(np.argmax(weights))]


def answers(plans):
    """An oracle that gives these answers in turn."""
    rest = iter(plans)
    return lambda weights: next(rest)


def test_every_plan_that_can_win_is_found_and_counted():
    found = search(top_one, [0, 0, 0, 5], [1, 1, 1, 6], n_draws=10)
    assert found.plans.tolist() == [[0, 0, 0, 1]]
    found = search(top_one, [0, 0, 0], [1, 1, 1], n_draws=300)
    assert sorted(found.plans.tolist()) == [[0, 0, 1], [0, 1, 0], [1, 0, 0]]
    assert found.counts.sum() == found.n_draws == 300
    assert found.counts.min() > 60


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_the_tolerance_is_relative_to_the_largest_entry(scale):
    apart, together = 3 * SAME_PLAN, SAME_PLAN / 3
    plans = scale * np.array([[1, 0.5], [1, 0.5 + together], [1, 0.5 + apart]])
    assert search(answers(plans), [0, 0], [1, 1], n_draws=3).counts.tolist() == [2, 1]


@settings(deadline=None)
@given(
    st.lists(st.lists(st.integers(-3, 3), min_size=3, max_size=3), min_size=1, max_size=40), st.integers(0, 9)
)
def test_the_distinct_plans_are_those_of_a_pairwise_comparison(rows, noise_seed):
    noise = np.random.default_rng(noise_seed).uniform(-1, 1, (len(rows), 3)) * 1e-12
    shaken = [(np.array(row) + 0.1) * (1 + shake) for row, shake in zip(rows, noise, strict=True)]
    found = search(answers(shaken), [0, 0, 0], [1, 1, 1], n_draws=len(rows))
    distinct = [row for k, row in enumerate(rows) if row not in rows[:k]]
    assert found.plans == pytest.approx(np.array(distinct) + 0.1)
    assert found.counts.tolist() == [rows.count(row) for row in distinct]
