"""The bracket of T* behind an oracle, compared with enumeration and with what is known of exchanges."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import surepick as sp
from surepick.core.plan_sets import plan_set, spanned
from surepick.design.allocation import optimal_allocation
from surepick.planning.limit import limit
from surepick.planning.unlisted_limit import FoundRivals, _Node, _Proof


def chosen_plans(seed, most):
    """Some of all plans of four arms, in an order of their own."""
    rng = np.random.default_rng(seed)
    everything = np.array(list(product(range(most + 1), repeat=4)), dtype=float)
    return rng.permutation(everything)[: int(rng.integers(3, 15))]


def asked(plans, **settings):
    def best(weights):
        return plans[np.argmax(plans @ weights)]

    def best_within(weights, lower, upper):
        inside = plans[((plans >= lower) & (plans <= upper)).all(axis=1)]
        return inside[np.argmax(inside @ weights)] if len(inside) else None

    within = best_within if plans.max() > 1 else None
    return sp.OracleProblem(best, plans.shape[1], best_within=within, **{"noise_scale": 1, **settings})


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), most=st.integers(1, 3))
def test_the_bracket_holds_the_limit_of_the_list(seed, most):
    plans, rng = chosen_plans(seed, most), np.random.default_rng(seed)
    means, scales = rng.normal(size=4), rng.lognormal(size=4)
    listed = limit(sp.Problem(plans, noise_scale=scales), means)
    found = limit(asked(plans, noise_scale=scales), means)
    assert found.lower <= listed.upper * (1 + 1e-9)
    assert listed.lower <= found.upper * (1 + 1e-9)
    assert found.upper <= found.lower * 1.01


def rivals_of(plans, means):
    known = plan_set(asked(plans))
    branch, _ = spanned(known)
    best = known.best(means, branch)
    return FoundRivals(known, branch, best, means), branch


def bound_and_truth(seed, *, exaggerate=1.0):
    """What is proved of a branch under random shares, and the largest A / G^2 of its plans."""
    rng = np.random.default_rng(seed)
    plans, means = chosen_plans(seed, int(rng.integers(1, 3))), rng.normal(size=4)
    rivals, branch = rivals_of(plans, means)
    shares = rng.dirichlet(np.ones(4))
    for arm in rng.permutation(branch.free)[: int(rng.integers(0, 3))]:
        branch = branch.pinned(int(arm), float(rng.choice(plans[:, arm])))
    members = plans[branch.holds(plans) & (plans != rivals.best).any(axis=1)]
    if not len(members):
        return 0.0, 0.0
    branch, least = rivals._least.within(branch)
    y = rivals.best - members
    truth = float((y**2 @ (1 / shares) / (y @ means) ** 2).max())
    node = _Node(
        _Proof(rivals, np.ones(4), shares, 0.5 * truth, 1e-3),
        branch,
        replace(least, gap=exaggerate * least.gap),
    )
    node.search()
    return node.proved, truth


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_what_is_proved_of_a_branch_is_true_of_its_plans(seed):
    proved, truth = bound_and_truth(seed)
    assert proved >= truth * (1 - 1e-9)


def test_gaps_that_are_too_large_are_caught_by_the_same_test():
    """The negative control: a proof from numbers g_s that plans fall below is false somewhere."""
    cases = [bound_and_truth(seed, exaggerate=3.0) for seed in range(60)]
    assert any(proved < 0.9 * truth for proved, truth in cases)


@pytest.mark.parametrize("seed", [0, 1])
def test_a_large_set_of_exchanges_is_bracketed_within_a_hundredth(seed):
    """Of the best k arms, T* is that of the single exchanges: all others are unions of them."""
    means = np.random.default_rng(seed).normal(size=24)
    found = limit(
        sp.problems.top_k_family([str(s) for s in range(24)], 12).oracle_problem(noise_scale=1),
        means,
        tolerance=0.01,
    )
    order = np.argsort(-means)
    y = np.array([np.eye(24)[i] - np.eye(24)[j] for i, j in product(order[:12], order[12:])])
    known = optimal_allocation((y / (y @ means)[:, None]) ** 2, tolerance=1e-6)
    assert found.lower <= 2 * known.value * (1 + 1e-9)
    assert found.lower == pytest.approx(2 * known.value, rel=5e-3)
    assert 2 * known.lower <= found.upper * (1 + 1e-9)
    assert found.upper <= found.lower * 1.011


def test_assignments_that_cannot_be_listed_are_bracketed_within_half():
    """Lines alone left factors of two and more; the plans of the lower end are among all of them."""
    names = [str(s) for s in range(8)]
    means = np.random.default_rng(0).normal(size=64)
    found = limit(
        sp.problems.matching_family(names, names).oracle_problem(noise_scale=1), means, tolerance=0.05
    )
    assert found.lower < found.upper <= 1.5 * found.lower
