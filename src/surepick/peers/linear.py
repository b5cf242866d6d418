"""Linear bandits: readings and plans in one set of coordinates, least squares, and when to stop.

With M = sum of x x' over all readings (noise of scale 1), means by least squares and y = lead - plan, stop
when y.means > radius(y) for every other plan:

| radius | square | guarantee |
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
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from surepick.core.arrays import FloatArray, IntArray, as_dense
from surepick.core.policy import known_noise_scale
from surepick.core.probes import refuse_unknown
from surepick.core.problem import Problem
from surepick.core.run import Standing
from surepick.design.information import Dense, information_of
from surepick.errors import ParameterError
from surepick.peers.sequential import SequentialRun
from surepick.policies.gap import radius as radii
from surepick.policies.sound import SoundPolicy

PROVED, HEURISTIC = "normal-mixture", "heuristic"
TRACE = 1e-9  # of uniform shares: keeps M regular where shares have fallen to 0


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
        """The number of ways."""
        return len(self.ways)

    @property
    def shown(self) -> Readings:
        """These readings and plans in the coordinates that some reading shows; plans differ in no others."""
        used = np.flatnonzero(self.rows.any(axis=0))
        return replace(self, rows=np.ascontiguousarray(self.rows[:, used]), plans=self.plans[:, used])

    def counts(self, of_ways: IntArray) -> IntArray:
        """Return uses of the ways as uses of all probes or arms."""
        found = np.zeros(self.n_places, dtype=np.int64)
        found[self.ways] = of_ways
        return found

    def information(self, uses: FloatArray) -> FloatArray:
        """Return M, the information of these uses of the ways, or of these shares."""
        return np.asarray(self.rows.T @ (uses[self.owner, None] * self.rows))

    def pull(self, sums: FloatArray) -> FloatArray:
        """Return X'y of the sums of readings."""
        return np.asarray(self.rows.T @ self.whiten(sums)[self.places])

    def of_ways(self, values: FloatArray) -> FloatArray:
        """Return sums over the readings of each way."""
        return np.asarray(np.bincount(self.owner, values, minlength=self.n_ways), dtype=float)


def readings_of(problem: Problem, policy: str) -> Readings:
    """Return what can be measured of this problem, and its plans.

    >>> found = readings_of(Problem([[1, 0, 2], [0, 1, 2]], noise=0.5, goal="largest"), "LinGame")
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
    refuse_unknown(probes, policy)
    information = information_of(probes)
    rows = information.rows if isinstance(information, Dense) else probes.whitened.toarray()
    mine = information.coordinates(dense - dense.mean(axis=0))
    every = np.arange(len(probes))
    return Readings(rows, probes.owner, mine, every, len(probes), np.arange(probes.n_readings), probes.whiten)


@dataclass(frozen=True)
class LinearPolicy(SoundPolicy):
    """The settings of methods that stop by a radius."""

    radius: str = PROVED

    takes_probes: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.radius not in (PROVED, HEURISTIC):
            raise ParameterError(
                f"radius must be {PROVED!r} or {HEURISTIC!r}, got {self.radius!r}", field="radius"
            )

    @property
    def guarantee(self) -> str:
        """Return the guarantee and its assumption, or what is missing for one."""
        if self.radius == HEURISTIC:
            return radii.guarantee(HEURISTIC, self.delta, 0.0)
        return super().guarantee


class LinearRun(SequentialRun):
    """Every way once, then one use a round; `_sums` is X'y, and estimates are least squares."""

    def __init__(self, problem: Problem, policy: LinearPolicy) -> None:
        self._delta, self._proved = policy.delta, policy.radius == PROVED
        self._readings = readings = readings_of(problem, policy.name).shown
        super().__init__(readings.n_ways, readings.rows.shape[1])
        self._first = readings.information(np.ones(readings.n_ways))  # M_1
        self._log_volume = float(np.linalg.slogdet(self._first)[1])

    @abstractmethod
    def next_way(self) -> int:
        """Return the way to use next; nothing changes by it."""

    def choose(self, rng: np.random.Generator) -> IntArray:
        """Use one way."""
        del rng  # nothing is drawn
        return self._once(self.next_way())

    def request(self, counts: IntArray) -> IntArray:
        """Return uses of the ways as uses of all probes or arms."""
        return self._readings.counts(counts)

    def seen(self, counts: IntArray, sums: FloatArray) -> tuple[IntArray, FloatArray]:
        """Return uses of the ways, and X'y of the readings."""
        return counts[self._readings.ways], self._readings.pull(sums)

    def judge(self) -> int | None:
        """Answer if the leader is ahead of every other plan by more than the radius."""
        self._estimate()
        gaps, radius = self._compare()
        return self._lead if (gaps > radius).all() else None

    def _estimate(self) -> None:
        """Estimate by least squares; kept until more is measured."""
        self._matrix = self._readings.information(self._counts.astype(float))
        self._inverse: FloatArray = np.asarray(np.linalg.inv(self._matrix), dtype=float)
        self._means = self._inverse @ self._sums
        values = self._readings.plans @ self._means
        self._lead = int(np.argmax(values))
        self._contrasts = self._readings.plans[self._lead] - self._readings.plans  # (n_plans, rank)
        self._gaps = values[self._lead] - values

    def _compare(self) -> tuple[FloatArray, FloatArray]:
        """Return the gap of every plan to the leader, infinite for the leader itself, and its radius."""
        through = self._contrasts @ self._inverse
        variance = np.einsum("kd,kd->k", through, self._contrasts)
        total = float(self._counts.sum())
        if self._proved:
            index = radii.lam_index(total / len(self._counts))
            lam, log_share = radii.lam_value(index), radii.lam_log_weight(index)
            variance = variance + lam * np.einsum("kd,kd->k", through @ self._first, through)
            volume = float(np.linalg.slogdet(self._first + self._matrix / lam)[1]) - self._log_volume
            level = 0.5 * volume - log_share - math.log(self._delta)
        else:
            level = math.log(1.0 + math.log(total)) - math.log(self._delta)
        gaps = self._gaps.copy()
        gaps[self._lead] = np.inf
        return gaps, np.sqrt(2.0 * level * np.maximum(variance, 0.0))

    def closest(self, shares: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return where each plan overtakes the leader, for these shares of uses.

        For each plan but the leader: gap^2 / (2 y'M^-1 y), which is how far that is; the readings' means
        there less those now, (n_plans - 1, n_readings); and the plans' gaps.
        """
        others = np.delete(np.arange(len(self._gaps)), self._lead)
        matrix = self._readings.information(shares + TRACE / len(shares))
        solved = np.linalg.solve(matrix, self._contrasts[others].T)  # (rank, n)
        lengths = np.einsum("kd,dk->k", self._contrasts[others], solved)
        gaps = self._gaps[others]
        moved = (self._readings.rows @ (solved * (gaps / lengths))).T
        return gaps**2 / (2.0 * lengths), moved, gaps

    def compare(self) -> Standing:
        """Return the leader, the plan that is hardest to tell from it, their gap and its radius."""
        gaps, radius = self._compare()
        rival = int(np.argmin(gaps - radius))
        return Standing(self._lead, rival, float(gaps[rival]), float(radius[rival]))
