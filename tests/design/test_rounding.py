import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common import refuses
from surepick.design.counts import largest_remainders, round_allocation
from surepick.errors import ParameterError

weight_lists = st.lists(st.just(0.0) | st.floats(1e-12, 1), min_size=1, max_size=30).filter(
    lambda w: sum(w) > 1e-3
)


@settings(max_examples=200, deadline=None)
@given(weight_lists, st.integers(0, 10**9))
def test_rounding_is_an_efficient_apportionment(weights, extra):
    weights = np.array(weights) / sum(weights)
    support = weights > 0
    n = int(support.sum()) + extra
    counts = round_allocation(weights, n)
    assert counts.sum() == n
    assert (counts[~support] == 0).all()
    assert (counts[support] >= 1).all()
    w, c = weights[support], counts[support]
    # Pukelsheim & Rieder: exactly the roundings with max (n_s - 1)/w_s <= min n_s/w_s
    assert ((c - 1) / w).max() <= (c / w).min() * (1 + 1e-9)


def test_rounding_ties_go_to_the_lowest_index():
    assert round_allocation([1, 1, 1], 4).tolist() == [2, 1, 1]


def test_too_few_measurements_cannot_be_rounded():
    with refuses("n", ParameterError):
        round_allocation([0.2, 0.3, 0.5], 2)


@pytest.mark.parametrize(
    ("shares", "n", "wanted"), [([0.5, 0.5], 3, [2, 1]), ([1.0, 0.0], 2, [2, 0]), ([0.2, 0.8], 5, [1, 4])]
)
def test_largest_remainders_add_up(shares, n, wanted):
    assert largest_remainders(np.array(shares), n).tolist() == wanted
