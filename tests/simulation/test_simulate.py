import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import surepick as sp
from common import largest, refuses
from surepick.cli.simulate import one_run
from surepick.errors import FileError, ParameterError
from surepick.kernels import measured
from surepick.problems.truth import Truth
from surepick.simulation import Bernoulli, Gaussian, Replay, State, UniformNoise
from surepick.simulation.environments import Environment


def environments(means):
    return [
        Gaussian(means, scale=0.5),
        Bernoulli(means),
        UniformNoise(means, half_width=0.2),
        Replay([[m - 0.1, m + 0.1, m] for m in means]),
    ]


@pytest.mark.parametrize("n", [0, 1, 2, 3])
def test_environments_measure_what_was_asked_and_nothing_else(n):
    environment = environments([0.3, 0.6, 0.2])[n]
    assert isinstance(environment, Environment)
    counts = np.array([4000, 0, 1])
    sums = environment.measure(counts, np.random.default_rng(1))
    assert sums[1] == 0
    assert sums[0] / 4000 == pytest.approx(environment.means[0], abs=0.05)


@pytest.mark.parametrize("n", [0, 1, 2, 3])
def test_one_raw_draw_is_one_measurement(n):
    """The compiled driver and `measure` must turn the same draws into the same measurements."""
    environment = environments([0.3, 0.6, 0.2])[n]
    one_by_one, in_bulk = np.random.default_rng(5), np.random.default_rng(5)
    draws = environment.draw(30, in_bulk)
    for i, arm in enumerate([0, 1, 2] * 10):
        counts = np.eye(3, dtype=np.int64)[arm]
        single = environment.measure(counts, one_by_one)[arm]
        assert single == measured(environment.feed(), arm, draws[i])


def test_gaussian_sums_of_many_measurements_have_the_right_spread():
    counts = np.array([10_000, 10_000])
    rng = np.random.default_rng(2)
    sums = np.array([Gaussian([1.0, 2.0], [1.0, 3.0]).measure(counts, rng) for _ in range(2000)])
    assert sums.mean(axis=0) == pytest.approx([1e4, 2e4], rel=2e-3)
    assert sums.std(axis=0) == pytest.approx([100.0, 300.0], rel=0.06)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Gaussian([1.0, float("nan")]),
        lambda: Gaussian([1.0, 2.0], scale=[1.0, 2.0, 3.0]),
        lambda: Gaussian([1.0], scale=-1.0),
        lambda: Bernoulli([1.5]),
        lambda: UniformNoise([1.0], half_width=-0.1),
        lambda: Replay([[1.0], []]),
    ],
)
def test_bad_environments_are_clear_errors(make):
    with pytest.raises(sp.SurepickError):
        make()


@given(budget=st.integers(1, 9000), seed=st.integers(0, 1000))
@settings(max_examples=25, deadline=None)
def test_the_budget_is_never_exceeded_and_is_used_up(budget, seed):
    problem, truth = largest(np.eye(4)), Gaussian(np.zeros(4))
    outcome = sp.simulate(problem, truth, policy=sp.CombGapE(delta=1e-9), seed=seed, budget=budget)
    assert outcome.state is State.BUDGET_SPENT
    assert outcome.plan is None
    assert outcome.n_measured == (budget if budget >= 4 else 0)
    assert outcome.n_measured == outcome.counts.sum()


def test_the_outcome_adds_up():
    problem = largest(np.eye(3), cost=[1.0, 2.0, 5.0], plan_names=["a", "b", "c"])
    outcome = sp.simulate(problem, Gaussian([1.0, 0.0, 0.0]), policy=sp.CombGapE(), seed=3)
    assert outcome.plan_name == outcome.leader_name == "a"
    assert outcome.cost == outcome.counts @ [1.0, 2.0, 5.0]
    assert outcome.n_rounds == outcome.n_measured - 2  # the first round measures all three arms
    assert outcome.means == pytest.approx([1.0, 0.0, 0.0], abs=0.6)
    assert "0.05" in outcome.guarantee


def test_costs_move_measurements_to_the_cheap_arms():
    plans, means = [[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0]], [0.2, 0.2, 0.0, 0.0]
    dear = largest(plans, cost=[10.0, 1.0, 1.0, 1.0])
    outcome = sp.simulate(dear, Gaussian(means), policy=sp.CombGapE(), seed=1)
    assert outcome.counts[0] < 0.5 * outcome.counts[1]


def test_an_environment_noisier_than_the_problem_is_refused():
    quiet = sp.Problem(np.eye(2), noise=0.2, goal="largest")
    for environment in (
        Gaussian([1.0, 0.0], 1.0),
        Bernoulli([0.5, 0.5]),
        UniformNoise([1.0, 0.0]),
        Replay([[0.0, 4.0] * 20, [1.0]]),
    ):
        with refuses("environment", ParameterError):
            sp.simulate(quiet, environment, policy=sp.BetGapE())
        sp.simulate(quiet, environment, policy=sp.BetGapE(), allow_noisier=True, budget=100)


