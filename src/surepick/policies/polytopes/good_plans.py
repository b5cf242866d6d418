"""The plans of a polytope within epsilon of its best: how much of anything they have, by safe bounds."""

from __future__ import annotations

import math

import numpy as np

from surepick.core.arrays import FloatArray, IntArray
from surepick.core.polytope import Polytope
from surepick.core.proofs import Inequality, system_of
from surepick.core.standard_form import BASIC, ROUNDING, safe_bound
from surepick.policies.polytopes.simplex import SOLVED, empty_tableau, restore, solve

_NOTHING = np.zeros(0)


class GoodPlans:
    """The plans within epsilon of the best under some means, in units of the form; it has scratch."""

    def __init__(self, problem: Polytope, means: FloatArray, best: FloatArray, epsilon: float) -> None:
        nothing = Inequality(0.0, means, 0.0, means, means, 0.0, 0.0, _NOTHING, _NOTHING)
        self._system, self._n_arms = system_of(problem.form, nothing), len(means)
        top = float(best @ means)
        low = top - epsilon - ROUNDING * (float(np.abs(best) @ np.abs(means)) + epsilon)
        self._system.lower[-1] = min(max(low, self._system.lower[-1]), self._system.upper[-1])
        bounds = self._system.lower, self._system.upper
        self._tableau = empty_tableau(self._system.matrix, self._system.right, bounds)
        self._first = np.zeros(0, dtype=np.int64)

    def begin(self, at: IntArray) -> None:
        """Start every search from this basis of the polytope, of a good plan."""
        self._first = np.append(at, BASIC)

    def most(self, weights: FloatArray) -> tuple[float, FloatArray]:
        """A number that weights.x never exceeds on good plans, and the good plan that a solver found."""
        tableau, system, n = self._tableau, self._system, self._n_arms
        costs = np.zeros(len(system.lower))
        costs[:n] = -weights
        tableau.at[:] = self._first
        if not restore(tableau) or solve(tableau, costs) != SOLVED:
            return math.inf, tableau.values[:n].copy()
        basis = tableau.basis
        prices: FloatArray = np.linalg.solve(system.matrix[:, basis].T, costs[basis]).astype(float)
        return -safe_bound(system, costs, prices), tableau.values[:n].copy()
