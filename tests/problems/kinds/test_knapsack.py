"""Choices, packings and portfolios: no plan is better, by trying all or by the textbook."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surepick import problems

ITEMS = st.lists(
    st.tuples(st.integers(1, 9), st.floats(-3, 9, allow_nan=False, width=32), st.integers(0, 2)),
    min_size=1,
    max_size=4,
)


@settings(deadline=None)  # the first call compiles
@given(ITEMS, st.integers(1, 16), st.booleans())
def test_no_packing_is_worth_more_than_the_best(items, capacity, limited):
    weights, values, copies = (np.array(column) for column in zip(*items, strict=True))
    most = np.minimum(copies, capacity // weights) if limited else capacity // weights
    if not most.any():
        return
    plan = problems.knapsack_family(weights, capacity, copies=copies if limited else None).best(values)
    assert (plan >= 0).all()
    assert (plan <= most).all()
    assert weights @ plan <= capacity
    packings = (np.array(x) for x in product(*(range(m + 1) for m in most)))
    best = max(values @ x for x in packings if weights @ x <= capacity)
    assert values @ plan == pytest.approx(best, abs=1e-9)


@pytest.mark.parametrize(
    ("weights", "values", "capacity", "wanted"),
    [
        ([2, 3], [4.0, 4.0], 3, [1, 0]),  # ties go to unused room
        ([3, 3], [4.0, 4.0], 3, [1, 0]),  # and then to the lowest index
        *(([3 * u, 4 * u], [4.0, 5.0], 10 * u + u // 2, [2, 1]) for u in (1, 1000, 10**9)),
    ],
)
def test_ties_and_units_of_weight(weights, values, capacity, wanted):
    assert problems.knapsack_family(weights, capacity).best(values).tolist() == wanted


@given(st.lists(st.floats(-9, 9, width=32), min_size=3, max_size=7), st.integers(1, 2), st.booleans())
def test_the_best_k_are_the_k_largest(means, k, minimize):
    names = [f"a{s}" for s in range(len(means))]
    family = problems.top_k_family(names, k, goal="smallest" if minimize else "largest")
    problem = problems.top_k(names, k, goal="smallest" if minimize else "largest", noise=1)
    assert problem.n_plans == family.n_plans
    chosen = np.sort(means)[:k] if minimize else np.sort(means)[-k:]
    values = problem.values(means)
    assert np.array(means) @ family.best(means) == pytest.approx(chosen.sum())
    assert (values.min() if minimize else values.max()) == pytest.approx(chosen.sum())


@settings(deadline=None, max_examples=30)
@given(st.lists(st.floats(-2, 2, width=32), min_size=2, max_size=5), st.floats(0.3, 1.0))
def test_the_best_portfolio_fills_the_best_assets_first(returns, most):
    if most * len(returns) < 1:
        return
    family = problems.portfolio_family([f"a{s}" for s in range(len(returns))], upper=most)
    plan, left, value = family.best(returns), 1.0, 0.0
    for r in sorted(returns, reverse=True):
        value += r * min(most, left)
        left -= min(most, left)
    assert plan.sum() == pytest.approx(1)
    assert np.array(returns) @ plan == pytest.approx(value, abs=1e-6)


def test_groups_limit_sums_of_assets():
    family = problems.portfolio_family(["a", "b", "c"], budget=100, groups={"risky": (["a", "b"], 30)})
    assert family.best([3.0, 2.0, 1.0]).tolist() == [30, 0, 70]
