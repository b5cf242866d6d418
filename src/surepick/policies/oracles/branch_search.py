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
        self._plain = self._common = wealth.common(account, log_cash)

    # single plans

    def log_wealth(self) -> FloatArray:
        """Return the log evidence against each rival; for a proxy what its neighbours have, no more."""
        account = self._account
        found = self._wealth.log_wealth(account, self._plain, account.rivals, account.components)
        if account.is_proxy.any():
            shared = log_sum_exp(self._plain.at(account.rivals)) - FLAT
            found = np.where(account.is_proxy, shared, found)
        return found

    def update_rivals(self) -> None:
        """Forget the rivals that are ruled out by now, those outside the branch, and all proxies."""
        account = self._account
        if not len(account.rivals):
            return
        wealth = self._wealth.log_wealth(account, self._plain, account.rivals, account.components)
        is_out = wealth >= self._threshold
        account.rule_out(account.rivals[is_out])
        leads = (account.rivals == self._leader).all(axis=1)
        account.keep_rivals(~is_out & ~account.is_proxy & ~leads & account.branch.holds(account.rivals))

    def rules_out(self, plan: FloatArray) -> bool:
        """Return whether this plan is ruled out; if not, it becomes a rival."""
        account, key = self._account, plan.tobytes()
        if key in account.out_keys:
            return True
        if key in account.rival_keys:
            return False
        if self._wealth.is_worse(plan, self._leader):
            account.rule_out(plan[None])
            return True
        components = self._wealth.components(account, plan)
        if self._wealth.log_wealth(account, self._plain, plan[None], components[None])[0] >= self._threshold:
            account.rule_out(plan[None])
            return True
        account.add_rival(plan, components, is_proxy=False)
        return False

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
            parts = account.branch.apart(arm, float(leader[arm]), self._plans.step)
            if all(self.is_out_by_any(part, CALLS_SHARE * calls) for part in parts):
                account.pin(arm, float(leader[arm]))
            calls = max(0.0, calls - (self._plans.n_calls - before - 1))

    def _commons(self) -> list[CommonWealth]:
        """Return the shared wealth; after a final batch with several sizes of its test."""
        account, wealth = self._account, self._wealth
        if account.final is None:
            return [self._plain]
        sizes = wealth.test_sizes(account.final, account.rivals)
        typical = float(np.median(sizes[sizes > 0])) if (sizes > 0).any() else 0.0
        if not typical:
            return [self._plain]
        return [wealth.common(account, self._log_cash, typical * factor) for factor in _TEST_SIZES]

    def is_out_by_any(self, branch: Branch, calls: float) -> bool:
        """Return whether all plans of the branch are ruled out, by any size of a final test."""
        commons = self._commons()
        for common in commons:
            self._common = common
            if self.is_out(branch, calls / len(commons)):
                return True
        return False

    def is_out(self, branch: Branch, calls: float = CALLS_A_BATCH) -> bool:
        """Return whether all plans of the branch are ruled out; if not, one that is not becomes a rival.

        Branch and bound: a branch that the bound does not decide is split at its worst plan. After `calls`
        oracle calls the search gives up, and the first such plan becomes a proxy, a rival that stands for the
        undecided plans.
        """
        branches, first, last_call = [branch], None, self._plans.n_calls + calls
        while branches:
            current = branches.pop()
            worst = self._worst(current)
            if worst is None:
                continue
            if worst.tobytes() in self._account.rival_keys:
                return False
            first = worst if first is None else first
            if self._plans.n_calls > last_call:
                components = self._wealth.components(self._account, first)
                self._account.add_rival(first, components, is_proxy=True)
                return False
            branches.extend(current.without(worst, self._plans.step, one_size=self._one_size))
        return True

    def _worst(self, branch: Branch) -> FloatArray | None:
        """Look for weights p whose bound rules out the whole branch; return None if it does.

        One oracle call finds the plan with the least bound under p. If that plan is not ruled out by itself
        it becomes a rival, and is returned. Else the next p is the softmax of the common bets at the plan
        with the least wealth of those seen, which is returned where no p is left to try: to split there.
        """
        common, account = self._common, self._account
        tilt = np.append(account.tilt, np.zeros(len(common.constant) - len(account.tilt)))
        seen, least, worst = set[bytes](), math.inf, None
        for _ in range(MOST_STEPS):
            bound, plan = self._lower(tilt, branch)
            if plan is None:
                return None
            if bound >= self._threshold:
                account.tilt = tilt
                return None
            if plan.tobytes() in seen:
                break
            if not self.rules_out(plan):
                return plan
            seen.add(plan.tobytes())
            logs = common.on(branch, plan)
            if (own := float(log_sum_exp(logs))) < least:
                least, worst, tilt = own, plan, np.exp(logs - own)
            if least < self._threshold:
                break  # one plan alone keeps every bound of this kind below the threshold
        return worst

    def _lower(self, tilt: FloatArray, branch: Branch) -> tuple[float, FloatArray | None]:
        """Return a bound of the log wealth of all plans of the branch, infinite if it is empty, and a plan.

        The plan is where the bound is least.
        """
        constant, slope, rounding = self._common.below(tilt, branch)
        plan = self._plans.best(-slope, branch)
        if plan is None:
            return math.inf, None
        bound = constant + float(slope @ plan) - rounding - self._plans.slack(slope, branch) - FLAT
        return bound, plan

    def lower_bound(self, branch: Branch) -> float:
        """Return a lower bound of the log evidence against every plan of the branch; it changes nothing."""
        best = self._log_cash - FLAT
        for common in self._commons():
            self._common = common
            tilt = np.append(
                self._account.tilt, np.zeros(len(self._plain.constant) - len(self._account.tilt))
            )
            best = max(best, self._lower(tilt, branch)[0])
        return best

    def least_evidence(self) -> float:
        """Return a lower bound of the log evidence against every plan of the branch but the leader."""
        parts = self._account.branch.without(self._leader, self._plans.step, one_size=self._one_size)
        return min((self.lower_bound(part) for part in parts), default=math.inf)
