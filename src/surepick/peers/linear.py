"""Linear bandits: readings and plans in one set of coordinates, least squares, when to stop; LinGame and FWS.

With M = sum of x x' over all readings (noise of scale 1), means by least squares and y = lead - plan, stop
when y.means > radius(y) for every other plan:

| radius | square | guarantee |
|---|---|---|
| `heuristic` | 2 y'M^-1 y log((1 + log t)/delta) | none: what published experiments stop by |
| `normal-mixture` | 2 y'M^-1 (M + l M_1) M^-1 y (log(1/(p delta)) + log det(I + M_1^-1 M / l)/2) | proved |

M_1 is one use of every option, with which all runs begin, so that it is known before anything is seen; l =
4^i has the share p = 1/((i+1)(i+2)) of delta. Proof of the second: with s = sum of x times its noise,
exp(u.s - u'Mu/2) is a supermartingale for every u, and so is its average over u ~ N(0, (l M_1)^-1), which is
det(I + M_1^-1 M / l)^(-1/2) exp(s'(M + l M_1)^-1 s / 2); by Ville's inequality it stays below 1/(p delta) at
all times except with probability p delta. Errors are y.M^-1 s, at most |s| in (M + l M_1)^-1 times |M^-1 y|
in M + l M_1, for all y at once. On single arms it is the radius `normal-mixture-joint` of the gap policies.

Assumption of both methods: independent sub-Gaussian readings, of one use independent or of known covariance.
Proof status: that of the radius, which holds for any rule of choosing. Both papers show that measurements
come to the limit as delta goes to 0. Deviations of both: estimates have no ridge, since every option
(probe, or arm on which plans differ) is used once first; constants are those of the authors' programs; costs
are not used. With n options and t uses so far:

**LinGame**: Degenne, Menard, Shang & Valko (2020), Gamification of Pure Exploration for Linear Bandits, with
a learner for each answer. A round costs two small linear systems and a pass over plans and readings.

    1. lead = the best plan by the means; w = the shares that the AdaHedge learner of this lead plays;
    2. the other player answers with the closest world, seen by w, in which another plan overtakes the leader;
    3. the learner gains, for each option o, the sum over its readings of
           min(log t, (|x.(means - world)| + sqrt(2 log t x'M^-1 x))^2 / 2),
       an upper bound on the information of a use of o against that world;
    4. use the option furthest behind the sum of all w so far.

AdaHedge (de Rooij et al. 2014): w is proportional to exp(eta gains), eta = log(n)/D with D = .01 at first,
which grows by what the mixture of gains exceeds the gain of the mixture.

**FWS**: Wang, Tzeng & Proutiere (2021), Fast Pure Exploration via Frank-Wolfe. With x the shares that are
tracked (uniform at first), f_j(x) = gap_j^2 / (2 y_j' M(x)^-1 y_j) for every plan but the leader, its
gradient by the world in which j overtakes the leader, and r = t^(-9/10) / n; step 1 is a linear program of
one to two milliseconds where several plans are equally close:

    1. z = uniform shares if floor(t/n) is a square, or another plan ties with the leader; otherwise
       z = the shares with the largest min over {j: f_j(x) < min f + r} of (z - x).gradient_j;
    2. x moves to (t - 1)/t x + z/t;
    3. use the option with the largest x_o / n_o, n_o its uses so far.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from surepick.core.arrays import FloatArray, IntArray, as_dense
from surepick.core.guarantee import Guarantee
from surepick.core.policy import known_noise_scale
from surepick.core.probes import Probes, refuse_unknown
from surepick.core.problem import Problem
from surepick.core.run import Answer
from surepick.design.information import Dense, information_of
from surepick.peers.sequential import Options, SequentialRun, heuristic_level, mixture_lam
from surepick.policies.gap import radius as radii
from surepick.policies.sound import SoundPolicy, check_choice

PROVED, HEURISTIC = "normal-mixture", "heuristic"
TRACE = 1e-9  # of uniform shares: keeps M regular where shares have fallen to 0
FIRST_MIXABILITY = 0.01  # AdaHedge's D before anything was gained
_TIE = float(np.finfo(float).eps)  # a gap at which a plan ties with the leader


@dataclass(frozen=True, eq=False)
class Readings(Options):
    """The readings of all options, in units in which their noise is independent with scale 1.

    An option is a probe, or an arm on which plans differ. Plans are less their average, and larger is better.
    """

    rows: FloatArray  # (n_readings, rank) x of each reading
    owner: IntArray  # (n_readings,) the option that gives it
    plans: FloatArray  # (n_plans, rank)
    reading: IntArray  # (n_readings,) its number among all sums
    whiten: Callable[[FloatArray], FloatArray]  # sums in the unit of the rows

    @property
    def reduced(self) -> Readings:
        """These readings and plans in the coordinates that some reading shows; plans differ in no others."""
        used = np.flatnonzero(self.rows.any(axis=0))
        return replace(self, rows=np.ascontiguousarray(self.rows[:, used]), plans=self.plans[:, used])

    def seen(self, counts: IntArray, sums: FloatArray) -> tuple[IntArray, FloatArray]:
        """Return uses of the options, and X'y of the readings."""
        return counts[self.numbers], self.cross_product(sums)

    def information(self, uses: FloatArray) -> FloatArray:
        """Return M = sum of x x', the information of these uses of the options, or of these shares."""
        return np.asarray(self.rows.T @ (uses[self.owner, None] * self.rows))

    def cross_product(self, sums: FloatArray) -> FloatArray:
        """Return X'y, (rank,), of the sums of readings."""
        return np.asarray(self.rows.T @ self.whiten(sums)[self.reading])

    def per_option(self, values: FloatArray) -> FloatArray:
        """Return values of readings added up for each option."""
        return np.asarray(np.bincount(self.owner, values, minlength=len(self)), dtype=float)


