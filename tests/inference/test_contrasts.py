"""What a batch shows of contrasts: without bias, with the variance it says, or nothing."""

import numpy as np
import pytest
from scipy.sparse import csr_array

import probe_cases
import surepick as sp
from common import largest
from surepick.inference import contrasts as module
from surepick.inference.contrasts import Contrasts, arm_probes, readings_of, show
from surepick.simulation import Gaussian


def mixed():
    """Three plans, a probe with three readings that mix arms, and two with one."""
    three = {"q1": {"a": 1, "b": 1}, "q2": {"b": 1, "c": -1}, "q3": {"a": 2}}
    return largest(
        {"one": "a", "two": "b", "three": "c"},
        measure={
            "survey": sp.Probe(three, noise=(1.0, 2.0, 0.5)),
            "blend": {"a": 0.5, "c": 0.5},
            "plain": ["c"],
        },
    )


def paired(covariance=((4.25, 4.0), (4.0, 4.25))):
    given = sp.Probe(["a", "b"], covariance=[list(row) for row in covariance])
    return largest({"old": "a", "new": "b"}, measure={"pair": given})


def of_first(readings, problem):
    """The contrasts of the first plan with the others."""
    plans = readings.coordinates(problem.plans)
    return Contrasts(plans[[0]] - plans[1:])


def shown(problem, uses, averages):
    readings = readings_of(problem.probes)
    return show(readings, of_first(readings, problem), np.asarray(uses), averages, 1.0)


def gaps_in_batches(problem, uses, means, seed, n):
    """Gaps of the first plan in n batches of these uses, (n, n_gaps), and their variance as stated."""
    probes, each = problem.probes, np.asarray(uses)[problem.probes.owner]
    noise = np.random.default_rng(seed).standard_normal((n, len(each))) / np.sqrt(np.maximum(each, 1))
    averages = (probes.rows @ means)[:, None] + probes.colour(noise.T)
    gap, variance = shown(problem, uses, averages)  # side by side, as replicates are
    assert np.isfinite(variance).all()
    return gap.T, variance


@pytest.mark.parametrize("problem", [mixed(), paired()], ids=["mixed", "paired"])
def test_gaps_have_no_bias_and_the_variance_that_is_stated(problem):
    means = np.array([1.0, 0.4, -0.3])[: problem.n_arms]
    uses = np.array([3, 2, 4])[: problem.n_probes]
    gaps, variance = gaps_in_batches(problem, uses, means, seed=1, n=20_000)
    wanted = problem.values(means)[0] - problem.values(means)[1:]
    assert (np.abs(gaps.mean(axis=0) - wanted) < 4.5 * np.sqrt(variance / len(gaps))).all()
    np.testing.assert_allclose(gaps.var(axis=0), variance, rtol=0.05)


def test_single_arms_have_the_means_and_variances_of_arms():
    problem = sp.Problem([[1.0, 0, 2], [0, 1, 2], [1, 1, 0]], noise=[1.0, 2.0, 3.0], goal="largest")
    readings = readings_of(arm_probes(problem))
    averages, uses = np.array([0.5, -1.0, 2.0]), np.array([2, 4, 9])
    gap, variance = show(readings, of_first(readings, problem), uses, averages, 0.0)
    contrasts = problem.plans[0] - problem.plans[1:]
    assert gap == pytest.approx(contrasts @ averages)
    assert variance == pytest.approx(contrasts**2 @ np.array([1 / 2, 4 / 4, 9 / 9]))
    sparse = Contrasts(csr_array(contrasts))
    found = show(readings, sparse, uses, averages, 0.0)
    assert np.array_equal(found[0], gap)
    assert found[1] == pytest.approx(variance)


def test_an_arm_without_measurements_matters_only_where_plans_differ():
    readings = readings_of(arm_probes(largest(np.eye(3))))
    contrasts = Contrasts(np.array([[0.0, 1.0, -1.0], [1.0, -1.0, 0.0]]))
    _, variance = show(readings, contrasts, np.array([0, 2, 2]), np.zeros(3), 0.0)
    assert variance.tolist() == [1.0, np.inf]


@pytest.mark.parametrize("wrong", [1.001, np.nan])
def test_wrong_weights_are_never_bet_on(wrong, monkeypatch):
    right = module._least_squares
    monkeypatch.setattr(module, "_least_squares", lambda rows, n: wrong * right(rows, n))
    problem, means = probe_cases.soare(3, 0.5)
    outcome = sp.simulate(problem, Gaussian(means), policy=sp.BetGapE(), seed=1, budget=300)
    assert outcome.plan is None
    assert outcome.standing.risk == 1.0


def test_a_contrast_that_a_batch_does_not_show_has_infinite_variance():
    assert np.isinf(shown(mixed(), [0, 0, 5], np.zeros(5))[1]).all()
    semi = largest(np.eye(3), measure={"ab": ["arm 0", "arm 1"], "c": ["arm 2"]})
    assert np.isfinite(shown(semi, [2, 0], np.zeros(3))[1]).tolist() == [True, False]


def test_low_rank_batches_show_what_their_span_contains():
    problem, _ = probe_cases.soare(10, 0.1)
    uses = np.zeros(11, dtype=np.int64)
    uses[[0, 1, 10]] = 3, 5, 2
    is_shown = np.isfinite(shown(problem, uses, np.zeros(11))[1])
    assert np.flatnonzero(is_shown).tolist() == [0, 9]  # of plans 1 and 10
