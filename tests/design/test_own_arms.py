"""A leader against many rivals with arms of their own: the allocation in closed form is the minimax one."""

import numpy as np
import pytest
from scipy import sparse

import surepick as sp
from surepick.design.allocation import optimal_allocation
from surepick.design.own_arms import own_arm_shares, own_arms


def test_the_closed_form_is_the_minimax_allocation():
    rng = np.random.default_rng(3)
    for n in (2, 5, 40):
        a, b = rng.uniform(0.1, 4, n), rng.uniform(0.1, 4, n)
        leader, own = own_arm_shares(a, b)
        assert leader + own.sum() == pytest.approx(1)
        found = optimal_allocation(np.column_stack([a, np.diag(b)]), tolerance=1e-9)
        assert (a / leader + b / own).max() == pytest.approx(found.value, rel=1e-6)


def test_contrasts_that_share_arms_are_told_apart():
    squares = np.array([[1.0, 4.0, 0.0, 0.0], [1.0, 0.0, 9.0, 0.0]])
    for rows in (squares, sparse.csr_array(squares)):
        found = own_arms(rows)
        assert (found.leader, found.own.tolist()) == (0, [1, 2])
        assert (found.of_leader.tolist(), found.of_own.tolist()) == ([1, 1], [4, 9])
    assert own_arms(np.array([[1.0, 1, 0], [1, 1, 1]])) is None
    assert own_arms(np.array([[1.0, 1, 0, 0], [0, 0, 1, 1]])) is None
    assert own_arms(np.array([[1.0, 1, 0], [1, 1, 0]])) is None


def test_many_single_arms_take_few_times_the_limit():
    means = 15 - np.abs(np.random.default_rng(1).normal(0, 3, 3249))
    means[0] = 15.5
    problem = sp.problems.best_arm([f"a{s}" for s in range(3249)], noise=1.0, goal="largest")
    outcome = sp.simulate(problem, sp.Gaussian(means - 15), policy=sp.BetGapE(), seed=2)
    gaps = 15.5 - means[1:]
    leader, own = own_arm_shares(1 / gaps**2, 1 / gaps**2)
    limit = 2 * ((1 / leader + 1 / own) / gaps**2).max() * 2.65  # kl(.05, .95)
    assert outcome.plan == 0
    assert outcome.n_measured < 5 * limit
