"""Limited: the best plan among those that keep a measured limit, or the proof that none does.

Ours; the corollary is in docs/theory.md, the theorem in `surepick.inference`.

A plan has a second linear value, its load: amounts of arms that are measured as well, such as the latency of
its steps. The limit is kept if the load is at most `at_most`.

Assumption: that of BetGapE.

Proof status: wrong with probability at most delta, at any time, without a union over plans. The answer keeps
the limit up to `tolerance`, and no plan that keeps the limit is better by more than epsilon; or no plan keeps
the limit. Row (i, j) bets that j is not better than i by more than epsilon, row j of `BREAK` that j breaks
the limit: if b is the best plan that keeps it, both are fair for j = b and every i that is too much worse
than b. Row i of `KEEP`, staked when i first leads, bets that i keeps the limit up to the tolerance. All are
staked from one cash.

Cost of a batch: a pass over all pairs of plans.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from surepick.core.arrays import FloatArray, IntArray, as_dense
from surepick.core.guarantee import SUB_GAUSSIAN, Promise
from surepick.core.oracle_problem import AnyProblem
from surepick.core.problem import PlanParts, Problem
from surepick.core.run import TOLERANCE, Answer, Decision, Standing
from surepick.errors import ParameterError
from surepick.inference.contrasts import Contrasts
from surepick.inference.factors import log_sum_exp
from surepick.inference.wealth import COMMON, EMPTY
from surepick.policies.betting.batch_run import BatchRun
from surepick.policies.betting.question import Bet, Estimates, Readings, Targets
from surepick.policies.betting.within import WithinFew
from surepick.policies.sound import WithinPolicy, check_max_batch

MOST_PLANS = 200  # all pairs of them bet
KEEP, BREAK = "keep", "break"
SIZES: FloatArray = 0.7 * 2.0 ** np.arange(6.0)  # of bets on limits, in tolerances
TILT = np.log(1.0 / np.arange(1, 7) / (1.0 / np.arange(1, 7)).sum())  # parts of a stake on these sizes
PART = 0.25  # of the cash, for each of the two accounts of the limit


@dataclass(frozen=True)
class Limited(WithinPolicy):
    """The best plan whose load is at most `at_most`, up to `tolerance`; or none, if every plan has more.

    `loads` has the load of each plan in terms of arms, (n_plans, n_arms); `Limited.of` makes it from names.
    Where no plan keeps the limit, the run ends confident without a plan.

    >>> import surepick as sp
    >>> problem = sp.Problem(
    ...     {"big": {"gain big": 1}, "small": {"gain small": 1}},
    ...     arms=["gain big", "gain small", "weight big", "weight small"],
    ...     noise=1,
    ...     goal="largest",
    ... )
    >>> loads = {"big": {"weight big": 1}, "small": {"weight small": 1}}
    >>> policy = Limited.of(problem, loads, at_most=10.0, tolerance=1.0, epsilon=1.0)
    >>> sp.simulate(problem, sp.simulation.Gaussian([9.0, 5.0, 14.0, 7.0]), policy=policy, seed=1).plan_name
    'small'
    """

    at_most: float = 0.0
    tolerance: float = 1.0
    loads: tuple[tuple[float, ...], ...] = ()
    max_batch: int | None = None

    name: ClassVar[str] = "Limited"
    assumes_noise: ClassVar[bool] = True
    takes_probes: ClassVar[bool] = True
    may_find_none: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_max_batch(self.max_batch)
        object.__setattr__(self, "loads", tuple(tuple(map(float, row)) for row in self.loads))
        if not 0 < self.tolerance < math.inf or not math.isfinite(self.at_most):
            raise ParameterError(
                f"at_most is a number and tolerance one above 0, got {self.at_most!r}, {self.tolerance!r}",
                field="tolerance",
            )

    @classmethod
    def of(cls, problem: Problem, loads: Mapping[str, Mapping[str, float]], **settings: Any) -> Limited:
        """Return the policy for these loads: for every plan the amounts of arms, by name."""
        rows = np.zeros((problem.n_plans, problem.n_arms))
        for plan, amounts in loads.items():
            for arm, amount in amounts.items():
                rows[list(problem.plan_names).index(plan), list(problem.arm_names).index(arm)] = amount
        return cls(loads=tuple(map(tuple, rows.tolist())), **settings)

    @property
    def guarantee(self) -> str:
        """The guarantee and its assumption."""
        near = f"within {self.epsilon:g} of " if self.epsilon else ""
        goal = (
            f"{near}the best plan with a load of at most {self.at_most:g}, up to {self.tolerance:g}, or none "
            f"if every plan has more, wrong with probability at most {self.delta:g}"
        )
        return Promise(True, goal, SUB_GAUSSIAN).text

    def question(self, problem: AnyProblem) -> str:
        """Return what is to be found out."""
        return f"Which of {problem.n_plans} plans with a load of at most {self.at_most:g} is best?"

    def claim(self, problem: AnyProblem, standing: Standing) -> str:
        """Return what an answer says."""
        if standing.remaining == ():
            return (
                f"No plan keeps the limit: all {problem.n_plans} have a load of more than {self.at_most:g}."
            )
        better = f"better by more than {self.epsilon:g}" if self.epsilon else "better"
        kept = f"Its load is at most {self.at_most + self.tolerance:g}"
        return f"{kept}; no plan with a load of at most {self.at_most:g} is {better}."

    def is_right(self, problem: Problem, means: FloatArray, plan: int | None) -> bool:
        """Return whether this answer is right by these true means; None is that no plan will do."""
        values, loads = problem.sign * problem.values(means), np.array(self.loads) @ means
        keeps = loads <= self.at_most
        if plan is None:
            return not keeps.any()
        enough = values[keeps].max(initial=-np.inf) - self.epsilon
        return bool(loads[plan] <= self.at_most + self.tolerance and values[plan] >= enough)

    def learns_noise(self, problem: AnyProblem) -> bool:
        """Return whether a run learns unknown noise while it measures."""
        return problem.is_listed

    def learns_variance(self, problem: AnyProblem) -> bool:
        """Return whether bounds on readings are all that the guarantee needs, neither scale nor shape."""
        return problem.bounds is not None

    def start(self, problem: Problem) -> BatchRun:
        """Return a fresh run on this problem."""
        if np.shape(self.loads) != (problem.n_plans, problem.n_arms):
            raise ParameterError(
                f"loads has one row for each of {problem.n_plans} plans and one number for each of "
                f"{problem.n_arms} arms, got shape {np.shape(self.loads)}",
                field="loads",
            )
        if problem.n_plans > MOST_PLANS or self.epsilon == 0:
            raise ParameterError(
                f"Limited compares all pairs of at most {MOST_PLANS} plans within an epsilon above 0; got "
                f"{problem.n_plans:,} plans and {self.epsilon:g}",
                field="epsilon" if self.epsilon == 0 else "plans",
            )
        return BatchRun(problem, self, BestWithinLimit(problem, self))


class BestWithinLimit(WithinFew):
    """Which plan that keeps the limit is best?

    Behind the n plans stand n rows of slack, limit - load, and an empty row to compare them with.
    """

    STATE: ClassVar[tuple[str, ...]] = (*WithinFew.STATE, "keep_cash", "pair_peak", "keep_peak", "break_peak")
    is_fixed = True

    def __init__(self, problem: Problem, policy: Limited) -> None:
        n = problem.n_plans
        self._n = n
        loads = np.array(policy.loads)
        rows = np.vstack([as_dense(problem.oriented), -loads, np.zeros((1, loads.shape[1]))])
        self._constants = np.repeat([0.0, policy.at_most, 0.0], [n, n, 1])
        super().__init__(rows, policy.delta, policy.epsilon)
        self.tolerance, self.smallest = policy.tolerance, policy.epsilon / 2
        self.wealth.log_cash = math.log1p(-2 * PART)
        self.wealth.account(BREAK, n, len(SIZES)).stake(math.log(PART) + TILT)
        self.wealth.account(KEEP, n, len(SIZES))
        self.keep_cash = math.log(PART)  # half of it goes to each plan that leads for the first time
        self.pair_peak, self.keep_peak, self.break_peak = np.zeros((n, n)), np.zeros(n), np.zeros(n)

    @property
    def n_plans(self) -> int:
        """How many plans there are."""
        return self._n

    def bind(self, readings: Readings, parts: PlanParts) -> None:
        """Take the plans and the rows of slack."""
        del parts
        self.constants, self.is_out = self._constants, np.zeros(len(self._constants), dtype=bool)
        self.plans, self._cached = readings.coordinates(self.given), None

    def contenders(self) -> IntArray:
        """Return all plans."""
        return np.arange(self._n)

    def certain(self, evidence: FloatArray) -> FloatArray:
        """Return the evidence: no plan is out without a measurement."""
        return evidence

    def values(self, estimates: Estimates) -> FloatArray:
        """Return the estimated values of the plans."""
        return super().values(estimates)[: self._n]

    def slack(self, plans: IntArray) -> Contrasts:
        """Return the contrasts limit - load of these plans."""
        return self._contrasts(self._n + plans, np.full(len(plans), 2 * self._n))

    def first_contrasts(self, most: int) -> tuple[FloatArray, Contrasts]:
        """Return what the first batch is designed for, and must show: values and slacks."""
        del most
        every = np.arange(2 * self._n)
        contrasts = self.contrasts(every, np.full(len(every), 2 * self._n))
        rows = contrasts.dense()
        return np.asarray(rows[np.abs(rows).max(axis=1) > 0]), contrasts.take(np.abs(rows).max(axis=1) > 0)

    def choose(self, estimates: Estimates) -> None:
        """Let the best plan lead that looks as if it kept the limit; if none does, the nearest to it."""
        slack = estimates.gap(self.slack(np.arange(self._n))) + self.tolerance / 2
        value = np.where(slack >= 0, self.values(estimates), -np.inf)
        self.leader = int(np.argmax(value if (slack >= 0).any() else slack))

    # what is proved

    def evidence(self, leader: Any) -> FloatArray:
        """Return the log evidence against each plan as a rival of this leader: worse, or breaks the limit."""
        return self.pair_peak[leader].copy()

    def log_wealth(self, leader: Any) -> FloatArray:
        """Return the log wealth against each plan as a rival of this leader."""
        return self._wealths()[0][leader]

    def _wealths(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the log wealth of all pairs, of keeping and of breaking the limit, each with the cash."""
        n, cash = self._n, self.wealth.log_cash
        found = self.wealth.accounts.get(COMMON)
        keep, breaks = (log_sum_exp(self.account(name).components) for name in (KEEP, BREAK))
        broken = np.logaddexp(cash, breaks)
        pairs = np.tile(broken, (n, 1))
        if found is not None:
            pairs = np.logaddexp(pairs, log_sum_exp(found.components).reshape(n, n))
        return pairs, np.logaddexp(np.logaddexp(cash, self.keep_cash), keep), broken

    def count(self, bets: list[Any]) -> None:
        """Update what is proved."""
        del bets
        pairs, keep, broken = self._wealths()
        self.pair_peak = np.maximum(self.pair_peak, pairs)
        self.keep_peak = np.maximum(self.keep_peak, keep)
        self.break_peak = np.maximum(self.break_peak, broken)

    def proofs(self) -> FloatArray:
        """Return for each plan the log of the least evidence that its answer needs."""
        rivals = self.pair_peak.copy()
        np.fill_diagonal(rivals, np.inf)
        return np.minimum(rivals.min(axis=1), self.keep_peak)

    @property
    def none_keeps(self) -> bool:
        """Whether every plan is proved to break the limit."""
        return bool(self.break_peak.min() >= self.wealth.threshold)

    @property
    def is_answered(self) -> bool:
        """Whether the leader, or that no plan keeps the limit, is proved."""
        return self.has_leader and (self.none_keeps or self.proves(self.leader))

    def answer(self) -> Any:
        """Return the leader; None if no plan keeps the limit."""
        return None if self.none_keeps else self.leader

    def proves(self, plan: Answer | None) -> bool:
        """Return whether this answer is proved, up to rounding; None is that no plan keeps the limit."""
        enough = self.wealth.threshold * (1.0 - TOLERANCE)
        if plan is None:
            return bool(self.break_peak.min() >= enough)
        if not isinstance(plan, int) or self.leader_objection(plan):
            return False
        return bool(self.proofs()[plan] >= enough)

    def within_epsilon(self) -> list[int]:
        """Return the plans that are proved as answers."""
        return np.flatnonzero(self.proofs() >= self.wealth.threshold).tolist()

    def unresolved(self) -> IntArray:
        """Return the rivals that are not ruled out, and the leader while it may break the limit."""
        evidence = self.evidence(self.leader)
        evidence[self.leader] = self.keep_peak[self.leader]
        return np.flatnonzero(evidence < self.wealth.threshold)

    def objection(self, decision: Decision) -> str | None:
        """Return why no run decides so here, or None: who leads and how much is measured is free."""
        return self.wager_objection(decision)

    # what is measured and bet

    def targets(self, estimates: Estimates, rivals: IntArray) -> Targets:
        """Return what the leader needs: that it keeps the limit, and each rival is worse or breaks it."""
        n, leader, empty = self._n, self.leader, 2 * self._n
        every = np.arange(n)
        slack = self.slack(every)
        gap = estimates.gap(slack)
        if gap[leader] + self.tolerance / 2 < 0:  # no plan looks as if it kept the limit
            left = np.flatnonzero(self.break_peak < self.wealth.threshold)
            ahead, behind = np.full(len(left), empty), n + left
            shift, wealth = np.zeros(len(left)), self._wealths()[2][left]
        else:
            rivals = rivals[rivals != leader]
            worse = self._contrasts(np.full(n, leader), every)
            effect = (estimates.gap(worse) + self.epsilon) / estimates.unit(worse)
            breaks = (-gap / estimates.unit(slack) > effect)[rivals]
            ahead = np.append(np.where(breaks, empty, leader), n + leader)
            behind = np.append(np.where(breaks, n + rivals, rivals), empty)
            shift = np.append(np.where(breaks, 0.0, self.epsilon), self.tolerance)
            pairs, keep, _ = self._wealths()
            wealth = np.append(pairs[leader, rivals], keep[leader])
        contrasts = self.contrasts(ahead, behind)
        return Targets(
            account=COMMON,
            rows=np.zeros(len(ahead), dtype=np.int64),
            ahead=ahead,
            behind=np.minimum(behind % n, n - 1),
            contrasts=contrasts,
            gap=estimates.gap(contrasts),
            gap_variance=estimates.gap_variance(contrasts),
            log_wealth=wealth,
            evidence_needed=self.evidence_needed(wealth),
            shift=shift,
        )

    def place(self, decision: Decision, estimates: Estimates) -> list[Bet]:
        """Bet on all pairs, that each plan keeps the limit up to the tolerance, and that it breaks it."""
        bets = super().place(decision, estimates)
        n, every, keep = self._n, np.arange(self._n), self.account(KEEP).components
        if not decision.is_first and keep[self.leader].max() <= EMPTY:
            self.keep_cash -= math.log(2.0)
            keep[self.leader] = self.keep_cash + TILT
        empty, unit = np.full(n, 2 * n), np.full(n, self.tolerance)
        bets.append(Bet(KEEP, every, n + every, empty, self.tolerance, unit=unit, grid=SIZES))
        bets.append(Bet(BREAK, every, empty, n + every, 0.0, unit=unit, grid=SIZES))
        return bets

    def standing(self, estimates: Estimates) -> Standing:
        """Return the leader, its strongest rival, the risk of naming it now, and the plans that are left.

        Once every plan is proved to break the limit, none leads, and the risk is that of saying so.
        """
        if self.none_keeps:
            return Standing(None, risk=math.exp(-float(self.break_peak.min())), remaining=())
        evidence = self.rival_evidence(self.leader)
        rival = int(np.argmin(evidence))
        gap = float(estimates.gap(self._contrasts(np.array([self.leader]), np.array([rival])))[0])
        risk = min(1.0, math.exp(-float(self.proofs()[self.leader])))
        left = tuple(np.flatnonzero(self.break_peak < self.wealth.threshold).tolist())
        return Standing(self.leader, rival, gap, None, risk, left, tuple(self.within_epsilon()))
