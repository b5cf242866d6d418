"""Shares of plays by column generation, and whole counts."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common import refuses
from surepick.design.counts import round_allocation
from surepick.design.information import Diagonal
from surepick.design.minimax import minimax
from surepick.design.play_allocation import PlayAllocation, covering_plays, play_allocation
from surepick.errors import ParameterError


def finder(plays):
    return lambda weights: plays[np.argmax(plays @ weights)]


def some_plays(rng, n_arms):
    """A few plays that together read every arm."""
    plays = rng.random((int(rng.integers(3, 9)), n_arms)) < 0.5
    plays[0, ~plays.any(axis=0)] = True
    return np.unique(plays[plays.any(axis=1)], axis=0).astype(float)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_the_bracket_holds_what_listed_plays_reach(seed):
    rng = np.random.default_rng(seed)
    n_arms = int(rng.integers(2, 7))
    plays = some_plays(rng, n_arms)
    targets = rng.normal(size=(int(rng.integers(1, 6)), n_arms))
    owner, arm = np.nonzero(plays)
    listed = Diagonal(arm, np.ones(len(arm)), owner, len(plays), n_arms)
    right = minimax(listed, targets, np.ones(len(plays)), tolerance=1e-4)
    start = PlayAllocation.uniform(
        covering_plays(finder(plays), np.ones(n_arms, dtype=bool), np.zeros(n_arms))
    )
    effort = {"tolerance": 1e-3, "most_steps": 300, "most_calls": 100}
    found = play_allocation(targets**2, finder(plays), start, **effort)
    assert found.lower <= right.upper * (1 + 1e-9)
    assert found.upper >= right.lower * (1 - 1e-9)
    assert found.upper <= 1.1 * found.lower
    assert found.shares.sum() == pytest.approx(1.0)
    assert (targets**2 @ (1 / np.maximum(found.weights, 1e-12))).max() == pytest.approx(found.upper, rel=1e-6)


def test_a_cover_reads_every_wanted_arm_that_can_be_read():
    plays = np.array([[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]])
    found = covering_plays(finder(plays), np.ones(4, dtype=bool), np.zeros(4))
    assert found.sum(axis=0).tolist() == [1.0, 1.0, 1.0, 0.0]
    assert covering_plays(finder(plays), np.zeros(4, dtype=bool), np.zeros(4)).shape == (0, 4)


weight_lists = st.lists(st.just(0.0) | st.floats(1e-12, 1), min_size=1, max_size=30).filter(
    lambda w: sum(w) > 1e-3
)


@settings(max_examples=200, deadline=None)
@given(weight_lists, st.integers(0, 10**9))
def test_rounding_is_an_efficient_apportionment(weights, extra):
    weights = np.array(weights) / sum(weights)
    support = weights > 0
    n = int(support.sum()) + extra
    counts = round_allocation(weights, n)
    assert counts.sum() == n
    assert (counts[~support] == 0).all()
    assert (counts[support] >= 1).all()
    w, c = weights[support], counts[support]
    # Pukelsheim & Rieder: exactly the roundings with max (n_s - 1)/w_s <= min n_s/w_s
    assert ((c - 1) / w).max() <= (c / w).min() * (1 + 1e-9)


def test_rounding_ties_go_to_the_lowest_index_and_too_few_measurements_are_refused():
    assert round_allocation([1, 1, 1], 4).tolist() == [2, 1, 1]
    with refuses("n", ParameterError):
        round_allocation([0.2, 0.3, 0.5], 2)
