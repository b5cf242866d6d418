"""Track-and-Stop: measure in the proportions that would be best if the estimates were true.

Paper: Garivier & Kaufmann (2016), Optimal Best Arm Identification with Fixed Confidence. With w*(means) the
shares that attain the limit, K arms and t measurements so far:

    C: measure argmax_a (sum over the past of w*_a, each raised to at least (K^2 + t)^(-1/2)/2) - N_a;
    D: measure the least measured arm if it has fewer than sqrt(t) - K/2, else argmax_a t w*_a - N_a;
    stop by the generalised likelihood ratio (`sequential`).

For Gaussian noise w* comes from one equation: with the gaps g_j of the best arm b and weights in units of
w_b/R_b^2, 1 + R_j^2/w_j = g_j^2 y, and y is such that sum_j w_j^2/R_j^2 = w_b^2/R_b^2.

Assumption and proof status: those of the radius, which holds for any rule of choosing arms; the paper shows
that the expected measurements come to the limit as delta goes to 0.

Deviations: `epsilon` enters the stop and the gaps, for the lead as answer (the paper has none); raising to
the least share takes from all others in proportion; arms that tie with the best count as a gap of a
thousandth of a noise scale. Costs are not used.

Cost of a round: a few passes over the arms.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from surepick.core.arrays import FloatArray, IntArray
from surepick.core.problem import Problem
from surepick.errors import ParameterError
from surepick.peers.sequential import PairwisePolicy, PairwiseRun

SMALLEST_GAP = 1e-3  # in noise scales of the two arms
_STEPS = 60  # of Newton's method, which needs five to ten


@dataclass(frozen=True)
class TrackAndStop(PairwisePolicy):
    """Track the best proportions for the estimates; `tracking` is "C" or "D", as in the paper.

    `radius` is "kaufmann-koolen" (proved), "normal-mixture" (proved) or "heuristic" (no guarantee).

    >>> import surepick as sp
    >>> problem = sp.Problem([[1, 0, 0], [0, 1, 0], [0, 0, 1]], noise=1, goal="largest")
    >>> sp.simulate(problem, sp.Gaussian([1.0, 0.4, 0.0]), policy=sp.policies.TrackAndStop(), seed=1).plan
    0
    """

    tracking: str = "D"

    name: ClassVar[str] = "TrackAndStop"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.tracking not in ("C", "D"):
            raise ParameterError(f"tracking must be 'C' or 'D', got {self.tracking!r}", field="tracking")

    def start(self, problem: Problem) -> TrackingRun:
        """Return a fresh run on this problem, whose plans must be single arms."""
        return TrackingRun(problem, self)


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


def best_shares(gaps: FloatArray, lead: int, scale: FloatArray) -> FloatArray:
    """Return w*, the shares that attain the limit for these gaps to the lead, all above 0.

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
