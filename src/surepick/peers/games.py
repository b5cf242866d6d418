"""Linear bandits as a game: LinGame, FWS.

LinGame: a game between shares of the measurements and the world in which another plan is best.

Paper: Degenne, Menard, Shang & Valko (2020), Gamification of Pure Exploration for Linear Bandits (LinGame,
with a learner for each answer). In round t, with least-squares means, M = sum of x x' over all readings:

    1. lead = the best plan by the means; w = the shares that the AdaHedge learner of this lead plays;
    2. the other player answers with the closest world, seen by w, in which another plan overtakes the leader;
    3. the learner gains, for each way o, the sum over its readings of
           min(log t, (|x.(means - world)| + sqrt(2 log t x'M^-1 x))^2 / 2),
       an upper bound on what a use of o tells against that world;
    4. use the way furthest behind the sum of all w so far.

AdaHedge (de Rooij et al. 2014): w is proportional to exp(eta gains), eta = log(n)/D with D = .01 at first,
which grows by what the mixture of gains exceeds the gain of the mixture.

Assumption: independent sub-Gaussian readings, of one use independent or of known covariance. Proof status:
that of the radius (`linear`), which holds for any rule of choosing; `heuristic`, by which the paper's
experiments stop, has none. The paper shows that measurements come to the limit as delta goes to 0.

Deviations: estimates have no ridge, since every way is used once first; the paper bounds the norm of the
means for its threshold, which the radius here does not need. Constants are those of the authors' program
(LinBAI.jl): log t for the confidence, .01, cumulative tracking. Costs are not used.

Cost of a round: two small linear systems and a pass over plans and readings, a tenth of a millisecond or so.

FWS: one step of Frank and Wolfe a round towards the shares that attain the limit.

Paper: Wang, Tzeng & Proutiere (2021), Fast Pure Exploration via Frank-Wolfe. With n ways to measure, t uses
so far, x the shares that are tracked (even at first), f_j(x) = gap_j^2 / (2 y_j' M(x)^-1 y_j) for every plan
but the leader, its gradient by the world in which j overtakes the leader, and r = t^(-9/10) / n:

    1. z = even shares if floor(t/n) is a square, or another plan ties with the leader; otherwise
       z = the shares with the largest min over {j: f_j(x) < min f + r} of (z - x).gradient_j;
    2. x moves to (t - 1)/t x + z/t;
    3. use the way with the largest x_o / n_o, n_o its uses so far.

Assumption: independent sub-Gaussian readings, of one use independent or of known covariance. Proof status:
that of the radius (`linear`), which holds for any rule of choosing; `heuristic`, by which the paper's
experiments stop, has none. The paper shows that measurements come to the limit as delta goes to 0.

Deviations: estimates have no ridge, since every way is used once first. Constants are those of the authors'
program. The game of step 1 is a linear program, solved by HiGHS; with one plan in it, the largest entry of
its gradient. Costs are not used.

Cost of a round: two small linear systems, and a linear program of one to two milliseconds where several
plans are equally close.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from surepick.core.arrays import FloatArray
from surepick.core.problem import Problem
from surepick.peers.linear import LinearPolicy, LinearRun

FIRST_MIXABILITY = 0.01  # AdaHedge's D before anything was gained


class LinGameRun(LinearRun):
    """A run of LinGame: what the learner of each leader gained, and the shares played so far."""

    def __init__(self, problem: Problem, policy: LinGame) -> None:
        super().__init__(problem, policy)
        self._learners: dict[str, AdaHedge] = {}
        self._played: FloatArray = np.ones(len(self._counts))  # the first round, which used every way

    def next_way(self) -> int:
        """Return the way furthest behind."""
        return int(np.argmin(self._counts - (self._played + self._learner.shares)))

    def advance(self) -> None:
        """Pay the learner for the shares that it played."""
        learner = self._learner
        shares = learner.shares
        self._played = self._played + shares
        self._learners[str(self._lead)] = learner.gain(self._gains(shares))

    @property
    def _learner(self) -> AdaHedge:
        fresh = AdaHedge(np.zeros(len(self._counts)), FIRST_MIXABILITY)
        return self._learners.get(str(self._lead), fresh)

    def _gains(self, shares: FloatArray) -> FloatArray:
        """Return what a use of each way may tell against the closest world."""
        distance, moved, _ = self.closest(shares)
        rows, log_t = self._readings.rows, math.log(float(self._counts.sum()))
        error = np.sqrt(2.0 * log_t * np.einsum("rd,rd->r", rows @ self._inverse, rows))
        told = 0.5 * (np.abs(moved[int(np.argmin(distance))]) + error) ** 2
        return self._readings.of_ways(np.minimum(told, log_t))


@dataclass(frozen=True)
class LinGame(LinearPolicy):
    """Learners play shares of the measurements against the world that is hardest to tell apart.

    `radius` is "normal-mixture" (proved) or "heuristic" (no proof; published experiments).
    """

    name: ClassVar[str] = "LinGame"
    _run: ClassVar[type[Any]] = LinGameRun


@dataclass(frozen=True, eq=False)
class AdaHedge:
    """AdaHedge: exponential weights whose rate is log(n) over the mixability gap so far."""

    gains: FloatArray
    mixability: float  # the sum of the mixability gaps, and a small start

    @property
    def _rate(self) -> float:
        return math.log(max(len(self.gains), 2)) / self.mixability

    @property
    def shares(self) -> FloatArray:
        """The allocation that it plays next.

        >>> AdaHedge(np.array([1.0, 1.0]), 0.01).shares.tolist()
        [0.5, 0.5]
        """
        weights = np.exp(self._rate * (self.gains - self.gains.max()))
        return np.asarray(weights / weights.sum())

    def gain(self, gains: FloatArray) -> AdaHedge:
        """Return the learner after these gains."""
        shares, most = self.shares, float(gains.max())
        mixed = most + math.log(float(shares @ np.exp(self._rate * (gains - most)))) / self._rate
        return AdaHedge(self.gains + gains, self.mixability + max(mixed - float(shares @ gains), 0.0))


_TIE = float(np.finfo(float).eps)  # a gap at which a plan ties with the leader


class FWSRun(LinearRun):
    """A run of FWS; `_shares` is x."""

    def __init__(self, problem: Problem, policy: FWS) -> None:
        super().__init__(problem, policy)
        n = len(self._counts)
        self._shares: FloatArray = np.full(n, 1.0 / n)
        self._moved: FloatArray | None = None  # x after this round's step, once it is known

    def next_way(self) -> int:
        """Return the way with the fewest uses for its share."""
        return int(np.argmax(self._next_shares() / self._counts))

    def advance(self) -> None:
        """Move to the shares that the choice was made by."""
        self._shares, self._moved = self._next_shares(), None

    def _next_shares(self) -> FloatArray:
        if self._moved is None:
            t = float(self._counts.sum())
            self._moved = (t - 1.0) / t * self._shares + self._direction(t) / t
        return self._moved

    def _direction(self, t: float) -> FloatArray:
        """Return z of step 1 (see the module): uniform in forced rounds, else the Frank-Wolfe direction."""
        n = len(self._counts)
        root = math.isqrt(int(t) // n)
        tied = np.delete(self._gaps, self._lead).min() <= _TIE
        if tied or root * root == int(t) // n:
            return np.full(n, 1.0 / n)
        distance, moved, _ = self.closest(self._shares)
        close = np.flatnonzero(distance < distance.min() + t**-0.9 / n)
        # df_j/dx_o is half the squared change of way o's readings in the closest world where j leads
        gradient = np.array([self._readings.of_ways(0.5 * moved[j] ** 2) for j in close])
        if len(close) > 1:
            return best_of_game(gradient - (gradient @ self._shares)[:, None])
        return np.asarray(np.arange(n) == int(np.argmax(gradient[0])), dtype=float)


@dataclass(frozen=True)
class FWS(LinearPolicy):
    """Frank-Wolfe sampling: shares that follow the gradient of what is known about the closest rivals.

    `radius` is "normal-mixture" (proved) or "heuristic" (no proof; published experiments).
    """

    name: ClassVar[str] = "FWS"
    _run: ClassVar[type[Any]] = FWSRun


def best_of_game(payoff: FloatArray) -> FloatArray:
    """Return shares z with the largest smallest entry of payoff @ z.

    >>> best_of_game(np.array([[1.0, -1.0], [-1.0, 1.0]])).round(6).tolist()
    [0.5, 0.5]
    """
    from scipy.optimize import linprog

    n_rows, n = payoff.shape
    unit = float(np.abs(payoff).max()) or 1.0  # HiGHS has absolute tolerances
    rows = np.hstack([-payoff / unit, np.ones((n_rows, 1))])  # v - payoff z <= 0
    aim = np.append(np.zeros(n), -1.0)
    every = np.append(np.ones(n), 0.0)[None, :]
    bounds = [(0.0, None)] * n + [(None, None)]
    found: Any = linprog(aim, A_ub=rows, b_ub=np.zeros(n_rows), A_eq=every, b_eq=[1.0], bounds=bounds)
    shares = np.maximum(found.x[:n], 0.0)
    return np.asarray(shares / shares.sum())