def readings_of(problem: Problem, policy: str) -> Readings:
    """Return what can be measured of this problem, and its plans.

    >>> found = readings_of(Problem([[1, 0, 2], [0, 1, 2]], noise=0.5, goal="largest"), "LinGame")
    >>> found.rows.tolist(), found.numbers.tolist()
    ([[2.0, 0.0], [0.0, 2.0]], [0, 1])
    """
    dense = as_dense(problem.oriented)
    probes = problem.probes
    if probes is None:
        arms = np.flatnonzero(problem.relevant)
        rows = np.diag(1.0 / known_noise_scale(problem)[arms])
        return arm_readings(problem, rows, dense[:, arms] - dense[:, arms].mean(axis=0))
    refuse_unknown(probes, policy)
    information = information_of(probes)
    rows = information.rows if isinstance(information, Dense) else probes.whitened.toarray()
    return probe_readings(probes, rows, information.coordinates(dense - dense.mean(axis=0)))


def arm_readings(problem: Problem, rows: FloatArray, plans: FloatArray) -> Readings:
    """Return the readings of the arms on which plans differ, with these rows, beside plans."""
    scale, arms = known_noise_scale(problem), np.flatnonzero(problem.relevant)
    return Readings(
        numbers=arms,
        n_all=problem.n_arms,
        rows=rows,
        owner=np.arange(len(arms)),
        plans=plans,
        reading=arms,
        whiten=lambda sums: np.asarray(sums / scale),
    )


def probe_readings(probes: Probes, rows: FloatArray, plans: FloatArray) -> Readings:
    """Return the readings of all probes with these rows, beside plans in the same coordinates."""
    return Readings(
        numbers=np.arange(len(probes)),
        n_all=len(probes),
        rows=rows,
        owner=probes.owner,
        plans=plans,
        reading=np.arange(probes.n_readings),
        whiten=probes.whiten,
    )


@dataclass(frozen=True)
class LinearPolicy(SoundPolicy):
    """The settings of methods that stop by a radius."""

    radius: str = PROVED

    takes_probes: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("radius", self.radius, PROVED, HEURISTIC)

    @property
    def guarantee(self) -> Guarantee:
        """Return the guarantee and its assumption, or what is missing for one."""
        if self.radius == HEURISTIC:
            return radii.guarantee(HEURISTIC, self.delta, 0.0)
        return super().guarantee


