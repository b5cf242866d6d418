"""Ranking and selection with an indifference zone: KN and Rinott.

Both find the best of k arms with probability 1 - delta if it is better than every other by at least the zone
z; proved. Nothing is said where others are closer, though one of those is then a good answer. Assumption:
Gaussian noise, independent from round to round; scales are unknown and may differ, and those of the problem
are not used. Both ask for the first n0 = `first` rounds one by one, to see single values. Costs are not used.

**KN**: Kim & Nelson (2001), A Fully Sequential Procedure for Indifference-Zone Selection in Simulation, with
c = 1. With S_il^2 the variance of X_i - X_l over the first n0 rounds, h^2 = (n0 - 1) ((2 delta / (k - 1))^(-2
/ (n0 - 1)) - 1) and W_il(r) = max(0, z/(2r) (h^2 S_il^2 / z^2 - r)): after r >= n0 rounds arm i stays while
mean_i(r) >= mean_l(r) - W_il(r) for every l in contention. The only arm left is the answer; so is the best
one when r exceeds max h^2 S_il^2 / z^2. A round costs all pairs of arms in contention.

**Rinott**: Rinott (1978), On Two-Stage Selection Procedures and Related Probability-Inequalities, the
classical baseline. After n0 of each, measure arm i to max(n0, ceil(h^2 S_i^2 / z^2)) in all, and answer with
the largest mean; h solves, with x, y chi-square with n0 - 1 degrees of freedom,

    E[ (E[ Phi(h / sqrt((n0 - 1) (1/x + 1/y))) | y ])^(k-1) ] = 1 - delta,

here by quadrature, to three digits.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np

from surepick.core.arrays import BoolArray, FloatArray, IntArray
from surepick.core.guarantee import Guarantee
from surepick.core.oracle_problem import AnyProblem
from surepick.core.problem import Problem
from surepick.core.run import Standing
from surepick.peers.sequential import CandidatesRun, best_two, single_arms
from surepick.policies.sound import SoundPolicy, check_setting

_NODES = 96  # of the quadrature, in each direction


@dataclass(frozen=True)
class ZonePolicy(SoundPolicy):
    """The settings of procedures with an indifference zone, and their guarantee.

    `zone` is in the unit of the values; `first` is how often every arm is measured to see its noise.
    """

    zone: float = 0.1
    first: int = 20

    def learns_noise(self, problem: AnyProblem) -> bool:
        """Return True: variances come from the measurements alone."""
        return True

    def __post_init__(self) -> None:
        super().__post_init__()
        right = self.zone > 0 and math.isfinite(self.zone)
        check_setting("zone", self.zone, right=right, meaning="the smallest difference that matters, above 0")
        meaning = "how often every arm is measured first, 2 or more"
        check_setting("first", self.first, right=self.first >= 2, meaning=meaning)

    @property
    def guarantee(self) -> Guarantee:
        """Return the guarantee and its assumption.

        >>> KN(0.05, zone=0.3).guarantee.goal
        'the best plan, if it is better than every other by at least 0.3'
        """
        goal = f"the best plan, if it is better than every other by at least {self.zone:g}"
        return Guarantee(goal, self.delta, "independent Gaussian noise")


class ZoneRun(CandidatesRun):
    """A run whose first rounds measure every candidate once, so that single values are seen.

    Sums of products are of the values less those of the first round, which avoids cancellation.
    """

    def __init__(self, problem: Problem, policy: ZonePolicy) -> None:
        super().__init__(single_arms(problem, policy.name, learns_noise=True))
        n = len(self._counts)
        self._zone, self._first = policy.zone, policy.first
        self._origin = np.zeros(n)  # the values of the first round
        self._products = np.zeros((n, n))  # sums of products of values, each less its origin
        self._active: BoolArray = np.ones(n, dtype=bool)

    def _choose(self, rng: np.random.Generator) -> IntArray:
        return self._active.astype(np.int64)

    def _add(self, counts: IntArray, sums: FloatArray) -> None:
        """Add a round; of the first n0 rounds, whose sums are single values, also their products."""
        if not self._counts.any():
            self._origin = sums
        if self._n < self._first:
            moved = sums - self._origin
            self._products = self._products + np.outer(moved, moved)
        super()._add(counts, sums)

    def _covariance(self) -> FloatArray:
        """Return the sample covariance over the first rounds, once all are in and no more."""
        moved = self._sums - self._first * self._origin
        return np.asarray((self._products - np.outer(moved, moved) / self._first) / (self._first - 1))

    @property
    def _n(self) -> int:
        """The rounds seen: how often every candidate in contention was measured."""
        return int(self._counts.max())

    def _best_active(self) -> int:
        """Return the arm in contention with the largest mean."""
        return int(np.argmax(np.where(self._active, self._means, -np.inf)))

    def _compare(self) -> Standing:
        return best_two(self._means)


class KNRun(ZoneRun):
    """A run of KN."""

    def __init__(self, problem: Problem, policy: KN) -> None:
        super().__init__(problem, policy)
        freedom = policy.first - 1
        share = policy.delta / (len(self._counts) - 1)
        self._h_squared = freedom * ((2.0 * share) ** (-2.0 / freedom) - 1.0)
        self._closing_round: FloatArray = self._products  # (i, l), known after the first rounds

    def _judge(self) -> int | None:
        """Drop the arms that are too far behind; answer when one is left, or no W_il is above 0 any more."""
        n = self._n
        if n < self._first:
            return None
        if n == self._first:
            covariance = self._covariance()
            own = np.diag(covariance)
            differences = np.maximum(own[:, None] + own - 2.0 * covariance, 0.0)  # S_il^2
            self._closing_round = self._h_squared * differences / self._zone**2
        allowed = np.maximum(0.0, self._zone / (2.0 * n) * (self._closing_round - n))  # W_il(n)
        behind = self._means[None, :] - self._means[:, None] - allowed  # (i, l): how far i is behind l
        behind[:, ~self._active] = -np.inf
        np.fill_diagonal(behind, -np.inf)
        self._active = self._active & (behind.max(axis=1) <= 0.0)
        is_closed = self._closing_round[np.ix_(self._active, self._active)].max() < n
        return self._best_active() if is_closed or self._active.sum() == 1 else None


@dataclass(frozen=True)
class KN(ZonePolicy, run=KNRun):
    """Kim and Nelson's procedure: single arms, unknown noise, a zone of differences that do not matter."""


