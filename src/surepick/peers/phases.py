"""The run of methods in phases: design a phase, measure it whole, drop plans, begin again.

A phase is estimated by least squares from its own measurements, whose counts are fixed before any of them is
seen, so that fixed-count tails hold: a plan may be dropped when another is ahead of it by
sqrt(2 y' M^+ y log_term), y their difference and M the information of the phase. A difference that the phase
did not read drops no plan.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace

import numpy as np

from surepick.core.arrays import BoolArray, FloatArray, IntArray
from surepick.core.run import Measure, Standing, Stop
from surepick.peers.linear import Readings

_RANK = 1e-9  # of the largest eigenvalue: information below it is none
_HIDDEN = 1e-6  # of the largest plan: a difference of which more was not read is not compared


@dataclass(frozen=True, eq=False)
class Phase:
    """What a phase showed of the plans left."""

    plans: FloatArray  # (n_active, rank)
    values: FloatArray  # (n_active,) estimated
    matrix: FloatArray  # (rank, rank) M
    inverse: FloatArray  # (rank, rank) M^+


class PhasedRun(ABC):
    """A run in phases. Plans are in lexicographic order, so that no decision depends on their listing."""

    def __init__(self, readings: Readings) -> None:
        self._readings = readings
        self._active: IntArray = np.lexsort(readings.plans.T[::-1])
        self._number, self._standing = 1, Standing()

    @abstractmethod
    def design(self, plans: FloatArray, rng: np.random.Generator) -> IntArray:
        """Return how often to use each way in this phase, for these plans; nothing changes by it."""

    @property
    @abstractmethod
    def log_term(self) -> float:
        """L in the radius sqrt(2 V L) of a gap between two plans, with V its variance in this phase."""

    @property
    def plans(self) -> FloatArray:
        """The plans left."""
        return self._readings.plans[self._active]

    @property
    def scaled_plans(self) -> FloatArray:
        """The plans left, on single arms in units of their noise scales."""
        return np.asarray(self.plans / np.diag(self._readings.rows))

    @property
    def n_plans(self) -> int:
        """All plans: the K of the papers."""
        return len(self._readings.plans)

    def decide(self, rng: np.random.Generator) -> Measure | Stop:
        """Return all counts of the next phase at once, or the only plan left."""
        if len(self._active) == 1:
            return Stop(int(self._active[0]))
        return Measure(self._readings.counts(self.design(self.plans, rng)))

    def absorb(self, counts: IntArray, sums: FloatArray) -> None:
        """Estimate from a whole phase, and drop plans by it."""
        matrix = self._readings.information(counts[self._readings.ways].astype(float))
        inverse, plans = _inverse(matrix), self.plans
        values = plans @ (inverse @ self._readings.pull(sums))
        first, second = np.argsort(-values, kind="stable")[:2]
        gap = float(values[first] - values[second])
        self._standing = Standing(int(self._active[first]), int(self._active[second]), gap)
        self._active = self._active[self.survivors(Phase(plans, values, matrix, inverse))]
        self._number += 1

    def survivors(self, phase: Phase) -> BoolArray:
        """Return which plans stay: here those that no other is ahead of by its radius."""
        plans, values = phase.plans, phase.values
        through, unread = plans @ phase.inverse, plans - plans @ phase.inverse @ phase.matrix
        norms = np.einsum("kd,kd->k", through, plans)
        variances = np.maximum(norms[:, None] + norms - 2 * through @ plans.T, 0)
        for k in range(len(plans)):
            hidden = np.linalg.norm(unread - unread[k], axis=1) > _HIDDEN * np.abs(plans).max()
            variances[k, hidden] = np.inf
        ahead = values[:, None] - values  # row over column
        dropped = (ahead >= np.sqrt(2 * variances * self.log_term)) & (ahead > 0)
        return np.asarray(~dropped.any(axis=0))

    def standing(self) -> Standing:
        """Return the leader and rival of the last phase, and the plans left, which hold the best one."""
        left = tuple(sorted(self._active.tolist()))
        return replace(self._standing, remaining=left, good=left if len(left) == 1 else ())


def _inverse(matrix: FloatArray) -> FloatArray:
    """Return the pseudo-inverse; of single arms without the work of an eigenvalue problem.

    >>> _inverse(np.diag([4.0, 0.0])).tolist()
    [[0.25, 0.0], [0.0, 0.0]]
    """
    diagonal = np.diag(matrix)
    if np.count_nonzero(matrix) == np.count_nonzero(diagonal):
        return np.diag(np.divide(1.0, diagonal, out=np.zeros(len(diagonal)), where=diagonal > 0))
    return np.asarray(np.linalg.pinv(matrix, rcond=_RANK, hermitian=True))