class LinearRun(SequentialRun):
    """Every option once, then one use a round; `_sums` is X'y, and estimates are least squares.

    `_judge` sets what the choice of a round needs: M (`_matrix`), its inverse, the leader, and for each plan
    y = leader - plan (`_contrasts`) and y.means (`_gaps`).
    """

    def __init__(self, problem: Problem, policy: LinearPolicy) -> None:
        self._delta, self._proved = policy.delta, policy.radius == PROVED
        self._readings = readings = readings_of(problem, policy.name).reduced
        super().__init__(readings, readings.rows.shape[1])
        self._first = readings.information(np.ones(len(readings)))  # M_1
        self._log_volume = float(np.linalg.slogdet(self._first)[1])

    def _judge(self) -> Answer | None:
        """Estimate by least squares; answer if the leader is ahead of every other plan by its radius."""
        self._matrix = self._readings.information(self._counts.astype(float))
        self._inverse: FloatArray = np.asarray(np.linalg.inv(self._matrix), dtype=float)
        values = self._readings.plans @ (self._inverse @ self._sums)
        self._leader = int(np.argmax(values))
        self._contrasts = self._readings.plans[self._leader] - self._readings.plans  # (n_plans, rank)
        self._gaps = values[self._leader] - values
        return super()._judge()

    def _gaps_and_radii(self) -> tuple[int, FloatArray, FloatArray]:
        """Return the leader, its gaps, and the radii of the table in the module's description."""
        solved = self._contrasts @ self._inverse  # M^-1 y, (n_plans, rank)
        variance = np.einsum("kd,kd->k", solved, self._contrasts)  # y'M^-1 y
        if self._proved:
            lam, log_share = mixture_lam(self._counts)
            variance = variance + lam * np.einsum("kd,kd->k", solved @ self._first, solved)
            # log det(I + M_1^-1 M / l) = log det(M_1 + M / l) - log det(M_1)
            volume = float(np.linalg.slogdet(self._first + self._matrix / lam)[1]) - self._log_volume
            level = 0.5 * volume - log_share - math.log(self._delta)
        else:
            level = heuristic_level(float(self._counts.sum()), self._delta)
        gaps = self._gaps.copy()
        gaps[self._leader] = np.inf
        return self._leader, gaps, np.sqrt(2.0 * level * np.maximum(variance, 0.0))

    def _closest_worlds(self, shares: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return for each rival the closest world in which it overtakes the leader, for these shares of uses.

        - distances: (n_plans - 1,) gap^2 / (2 y'M^-1 y), M the information of the shares.
        - moves: (n_plans - 1, n_readings) the readings' means now less those in that world. The world's means
          are the estimates less (gap / y'M^-1 y) M^-1 y, where y.means is 0.
        """
        rivals = np.delete(np.arange(len(self._gaps)), self._leader)
        matrix = self._readings.information(shares + TRACE / len(shares))
        solved = np.linalg.solve(matrix, self._contrasts[rivals].T)  # M^-1 y, (rank, n_plans - 1)
        lengths = np.einsum("kd,dk->k", self._contrasts[rivals], solved)  # y'M^-1 y
        gaps = self._gaps[rivals]
        return gaps**2 / (2.0 * lengths), (self._readings.rows @ (solved * (gaps / lengths))).T


@dataclass(frozen=True, eq=False)
class AdaHedge:
    """AdaHedge: exponential weights whose rate is log(n) over the mixability gap so far."""

    gains: FloatArray
    mixability: float = FIRST_MIXABILITY  # the sum of the mixability gaps, and a small start

    @property
    def _rate(self) -> float:
        """The learning rate eta = log(n) / D."""
        return math.log(max(len(self.gains), 2)) / self.mixability

    @property
    def shares(self) -> FloatArray:
        """The allocation that it plays next.

        >>> AdaHedge(np.array([1.0, 1.0])).shares.tolist()
        [0.5, 0.5]
        """
        weights = np.exp(self._rate * (self.gains - self.gains.max()))
        return np.asarray(weights / weights.sum())

    def gain(self, gains: FloatArray) -> AdaHedge:
        """Return the learner after these gains."""
        shares, most = self.shares, float(gains.max())
        # the mixture of gains, log(sum_o w_o exp(eta gain_o)) / eta, less the gain of the mixture
        mixed = most + math.log(float(shares @ np.exp(self._rate * (gains - most)))) / self._rate
        return AdaHedge(self.gains + gains, self.mixability + max(mixed - float(shares @ gains), 0.0))


def optimistic_gains(moves: FloatArray, variance: FloatArray, counts: IntArray, log_t: float) -> FloatArray:
    """Return upper bounds on the information of one measurement of each arm against a world.

    That is the largest (m - world_s)^2 / (2 R_s^2) over m within sqrt(2 R_s^2 log(t) / n_s) of the arm's
    mean, and log(t) / n_s at least; `moves` is how far the world's means are from the estimates.
    """
    least = log_t / np.maximum(counts, 1)
    reached = (moves + np.sqrt(2.0 * variance * least)) ** 2 / (2.0 * variance)
    return np.asarray(np.maximum(reached, least))


class LinGameRun(LinearRun):
    """A run of LinGame: the learner of each leader so far, and the sum of the shares played."""

    def __init__(self, problem: Problem, policy: LinGame) -> None:
        super().__init__(problem, policy)
        self._learners: dict[int, AdaHedge] = {}
        self._played: FloatArray = np.ones(len(self._counts))  # the first round used every option

    def _choose(self, rng: np.random.Generator) -> IntArray:
        """Play a round of the game; use the option furthest behind the sum of the shares played."""
        learner = self._learners.get(self._leader, AdaHedge(np.zeros(len(self._counts))))
        shares = learner.shares
        self._played = self._played + shares
        distances, moves = self._closest_worlds(shares)
        rows, log_t = self._readings.rows, math.log(float(self._counts.sum()))
        error = np.sqrt(2.0 * log_t * np.einsum("rd,rd->r", rows @ self._inverse, rows))
        bounds = 0.5 * (np.abs(moves[int(np.argmin(distances))]) + error) ** 2  # (n_readings,)
        gains = self._readings.per_option(np.minimum(bounds, log_t))
        self._learners[self._leader] = learner.gain(gains)
        return self._once(int(np.argmin(self._counts - self._played)))


@dataclass(frozen=True)
class LinGame(LinearPolicy, run=LinGameRun):
    """Learners play shares of the measurements against the world that is hardest to tell apart.

    `radius` is "normal-mixture" (proved) or "heuristic" (no proof; published experiments).
    """


class FWSRun(LinearRun):
    """A run of FWS; `_shares` is x."""

    def __init__(self, problem: Problem, policy: FWS) -> None:
        super().__init__(problem, policy)
        n = len(self._counts)
        self._shares: FloatArray = np.full(n, 1.0 / n)

    def _choose(self, rng: np.random.Generator) -> IntArray:
        """Move x by one step; use the option with the largest x_o / n_o."""
        t = float(self._counts.sum())
        self._shares = (t - 1.0) / t * self._shares + self._direction(t) / t
        return self._once(int(np.argmax(self._shares / self._counts)))

    def _direction(self, t: float) -> FloatArray:
        """Return z of step 1 (see the module): uniform in forced rounds, else the Frank-Wolfe direction."""
        n = len(self._counts)
        root = math.isqrt(int(t) // n)
        is_tied = np.delete(self._gaps, self._leader).min() <= _TIE
        if is_tied or root * root == int(t) // n:
            return np.full(n, 1.0 / n)
        distances, moves = self._closest_worlds(self._shares)
        close = np.flatnonzero(distances < distances.min() + t**-0.9 / n)
        # df_j/dx_o is half the squared change of option o's readings in the closest world where j leads
        gradient = np.array([self._readings.per_option(0.5 * moves[j] ** 2) for j in close])
        if len(close) > 1:
            return best_of_game(gradient - (gradient @ self._shares)[:, None])
        return np.asarray(np.arange(n) == int(np.argmax(gradient[0])), dtype=float)


@dataclass(frozen=True)
class FWS(LinearPolicy, run=FWSRun):
    """Frank-Wolfe sampling: shares that follow the gradient of what is known about the closest rivals.

    `radius` is "normal-mixture" (proved) or "heuristic" (no proof; published experiments).
    """


def best_of_game(payoff: FloatArray) -> FloatArray:
    """Return shares z with the largest smallest entry of payoff @ z.

    >>> best_of_game(np.array([[1.0, -1.0], [-1.0, 1.0]])).round(6).tolist()
    [0.5, 0.5]
    """
    from scipy.optimize import linprog

    n_rows, n = payoff.shape
    unit = float(np.abs(payoff).max()) or 1.0  # HiGHS has absolute tolerances
    # the program: maximise v over z and v, with payoff @ z >= v in every row and z a probability vector
    rows = np.hstack([-payoff / unit, np.ones((n_rows, 1))])  # v - payoff z <= 0
    aim = np.append(np.zeros(n), -1.0)
    every = np.append(np.ones(n), 0.0)[None, :]
    bounds = [(0.0, None)] * n + [(None, None)]
    found: Any = linprog(aim, A_ub=rows, b_ub=np.zeros(n_rows), A_eq=every, b_eq=[1.0], bounds=bounds)
    shares = np.maximum(found.x[:n], 0.0)
    return np.asarray(shares / shares.sum())
