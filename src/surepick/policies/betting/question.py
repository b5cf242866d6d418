"""What a run asks, and therefore which bets it makes: the parts that all questions share.

A question sees only what was measured before a batch (`Estimates`). After a batch it chooses a leader and
names the contrasts to be shown next (`Targets`); both change nothing that bears on its wealth. Once the batch
is decided, perhaps by another machine and as recorded, it takes on the leader of the decision (`lead`),
stakes cash, and fixes the bets. It knows when an answer is proved. The names are those of the theorem in
`surepick.inference`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from surepick.core.arrays import BoolArray, FloatArray, IntArray, as_dense
from surepick.core.problem import PlanParts
from surepick.core.run import TOLERANCE, Answer, Decision, Standing
from surepick.design.grid import VALUE_BITS, on_grid
from surepick.errors import ProblemError
from surepick.inference.bounded import BatchReadings
from surepick.inference.contrasts import Contrasts, DenseReadings, DiagonalReadings, show
from surepick.inference.factors import Factor
from surepick.inference.wealth import Account, Wealth

LEAST_EVIDENCE_NEEDED = 0.1  # nats: a rival that is nearly ruled out still counts a little
CERTAIN = 700.0  # log evidence against a plan that is out without a measurement; its exp is still a number
NO_LEADER = -1  # before anything is known
RESTAKE = 1.4  # cash is staked again whenever the measurements have grown by this factor

Readings = DiagonalReadings | DenseReadings
_ROUNDING = 1e-12  # of a gap: replicates that differ by less are equal


@dataclass(frozen=True)
class Pace:
    """How batches are allocated and how long they are. None of it bears on a guarantee."""

    smoothing: float = 32.0  # squared errors added to squared gaps in priorities; costs that differ need less
    batch_share: float = 0.1  # the cost of a batch is at most this share of what was spent,
    need_share: float = 0.1  # and about this share of what still seems to be needed
    renewal: float = 1.0  # of the new shares in those that are used
    uses_all: bool = False  # whether every probe of the first batch is used in every batch


@dataclass(eq=False)
class Bet:
    """A bet that plan `ahead` is better than plan `behind`, less `shift`, for each row of an account.

    Fixed before the batch. It has fixed sizes unit * grid, on the first components of the account, or a
    mixture N(centre, prior_variance) over sizes, on the last component, or both.
    """

    account: str | int
    rows: IntArray  # (n,) of the account
    ahead: IntArray  # (n,) plans
    behind: IntArray  # (n,) plans
    shift: float = 0.0  # the bet is that y.mu + shift > 0
    centre: FloatArray | None = None  # no bet where it is negative
    prior_variance: FloatArray | None = None
    unit: FloatArray | None = None  # (n,)
    grid: FloatArray | None = None  # (k,)

    def take(self, which: Any) -> Bet:
        """Return the bets of some rows."""
        by_row = ("rows", "ahead", "behind", "centre", "prior_variance", "unit")
        given = {name: part[which] for name in by_row if (part := getattr(self, name)) is not None}
        return replace(self, **given)


@dataclass(eq=False)
class BatchResult:
    """What a complete batch has shown: averages of its readings, by replicate where the noise is unknown."""

    readings: Readings
    factor: Factor
    uses: IntArray  # of one replicate
    averages: FloatArray
    largest: float  # whitened average before the batch
    is_final: bool
    gaussian: bool  # whether a final batch may use the normal tail
    bounded: BatchReadings | None = None  # bounded readings, whose variance is learned

    def show(self, contrasts: Contrasts) -> tuple[Any, FloatArray, BoolArray]:
        """Return the estimates of these gaps, their variances, and which of them the batch shows.

        There is no bet on a gap that the batch does not show, which its counts say beforehand.
        """
        if self.bounded is not None:
            sums, variance = self.bounded.show(self.readings, contrasts, self.uses, self.largest)
            return sums, variance, np.isfinite(variance) & (variance > 0)
        gap, variance = show(self.readings, contrasts, self.uses, self.averages, self.largest)
        shown = np.isfinite(variance) & (variance > 0)
        if gap.ndim == 2:
            # Equal replicates have probability 0 under Gaussian noise, so that skipping them costs the
            # proof nothing; coarse readings, which are often equal, would win by rounding alone.
            shown &= np.ptp(gap, axis=1) > _ROUNDING * np.abs(gap).max(axis=1)
        return gap, variance, shown

    @property
    def arm_information(self) -> FloatArray:
        """(n_arms,): 1 / the variance of each arm's average, where readings are of single arms."""
        return self.readings.matrix(self.uses)

    @property
    def arm_means(self) -> FloatArray:
        """(n_arms,): the average of each arm, where readings are of single arms."""
        sums = self.uses[self.readings.owner] * self.averages
        return self.readings.means(self.arm_information, self.readings.vector(sums))


