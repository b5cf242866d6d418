"""Single arms by tracked shares: TTUCB, EBTCI, TTTS, TrackAndStop.

Top two: name a leader and a challenger each round, and measure one of them; three ways to name them.

Papers: TTTS, Russo (2016), Simple Bayesian Algorithms for Best Arm Identification; TTUCB, Jourdan & Degenne
(2023), Non-Asymptotic Analysis of a UCB-Based Top Two Algorithm; EB-TCI, Jourdan, Degenne, Baudry, de Heide &
Kaufmann (2022), Top Two Algorithms Revisited.

| policy | leader | challenger |
|---|---|---|
| `TTTS` | best of a draw from N(mean, R^2/n) | best of further draws, the first that is another arm |
| `TTUCB` | largest mean + R sqrt(g(t) / n) | smallest cost to the leader |
| `EBTCI` | largest mean | smallest cost + log n |

g(t) = W(2 s a log t + 2 log(2 + a log t) + 2), a = s = 1.2, where W(x) is the larger y with y - log y = x.
The cost of j is gap^2 / (2 (R_i^2/n_i + R_j^2/n_j)), and all stop by it (`sequential`). TTTS measures the
leader with probability 1/2, the other two as often as keeps its share of the rounds that it led at 1/2.

Assumption and proof status: those of the radius, which holds for any rule of choosing arms; the papers show
that the expected measurements come within a factor of 2 of the limit as delta goes to 0.

Constants: EB-TCI's cost and share are those of a program with the authors' code in it. TTUCB's bonus is the
tighter of the two in its paper, as a public program has it; the authors' own could not be seen.

Deviations: EB-TCI's coin is replaced by the tracking of the TTUCB paper; after 100 draws without another arm
TTTS takes the arm of smallest cost (as T3C would); arms that look better than the leader, whose cost is 0 in
the paper, come first by how much better they look; `epsilon` enters gaps and stop (EB-TCI with it is the
EB-TC-epsilon of Jourdan, Degenne & Kaufmann 2023); costs of measurements are not used.

Cost of a round: a few passes over the arms; TTTS: one for each draw.

Track-and-Stop: measure in the proportions that would be best if the estimates were true.

Paper: Garivier & Kaufmann (2016), Optimal Best Arm Identification with Fixed Confidence. With w*(means) the
shares that attain the limit, K arms and t measurements so far:

    C: measure argmax_a (sum over the past of w*_a, each raised to at least (K^2 + t)^(-1/2)/2) - N_a;
    D: measure the least measured arm if it has fewer than sqrt(t) - K/2, else argmax_a t w*_a - N_a;
    stop by the generalised likelihood ratio (`sequential`).

For Gaussian noise w* comes from one equation: with the gaps g_j of the best arm b and weights in units of
w_b/R_b^2, 1 + R_j^2/w_j = g_j^2 y, and y is such that sum_j w_j^2/R_j^2 = w_b^2/R_b^2.

Assumption and proof status: those of the radius, which holds for any rule of choosing arms; the paper shows
that the expected measurements come to the limit as delta goes to 0.

Deviations: `epsilon` enters the stop and the gaps, for the leader as answer (the paper has none); raising to
the least share takes from all others in proportion; arms that tie with the best count as a gap of a
thousandth of a noise scale. Costs are not used.

Cost of a round: a few passes over the arms.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from surepick.core.arrays import FloatArray, IntArray
from surepick.core.problem import Problem
from surepick.peers.sequential import PairwisePolicy, PairwiseRun
from surepick.policies.sound import check_choice

ALPHA = S = 1.2  # of TTUCB's bonus
MOST_DRAWS = 100


class TopTwoRun(PairwiseRun):
    """A run that tracks how often each arm led, and how often it was measured then."""

    def __init__(self, problem: Problem, policy: PairwisePolicy) -> None:
        super().__init__(problem, policy)
        n = self._candidates.n_plans
        self._led, self._measured_leading = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)

    def leader(self) -> int:
        """Return the arm that looks best."""
        return self._lead

    def challenger(self, leader: int) -> int:
        """Return the arm that is hardest to tell from it."""
        return int(np.argmin(self._costs(leader)))

    def choose(self, rng: np.random.Generator) -> IntArray:
        """Measure the leader while it has less than half of the rounds that it led, this one included."""
        del rng  # nothing is drawn
        leader = self.leader()
        if self._measured_leading[leader] <= (self._led[leader] + 1) / 2:
            return self._once(leader)
        return self._once(self.challenger(leader))

    def absorb(self, counts: IntArray, sums: FloatArray) -> None:
        """Keep which arm led this round."""
        if self._counts.all():
            leader = self._once(self.leader())
            self._led = self._led + leader
            self._measured_leading = self._measured_leading + leader * self.seen(counts, sums)[0]
        super().absorb(counts, sums)


class TTUCBRun(TopTwoRun):
    """A run of TTUCB."""

    def leader(self) -> int:
        """Return the arm with the largest upper confidence bound."""
        bonus = np.sqrt(ucb_bonus(float(self._counts.sum())) / self._counts)
        return int(np.argmax(self._means + self._scale * bonus))


@dataclass(frozen=True)
class TTUCB(PairwisePolicy):
    """Leader by an upper confidence bound, challenger by the smallest transportation cost.

    `radius` is "kaufmann-koolen" (proved), "normal-mixture" (proved) or "heuristic" (no guarantee).
    """

    name: ClassVar[str] = "TTUCB"
    _run: ClassVar[type[Any]] = TTUCBRun
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


class EBTCIRun(TopTwoRun):
    """A run of EB-TCI."""

    def challenger(self, leader: int) -> int:
        """Return the arm with the smallest cost plus log of its count."""
        return int(np.argmin(self._costs(leader) + np.log(self._counts)))


@dataclass(frozen=True)
class EBTCI(PairwisePolicy):
    """The empirical best as leader, challenger by the smallest transportation cost plus log of its count.

    `radius` is "kaufmann-koolen" (proved), "normal-mixture" (proved) or "heuristic" (no guarantee).
    """

    name: ClassVar[str] = "EBTCI"
    _run: ClassVar[type[Any]] = EBTCIRun


class TTTSRun(PairwiseRun):
    """A run of TTTS."""

    def choose(self, rng: np.random.Generator) -> IntArray:
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
class TTTS(PairwisePolicy):
    """Leader and challenger by draws from the posterior, the leader measured with probability 1/2.

    `radius` is "kaufmann-koolen" (proved), "normal-mixture" (proved) or "heuristic" (no guarantee).
    """

    name: ClassVar[str] = "TTTS"
    _run: ClassVar[type[Any]] = TTTSRun
    randomized: ClassVar[bool] = True


SMALLEST_GAP = 1e-3  # in noise scales of the two arms
_STEPS = 60  # of Newton's method, which needs five to ten


class TrackingRun(PairwiseRun):
    """A run of Track-and-Stop; `_due` is the sum of the shares of the past, for C-tracking."""

    def __init__(self, problem: Problem, policy: TrackAndStop) -> None:
        super().__init__(problem, policy)
        self._cumulative = policy.tracking == "C"
        self._due = np.zeros(self._candidates.n_plans)

    def choose(self, rng: np.random.Generator) -> IntArray:
        """Measure the arm that is furthest behind its share; D: unless one has far too few."""
        del rng  # nothing is drawn
        n_arms, total = len(self._counts), float(self._counts.sum())
        if self._cumulative:
            return self._once(int(np.argmax(self._due + self._raised() - self._counts)))
        if self._counts.min() < math.sqrt(total) - n_arms / 2:
            return self._once(int(np.argmin(self._counts)))
        return self._once(int(np.argmax(total * self._shares() - self._counts)))

    def absorb(self, counts: IntArray, sums: FloatArray) -> None:
        """Add the shares by which it was measured."""
        if self._cumulative:
            self._due = self._due + (self._raised() if self._counts.all() else 1.0)
        super().absorb(counts, sums)

    def _shares(self) -> FloatArray:
        means, lead = self._means, self._lead
        gaps = means[lead] - means + self._epsilon
        least = SMALLEST_GAP * (self._scale + self._scale[lead])
        return best_shares(np.maximum(gaps, least), lead, self._scale)

    def _raised(self) -> FloatArray:
        """Return the shares, each raised to a least one."""
        n_arms = len(self._counts)
        least = 0.5 / math.sqrt(n_arms**2 + float(self._counts.sum()))
        return np.asarray(least + (1.0 - n_arms * least) * self._shares())


@dataclass(frozen=True)
class TrackAndStop(PairwisePolicy):
    """Track the best proportions for the estimates; `tracking` is "C" or "D", as in the paper.

    `radius` is "kaufmann-koolen" (proved), "normal-mixture" (proved) or "heuristic" (no guarantee).
    """

    tracking: str = "D"

    name: ClassVar[str] = "TrackAndStop"
    _run: ClassVar[type[Any]] = TrackingRun

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("tracking", self.tracking, "C", "D")


def best_shares(gaps: FloatArray, lead: int, scale: FloatArray) -> FloatArray:
    """Return w*, the shares that attain the limit for these gaps to the leader, all above 0.

    Newton's method on a convex falling function, from where the closest rival alone would put it.

    >>> best_shares(np.array([1.0, 1.0]), 0, np.ones(2)).round(3).tolist()
    [0.5, 0.5]
    """
    others = np.delete(np.arange(len(gaps)), lead)
    squares, variance, own = gaps[others] ** 2, scale[others] ** 2, scale[lead] ** 2
    y = float(((1.0 + scale[others] / scale[lead]) / squares).max())
    for _ in range(_STEPS):
        v = 1.0 / (squares * y - 1.0)
        step = (variance @ v**2 - own) / (2.0 * (variance * squares) @ v**3)
        y += step
        if step <= 1e-12 * y:
            break
    shares = np.empty(len(gaps))
    shares[others], shares[lead] = variance / (squares * y - 1.0), own
    return np.asarray(shares / shares.sum())
