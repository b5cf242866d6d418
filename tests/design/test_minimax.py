"""The minimax design comes near to the certified one, and whole counts keep what it is for."""

import numpy as np
import pytest
from scipy import sparse

import probe_cases
import surepick as sp
from common import largest
from surepick.design.allocation import optimal_allocation
from surepick.design.counts import cover, mixed_counts
from surepick.design.grid import on_grid, rounded
from surepick.design.minimax import minimax, own_arm_shares
from surepick.inference.contrasts import Contrasts, arm_probes, readings_of, show
from surepick.simulation import Gaussian


def of_first(problem):
    """The readings of a problem, and the contrasts of its first plan with the others."""
    readings = readings_of(arm_probes(problem))
    plans = readings.coordinates(problem.plans)
    return readings, plans[0] - plans[1:]


def designed(readings, targets, **effort):
    start = np.full(len(readings.costs), 1 / len(readings.costs))
    found = minimax(readings, targets, readings.costs, start=start, **effort)
    return found.shares, found.dual


def test_shares_of_single_arms_are_near_the_optimum():
    rng = np.random.default_rng(3)
    problem = largest(rng.normal(size=(40, 7)) * (rng.random((40, 7)) < 0.5))
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
    certified = minimax(readings, targets, readings.costs, tolerance=0.01)
    assert certified.lower * 0.999 <= value <= 1.1 * certified.upper


@pytest.mark.parametrize("feedback", ["full", "semi"])
@pytest.mark.parametrize("n_rivals", [2, 14])
def test_a_cover_shows_every_contrast(feedback, n_rivals):
    problem, _ = probe_cases.top_k(6, 2, 0, feedback)
    readings, targets = of_first(problem)
    contrasts = Contrasts(targets[:n_rivals])
    shares = np.full(15, 1 / 15)
    chosen = cover(readings, shares, readings.costs, contrasts.dense(), contrasts.support())
    assert chosen.sum() <= 6
    uses = chosen.astype(np.int64)
    _, variance = show(readings, contrasts, uses, np.zeros(problem.probes.n_readings), 1.0)
    assert np.isfinite(variance).all()


def test_whole_counts_of_mixed_readings_spend_the_budget_and_beat_rounding():
    problem, _ = probe_cases.sphere(40, 5, 3)
    readings, targets = of_first(problem)
    shares = np.random.default_rng(0).dirichlet(np.ones(40))
    counts = mixed_counts(readings, shares, np.ones(40), targets, 20.0)
    assert counts.sum() == 20
    contrasts = Contrasts(targets)
    ideal = readings.gap_variance(readings.matrix(20 * shares), contrasts).sum()
    assert readings.gap_variance(readings.matrix(counts), contrasts).sum() < 1.6 * ideal


def test_numbers_on_the_grid_do_not_depend_on_their_last_bits():
    values = np.random.default_rng(1).normal(size=1000)
    noisy = values * (1 + 4e-16)
    assert np.array_equal(on_grid(values, 36), on_grid(noisy, 36))
    assert np.array_equal(rounded(values, 24), rounded(noisy, 24))


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("n", [2, 5, 40])
def test_rivals_with_arms_of_their_own_have_a_closed_form(n, kind):
    rng = np.random.default_rng(n)
    squares = np.column_stack([rng.uniform(0.1, 4, n), np.diag(rng.uniform(0.1, 4, n))])
    priority, price = rng.uniform(0.5, 2, n), rng.uniform(0.5, 2, n + 1)
    shares, dual = own_arm_shares(kind(squares), priority, price)
    weighted = squares * priority[:, None] * price
    assert shares.sum() == pytest.approx(1)
    optimum = optimal_allocation(weighted, tolerance=1e-9).value
    assert (weighted / shares).sum(axis=1).max() == pytest.approx(optimum, rel=1e-6)
    assert np.sqrt(dual @ weighted).sum() ** 2 == pytest.approx(optimum, rel=1e-6)  # a saddle point


@pytest.mark.parametrize(
    "squares", [[[1, 1, 0], [1, 1, 1]], [[1, 1, 0, 0], [0, 0, 1, 1]], [[1, 1, 0], [1, 1, 0]]]
)
def test_contrasts_without_arms_of_their_own_have_none(squares):
    squares = np.array(squares, dtype=float)
    assert own_arm_shares(squares, np.ones(2), np.ones(squares.shape[1])) is None


def test_many_single_arms_take_few_times_the_limit():
    means = 15 - np.abs(np.random.default_rng(1).normal(0, 3, 3249))
    means[0] = 15.5
    problem = sp.problems.choice([f"a{s}" for s in range(3249)], noise=1.0, goal="largest")
    outcome = sp.simulate(problem, Gaussian(means - 15), policy=sp.BetGapE(), seed=2)
    squares = sparse.hstack([np.ones((3248, 1)), sparse.eye_array(3248)]).tocsr()
    gaps = 15.5 - means[1:]
    shares, _ = own_arm_shares(squares, 1 / gaps**2, np.ones(3249))
    limit = 2 * ((1 / shares[0] + 1 / shares[1:]) / gaps**2).max() * 2.65  # kl(.05, .95)
    assert outcome.plan == 0
    assert outcome.n_measured < 5 * limit