class RinottRun(ZoneRun):
    """A run of Rinott's procedure: the first stage, then all of the second at once."""

    def __init__(self, problem: Problem, policy: Rinott) -> None:
        super().__init__(problem, policy)
        self._h = rinott_h(len(self._counts), policy.first, policy.delta)

    def _choose(self, rng: np.random.Generator) -> IntArray:
        return super()._choose(rng) if self._n < self._first else self._missing()

    def _judge(self) -> int | None:
        is_over = self._n > self._first or (self._n == self._first and not self._missing().any())
        return self._best_active() if is_over else None

    def _missing(self) -> IntArray:
        """Return what the second stage measures of each arm: h^2 S_i^2 / z^2 in all, less the first stage."""
        variances = np.maximum(np.diag(self._covariance()), 0.0)
        needed = np.ceil(self._h**2 * variances / self._zone**2).astype(np.int64)
        return np.maximum(needed - self._first, 0)


@dataclass(frozen=True)
class Rinott(ZonePolicy, run=RinottRun):
    """Rinott's two-stage procedure: single arms, unknown noise, a zone of differences that do not matter."""


@functools.lru_cache(maxsize=64)
def rinott_h(n_plans: int, first: int, delta: float) -> float:
    """Return Rinott's constant, by quadrature over the quantiles of two chi-square variables.

    >>> round(rinott_h(10, 20, 0.05), 2)
    3.88
    """
    from scipy.optimize import brentq
    from scipy.special import gammaincinv, ndtr

    u, weight = np.polynomial.legendre.leggauss(_NODES)
    quantile = 2.0 * gammaincinv((first - 1) / 2, (u + 1) / 2)
    divisor = np.sqrt((first - 1) * (1 / quantile[:, None] + 1 / quantile))  # (y, x), of h in Phi

    def excess(h: float) -> float:
        """Return the probability of a correct selection with h, less 1 - delta."""
        inner = (weight / 2) @ ndtr(h / divisor)  # over x, for each y
        return float((weight / 2) @ inner ** (n_plans - 1)) - (1 - delta)

    highest = 10.0 * math.sqrt(math.log(n_plans / delta) + 1.0)
    return float(brentq(excess, 0.0, highest))
