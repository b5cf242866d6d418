"""Challenge: is anything better than the plan in use today? Keep it, or replace it by a named better one.

Ours; the proof is in docs/theory.md, the theorem in `surepick.inference`.

Assumption: that of BetGapE.

Proof status: wrong with probability at most delta, at any time, without a union over plans. *Keep* says that
no plan is better than the incumbent by more than epsilon, *replace* names one that is better; each has half
of delta. Keep: row j of one account bets that j is not better by more than epsilon; keep when all rows have
reached 2/delta. Replace: each challenger i has an account of one row, which bets against "i is no better"
while i is pursued; all are staked from one common cash, so that the accounts of all plans that are no better
never grow together on average. Replace by i when cash and its account have reached 2/delta.

Cost of a batch: that of BetGapE.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from surepick.core.arrays import FloatArray, IntArray, as_dense
from surepick.core.guarantee import SUB_GAUSSIAN, Promise
from surepick.core.oracle_problem import AnyProblem
from surepick.core.policy import check_delta, check_epsilon
from surepick.core.problem import PlanParts, Problem
from surepick.core.run import TOLERANCE, Answer, Decision, Standing
from surepick.design.grid import VALUE_BITS, on_grid
from surepick.errors import ParameterError, suggestion
from surepick.inference.steps import is_stake
from surepick.inference.wealth import COMMON, Account, Wealth
from surepick.policies.betting.batch_run import BatchRun
from surepick.policies.betting.best import GRID, SHRINKAGE, Best, are_bets, bet_steps, next_stake, stake_all
from surepick.policies.betting.question import CERTAIN, Bet, Estimates, Readings, Targets
from surepick.policies.sound import check_max_batch


@dataclass(frozen=True)
class Challenge:
    """Keep the plan of today, or replace it by a better one: wrong with probability at most `delta`.

    `incumbent` is the plan of today, by its name or its place in the list. The answer is the incumbent if no
    plan is better by more than `epsilon`, and otherwise *a* better plan, which need not be the best. With an
    epsilon of 0 a run ends only if the incumbent is the best plan by itself, or something is better.

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
    randomized: ClassVar[bool] = False
    takes_past: ClassVar[bool] = True
    takes_probes: ClassVar[bool] = True
    takes_known: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_delta(self.delta)
        check_epsilon(self.epsilon)
        check_max_batch(self.max_batch)

    @property
    def guarantee(self) -> str:
        """The guarantee and its assumption."""
        than = "any plan" if self.epsilon == 0 else f"any plan by more than {self.epsilon:g}"
        goal = (
            f"no worse than {than} if it is the incumbent, and better than the incumbent if it is another, "
            f"wrong with probability at most {self.delta:g}"
        )
        return Promise(True, goal, SUB_GAUSSIAN).text

    def learns_noise(self, problem: AnyProblem) -> bool:
        """Return whether a run learns unknown noise while it measures."""
        return problem.is_listed

    def start(self, problem: Problem) -> BatchRun:
        """Return a fresh run on this problem."""
        asked = problem.oriented, self.delta, self.epsilon, self.place(problem)
        return BatchRun(problem, self, KeepOrReplace(*asked, problem.mean_bounds))

    def place(self, problem: Problem) -> int:
        """Return the place of the incumbent in the problem's list of plans."""
        names, wanted = list(problem.plan_names), self.incumbent
        if isinstance(wanted, str) and wanted in names:
            return names.index(wanted)
        if isinstance(wanted, int) and 0 <= wanted < len(names):
            return wanted
        if isinstance(wanted, str):
            hint = suggestion(wanted, names)
            raise ParameterError(f"there is no plan named {wanted!r}; {hint}", field="incumbent")
        raise ParameterError(
            f"the incumbent is a plan by its name or its place, 0 to {len(names) - 1}, got {wanted!r}",
            field="incumbent",
        )


