"""GCBPE: a set that shows all plans, the radius by hand, and that ties are hardly ever told apart."""

import math

import numpy as np
import pytest
from scipy.stats import binom

import surepick as sp
from common import largest
from surepick.experiments import probe_cases
from surepick.peers.linear import readings_of
from surepick.peers.observer import GCBPE, ObserverRun, observer_set

IDLE = np.random.default_rng(0)


@pytest.mark.parametrize(
    "problem",
    [
        probe_cases.top_k(6, 3, 0, "full")[0],
        probe_cases.top_k(6, 3, 0, "semi")[0],
        probe_cases.soare(4, 0.3)[0],
    ],
    ids=["totals", "plays", "vectors"],
)
def test_the_set_spans_all_coordinates_and_no_way_of_it_is_left_out_without_loss(problem):
    readings = readings_of(problem, "GCBPE").shown
    chosen, rank = observer_set(readings), readings.rows.shape[1]
    rows = readings.rows[np.isin(readings.owner, chosen)]
    assert np.linalg.matrix_rank(rows) == rank
    for way in chosen if len(chosen) == rank else ():
        assert np.linalg.matrix_rank(readings.rows[np.isin(readings.owner, np.setdiff1d(chosen, way))]) < rank


def test_the_radius_is_that_of_independent_arms():
    """Three arms of noise 2: S = 4 I, so that tr S = 12, tr S^2 = 48, |S| = 4; plans have norm sqrt(2/3)."""
    run = GCBPE(0.1).start(sp.Problem(np.eye(3), noise=2, goal="largest"))
    x = math.log(2 * 9 / 0.1)
    assert run.error(3) == pytest.approx(math.sqrt((12 + 2 * math.sqrt(48 * x) + 8 * x) / 3))
    counts = run.decide(IDLE).counts
    assert counts.tolist() == [1, 1, 1]
    run.absorb(3 * counts, 3 * np.array([1.0, 0.5, 0.0]))
    found = run.standing()
    assert (found.leader, found.rival, found.gap) == (0, 1, pytest.approx(0.5))
    assert found.radius == pytest.approx(2 * math.sqrt(2 / 3) * run.error(3))


@pytest.mark.parametrize(("narrower", "holds"), [(1.0, True), (8.0, False)], ids=["proved", "too narrow"])
def test_plans_that_tie_are_hardly_ever_told_apart(narrower, holds, monkeypatch):
    right = ObserverRun.error
    monkeypatch.setattr(ObserverRun, "error", lambda self, n: right(self, n) / narrower)
    problem, runs, delta = largest(np.eye(2)), 60, 0.3
    ended = [
        sp.simulate(problem, [0.0, 1e-9], policy=GCBPE(delta), seed=seed, budget=400).plan == 0
        for seed in range(runs)
    ]
    assert (binom.sf(sum(ended) - 1, runs, delta / 2) > 1e-4) == holds
