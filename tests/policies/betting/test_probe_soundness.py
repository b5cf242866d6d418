"""BetGapE rules out the best plan no more often than delta where readings mix arms; what breaks it is caught.

`benchmarks/matrix.py` has the rates of all combinations, with more runs.
"""

import numpy as np
from scipy.stats import binom

import surepick as sp
from common import largest
from surepick.core.arrays import IntArray
from surepick.core.run import Stop
from surepick.inference import contrasts
from surepick.simulation.environments import Readings

RUNS, BUDGET, DELTA = 40, 1500, 0.2
SURE = 1e-4  # of the binomial: what is beyond it is no chance


def blends():
    """Three recipes, all as good, seen through blends and pairs."""
    probes = {
        "first": sp.Probe({"a": 0.5, "b": 0.5}, noise=0.7),
        "second": sp.Probe({"b": 0.3, "c": 0.7}, noise=1.5),
        "pair": sp.Probe({"x": {"a": 1}, "y": {"c": 1}}, covariance=[[1.0, 0.8], [0.8, 1.0]]),
        "third": sp.Probe({"a": 1, "b": 1, "c": 1}, noise=1.0),
    }
    return largest(np.eye(3), arms=["a", "b", "c"], measure=probes), np.full(3, 0.5)


def peaks(correlation=0.8):
    """The largest log wealth against a best plan, fixed in advance, in each run."""
    problem, means = blends()
    probes = problem.probes
    assert probes is not None
    world, wrong = Readings(means, probes, None), np.array([[1.0, correlation], [correlation, 1.0]])
    for seed in range(RUNS):
        run, rng, used = sp.BetGapE(1e-9).start(problem), np.random.default_rng(seed), 0
        while used < BUDGET:
            decision = run.decide(rng)
            counts: IntArray = decision.counts  # it cannot stop at this delta
            sums = world.measure(counts, rng)
            if correlation != 0.8:  # the pair has other noise than the problem says
                noise = np.sqrt(counts[2]) * np.linalg.cholesky(wrong) @ rng.standard_normal(2)
                sums[probes.readings_of(2)] = counts[2] * means[[0, 2]] + noise
            run.absorb(counts, sums)
            used += int(counts.sum())
        yield float(run.log_evidence()[2])


def n_ruled_out(**how):
    return sum(peak >= -np.log(DELTA) for peak in peaks(**how))


def is_refuted(n):
    return bool(binom.sf(n - 1, RUNS, DELTA) < SURE)


def test_a_best_plan_is_ruled_out_no_more_often_than_delta_and_a_wrong_covariance_is_caught():
    assert not is_refuted(n_ruled_out())
    assert is_refuted(n_ruled_out(correlation=-0.9))


def panel():
    """The largest log wealth against one of two tied plans, seen by six readings of a use."""
    singles = {"a": {"a": 1}, "a again": {"a": 1}, "b": {"b": 1}, "b again": {"b": 1}}
    probes = {"panel": sp.Probe({**singles, "sum": {"a": 1, "b": 1}, "difference": {"a": 1, "b": -1}})}
    problem = largest(np.eye(2), arms=["a", "b"], measure=probes)
    assert problem.probes is not None
    world = Readings(np.zeros(2), problem.probes, None)
    for seed in range(RUNS):
        run, rng, used = sp.BetGapE(1e-9).start(problem), np.random.default_rng(seed), 0
        while used < BUDGET:
            decision = run.decide(rng)
            if isinstance(decision, Stop):
                break
            run.absorb(decision.counts, world.measure(decision.counts, rng))
            used += decision.n_measurements
        yield float(run.log_evidence()[1])


def test_weights_fitted_on_the_batch_s_values_are_caught(monkeypatch):
    """They still show the gap (A X = I) and lean to where the values have gone: no guard can see it."""
    show = contrasts.show

    def fitted(readings, rows, uses, averages, largest):
        gap, variance = show(readings, rows, uses, averages, largest)
        n, design = uses[readings.owner].astype(float), readings.rows
        means = readings.probes.whiten(averages)
        left = means - design @ (contrasts._least_squares(design, n) @ means)
        square = float(left @ (n * left))
        lean = variance / np.maximum(gap, np.sqrt(variance))
        return gap + lean * square, variance + lean**2 * square

    assert not is_refuted(sum(peak >= -np.log(DELTA) for peak in panel()))
    monkeypatch.setattr("surepick.policies.betting.question.show", fitted)
    assert is_refuted(sum(peak >= -np.log(DELTA) for peak in panel()))
