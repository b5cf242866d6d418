"""Trees, matchings and tours: no plan is better, and all are listed."""

from itertools import combinations, permutations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import surepick as sp
from common import refuses
from surepick import problems
from surepick.errors import ProblemError
from surepick.problems.family import family_from


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


def all_assignments(possible):
    """Every assignment of the shorter side, as sorted (row, column) pairs."""
    m, n = possible.shape
    if m > n:
        return [tuple(sorted((i, j) for j, i in pairs)) for pairs in all_assignments(possible.T)]
    rows = (tuple(enumerate(columns)) for columns in permutations(range(n), m))
    return [pairs for pairs in rows if all(possible[i, j] for i, j in pairs)]


@st.composite
def tables(draw):
    m, n = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    guess = np.array(draw(st.lists(st.floats(-5, 5, width=32), min_size=m * n, max_size=m * n))).reshape(m, n)
    gone = draw(st.lists(st.tuples(st.integers(0, m - 1), st.integers(0, n - 1)), max_size=3))
    for i, j in gone:
        guess[i, j] = np.nan
    return guess


@settings(deadline=None, max_examples=80)
@given(tables(), st.booleans())
def test_no_assignment_is_better_and_all_are_listed(guess, minimize):
    expected = all_assignments(~np.isnan(guess))
    options = {"goal": "smallest" if minimize else "largest"}
    if len(expected) < 2:
        with pytest.raises(ProblemError):
            problems.matchings(guess, **options)
        return
    problem = problems.matchings(guess, **options)
    assert problem.n_plans == len(expected) <= problem.family.n_plans
    totals = [sum(guess[i, j] for i, j in pairs) for pairs in expected]
    weights = guess[~np.isnan(guess)]
    assert sorted(problem.values(weights)) == pytest.approx(sorted(totals))
    best = (min if minimize else max)(totals)
    assert weights @ problem.family.best(weights) == pytest.approx(best)
    some = problems.matchings(guess, goal="smallest" if minimize else "largest", n_best=2, noise=1)
    assert some.values(weights)[0] == pytest.approx(best)


def lengths(weights, n):
    """The length of every tour from place 0, by its order."""
    table = np.zeros((n, n))
    table[np.triu_indices(n, 1)] = weights
    table += table.T
    orders = [(0, *rest) for rest in permutations(range(1, n)) if rest[0] < rest[-1]]
    return [sum(table[a, b] for a, b in zip(o, (*o[1:], 0), strict=True)) for o in orders]


@settings(deadline=None, max_examples=40)
@given(st.integers(4, 7), st.integers(0, 2**32), st.booleans())
def test_no_tour_is_shorter_and_all_are_listed(n, seed, minimize):
    weights = np.random.default_rng(seed).normal(size=n * (n - 1) // 2)
    family = problems.tour_family(list("abcdefg"[:n]), goal="smallest" if minimize else "largest")
    every, plan = lengths(weights, n), family.best(weights)
    assert weights @ plan == pytest.approx(min(every) if minimize else max(every))
    assert plan.sum() == n
    listed = [weights @ tour for tour in family.listed()]
    assert sorted(listed) == pytest.approx(sorted(every))
    assert len(listed) == family.n_plans


def test_ten_places_are_decided_behind_the_oracle():
    rng = np.random.default_rng(3)
    places = rng.uniform(0, 100, (10, 2))
    first, second = np.triu_indices(10, 1)
    km = np.linalg.norm(places[first] - places[second], axis=1)
    problem = problems.tours([f"place {i}" for i in range(10)], noise=3.0)
    assert not problem.is_listed
    outcome = sp.simulate(problem, km, epsilon=10.0, seed=0)
    assert np.array(outcome.plan) @ km <= problem.best_plan(km) @ km + 10.0
    assert outcome.plan_name.startswith("place 0 - ")
    assert family_from(problem.recipe()).best(km).tolist() == problem.best_plan(km).tolist()


def test_a_guess_may_be_a_symmetric_table():
    table = np.array([[0, 1, 9, 1], [1, 0, 1, 9], [9, 1, 0, 1], [1, 9, 1, 0.0]])
    problem = problems.tours(list("ABCD"), table, spread=0.1)
    assert problem.guess.tolist() == [1, 9, 1, 1, 9, 1]
    for wrong in (table + np.triu(np.ones((4, 4)), 1), table[:3]):
        with refuses("guess", ProblemError):
            problems.tours(list("ABCD"), wrong)
    for places in (list("ABC"), [str(i) for i in range(15)]):
        with refuses("places", ProblemError):
            problems.tours(places)
