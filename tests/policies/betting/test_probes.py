"""BetGapE where probes are measured: what a block shows, what is bet on it, and whole runs, with controls."""

import math

import numpy as np
import pytest
from scipy.stats import binom

import surepick as sp
from surepick.core.run import Measure, Stop
from surepick.errors import ParameterError
from surepick.experiments import probe_cases
from surepick.policies.betting import block_estimates
from surepick.policies.betting.block_estimates import DenseEstimator, DiagonalEstimator, estimator_for
from surepick.policies.betting.covers import cover, fill
from surepick.policies.betting.steady import SteadyEstimator


def mixed(scales=(1.0, 2.0, 0.5)):
    """Three plans, a probe with three readings that mix arms, and two with one."""
    three = {"q1": {"a": 1, "b": 1}, "q2": {"b": 1, "c": -1}, "q3": {"a": 2}}
    return sp.Problem(
        {"one": "a", "two": "b", "three": "c"},
        probes={
            "survey": sp.Probe(three, noise_scale=scales),
            "blend": {"a": 0.5, "c": 0.5},
            "plain": ["c"],
        },
        noise_scale=1,
    )


def paired(covariance=((4.25, 4.0), (4.0, 4.25))):
    return sp.Problem(
        {"old": "a", "new": "b"},
        probes={"pair": sp.Probe(["a", "b"], covariance=[list(c) for c in covariance])},
        noise_scale=1,
    )


def shown_in_blocks(problem, counts, means, seed, n):
    """Gaps of plan 0 to the others in many blocks of these counts, and what the last of them showed.

    Gaps are linear in the block's averages, with weights that `show` itself gives away.
    """
    probes, estimator = problem.probes, estimator_for(problem.probes)
    plans = estimator.information.coordinates(problem.plans - problem.plans.mean(axis=0))
    each, away = counts[probes.owner], plans[0] - plans[1:]
    weights = np.array([estimator.show(away, counts, unit, 1.0).gap for unit in np.eye(len(each))])
    noise = np.random.default_rng(seed).standard_normal((n, len(each))) / np.sqrt(np.maximum(each, 1))
    averages = probes.whiten((probes.rows @ means)[:, None] + probes.colour(noise.T))
    shown = estimator.show(away, counts, averages[:, -1], 1.0)
    gaps = averages.T @ weights
    np.testing.assert_allclose(gaps[-1], shown.gap, atol=1e-9)
    assert shown.counts.all()
    return gaps, shown


def mean_factor(gaps, variance, g):
    """The mean factor of a fixed bet g, which must not exceed 1 under a tie; and its standard error."""
    factor = np.exp((g * gaps - g * g / 2) / variance)
    return float(factor.mean()), float(factor.std() / math.sqrt(len(factor)))


@pytest.mark.parametrize("problem", [mixed(), paired()], ids=["mixed", "paired"])
def test_a_block_shows_gaps_without_bias_and_with_the_variance_it_says(problem):
    means = np.array([1.0, 0.4, -0.3])[: problem.n_arms]
    counts = np.array([3, 2, 4])[: problem.n_probes]
    gaps, shown = shown_in_blocks(problem, counts, means, seed=1, n=100_000)
    wanted = problem.values(means)[0] - problem.values(means)[1:]
    error = np.sqrt(shown.variance / len(gaps))
    assert (np.abs(gaps.mean(axis=0) - wanted) < 4.5 * error).all()
    np.testing.assert_allclose(gaps.var(axis=0), shown.variance, rtol=0.02)


def test_paired_readings_are_as_good_as_their_covariance_says():
    estimator = estimator_for(paired().probes)
    away = estimator.information.coordinates(np.array([[1.0, -1.0]]))
    shown = estimator.show(away, np.array([1]), np.zeros(2), 0.0)
    assert shown.variance[0] == pytest.approx(0.5)  # 8.5 if they were taken as independent


def test_a_fixed_bet_on_a_tie_is_at_best_fair():
    gaps, shown = shown_in_blocks(mixed(), np.array([1, 2, 1]), np.zeros(3), seed=2, n=200_000)
    for j in range(2):
        mean, error = mean_factor(gaps[:, j], shown.variance[j], math.sqrt(shown.variance[j]))
        assert mean < 1 + 4 * error


