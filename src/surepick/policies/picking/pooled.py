"""What runs without a promise share: everything that was measured is pooled, whoever asked for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from surepick.core.arrays import FloatArray, IntArray
from surepick.core.evidence import Evidence
from surepick.core.policy import known_deviation
from surepick.core.problem import Problem


class PooledRun:
    """Counts and sums, and what is left of a budget. It changes by `absorb`, `recall` and `allow`."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._variance = known_deviation(problem) ** 2
        self._evidence = Evidence.none(problem.n_arms)
        self._left: int | None = None

    @property
    def evidence(self) -> Evidence:
        """All that the run has absorbed."""
        return self._evidence

    def allow(self, left: int) -> None:
        """Ask for no more than this many from now on."""
        self._left = left

    def absorb(self, counts: IntArray, sums: FloatArray) -> None:
        """Pool what was measured."""
        self._evidence = self._evidence + Evidence(counts, sums)

    @property
    def recalls_unasked(self) -> bool:
        """Anything: nothing is proved that it could spoil."""
        return True

    @property
    def pools_all(self) -> bool:
        """See `PoolingRun`."""
        return True

    def recall(self, counts: IntArray, sums: FloatArray) -> None:
        """Pool what nobody asked for."""
        self._evidence = self._evidence + Evidence(counts, sums)

    def state(self) -> dict[str, Any]:
        """Counts and sums."""
        return {"evidence": [self._evidence.counts, self._evidence.sums]}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on with these."""
        self._evidence = Evidence(*state["evidence"])
