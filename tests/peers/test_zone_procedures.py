"""KN and Rinott: their boxes, their constants, their promise, and what breaks it."""

import numpy as np
import pytest

import surepick as sp
from common import largest
from surepick.core.guarantee import Promise
from surepick.errors import ProblemError
from surepick.peers.selection import rinott_h
from surepick.policies import KN, Rinott
from surepick.policy import Measure
from surepick.simulation import Gaussian
from surepick.simulation.comparison import binomial_interval


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
def test_the_promise_holds_at_the_edge_of_the_zone_and_a_broken_one_is_seen(policy):
    """Two arms at the zone's edge, scales 1 and 3; a zone three times as wide must fail the same test."""
    problem = sp.Problem(np.eye(2), noise=[1.0, 3.0], goal="largest")
    truth = Gaussian([0.5, 0.0], [1.0, 3.0])

    def is_kept(policy, runs=250):
        wrong = sum(sp.simulate(problem, truth, policy=policy, seed=seed).plan != 0 for seed in range(runs))
        return binomial_interval(wrong, runs, confidence=1 - 1e-6)[0] <= 0.1

    assert is_kept(policy)
    assert not is_kept(type(policy)(0.1, zone=1.5, first=10))


def shared_noise(n, correlation):
    """The covariance of n readings of one use that share most of their noise."""
    return (1 - correlation) * np.eye(n) + correlation


def read_together(n, correlation, **more):
    """n single arms, all of which one use reads."""
    names = [f"arm {s}" for s in range(n)]
    probe = sp.Probe(names, covariance=shared_noise(n, correlation))
    return sp.Problem(np.eye(n), arms=names, measure={"one seed": probe}, **{"goal": "largest", **more})


@pytest.mark.parametrize("seed", range(4))
def test_kn_on_pairs_follows_its_box(seed):
    """The same box on values of one use each: the differences within a use are what counts."""
    rng = np.random.default_rng(seed)
    values = rng.multivariate_normal(rng.normal(0, 0.3, 4), shared_noise(4, 0.8), 3000)
    answer, _ = kn(list(values.T), 0.1, 0.2, 8)
    run = KN(0.1, zone=0.2, first=8).start(read_together(4, 0.8))
    for row in values:
        decision = run.decide(rng)
        if not isinstance(decision, Measure):
            break
        assert decision.counts.tolist() == [1]
        run.absorb(decision.counts, row)
    assert run.decide(rng).plan == answer


def test_pairs_save_what_their_noise_has_in_common():
    """With correlation .9 a difference has a tenth of the variance, and the promise holds: control beside."""
    together, policy = read_together(3, 0.9), KN(0.1, zone=0.3, first=10)
    truth = Gaussian([0.3, 0.0, 0.0])
    found = [sp.simulate(together, truth, policy=policy, seed=seed) for seed in range(100)]
    alone = [sp.simulate(largest(np.eye(3)), truth, policy=policy, seed=seed) for seed in range(20)]
    assert np.mean([o.n_measured for o in found]) < 0.15 * np.mean([o.n_measured for o in alone])

    def is_kept(outcomes):
        wrong = sum(outcome.plan != 0 for outcome in outcomes)
        return binomial_interval(wrong, len(outcomes), confidence=1 - 1e-6)[0] <= 0.1

    assert is_kept(found)
    hasty, close = (KN(0.1, zone=2.0, first=2), Gaussian([0.1, 0.0, 0.0]))  # far outside of its zone
    assert not is_kept([sp.simulate(together, close, policy=hasty, seed=seed) for seed in range(100)])


def test_probes_are_used_only_while_they_read_somebody_in_contention():
    probes = {"ab": ["arm 0", "arm 1"], "mix": {"arm 0": 1.0, "arm 2": 1.0}, "c": ["arm 2"]}
    problem = largest(np.eye(3), measure=probes)
    outcome = sp.simulate(problem, Gaussian([0.1, 0.0, -9.0]), policy=KN(zone=0.1), seed=1)
    used = dict(zip(problem.probe_names, outcome.counts.tolist(), strict=True))
    assert used["mix"] == 0
    assert used["c"] == 20 < used["ab"]


def test_what_probes_cannot_show_is_said():
    with pytest.raises(ProblemError):
        KN().start(largest(np.eye(2), measure={"a": ["arm 0"], "sum": {"arm 0": 1.0, "arm 1": 1.0}}))
    together = {"both": ["arm 0", "arm 1"]}
    unknown = sp.Problem(np.eye(2), measure=together, noise=None, goal="largest")
    outcome = sp.simulate(unknown, Gaussian([0.6, 0.0], 1.0), policy=KN(zone=0.5), seed=1)
    assert outcome.plan == 0
    assert Promise.read(outcome.guarantee).proved
    with pytest.raises(sp.SurepickError):
        sp.simulate(unknown, Gaussian([0.6, 0.0], 1.0), policy=Rinott())


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
