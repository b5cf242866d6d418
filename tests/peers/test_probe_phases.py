"""RAGE and LinGapE in their own setting: vectors are measured, plans are chosen."""

import numpy as np
import pytest

import surepick as sp
from common import refuses
from surepick.errors import ParameterError
from surepick.experiments import probe_cases
from surepick.policies import RAGE, LinGapE
from surepick.simulation import Gaussian

CASES = {
    "soare": lambda: probe_cases.soare(5, 0.3),
    "semi": lambda: probe_cases.top_k(5, 2, 3, "semi"),
    "transductive": lambda: probe_cases.transductive(3, 0.5),
}


@pytest.mark.parametrize("case", CASES)
def test_rage_finds_the_best_plan_and_is_far_from_the_limit(case):
    problem, means = CASES[case]()
    outcome = sp.simulate(problem, Gaussian(means), policy=RAGE(variant="authors"), seed=1)
    assert outcome.plan == problem.best(means)
    assert outcome.n_measured > 2 * sp.limit(problem, means).measurements
    assert outcome.counts.shape == (problem.n_probes,)


def test_the_published_constants_are_refused_on_probes():
    problem, _ = probe_cases.soare(3, 0.5)
    with refuses("variant", ParameterError):
        RAGE().start(problem)


def test_a_phase_drops_nothing_that_it_did_not_read():
    problem, means = probe_cases.soare(3, 0.5)
    run = RAGE(variant="authors").start(problem)
    counts = np.array([10**6, 0, 0, 0])  # the first vector alone: no difference is read
    run.absorb(counts, counts * (problem.probes.rows @ means))
    assert run.standing().remaining == (0, 1, 2, 3)


def test_lin_gap_e_measures_the_vectors_that_the_closest_pair_needs():
    problem, means = probe_cases.soare(4, 0.4)
    outcome = sp.simulate(problem, Gaussian(means), policy=LinGapE(norm_bound=2.0), seed=1)
    assert outcome.plan == problem.best(means)
    assert outcome.counts[1] > outcome.counts[2]  # across the best, where its neighbour differs
    assert outcome.standing.radius <= outcome.standing.gap
