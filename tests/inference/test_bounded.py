"""Bounded readings: the factor is fair for every distribution between the bounds, and learns the variance."""

from itertools import product
from math import comb

import numpy as np
import pytest
from scipy import sparse

import surepick as sp
from common import errs_more_often_than, refuses
from session_tools import answer
from surepick.core.probes import Probe
from surepick.core.run import Stop
from surepick.errors import ParameterError, SessionError
from surepick.inference.bounded import CAP, SERIES, BatchReadings, BoundedNoise, BoundedReadings
from surepick.inference.contrasts import Contrasts, arm_probes, readings_of
from surepick.policies.betting.batch_run import BatchRun
from surepick.policies.betting.best import Best
from surepick.simulation import UniformNoise

TWO = sp.Problem(np.eye(2), low=0, high=1, goal="largest")
FACTOR = BoundedReadings()


def test_the_series_lies_below_the_logarithm():
    z = np.concatenate([np.linspace(-CAP, 0, 1001), np.geomspace(1e-6, 50, 1000)])
    powers = z[:, None] ** np.arange(1, len(SERIES) + 1)
    assert (powers @ SERIES <= np.log1p(z) + 1e-12).all()
    assert powers[0] @ SERIES == pytest.approx(np.log1p(-CAP))


PAIR = sp.Problem(np.eye(2), measure={"both": Probe(["arm 0", "arm 1"])}, low=0, high=1, goal="largest")


