"""A fixed budget: CSA, CSAR, SuccessiveRejects and MinimaxCombSAR divide it over phases; OCBA over arms.

No method guarantees anything of a run: papers bound the error probability after a budget, with constants of
the instance that are unknown (OCBA: nothing is bounded). Assumption: independent sub-Gaussian noise. Costs
are not used; d counts the arms on which plans differ, and the others are not measured.

- **CSA**: Nakamura & Sugiyama (2024), Fixed-Budget Real-Valued Combinatorial Pure Exploration of Multi-Armed
  Bandit. With budget T and L = 1 + 1/2 + ... + 1/d, in phase t = 1..d: measure every arm that is not fixed
  until it has ceil((T - d) / (L (d - t + 1))); of the plans that have all fixed amounts, let `lead` be the
  best; for each free arm find the best one that has another amount of it; fix the arm for which that plan is
  furthest behind, at the leader's amount. Deviations: T = d measures each once; the run ends when one plan is
  left; a free arm whose amount is settled already is fixed first; how far behind is not divided by the change
  of the amount (the authors' code does; it made no difference that could be seen). Noise scales are not used.
- **CSAR**: Chen, Lin, King, Lyu & Chen (2014), Combinatorial Pure Exploration of Multi-Armed Bandits, for
  sets of arms: there, to fix an arm at the leader's amount is to accept or to reject it, so that a run is one
  of CSA.
- **SuccessiveRejects**: Audibert & Bubeck (2010), Best Arm Identification in Multi-Armed Bandits. With K arms
  and l = 1/2 + 1/2 + 1/3 + ... + 1/K, in phase k = 1..K-1: measure every arm left until it has ceil((T - K) /
  (l (K + 1 - k))), and dismiss the worst (the last of those that tie). T = K measures each once.
- **MinimaxCombSAR**: the paper of CSA. Measure every arm floor(beta T / d) times; T' is what is left, B =
  2^ceil(log2 d) - 1. In phase r = 1..ceil(log2 d), with m = 2^(r-1) (T' - d ceil(log2 d)) / B: find the pair
  of plans left whose gap has the largest variance if m goes to its arms in proportion to |y_s|; measure so,
  rounded up; keep the ceil(d / 2^r) plans that look best. Deviations: the shares |y_s| are those of the
  authors' public code; arms count in units of their noise scale; where T' is less than d ceil(log2 d), m =
  2^(r-1) T' / B, and what rounding adds is cut where most was asked for. A phase costs all pairs of plans
  left, d^2/8 or fewer after the first.
- **OCBA**: Chen, Lin, Yucesan & Chick (2000), Simulation Budget Allocation for Further Enhancing the
  Efficiency of Ordinal Optimization. With b the arm that looks best and gaps g_i = mean_b - mean_i, the
  chance of a correct selection is about largest at N_i proportional to (R_i / g_i)^2, N_b = R_b sqrt(sum_i
  (N_i / R_i)^2). Every arm is measured `first` times, then batches go to the arms furthest below that
  allocation. Deviations: noise scales are the problem's, where the paper plugs in estimates; a batch is 1% of
  the past; arms that tie with the best count as a gap of a thousandth of a noise scale.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from surepick.core.arrays import BoolArray, FloatArray, IntArray, as_dense
from surepick.core.problem import Problem
from surepick.core.run import Measure, Standing, Stop
from surepick.errors import ParameterError
from surepick.peers.sequential import best_two, single_arms
from surepick.policies.picking import PickingPolicy, PooledRun
from surepick.policies.sound import check_setting

SMALLEST_GAP = 1e-3  # of OCBA, in noise scales of the two arms
_ROUNDING = 1e-9  # of the largest amount: amounts that differ by less are the same, as solvers leave them


@dataclass(frozen=True)
class BudgetPolicy(PickingPolicy):
    """The settings of methods that divide a budget over phases; they have no guarantee."""

    budget: int | None = None

    _answers_with: ClassVar[str] = (
        "the plan that is left after the budget; theory says how fast its errors fall with the budget, and "
        "bounds none of this run"
    )

    def __post_init__(self) -> None:
        right = self.budget is None or self.budget >= 1
        check_setting("budget", self.budget, right=right, meaning="a number of measurements, 1 or more")


class BudgetRun(PooledRun, ABC):
    """A run that divides a budget over phases and ends with the plan that is left.

    The budget is the policy's own, or what the loop or session has left when the run begins, if that is less.
    Plans and means are those of the arms on which plans differ, the `_arms`.
    """

    n_phases: int  # at most

    def __init__(self, problem: Problem, policy: BudgetPolicy) -> None:
        super().__init__(problem)
        self._name, self._own_budget = policy.name, policy.budget
        self._budget = policy.budget
        self._arms = np.flatnonzero(problem.relevant)
        self._plans: FloatArray = np.ascontiguousarray(as_dense(problem.oriented)[:, self._arms])
        self._alive: BoolArray = np.ones(problem.n_plans, dtype=bool)
        self._phase = 1

    @abstractmethod
    def _request(self) -> IntArray:
        """Return how often to measure each of the `_arms` in this phase."""

    @abstractmethod
    def _narrow(self, alive: IntArray, values: FloatArray) -> None:
        """Drop plans now that this phase is measured; `values` are those of the plans that are `alive`."""

    def allow(self, left: int) -> None:
        """Take what is left at the beginning for the budget."""
        super().allow(left)
        if self._phase == 1:
            self._budget = left if self._own_budget is None else min(left, self._own_budget)

    def decide(self, rng: np.random.Generator | None = None) -> Measure | Stop:
        """Return the measurements of the next phase; after the last one stop, with no plan proved."""
        if self._is_over:
            return Stop(None)
        counts = np.zeros(self._problem.n_arms, dtype=np.int64)
        counts[self._arms] = self._request()
        return Measure(counts)

    def absorb(self, counts: IntArray, sums: FloatArray) -> None:
        """Pool a phase and drop plans by it; phases that the budget leaves empty are over at once."""
        super().absorb(counts, sums)
        while True:
            alive = np.flatnonzero(self._alive)
            self._narrow(alive, self._plans[alive] @ self._means)
            self._phase += 1
            if self._is_over or self._request().any():
                return

    def standing(self) -> Standing:
        """Return the plan that looks best among those left, the next of them, and their gap."""
        if self._phase == 1:
            return Standing()
        alive = np.flatnonzero(self._alive)
        return best_two(self._plans[alive] @ self._means, alive)

    @property
    def _is_over(self) -> bool:
        return self._phase > self.n_phases or int(self._alive.sum()) == 1

    @property
    def _total(self) -> int:
        """The whole budget, T; refused where there is none, or one that is too small for every arm."""
        if self._budget is None:
            raise ParameterError(
                f"{self._name} divides a budget over its phases and was given none; give {self._name}"
                "(budget=...), or run it with a budget",
                field="budget",
            )
        if self._budget < len(self._arms):
            raise ParameterError(
                f"{self._name} measures each of the {len(self._arms)} arms on which plans differ at least "
                f"once, and the budget is {self._budget}; give a larger one, or use Pick",
                field="budget",
            )
        return self._budget

    def _per_arm(self, harmonic: float) -> int:
        """Return how often this phase measures each arm that is left.

        By the end of phase k that is ceil((T - d) / (harmonic (d + 1 - k))) in all, and at least 1.
        """
        d = len(self._arms)

        def by_end_of(phase: int) -> int:
            return max(1, math.ceil((self._total - d) / (harmonic * (d + 1 - phase)))) if phase else 0

        return by_end_of(self._phase) - by_end_of(self._phase - 1)

    @property
    def _means(self) -> FloatArray:
        return np.asarray(np.nan_to_num(self.evidence.means)[self._arms])


class AssigningRun(BudgetRun):
    """A run of CSA, and of CSAR: the arms whose amounts are fixed, and the plans that have them."""

    def __init__(self, problem: Problem, policy: CSA) -> None:
        super().__init__(problem, policy)
        self.n_phases = len(self._arms)
        self._fixed = np.zeros(len(self._arms), dtype=bool)

    def _request(self) -> IntArray:
        harmonic = sum(1.0 / i for i in range(1, len(self._arms) + 1))
        return np.where(self._fixed, 0, self._per_arm(harmonic)).astype(np.int64)

    def _narrow(self, alive: IntArray, values: FloatArray) -> None:
        """Fix the arm whose change would cost most, at the leader's amount."""
        leader = int(np.argmax(values))
        differences = np.abs(self._plans[alive] - self._plans[alive[leader]])  # (n_alive, n_arms)
        differs = differences > _ROUNDING * np.abs(self._plans).max()
        best_other = np.where(differs, values[:, None], -np.inf).max(axis=0)  # with another amount of the arm
        arm = int(np.argmax(np.where(self._fixed, -np.inf, values[leader] - best_other)))
        self._fixed[arm] = True
        self._alive[alive[differs[:, arm]]] = False


