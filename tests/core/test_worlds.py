"""Eight of ten worlds are the same ones in a forecast, in advice and on the dashboard."""

from __future__ import annotations

import numpy as np
import pytest

from surepick.core.evidence import quantile
from surepick.views.forecast import over_worlds


@pytest.mark.parametrize("n_worlds", [1, 2, 10, 30, 70])
@pytest.mark.parametrize("share", [0.1, 0.3, 0.5, 0.7, 0.9, 1.0])
def test_a_quantile_is_enough_in_its_share_of_the_worlds_and_the_next_smaller_one_is_not(
    n_worlds: int, share: float
) -> None:
    values = np.random.default_rng(0).permutation(n_worlds).astype(float)
    found = quantile(values, share)
    assert np.mean(values <= found) >= share - 1e-12
    assert np.mean(values < found) < share


def test_worlds_without_an_end_count_as_the_longest() -> None:
    left = np.array([np.inf, 4.0, 2.0])
    shown = over_worlds(left)
    assert (shown.low, shown.median, shown.high) == (2.0, 4.0, None)
