"""CSA and CSAR: each phase fixes one arm's amount, the one whose change would cost most.

Paper: Nakamura & Sugiyama (2024), Fixed-Budget Real-Valued Combinatorial Pure Exploration of Multi-Armed
Bandit: Combinatorial Successive Assign. With budget T, d arms and L = 1 + 1/2 + ... + 1/d, in phase t = 1..d

    1. measure every arm that is not fixed until it has ceil((T - d) / (L (d - t + 1))) measurements;
    2. lead = the best plan by estimate among those that have all fixed amounts;
    3. for each free arm: the best such plan whose amount of that arm is another than the lead's;
    4. fix the arm for which that plan is furthest behind, at the lead's amount.

The answer is the plan that has all fixed amounts.

CSAR is Chen, Lin, King, Lyu & Chen (2014), Combinatorial Pure Exploration of Multi-Armed Bandits, for sets of
arms: on plans of zeros and ones, to fix an arm at the lead's amount is to accept or to reject it, so that a
run is one of CSA, its extension to real plans.

Assumption: independent sub-Gaussian noise of one scale. Proof status: the paper bounds the error probability
after T measurements, with unknown constants of the instance; so there is no guarantee for a run.

Deviations: d counts the arms on which plans differ, and the others are not measured; T = d measures each
once; the run ends when one plan is left; where the amount of a free arm is settled already, it is fixed
first, the lowest of several. How far behind is not divided by the change of the amount (the authors' code
does; it makes no difference that could be seen). Costs and different noise scales are not used.

Cost of a phase: one pass over the plans.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from surepick.core.arrays import IntArray
from surepick.core.plan_sets import check_zeros_and_ones
from surepick.core.problem import Problem
from surepick.peers.budget_phases import BudgetPhases, BudgetPolicy


@dataclass(frozen=True)
class CSA(BudgetPolicy):
    """Combinatorial Successive Assign: a fixed budget, one arm's amount settled in each phase.

    `budget` is divided over the phases; without one it is what the loop or the session has.

    >>> import surepick as sp
    >>> problem = sp.Problem([[3, 0, 1], [0, 2, 2], [1, 1, 3]], noise=1, goal="largest")
    >>> outcome = sp.simulate(problem, sp.Gaussian([1.0, 0.5, 0.1]), policy=sp.policies.CSA(), budget=600)
    >>> outcome.plan, outcome.leader, outcome.n_measured <= 600
    (None, 0, True)
    """

    name: ClassVar[str] = "CSA"

    def start(self, problem: Problem) -> AssigningRun:
        """Return a fresh run on this problem."""
        return AssigningRun(problem, self.name, self.budget)


@dataclass(frozen=True)
class CSAR(BudgetPolicy):
    """Combinatorial Successive Accept Reject, for plans that are sets of arms.

    `budget` is divided over the phases; without one it is what the loop or the session has.

    >>> import surepick as sp
    >>> problem = sp.problems.top_k(["a", "b", "c", "d"], 2, noise=1, goal="largest")
    >>> truth = sp.Gaussian([1.0, 0.9, 0.1, 0.0])
    >>> sp.simulate(problem, truth, policy=sp.policies.CSAR(), budget=400).leader_name
    'a + b'
    """

    name: ClassVar[str] = "CSAR"

    def start(self, problem: Problem) -> AssigningRun:
        """Return a fresh run on this problem, whose plans must be sets of arms."""
        check_zeros_and_ones(
            problem, self.name, "an arm is accepted or rejected; use CSA, which takes any numbers"
        )
        return AssigningRun(problem, self.name, self.budget)


class AssigningRun(BudgetPhases):
    """A run of CSA, and of CSAR: the arms whose amounts are fixed, and the plans that have them."""

    def __init__(self, problem: Problem, name: str, budget: int | None) -> None:
        super().__init__(problem, name, budget)
        self._fixed = np.zeros(len(self._arms), dtype=bool)

    @property
    def n_phases(self) -> int:
        """The number of phases: one for each arm."""
        return len(self._arms)

    def request(self) -> IntArray:
        """Return what is missing of this phase's count, for every free arm."""
        more = self._upto(self._phase) - self._upto(self._phase - 1)
        return np.where(self._fixed, 0, more).astype(np.int64)

    def narrow(self) -> None:
        """Fix the arm whose change would cost most."""
        alive = np.flatnonzero(self._alive)
        plans, values = self._plans[alive], self._plans[alive] @ self._means
        lead = int(np.argmax(values))
        differs = plans != plans[lead]  # (n_alive, n_used)
        best_other = np.where(differs, values[:, None], -np.inf).max(axis=0)
        loss = np.where(self._fixed, -np.inf, values[lead] - best_other)
        arm = int(np.argmax(loss))
        self._fixed[arm] = True
        self._alive[alive[differs[:, arm]]] = False

    def _upto(self, phase: int) -> int:
        """Return how often a free arm has been measured after this phase."""
        d = len(self._arms)
        if phase == 0:
            return 0
        harmonic = sum(1.0 / i for i in range(1, d + 1))
        return max(1, math.ceil((self._total - d) / (harmonic * (d - phase + 1))))
