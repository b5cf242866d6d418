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
from surepick.core.problem import PlanParts
from surepick.core.run import Decision
from surepick.inference.contrasts import DiagonalReadings
from surepick.inference.steps import are_steps, from_steps, is_stake, mixture_of, mixture_steps, to_steps
from surepick.inference.wealth import COMMON, EMPTY, Account, Wealth
from surepick.policies.betting.question import (
    NO_LEADER,
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
FEW = 64  # with more plans of one arm each, who leads is found out by planning rounds
_CLOSE = 1.0  # standard errors behind the leader: rivals that a planning round looks at
_UNCLEAR, _ROUND = 0.1, 0.5  # of the unresolved rivals: uses that make a round worth its while, and the most
_MOST_LEADERS = 64  # whose first lead is remembered; a forgotten one counts as new


class Best(Question):
    """Which plan is best?"""

    STATE: ClassVar[tuple[str, ...]] = (*Question.STATE, "led", "first_led_at", "planned")
    searches = True  # whether planning rounds find out who leads many arms
    grid: FloatArray = GRID

    def __init__(self, plans: Any, delta: float, epsilon: float = 0.0, most_accounts: int = 2) -> None:
        super().__init__(plans, Wealth(-math.log(delta), most_accounts), epsilon)
        self.led = -1  # the leader of the last batch
        # counts when each plan led for the first time; of its own arm alone where plans have one
        self.first_led_at: dict[int, IntArray] = {}
        self.ignored_gap = 0.0  # by which a rival must look better before planning rounds look at it
        self.planned = 0  # measurements of planning rounds since the last bets
        self._probe_of: IntArray | None = None  # by plan, where many plans have one arm each, of their own
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

    def bind(self, readings: Readings, parts: PlanParts) -> None:
        """Take these plans; many with an arm each have planning rounds."""
        super().bind(readings, parts)
        had_own_arms, self._probe_of = self._probe_of is not None, None
        may_search = self.searches and self.n_plans > FEW
        if may_search and isinstance(readings, DiagonalReadings) and readings.is_single:
            arms, probe_of_arm = _arm_of_each(self.plans), np.zeros(self.plans.shape[1], dtype=np.int64)
            probe_of_arm[readings.information.arm] = np.arange(len(readings.costs))
            self._probe_of = None if arms is None else probe_of_arm[arms]
        if had_own_arms != (self._probe_of is not None):
            self.led, self.first_led_at = NO_LEADER, {}  # kept in another form from now on

    def _own_error(self, estimates: Estimates, plans: Any = slice(None)) -> FloatArray:
        """Return the standard error of the value of each of these plans, which have one arm each."""
        assert self._probe_of is not None
        assert isinstance(estimates.readings, DiagonalReadings)
        arm = estimates.readings.information.arm[self._probe_of[plans]]
        amounts = np.asarray(abs(self.plans[plans]).sum(axis=1)).ravel()
        return np.asarray(amounts * np.sqrt(estimates.arm_variance()[arm]))

    def choose(self, estimates: Estimates) -> None:
        """Let the plan lead that looks best, ruled out or not.

        The best plan may be ruled out by bad luck; unless it can lead, such a run would never end. Of many
        arms that were measured once the one that looks best mostly is not: there a plan must look good by a
        standard error.
        """
        values = self.values(estimates)
        best = int(np.argmax(values if self._probe_of is None else values - self._own_error(estimates)))
        if best != self.leader and not self._keeps_lead(best, estimates):
            self.leader = best

    def lead(self, decision: Decision, counts: IntArray) -> None:
        """Take on the leader of this decision, and remember when it first led."""
        self.leader, self.planned = decision.leader, 0
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

    def search(self, estimates: Estimates, targets: Targets) -> IntArray | None:
        """Return the uses of a planning round, which tells who should lead many arms; None if none is due.

        It measures the leader and the rivals within a standard error of it again, each at most as often as
        before. No bets depend on these measurements; they are past data for the next ones.
        """
        probe, n_open = self._probe_of, len(targets.behind)
        if probe is None or n_open <= FEW or self.planned >= n_open:
            return None
        enough = math.ceil(math.sqrt(n_open))
        errors = np.sqrt(targets.gap_variance)
        close = np.flatnonzero(targets.gap + self.ignored_gap < _CLOSE * errors)
        rivals = targets.behind[close]
        more = np.minimum(np.ceil(estimates.uses[probe[rivals]]), enough)
        if more.sum() <= _UNCLEAR * n_open and estimates.uses[probe[self.leader]] >= enough:
            return None
        promising = np.argsort(targets.gap[close] - self._own_error(estimates, rivals), kind="stable")
        promising = promising[np.cumsum(more[promising]) <= _ROUND * n_open]
        uses = np.zeros(len(estimates.uses), dtype=np.int64)
        uses[probe[rivals[promising]]] = more[promising]
        uses[probe[self.leader]] = enough
        return uses

    def _remember_lead(self, leader: int, counts: IntArray) -> None:
        if self._probe_of is not None:
            counts = counts[self._probe_of[leader]][None]
        first = self.first_led_at.pop(leader, counts)
        if len(self.first_led_at) >= _MOST_LEADERS:
            del self.first_led_at[next(iter(self.first_led_at))]
        self.first_led_at[leader] = first

    def wagers(self, estimates: Estimates, targets: Targets | None) -> dict[str, Any]:
        """Bet that the leader is better than each rival; stake for all plans alike, with some cash left."""
        if targets is None:
            return {}
        stake = next_stake(estimates, self._common, [FIRST_STAKE, round(self.grid_share, 2)])
        centre = self._centre(estimates, targets) + self.epsilon
        return stake | {"bets": bet_steps(estimates, targets, centre)}

    def place(self, decision: Decision, estimates: Estimates) -> list[Bet]:
        """Stake, and bet that the leader is better than each rival."""
        if "stake" in decision.more:
            stake_all(self.wealth, self._common, decision.more["stake"], estimates.n_measured)
        leader = np.full(len(decision.rivals), decision.leader)
        bet = self.bet(COMMON, decision.rivals, leader, decision.rivals, decision.more["bets"], estimates)
        assert bet.centre is not None
        bet.centre = bet.centre - self.epsilon  # recorded of the gap + epsilon
        return [bet, self._opposite_bet(bet)] if len(bet.rows) == 1 else [bet]

    def bet(
        self,
        account: str | int,
        rows: IntArray,
        ahead: IntArray,
        behind: IntArray,
        recorded: list[Any],
        estimates: Estimates,
    ) -> Bet:
        """Return a bet as it was recorded: a mixture on each row, and the fixed sizes."""
        if len(recorded) == 3:
            unit = from_steps(recorded[2])
        else:
            unit = estimates.unit(self.contrasts(ahead, behind))
        return Bet(account, rows, ahead, behind, 0.0, *mixture_of(recorded), unit, self.grid)

    def _opposite_bet(self, bet: Bet) -> Bet:
        """Return a bet against the leader: if it is not the best plan, the only rival left probably is."""
        plans = bet.ahead, bet.behind, bet.ahead
        return Bet(COMMON, *plans, 0.0, np.zeros(1), bet.prior_variance, bet.unit, self.grid)

    def wager_objection(self, decision: Decision) -> str | None:
        """Return why stake and bets, as they were recorded, are none, or None."""
        more, n = dict(decision.more), len(decision.rivals)
        stake, bets = more.pop("stake", None), more.pop("bets", None)
        if decision.is_final != (bets is None) or (stake is not None and not is_stake(stake)):
            return "it has no bets, or a stake that is none"
        if bets is not None and not are_bets(bets, n):
            return "its bets are not those of its rivals"
        return None if not more else f"it has {sorted(more)[0]!r}, which no run writes"

    def _centre(self, estimates: Estimates, targets: Targets) -> FloatArray:
        """Return the centres of the mixtures: estimated gaps, less a correction for selection bias.

        A leader was chosen because it looked good. That biases what was measured before it first led, and
        nothing after; the correction is in proportion to the older part of the estimate. Where every rival
        has an arm of its own, the leader's alone was selected.
        """
        if self._probe_of is not None:
            own = self._probe_of[self.leader]
            first = self.first_led_at.get(self.leader, estimates.counts[own][None])
            since = float(estimates.counts[own] - first[0])
            old = 1.0 - min(since / float(estimates.uses[own]), 1.0)
            # a leader looks good by a standard error already
            errors = max(SELECTION_BIAS * math.log(self.n_plans) - 1.0, 0.0) * math.sqrt(old)
            of_leader = errors * self._own_error(estimates, [self.leader])
            return np.asarray(targets.gap - of_leader - SHRINKAGE * np.sqrt(targets.gap_variance))
        first = self.first_led_at.get(self.leader, estimates.counts)  # it leads from now on
        fresh = estimates.variance_since(first, targets.contrasts)
        old_part = 1.0 - np.minimum(targets.gap_variance / fresh, 1.0)
        correction = SELECTION_BIAS * math.log(self.n_plans) * np.sqrt(old_part) + SHRINKAGE
        return np.asarray(targets.gap - correction * np.sqrt(targets.gap_variance))

    def evidence(self, leader: Any) -> FloatArray:
        """Return the largest log wealth so far against each plan, whichever leads."""
        del leader
        return self.certain(self._common.peak)

    def log_wealth(self, leader: Any) -> FloatArray:
        """Return the log wealth against each plan, whichever leads."""
        del leader
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
        if self._probe_of is None:
            self.first_led_at = {
                plan: _padded(counts, n_probes) for plan, counts in self.first_led_at.items()
            }


def next_stake(estimates: Estimates, account: Account, first: list[float]) -> dict[str, Any]:
    """Return the stake on an account, if it is time: a share of the cash, and the part on fixed sizes."""
    if estimates.n_measured < account.next_stake:
        return {}
    return {"stake": [STAKE, 0.0] if account.next_stake else first}


def stake_all(wealth: Wealth, account: Account, stake: list[float], n_measured: float) -> None:
    """Stake on all rows of an account alike: so much of the cash, and this part of it on fixed sizes."""
    share, on_grid = stake
    amount, n_fixed = wealth.withdraw(share), account.components.shape[1] - 1
    if on_grid > 0:
        account.stake(amount + math.log(on_grid / n_fixed), slice(0, -1))
    if on_grid < 1:
        account.stake(amount + math.log1p(-on_grid), slice(-1, None))
    account.next_stake = RESTAKE * n_measured


def bet_steps(estimates: Estimates, targets: Targets, centre: FloatArray) -> list[IntArray]:
    """Return bets on these contrasts as they are recorded; their units where more than arms is measured."""
    steps = mixture_steps(centre, targets.gap_variance)
    return steps if estimates.readings.is_plain else [*steps, to_steps(estimates.unit(targets.contrasts))]


def are_bets(bets: Any, n: int) -> bool:
    """Return whether these are bets on n rows as `bet_steps` records them."""
    is_list = isinstance(bets, list) and len(bets) in (2, 3)
    return is_list and are_steps(bets[0], n, least=-1) and all(are_steps(part, n) for part in bets[1:])


def _padded(counts: IntArray, n: int) -> IntArray:
    """Return the counts with zeros for new probes."""
    return np.append(counts, np.zeros(n - len(counts), dtype=np.int64))


def _arm_of_each(plans: Any) -> IntArray | None:
    """Return the arm of each plan, if every plan has one arm, of its own; else None.

    >>> _arm_of_each(np.array([[0.0, 2.0], [1.0, 0.0]])).tolist()
    [1, 0]
    """
    from scipy import sparse

    rows = sparse.csr_array(plans, copy=True)
    rows.eliminate_zeros()
    if bool((np.diff(rows.indptr) != 1).any()) or len(np.unique(rows.indices)) != rows.shape[0]:
        return None
    return rows.indices.astype(np.int64)
