from itertools import combinations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surepick import problems


@st.composite
def networks(draw):
    n_nodes = draw(st.integers(2, 5))
    pairs = st.tuples(st.integers(0, n_nodes - 1), st.integers(0, n_nodes - 1)).filter(lambda p: p[0] != p[1])
    edges = [(i, i + 1) for i in range(n_nodes - 1)] + draw(st.lists(pairs, max_size=5))
    weights = st.lists(st.floats(-5, 5, width=32), min_size=len(edges), max_size=len(edges))
    return n_nodes, edges, np.array(draw(weights))


def all_trees(n_nodes, edges):
    found = []
    for chosen in combinations(range(len(edges)), n_nodes - 1):
        graph = nx.MultiGraph([edges[e] for e in chosen])
        if len(graph) == n_nodes and nx.is_connected(graph):
            found.append(chosen)
    return found


@settings(deadline=None, max_examples=60)
@given(networks(), st.booleans())
def test_no_spanning_tree_is_better_and_all_are_listed(case, minimize):
    n_nodes, edges, weights = case
    expected = all_trees(n_nodes, edges)
    family = problems.tree_family(edges, goal="smallest" if minimize else "largest")
    assert family.n_plans == len(expected)
    best = (min if minimize else max)(weights[list(tree)].sum() for tree in expected)
    assert weights @ family.best(weights) == pytest.approx(best)
    if len(expected) > 1:
        problem = problems.trees(edges, goal="smallest" if minimize else "largest", noise=1)
        assert sorted(tuple(np.flatnonzero(plan)) for plan in problem.plans) == sorted(expected)


@settings(deadline=None, max_examples=30)
@given(networks(), st.integers(2, 6))
def test_the_n_best_trees_come_in_order(case, n):
    n_nodes, edges, weights = case
    totals = sorted(weights[list(tree)].sum() for tree in all_trees(n_nodes, edges))
    if len(totals) > 1:
        assert problems.trees(edges, weights, n_best=n, noise=1).values(weights) == pytest.approx(totals[:n])


def test_the_count_of_trees_is_cayleys_and_never_too_small():
    assert problems.tree_family(nx.complete_graph(6)).n_plans == 6**4
    assert problems.tree_family(nx.complete_graph(12)).n_plans >= 12**10
    assert problems.tree_family(nx.complete_graph(25)).n_plans >= 25**23
    assert problems.tree_family(nx.complete_graph(25)).n_plans <= 2 * 25**23
