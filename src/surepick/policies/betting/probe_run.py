"""BetGapE where probes are measured: the same blocks, bets and wealth, with gaps by least squares.

What the proof needs is in `block_estimates` (what a block shows) and `purses` (what is bet on it); this file
decides what to measure, from the past alone. Single arms have compiled steps of their own (`blocks`), which
this code agrees with in what it does, not to the bit.

Cost of a block: quadratic forms of the rivals that are left, and a division of cost over the probes in play.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from surepick.core.arrays import BoolArray, FloatArray, IntArray, as_dense
from surepick.core.evidence import Evidence
from surepick.core.probes import Probes
from surepick.core.problem import Problem
from surepick.core.run import Measure, Standing, Stop
from surepick.design.probe_allocation import Effort, ProbeAllocation, probe_allocation
from surepick.policies.betting.block_estimates import Estimator, estimator_for
from surepick.policies.betting.block_run import Block, BlockPolicy, BlockRun
from surepick.policies.betting.covers import cover, fill
from surepick.policies.betting.purses import Purses, Settled
from surepick.policies.betting.steady import Steady, on_grid, rounded, steady_estimator
from surepick.policies.betting.tuning import TUNING, block_cost, first_uses

_WORKING_SET = 256  # rivals that a division looks at
_EFFORT, _FIRST_EFFORT = Effort(0.02, 40), Effort(0.05, 60)  # of a division, and of that of the first block
# the same for `Steady`: tolerance, steps, and when all probes are seen
_STEPS, _FIRST_STEPS = (0.02, 20, 10), (0.05, 60, 10)
_FEWEST_STEPS, _FLAT_STEPS = 4, 800  # fewer where a step is expensive: this over the rank
_BITS, _SHARE_BITS, _VALUE_BITS = 10, 16, 36  # that are looked at, of what other machines compute otherwise
_WARMTH = 0.9  # of the start of a division from the last one
_BINDING = 1e-3  # of the largest weight: targets that rounding looks at
_LEAST_DEFICIT = 0.1  # nats: a rival about to be dropped still counts a little
_NOMINATIONS = 64  # leads whose nomination is remembered; a forgotten one counts as new


class ProbePolicy(BlockPolicy, Protocol):
    """What a run on probes needs to know of its policy."""

    @property
    def delta(self) -> float:
        """The allowed probability of a wrong answer."""
        ...

    @property
    def epsilon(self) -> float:
        """How much worse than the best the answer may be."""
        ...


@dataclass(frozen=True, eq=False)
class Bets:
    """What is bet in the open block, fixed before it is measured: that the lead is better than each rival."""

    lead: int
    rivals: IntArray
    centre: FloatArray  # of the mixture over gaps; no bet where it is negative
    prior: FloatArray  # variance of the mixture
    unit: FloatArray  # of the ladder's rungs

    @property
    def parts(self) -> list[Any]:
        """As arrays and numbers."""
        return [self.lead, self.rivals, self.centre, self.prior, self.unit]


class ProbeRun(BlockRun[Bets]):
    """A run of BetGapE on probes: wealth per plan, a block at a time; changed by whoever started it.

    With `even` every probe is used equally often, for comparison; the bets are the same.
    """

    _covers = 2.0  # that a block costs at least where readings mix arms: short ones interpolate
    _batches = 1  # that a block is asked for in

    def __init__(
        self, problem: Problem, policy: ProbePolicy, probes: Probes | None = None, *, even: bool = False
    ) -> None:
        probes = problem.probes if probes is None else probes
        assert probes is not None
        none = Evidence.none_of(problem)
        super().__init__(policy, np.zeros(len(probes), dtype=bool), none)
        self._probes, self._even, self._policy = probes, even, policy
        self._costs = probes.costs.copy()  # compiled code is called sooner with what could be written to
        self._setup_cost = problem.setup_cost
        dense = as_dense(problem.oriented)
        self._estimator = self._estimator_for(probes, dense)
        information = self._information = self._estimator.information
        self._plans = information.coordinates(dense - dense.mean(axis=0))
        n_plans = problem.n_plans
        self._purses = Purses(n_plans, policy.delta, policy.epsilon)
        self._distrust = TUNING.selection * math.log(n_plans)
        priced = np.ptp(probes.costs) > 0
        self._smoothing = TUNING.smoothing_with_costs if priced else TUNING.smoothing
        some = self._plans[:: max(1, n_plans // _WORKING_SET)]
        some = some[np.abs(some).max(axis=1) > 0]
        self._shares = self._even_shares() if even else self._first_shares(some)
        self._dual = np.zeros(n_plans)
        self._once = cover(information, self._shares, self._costs, self._plans[0] - self._plans[1:])
        first = self._counts_of_first()
        self._first = information.matrix(first.astype(float))  # gives the ladder its unit
        self._matrix, self._vector = np.zeros_like(self._first), np.zeros(self._plans.shape[1])
        self._means = self._vector
        self._largest = 0.0  # whitened average of the past, by size
        self._lead, self._unit = -1, np.zeros(n_plans)
        self._nominated: dict[int, FloatArray] = {}  # M when each lead was nominated, the last used last
        self._is_stopped = False

    def _estimator_for(self, probes: Probes, plans: FloatArray) -> Estimator:
        """Return how gaps are estimated from blocks, a function of the problem alone."""
        return estimator_for(probes) if probes.is_diagonal else steady_estimator(probes, plans)

    def _first_shares(self, targets: FloatArray) -> FloatArray:
        """Of cost, before anything is known."""
        if isinstance(self._information, Steady):
            n, m = len(self._probes), len(targets)
            start = np.full(n, 1.0 / n), np.full(m, 1.0 / m)
            return self._information.divided(targets, self._costs, start, _FIRST_STEPS)[0]
        shares = probe_allocation(self._information, targets, self._costs, _FIRST_EFFORT).shares
        return on_grid(shares, _SHARE_BITS)

    def _even_shares(self) -> FloatArray:
        return np.asarray(self._costs / self._costs.sum())

    def _counts_of_first(self) -> IntArray:
        counts = np.ones(len(self._probes)) if self._even else self._once
        return counts.astype(np.int64)

    def decide(self, rng: np.random.Generator | None = None) -> Measure | Stop:
        """The next part of the block, or the lead when no rival is left."""
        del rng  # nothing is drawn
        if self._block is None and self._lead < 0:
            once = self._counts_of_first()
            uses = first_uses(self._batches * float(once @ self._costs), self._batches * self._setup_cost)
            self._block = self._new_block(uses * once, None)
        if self._block is None and not self._is_stopped:
            self._open()
        if self._block is None:
            return Stop(self._lead)
        return Measure(self._block.next_request(self._policy.max_batch))

    def _open(self) -> None:
        """The bets and counts of the next block, from the past alone; or the stop, when no rival is left."""
        lead, purses = self._lead, self._purses
        left = purses.peaks_for(lead) < purses.target
        left[lead] = False
        rivals = np.flatnonzero(left)
        if not rivals.size:
            self._is_stopped = True
            return
        away = self._plans[lead] - self._plans[rivals]
        gap, spread = away @ self._means, self._estimator.spread(self._matrix, away)
        if not purses.epsilon or (gap + purses.epsilon >= TUNING.ripe * np.sqrt(spread)).all():
            purses.put_stakes(lead, self._evidence.n_measurements)
        fresh = self._estimator.spread(self._matrix - self._nomination(lead), away)
        old = 1.0 - np.clip(spread / fresh, 0.0, 1.0)
        centre = gap - (self._distrust * np.sqrt(old) + TUNING.caution) * np.sqrt(spread)
        bets = Bets(lead, rivals, centre, spread, self._unit[rivals])
        counts = self._count(rivals, away, gap + purses.epsilon, spread)
        self._block = self._new_block(counts, bets)

    def _new_block(self, counts: IntArray, bets: Bets | None) -> Block[Bets]:
        return Block(counts, bets, len(self._none.sums))

    def _count(self, rivals: IntArray, away: FloatArray, gap: FloatArray, spread: FloatArray) -> IntArray:
        """Whole counts of the block: divided for the rivals that are worst off, and showing every gap."""
        purses, costs = self._purses, self._costs
        deficit = np.clip(purses.target - purses.now[rivals], _LEAST_DEFICIT, 2 * purses.target)
        ahead = np.maximum(gap, 0.0) ** 2
        urgency = rounded(deficit / (ahead + self._smoothing * spread), _BITS)
        targets, dual = self._divide(rivals, away, urgency)
        price = self._estimator.spread(self._information.matrix(self._shares / costs), away)
        need = 2.0 * float((deficit / (ahead + TUNING.need_smoothing * spread) * price).max())
        span = cover(self._information, self._shares, costs, away)
        spent = float(self._evidence.counts @ costs)
        wished = min(TUNING.block_share * spent, TUNING.need_share * need)
        wished = block_cost(wished, need, self._batches * self._setup_cost)
        wished = float(rounded(wished, _BITS))
        budget = self._budget(
            float(costs[span].sum()) * (self._covers if isinstance(self._information, Steady) else 1.0),
            wished,
        )
        if self._even:
            return np.full(len(costs), max(1, round(budget / float(costs.sum()))), dtype=np.int64)
        if isinstance(self._information, Steady):
            keep = dual > _BINDING * dual.max()
            weighted = targets[keep] * np.sqrt(dual[keep])[:, None]
            counts = fill(self._information, self._shares, costs, weighted, budget)
            span = cover(self._information, counts * costs / budget + 1e-6 * self._shares, costs, away)
        else:
            counts = np.rint(self._shares * budget / costs).astype(np.int64)
        counts = np.where(span, np.maximum(counts, 1), counts)
        side = self._once & (counts == 0)
        counts[side] = np.floor(TUNING.side_share * budget / (costs[side] * self._once.sum()))
        return counts

    def _budget(self, least: float, wished: float) -> float:
        """What a block, or each of its equal parts, costs: as much as wished, and at least this."""
        return max(least, wished)

    def _divide(
        self, rivals: IntArray, away: FloatArray, urgency: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """New shares of cost; the targets they were found for, and how much each binds."""
        worst = np.arange(len(rivals))
        if len(rivals) > _WORKING_SET:
            price = self._estimator.spread(self._information.matrix(self._shares / self._costs), away)
            worth = rounded(urgency * price, _BITS)
            worst = np.sort(np.argsort(-worth, kind="stable")[:_WORKING_SET])
        targets = away[worst] * np.sqrt(urgency[worst])[:, None]
        if self._even:
            self._shares = self._even_shares()
            return targets, np.full(len(targets), 1.0 / len(targets))
        dual = self._dual[rivals[worst]]
        dual = dual / dual.sum() if dual.sum() > 0 else np.full(len(worst), 1.0 / len(worst))
        self._shares, dual = self._divided(targets, dual)
        self._dual[:] = 0.0
        self._dual[rivals[worst]] = dual
        return targets, dual

    def _divided(self, targets: FloatArray, dual: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Shares of cost for these targets, and how much each binds, from the last ones on."""
        information, n = self._information, len(self._probes)
        if isinstance(information, Steady):
            steps = min(_STEPS[1], max(_FEWEST_STEPS, _FLAT_STEPS // targets.shape[1]))
            shares = _WARMTH * self._shares + (1 - _WARMTH) / n  # other targets may need what had no share
            dual = _WARMTH * dual + (1 - _WARMTH) / len(dual)
            effort = _STEPS[0], steps, _STEPS[2]
            return information.divided(targets, self._costs, (shares, dual), effort)
        start = ProbeAllocation(self._shares, dual, np.inf, 0.0, 0)
        found = probe_allocation(information, targets, self._costs, _EFFORT, start=start)
        return on_grid(found.shares, _SHARE_BITS), on_grid(found.dual, _SHARE_BITS)

    def _settle(self, bets: Bets, seen: Evidence) -> None:
        """Multiply every stake by its bet's factor, a function of what this block alone has shown."""
        self._settle_shown(bets, seen.counts, np.nan_to_num(seen.means))

    def _settle_shown(self, bets: Bets, counts: IntArray, averages: FloatArray) -> None:
        """Settle by these averages of the readings, (n_readings,), or of each of the parts, one a column."""
        rivals, purses = bets.rivals, self._purses
        away = self._plans[bets.lead] - self._plans[rivals]
        shown = self._estimator.show(away, counts, self._probes.whiten(averages), self._largest)
        ok = shown.counts & self._varies(shown.gap, away)
        settled = Settled(
            plans=rivals[ok],
            gap=(shown.gap.T - shown.bias).T[ok],
            spread=shown.variance[ok],
            centre=bets.centre[ok],
            prior=bets.prior[ok],
            unit=bets.unit[ok],
        )
        purses.settle(settled)
        if purses.epsilon:
            purses.settle_piece(bets.lead, settled)
        purses.count(settled.plans, bets.lead)
        if len(rivals) == 1 and ok.all():  # bet against the lead too: if it is not best, this rival may be
            lead = np.array([bets.lead])
            against = settled._replace(plans=lead, gap=-(shown.gap.T + shown.bias).T, centre=np.zeros(1))
            purses.settle(against)
            purses.count(lead, bets.lead)

    def _varies(self, gap: FloatArray, away: FloatArray) -> BoolArray:
        """Return which gaps can be bet on by what the block shows of them; here all."""
        del away
        return np.ones(len(gap), dtype=bool)

    @property
    def _is_started(self) -> bool:
        """Whether something was measured of all that the first block has."""
        return bool((self._evidence.counts[self._once] > 0).all())

    def _remember(self, seen: Evidence) -> None:
        """Pool what was seen with the past, as information too; then choose the lead."""
        new = seen + self._waiting
        self._matrix = self._matrix + self._information.matrix(new.counts.astype(float))
        self._vector = self._vector + self._estimator.vector(self._probes.whiten(new.sums))
        super()._remember(seen)

    def _choose_lead(self) -> None:
        """The plan that looks best now, ruled out or not: a lead that was dropped by bad luck must lead."""
        self._is_stopped = False
        averages = self._probes.whiten(np.nan_to_num(self._evidence.means))
        self._largest = float(np.abs(averages).max())
        self._means = self._estimator.means(self._matrix, self._vector)
        values = self._plans @ self._means
        best = int(np.argmax(on_grid(values, _VALUE_BITS)))
        if best == self._lead or (self._purses.epsilon and self._lead >= 0 and self._stays(best)):
            return
        self._lead = best
        away = self._plans[best] - self._plans
        away[best] = 0.0
        self._unit = np.sqrt(np.maximum(self._estimator.spread(self._first, away), 1e-300))
        self._nomination(best)
        if self._purses.epsilon:
            self._purses.next_stake = 0.0  # its piece is empty: a stake as soon as it is ripe
            self._purses.count(np.arange(len(self._plans)), best)

    def _stays(self, best: int) -> bool:
        """With epsilon, whether a lead this far behind the best-looking plan is not worth changing."""
        purses = self._purses
        away = (self._plans[best] - self._plans[self._lead])[None]
        behind, spread = float((away @ self._means)[0]), float(self._estimator.spread(self._matrix, away)[0])
        room = 1.0 - behind / purses.epsilon
        deficit = max(purses.target - float(purses.now[best]), 0.0) / (purses.target + TUNING.new_lead)
        return behind <= TUNING.keep_gap * math.sqrt(spread) or (room > 0.0 and room * room >= deficit)

    def _nomination(self, lead: int) -> FloatArray:
        """M when this lead was nominated first, which is now for a new one."""
        known = self._nominated.pop(lead, None)
        if len(self._nominated) >= _NOMINATIONS:
            del self._nominated[next(iter(self._nominated))]
        self._nominated[lead] = self._mark() if known is None else known
        return self._nominated[lead]

    def _mark(self) -> FloatArray:
        """What is kept of a nomination: M."""
        return self._matrix

    def standing(self) -> Standing:
        """The lead, the rival with the least wealth against it, and the risk of declaring the lead now."""
        lead, purses = self._lead, self._purses
        if lead < 0:
            return Standing()
        peak = purses.peaks_for(lead)
        peak[lead] = -np.inf  # it stays, whatever was bet against it
        remaining = tuple(np.flatnonzero(peak < purses.target).tolist())
        peak[lead] = np.inf
        rival = int(np.argmin(peak))
        away = (self._plans[lead] - self._plans[rival])[None]
        gap, spread = float((away @ self._means)[0]), float(self._estimator.spread(self._matrix, away)[0])
        radius = math.sqrt(2 * spread * purses.target)
        risk = min(1.0, math.exp(-float(peak[rival])))
        return Standing(lead, rival, gap, radius, risk, remaining, self._good())

    def log_evidence(self) -> FloatArray:
        """The largest log wealth so far in bets against each plan, as a rival of the current lead."""
        return self._purses.peaks_for(self._lead)

    def _good(self) -> tuple[int, ...]:
        """The leads, now or earlier, all of whose rivals are ruled out: within epsilon of the best."""
        leads = sorted({self._lead, *self._purses.old_leads})
        return tuple(lead for lead in leads if self._is_good(lead))

    def _is_good(self, lead: int) -> bool:
        peak = self._purses.peaks_for(lead)
        peak[lead] = np.inf
        return bool(peak.min() >= self._purses.target)

    def state(self) -> dict[str, Any]:
        """All that a fresh run needs to become this one, as arrays and numbers."""
        block = self._block
        return self._measured_state() | {
            "bets": [] if block is None or block.bets is None else block.bets.parts,
            "purses": self._purses.state(),
            "past": [self._matrix, self._vector, self._means, self._largest],
            "lead": [self._lead, self._unit, self._is_stopped],
            "nominated": [[lead, matrix] for lead, matrix in self._nominated.items()],
            "division": [self._shares, self._dual],
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Become the run whose state this is."""
        bets = Bets(*state["bets"]) if state["bets"] else None
        self._restore_measured(state, bets)
        self._purses.restore(state["purses"])
        self._matrix, self._vector, self._means, self._largest = state["past"]
        self._lead, self._unit, self._is_stopped = state["lead"]
        self._nominated = {int(lead): matrix for lead, matrix in state["nominated"]}
        self._shares, self._dual = state["division"][0], state["division"][1].copy()
