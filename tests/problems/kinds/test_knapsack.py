from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surepick import problems
from surepick.errors import ProblemError

ITEMS = st.lists(
    st.tuples(st.integers(1, 9), st.floats(-3, 9, allow_nan=False, width=32)), min_size=1, max_size=4
)


def best_value_by_trying_all(weights, values, capacity):
    ranges = [range(capacity // w + 1) for w in weights]
    packings = (np.array(copies) for copies in product(*ranges))
    return max(values @ copies for copies in packings if weights @ copies <= capacity)


def refusal(*args, **options):
    with pytest.raises(ProblemError) as caught:
        problems.knapsack(*args, **options)
    return str(caught.value)


@settings(deadline=None)  # the first call compiles
@given(ITEMS, st.integers(1, 16))
def test_no_packing_is_worth_more_than_the_best(items, capacity):
    weights, values = (np.array(column) for column in zip(*items, strict=True))
    if weights.min() > capacity:
        return
    copies = problems.best_packing(weights, values, capacity)
    assert copies.min() >= 0
    assert weights @ copies <= capacity
    assert values @ copies == pytest.approx(best_value_by_trying_all(weights, values, capacity), abs=1e-9)


def test_items_of_no_worth_stay_out():
    assert problems.best_packing([2, 3], [-1.0, 0.0], 10).tolist() == [0, 0]


def test_ties_go_to_unused_room_and_then_to_the_lowest_index():
    assert problems.best_packing([2, 3], [4.0, 4.0], 3).tolist() == [1, 0]
    assert problems.best_packing([3, 3], [4.0, 4.0], 3).tolist() == [1, 0]


@pytest.mark.parametrize("unit", [1, 1000, 10**9])
def test_the_unit_of_weight_does_not_matter(unit):
    assert problems.best_packing([3 * unit, 4 * unit], [4.0, 5.0], 10 * unit + unit // 2).tolist() == [2, 1]


def test_every_candidate_fits_and_is_best_for_some_values():
    weights = np.array([12, 17, 23, 31])
    problem = problems.knapsack(weights, guess=weights, capacity=100, seed=3, noise=1)
    assert problem.n_plans > 2
    assert (problem.plans @ weights <= 100).all()
    assert (problem.plans == np.round(problem.plans)).all()


def test_the_problem_carries_names_noise_and_costs():
    problem = problems.knapsack(
        [4, 5], [4, 5], 10, item_names=["tea", "coffee"], noise=[2, 3], cost=[1, 7], spread=[1, 2]
    )
    assert problem.arm_names == ("tea", "coffee")
    assert problem.noise_scale.tolist() == [2, 3]
    assert problem.costs.tolist() == [1, 7]
    assert not problem.minimize


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (([4, 0], [4, 5], 10), "whole numbers of at least 1, got 0 for item 1"),
        (([4, 2.5], [4, 5], 10), "got 2.5 for item 1; choose a smaller unit"),
        (([4, np.nan], [4, 5], 10), "weights must be finite, got nan in entry 1"),
        (([4, 5], [4, 5, 6], 10), "guess must have one number for each of the 2 items, got 3"),
        (([4, 5], [4, np.inf], 10), "guess must be finite, got inf in entry 1"),
        (([4, 5], [4, 5], 10.5), "capacity must be a whole number, got 10.5"),
        (([4, 5], [4, 5], 3), "no item fits: the capacity is 3, the lightest weight 4"),
        (([4, 5], [4, 5], 10**10), "too fine to solve exactly; choose a larger unit"),
        (([], [], 3), "weights must be a list of numbers, got shape (0,)"),
    ],
)
def test_data_that_make_no_knapsack_are_refused(arguments, says):
    assert says in refusal(*arguments)


def test_the_papers_instances_follow_its_settings():
    for seed in range(20):
        instance = problems.knapsack_instance(7, seed)
        assert instance.problem.n_arms == instance.means.size == 7
        assert instance.means.min() >= 0
        assert instance.means.max() <= 55
        assert instance.problem.noise_scale.tolist() == [1.0] * 7


def test_the_papers_instances_depend_on_the_seed_alone():
    first, again, other = (problems.knapsack_instance(5, seed) for seed in (1, 1, 2))
    assert (first.means == again.means).all()
    assert (first.problem.plans == again.problem.plans).all()
    assert (first.means != other.means).all()
    assert "5 items, seed 1" in first.title
