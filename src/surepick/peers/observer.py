"""GCBPE: use a fixed set of probes that shows every plan, round after round, until the leader is clear.

Paper: Du, Kuroki & Chen (2021), Combinatorial Pure Exploration with Full-Bandit or Partial Linear Feedback
(GCB-PE), whose estimates are those of Lin et al. (2014), Combinatorial Partial Monitoring Game with Linear
Feedback. A global observer set is one whose readings X determine all means together. In round n

    1. use every probe of the set once; the estimate is the average over all rounds of X^+ times the readings;
    2. stop with the plan of the largest estimated value if it leads every other by more than 2 L rad(n),
       where L is the largest norm of a plan, and the estimate is within rad(n) of the means in norm.

Assumption: independent sub-Gaussian readings, of one use independent or of known covariance.

Proof status: proved. The same probes are used however the readings come out, so that fixed-count tails hold:
with S = (X'X)^-1 and x = log(2 n^2 / delta), the squared error exceeds rad(n)^2 = (tr S + 2 sqrt(x tr S^2) +
2 x |S|) / n with probability at most e^-x (Hsu, Kakade & Zhang 2012), which adds up to less than delta.

Deviations: the box is reconstructed; the text of the paper could not be read here. Its rad(n) is sqrt(2 b^2
log(4 e^2 n^2 / delta) / n) for readings that move a round's estimate by at most b, which Gaussian noise does
not do. Plans count less their average, which changes no difference. The set is chosen greedily: the probe
that shows most of what the others do not. Costs are not used.

Cost of a round: one pass over the plans.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from surepick.core.arrays import FloatArray, IntArray
from surepick.core.problem import Problem
from surepick.core.run import Measure, Standing, Stop
from surepick.peers.linear import Readings, readings_of
from surepick.policies.sound import SoundPolicy

_NOTHING = 1e-9  # of the longest reading: a rest below it shows nothing new


class ObserverRun:
    """A run of GCBPE: the rounds so far and X'y of their readings. It changes by `absorb` alone."""

    def __init__(self, problem: Problem, policy: GCBPE) -> None:
        self._readings, self._delta = readings_of(problem, policy.name).shown, policy.delta
        self._set = observer_set(self._readings)
        self._uses: IntArray = np.zeros(self._readings.n_ways, dtype=np.int64)
        self._uses[self._set] = 1
        self._covariance = np.linalg.inv(self._readings.information(self._uses.astype(float)))  # S
        self._length = float(np.linalg.norm(self._readings.plans, axis=1).max())  # L
        self._n, self._vector = 0, np.zeros(len(self._covariance))

    def decide(self, rng: np.random.Generator) -> Measure | Stop:
        """Return the whole set once, or the leader."""
        del rng  # nothing is drawn
        found = self.standing()
        if found.gap is not None and found.radius is not None and found.gap > found.radius:
            return Stop(found.leader)
        return Measure(self._readings.counts(self._uses))

    def absorb(self, counts: IntArray, sums: FloatArray) -> None:
        """Add one round, or several at once."""
        self._n += int(counts[self._readings.ways[self._set[0]]])
        self._vector = self._vector + self._readings.pull(sums)

    def standing(self) -> Standing:
        """Return the leader, the next plan, their gap and 2 L rad."""
        if not self._n:
            return Standing()
        values = self._readings.plans @ (self._covariance @ self._vector) / self._n
        leader, rival = (int(k) for k in np.argsort(-values, kind="stable")[:2])
        gap = float(values[leader] - values[rival])
        return Standing(leader, rival, gap, 2.0 * self._length * self.error(self._n))

    def error(self, n: int) -> float:
        """Return rad(n), which the estimate after n rounds is within, at all times together."""
        eigenvalues, x = np.linalg.eigvalsh(self._covariance), math.log(2.0 * n**2 / self._delta)
        square = eigenvalues.sum() + 2.0 * math.sqrt(x * (eigenvalues**2).sum()) + 2.0 * x * eigenvalues[-1]
        return math.sqrt(square / n)


@dataclass(frozen=True)
class GCBPE(SoundPolicy):
    """Use a set of probes that shows all plans, equally often, until one plan leads by its radius."""

    name: ClassVar[str] = "GCBPE"
    _run: ClassVar[type[Any]] = ObserverRun
    takes_probes: ClassVar[bool] = True


def observer_set(readings: Readings) -> IntArray:
    """Return ways whose readings span all coordinates, each added for the most that it shows anew."""
    left, chosen = readings.rows.copy(), list[int]()
    smallest = _NOTHING * float(np.linalg.norm(left, axis=1).max())
    while True:
        shown = readings.of_ways((left**2).sum(axis=1))
        best = int(np.argmax(shown))
        if math.sqrt(shown[best]) <= smallest:
            return np.array(chosen, dtype=np.int64)
        chosen.append(best)
        basis = np.linalg.qr(readings.rows[np.isin(readings.owner, chosen)].T)[0]
        left = readings.rows - readings.rows @ basis @ basis.T
