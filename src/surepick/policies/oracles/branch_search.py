"""Ruling out all plans of a branch at once, or finding one that is not ruled out.

For any weights p on cash and common bets, log wealth >= H(p) + sum_r p_r l_r (Jensen). On a branch the right
side is at least an affine function of the plan, whose least value one call of the oracle finds.
`BranchSearch.is_out` looks for the p that makes it largest. Where no p will do and the plans that come back
are all ruled out one by one, it splits the branch without the worst of them (Lawler) and looks at the parts.

Which branches are looked at, how p is found and when a search gives up costs measurements, never correctness.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from surepick.core.arrays import FloatArray
from surepick.core.plan_sets import Branch, PlanSet
from surepick.inference.factors import log_sum_exp
from surepick.policies.oracles.plan_wealth import FLAT, CommonWealth, PlanAccount, PlanWealth

MOST_STEPS = 15  # oracle calls on one branch
CALLS_A_BATCH = 800  # oracle calls that the searches after a batch may use, beyond one for each arm
CALLS_SHARE = 0.34  # of those left that one search may use before it gives up: the arm it is about stays free
_HULL_STEPS, _LINE_STEPS, _HULL_TOLERANCE = (
    60,
    6,
    1e-3,
)  # nats: a hull is searched until it is this well known
_TEST_SIZES = 0.5 ** np.arange(-1.0, 2.1, 0.5)  # of the size that suits the worst rival of a final test


class Bound(NamedTuple):
    """What bounding a branch found: it is ruled out, it has a plan that is not, or it must be split."""

    is_out: bool  # every plan of the branch is ruled out
    worst: FloatArray | None = None  # the plan to split at; None where a plan is not ruled out


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
        branches, worst, last_call = [branch], None, self._plans.n_calls + calls
        while branches:
            current = branches.pop()
            bound = self._bound(current)
            if bound.is_out:
                continue
            if bound.worst is None:
                return False  # `_bound` found a plan that is not ruled out, and made it a rival
            worst = bound.worst if worst is None else worst
            if self._plans.n_calls > last_call:
                components = self._wealth.components(self._account, worst)
                self._account.add_rival(worst, components, is_proxy=True)
                return False
            branches.extend(current.without(bound.worst, self._plans.step, one_size=self._one_size))
        return True

    def _bound(self, branch: Branch) -> Bound:
        """Look for weights p whose bound rules out the whole branch.

        One oracle call finds the plan with the least bound under p, which is checked by itself. The next p is
        the best one for all plans seen: the softmax at the least log-sum over their convex hull. If that is
        below the threshold, no p rules them all out at once.
        """
        common, account = self._common, self._account
        tilt = np.append(account.tilt, np.zeros(len(common.constant) - len(account.tilt)))
        points, share = np.zeros((0, len(tilt))), np.zeros(0)
        seen, least, worst = set[bytes](), math.inf, None
        for _ in range(MOST_STEPS):
            bound, plan = self._lower(tilt, branch)
            if plan is None:
                return Bound(is_out=True)
            if bound >= self._threshold:
                account.tilt = tilt
                return Bound(is_out=True)
            if plan.tobytes() in seen:
                break
            if not self.rules_out(plan):
                return Bound(is_out=False)
            seen.add(plan.tobytes())
            point = common.on(branch, plan)
            if (own := float(log_sum_exp(point))) < least:
                least, worst = own, plan
            points, share = np.vstack([points, point]), np.append(share, 0.0 if len(share) else 1.0)
            value, tilt, share = least_log_sum(points, share, self._threshold)
            if value < self._threshold:
                break
        return Bound(is_out=False, worst=worst)

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


def least_log_sum(
    points: FloatArray, share: FloatArray, enough: float
) -> tuple[float, FloatArray, FloatArray]:
    """Return the least log sum_r exp(z_r) over convex combinations z of the points (rows), nearly.

    Pairwise Frank-Wolfe from the combination `share`; a value below `enough` ends it. Also returned: the
    softmax of z, and the combination.
    """
    share, total = share.copy(), share @ points
    for step in range(_HULL_STEPS):
        top = float(total.max())
        terms = np.exp(total - top)
        mass = float(terms.sum())
        value, tilt = top + math.log(mass), terms / mass
        slopes = points @ tilt
        to, away = int(np.argmin(slopes)), int(np.argmax(np.where(share > 0, slopes, -np.inf)))
        if value < enough or slopes[away] - slopes[to] < _HULL_TOLERANCE or step == _HULL_STEPS - 1:
            break
        direction = points[to] - points[away]
        move = _line_search(total, direction, float(share[away]), float(slopes[to] - slopes[away]), tilt)
        total = total + move * direction
        share[to] += move
        share[away] = max(0.0, share[away] - move)
    return value, tilt, share


def _line_search(
    total: FloatArray, direction: FloatArray, most: float, slope: float, tilt: FloatArray
) -> float:
    """Return the step in [0, most] with nearly the least log-sum-exp, by Newton's method within a bracket.

    `slope`, below 0, and `tilt` are the derivative and the softmax at 0.
    """
    low, high, at = 0.0, most, 0.0
    for _ in range(_LINE_STEPS):
        bend = float(tilt @ (direction * direction)) - slope * slope
        step = at - slope / bend if bend > 0 else high
        at = step if low < step < high else (high if high == most and step >= high else 0.5 * (low + high))
        shifted = total + at * direction
        tilt = np.exp(shifted - shifted.max())
        tilt = tilt / tilt.sum()
        slope = float(tilt @ direction)
        if slope < 0:
            low = at
            if at == most:
                break
        else:
            high = at
        if high - low < 1e-3 * most or abs(slope) < 1e-4:
            break
    return at