@dataclass(eq=False)
class Targets:
    """The contrasts that the next batch is to show: what the allocation aims at, and a final batch tests."""

    account: str | int  # whose rows they are
    rows: IntArray  # (n,) of the account
    ahead: IntArray  # (n,) plans
    behind: IntArray  # (n,) plans
    contrasts: Contrasts
    gap: FloatArray  # estimated, without the shift
    gap_variance: FloatArray
    log_wealth: FloatArray  # against each, now
    evidence_needed: FloatArray  # nats to the threshold, within limits
    shift: FloatArray | float = 0.0


class Estimates:
    """What the measurements so far say about the plans; for planning, never for settling a bet."""

    def __init__(
        self,
        readings: Readings,
        first: FloatArray,  # information of one use of each probe of the first batch
        counts: IntArray,
        uses: FloatArray,  # counts, with prior data and extra measurements
        sums: FloatArray,
    ) -> None:
        self.readings, self.first, self.counts, self.uses = readings, first, counts, uses
        self.matrix = readings.matrix(uses)
        self.means = readings.means(self.matrix, readings.vector(sums))
        self.n_measured = float(uses.sum())

    def gap(self, contrasts: Contrasts) -> FloatArray:
        """Return the estimated gaps."""
        return np.asarray(contrasts.rows @ self.means) + contrasts.constant

    def gap_variance(self, contrasts: Contrasts) -> FloatArray:
        """Return the variances of the estimated gaps."""
        return self.readings.gap_variance(self.matrix, contrasts)

    def variance_since(self, counts: IntArray, contrasts: Contrasts) -> FloatArray:
        """Return the variances by what was measured since these counts."""
        return self.readings.gap_variance(self.readings.matrix(self.counts - counts), contrasts)

    def arm_variance(self) -> FloatArray:
        """Return the variance of each arm's mean, where arms are measured one by one; infinite before."""
        nothing = np.full(len(self.matrix), np.inf)
        return np.divide(1.0, self.matrix, out=nothing, where=self.matrix > 0)

    def unit(self, contrasts: Contrasts) -> FloatArray:
        """Return the standard deviation of each gap after a first batch: the unit of bet sizes."""
        return np.sqrt(np.maximum(self.readings.gap_variance(self.first, contrasts), 1e-300))


class Recorded(NamedTuple):
    """What a decision records of bets under some name."""

    is_valid: Callable[[Any], bool]
    is_required: bool = True


def is_clear(gap: FloatArray, error: FloatArray) -> bool:
    """Return whether every gap is at least this large; on a grid, so that the last bits decide nothing."""
    return bool((on_grid(gap - error, VALUE_BITS) >= 0).all())


