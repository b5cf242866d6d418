import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surepick import problems


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
