"""A batch that is being measured: what it asks for, what has come, and what its bets are settled by."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from surepick.core.arrays import FloatArray, IntArray, first_few
from surepick.core.run import Decision, Measure


@dataclass(eq=False)
class Batch:
    """The measurements of one batch, fixed before the first of them. Changed by `add` and `keep`."""

    decision: Decision
    uses: IntArray  # (n_probes,) of one replicate
    missing: IntArray  # (n_replicates, n_probes)
    removed: IntArray  # (n_replicates, n_probes) uses whose values were removed: no measurements
    sums: FloatArray  # (n_replicates, n_readings)
    lost: FloatArray  # (n_replicates, n_readings) by rounding, in adding up requests
    values: dict[int, FloatArray] = field(default_factory=dict)  # (n, m) bounded readings, by probe

    @classmethod
    def open(cls, decision: Decision, n_readings: int, **more: Any) -> Self:
        """Return the batch of this decision, of which nothing has been measured."""
        missing = np.tile(decision.uses, (decision.n_replicates, 1))
        zeros = np.zeros((decision.n_replicates, n_readings))
        return cls(decision, decision.uses, missing, np.zeros_like(missing), zeros, zeros.copy(), **more)

    @property
    def n_replicates(self) -> int:
        """Into how many equal parts the batch is divided."""
        return len(self.missing)

    @property
    def counts(self) -> IntArray:
        """Uses of each probe in the whole batch."""
        return self.uses * self.n_replicates

    @property
    def n_measurements(self) -> int:
        """Measurements of the whole batch."""
        return int(self.counts.sum())

    @property
    def n_missing(self) -> int:
        """Measurements that are still to come."""
        return int(self.missing.sum())

    @property
    def is_complete(self) -> bool:
        """Whether everything was measured."""
        return not self.missing.any()

    def _open_replicate(self) -> int:
        return int(np.argmax(self.missing.any(axis=1)))

    def next_measure(self, max_batch: int | None) -> Measure:
        """Return a request for what the first incomplete replicate lacks, lowest probes first."""
        missing = self.missing[self._open_replicate()]
        return Measure(missing.copy() if max_batch is None else first_few(missing, max_batch))

    def add(self, counts: IntArray, sums: FloatArray, removed: IntArray) -> None:
        """Add the measurements of a request (compensated summation after Neumaier)."""
        k = self._open_replicate()
        before, total = self.sums[k], self.sums[k] + sums
        larger, smaller = np.where(np.abs(before) >= np.abs(sums), (before, sums), (sums, before))
        self.lost[k] += (larger - total) + smaller
        self.sums[k] = total
        self.missing[k] -= counts + removed
        self.removed[k] += removed

    def keep(self, probe: int, values: FloatArray) -> None:
        """Keep single readings of a probe, (n_uses, n_readings): bets on bounded readings need each value."""
        kept = self.values.get(probe)
        self.values[probe] = values if kept is None else np.vstack([kept, values])

    def without_removed(self, *, replicates: bool) -> Batch | None:
        """Return the batch as its bets are settled; None if it counts for nothing.

        A removed value was no measurement: the counts are lower, and where none is left nothing is shown.
        Replicates are equal, so that one with a removed value is dropped, and two at least are needed.
        """
        if not self.removed.any():
            return self
        whole = ~self.removed.any(axis=1) if replicates else np.ones(1, dtype=bool)
        if replicates and whole.sum() < 2:
            return None
        uses = self.uses if replicates else self.uses - self.removed[0]
        if not uses.any():
            return None
        by_replicate = ("missing", "removed", "sums", "lost")
        return replace(self, uses=uses, **{name: getattr(self, name)[whole] for name in by_replicate})

    def averages(self, owner: IntArray) -> FloatArray:
        """Return the averages of readings, (n_readings, n_replicates); 0 where a probe was not used."""
        return np.asarray(((self.sums + self.lost) / np.maximum(self.uses[owner], 1)).T)


@dataclass(eq=False)
class FinalBatch:
    """A call for a final batch: after it the run stops. Changed by the run."""

    left: int  # measurements still to come, the rest of an open batch included
    gaussian: bool  # whether the noise is known to be Gaussian
    is_over: bool = False
