import math

import numpy as np
import pytest

import surepick as sp
from common import largest
from surepick.policies import UGapE
from surepick.simulation import Gaussian, State

MEANS = np.array([0.5, 0.45, 0.1, 0.3])
COUNTS = np.array([10, 4, 6, 5])
SCALE = np.array([1.0, 0.5, 2.0, 1.0])


def test_names_and_measures_as_the_box_of_the_paper():
    """B_k = max over i other than k of U_i, less L_k, from scratch."""
    run = UGapE(delta=0.1).start(sp.Problem(np.eye(4), noise=SCALE, goal="largest"))
    run.absorb(COUNTS, COUNTS * MEANS)
    beta = SCALE * np.sqrt(2 * math.log(4 * 4 * 25**3 / 0.1) / COUNTS)
    upper, lower = MEANS + beta, MEANS - beta
    costs = [max(np.delete(upper, k)) - lower[k] for k in range(4)]
    named = int(np.argmin(costs))
    rival = max((i for i in range(4) if i != named), key=lambda i: upper[i])
    assert run.bounds() == (named, rival, pytest.approx(costs[named]))
    assert np.flatnonzero(run.decide(None).counts).tolist() == [named if beta[named] > beta[rival] else rival]
    assert run.standing().rival == rival


def test_two_arms_stop_at_the_first_count_whose_radii_part():
    """Without noise, each of two arms needs n with 2 sqrt(2 log(8 (2n)^3 / delta) / n) <= gap."""
    outcome = sp.simulate(largest(np.eye(2)), Gaussian([1.0, 0.0], scale=0.0), policy=UGapE(0.05))
    parted = [n for n in range(1, 400) if 2 * math.sqrt(2 * math.log(8 * (2 * n) ** 3 / 0.05) / n) <= 1]
    assert outcome.plan == 0
    assert abs(outcome.n_measured - 2 * parted[0]) <= 1


def test_errs_no_more_than_delta_and_epsilon_ends_ties():
    problem = largest(np.eye(3))
    wrong = sum(
        sp.simulate(problem, Gaussian([0.8, 0.0, 0.0]), policy=UGapE(0.2), seed=s).plan != 0
        for s in range(20)
    )
    assert wrong <= 4
    tied = sp.simulate(problem, Gaussian([0.3, 0.3, 0.3]), policy=UGapE(0.1, epsilon=0.8), seed=1)
    assert tied.state is State.CONFIDENT
