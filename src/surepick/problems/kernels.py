"""The compiled loops of paths, trees and assignments; importing them imports Numba."""

from __future__ import annotations

import numpy as np

from surepick.core.arrays import BoolArray, FloatArray, IntArray
from surepick.kernels import compiled_allocating


@compiled_allocating
def shortest(
    tails: IntArray,
    heads: IntArray,
    weights: FloatArray,
    open_: BoolArray,
    source: int,
    target: int,
    n_nodes: int,
) -> IntArray:
    """The arcs of a shortest path over the open arcs, in order, by Bellman and Ford.

    An empty array when the target cannot be reached, [-1] when a cycle of negative weight can. Of equally
    short ways the one found first stays. Arcs of an acyclic network in topological order need a single sweep.
    """
    distance = np.full(n_nodes, np.inf)
    parent = np.full(n_nodes, -1, dtype=np.int64)
    distance[source] = 0.0
    for sweep in range(n_nodes + 1):
        changed = False
        for a in range(tails.size):
            if open_[a] and distance[tails[a]] + weights[a] < distance[heads[a]]:
                distance[heads[a]] = distance[tails[a]] + weights[a]
                parent[heads[a]] = a
                changed = True
        if not changed:
            break
        if sweep == n_nodes:
            return np.full(1, -1, dtype=np.int64)
    back = np.empty(n_nodes, dtype=np.int64)
    length, node = 0, target
    while parent[node] >= 0 and node != source:
        if length == n_nodes:  # rounding on a cycle of weight zero; treated as if it were negative
            return np.full(1, -1, dtype=np.int64)
        back[length] = parent[node]
        node = tails[parent[node]]
        length += 1
    return back[:length][::-1].copy()


@compiled_allocating
def spanning(tails: IntArray, heads: IntArray, order: IntArray, n_nodes: int) -> IntArray:
    """The edges of the spanning tree that takes edges in this order unless they close a cycle (Kruskal).

    Fewer than n_nodes - 1 edges when these do not connect all nodes.
    """
    root = np.arange(n_nodes)
    chosen = np.empty(n_nodes, dtype=np.int64)
    n_chosen = 0
    for e in order:
        a, b = tails[e], heads[e]
        while root[a] != a:
            root[a] = root[root[a]]
            a = root[a]
        while root[b] != b:
            root[b] = root[root[b]]
            b = root[b]
        if a != b:
            root[b] = a
            chosen[n_chosen] = e
            n_chosen += 1
    return chosen[:n_chosen].copy()


@compiled_allocating
def path_losses(
    tails: IntArray,
    heads: IntArray,
    weights: FloatArray,
    used: BoolArray,
    source: int,
    target: int,
    n_nodes: int,
) -> FloatArray:
    """Return for each arc what it costs to flip it: to force it into a path, or out if it is used.

    The network is acyclic and its arcs are in topological order; `used` marks a shortest path. A path crosses
    every cut between levels once, so that one which avoids an arc crosses that arc's cut elsewhere.
    """
    to, onward = np.full(n_nodes, np.inf), np.full(n_nodes, np.inf)
    level = np.zeros(n_nodes, dtype=np.int64)
    to[source], onward[target] = 0.0, 0.0
    for a in range(tails.size):
        to[heads[a]] = min(to[heads[a]], to[tails[a]] + weights[a])
        level[heads[a]] = max(level[heads[a]], level[tails[a]] + 1)
    for a in range(tails.size - 1, -1, -1):
        onward[tails[a]] = min(onward[tails[a]], weights[a] + onward[heads[a]])
    losses = np.empty(tails.size)
    for a in range(tails.size):
        losses[a] = to[tails[a]] + weights[a] + onward[heads[a]] - to[target]
    avoided = np.full(tails.size, np.inf)
    for b in range(tails.size):
        if used[b]:
            cut = level[tails[b]]
            for a in range(tails.size):
                if a != b and level[tails[a]] <= cut < level[heads[a]]:
                    avoided[b] = min(avoided[b], losses[a])
    return np.where(used, avoided, losses)


@compiled_allocating
def tree_losses(
    tails: IntArray, heads: IntArray, weights: FloatArray, used: BoolArray, n_nodes: int
) -> FloatArray:
    """Return for each edge what it costs to flip it: to force it into a spanning tree, or out if it is used.

    `used` marks a minimum spanning tree. Forcing an edge in replaces the heaviest tree edge of the cycle that
    it closes; a tree edge that is forced out is replaced by the lightest edge whose cycle contains it.
    """
    parent, parent_edge = np.full(n_nodes, -1, dtype=np.int64), np.full(n_nodes, -1, dtype=np.int64)
    depth = np.full(n_nodes, -1, dtype=np.int64)
    depth[0] = 0
    found = 1
    while found < n_nodes:
        before = found
        for e in range(tails.size):
            if used[e]:
                for a, b in ((tails[e], heads[e]), (heads[e], tails[e])):
                    if depth[a] >= 0 and depth[b] < 0:
                        parent[b], parent_edge[b], depth[b] = a, e, depth[a] + 1
                        found += 1
        if found == before:
            break
    losses = np.full(tails.size, np.inf)
    for e in range(tails.size):
        if used[e]:
            continue
        a, b = tails[e], heads[e]
        while a != b:
            if depth[a] < depth[b]:
                a, b = b, a
            t = parent_edge[a]
            gain = weights[e] - weights[t]
            losses[e] = min(losses[e], gain)
            losses[t] = min(losses[t], gain)
            a = parent[a]
    return losses


@compiled_allocating
def assignment_losses(costs: FloatArray, column: IntArray) -> FloatArray:
    """Return for each pair how much more the cheapest assignment with it costs; without it, if it is used.

    `costs` is square, infinite where a pair cannot be, and row i has column[i] in a least assignment. Another
    one is reached by cycles of rows, each taking the column of the next; shortest ways by Floyd and Warshall.
    """
    n = column.size
    step = np.empty((n, n))
    for i in range(n):
        for k in range(n):
            step[i, k] = costs[i, column[k]] - costs[i, column[i]]
    way = step.copy()
    for m in range(n):
        for i in range(n):
            for k in range(n):
                if way[i, m] + way[m, k] < way[i, k]:
                    way[i, k] = way[i, m] + way[m, k]
    losses = np.full((n, n), np.inf)
    for i in range(n):
        for k in range(n):
            if k != i:
                cycle = step[i, k] + way[k, i]
                losses[i, column[k]] = cycle
                losses[i, column[i]] = min(losses[i, column[i]], cycle)
    return losses
