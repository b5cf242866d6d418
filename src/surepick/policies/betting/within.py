"""A plan within epsilon of the best.

Few plans (`WithinFew`): every plan i is a possible answer and all pairs (i, j) bet at once, on rows of one
account: that j is not better than i by more than epsilon. The cash against j is staked in parts on the rows
(i, j) of the other plans, so that the parts of all i that are more than epsilon worse than a best plan j sum
to at most the stake.

Many plans (`WithinMany`): a fifth of the cash asks for the best plan, as `Best` does, on the common account.
The rest waits plan by plan, and the part that waits for plan j goes to the account of the leader when the
leader seems to be clearly within epsilon of j; while it leads, that account bets on gap + epsilon.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from surepick.core.arrays import FloatArray, IntArray
from surepick.core.problem import PlanParts
from surepick.core.run import Decision, as_ranges, from_ranges
from surepick.inference.steps import are_steps, from_steps, to_steps
from surepick.inference.wealth import COMMON, EMPTY, WAITING, Account, Wealth
from surepick.policies.betting.best import Best
from surepick.policies.betting.question import RESTAKE, Bet, Estimates, Question, Readings, Targets

MOST_PLANS = 64  # for which all pairs bet; with more the parts of a stake would be too small
_MOST_LEADERS = 26  # accounts that are kept, the common one and the waiting cash among them


class WithinMany(Best):
    """Which plan is within epsilon of the best? An account for every leader beside the common one."""

    STATE: ClassVar[tuple[str, ...]] = (*Best.STATE, "next_stake")
    exact_share = 0.2  # of the cash, to ask for the best plan
    stake_share = 0.35  # of what waits for a plan; divided by the leaders so far where plans share no arms
    ready = 1.0  # standard errors that gap + epsilon is above 0 before it is staked,
    ready_for_all = 1.8  # and for every rival where plans share arms
    keep_errors = 0.5  # standard errors that a leader may fall behind before it is replaced
    new_leader_nats = 10.0  # beyond the threshold: what a change of leader seems to cost

    def __init__(self, plans: Any, delta: float, epsilon: float) -> None:
        super().__init__(plans, delta, epsilon, _MOST_LEADERS)
        # Initial wealth 1: `exact_share` bets on the common account, the rest waits to be staked per plan.
        self.wealth.log_cash = math.log(self.exact_share)
        self.wealth.account(WAITING, self.n_plans, 1).stake(math.log1p(-self.exact_share))
        self.next_stake = np.zeros(self.n_plans)  # measurements at which more is staked against each plan
        self.ignored_gap = 0.5 * epsilon

    @property
    def _waiting(self) -> Account:
        return self.wealth.accounts[WAITING]

    @property
    def _own(self) -> Account:
        return self.wealth.account(self.leader, self.n_plans, 1)

    def _keeps_lead(self, best: int, estimates: Estimates) -> bool:
        """Keep a leader that is little behind, the more so the nearer it is to be proved within epsilon."""
        if not self.has_leader:
            return False
        contrast = self._contrasts(np.array([best]), np.array([self.leader]))
        behind, variance = float(estimates.gap(contrast)[0]), float(estimates.gap_variance(contrast)[0])
        room, threshold = 1.0 - behind / self.epsilon, self.wealth.threshold
        needed = max(threshold - float(self.log_wealth(self.leader)[best]), 0.0) / (
            threshold + self.new_leader_nats
        )
        return behind <= self.keep_errors * math.sqrt(variance) or (room > 0 and room * room >= needed)

    def _has_changed(self) -> None:
        if self.leader not in self.wealth.accounts:
            self.next_stake = np.zeros(self.n_plans)  # stake as soon as it is ready
        self._count_for_leader(np.arange(self.n_plans))

    def _count_for_leader(self, rows: IntArray) -> None:
        self.wealth.count(rows, self._waiting, self._common, self._own)

    def wagers(self, estimates: Estimates, targets: Targets | None) -> dict[str, Any]:
        """Bet and stake as on the best plan; stake on the leader against every rival that it is ready for."""
        found = super().wagers(estimates, targets)
        if targets is None:
            return found
        errors_ahead = (targets.gap + self.epsilon) / np.sqrt(targets.gap_variance)
        is_ready = errors_ahead > self.ready
        n_leaders = len({self.leader, *(key for key in self.wealth.accounts if isinstance(key, int))})
        share = round(self.stake_share / n_leaders, 3)  # each change of leaders loses what was staked
        if self._probe_of is None:  # arms that are shared make many plans alike, and leaders change often
            is_ready = np.full(len(is_ready), errors_ahead.min() > self.ready_for_all)
            share = self.stake_share
        # a new leader is staked on as soon as it is ready
        next_stake = self.next_stake if self.leader in self.wealth.accounts else np.zeros(self.n_plans)
        rows = targets.behind[is_ready & (estimates.n_measured >= next_stake[targets.behind])]
        return found | ({"waiting": [share, as_ranges(rows)]} if len(rows) else {})

    def place(self, decision: Decision, estimates: Estimates) -> list[Bet]:
        """Bet that the leader is better, and on its own account that it is not worse by more than epsilon."""
        bets = super().place(decision, estimates)
        share, ranges = decision.more.get("waiting", [self.stake_share, []])
        rows = from_ranges(ranges, self.n_plans)
        own, waiting = self._own.components, self._waiting.components
        own[rows] = np.logaddexp(own[rows], waiting[rows] + math.log(share))
        waiting[rows] += math.log1p(-share)
        self.next_stake[rows] = RESTAKE * estimates.n_measured
        exact, epsilon = bets[0], self.epsilon
        assert exact.centre is not None
        within = replace(exact, account=self.leader, shift=epsilon, centre=exact.centre + epsilon)
        return [*bets, replace(within, unit=None, grid=None)]

    def wager_objection(self, decision: Decision) -> str | None:
        """Return why stakes and bets, as they were recorded, are none, or None."""
        more = dict(decision.more)
        waiting = more.pop("waiting", [self.stake_share, []])
        is_pair = isinstance(waiting, list) and len(waiting) == 2 and type(waiting[0]) is float
        if not is_pair or not 0 < waiting[0] < 1 or from_ranges(waiting[1], self.n_plans).size > self.n_plans:
            return "its stake on the leader is none"
        return super().wager_objection(replace(decision, more=more))

    def count(self, bets: list[Bet]) -> None:
        """Update the common account, and the leader's own one together with it."""
        for bet in bets:
            self.wealth.count(bet.rows, self._waiting, self._common)
            self._count_for_leader(bet.rows)

    def evidence(self, leader: Any) -> FloatArray:
        """Return the largest log wealth so far against each plan, as a rival of this leader."""
        own = self.wealth.accounts.get(leader)
        if own is None:
            return self.certain(self._common.peak)
        evidence = self.certain(np.maximum(self._common.peak, own.peak))
        # the common account may have grown since this plan led
        return evidence if leader == self.led else np.maximum(evidence, self._now_for(own))

    def _now_for(self, own: Account) -> FloatArray:
        return self.wealth.total(np.arange(self.n_plans), self._waiting, self._common, own)

    def log_wealth(self, leader: Any) -> FloatArray:
        """Return the log wealth against each plan, as a rival of this leader."""
        own = self.wealth.accounts.get(leader)
        if own is None:
            return self._common.current
        return own.current if leader == self.led else self._now_for(own)

    def tested_account(self) -> str | int:
        """Return the leader's own account: a test with epsilon holds for this leader alone."""
        return self.leader

    def within_epsilon(self) -> list[int]:
        """Return the leaders, now or earlier, all of whose rivals are ruled out."""
        leaders = {self.leader, *(key for key in self.wealth.accounts if isinstance(key, int))}
        found = []
        for leader in sorted(leaders - {-1}):
            found += [leader] if self.rival_evidence(leader).min() >= self.wealth.threshold else []
        return found

    def grow(self, parts: PlanParts, readings: Readings, n_probes: int) -> None:
        """Let new plans begin with the least common and waiting wealth, and none in the leaders' accounts."""
        n_new, least = int(parts.free.shape[0]) - self.n_plans, self._waiting.least_staked()
        super().grow(parts, readings, n_probes)
        for key, account in self.wealth.accounts.items():
            if key != COMMON:
                account.append(n_new, least if key == WAITING else EMPTY)
        self.next_stake = np.append(self.next_stake, np.zeros(n_new))
        self.wealth.count(np.arange(self.n_plans - n_new, self.n_plans), self._waiting, self._common)
        if self.has_leader:
            self._count_for_leader(np.arange(self.n_plans))


