"""How a run came to where it stands: its standing and evidence after some of its rounds.

All rounds at first; whenever there are too many, every second one is let go. So a trace is small however long
the session is, and which rounds it holds depends on nothing but their number.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from surepick.core.evidence import Evidence
from surepick.core.run import Standing, parts_of, standing_of

MOST_SAMPLES, FEWEST_SAMPLES = 256, 16
MOST_NUMBERS = 2**14  # of samples times sums


@dataclass(frozen=True, eq=False)
class Sample:
    """Where the run stood when it had seen this many complete rounds, after it had decided."""

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
        """Of a run that begins with no evidence, of as many sums as this has."""
        self._samples: list[Sample] = []
        self._stride = 1
        self._most = _most(len(none.sums))

    def lengthen(self, n_arms: int) -> None:
        """Go on with more arms, of which nothing was measured before."""
        self._most = _most(n_arms)
        self._samples = [replace(s, evidence=s.evidence.lengthened(n_arms)) for s in self._samples]

    @property
    def samples(self) -> tuple[Sample, ...]:
        """The rounds that are kept, earliest first."""
        return tuple(self._samples)

    def wants(self, n_rounds: int) -> bool:
        """Whether this round is one of those to keep."""
        return n_rounds % self._stride == 0

    def add(self, sample: Sample) -> None:
        """Keep this sample; when there are too many, let every second one go."""
        kept = standing_of(parts_of(sample.standing))  # without its list of plans, which may be long
        self._samples.append(replace(sample, standing=kept))
        if len(self._samples) > self._most:
            self._stride *= 2
            self._samples = [kept for kept in self._samples if self.wants(kept.n_rounds)]

    def to_json(self) -> dict[str, Any]:
        """As JSON values."""
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
