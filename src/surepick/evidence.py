"""Evidence: how often each arm was measured, and the sum of what was seen."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from surepick.problem import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Evidence:
    """Counts and sums per arm; evidence from two places adds like a number.

    >>> from surepick.evidence import Evidence
    >>> import numpy as np
    >>> first, second = Evidence(np.array([2, 1]), np.array([3.0, 5.0])), Evidence.none(2)
    >>> (first + second).means.tolist()
    [1.5, 5.0]
    """

    counts: IntArray  # (n_arms,)
    sums: FloatArray  # (n_arms,)

    @classmethod
    def none(cls, n_arms: int) -> Evidence:
        """No measurement of any arm yet."""
        return cls(np.zeros(n_arms, dtype=np.int64), np.zeros(n_arms))

    @property
    def n_measurements(self) -> int:
        """Measurements in all."""
        return int(self.counts.sum())

    @property
    def means(self) -> FloatArray:
        """The mean of each arm's measurements; nan where there is none."""
        nowhere = np.full(len(self.sums), np.nan)
        return np.asarray(np.divide(self.sums, self.counts, out=nowhere, where=self.counts > 0))

    def __add__(self, other: Evidence) -> Evidence:
        return Evidence(self.counts + other.counts, self.sums + other.sums)
