"""Betting factors, the wealth they move, and estimates of unknown noise."""

import math

import numpy as np
import pytest
from scipy import integrate
from scipy.stats import norm, t

import surepick as sp
from surepick.inference.contrasts import arm_probes
from surepick.inference.factors import BoundedVariance, Student, SubGaussian
from surepick.inference.noise import NoiseEstimate
from surepick.inference.wealth import COMMON, EMPTY, Wealth


def one(*numbers):
    return (np.array([number]) for number in numbers)


@pytest.mark.parametrize(
    ("gap", "variance", "centre", "prior"), [(0.3, 0.5, 0.2, 0.1), (-1.0, 0.2, 0.5, 2.0)]
)
def test_the_sub_gaussian_mixture_is_the_integral_it_says(gap, variance, centre, prior):
    def density(g):
        return math.exp(-((g - centre) ** 2) / (2 * prior))

    bet, _ = integrate.quad(lambda g: density(g) * math.exp((g * gap - g * g / 2) / variance), 0, 20)
    whole, _ = integrate.quad(density, 0, 20)
    found = SubGaussian().log_mixture(*one(gap, variance, centre, prior))
    assert found[0] == pytest.approx(math.log(bet / whole), abs=1e-8)


@pytest.mark.parametrize("truth", [0.0, -0.3])
def test_a_sub_gaussian_mixture_is_at_best_fair(truth):
    variance, noise = 0.4, np.polynomial.hermite_e.hermegauss(80)
    gaps = truth + math.sqrt(variance) * noise[0]
    same = (np.full(80, value) for value in (variance, 0.5, 0.3))
    mean = noise[1] @ np.exp(SubGaussian().log_mixture(gaps, *same)) / math.sqrt(2 * math.pi)
    assert mean == pytest.approx(1.0, abs=1e-6) if truth == 0 else mean < 1


@pytest.mark.parametrize("tail", [0.5, 0.1, 1e-3])
@pytest.mark.parametrize("size", [0.1, 1.0, 5.0])
def test_bounded_variance_is_fair_for_the_worst_distribution_and_the_gaussian_factor_is_not(tail, size):
    """Two points are the extreme distributions of a given variance."""
    gaps = np.array([math.sqrt((1 - tail) / tail), -math.sqrt(tail / (1 - tail))])
    weights, sizes = np.array([tail, 1 - tail]), np.full((2, 1), size)
    fair, gaussian = (
        weights @ np.exp(factor.log_factors(gaps, np.ones(2), sizes)[:, 0])
        for factor in (BoundedVariance(), SubGaussian())
    )
    assert fair <= 1 + 1e-12
    assert tail == 0.5 or gaussian > 1


@pytest.mark.parametrize("shift", [0.0, -0.3])
@pytest.mark.parametrize("scale", [1e-3, 50.0])
def test_student_is_at_best_fair_whatever_the_scale(shift, scale):
    x = scale * (np.random.default_rng(1).standard_normal((20_000, 6)) + shift)
    for size in (0.3, 1.0):  # the guess of the standard deviation is 1, far from the truth
        factors = np.exp(Student().log_factors(x, np.ones(len(x)), np.full((len(x), 1), size))[:, 0])
        error = factors.std() / len(x) ** 0.5
        assert factors.mean() <= 1.0 + 4 * error
        assert shift or factors.mean() >= 1.0 - 4 * error


@pytest.mark.parametrize("n", [4, 7, 12])
def test_student_is_the_conditional_expectation_it_says(n):
    x = np.random.default_rng(3).standard_normal((3, n)) + 0.4
    direction, d = x.sum(axis=1) / np.linalg.norm(x, axis=1), 0.8
    found = Student().log_factors(x, np.ones(3), np.full((3, 1), d))[:, 0]
    for r, log_factor in zip(direction, found, strict=True):
        density = lambda w, r=r: w ** (n - 1) * math.exp(-w * w / 2 + d * r * w)  # noqa: E731
        mean = integrate.quad(density, 0, 40)[0] / (2 ** (n / 2 - 1) * math.gamma(n / 2))
        assert log_factor == pytest.approx(math.log(mean) - n * d * d / 2, abs=2e-8)


