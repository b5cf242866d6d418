"""Challenge: is anything better than the plan in use today? Keep it, or replace it by a named better one.

Ours; the proof is in docs/theory.md, the theorem in `surepick.inference`.

Assumption: that of BetGapE.

Proof status: wrong with probability at most delta, at any time, without a union over plans. *Keep* says that
no plan is better than the incumbent by more than epsilon, *replace* names one that is better; each has half
of delta. Keep: row j of one account bets that j is not better by more than epsilon; keep when all rows have
reached 2/delta. Replace: each challenger i has an account of one row, which bets against "i is no better"
while i is pursued; all are staked from one common cash, so that the accounts of all plans that are no better
never grow together on average. Replace by i when cash and its account have reached 2/delta.

Where plans are not listed the run is BetGapE's for the best plan itself: if that is the incumbent, keep it,
and else it is better. Both claims follow from the same accounts with all of delta.

Cost of a batch: that of BetGapE.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from surepick.core.arrays import FloatArray, IntArray, as_dense
from surepick.core.given.plans import amounts_in
from surepick.core.oracle_problem import AnyProblem
from surepick.core.plan_sets import plan_set
from surepick.core.polytopes.polytope import Polytope
from surepick.core.problem import PlanParts, Problem
from surepick.core.run import TOLERANCE, Answer, Decision, Standing
from surepick.design.grid import VALUE_BITS, on_grid
from surepick.errors import ParameterError, ProblemError, suggestion
from surepick.inference.contrasts import Contrasts
from surepick.inference.steps import are_mixtures
from surepick.inference.wealth import COMMON, Account
from surepick.policies.betting.batch_run import BatchRun
from surepick.policies.betting.best import (
    GRID,
    SHRINKAGE,
    Best,
    bet_steps,
    is_stake,
    next_stake,
    recorded_bet,
    stake_all,
)
from surepick.policies.betting.bet_gap_e import unlisted_run
from surepick.policies.betting.estimates import Estimates, Readings
from surepick.policies.betting.question import CERTAIN, NO_LEADER, Bet, Check, PlannedBatch, Targets
from surepick.policies.sound import BettingPolicy


@dataclass(frozen=True)
class Challenge(BettingPolicy):
    """Keep the plan of today, or replace it by a better one: wrong with probability at most `delta`.

    `incumbent` is the plan of today, by its name or its place in the list. The answer is the incumbent if no
    plan is better by more than `epsilon`, and otherwise *a* better plan, which need not be the best. With an
    epsilon of 0 a run ends only if the incumbent is the best plan by itself, or something is better.
    Where plans are not listed the incumbent is written by its arms, such as "2*tea + coffee", there is no
    epsilon, and the answer is the best plan itself.

    >>> import surepick as sp
    >>> problem = sp.Problem([[1, 0], [0, 1]], plan_names=["today", "other"], noise=1, goal="largest")
    >>> policy = sp.policies.Challenge("today", epsilon=0.5)
    >>> sp.simulate(problem, sp.simulation.Gaussian([0.0, 2.0]), policy=policy, seed=1).plan_name
    'other'
    >>> sp.simulate(problem, sp.simulation.Gaussian([2.0, 1.9]), policy=policy, seed=1).plan_name
    'today'
    """

    incumbent: str | int = 0
    delta: float = 0.05
    epsilon: float = 0.0
    max_batch: int | None = None

    name: ClassVar[str] = "Challenge"
    version: ClassVar[int] = 2
    takes_prior: ClassVar[bool] = True
    takes_known: ClassVar[bool] = True
    takes_oracle: ClassVar[bool] = True
    takes_plays: ClassVar[bool] = True

    @property
    def goal(self) -> str:
        """What an answer is, unless it is wrong."""
        than = "any plan" if self.epsilon == 0 else f"any plan by more than {self.epsilon:g}"
        return f"no worse than {than} if it is the incumbent, and better than the incumbent if it is another"

    def start(self, problem: AnyProblem) -> BatchRun:
        """Return a fresh run on this problem."""
        if isinstance(problem, Problem):
            question = KeepOrReplace(problem, self.delta, self.epsilon, self.place(problem))
            return BatchRun(problem, self, question)
        plan = self.vector(problem)
        if isinstance(problem, Polytope):
            is_plan = problem.keeps(plan)
        else:
            is_plan = plan_set(problem).has(problem.sign * plan + 0.0)
        if not is_plan:
            raise ParameterError(
                f"the incumbent must be a plan, written by its arms, got {self.incumbent!r}, which is none",
                field="incumbent",
            )
        if self.epsilon:
            raise ParameterError(
                "where plans are not listed an incumbent is compared with the best plan itself, without an "
                f"epsilon, got {self.epsilon:g}; leave epsilon out, or list the plans in a Problem",
                field="epsilon",
            )
        return unlisted_run(problem, self)

    def vector(self, problem: AnyProblem) -> FloatArray:
        """Return the incumbent as an array, one number per arm."""
        if isinstance(problem, Problem):
            return problem.vector(self.place(problem))
        vector = np.zeros(problem.n_arms)
        try:
            for arm, amount in amounts_in("incumbent", str(self.incumbent), problem.arm_names).items():
                vector[problem.arm(arm)] = amount
        except ProblemError as error:
            raise ParameterError(str(error), field="incumbent") from None
        return vector

    def is_incumbent(self, problem: AnyProblem, plan: Answer) -> bool:
        """Return whether this answer is the incumbent."""
        return bool(np.allclose(problem.vector(plan), self.vector(problem), rtol=1e-9, atol=1e-9))

    def incumbent_name(self, problem: AnyProblem) -> str:
        """Return the name of the incumbent, as answers are named."""
        plan = self.place(problem) if isinstance(problem, Problem) else tuple(self.vector(problem).tolist())
        return problem.name_of(plan) or ""

    def place(self, problem: Problem) -> int:
        """Return the place of the incumbent in the problem's list of plans."""
        names, wanted = list(problem.plan_names), self.incumbent
        if isinstance(wanted, str) and wanted in names:
            return names.index(wanted)
        if isinstance(wanted, int) and 0 <= wanted < len(names):
            return wanted
        hint = suggestion(wanted, names) if isinstance(wanted, str) else f"or a place, 0 to {len(names) - 1}"
        raise ParameterError(
            f"the incumbent is a plan by its name or its place, got {wanted!r}; {hint}", field="incumbent"
        )