def outcomes(problem, p, q, rng):
    """Yield the chance and the values of every batch of 3 uses of each probe, with readings 0 and 1."""
    if problem is TWO:
        for a, b in product(range(4), range(4)):
            chance = comb(3, a) * p**a * (1 - p) ** (3 - a) * comb(3, b) * q**b * (1 - q) ** (3 - b)
            yield chance, {s: np.repeat([[1.0], [0.0]], [k, 3 - k], axis=0) for s, k in enumerate((a, b))}
        return
    both = max(0.0, p + q - 1) + rng.random() * (min(p, q) - max(0.0, p + q - 1))  # any dependence
    chances = np.array([both, p - both, q - both, 1 - p - q + both]).clip(0)
    points = np.array([[1.0, 1.0], [1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    for which in product(range(4), repeat=3):
        yield float(chances[list(which)].prod()), {0: points[list(which)]}


def mean_factor(problem, batches, centres, size, *, fitted):
    """E F for "arm 0 is better", summed exactly over all batches."""
    noise, total = BoundedNoise(arm_probes(problem), problem.bounds), 0.0
    readings = readings_of(noise.probes())
    plans, uses = readings.coordinates(np.eye(2)), np.full(len(problem.costs), 3)
    contrast = Contrasts(plans[[0]] - plans[[1]])
    for chance, values in batches:
        gap, variance = BatchReadings(noise, values, centres, CAP).show(readings, contrast, uses, 0.0)
        seen = float((gap.base + gap.sums[:, 0])[0])
        bet = max(seen, 0.0) if fitted else size  # a control: the size is chosen after the batch
        total += chance * float(np.exp(FACTOR.log_factors(gap, variance, np.array([[bet]])))[0, 0])
    return total


@pytest.mark.parametrize("problem", [TWO, PAIR], ids=["one reading a use", "two readings of one use"])
def test_the_factor_is_fair_at_every_null_and_one_fitted_to_the_batch_is_not(problem):
    rng, largest, largest_fitted = np.random.default_rng(4), 0.0, 0.0
    for _ in range(150):
        q = rng.choice([0.0, 1e-3, 0.1, 0.5, 0.9, 0.999, 1.0, rng.random()])
        p = q if rng.random() < 0.7 else q * rng.random()
        centres, size = rng.random(2), rng.choice([0.05, 0.2, 0.5, 2.0])
        batches = list(outcomes(problem, p, q, rng))
        largest = max(largest, mean_factor(problem, batches, centres, size, fitted=False))
        largest_fitted = max(largest_fitted, mean_factor(problem, batches, centres, size, fitted=True))
    assert largest <= 1 + 1e-6
    assert largest_fitted > 1.05


@pytest.mark.parametrize("probes", ["arms", {"sum": {"arm 0": 1, "arm 1": 1}, "one": {"arm 0": 2}}])
def test_weights_of_single_uses_show_the_contrasts(probes):
    problem = sp.Problem(np.eye(2), measure=probes, low=-1, high=3, goal="largest")
    noise = BoundedNoise(arm_probes(problem), problem.bounds)
    readings = readings_of(noise.probes())
    uses, mu, plans = np.array([3, 5]), np.array([0.4, 0.9]), readings.coordinates(np.eye(2))
    weights, variance, bias = readings.use_weights(Contrasts(plans[[0]] - plans[[1]]), uses, 0.0)
    means = mu if problem.probes is None else problem.probes.rows @ mu
    assert (weights @ (uses * means)).item() == pytest.approx(-0.5)
    assert 0 < variance[0] < np.inf
    assert bias[0] < 1e-6
    if problem.probes is None:
        thin, _, _ = readings.use_weights(Contrasts(sparse.csr_array([[1.0, -1.0]])), uses, 0.0)
        assert thin.toarray() == pytest.approx(weights)


def test_the_variance_is_learned():
    narrow = UniformNoise([0.51, 0.50], 0.045 * np.sqrt(3))  # scores with a deviation of .045
    stated = sp.Problem(np.eye(2), noise=0.045 * np.sqrt(3), goal="largest")
    learned, told = ([sp.simulate(one, narrow, seed=k) for k in range(12)] for one in (TWO, stated))
    assert sum(outcome.plan != 0 for outcome in learned) <= 3
    # Hoeffding takes over a hundred times as many
    assert sum(o.n_measured for o in learned) < 1.5 * sum(o.n_measured for o in told)


class Fitted(BoundedReadings):
    """A control: mixtures are centred on what the batch itself shows."""

    def log_mixture(self, gap, variance, centre, prior_variance):
        seen = np.maximum(gap.base + gap.sums[:, 0], 1e-12)
        return self.log_factors(gap, variance, seen[:, None])[:, 0]

    def log_factors(self, gap, variance, sizes):
        seen = np.maximum(gap.base + gap.sums[:, 0], 1e-12)
        return super().log_factors(gap, variance, np.broadcast_to(seen[:, None], sizes.shape))


@pytest.mark.parametrize(
    ("mean", "is_fitted"), [(0.5, False), (0.1, False), (0.001, False), (0.5, True), (0.1, True)]
)
def test_errors_at_ties_are_rare_and_fitted_mixtures_are_caught(mean, is_fitted):
    def is_wrong(seed):
        run, rng = BatchRun(TWO, sp.BetGapE(0.2), Best(TWO.oriented, 0.2)), np.random.default_rng([7, seed])
        run._factor = Fitted() if is_fitted else run._factor
        for _ in range(30):
            decision = run.decide()
            if isinstance(decision, Stop):
                return True  # at a tie every answer is one too many for one of two truths nearby
            values = {s: (rng.random(k) < mean).astype(float) for s, k in enumerate(decision.counts) if k}
            run.absorb(decision.counts, np.array([values[s].sum() for s in range(2)]), values=values)
        return False

    # two truths, each with errors at .2 at most, share these answers
    assert errs_more_often_than(0.4, is_wrong, 60) == is_fitted


def test_sums_alone_are_refused():
    run = sp.BetGapE().start(TWO)
    with refuses("values", ParameterError):
        run.absorb(run.decide().counts, np.ones(2))


def paired(rng, n, means=(0.70, 0.75), correlation=0.8):
    """Return n uses of two 0/1 readings that depend on each other, (n, 2)."""
    p, q = means
    both = p * q + correlation * np.sqrt(p * (1 - p) * q * (1 - q))
    at = rng.choice(4, n, p=[both, p - both, q - both, 1 - p - q + both])
    return np.array([[1.0, 1.0], [1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])[at]


def uses_of_pairs(seed, most=10**5):
    run, rng = sp.BetGapE(0.05).start(PAIR), np.random.default_rng(seed)
    while not isinstance(decision := run.decide(), Stop):
        values = paired(rng, int(decision.counts[0]))
        run.absorb(decision.counts, values.sum(axis=0), values={0: values})
        assert run.counts[0] < most
    return decision.plan, int(run.counts[0])


def test_what_two_readings_of_a_use_share_is_learned():
    found = [uses_of_pairs(seed) for seed in range(12)]
    assert sum(plan != 1 for plan, _ in found) <= 2
    assert np.mean([n for _, n in found]) < 500  # Hoeffding takes about 1,800 of each by itself


def coin(rng, probe):
    return float(rng.random() < (0.05, 0.6)[probe])


def two_coins(rng, _):
    return paired(rng, 1, (0.2, 0.7), 0.3)[0].tolist()


@pytest.mark.parametrize(("problem", "value", "delta"), [(TWO, coin, 0.05), (PAIR, two_coins, 0.2)])
def test_a_session_learns_the_variance_and_is_verified(problem, value, delta):
    session = sp.Session.create("memory://", "rates", problem, policy=sp.BetGapE(delta), seed=1)
    rng = np.random.default_rng(3)
    answer(session, lambda request: value(rng, request.probe), at_once=200)
    assert session.outcome.plan == 1
    assert session.verify(session.certificate().to_json()).holds
    if problem is TWO:
        with refuses("value", SessionError):
            session.tell("arm 0", 1.5)


def test_the_best_vertex_of_a_polytope_is_found_with_a_learned_variance():
    means = [0.54, 0.5, 0.46]
    given = {"A_eq": np.ones((1, 3)), "b_eq": [1.0], "goal": "largest"}
    narrow = UniformNoise(means, 0.05)
    bounded, known = sp.Polytope(**given, low=0, high=1), sp.Polytope(**given, noise=0.05)
    learned = [sp.simulate(bounded, narrow, seed=k) for k in range(8)]
    stated = [sp.simulate(known, narrow, seed=k) for k in range(8)]
    assert sum(outcome.plan != (1.0, 0.0, 0.0) for outcome in learned) <= 2
    assert sum(o.n_measured for o in learned) < 4 * sum(o.n_measured for o in stated)


def test_arms_that_no_probe_reads_are_left_out():
    """Both plans have arm c, so that nothing has to be measured of it."""
    problem = sp.Problem(
        {"p": "a + c", "q": "b + c"}, measure={"A": "a", "B": "b"}, low=0, high=1, goal="largest"
    )
    assert sp.simulate(problem, sp.simulation.Bernoulli([0.2, 0.5, 0.8]), seed=1).plan_name == "q"
