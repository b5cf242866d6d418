"""Plans of single arms are found whatever they share, and others are refused."""

import numpy as np
import pytest

import surepick as sp
from common import largest, refuses
from surepick.errors import ProblemError
from surepick.peers.sequential import single_arms


def test_each_plan_gets_its_own_arm_whatever_all_share():
    rng = np.random.default_rng(1)
    order = rng.permutation(5)
    own = np.diag([1.0, 2.0, -0.5, 3.0, 1.5])[order]
    plans = np.hstack([own + rng.normal(size=5), np.ones((5, 1))])  # and an arm that all have
    for problem, sign in ((largest(plans), 1), (sp.Problem(plans, goal="smallest", noise=1), -1)):
        found = single_arms(problem, "LUCB")
        assert found.way.tolist() == order.tolist()
        assert found.factor == pytest.approx(sign * np.array([1.0, 2.0, -0.5, 3.0, 1.5])[order])
        means = rng.normal(size=6)
        shift = problem.sign * problem.values(means) - found.factor * means[found.way]
        assert np.ptp(shift) < 1e-12


def test_counts_go_to_arms_and_come_back_as_candidates():
    found = single_arms(sp.Problem([[0, 2], [1, 0]], noise=[1.0, 3.0], cost=[1, 5], goal="largest"), "LUCB")
    counts = found.counts(np.array([4, 7]))
    seen, sums = found.seen(counts, np.array([1.0, 10.0]))
    assert seen.tolist() == [4, 7]
    values = np.array([[0, 2], [1, 0]]) @ np.array([3.0, 5.0])
    factor = found.factor * np.array([3.0, 5.0])[found.way]
    assert values[0] - values[1] == factor[0] - factor[1]
    assert sums.tolist() == (found.factor * np.array([1.0, 10.0])[found.way]).tolist()


@pytest.mark.parametrize(
    "plans",
    [[[1, 0], [0, 1], [1, 1]], [[1, 1, 0], [0, 1, 1], [1, 0, 0]], [[1.0], [2.0]], [[1, 0], [2, 0], [0, 3]]],
)
def test_plans_that_share_arms_are_refused_with_what_to_use(plans):
    with refuses("policy", ProblemError):
        single_arms(largest(plans), "LUCB")
