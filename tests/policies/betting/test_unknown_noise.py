"""BetGapE where the noise is unknown: bets on how equal replicates of a batch agree, with controls."""

import numpy as np
import pytest
from scipy.stats import binom

import surepick as sp
from common import largest, refuses
from surepick.core.run import Stop
from surepick.errors import ProblemError
from surepick.inference.factors import Student, SubGaussian
from surepick.policies import RAGE
from surepick.simulation import Gaussian
from surepick.simulation.environments import Readings
from surepick.testing import Tape

SHARED = 0.2 * np.eye(4) + 0.8  # of the readings of one use


def worlds(means=(0.0, 0.0, 0.0, 0.0), shared=SHARED):
    """Four arms in one use: the problem that knows nothing of the noise, and the world with this noise."""
    names = ["a", "b", "c", "d"]
    known = largest(np.eye(4), arms=names, measure={"all": sp.Probe(names, covariance=shared)})
    unknown = sp.Problem(np.eye(4), arms=names, measure={"all": names}, noise=None, goal="largest")
    return known, unknown, Readings(np.array(means), known.probes, None)


def ruled_out(problem, world, n, factor=Student, delta=0.2, budget=120):
    """In how many runs a tied plan, fixed in advance, is ruled out at this delta."""
    found = 0
    for seed in range(n):
        run, rng, used = sp.BetGapE(1e-9).start(problem), np.random.default_rng([31, seed]), 0
        run._factor = factor()
        while used < budget:
            counts = run.decide(rng).counts
            run.absorb(counts, world.measure(counts, rng))
            used += int(counts.sum())
        found += bool(run.log_evidence()[3] >= -np.log(delta))
    return found


def test_a_tied_plan_is_ruled_out_no_more_often_than_delta():
    _, unknown, world = worlds()
    assert binom.sf(ruled_out(unknown, world, 30) - 1, 30, 0.2) > 1e-3


class OwnSpread(SubGaussian):
    """A control: the variance that the replicates of a batch show is taken as known."""

    replicates = (4, 4)

    def log_factors(self, gap, variance, sizes):
        return super().log_factors(gap.mean(axis=1), gap.var(axis=1, ddof=1) / gap.shape[1], sizes)

    def log_mixture(self, gap, variance, centre, prior_variance):
        own = gap.var(axis=1, ddof=1) / gap.shape[1]
        return super().log_mixture(gap.mean(axis=1), own, centre, prior_variance)


def test_control_the_variance_of_replicates_taken_as_known_is_caught():
    _, unknown, world = worlds()
    assert binom.sf(ruled_out(unknown, world, 60, OwnSpread) - 1, 60, 0.2) < 1e-3


@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e4])
@pytest.mark.parametrize("policy", [sp.BetGapE(), sp.BetGapE(epsilon=0.1)])
def test_the_best_plan_is_found_whatever_the_scale(policy, scale):
    _, unknown, world = worlds(scale * np.array([1.0, 0.0, 0.2, 0.0]), scale**2 * SHARED)
    outcome = sp.simulate(unknown, world, policy=policy, seed=1, budget=3000)
    assert outcome.plan == 0


def test_noise_without_any_variation_is_refused_and_wins_no_bet():
    problem = sp.Problem(np.eye(2), measure={"both": ["arm 0", "arm 1"]}, noise=None, goal="largest")
    run = sp.BetGapE().start(problem)

    def measure_constants():
        for _ in range(100):
            counts = run.decide().counts
            run.absorb(counts, counts[[0, 0]] * np.array([2.0, 1.0]))

    with refuses("noise"):
        measure_constants()
    assert run.standing().risk == pytest.approx(1.0)


def test_what_makes_no_sense_is_refused():
    with pytest.raises(ProblemError):
        RAGE(variant="authors").start(worlds()[1])


ROUTES = np.array([[float((s * 7 + j * 5) % 12 < 4) for s in range(12)] for j in range(6)])
CASES = {
    "2 arms": (np.eye(2), [0.5, 0.0]),
    "5 arms": (np.eye(5), [1.0, 0.5, 0.4, 0.2, 0.0]),
    "6 routes": (ROUTES, np.linspace(1.5, 0.0, 12)),
}


def measured(problem, tape):
    """How many measurements a run takes on this tape, and its answer."""
    run, n = sp.BetGapE(0.05).start(problem), 0
    while True:
        decision = run.decide()
        if isinstance(decision, Stop):
            return n, decision.plan
        run.absorb(decision.counts, tape.measure(decision.counts, None))
        n += decision.n_measurements


@pytest.mark.parametrize("name", CASES)
def test_not_knowing_the_noise_costs_at_most_a_third(name):
    """On paired tapes: the k-th use of an arm gives the same value to both."""
    plans, means = CASES[name]
    total, best = np.zeros(2), int(np.argmax(plans @ np.array(means)))
    for seed in range(12):
        for k, scale in enumerate((1.0, None)):
            keys = 1000 * (seed + 1) + np.arange(len(means))
            n, answer = measured(sp.Problem(plans, noise=scale, goal="largest"), Tape(means, keys.tolist()))
            total[k] += n
            assert answer == best
    assert total[1] <= 1.35 * total[0]


def test_it_estimates_the_noise():
    problem = sp.Problem([[1, 0, 1], [0, 1, 1]], noise=None, goal="largest")
    outcome = sp.simulate(problem, Gaussian([30.0, 0.0, 0.0], 20.0), policy=sp.BetGapE())
    assert (outcome.plan, outcome.counts[2]) == (0, 0)
    assert outcome.noise_scale[:2] == pytest.approx(20.0, rel=0.4)
