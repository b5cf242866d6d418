"""Evidence: how often each arm was measured, the sum of what was seen, and how far it spread."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from surepick.core.arrays import FloatArray, IntArray
from surepick.core.measurable import Measurable

_TRUST = 10.0  # degrees of freedom that what all arms have in common counts in the estimate of one


@dataclass(frozen=True, eq=False)
class Evidence:
    """Counts and sums per arm, or counts per probe and sums per reading; it adds like a number.

    >>> from surepick.core.evidence import Evidence
    >>> import numpy as np
    >>> first, second = Evidence(np.array([2, 1]), np.array([3.0, 5.0])), Evidence.none(2)
    >>> (first + second).means.tolist()
    [1.5, 5.0]
    """

    counts: IntArray  # (n_arms,); (n_probes,) with probes
    sums: FloatArray  # (n_arms,); (n_readings,) with probes
    owner: IntArray | None = None  # (n_readings,) whose reading each sum is, with probes
    plays: int | None = None  # where plans are played that no list has: how many, counts being of readings

    @classmethod
    def none(cls, n_arms: int) -> Evidence:
        """No measurement of any arm yet."""
        return cls(np.zeros(n_arms, dtype=np.int64), np.zeros(n_arms))

    @classmethod
    def none_of(cls, problem: Measurable) -> Evidence:
        """No measurement of anything that this problem measures."""
        nothing = np.zeros(len(problem.counted_names), dtype=np.int64)
        if problem.probes is None:
            return cls(nothing, np.zeros(len(nothing)), plays=0 if problem.plays else None)
        return cls(nothing, np.zeros(problem.probes.n_readings), problem.probes.owner)

    def with_sums(self, counts: IntArray, sums: FloatArray, plays: int = 0) -> Evidence:
        """Other counts and sums of the same arms or probes, from this many plays where there are some."""
        return Evidence(counts, sums, self.owner, None if self.plays is None else plays)

    def lengthened(self, n_arms: int) -> Evidence:
        """Return this evidence for n_arms arms; the added ones have no measurements.

        >>> Evidence.none(1).lengthened(3).counts.tolist()
        [0, 0, 0]
        """
        n = n_arms - len(self.counts)
        counts, sums = np.append(self.counts, np.zeros(n, dtype=np.int64)), np.append(self.sums, np.zeros(n))
        return Evidence(counts, sums)

    @property
    def each(self) -> IntArray:
        """How many values each sum has."""
        return self.counts if self.owner is None else np.asarray(self.counts[self.owner])

    @property
    def n_measurements(self) -> int:
        """Measurements in all; a play is one."""
        return int(self.counts.sum()) if self.plays is None else self.plays

    def cost(self, costs: FloatArray) -> float:
        """Return the cost of the measurements; `costs` is per arm or per probe, all plays cost the same."""
        return float(self.counts @ costs) if self.plays is None else self.plays * float(costs[0])

    @property
    def means(self) -> FloatArray:
        """The mean of each arm's measurements, or of each reading; nan where there is none."""
        nowhere, each = np.full(len(self.sums), np.nan), self.each
        return np.asarray(np.divide(self.sums, each, out=nowhere, where=each > 0))

    def __add__(self, other: Evidence) -> Evidence:
        plays = None if self.plays is None else self.plays + (other.plays or 0)
        return Evidence(self.counts + other.counts, self.sums + other.sums, self.owner, plays)


class Moments:
    """Count, mean and spread of each arm's single measurements; it changes by `add` and `lengthen`."""

    def __init__(self, n_arms: int) -> None:
        self._n, self._mean, self._m2 = [0] * n_arms, [0.0] * n_arms, [0.0] * n_arms

    def lengthen(self, n_arms: int) -> None:
        """Add empty entries for new arms, up to n_arms in all."""
        n = n_arms - len(self._n)
        self._n, self._mean, self._m2 = self._n + [0] * n, self._mean + [0.0] * n, self._m2 + [0.0] * n

    def add(self, arm: int, value: float) -> None:
        """Take in one measurement (Welford's way, which does not cancel)."""
        self._n[arm] += 1
        step = value - self._mean[arm]
        self._mean[arm] += step / self._n[arm]
        self._m2[arm] += step * (value - self._mean[arm])

    def counts(self) -> IntArray:
        """Return how many single measurements each arm has."""
        return np.array(self._n, dtype=np.int64)

    def variances(self) -> FloatArray:
        """The sample variance of each arm; nan with fewer than two measurements."""
        freedom = self.counts() - 1
        nowhere = np.full(len(freedom), np.nan)
        return np.asarray(np.divide(self._m2, freedom, out=nowhere, where=freedom > 0))

    def estimated_scale(self) -> FloatArray | None:
        """Return an estimate of each arm's noise, leaning to what all have in common; None without one.

        >>> moments = Moments(2)
        >>> for value in (1.0, 3.0, 2.0):
        ...     moments.add(0, value)
        >>> moments.estimated_scale().tolist()
        [1.0, 1.0]
        """
        freedom, squares = np.maximum(self.counts() - 1, 0), np.array(self._m2)
        if not squares.sum() > 0.0:
            return None
        common = squares.sum() / freedom.sum()
        return np.asarray(np.sqrt((squares + _TRUST * common) / (freedom + _TRUST)))

    def to_json(self) -> list[list[Any]]:
        """Return this as JSON values."""
        return [self._n, self._mean, self._m2]

    @classmethod
    def from_json(cls, data: list[list[Any]]) -> Moments:
        """The moments that these JSON values describe."""
        moments = cls(0)
        moments._n, moments._mean, moments._m2 = data
        return moments
