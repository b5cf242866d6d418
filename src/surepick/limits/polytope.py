"""The limit over all plans of a polytope: by the edges at its best vertex, or within epsilon of it.

Every plan is the best vertex plus multiples of its edges, so that some plan is better in another world if and
only if some edge improves there. A basis of the vertex names one edge for each variable that is not basic. A
degenerate vertex has many bases; the edges of length above zero of all of them are its edges, and any one
basis is a larger cone: if they cannot all be looked at, the edges found give a lower end of the limit, and
the clearest basis an upper one.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from surepick.core.answers import close_call
from surepick.core.arrays import BoolArray, FloatArray, IntArray
from surepick.core.policy import known_deviation
from surepick.core.polytope import Polytope
from surepick.core.standard_form import AT_LOWER, AT_UPPER, BASIC
from surepick.errors import ProblemError
from surepick.limits.near_best import CAREFUL, QUICK, NearBest
from surepick.limits.value import Bracket, Limit, Once, least_of, no_limit
from surepick.policies.polytopes.edges import Edges, Vertices

MOST_BASES = 300  # of one vertex that are looked at
_AT_BOUND = 1e-9  # amounts are near 1
_ROUNDING = 1e-12  # of the sizes of what is added up in the gain of an edge
_ROUGH = 0.1  # a tolerance from which on the bracket within epsilon is looked for quickly
_EXACT_TOLERANCE = 1e-3  # of T* where it is looked at beside that bracket


def edge_limit(problem: Polytope, means: FloatArray, delta: float, tolerance: float) -> Limit:
    """Return the limit over the edges at the best vertex; a bracket where there are too many to find all."""
    if not problem.relevant.any():
        raise ProblemError("no arm of unknown mean differs between plans; nothing has to be measured")
    means = np.where(problem.is_known, problem.known_means, means)
    at_best = VertexEdges(problem, means, known_deviation(problem))
    noise = np.where(problem.is_known, 0.0, known_deviation(problem))  # a known mean takes no measurements
    once = Once.of(problem.costs, np.flatnonzero(at_best.differences.any(axis=0) & ~problem.is_known))
    closest = close_call(problem, at_best.best, at_best.neighbours, means)
    if tied := at_best.tied():
        return replace(no_limit(at_best.best, delta, problem.n_arms, once, tied), closest=closest)
    rows, above = at_best.differences, at_best.above()
    time, cost = least_of(rows, rows @ means, noise, problem.costs, tolerance)
    if not at_best.is_complete:
        if above is None:
            time, cost = replace(time, upper=math.inf), replace(cost, upper=math.inf)
        else:
            ends = least_of(above, above @ means, noise, problem.costs, tolerance)
            time, cost = (replace(one, upper=end.upper) for one, end in zip((time, cost), ends, strict=True))
    return Limit(at_best.best, delta, time, cost, once, closest=closest)


def near_best_limit(
    problem: Polytope, means: FloatArray, delta: float, tolerance: float, epsilon: float
) -> Limit:
    """Return the bracket within epsilon, in measurements and in cost."""
    # the best plan is within any epsilon: where epsilon is tiny, edges show more than boxes
    exact = edge_limit(problem, means, delta, max(tolerance, _EXACT_TOLERANCE))
    variance, costs = known_deviation(problem) ** 2, problem.costs
    near = NearBest(problem, means, epsilon, QUICK if tolerance >= _ROUGH else CAREFUL)
    needed = near.has_to_be_measured()
    time = near.ends(variance)
    cost, spending, unit = time, time.shares, float(costs[0])
    if np.ptp(costs) > 0:
        cost, unit = near.ends(variance * costs), 1.0
        spending = cost.shares / costs
    shares, spending = time.shares, spending / spending.sum()
    if exact.time.upper < time.upper:
        shares, spending = exact.time.shares, exact.cost.shares
    return Limit(
        tuple(problem.form.plan(near.best).tolist()),
        delta,
        Bracket(time.lower, min(time.upper, exact.time.upper), shares),
        Bracket(unit * cost.lower, min(unit * cost.upper, exact.cost.upper), spending),
        Once(int(needed.sum()), float(costs[needed].sum())),
        epsilon=epsilon,
        pair_time=time.pairs,
        pair_cost=unit * cost.pairs,
    )


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
