import numpy as np
import pytest

import surepick as sp
from surepick.simulation.seeds import round_rng


def test_measures_the_least_measured_arm_of_the_symmetric_difference():
    plans = np.array([[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0]], dtype=float)
    for draws in ("all", "winner"):
        run = sp.TSExplore(draws=draws).start(sp.Problem(plans, noise_scale=0.5))
        counts = np.array([9, 5, 7, 6])
        run.absorb(counts, counts * np.array([0.9, 0.8, 0.3, 0.2]))
        decision = run.decide(round_rng(0, 1))
        rival = run.standing().rival
        differ = plans[0] != plans[rival]
        assert np.flatnonzero(decision.counts).tolist() == [int(np.argmin(np.where(differ, counts, 99)))]


def test_refuses_other_numbers_than_zero_and_one():
    with pytest.raises(sp.SurepickError, match=r"zeros and ones, got 2; use GenTSExplore"):
        sp.TSExplore().start(sp.Problem([[1.0, 0.0], [0.0, 2.0]], noise_scale=1))


def test_finds_the_best_set_of_coins():
    problem = sp.Problem([[1, 1, 0], [0, 1, 1], [1, 0, 1]], noise_scale=0.5)
    for seed in range(20):
        assert sp.simulate(problem, sp.TSExplore(), sp.Bernoulli([0.9, 0.6, 0.1]), seed=seed).plan == 0
