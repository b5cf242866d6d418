"""The best plan of a list, or of many plans one within epsilon of the best.

`Best`: row j of one account bets against "plan j is best". Under that hypothesis leader - j has a gap of at
most 0, whichever plan leads, so that every leader may bet on the same account and a change of leader costs
nothing (the selector is the best plan).

`WithinMany`: a fifth of the cash asks for the best plan, as `Best` does, on the common account. The rest
waits plan by plan, and the part that waits for plan j goes to the account of the leader when the leader seems
to be clearly within epsilon of j; while it leads, that account bets on gap + epsilon.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar

import numpy as np

from surepick.core.arrays import FloatArray, IntArray
from surepick.core.problem import PlanParts
from surepick.core.run import Decision, as_ranges, from_ranges
from surepick.inference.contrasts import Contrasts, DiagonalReadings
from surepick.inference.steps import are_mixtures, from_steps, is_share, mixture_of, mixture_steps, to_steps
from surepick.inference.wealth import COMMON, EMPTY, WAITING, Account, Wealth
from surepick.policies.betting.estimates import Estimates, Readings
from surepick.policies.betting.list_question import ListQuestion
from surepick.policies.betting.question import NO_LEADER, RESTAKE, Bet, Check, PlannedBatch, Targets

# None of these constants bears on the guarantee; they were chosen on other instances than those of the tests.
FIRST_STAKE, STAKE = 0.73, 0.3  # of the cash: the first time, and whenever measurements have grown enough
GRID = 2.0 * 0.5 ** (np.arange(15) / 2)  # fixed bet sizes, in deviations of a gap after a first batch
GRID_SHARE, GRID_SHARE_PER_LOG, LEAST_GRID_SHARE = 0.7, 0.06, 0.2  # of the first stake; less with many plans
SELECTION_BIAS, SHRINKAGE = 0.3, 0.15  # standard errors below the estimate that mixtures are centred
FEW = 64  # with more plans of one arm each, planning rounds find the leader
_CLOSE = 1.0  # standard errors behind the leader: rivals that a planning round measures again
# shares of the number of unresolved rivals:
_UNCLEAR = 0.1  # a planning round is due if its close rivals need more uses than this
_ROUND = 0.5  # the most uses that a planning round has for rivals
_MOST_LEADERS = 64  # whose first lead is remembered; a forgotten one counts as new
_MOST_ACCOUNTS = 26  # within epsilon, the common one and the waiting cash among them


class Best(ListQuestion):
    """Which plan is best?"""

    STATE: ClassVar[tuple[str, ...]] = (*ListQuestion.STATE, "led", "first_led_at", "planned")
    searches = True  # whether planning rounds find the leader of many arms
    ignored_gap = 0.0  # a planning round measures a rival as if it were this much further behind

    def __init__(self, plans: Any, delta: float, epsilon: float = 0.0, **settings: Any) -> None:
        super().__init__(plans, delta, epsilon, **settings)
        self.led = NO_LEADER  # the leader of the last batch
        # the counts when each plan led for the first time; only that of its own arm if every plan has one
        self.first_led_at: dict[int, IntArray] = {}
        self.planned = 0  # measurements of planning rounds since the last bets
        self._probe_of: IntArray | None = None  # by plan, where many plans have one arm each, of their own
        self.wealth.account(COMMON, self.n_plans, len(GRID) + 1)

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
        had_own_arms = self._probe_of is not None
        self._probe_of = None
        may_search = self.searches and self.n_plans > FEW
        if may_search and isinstance(readings, DiagonalReadings) and readings.is_single:
            arms = _arm_of_each(self.plans)
            probe_of_arm = np.zeros(self.plans.shape[1], dtype=np.int64)
            probe_of_arm[readings.arm] = np.arange(len(readings.costs))
            self._probe_of = None if arms is None else probe_of_arm[arms]
        if had_own_arms != (self._probe_of is not None):
            self.led = NO_LEADER
            self.first_led_at = {}  # its counts have another form from now on

    def grow(self, parts: PlanParts, readings: Readings, n_probes: int) -> None:
        """Let each new plan begin with the least wealth of all plans.

        Let M be the wealth of the best plan of the moment. It changes hands only when a better plan arrives,
        which then has no more than the old one: M stays a supermartingale from 1, whichever plans arrive and
        whenever. A newcomer with wealth 1 would be a new chance to be wrong.
        """
        n_old = self.n_plans
        self.bind(readings, parts)
        account = self._common
        new = np.arange(n_old, self.n_plans)
        account.append(len(new), account.least_staked())
        self.wealth.count(new, account)
        if self._probe_of is None:
            for plan, counts in self.first_led_at.items():
                self.first_led_at[plan] = np.append(counts, np.zeros(n_probes - len(counts), dtype=np.int64))

    def _own_error(self, estimates: Estimates, plans: Any = slice(None)) -> FloatArray:
        """Return the standard error of the value of each of these plans, which have one arm each."""
        assert self._probe_of is not None
        assert isinstance(estimates.readings, DiagonalReadings)
        arm = estimates.readings.arm[self._probe_of[plans]]
        amounts = np.asarray(abs(self.plans[plans]).sum(axis=1)).ravel()
        return np.asarray(amounts * np.sqrt(estimates.arm_variance()[arm]))

    def choose(self, estimates: Estimates) -> None:
        """Let the plan lead that looks best, ruled out or not.

        The best plan may be ruled out by bad luck; unless it can lead, such a run would never end. Among
        many arms that were measured once, the one that looks best is mostly lucky: there plans are compared
        by their lower bounds, a standard error below the estimates.
        """
        values = self.values(estimates)
        if self._probe_of is not None:
            values = values - self._own_error(estimates)
        self.leader = int(np.argmax(values))

    def search(self, estimates: Estimates, targets: Targets) -> IntArray | None:
        """Return the uses of each probe in a planning round; None if none is due.

        A planning round is a batch without bets that finds the leader of many arms. It measures the leader
        and the rivals close to it again. Each close rival doubles its measurements, up to the square root of
        the number of unresolved rivals; the leader gets that many. Later bets see them as prior data.

        A round is due while many rivals are close or the leader has few measurements. Between two batches
        with bets, rounds start only while they have measured less often than there are unresolved rivals.
        """
        probe = self._probe_of
        n_open = len(targets.rivals)
        if probe is None or n_open <= FEW or self.planned >= n_open:
            return None
        enough = math.ceil(math.sqrt(n_open))
        close = np.flatnonzero(targets.gap + self.ignored_gap < _CLOSE * targets.error)
        rivals = targets.rivals[close]
        more = np.minimum(np.ceil(estimates.uses[probe[rivals]]), enough)
        if more.sum() <= _UNCLEAR * n_open and estimates.uses[probe[self.leader]] >= enough:
            return None
        # the rivals with the largest upper bounds first, as many as the round has uses for
        order = np.argsort(targets.gap[close] - self._own_error(estimates, rivals), kind="stable")
        chosen = order[np.cumsum(more[order]) <= _ROUND * n_open]
        uses = np.zeros(len(estimates.uses), dtype=np.int64)
        uses[probe[rivals[chosen]]] = more[chosen]
        uses[probe[self.leader]] = enough
        return uses

    def terms(self, estimates: Estimates, batch: PlannedBatch) -> dict[str, Any]:
        """Bet that the leader is better than each rival; stake for all plans alike, with some cash left."""
        if batch.targets is None or not batch.has_bets:
            return {}
        bets = bet_steps(estimates, batch.targets, self._centre(estimates, batch.targets) + self.epsilon)
        return {"bets": bets} | next_stake("stake", estimates, self._common, FIRST_STAKE, self.grid_share)

    def checks(self, decision: Decision) -> Mapping[str, Check]:
        """Return that there are bets on the rivals, and perhaps a stake; a final batch has neither."""
        if decision.is_final:
            return {}
        return {"bets": partial(are_mixtures, n=len(decision.rivals)), "stake": is_stake}

    def follow(self, decision: Decision, estimates: Estimates) -> None:
        """Take on the leader of this decision, remember when it first led, and stake."""
        self._lead(decision, estimates)
        self.planned = 0
        stake_all(self.wealth, self._common, decision.more.get("stake"), estimates)

    def _lead(self, decision: Decision, estimates: Estimates) -> None:
        self.leader = decision.leader
        if self.leader == self.led:
            return
        self.led = self.leader
        counts = estimates.counts
        own = counts if self._probe_of is None else counts[self._probe_of[self.leader]][None]
        first = self.first_led_at.pop(self.leader, own)
        if len(self.first_led_at) >= _MOST_LEADERS:
            del self.first_led_at[next(iter(self.first_led_at))]
        self.first_led_at[self.leader] = first

    def bets(self, decision: Decision, estimates: Estimates) -> list[Bet]:
        """Bet that the leader is better than each rival.

        With one rival left the leader has a bet against it: if it is not the best plan, the rival probably
        is.
        """
        rivals = decision.rivals
        recorded = decision.more.get("bets")
        if decision.is_final:
            return self.test(rivals)
        bet = recorded_bet(COMMON, rivals, self.from_leader(rivals), recorded, estimates)
        assert bet.centre is not None
        bet.centre = bet.centre - self.epsilon  # recorded of the gap + epsilon
        if len(rivals) > 1:
            return [bet]
        leader = np.array([decision.leader])
        against = recorded_bet(COMMON, leader, self.contrasts(rivals, leader), recorded, estimates)
        against.centre = np.zeros(1)
        return [bet, against]

    def _centre(self, estimates: Estimates, targets: Targets) -> FloatArray:
        """Return the centres of the mixtures: estimated gaps, less a correction for selection bias.

        A leader was chosen because it looked good. That biases the values measured before it first led, and
        none after; so the correction grows with the older part of the estimate. If every plan has an arm of
        its own, selection biases the leader's arm alone.
        """
        bias = SELECTION_BIAS * math.log(self.n_plans)
        if self._probe_of is not None:
            own = self._probe_of[self.leader]
            first = self.first_led_at.get(self.leader, estimates.counts[own][None])
            since = float(estimates.counts[own] - first[0])
            old = 1.0 - min(since / float(estimates.uses[own]), 1.0)
            # a leader looks good by a standard error already
            errors = max(bias - 1.0, 0.0) * math.sqrt(old)
            return targets.lowered(SHRINKAGE) - errors * self._own_error(estimates, [self.leader])
        first = self.first_led_at.get(self.leader, estimates.counts)  # it leads from now on
        old_part = estimates.old_part(first, targets.contrasts, targets.gap_variance)
        return targets.lowered(SHRINKAGE + bias * np.sqrt(old_part))

    def evidence(self, leader: Any) -> FloatArray:
        """Return the largest log wealth so far against each plan, whichever leads."""
        del leader
        return self.certain(self._common.peak)

    def log_wealth(self, leader: Any) -> FloatArray:
        """Return the log wealth against each plan, whichever leads."""
        del leader
        return self._common.current

    def tested(self, rivals: IntArray) -> tuple[str | int, IntArray]:
        """Return the rows of the common account."""
        return COMMON, rivals


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
        super().__init__(plans, delta, epsilon, accounts=_MOST_ACCOUNTS)
        # Initial wealth 1: `exact_share` bets on the common account, the rest waits to be staked per plan.
        self.wealth.log_cash = math.log(self.exact_share)
        self.wealth.account(WAITING, self.n_plans, 1).stake(math.log1p(-self.exact_share))
        self.next_stake = np.zeros(self.n_plans)  # measurements at which more is staked against each plan
        self.ignored_gap = 0.5 * epsilon

    @property
    def _waiting(self) -> Account:
        return self.wealth.accounts[WAITING]

    @property
    def _leaders(self) -> set[int]:
        """The leader, and those before it that have an account."""
        return {self.leader, *(key for key in self.wealth.accounts if isinstance(key, int))}

    def _count_for_leader(self, rows: IntArray) -> None:
        own = self.wealth.account(self.leader, self.n_plans, 1)
        self.wealth.count(rows, self._waiting, self._common, own)

    def choose(self, estimates: Estimates) -> None:
        """Keep a leader that is little behind, the more so the nearer it is to be proved within epsilon."""
        old = self.leader
        super().choose(estimates)
        if old in (NO_LEADER, self.leader):
            return
        contrast = self.contrasts(np.array([self.leader]), np.array([old]))
        behind = float(estimates.gap(contrast)[0])
        variance = float(estimates.gap_variance(contrast)[0])
        room = 1.0 - behind / self.epsilon
        threshold = self.wealth.threshold
        missing = max(threshold - float(self.log_wealth(old)[self.leader]), 0.0)
        is_near = room > 0 and room * room >= missing / (threshold + self.new_leader_nats)
        if is_near or behind <= self.keep_errors * math.sqrt(variance):
            self.leader = old

    def terms(self, estimates: Estimates, batch: PlannedBatch) -> dict[str, Any]:
        """Bet and stake as on the best plan; stake on the leader against every rival that it is ready for."""
        found = super().terms(estimates, batch)
        targets = batch.targets
        if not found or targets is None:
            return found
        errors_ahead = (targets.gap + self.epsilon) / targets.error
        if self._probe_of is None:  # arms that are shared make many plans alike, and leaders change often
            is_ready = np.full(len(errors_ahead), errors_ahead.min() > self.ready_for_all)
            share = self.stake_share
        else:  # a change of leaders loses what was staked
            is_ready = errors_ahead > self.ready
            share = round(self.stake_share / len(self._leaders), 3)
        # a new leader is staked on as soon as it is ready
        next_stake = self.next_stake if self.leader in self.wealth.accounts else np.zeros(self.n_plans)
        rows = targets.rivals[is_ready & (estimates.n_measured >= next_stake[targets.rivals])]
        return found | ({"waiting": [share, as_ranges(rows)]} if len(rows) else {})

    def checks(self, decision: Decision) -> Mapping[str, Check]:
        """Return that something may be staked on the leader: a share of what waits for some plans."""

        def is_waiting(recorded: Any) -> bool:
            if recorded is None:
                return True
            is_pair = isinstance(recorded, list) and len(recorded) == 2 and is_share(recorded[0])
            return is_pair and from_ranges(recorded[1], self.n_plans).size > 0

        checks = super().checks(decision)
        return checks and {**checks, "waiting": is_waiting}

    def _lead(self, decision: Decision, estimates: Estimates) -> None:
        """Take on the leader of this decision; open its account, or bring the one it had up to date.

        While a plan does not lead, the common account continues to bet, so its own total has to be added up
        again: cash, what waits, the common account and its own.
        """
        has_changed = decision.leader != self.led
        super()._lead(decision, estimates)
        if has_changed:
            if self.leader not in self.wealth.accounts:
                self.next_stake = np.zeros(self.n_plans)  # stake as soon as it is ready
            self._count_for_leader(np.arange(self.n_plans))

    def follow(self, decision: Decision, estimates: Estimates) -> None:
        """Take on the leader of this decision, and stake on all plans and on the leader."""
        super().follow(decision, estimates)
        if (recorded := decision.more.get("waiting")) is not None:
            share = recorded[0]
            rows = from_ranges(recorded[1], self.n_plans)
            own = self.account(self.leader).components
            waiting = self._waiting.components
            own[rows] = np.logaddexp(own[rows], waiting[rows] + math.log(share))
            waiting[rows] += math.log1p(-share)
            self.next_stake[rows] = RESTAKE * estimates.n_measured

    def bets(self, decision: Decision, estimates: Estimates) -> list[Bet]:
        """Bet that the leader is better, and on its own account that it is not worse by more than epsilon."""
        bets = super().bets(decision, estimates)
        if decision.is_final:
            return bets
        centre, variance = mixture_of(decision.more["bets"])
        own = Bet(self.leader, decision.rivals, bets[0].contrasts, self.epsilon, None, centre, variance)
        return [*bets, own]

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
        # the common account may have grown since this plan led
        now = own.peak if leader == self.led else self.log_wealth(leader)
        return self.certain(np.maximum(np.maximum(self._common.peak, own.peak), now))

    def log_wealth(self, leader: Any) -> FloatArray:
        """Return the log wealth against each plan, as a rival of this leader."""
        own = self.wealth.accounts.get(leader)
        if own is None:
            return self._common.current
        if leader == self.led:
            return own.current
        return self.wealth.total(np.arange(self.n_plans), self._waiting, self._common, own)

    def tested(self, rivals: IntArray) -> tuple[str | int, IntArray]:
        """Return rows of the leader's own account: a test with epsilon holds for this leader alone."""
        return self.leader, rivals

    def within_epsilon(self) -> list[int]:
        """Return the leaders, now or earlier, all of whose rivals are ruled out."""
        leaders, threshold = sorted(self._leaders - {NO_LEADER}), self.wealth.threshold
        return [leader for leader in leaders if self.answer_evidence(leader) >= threshold]

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


