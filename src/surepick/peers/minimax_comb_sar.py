"""Minimax-CombSAR: halve the plans, and spend each phase on the two whose gap would stay least known.

Paper: Nakamura & Sugiyama (2024), Fixed-Budget Real-Valued Combinatorial Pure Exploration of Multi-Armed
Bandit. With budget T, d arms, B = 2^ceil(log2 d) - 1:

    0. measure every arm floor(beta T / d) times; T' is what is left;
    r. = 1..ceil(log2 d): m = 2^(r-1) (T' - d ceil(log2 d)) / B. Among the plans left find the pair whose gap
       has the largest variance if m goes to its arms in proportion to |y_s|; measure so, rounded up; keep the
       ceil(d / 2^r) plans that look best.

Assumption: independent sub-Gaussian noise. Proof status: the paper bounds the error probability after T
measurements, with constants of the instance; there is no guarantee for a run.

Deviations: the shares |y_s| are those of the authors' public code, which the paper allows and does not
prescribe; arms count in units of their noise scale; d counts the arms on which plans differ; where T' is less
than d ceil(log2 d), m = 2^(r-1) T' / B, and what rounding adds is cut where most was asked for. Costs are not
used.

Cost of a phase: all pairs of plans left, which are all K(K-1)/2 in the first one and d^2/8 or fewer then.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from surepick.core.arrays import FloatArray, IntArray
from surepick.core.problem import Problem
from surepick.errors import ParameterError
from surepick.peers.budget_phases import BudgetPhases, BudgetPolicy


@dataclass(frozen=True)
class MinimaxCombSAR(BudgetPolicy):
    """Minimax Combinatorial Successive Accepts and Rejects: a fixed budget, plans halved in each phase.

    `budget` is divided over the phases; without one it is what the loop or the session has. `beta` is the
    share that goes to all arms equally at first.

    >>> import surepick as sp
    >>> problem = sp.Problem([[3, 0, 1], [0, 2, 2], [1, 1, 3]], noise=1, goal="largest")
    >>> outcome = sp.simulate(problem, [1.0, 0.5, 0.1], policy=sp.policies.MinimaxCombSAR(), budget=600)
    >>> outcome.plan, outcome.leader, outcome.n_measured <= 600
    (None, 0, True)
    """

    beta: float = 0.2

    name: ClassVar[str] = "MinimaxCombSAR"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.beta < 1:
            raise ParameterError(
                f"beta is the first share of the budget, between 0 and 1, got {self.beta!r}", field="beta"
            )

    def start(self, problem: Problem) -> HalvingRun:
        """Return a fresh run on this problem."""
        return HalvingRun(problem, self)


class HalvingRun(BudgetPhases):
    """A run of Minimax-CombSAR; phase 1 measures all arms, the r-th halving is phase r + 1."""

    def __init__(self, problem: Problem, policy: MinimaxCombSAR) -> None:
        super().__init__(problem, policy.name, policy.budget)
        self._beta = policy.beta
        self._halvings = max(1, math.ceil(math.log2(len(self._arms))))
        self._scaled = self._plans * np.sqrt(self._variance[self._arms])

    @property
    def n_phases(self) -> int:
        """The first one, and the halvings."""
        return 1 + self._halvings

    def request(self) -> IntArray:
        """Return equal counts at first, then the shares of the least known pair."""
        n_arms = len(self._arms)
        each = max(1, math.floor(self._total * self._beta / n_arms))
        if self._phase == 1:
            return np.full(n_arms, each, dtype=np.int64)
        rest, reserve = self._total - each * n_arms, n_arms * self._halvings
        most = rest - reserve if rest > reserve else rest
        m = 2.0 ** (self._phase - 2) * most / (2.0**self._halvings - 1)
        shares = _least_known(self._scaled[self._alive], self._counts, m)
        left = self._total - self._evidence.n_measurements
        return _cut(np.ceil(shares * m).astype(np.int64), left)

    def narrow(self) -> None:
        """Keep the better half, counted down from the number of arms."""
        if self._phase == 1:
            return
        alive = np.flatnonzero(self._alive)
        keep = math.ceil(len(self._arms) / 2.0 ** (self._phase - 1))
        order = np.argsort(-(self._plans[alive] @ self._means), kind="stable")
        self._alive[alive[order[keep:]]] = False


def _least_known(plans: FloatArray, counts: IntArray, m: float) -> FloatArray:
    """Return the shares |y| / sum |y| of the pair whose gap would have the largest variance after m more.

    >>> _least_known(np.array([[3.0, 0.0], [0.0, 1.0], [0.0, 0.0]]), np.array([4, 4]), 8.0).tolist()
    [0.75, 0.25]
    """
    worst, shares = -1.0, np.zeros(plans.shape[1])
    for i in range(len(plans) - 1):
        sizes = np.abs(plans[i + 1 :] - plans[i])  # (rest, n_used)
        share = sizes / sizes.sum(axis=1, keepdims=True)
        variance = (sizes**2 / (counts + share * m)).sum(axis=1)
        most = int(np.argmax(variance))
        if variance[most] > worst:
            worst, shares = float(variance[most]), share[most]
    return shares


def _cut(counts: IntArray, left: int) -> IntArray:
    """Return counts cut to what is left, taken off where most is asked for.

    >>> _cut(np.array([5, 2, 1]), 6).tolist()
    [3, 2, 1]
    """
    counts = counts.copy()
    for _ in range(max(0, int(counts.sum()) - max(left, 0))):
        counts[np.argmax(counts)] -= 1
    return counts