def test_control_weights_chosen_by_the_blocks_own_values_are_caught():
    """Of two unbiased ways to weigh the readings, the one that shows the larger gap: the test must reject."""
    problem = mixed()
    gaps, shown = shown_in_blocks(problem, np.array([1, 2, 1]), np.zeros(3), seed=2, n=200_000)
    again, _ = shown_in_blocks(problem, np.array([1, 2, 1]), np.zeros(3), seed=3, n=200_000)
    best = np.maximum(gaps[:, 0], again[:, 0])
    mean, error = mean_factor(best, shown.variance[0], math.sqrt(shown.variance[0]))
    assert mean > 1 + 4 * error


def test_control_a_covariance_that_is_too_small_is_caught():
    """The readings have the covariance (4.25, 3), and the problem says (4.25, 4)."""
    truth, said = paired(((4.25, 3.0), (3.0, 4.25))), paired()
    gaps, _ = shown_in_blocks(truth, np.array([2]), np.zeros(2), seed=4, n=200_000)
    _, shown = shown_in_blocks(said, np.array([2]), np.zeros(2), seed=4, n=1)
    mean, error = mean_factor(gaps[:, 0], shown.variance[0], math.sqrt(shown.variance[0]))
    assert mean > 1 + 4 * error


@pytest.mark.parametrize("dense", [True, False])
def test_dependent_readings_are_bet_on_as_if_the_worst_were_true(dense):
    """Readings of one use are the same noise with opposite signs: the worst case for a difference."""
    probes = {"pair": {"a": {"a": 1, **({"b": 0.1} if dense else {})}, "b": {"b": 1}}}
    plans = {"one": "a", "two": "b"}
    shared = sp.Problem(plans, probes=probes, readings="dependent", noise_scale=1)
    apart = sp.Problem(plans, probes=probes, noise_scale=1)
    factors = []
    for problem in (shared, apart):
        estimator, counts = estimator_for(problem.probes), np.array([3])
        away = estimator.information.coordinates(np.array([[1.0, -1.0]]))
        weights = np.array([estimator.show(away, counts, unit, 1.0).gap[0] for unit in np.eye(2)])
        noise = np.random.default_rng(1).standard_normal(200_000) / math.sqrt(3)
        gaps = np.outer(noise, [1.0, -1.0]) @ weights
        shown = estimator.show(away, counts, np.zeros(2), 1.0)
        factors.append(mean_factor(gaps, shown.variance[0], math.sqrt(shown.variance[0])))
    (fair, error), (cheated, more) = factors
    assert fair < 1 + 4 * error
    assert cheated > 1 + 4 * more


def test_a_wrong_inverse_never_bets(monkeypatch):
    """The guard must see that the weights that are used do not show the difference."""
    problem, means = probe_cases.soare(3, 0.5)
    right = block_estimates._pseudo_inverse
    monkeypatch.setattr(SteadyEstimator, "_weights", lambda _, rows, n: 1.001 * right(rows, n))
    outcome = sp.simulate(problem, sp.BetGapE(), sp.Gaussian(means), seed=1, budget=300)
    assert outcome.plan is None
    assert outcome.standing.risk == 1.0
    monkeypatch.setattr(SteadyEstimator, "_weights", lambda _, rows, n: right(rows, n) * np.nan)
    outcome = sp.simulate(problem, sp.BetGapE(), sp.Gaussian(means), seed=1, budget=100)
    assert outcome.standing.risk == 1.0


def test_a_difference_that_a_block_does_not_show_is_not_bet_on():
    problem = mixed()
    estimator = estimator_for(problem.probes)
    plans = estimator.information.coordinates(problem.plans - problem.plans.mean(axis=0))
    shown = estimator.show(plans[0] - plans[1:], np.array([0, 0, 5]), np.zeros(5), 1.0)
    assert not shown.counts.any()
    semi = sp.Problem(np.eye(3), probes={"ab": ["arm 0", "arm 1"], "c": ["arm 2"]}, noise_scale=1)
    shown = estimator_for(semi.probes).show(
        np.array([[1.0, -1, 0], [1, 0, -1]]), np.array([2, 0]), np.zeros(3), 1.0
    )
    assert shown.counts.tolist() == [True, False]


def test_low_rank_blocks_are_shown_by_the_singular_values():
    problem, _ = probe_cases.soare(10, 0.1)
    estimator = estimator_for(problem.probes)
    counts = np.zeros(11, dtype=np.int64)
    counts[[0, 1, 10]] = 3, 5, 2
    plans = estimator.information.coordinates(problem.plans)
    shown = estimator.show((plans[0] - plans)[[1, 2, 10]], counts, np.zeros(11), 1.0)
    assert shown.counts.tolist() == [True, False, True]