class WithinFew(Question):
    """Which plan is within epsilon of the best? All pairs bet, so that no leader has to be guessed.

    Row i * n + j of the account bets that j is not better than i by more than epsilon. Bet sizes begin at
    epsilon: no gap plus epsilon that matters is smaller.
    """

    STATE: ClassVar[tuple[str, ...]] = (*Question.STATE, "next_stake", "sizes")
    bets_at_once = True
    first_stake, stake_share = 0.8, 0.3  # of the cash
    plausible = 2.0  # a stake favours plan i by exp(-this z^2 / 2), z standard errors behind the leader
    size_step, most_sizes = 1.5, 8  # ratio of bet sizes; the largest is a gap's noise after a first batch
    size_tilt = 0.5  # the r-th size has a share in proportion to r^-tilt

    def __init__(self, plans: Any, delta: float, epsilon: float) -> None:
        super().__init__(plans, Wealth(-math.log(delta)), epsilon)
        self.next_stake = 0.0
        self.smallest = epsilon  # bet size
        self.sizes = np.zeros(0)  # chosen with the first stake, and kept

    def _pairs(self) -> tuple[IntArray, IntArray, IntArray]:
        """Return rows, ahead and behind of all pairs of two plans."""
        n = self.n_plans
        ahead, behind = np.divmod(np.arange(n * n), n)
        rows = np.flatnonzero(ahead != behind)
        return rows, ahead[rows], behind[rows]

    def _choose_sizes(self, estimates: Estimates) -> FloatArray:
        _, ahead, behind = self._pairs()
        unit = float(estimates.unit(self.contrasts(ahead, behind)).max())
        octaves = max(math.log(unit / self.smallest), 0.0)
        n = min(self.most_sizes, 1 + int(octaves / math.log(self.size_step)))
        step = self.size_step if n < self.most_sizes else math.exp(octaves / (self.most_sizes - 1))
        return np.asarray(self.smallest * step ** np.arange(n))

    def choose(self, estimates: Estimates) -> None:
        """Let the plan lead that looks best, among those proved to be within epsilon if there are any."""
        value = self.values(estimates)
        proved = self.within_epsilon()
        self.leader = proved[int(np.argmax(value[proved]))] if proved else int(np.argmax(value))

    def wagers(self, estimates: Estimates, targets: Targets | None) -> dict[str, Any]:
        """Stake against every plan j, in parts on the other plans i by how plausible each is as an answer.

        All pairs bet in every batch, in sizes that the first stake names.
        """
        if estimates.n_measured < self.next_stake:
            return {}
        weight = np.ones(self.n_plans) if targets is None else self._plausibility(estimates)
        share = self.stake_share if len(self.sizes) else self.first_stake
        found = {"stake": share, "weights": to_steps(weight)}
        return found if len(self.sizes) else found | {"sizes": to_steps(self._choose_sizes(estimates))}

    def place(self, decision: Decision, estimates: Estimates) -> list[Bet]:
        """Stake against every plan j, and bet on all pairs."""
        if "sizes" in decision.more:
            self.sizes = from_steps(decision.more["sizes"])
        rows, ahead, behind = self._pairs()
        if "stake" in decision.more:
            account = self.wealth.account(COMMON, self.n_plans**2, len(self.sizes))
            weight = from_steps(decision.more["weights"])
            # sums over i != j by prefix and suffix: no subtraction, so that rounding hands out no more than
            # the stake
            before = np.concatenate([[0.0], np.cumsum(weight)[:-1]])
            after = np.concatenate([np.cumsum(weight[::-1])[::-1][1:], [0.0]])
            part = np.log(weight)[:, None] - np.log(before + after)[None, :]
            amount = self.wealth.withdraw(decision.more["stake"])
            tilt = np.arange(1, len(self.sizes) + 1) ** -self.size_tilt
            stakes = amount + part.ravel()[rows, None] + np.log(tilt / tilt.sum())
            account.components[rows] = np.logaddexp(account.components[rows], stakes)
            self.next_stake = max(1.0, RESTAKE * estimates.n_measured)
        return [Bet(COMMON, rows, ahead, behind, self.epsilon, unit=np.ones(len(rows)), grid=self.sizes)]

    def wager_objection(self, decision: Decision) -> str | None:
        """Return why a stake, as it was recorded, is none, or None."""
        more = dict(decision.more)
        share, weights, sizes = (more.pop(name, None) for name in ("stake", "weights", "sizes"))
        if share is not None:
            is_share = type(share) is float and 0 < share < 1
            if not is_share or decision.is_final or not are_steps(weights, self.n_plans):
                return "its stake is none"
        names_sizes = sizes is not None
        if names_sizes == bool(len(self.sizes) or decision.is_final) or (names_sizes and share is None):
            return "it has no sizes, or sizes for the second time"
        if sizes is not None and not (0 < len(sizes) <= self.most_sizes and are_steps(sizes, len(sizes))):
            return "its sizes are none"
        is_more = more or (share is None and weights is not None)
        return "it has more than a run writes" if is_more else None

    def _plausibility(self, estimates: Estimates) -> FloatArray:
        n = self.n_plans
        contrasts = self._contrasts(np.full(n, self.leader), np.arange(n))
        error = np.sqrt(estimates.gap_variance(contrasts))
        behind = np.divide(estimates.gap(contrasts), error, out=np.zeros(n), where=error > 0)
        return np.maximum(np.exp(-0.5 * self.plausible * np.maximum(behind, 0.0) ** 2), 1e-12)

    def _by_pair(self, name: str) -> FloatArray:
        """Return wealth or peak by pair, (n, n); 0 before the first stake."""
        account, n = self.wealth.accounts.get(COMMON), self.n_plans
        return self.certain(np.zeros((n, n)) if account is None else getattr(account, name).reshape(n, n))

    def evidence(self, leader: Any) -> FloatArray:
        """Return the largest log wealth so far against each plan, as a rival of this leader."""
        return self._by_pair("peak")[leader].copy()

    def log_wealth(self, leader: Any) -> FloatArray:
        """Return the log wealth against each plan, as a rival of this leader."""
        return self._by_pair("current")[leader]

    def tested_account(self) -> str | int:
        """Return the account of all pairs."""
        return COMMON

    def account(self, key: str | int) -> Account:
        """Return the account of all pairs, which is empty if a final batch comes before the first stake."""
        return self.wealth.account(key, self.n_plans**2, max(len(self.sizes), 1))

    def tested_rows(self, rivals: IntArray) -> IntArray:
        """Return the rows (leader, rival)."""
        return self.leader * self.n_plans + rivals

    def within_epsilon(self) -> list[int]:
        """Return the plans all of whose rivals are ruled out."""
        peak = self._by_pair("peak").copy()
        np.fill_diagonal(peak, np.inf)
        return [int(plan) for plan in np.flatnonzero(peak.min(axis=1) >= self.wealth.threshold)]

    def grow(self, parts: PlanParts, readings: Readings, n_probes: int) -> None:
        """Let new plans begin with the cash alone: no more than the wealth against any other plan."""
        n_old = self.n_plans
        self.bind(readings, parts)
        n, account = self.n_plans, self.wealth.accounts.get(COMMON)
        self.next_stake = 0.0
        if account is None:
            return
        old = (np.arange(n_old)[:, None] * n + np.arange(n_old)).ravel()
        grown = Account.empty(n * n, len(self.sizes))
        grown.current[:] = self.wealth.log_cash
        grown.components[old], grown.current[old], grown.peak[old] = (
            account.components,
            account.current,
            account.peak,
        )
        self.wealth.accounts[COMMON] = grown
