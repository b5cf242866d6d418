"""Phases where vectors are measured apart from the plans, whose values they mix; RAGE in its own setting.

A phase is estimated by least squares from its own measurements, whose counts are fixed before it, so that
fixed-count tails hold: a plan is dropped when another is ahead of it by sqrt(2 y' M^+ y log_term), and a
difference that the phase did not read drops nobody.

RAGE's phases and sizes are those of `rage`, with y' M^-1 y in place of sums over arms. It is proved for the
authors' constants, where the radius is that of the rounded design itself. The published constants rest on a
rounding that is within 1/5 of the optimal design for every pair, which the rounding here is only known to be
for single arms; so they are refused on probes. In the authors' code the radius has the number of measurement
vectors in the logarithm where the union is over plans; here it has plans.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from surepick.core.arrays import BoolArray, FloatArray, IntArray
from surepick.core.problem import Problem
from surepick.core.run import Measure, Standing, Stop, parts_of, standing_of
from surepick.design.information import information_of
from surepick.design.probe_allocation import Effort, probe_allocation
from surepick.peers.linear.readings import Readings, readings_of

_EFFORT = Effort(0.05, 400)
_MOST_PAIRS = (
    4000  # pairs of plans that a design looks at; beyond, plans and their mean, which costs a factor
)
_EPS, _FLOOR = 1 / 10, 20  # of the authors' code: rounding, and measurements per vector of the support
_RANK = 1e-9  # of the largest eigenvalue: information below it is none
_HIDDEN = 1e-6  # of the largest plan: a difference of which more was not read is not compared
_SUPPORT = 1e-5  # least share of a vector in the design


class ProbePhases(ABC):
    """A run in phases on readings of any kind. Mutable; owned by whoever started it."""

    def __init__(self, readings: Readings) -> None:
        self._readings = readings
        self._active = np.arange(len(readings.plans))
        self._number, self._standing = 1, Standing()

    @abstractmethod
    def design(self, plans: FloatArray) -> IntArray:
        """How often to use each way in this phase, for these plans; nothing changes by it."""

    @property
    @abstractmethod
    def log_term(self) -> float:
        """The logarithm in the radii of this phase."""

    def decide(self, rng: np.random.Generator) -> Measure | Stop:
        """All counts of the next phase at once, or the only plan left."""
        del rng  # nothing is drawn
        if len(self._active) == 1:
            return Stop(int(self._active[0]))
        return Measure(self._readings.counts(self.design(self._readings.plans[self._active])))

    def absorb(self, counts: IntArray, sums: FloatArray) -> None:
        """Take in a whole phase and drop plans by it."""
        matrix = self._readings.information(counts[self._readings.ways].astype(float))
        inverse = np.asarray(np.linalg.pinv(matrix, rcond=_RANK, hermitian=True))
        unread = np.eye(len(matrix)) - inverse @ matrix  # on what M does not show
        plans = self._readings.plans[self._active]
        values = plans @ (inverse @ self._readings.pull(sums))
        first, second = np.argsort(-values, kind="stable")[:2]
        lead, rival = int(self._active[first]), int(self._active[second])
        self._standing = Standing(lead, rival, float(values[first] - values[second]))
        self._active = self._active[self._stay(plans, values, inverse, plans @ unread)]
        self._number += 1

    def _stay(
        self, plans: FloatArray, values: FloatArray, inverse: FloatArray, rest: FloatArray
    ) -> BoolArray:
        """All but the plans that another is ahead of; those whose difference was not read are left alone."""
        through = plans @ inverse
        norms = np.einsum("kd,kd->k", through, plans)
        variances = np.maximum(norms[:, None] + norms - 2 * through @ plans.T, 0)
        for k in range(len(plans)):
            hidden = np.linalg.norm(rest - rest[k], axis=1) > _HIDDEN * np.abs(plans).max()
            variances[k, hidden] = np.inf
        ahead = values[:, None] - values  # row over column
        dropped = (ahead >= np.sqrt(2 * variances * self.log_term)) & (ahead > 0)
        return np.asarray(~dropped.any(axis=0))

    def standing(self) -> Standing:
        """The lead of the last phase, and the plans that are left, which hold the best one."""
        left = tuple(self._active.tolist())
        return replace(self._standing, remaining=left, good=left if len(left) == 1 else ())

    def state(self) -> dict[str, Any]:
        """Which phase it is, and the plans that are left."""
        return {"number": self._number, "active": self._active, "standing": parts_of(self._standing)}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on with this phase."""
        self._number, self._active = state["number"], state["active"]
        self._standing = standing_of(state["standing"])


class RAGEPhases(ProbePhases):
    """A run of RAGE on probes, with the authors' constants."""

    def __init__(self, problem: Problem, delta: float) -> None:
        super().__init__(readings_of(problem, "RAGE"))
        assert problem.probes is not None
        self._delta, self._information = delta, information_of(problem.probes)

    @property
    def log_term(self) -> float:
        """log(2 K^2 t^2 / delta)."""
        return math.log(2 * len(self._readings.plans) ** 2 * self._number**2 / self._delta)

    def design(self, plans: FloatArray) -> IntArray:
        """The optimal design for all pairs, rounded up."""
        targets, factor = _pairs(plans)
        costs = np.ones(self._readings.n_ways)
        design = probe_allocation(self._information, targets, costs, _EFFORT)
        shares = np.where(design.shares > _SUPPORT, design.shares, 0.0)
        shares, support = shares / shares.sum(), int(np.count_nonzero(shares))
        rho = factor * design.upper
        size = 8 * 4.0 ** (self._number - 1) * (1 + _EPS) * rho * self.log_term
        n = max(math.ceil(size), _FLOOR * int(support))
        counts: IntArray = np.ceil((n - 0.5 * support) * shares).astype(np.int64)
        return counts


def _pairs(plans: FloatArray) -> tuple[FloatArray, float]:
    """Differences of plans for a design, and by how much the largest of all may exceed these."""
    first, second = np.triu_indices(len(plans), 1)
    if len(first) <= _MOST_PAIRS:
        return plans[first] - plans[second], 1.0
    return plans - plans.mean(axis=0), 4.0  # |a - b|^2 <= 4 max |a - mean|^2
