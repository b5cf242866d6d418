"""The best plan, or one within epsilon of it, where plans are too many to list: an oracle finds the best one.

The oracle is a function best(weights) for plans of zeros and ones, or best_within(weights, lower, upper) for
whole numbers. Rows of an account are all plans (`plan_wealth`). One call of the oracle bounds the wealth of a
whole branch of plans (`branch_search`). Arms on which all plans that are left agree with the leader are
fixed; the leader is the answer when no arm is free.

Exact: one account for all leaders, as in `Best`: under "this plan is best" the gap of any leader to it is at
most 0 (the selector is the best plan). Within epsilon: an account for each leader, which bets on gap +
epsilon while it leads. With b the best plan the selector is the row b of the accounts of all leaders that are
worse than b by more than epsilon; they are staked from one cash.

Theory needs noise that is sub-Gaussian with a known scale, or bounded readings of single arms: these factors
alone have a log that is affine in a plan.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from surepick.core.arrays import BoolArray, FloatArray, IntArray, divided, golden_multiples
from surepick.core.base_problem import BOUNDED_VARIANCE
from surepick.core.oracle_problem import OracleProblem
from surepick.core.plan_sets import Branch, FindPlay, plan_set, play_finder, spanned
from surepick.core.policy import known_noise_scale
from surepick.core.run import TOLERANCE, Answer, Decision, Standing
from surepick.design.grid import VALUE_BITS, on_grid
from surepick.errors import ProblemError
from surepick.inference.contrasts import Contrasts
from surepick.inference.factors import log_sum_exp
from surepick.policies.betting.best import FIRST_STAKE, STAKE
from surepick.policies.betting.estimates import BatchResult, Estimates
from surepick.policies.betting.question import Check, Pace, PlannedBatch, Question, Targets
from surepick.policies.oracles.branch_search import CALLS_A_BATCH, BranchSearch
from surepick.policies.oracles.plan_wealth import (
    BoundedPlanWealth,
    CommonWealth,
    FinalTest,
    LearnedPlanWealth,
    OracleBet,
    PlanAccount,
    PlanWealth,
)

# None of these constants bears on the guarantee; they were chosen on other instances than those of the tests.
# Sizes of common bets are multiples of two that a decision records: one by estimated gaps, and a fixed one.
_BY_GAP = np.array([[0.15, 0.0], [0.5, 0.0], [1.5, 0.0]])  # of every stake
_FIXED = np.array([[0.0, 0.5**k] for k in range(6)])  # of the first stake, beside these
_COMMON_SHARE = 0.35  # of a stake, on common bets
_KEEP_ERRORS = 0.5  # with epsilon: standard errors that a leader may be behind, and stay,
_KEEP_EPSILON = 0.6  # or this share of epsilon
_MOST_ACCOUNTS = 8  # with epsilon: the least recently used is forgotten, which only loses wealth
_MOST_RIVALS = 256  # that are kept from batch to batch
_PATIENCE = 10  # times the usual oracle calls, to check a recorded decision
_SMOOTHING = 32.0  # squared errors added to squared gaps in the choice of those


class OracleBest(Question):
    """Which plan behind an oracle is best, or within epsilon of the best?"""

    STATE: ClassVar[tuple[str, ...]] = (
        *Question.STATE,
        "accounts",
        "candidate",
        "first_led_at",
        "next_stake",
        "later_threshold",
        "stages",
    )
    KINDS: ClassVar[tuple[type, ...]] = (Branch, CommonWealth, FinalTest, OracleBet, PlanAccount)
    pace = Pace(batch_share=0.12, need_share=0.2)  # searches between batches take longer than on a list
    first_share = 0.48  # of the first stake on plan bets, on fixed sizes
    restake = 1.6  # growth of the measurements between two stakes
    wealth_kind = PlanWealth

    def __init__(self, problem: OracleProblem, delta: float, epsilon: float = 0.0) -> None:
        super().__init__(delta, epsilon)
        if problem.noise_kind == BOUNDED_VARIANCE:
            raise ProblemError(
                "plans behind an oracle need noise with tails like those of Gaussian noise, got noise of "
                "bounded variance; list the plans in a Problem",
                field="noise",
            )
        self._is_known, self._known_means = problem.is_known, problem.known_means
        self._learns_scale = problem.noise_scale is None
        scale = np.ones(problem.n_arms) if self._learns_scale else known_noise_scale(problem, plays=True)
        self._variance = np.where(self._is_known, 0.0, scale**2)
        self._set = plan_set(problem)
        self._everything = spanned(self._set)
        ones = np.ones(problem.n_arms)
        self._one_size = self._size(ones) == self._size(-ones)
        known = np.where(self._is_known, self._known_means, np.nan)
        # common bets on readings of single arms are affine in plans of zeros and ones
        is_plain = not problem.plays and problem.best_within is None
        self.learns_variance = problem.bounds is not None and is_plain
        kind = BoundedPlanWealth if self.learns_variance else self.wealth_kind
        kind = LearnedPlanWealth if self._learns_scale else kind
        self._plan_wealth = kind(self._variance, known, self._everything, epsilon)
        self.leader: Any = -1  # none yet; then a plan, (n_arms,)
        self.accounts: dict[str, PlanAccount] = {}
        self.candidate: dict[str, PlanAccount] = {}  # a new account, until a decision names its leader
        self.later_threshold = 0.0  # of a smaller delta, once the present one is reached
        # the plans that were proved before a smaller delta, each with the delta that followed
        self.stages: list[list[Any]] = []
        self._point = golden_multiples(problem.n_arms)  # which is no plan
        self.first_led_at: dict[str, IntArray] = {}  # counts when each plan led for the first time
        self.next_stake = 0.0
        if not self._unknown(self._everything).any():
            self.leader = self._set.best(self._known_means, self._everything)

    def _size(self, weights: FloatArray) -> float:
        """Return the sum of the entries of the best plan."""
        plan = self._set.best(weights, self._everything)
        assert plan is not None
        return float(plan.sum())

    @property
    def n_plans(self) -> int:
        """How many rivals the leader has now; plans themselves have no numbers."""
        return int(self._can_tell().sum()) if self.has_leader else 0

    def _can_tell(self) -> BoolArray:
        """Return which rivals of the leader measurements can tell from it."""
        return np.asarray((self.leader != self._account.rivals)[:, ~self._is_known].any(axis=1))

    @property
    def has_leader(self) -> bool:
        """Whether a plan has been chosen to lead."""
        return isinstance(self.leader, np.ndarray)

    @property
    def named_leader(self) -> Any:
        """The leader as a list of numbers."""
        return self.leader.tolist() if self.has_leader else self.leader

    def _unknown(self, branch: Branch) -> BoolArray:
        """Return the arms on which plans of the branch may differ and whose means are not known."""
        return np.asarray((branch.lower < branch.upper) & ~self._is_known)

    def first_contrasts(self, most: int) -> tuple[FloatArray, Contrasts]:
        """Return every arm on which plans differ."""
        rows = np.eye(len(self._variance))[self._unknown(self._everything)]
        return rows, Contrasts(rows)

    def find_plan(self) -> FindPlay:
        """Return the oracle as one that finds plans to measure, for weights that are not negative."""
        return play_finder(self._set, self._everything)

    @property
    def free(self) -> BoolArray:
        """(n_arms,): where plans that are left may differ, and measurements can tell."""
        return self._unknown(self._account.branch)

    # accounts

    def _key(self, plan: FloatArray) -> str:
        """Return the name of the account that rules out rivals of this plan.

        Without epsilon it is that of all leaders, unless a later stage has opened one for this plan alone.
        """
        own = _text(plan)
        return own if self.epsilon or own in self.accounts else "common"

    @property
    def _account(self) -> PlanAccount:
        """The account of the leader; an empty one where it has none yet."""
        return self._account_of(self.leader)

    def _account_of(self, leader: FloatArray) -> PlanAccount:
        key = self._key(leader)
        found = self.accounts.get(key, self.candidate.get(key))
        return self._plan_wealth.open() if found is None else found

    def _search(
        self, account: PlanAccount, leader: FloatArray | None = None, of_threshold: float = 1.0
    ) -> BranchSearch:
        """Return a search on this account, for the present leader unless another is named."""
        return BranchSearch(
            self._set,
            self._plan_wealth,
            account,
            self.leader if leader is None else leader,
            self._cash(account),
            threshold=of_threshold * self.wealth.threshold,
            one_size=self._one_size,
        )

    # after a batch: the leader, what is ruled out, and rivals

    def choose(self, estimates: Estimates) -> None:
        """Let the plan lead that looks best, rule out plans, and find rivals.

        What is found of an account without bets is kept aside: accounts are opened by decisions alone.
        """
        means = self._means(estimates)
        is_exact = not self.epsilon and self.has_leader
        best = self._set.best(means, self._account.branch if is_exact else self._everything)
        assert best is not None
        if not self._keeps_lead(best, estimates):
            self.leader = best
        search = self._examine()
        if self.later_threshold and self.is_answered:
            self._reopen()
            search = self._examine()
        account = self._account
        for arm in account.branch.free.tolist():  # the best-looking plan that differs from the leader there
            for part in account.branch.apart(arm, float(self.leader[arm]), self._set.step):
                if (plan := self._set.best(means, part)) is not None:
                    search.rules_out(plan)
        if len(account.rivals) > _MOST_RIVALS:
            self._forget_rivals(estimates)

    def _examine(self) -> BranchSearch:
        """Fix the arms on which the plans that are left agree with the leader; return the search."""
        key = self._key(self.leader)
        if key not in self.accounts:
            self.candidate = {key: self._account}
        search = self._search(self._account)
        search.fix_arms()
        return search

    def _means(self, estimates: Estimates) -> FloatArray:
        """Return the means of the arms, estimated or known, rounded to what may decide."""
        return np.where(self._is_known, self._known_means, on_grid(estimates.means, VALUE_BITS))

    def _keeps_lead(self, best: FloatArray, estimates: Estimates) -> bool:
        """Return whether, with epsilon, the leader is too close to the best to be worth changing."""
        if not self.epsilon or not self.has_leader or self._is_known.any():
            return False
        y = best - self.leader
        error = math.sqrt(float(y**2 @ divided(1.0, estimates.matrix)))
        return bool(y @ estimates.means <= max(_KEEP_ERRORS * error, _KEEP_EPSILON * self.epsilon))

    def _forget_rivals(self, estimates: Estimates) -> None:
        """Keep the rivals that need most, and one for every arm on which there is one."""
        targets = self.targets(estimates)
        gap2 = np.maximum(targets.gap + self.epsilon, 0.0) ** 2
        need = targets.evidence_needed / (gap2 / np.maximum(targets.gap_variance, 1e-300) + _SMOOTHING)
        order = np.argsort(-need, kind="stable")
        mask = np.zeros(len(need), dtype=bool)
        mask[order[:_MOST_RIVALS]] = True
        mask[order[(targets.contrasts.rows[order] != 0).argmax(axis=0)]] = True
        can_tell = self._can_tell()
        can_tell[can_tell] = mask
        self._account.keep_rivals(can_tell)

    def unresolved(self) -> IntArray:
        """Return nothing: the rivals are no part of what fixes the bets."""
        return np.zeros(0, dtype=np.int64)

    @property
    def is_answered(self) -> bool:
        """Whether no other plan is left but such as differ from the leader in arms of known means.

        Of these the leader is the best: it was chosen as the best of all plans of the branch.
        """
        return self.has_leader and not self.free.any()

    def answer(self) -> Answer:
        """Return the leader as a plan of the problem."""
        return self._set.answer(self.leader)

    # before a batch

    def targets(self, estimates: Estimates, rivals: IntArray | None = None) -> Targets:
        """Return the contrasts of the leader with its rivals."""
        account, can_tell = self._account, self._can_tell()
        y = (self.leader - account.rivals)[can_tell]
        log_wealth = self._search(account).log_wealth()[can_tell]
        contrasts = Contrasts(np.where(self._is_known, 0.0, y), constant=y @ self._known_means)
        return self.aim(estimates, np.arange(len(y)), contrasts, log_wealth, self.epsilon)

    def terms(self, estimates: Estimates, batch: PlannedBatch) -> dict[str, Any]:
        """Return what common bets are multiples of: a size for the rivals that bind, and a fixed one.

        A bet of size eta on a rival with a gap of g and a variance of v in this batch grows by
        eta g - eta^2 v / 2 nats on average, most at eta = g / v. The first size makes a weighted sum of that
        over the rivals as large as possible, with gaps lowered by an error. Weights are the rivals' duals in
        the design, times the measurements that each still needs. The second size suits a gap as large as the
        noise of one measurement of each arm.
        """
        targets, counts, dual = batch.targets, batch.counts, batch.dual
        if targets is None:
            return {}
        squares, error = targets.contrasts.squares, targets.error
        variance = stated = self._variance
        if self.learns_variance or self._learns_scale:  # as it is estimated now
            variance = np.where(self._is_known, 0.0, estimates.readings.probes.noise_scale**2)
        if self._learns_scale:
            stated = variance
        shown_variance = squares @ divided(variance, counts)
        gap = targets.gap + self.epsilon
        weight = dual * targets.evidence_needed / np.maximum(gap, error) ** 2
        by_gap = float(weight @ np.maximum(0.0, gap - error)) / float(weight @ shown_variance)
        noise = math.sqrt(float(dual @ (squares @ stated)) / float(dual.sum()))
        fixed = float(counts.sum()) / int(np.count_nonzero(counts)) / noise
        found = {"sizes": [by_gap, fixed], "free": np.flatnonzero(self._must_show(self.leader)).tolist()}
        return found | ({"stages": self.stages} if self.stages else {})

    def _must_show(self, leader: FloatArray) -> BoolArray:
        """Return the arms on which the leader may differ from a plan that is left: bets need all of them."""
        branch = self._account_of(leader).branch
        is_free = (branch.lower < branch.upper) | (leader < branch.lower) | (leader > branch.upper)
        return ~self._is_known & is_free

    def follow(self, decision: Decision, estimates: Estimates) -> None:
        """Take on leader and free arms of this decision; stake when it is time.

        The other arms are fixed, unless what had ruled out the plans that differ there was removed since.
        """
        self.leader = np.array(decision.leader)
        self.first_led_at.setdefault(_text(self.leader), estimates.counts)
        key, account = self._key(self.leader), self._account
        if key not in self.accounts:
            self.next_stake = 0.0  # it is empty: stake at once
        self.accounts.pop(key, None)
        if len(self.accounts) >= _MOST_ACCOUNTS:
            del self.accounts[next(iter(self.accounts))]
        self.accounts[key], self.candidate = account, {}  # now the most recently used
        self._fixable(account, self.leader, self._fixed_by(decision))
        if not decision.is_final and estimates.n_measured >= self.next_stake:
            self.next_stake = self.restake * estimates.n_measured
            self._stake(account)

    def leader_objection(self, leader: Any) -> str | None:
        """Return why this cannot lead: it is no plan."""
        is_plan = isinstance(leader, list) and len(leader) == len(self._point)
        if not is_plan or not all(type(entry) in (int, float) for entry in leader):
            return "its leader is no list of numbers, one for each arm"
        return None if self._set.has(np.array(leader, dtype=float)) else "its leader is no plan"

    def is_plan(self, reads: FloatArray) -> bool:
        """Return whether a use that reads these arms is that of a plan."""
        return self._set.has(reads if self._everything.lower.min() >= 0 else -reads)

    def checks(self, decision: Decision) -> Mapping[str, Check]:
        """Return that bet sizes are not negative, and free arms are arms; the run checks its plans."""

        def are_sizes(sizes: Any) -> bool:
            is_pair = isinstance(sizes, list) and len(sizes) == 2
            return is_pair and all(isinstance(size, float) and 0 <= size < math.inf for size in sizes)

        def are_arms(free: Any) -> bool:
            return isinstance(free, list) and free == sorted({*free} & {*range(len(self._point))})

        checks: dict[str, Check] = {"sizes": are_sizes, "free": are_arms, "plans": lambda _: True}
        return checks | ({"stages": lambda stages: stages == self.stages} if self.stages else {})

    def rival_objection(self, decision: Decision) -> str | None:
        """Return why no run decides so here: arms that it does not count as free are fixed."""
        fixed = self._fixed_by(decision)
        agrees = not fixed.any() or self._fixes(np.array(decision.leader), fixed)
        return None if agrees else "plans that are left differ on arms that it takes for fixed"

    def _fixed_by(self, decision: Decision) -> BoolArray:
        """Return the arms that this decision takes for fixed, and that are not known to be."""
        leader = np.array(decision.leader)
        return self._must_show(leader) & ~_mask(decision.more["free"], len(leader))

    def _fixes(self, leader: FloatArray, arms: BoolArray) -> bool:
        """Return whether the plans that are left agree with this leader on these arms, up to rounding."""
        return bool(self._fixable(copy.deepcopy(self._account_of(leader)), leader, arms).all())

    def _fixable(self, account: PlanAccount, leader: FloatArray, arms: BoolArray) -> BoolArray:
        """Return on which of these arms the plans that are left agree with this leader, and fix them there.

        The search has more time than usual: a machine that rounds otherwise may have looked elsewhere.
        """
        found = ~arms
        if not arms.any() or not account.branch.holds(leader):
            return found
        search = self._search(account, leader, 1.0 - TOLERANCE)
        search.update_rivals()
        for arm in np.flatnonzero(arms).tolist():
            found[arm] = search.agrees(arm, _PATIENCE * CALLS_A_BATCH)
            if found[arm]:
                account.pin(arm, float(leader[arm]))
        return found

    def proves(self, plan: Answer | None) -> bool:
        """Return whether this plan is proved, up to rounding."""
        if not self.has_leader or plan != self.answer():
            return False
        return not self.later_threshold and (self.is_answered or self._fixes(self.leader, self.free))

    def set_delta(self, delta: float) -> None:
        """Continue with a smaller delta.

        Plans that are ruled out are no longer measured, so that their wealth is not known beyond the present
        delta. When all but the leader are, each of them has had 1/delta, and a second stage begins with that
        much for this leader alone.
        """
        self.later_threshold = -math.log(delta)
        if self.has_leader and self.is_answered:
            self._reopen()

    def _reopen(self) -> None:
        """Begin the next stage: the leader may use as much against every plan as the last one has asked for.

        The cash of all stays as it is, and the rest is the leader's own. Where the leader is a wrong answer,
        the wealth against the best plan has had that much. Where it is right, its account counts for nothing:
        the wealth against the leader itself, which other leaders may use, has not had it.
        """
        reached, cash = self.wealth.threshold, self.wealth.log_cash
        self.wealth.threshold, self.later_threshold = self.later_threshold, 0.0
        account = self._plan_wealth.open()
        account.log_cash = reached + math.log1p(-math.exp(cash - reached))
        self.accounts, self.candidate, self.next_stake = {_text(self.leader): account}, {}, 0.0
        self.stages = [*self.stages, [self.leader.tolist(), math.exp(-self.wealth.threshold)]]

    def _cash(self, account: PlanAccount) -> float:
        """Return the uninvested wealth that the leader of this account may use."""
        return float(np.logaddexp(self.wealth.log_cash, account.log_cash))

    def _stake(self, account: PlanAccount) -> None:
        """Move cash of all, and of the account alone, to its bets."""
        is_first = not len(account.kinds) and not self.epsilon
        share = FIRST_STAKE if is_first else STAKE
        amount = np.logaddexp(self.wealth.withdraw(share), account.log_cash + math.log(share))
        account.log_cash += math.log1p(-share)
        self._plan_wealth.stake(
            account,
            float(amount),
            common_share=_COMMON_SHARE,
            kinds=np.vstack([_BY_GAP, _FIXED]) if is_first else _BY_GAP,
            first_share=self.first_share if is_first else 0.0,
        )

    def bets(self, decision: Decision, estimates: Estimates) -> list[Any]:
        """Return one bet, from which the bets against any plan, or a test of all of them, follow."""
        since = estimates.counts - self.first_led_at[_text(self.leader)]
        bet = OracleBet(
            leader=self.leader,
            free=self._must_show(self.leader),
            sizes=self._account.kinds @ np.array(decision.more["sizes"]),
            means=self._means(estimates),
            variance=divided(1.0, estimates.matrix),
            fresh=divided(1.0, estimates.readings.matrix(since)),
        )
        return [bet]

    def settle(self, bets: list[Any], result: BatchResult) -> None:
        """Multiply wealth by the factors of the bet, or test all plans by a final batch.

        A plan that differs from the leader where the batch measures nothing is not shown: unless all arms are
        measured on which plans that are left may differ, which the counts say beforehand, there is no bet.
        """
        account, (bet,) = self._account, bets
        if not (result.arm_information > 0)[bet.free].all():
            return
        shown, variance = self._plan_wealth.shown(result), divided(1.0, result.arm_information)
        if result.is_final and result.bounded is None:
            if result.scatter is not None:  # the test takes the bound on the scale
                variance = result.scatter.bound_variance(result.uses)
            account.final = FinalTest(bet.leader, shown[0], variance, result.gaussian)
        else:  # bounded readings: bets settle a final batch too, since 1 / F is a p-value
            self._plan_wealth.settle(account, bet, shown, variance)
        if result.is_final:
            self._search(account).fix_arms()

    # looking

    def recorded_wealth(self, leader: Any) -> float:
        """Return the log wealth of the leader's common bets and cash at a point between all plans."""
        own = self.accounts.get(self._key(np.array(leader))) if isinstance(leader, list) else None
        if own is None:
            return self.wealth.log_cash
        return float(log_sum_exp(self._plan_wealth.common(own, self._cash(own)).at(self._point[None])[0]))

    def standing(self, estimates: Estimates) -> Standing:
        """Return the leader, the rival with the least evidence against it, and the risk of the leader."""
        leader, account = self.answer(), self._account
        # what is outside the branch was ruled out at delta; the rest is bounded part by part
        least = math.inf if self.is_answered else self._search(account).least_evidence()
        if account.branch.free.size < self._everything.free.size:
            least = min(least, self.wealth.threshold)
        risk = min(1.0, math.exp(-least))
        only = (leader,) if self.is_answered else None  # what is left is one plan, or a branch
        if not self.n_plans:
            return Standing(leader, risk=risk, remaining=only, good=only or ())
        targets = self.targets(estimates)
        k = int(np.argmin(targets.log_wealth))
        radius = math.sqrt(2 * float(targets.gap_variance[k]) * self.wealth.threshold)
        rival = self._set.answer(account.rivals[self._can_tell()][k])
        return Standing(leader, rival, float(targets.gap[k]), radius, risk, only, only or ())


def _text(plan: FloatArray) -> str:
    """Return a plan as text, the name of what belongs to it."""
    return " ".join(f"{entry:g}" for entry in plan)


def _mask(arms: list[int], n: int) -> BoolArray:
    """Return which of n arms are among these."""
    mask = np.zeros(n, dtype=bool)
    mask[arms] = True
    return mask
