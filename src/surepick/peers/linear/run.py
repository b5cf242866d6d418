"""The run that sequential methods for linear bandits share: least squares, and when to stop.

With M = sum of x x' over all readings (noise of scale 1), means by least squares and y = lead - plan, stop
when y.means > radius(y) for every other plan:

| radius | square | promise |
|---|---|---|
| `heuristic` | 2 y'M^-1 y log((1 + log t)/delta) | none: what published experiments stop by |
| `normal-mixture` | 2 y'M^-1 (M + l M_1) M^-1 y (log(1/(p delta)) + log det(I + M_1^-1 M / l)/2) | proved |

M_1 is one use of every way, with which all runs begin, so that it is known before anything is seen; l = 4^i
has the share p = 1/((i+1)(i+2)) of delta. Proof of the second: with s = sum of x times its noise, exp(u.s -
u'Mu/2) is a supermartingale for every u, and so is its average over u ~ N(0, (l M_1)^-1), which is det(I +
M_1^-1 M / l)^(-1/2) exp(s'(M + l M_1)^-1 s / 2); by Ville's inequality it stays below 1/(p delta) at all
times except with probability p delta. Errors are y.M^-1 s, at most |s| in (M + l M_1)^-1 times |M^-1 y| in
M + l M_1, for all y at once. On single arms it is the radius `normal-mixture-joint` of the gap policies.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from surepick.core.arrays import FloatArray, IntArray
from surepick.core.problem import Problem
from surepick.core.run import Measure, Standing, Stop
from surepick.errors import ParameterError
from surepick.peers.linear.readings import readings_of
from surepick.policies.gap import radius as radii
from surepick.policies.sound import SoundPolicy

PROVED, HEURISTIC = "normal-mixture", "heuristic"
TRACE = 1e-9  # of even shares: keeps M regular where shares have fallen to 0


@dataclass(frozen=True)
class LinearPolicy(SoundPolicy):
    """What methods have that stop by a radius: delta, the radius and its promise."""

    radius: str = PROVED

    takes_probes: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.radius not in (PROVED, HEURISTIC):
            raise ParameterError(f"radius must be {PROVED!r} or {HEURISTIC!r}, got {self.radius!r}")

    @property
    def guarantee(self) -> str:
        """The promise and its assumption."""
        if self.radius == HEURISTIC:
            return radii.guarantee(HEURISTIC, self.delta, 0.0)
        return super().guarantee


class LinearRun(ABC):
    """Every way once, then one use a round, by least squares. It changes by `absorb` alone."""

    def __init__(self, problem: Problem, policy: LinearPolicy) -> None:
        self._delta, self._proved = policy.delta, policy.radius == PROVED
        self._readings = readings = readings_of(problem, policy.name).shown
        n, rank = readings.n_ways, readings.rows.shape[1]
        self._counts: IntArray = np.zeros(n, dtype=np.int64)
        self._vector: FloatArray = np.zeros(rank)
        self._first = readings.information(np.ones(n))  # M_1
        self._log_volume = float(np.linalg.slogdet(self._first)[1])
        self._answer: int | None = None

    @abstractmethod
    def choose(self) -> int:
        """Which way to use next; nothing changes by it."""

    @abstractmethod
    def advance(self) -> None:
        """Keep what was decided by: called before what was measured is added."""

    def decide(self, rng: np.random.Generator) -> Measure | Stop:
        """Every way once; then the method's choice, or the answer."""
        del rng  # nothing is drawn
        if self._answer is not None:
            return Stop(self._answer)
        counts = np.zeros(len(self._counts), dtype=np.int64)
        counts[self.choose() if self._counts.all() else self._counts == 0] = 1
        return Measure(self._readings.counts(counts))

    def absorb(self, counts: IntArray, sums: FloatArray) -> None:
        """Add what was measured, and judge."""
        if self._counts.all():
            self.advance()
        self._counts = self._counts + counts[self._readings.ways]
        self._vector = self._vector + self._readings.pull(sums)
        self._estimate()
        gaps, radius = self._compare()
        self._answer = self._lead if (gaps > radius).all() else None

    def _estimate(self) -> None:
        """Least squares, kept until more is measured."""
        self._matrix = self._readings.information(self._counts.astype(float))
        self._inverse: FloatArray = np.asarray(np.linalg.inv(self._matrix), dtype=float)
        self._means = self._inverse @ self._vector
        values = self._readings.plans @ self._means
        self._lead = int(np.argmax(values))
        self._away = self._readings.plans[self._lead] - self._readings.plans  # (n_plans, rank)
        self._gaps = values[self._lead] - values

    def _compare(self) -> tuple[FloatArray, FloatArray]:
        """The gap of every plan to the lead, infinite for the lead itself, and its radius."""
        through = self._away @ self._inverse
        spread = np.einsum("kd,kd->k", through, self._away)
        total = float(self._counts.sum())
        if self._proved:
            index = radii.lam_index(total / len(self._counts))
            lam, log_share = radii.lam_value(index), radii.lam_log_weight(index)
            spread = spread + lam * np.einsum("kd,kd->k", through @ self._first, through)
            volume = float(np.linalg.slogdet(self._first + self._matrix / lam)[1]) - self._log_volume
            level = 0.5 * volume - log_share - math.log(self._delta)
        else:
            level = math.log(1.0 + math.log(total)) - math.log(self._delta)
        gaps = self._gaps.copy()
        gaps[self._lead] = np.inf
        return gaps, np.sqrt(2.0 * level * np.maximum(spread, 0.0))

    def closest(self, shares: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Where each plan overtakes the lead, seen by these shares of uses.

        For each plan but the lead: gap^2 / (2 y'M^-1 y), which is how far that is; the readings' means there
        less those now, (n_plans - 1, n_readings); and the plans' gaps.
        """
        others = np.delete(np.arange(len(self._gaps)), self._lead)
        matrix = self._readings.information(shares + TRACE / len(shares))
        solved = np.linalg.solve(matrix, self._away[others].T)  # (rank, n)
        lengths = np.einsum("kd,dk->k", self._away[others], solved)
        gaps = self._gaps[others]
        moved = (self._readings.rows @ (solved * (gaps / lengths))).T
        return gaps**2 / (2.0 * lengths), moved, gaps

    def standing(self) -> Standing:
        """The lead, the plan that is hardest to tell from it, their gap and its radius."""
        if not self._counts.all():
            return Standing()
        gaps, radius = self._compare()
        rival = int(np.argmin(gaps - radius))
        return Standing(self._lead, rival, float(gaps[rival]), float(radius[rival]))

    def state(self) -> dict[str, Any]:
        """Counts, the sums of readings, and the answer."""
        return {"counts": self._counts, "vector": self._vector, "answer": self._answer}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on with these."""
        self._counts, self._vector, self._answer = state["counts"], state["vector"], state["answer"]
        if self._counts.all():
            self._estimate()
