"""What a run asks, and therefore which bets it makes: the parts that all questions share.

A question sees what was measured before a batch (`Estimates`), and what the batch alone has shown once its
bets are fixed (`BatchResult`). Wealth, accounts and rows are those of the theorem in `surepick.inference`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from surepick.core.arrays import BoolArray, FloatArray, IntArray
from surepick.core.run import TOLERANCE, Answer, Decision, Standing
from surepick.design.grid import VALUE_BITS, on_grid
from surepick.inference.contrasts import Contrasts
from surepick.inference.wealth import Account, Wealth
from surepick.policies.betting.estimates import BatchResult, Estimates

LEAST_EVIDENCE_NEEDED = 0.1  # nats: a rival that is nearly ruled out still counts a little
CERTAIN = 700.0  # log evidence against a plan that is out without a measurement; its exp is still a number
NO_LEADER = -1  # before anything is known
RESTAKE = 1.4  # cash is staked again whenever the measurements have grown by this factor

Check = Callable[[Any], bool]  # of a recorded value; None where nothing was recorded


@dataclass(frozen=True)
class Pace:
    """How batches are allocated and how long they are. None of it bears on a guarantee."""

    smoothing: float = 32.0  # squared errors added to squared gaps in priorities; costs that differ need less
    batch_share: float = 0.1  # the cost of a batch is at most this share of what was spent,
    need_share: float = 0.1  # and about this share of what still seems to be needed
    renewal: float = 1.0  # of the new shares in those that are used
    uses_all: bool = False  # whether every probe of the first batch is used in every batch


@dataclass(eq=False)
class Targets:
    """The contrasts that the next batch is to show, and how much evidence each still needs."""

    rivals: IntArray  # (n,) plans, or what else a contrast is named by
    contrasts: Contrasts
    gap: FloatArray  # estimated, without the shift
    gap_variance: FloatArray
    log_wealth: FloatArray  # against each, now
    evidence_needed: FloatArray  # nats to the threshold, within limits
    shift: FloatArray | float  # what is to be shown is gap + shift > 0

    @property
    def error(self) -> FloatArray:
        """(n,) the standard errors of the estimated gaps."""
        return np.sqrt(self.gap_variance)

    def lowered(self, n_errors: FloatArray | float) -> FloatArray:
        """Return the estimated gaps minus this many standard errors: the centres of mixtures of bet sizes."""
        return self.gap - n_errors * self.error


@dataclass(frozen=True, eq=False)
class PlannedBatch:
    """A batch whose counts are chosen, and whose stakes and bets are not yet."""

    targets: Targets | None  # None before anything is known
    counts: IntArray  # (n_probes,)
    dual: FloatArray  # (n_targets,) how much each target binds the counts
    has_bets: bool  # a final batch is a test, and a first one mostly has no bets


@dataclass(eq=False)
class Bet:
    """Bets that gap + shift > 0, one for each row of an account, or what a final batch tests.

    Fixed before the batch. Fixed sizes are on the first components of the account, a mixture N(centre,
    prior_variance) over sizes on the last one; a bet has either or both.
    """

    account: str | int
    rows: IntArray  # (n,) of the account
    contrasts: Contrasts
    shift: float = 0.0
    sizes: FloatArray | None = None  # (n, k)
    centre: FloatArray | None = None  # (n,) no bet where it is negative
    prior_variance: FloatArray | None = None  # (n,)

    def take(self, which: Any) -> Bet:
        """Return the bets of some rows."""
        by_row = ("rows", "sizes", "centre", "prior_variance")
        given = {name: part[which] for name in by_row if (part := getattr(self, name)) is not None}
        return replace(self, contrasts=self.contrasts.take(which), **given)


def is_clear(gap: FloatArray, error: FloatArray) -> bool:
    """Return whether every gap is at least this large; on a grid, so that the last bits decide nothing."""
    return bool((on_grid(gap - error, VALUE_BITS) >= 0).all())


class Question(ABC):
    """What a run asks. All of it depends on complete batches alone, and on decisions as they are recorded.

    For each batch a run calls

        choose      the leader, now that more is known
        targets     what the next batch is to show; its counts are designed for that
        terms       what fixes stakes and bets, as the decision records it
        checks      what the terms must be, where a decision was recorded, perhaps on another machine
        follow      take on the leader of the decision, and stake
        bets        the bets of the decision, of which nothing changes
        settle      multiply wealth by what the batch has shown

    and between batches what is proved: `is_answered`, `answer`, `proves`, `standing`.
    """

    STATE: ClassVar[tuple[str, ...]] = ("leader", "wealth", "second")
    KINDS: ClassVar[tuple[type, ...]] = ()  # dataclasses in its state, beside those of every run
    pace = Pace()  # of its batches
    planned = 0  # measurements of batches without bets since the last bets
    is_fixed = False  # whether no plan may arrive, and no final batch be called
    learns_variance = True  # whether it bets on single gaps, by factors that learn a bounded variance
    bets_at_once = False  # whether it can bet in the first batch, before anything is known

    def __init__(self, delta: float, epsilon: float, *, claims: int = 1, accounts: int = 10**9) -> None:
        """Ask with this delta, in equal parts for one claim or two; keep at most `accounts` accounts."""
        self.epsilon, self.n_claims = epsilon, claims
        self.wealth = Wealth(-math.log(delta / claims), accounts)
        self.second = Wealth(self.wealth.threshold)  # of the second claim
        self.leader: Any = NO_LEADER  # of the next batch; bets take theirs from the decision

    @property
    @abstractmethod
    def n_plans(self) -> int:
        """How many plans there are, or what else rivals are counted by."""

    @abstractmethod
    def first_contrasts(self, most: int) -> tuple[FloatArray, Contrasts]:
        """Return about this many targets of the first batch, and the contrasts that it must show."""

    # planning a batch, which changes nothing but the leader

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

    @abstractmethod
    def unresolved(self) -> IntArray:
        """Return the rivals of the leader that are not ruled out, as a decision names them."""

    def search(self, estimates: Estimates, targets: Targets) -> IntArray | None:
        """Return the uses of a batch without bets, which finds out who leads; None if none is due."""
        del estimates, targets
        return None

    @abstractmethod
    def targets(self, estimates: Estimates, rivals: IntArray) -> Targets:
        """Return what the next batch is to show against these rivals."""

    def aim(
        self,
        estimates: Estimates,
        rivals: IntArray,
        contrasts: Contrasts,
        log_wealth: FloatArray,
        shift: FloatArray | float,
    ) -> Targets:
        """Return targets at these contrasts, with this log wealth against each.

        The evidence needed is at least a little, and at most twice that of the start.
        """
        gap, variance = estimates.gap(contrasts), estimates.gap_variance(contrasts)
        threshold = self.wealth.threshold
        needed = np.clip(threshold - log_wealth, LEAST_EVIDENCE_NEEDED, 2 * threshold)
        return Targets(rivals, contrasts, gap, variance, log_wealth, needed, shift)

    @abstractmethod
    def terms(self, estimates: Estimates, batch: PlannedBatch) -> dict[str, Any]:
        """Return what fixes the stakes and bets of the next batch: JSON values, or arrays for lists."""

    # checking a recorded decision

    @abstractmethod
    def leader_objection(self, leader: Any) -> str | None:
        """Return why this, as it was recorded, cannot lead, or None."""

    @abstractmethod
    def rival_objection(self, decision: Decision) -> str | None:
        """Return why these cannot be the rivals of the leader, or None.

        Who leads, and how much is measured, is free: whatever depends on complete batches alone is allowed.
        """

    def misplaced(self, is_rival: BoolArray, evidence: FloatArray) -> BoolArray:
        """Return where a rival is ruled out by this evidence, or no rival is not, beyond rounding."""
        excess = evidence - self.wealth.threshold
        return np.asarray(np.where(is_rival, excess, -excess) > TOLERANCE * self.wealth.threshold)

    @abstractmethod
    def checks(self, decision: Decision) -> Mapping[str, Check]:
        """Return checks of the terms that such a decision records; their sizes are free."""

    # betting

    @abstractmethod
    def follow(self, decision: Decision, estimates: Estimates) -> None:
        """Take on the leader of this decision, and move cash to the accounts as it says."""

    @abstractmethod
    def bets(self, decision: Decision, estimates: Estimates) -> list[Any]:
        """Return the bets of this decision, or what its final batch tests; nothing changes."""

    def settle(self, bets: list[Any], result: BatchResult) -> None:
        """Multiply components by the factors of their bets: functions of what this batch alone has shown."""
        factor = result.factor
        for bet in bets:
            gap, variance, shown = result.show(bet.contrasts)
            gap = gap + bet.shift
            if not shown.all():
                bet, gap, variance = bet.take(shown), gap[shown], variance[shown]
            if result.is_final:
                log_p = factor.log_p(gap, variance, gaussian=result.gaussian)
                self.count([bet])  # other accounts may have taken cash since this one bet last
                self.record_test(bet.account, bet.rows, log_p)
                continue
            components, rows = self.account(bet.account).components, bet.rows
            if bet.sizes is not None and bet.sizes.size:
                n_sizes = bet.sizes.shape[1]
                components[rows, :n_sizes] += factor.log_factors(gap, variance, bet.sizes)
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

    @property
    @abstractmethod
    def is_answered(self) -> bool:
        """Whether an answer is proved."""

    @abstractmethod
    def answer(self) -> Answer | None:
        """Return the plan to answer with, once it is proved; None where it is proved that none will do."""

    @abstractmethod
    def proves(self, plan: Answer | None) -> bool:
        """Return whether this answer is proved, up to rounding."""

    def proof(self) -> Mapping[str, Any] | None:
        """Return what proves the answer without the run, as JSON values; None where nothing does."""
        return None

    @abstractmethod
    def recorded_wealth(self, leader: Any) -> float:
        """Return the mean log wealth against the rivals of this leader, which a decision records."""

    @abstractmethod
    def standing(self, estimates: Estimates) -> Standing:
        """Return leader, closest rival, their gap and its uncertainty, the risk, and what remains."""
