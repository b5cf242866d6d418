from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surepick import problems

ITEMS = st.lists(
    st.tuples(st.integers(1, 9), st.floats(-3, 9, allow_nan=False, width=32)), min_size=1, max_size=4
)


def packing(weights, values, capacity):
    return problems.knapsack_family(weights, capacity).best(values)


def best_value_by_trying_all(weights, values, capacity):
    ranges = [range(capacity // w + 1) for w in weights]
    packings = (np.array(copies) for copies in product(*ranges))
    return max(values @ copies for copies in packings if weights @ copies <= capacity)


@settings(deadline=None)  # the first call compiles
@given(ITEMS, st.integers(1, 16))
def test_no_packing_is_worth_more_than_the_best(items, capacity):
    weights, values = (np.array(column) for column in zip(*items, strict=True))
    if weights.min() > capacity:
        return
    copies = packing(weights, values, capacity)
    assert copies.min() >= 0
    assert weights @ copies <= capacity
    assert values @ copies == pytest.approx(best_value_by_trying_all(weights, values, capacity), abs=1e-9)


def test_ties_go_to_unused_room_and_then_to_the_lowest_index():
    assert packing([2, 3], [4.0, 4.0], 3).tolist() == [1, 0]
    assert packing([3, 3], [4.0, 4.0], 3).tolist() == [1, 0]


@pytest.mark.parametrize("unit", [1, 1000, 10**9])
def test_the_unit_of_weight_does_not_matter(unit):
    assert packing([3 * unit, 4 * unit], [4.0, 5.0], 10 * unit + unit // 2).tolist() == [2, 1]