def test_p_values_are_the_tails_they_say():
    gap, variance = np.array([0.9, -1.0, 0.0]), np.full(3, 0.2)
    z = 0.9 / math.sqrt(0.2)
    normal = SubGaussian().log_p(gap, variance, gaussian=True)
    assert normal.tolist() == pytest.approx([norm.logsf(z), 0.0, 0.0])
    assert SubGaussian().log_p(gap, variance, gaussian=False)[0] == pytest.approx(-z * z / 2)
    assert np.exp(BoundedVariance().log_p(gap, variance, gaussian=False)[0]) == pytest.approx(0.2 / 1.01)
    x = np.array([[1.0, 2.0, 1.5, 0.5], [-1.0, -2.0, 0.0, 0.5]])
    found = Student().log_p(x, np.ones(2), gaussian=False)
    statistic = x[0].mean() / (x[0].std(ddof=1) / 2)
    assert found.tolist() == pytest.approx([t.logsf(statistic, 3), 0.0])


ROWS = np.arange(3)


def test_a_stake_changes_no_wealth():
    wealth = Wealth(3.0)
    account = wealth.account(COMMON, 3, 4)
    account.stake(wealth.withdraw(0.7) - math.log(4))
    wealth.count(ROWS, account)
    assert account.current == pytest.approx(np.zeros(3), abs=1e-12)
    account.components[1] += math.log(10.0)
    wealth.count(ROWS, account)
    assert np.exp(account.current) == pytest.approx([1.0, 7.3, 1.0])


def test_answers_that_may_use_two_accounts_have_the_wealth_of_both():
    wealth = Wealth(3.0)
    common, own = wealth.account(COMMON, 3, 1), wealth.account(0, 3, 1)
    amount = wealth.withdraw(0.6)
    common.stake(amount + math.log(0.5))
    own.stake(amount + math.log(0.5))
    own.components[2] += math.log(3.0)
    wealth.count(ROWS, common, own)
    assert np.exp(own.current) == pytest.approx([1.0, 1.0, 1.6])


def test_the_least_recently_used_account_is_forgotten_and_the_common_one_never():
    wealth = Wealth(3.0, most_accounts=3)
    for key in (COMMON, 0, 1, 0, 2):
        wealth.account(key, 1, 1)
    assert set(wealth.accounts) == {COMMON, 0, 2}


def test_new_rows_hold_what_they_are_given():
    wealth = Wealth(3.0)
    account = wealth.account(COMMON, 2, 5)
    account.stake(math.log(0.2))
    account.append(1, account.least_staked())
    account.append(1, EMPTY)
    assert np.exp(account.components).sum(axis=1) == pytest.approx([1.0, 1.0, 1.0, 0.0])


def test_scales_of_arms_are_learned():
    scale, rng = np.array([0.5, 1.0, 3.0]), np.random.default_rng(1)
    noise = NoiseEstimate(arm_probes(sp.Problem(np.eye(3), noise=None, goal="largest")))
    for _ in range(400):
        noise.add(np.full(3, 4), scale[:, None] / 2 * rng.standard_normal((3, 8)), {})
    assert noise.probes().noise_scale == pytest.approx(scale, rel=0.05)


def test_covariances_of_one_use_are_learned():
    rng, truth = np.random.default_rng(2), np.array([[4.0, 3.0], [3.0, 9.0]])
    problem = sp.Problem(np.eye(2), measure={"both": ["arm 0", "arm 1"]}, noise=None, goal="largest")
    noise = NoiseEstimate(problem.probes)
    for _ in range(500):
        noise.add(np.array([1]), np.linalg.cholesky(truth) @ rng.standard_normal((2, 6)), {})
    np.testing.assert_allclose(noise.probes().covariances[0], truth, rtol=0.1)


def test_a_probe_without_measurements_has_the_noise_that_all_have_in_common():
    noise = NoiseEstimate(arm_probes(sp.Problem(np.eye(2), noise=None, goal="largest")))
    noise.add(np.array([1, 0]), np.array([[5.0, -5.0, 5.0, -5.0], [0.0] * 4]), {})
    scale = noise.probes().noise_scale
    assert scale[1] == pytest.approx(np.sqrt(100 / 3), rel=0.03)  # sizes are recorded in steps
    assert scale[0] == pytest.approx(scale[1])