class KeepOrReplace(Best):
    """Is a plan better than the incumbent, which leads throughout?

    Account `COMMON` of the first claim is for keeping. The second claim has accounts of one row each for
    replacing, by plan.
    """

    STATE: ClassVar[tuple[str, ...]] = (*Best.STATE, "challenger")
    searches = False  # the incumbent leads
    first_share = 0.5  # of the cash, on a challenger's first bets
    grid_share = 0.5  # of a first stake, on fixed sizes
    caution = 0.5  # standard errors below its estimated advantage that a challenger's mixture is centred
    switch_ratio = 1.25  # times the challenger's standardised advantage that another needs to take its place
    hopeless = 4.0  # times what keeping seems to need, while a plan looks better by more than epsilon

    def __init__(self, problem: Problem, delta: float, epsilon: float, incumbent: int) -> None:
        super().__init__(problem.oriented, delta, epsilon, claims=2)
        self.challenger = NO_LEADER
        self.leader = self._incumbent = incumbent
        self._mean_bounds = np.zeros((0, 2)) if problem.mean_bounds is None else problem.mean_bounds

    def bind(self, readings: Readings, parts: PlanParts) -> None:
        """Take these plans; the incumbent leads, and by what is known it may be replaced at once."""
        super().bind(readings, parts)
        self.leader = self._incumbent
        if not self.is_out[self.leader]:
            return
        plans = self.contenders()
        advantage = self._least_advantage(plans)
        best = int(plans[np.argmax(advantage)])
        if advantage.max() > 0:
            self._of_challenger(best).peak[:] = CERTAIN
            self.is_out[:] = True
        else:
            # a plan that differs from the incumbent in known arms alone is worth as much; others may be worth
            # more, since their least advantage is no more than a bound
            y = as_dense(self.given[plans] - self.given[[self.leader] * len(plans)])
            self.is_out[plans[(advantage == 0) & ~y.any(axis=1)]] = True
        self.is_out[self.leader] = False

    def _least_advantage(self, plans: IntArray) -> FloatArray:
        """Return the least by which each plan can be ahead of the incumbent, by what is known of the means.

        With low <= mu <= high and y = plan - incumbent it is sum_s min(y_s low_s, y_s high_s), and minus
        infinity where y has an arm without bounds.
        """
        y = as_dense(self.given[plans] - self.given[[self.leader] * len(plans)])
        n_new = y.shape[1] - len(self._mean_bounds)  # arms that came later
        bounds = np.vstack([self._mean_bounds, np.tile([-np.inf, np.inf], (n_new, 1))])
        is_free = ~np.isfinite(bounds).all(axis=1)
        low, high = np.where(np.isfinite(bounds), bounds, 0.0).T
        least = np.minimum(y * low, y * high).sum(axis=1)
        least += self.constants[plans] - self.constants[self.leader]
        least[y[:, is_free].any(axis=1)] = -np.inf
        return np.asarray(least)

    def _of_challenger(self, plan: int) -> Account:
        """Return the account of a challenger; a new one has the cash, like all."""
        is_new = plan not in self.second.accounts
        account = self.second.account(plan, 1, len(GRID) + 1)
        account.current[:] = self.second.log_cash if is_new else account.current
        return account

    def choose(self, estimates: Estimates) -> None:
        """Choose the challenger: the largest estimated advantage for its noise, unless it is little ahead."""
        contrasts = self.from_leader()
        noise = estimates.unit(contrasts)
        noise[self.is_out] = noise[self.leader] = np.inf
        score = on_grid(np.asarray(-estimates.gap(contrasts) / noise), VALUE_BITS)
        best, now = int(np.argmax(score)), self.challenger
        if now < 0 or score[now] <= 0 or score[best] > self.switch_ratio * score[now]:
            self.challenger = best if score[best] > 0 else NO_LEADER

    def _challenge(self) -> Contrasts:
        """Return the contrast challenger - incumbent."""
        return self.contrasts(np.array([self.challenger]), np.array([self.leader]))

    def _challenge_targets(self, estimates: Estimates) -> Targets:
        """Return what a batch is to show for the challenger."""
        account = self.second.accounts.get(self.challenger)
        wealth = np.array([self.second.log_cash]) if account is None else account.current.copy()
        return self.aim(estimates, np.array([self.leader]), self._challenge(), wealth, shift=0.0)

    def targets(self, estimates: Estimates, rivals: IntArray) -> Targets:
        """Return the targets for keeping, or that of the challenger if replacing seems to cost less."""
        keep = super().targets(estimates, rivals)
        return self._challenge_targets(estimates) if self._replaces(estimates, keep) else keep

    def _replaces(self, estimates: Estimates, keep: Targets) -> bool:
        """Return whether replacing by the challenger seems to cost less than keeping.

        With v the variance of a gap after a first batch, evidence grows by about gap^2 / (2 v) for as many
        measurements. So a target costs in proportion to (evidence needed) v / gap^2, and keeping costs as
        much as its hardest rival. Squared errors of the estimates are added to squared gaps.
        """
        if self.challenger < 0:
            return False
        challenge = self._challenge_targets(estimates)
        gap, unit = keep.gap + self.epsilon, estimates.unit(keep.contrasts)
        costs = keep.evidence_needed * unit**2 / (np.maximum(gap, 0.0) ** 2 + 4 * keep.gap_variance)
        to_keep = float(costs.max()) * (self.hopeless if gap.min() <= 0 else 1.0)
        unit = estimates.unit(challenge.contrasts)
        costs = challenge.evidence_needed * unit**2 / (challenge.gap**2 + challenge.gap_variance)
        return bool(costs[0] < to_keep)

    def _centre(self, estimates: Estimates, targets: Targets) -> FloatArray:
        """Return the centres of the mixtures: the incumbent was not selected by what was measured."""
        return targets.lowered(SHRINKAGE)

    def terms(self, estimates: Estimates, batch: PlannedBatch) -> dict[str, Any]:
        """Stake and bet for keeping against every unresolved plan, and for the challenger.

        The batch is allocated, or tests, to keep the incumbent or to replace it.
        """
        found: dict[str, Any] = {"challenger": self.challenger, "replaces": False}
        if batch.targets is None:
            return found
        keep = super().targets(estimates, self.unresolved())
        found["replaces"] = self._replaces(estimates, keep)
        found |= super().terms(estimates, replace(batch, targets=keep))
        if batch.has_bets and self.challenger >= 0:
            challenge = self._challenge_targets(estimates)
            found["challenge"] = bet_steps(estimates, challenge, challenge.lowered(self.caution))
            account = self.second.accounts.get(self.challenger)
            found |= next_stake("challenge_stake", estimates, account, self.first_share, self.grid_share)
        return found

    def checks(self, decision: Decision) -> Mapping[str, Check]:
        """Return that there are bets for keeping and, with a challenger, for replacing."""
        challenger: Any = decision.more.get("challenger")
        n_plans = self.n_plans
        is_named = type(challenger) is int and -1 <= challenger < n_plans and challenger != self.leader
        has_challenger = is_named and challenger != NO_LEADER
        checks: dict[str, Check] = {
            **super().checks(decision),
            "challenger": lambda _: is_named,
            "replaces": lambda value: type(value) is bool and value <= has_challenger,
        }
        if has_challenger and not decision.is_final:
            checks |= {"challenge": partial(are_mixtures, n=1), "challenge_stake": is_stake}
        return checks

    def rival_objection(self, decision: Decision) -> str | None:
        """Return why no run decides so here: the incumbent leads, and no replacement is proved yet."""
        if decision.leader != self.leader:
            return "the incumbent leads"
        if self._replacement()[1] > self.wealth.threshold * (1.0 + TOLERANCE):
            return "a replacement was proved already"
        return super().rival_objection(decision)

    def follow(self, decision: Decision, estimates: Estimates) -> None:
        """Take on the challenger of this decision; stake for keeping and on the challenger."""
        self.challenger = decision.more["challenger"]
        stake_all(self.wealth, self._common, decision.more.get("stake"), estimates)
        if self.challenger >= 0:
            account = self._of_challenger(self.challenger)
            stake_all(self.second, account, decision.more.get("challenge_stake"), estimates)

    def bets(self, decision: Decision, estimates: Estimates) -> list[Bet]:
        """Bet that no plan is better than the incumbent by more than epsilon, and on the challenger."""
        row = np.zeros(1, dtype=np.int64)
        if decision.is_final:
            replaces = decision.more["replaces"]
            return [Bet(self.challenger, row, self._challenge())] if replaces else self.test(decision.rivals)
        rivals, recorded = decision.rivals, decision.more
        keep = recorded_bet(COMMON, rivals, self.from_leader(rivals), recorded["bets"], estimates)
        keep.shift = self.epsilon
        if self.challenger < 0:
            return [keep]
        challenge = self._challenge()
        return [keep, recorded_bet(self.challenger, row, challenge, recorded["challenge"], estimates)]

    def _replacement(self) -> tuple[int, float]:
        """Return the challenger with the most evidence that it is better, and that evidence."""
        peaks = {int(plan): float(account.peak[0]) for plan, account in self.second.accounts.items()}
        best = max(peaks, key=lambda plan: (peaks[plan], -plan), default=NO_LEADER)
        return best, peaks.get(best, -np.inf)

    def answer_evidence(self, plan: Any) -> float:
        """Return the log evidence for keeping, or for the best replacement; other plans have none."""
        if plan == self.leader:
            return super().answer_evidence(plan)
        best, evidence = self._replacement()
        return evidence if plan == best else -np.inf

    def answer(self) -> int:
        """Return the replacement that is proved, or the incumbent."""
        plan, evidence = self._replacement()
        return plan if evidence >= self.wealth.threshold else self.leader

    @property
    def is_answered(self) -> bool:
        """Whether keeping or a replacement is proved."""
        return self.answer() != self.leader or super().is_answered

    def standing(self, estimates: Estimates) -> Standing:
        """Return the answer that is nearer, the plan in its way, their gap, and the risk of giving it now."""
        plan, against = self._replacement()
        evidence = self.rival_evidence(self.leader)
        rival = int(np.argmin(evidence))
        ahead = estimates.gap(self.contrasts(np.array([plan, rival]), np.full(2, self.leader)))
        least = float(evidence[rival])
        replaces = plan >= 0 and (against > least or (against == least and ahead[0] > 0))
        risk = min(1.0, 2.0 * float(np.exp(-max(against if replaces else least, 0.0))))
        if replaces:
            return Standing(plan, self.leader, float(ahead[0]), None, risk)
        return Standing(self.leader, rival, float(-ahead[1]), None, risk)