class Question(ABC):
    """What a run needs of a question. All of it depends on complete batches alone.

    `leader` is the plan to lead the next batch. The bets take it from the decision about that batch.
    """

    STATE: ClassVar[tuple[str, ...]] = ("leader", "wealth", "second")
    KINDS: ClassVar[tuple[type, ...]] = ()  # dataclasses in its state, beside those of every run
    pace = Pace()  # of its batches
    planned = 0  # measurements of batches without bets since the last bets
    is_listed = True  # whether plans have numbers
    is_fixed = False  # whether no plan may arrive, and no final batch be called
    learns_variance = True  # whether it bets on single gaps, by factors that learn a bounded variance
    bets_at_once = False  # whether it can bet in the first batch, before anything is known

    def __init__(self, plans: Any, delta: float, epsilon: float, *, claims: int = 1, accounts: int = 10**9):
        """Ask with this delta, in equal parts for one claim or two; keep at most `accounts` accounts."""
        self.given = self.plans = plans
        self.epsilon, self.n_claims = epsilon, claims
        self.wealth = Wealth(-math.log(delta / claims), accounts)
        self.second = Wealth(self.wealth.threshold)  # of the second claim
        self.leader: Any = NO_LEADER
        self.constants = np.zeros(self.n_plans)  # of values, by arms whose means are known
        self.is_out = np.zeros(self.n_plans, dtype=bool)  # another plan is surely at least as good
        self._cached: tuple[IntArray, IntArray, Contrasts] | None = None

    # plans and contrasts

    @property
    def n_plans(self) -> int:
        """How many plans there are."""
        return int(self.given.shape[0])

    def bind(self, readings: Readings, parts: PlanParts) -> None:
        """Set the plans, in the coordinates of these readings; a plan that alone may be best leads."""
        self.given, self.constants, self.is_out = parts.free, parts.constants, ~parts.may_be_best
        self.plans, self._cached = readings.coordinates(self.given), None
        if len(stays := self.contenders()) == 1:
            self.leader = int(stays[0])

    def grow(self, parts: PlanParts, readings: Readings, n_probes: int) -> None:
        """Continue with these plans, the old ones first, and this many probes; where plans are a list."""
        raise ProblemError("only a list of plans can grow; begin a new session", field="plans")

    def contenders(self) -> IntArray:
        """Return the plans that may be best, by what is known of the means."""
        return np.flatnonzero(~self.is_out)

    def values(self, estimates: Estimates) -> FloatArray:
        """Return the estimated values, rounded to what may decide; -inf for plans that cannot be best."""
        found = on_grid(np.asarray(self.plans @ estimates.means) + self.constants, VALUE_BITS)
        return np.where(self.is_out, -np.inf, found)

    def contrasts(self, ahead: IntArray, behind: IntArray) -> Contrasts:
        """Return the rows plan[ahead] - plan[behind]; those of the last call are kept."""
        if self._cached is not None:
            old_ahead, old_behind, found = self._cached
            if np.array_equal(old_ahead, ahead) and np.array_equal(old_behind, behind):
                return found
        constant = self.constants[ahead] - self.constants[behind]
        found = Contrasts(self.plans[ahead] - self.plans[behind], constant=constant)
        if len(ahead) > 1:  # single rows are only looked at, and quickly made
            self._cached = (ahead, behind, found)
        return found

    def contrasts_of(self, bet: Bet) -> Contrasts:
        """Return the contrasts of the rows of a bet."""
        return self.contrasts(bet.ahead, bet.behind)

    def from_leader(self, plans: IntArray | None = None) -> Contrasts:
        """Return the rows leader - plan, of all plans unless some are named."""
        plans = np.arange(self.n_plans) if plans is None else plans
        return self.contrasts(np.full(len(plans), self.leader), plans)

    def first_contrasts(self, most: int) -> tuple[FloatArray, Contrasts]:
        """Return what the first batch is designed for, and the contrasts that it must show.

        These are about this many plans less their mean, and all plans that may be best less one of them.
        """
        stays = self.contenders()
        some = as_dense(self.plans[stays[:: max(1, len(stays) // most)]])
        some = some - np.asarray(self.plans[stays].mean(axis=0)).ravel()
        contrasts = self.contrasts(np.full(len(stays) - 1, stays[0]), stays[1:])
        return np.asarray(some[np.abs(some).max(axis=1) > 0]), contrasts

    # deciding about the next batch, which changes nothing but the leader

    @property
    def has_leader(self) -> bool:
        """Whether a plan has been chosen to lead."""
        return bool(self.leader != NO_LEADER)

    @property
    def named_leader(self) -> Any:
        """The leader as a decision names it."""
        return self.leader

    @abstractmethod
    def choose(self, estimates: Estimates) -> None:
        """Choose the next leader, now that more is known; change nothing else."""

    def search(self, estimates: Estimates, targets: Targets) -> IntArray | None:
        """Return the uses of a batch without bets, which finds out who leads; None if none is due."""
        del estimates, targets
        return None

    def targets(self, estimates: Estimates, rivals: IntArray) -> Targets:
        """Return the contrasts of the leader with these rivals."""
        log_wealth, rows = self.log_wealth(self.leader)[rivals], self.tested_rows(rivals)
        plans = np.full(len(rivals), self.leader), rivals
        return self.aim(estimates, self.tested_account(), rows, *plans, self.from_leader(rivals), log_wealth)

    def aim(
        self,
        estimates: Estimates,
        account: str | int,
        rows: IntArray,
        ahead: IntArray,
        behind: IntArray,
        contrasts: Contrasts,
        log_wealth: FloatArray,
        shift: FloatArray | float | None = None,
    ) -> Targets:
        """Return targets at these contrasts, of rows of an account, with this log wealth against each.

        The shift is epsilon unless given. The evidence needed is at least a little, and at most twice that of
        the start.
        """
        gap, variance = estimates.gap(contrasts), estimates.gap_variance(contrasts)
        threshold = self.wealth.threshold
        needed = np.clip(threshold - log_wealth, LEAST_EVIDENCE_NEEDED, 2 * threshold)
        shift = self.epsilon if shift is None else shift
        return Targets(account, rows, ahead, behind, contrasts, gap, variance, log_wealth, needed, shift)

    @abstractmethod
    def tested_account(self) -> str | int:
        """Return the account that a test of the leader against its rivals belongs to."""

    def tested_rows(self, rivals: IntArray) -> IntArray:
        """Return the rows of these rivals in that account."""
        return rivals

    def aims(self, estimates: Estimates, targets: Targets, decision: Decision | None = None) -> Targets:
        """Return the targets for which a batch is allocated, and that a final batch tests.

        They are chosen before a batch is decided, and those of the decision afterwards.
        """
        del estimates, decision
        return targets

    def more(self, aims: Targets | None, counts: IntArray, dual: FloatArray) -> dict[str, Any]:
        """Return what else than the leader and its rivals fixes the next bets, as JSON values.

        The next batch has these counts; `dual` says how much each plan binds its allocation.
        """
        del aims, counts, dual
        return {}

    def wagers(self, estimates: Estimates, targets: Targets | None) -> dict[str, Any]:
        """Return stakes and bets of the next batch as the decision records them.

        There are no targets before the first batch.
        """
        del estimates, targets
        return {}

    # checking a recorded decision

    def leader_objection(self, leader: Any) -> str | None:
        """Return why this, as it was recorded, cannot lead, or None."""
        return None if type(leader) is int and 0 <= leader < self.n_plans else "its leader is no plan"

    def objection(self, decision: Decision) -> str | None:
        """Return why no run decides so here, or None: rivals are the plans that are not ruled out.

        Who leads, and how much is measured, is free: whatever depends on complete batches alone is allowed.
        """
        is_rival = np.zeros(self.n_plans, dtype=bool)
        is_rival[decision.rivals] = True
        excess, threshold = (
            self.rival_evidence(decision.leader) - self.wealth.threshold,
            self.wealth.threshold,
        )
        wrong = np.where(is_rival, excess, -excess) > TOLERANCE * threshold
        if wrong.any() or not is_rival.any():
            return f"plan {int(np.argmax(wrong))} is on the wrong side of its rivals, or it has none"
        return self.wager_objection(decision)

    def wager_objection(self, decision: Decision) -> str | None:
        """Return why stakes and bets, as they were recorded, are none, or None; their sizes are free."""
        expected, recorded = self.recorded_wagers(decision), decision.more
        for name in sorted(expected.keys() | recorded.keys()):
            if name not in expected or (name not in recorded and expected[name].is_required):
                return f"it has {name!r}, or lacks it, unlike what a run writes"
            if name in recorded and not expected[name].is_valid(recorded[name]):
                return f"its {name!r} is none"
        return None

    def recorded_wagers(self, decision: Decision) -> dict[str, Recorded]:
        """Return what such a decision records of stakes and bets."""
        del decision
        return {}

    # betting

    def lead(self, decision: Decision, counts: IntArray) -> None:
        """Take on the leader of this decision, before its bets are fixed; these counts came before it."""
        del counts
        self.leader = decision.leader

    @abstractmethod
    def place(self, decision: Decision, estimates: Estimates) -> list[Any]:
        """Move cash to the accounts as the decision says, and return its bets."""

    def test(self, estimates: Estimates, aims: Targets) -> list[Any]:
        """Return what a final batch tests."""
        del estimates
        assert isinstance(aims.shift, float)
        return [Bet(aims.account, aims.rows, aims.ahead, aims.behind, aims.shift)]

    def settle(self, bets: list[Any], result: BatchResult) -> None:
        """Multiply components by the factors of their bets: functions of what this batch alone has shown."""
        factor = result.factor
        for bet in bets:
            gap, variance, shown = result.show(self.contrasts_of(bet))
            gap = gap + bet.shift
            if not shown.all():
                bet, gap, variance = bet.take(shown), gap[shown], variance[shown]
            if result.is_final:
                log_p = factor.log_p(gap, variance, gaussian=result.gaussian)
                self.count([bet])  # other accounts may have taken cash since this one bet last
                self.record_test(bet.account, bet.rows, log_p)
                continue
            components, rows = self.account(bet.account).components, bet.rows
            if bet.unit is not None and bet.grid is not None and len(bet.grid):
                sizes = bet.unit[:, None] * bet.grid
                components[rows, : len(bet.grid)] += factor.log_factors(gap, variance, sizes)
            if bet.centre is not None and bet.prior_variance is not None:
                on = np.flatnonzero(bet.centre >= 0)
                mixture = factor.log_mixture(gap[on], variance[on], bet.centre[on], bet.prior_variance[on])
                components[rows[on], -1] += mixture
        if not result.is_final:
            self.count(bets)

    def record_test(self, key: str | int, rows: IntArray, log_p: FloatArray) -> None:
        """Raise the evidence against these rows of an account by p-values from a final batch.

        A final batch replaces wealth E by 1{p <= delta E} / delta, whose mean is at most E: the evidence is E
        / p, with E the wealth now, not its peak.
        """
        account = self.account(key)
        account.peak[rows] = np.maximum(account.peak[rows], account.current[rows] - log_p)

    def account(self, key: str | int) -> Account:
        """Return the account with this key, of either claim."""
        return (self.second if key in self.second.accounts else self.wealth).accounts[key]

    def count(self, bets: list[Any]) -> None:
        """Update wealth and evidence after the factors of these bets have been multiplied in."""
        for bet in bets:
            wealth = self.second if bet.account in self.second.accounts else self.wealth
            wealth.count(bet.rows, self.account(bet.account))

    def set_delta(self, delta: float) -> None:
        """Continue with a smaller delta: the same wealth, at a higher threshold."""
        self.wealth.threshold = self.second.threshold = -math.log(delta / self.n_claims)

    # what is proved

    def evidence(self, leader: Any) -> FloatArray:
        """Return a copy of the largest log wealth so far against each plan, as a rival of this leader."""
        del leader
        return np.zeros(0)

    def log_wealth(self, leader: Any) -> FloatArray:
        """Return the log wealth against each plan of a list, as a rival of this leader, now."""
        del leader
        return np.zeros(0)

    def certain(self, evidence: FloatArray) -> FloatArray:
        """Return the evidence by plan, all that is needed where a plan is out without a measurement."""
        return np.where(self.is_out, CERTAIN, evidence)

    def rival_evidence(self, leader: Any) -> FloatArray:
        """Return the evidence against each plan as a rival of this leader, whose own is infinite."""
        evidence = self.evidence(leader)
        evidence[leader] = np.inf
        return evidence

    def unresolved(self) -> IntArray:
        """Return the rivals of the leader that are not ruled out."""
        return np.flatnonzero(self.rival_evidence(self.leader) < self.wealth.threshold)

    def answer_evidence(self, plan: Any) -> float:
        """Return the log evidence for this answer: the least that is needed of any."""
        return float(self.rival_evidence(plan).min())

    @property
    def is_answered(self) -> bool:
        """Whether an answer is proved."""
        return self.has_leader and not len(self.unresolved())

    def answer(self) -> Answer | None:
        """Return the plan to answer with, once it is proved; None where it is proved that none will do."""
        return self.leader

    def proves(self, plan: Answer | None) -> bool:
        """Return whether this answer is proved, up to rounding."""
        if self.leader_objection(plan):
            return False
        return self.answer_evidence(plan) >= self.wealth.threshold * (1.0 - TOLERANCE)

    def within_epsilon(self) -> list[int]:
        """Return the plans that are proved to be within epsilon of the best."""
        return [self.leader] if self.is_answered else []

    def proof(self) -> Mapping[str, Any] | None:
        """Return what proves the answer without the run, as JSON values; None where nothing does."""
        return None

    def recorded_wealth(self, leader: Any) -> float:
        """Return the mean log wealth against the rivals of this leader, which a decision records."""
        if isinstance(leader, int) and leader == NO_LEADER:
            return 0.0
        wealth = self.log_wealth(leader)[np.arange(self.n_plans) != leader]
        return float(wealth.mean()) if len(wealth) else CERTAIN

    def standing(self, estimates: Estimates) -> Standing:
        """Return leader, closest rival, their gap and its uncertainty, the risk, and what remains."""
        evidence = self.rival_evidence(self.leader)
        evidence[self.leader] = np.inf
        rival = int(np.argmin(evidence))
        contrast, threshold = self.from_leader(np.array([rival])), self.wealth.threshold
        gap, variance = float(estimates.gap(contrast)[0]), float(estimates.gap_variance(contrast)[0])
        risk = min(1.0, self.n_claims * math.exp(-self.answer_evidence(self.leader)))
        remaining = self.evidence(self.leader) < threshold
        remaining[self.leader] = True  # whatever was bet against it
        left, good = tuple(np.flatnonzero(remaining).tolist()), tuple(self.within_epsilon())
        return Standing(self.leader, rival, gap, math.sqrt(2 * variance * threshold), risk, left, good)
