"""The edges at a vertex of a polytope: to prove that a vertex is best, it suffices that no edge improves.

At a basis every plan is x = v + sum_j lambda_j e_j with lambda_j >= 0, so v is best if no edge e_j improves.
The vertex that leads is the one that a linear program finds at the estimated means. A degenerate vertex has
several bases, each a proof of its own; `clearest` goes to the one whose closest edge is furthest from a tie.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from surepick.core.arrays import BoolArray, FloatArray, IntArray
from surepick.core.polytopes.polytope import Polytope
from surepick.core.polytopes.standard_form import AT_LOWER, AT_UPPER, BASIC
from surepick.errors import ProblemError
from surepick.policies.polytopes.simplex import SOLVED, Simplex

_AT_BOUND = 1e-9  # a basic variable this near to its bound makes the vertex degenerate
_CLEARER = 1.0 + 1e-9  # another basis must be clearer by this factor
_PIVOTS = 12  # between bases of one vertex
_TRIED = 24  # degenerate rows that are looked at for one pivot


@dataclass(frozen=True, eq=False)
class Edges:
    """The edges of a basis. The gain of an edge is the change of value with a step along it."""

    at: IntArray  # (n_variables,) the basis: AT_LOWER, AT_UPPER or BASIC for each variable
    values: FloatArray  # (n_variables,) of the vertex
    gains: FloatArray  # (n_edges, n_arms) a step along edge k adds gains[k] to the plan, in the sign of value
    full: FloatArray  # (n_edges, n_variables) the step itself, slack variables included

    @cached_property
    def is_edge(self) -> BoolArray:
        """(n_edges,) whether a step changes any arm."""
        return np.asarray(self.gains.any(axis=1))

    @cached_property
    def leaves(self) -> IntArray:
        """For each edge that changes an arm, the variable that leaves its bound along it."""
        return np.flatnonzero(self.at != BASIC)[self.is_edge]


class Vertices:
    """The vertices of a polytope and their bases. One simplex tableau serves all calls and keeps moving."""

    def __init__(self, problem: Polytope) -> None:
        form = self.form = problem.form
        self._sign = problem.sign
        self._program = Simplex(form.matrix, form.right, form.lower, form.upper)
        if not self._program.begin():
            raise _unsolved()
        self.first = self._program.at.copy()

    def is_vertex(self, basis: Any) -> bool:
        """Return whether this is the text of a basis whose vertex is a plan."""
        form = self.form
        is_text = isinstance(basis, str) and len(basis) == len(form.lower) and not set(basis) - set("012")
        if not is_text or not self._program.go_to(basis_of(basis)):
            return False
        values = self._program.values
        return bool(((values >= form.lower - _AT_BOUND) & (values <= form.upper + _AT_BOUND)).all())

    def go_to(self, at: IntArray) -> Simplex:
        """Return the linear program at this basis, computed afresh."""
        if not self._program.go_to(at):
            raise _unsolved()
        return self._program

    def edges(self, at: IntArray) -> Edges:
        """Return the edges of the basis `at`."""
        program = self.go_to(at)
        full = self.form.directions(program.basis, at, program.rows[:, : len(at)])
        gains = self._sign * full[:, : self.form.n_arms] + 0.0
        return Edges(at.copy(), program.values.copy(), np.ascontiguousarray(gains), full)

    def best(self, means: FloatArray, start: IntArray) -> Edges:
        """Return the edges of an optimal basis under these means; the simplex starts at the basis `start`."""
        return self.edges(self.solve(-self._sign * means, start))

    def solve(self, costs: FloatArray, start: IntArray) -> IntArray:
        """Return a basis whose plan has the least costs.x.

        Pivots accumulate rounding. A basis counts as optimal once a program computed afresh from it needs no
        further pivot; after three attempts the last one is taken.
        """
        at = start
        full = np.zeros(len(self.form.lower))
        full[: self.form.n_arms] = costs
        for _ in range(3):
            program = self.go_to(at)
            if program.solve(full) != SOLVED:
                raise _unsolved()
            if np.array_equal(at, program.at):
                break
            at = program.at.copy()
        return at

    def plan_at(self, at: IntArray) -> FloatArray:
        """Return the vertex of a basis, in units of the form."""
        return self.go_to(at).values[: self.form.n_arms].copy()

    def clearest(self, edges: Edges, means: FloatArray, variance: FloatArray) -> Edges:
        """Return the basis of the same vertex whose closest edge is furthest from a tie, in standard errors.

        Dual pivots move to the clearest neighbouring basis, one at a time, while that helps. `means` and
        `variance` are those of the arms; the basis must be optimal under these means.
        """
        for _ in range(_PIVOTS):
            better = self._clearer(edges, means, variance)
            if better is None:
                break
            edges = self.edges(better)
        return edges

    def _clearer(self, edges: Edges, means: FloatArray, variance: FloatArray) -> IntArray | None:
        """Return the neighbouring basis of the same vertex that is clearest, if it is clearer than this one.

        When a variable at its bound leaves the basis, the dual ratio test says which edge enters. The other
        edges become e_k - share_k e_enters, so that their gaps and variances need no new tableau.
        """
        at_bound = self.degenerate(edges)[:_TRIED]
        if not at_bound:
            return None
        gains, full = edges.gains[edges.is_edge], edges.full[edges.is_edge]
        gap = -gains @ means
        gap_variance = gains**2 @ variance
        clearest = float((gap / np.sqrt(np.maximum(gap_variance, 1e-300))).min())
        found = None
        for leaving, bound in at_bound:
            rate = full[:, leaving] * (1.0 if bound == AT_LOWER else -1.0)  # off the bound where positive
            may_enter = np.flatnonzero(rate > _AT_BOUND)
            if not len(may_enter):
                continue
            enters = int(may_enter[np.argmin(gap[may_enter] / rate[may_enter])])
            share = rate / rate[enters]
            share[enters] = 0.0
            cross = (gains * variance) @ gains[enters]
            new_gap = gap - share * gap[enters]
            new_variance = gap_variance - 2.0 * share * cross + share**2 * gap_variance[enters]
            z = float((new_gap / np.sqrt(np.maximum(new_variance, 1e-300))).min())
            if z > clearest * _CLEARER and z > 0.0:
                clearest = z
                found = exchanged(edges.at, leaving, bound, int(edges.leaves[enters]))
        return found

    def degenerate(self, edges: Edges) -> list[tuple[int, int]]:
        """Return each basic variable that is at a bound, with that bound; pivots on it stay at the vertex."""
        form = self.form
        is_basic = edges.at == BASIC
        is_low = is_basic & (edges.values - form.lower < _AT_BOUND)
        is_high = is_basic & (form.upper - edges.values < _AT_BOUND)
        found = np.flatnonzero(is_low | is_high).tolist()
        return [(j, AT_LOWER if is_low[j] else AT_UPPER) for j in found]

    def neighbour(self, edges: Edges, k: int) -> FloatArray:
        """Return the plan at the other end of edge k; the vertex itself if the edge has no length."""
        return self.form.plan(edges.values + self.length(edges, k) * edges.full[k])

    def length(self, edges: Edges, k: int) -> float:
        """Return the longest step along edge k that keeps all bounds; infinite if none stops it."""
        form = self.form
        step = edges.full[k]
        room = np.where(step > 0, form.upper - edges.values, edges.values - form.lower)
        moves = np.abs(step) > _AT_BOUND
        return max(0.0, float((room[moves] / np.abs(step[moves])).min(initial=math.inf)))


def _unsolved() -> ProblemError:
    """Return the error for a linear program that cannot be solved."""
    return ProblemError(
        "a linear program of this polytope could not be solved: its numbers differ too much in size; choose "
        "units that make them alike"
    )


def exchanged(at: IntArray, leaving: int, bound: int, entering: int) -> IntArray:
    """Return the basis in which one variable enters, and another leaves to this bound."""
    found = at.copy()
    found[leaving] = bound
    found[entering] = BASIC
    return found


def basis_text(at: IntArray) -> str:
    """Return a basis as one digit per variable: 0 at its lower bound, 1 at its upper bound, 2 basic."""
    return "".join(map(str, at.tolist()))


def basis_of(text: str) -> IntArray:
    """Return AT_LOWER, AT_UPPER or BASIC for each variable, from the digits that `basis_text` writes."""
    return np.frombuffer(text.encode("ascii"), dtype=np.uint8).astype(np.int64) - ord("0")
