"""Counts, sums and scatter of the values that a policy has used in a session."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np

from surepick.core.arrays import FloatArray, IntArray
from surepick.core.evidence import Evidence
from surepick.core.oracle_problem import AnyProblem
from surepick.noise.record import ArmRecord
from surepick.sessions.setup import Body
from surepick.sessions.streams import Used

_Read = tuple[int, list[float]]  # a reading and its values

TRUST = 10.0  # degrees of freedom that what all arms have in common counts in the estimate of one


class RunStatistics:
    """Counts and sums of what the policy has used, and how the values scatter; `PolicyRun` changes it."""

    def __init__(self, problem: AnyProblem) -> None:
        self.evidence = Evidence.none_of(problem)
        self.noise = [ArmRecord() for _ in range(problem.n_readings)]

    def add_batch(self, problem: AnyProblem, batch: Sequence[Used]) -> tuple[IntArray, FloatArray]:
        """Add a complete batch; return its counts of each probe and the sums of each reading.

        Of plan probes, the counts are those of each arm's readings.
        """
        empty = Evidence.none_of(problem)
        counts, sums = empty.counts, empty.sums
        together: dict[int, list[float]] = {}  # by reading: plan probes that hold an arm read the same one
        by_probe: list[_Read] = []  # the values of each reading of one probe after the other
        for one in batch:
            if not problem.plays:
                counts[one.probe] = len(one.uses)
            columns = list(zip(*one.uses, strict=True))
            for reading, column in zip(problem.readings_of(one.probe), columns, strict=bool(columns)):
                together.setdefault(reading, []).extend(column)
                by_probe.append((reading, list(column)))
        for reading, values in together.items():
            sums[reading] = math.fsum(values)
            if problem.plays:
                counts[reading] = len(values)
        for reading, values in _without_shared_noise(problem, by_probe):
            for value in values:
                self.noise[reading].add(value)
        n_uses = sum(len(one.uses) for one in batch)
        self.evidence = self.evidence + empty.with_sums(counts, sums, n_uses)
        return counts, sums

    def lengthen(self, n_arms: int) -> None:
        """Continue with a problem of `n_arms` arms, which is no fewer than before."""
        self.evidence = self.evidence.lengthened(n_arms)
        self.noise += [ArmRecord() for _ in range(n_arms - len(self.noise))]

    def estimated_scale(self) -> FloatArray | None:
        """Return an estimate of each arm's noise, leaning to what all have in common; None without one."""
        freedom = np.array([max(one.n - 1, 0) for one in self.noise])
        squares = np.array([one.squares for one in self.noise])
        if not squares.sum() > 0.0:
            return None
        common = squares.sum() / freedom.sum()
        return np.asarray(np.sqrt((squares + TRUST * common) / (freedom + TRUST)))

    def to_json(self) -> Body:
        """Return this as JSON values."""
        return {
            "counts": self.evidence.counts.tolist(),
            "sums": self.evidence.sums.tolist(),
            "noise": [arm.to_json() for arm in self.noise],
            "plays": self.evidence.plays,
        }

    @classmethod
    def from_json(cls, problem: AnyProblem, kept: Body) -> RunStatistics:
        """Return what `to_json` has kept."""
        seen = cls(problem)
        counts, sums = np.array(kept["counts"], dtype=np.int64), np.array(kept["sums"])
        seen.evidence = seen.evidence.with_sums(counts, sums, kept["plays"])
        seen.noise = [ArmRecord(*numbers) for numbers in kept["noise"]]
        return seen


def _without_shared_noise(problem: AnyProblem, read: list[_Read]) -> Iterator[_Read]:
    """Yield the recorded values by reading, with shared noise removed, as the noise check needs them."""
    probes = problem.probes
    if probes is None or probes.unknown or not probes.covariances:
        yield from read
        return
    for probe, group in itertools.groupby(read, key=lambda one: int(probes.owner[one[0]])):
        of_use = list(group)
        if probe in probes.covariances:
            rows = probes.whiten_use(probe, np.array([values for _, values in of_use])).tolist()
            of_use = [(reading, row) for (reading, _), row in zip(of_use, rows, strict=True)]
        yield from of_use
