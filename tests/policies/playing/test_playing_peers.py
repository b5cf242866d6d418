"""P-FWS and CombGame: what they play, on oracles and on lists; that they promise nothing."""

import numpy as np
import pytest

import surepick as sp
from surepick.core.promise import Promise
from surepick.errors import ParameterError, ProblemError
from surepick.policies.playing import PFWS, CombGame

METHODS = [PFWS, CombGame]
PLANS = np.array([[1.0, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1], [1, 0, 0, 1]])
MEANS = np.array([2.0, 1.5, 0.0, 0.5])


def oracle(*, minimize=False, **settings):
    sign = -1.0 if minimize else 1.0
    return sp.OracleProblem(
        lambda weights: PLANS[np.argmax(sign * (PLANS @ weights))], 4, minimize=minimize, **settings
    )


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("minimize", [False, True])
def test_finds_the_best_of_clear_plans(method, minimize):
    problem = oracle(minimize=minimize, probes="plan arms", noise_scale=0.5)
    means = -MEANS if minimize else MEANS
    outcome = sp.simulate(problem, method(delta=0.1), sp.Gaussian(means), seed=1, budget=2000)
    assert outcome.plan == (1.0, 1.0, 0.0, 0.0)
    assert outcome.counts.sum() == 2 * outcome.n_measurements  # every plan has two arms


@pytest.mark.parametrize("method", METHODS)
def test_a_list_is_played_as_the_oracle_is(method):
    """The same plays, and the same readings without noise, so the same decisions."""
    listed, truth = sp.Problem(PLANS, probes="plan arms"), sp.Gaussian(MEANS, scale=0.0)
    one = sp.simulate(oracle(probes="plan arms"), method(delta=0.1), truth, seed=3, budget=400)
    other = sp.simulate(listed, method(delta=0.1), truth, seed=3, budget=400)
    assert one.n_measurements == other.n_measurements
    assert one.plan == tuple(listed.plans[other.plan])


def least_distance(counts, sums):
    means = sums / counts
    away = PLANS[np.argmax(PLANS @ means)] - PLANS
    away = away[away.any(axis=1)]
    return float(((away @ means) ** 2 / (2 * away**2 @ (1 / counts))).min())


@pytest.mark.parametrize("method", METHODS)
def test_the_stop_is_a_threshold_on_the_closest_plan(method):
    """By hand: the least gap^2 / (2 sum of 1/N) over all other plans, at the stop and before it."""
    run = method(delta=0.1).start(oracle(probes="plan arms"))
    rng, n_plays = np.random.default_rng(5), 0
    counts, sums = np.zeros(4), np.zeros(4)
    while not isinstance(decision := run.decide(np.random.default_rng([1, n_plays])), sp.Stop):
        if n_plays:
            assert least_distance(counts, sums) <= np.log((1 + np.log(n_plays)) / 0.1)
        seen = decision.counts * MEANS + np.sqrt(decision.counts) * rng.normal(size=4)
        run.absorb(decision.counts, seen)
        counts, sums, n_plays = counts + decision.counts, sums + seen, n_plays + decision.n_measurements
    assert least_distance(counts, sums) > np.log((1 + np.log(n_plays)) / 0.1)


@pytest.mark.parametrize("method", METHODS)
def test_nothing_is_promised(method):
    assert not Promise.of(method(), oracle(probes="plan arms")).proved
    with pytest.raises(ParameterError, match="search is a number of steps"):
        method(search=0)


@pytest.mark.parametrize("method", METHODS)
def test_single_arms_are_refused(method):
    with pytest.raises(ProblemError, match="plays whole plans"):
        method().start(oracle())
    with pytest.raises(ProblemError, match="plays whole plans"):
        method().start(sp.Problem(PLANS, probes="plans"))
