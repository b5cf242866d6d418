"""PolyALBA: sizes and designs by hand; errors at near ties, with a broken variant."""

import math

import numpy as np
import pytest

import probe_cases
import surepick as sp
from common import largest
from surepick.errors import ProblemError
from surepick.peers.linear_phases import PolyALBARun, g_optimal
from surepick.policies import PolyALBA
from surepick.simulation import Gaussian

PAIRS = np.array([[1.0, 1, 0, 0], [1, 0, 1, 0], [1, 0, 0, 1], [0, 1, 1, 0], [0, 1, 0, 1], [0, 0, 1, 1]])


def test_the_design_is_g_optimal():
    """By Kiefer and Wolfowitz the largest x'M^-1 x of the best design is the rank."""
    rows = np.random.default_rng(3).normal(size=(40, 5))
    shares = g_optimal(rows)
    values = np.einsum("kd,de,ke->k", rows, np.linalg.inv(rows.T @ (shares[:, None] * rows)), rows)
    assert shares.sum() == pytest.approx(1.0)
    assert 5.0 <= values.max() <= 5.0 * 1.03


def test_a_phase_is_as_long_as_its_resolution_asks():
    """N = 8 g log(2K/delta_q) / e^2, e = 1/2, delta_1 = 6 delta/pi^2; no plan is known worse than that."""
    run = PolyALBA(delta=0.1).start(largest(PAIRS, measure="plans"))
    counts = run.decide(np.random.default_rng(0)).counts
    least = 8 * 4 * math.log(2 * 6 * math.pi**2 / 6 / 0.1) / 0.25
    assert least <= counts.sum() <= 1.03 * least + len(PAIRS)
    inverse = np.linalg.inv(PAIRS.T @ (counts[:, None] * PAIRS))
    worst = np.einsum("kd,de,ke->k", PAIRS, inverse, PAIRS).max()
    assert 2 * math.exp(-(0.25**2) / (2 * worst)) <= 0.1 * 6 / math.pi**2 / 6 * (1 + 1e-9)


def test_nobody_is_dropped_in_the_first_stage_until_few_are_left():
    run = PolyALBA(delta=0.1).start(largest(PAIRS, measure="plans"))
    counts = run.decide(np.random.default_rng(0)).counts
    run.absorb(counts, counts * (PAIRS @ np.array([0.2, 0.1, 0.05, 0.0])))
    assert run.standing().remaining == tuple(range(6))  # all within 1/2 of the best
    run = PolyALBA(delta=0.1).start(largest(PAIRS, measure="plans"))
    run.absorb(counts, counts * (PAIRS @ np.array([3.0, 2.9, 0.05, 0.0])))
    assert run.standing().remaining == (0,)


def wrong_answers(n_runs, **broken):
    problem, means, wrong = (largest(PAIRS, measure="plans"), np.array([0.9, 0.5, 0.44, -0.6]), 0)
    for seed in range(n_runs):
        with pytest.MonkeyPatch.context() as patch:
            for name, value in broken.items():
                patch.setattr(PolyALBARun, name, value)
            outcome = sp.simulate(
                problem, Gaussian(means), policy=PolyALBA(delta=0.2), seed=seed, budget=10**12
            )
        wrong += outcome.plan != 0
    return wrong


def test_the_best_plan_is_found_and_a_broken_logarithm_is_seen():
    assert wrong_answers(60) <= 12 + 3 * math.sqrt(60 * 0.2 * 0.8)
    assert wrong_answers(60, _log_term=property(lambda run: 0.02)) > 12 + 3 * math.sqrt(60 * 0.2 * 0.8)


def test_plans_that_cannot_be_measured_are_refused():
    for problem in (largest(PAIRS, measure="plan arms"), probe_cases.transductive(3)[0]):
        with pytest.raises(ProblemError):
            PolyALBA().start(problem)
    with pytest.raises(ProblemError):
        PolyALBA().start(largest(PAIRS))
