"""Ruling out all plans of a branch at once, or finding one that is not ruled out.

For any weights p on cash and rows, log of the wealth >= H(p) + sum_r p_r l_r (Jensen), and on a branch the
right side is at least an affine function of the plan, whose minimum one oracle call finds. `Account.check`
looks for the p that makes it largest (Frank-Wolfe, over the plans that come back). Where no p will do and the
plans that come back are all ruled out one by one, it splits the branch without the worst of them (Lawler) and
looks at the parts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from surepick.core.arrays import BoolArray, FloatArray
from surepick.core.branches import Branch
from surepick.core.plan_sets import PlanSet
from surepick.policies.betting.wealth import FLAT, Wealth, log_sum

MOST_STEPS = 15  # oracle calls on one branch
CALLS_A_BLOCK = 800  # oracle calls that the checks of a block may use, beyond one for each arm
CALLS_SHARE = 0.34  # of those left that one check may use before it gives up: the arm it is about stays free


@dataclass(eq=False)
class OpenRivals:
    """Plans that are not ruled out, with their purses; `stubborn` ones are, but their neighbours are not."""

    plans: FloatArray  # (n, n_arms)
    purses: FloatArray  # (n, n_purses)
    stubborn: BoolArray  # (n,)

    keys: set[bytes] = field(init=False)  # of the plans

    def __post_init__(self) -> None:
        self.keys = {plan.tobytes() for plan in self.plans}

    def keep(self, mask: BoolArray) -> None:
        """Forget the others."""
        self.plans, self.purses, self.stubborn = self.plans[mask], self.purses[mask], self.stubborn[mask]
        self.keys = {plan.tobytes() for plan in self.plans}


@dataclass(eq=False)
class Account:
    """A wealth and what it has ruled out so far: every plan outside `branch`, and the plans of `out`.

    Changed by the run that owns it. `cash` is the log of the money not staked yet, which belongs to every
    plan's wealth; `target` is log(1/delta).
    """

    plans: PlanSet
    wealth: Wealth
    branch: Branch
    target: float
    one_size: bool
    cash: float = 0.0
    out: set[bytes] = field(default_factory=set)
    rivals: OpenRivals = field(init=False)
    _tilt: FloatArray = field(init=False)  # the last p that ruled out a branch
    _start: tuple[FloatArray | None, float, FloatArray] = field(init=False)  # the first plan of a bound, ...

    def __post_init__(self) -> None:
        n_arms = len(self.branch.lower)
        n_purses = len(self.wealth.purses(self.branch.lower))
        self.rivals = OpenRivals(np.zeros((0, n_arms)), np.zeros((0, n_purses)), np.zeros(0, dtype=bool))
        self._tilt = np.ones(1)
        self._start = None, 0.0, np.zeros(n_arms)

    def receive(self, log_stake: float, *, rows_share: float, kinds: FloatArray, ladder_share: float) -> None:
        """Put a stake on the bets against every plan; see `Wealth.receive`."""
        self.wealth.receive(log_stake, rows_share=rows_share, kinds=kinds, ladder_share=ladder_share)
        purses = [self.wealth.purses(plan) for plan in self.rivals.plans]
        self.rivals.purses = np.array(purses).reshape(len(purses), -1)

    def state(self) -> dict[str, Any]:
        """All that a new account needs to become this one."""
        rivals = self.rivals
        out = np.frombuffer(b"".join(sorted(self.out))).reshape(len(self.out), len(self.branch.lower))
        return {
            "wealth": self.wealth.state(),
            "branch": [self.branch.lower, self.branch.upper],
            "cash": self.cash,
            "out": out,
            "rivals": [rivals.plans, rivals.purses, rivals.stubborn],
            "tilt": self._tilt,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Become the account whose state this is."""
        self.wealth.restore(state["wealth"])
        self.branch, self.cash = Branch(*state["branch"]), state["cash"]
        self.out = {plan.tobytes() for plan in state["out"]}
        self.rivals, self._tilt = OpenRivals(*state["rivals"]), state["tilt"]

    def log_wealth(self, plans: FloatArray, purses: FloatArray) -> FloatArray:
        """Log wealth against each of these plans, from below."""
        return log_sum(np.hstack([self._shared(plans), purses])) - FLAT

    def shared_wealth(self, plans: FloatArray) -> FloatArray:
        """The part of it that is bet on all plans alike."""
        return log_sum(self._shared(plans)) - FLAT

    def _shared(self, plans: FloatArray) -> FloatArray:
        return np.hstack([np.full((len(plans), 1), self.cash), self.wealth.rows(plans)])

    def update_rivals(self, lead: FloatArray) -> None:
        """Forget the rivals that are ruled out by now, and those kept for their neighbours only."""
        rivals = self.rivals
        if not len(rivals.plans):
            return
        ruled_out = self.log_wealth(rivals.plans, rivals.purses) >= self.target
        self.out.update(plan.tobytes() for plan in rivals.plans[ruled_out])
        leads = (rivals.plans == lead).all(axis=1)
        rivals.keep(~ruled_out & ~rivals.stubborn & ~leads & self.branch.holds(rivals.plans))

    def rule_out_or_add(self, plan: FloatArray) -> bool:
        """Rule this plan out if its wealth allows it, or make it a rival; whether it is out."""
        key = plan.tobytes()
        if key in self.out:
            return True
        if key in self.rivals.keys:
            return False
        purses = self.wealth.purses(plan)
        if self.log_wealth(plan[None], purses[None])[0] >= self.target:
            self.out.add(key)
            return True
        self._append(plan, purses, stubborn=False)
        return False

    def _append(self, plan: FloatArray, purses: FloatArray, *, stubborn: bool) -> None:
        rivals = self.rivals
        rivals.plans = np.vstack([rivals.plans, plan])
        rivals.purses = np.vstack([rivals.purses, purses])
        rivals.stubborn = np.append(rivals.stubborn, stubborn)
        rivals.keys.add(plan.tobytes())

    def check(self, branch: Branch, calls: float = CALLS_A_BLOCK) -> bool:
        """Whether all plans of the branch are ruled out; if not, a plan in the way becomes a rival.

        It gives up after so many oracle calls, and the worst plan it saw becomes a stubborn rival.
        """
        branches, worst, most = [branch], None, self.plans.n_calls + calls
        while branches:
            here = branches.pop()
            done, plan = self._bound(here)
            if done:
                continue
            if plan is None:
                return False
            worst = plan if worst is None else worst
            if self.plans.n_calls > most:
                self._append(worst, self.wealth.purses(worst), stubborn=True)
                return False
            easy = self._easy(here, plan)
            parts = here.without(plan, self.plans.step, one_size=self.one_size, left_out=easy)
            branches.extend(parts)
        return True

    def _easy(self, branch: Branch, plan: FloatArray) -> BoolArray | None:
        """The arms on which differing from the plan costs so much that the same p rules out who does.

        The plan is the one with the least bound, and a part that differs from it on an arm is within the
        plans of the branch that do.
        """
        first, bound, weights = self._start
        if plan is not first:
            return None
        losses = self.plans.losses(weights, branch, plan)
        if losses is None:
            return None
        return np.asarray(bound + losses - self.plans.slack(weights, branch) >= self.target)

    def _bound(self, branch: Branch) -> tuple[bool, FloatArray | None]:
        """(True, None): the branch is ruled out; (False, None): a rival was found; (False, plan): split."""
        from surepick.policies.betting.row_sums import least_log_sum

        n = self.wealth.n_rows + 1
        tilt = np.append(self._tilt, np.zeros(n - len(self._tilt))) if len(self._tilt) < n else self._tilt
        points = np.zeros((0, n))
        share = np.zeros(0)
        seen: set[bytes] = set()
        least, worst = math.inf, None
        for step in range(MOST_STEPS):
            bound, plan, weights = self._lower(tilt, branch)
            if step == 0:
                self._start = plan, bound, weights
            if plan is None or bound >= self.target:
                self._tilt = tilt if plan is not None else self._tilt
                return True, None
            if plan.tobytes() in seen:
                break
            if not self.rule_out_or_add(plan):
                return False, None
            seen.add(plan.tobytes())
            point = np.append(self.cash, self.wealth.rows_on(branch, plan))
            if (own := float(log_sum(point))) < least:
                least, worst = own, plan
            points = np.vstack([points, point])
            share = np.append(share, 0.0 if len(share) else 1.0)
            tilt = np.empty(n)
            if least_log_sum(points, share, np.empty(n), tilt) < self.target:
                break  # whatever p is, these plans together keep the bound below the target
        return False, worst

    def _lower(self, tilt: FloatArray, branch: Branch) -> tuple[float, FloatArray | None, FloatArray]:
        """H(p) + min over the branch of sum_r p_r l_r, less rounding; where; and the weights that it is for.

        It is infinite if the branch is empty.
        """
        constant, slope, rounding = self.wealth.affine(tilt[1:], branch)
        weights = -slope
        plan = self.plans.best(weights, branch)
        if plan is None:
            return math.inf, None, weights
        used = tilt[tilt > 0]
        constant += float(tilt[0]) * self.cash - float(used @ np.log(used))
        bound = constant + float(slope @ plan) - rounding - self.plans.slack(slope, branch) - FLAT
        return bound, plan, weights

    def lower_bound(self, branch: Branch) -> float:
        """A lower bound of the log wealth against every plan of the branch, by one oracle call."""
        n = self.wealth.n_rows + 1
        tilt = np.append(self._tilt, np.zeros(n - len(self._tilt)))
        return max(self._lower(tilt, branch)[0], self.cash - FLAT)
