"""What policies for a budget share: no guarantee, and all measurements are pooled."""

from __future__ import annotations

from typing import ClassVar

from surepick.core.arrays import FloatArray, IntArray
from surepick.core.evidence import Evidence
from surepick.core.guarantee import Promise
from surepick.core.policy import known_deviation
from surepick.core.problem import Problem
from surepick.policies.sound import Starting


class PickingPolicy(Starting):
    """Base of the policies without a guarantee; `_answers_with` says what their answer is."""

    name: ClassVar[str]
    version: ClassVar[int] = 1
    randomized: ClassVar[bool] = False
    _answers_with: ClassVar[str] = "the plan that looks best after the budget; estimates say how good it is"

    @property
    def delta(self) -> float:
        """The level that displayed evidence is compared with; no decision depends on it."""
        return 0.05

    @property
    def guarantee(self) -> str:
        """A sentence that begins with "none": there is no guarantee."""
        return Promise.none(self._answers_with).text


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
        """Whether any measurement helps and none can spoil the answer."""
        return True

    def recall(self, counts: IntArray, sums: FloatArray) -> None:
        """Pool extra measurements."""
        self._evidence = self._evidence + Evidence(counts, sums)