@dataclass(frozen=True)
class CSA(BudgetPolicy, run=AssigningRun):
    """Combinatorial Successive Assign: a fixed budget, one arm's amount settled in each phase.

    `budget` is divided over the phases; without one it is what the loop or the session has.
    """


@dataclass(frozen=True)
class CSAR(CSA):
    """Combinatorial Successive Accept Reject, for plans that are sets of arms.

    `budget` is divided over the phases; without one it is what the loop or the session has.
    """

    _sets_only: ClassVar[str] = "an arm is accepted or rejected; use CSA, which takes any numbers"


class RejectingRun(BudgetRun):
    """A run of Successive Rejects."""

    def __init__(self, problem: Problem, policy: SuccessiveRejects) -> None:
        super().__init__(problem, policy)
        self.n_phases = len(self._alive) - 1
        self._arm_of = np.searchsorted(self._arms, single_arms(problem, policy.name).numbers)  # of each plan

    def _request(self) -> IntArray:
        counts = np.zeros(len(self._arms), dtype=np.int64)
        harmonic = 0.5 + sum(1.0 / i for i in range(2, len(self._alive) + 1))
        counts[self._arm_of[self._alive]] = self._per_arm(harmonic)
        return counts

    def _narrow(self, alive: IntArray, values: FloatArray) -> None:
        """Dismiss the worst arm, the last of those that tie."""
        worst = len(alive) - 1 - int(np.argmin(values[::-1]))
        self._alive[alive[worst]] = False


