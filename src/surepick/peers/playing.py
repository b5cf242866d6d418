"""Whole plans are played and every arm of a play is read: PFWS, CombGame.

P-FWS: one perturbed step of Frank and Wolfe a play towards the shares that attain the limit.

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

CombGame: the shares of plays and the world to fear play a game against each other.

Paper: Jourdan, Mutny, Kirschner & Krause (2021), Efficient Pure Exploration for Combinatorial Bandits with
Semi-Bandit Feedback; the instance with online Frank-Wolfe, as in the experiments of Tzeng et al. (2023). With
t plays, w in the hull of the plays, D their diameter and eta = t^(-1/4):

    1. the share player moves towards A = argmax over plays of (L - S w).A;
    2. the other answers with the world in which the closest plan at w overtakes the leader;
    3. L grows by the optimistic distances of that world, arm by arm, and by eta w_0 / D; S by eta / D;
       w moves to (1 - eta) w + eta A;
    4. sparse tracking: of the plays that w is made of, the next is the one furthest behind its weight.

The optimistic distance of arm s is the largest of (m - lambda_s)^2 / (2 R_s^2) over m within
sqrt(2 R_s^2 log(t) / N_s) of its mean, at least log(t) / N_s.

Assumption: independent Gaussian readings. Proof status: none here. The paper proves its stop for another
threshold and for the closest plan of all.

Deviations: reconstructed from the program of Tzeng et al., whose constants these are. The diameter is taken
as sqrt(2 x the arms of the first play), which it does not exceed where all plays have as many arms, instead
of listing all pairs. `plays` says how the closest plan is searched for and what `variant="authors"`
repeats.

Cost of a round: two searches, of four oracle calls each, and one of each arm; "authors": two draws of 5,000
plans, a millisecond or two, after 60,000 oracle calls at the start.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from surepick.core.arrays import FloatArray
from surepick.core.oracle_problem import AnyProblem
from surepick.peers.plays import Estimates, PlayingRun, SemiBanditPolicy


class PFWSRun(PlayingRun):
    """A run of P-FWS."""

    def choose(self, estimates: Estimates, rng: np.random.Generator) -> FloatArray:
        """Return a forced play, or the best one along the averaged gradient."""
        t, n = self._t, self._oracle.n_arms
        root = math.isqrt(t // n)
        if root * root * n == t and not self._as_authors:
            return np.asarray(self._cover[root % len(self._cover)])
        shares, reach = self.shares, 1.0 / (4.0 * math.sqrt(t * n))
        total = np.zeros(n)
        for _ in range(math.ceil(t**0.25)):
            near = np.maximum(shares + reach * in_ball(n, rng), shares / 2.0)
            plan, _ = self._search.closest(estimates, t * near, rng)
            total += gradient(estimates, plan, near, shares if self._as_authors else near)
        return self._oracle.best(total)


@dataclass(frozen=True)
class PFWS(SemiBanditPolicy):
    """Perturbed Frank-Wolfe sampling for semi-bandits; it has no guarantee.

    `variant="authors"` repeats the program with which the authors made their figures.
    """

    name: ClassVar[str] = "PFWS"
    _run: ClassVar[type[Any]] = PFWSRun


def in_ball(n: int, rng: np.random.Generator) -> FloatArray:
    """Return a point of the unit ball, uniformly drawn."""
    z = rng.standard_normal(n)
    return np.asarray(z * (rng.random() ** (1.0 / n) / np.linalg.norm(z)))


def gradient(estimates: Estimates, plan: FloatArray, shares: FloatArray, divisor: FloatArray) -> FloatArray:
    """Return the gradient in w of gap^2 / (2 v), v = sum of R_s^2 / w_s: (gap / v)^2 / 2 times R_s^2 / w_s^2.

    >>> estimates = Estimates(np.array([1.0, 0.0]), np.array([1.0, 0.0]), np.ones(2))
    >>> gradient(estimates, np.array([0.0, 1.0]), np.full(2, 0.5), np.full(2, 0.5)).tolist()
    [0.125, 0.125]
    """
    contrast = estimates.lead - plan
    variance, gap = float(contrast**2 @ estimates.price(shares)), float(contrast @ estimates.means)
    inverse = np.divide(1.0, divisor, out=np.zeros(len(divisor)), where=divisor > 0)
    return np.asarray(0.5 * (gap / variance) ** 2 * contrast**2 * estimates.variance * inverse**2)


class CombGameRun(PlayingRun):
    """A run of CombGame: `_plays` are what w is made of, with weights and how often each was played."""

    def __init__(self, problem: AnyProblem, policy: CombGame) -> None:
        super().__init__(problem, policy)
        self._plays = self._cover
        self._played_so_far = np.ones(len(self._cover))
        self._weights = self._played_so_far / len(self._cover)
        self._w = self._first_w = self._weights @ self._plays
        self._linear, self._square = np.zeros(problem.n_arms), 0.0
        self._diameter = math.sqrt(2.0 * float(self._cover[0].sum()))

    def choose(self, estimates: Estimates, rng: np.random.Generator) -> FloatArray:
        """Play one round of the game; return the play that is furthest behind."""
        eta = self._t**-0.25
        play = self._oracle.best(self._linear - self._square * self._w)
        plan, _ = self._search.closest(estimates, self._t * self._w, rng)
        self._linear = self._linear + eta * self._first_w / self._diameter + self._optimistic(estimates, plan)
        self._square += eta / self._diameter
        self._w = (1.0 - eta) * self._w + eta * play
        self._track(play, eta)
        behind = int(np.argmin(self._played_so_far / np.maximum(self._weights, 1e-300)))
        self._played_so_far[behind] += 1.0
        return np.asarray(self._plays[behind])

    def _optimistic(self, estimates: Estimates, plan: FloatArray) -> FloatArray:
        """Return what each arm may show at most against the world in which the plan overtakes the leader."""
        contrast, variance, price = estimates.lead - plan, estimates.variance, estimates.price(self._w)
        alpha = float(contrast @ estimates.means) / max(float(contrast**2 @ price), 1e-300)
        moved = np.abs(alpha * contrast * price)  # how far the world's means are from the estimates
        known = math.log(self._t) / np.maximum(self._counts, 1)
        reached = (moved + np.sqrt(2.0 * variance * known)) ** 2 / (2.0 * variance)
        return np.asarray(np.maximum(reached, known))

    def _track(self, play: FloatArray, eta: float) -> None:
        """Move the weights of the plays as w has moved."""
        same = np.flatnonzero((self._plays == play).all(axis=1))
        if not same.size:
            self._plays = np.vstack([self._plays, play])
            self._weights = np.append(self._weights, 0.0)
            self._played_so_far = np.append(self._played_so_far, 0.0)
            same = np.array([len(self._plays) - 1])
        self._weights = (1.0 - eta) * self._weights
        self._weights[same[0]] += eta


@dataclass(frozen=True)
class CombGame(SemiBanditPolicy):
    """The game of CombGame for semi-bandits, with online Frank-Wolfe; it has no guarantee.

    `variant="authors"` repeats the program with which Tzeng et al. (2023) made their figures of it.
    """

    name: ClassVar[str] = "CombGame"
    _run: ClassVar[type[Any]] = CombGameRun
