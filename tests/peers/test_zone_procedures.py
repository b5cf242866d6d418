"""KN and Rinott: their boxes, their constants, their guarantee, and what breaks it."""

import numpy as np
import pytest

import surepick as sp
from common import answers_wrongly, errs_more_often_than, largest
from surepick.peers.selection import rinott_h
from surepick.policies import KN, Rinott
from surepick.simulation import Gaussian, State


def kn(samples, delta, zone, first):
    """The box of the 2001 paper in plain Python on given tapes: the answer and the measurements."""
    k = len(samples)
    eta = 0.5 * ((2 * delta / (k - 1)) ** (-2 / (first - 1)) - 1)
    h2 = 2 * eta * (first - 1)
    s2 = {(i, j): np.var(samples[i][:first] - samples[j][:first], ddof=1) for i in range(k) for j in range(k)}
    inside, r, used = set(range(k)), first, k * first
    while True:
        mean = {i: samples[i][:r].mean() for i in inside}

        def width(i, j, r=r):
            return max(0.0, zone / (2 * r) * (h2 * s2[i, j] / zone**2 - r))

        inside = {i for i in inside if all(mean[i] >= mean[j] - width(i, j) for j in inside if j != i)}
        if len(inside) == 1:
            return inside.pop(), used
        used, r = used + len(inside), r + 1


@pytest.mark.parametrize("seed", range(6))
def test_kn_follows_its_box(seed):
    rng = np.random.default_rng(seed)
    means, scale = rng.normal(0, 0.5, 5), rng.uniform(0.5, 2.0, 5)
    samples = [rng.normal(m, s, 4000) for m, s in zip(means, scale, strict=True)]
    answer, used = kn(samples, 0.1, 0.4, 8)
    places = np.zeros(5, dtype=int)

    class Tapes:
        def __init__(self):
            self.means = means

        def measure(self, counts, rng):
            sums = np.array(
                [samples[s][p : p + c].sum() for s, (p, c) in enumerate(zip(places, counts, strict=True))]
            )
            places[:] += counts
            return sums

    outcome = sp.simulate(largest(np.eye(5)), Tapes(), policy=KN(0.1, zone=0.4, first=8))
    assert (outcome.plan, outcome.n_measured) == (answer, used)


@pytest.mark.parametrize("policy", [KN(0.1, zone=0.5, first=10), Rinott(0.1, zone=0.5, first=10)], ids=str)
def test_the_guarantee_holds_at_the_edge_of_the_zone_and_a_broken_one_is_seen(policy):
    """Two arms at the zone's edge, scales 1 and 3; a zone three times as wide must fail the same test."""
    problem = sp.Problem(np.eye(2), noise=[1.0, 3.0], goal="largest")
    truth = Gaussian([0.5, 0.0], [1.0, 3.0])
    broken = type(policy)(0.1, zone=1.5, first=10)
    assert not errs_more_often_than(0.1, answers_wrongly(problem, truth, policy), 250)
    assert errs_more_often_than(0.1, answers_wrongly(problem, truth, broken), 250)


@pytest.mark.parametrize("policy", [KN(zone=0.5), Rinott(zone=0.5)], ids=str)
def test_the_noise_may_be_unknown(policy):
    unknown = sp.Problem(np.eye(2), noise=None, goal="largest")
    outcome = sp.simulate(unknown, Gaussian([1.0, 0.0], 1.0), policy=policy, seed=1)
    assert outcome.plan == 0
    assert outcome.state is State.CONFIDENT


@pytest.mark.parametrize(("n_plans", "first"), [(2, 20), (10, 10)])
def test_rinott_s_constant_by_simulation(n_plans, first):
    """Means at the edge: each comparison with its own noise of the best mean, as in Rinott's equation.

    The comparisons share it in truth, which makes them fail together: the chance to be right is larger.
    """
    rng = np.random.default_rng(1)
    h = rinott_h(n_plans, first, 0.05)
    spread = rng.chisquare(first - 1, (40_000, n_plans)) / (first - 1)
    # with N_i = h^2 S_i^2 the noise of a mean, in zones, has variance 1 / (h^2 s_i)
    noise = rng.standard_normal((len(spread), n_plans - 1)) / (h * np.sqrt(spread[:, :1]))
    others = rng.standard_normal((len(spread), n_plans - 1)) / (h * np.sqrt(spread[:, 1:]))
    assert np.mean((noise + 1.0 > others).all(axis=1)) == pytest.approx(0.95, abs=0.005)
    assert np.mean(noise[:, 0] + 1.0 > others.max(axis=1)) > 0.945


def test_rinott_takes_two_stages():
    policy, first = Rinott(zone=0.5, first=10), 10
    run = policy.start(largest(np.eye(3)))
    rng = np.random.default_rng(2)
    values = rng.normal([1.0, 0.4, 0.0], [1.0, 2.0, 0.1], (first, 3))
    for row in values:
        assert run.decide(rng).counts.tolist() == [1, 1, 1]
        run.absorb(np.ones(3, dtype=np.int64), row)
    wanted = np.ceil(rinott_h(3, first, 0.05) ** 2 * values.var(axis=0, ddof=1) / 0.25)
    more = run.decide(rng).counts
    assert more.tolist() == np.maximum(wanted - first, 0).tolist()
    run.absorb(more, more * np.array([1.0, 0.4, 0.0]))
    assert run.decide(rng).plan == 0