@dataclass(frozen=True)
class SuccessiveRejects(BudgetPolicy, run=RejectingRun):
    """A fixed budget between single arms, one of them dismissed after each phase.

    `budget` is divided over the phases; without one it is what the loop or the session has.
    """


class HalvingRun(BudgetRun):
    """A run of Minimax-CombSAR; phase 1 measures all arms, the r-th halving is phase r + 1."""

    def __init__(self, problem: Problem, policy: MinimaxCombSAR) -> None:
        super().__init__(problem, policy)
        self._beta = policy.beta
        self._halvings = max(1, math.ceil(math.log2(len(self._arms))))
        self.n_phases = 1 + self._halvings

    def _request(self) -> IntArray:
        """Return equal counts at first, then the shares of the least known pair."""
        d = len(self._arms)
        each = max(1, math.floor(self._total * self._beta / d))
        if self._phase == 1:
            return np.full(d, each, dtype=np.int64)
        rest = self._total - each * d  # T'
        for_rounding = d * self._halvings  # rounding up adds at most d in each halving
        to_divide = rest - for_rounding if rest > for_rounding else rest
        m = 2.0 ** (self._phase - 2) * to_divide / (2.0**self._halvings - 1)
        scaled = self._plans[self._alive] * np.sqrt(self._variance[self._arms])
        counts = np.ceil(m * least_known(scaled, self.evidence.counts[self._arms], m)).astype(np.int64)
        left = max(self._total - self.evidence.n_measurements, 0)
        for _ in range(int(counts.sum()) - left):
            counts[np.argmax(counts)] -= 1
        return counts

    def _narrow(self, alive: IntArray, values: FloatArray) -> None:
        """Keep the better half, counted down from the number of arms."""
        if self._phase > 1:
            keep = math.ceil(len(self._arms) / 2.0 ** (self._phase - 1))
            self._alive[alive[np.argsort(-values, kind="stable")[keep:]]] = False


