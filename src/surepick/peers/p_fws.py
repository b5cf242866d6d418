"""P-FWS: one perturbed step of Frank and Wolfe a play towards the shares that attain the limit.

Paper: Tzeng, Wang, Proutiere & Lu (2023), Closing the Computational-Statistical Gap in Best Arm
Identification for Combinatorial Semi-bandits. With K arms, t plays, shares w_s = N_s / t and the objective
f(w) = the least distance of a plan at w (`plays`), which is smooth but where two plans are as close:

    1. play one of the first plays again when t / K is a square (forced exploration);
    2. otherwise draw n = ceil(t^(1/4)) points w + z / (4 sqrt(t K)), z in the unit ball, find the closest
       plan at each, and average the gradients of its distance;
    3. play the plan with the largest sum of the gradient.

Assumption: independent Gaussian readings. Proof status: none here. The paper proves its stop for another
threshold and for a search that is played to its end.

Deviations: `plays` says how the closest plan is searched for and what `variant="authors"` repeats of the
authors' program; there exploration is not forced and gradients are divided by the shares without z. A share
that z would take below half of what it is stays at half.

Cost of a round: 1 + n searches, of four oracle calls each, and one of each arm; "authors": 1 + n draws of
5,000 plans, some milliseconds, after 60,000 oracle calls at the start.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from surepick.core.arrays import FloatArray
from surepick.core.oracle_problem import AnyProblem
from surepick.peers.plays import PlayingRun, Seen, SemiBanditPolicy


@dataclass(frozen=True)
class PFWS(SemiBanditPolicy):
    """Perturbed Frank-Wolfe sampling for semi-bandits; it has no guarantee.

    `variant="authors"` repeats the program with which the authors made their figures.

    >>> import surepick as sp
    >>> family = sp.problems.top_k_family([str(s) for s in range(8)], 3, goal="largest")
    >>> problem = family.oracle_problem(measure="plan arms", noise=1)
    >>> means = [1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    >>> sp.simulate(problem, means, policy=sp.policies.PFWS(delta=0.1), seed=1).plan == tuple(means)
    True
    """

    name: ClassVar[str] = "PFWS"

    def start(self, problem: AnyProblem) -> PFWSRun:
        """Return a fresh run on this problem, whose plans are played."""
        return PFWSRun(problem, self)


class PFWSRun(PlayingRun):
    """A run of P-FWS."""

    def choose(self, seen: Seen, rng: np.random.Generator) -> FloatArray:
        """Return a forced play, or the best one along the averaged gradient."""
        t, n = self._t, self._ground.n_arms
        root = math.isqrt(t // n)
        if root * root * n == t and not self._as_authors:
            return np.asarray(self._cover[root % len(self._cover)])
        shares, reach = self.shares, 1.0 / (4.0 * math.sqrt(t * n))
        total = np.zeros(n)
        for _ in range(math.ceil(t**0.25)):
            near = np.maximum(shares + reach * in_ball(n, rng), shares / 2.0)
            plan, _ = self._search.closest(seen, t * near, rng)
            total += gradient(seen, plan, near, shares if self._as_authors else near)
        return self._ground.best(total)


def in_ball(n: int, rng: np.random.Generator) -> FloatArray:
    """Return a point of the unit ball, uniformly drawn."""
    z = rng.standard_normal(n)
    return np.asarray(z * (rng.random() ** (1.0 / n) / np.linalg.norm(z)))


def gradient(seen: Seen, plan: FloatArray, shares: FloatArray, divisor: FloatArray) -> FloatArray:
    """Return the gradient in w of gap^2 / (2 v), v = sum of R_s^2 / w_s: (gap / v)^2 / 2 times R_s^2 / w_s^2.

    >>> seen = Seen(np.array([1.0, 0.0]), np.array([1.0, 0.0]), np.ones(2))
    >>> gradient(seen, np.array([0.0, 1.0]), np.full(2, 0.5), np.full(2, 0.5)).tolist()
    [0.125, 0.125]
    """
    contrast = seen.lead - plan
    variance, gap = float(contrast**2 @ seen.price(shares)), float(contrast @ seen.means)
    inverse = np.divide(1.0, divisor, out=np.zeros(len(divisor)), where=divisor > 0)
    return np.asarray(0.5 * (gap / variance) ** 2 * contrast**2 * seen.variance * inverse**2)
