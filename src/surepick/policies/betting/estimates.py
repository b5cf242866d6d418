"""What measurements say of gaps: all of them, for planning, and those of one batch, to settle its bets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from surepick.core.arrays import BoolArray, FloatArray, IntArray
from surepick.inference.bounded import BatchReadings
from surepick.inference.contrasts import Contrasts, DenseReadings, DiagonalReadings, show
from surepick.inference.factors import Factor
from surepick.inference.learned_scale import Scatter

Readings = DiagonalReadings | DenseReadings
_ROUNDING = 1e-12  # of a gap: replicates that differ by less are equal


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

    def old_part(self, since: IntArray, contrasts: Contrasts, gap_variance: FloatArray) -> FloatArray:
        """Return the part of each estimated gap, by information, that was measured before these counts."""
        fresh = self.readings.gap_variance(self.readings.matrix(self.counts - since), contrasts)
        return np.asarray(1.0 - np.minimum(gap_variance / fresh, 1.0))

    def arm_variance(self) -> FloatArray:
        """Return the variance of each arm's mean, where arms are measured one by one; infinite before."""
        nothing = np.full(len(self.matrix), np.inf)
        return np.divide(1.0, self.matrix, out=nothing, where=self.matrix > 0)

    def unit(self, contrasts: Contrasts) -> FloatArray:
        """Return the standard deviation of each gap after a first batch: the unit of bet sizes."""
        return np.sqrt(np.maximum(self.readings.gap_variance(self.first, contrasts), 1e-300))


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
    scatter: Scatter | None = None  # Gaussian readings, whose scale is learned

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
