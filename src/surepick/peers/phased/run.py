"""The run that phased policies share: design a phase, measure it whole, drop plans, begin again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from surepick.core.arrays import FloatArray, IntArray, as_dense
from surepick.core.evidence import Evidence
from surepick.core.policy import known_noise_scale
from surepick.core.problem import Problem
from surepick.core.run import Measure, Standing, Stop, parts_of, standing_of


@dataclass(frozen=True, eq=False)
class Phase:
    """What a policy sees when it designs a phase or drops plans after it."""

    number: int  # 1 for the first
    plans: FloatArray  # (n_active, n_used) the plans left, on the arms that matter, times the noise scales
    n_plans: int  # of the whole problem: the K of the papers


# How often to measure each arm in this phase.
Design: TypeAlias = Callable[[Phase, np.random.Generator], IntArray]
# Which plans stay, given the phase, its counts and its means in units of the noise scales.
Survivors: TypeAlias = Callable[[Phase, IntArray, FloatArray], "np.ndarray[tuple[int], np.dtype[np.bool_]]"]


class PhasedRun:
    """A run in phases, each estimated from its own measurements alone. Mutable; owned by whoever started it.

    Arms are measured in units of their noise scale, so that policies see noise of scale 1, and plans are kept
    in lexicographic order, so that no decision depends on the order in which they were listed.
    """

    def __init__(
        self, problem: Problem, design: Design, survivors: Survivors, *, pilot: bool = False
    ) -> None:
        self._problem, self._design, self._survivors = problem, design, survivors
        self._arms = np.flatnonzero(problem.relevant)
        self._scale = known_noise_scale(problem)[self._arms]
        dense = as_dense(problem.oriented)
        scaled = dense[:, self._arms] * self._scale
        order = np.lexsort(scaled.T[::-1])
        self._order, self._plans = order, scaled[order]  # (n_plans, n_used)
        self._active = np.arange(len(order))
        self._number = 0 if pilot else 1
        self._standing = Standing()
        self._recalled = Evidence.none(problem.n_arms)  # of a pilot, for the first phase
        self.pilot_gap = 0.0

    @property
    def phase(self) -> Phase:
        """The phase to be measured next; number 0 is the pilot, every arm once."""
        return Phase(self._number, self._plans[self._active], self._problem.n_plans)

    def decide(self, rng: np.random.Generator) -> Measure | Stop:
        """All counts of the next phase at once, or the only plan left."""
        if len(self._active) == 1:
            return Stop(int(self._order[self._active[0]]))
        counts = np.zeros(self._problem.n_arms, dtype=np.int64)
        counts[self._arms] = self._design(self.phase, rng) if self._number else 1
        return Measure(counts)

    def absorb(self, counts: IntArray, sums: FloatArray) -> None:
        """Take in a whole phase and drop plans by it."""
        if self._number == 1:
            counts, sums = counts + self._recalled.counts, sums + self._recalled.sums
        phase, n = self.phase, counts[self._arms]
        means = np.divide(sums[self._arms], n * self._scale, out=np.zeros(len(n)), where=n > 0)
        values = phase.plans @ means
        if self._number == 0:
            widest = _widest(phase.plans, n)
            self.pilot_gap = float(np.ptp(values)) + widest
        self._stand(values)
        if self._number:
            self._active = self._active[self._survivors(phase, n, means)]
        self._number += 1

    @property
    def recalls_unasked(self) -> bool:
        """No: the counts of a phase must be fixed before any of its measurements is seen."""
        return False

    def recall(self, counts: IntArray, sums: FloatArray) -> None:
        """Count a pilot as part of the first phase: more of each arm than its design asks for is fine."""
        self._recalled = self._recalled + Evidence(counts, sums)

    def standing(self) -> Standing:
        """The lead of the last phase, its closest rival among the plans then left, and their gap.

        The plans that are left hold the best one in all phases together, which is what is proved of them.
        """
        left = tuple(sorted(self._order[self._active].tolist()))
        return replace(self._standing, remaining=left, good=left if len(left) == 1 else ())

    def state(self) -> dict[str, Any]:
        """Which phase it is, and the plans that are left."""
        return {
            "number": self._number,
            "active": self._active,
            "standing": parts_of(self._standing),
            "recalled": [self._recalled.counts, self._recalled.sums],
            "pilot_gap": self.pilot_gap,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on with this phase."""
        self._number, self._active, self.pilot_gap = state["number"], state["active"], state["pilot_gap"]
        self._standing = standing_of(state["standing"])
        self._recalled = Evidence(*state["recalled"])

    def _stand(self, values: FloatArray) -> None:
        first, second = np.argsort(-values, kind="stable")[:2]
        lead, rival = (int(self._order[self._active[k]]) for k in (first, second))
        self._standing = Standing(lead, rival, float(values[first] - values[second]))


def _widest(plans: FloatArray, counts: IntArray) -> float:
    """The largest standard deviation of the estimated gap of two plans, or a bound within a factor of 2."""
    offsets = (plans - plans[0]) / np.sqrt(counts)
    return float(2 * np.sqrt(np.einsum("ks,ks->k", offsets, offsets).max()))
