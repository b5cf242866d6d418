import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surepick import problems
from surepick.problems.candidates import SAME_PLAN, _DistinctPlans, drawn_plans


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


def test_plans_come_in_the_order_of_their_first_appearance():
    found = search(answers([[2, 0], [1, 0], [2, 0], [0, 3]]), [0, 0], [1, 1], n_draws=4)
    assert found.plans.tolist() == [[2, 0], [1, 0], [0, 3]]
    assert found.counts.tolist() == [2, 1, 1]
    assert found.chance_of_new == 0.5  # the share of draws whose plan was seen once


def test_draws_lie_in_the_box_and_fill_it():
    seen = []
    lower, upper = np.array([0.0, -3.0, 7.0]), np.array([1.0, -1.0, 7.0])
    search(lambda w: seen.append(w) or w, lower, upper, n_draws=500)
    draws = np.array(seen)
    assert (draws >= lower).all()
    assert (draws <= upper).all()
    assert np.abs(draws.mean(axis=0) - [0.5, -2.0, 7.0]).max() < 0.1


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
    found = _DistinctPlans()
    fresh = [
        found.add(np.array(row, dtype=float) * (1 + shake)) for row, shake in zip(rows, noise, strict=True)
    ]
    assert fresh == [row not in rows[:k] for k, row in enumerate(rows)]
    assert sum(found.counts) == len(rows)
