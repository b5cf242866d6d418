"""What a policy has used in a session: counts, sums, scatter, and where it stood after its batches."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from surepick.core.arrays import FloatArray, IntArray
from surepick.core.evidence import Evidence, Moments
from surepick.core.oracle_problem import AnyProblem
from surepick.core.run import Standing, parts_of, standing_of
from surepick.noise.record import ArmRecord
from surepick.sessions.setup import Body
from surepick.sessions.streams import Used

_Read = tuple[int, list[float]]  # a reading and its values

MOST_SAMPLES, FEWEST_SAMPLES = 256, 16
MOST_NUMBERS = 2**14  # of samples times sums


@dataclass(frozen=True, eq=False)
class Sample:
    """The state of the run after it had decided on this many complete rounds."""

    n_rounds: int
    standing: Standing
    evidence: Evidence

    @property
    def n_measurements(self) -> int:
        """Measurements that it had seen."""
        return self.evidence.n_measurements


class Trace:
    """Samples of a run, evenly spaced in rounds; it changes by `add` and `lengthen`."""

    def __init__(self, none: Evidence) -> None:
        """Begin without samples; `none` is the empty evidence, with as many sums as the run has."""
        self._samples: list[Sample] = []
        self._stride = 1
        self._most = _most(len(none.sums))

    def lengthen(self, n_arms: int) -> None:
        """Continue with more arms; the new ones have no measurements yet."""
        self._most = _most(n_arms)
        self._samples = [replace(s, evidence=s.evidence.lengthened(n_arms)) for s in self._samples]

    @property
    def samples(self) -> tuple[Sample, ...]:
        """The rounds that are kept, earliest first."""
        return tuple(self._samples)

    def wants(self, n_rounds: int) -> bool:
        """Return whether this round is one of those to keep."""
        return n_rounds % self._stride == 0

    def add(self, sample: Sample) -> None:
        """Keep this sample; when there are too many, let every second one go."""
        kept = standing_of(parts_of(sample.standing))  # without its list of plans, which may be long
        self._samples.append(replace(sample, standing=kept))
        if len(self._samples) > self._most:
            self._stride *= 2
            self._samples = [kept for kept in self._samples if self.wants(kept.n_rounds)]

    def to_json(self) -> dict[str, Any]:
        """Return this as JSON values."""
        return {
            "stride": self._stride,
            "samples": [
                [
                    s.n_rounds,
                    *parts_of(s.standing),
                    s.evidence.counts.tolist(),
                    s.evidence.sums.tolist(),
                    *([] if s.evidence.plays is None else [s.evidence.plays]),
                ]
                for s in self._samples
            ],
        }

    @classmethod
    def from_json(cls, none: Evidence, data: dict[str, Any]) -> Trace:
        """Return the trace that was kept."""
        trace = cls(none)
        trace._stride = data["stride"]
        trace._samples = [_sample(none, *sample) for sample in data["samples"]]
        return trace


def _sample(none: Evidence, n_rounds: int, *parts: Any) -> Sample:
    """The sample that was kept: of plays their number comes last."""
    *standing, counts, sums, plays = parts if none.plays is not None else (*parts, 0)
    evidence = none.with_sums(np.array(counts, dtype=np.int64), np.array(sums, dtype=float), plays)
    return Sample(n_rounds, standing_of(standing), evidence)


def _most(n_arms: int) -> int:
    return min(MOST_SAMPLES, max(FEWEST_SAMPLES, MOST_NUMBERS // n_arms))


class RunStatistics:
    """Counts and sums of what the policy has used, and how the values scatter; `PolicyRun` changes it."""

    def __init__(self, problem: AnyProblem) -> None:
        self.evidence = self._none = Evidence.none_of(problem)
        self.moments = Moments(problem.n_readings)
        self.noise = [ArmRecord() for _ in range(problem.n_readings)]
        self._problem = problem

    def none(self) -> Evidence:
        """No measurement of anything."""
        return self._none

    def add_batch(self, batch: Sequence[Used]) -> tuple[IntArray, FloatArray]:
        """Add a complete batch; return its counts of each probe and the sums of each reading.

        Of plan probes, the counts are those of each arm's readings.
        """
        counts, sums = np.zeros_like(self._none.counts), np.zeros_like(self._none.sums)
        together: dict[int, list[float]] = {}  # by reading: plan probes that hold an arm read the same one
        read: list[_Read] = []
        for one in batch:
            if not self._problem.plays:
                counts[one.probe] = len(one.uses)
            columns = list(zip(*one.uses, strict=True))
            for reading, column in zip(self._problem.readings_of(one.probe), columns, strict=bool(columns)):
                together.setdefault(reading, []).extend(column)
                read.append((reading, list(column)))
                for value in column:
                    self.moments.add(reading, value)
        for reading, values in together.items():
            sums[reading] = math.fsum(values)
            if self._problem.plays:
                counts[reading] = len(values)
        for reading, values in self._apart(read):
            for value in values:
                self.noise[reading].add(value)
        n_uses = sum(len(one.uses) for one in batch)
        self.evidence = self.evidence + self._none.with_sums(counts, sums, n_uses)
        return counts, sums

    def know(self, problem: AnyProblem) -> None:
        """Continue with the same problem, of which more plan probes were asked for."""
        self._problem = problem

    def lengthen(self, problem: AnyProblem) -> None:
        """Continue with this problem, which has more arms."""
        self._problem, n_arms = problem, problem.n_arms
        self._none, self.evidence = self._none.lengthened(n_arms), self.evidence.lengthened(n_arms)
        self.moments.lengthen(n_arms)
        self.noise += [ArmRecord() for _ in range(n_arms - len(self.noise))]

    def _apart(self, read: list[_Read]) -> Iterator[_Read]:
        """Yield the recorded values by reading, with shared noise removed, as the noise check needs them."""
        probes = self._problem.probes
        if probes is None or not probes.covariances:
            yield from read
            return
        for probe, group in itertools.groupby(read, key=lambda one: int(probes.owner[one[0]])):
            of_use = list(group)
            if probe in probes.covariances:
                rows = probes.whiten_use(probe, np.array([values for _, values in of_use])).tolist()
                of_use = [(reading, row) for (reading, _), row in zip(of_use, rows, strict=True)]
            yield from of_use

    def to_json(self) -> Body:
        """Return this as JSON values."""
        return {
            "counts": self.evidence.counts.tolist(),
            "sums": self.evidence.sums.tolist(),
            "moments": self.moments.to_json(),
            "noise": [arm.to_json() for arm in self.noise],
            **({"plays": self.evidence.plays} if self._problem.plays else {}),
        }

    @classmethod
    def from_json(cls, problem: AnyProblem, kept: Body) -> RunStatistics:
        """Return what `to_json` has kept."""
        seen = cls(problem)
        counts, sums = np.array(kept["counts"], dtype=np.int64), np.array(kept["sums"])
        seen.evidence = seen._none.with_sums(counts, sums, kept.get("plays", 0))
        seen.moments = Moments.from_json(kept["moments"])
        seen.noise = [ArmRecord(*numbers) for numbers in kept["noise"]]
        return seen
