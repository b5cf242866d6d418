"""Rinott: two stages; the second is as long as the variances of the first one say.

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
from typing import ClassVar

import numpy as np

from surepick.core.arrays import IntArray
from surepick.core.problem import Problem
from surepick.peers.kn import ZonePolicy, ZoneRun

_NODES = 96  # of the quadrature, in each direction


@dataclass(frozen=True)
class Rinott(ZonePolicy):
    """Rinott's two-stage procedure: single arms, unknown noise, a zone of differences that do not matter.

    >>> import surepick as sp
    >>> problem = sp.Problem([[1, 0, 0], [0, 1, 0], [0, 0, 1]], noise=1, goal="largest")
    >>> outcome = sp.simulate(problem, [1.0, 0.4, 0.0], policy=sp.policies.Rinott(zone=0.5), seed=1)
    >>> outcome.plan, outcome.n_rounds
    (0, 21)
    """

    name: ClassVar[str] = "Rinott"

    def start(self, problem: Problem) -> RinottRun:
        """Return a fresh run on this problem, whose plans must be single arms."""
        return RinottRun(problem, self)


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
