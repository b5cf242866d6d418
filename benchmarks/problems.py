"""Seconds to build problems of realistic size, and to decide between more than 10^9 plans behind an oracle.

python benchmarks/problems.py
"""

import time
from itertools import product

import networkx as nx
import numpy as np

import surepick as sp
from surepick import problems

BUDGET = 3000


def timed(call):
    began = time.process_time()
    result = call()
    return result, time.process_time() - began


def builders():
    rng = np.random.default_rng(0)
    graph = nx.connected_watts_strogatz_graph(100, 6, 0.3, seed=1)
    for edge in graph.edges:
        graph.edges[edge]["hours"] = float(rng.uniform(1, 5))
    use = rng.uniform(0, 1, (60, 200))
    few = rng.integers(1, 9, (5, 200)).astype(float)
    value = rng.uniform(1, 2, 200)
    yield (
        "paths, 100 nodes, 300 edges, 1000 draws",
        lambda: problems.paths(graph, 0, 57, "hours", spread=0.5, list_plans=True, noise=1),
    )
    yield (
        "paths, the same, 200 best",
        lambda: problems.paths(graph, 0, 57, "hours", n_best=200, list_plans=True, noise=1),
    )
    yield (
        "trees, 100 nodes, 300 edges, 1000 draws",
        lambda: problems.trees(graph, "hours", spread=0.1, list_plans=True, noise=1),
    )
    yield (
        "trees, the same, 200 best",
        lambda: problems.trees(graph, "hours", n_best=200, list_plans=True, noise=1),
    )
    yield (
        "matchings, 50 x 50, 1000 draws",
        lambda: problems.matchings(
            rng.uniform(size=(50, 50)), spread=0.02, list_plans=True, noise=1, goal="smallest"
        ),
    )
    yield (
        "transport, 50 x 50, 1000 draws",
        lambda: problems.transport(
            np.ones(50), np.ones(50), rng.uniform(1, 5, (50, 50)), spread=0.05, list_plans=True, noise=1
        ),
    )
    yield (
        "program, 200 variables, 60 rows, 200 draws",
        lambda: problems.production(
            use, use.sum(1) / 3, value, upper=1, spread=0.05, n_draws=200, list_plans=True, noise=1
        ),
    )
    yield (
        "integer program, 200 variables, 1 row, 50 draws",
        lambda: problems.production(
            few[:1],
            [100],
            few[0] + value,
            upper=1,
            whole=True,
            spread=0.1,
            n_draws=50,
            list_plans=True,
            noise=1,
        ),
    )
    yield (
        "portfolio, 100 assets, 200 draws",
        lambda: problems.portfolio(value[:100], upper=0.1, spread=0.1, n_draws=200, list_plans=True, noise=1),
    )
    yield (
        "knapsack 0/1, 100 items, 1000 draws",
        lambda: problems.knapsack(
            few.ravel()[:100].astype(int),
            value[:100] * 5,
            150,
            copies=1,
            spread=0.2,
            n_draws=1000,
            list_plans=True,
            noise=1,
        ),
    )


def oracles():
    grid = nx.DiGraph([((i, j), (i + 1, j)) for i, j in product(range(17), range(18))])
    grid.add_edges_from([((i, j), (i, j + 1)) for i, j in product(range(18), range(17))])
    yield "grid paths, 18 x 18", problems.path_family(grid, (0, 0), (17, 17)), 0.005
    yield "spanning trees of K_12", problems.tree_family(nx.complete_graph(12)), 0.001
    yield "top 20 of 40", problems.top_k_family([str(s) for s in range(40)], 20, goal="largest"), 0.01
    names = [str(i) for i in range(13)]
    yield "matchings 13 x 13", problems.matching_family(names, names, goal="smallest"), 0.002


def main():
    print("| builder | plans | chance of a plan that is missing | CPU s |")
    print("|---|---|---|---|")
    problems.paths([("A", "B"), ("A", "C"), ("C", "B")], "A", "B", noise=1)  # compiles
    problems.trees([("A", "B"), ("A", "C"), ("C", "B")], noise=1)
    problems.knapsack([4, 5], [4, 5], 10, copies=[1, 2], noise=1)
    for name, build in builders():
        problem, seconds = timed(build)
        chance = problem.candidates.chance_of_new
        print(f"| {name} | {problem.n_plans} | {chance:.2g} | {seconds:.2f} |", flush=True)
    print()
    print("| GenTS-Explore behind an oracle | plans at most | right | measurements | CPU ms a round |")
    print("|---|---|---|---|---|")
    for name, family, noise in oracles():
        means = np.random.default_rng(1).uniform(1, 5, family.n_arms)
        problem, truth = family.oracle_problem(noise=noise), sp.Gaussian(means, noise)
        outcome, seconds = timed(
            lambda p=problem, t=truth: sp.simulate(p, sp.GenTSExplore(), t, budget=BUDGET)
        )
        right = outcome.plan == tuple(family.best(means)) if outcome.plan else "not sure"
        rate = seconds / outcome.n_rounds * 1e3
        print(
            f"| {name} | {family.n_plans:.2g} | {right} | {outcome.n_measurements} | {rate:.1f} |", flush=True
        )


if __name__ == "__main__":
    main()