def test_gaussian_noise_without_a_scale_is_that_of_the_problem():
    problem = sp.Problem(np.eye(2), noise=[0.2, 0.3], goal="largest")
    given = sp.simulate(problem, Gaussian([0.1, 0.0], [0.2, 0.3]), policy=sp.CombGapE(), seed=5)
    taken = sp.simulate(problem, Gaussian([0.1, 0.0]), policy=sp.CombGapE(), seed=5)
    assert np.array_equal(given.means, taken.means)
    unknown = problem.with_noise(None)
    for without in (unknown, sp.Problem(np.eye(2), measure=np.eye(2), goal="largest")):
        with refuses("scale", ParameterError):
            sp.simulate(without, Gaussian([3.0, 0.0]), policy=sp.BetGapE(), seed=5)
    learned = sp.simulate(unknown, Gaussian([3.0, 0.0], 1.0), policy=sp.BetGapE(), seed=5).noise_scale
    assert learned is not None
    assert learned.min() > 0.5


@pytest.mark.parametrize(
    "settings_of_noise",
    [
        {"noise": 0.5},
        {"low": 0, "high": 10},
        {"low": 0, "high": 10, "measure": "plans"},
        {"noise": 0.5, "measure": "plans"},
    ],
)
def test_means_are_measured_as_the_problem_allows_in_python_and_in_rehearsals_of_files(settings_of_noise):
    problem = sp.Problem([[1, 1, 0], [0, 1, 1]], goal="largest", **settings_of_noise)
    means = np.array([4.0, 2.0, 1.0])
    outcome = sp.simulate(problem, means, seed=3)
    rehearsed = one_run((Truth(problem, means), sp.BetGapE(), 3, 10**6))
    assert outcome.plan == rehearsed.plan == 0
    assert np.array_equal(outcome.means, rehearsed.means, equal_nan=True)
    quiet = sp.simulate(problem, means, noise=0.2, seed=3)
    assert quiet.plan == 0
    with refuses("environment", ParameterError):  # beyond the limits, or noisier than stated
        sp.simulate(problem, means, noise=3.0, seed=3)


@pytest.mark.parametrize("measure", ["arms", "plans"])
def test_a_rehearsal_of_unknown_noise_needs_that_of_the_truth(measure):
    problem, means = sp.Problem(np.eye(2), goal="largest", measure=measure), np.array([3.0, 0.0])
    with refuses("truth.noise", FileError):
        one_run((Truth(problem, means), sp.BetGapE(), 0, 10**6))
    assert one_run((Truth(problem, means, np.ones(2)), sp.BetGapE(), 0, 10**6)).plan == 0


@pytest.mark.parametrize("mean", [0.0, 1e-9, 0.01, 0.3, 0.5, 0.5 + 1e-7, 0.99, 1.0])
def test_the_scale_of_a_coin_is_sub_gaussian_and_no_larger_than_a_half(mean):
    (scale,) = Bernoulli([mean]).noise_scale
    t = np.concatenate([-np.logspace(-3, 2, 400), np.logspace(-3, 2, 400)])
    log_mgf = np.logaddexp(np.log1p(-mean) if mean < 1 else -np.inf, (np.log(mean) if mean else -np.inf) + t)
    assert (log_mgf - t * mean <= scale**2 * t**2 / 2 + 1e-12).all()
    assert scale <= 0.5


def test_environments_that_break_off_or_do_not_fit_and_no_budget_are_refused():
    class Broken:
        means = np.array([1.0, 0.0])

        def measure(self, counts, rng):
            return np.full(len(counts), np.nan)

    for environment in (Broken(), Gaussian([1.0, 2.0, 3.0])):
        with refuses("environment", ParameterError):
            sp.simulate(largest(np.eye(2)), environment, policy=sp.CombGapE())
    with refuses("budget", ParameterError):
        sp.simulate(largest(np.eye(2)), Gaussian([1.0, 2.0]), policy=sp.CombGapE(), budget=0)


def test_a_policy_may_be_given_by_name_and_has_its_settings_once():
    problem = largest([[1, 0], [0, 1]])
    named = sp.simulate(problem, [0.0, 3.0], policy="CombGapE", delta=0.1, seed=2)
    same = sp.simulate(problem, [0.0, 3.0], policy=sp.CombGapE(delta=0.1), seed=2)
    assert (named.policy, named.counts.tolist()) == (same.policy, same.counts.tolist())
    with refuses("delta", ParameterError):
        sp.simulate(problem, [0.0, 3.0], policy=sp.CombGapE(), delta=0.1)
