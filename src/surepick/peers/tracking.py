"""Single arms by tracked shares: the top-two rules TTUCB, EBTCI and TTTS, and TrackAndStop.

Assumption and proof status of all: those of the radius that they stop by (`sequential`), which holds for any
rule of choosing arms. The papers show how the expected measurements compare with the limit as delta goes to
0: a factor of 2 for top two, 1 for Track-and-Stop. Costs of measurements are not used. A round costs a few
passes over the arms (TTTS: one for each draw).

**Top two** measures a leader or a challenger. Russo (2016), Simple Bayesian Algorithms for Best Arm
Identification (TTTS); Jourdan & Degenne (2023), Non-Asymptotic Analysis of a UCB-Based Top Two Algorithm
(TTUCB); Jourdan, Degenne, Baudry, de Heide & Kaufmann (2022), Top Two Algorithms Revisited (EB-TCI).

| policy | leader | challenger |
|---|---|---|
| `TTTS` | best of a draw from N(mean, R^2/n) | best of further draws, the first that is another arm |
| `TTUCB` | largest mean + R sqrt(g(t) / n) | smallest cost to the leader |
| `EBTCI` | largest mean | smallest cost + log n |

g(t) = W(2 s a log t + 2 log(2 + a log t) + 2), a = s = 1.2, where W(x) is the larger y with y - log y = x.
The cost of j is gap^2 / (2 (R_i^2/n_i + R_j^2/n_j)). TTTS measures the leader with probability 1/2, the other
two as often as keeps its share of the rounds that it led at 1/2. EB-TCI's constants are those of a program
with the authors' code in it; TTUCB's bonus is the tighter of the two in its paper, as a public program has
it. Deviations: EB-TCI's coin is replaced by the tracking of the TTUCB paper; after 100 draws without another
arm TTTS takes the arm of smallest cost (as T3C would); arms that look better than the leader, whose cost is 0
in the paper, come first by how much better they look; `epsilon` enters gaps and stop.

**Track-and-Stop**: Garivier & Kaufmann (2016), Optimal Best Arm Identification with Fixed Confidence, with
its D-tracking: measure the least measured arm if it has fewer than sqrt(t) - K/2, else argmax_a t w_a - N_a,
where w are the shares that attain the limit for the estimates. For Gaussian noise they come from one
equation: with the gaps g_j of the best arm b and weights in units of w_b/R_b^2, 1 + R_j^2/w_j = g_j^2 y, and
y is such that sum_j w_j^2/R_j^2 = w_b^2/R_b^2. Deviations: `epsilon` enters the stop and the gaps; arms that
tie with the best count as a gap of a thousandth of a noise scale.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from surepick.core.arrays import FloatArray, IntArray
from surepick.core.problem import Problem
from surepick.peers.sequential import PairwisePolicy, PairwiseRun, d_tracking

ALPHA = S = 1.2  # of TTUCB's bonus
MOST_DRAWS = 100
SMALLEST_GAP = 1e-3  # in noise scales of the two arms
_STEPS = 60  # of Newton's method, which needs five to ten


class EBTCIRun(PairwiseRun):
    """A run of EB-TCI, which tracks how often each arm led, and how often it was measured then."""

    def __init__(self, problem: Problem, policy: PairwisePolicy) -> None:
        super().__init__(problem, policy)
        n = len(self._counts)
        self._led = np.zeros(n, dtype=np.int64)
        self._measured_leading = np.zeros(n, dtype=np.int64)

    def _leader(self) -> int:
        return self._best

    def _challenger(self, leader: int) -> int:
        return int(np.argmin(self._costs(leader) + np.log(self._counts)))

    def _choose(self, rng: np.random.Generator) -> IntArray:
        """Measure the leader while it has at most half of the rounds that it led, this one included."""
        leader = self._leader()
        self._led[leader] += 1
        if self._measured_leading[leader] > self._led[leader] / 2:
            return self._once(self._challenger(leader))
        self._measured_leading[leader] += 1
        return self._once(leader)


@dataclass(frozen=True)
class EBTCI(PairwisePolicy, run=EBTCIRun):
    """The empirical best as leader, challenger by the smallest transportation cost plus log of its count.

    `radius` is "kaufmann-koolen" (proved), "normal-mixture" (proved) or "heuristic" (no guarantee).
    """


class TTUCBRun(EBTCIRun):
    """A run of TTUCB."""

    def _leader(self) -> int:
        bonus = np.sqrt(ucb_bonus(float(self._counts.sum())) / self._counts)
        return int(np.argmax(self._means + self._scale * bonus))

    def _challenger(self, leader: int) -> int:
        return int(np.argmin(self._costs(leader)))


@dataclass(frozen=True)
class TTUCB(PairwisePolicy, run=TTUCBRun):
    """Leader by an upper confidence bound, challenger by the smallest transportation cost.

    `radius` is "kaufmann-koolen" (proved), "normal-mixture" (proved) or "heuristic" (no guarantee).
    """

    version: ClassVar[int] = 2


def ucb_bonus(t: float) -> float:
    """Return g(t), by iterating y = x + log y, which comes closer by a factor of y each time.

    >>> round(ucb_bonus(1000.0), 3)
    29.956
    """
    x = y = 2.0 * S * ALPHA * math.log(t) + 2.0 * math.log(2.0 + ALPHA * math.log(t)) + 2.0
    for _ in range(20):
        y = x + math.log(y)
    return y


class TTTSRun(PairwiseRun):
    """A run of TTTS."""

    def _choose(self, rng: np.random.Generator) -> IntArray:
        """Measure the winner of a draw, or the first other winner of further draws."""
        error = self._scale / np.sqrt(self._counts)
        leader = int(np.argmax(self._means + error * rng.standard_normal(len(error))))
        if rng.random() < 0.5:
            return self._once(leader)
        draws = self._means + error * rng.standard_normal((MOST_DRAWS, len(error)))
        winners = np.argmax(draws, axis=1)
        others = winners[winners != leader]
        return self._once(int(others[0]) if len(others) else int(np.argmin(self._costs(leader))))


@dataclass(frozen=True)
class TTTS(PairwisePolicy, run=TTTSRun):
    """Leader and challenger by draws from the posterior, the leader measured with probability 1/2.

    `radius` is "kaufmann-koolen" (proved), "normal-mixture" (proved) or "heuristic" (no guarantee).
    """

    randomized: ClassVar[bool] = True


class TrackingRun(PairwiseRun):
    """A run of Track-and-Stop."""

    def _choose(self, rng: np.random.Generator) -> IntArray:
        """Measure by D-tracking of the shares that attain the limit for the estimates."""
        leader = self._best
        gaps = self._means[leader] - self._means + self._epsilon
        least = SMALLEST_GAP * (self._scale + self._scale[leader])
        shares = best_shares(np.maximum(gaps, least), leader, self._scale)
        return self._once(d_tracking(self._counts, shares))


@dataclass(frozen=True)
class TrackAndStop(PairwisePolicy, run=TrackingRun):
    """Track the best proportions for the estimates.

    `radius` is "kaufmann-koolen" (proved), "normal-mixture" (proved) or "heuristic" (no guarantee).
    """


def best_shares(gaps: FloatArray, leader: int, scale: FloatArray) -> FloatArray:
    """Return the shares that attain the limit for these gaps to the leader, all above 0.

    Gaps, noise scales and shares have an entry for each arm; the leader's own gap is not used.

    >>> best_shares(np.array([1.0, 1.0]), 0, np.ones(2)).round(3).tolist()
    [0.5, 0.5]
    """
    others = np.delete(np.arange(len(gaps)), leader)
    squared_gaps, variance, own_variance = gaps[others] ** 2, scale[others] ** 2, scale[leader] ** 2
    # In units of w_b/R_b^2 weights are w_j = R_j^2 v_j, v_j = 1/(g_j^2 y - 1): all rivals are equally far.
    # F(y) = sum_j w_j^2/R_j^2 - R_b^2 falls and is convex; find its zero by Newton's method, from the y that
    # one rival would need alone (the largest of these).
    y = float(((1.0 + scale[others] / scale[leader]) / squared_gaps).max())
    for _ in range(_STEPS):
        v = 1.0 / (squared_gaps * y - 1.0)
        step = (variance @ v**2 - own_variance) / (2.0 * (variance * squared_gaps) @ v**3)  # -F / F'
        y += step
        if step <= 1e-12 * y:
            break
    shares = np.empty(len(gaps))
    shares[others] = variance / (squared_gaps * y - 1.0)
    shares[leader] = own_variance
    return np.asarray(shares / shares.sum())
