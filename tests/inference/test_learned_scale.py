"""Gaussian readings of unknown scale: the factor is fair for every scale below the bound; bounds hold."""

import numpy as np
import pytest
from scipy import stats

from surepick.inference.learned_scale import MOST_BET, Scatter, kappa, scale_bounds

NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(80)


def largest_excess(shrink):
    """The largest log E F - w (mu - c) over weights, means and scales up to the bound; k = kappa * shrink."""
    largest = -np.inf
    for bet in np.linspace(0.05, MOST_BET, 12):  # w U
        k = shrink * float(kappa(np.array(bet**2)))
        for z in np.linspace(0.02, 1.0, 12) * bet:  # w sigma
            for m in np.linspace(-1.5, 1.5, 31):  # w (mu - c)
                x = m + z * NODES
                mean = (WEIGHTS @ np.exp(x - k * x * x / 2)) / WEIGHTS.sum()
                largest = max(largest, float(np.log(mean)) - m)
    return largest


def test_the_factor_is_fair_for_every_scale_below_the_bound():
    """The control: without kappa, as if the batch's own scatter were the variance, it is not."""
    assert largest_excess(1.0) <= 1e-9
    assert largest_excess(1.0 / float(kappa(np.array(MOST_BET**2)))) > 0.05


@pytest.mark.parametrize(("shrink", "holds"), [(1.0, True), (0.75, False)])
def test_bounds_hold_at_all_times_at_once(shrink, holds):
    """The control: bounds that are too small by a quarter are refuted."""
    x = np.random.default_rng(0).standard_normal((2000, 100)) * 3.0 + 50.0
    n = np.arange(1, 101)
    squares = np.cumsum(x * x, axis=1) - np.cumsum(x, axis=1) ** 2 / n
    bounds = np.array([scale_bounds(squares[:, i], np.full(len(x), i), 0.2) for i in range(2, 100, 7)])
    missed = int((shrink * bounds < 3.0).any(axis=0).sum())
    p = stats.binomtest(missed, len(x), 0.2, alternative="greater").pvalue
    assert bool(p > 1e-4) is holds


def test_a_variance_is_learned_only_where_the_bound_is_no_better():
    scatter = Scatter(np.array([8.0, 8.0]), bound=np.array([3.0, 3.0]), scale=np.ones(2))
    small, large = scatter.variance(np.array([8, 8]), largest_bet=np.array([0.1, 8.0]))
    assert small == pytest.approx(1 / 8, rel=0.01)  # the scatter
    assert large == 9 / 8  # the bound
