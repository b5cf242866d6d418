"""Paths: the best way from one node to another when the weights of the edges must be measured.

The arms are the edges, a plan is a simple path. Directed networks without cycles are solved by dynamic
programming whatever the signs of the weights. With cycles, too, unless some cycle has a negative weight: then
the shortest *simple* path is a hard problem, and the least of all paths is taken where they can be listed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Unpack

import numpy as np

from surepick.core.arrays import BoolArray, FloatArray, IntArray
from surepick.core.given.numbers import Goal, Numbers
from surepick.core.oracle_problem import AnyProblem
from surepick.errors import ProblemError
from surepick.problems.candidates import MOST_LISTED, chosen
from surepick.problems.family import DrawOptions, Family
from surepick.problems.network import Graph, Network, as_network, reached

TOO_MANY = (
    f"the network has cycles and more than {MOST_LISTED:,} paths, of which the best can only be chosen from "
    "a list: give a guess and n_best or n_draws, or edges with a direction and without cycles"
)


def paths(
    graph: Graph,
    source: object,
    target: object,
    guess: str | Numbers | None = None,
    *,
    directed: bool | None = None,
    goal: Goal = "smallest",
    **options: Unpack[DrawOptions],
) -> AnyProblem:
    """Return the problem of going from `source` to `target` in the least total weight of the edges.

    Every simple path is a plan: in a list up to 1,000 of them, behind an oracle beyond. Where a list is asked
    for, the plans are the shortest paths of draws near the guess, or the `n_best` shortest under it. So they
    are, too, in a network with cycles and more than 1,000 paths; beyond 20,000 paths it needs a list.

    - `graph`: a networkx graph, a CSV file or data frame with the columns `from` and `to`, or a list of pairs
    - `source`, `target`: names of nodes
    - `guess`: one number per edge, or the name of the column (edge attribute) that holds it; "guess" if there
    - `directed`: whether edges are used from -> to only; None: as the graph is; for pairs and files True
      where both A -> B and B -> A are there
    - `goal`: the total of the best plan, "smallest" or "largest"; "smallest"
    - `options`: `DrawOptions`

    >>> problem = paths([("A", "B", 2), ("B", "D", 2), ("A", "C", 1), ("C", "D", 4)], "A", "D")
    >>> problem.arm_names, problem.plan_names
    (('A - B', 'B - D', 'A - C', 'C - D'), ('A -> B -> D', 'A -> C -> D'))
    """
    network = as_network(graph, directed=directed)
    ways = _ways(network, network.node(source, "source"), network.node(target, "target"))
    family = Family(
        lambda costs: chosen(ways.shortest(costs), network.n_edges),
        arm_names=network.edge_names,
        goal=goal,
        n_plans=ways.count_at_most(),
        kind="paths",
        noun="path",
        count_is_exact=ways.acyclic,
        are_lengths=True,
        name_of=ways.name_of,
        within=ways.shortest_within,
        recipe={"graph": network.recipe(), "source": str(source), "target": str(target), "goal": goal},
        is_slow=not ways.acyclic,
        why_listed=None if ways.acyclic else lambda: "" if ways.every is not None else TOO_MANY,
    )
    return family.problem(network.guess(guess), **options)


@dataclass(frozen=True, eq=False)
class _Ways:
    """The arcs that lie on a walk from source to target: an edge that may be used both ways is two arcs."""

    network: Network
    source: int
    target: int
    tails: IntArray  # (n_arcs,)
    heads: IntArray
    edges: IntArray
    acyclic: bool

    @cached_property
    def every(self) -> list[list[int]] | None:
        """The edges of every simple path from source to target; None if there are more than `MOST_LISTED`.

        The search is depth first. It continues from a node only if the target can be reached from there
        without a visited node, so it never explores a part of the network in which no path is found. Sets of
        nodes are whole numbers: bit k stands for node k.
        """
        arcs_from: list[list[tuple[int, int]]] = [[] for _ in self.network.nodes]  # (head, edge) by tail
        successors = [0] * len(self.network.nodes)  # the set of heads by tail
        for tail, head, edge in zip(
            self.tails.tolist(), self.heads.tolist(), self.edges.tolist(), strict=True
        ):
            arcs_from[tail].append((head, edge))
            successors[tail] |= 1 << head
        found: list[list[int]] = []
        start: list[int] = []
        stack = [(self.source, 1 << self.source, start)]  # a node, all nodes visited, the edges up to it
        while stack and len(found) <= MOST_LISTED:
            node, visited, path = stack.pop()
            if node == self.target:
                found.append(path)
            elif _can_reach(successors, node, self.target, visited):
                for head, edge in arcs_from[node]:
                    if not visited >> head & 1:
                        stack.append((head, visited | 1 << head, [*path, edge]))
        return found if len(found) <= MOST_LISTED else None

    def count_at_most(self) -> int:
        """Return the number of paths without cycles; with them, of choices of one arc out of every node."""
        n_nodes = len(self.network.nodes)
        if not self.acyclic:
            out = np.bincount(self.tails, minlength=n_nodes).tolist()
            return min(prod(max(1, int(k)) for k in out), 1 << self.network.n_edges)
        total = [0] * n_nodes
        total[self.source] = 1
        for tail, head in zip(self.tails.tolist(), self.heads.tolist(), strict=True):
            total[head] += total[tail]
        return int(total[self.target])

    def shortest(self, costs: FloatArray) -> IntArray:
        """Return the edges of a shortest simple path."""
        found = self._run(costs, np.ones(len(self.tails), dtype=bool), self.source)
        if found is not None:
            return found
        if self.every is None:
            raise ProblemError(f"some cycle has a negative weight: {TOO_MANY}", field="graph")
        return np.array(self.every[int(np.argmin([costs[path].sum() for path in self.every]))])

    def shortest_within(
        self, costs: FloatArray, required: list[int], forbidden: list[int]
    ) -> list[int] | None:
        """Return the shortest path that begins with the required edges and avoids the forbidden ones."""
        visited = [self.source]
        for edge in required:
            visited.append(self.network.across(edge, visited[-1]))
        if visited[-1] == self.target:
            return None
        open_ = ~np.isin(self.edges, forbidden) & ~np.isin(self.heads, visited)
        found = self._run(costs, open_, visited[-1])
        if found is None:
            raise ProblemError(
                "the best paths cannot be listed in order: under this guess some cycle has a negative "
                "weight; leave n_best out, and candidates come from draws",
                field="n_best",
            )
        return required + found.tolist() if found.size else None

    def _run(self, costs: FloatArray, open_: BoolArray, source: int) -> IntArray | None:
        """Return the edges of a shortest path, empty if there is none; None if a cycle is negative."""
        from surepick.problems.kernels import shortest

        n_nodes = len(self.network.nodes)
        arcs = shortest(self.tails, self.heads, costs[self.edges], open_, source, self.target, n_nodes)
        return None if arcs.size and arcs[0] < 0 else np.asarray(self.edges[arcs])

    def name_of(self, plan: FloatArray) -> str:
        """Return the nodes on the way: "A -> C -> D"."""
        network, left, nodes = self.network, set(np.flatnonzero(plan).tolist()), [self.source]
        while left:
            edge = next(e for e in left if nodes[-1] in (network.tails[e], network.heads[e]))
            left.discard(edge)
            nodes.append(network.across(edge, nodes[-1]))
        return " -> ".join(network.nodes[node] for node in nodes)


def _can_reach(successors: list[int], node: int, target: int, visited: int) -> bool:
    """Return whether arcs lead from the node to the target without a visited node; sets of nodes are bits."""
    new = known = successors[node] & ~visited
    while new and not known >> target & 1:
        following = 0
        for other in range(new.bit_length()):
            if new >> other & 1:
                following |= successors[other]
        new = following & ~visited & ~known
        known |= new
    return bool(known >> target & 1)


def _ways(network: Network, source: int, target: int) -> _Ways:
    if source == target:
        raise ProblemError(
            f"source and target must differ, got {network.nodes[source]!r} for both", field="target"
        )
    edges = np.arange(network.n_edges)
    tails, heads = network.tails, network.heads
    if not network.directed:
        tails, heads = np.concatenate([tails, heads]), np.concatenate([heads, tails])
        edges = np.concatenate([edges, edges])
    useful = (heads != source) & (tails != target)
    useful &= reached(tails, heads, useful, source)[tails] & reached(heads, tails, useful, target)[heads]
    if not useful.any():
        names = network.nodes[source], network.nodes[target]
        raise ProblemError(
            f"no path leads from {names[0]!r} to {names[1]!r}; add the edges that connect them"
            + (", or pass directed=False if edges may be used both ways" if network.directed else ""),
            field="graph",
        )
    tails, heads, edges = tails[useful], heads[useful], edges[useful]
    order, acyclic = _topological(tails, heads, len(network.nodes))
    return _Ways(network, source, target, tails[order], heads[order], edges[order], acyclic)


def _topological(tails: IntArray, heads: IntArray, n_nodes: int) -> tuple[IntArray, bool]:
    """Return the arcs in a topological order of their tails, and whether there is one."""
    level = np.zeros(n_nodes, dtype=np.int64)
    for _ in range(n_nodes):
        deeper = level.copy()
        np.maximum.at(deeper, heads, level[tails] + 1)
        if (deeper == level).all():
            return np.argsort(level[tails], kind="stable"), True
        level = deeper
    return np.arange(len(tails)), False