class KeepOrReplace(Best):
    """Is a plan better than the incumbent, which leads throughout?

    Account `COMMON` of the wealth is for keeping. `challengers` has the accounts for replacing, by plan.
    """

    STATE: ClassVar[tuple[str, ...]] = (*Best.STATE, "challengers", "challenger")
    searches, n_books = False, 2  # the incumbent leads; keeping and replacing have half of delta each
    first_share = 0.5  # of the common cash, on a challenger's first bets; half of it on fixed sizes
    caution = 0.5  # standard errors below its estimated advantage that a challenger's mixture is centred
    switch_ratio = (
        1.25  # times the standardised advantage of the challenger that another needs to take its place
    )
    grid_share = 0.5  # of a first stake, on the fixed sizes
    hopeless = 4.0  # times what keeping seems to need, while a plan looks better by more than epsilon

    def __init__(
        self, plans: Any, delta: float, epsilon: float, incumbent: int, mean_bounds: FloatArray | None = None
    ) -> None:
        super().__init__(plans, delta / 2, epsilon)
        self.challengers, self.challenger = Wealth(self.wealth.threshold), -1  # none yet
        self.leader = self._incumbent = incumbent
        self._mean_bounds = np.zeros((0, 2)) if mean_bounds is None else mean_bounds

    def bind(self, readings: Readings, parts: PlanParts) -> None:
        """Take these plans; the incumbent leads, and by what is known it may be replaced at once."""
        super().bind(readings, parts)
        self.leader = self._incumbent
        if not self.is_out[self.leader]:
            return
        plans = self.contenders()
        more = as_dense(self.given[plans] - self.given[[self.leader] * len(plans)])
        n_new = more.shape[1] - len(self._mean_bounds)  # arms that came later
        box = np.vstack([self._mean_bounds, np.tile([-np.inf, np.inf], (n_new, 1))])
        is_free, box = ~np.isfinite(box).all(axis=1), np.where(np.isfinite(box), box, 0.0)
        advantage = np.minimum(more * box[:, 0], more * box[:, 1]).sum(axis=1)
        advantage += self.constants[plans] - self.constants[self.leader]
        advantage[more[:, is_free].any(axis=1)] = -np.inf  # for sure
        best = int(plans[np.argmax(advantage)])
        if advantage.max() > 0:
            self.challengers.account(best, 1, len(GRID) + 1).peak[:] = CERTAIN
            self.is_out[:] = True
        else:
            self.is_out[best] = True  # it is worth as much as the incumbent
        self.is_out[self.leader] = False

    def choose(self, estimates: Estimates) -> None:
        """Choose the challenger: the largest estimated advantage for its noise, unless it is little ahead."""
        plans = np.arange(self.n_plans)
        contrasts = self.contrasts(np.full(self.n_plans, self.leader), plans)
        noise = estimates.unit(contrasts)
        noise[self.is_out] = noise[self.leader] = np.inf
        score = on_grid(np.asarray(-estimates.gap(contrasts) / noise), VALUE_BITS)
        best, now = int(np.argmax(score)), self.challenger
        if now < 0 or score[now] <= 0 or score[best] > self.switch_ratio * score[now]:
            self.challenger = best if score[best] > 0 else -1

    def _replacement(self) -> int:
        """Return the challenger with the most evidence that it is better, if that suffices; else -1."""
        plan, evidence = self._best_challenger()
        return plan if evidence >= self.wealth.threshold else -1

    def _best_challenger(self) -> tuple[int, float]:
        peaks = {int(plan): float(account.peak[0]) for plan, account in self.challengers.accounts.items()}
        best = max(peaks, key=lambda plan: (peaks[plan], -plan), default=-1)
        return best, peaks.get(best, -math.inf)

    @property
    def is_answered(self) -> bool:
        """Whether keeping or a replacement is proved."""
        return self._replacement() >= 0 or super().is_answered

    def answer(self) -> int:
        """Return the replacement, or the incumbent."""
        replacement = self._replacement()
        return replacement if replacement >= 0 else self.leader

    def more(self, aims: Targets | None, counts: IntArray, dual: FloatArray) -> dict[str, Any]:
        """Return the challenger, and whether the batch is allocated, or tests, to replace by it."""
        return {"challenger": self.challenger, "replaces": aims is not None and aims.account != COMMON}

    def objection(self, decision: Decision) -> str | None:
        """Return why no run decides so here: the incumbent leads, and no replacement is proved yet."""
        challenger, replaces = decision.more.get("challenger", -2), decision.more.get("replaces")
        is_named = type(challenger) is int and -1 <= challenger < self.n_plans and challenger != self.leader
        if decision.leader != self.leader or not is_named:
            return "the incumbent leads, against one challenger or none"
        if type(replaces) is not bool or (replaces and challenger < 0):
            return "it tests a challenger that there is not"
        if self._best_challenger()[1] > self.wealth.threshold * (1.0 + TOLERANCE):
            return "a replacement was proved already"
        return super().objection(decision)

    def wager_objection(self, decision: Decision) -> str | None:
        """Return why stakes and bets, as they were recorded, are none, or None."""
        more = {key: value for key, value in decision.more.items() if key not in ("challenger", "replaces")}
        bets, stake = more.pop("challenge", None), more.pop("challenge_stake", None)
        has_bets = decision.more["challenger"] >= 0 and not decision.is_final
        if has_bets != (bets is not None) or (bets is not None and not are_bets(bets, 1)):
            return "its bets on the challenger are none"
        if stake is not None and not (has_bets and is_stake(stake)):
            return "its stake on the challenger is none"
        return super().wager_objection(replace(decision, more=more))

    def proves(self, plan: Answer | None) -> bool:
        """Return whether keeping, or replacing by this plan, is proved, up to rounding."""
        if plan == self.leader:
            return super().proves(plan)
        best, evidence = self._best_challenger()
        return plan == best and evidence >= self.wealth.threshold * (1.0 - TOLERANCE)

    def set_delta(self, delta: float) -> None:
        """Continue with a smaller delta, half of it for each answer."""
        super().set_delta(delta / 2)
        self.challengers.threshold = self.wealth.threshold

    def lead(self, decision: Decision, counts: IntArray) -> None:
        """Take on the challenger of this decision; the incumbent leads throughout."""
        del counts
        self.challenger = decision.more["challenger"]
        if self.challenger >= 0 and self.challenger not in self.challengers.accounts:
            account = self.challengers.account(self.challenger, 1, len(GRID) + 1)
            account.current[:] = self.challengers.log_cash  # a new account has the cash, like all

    def aims(self, estimates: Estimates, targets: Targets, decision: Decision | None = None) -> Targets:
        """Return the targets for keeping, or that of the challenger if replacing seems to cost less."""
        keep = targets
        if decision is not None:
            return self._challenge(estimates) if decision.more["replaces"] else keep
        if self.challenger < 0:
            return keep
        challenge = self._challenge(estimates)
        gap, price = keep.gap + self.epsilon, estimates.unit(keep.contrasts) ** 2
        needs = keep.evidence_needed * price / (np.maximum(gap, 0.0) ** 2 + 4 * keep.gap_variance)
        to_keep = float(needs.max()) * (self.hopeless if gap.min() <= 0 else 1.0)
        price = estimates.unit(challenge.contrasts) ** 2
        to_replace = float(
            (challenge.evidence_needed * price / (challenge.gap**2 + challenge.gap_variance)).max()
        )
        return challenge if to_replace < to_keep else keep

    def _challenge(self, estimates: Estimates) -> Targets:
        """Return the contrast challenger - incumbent."""
        plan, incumbent = np.array([self.challenger]), np.array([self.leader])
        contrasts = self._contrasts(plan, incumbent)
        account = self.challengers.accounts.get(self.challenger)
        wealth = np.array([self.challengers.log_cash]) if account is None else account.current.copy()
        gap, variance = estimates.gap(contrasts), estimates.gap_variance(contrasts)
        row, needed = np.zeros(1, dtype=np.int64), self.evidence_needed(wealth)
        return Targets(self.challenger, row, plan, incumbent, contrasts, gap, variance, wealth, needed)

    def _centre(self, estimates: Estimates, targets: Targets) -> FloatArray:
        """Return the centres of the mixtures: the incumbent was not selected by what was measured."""
        return np.asarray(targets.gap - SHRINKAGE * np.sqrt(targets.gap_variance))

    def wagers(self, estimates: Estimates, targets: Targets | None) -> dict[str, Any]:
        """Stake and bet for keeping against every unresolved plan, and for the challenger."""
        found = super().wagers(estimates, targets)
        if targets is None or self.challenger < 0:
            return found
        challenge = self._challenge(estimates)
        ahead = challenge.gap - self.caution * np.sqrt(challenge.gap_variance)
        found["challenge"] = bet_steps(estimates, challenge, ahead)
        account = self.challengers.accounts.get(self.challenger, Account.empty(1, 1))
        stake = next_stake(estimates, account, [self.first_share, self.grid_share])
        return found | ({"challenge_stake": stake["stake"]} if stake else {})

    def place(self, decision: Decision, estimates: Estimates) -> list[Bet]:
        """Stake and bet for keeping, and on the challenger."""
        keep = replace(super().place(decision, estimates)[0], shift=self.epsilon)
        assert keep.centre is not None
        keep.centre = keep.centre + self.epsilon
        if self.challenger < 0:
            return [keep]
        if "challenge_stake" in decision.more:
            account, stake = self.challengers.accounts[self.challenger], decision.more["challenge_stake"]
            stake_all(self.challengers, account, stake, estimates.n_measured)
        row, plans = np.zeros(1, dtype=np.int64), (np.array([self.challenger]), np.array([self.leader]))
        return [keep, self.bet(self.challenger, row, *plans, decision.more["challenge"], estimates)]

    def account(self, key: str | int) -> Account:
        """Return the account for keeping, or that of a challenger."""
        return self.challengers.accounts[key] if isinstance(key, int) else super().account(key)

    def count(self, bets: list[Bet]) -> None:
        """Update the accounts that have bet."""
        for bet in bets:
            wealth = self.challengers if isinstance(bet.account, int) else self.wealth
            wealth.count(bet.rows, self.account(bet.account))

    def standing(self, estimates: Estimates) -> Standing:
        """Return the answer that is nearer, the plan in its way, their gap, and the risk of giving it now."""
        plan, against = self._best_challenger()
        evidence = self.rival_evidence(self.leader)
        rival = int(np.argmin(evidence))
        plans = np.array([plan if plan >= 0 else rival, rival])
        contrasts = self._contrasts(plans, np.full(2, self.leader))
        ahead = estimates.gap(contrasts)
        least = float(evidence[rival])
        if plan >= 0 and (against > least or (against == least and ahead[0] > 0)):
            return Standing(plan, self.leader, float(ahead[0]), None, _risk(against))
        return Standing(self.leader, rival, float(-ahead[1]), None, _risk(least))


def _risk(log_evidence: float) -> float:
    """Return the risk of one of the two answers, each of which has half of delta."""
    return min(1.0, 2.0 * math.exp(-max(log_evidence, 0.0)))
