"""Limited: the best plan among those that keep a measured limit, or the proof that none does.

Ours; the corollary is in docs/theory.md, the theorem in `surepick.inference`.

A plan has a second linear value, its load: amounts of arms that are measured as well, such as the latency of
its steps. The limit is kept if the load is at most `at_most`.

Assumption: that of BetGapE.

Proof status: wrong with probability at most delta, at any time, without a union over plans. The answer keeps
the limit up to `tolerance`, and no plan that keeps the limit is better by more than epsilon; or no plan keeps
the limit. Row (i, j) bets that j is not better than i by more than epsilon, row j of `BREAK` that j breaks
the limit: if b is the best plan that keeps it, both are fair for j = b and every i that is too much worse
than b. Row i of `KEEP`, staked when i first leads, bets that i keeps the limit up to the tolerance. All
stakes come from one initial wealth.

Cost of a batch: a pass over all pairs of plans.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from surepick.core.arrays import FloatArray, IntArray, as_dense
from surepick.core.oracle_problem import AnyProblem
from surepick.core.policy import OwnQuestion
from surepick.core.problem import PlanParts, Problem
from surepick.core.run import TOLERANCE, Answer, Decision, Standing
from surepick.errors import ParameterError
from surepick.inference.contrasts import Contrasts
from surepick.inference.factors import log_sum_exp
from surepick.inference.wealth import COMMON, EMPTY
from surepick.policies.betting.batch_run import BatchRun
from surepick.policies.betting.estimates import Estimates, Readings
from surepick.policies.betting.question import Bet, Targets
from surepick.policies.betting.tied import refuse_odd
from surepick.policies.betting.within import WithinFew
from surepick.policies.sound import BettingPolicy

KEEP, BREAK = "keep", "break"
SIZES: FloatArray = 0.7 * 2.0 ** np.arange(6.0)  # grid of bet sizes on the limit, in tolerances
_WEIGHTS: FloatArray = 1.0 / np.arange(1, len(SIZES) + 1)  # small bets, which suit small slacks, weigh more
LOG_MIXTURE_WEIGHTS: FloatArray = np.log(_WEIGHTS / _WEIGHTS.sum())  # of each stake, by bet size
PART = 0.25  # of the initial wealth, for each of the two accounts on the limit


@dataclass(frozen=True)
class Limited(BettingPolicy, OwnQuestion):
    """The best plan whose load is at most `at_most`, up to `tolerance`; or none, if every plan has more.

    `loads` has the load of each plan in terms of arms, (n_plans, n_arms); `Limited.of` makes it from names.
    If no plan keeps the limit, the run ends confident without a plan.

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

    delta: float = 0.05
    epsilon: float = 0.0
    at_most: float = 0.0
    tolerance: float = 1.0
    loads: tuple[tuple[float, ...], ...] = ()
    max_batch: int | None = None

    name: ClassVar[str] = "Limited"
    may_find_none: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
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
    def goal(self) -> str:
        """The plan that is sought, in words."""
        near = f"within {self.epsilon:g} of " if self.epsilon else ""
        limit = f"a load of at most {self.at_most:g}, up to {self.tolerance:g}"
        return f"{near}the best plan with {limit}, or none if every plan has more"

    def question(self, problem: AnyProblem) -> str:
        """Return the question of a session in one sentence."""
        return f"Which of {problem.n_plans} plans with a load of at most {self.at_most:g} is best?"

    def claim(self, problem: AnyProblem, standing: Standing) -> str:
        """Return the statement that an answer proves, in words."""
        if standing.remaining == ():
            return (
                f"No plan keeps the limit: all {problem.n_plans} have a load of more than {self.at_most:g}."
            )
        by = f"{self.epsilon:g} {problem.about.unit}".rstrip()
        better = f"better by more than {by}" if self.epsilon else "better"
        kept = f"Its load is at most {self.at_most + self.tolerance:g}"
        return f"{kept}; no plan with a load of at most {self.at_most:g} is {better}."

    def is_right(self, problem: Problem, means: FloatArray, plan: int | None) -> bool:
        """Return whether this answer is right under these means; None says that no plan keeps the limit."""
        values = problem.sign * problem.values(means)
        loads = np.array(self.loads) @ means
        keeps = loads <= self.at_most
        if plan is None:
            return not keeps.any()
        enough = values[keeps].max(initial=-np.inf) - self.epsilon
        return bool(loads[plan] <= self.at_most + self.tolerance and values[plan] >= enough)

    def start(self, problem: Problem) -> BatchRun:
        """Return a fresh run on this problem."""
        if np.shape(self.loads) != (problem.n_plans, problem.n_arms):
            raise ParameterError(
                f"loads has one row for each of {problem.n_plans} plans and one number for each of "
                f"{problem.n_arms} arms, got shape {np.shape(self.loads)}; files have them in [limit]",
                field="loads",
            )
        refuse_odd(self, problem)
        return BatchRun(problem, self, BestWithinLimit(problem, self))


