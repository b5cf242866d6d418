"""CombGame: the shares of plays and the world to fear play a game against each other.

Paper: Jourdan, Mutny, Kirschner & Krause (2021), Efficient Pure Exploration for Combinatorial Bandits with
Semi-Bandit Feedback; the instance with online Frank-Wolfe, as in the experiments of Tzeng et al. (2023). With
t plays, w in the hull of the plays, D their diameter and eta = t^(-1/4):

    1. the share player moves towards A = argmax over plays of (L - S w).A;
    2. the other answers with the world in which the closest plan at w overtakes the lead;
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
from typing import ClassVar

import numpy as np

from surepick.core.arrays import FloatArray
from surepick.core.oracle_problem import AnyProblem
from surepick.peers.plays import PlayingRun, Seen, SemiBanditPolicy


@dataclass(frozen=True)
class CombGame(SemiBanditPolicy):
    """The game of CombGame for semi-bandits, with online Frank-Wolfe; it has no guarantee.

    `variant="authors"` repeats the program with which Tzeng et al. (2023) made their figures of it.

    >>> import surepick as sp
    >>> family = sp.problems.top_k_family([str(s) for s in range(8)], 3, goal="largest")
    >>> problem = family.oracle_problem(measure="plan arms", noise=1)
    >>> means = [1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    >>> sp.simulate(problem, means, policy=sp.policies.CombGame(delta=0.1), seed=1).plan == tuple(means)
    True
    """

    name: ClassVar[str] = "CombGame"

    def start(self, problem: AnyProblem) -> CombGameRun:
        """Return a fresh run on this problem, whose plans are played."""
        return CombGameRun(problem, self)


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

    def choose(self, seen: Seen, rng: np.random.Generator) -> FloatArray:
        """Play one round of the game; return the play that is furthest behind."""
        eta = self._t**-0.25
        play = self._ground.best(self._linear - self._square * self._w)
        plan, _ = self._search.closest(seen, self._t * self._w, rng)
        self._linear = self._linear + eta * self._first_w / self._diameter + self._optimistic(seen, plan)
        self._square += eta / self._diameter
        self._w = (1.0 - eta) * self._w + eta * play
        self._track(play, eta)
        behind = int(np.argmin(self._played_so_far / np.maximum(self._weights, 1e-300)))
        self._played_so_far[behind] += 1.0
        return np.asarray(self._plays[behind])

    def _optimistic(self, seen: Seen, plan: FloatArray) -> FloatArray:
        """Return what each arm may show at most against the world in which the plan overtakes the lead."""
        contrast, variance, price = seen.lead - plan, seen.variance, seen.price(self._w)
        alpha = float(contrast @ seen.means) / max(float(contrast**2 @ price), 1e-300)
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
