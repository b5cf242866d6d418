"""The edges at the best vertex of a polytope, for the limit: all of them, or a bracket where they are many.

A basis of the vertex names one edge for each variable that is not basic. Where the vertex is not degenerate
these are its edges. A degenerate vertex has many bases; the edges of length above zero of all of them are
its edges, and any one basis is a larger cone. If they cannot all be looked at, the edges found give a lower
end of the limit, and the clearest basis an upper one.
"""

from __future__ import annotations

import numpy as np

from surepick.core.arrays import BoolArray, FloatArray, IntArray
from surepick.core.polytope import Polytope
from surepick.core.standard_form import AT_LOWER, AT_UPPER, BASIC
from surepick.policies.polytopes.edges import Edges, Vertices

MOST_BASES = 300  # of one vertex that are looked at
_AT_BOUND = 1e-9  # amounts are near 1
_ROUNDING = 1e-12  # of the sizes of what is added up in the gain of an edge


class VertexEdges:
    """The best vertex under some means, and its edges."""

    def __init__(self, problem: Polytope, means: FloatArray, noise: FloatArray) -> None:
        self._means, self._vertices = means, Vertices(problem)
        self._form = problem.form
        first = self._vertices.best(means, self._vertices.first)
        self._basis = self._vertices.clearest(first, means, noise**2)
        self.best: tuple[float, ...] = tuple(self._form.plan(first.values).tolist())
        self.is_complete = True  # whether all edges are known
        found: dict[bytes, tuple[FloatArray, FloatArray]] = {}
        todo, seen = [self._basis.at], {self._basis.at.tobytes()}
        while todo:
            edges = self._vertices.edges(todo.pop())
            for k in np.flatnonzero(edges.is_edge & self._has_length(edges)).tolist():
                gains = edges.gains[k]
                key = np.round(gains / np.abs(gains).max(), 9).tobytes()
                found.setdefault(key, (gains, self._vertices.neighbour(edges, k)))
            for at in self._next_bases(edges):
                if at.tobytes() not in seen:
                    if len(seen) >= MOST_BASES:
                        self.is_complete = False
                        break
                    seen.add(at.tobytes())
                    todo.append(at)
        self.differences: FloatArray = -np.array([gains for gains, _ in found.values()])  # (n, n_arms)
        self.neighbours: FloatArray = np.array([there for _, there in found.values()])  # (n, n_arms)

    def tied(self) -> tuple[tuple[float, ...], ...]:
        """The vertices at the other ends of edges along which nothing changes."""
        tied = self._is_tied(self.differences)
        return tuple(tuple(self.neighbours[k].tolist()) for k in np.flatnonzero(tied).tolist())

    def above(self) -> FloatArray | None:
        """Rows for the upper end of the limit: the edges if all are known, else a basis; None if it ties."""
        if self.is_complete:
            return self.differences
        basis = -self._basis.gains[self._basis.is_edge]
        return None if self._is_tied(basis).any() else basis

    def _is_tied(self, differences: FloatArray) -> BoolArray:
        sizes = np.abs(differences) @ np.abs(self._means)
        return np.asarray(differences @ self._means <= _ROUNDING * sizes)

    def _has_length(self, edges: Edges) -> BoolArray:
        lengths = [self._vertices.length(edges, k) for k in range(len(edges.gains))]
        return np.array(lengths) > _AT_BOUND

    def _next_bases(self, edges: Edges) -> list[IntArray]:
        """The bases of the same vertex that differ in one variable."""
        form, basis, moving = self._form, np.flatnonzero(edges.at == BASIC), np.flatnonzero(edges.at != BASIC)
        low = edges.values[basis] - form.lower[basis] < _AT_BOUND
        high = form.upper[basis] - edges.values[basis] < _AT_BOUND
        found = []
        for row in np.flatnonzero(low | high).tolist():
            for k in np.flatnonzero(np.abs(edges.full[:, basis[row]]) > _AT_BOUND).tolist():
                at = edges.at.copy()
                at[basis[row]], at[moving[k]] = AT_LOWER if low[row] else AT_UPPER, BASIC
                found.append(at)
        return found
