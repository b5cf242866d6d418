import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surepick.design.allocation import optimal_allocation
from surepick.design.pairs import pair_allocation
from surepick.errors import ParameterError


def listed_pairs(plans):
    return np.array([(a - b) ** 2 for a, b in itertools.combinations(plans, 2)], dtype=float)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**31), st.integers(2, 25), st.integers(1, 12), st.booleans())
def test_pairs_need_not_be_listed(seed, n_plans, n_arms, binary):
    rng = np.random.default_rng(seed)
    plans = rng.integers(0, 2 if binary else 5, (n_plans, n_arms)).astype(float)
    plans[0], plans[1] = 0.0, 1.0
    found = pair_allocation(plans, tolerance=1e-7)
    listed = optimal_allocation(listed_pairs(plans), tolerance=1e-9)
    assert found.converged
    assert found.lower <= listed.value * (1 + 1e-9)
    assert found.value >= listed.lower * (1 - 1e-9)
    used = found.weights > 0
    values = (listed_pairs(plans[:, used]) / found.weights[used]).sum(axis=1)
    assert found.value == pytest.approx(values.max())


def test_the_dual_of_a_pair_allocation_certifies_its_lower_end():
    plans = np.random.default_rng(0).normal(size=(60, 10))
    found = pair_allocation(plans, tolerance=1e-6)
    rows = (plans[found.pairs[:, 0]] - plans[found.pairs[:, 1]]) ** 2
    assert np.sqrt(found.dual @ rows).sum() ** 2 == pytest.approx(found.lower, rel=1e-6)


@pytest.mark.parametrize("plans", [np.eye(60), np.diag(np.linspace(0.5, 2, 40))])
def test_many_pairs_may_bind_at_once(plans):
    assert pair_allocation(plans, tolerance=1e-4).converged


def test_adding_a_vector_to_all_plans_changes_nothing():
    plans = np.random.default_rng(1).integers(0, 4, (40, 6)).astype(float)
    plain = pair_allocation(plans, tolerance=1e-8)
    moved = pair_allocation(plans + 1e4, tolerance=1e-8)
    assert moved.value == pytest.approx(plain.value, rel=1e-6)


def test_a_single_plan_has_no_pairs():
    with pytest.raises(ParameterError) as caught:
        pair_allocation([[1.0, 2.0], [1.0, 2.0]])
    assert caught.value.field == "plans"
