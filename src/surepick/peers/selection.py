"""Ranking and selection with an indifference zone: KN, KNPlusPlus, Rinott.

KN and KN++: measure every arm in contention once a round; drop those that fall below a triangle.

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
used.

KN++ is Kim & Nelson (2006), On the Asymptotic Validity of Fully Sequential Selection Procedures for
Steady-State Simulation, for independent measurements, so that a batch is one of them: as KN, but after r
rounds S_il^2 is the variance over all r of them, f = r - 1 degrees of freedom and

    h^2 = f ((2 beta)^(-2/f) - 1),     beta = 1 - (1 - delta)^(1/(k - 1)),

for arms measured independently; where one use reads several, beta = delta/(k - 1), as KN has it. Proof status
of KN++: valid in the limit of zones that shrink to 0, and no error of a run is bounded: variances that are
looked at again and again may stop a run when they happen to be small.

Cost of a round: all pairs of arms in contention.

Rinott: two stages; the second is as long as the variances of the first one say.

Paper: Rinott (1978), On Two-Stage Selection Procedures and Related Probability-Inequalities. With k arms,
zone z and n0 = `first`: measure every arm n0 times, then arm i to max(n0, ceil(h^2 S_i^2 / z^2)) in all, and
answer with the largest mean. h is the solution of

    E[ (E[ Phi(h / sqrt((n0 - 1) (1/x + 1/y))) | y ])^(k-1) ] = 1 - delta,   x, y chi-square with n0 - 1.

Assumption: independent Gaussian noise; scales are unknown and may differ, and that of the problem is not
used. Proof status: proved for the zone (see KN). Every arm is measured as often as if all others were at the
zone's edge: the classical baseline that sequential procedures are compared with.

Deviations: the first stage is asked for one of each arm at a time, to see single values. h is computed by
quadrature, to three digits. Cost of a round: nothing that would show.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from surepick.core.arrays import BoolArray, FloatArray, IntArray
from surepick.core.guarantee import Promise
from surepick.core.oracle_problem import AnyProblem
from surepick.core.policy import check_delta
from surepick.core.problem import Problem
from surepick.errors import ParameterError
from surepick.peers.sequential import ArmsRun
from surepick.policies.sound import Starting


@dataclass(frozen=True)
class ZonePolicy(Starting):
    """The settings of procedures with an indifference zone, and their guarantee.

    `zone` is in the unit of the values; `first` is how often every arm is measured to see its noise.
    """

    delta: float = 0.05
    zone: float = 0.1
    first: int = 20

    name: ClassVar[str]
    version: ClassVar[int] = 1
    randomized: ClassVar[bool] = False

    def learns_noise(self, problem: AnyProblem) -> bool:
        """Return True: variances come from the measurements alone."""
        del problem
        return True

    def __post_init__(self) -> None:
        check_delta(self.delta)
        if not (self.zone > 0 and math.isfinite(self.zone)):
            raise ParameterError(
                f"zone is the smallest difference that matters, above 0, got {self.zone!r}", field="zone"
            )
        if not self.first >= 2:
            raise ParameterError(
                f"first is how often every arm is measured first, 2 or more, got {self.first!r}",
                field="first",
            )

    @property
    def guarantee(self) -> str:
        """Return the guarantee and its assumption.

        >>> KN(0.05, zone=0.3).guarantee.partition(", wrong")[0]
        'the best plan, if it is better than every other by at least 0.3'
        """
        return (
            f"the best plan, if it is better than every other by at least {self.zone:g}, wrong with "
            f"probability at most {self.delta:g}, given independent Gaussian noise"
        )


@dataclass(frozen=True)
class KN(ZonePolicy):
    """Kim and Nelson's procedure: single arms, unknown noise, a zone of differences that do not matter.

    Probes that read several arms in one use are used as pairs.
    """

    name: ClassVar[str] = "KN"
    takes_probes: ClassVar[bool] = True

    def start(self, problem: Problem) -> KNRun:
        """Return a fresh run on this problem, whose plans must be single arms."""
        return KNRun(problem, self, keeps_estimating=False)


@dataclass(frozen=True)
class KNPlusPlus(ZonePolicy):
    """Kim and Nelson's second procedure: as KN, with variances of all that was seen."""

    name: ClassVar[str] = "KNPlusPlus"
    takes_probes: ClassVar[bool] = True

    @property
    def guarantee(self) -> str:
        """Return what is missing for a guarantee."""
        return Promise.none("KN++ is valid in the limit of small zones; no error of a run is bounded").text

    def start(self, problem: Problem) -> KNRun:
        """Return a fresh run on this problem, whose plans must be single arms."""
        return KNRun(problem, self, keeps_estimating=True)


