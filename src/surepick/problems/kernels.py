"""The compiled loops of paths and trees; importing them imports Numba."""

from __future__ import annotations

import numpy as np

from surepick.core.arrays import BoolArray, FloatArray, IntArray
from surepick.kernels import compiled


@compiled
def shortest(
    tails: IntArray,
    heads: IntArray,
    weights: FloatArray,
    open_: BoolArray,
    source: int,
    target: int,
    n_nodes: int,
) -> IntArray:
    """Return the arcs of a shortest path over the open arcs, in order, by Bellman and Ford.

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


@compiled
def spanning(tails: IntArray, heads: IntArray, order: IntArray, n_nodes: int) -> IntArray:
    """Return the edges of a spanning tree: all in this order that close no cycle (Kruskal).

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
