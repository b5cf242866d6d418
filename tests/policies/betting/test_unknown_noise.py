"""BetGapE where the noise is unknown: bets on how equal replicates of a batch agree, with controls."""

import numpy as np
import pytest
from scipy.stats import binom

import surepick as sp
from surepick.core.run import Stop
from surepick.errors import ProblemError
from surepick.inference.factors import Student, SubGaussian
from surepick.simulation.probed import GaussianReadings

SHARED = 0.2 * np.eye(4) + 0.8  # of the readings of one use


def worlds(means=(0.0, 0.0, 0.0, 0.0), shared=SHARED):
    """Four arms in one use: the problem that knows nothing of the noise, and the world with this noise."""
    names = ["a", "b", "c", "d"]
    known = sp.Problem(
        np.eye(4), arms=names, measure={"all": sp.Probe(names, covariance=shared)}, noise=1, goal="largest"
    )
    unknown = sp.Problem(np.eye(4), arms=names, measure={"all": names}, noise=None, goal="largest")
    return known, unknown, GaussianReadings(np.array(means), known.probes, None)


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


@pytest.mark.slow
@pytest.mark.parametrize("n_arms", [2, 5])
def test_single_arms_of_unknown_noise_cost_little_more_than_known_noise(n_arms):
    means, n = np.r_[0.5, np.zeros(n_arms - 1)], []
    for scale in (1.0, None):
        used = 0
        for seed in range(30):
            run, rng = (
                sp.BetGapE().start(sp.Problem(np.eye(n_arms), noise=scale, goal="largest")),
                np.random.default_rng(seed),
            )
            while not isinstance(decision := run.decide(), Stop):
                counts = decision.counts
                run.absorb(counts, counts * means + np.sqrt(counts) * rng.standard_normal(n_arms))
                used += int(counts.sum())
            assert decision.plan == 0
        n.append(used / 30)
    assert n[1] < 1.45 * n[0]  # 1.2 to 1.3 in the long run


def test_unknown_noise_costs_little_more_than_known_noise():
    known, unknown, world = worlds((0.3, 0.0, 0.0, 0.0))
    n = [
        np.mean([sp.simulate(p, world, policy=sp.BetGapE(), seed=s).n_measured for s in range(10)])
        for p in (known, unknown)
    ]
    assert n[1] < 1.6 * n[0]


@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e4])
@pytest.mark.parametrize("policy", [sp.BetGapE(), sp.BetGapE(epsilon=0.1), sp.Uniform()])
def test_the_best_plan_is_found_whatever_the_scale(policy, scale):
    _, unknown, world = worlds(scale * np.array([1.0, 0.0, 0.2, 0.0]), scale**2 * SHARED)
    outcome = sp.simulate(unknown, world, policy=policy, seed=1, budget=3000)
    assert outcome.plan == 0


def test_mixes_and_pairs_of_unknown_noise_are_learned():
    probes = {"pair": ["a", "b"], "mix": {"a": 0.5, "c": 0.5}, "c": ["c"]}
    problem = sp.Problem(
        np.eye(3), arms=["a", "b", "c"], measure=probes, readings="unknown", noise=1, goal="largest"
    )
    outcome = sp.simulate(problem, sp.Gaussian([1.0, 0.0, 0.3]), policy=sp.BetGapE(), seed=2)
    assert outcome.plan == 0
    assert outcome.noise_scale is not None  # the guess, with which the simulation drew


def test_noise_without_any_variation_is_refused_and_wins_no_bet():
    problem = sp.Problem(np.eye(2), measure={"both": ["arm 0", "arm 1"]}, noise=None, goal="largest")
    run = sp.BetGapE().start(problem)

    def measure_constants():
        for _ in range(100):
            counts = run.decide().counts
            run.absorb(counts, counts[[0, 0]] * np.array([2.0, 1.0]))

    with pytest.raises(sp.SurepickError) as caught:
        measure_constants()
    assert caught.value.field == "noise"
    assert run.standing().risk == pytest.approx(1.0)


def test_what_makes_no_sense_is_refused():
    with pytest.raises(ProblemError):
        sp.RAGE(variant="authors").start(worlds()[1])
    with pytest.raises(ProblemError):
        sp.Problem(
            np.eye(2), measure={"both": ["arm 0", "arm 1"]}, readings="strange", noise=1, goal="largest"
        )
    with pytest.raises(ProblemError):
        sp.Problem(
            np.eye(2), measure={"both": ["arm 0", "arm 1"]}, readings="unknown", low=0, high=1, goal="largest"
        )