class ZoneRun(ArmsRun):
    """A run whose rounds measure every candidate in contention once, so that single values are seen.

    Sums of products are of the values less those of the first round, which avoids cancellation.
    """

    def __init__(self, problem: Problem, policy: ZonePolicy, *, by_probes: bool = False) -> None:
        super().__init__(problem, policy.name, by_probes=by_probes)
        n = self._candidates.n_plans
        self._zone, self._first = policy.zone, policy.first
        self._origin = np.zeros(n)  # the values of the first round
        self._products = np.zeros((n, n))
        self._active: BoolArray = np.ones(n, dtype=bool)

    def choose(self, rng: np.random.Generator) -> IntArray:
        """Measure everything in contention once."""
        del rng  # nothing is drawn
        return self._active.astype(np.int64)

    def seen(self, counts: IntArray, sums: FloatArray) -> tuple[IntArray, FloatArray]:
        """Return counts and sums of the candidates, and add a round's values to the sums of products."""
        mine, values = super().seen(counts, sums)
        if not self._counts.any():
            self._origin = values
        if self.is_estimating:
            moved = np.where(self._active, values - self._origin, 0.0)
            self._products = self._products + np.outer(moved, moved)
        return mine, values

    @property
    def is_estimating(self) -> bool:
        """Whether the round to come counts for the variances: the first ones do."""
        return self._n < self._first

    def covariance(self, n: int) -> FloatArray:
        """Return the sample covariance over these n rounds, all that were seen while estimating."""
        moved = self._sums - n * self._origin
        return np.asarray((self._products - np.outer(moved, moved) / n) / (n - 1))

    @property
    def _n(self) -> int:
        """The rounds seen: how often every candidate in contention was measured."""
        return int(self._counts.max())

    def _best_active(self) -> int:
        return int(np.argmax(np.where(self._active, self._means, -np.inf)))


class KNRun(ZoneRun):
    """A run of KN, or of KN++, which keeps estimating the variances."""

    def __init__(self, problem: Problem, policy: ZonePolicy, *, keeps_estimating: bool) -> None:
        super().__init__(problem, policy, by_probes=True)
        self._keeps_estimating, n_rivals = keeps_estimating, self._candidates.n_plans - 1
        together = problem.probes is not None and problem.probes.share_uses
        independent = keeps_estimating and not together
        self._share = (
            1.0 - (1.0 - policy.delta) ** (1.0 / n_rivals) if independent else policy.delta / n_rivals
        )
        self._variances: FloatArray = np.zeros_like(self._products)  # S_il^2

    @property
    def is_estimating(self) -> bool:
        """Whether the round to come counts for the variances."""
        return self._keeps_estimating or super().is_estimating

    def judge(self) -> int | None:
        """Drop the arms that fell out of the triangle; answer when one is left or the triangle is closed."""
        n = self._n
        if n < self._first:
            return None
        if n == self._first or self._keeps_estimating:
            covariance = self.covariance(n)
            own = np.diag(covariance)
            self._variances = np.maximum(own[:, None] + own - 2.0 * covariance, 0.0)
        a = h_squared(self._share, (n if self._keeps_estimating else self._first) - 1) * self._variances
        self._active = still_in(self._active, self._means, triangle(n, a, self._zone))
        closed = a[self._active][:, self._active].max() / self._zone**2 < n
        return self._best_active() if closed or self._active.sum() == 1 else None


def h_squared(share: float, freedom: int) -> float:
    """Return h^2 = 2 eta f, eta = ((2 share)^(-2/f) - 1)/2, for a share of delta and f degrees of freedom.

    >>> round(h_squared(0.05, 19), 2)
    5.21
    """
    return freedom * ((2.0 * share) ** (-2.0 / freedom) - 1.0)


def triangle(n: int, a: FloatArray, zone: float) -> FloatArray:
    """Return max(0, z/(2n) (a/z^2 - n)), a = h^2 S^2: how far an arm may be behind after n rounds.

    >>> triangle(10, np.array([9.0, 1.0]), 0.5).tolist()
    [0.65, 0.0]
    """
    return np.asarray(np.maximum(0.0, zone / (2.0 * n) * (a / zone**2 - n)))


def still_in(active: BoolArray, means: FloatArray, height: FloatArray) -> BoolArray:
    """Return the arms that are no further behind any in contention than allowed; the best always is."""
    behind = means[None, :] - means[:, None] - height  # (i, l): how far i is too far behind l
    behind[:, ~active] = -np.inf
    np.fill_diagonal(behind, -np.inf)
    return np.asarray(active & (behind.max(axis=1) <= 0.0))


_NODES = 96  # of the quadrature, in each direction


class RinottRun(ZoneRun):
    """A run of Rinott's procedure: the first stage, then all of the second at once."""

    def __init__(self, problem: Problem, policy: Rinott) -> None:
        super().__init__(problem, policy)
        self._h = rinott_h(self._candidates.n_plans, policy.first, policy.delta)

    def choose(self, rng: np.random.Generator) -> IntArray:
        """Measure one of each in the first stage, then what is missing."""
        return super().choose(rng) if self._n < self._first else self._missing()

    def judge(self) -> int | None:
        """Answer after the second stage, or if none is needed."""
        is_over = self._n > self._first or (self._n == self._first and not self._missing().any())
        return self._best_active() if is_over else None

    def _missing(self) -> IntArray:
        variances = np.maximum(np.diag(self.covariance(self._first)), 0.0)
        needed = np.ceil(self._h**2 * variances / self._zone**2).astype(np.int64)
        return np.maximum(needed - self._first, 0)


@dataclass(frozen=True)
class Rinott(ZonePolicy):
    """Rinott's two-stage procedure: single arms, unknown noise, a zone of differences that do not matter."""

    name: ClassVar[str] = "Rinott"
    _run: ClassVar[type[Any]] = RinottRun


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
    spread = np.sqrt((first - 1) * (1 / quantile[:, None] + 1 / quantile))

    def lacks(h: float) -> float:
        inner = (weight / 2) @ ndtr(h / spread)  # over x, for each y
        return float((weight / 2) @ inner ** (n_plans - 1)) - (1 - delta)

    highest = 10.0 * math.sqrt(math.log(n_plans / delta) + 1.0)
    return float(brentq(lacks, 0.0, highest))
