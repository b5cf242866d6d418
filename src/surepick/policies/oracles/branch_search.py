"""Ruling out all plans of a branch at once, or finding one that is not ruled out.

For any weights p on cash and common bets, log wealth >= H(p) + sum_r p_r l_r (Jensen). On a branch the right
side is at least an affine function of the plan, whose least value one call of the oracle finds.
`BranchSearch.is_out` looks for a p that makes it large. Where none will do and the plans that come back are
all ruled out one by one, it splits the branch without the worst of them (Lawler) and looks at the parts.

Which branches are looked at, how p is found and when a search gives up costs measurements, never correctness.
"""

from __future__ import annotations

import math

import numpy as np

from surepick.core.arrays import FloatArray
from surepick.core.plan_sets import Branch, PlanSet
from surepick.inference.factors import log_sum_exp
from surepick.policies.oracles.plan_wealth import FLAT, CommonWealth, PlanAccount, PlanWealth

MOST_STEPS = 15  # oracle calls on one branch
CALLS_A_BATCH = 800  # oracle calls that the searches after a batch may use, beyond one for each arm
CALLS_SHARE = 0.34  # of those left that one search may use before it gives up: the arm it is about stays free
_TEST_SIZES = 0.5 ** np.arange(-1.0, 2.1, 0.5)  # of the size that suits the worst rival of a final test


