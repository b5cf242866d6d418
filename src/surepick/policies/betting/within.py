"""A plan within epsilon of the best, of few plans: every plan is a possible answer.

All pairs (i, j) bet at once, on rows of one account: that j is not better than i by more than epsilon. The
cash against j is staked in parts on the rows (i, j) of the other plans, so that the parts of all i that are
more than epsilon worse than a best plan j sum to at most the stake.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar

import numpy as np

from surepick.core.arrays import FloatArray, IntArray, divided
from surepick.core.problem import PlanParts
from surepick.core.run import Decision
from surepick.inference.contrasts import Contrasts
from surepick.inference.steps import are_steps, from_steps, is_share, to_steps
from surepick.inference.wealth import COMMON, Account
from surepick.policies.betting.estimates import Estimates, Readings
from surepick.policies.betting.list_question import ListQuestion
from surepick.policies.betting.question import RESTAKE, Bet, Check, PlannedBatch

MOST_PLANS = 64  # for which all pairs bet; with more the parts of a stake would be too small


class WithinFew(ListQuestion):
    """Which plan is within epsilon of the best? All pairs bet, so that no leader has to be guessed.

    Row i * n + j of the account bets that j is not better than i by more than epsilon. Bet sizes begin at
    epsilon: no gap plus epsilon that matters is smaller.
    """

    STATE: ClassVar[tuple[str, ...]] = (*ListQuestion.STATE, "next_stake", "sizes")
    bets_at_once = True
    first_stake, stake_share = 0.8, 0.3  # of the cash
    plausible = 2.0  # a stake favours plan i by exp(-this z^2 / 2), z standard errors behind the leader
    ignored_gap = 0.0  # behind the leader that makes a plan no less plausible
    size_step, most_sizes = 1.5, 8  # ratio of bet sizes; the largest is a gap's noise after a first batch
    size_tilt = 0.5  # the r-th size has a share in proportion to r^-tilt

    def __init__(self, plans: Any, delta: float, epsilon: float, **settings: Any) -> None:
        super().__init__(plans, delta, epsilon, **settings)
        self.next_stake = 0.0
        self.smallest = epsilon  # bet size
        self.sizes = np.zeros(0)  # chosen with the first stake, and kept

    def _pairs(self) -> tuple[IntArray, Contrasts]:
        """Return the rows and contrasts of all pairs of two plans."""
        n = self.n_plans
        ahead, behind = np.divmod(np.arange(n * n), n)
        rows = np.flatnonzero(ahead != behind)
        return rows, self.contrasts(ahead[rows], behind[rows])

    def choose(self, estimates: Estimates) -> None:
        """Let the plan lead that looks best, among those proved to be within epsilon if there are any."""
        value = self.values(estimates)
        proved = self.within_epsilon()
        self.leader = proved[int(np.argmax(value[proved]))] if proved else int(np.argmax(value))

    def terms(self, estimates: Estimates, batch: PlannedBatch) -> dict[str, Any]:
        """Stake against every plan j, in parts on the other plans i by how plausible each is as an answer.

        All pairs bet in every batch, in sizes that the first stake names.
        """
        if not batch.has_bets or estimates.n_measured < self.next_stake:
            return {}
        weight = np.ones(self.n_plans)
        if batch.targets is not None:
            contrasts = self.from_leader()
            error, behind = np.sqrt(estimates.gap_variance(contrasts)), estimates.gap(contrasts)
            errors = divided(behind - self.ignored_gap, error)
            weight = np.maximum(np.exp(-0.5 * self.plausible * np.maximum(errors, 0.0) ** 2), 1e-12)
        if len(self.sizes):
            return {"stake": self.stake_share, "weights": to_steps(weight)}
        sizes = to_steps(self._first_sizes(estimates))
        return {"stake": self.first_stake, "weights": to_steps(weight), "sizes": sizes}

    def _first_sizes(self, estimates: Estimates) -> FloatArray:
        """Return bet sizes from the smallest to the noise of a gap after a first batch."""
        _, contrasts = self._pairs()
        octaves = max(math.log(float(estimates.unit(contrasts).max()) / self.smallest), 0.0)
        n_sizes = min(self.most_sizes, 1 + int(octaves / math.log(self.size_step)))
        step = self.size_step if n_sizes < self.most_sizes else math.exp(octaves / (self.most_sizes - 1))
        return np.asarray(self.smallest * step ** np.arange(n_sizes))

    def checks(self, decision: Decision) -> Mapping[str, Check]:
        """Return that there may be a stake with its parts; the first one, which has sizes, must be."""
        is_first = not len(self.sizes)
        if decision.is_final or not (is_first or "stake" in decision.more):
            return {}
        checks: dict[str, Check] = {"stake": is_share, "weights": partial(are_steps, n=self.n_plans)}
        if is_first:
            checks["sizes"] = self._are_sizes
        return checks

    def _are_sizes(self, recorded: Any) -> bool:
        is_list = isinstance(recorded, list) and 0 < len(recorded) <= self.most_sizes
        return is_list and are_steps(recorded, len(recorded))

    def follow(self, decision: Decision, estimates: Estimates) -> None:
        """Take on the leader of this decision, and stake against every plan j."""
        self.leader, recorded = decision.leader, decision.more
        if "sizes" in recorded:
            self.sizes = from_steps(recorded["sizes"])
        if "stake" not in recorded:
            return
        account = self.wealth.account(COMMON, self.n_plans**2, len(self.sizes))
        weight = from_steps(recorded["weights"])
        # sums over i != j by prefix and suffix: no subtraction, so that rounding hands out no more than
        # the stake
        before = np.concatenate([[0.0], np.cumsum(weight)[:-1]])
        after = np.concatenate([np.cumsum(weight[::-1])[::-1][1:], [0.0]])
        part = np.log(weight)[:, None] - np.log(before + after)[None, :]
        amount = self.wealth.withdraw(recorded["stake"])
        tilt = np.arange(1, len(self.sizes) + 1) ** -self.size_tilt
        rows, _ = self._pairs()
        stakes = amount + part.ravel()[rows, None] + np.log(tilt / tilt.sum())
        account.components[rows] = np.logaddexp(account.components[rows], stakes)
        self.next_stake = max(1.0, RESTAKE * estimates.n_measured)

    def bets(self, decision: Decision, estimates: Estimates) -> list[Bet]:
        """Bet on all pairs."""
        if decision.is_final:
            return self.test(decision.rivals)
        rows, contrasts = self._pairs()
        return [Bet(COMMON, rows, contrasts, self.epsilon, np.tile(self.sizes, (len(rows), 1)))]

    def _by_pair(self, name: str) -> FloatArray:
        """Return wealth or peak by pair, (n, n); 0 before the first stake."""
        account, n = self.wealth.accounts.get(COMMON), self.n_plans
        return np.zeros((n, n)) if account is None else getattr(account, name).reshape(n, n)

    def evidence(self, leader: Any) -> FloatArray:
        """Return the largest log wealth so far against each plan, as a rival of this leader."""
        return self.certain(self._by_pair("peak")[leader])

    def log_wealth(self, leader: Any) -> FloatArray:
        """Return the log wealth against each plan, as a rival of this leader."""
        return self._by_pair("current")[leader]

    def tested(self, rivals: IntArray) -> tuple[str | int, IntArray]:
        """Return the rows (leader, rival)."""
        return COMMON, self.leader * self.n_plans + rivals

    def account(self, key: str | int) -> Account:
        """Return an account; that of all pairs is empty if a final batch comes before the first stake."""
        if key == COMMON:
            return self.wealth.account(key, self.n_plans**2, max(len(self.sizes), 1))
        return super().account(key)

    def in_evidence(self) -> FloatArray:
        """Return, for each plan, the least evidence against any of its rivals."""
        peak = self.certain(self._by_pair("peak"))
        np.fill_diagonal(peak, np.inf)
        return np.asarray(peak.min(axis=1))

    def within_epsilon(self) -> list[int]:
        """Return the plans all of whose rivals are ruled out."""
        return np.flatnonzero(self.in_evidence() >= self.wealth.threshold).tolist()

    def grow(self, parts: PlanParts, readings: Readings, n_probes: int) -> None:
        """Continue with new plans, whose pairs begin with nothing staked: their wealth is the cash.

        Cash counts in the wealth of every pair. So a new plan has no more wealth than any old one, and gives
        no new chance to be wrong. The next decision stakes at once, so that new pairs need not wait.
        """
        n_old = self.n_plans
        self.bind(readings, parts)
        n, old_account = self.n_plans, self.wealth.accounts.get(COMMON)
        self.next_stake = 0.0
        if old_account is None:
            return
        old = (np.arange(n_old)[:, None] * n + np.arange(n_old)).ravel()  # new rows of the old pairs
        grown = self.wealth.accounts[COMMON] = Account.empty(n * n, len(self.sizes))
        grown.current[:] = self.wealth.log_cash
        for name in ("components", "current", "peak"):
            getattr(grown, name)[old] = getattr(old_account, name)
