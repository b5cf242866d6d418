"""LinGapE in its own setting: ridge estimates from measurement vectors apart from the plans.

Lead, rival and stop as in LinGapE on arms; the radius of a pair is |y| in V^-1, V = I + X'X, times
sqrt(2 log(K^2 / delta) + log det V) + S (self-normalised bound, all pairs and rounds at once), in units of
the noise. What to measure is the paper's ratio rule: the vector furthest behind its share in the least sum of
|w| with X'w = y. Plans are kept as given, not centred, and S bounds the norm of the arms' means.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from surepick.core.arrays import FloatArray, IntArray, as_dense
from surepick.core.evidence import Evidence
from surepick.core.probes import refuse_unknown
from surepick.core.problem import Problem
from surepick.core.run import Measure, Standing, Stop

_LEAST_SHARE = 1e-9  # of the ratio rule: a smaller one is none
_REFRESH = 500  # rounds after which the inverse is computed anew, against rounding


class RidgeRun:
    """A run of LinGapE on probes, one use a round. Mutable; owned by its caller."""

    def __init__(self, problem: Problem, *, delta: float, epsilon: float, norm_bound: float) -> None:
        probes = problem.probes
        assert probes is not None
        refuse_unknown(probes, "LinGapE")
        self._probes, self._delta, self._epsilon, self._bound = probes, delta, epsilon, norm_bound
        self._rows = probes.whitened.toarray()  # (n_readings, n_arms)
        self._plans = as_dense(problem.oriented)
        n_arms = self._plans.shape[1]
        self._matrix, self._vector = np.eye(n_arms), np.zeros(n_arms)
        self._inverse: FloatArray = np.eye(n_arms)
        self._rounds = 0
        self._counts = np.zeros(len(probes), dtype=np.int64)
        self._ratios: dict[tuple[int, int], FloatArray] = {}

    def decide(self, rng: np.random.Generator) -> Measure | Stop:
        """Every probe once; then the one that the closest pair lacks most, or the leader."""
        del rng  # nothing is drawn
        if not self._rounds:
            return Measure(np.ones(len(self._probes), dtype=np.int64))
        lead, rival, gap, radius = self._compare()
        if radius - gap <= self._epsilon:
            return Stop(lead)
        ratio = self._ratio(lead, rival)
        used = ratio > _LEAST_SHARE
        behind = np.where(used, self._counts / np.where(used, ratio, 1.0), np.inf)
        counts = np.zeros(len(self._probes), dtype=np.int64)
        counts[int(np.argmin(behind))] = 1
        return Measure(counts)

    def _compare(self) -> tuple[int, int, float, float]:
        """The leader, the rival that may be furthest ahead of it, their gap and its radius."""
        means = self._inverse @ self._vector
        values = self._plans @ means
        lead = int(np.argmax(values))
        away = self._plans[lead] - self._plans
        length = np.sqrt(np.maximum(np.einsum("kd,kd->k", away @ self._inverse, away), 0.0))
        log_volume = float(np.linalg.slogdet(self._matrix)[1])
        width = math.sqrt(2 * math.log(len(values) ** 2 / self._delta) + log_volume) + self._bound
        above = width * length - (values[lead] - values)
        above[lead] = -np.inf
        rival = int(np.argmax(above))
        return lead, rival, float(values[lead] - values[rival]), float(width * length[rival])

    def _ratio(self, lead: int, rival: int) -> FloatArray:
        """Shares of the probes in the least sum of |w| with X'w = y."""
        if (lead, rival) not in self._ratios:
            from scipy.optimize import linprog

            rows, n = self._rows, len(self._rows)
            both = np.hstack([rows.T, -rows.T])
            found: Any = linprog(np.ones(2 * n), A_eq=both, b_eq=self._plans[lead] - self._plans[rival])
            weights = np.bincount(self._probes.owner, np.abs(found.x[:n] - found.x[n:]))
            self._ratios[lead, rival] = np.asarray(weights / weights.sum())
        return self._ratios[lead, rival]

    def absorb(self, counts: IntArray, sums: FloatArray) -> None:
        """Take in the readings of one round."""
        n = Evidence(counts, sums, self._probes.owner).each
        used = np.flatnonzero(n)
        rows = self._rows[used]
        self._matrix = self._matrix + rows.T @ (n[used, None] * rows)
        self._vector = self._vector + rows.T @ self._probes.whiten(sums)[used]
        self._counts = self._counts + counts
        self._rounds += 1
        if len(used) == 1 and self._rounds % _REFRESH:
            through = self._inverse @ rows[0]
            scaled = np.outer(through, through) / (1.0 / n[used[0]] + float(rows[0] @ through))
            self._inverse = self._inverse - scaled
        else:
            self._inverse = np.asarray(np.linalg.inv(self._matrix), dtype=float)

    def standing(self) -> Standing:
        """The leader, the rival that may be furthest ahead of it, their gap and its radius."""
        if not self._rounds:
            return Standing()
        lead, rival, gap, radius = self._compare()
        return Standing(lead, rival, gap, radius)
