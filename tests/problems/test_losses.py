"""What a family says of its exchanges, compared with all its plans."""

from itertools import combinations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surepick import problems
from surepick.core.plan_sets import plan_set, spanned


def grid(n):
    graph = nx.DiGraph([((i, j), (i + 1, j)) for i in range(n - 1) for j in range(n)])
    graph.add_edges_from([((i, j), (i, j + 1)) for i in range(n) for j in range(n - 1)])
    graph.add_edge((0, 0), (n - 1, 1))  # a short cut over several levels
    return problems.path_family(graph, (0, 0), (n - 1, n - 1))


def names(n):
    return [str(s) for s in range(n)]


POSSIBLE = [[1, 1, 0, 1], [1, 0, 1, 1], [1, 1, 1, 1]]
FAMILIES = {
    "choices": problems.top_k_family(names(6), 2, goal="largest"),
    "the least choices": problems.top_k_family(names(6), 4, goal="smallest"),
    "trees": problems.tree_family(nx.wheel_graph(5)),
    "trees with a bridge": problems.tree_family([*nx.cycle_graph(4).edges, (3, 4)]),
    "the heaviest trees": problems.tree_family(nx.complete_graph(4), goal="largest"),
    "paths": grid(3),
    "the longest paths": problems.path_family(
        [("A", "B"), ("B", "C"), ("A", "C"), ("C", "D"), ("B", "D")], "A", "D", directed=True, goal="largest"
    ),
    "assignments": problems.matching_family(names(4), names(4), goal="smallest"),
    "assignments that leave columns": problems.matching_family(
        names(3), names(4), possible=POSSIBLE, goal="smallest"
    ),
    "assignments that leave rows": problems.matching_family(
        names(4), names(3), possible=np.transpose(POSSIBLE), goal="smallest"
    ),
}


def all_plans(family):
    if family.within is not None:
        return family.problem().plans
    size = int(family.best(np.zeros(family.n_arms)).sum())
    return np.array([np.isin(range(6), chosen) for chosen in combinations(range(6), size)], dtype=float)


@pytest.mark.parametrize("name", FAMILIES)
@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_losses_are_those_of_the_best_plan_that_differs(name, seed):
    family = FAMILIES[name]
    plans, weights = all_plans(family), np.random.default_rng(seed).normal(size=family.n_arms)
    best = family.best(weights)
    values = (plans @ weights) * (-1 if (family.goal == "smallest") else 1)
    found = family.losses(weights, best)
    for s in range(family.n_arms):
        apart = values[plans[:, s] != best[s]]
        expected = values.max() - apart.max() if apart.size else np.inf
        assert found[s] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("name", FAMILIES)
@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_losses_within_a_branch_are_not_above_those_of_its_plans(name, seed):
    """Exchanges that break a pin may only make a loss larger, never that of a plan of the branch."""
    family, rng = FAMILIES[name], np.random.default_rng(seed)
    asked = plan_set(family.oracle_problem(noise=1))
    branch, _ = spanned(asked)
    inside = all_plans(family) * (-1 if (family.goal == "smallest") else 1)
    for arm in rng.permutation(branch.free)[: int(rng.integers(1, 4))]:
        branch = branch.pinned(int(arm), float(rng.choice(inside[branch.holds(inside)][:, arm])))
    weights = rng.normal(size=family.n_arms)
    plan = asked.best(weights, branch)
    members = inside[branch.holds(inside)]
    losses = asked.losses(weights, branch, plan)
    for s in branch.free:
        apart = members[members[:, s] != plan[s]] @ weights
        expected = plan @ weights - apart.max() if apart.size else np.inf
        assert losses[s] <= expected + 1e-9
        if np.isfinite(expected):
            assert losses[s] == pytest.approx(expected, abs=1e-8)


def test_a_network_with_cycles_and_other_plans_know_of_no_losses():
    cycles = problems.path_family(nx.complete_graph(4), 0, 2)
    assert cycles.losses is None
    packings = plan_set(problems.knapsack_family([3, 4], 10).oracle_problem(noise=1))
    box, plan = spanned(packings)
    assert packings.losses(np.ones(2), box, plan) is None
