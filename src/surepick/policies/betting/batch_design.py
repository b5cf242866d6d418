"""How the next batch is divided over the probes, and how long it is. Nothing here bears on the guarantee.

The shares of cost nearly minimise the largest cost that a rival still seems to need: contrasts are weighted
by their priority, evidence_needed / gap^2, with estimated gaps smoothed by their errors. Then come a cover,
which shows every contrast at all, the length of the batch, and whole counts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from surepick.core.arrays import BoolArray, FloatArray, IntArray
from surepick.design.counts import cover, cut, mixed_counts, round_allocation
from surepick.design.grid import PRIORITY_BITS, SHARE_BITS, on_grid, rounded
from surepick.design.information import Dense
from surepick.design.minimax import minimax, own_arm_shares
from surepick.inference.contrasts import Contrasts
from surepick.policies.betting.estimates import Readings
from surepick.policies.betting.question import Pace, Targets

WORKING_SET = 256  # targets that a design looks at
FEW_RIVALS = 64  # with more that have an arm each the allocation is found in closed form
SMOOTHING_WITH_COSTS = 4.0  # the most where costs differ (see `Pace`)
NEED_SMOOTHING = 4.0  # squared errors added to squared gaps in the cost that still seems to be needed
SIDE_SHARE = 0.02  # of a batch for probes that no rival needs now
_LEAST_SHARE = 1e-3  # over the number of probes: the floor of shares in the price of a contrast
_BINDING = 1e-3  # of the largest dual: targets that rounding looks at
_STEPS = 40  # of a design on single arms
_MIXED_STEPS, _FEWEST_STEPS, _FLAT_STEPS = 20, 4, 800  # where readings mix arms; fewer at a large rank


def batch_cost(wished: float, need: float, setup_cost: float) -> float:
    """Return the cost of a batch, longer than wished if each batch also costs a set-up.

    Batches of cost L need need / L set-ups, and overshoot the end by L / 2 on average. The sum,
    setup_cost need / L + L / 2, is least at L = sqrt(2 need setup_cost). Set-ups never lengthen a batch
    beyond the cost that still seems to be needed.

    >>> batch_cost(10.0, 400.0, 0.0), batch_cost(10.0, 400.0, 50.0), batch_cost(10.0, 40.0, 500.0)
    (10.0, 200.0, 40.0)
    """
    return max(wished, min(math.sqrt(2.0 * need * setup_cost), need))


class BatchDesign:
    """The share of the cost that each probe gets, from which the design of the next batch starts.

    It is an average over the recorded batches. `counts` improves it and finds the weights of the targets (the
    dual). A run calls it on a copy, and updates `readings` as it learns the noise.
    """

    STATE: ClassVar[tuple[str, ...]] = ("shares", "first_cover", "n_batches")

    def __init__(self, readings: Readings, setup_cost: float, pace: Pace) -> None:
        n = len(readings.costs)
        self.readings = readings
        self._setup_cost = setup_cost
        self._pace = pace
        self.shares = np.full(n, 1.0 / n)
        self.dual = np.zeros(0)  # (n_targets,) how much each target binds the counts
        self.first_cover = np.ones(n, dtype=bool)  # the probes of the first batch
        self.n_batches = 0  # that `start_from` has seen

    def begin(self, targets: FloatArray, contrasts: Contrasts) -> None:
        """Choose the probes of the first batch, which must show all these contrasts."""
        self.shares = self._minimax(targets, steps=60, tolerance=0.05)[0]
        self.first_cover = self._cover(self.shares, contrasts)

    def start_from(self, spent: FloatArray, more: Mapping[str, Any]) -> None:
        """Let the next design start nearer to a batch that spent this much on each probe."""
        if spent.any():
            new = 1.0 if "shares" in more else 0.5
            share = np.array(more.get("shares", spent), dtype=float)
            self.shares = on_grid((1 - new) * self.shares + new * share / share.sum(), SHARE_BITS)
        self.n_batches += 1

    def more(self) -> dict[str, Any]:
        """Return the shares that a batch records, as JSON values, if they are renewed in small steps.

        Its whole counts would be too coarse to recover them.
        """
        if self._pace.renewal == 1.0:
            return {}
        return {"shares": np.rint(self.shares * 2.0**SHARE_BITS).astype(np.int64).tolist()}

    def extend(self, readings: Readings, contrasts: Contrasts) -> None:
        """Continue with these probes, the old ones first; a first batch shows these contrasts too."""
        n = len(readings.costs) - len(self.shares)
        self.readings = readings
        self.shares = np.append(self.shares, np.zeros(n))
        first_cover = np.append(self.first_cover, np.zeros(n, dtype=bool))
        self.first_cover = first_cover | self._cover(self.shares, contrasts)

    def first_counts(self, is_known: BoolArray, least: int) -> IntArray:
        """Return equal uses of the probes of the first batch of which nothing is known.

        They cost about a quarter of a set-up, and each probe is used at least this often.
        """
        once = np.where(is_known, 0, self.first_cover).astype(np.int64)
        cost = float(once @ self.readings.costs)
        return max(least, round(0.25 * self._setup_cost / cost)) * once if cost > 0 else once

    def cut(self, uses: IntArray, n_replicates: int, left: int, fewest: int) -> tuple[IntArray, int]:
        """Return uses and replicates of a batch that is cut to what a budget leaves."""
        if left >= int(uses.sum()) * n_replicates:
            return uses, n_replicates
        each = left // max(int(np.count_nonzero(uses)), 1)
        n_replicates = max(fewest, min(n_replicates, each))
        return cut(uses, left // n_replicates), n_replicates

    def counts(self, targets: Targets, so_far: IntArray, replicates: tuple[int, int]) -> tuple[IntArray, int]:
        """Return the uses of each probe in one replicate of the next batch, and the number of replicates."""
        weighted, dual = self._improve(targets)
        spent = float(so_far @ self.readings.costs)
        budget, n_replicates, span = self._length(targets, spent, replicates)
        readings = self.readings
        costs = readings.costs
        if isinstance(readings, Dense):
            binding = dual > _BINDING * dual.max()
            pull = weighted[binding] * np.sqrt(dual[binding])[:, None]
            counts = mixed_counts(readings, self.shares, costs, pull, budget)
            span = self._cover(
                on_grid(counts * costs / budget + 1e-6 * self.shares, SHARE_BITS), targets.contrasts
            )
        else:
            counts = np.rint(self.shares * budget / costs)
            if readings.is_single:
                counts[~span] = 0
        counts[span] = np.maximum(counts[span], 1)
        idle = self.first_cover & (counts == 0)
        counts[idle] = np.floor(SIDE_SHARE * budget / (costs[idle] * self.first_cover.sum()))
        return counts.astype(np.int64), n_replicates

    def _improve(self, targets: Targets) -> tuple[FloatArray, FloatArray]:
        """Improve the shares for the targets that need most; return their weighted contrasts and their dual.

        Both are empty if the shares for all targets are known in closed form.
        """
        readings = self.readings
        contrasts = targets.contrasts
        gap2 = np.maximum(targets.gap + targets.shift, 0.0) ** 2
        priced = np.ptp(readings.costs[self.first_cover]) > 0
        smoothing = min(self._pace.smoothing, SMOOTHING_WITH_COSTS if priced else np.inf)
        priority = rounded(targets.evidence_needed / (gap2 + smoothing * targets.gap_variance), PRIORITY_BITS)
        if len(contrasts) > FEW_RIVALS and not isinstance(readings, Dense) and readings.is_single:
            # the variance of one measurement times its price, by arm
            price = np.zeros(contrasts.rows.shape[1])
            price[readings.arm] = readings.costs / readings.precision
            found = own_arm_shares(contrasts.squares, priority, price)
            if found is not None:  # all targets at once, in closed form
                by_arm, self.dual = found
                self.shares = on_grid(by_arm[readings.arm], SHARE_BITS)
                return np.zeros((0, 0)), np.zeros(0)
        worst = np.arange(len(contrasts))
        if len(contrasts) > WORKING_SET:
            needs = rounded(priority * self._price(contrasts), PRIORITY_BITS)
            worst = np.sort(np.argsort(-needs, kind="stable")[:WORKING_SET])
            contrasts = contrasts.take(worst)
        weighted = contrasts.dense() * np.sqrt(priority[worst])[:, None]
        steps = _STEPS
        if isinstance(readings, Dense):  # from the shares of the last batch a few are enough
            steps = min(_MIXED_STEPS, max(_FEWEST_STEPS, _FLAT_STEPS // weighted.shape[1]))
        shares, dual = self._minimax(weighted, steps=steps)
        new = self._pace.renewal if self.n_batches else 1.0
        self.shares = shares if new == 1.0 else (1.0 - new) * self.shares + new * shares
        self.dual = np.zeros(len(priority))
        self.dual[worst] = dual
        return weighted, dual

    def _minimax(
        self, targets: FloatArray, *, steps: int, tolerance: float = 0.02
    ) -> tuple[FloatArray, FloatArray]:
        """Return shares and dual that nearly minimise the largest variance of these weighted contrasts."""
        found = minimax(
            self.readings,
            targets,
            self.readings.costs,
            tolerance=tolerance,
            most_steps=steps,
            start=self.shares,
        )
        return on_grid(found.shares, SHARE_BITS), on_grid(found.dual, SHARE_BITS)

    def _cover(self, shares: FloatArray, contrasts: Contrasts) -> BoolArray:
        """Return probes, preferably those of large shares, whose readings determine these contrasts."""
        dense = contrasts.dense() if isinstance(self.readings, Dense) else None
        return cover(self.readings, shares, self.readings.costs, dense, contrasts.support())

    def _price(self, contrasts: Contrasts) -> FloatArray:
        """Return the variance of each contrast after a batch of cost 1 with these shares."""
        readings = self.readings
        shares = self.shares
        if readings.is_single:
            shares = np.maximum(shares, _LEAST_SHARE / len(shares))
        return readings.gap_variance(readings.matrix(shares / readings.costs), contrasts)

    def _length(
        self, targets: Targets, spent: float, replicates: tuple[int, int]
    ) -> tuple[float, int, BoolArray]:
        """Return the cost of one replicate, the number of replicates, and the probes that each must use."""
        # the cost that still seems to be needed, by the rival that is worst off
        gap2 = np.maximum(targets.gap + targets.shift, 0.0) ** 2
        smoothed = gap2 + NEED_SMOOTHING * targets.gap_variance
        need = 2.0 * float((targets.evidence_needed / smoothed * self._price(targets.contrasts)).max())
        fewest, most = replicates
        most = fewest if self._setup_cost else most  # every replicate is a request, and pays a set-up
        wished = min(self._pace.batch_share * spent, self._pace.need_share * need)
        wished = float(rounded(batch_cost(wished, need, fewest * self._setup_cost), PRIORITY_BITS))
        span = self._must_use(targets)
        # least squares on as many readings as unknowns interpolates: batches of mixed readings are longer
        covers = 2.0 if isinstance(self.readings, Dense) and replicates[1] == 1 else 1.0
        budget = max(covers * float(self.readings.costs[span].sum()), wished / most)
        return budget, int(np.clip(round(wished / budget), fewest, most)), span

    def _must_use(self, targets: Targets) -> BoolArray:
        """Return the probes that a batch must use to show these contrasts."""
        return self.first_cover if self._pace.uses_all else self._cover(self.shares, targets.contrasts)

    def final_counts(
        self, targets: Targets, left: int, replicates: tuple[int, int]
    ) -> tuple[IntArray, int] | None:
        """Return the uses of each probe in one replicate of a final batch, and the number of replicates.

        The uses are in proportion to the shares, and each probe that the targets need is used at least once.
        If a replicate has too few uses for that, the probes with the largest shares are used once each.

        - left: the measurements that are left for the whole batch.
        - replicates: the fewest and the most replicates. Returns None if `left` is below the fewest.
        """
        must_use = self._must_use(targets)
        n_must = int(must_use.sum())
        n_replicates = int(np.clip(left // max(n_must, 1), *replicates))
        n_uses = left // n_replicates
        if not n_uses:
            return None
        # above 0, because rounding gives a use to every probe with a positive share
        ideal = np.where(must_use, np.maximum(self.shares, 1e-9) / self.readings.costs, 0.0)
        if n_uses >= n_must:
            return round_allocation(ideal, n_uses), n_replicates
        counts = np.zeros(len(ideal), dtype=np.int64)
        counts[np.argsort(-ideal, kind="stable")[:n_uses]] = 1
        return counts, n_replicates
