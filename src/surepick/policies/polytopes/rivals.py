"""The plans of a polytope that a leader is compared with: vertices found by linear programs.

None of it bears on the guarantee, which is about all plans: rivals that are known steer what is measured.
Every linear program starts from a basis that is a function of the past, never from where the last one ended.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from surepick.core.arrays import FloatArray, IntArray
from surepick.core.polytope import Polytope
from surepick.core.proofs import Inequality
from surepick.policies.polytopes.boundary import descend
from surepick.policies.polytopes.edges import Vertices, unsolved
from surepick.policies.polytopes.simplex import SOLVED, Tableau, restore, solve

_MOST = 250  # rivals that are kept
_FIRST = 12  # plans in arbitrary directions, to begin with
_SAME = 1e-9  # plans that differ by less in every amount are the same


class Rivals:
    """Distinct vertices, and the leader's basis; changed by the question that owns it."""

    STATE = ("at", "lead", "plans")

    def __init__(self, problem: Polytope) -> None:
        self._vertices = Vertices(problem)
        self._n_arms, self._sign = problem.form.n_arms, problem.sign
        self.first = self._vertices.first
        self.at = self.first  # the basis of the leader
        self.lead: FloatArray = np.zeros(self._n_arms)
        self.plans: FloatArray = np.zeros((0, self._n_arms))
        for weights in self._noise(0, _FIRST // 2):
            self.add(self.best(weights))
            self.add(self.best(-weights))

    def choose_lead(self, means: FloatArray) -> None:
        """The vertex that is best under these means."""
        self.lead = self.best(means)
        self.at = self._vertices.tableau.at.copy()
        self.add(self.lead)

    def draw(self, means: FloatArray, error: FloatArray, batch: int, n: int) -> None:
        """Add the best plans under draws around the means; the draws are a function of the batch number."""
        for noise in self._noise(1 + batch, n):
            self.add(self.best(means + noise * error))

    def find(self, inequality: Inequality, starts: IntArray) -> int:
        """Look from some rivals and the leader for plans that are not ruled out; how many were new."""
        plans = [*self.plans[starts], self.lead]
        return sum(self.add_near(inequality, plan) for plan in plans)

    def add_near(self, inequality: Inequality, plan: FloatArray) -> bool:
        """Add the plan that a search from this one ends at, if it is not ruled out and new."""
        tableau, point = self._go_to(self.at), np.array(plan)
        return descend(inequality, tableau, np.zeros(len(tableau.lower)), point) < 0.0 and self.add(point)

    def add(self, plan: FloatArray) -> bool:
        """Add a plan; return whether it is new."""
        if len(self.plans) and np.abs(self.plans - plan).max(axis=1).min() < _SAME:
            return False
        self.plans = np.vstack([self.plans, plan])
        return True

    def forget(self, order: IntArray) -> None:
        """Keep the first of these where there are too many."""
        if len(self.plans) > _MOST:
            self.plans = self.plans[np.sort(order[:_MOST])]

    def is_vertex(self, basis: Any) -> bool:
        """Return whether this is the text of a basis whose vertex is a plan."""
        return self._vertices.is_vertex(basis)

    def plan_at(self, at: IntArray) -> FloatArray:
        """Return the vertex of a basis."""
        return self._go_to(at).values[: self._n_arms].copy()

    def _noise(self, stream: int, n: int) -> FloatArray:
        """Numbers like noise, turned with the means: to minimise is to maximise the negative."""
        return self._sign * _noise(stream, n, self._n_arms)

    def best(self, weights: FloatArray) -> FloatArray:
        """The vertex with the largest weights.x."""
        tableau = self._go_to(self.at)
        costs = np.zeros(len(tableau.lower))
        costs[: self._n_arms] = -weights
        if solve(tableau, costs) != SOLVED or not restore(tableau):
            raise unsolved()
        return tableau.values[: self._n_arms].copy()

    def _go_to(self, at: IntArray) -> Tableau:
        """Return the tableau at this basis."""
        tableau = self._vertices.tableau
        tableau.at[:] = at
        if not restore(tableau):
            raise unsolved()
        return tableau


def _noise(stream: int, n: int, n_arms: int) -> FloatArray:
    """Numbers of mean 0 and variance 1 that look random and are a function of where they stand."""
    with np.errstate(over="ignore"):
        z = np.arange(stream * 10**6, stream * 10**6 + 4 * n * n_arms, dtype=np.uint64)
        z = (z + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)  # splitmix64
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    uniform = (z ^ (z >> np.uint64(31))).astype(float) / 2.0**64
    return np.sqrt(3.0) * (uniform.reshape(n, n_arms, 4).sum(axis=2) - 2.0)
