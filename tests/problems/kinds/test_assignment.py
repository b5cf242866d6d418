"""One option for every slot within a budget: no plan within it is better, and all are listed."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import surepick as sp
from common import refuses
from surepick import problems
from surepick.errors import ProblemError
from surepick.problems.family import family_from

PRICES = {"mail": {"small": 1, "large": 3}, "chat": {"small": 1, "large": 3}}


@st.composite
def cases(draw):
    n_slots, n_options = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    price = st.sampled_from([0.0, 0.1, 0.2, 0.3, 1.0, 2.0, 3.0, np.nan])
    worth = st.floats(-5, 5, width=32)
    size = n_slots * n_options
    prices = np.array(draw(st.lists(price, min_size=size, max_size=size))).reshape(n_slots, n_options)
    worths = np.array(draw(st.lists(worth, min_size=size, max_size=size))).reshape(n_slots, n_options)
    return prices, worths, draw(st.sampled_from([0.3, 1.0, 3.0, 6.0]))


@settings(deadline=None, max_examples=150)
@given(cases(), st.booleans())
def test_no_assignment_within_the_budget_is_better_and_all_are_listed(case, minimize):
    prices, worths, budget = case
    goal = "smallest" if minimize else "largest"
    slots = [np.flatnonzero(~np.isnan(row)) for row in prices]
    plans = [
        columns
        for columns in product(*slots)
        if sum(prices[k, j] for k, j in enumerate(columns)) <= budget + 1e-9
    ]
    if not plans or not all(map(len, slots)):
        with pytest.raises(ProblemError):
            problems.assign_family(prices, budget, goal=goal)
        return
    family = problems.assign_family(prices, budget, goal=goal)
    worth = worths[~np.isnan(prices)]
    totals = [sum(worths[k, j] for k, j in enumerate(columns)) for columns in plans]
    best = family.best(worth)
    assert worth @ best == pytest.approx((min if minimize else max)(totals))
    assert prices[~np.isnan(prices)] @ best <= budget + 1e-9
    assert sorted(worth @ plan for plan in family.listed()) == pytest.approx(sorted(totals))
    assert len(plans) <= family.n_plans


@pytest.mark.parametrize("prices", [PRICES, pd.DataFrame(PRICES).T, [[1, 3], [1, 3]]])
def test_prices_come_by_name_or_as_a_table(prices):
    problem = problems.assign(prices, 4, goal="largest", noise=1)
    assert problem.n_plans == 3
    if not isinstance(prices, list):
        assert problem.arm_names == ("mail: small", "mail: large", "chat: small", "chat: large")


def test_many_assignments_stay_behind_an_oracle_and_are_decided():
    rng = np.random.default_rng(0)
    prices = rng.integers(1, 9, (8, 4)).astype(float)
    problem = problems.assign(prices, 30, goal="largest", noise=0.2)
    assert not problem.is_listed
    worth = rng.normal(size=problem.n_arms)
    outcome = sp.simulate(problem, worth, epsilon=0.3, seed=0)
    found = np.array(outcome.plan)
    assert found @ worth >= problem.best_plan(worth) @ worth - 0.3
    assert found @ prices.ravel() <= 30
    again = family_from(problem.recipe())
    assert again.best(worth).tolist() == problem.best_plan(worth).tolist()


@pytest.mark.parametrize(
    ("prices", "budget", "field"),
    [
        (PRICES, 1, "budget"),
        (PRICES, np.nan, "budget"),
        ([[np.nan], [1]], 4, "prices"),
        ([[-1, 1]], 4, "prices"),
        ([1, 2], 4, "prices"),
        (PRICES, 2, None),  # one plan only
    ],
)
def test_what_makes_no_choice_is_refused(prices, budget, field):
    with refuses(field, ProblemError):
        problems.assign(prices, budget, goal="largest")
