"""Semi-bandits: whole plans are played and every arm of a play is read; PFWS and CombGame.

With leader x, means m, t plays and n_s readings of arm s, the distance of a plan y is the evidence that it
needs to overtake the leader:

    distance(y) = ((x - y).m)^2 / (2 sum over the arms in which they differ of R_s^2 / n_s).

A run plays a cover first, then one play a round. It stops when the closest plan is further than log((1 + log
t) / delta), the threshold of most published experiments (`heuristic`), which has no proof. Tzeng et al.
(2023), Algorithm 1, find the closest plan by a game: against the losses so far, and a draw of exponential
noise, the oracle names a plan; alpha answers as is best; the loss of that alpha is added. To be sure of it
takes about (width / distance)^2 rounds with a width in the millions, which is out of reach. So `Search` plays
some rounds of the game and remembers every plan that it has found, up to some hundreds, and for every arm the
best plan that differs from the leader there. On the published trees this was the closest of all plans in each
of 1,996 plays. A plan that is missed makes the distance too large, one more reason why these stops have no
proof.

Assumption: independent Gaussian readings. Proof status: none here; both papers prove their stops for another
threshold and a search that is played to its end. A round costs some searches, of four oracle calls each, and
one call for each arm.

**PFWS**: Tzeng, Wang, Proutiere & Lu (2023), Closing the Computational-Statistical Gap in Best Arm
Identification for Combinatorial Semi-bandits (P-FWS). With K arms, shares w_s = N_s / t and f(w) = the least
distance at w: play one of the first plays again when t / K is a square (forced exploration); otherwise draw n
= ceil(t^(1/4)) points w + z / (4 sqrt(t K)), z in the unit ball, find the closest plan at each, average the
gradients of its distance, and play the plan with the largest sum of the gradient. Deviation: a share that z
would take below half of what it is stays at half.

**CombGame**: Jourdan, Mutny, Kirschner & Krause (2021), Efficient Pure Exploration for Combinatorial Bandits
with Semi-Bandit Feedback, with online Frank-Wolfe. With w in the hull of the plays, D their diameter, eta =
t^(-1/4):

    1. the share player moves towards A = argmax over plays of (L - S w).A;
    2. the other answers with the world in which the closest plan at w overtakes the leader;
    3. L grows by the optimistic distances of that world, arm by arm, and by eta w_0 / D; S by eta / D;
       w moves to (1 - eta) w + eta A;
    4. sparse tracking: of the plays that w is made of, the next is the one furthest behind its weight.

The optimistic distance of arm s is the largest of (m - lambda_s)^2 / (2 R_s^2) over m within sqrt(2 R_s^2
log(t) / N_s) of its mean, at least log(t) / N_s. Reconstructed from the program of Tzeng et al., whose
constants these are; the diameter is taken as sqrt(2 x the arms of the first play), which it does not exceed
where all plays have as many arms.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from surepick.core.arrays import BoolArray, FloatArray, IntArray, divided
from surepick.core.guarantee import Guarantee
from surepick.core.oracle_problem import AnyProblem
from surepick.core.plan_sets import plan_set, play_finder, spanned
from surepick.core.plays import Plays
from surepick.core.policy import check_delta, known_noise_scale
from surepick.core.probes import Probes
from surepick.core.run import Answer, Measure, Standing, Stop
from surepick.design.play_allocation import covering_plays
from surepick.errors import ProblemError
from surepick.peers.linear import optimistic_gains
from surepick.peers.sequential import RoundRun, heuristic_level
from surepick.policies.sound import Starting

_ROUNDS = 4  # of a game
_MOST_KNOWN = 400  # plans that are remembered
_LEAST = 1e-12  # readings: keeps variances finite


class PlayOracle:
    """Finds the best plays of a problem, vectors of zeros and ones, for weights of which larger is better.

    A play is a plan that is measured as a whole: every arm in it is read. The problem has such plays
    (`measure="plan arms"`), or lists them as probes that read each arm by itself.
    """

    def __init__(self, problem: AnyProblem, method: str) -> None:
        self._probes = problem.probes
        self._probe_of: dict[bytes, int] = {}  # the number of the probe that is each play, by its bytes
        if problem.plays:
            self.variance = known_noise_scale(problem, plays=True) ** 2
        elif problem.probes is not None and problem.probes.is_diagonal:
            self.variance, self._probe_of = _listed(problem.probes, problem.n_arms)
        else:
            raise ProblemError(
                f"{method} plays whole plans and reads every arm of a play: give the problem "
                'measure="plan arms"',
                field="policy",
            )
        self.sign, self.n_arms = problem.sign, problem.n_arms
        self._plans = plan_set(problem)
        self._box = spanned(self._plans)  # the smallest box that holds all plans
        self.best = play_finder(self._plans, self._box)  # for weights of any sign

    @property
    def relevant(self) -> BoolArray:
        """The arms in which plans differ."""
        return np.asarray(self._box.lower < self._box.upper)

    def answer(self, play: FloatArray) -> Answer:
        """Return the plan as results name it."""
        return self._plans.answer(self.sign * play + 0.0)

    def best_but(self, leader: FloatArray, weights: FloatArray) -> FloatArray:
        """Return the best play other than this one: the best of those that differ on some arm."""
        play = self.best(weights)
        if (play != leader).any():
            return play
        return max(self.exchanges(leader, weights), key=lambda other: float(weights @ other))

    def exchanges(self, leader: FloatArray, weights: FloatArray) -> list[FloatArray]:
        """Return for every arm the best play that differs from this one there."""
        inside = self.sign * weights
        plan = self.sign * leader + 0.0
        box = self._box
        parts = [part for s in box.free for part in box.apart(int(s), float(plan[s]), self._plans.step)]
        return [np.abs(other) for part in parts if (other := self._plans.best(inside, part)) is not None]

    def request(self, plays: Plays) -> Measure:
        """Return these plays as a request."""
        if self._probes is None:
            return Measure(plays.counts, plays)
        counts = np.zeros(len(self._probes), dtype=np.int64)
        for play, n in zip(plays.plans, plays.uses.tolist(), strict=True):
            counts[self._probe_of[play.tobytes()]] += n
        return Measure(counts)

    def readings(self, counts: IntArray, sums: FloatArray) -> tuple[IntArray, FloatArray]:
        """Return what was measured as counts and sums of each arm."""
        if self._probes is None:
            return counts, sums
        arms = self._probes.rows.indices
        n = len(self.variance)
        each = np.bincount(arms, counts[self._probes.owner], minlength=n)
        return each.astype(np.int64), np.asarray(np.bincount(arms, sums, minlength=n), dtype=float)


def _listed(probes: Probes, n_arms: int) -> tuple[FloatArray, dict[bytes, int]]:
    """Return the variance of a reading of each arm, and which probe reads the arms of each play."""
    arms = probes.rows.indices
    variance = np.zeros(n_arms)
    variance[arms] = probes.noise_scale**2
    if (variance[arms] != probes.noise_scale**2).any() or (probes.rows.data != 1).any():
        raise ProblemError("readings of one arm must have the same noise scale in all plays")
    reads = np.zeros((len(probes), n_arms))
    reads[probes.owner, arms] = 1.0
    return variance, {row.tobytes(): k for k, row in enumerate(reads)}


@dataclass(frozen=True, eq=False)
class Estimates:
    """The leader and the means that distances are counted from; larger is better."""

    leader: FloatArray  # (n_arms,) zeros and ones
    means: FloatArray
    variance: FloatArray  # R_s^2

    def mean_variance(self, readings: FloatArray) -> FloatArray:
        """Return R_s^2 / n_s, the variance of each mean after n_s readings, or of n_s a share of them."""
        return np.asarray(self.variance / np.maximum(readings, _LEAST))

    def distances(self, plans: FloatArray, readings: FloatArray) -> FloatArray:
        """Return how far each of these plans is from overtaking the leader; infinite for the leader itself.

        >>> estimates = Estimates(np.array([1.0, 0.0]), np.array([0.5, 0.0]), np.ones(2))
        >>> estimates.distances(np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([16.0, 16.0])).tolist()
        [1.0, inf]
        """
        contrasts = self.leader - plans
        gaps, variance = contrasts @ self.means, contrasts**2 @ self.mean_variance(readings)
        differs = contrasts.any(axis=1)
        return np.divide(gaps**2, 2.0 * variance, out=np.full(len(plans), np.inf), where=differs)

    def multiplier(self, plan: FloatArray, mean_variance: FloatArray) -> float:
        """Return alpha = gap / v, v the variance of the gap, for the closest world in which the plan leads.

        There the mean of arm s is lower by alpha (x_s - y_s) R_s^2 / n_s: alpha is the Lagrange multiplier of
        the gap being 0.
        """
        contrast = self.leader - plan
        return float(contrast @ self.means) / max(float(contrast**2 @ mean_variance), 1e-300)


class Search:
    """Finds the closest plan, as well as it can: some rounds of the game, and what earlier searches found."""

    def __init__(self, oracle: PlayOracle) -> None:
        self._oracle = oracle
        self._known = np.zeros((0, oracle.n_arms))  # plans, the last found last
        self._keys: set[bytes] = set()  # of these

    def remember_neighbours(self, estimates: Estimates, readings: FloatArray) -> None:
        """Remember for every arm the best plan that differs from the leader there."""
        self._remember(self._oracle.exchanges(estimates.leader, estimates.means), estimates, readings)

    def closest(
        self, estimates: Estimates, readings: FloatArray, rng: np.random.Generator
    ) -> tuple[FloatArray, float]:
        """Return the closest of the game's plans and those that are known, and its distance."""
        self._remember(self._game(estimates, readings, rng), estimates, readings)
        distances = estimates.distances(self._known, readings)
        k = int(np.argmin(distances))
        return self._known[k], float(distances[k])

    def _game(self, estimates: Estimates, readings: FloatArray, rng: np.random.Generator) -> list[FloatArray]:
        """Return the plans that a short game goes through.

        The distance of plan y is the maximum over alpha of

            alpha (x - y).m - alpha^2/2 sum_s (x_s - y_s)^2 R_s^2 / n_s,

        which is affine in y, since (x_s - y_s)^2 = x_s + y_s (1 - 2 x_s) for zeros and ones. One player names
        a y with a small loss over all alphas so far, perturbed by noise; the other answers with the best
        alpha for this y.
        """
        leader, means, n = estimates.leader, estimates.means, self._oracle.n_arms
        mean_variance = estimates.mean_variance(readings)
        size = float(np.abs(means).max()) or 1.0
        width = 4.0 * float(leader.sum()) ** 2 * n * size**2 * float(mean_variance[readings > 0].sum())
        step = math.sqrt(n * (math.log(n) + 1.0) / 2.0) / max(width, 1e-300)
        losses = np.zeros(n)  # of having each arm, over the alphas so far
        found = []
        for s in range(1, _ROUNDS + 1):
            weights = -(step / math.sqrt(s)) * losses - rng.exponential(size=n)
            plan = self._oracle.best_but(leader, weights)
            found.append(plan)
            alpha = estimates.multiplier(plan, mean_variance)
            losses -= alpha * means + 0.5 * alpha**2 * mean_variance * (1.0 - 2.0 * leader)
        return found

    def _remember(self, plans: list[FloatArray], estimates: Estimates, readings: FloatArray) -> None:
        """Add these to the plans known; where they are too many, the closest stay."""
        new = {plan.tobytes(): plan for plan in plans if plan.tobytes() not in self._keys}
        if not new:
            return
        self._keys |= new.keys()
        self._known = np.vstack([self._known, *new.values()])
        if len(self._known) > _MOST_KNOWN:
            order = np.argsort(estimates.distances(self._known, readings), kind="stable")
            self._known = self._known[np.sort(order[: _MOST_KNOWN // 2])]
            self._keys = {plan.tobytes() for plan in self._known}


class PlayingRun(RoundRun):
    """One play a round after a first cover."""

    def __init__(self, problem: AnyProblem, policy: SemiBanditPolicy) -> None:
        self._oracle = PlayOracle(problem, policy.name)
        self._delta = policy.delta
        self._search = Search(self._oracle)
        n = problem.n_arms
        self._cover = covering_plays(self._oracle.best, self._oracle.relevant, np.zeros(n))
        self._counts: IntArray = np.zeros(n, dtype=np.int64)
        self._sums = np.zeros(n)
        self._t = 0  # plays
        self._standing = Standing()

    @abstractmethod
    def _choose(self, estimates: Estimates, rng: np.random.Generator) -> FloatArray:
        """Return the next play."""

    def _decide(self, rng: np.random.Generator) -> Measure | Stop:
        """Return plays that read every arm first; then one play a round, or the leader.

        The run stops if even the closest plan found is further from overtaking the leader than a threshold.
        The distance is the log likelihood ratio gap^2 / (2 variance of the gap). The search also knows, for
        every arm, the best plan that differs from the leader there: its gap is small.
        """
        if not self._t:
            return self._oracle.request(Plays(self._cover, np.ones(len(self._cover), dtype=np.int64)))
        estimates = self._estimates()
        readings = self._counts.astype(float)
        self._search.remember_neighbours(estimates, readings)
        rival, distance = self._search.closest(estimates, readings, rng)
        level = heuristic_level(self._t, self._delta)
        contrast = estimates.leader - rival
        leader = self._oracle.answer(estimates.leader)
        radius = math.sqrt(2.0 * level * float(contrast**2 @ estimates.mean_variance(readings)))
        gap = float(contrast @ estimates.means)
        self._standing = Standing(leader, self._oracle.answer(rival), gap, radius)
        if distance > level:
            return Stop(leader)
        play = self._choose(estimates, rng)
        return self._oracle.request(Plays(play[None], np.ones(1, dtype=np.int64)))

    def _estimates(self) -> Estimates:
        means = self._oracle.sign * divided(self._sums, self._counts)
        return Estimates(self._oracle.best(means), means, self._oracle.variance)

    def absorb(self, counts: IntArray, sums: FloatArray) -> None:
        """Add what was read."""
        super().absorb(counts, sums)
        arm_counts, arm_sums = self._oracle.readings(counts, sums)
        self._counts = self._counts + arm_counts
        self._sums = self._sums + arm_sums
        self._t += 1 if self._t else len(self._cover)
        self._standing = Standing(self._oracle.answer(self._estimates().leader))

    def standing(self) -> Standing:
        """Return the leader, the closest plan of the last decision, their gap and the radius."""
        return self._standing


@dataclass(frozen=True)
class SemiBanditPolicy(Starting):
    """The settings of methods that play; they have no guarantee."""

    delta: float = 0.05

    randomized: ClassVar[bool] = True
    takes_oracle: ClassVar[bool] = True
    takes_probes: ClassVar[bool] = True
    takes_plays: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_delta(self.delta)

    @property
    def guarantee(self) -> Guarantee:
        """Return what is missing for a guarantee."""
        return Guarantee.none(
            "the heuristic threshold log((1 + log t)/delta) has no proof, and the closest plan is searched "
            "for"
        )


class PFWSRun(PlayingRun):
    """A run of P-FWS."""

    def _choose(self, estimates: Estimates, rng: np.random.Generator) -> FloatArray:
        """Return a forced play, or the best one along the averaged gradient."""
        t, n = self._t, self._oracle.n_arms
        root = math.isqrt(t // n)
        if root * root * n == t:
            return np.asarray(self._cover[root % len(self._cover)])
        shares = self._counts / t
        reach = 1.0 / (4.0 * math.sqrt(t * n))
        total = np.zeros(n)
        for _ in range(math.ceil(t**0.25)):
            z = rng.standard_normal(n)
            z = np.asarray(z * (rng.random() ** (1.0 / n) / np.linalg.norm(z)))  # uniform in the unit ball
            near = np.maximum(shares + reach * z, shares / 2.0)
            plan, _ = self._search.closest(estimates, t * near, rng)
            total += gradient(estimates, plan, near)
        return self._oracle.best(total)


def gradient(estimates: Estimates, plan: FloatArray, shares: FloatArray) -> FloatArray:
    """Return the gradient in w of gap^2 / (2 v), v = sum of R_s^2 / w_s: (gap / v)^2 / 2 times R_s^2 / w_s^2.

    >>> estimates = Estimates(np.array([1.0, 0.0]), np.array([1.0, 0.0]), np.ones(2))
    >>> gradient(estimates, np.array([0.0, 1.0]), np.full(2, 0.5)).tolist()
    [0.125, 0.125]
    """
    alpha = estimates.multiplier(plan, estimates.mean_variance(shares))
    differs = (estimates.leader - plan) ** 2
    return np.asarray(0.5 * alpha**2 * differs * estimates.variance * divided(1.0, shares) ** 2)


@dataclass(frozen=True)
class PFWS(SemiBanditPolicy, run=PFWSRun):
    """Perturbed Frank-Wolfe sampling for semi-bandits; it has no guarantee."""


class CombGameRun(PlayingRun):
    """A run of CombGame; w, L and S are the symbols of the module's description."""

    def __init__(self, problem: AnyProblem, policy: CombGame) -> None:
        super().__init__(problem, policy)
        self._plays = self._cover  # that w is made of
        self._n_played = np.ones(len(self._cover))  # how often each of them was played
        self._weights = self._n_played / len(self._cover)  # of each of them in w
        self._w = self._weights @ self._plays
        self._first_w = self._w
        self._linear = np.zeros(problem.n_arms)  # L
        self._square = 0.0  # S
        self._diameter = math.sqrt(2.0 * float(self._cover[0].sum()))

    def _choose(self, estimates: Estimates, rng: np.random.Generator) -> FloatArray:
        """Play one round of the game; return the play that is furthest behind."""
        eta = self._t**-0.25
        play = self._oracle.best(self._linear - self._square * self._w)
        plan, _ = self._search.closest(estimates, self._t * self._w, rng)
        self._linear = self._linear + eta * self._first_w / self._diameter + self._optimistic(estimates, plan)
        self._square += eta / self._diameter
        self._w = (1.0 - eta) * self._w + eta * play
        self._track(play, eta)
        behind = int(np.argmin(self._n_played / np.maximum(self._weights, 1e-300)))
        self._n_played[behind] += 1.0
        return np.asarray(self._plays[behind])

    def _optimistic(self, estimates: Estimates, plan: FloatArray) -> FloatArray:
        """Return what each arm may show at most against the world in which the plan overtakes the leader."""
        mean_variance = estimates.mean_variance(self._w)
        alpha = estimates.multiplier(plan, mean_variance)
        moves = np.abs(alpha * (estimates.leader - plan) * mean_variance)
        return optimistic_gains(moves, estimates.variance, self._counts, math.log(self._t))

    def _track(self, play: FloatArray, eta: float) -> None:
        """Move the weights of the plays as w has moved."""
        same = np.flatnonzero((self._plays == play).all(axis=1))
        if not same.size:
            self._plays = np.vstack([self._plays, play])
            self._weights = np.append(self._weights, 0.0)
            self._n_played = np.append(self._n_played, 0.0)
            same = np.array([len(self._plays) - 1])
        self._weights = (1.0 - eta) * self._weights
        self._weights[same[0]] += eta


@dataclass(frozen=True)
class CombGame(SemiBanditPolicy, run=CombGameRun):
    """The game of CombGame for semi-bandits, with online Frank-Wolfe; it has no guarantee."""
