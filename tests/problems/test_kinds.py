"""Every kind of problem beside brute force: no plan is better, and all are listed."""

import re
from functools import partial
from itertools import combinations, permutations, product
from typing import Any, NamedTuple

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import surepick as sp
from surepick import problems
from surepick.errors import ProblemError
from surepick.problems.candidates import best_plans

GOALS = st.sampled_from(["smallest", "largest"])


class Case(NamedTuple):
    """A builder that lacks its options, all plans as trying them all finds them, and means of the arms."""

    build: Any
    plans: list[list[float]]
    means: np.ndarray


def means_of(draw, n):
    return np.array(draw(st.lists(st.floats(-3, 5, width=32), min_size=n, max_size=n)))


def taking(chosen, n):
    """The plan of n entries that takes these arms."""
    return [float(s in chosen) for s in range(n)]


def edges_between(draw, n_nodes, most):
    """Edges that may be parallel, but join no node to itself."""
    pairs = st.tuples(st.integers(0, n_nodes - 1), st.integers(0, n_nodes - 1)).filter(lambda p: p[0] != p[1])
    return draw(st.lists(pairs, max_size=most))


@st.composite
def trees(draw):
    n_nodes = draw(st.integers(2, 5))
    edges = [(i, i + 1) for i in range(n_nodes - 1)] + edges_between(draw, n_nodes, 5)
    graphs = {chosen: nx.MultiGraph([edges[e] for e in chosen])
              for chosen in combinations(range(len(edges)), n_nodes - 1)}  # fmt: skip
    plans = [c for c, graph in graphs.items() if len(graph) == n_nodes and nx.is_connected(graph)]
    return Case(
        partial(problems.trees, edges), [taking(c, len(edges)) for c in plans], means_of(draw, len(edges))
    )


@st.composite
def paths(draw):
    """Paths from node 0 to node 1 of a small graph, directed or not, by trying all sequences of edges."""
    edges = [(0, 2), (2, 1), *edges_between(draw, draw(st.integers(3, 5)), 7)]
    directed = draw(st.booleans())
    plans = []

    def walk(node, seen, used):
        if node == 1:
            plans.append(taking(used, len(edges)))
            return
        for e, (a, b) in enumerate(edges):
            for tail, head in ((a, b),) if directed else ((a, b), (b, a)):
                if tail == node and head not in seen:
                    walk(head, seen | {head}, [*used, e])

    walk(0, {0}, [])
    return Case(partial(problems.paths, edges, 0, 1, directed=directed), plans, means_of(draw, len(edges)))


@st.composite
def matchings(draw):
    """Assignments of the shorter side to the longer one, over the pairs that can be."""
    m, n = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    possible = np.ones((m, n), dtype=bool)
    for i, j in draw(st.lists(st.tuples(st.integers(0, m - 1), st.integers(0, n - 1)), max_size=3)):
        possible[i, j] = False
    pairs = list(zip(*np.nonzero(possible), strict=True))
    shorter = permutations(range(max(m, n)), min(m, n))
    chosen = ({(i, j) if m <= n else (j, i) for i, j in enumerate(order)} for order in shorter)
    plans = [[float(pair in own) for pair in pairs] for own in chosen if own <= set(pairs)]
    means = means_of(draw, len(pairs))

    def build(guess=means, **options):
        table = np.full((m, n), np.nan)
        table[possible] = guess
        return problems.matchings(table, **options)

    return Case(build, plans, means)


@st.composite
def choices(draw):
    n = draw(st.integers(3, 6))
    k = draw(st.integers(1, n - 1))
    plans = [taking(chosen, n) for chosen in combinations(range(n), k)]
    return Case(partial(problems.top_k, list("abcdef"[:n]), k), plans, means_of(draw, n))


@st.composite
def packings(draw):
    n, capacity = draw(st.integers(1, 4)), draw(st.integers(1, 16))
    weights = np.array(draw(st.lists(st.integers(1, 9), min_size=n, max_size=n)))
    copies = draw(st.none() | st.lists(st.integers(0, 2), min_size=n, max_size=n))
    most = capacity // weights if copies is None else np.minimum(copies, capacity // weights)
    every = ([float(k) for k in x] for x in product(*(range(m + 1) for m in most)))
    build = partial(problems.knapsack, weights, None, capacity, copies=copies)
    return Case(build, [x for x in every if weights @ x <= capacity], means_of(draw, n))


@st.composite
def assignments(draw):
    """One option for every slot, of which some cannot be, within a budget."""
    n_slots, n_options = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    price = st.sampled_from([0.0, 0.1, 0.2, 0.3, 1.0, 2.0, 3.0, np.nan])
    size = n_slots * n_options
    prices = np.array(draw(st.lists(price, min_size=size, max_size=size))).reshape(n_slots, n_options)
    budget = draw(st.sampled_from([0.3, 1.0, 3.0, 6.0]))
    pairs = [tuple(map(int, pair)) for pair in np.argwhere(~np.isnan(prices))]
    slots = [[pair for pair in pairs if pair[0] == slot] for slot in range(n_slots)]
    chosen = [own for own in product(*slots) if sum(prices[pair] for pair in own) <= budget + 1e-9]
    plans = [[float(pair in own) for pair in pairs] for own in chosen]
    return Case(partial(problems.assign, prices, budget), plans, means_of(draw, len(pairs)))


@st.composite
def tours(draw):
    n = draw(st.integers(4, 6))
    ways = list(combinations(range(n), 2))
    plans = []
    for rest in permutations(range(1, n)):
        if rest[0] < rest[-1]:
            steps = zip((0, *rest), (*rest, 0), strict=True)
            plans.append(taking([ways.index(tuple(sorted(step))) for step in steps], len(ways)))
    return Case(partial(problems.tours, list("abcdef"[:n])), plans, means_of(draw, len(ways)))


