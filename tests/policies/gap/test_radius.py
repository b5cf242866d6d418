import math

import numpy as np
import pytest

import surepick as sp
from common import largest
from surepick.policies.gap import radius
from surepick.policy import Stop


@pytest.mark.parametrize(
    ("x", "expected"), [(0.1, 1.527), (0.5, 1.964), (1, 2.507), (2, 3.583), (5, 6.757), (10, 11.955)]
)
def test_kaufmann_koolen_threshold_has_its_known_values(x, expected):
    assert radius.kaufmann_koolen_c(x) == pytest.approx(expected, abs=5e-4)


def test_shares_of_delta_over_the_lam_grid_sum_to_one():
    shares = [math.exp(radius.lam_log_weight(i)) for i in range(10_000)]
    assert sum(shares) == pytest.approx(1.0, abs=2e-4)
    assert sum(shares) < 1.0


def first_standing(name, plans, counts, means, delta, scale):
    """The gap and the radius of a run that has absorbed these counts and means at once."""
    policy = sp.CombGapE(delta=delta, radius=name)
    run = policy.start(sp.Problem(plans, noise=scale, goal="largest"))
    run.absorb(np.array(counts), np.array(counts) * np.array(means))
    return run.standing()


def test_the_published_radius_is_equation_one_of_the_paper():
    counts, delta, scale = [3, 5, 2], 0.1, 2.0
    standing = first_standing("published", [[1, 0, 2], [0, 3, 2]], counts, [2.0, 0.1, 0.0], delta, scale)
    t, K = sum(counts) + 1, 2
    variance = 1 / 3 + 9 / 5
    expected = scale * math.sqrt(0.5 * variance * math.log(2 * K**2 * t**2 / delta))
    assert standing.radius == pytest.approx(expected, rel=1e-12)


def test_the_normal_mixture_radius_is_its_equation():
    counts, delta, scales = [3, 5, 2], 0.1, [1.0, 2.0, 0.5]
    plans = [[1, 0, 2], [0, 3, 2], [0, 0, 0]]
    lam, share = 1.0, 0.5
    for name in ("normal-mixture", "normal-mixture-joint"):
        standing = first_standing(name, plans, counts, [2.0, 0.1, 0.0], delta, scales)
        y = np.array(plans[standing.leader]) - np.array(plans[standing.rival])
        T, R = np.array(counts, dtype=float), np.array(scales)
        spread = (y**2 * R**2 * (T + lam) / T**2).sum()
        arms = y != 0 if name == "normal-mixture" else np.ones(3, dtype=bool)
        union = 2 if name == "normal-mixture" else 1
        threshold = math.log(union / (share * delta)) + 0.5 * np.log1p(T / lam)[arms].sum()
        assert standing.radius == pytest.approx(math.sqrt(2 * spread * threshold), rel=1e-12)


def test_the_kaufmann_koolen_radius_is_its_equation():
    counts, delta = [3, 5, 2], 0.1
    standing = first_standing("kaufmann-koolen", [[1, 0, 2], [0, 3, 2]], counts, [2.0, 0.1, 0.0], delta, 1.0)
    spread, m = 1 / 3 + 9 / 5, 2
    terms = sum(2 * math.log(4 + math.log(n)) for n in (3, 5))
    threshold = terms + m * radius.kaufmann_koolen_c(math.log(1 / delta) / m)
    assert standing.radius == pytest.approx(math.sqrt(2 * spread * threshold), rel=1e-9)


def test_the_risk_is_the_delta_at_which_the_run_would_stop_now():
    problem, means = largest(np.eye(3)), np.array([0.5, 0.0, -0.2])
    counts = np.array([300, 350, 200])
    run = sp.CombGapE(delta=1e-9).start(problem)
    run.absorb(counts, counts * means)
    risk = run.standing().risk
    assert 1e-9 < risk < 1
    for delta, stops in ((risk * 1.01, True), (risk * 0.99, False)):
        other = sp.CombGapE(delta=delta).start(problem)
        other.absorb(counts, counts * means)
        assert (other.decide() == Stop(0)) is stops
