"""The best plan of a list: one account for all leaders.

Row j bets against "plan j is best". Under that hypothesis leader - j has a gap of at most 0, whichever plan
leads, so that every leader may bet on the same account and a change of leader costs nothing (the selector is
the best plan).
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from surepick.core.arrays import FloatArray, IntArray
from surepick.core.decision import Decision
from surepick.core.problem import PlanParts
from surepick.inference.wealth import COMMON, EMPTY, Account, Wealth
from surepick.policies.betting.question import (
    RESTAKE,
    Bet,
    Estimates,
    Question,
    Readings,
    Targets,
)

# None of these constants bears on the guarantee; they were chosen on other instances than those of the tests.
FIRST_STAKE, STAKE = 0.73, 0.3  # of the cash: the first time, and whenever measurements have grown enough
GRID = 2.0 * 0.5 ** (
    np.arange(15) / 2
)  # fixed bet sizes, in standard deviations of a gap after a first batch
GRID_SHARE, GRID_SHARE_PER_LOG, LEAST_GRID_SHARE = 0.7, 0.06, 0.2  # of the first stake; less with many plans
SELECTION_BIAS, SHRINKAGE = 0.3, 0.15  # standard errors below the estimate that mixtures are centred
_MOST_LEADERS = 64  # whose first lead is remembered; a forgotten one counts as new


class Best(Question):
    """Which plan is best?"""

    STATE: ClassVar[tuple[str, ...]] = (*Question.STATE, "led", "first_led_at")
    can_follow = True
    grid: FloatArray = GRID

    def __init__(self, plans: Any, delta: float, epsilon: float = 0.0, most_accounts: int = 2) -> None:
        super().__init__(plans, Wealth(-math.log(delta), most_accounts), epsilon)
        self.led = -1  # the leader of the last batch
        self.first_led_at: dict[int, IntArray] = {}  # counts when each plan led for the first time
        self.wealth.account(COMMON, self.n_plans, len(self.grid) + 1)

    @property
    def grid_share(self) -> float:
        """The part of a first stake that goes to the fixed sizes.

        It goes by the plans that there are when it is staked, so that a run that was restored after plans
        arrived stakes as the one that saw them arrive.
        """
        return max(LEAST_GRID_SHARE, GRID_SHARE - GRID_SHARE_PER_LOG * math.log(self.n_plans))

    @property
    def _common(self) -> Account:
        return self.wealth.accounts[COMMON]

    def choose(self, estimates: Estimates) -> None:
        """Let the plan lead that looks best, ruled out or not.

        The best plan may be ruled out by bad luck; unless it can lead, such a run would never end.
        """
        best = int(np.argmax(self.values(estimates)))
        if best != self.leader and not self._keeps_lead(best, estimates):
            self.leader = best

    def lead(self, decision: Decision, counts: IntArray) -> None:
        """Take on the leader of this decision, and remember when it first led."""
        self.leader = decision.leader
        if self.leader != self.led:
            self.led = self.leader
            self._remember_lead(self.leader, counts)
            self._has_changed()

    def _keeps_lead(self, best: int, estimates: Estimates) -> bool:
        """Return whether the leader stays although this plan looks better."""
        del best, estimates
        return False

    def _has_changed(self) -> None:
        """Do what a new leader of a batch needs."""

    def _remember_lead(self, leader: int, counts: IntArray) -> None:
        first = self.first_led_at.pop(leader, counts)
        if len(self.first_led_at) >= _MOST_LEADERS:
            del self.first_led_at[next(iter(self.first_led_at))]
        self.first_led_at[leader] = first

    def stake(self, estimates: Estimates, targets: Targets | None) -> None:
        """Stake for all plans alike; some cash is always left."""
        account = self._common
        if targets is None or estimates.n_measured < account.next_stake:
            return
        if account.next_stake == 0.0:
            amount = self.wealth.withdraw(FIRST_STAKE)
            account.stake(amount + math.log(self.grid_share / len(self.grid)), slice(0, -1))
            account.stake(amount + math.log1p(-self.grid_share), slice(-1, None))
        else:
            account.stake(self.wealth.withdraw(STAKE), slice(-1, None))
        account.next_stake = RESTAKE * estimates.n_measured

    def bets(self, estimates: Estimates, targets: Targets | None) -> list[Bet]:
        """Bet that the leader is better than each rival."""
        if targets is None:
            return []
        centre, variance = self._centre(estimates, targets), targets.gap_variance
        unit, rows = estimates.unit(targets.contrasts), targets.behind
        plans = targets.ahead, targets.behind
        bets = [Bet(COMMON, rows, *plans, 0.0, centre, variance, unit, self.grid)]
        if len(rows) == 1:
            bets.append(self._opposite_bet(targets, unit))
        return bets

    def _opposite_bet(self, targets: Targets, unit: FloatArray) -> Bet:
        """Return a bet against the leader: if it is not the best plan, the only rival left probably is."""
        zero = np.zeros(1)
        plans = targets.behind, targets.ahead
        return Bet(COMMON, targets.ahead, *plans, 0.0, zero, targets.gap_variance, unit, self.grid)

    def _centre(self, estimates: Estimates, targets: Targets) -> FloatArray:
        """Return the centres of the mixtures: estimated gaps, less a correction for selection bias.

        A leader was chosen because it looked good. That biases what was measured before it first led, and
        nothing after; the correction is in proportion to the older part of the estimate.
        """
        fresh = estimates.variance_since(self.first_led_at[self.leader], targets.contrasts)
        old_part = 1.0 - np.minimum(targets.gap_variance / fresh, 1.0)
        correction = SELECTION_BIAS * math.log(self.n_plans) * np.sqrt(old_part) + SHRINKAGE
        return np.asarray(targets.gap - correction * np.sqrt(targets.gap_variance))

    def count(self, bets: list[Bet]) -> None:
        """Update the common account."""
        for bet in bets:
            self.wealth.count(bet.rows, self._common)

    def evidence(self) -> FloatArray:
        """Return the largest log wealth so far against each plan, whichever leads."""
        return self.certain(self._common.peak)

    def log_wealth(self) -> FloatArray:
        """Return the log wealth against each plan."""
        return self._common.current

    def tested_account(self) -> str | int:
        """Return the common account."""
        return COMMON

    def grow(self, parts: PlanParts, readings: Readings, n_probes: int) -> None:
        """Let each new plan begin with the least wealth of all plans.

        Let M be the wealth of the best plan of the moment. It changes hands only when a better plan arrives,
        which then has no more than the old one: M stays a supermartingale from 1, whichever plans arrive and
        whenever. A newcomer with wealth 1 would be a new chance to be wrong.
        """
        n_old = self.n_plans
        self.bind(readings, parts)
        account, new = self._common, np.arange(n_old, self.n_plans)
        least = account.least_staked()
        account.append(len(new), least if least > EMPTY / 2 else EMPTY)
        self.wealth.count(new, account)
        self.first_led_at = {plan: _padded(counts, n_probes) for plan, counts in self.first_led_at.items()}


def _padded(counts: IntArray, n: int) -> IntArray:
    """Return the counts with zeros for new probes."""
    return np.append(counts, np.zeros(n - len(counts), dtype=np.int64))
