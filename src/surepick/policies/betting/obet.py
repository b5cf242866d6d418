"""OBet: the guarantee of BetGapE when the plans are too many to list.

Ours; the proof is in docs/theory.md, line by line with the names of this file.

Assumption: measurements are independent and sub-Gaussian with the noise scale of the problem, and the oracle
is exact. Plans are of zeros and ones, or of whole numbers with an oracle that respects bounds, or listed.

Proof status: wrong with probability at most delta, at any time and under any stop, without a union over
plans, arms or time. Against every plan a wealth bets that it is not the best; a plan is ruled out only while
its wealth is at least 1/delta. Plans are ruled out together, by a lower bound of their wealth that one oracle
call finds for a whole branch (`ruling_out`). Arms on which the plans that are left agree are fixed; the
answer is the last plan.

Cost of a block: two or three oracle calls for each arm that is not fixed yet, more towards the end of a run.

What it shows: `standing()` has the lead and a rival as plan vectors, the estimated gap, a radius as of
BetGapE, and `risk`, an anytime p-value: for every level fixed beforehand, a wrong lead is ever shown with a
risk up to that level with at most that probability (it costs an oracle call for each free arm). `evidence`
holds counts and sums of all complete blocks.

Longer than other files: the proof goes through it line by line.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from surepick.core.arrays import BoolArray, FloatArray, IntArray
from surepick.core.evidence import Evidence
from surepick.core.measurable import BOUNDED_VARIANCE
from surepick.core.oracle_problem import OracleProblem
from surepick.core.past import Past
from surepick.core.plan_sets import plan_set, spanned
from surepick.core.policy import known_noise_scale
from surepick.core.problem import Problem
from surepick.core.run import Measure, Standing, Stop
from surepick.design.counts import cut
from surepick.errors import ProblemError
from surepick.policies.betting.block_run import BettingPolicy, Block, BlockRun
from surepick.policies.betting.ruling_out import CALLS_A_BLOCK, CALLS_SHARE, Account
from surepick.policies.betting.wealth import SINGLE, Bet, Ladder, Singles, Wealth


@dataclass(frozen=True)
class Tuning:
    """The constants of OBet beyond those of BetGapE. None of them bears on the guarantee."""

    rows_share: float = 0.35  # of a stake on bets that all plans share
    multipliers: tuple[float, ...] = (0.15, 0.5, 1.5)  # of the eta chosen for a block
    ladder_share: float = SINGLE.ladder_share  # of the rest at the first stake, on its own kinds of bets
    fixed_gaps: int = 6  # rows of the first stake that bet on gaps of fixed size, each half the last
    first_stake: float = 0.73  # of the cash at the first chance
    stake: float = 0.3  # of the cash at every restart
    stake_with_epsilon: float = 0.3  # the same with epsilon, where every new lead is a restart too
    restart: float = 1.6  # growth of the measurements between restarts
    chosen_from: float = 300.0  # plans that a lead is thought to be the luckiest of
    caution: float = 1.0  # standard errors below the estimated gap that rows bet on
    tangents: int = 6  # searches for a rival that the division forgot
    block_share: float = 0.12  # a block is at most this share of what was measured
    need_share: float = 0.2  # and about this share of what seems to be needed still


TUNING = Tuning()
_LEAST_DEFICIT = 0.1  # nats: a rival about to be ruled out still counts a little
_WORKING_SET = 256  # rivals an allocation looks at
_STEPS, _TOLERANCE = 40, 0.02  # of the allocation; a rough one costs measurements, never correctness
_LEAST_SHARE = 1e-3  # of an equal share: keeps prices finite
_KEEP_GAP, _KEEP_EPSILON = 0.5, 0.6  # with epsilon: a lead stays unless beaten by standard errors, or epsilon
_OLD_LEADS = 8  # leads whose accounts are kept; forgetting one only loses wealth


@dataclass(frozen=True)
class OBet(BettingPolicy):
    """The best of plans that cannot be listed, wrong with probability at most `delta`.

    With `epsilon` above 0 the answer may be up to that much worse than the best plan, and ties end.
    `max_batch` limits how many measurements are asked for at once. Larger blocks are asked for in parts.

    >>> import surepick as sp
    >>> family = sp.problems.top_k_family([str(s) for s in range(30)], 15)  # 155,117,520 choices
    >>> means = [1.0] * 15 + [0.0] * 15
    >>> problem = family.oracle_problem(noise_scale=1)
    >>> outcome = sp.simulate(problem, sp.OBet(delta=0.05), sp.Gaussian(means), seed=1)
    >>> outcome.plan == tuple(means)
    True
    """

    name: ClassVar[str] = "OBet"
    version: ClassVar[int] = 2
    takes_oracle: ClassVar[bool] = True
    takes_plays: ClassVar[bool] = True
    takes_past: ClassVar[bool] = True

    def start(self, problem: Problem | OracleProblem) -> OBetRun:
        """A fresh run on this problem."""
        if problem.plays and not problem.is_listed:
            from surepick.policies.betting.play_run import PlayRun

            return PlayRun(problem, self)
        return OBetRun(problem, self)


@dataclass(frozen=True, eq=False)
class Field:
    """The rivals of the lead as they stand before a block."""

    away: FloatArray  # (n, n_arms) lead - rival
    gap: FloatArray  # (n,) estimated, with epsilon
    spread: FloatArray  # (n,) its variance
    deficit: FloatArray  # (n,) nats that are missing to rule the rival out

    def take(self, mask: BoolArray) -> Field:
        """Some of them."""
        return Field(self.away[mask], self.gap[mask], self.spread[mask], self.deficit[mask])


class OBetRun(BlockRun[Bet]):
    """A run of OBet: a block at a time; owned and changed by whoever started it."""

    _tuning = TUNING

    def __init__(self, problem: Problem | OracleProblem, policy: OBet) -> None:
        self._policy, self._costs = policy, problem.costs
        if problem.noise == BOUNDED_VARIANCE:
            raise ProblemError(
                "OBet needs tails like those of Gaussian noise: one call of the oracle rules out a branch of "
                "plans, which the bets for noise of bounded variance do not allow; list the "
                "plans and use BetGapE, or use Pick where no promise is needed",
                field="policy",
            )
        self._variance = known_noise_scale(problem, plays=True) ** 2
        self._price = self._variance * problem.costs
        self._target = -math.log(policy.delta)
        self._plans = plan_set(problem)
        self._everything, self._lead = spanned(self._plans)
        super().__init__(policy, self._everything.lower < self._everything.upper)
        ones = np.ones(problem.n_arms)
        self._one_size = self._size(ones) == self._size(-ones)
        priced = len(set(problem.costs[self._relevant].tolist())) > 1
        self._smoothing = SINGLE.smoothing_with_costs if priced else SINGLE.smoothing
        self._means = np.zeros(problem.n_arms)  # pooled; 0 for arms of which nothing is known
        self._cash = 0.0
        self._accounts: dict[bytes, Account] = {}
        self._nominated: dict[bytes, IntArray] = {}  # counts at each lead's first nomination
        self._next_stake = 0.0
        self._share = np.full(problem.n_arms, 1.0 / problem.n_arms)  # the last allocation, of cost
        self._stop: Stop | None = None
        self._risk: tuple[tuple[int, int], float] = ((-1, -1), 1.0)  # at so many measurements and free arms

    def _size(self, weights: FloatArray) -> float:
        """The sum of the entries of the best plan."""
        plan = self._plans.best(weights, self._everything)
        assert plan is not None
        return float(plan.sum())

    def remember(self, past: Past) -> None:
        """Begin with this past: it informs lead, division and bets from the first block on, and wins none."""
        self._put_past(past)

    def decide(self, rng: np.random.Generator | None = None) -> Measure | Stop:
        """The next part of the block, or the lead when no other plan is left."""
        if self._block is None and self._stop is None:
            self._rule_out()
            if self._account.branch.free.size:
                self._block = self._open_block()
            else:
                self._stop = Stop(self._plans.answer(self._lead))
        if self._block is None:
            assert self._stop is not None
            return self._stop
        return self._request(self._block)

    def _request(self, block: Block[Bet]) -> Measure:
        return Measure(block.next_request(self._policy.max_batch))

    def standing(self) -> Standing:
        """The lead, the rival with the least wealth against it, and the risk of declaring the lead now."""
        if not self._is_started:
            return Standing()
        lead = self._plans.answer(self._lead)
        rivals = self._account.rivals
        only = None if self._account.branch.free.size else (lead,)  # what is left is one plan, or a branch
        if not len(rivals.plans):
            return Standing(lead, risk=self._bound_risk(), remaining=only, good=only or ())
        field = self._field()
        k = int(np.argmax(field.deficit))
        radius = math.sqrt(2 * float(field.spread[k]) * self._target)
        gap = float(field.gap[k]) - self._policy.epsilon
        rival = self._plans.answer(rivals.plans[k])
        return Standing(lead, rival, gap, radius, self._bound_risk(), only, only or ())

    def state(self) -> dict[str, Any]:
        """All that a fresh run needs to become this one; plans are vectors."""
        bet = None if self._block is None else self._block.bets
        return {
            **self._measured_state(),
            "lead": self._lead,
            "cash": self._cash,
            "accounts": [[np.frombuffer(key), account.state()] for key, account in self._accounts.items()],
            "nominated": [[np.frombuffer(key), counts] for key, counts in self._nominated.items()],
            "next_stake": self._next_stake,
            "share": self._share,
            "bet": [] if bet is None else bet.parts,
            "stopped": self._stop is not None,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Become the run whose state this is."""
        self._restore_measured(state, Bet(*state["bet"]) if state["bet"] else None)
        self._means = self._known_means()
        self._lead, self._share = state["lead"], state["share"]
        self._cash, self._next_stake = state["cash"], state["next_stake"]
        self._accounts = {}
        for key, kept in state["accounts"]:
            account = self._accounts[key.tobytes()] = self._new_account()
            account.restore(kept)
        self._nominated = {key.tobytes(): counts for key, counts in state["nominated"]}
        self._stop = Stop(self._plans.answer(self._lead)) if state["stopped"] else None

    def _bound_risk(self) -> float:
        """A bound on the probability that declaring the lead now is wrong: 1 / the least wealth of a rival.

        What is outside the branch was ruled out at delta; the rest is bounded from below, part by part.
        """
        account = self._account
        now = (self._evidence.n_measurements, len(account.branch.free))
        if self._risk[0] != now:
            least = self._target if account.branch.free.size < self._everything.free.size else math.inf
            for part in account.branch.without(self._lead, self._plans.step, one_size=self._one_size):
                least = min(least, account.lower_bound(part))
            self._risk = (now, min(1.0, math.exp(-least)))
        return self._risk[1]

    @property
    def _account(self) -> Account:
        """The account that rules out rivals of the lead: with epsilon each lead has its own."""
        key = self._lead.tobytes() if self._policy.epsilon else b""
        account = self._accounts.pop(key, None)
        if account is None:
            account = self._new_account()
            self._next_stake = 0.0  # it is empty: put something on it at once
        if len(self._accounts) >= _OLD_LEADS:
            del self._accounts[next(iter(self._accounts))]
        self._accounts[key] = account  # last in the order of use
        account.cash = self._cash
        return account

    def _new_account(self) -> Account:
        reach = np.maximum(np.abs(self._everything.lower), np.abs(self._everything.upper))
        wealth = Wealth(self._variance, reach, epsilon=self._policy.epsilon, singles=self._singles())
        return Account(self._plans, wealth, self._everything, self._target, self._one_size)

    def _singles(self) -> Singles:
        return Ladder(SINGLE.selection * math.log(self._tuning.chosen_from))

    def _rule_out(self) -> None:
        """Fix every arm on which all plans that are left agree with the lead."""
        account = self._account
        if not self._is_started:
            return
        account.update_rivals(self._lead)
        calls = float(CALLS_A_BLOCK)
        for arm in account.branch.free:
            if (account.rivals.plans[:, arm] != self._lead[arm]).any():
                continue
            before = self._plans.n_calls
            parts = account.branch.apart(int(arm), float(self._lead[arm]), self._plans.step)
            if all(account.check(part, CALLS_SHARE * calls) for part in parts):
                account.branch = account.branch.pinned(int(arm), float(self._lead[arm]))
            calls = max(0.0, calls - (self._plans.n_calls - before - 1))

    def _open_block(self) -> Block[Bet]:
        """Counts and bets of the next block, from the past alone."""
        if not self._is_started:
            return self._first_block()
        self._put_stakes()
        self._find_rivals()
        return self._block_for(*self._divide())

    def _first_block(self) -> Block[Bet]:
        return Block(self._first_counts(), None)

    def _block_for(self, field: Field, dual: FloatArray) -> Block[Bet]:
        """The block for these rivals, by the shares just found."""
        counts = self._counts(field)
        if self._left is not None and self._left >= np.count_nonzero(counts):
            counts = cut(counts, self._left)  # every free arm keeps one: bets are about all of them
        return Block(counts, self._place_bet(field, dual, counts))

    def _settle(self, bets: Bet, seen: Evidence) -> None:
        """Multiply what is staked for the lead by its bets' factors, of this block's own means."""
        account = self._account
        account.wealth.settle(bets, _filled_means(seen), self._spread(seen.counts))
        account.rivals.purses = account.rivals.purses + account.wealth.last_factors(account.rivals.plans)

    def _choose_lead(self) -> None:
        """The plan that looks best of those that agree with the fixed arms, ruled out or not."""
        self._means = self._known_means()
        branch = self._everything if self._policy.epsilon else self._account.branch
        best = self._plans.best(self._means, branch)
        assert best is not None
        if not self._keeps_lead(best):
            self._lead = best
        self._nominated.setdefault(self._lead.tobytes(), self._evidence.counts)

    def _keeps_lead(self, best: FloatArray) -> bool:
        """With epsilon, whether the lead is too close to the best to be worth changing."""
        if not self._policy.epsilon or not self._nominated:
            return False
        away = best - self._lead
        error = math.sqrt(float(away**2 @ self._spread(self._known_counts())))
        return bool(away @ self._means <= max(_KEEP_GAP * error, _KEEP_EPSILON * self._policy.epsilon))

    def _put_stakes(self) -> None:
        """At the start, and whenever the measurements have grown enough, put some of the cash on bets."""
        measured = float(self._known_counts().sum())
        account = self._account
        if measured < self._next_stake:
            return
        self._next_stake = self._tuning.restart * measured
        first = not account.wealth.n_rows and not self._policy.epsilon
        share = self._tuning.first_stake if first else self._tuning.stake
        if self._policy.epsilon:
            share = self._tuning.stake_with_epsilon
        kinds = list(self._tuning.multipliers)
        if first:
            kinds += [-(0.5**k) for k in range(self._tuning.fixed_gaps)]
        account.receive(
            self._cash + math.log(share),
            rows_share=self._tuning.rows_share,
            kinds=np.array(kinds),
            ladder_share=self._tuning.ladder_share if first else 0.0,
        )
        self._cash += math.log1p(-share)
        account.cash = self._cash

    def _find_rivals(self) -> None:
        """Besides those in the way of fixing an arm: on each free arm the best-looking plan that differs."""
        account = self._account
        for arm in account.branch.free:
            for part in account.branch.apart(int(arm), float(self._lead[arm]), self._plans.step):
                plan = self._plans.best(self._means, part)
                if plan is not None:
                    account.rule_out_or_add(plan)

    def _field(self) -> Field:
        """How the rivals stand now."""
        account = self._account
        rivals = account.rivals
        away = self._lead - rivals.plans
        wealth = account.log_wealth(rivals.plans, rivals.purses)
        if rivals.stubborn.any():  # their neighbours have what all plans share, no more
            wealth = np.where(rivals.stubborn, account.shared_wealth(rivals.plans), wealth)
        deficit = np.clip(self._target - wealth, _LEAST_DEFICIT, 2 * self._target)
        gap = away @ self._means + self._policy.epsilon
        return Field(away, gap, away**2 @ self._spread(self._known_counts()), deficit)

    def _divide(self) -> tuple[Field, FloatArray]:
        """New shares of cost for the rivals that are worst off; the field and how much each of it binds."""
        field, dual = self._solve()
        for _ in range(self._tuning.tangents):
            if not self._found_on_tangent(field):
                break
            field, dual = self._solve()
        return field, dual

    def _solve(self) -> tuple[Field, FloatArray]:
        from surepick.policies.betting.division import divide

        field = self._working_field()
        n, n_arms = field.away.shape
        squares = field.away**2 * self._price * self._urgency(field)[:, None]
        dual = np.full(n, 1.0 / n)
        divide(squares, dual, self._share, np.empty(n_arms), np.empty(n), _STEPS, _TOLERANCE)
        return field, dual

    def _working_field(self) -> Field:
        """The rivals that an allocation looks at; the others are forgotten."""
        field = self._field()
        if len(field.gap) <= _WORKING_SET:
            return field
        mask = self._worst_off(field)
        self._account.rivals.keep(mask)
        return field.take(mask)

    def _urgency(self, field: Field) -> FloatArray:
        return np.asarray(field.deficit / (np.maximum(field.gap, 0) ** 2 + self._smoothing * field.spread))

    def _worst_off(self, field: Field) -> BoolArray:
        """The rivals that need most under the last shares, and one for every arm on which there is one."""
        need = self._urgency(field) * (field.away**2 @ self._price_per_share())
        order = np.argsort(-need, kind="stable")
        mask = np.zeros(len(need), dtype=bool)
        mask[order[:_WORKING_SET]] = True
        first = (field.away[order] != 0).argmax(axis=0)  # the worst off on each arm
        mask[order[first]] = True
        return mask

    def _found_on_tangent(self, field: Field) -> bool:
        """Look for a plan that needs more than the rivals: the best along the tangent at the worst."""
        inverse, spread = self._price_per_share(), self._spread(self._known_counts())
        needs = field.away**2 @ inverse
        k = int(np.argmax(self._urgency(field) * needs))
        gap = max(float(field.gap[k]), 0.0)
        level = gap**2 + self._smoothing * float(field.spread[k])
        branch = self._account.branch
        bend = branch.lower + branch.upper - 2 * self._lead  # (lead - plan)^2 as a function of the plan
        weights = bend * (inverse / needs[k] - self._smoothing * spread / level)
        weights += 2 * gap / level * self._means
        plan = self._plans.best(weights, branch)
        n = len(self._account.rivals.plans)
        if plan is None or (plan == self._lead).all() or self._account.rule_out_or_add(plan):
            return False
        return len(self._account.rivals.plans) > n

    def _counts(self, field: Field) -> IntArray:
        """Whole counts in proportion to the shares of cost, at least one for every arm that is not fixed."""
        costs, branch = self._costs, self._account.branch
        free, relevant = branch.lower < branch.upper, self._relevant
        spent = float(self._evidence.counts @ costs)
        budget = min(self._tuning.block_share * spent, self._tuning.need_share * self._need(field))
        budget = max(float(costs[free].sum()), budget)
        counts = np.maximum(np.rint(self._share * budget / costs), 1)
        side = np.zeros(len(costs))
        if self._policy.epsilon:  # arms fixed for this lead may matter for the next
            side = np.floor(SINGLE.side_share * budget / (costs * np.count_nonzero(relevant)))
        return np.where(free, counts, np.where(relevant, side, 0)).astype(np.int64)

    def _need(self, field: Field) -> float:
        """What ruling out the rival that is worst off seems to cost still, by the shares just found."""
        gap_square = np.maximum(field.gap, 0) ** 2 + SINGLE.need_smoothing * field.spread
        return 2 * float((field.deficit / gap_square * (field.away**2 @ self._price_per_share())).max())

    def _place_bet(self, field: Field, dual: FloatArray, counts: IntArray) -> Bet:
        """What is bet in this block. Rows bet one number on all plans: what suits the rivals that bind."""
        error = np.sqrt(field.spread)
        block_spread = field.away**2 @ self._spread(counts)
        weight = dual * field.deficit / np.maximum(field.gap, error) ** 2
        safe = np.maximum(0, field.gap - self._tuning.caution * error)
        eta = float(weight @ safe) / float(weight @ block_spread)
        noise = math.sqrt(float(dual @ (field.away**2 @ self._variance)))
        fixed = float(counts.sum()) / np.count_nonzero(counts) / noise
        kinds = self._account.wealth.kinds
        since = self._evidence.counts - self._nominated[self._lead.tobytes()]
        return Bet(
            self._lead,
            np.where(kinds > 0, kinds * eta, -kinds * fixed),
            self._means,
            self._spread(self._known_counts()),
            self._spread(since),
            bool(since.any()),
        )

    def _spread(self, counts: IntArray | FloatArray) -> FloatArray:
        """The variance of each arm's mean of so many measurements; 0 for none: no plan left differs there."""
        return np.asarray(np.divide(self._variance, counts, out=np.zeros(len(counts)), where=counts > 0))

    def _price_per_share(self) -> FloatArray:
        return np.asarray(self._price / np.maximum(self._share, _LEAST_SHARE / len(self._share)))


def _filled_means(evidence: Evidence) -> FloatArray:
    """The means, and 0 where nothing was measured: on such arms no plan is compared."""
    zeros = np.zeros(len(evidence.sums))
    return np.divide(evidence.sums, evidence.counts, out=zeros, where=evidence.counts > 0)
