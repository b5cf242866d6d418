"""Plans behind an oracle that are measured as a whole: one use of a plan reads every arm in it.

Plans are of zeros and ones, the probes are the plans, and neither is ever listed. Readings are of single arms
with noise of their own, so that a batch of plans shows arm s n_s times, n_s the uses of plans that hold s.
The bets of `oracle` need no more: these counts are fixed before the batch, and every arm is read on which
plans that are left differ, which the cover sees to.

Shares of plans are found by column generation (`play_allocation`): the plan that is missing most is the
oracle's best one for the prices of the arms.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from surepick.core.arrays import BoolArray, FloatArray, IntArray
from surepick.core.oracle_problem import OracleProblem
from surepick.core.plays import Plays
from surepick.core.run import Decision, Measure
from surepick.design.counts import largest_remainders
from surepick.design.grid import PRIORITY_BITS, rounded
from surepick.design.play_allocation import PlayAllocation, covering_plays, play_allocation
from surepick.inference.noise import Noise
from surepick.policies.betting.batch import Batch
from surepick.policies.betting.batch_design import NEED_SMOOTHING
from surepick.policies.betting.batch_run import BatchRun
from surepick.policies.betting.estimates import Readings
from surepick.policies.betting.question import Pace, Targets
from surepick.policies.oracles.oracle_best import OracleBest

_TOLERANCE, _STEPS, _CALLS = 0.02, 40, 4  # of the shares of a batch
_MOST_PLANS = 200  # that are kept from batch to batch
_IN_USE = 1e-4  # of the largest share: plans with less are the first to be forgotten


_PACE = Pace()  # of batches


@dataclass(eq=False)
class PlanBatch(Batch):
    """A batch of uses of whole plans; `uses` and `missing` count readings of arms. Changed by `add`."""

    plans: Plays = field(kw_only=True)  # of each replicate
    n_made: int = 0  # uses of plans in the open replicate

    def _next_plans(self, max_batch: int | None) -> Plays:
        """Return the plans that the open replicate lacks, at most `max_batch` of them."""
        left = self.plans.without(self.plans.first(self.n_made))
        return left if max_batch is None else left.first(max_batch)

    def next_measure(self, max_batch: int | None) -> Measure:
        """Return the next plans."""
        plans = self._next_plans(max_batch)
        return Measure(plans.counts, plans)

    def add(self, counts: IntArray, sums: FloatArray, removed: IntArray) -> None:
        """Add the readings of the next plans; their number says how many plans these are."""
        super().add(counts, sums, removed)
        left = self._next_plans(None)
        sizes = np.repeat(left.plans.sum(axis=1), left.uses)
        self.n_made += int(np.searchsorted(np.cumsum(sizes), (counts + removed).sum())) + 1
        self.n_made %= self.plans.n_uses

    @property
    def n_measurements(self) -> int:
        """Uses of plans in the whole batch."""
        return self.plans.n_uses * self.n_replicates

    @property
    def n_missing(self) -> int:
        """Uses of plans that are still to come."""
        return self.plans.n_uses * int(self.missing.any(axis=1).sum()) - self.n_made


class PlanDesign:
    """Which plans a batch measures, and how often; kept from batch to batch as a warm start."""

    STATE: ClassVar[tuple[str, ...]] = ("plans", "shares", "first_cover")

    def __init__(self, question: OracleBest, relevant: BoolArray, readings: Readings) -> None:
        self._question, self._find, self.readings = question, question.find_plan(), readings
        start = PlayAllocation.uniform(covering_plays(self._find, relevant, np.zeros(len(relevant))))
        self.plans, self.shares = start.plays, start.shares
        self.dual = np.zeros(0)  # of the rivals of the last batch
        self.first_cover = relevant  # the arms that a first batch reads
        self.chosen = Plays(self.plans[:0], np.zeros(0, dtype=np.int64))  # by the last of the methods below

    def take(self, plans: Plays) -> IntArray:
        """Choose these plans; return how often they read each arm."""
        self.chosen = plans
        return plans.counts

    def start_from(self, spent: FloatArray, more: Mapping[str, Any]) -> None:
        """Let the next design start nearer to the plans of a batch."""
        del spent
        used = _plans_of(more["plans"], len(self.first_cover))
        rows = np.vstack([used.plans, self.plans])
        plans, where = np.unique(rows, axis=0, return_inverse=True)
        shares = np.bincount(where.ravel(), np.append(used.uses / used.n_uses, self.shares)) / 2
        if len(plans) > _MOST_PLANS:  # forget those with the smallest shares
            largest = np.sort(np.argsort(-shares, kind="stable")[:_MOST_PLANS])
            largest = largest[shares[largest] > _IN_USE * shares.max()]
            plans, shares = plans[largest], shares[largest] / shares[largest].sum()
        self.plans, self.shares = plans, shares

    def more(self) -> dict[str, Any]:
        """Return the chosen plans by their arms, with how often each is measured, as JSON values."""
        return {"plans": named_plans(self.chosen)}

    def covering(self, arms: BoolArray) -> Plays:
        """Return a few plans, each once, that together read all these arms."""
        plans = covering_plays(self._find, arms, self.shares @ self.plans)
        return Plays(plans, np.ones(len(plans), dtype=np.int64))

    def first_counts(self, is_known: BoolArray, least: int) -> IntArray:
        """Choose plans that read all arms of the first batch of which nothing is known, this often."""
        once = self.covering(self.first_cover & ~is_known)
        return self.take(Plays(once.plans, least * once.uses))

    def cut(self, uses: IntArray, n_replicates: int, left: int, fewest: int) -> tuple[IntArray, int]:
        """Return the fewest plans that read all arms that matter, where the batch is more than is left."""
        del fewest
        if self.chosen.n_uses > left:
            few = self.covering(self._question.free)
            if few.n_uses <= left:
                uses = self.take(few)
        return uses, n_replicates

    def counts(self, targets: Targets, so_far: IntArray, replicates: tuple[int, int]) -> tuple[IntArray, int]:
        """Choose the plans of the next batch, which read all arms that matter."""
        del replicates
        gap2 = np.maximum(targets.gap + targets.shift, 0.0) ** 2
        variance = 1.0 / self.readings.matrix(np.ones(len(so_far)))  # of one measurement of each arm
        squares, needed = targets.contrasts.squares * variance, targets.evidence_needed
        priority = rounded(needed / (gap2 + _PACE.smoothing * targets.gap_variance), PRIORITY_BITS)
        start = PlayAllocation(self.plans, self.shares)
        found = play_allocation(
            squares * priority[:, None],
            self._find,
            start,
            tolerance=_TOLERANCE,
            most_steps=_STEPS,
            most_calls=_CALLS,
        )
        self.plans, self.shares, self.dual = found.plays, found.shares, found.dual
        each = np.maximum(self.shares @ self.plans, 1e-12)  # readings of each arm by one use
        to_go = needed / (gap2 + NEED_SMOOTHING * targets.gap_variance) * (squares @ (1 / each))
        in_share = _PACE.batch_share * int(so_far.sum()) / float(each.sum())
        wished = min(in_share, _PACE.need_share * 2 * float(to_go.max()))
        return self.take(self._in_shares(max(1, round(wished)), self._question.free)), 1

    def final_counts(
        self, targets: Targets, left: int, replicates: tuple[int, int]
    ) -> tuple[IntArray, int] | None:
        """Return at most `left` plans that read all arms that matter; None if that takes more plans."""
        del targets, replicates
        for fewer in range(left, 0, -1):
            found = self._in_shares(fewer, self._question.free)
            if found.n_uses <= left:
                return self.take(found), 1
        return None

    def _in_shares(self, n: int, must: BoolArray) -> Plays:
        """Return n plans in these shares, and more where an arm would not be read."""
        uses = largest_remainders(self.shares, n)
        plans, uses = self.plans[uses > 0], uses[uses > 0]
        more = self.covering(must & ~plans.any(axis=0))
        return Plays(np.vstack([plans, more.plans]), np.append(uses, more.uses))


class PlanProbeRun(BatchRun):
    """A run whose requests are whole plans. Counts of the run are readings of arms."""

    KINDS: ClassVar[tuple[type, ...]] = (*BatchRun.KINDS, PlanBatch, Plays)
    _question: OracleBest

    def __init__(
        self, problem: OracleProblem, policy: Any, question: OracleBest, noise: Noise | None = None
    ) -> None:
        super().__init__(problem, policy, question, noise)
        self._design = PlanDesign(question, self._design.first_cover, self._readings)

    def _opened(self, decision: Decision) -> Batch:
        plans = _plans_of(decision.more["plans"], len(self.counts))
        return PlanBatch.open(decision, len(self.sums), plans=plans)

    def objection(self, decision: Decision) -> str | None:
        """Return why no run takes this decision here: it measures plans of the oracle."""
        named, n_arms = decision.more.get("plans"), len(self.counts)
        if not isinstance(named, list) or not all(_is_named(one, n_arms) for one in named):
            return "its plans are not arms, and how often each is measured"
        plans = _plans_of(named, n_arms)
        if not np.array_equal(plans.counts, decision.uses):
            return "its plans read something else than it counts"
        if not all(self._question.is_plan(plan) for plan in plans.plans):
            return "it measures what is no plan"
        return super().objection(decision)

    def _is_called_for(self, decision: Decision, left: int) -> bool:
        return sum(n for _, n in decision.more["plans"]) <= left


def named_plans(plans: Plays) -> list[Any]:
    """Return plans as a decision names them: the arms of each, and how often it is used."""
    rows = zip(plans.plans, plans.uses.tolist(), strict=True)
    return [[np.flatnonzero(plan).tolist(), n] for plan, n in rows if n]


def _is_named(plan: Any, n_arms: int) -> bool:
    """Return whether this is a plan as a decision names it: its arms, ascending, and how often it is used."""
    if not (isinstance(plan, list) and len(plan) == 2 and isinstance(plan[0], list)):
        return False
    arms, n = plan
    numbers = [*arms, n]
    return all(type(k) is int for k in numbers) and n > 0 and arms == sorted({*arms} & {*range(n_arms)})


def _plans_of(named: list[Any], n_arms: int) -> Plays:
    """Return the plans that a decision names by their arms."""
    rows = np.zeros((len(named), n_arms))
    for row, (arms, _) in zip(rows, named, strict=True):
        row[arms] = 1.0
    return Plays(rows, np.array([n for _, n in named], dtype=np.int64))
