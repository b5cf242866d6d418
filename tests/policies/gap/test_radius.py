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