class BestWithinLimit(WithinFew):
    """Which plan that keeps the limit is best? `slack` has limit - load of each plan."""

    STATE: ClassVar[tuple[str, ...]] = (*WithinFew.STATE, "keep_cash", "pair_peak", "keep_peak", "break_peak")
    is_fixed = True

    def __init__(self, problem: Problem, policy: Limited) -> None:
        n = problem.n_plans
        self._loads = np.array(policy.loads)
        self._limit = policy.at_most
        super().__init__(problem.oriented, policy.delta, policy.epsilon)
        self.tolerance = policy.tolerance
        self.smallest = policy.epsilon / 2
        self.wealth.log_cash = math.log1p(-2 * PART)
        self.wealth.account(BREAK, n, len(SIZES)).stake(math.log(PART) + LOG_MIXTURE_WEIGHTS)
        self.wealth.account(KEEP, n, len(SIZES))
        self.keep_cash = math.log(PART)  # half of it goes to each plan that leads for the first time
        # the largest log wealth so far, by leader and rival, that each plan keeps the limit, or breaks it
        self.pair_peak = np.zeros((n, n))
        self.keep_peak = np.zeros(n)
        self.break_peak = np.zeros(n)

    def bind(self, readings: Readings, parts: PlanParts) -> None:
        """Set the plans, and limit - load of each as a contrast in the coordinates of these readings."""
        super().bind(readings, parts)
        self.plans = as_dense(self.plans)
        # `coordinates` may subtract the mean of the rows, so a load is the difference to a row of zeros
        rows = readings.coordinates(np.vstack([-self._loads, np.zeros((1, self._loads.shape[1]))]))
        self.slack = Contrasts(rows[:-1] - rows[-1], constant=self._limit)

    def first_contrasts(self, most: int) -> tuple[FloatArray, Contrasts]:
        """Return the contrasts that the first batch is designed for, and those it must show.

        Both are differences of values, and the slacks.
        """
        some, contrasts = super().first_contrasts(most)
        is_measured = np.abs(self.slack.rows).max(axis=1) > 0
        slack = self.slack.rows[is_measured]
        return np.vstack([some, slack]), Contrasts(np.vstack([contrasts.rows, slack]))

    def choose(self, estimates: Estimates) -> None:
        """Set the leader: the best plan whose estimated load keeps the limit, else the one nearest to it.

        A plan keeps it here with a load up to limit + tolerance / 2: half-way between the loads that can be
        refuted (above the limit) and those that can be proved (up to limit + tolerance).
        """
        slack = estimates.gap(self.slack) + self.tolerance / 2
        value = np.where(slack >= 0, self.values(estimates), -np.inf)
        self.leader = int(np.argmax(value if (slack >= 0).any() else slack))

    # evidence

    def evidence(self, leader: Any) -> FloatArray:
        """Return the log evidence against each plan as a rival of this leader: worse, or breaks the limit."""
        return self.pair_peak[leader].copy()

    def rival_evidence(self, leader: Any) -> FloatArray:
        """Return the log evidence against each rival, and for the leader itself that it keeps the limit."""
        evidence = self.evidence(leader)
        evidence[leader] = self.keep_peak[leader]
        return evidence

    def log_wealth(self, leader: Any) -> FloatArray:
        """Return the log wealth against each plan as a rival of this leader."""
        return self._wealths()[0][leader]

    def _wealths(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the log wealth of each pair, that each plan keeps the limit, and that each plan breaks it.

        All include the cash. A plan is no rival if it is worse than the leader or breaks the limit. So a pair
        (leader, rival) has the bets on both.
        """
        n = self.n_plans
        cash = self.wealth.log_cash
        keep = np.logaddexp(cash, self.keep_cash)
        keep = np.logaddexp(keep, log_sum_exp(self.account(KEEP).components))
        broken = np.logaddexp(cash, log_sum_exp(self.account(BREAK).components))
        pairs = np.tile(broken, (n, 1))
        if (common := self.wealth.accounts.get(COMMON)) is not None:
            pairs = np.logaddexp(pairs, log_sum_exp(common.components).reshape(n, n))
        return pairs, keep, broken

    def count(self, bets: list[Any]) -> None:
        """Update the largest wealths so far, which are the evidence."""
        del bets
        pairs, keep, broken = self._wealths()
        self.pair_peak = np.maximum(self.pair_peak, pairs)
        self.keep_peak = np.maximum(self.keep_peak, keep)
        self.break_peak = np.maximum(self.break_peak, broken)

    @property
    def none_keeps(self) -> bool:
        """Whether every plan is proved to break the limit."""
        return bool(self.break_peak.min() >= self.wealth.threshold)

    @property
    def is_answered(self) -> bool:
        """Whether the leader, or that no plan keeps the limit, is proved."""
        return self.none_keeps or super().is_answered

    def answer(self) -> Answer | None:
        """Return the leader; None if no plan keeps the limit."""
        return None if self.none_keeps else self.leader

    def proves(self, plan: Answer | None) -> bool:
        """Return whether this answer is proved, up to rounding; None says that no plan keeps the limit."""
        if plan is None:
            return bool(self.break_peak.min() >= self.wealth.threshold * (1.0 - TOLERANCE))
        return super().proves(plan)

    def within_epsilon(self) -> list[int]:
        """Return the plans that are proved as answers."""
        return [i for i in range(self.n_plans) if self.answer_evidence(i) >= self.wealth.threshold]

    # design and bets

    def targets(self, estimates: Estimates, rivals: IntArray) -> Targets:
        """Return the contrasts to show: the leader keeps the limit, and each rival is worse or breaks it.

        If no plan looks as if it kept the limit, they are that every plan breaks it.
        """
        leader, slack = self.leader, self.slack
        room = estimates.gap(slack)  # limit - load of each plan
        pairs, keep, broken = self._wealths()
        if room[leader] + self.tolerance / 2 < 0:
            unproved = np.flatnonzero(self.break_peak < self.wealth.threshold)
            breaking = Contrasts(-slack.rows[unproved], constant=-slack.constant[unproved])
            return self.aim(estimates, unproved, breaking, broken[unproved], np.zeros(len(unproved)))
        others = rivals[rivals != leader]
        worse = self.from_leader(others)
        kept = slack.take(others)
        # for each rival the contrast that takes fewer measurements: the larger effect in its own noise
        worse_effect = (estimates.gap(worse) + self.epsilon) / estimates.unit(worse)
        breaks = -room[others] / estimates.unit(kept) > worse_effect
        rows = np.where(breaks[:, None], -kept.rows, worse.rows)
        constant = np.where(breaks, -kept.constant, worse.constant)
        contrasts = Contrasts(
            np.vstack([rows, slack.rows[leader]]), constant=np.append(constant, slack.constant[leader])
        )
        wealth = np.append(pairs[leader, others], keep[leader])
        shift = np.append(np.where(breaks, 0.0, self.epsilon), self.tolerance)
        return self.aim(estimates, np.append(others, leader), contrasts, wealth, shift)

    def follow(self, decision: Decision, estimates: Estimates) -> None:
        """Set the leader and stake on all pairs; when it first leads, also stake that it keeps the limit."""
        super().follow(decision, estimates)
        keep = self.account(KEEP).components
        if not decision.is_first and keep[self.leader].max() <= EMPTY:
            self.keep_cash -= math.log(2.0)
            keep[self.leader] = self.keep_cash + LOG_MIXTURE_WEIGHTS

    def bets(self, decision: Decision, estimates: Estimates) -> list[Bet]:
        """Bet on all pairs, that each plan keeps the limit up to the tolerance, and that it breaks it."""
        every = np.arange(self.n_plans)
        sizes = np.tile(self.tolerance * SIZES, (self.n_plans, 1))
        breaking = Contrasts(-self.slack.rows, constant=-self.slack.constant)
        return [
            *super().bets(decision, estimates),
            Bet(KEEP, every, self.slack, self.tolerance, sizes),
            Bet(BREAK, every, breaking, 0.0, sizes),
        ]

    def standing(self, estimates: Estimates) -> Standing:
        """Return the leader, its strongest rival, the risk of naming it now, and the plans that are left.

        Once every plan is proved to break the limit, none leads, and the risk is that of saying so.
        """
        if self.none_keeps:
            return Standing(None, risk=math.exp(-float(self.break_peak.min())), remaining=())
        left = tuple(np.flatnonzero(self.break_peak < self.wealth.threshold).tolist())
        return replace(super().standing(estimates), remaining=left)