class BranchSearch:
    """Searches on one account as it is now; the account changes where plans are ruled out or found."""

    def __init__(
        self,
        plans: PlanSet,
        wealth: PlanWealth,
        account: PlanAccount,
        leader: FloatArray,
        log_cash: float,
        *,
        threshold: float,
        one_size: bool,
    ) -> None:
        """`one_size` says that the entries of every plan have the same sum."""
        self._plans, self._wealth, self._account = plans, wealth, account
        self._leader, self._log_cash = leader, log_cash
        self._threshold, self._one_size = threshold, one_size
        self._common = wealth.common(account, log_cash)

    # single plans

    def log_wealth(self) -> FloatArray:
        """Return the log evidence against each rival; for a proxy what its neighbours have, no more."""
        account = self._account
        found = self._wealth.log_wealth(account, self._common, account.rivals, account.components)
        if account.is_proxy.any():
            shared = log_sum_exp(self._common.at(account.rivals)) - FLAT
            found = np.where(account.is_proxy, shared, found)
        return found

    def update_rivals(self) -> None:
        """Forget the rivals that are ruled out by now, those outside the branch, and all proxies."""
        account = self._account
        if not len(account.rivals):
            return
        wealth = self._wealth.log_wealth(account, self._common, account.rivals, account.components)
        is_out = wealth >= self._threshold
        account.rule_out(account.rivals[is_out])
        leads = (account.rivals == self._leader).all(axis=1)
        account.keep_rivals(~is_out & ~account.is_proxy & ~leads & account.branch.holds(account.rivals))

    def rules_out(self, plan: FloatArray) -> bool:
        """Return whether this plan is ruled out; if not, it becomes a rival."""
        account, wealth, key = self._account, self._wealth, plan.tobytes()
        if key in account.out_keys:
            return True
        if key in account.rival_keys:
            return False
        if not wealth.is_worse(plan, self._leader):
            components = wealth.components(account, plan)
            evidence = wealth.log_wealth(account, self._common, plan[None], components[None])
            if evidence[0] < self._threshold:
                account.add_rival(plan, components, is_proxy=False)
                return False
        account.rule_out(plan[None])
        return True

    # branches

    def fix_arms(self) -> None:
        """Fix every arm on which all plans that are left agree with the leader.

        Afterwards some rival differs from the leader on every arm that is free.
        """
        account, leader, calls = self._account, self._leader, float(CALLS_A_BATCH)
        self.update_rivals()
        for arm in account.branch.free.tolist():
            if (account.rivals[:, arm] != leader[arm]).any():
                continue
            before = self._plans.n_calls
            if self.agrees(arm, CALLS_SHARE * calls):
                account.pin(arm, float(leader[arm]))
            calls = max(0.0, calls - (self._plans.n_calls - before - 1))

    def agrees(self, arm: int, calls: float) -> bool:
        """Return whether all plans of the branch that differ from the leader on this arm are ruled out."""
        parts = self._account.branch.apart(arm, float(self._leader[arm]), self._plans.step)
        return all(self.is_out(part, calls) for part in parts)

    def is_out(self, branch: Branch, calls: float = CALLS_A_BATCH) -> bool:
        """Return whether all plans of the branch are ruled out; if not, one that is not becomes a rival."""
        commons = self._commons()
        return any(self._is_out_by(common, branch, calls / len(commons)) for common in commons)

    def _commons(self) -> list[CommonWealth]:
        """Return the shared wealth; after a final batch with several sizes of its test."""
        account, wealth = self._account, self._wealth
        if account.final is None:
            return [self._common]
        sizes = wealth.test_sizes(account.final, account.rivals)
        sizes = sizes[sizes > 0]
        if not len(sizes):
            return [self._common]
        typical = float(np.median(sizes))
        return [wealth.common(account, self._log_cash, typical * factor) for factor in _TEST_SIZES]

    def _is_out_by(self, common: CommonWealth, branch: Branch, calls: float) -> bool:
        """Return whether this shared wealth rules out all plans of the branch.

        Branch and bound: a branch that the bound does not decide is split at its worst plan. After `calls`
        oracle calls the search gives up, and the first such plan becomes a proxy, a rival that stands for the
        undecided plans.
        """
        account, last_call = self._account, self._plans.n_calls + calls
        branches, first = [branch], None
        while branches:
            current = branches.pop()
            worst = self._worst(common, current)
            if worst is None:
                continue
            if worst.tobytes() in account.rival_keys:
                return False
            first = worst if first is None else first
            if self._plans.n_calls > last_call:
                account.add_rival(first, self._wealth.components(account, first), is_proxy=True)
                return False
            branches.extend(current.without(worst, self._plans.step, one_size=self._one_size))
        return True

    def _worst(self, common: CommonWealth, branch: Branch) -> FloatArray | None:
        """Look for weights p whose bound rules out the whole branch; return None if it does.

        One oracle call finds the plan with the least bound under p. If that plan is not ruled out by itself
        it becomes a rival, and is returned. Else the next p is the softmax of the common bets at the plan
        with the least wealth of those seen, which is returned where no p is left to try: to split there.
        """
        p, seen, least, worst = self._first_weights(), set[bytes](), math.inf, None
        for _ in range(MOST_STEPS):
            bound, plan = self._lower(common, p, branch)
            if plan is None:
                return None
            if bound >= self._threshold:
                self._account.jensen = p
                return None
            if plan.tobytes() in seen:
                break
            if not self.rules_out(plan):
                return plan
            seen.add(plan.tobytes())
            logs = common.on(branch, plan)
            wealth = float(log_sum_exp(logs))
            if wealth < least:
                least, worst, p = wealth, plan, np.exp(logs - wealth)
            if least < self._threshold:
                break  # one plan alone keeps every bound of this kind below the threshold
        return worst

    def _first_weights(self) -> FloatArray:
        """Return the weights p that have ruled out a branch last; bets staked since then have none."""
        kept = self._account.jensen
        return np.append(kept, np.zeros(len(self._common.constant) - len(kept)))

    def _lower(self, common: CommonWealth, p: FloatArray, branch: Branch) -> tuple[float, FloatArray | None]:
        """Return a bound of the log wealth of all plans of the branch, infinite if it is empty, and a plan.

        The plan is where the bound is least.
        """
        constant, slope, rounding = common.below(p, branch, self._wealth.reach)
        plan = self._plans.best(-slope, branch)
        if plan is None:
            return math.inf, None
        bound = constant + float(slope @ plan) - rounding - self._plans.slack(slope, branch) - FLAT
        return bound, plan

    def lower_bound(self, branch: Branch) -> float:
        """Return a lower bound of the log evidence against every plan of the branch; it changes nothing."""
        p = self._first_weights()
        bounds = [self._lower(common, p, branch)[0] for common in self._commons()]
        return max(self._log_cash - FLAT, *bounds)

    def least_evidence(self) -> float:
        """Return a lower bound of the log evidence against every plan of the branch but the leader."""
        parts = self._account.branch.without(self._leader, self._plans.step, one_size=self._one_size)
        return min((self.lower_bound(part) for part in parts), default=math.inf)