def test_readings_of_one_arm_each_are_kept_as_one_number_per_arm():
    problem, _ = probe_cases.top_k(5, 2, 0, "semi")
    assert isinstance(estimator_for(problem.probes), DiagonalEstimator)
    problem, _ = probe_cases.top_k(5, 2, 0, "full")
    assert isinstance(estimator_for(problem.probes), DenseEstimator)


@pytest.mark.parametrize("feedback", ["full", "semi"])
def test_a_cover_shows_every_difference(feedback):
    problem, _ = probe_cases.top_k(6, 2, 0, feedback)
    estimator = estimator_for(problem.probes)
    information = estimator.information
    plans = information.coordinates(problem.plans - problem.plans.mean(axis=0))
    away = plans[0] - plans[1:]
    shares = np.full(15, 1 / 15)
    chosen = cover(information, shares, np.ones(15), away)
    assert 3 <= chosen.sum() <= 6
    assert estimator.show(
        away, chosen.astype(np.int64), np.zeros(problem.probes.n_readings), 1.0
    ).counts.all()


def test_filling_spends_the_budget_and_beats_rounding():
    problem, _ = probe_cases.sphere(40, 5, 3)
    information = estimator_for(problem.probes).information
    plans = information.coordinates(problem.plans)
    away = plans[0] - plans[1:]
    rng = np.random.default_rng(0)
    shares = rng.dirichlet(np.ones(40))
    counts = fill(information, shares, np.ones(40), away, 20.0)
    assert counts.sum() == 20
    even = np.linalg.inv(information.matrix(20 * shares))
    found = np.linalg.pinv(information.matrix(counts.astype(float)))
    worth = lambda w: np.einsum("jd,de,je->j", away, w, away).sum()  # noqa: E731
    assert worth(found) < 1.6 * worth(even)


def families():
    """(problem, means, how the control makes it noisier) with a near tie."""
    close = np.array([0.1, 0.0, -0.4])
    return {
        "mixed": (mixed(), close),
        "paired": (paired(), np.array([0.05, 0.0])),
        "semi": (
            sp.Problem(np.eye(3), probes={"ab": ["arm 0", "arm 1"], "c": ["arm 2"]}, noise_scale=1),
            close,
        ),
    }


def wrong_answers(problem, means, n, **noise):
    right, wrong = problem.best(means), 0
    for seed in range(n):
        world = sp.Gaussian(means, **noise)
        outcome = sp.simulate(
            problem, sp.BetGapE(delta=0.2), world, seed=seed, budget=1500, allow_noisier=True
        )
        wrong += outcome.plan is not None and outcome.plan != right
    return wrong


@pytest.mark.parametrize("name", ["mixed", "paired", "semi"])
def test_whole_runs_keep_delta_in_a_near_tie(name):
    problem, means = families()[name]
    n = 40
    assert binom.sf(wrong_answers(problem, means, n) - 1, n, 0.2) > 1e-3


def test_control_more_noise_than_was_stated_breaks_delta():
    problem, means = families()["semi"]
    assert binom.sf(wrong_answers(problem, means, 40, scale=3.0) - 1, 40, 0.2) < 1e-3