@dataclass(frozen=True)
class MinimaxCombSAR(BudgetPolicy, run=HalvingRun):
    """Minimax Combinatorial Successive Accepts and Rejects: a fixed budget, plans halved in each phase.

    `budget` is divided over the phases; without one it is what the loop or the session has. `beta` is the
    share that goes to all arms equally at first.
    """

    beta: float = 0.2

    def __post_init__(self) -> None:
        super().__post_init__()
        meaning = "the first share of the budget, between 0 and 1"
        check_setting("beta", self.beta, right=0 < self.beta < 1, meaning=meaning)


def least_known(plans: FloatArray, counts: IntArray, m: float) -> FloatArray:
    """Return the shares |y| / sum |y| of the pair whose gap would have the largest variance after m more.

    `plans` are in units in which every arm has noise of scale 1, `counts` how often each arm was measured.

    >>> least_known(np.array([[3.0, 0.0], [0.0, 1.0], [0.0, 0.0]]), np.array([4, 4]), 8.0).tolist()
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


class OCBARun(PooledRun):
    """A run of OCBA: counts and sums."""

    def __init__(self, problem: Problem, policy: OCBA) -> None:
        super().__init__(problem)
        self._candidates = single_arms(problem, policy.name)
        self._first = policy.first

    def decide(self, rng: np.random.Generator | None = None) -> Measure | Stop:
        """Return one more of every arm at first, then the next batch; it never stops by itself."""
        counts, sums = self._seen()
        if counts.min() < self._first:
            return Measure(self._candidates.counts((counts == counts.min()).astype(np.int64)))
        n = self._block_size()
        target = allocation(sums / counts, self._candidates.scale) * (counts.sum() + n)
        batch = np.zeros(len(counts), dtype=np.int64)
        for _ in range(n):
            batch[np.argmax(target - counts - batch)] += 1
        return Measure(self._candidates.counts(batch))

    def standing(self) -> Standing:
        """Return the arm that looks best, the next one, and their gap."""
        counts, sums = self._seen()
        return best_two(sums / counts) if counts.all() else Standing()

    def _seen(self) -> tuple[IntArray, FloatArray]:
        return self._candidates.seen(self.evidence.counts, self.evidence.sums)


@dataclass(frozen=True)
class OCBA(PickingPolicy, run=OCBARun):
    """Optimal computing budget allocation: single arms, a budget, the arm that looks best at its end.

    It never stops by itself. `first` is how often every arm is measured before the allocation is trusted.
    """

    first: int = 3

    def __post_init__(self) -> None:
        meaning = "how often to measure every arm first, 1 or more"
        check_setting("first", self.first, right=self.first >= 1, meaning=meaning)


def allocation(means: FloatArray, scale: FloatArray) -> FloatArray:
    """Return the shares of OCBA for these means and noise scales.

    >>> allocation(np.array([2.0, 1.0, 0.0]), np.ones(3)).round(3).tolist()
    [0.452, 0.438, 0.11]
    """
    best = int(np.argmax(means))
    gap = np.maximum(means[best] - means, SMALLEST_GAP * (scale + scale[best]))
    n = (scale / gap) ** 2  # N_i, up to a factor
    n[best] = 0.0
    n[best] = scale[best] * np.sqrt(((n / scale) ** 2).sum())  # over the others
    return np.asarray(n / n.sum())
