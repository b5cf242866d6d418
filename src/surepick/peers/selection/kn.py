"""KN: measure every arm in contention once a round, and drop those that fall below a shrinking triangle.

Paper: Kim & Nelson (2001), A Fully Sequential Procedure for Indifference-Zone Selection in Simulation, with c
= 1. With k arms, zone z, n0 = `first` and S_il^2 the variance of X_i - X_l over the first n0 rounds,

    eta = ((2 delta / (k - 1))^(-2/(n0 - 1)) - 1) / 2,      h^2 = 2 eta (n0 - 1),
    W_il(r) = max(0, z/(2r) (h^2 S_il^2 / z^2 - r)).

After r >= n0 rounds arm i stays while mean_i(r) >= mean_l(r) - W_il(r) for every l in contention. The only
arm left is the answer; so is the best one when r exceeds max h^2 S_il^2 / z^2.

Pairs: where probes read several arms in one use (common random numbers), a round uses every probe once that
reads an arm in contention. S_il^2 is then of differences within a use, and a shared noise is no noise.

Assumption: Gaussian noise, independent from round to round; scales and covariances within a round are unknown
and may differ, and those of the problem are not used. Proof status: proved for the zone: the best arm is
found with probability 1 - delta if it is better than every other by at least z. Nothing is said where others
are closer, though one of those is then a good answer. The paper's theorem is for rounds that are jointly
Gaussian; every arm is read by one probe throughout, so that dropping others changes no difference.

Deviations: rounds need single values, so that the first n0 rounds are asked for one by one; costs are not
used. A problem whose noise scale is None has its pilot first, which this procedure would not need.

Cost of a round: all pairs of arms in contention.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from surepick.core.arrays import BoolArray, FloatArray, IntArray
from surepick.core.problem import Problem
from surepick.peers.selection.zone import ZonePolicy, ZoneRun


@dataclass(frozen=True)
class KN(ZonePolicy):
    """Kim and Nelson's procedure: single arms, unknown noise, a zone of differences that do not matter.

    `zone` is in the unit of the values; `first` is how often every arm is measured to see its noise. Probes
    that read several arms in one use are used as pairs.

    >>> import surepick as sp
    >>> problem = sp.Problem([[1, 0, 0], [0, 1, 0], [0, 0, 1]], noise_scale=1)
    >>> sp.simulate(problem, sp.policies.KN(zone=0.5), sp.Gaussian([1.0, 0.4, 0.0]), seed=1).plan
    0
    """

    name: ClassVar[str] = "KN"
    takes_probes: ClassVar[bool] = True

    def start(self, problem: Problem) -> KNRun:
        """A fresh run on this problem, whose plans must be single arms."""
        return KNRun(problem, self)


class KNRun(ZoneRun):
    """A run of KN: who is in contention, and the variances of the first rounds."""

    def __init__(self, problem: Problem, policy: KN) -> None:
        super().__init__(problem, policy.name, by_probes=True)
        self._zone, self._first = policy.zone, policy.first
        share = policy.delta / (self._candidates.n_plans - 1)
        self._h_squared = h_squared(share, policy.first - 1)
        self._variances: FloatArray = np.zeros_like(self._products)  # S_il^2

    def update(self, counts: IntArray, sums: FloatArray) -> None:
        """See the values of a round, and drop who fell out of the triangle."""
        del counts  # one of each
        if self._n <= self._first:
            self.see(sums)
        if self._n == self._first:
            self._variances = self.difference_variances()
        if self._n >= self._first:
            self._active = still_in(self._active, self._means, self._height())
            last = self._n > self._longest()
            if self._active.sum() == 1 or last:
                self._answer = self._best_active()

    def _height(self) -> FloatArray:
        """W_il of this round."""
        return triangle(self._n, self._h_squared * self._variances, self._zone)

    def _longest(self) -> float:
        """The round after which the triangle is closed for all pairs in contention."""
        inside = np.ix_(self._active, self._active)
        return float(self._h_squared * self._variances[inside].max() / self._zone**2)

    def state(self) -> dict[str, Any]:
        """With the variances of the first rounds."""
        return {**super().state(), "variances": self._variances}

    def restore(self, state: Any) -> None:
        """Go on with these."""
        super().restore(state)
        self._variances = np.asarray(state["variances"])


def h_squared(share: float, freedom: int) -> float:
    """h^2 = 2 eta f, eta = ((2 share)^(-2/f) - 1)/2, for a share of delta and f degrees of freedom.

    >>> round(h_squared(0.05, 19), 2)
    5.21
    """
    return freedom * ((2.0 * share) ** (-2.0 / freedom) - 1.0)


def triangle(n: int, a: FloatArray, zone: float) -> FloatArray:
    """max(0, z/(2n) (a/z^2 - n)), a = h^2 S^2: how far one may be behind another after n rounds.

    >>> triangle(10, np.array([9.0, 1.0]), 0.5).tolist()
    [0.65, 0.0]
    """
    return np.asarray(np.maximum(0.0, zone / (2.0 * n) * (a / zone**2 - n)))


def still_in(active: BoolArray, means: FloatArray, height: FloatArray) -> BoolArray:
    """Who is no further behind anyone in contention than allowed; the best always is."""
    behind = means[None, :] - means[:, None] - height  # (i, l): how far i is too far behind l
    behind[:, ~active] = -np.inf
    np.fill_diagonal(behind, -np.inf)
    return np.asarray(active & (behind.max(axis=1) <= 0.0))
