"""Spanning trees: which edges connect everything at the least weight, when the weights must be measured."""

from __future__ import annotations

import math
from typing import Unpack

import numpy as np

from surepick.core.arrays import FloatArray
from surepick.core.given.numbers import Goal, Numbers
from surepick.core.oracle_problem import AnyProblem
from surepick.core.wording import counted, how_many
from surepick.errors import ProblemError
from surepick.problems.candidates import chosen
from surepick.problems.family import DrawOptions, Family
from surepick.problems.network import Graph, Network, as_network, reached

ROUNDING = 1e-9  # of a determinant, as a share of it, for each node
EXACT = 10**6  # counts below this are whole numbers to within rounding


def trees(
    graph: Graph,
    guess: str | Numbers | None = None,
    *,
    goal: Goal = "smallest",
    **options: Unpack[DrawOptions],
) -> AnyProblem:
    """Return the problem of connecting all nodes by edges of the least total weight.

    `graph` and `guess` are as in `paths`; edges are used both ways. Every spanning tree is a plan: in a list
    up to 1,000 of them, behind an oracle beyond. Where a list is asked for, the plans are the least trees of
    draws near the guess, or the `n_best` least under it. `options` are `DrawOptions`.

    >>> problem = trees([("A", "B"), ("B", "C"), ("A", "C")])
    >>> sorted(problem.plan_names)
    ['A - B + A - C', 'A - B + B - C', 'B - C + A - C']
    """
    network = as_network(graph, directed=False)
    if network.directed:
        raise ProblemError(
            "a spanning tree needs edges that may be used both ways, got a directed graph", field="graph"
        )
    tails, heads = np.r_[network.tails, network.heads], np.r_[network.heads, network.tails]
    joined = reached(tails, heads, np.ones(len(tails), dtype=bool), 0)
    lost = [name for i, name in enumerate(network.nodes) if i >= len(joined) or not joined[i]]
    if lost:
        raise ProblemError(
            f"the network is not connected: {how_many(len(lost), 'node')}, such as {lost[0]!r}, cannot be "
            f"reached from {network.nodes[0]!r}; add edges, or leave those nodes out",
            field="graph",
        )

    def within(costs: FloatArray, required: list[int], forbidden: list[int]) -> list[int] | None:
        """Return the edges of a least tree with the required edges and without the forbidden ones."""
        from surepick.problems.kernels import spanning

        first = costs.copy()
        first[required] = -np.inf
        order = np.argsort(first, kind="stable")
        if forbidden:
            order = order[~np.isin(order, forbidden)]
        found = spanning(network.tails, network.heads, order, len(network.nodes)).tolist()
        if len(found) < len(network.nodes) - 1:
            return None
        return required + [e for e in found if e not in set(required)]

    family = Family(
        lambda costs: chosen(within(costs, [], []) or [], network.n_edges),
        arm_names=network.edge_names,
        goal=goal,
        n_plans=_count_at_most(network),
        kind="trees",
        noun="tree",
        count_is_exact=True,
        are_lengths=True,
        name_of=lambda plan: counted(network.edge_names, plan),
        within=within,
        recipe={"graph": network.recipe(), "goal": goal},
    )
    return family.problem(network.guess(guess), **options)


def _count_at_most(network: Network) -> int:
    """Kirchhoff's count of the spanning trees, rounded up: a minor of the Laplacian."""
    n_nodes = len(network.nodes)
    laplacian = np.zeros((n_nodes, n_nodes))
    for a, b in zip(network.tails.tolist(), network.heads.tolist(), strict=True):
        laplacian[[a, b], [a, b]] += 1
        laplacian[[a, b], [b, a]] -= 1
    log = float(np.linalg.slogdet(laplacian[1:, 1:])[1])
    if log > 40:  # past the whole numbers that floats can tell apart: round up in binary digits
        return int(2 ** math.ceil(log / math.log(2) + ROUNDING * n_nodes))
    count = math.exp(log)
    return round(count) if count < EXACT else math.ceil(count * (1 + ROUNDING * n_nodes))
