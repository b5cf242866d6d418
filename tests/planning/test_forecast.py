import numpy as np
import pytest

import surepick as sp
from surepick.errors import ParameterError

PAIR = [[1, 0], [0, 1]]


def test_without_a_spread_the_forecast_is_the_limit():
    problem = sp.Problem(PAIR, noise=1, goal="largest")
    found = sp.forecast(problem, [1.0, 0.0], delta=0.1)
    expected = sp.limit(problem, [1.0, 0.0], delta=0.1).measurements()
    assert found.measurements == pytest.approx([expected], rel=0.02)


def test_a_wider_guess_makes_a_wider_forecast():
    problem = sp.Problem(PAIR, noise=1, goal="largest")
    near, far = (sp.forecast(problem, [1.0, 0.0], spread, n_worlds=50) for spread in (0.1, 0.45))
    assert near.quantile(0.9) / near.quantile(0.1) < far.quantile(0.9) / far.quantile(0.1)


def test_ties_make_the_forecast_infinite_and_it_says_so():
    found = sp.forecast(sp.Problem(PAIR, noise=1, goal="largest"), [1.0, 1.0])
    assert found.quantile(0.5) == np.inf
    assert "inf" in found.explanation


def test_the_measurements_go_to_arms_that_matter():
    problem = sp.Problem([[1, 0, 5], [0, 1, 5]], noise=1, goal="largest")
    assert sp.forecast(problem, [1.0, 0.0, 3.0], 0.1).arm_shares == pytest.approx([0.5, 0.5, 0.0], abs=1e-3)


def test_the_same_seed_gives_the_same_forecast():
    first, again = (
        sp.forecast(sp.Problem(PAIR, noise=1, goal="largest"), [1.0, 0.0], 0.3, seed=4) for _ in range(2)
    )
    assert (first.measurements == again.measurements).all()


def test_no_worlds_are_refused():
    with pytest.raises(ParameterError) as caught:
        sp.forecast(sp.Problem(PAIR, noise=1, goal="largest"), [1.0, 0.0], n_worlds=0)
    assert caught.value.field == "n_worlds"
