"""Successive Rejects: measure all arms left equally often, and dismiss the worst one after each phase.

Paper: Audibert & Bubeck (2010), Best Arm Identification in Multi-Armed Bandits. With budget n, K arms,
l = 1/2 + 1/2 + 1/3 + ... + 1/K and n_0 = 0, in phase k = 1..K-1

    1. measure every arm left until it has n_k = ceil((n - K) / (l (K + 1 - k))) measurements;
    2. dismiss the arm that looks worst.

The answer is the arm that is left.

Assumption: independent sub-Gaussian noise of one scale. Proof status: the paper bounds the error probability
after n measurements by K (K-1)/2 exp(-(n - K)/(l H)), where H depends on the unknown gaps; so there is no
guarantee for a run.

Deviations: a budget of K measures each arm once. Of arms that tie the last one is dismissed. Costs and
different noise scales are not used.

Cost of a phase: one pass over the arms.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from surepick.core.arrays import IntArray
from surepick.core.problem import Problem
from surepick.peers.budget_phases import BudgetPhases, BudgetPolicy
from surepick.peers.single_arms import single_arms


@dataclass(frozen=True)
class SuccessiveRejects(BudgetPolicy):
    """A fixed budget between single arms, one of them dismissed after each phase.

    `budget` is divided over the phases; without one it is what the loop or the session has.

    >>> import surepick as sp
    >>> problem = sp.Problem([[1, 0, 0], [0, 1, 0], [0, 0, 1]], noise=1, goal="largest")
    >>> truth = sp.Gaussian([1.0, 0.4, 0.0])
    >>> outcome = sp.simulate(problem, truth, policy=sp.policies.SuccessiveRejects(budget=300))
    >>> outcome.plan, outcome.leader, outcome.n_measured <= 300
    (None, 0, True)
    """

    name: ClassVar[str] = "SuccessiveRejects"

    def start(self, problem: Problem) -> RejectingRun:
        """Return a fresh run on this problem, whose plans must be single arms."""
        return RejectingRun(problem, self.name, self.budget)


class RejectingRun(BudgetPhases):
    """A run of Successive Rejects."""

    def __init__(self, problem: Problem, name: str, budget: int | None) -> None:
        super().__init__(problem, name, budget)
        self._arm_of = np.searchsorted(self._arms, single_arms(problem, name).way)  # of each plan

    @property
    def n_phases(self) -> int:
        """The number of phases: one for each arm but the last."""
        return len(self._alive) - 1

    def request(self) -> IntArray:
        """Return what is missing of this phase's count, for every arm left."""
        counts = np.zeros(len(self._arms), dtype=np.int64)
        counts[self._arm_of[self._alive]] = self.total(self._phase) - self.total(self._phase - 1)
        return counts

    def narrow(self) -> None:
        """Dismiss the arm that looks worst."""
        alive = np.flatnonzero(self._alive)
        worst = len(alive) - 1 - int(np.argmin((self._plans[alive] @ self._means)[::-1]))
        self._alive[alive[worst]] = False

    def total(self, phase: int) -> int:
        """Return n_k, the measurements of an arm left after this phase."""
        n_arms = len(self._alive)
        harmonic = 0.5 + sum(1.0 / i for i in range(2, n_arms + 1))
        each = math.ceil((self._total - n_arms) / (harmonic * (n_arms + 1 - phase)))
        return max(1, each) if phase else 0
