"""Readings and plans in the same coordinates, where what is measured may be probes or single arms."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from surepick.core.arrays import FloatArray, IntArray, as_dense
from surepick.core.policy import known_noise_scale
from surepick.core.probes import refuse_dependent
from surepick.core.problem import Problem
from surepick.design.information import Dense, information_of


@dataclass(frozen=True, eq=False)
class Readings:
    """Rows in units in which noise is independent with scale 1; plans less their average, larger is better.

    A *way* is something that can be used: a probe, or an arm on which plans differ.
    """

    rows: FloatArray  # (n_readings, rank)
    owner: IntArray  # (n_readings,) whose reading it is, among the ways
    plans: FloatArray  # (n_plans, rank)
    ways: IntArray  # (n_ways,) their places among all probes or arms
    n_places: int
    places: IntArray  # (n_readings,) where readings stand among the sums
    whiten: Callable[[FloatArray], FloatArray]  # sums in the unit of the rows

    @property
    def n_ways(self) -> int:
        """How many there are."""
        return len(self.ways)

    @property
    def shown(self) -> Readings:
        """In the coordinates that some reading shows; plans differ in no others."""
        used = np.flatnonzero(self.rows.any(axis=0))
        return replace(self, rows=np.ascontiguousarray(self.rows[:, used]), plans=self.plans[:, used])

    def counts(self, of_ways: IntArray) -> IntArray:
        """Uses of the ways as uses of all probes or arms."""
        found = np.zeros(self.n_places, dtype=np.int64)
        found[self.ways] = of_ways
        return found

    def information(self, uses: FloatArray) -> FloatArray:
        """M: what these uses of the ways tell, shares included."""
        return np.asarray(self.rows.T @ (uses[self.owner, None] * self.rows))

    def pull(self, sums: FloatArray) -> FloatArray:
        """X'y of the sums of readings."""
        return np.asarray(self.rows.T @ self.whiten(sums)[self.places])

    def of_ways(self, values: FloatArray) -> FloatArray:
        """Sums over the readings of each way."""
        return np.asarray(np.bincount(self.owner, values, minlength=self.n_ways), dtype=float)


def readings_of(problem: Problem, policy: str) -> Readings:
    """What can be measured of this problem, and its plans.

    >>> found = readings_of(Problem([[1, 0, 2], [0, 1, 2]], noise_scale=0.5), "LinGame")
    >>> found.rows.tolist(), found.ways.tolist()
    ([[2.0, 0.0], [0.0, 2.0]], [0, 1])
    """
    dense = as_dense(problem.oriented)
    probes = problem.probes
    if probes is None:
        scale = known_noise_scale(problem)
        arms = np.flatnonzero(problem.relevant)
        rows, each = np.diag(1.0 / scale[arms]), np.arange(len(arms))
        mine = dense[:, arms] - dense[:, arms].mean(axis=0)
        return Readings(rows, each, mine, arms, problem.n_arms, arms, lambda sums: np.asarray(sums / scale))
    refuse_dependent(probes, policy)
    information = information_of(probes)
    rows = information.rows if isinstance(information, Dense) else probes.whitened.toarray()
    mine = information.coordinates(dense - dense.mean(axis=0))
    every = np.arange(len(probes))
    return Readings(rows, probes.owner, mine, every, len(probes), np.arange(probes.n_readings), probes.whiten)
