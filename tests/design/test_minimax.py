"""The minimax design comes near to the certified one, and whole counts keep what it is for."""

import numpy as np
import pytest

import surepick as sp
from surepick.design.allocation import optimal_allocation
from surepick.design.counts import cover, mixed_counts
from surepick.design.grid import on_grid, rounded
from surepick.design.minimax import minimax
from surepick.experiments import probe_cases
from surepick.inference.contrasts import Contrasts, arm_probes, readings_of


def of_first(problem):
    """The readings of a problem, and the contrasts of its first plan with the others."""
    readings = readings_of(arm_probes(problem))
    plans = readings.coordinates(problem.plans)
    return readings, plans[0] - plans[1:]


def designed(readings, targets, **effort):
    start = np.full(len(readings.costs), 1 / len(readings.costs))
    found = minimax(readings.information, targets, readings.costs, start=start, **effort)
    return found.shares, found.dual


def test_shares_of_single_arms_are_near_the_optimum():
    rng = np.random.default_rng(3)
    problem = sp.Problem(rng.normal(size=(40, 7)) * (rng.random((40, 7)) < 0.5), noise=1, goal="largest")
    readings, targets = of_first(problem)
    shares, dual = designed(readings, targets, most_steps=200, tolerance=0.01)
    assert (shares.sum(), dual.sum()) == (pytest.approx(1), pytest.approx(1))
    worst = ((targets**2) @ (1 / np.maximum(shares, 1e-12))).max()
    assert worst <= 1.02 * optimal_allocation(targets**2).value


@pytest.mark.parametrize(
    "problem",
    [probe_cases.sphere(120, 8, 4)[0], probe_cases.top_k(8, 3, 1, "semi")[0]],
    ids=["dense", "semi"],
)
def test_shares_of_probes_are_near_the_certified_optimum(problem):
    readings, targets = of_first(problem)
    shares, _ = designed(readings, targets, most_steps=120, tolerance=0.02)
    value = readings.gap_variance(readings.matrix(shares / readings.costs), Contrasts(targets)).max()
    certified = minimax(readings.information, targets, readings.costs, tolerance=0.01)
    assert certified.lower * 0.999 <= value <= 1.1 * certified.upper


@pytest.mark.parametrize("feedback", ["full", "semi"])
@pytest.mark.parametrize("n_rivals", [2, 14])
def test_a_cover_shows_every_contrast(feedback, n_rivals):
    problem, _ = probe_cases.top_k(6, 2, 0, feedback)
    readings, targets = of_first(problem)
    contrasts = Contrasts(targets[:n_rivals])
    shares = np.full(15, 1 / 15)
    chosen = cover(readings.information, shares, readings.costs, contrasts.dense(), contrasts.support())
    assert chosen.sum() <= 6
    uses = chosen.astype(np.int64)
    _, variance = readings.show(contrasts, uses, np.zeros(problem.probes.n_readings), 1.0)
    assert np.isfinite(variance).all()


def test_whole_counts_of_mixed_readings_spend_the_budget_and_beat_rounding():
    problem, _ = probe_cases.sphere(40, 5, 3)
    readings, targets = of_first(problem)
    shares = np.random.default_rng(0).dirichlet(np.ones(40))
    counts = mixed_counts(readings.information, shares, np.ones(40), targets, 20.0)
    assert counts.sum() == 20
    contrasts = Contrasts(targets)
    ideal = readings.gap_variance(readings.matrix(20 * shares), contrasts).sum()
    assert readings.gap_variance(readings.matrix(counts), contrasts).sum() < 1.6 * ideal


def test_numbers_on_the_grid_do_not_depend_on_their_last_bits():
    values = np.random.default_rng(1).normal(size=1000)
    noisy = values * (1 + 4e-16)
    assert np.array_equal(on_grid(values, 36), on_grid(noisy, 36))
    assert np.array_equal(rounded(values, 24), rounded(noisy, 24))