KINDS = {
    "assign": assignments,
    "knapsack": packings,
    "matchings": matchings,
    "paths": paths,
    "top_k": choices,
    "tours": tours,
    "trees": trees,
}


@pytest.mark.parametrize("kind", KINDS)
@settings(deadline=None, max_examples=50)
@given(data=st.data(), goal=GOALS)
def test_no_plan_is_better_and_all_are_listed(kind, data, goal):
    build, plans, means = data.draw(KINDS[kind]())
    given_goal = {} if kind == "knapsack" else {"goal": goal}
    if len(plans) < 2:
        with pytest.raises(ProblemError):
            build(**given_goal)
        return
    listed, behind_oracle = build(**given_goal), build(**given_goal, list_plans=False)
    assert sorted(listed.plans.tolist()) == sorted(plans)
    assert listed.about.listing.is_complete
    n_plans = behind_oracle.n_plans
    assert n_plans == len(plans) if behind_oracle.family.count_is_exact else n_plans >= len(plans)
    totals = np.array(plans) @ means
    best = totals.min() if listed.minimize else totals.max()
    assert means @ behind_oracle.best_plan(means) == pytest.approx(best, abs=1e-9)
    assert behind_oracle.best_plan(means).tolist() in plans


@pytest.mark.parametrize("kind", ["matchings", "paths", "trees"])
@settings(deadline=None, max_examples=40)
@given(data=st.data(), n=st.integers(2, 6), goal=GOALS)
def test_the_n_best_come_in_order(kind, data, n, goal):
    build, plans, means = data.draw(KINDS[kind]())
    if len(plans) < 2 or (kind == "paths" and goal == "largest"):  # the longest paths have no such order
        return
    lengths = np.abs(means) + 0.5
    totals = sorted(np.array(plans) @ lengths, reverse=goal == "largest")
    problem = build(guess=lengths, goal=goal, n_best=n)
    assert problem.values(lengths) == pytest.approx(totals[:n])
    if len(totals) > n:
        found = best_plans(build(goal=goal, list_plans=False).family, lengths, n)
        (margin,) = re.findall(r"at least (\S+) worse", found.listing.explanation)
        assert float(margin) == pytest.approx(abs(totals[n] - totals[0]), rel=1e-3)


def test_the_count_of_trees_is_cayleys_and_never_too_small():
    for n, most in ((6, 6**4), (12, 1.001 * 12**10), (25, 2 * 25**23)):
        assert n ** (n - 2) <= problems.trees(nx.complete_graph(n), list_plans=False).n_plans <= most


@pytest.mark.parametrize(
    ("weights", "values", "capacity", "wanted"),
    [
        ([2, 3], [4.0, 4.0], 3, [1, 0]),  # ties go to unused room
        ([3, 3], [4.0, 4.0], 3, [1, 0]),  # and then to the lowest index
        *(([3 * u, 4 * u], [4.0, 5.0], 10 * u + u // 2, [2, 1]) for u in (1, 1000, 10**9)),
    ],
)
def test_ties_and_units_of_weight(weights, values, capacity, wanted):
    problem = problems.knapsack(weights, None, capacity, list_plans=False)
    assert problem.best_plan(values).tolist() == wanted


def test_bounds_that_leave_no_packing_leave_none():
    packings = problems.knapsack(range(4, 16), None, 60, list_plans=False)
    for copies, is_plan in ((15, True), (16, False), (-1, False)):
        plan = np.array([copies, *[0] * 11])
        assert (packings.best_plan_within(np.zeros(12), plan, plan) is not None) == is_plan


def test_many_plans_are_decided_behind_the_oracle():
    rng = np.random.default_rng(0)
    prices = rng.integers(1, 9, (8, 4)).astype(float)
    corners = rng.uniform(0, 100, (10, 2))
    first, second = np.triu_indices(10, 1)
    for problem, means, epsilon in (
        (problems.assign(prices, 30, goal="largest", noise=0.2), rng.normal(size=32), 0.3),
        (
            problems.tours([f"place {i}" for i in range(10)], noise=3.0),
            np.linalg.norm(corners[first] - corners[second], axis=1),
            10.0,
        ),
    ):
        assert not problem.is_listed
        plan = np.array(sp.simulate(problem, means, epsilon=epsilon, seed=0).plan)
        assert abs((plan - problem.best_plan(means)) @ means) <= epsilon


def test_a_guess_of_a_tour_may_be_a_symmetric_table():
    table = np.array([[0, 1, 9, 1], [1, 0, 1, 9], [9, 1, 0, 1], [1, 9, 1, 0.0]])
    assert problems.tours(list("ABCD"), table, spread=0.1).guess.tolist() == [1, 9, 1, 1, 9, 1]


@settings(deadline=None, max_examples=30)
@given(st.lists(st.floats(-2, 2, width=32), min_size=2, max_size=5), st.floats(0.55, 1.0))
def test_the_best_portfolio_fills_the_best_assets_first(returns, most):
    plan = problems.portfolio(returns, upper=most).best_plan(returns)
    first, second, *_ = sorted(returns, reverse=True)
    assert plan.sum() == pytest.approx(1)
    assert np.array(returns) @ plan == pytest.approx(most * first + (1 - most) * second, abs=1e-6)


def test_groups_limit_sums_of_assets():
    limits = {"budget": 100, "groups": {"risky": (["a", "b"], 30)}, "asset_names": ["a", "b", "c"]}
    assert problems.portfolio([3.0, 2.0, 1.0], **limits).best_plan([3.0, 2.0, 1.0]).tolist() == [30, 0, 70]
