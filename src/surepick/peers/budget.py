"""A budget divided over phases: CSA, CSAR, SuccessiveRejects, MinimaxCombSAR.

The run that fixed-budget methods share: phases sized by the budget, plans dropped after each.

CSA and CSAR: each phase fixes one arm's amount, the one whose change would cost most.

Paper: Nakamura & Sugiyama (2024), Fixed-Budget Real-Valued Combinatorial Pure Exploration of Multi-Armed
Bandit: Combinatorial Successive Assign. With budget T, d arms and L = 1 + 1/2 + ... + 1/d, in phase t = 1..d

    1. measure every arm that is not fixed until it has ceil((T - d) / (L (d - t + 1))) measurements;
    2. lead = the best plan by estimate among those that have all fixed amounts;
    3. for each free arm: the best such plan whose amount of that arm is another than the leader's;
    4. fix the arm for which that plan is furthest behind, at the leader's amount.

The answer is the plan that has all fixed amounts.

CSAR is Chen, Lin, King, Lyu & Chen (2014), Combinatorial Pure Exploration of Multi-Armed Bandits, for sets of
arms: on plans of zeros and ones, to fix an arm at the leader's amount is to accept or to reject it, so that a
run is one of CSA, its extension to real plans.

Assumption: independent sub-Gaussian noise of one scale. Proof status: the paper bounds the error probability
after T measurements, with unknown constants of the instance; so there is no guarantee for a run.

Deviations: d counts the arms on which plans differ, and the others are not measured; T = d measures each
once; the run ends when one plan is left; where the amount of a free arm is settled already, it is fixed
first, the lowest of several. How far behind is not divided by the change of the amount (the authors' code
does; it makes no difference that could be seen). Costs and different noise scales are not used.

Cost of a phase: one pass over the plans.

Successive Rejects: measure all arms left equally often, and dismiss the worst one after each phase.

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

Minimax-CombSAR: halve the plans, and spend each phase on the two whose gap would stay least known.

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
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from surepick.core.arrays import BoolArray, FloatArray, IntArray, as_dense
from surepick.core.plan_sets import check_zeros_and_ones
from surepick.core.problem import Problem
from surepick.core.run import Measure, Standing, Stop
from surepick.errors import ParameterError
from surepick.peers.sequential import single_arms
from surepick.policies.picking.pooled import PickingPolicy, PooledRun


@dataclass(frozen=True)
class BudgetPolicy(PickingPolicy):
    """The settings of methods that divide a budget over phases; they have no guarantee."""

    budget: int | None = None

    _answers_with: ClassVar[str] = (
        "the plan that is left after the budget; theory says how fast its errors fall with the budget, and "
        "bounds none of this run"
    )

    def __post_init__(self) -> None:
        if self.budget is not None and not self.budget >= 1:
            raise ParameterError(
                f"budget is a number of measurements, 1 or more, got {self.budget!r}", field="budget"
            )


class BudgetPhases(PooledRun, ABC):
    """A run that divides a budget over phases and ends with the plan that is left.

    The budget is the policy's own, or what the loop or session has left when the run begins, if that is less.
    Plans and means are those of the arms on which plans differ, the `_arms`.
    """

    def __init__(self, problem: Problem, name: str, budget: int | None) -> None:
        super().__init__(problem)
        dense = as_dense(problem.oriented)
        self._arms = np.flatnonzero(problem.relevant)
        self._plans: FloatArray = np.ascontiguousarray(dense[:, self._arms])  # (n_plans, n_used)
        self._name, self._budget, self._horizon = name, budget, budget
        self._alive: BoolArray = np.ones(problem.n_plans, dtype=bool)
        self._phase = 1

    @property
    @abstractmethod
    def n_phases(self) -> int:
        """How many phases there are at most."""

    @abstractmethod
    def request(self) -> IntArray:
        """Return how often to measure each of the used arms in this phase."""

    @abstractmethod
    def narrow(self) -> None:
        """Drop plans now that this phase is measured."""

    def allow(self, left: int) -> None:
        """Take what is left at the beginning for the budget."""
        super().allow(left)
        if self._phase == 1:
            self._horizon = left if self._budget is None else min(left, self._budget)

    def decide(self, rng: np.random.Generator | None = None) -> Measure | Stop:
        """Return the next phase; after the last one the end of the budget, which proves no plan."""
        del rng  # nothing is drawn
        if self._is_over:
            return Stop(None)
        counts = np.zeros(self._problem.n_arms, dtype=np.int64)
        counts[self._arms] = self.request()
        return Measure(counts)

    def absorb(self, counts: IntArray, sums: FloatArray) -> None:
        """Pool a phase and drop plans by it; phases that the budget leaves empty are over at once."""
        super().absorb(counts, sums)
        self.narrow()
        self._phase += 1
        while not self._is_over and not self.request().any():
            self.narrow()
            self._phase += 1

    def standing(self) -> Standing:
        """Return the plan that looks best among those left, the next of them, and their gap."""
        if self._phase == 1:
            return Standing()
        values = np.where(self._alive, self._plans @ self._means, -np.inf)
        lead = int(np.argmax(values))
        if self._alive.sum() == 1:
            return Standing(lead)
        values_of_others = values.copy()
        values_of_others[lead] = -np.inf
        rival = int(np.argmax(values_of_others))
        return Standing(lead, rival, float(values[lead] - values[rival]))

    @property
    def _is_over(self) -> bool:
        return self._phase > self.n_phases or int(self._alive.sum()) == 1

    @property
    def _total(self) -> int:
        """The whole budget."""
        if self._horizon is None:
            raise ParameterError(
                f"{self._name} divides a budget over its phases and was given none; give {self._name}"
                "(budget=...), or run it with a budget",
                field="budget",
            )
        if self._horizon < len(self._arms):
            raise ParameterError(
                f"{self._name} measures each of the {len(self._arms)} arms on which plans differ at least "
                f"once, and the budget is {self._horizon}; give a larger one, or use Pick",
                field="budget",
            )
        return self._horizon

    @property
    def _counts(self) -> IntArray:
        counts: IntArray = self._evidence.counts[self._arms]
        return counts

    @property
    def _means(self) -> FloatArray:
        return np.asarray(np.nan_to_num(self._evidence.means)[self._arms])


@dataclass(frozen=True)
class CSA(BudgetPolicy):
    """Combinatorial Successive Assign: a fixed budget, one arm's amount settled in each phase.

    `budget` is divided over the phases; without one it is what the loop or the session has.
    """

    name: ClassVar[str] = "CSA"

    def start(self, problem: Problem) -> AssigningRun:
        """Return a fresh run on this problem."""
        return AssigningRun(problem, self.name, self.budget)


@dataclass(frozen=True)
class CSAR(BudgetPolicy):
    """Combinatorial Successive Accept Reject, for plans that are sets of arms.

    `budget` is divided over the phases; without one it is what the loop or the session has.
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


@dataclass(frozen=True)
class SuccessiveRejects(BudgetPolicy):
    """A fixed budget between single arms, one of them dismissed after each phase.

    `budget` is divided over the phases; without one it is what the loop or the session has.
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


@dataclass(frozen=True)
class MinimaxCombSAR(BudgetPolicy):
    """Minimax Combinatorial Successive Accepts and Rejects: a fixed budget, plans halved in each phase.

    `budget` is divided over the phases; without one it is what the loop or the session has. `beta` is the
    share that goes to all arms equally at first.
    """

    beta: float = 0.2

    name: ClassVar[str] = "MinimaxCombSAR"
    _run: ClassVar[type[Any]] = HalvingRun

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.beta < 1:
            raise ParameterError(
                f"beta is the first share of the budget, between 0 and 1, got {self.beta!r}", field="beta"
            )


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