def next_stake(
    name: str, estimates: Estimates, account: Account | None, first: float, fixed_part: float
) -> dict[str, Any]:
    """Return the stake on an account if it is time: a share of the cash, and the part on fixed sizes."""
    if account is None or not account.next_stake:
        return {name: [first, round(fixed_part, 2)]}
    return {name: [STAKE, 0.0]} if estimates.n_measured >= account.next_stake else {}


def is_stake(recorded: Any) -> bool:
    """Return whether this is such a stake, or none."""
    if recorded is None:
        return True
    is_pair = isinstance(recorded, list) and len(recorded) == 2 and is_share(recorded[0])
    return is_pair and type(recorded[1]) is float and 0 <= recorded[1] <= 1


def stake_all(wealth: Wealth, account: Account, recorded: list[float] | None, estimates: Estimates) -> None:
    """Stake on all rows of an account alike: so much of the cash, and this part of it on fixed sizes."""
    if recorded is None:
        return
    share, fixed_part = recorded
    amount = wealth.withdraw(share)
    n_fixed = account.components.shape[1] - 1
    if fixed_part > 0:
        account.stake(amount + math.log(fixed_part / n_fixed), slice(0, -1))
    if fixed_part < 1:
        account.stake(amount + math.log1p(-fixed_part), slice(-1, None))
    account.next_stake = RESTAKE * estimates.n_measured


def bet_steps(estimates: Estimates, targets: Targets, centre: FloatArray) -> list[IntArray]:
    """Return bets on these contrasts as they are recorded; their units where more than arms is measured."""
    steps = mixture_steps(centre, targets.gap_variance)
    return steps if estimates.readings.is_plain else [*steps, to_steps(estimates.unit(targets.contrasts))]


def recorded_bet(
    account: str | int, rows: IntArray, contrasts: Contrasts, recorded: Any, estimates: Estimates
) -> Bet:
    """Return bets as they were recorded: a mixture on each row, and the fixed sizes."""
    unit = from_steps(recorded[2]) if len(recorded) == 3 else estimates.unit(contrasts)
    return Bet(account, rows, contrasts, 0.0, unit[:, None] * GRID, *mixture_of(recorded))


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
