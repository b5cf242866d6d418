"""The plans of a polytope that a leader is compared with: vertices found by linear programs.

None of it bears on the guarantee, which is about all plans: known rivals only guide the measurements.
Every linear program starts from a basis that is a function of the past, never from where the last one ended.
"""

from __future__ import annotations

import numpy as np

from surepick.core.arrays import FloatArray, IntArray
from surepick.core.polytopes.polytope import Polytope
from surepick.core.polytopes.proofs import Inequality
from surepick.policies.polytopes.covering import boundary
from surepick.policies.polytopes.edges import Vertices

_MOST = 250  # rivals that are kept
_FIRST = 12  # plans in arbitrary directions, to begin with
_SAME = 1e-9  # plans that differ by less in every amount are the same
_DESCENTS = 30  # linear programs of one local search


class Rivals:
    """Distinct vertices, and the leader's basis; changed by the question that owns it."""

    STATE = ("at", "lead", "plans")

    def __init__(self, problem: Polytope) -> None:
        self.vertices = Vertices(problem)
        self._n_arms = problem.form.n_arms
        self._sign = problem.sign
        self.first = self.vertices.first
        self.at = self.first  # the basis of the leader
        self.lead: FloatArray = np.zeros(self._n_arms)
        self.plans: FloatArray = np.zeros((0, self._n_arms))
        for weights in self._noise(0, _FIRST // 2):
            self.add(self.best(weights))
            self.add(self.best(-weights))

    def choose_lead(self, means: FloatArray) -> None:
        """Make the best vertex under these means (larger is better) the leader, and keep it as a rival."""
        self.at = self.vertices.solve(-means, self.at)
        self.lead = self.vertices.plan_at(self.at)
        self.add(self.lead)

    def draw(self, means: FloatArray, error: FloatArray, batch: int, n: int) -> None:
        """Add the best plans under draws around the means; the draws are a function of the batch number."""
        for noise in self._noise(1 + batch, n):
            self.add(self.best(means + noise * error))

    def find(self, inequality: Inequality, starts: IntArray) -> int:
        """Search from these rivals and the leader for plans that are not ruled out; count the new ones."""
        plans = [*self.plans[starts], self.lead]
        return sum(self.add_near(inequality, plan) for plan in plans)

    def add_near(self, inequality: Inequality, plan: FloatArray) -> bool:
        """Add the plan that a local search from this one ends at, if it is not ruled out and new.

        The search lowers L - boundary(Q), which is linearised at every vertex that is better than the last.
        """
        at = self.at
        least, slope = self._beyond(inequality, plan)
        for _ in range(_DESCENTS):
            costs = inequality.gains - 2 * slope * (inequality.squares * plan - inequality.crosses)
            at = self.vertices.solve(costs, at)
            other = self.vertices.plan_at(at)
            value, slope = self._beyond(inequality, other)
            if value >= least - 1e-12 * abs(least):
                break
            least, plan = value, other
        return least < 0.0 and self.add(plan)

    def _beyond(self, inequality: Inequality, plan: FloatArray) -> tuple[float, float]:
        """Return how far a plan is beyond the boundary (below 0: not ruled out), and the slope there."""
        gain, square = inequality.sums(plan)
        edge, slope = boundary(inequality, max(float(square), 1e-300))
        return float(gain) - edge, slope

    def add(self, plan: FloatArray) -> bool:
        """Add a plan; return whether it is new."""
        if len(self.plans) and np.abs(self.plans - plan).max(axis=1).min() < _SAME:
            return False
        self.plans = np.vstack([self.plans, plan])
        return True

    def forget(self, order: IntArray) -> None:
        """Keep only the first rivals in this order if there are too many."""
        if len(self.plans) > _MOST:
            self.plans = self.plans[np.sort(order[:_MOST])]

    def best(self, weights: FloatArray) -> FloatArray:
        """Return the vertex with the largest weights.x."""
        return self.vertices.plan_at(self.vertices.solve(-weights, self.at))

    def _noise(self, stream: int, n: int) -> FloatArray:
        """Return (n, n_arms) normal noise of the means from this seed, turned so that larger is better."""
        return self._sign * np.random.default_rng(stream).standard_normal((n, self._n_arms))