CASES = {
    "dense": probe_cases.soare(4, 0.4),
    "semi": probe_cases.top_k(5, 2, 3, "semi"),
    "paired": (paired(), np.array([1.0, 0.3])),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("epsilon", [0.0, 0.2])
def test_the_best_plan_is_found(name, epsilon):
    problem, means = CASES[name]
    outcome = sp.simulate(problem, sp.BetGapE(epsilon=epsilon), sp.Gaussian(means), seed=3)
    assert outcome.status is sp.Status.CONFIDENT
    assert problem.values(means)[outcome.plan] >= problem.values(means).max() - epsilon - 1e-12
    assert outcome.counts.shape == (problem.n_probes,)
    assert outcome.means.shape == (problem.probes.n_readings,)
    assert outcome.cost == outcome.n_measurements
    assert outcome.standing.risk <= 0.05
    assert outcome.plan in outcome.standing.good


def test_a_tie_ends_with_epsilon():
    problem = sp.Problem(np.eye(3), probes=np.array([[1.0, 1, 0], [1, -1, 0], [0, 1, 1]]), noise_scale=1)
    outcome = sp.simulate(problem, sp.BetGapE(epsilon=0.5), sp.Gaussian([0.0, 0.0, 0.0]), seed=1)
    assert outcome.plan is not None


def test_minimizing_turns_the_answer_round():
    problem = sp.Problem({"a": "x", "b": "y"}, probes="plans", minimize=True, noise_scale=1)
    assert sp.simulate(problem, sp.BetGapE(), sp.Gaussian([0.0, 2.0]), seed=1).plan_name == "a"


@pytest.mark.parametrize("name", CASES)
def test_parts_of_a_block_and_a_snapshot_change_nothing(name):
    """Asked in parts, and carried on by a fresh run from its state, it decides as when asked at once."""
    problem, means = CASES[name]
    whole, parts = (
        sp.BetGapE().start(problem),
        sp.BetGapE(max_batch=2).start(problem),
    )
    rng = np.random.default_rng(5)
    for _ in range(6):
        wanted = whole.decide()
        if isinstance(wanted, Stop):
            break
        each = wanted.counts[problem.probes.owner]
        averages = problem.probes.rows @ means + rng.normal(size=len(each)) * problem.noise_scale
        left = wanted.counts.copy()
        while left.any():
            part = parts.decide()
            assert isinstance(part, Measure)
            assert part.counts.sum() <= 2
            fresh = sp.BetGapE(max_batch=2).start(problem)
            fresh.restore(parts.state())
            parts = fresh
            assert np.array_equal(parts.decide().counts, part.counts)
            parts.absorb(part.counts, part.counts[problem.probes.owner] * averages)
            left -= part.counts
        whole.absorb(wanted.counts, each * averages)
        np.testing.assert_allclose(parts.log_evidence(), whole.log_evidence(), rtol=1e-9, atol=1e-9)
    assert parts.standing().lead == whole.standing().lead


def test_what_came_unasked_informs_and_wins_nothing():
    problem, means = CASES["dense"]
    run = sp.BetGapE().start(problem)
    counts = np.full(problem.n_probes, 50, dtype=np.int64)
    run.recall(counts, counts * (problem.probes.rows @ means))
    assert run.standing().lead == problem.best(means)
    assert run.standing().risk == 1.0


def test_the_complete_answer_is_taken_and_nothing_else():
    problem, _ = CASES["dense"]
    run = sp.BetGapE().start(problem)
    counts = run.decide().counts
    with pytest.raises(ParameterError, match="complete answer"):
        run.absorb(counts + 1, np.zeros(problem.probes.n_readings))


def test_uniform_uses_every_probe_alike():
    problem, means = CASES["semi"]
    outcome = sp.simulate(problem, sp.Uniform(), sp.Gaussian(means), seed=1)
    assert outcome.plan == problem.best(means)
    assert outcome.counts.max() - outcome.counts.min() <= 1
    adaptive = sp.simulate(problem, sp.BetGapE(), sp.Gaussian(means), seed=1)
    assert adaptive.n_measurements < 2 * outcome.n_measurements


def test_prices_are_heeded():
    rng = np.random.default_rng(0)
    probes = rng.normal(size=(30, 3))
    dear = 10.0 ** rng.uniform(0, 2, 30)
    problem = sp.Problem(np.eye(3), probes=probes, costs=dear, noise_scale=1)
    outcome = sp.simulate(problem, sp.BetGapE(), sp.Gaussian([1.0, 0.0, -1.0]), seed=0)
    assert outcome.cost / outcome.n_measurements < np.median(dear) / 2


def test_uniform_noise_and_noise_that_is_too_large():
    problem, means = CASES["dense"]
    assert sp.simulate(problem, sp.BetGapE(), sp.UniformNoise(means, 1.0), seed=1).plan == problem.best(means)
    with pytest.raises(ParameterError, match="on which the promise rests"):
        sp.simulate(problem, sp.BetGapE(), sp.Gaussian(means, scale=2.0))
    with pytest.raises(ParameterError, match="measures single arms"):
        sp.simulate(problem, sp.BetGapE(), sp.Replay([[1.0], [2.0], [1.0], [0.0]]))


def test_the_promise_says_what_it_rests_on():
    problem, means = CASES["paired"]
    outcome = sp.simulate(problem, sp.BetGapE(), sp.Gaussian(means), seed=3)
    assert "the readings of one use are independent or have the given covariance" in outcome.guarantee
