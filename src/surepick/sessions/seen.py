"""What a policy has seen in a session: counts and sums, and how the values behind them spread."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np

from surepick.core.arrays import FloatArray, IntArray
from surepick.core.evidence import Evidence, Moments
from surepick.core.oracle_problem import AnyProblem
from surepick.noise.record import NoiseRecord
from surepick.sessions.settings import Body
from surepick.sessions.tape import Used

_Told = tuple[int, list[float]]  # a reading and its values


class Seen:
    """Evidence, and the spread of the values behind it.

    It changes by what `PolicyRun` calls, and nothing else.
    """

    def __init__(self, problem: AnyProblem) -> None:
        self.evidence = self._none = Evidence.none_of(problem)
        self.moments = Moments(problem.n_readings)
        self.noise = NoiseRecord(problem.n_readings)
        self._probes, self._plays = problem.probes, problem.plays

    def none(self) -> Evidence:
        """No measurement of anything."""
        return self._none

    def add_round(self, used: Sequence[Used]) -> tuple[IntArray, FloatArray]:
        """Take in a complete round; how many it has of each probe, and the sums of each reading.

        Of plays, how many readings it has of each arm.
        """
        counts, sums = self._nothing()
        together: dict[int, list[float]] = {}  # by reading: plays that hold an arm read the same one
        for one in used:
            together.setdefault(one.reading, []).extend(one.values)
            if not self._plays:
                counts[one.probe] = len(one.values)
            for value in one.values:
                self.moments.add(one.reading, value)
        for reading, values in together.items():
            sums[reading] = math.fsum(values)
            if self._plays:
                counts[reading] = len(values)
        for reading, told in self._apart([(one.reading, one.values) for one in used]):
            for value in told:
                self.noise.add(reading, value)
        uses = {one.probe: len(one.values) for one in used}
        self.evidence = self.evidence + self._none.with_sums(counts, sums, sum(uses.values()))
        return counts, sums

    def add_unasked(
        self, uses: Sequence[tuple[int, Sequence[int], list[float]]]
    ) -> tuple[IntArray, FloatArray]:
        """Take in uses of probes that nobody asked for: the probe, its readings, and their values."""
        counts, sums = self._nothing()
        for probe, readings, values in uses:
            counts[list(readings) if self._plays else probe] += 1
            for reading, value in zip(readings, values, strict=True):
                sums[reading] += value
                self.moments.add(reading, value)
            told = [(r, [value]) for r, value in zip(readings, values, strict=True)]
            for reading, (value,) in self._apart(told):
                self.noise.add(reading, value)
        self.evidence = self.evidence + self._none.with_sums(counts, sums, len(uses))
        return counts, sums

    def lengthen(self, n_arms: int) -> None:
        """Make room for arms after those that there are."""
        self._none, self.evidence = self._none.lengthened(n_arms), self.evidence.lengthened(n_arms)
        self.moments.lengthen(n_arms)
        self.noise.lengthen(n_arms)

    def _nothing(self) -> tuple[IntArray, FloatArray]:
        return np.zeros_like(self._none.counts), np.zeros_like(self._none.sums)

    def _apart(self, told: list[_Told]) -> Iterator[_Told]:
        """What was told, by reading; freed of shared noise, as the check of the noise needs it."""
        probes = self._probes
        if probes is None or not probes.covariances:
            yield from told
            return
        for probe, group in itertools.groupby(told, key=lambda one: int(probes.owner[one[0]])):
            of_use = list(group)
            if probe in probes.covariances:
                rows = probes.whiten_use(probe, np.array([values for _, values in of_use])).tolist()
                of_use = [(reading, row) for (reading, _), row in zip(of_use, rows, strict=True)]
            yield from of_use

    def to_json(self) -> Body:
        """As JSON values."""
        return {
            "counts": self.evidence.counts.tolist(),
            "sums": self.evidence.sums.tolist(),
            "moments": self.moments.to_json(),
            "noise": self.noise.to_json(),
            **({"plays": self.evidence.plays} if self._plays else {}),
        }

    @classmethod
    def from_json(cls, problem: AnyProblem, kept: Body) -> Seen:
        """What was seen when these were kept."""
        seen = cls(problem)
        counts, sums = np.array(kept["counts"], dtype=np.int64), np.array(kept["sums"])
        seen.evidence = seen._none.with_sums(counts, sums, kept.get("plays", 0))
        seen.moments = Moments.from_json(kept["moments"])
        seen.noise = NoiseRecord.from_json(kept["noise"])
        return seen
