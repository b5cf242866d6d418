"""The run that methods for single arms share: counts and sums of the candidates, and a lead."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np

from surepick.core.arrays import FloatArray, IntArray
from surepick.core.problem import Problem
from surepick.core.run import Measure, Standing, Stop
from surepick.core.single_arms import read_arms, single_arms


class CandidatesRun(ABC):
    """A run over plans that are single arms, here the candidates. It changes by `absorb` alone.

    `_counts` and `_sums` are those of the candidates, larger is better, `_scale` their noise scales.
    """

    def __init__(self, problem: Problem, name: str, *, by_probes: bool = False) -> None:
        self._candidates = (read_arms if by_probes else single_arms)(problem, name)
        self._scale = self._candidates.scale
        self._counts: IntArray = np.zeros(self._candidates.n_plans, dtype=np.int64)
        self._sums: FloatArray = np.zeros(self._candidates.n_plans)
        self._answer: int | None = None

    @abstractmethod
    def next_counts(self, rng: np.random.Generator) -> IntArray:
        """How often to measure each candidate next."""

    @abstractmethod
    def update(self, counts: IntArray, sums: FloatArray) -> None:
        """Judge anew, `_answer` included, now that these were added to `_counts` and `_sums`."""

    def decide(self, rng: np.random.Generator) -> Measure | Stop:
        """What to measure next, or the answer."""
        if self._answer is not None:
            return Stop(self._answer)
        return Measure(self._candidates.counts(self.next_counts(rng)))

    def absorb(self, counts: IntArray, sums: FloatArray) -> None:
        """Add what was measured, and judge."""
        seen = self._candidates.seen(counts, sums)
        self._counts, self._sums = self._counts + seen[0], self._sums + seen[1]
        self.update(*seen)

    def standing(self) -> Standing:
        """The candidate that looks best, the next one, and their gap."""
        if not self._counts.all():
            return Standing()
        means = self._means
        lead, rival = (int(k) for k in np.argsort(-means, kind="stable")[:2])
        return Standing(lead, rival, float(means[lead] - means[rival]))

    def state(self) -> dict[str, Any]:
        """Counts, sums and the answer."""
        return {"counts": self._counts, "sums": self._sums, "answer": self._answer}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on with these."""
        self._counts, self._sums, self._answer = state["counts"], state["sums"], state["answer"]

    @property
    def _means(self) -> FloatArray:
        return np.asarray(self._sums / np.maximum(self._counts, 1))

    def _once(self, *candidates: int) -> IntArray:
        """One measurement of each of these."""
        counts = np.zeros(len(self._counts), dtype=np.int64)
        counts[list(candidates)] = 1
        return counts
