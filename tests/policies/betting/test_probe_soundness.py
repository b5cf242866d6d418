"""BetGapE rules out the best plan no more often than delta where readings mix arms; what breaks it is caught.

`benchmarks/matrix.py` has the rates of all combinations, with more runs.
"""

import numpy as np

import surepick as sp
from common import errs_more_often_than, largest
from surepick.core.run import Measure
from surepick.inference import contrasts
from surepick.simulation.fitting import Readings

PAIR = np.array([[1.0, 0.8], [0.8, 1.0]])


def blends(covariance=PAIR):
    """Three recipes, all as good, seen through blends and pairs."""
    probes = {
        "first": sp.Probe({"a": 0.5, "b": 0.5}, noise=0.7),
        "second": sp.Probe({"b": 0.3, "c": 0.7}, noise=1.5),
        "pair": sp.Probe({"x": {"a": 1}, "y": {"c": 1}}, covariance=covariance.tolist()),
        "third": sp.Probe({"a": 1, "b": 1, "c": 1}, noise=1.0),
    }
    return largest(np.eye(3), arms=["a", "b", "c"], measure=probes)


def panel():
    """Two tied plans, seen by six readings of a use."""
    singles = {"a": {"a": 1}, "a again": {"a": 1}, "b": {"b": 1}, "b again": {"b": 1}}
    probes = {"panel": sp.Probe({**singles, "sum": {"a": 1, "b": 1}, "difference": {"a": 1, "b": -1}})}
    return largest(np.eye(2), arms=["a", "b"], measure=probes)


def rules_out_too_often(problem, truth=None):
    """Whether the last of equal plans is ruled out more often than .2, with the noise of `truth`."""
    world = Readings(np.full(problem.n_arms, 0.5), (truth or problem).probes)

    def is_wrong(seed):
        run, rng = sp.BetGapE(1e-9).start(problem), np.random.default_rng(seed)
        while run.counts.sum() < 1500 and isinstance(decision := run.decide(rng), Measure):
            run.absorb(decision.counts, world.measure(decision.counts, rng))
        return run.log_evidence()[-1] >= -np.log(0.2)

    return errs_more_often_than(0.2, is_wrong, 40)


def test_a_best_plan_is_ruled_out_no_more_often_than_delta_and_a_wrong_covariance_is_caught():
    assert not rules_out_too_often(blends())
    assert rules_out_too_often(blends(), truth=blends(np.array([[1.0, -0.9], [-0.9, 1.0]])))


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

    assert not rules_out_too_often(panel())
    monkeypatch.setattr("surepick.policies.betting.estimates.show", fitted)
    assert rules_out_too_often(panel())
