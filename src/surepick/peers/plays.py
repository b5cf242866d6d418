"""Semi-bandits: whole plans are played and every arm of a play is read; a cover, one play a round, the stop.

With leader x, means m, t plays and n_s readings of arm s, the distance of a plan y is the evidence that it
needs to overtake the leader:

    distance(y) = ((x - y).m)^2 / (2 sum over the arms in which they differ of R_s^2 / n_s).

A run stops when the closest plan is further than log((1 + log t) / delta), the threshold of most published
experiments (`heuristic`), which has no proof.

Tzeng et al. (2023), Algorithm 1, find the closest plan by a game: against the losses so far, and a draw of
exponential noise, the oracle names a plan; alpha answers as is best; the loss of that alpha is added. To be
sure of it takes about (width / distance)^2 rounds with a width in the millions, which is out of reach. So

- variant "paper" (`Remembered`) plays some rounds of the game and remembers every plan that its searches
  have found, up to some hundreds, and for every arm the best plan that differs from the leader there. On the
  published trees this was the closest of all plans in each of 1,996 plays.
- variant "authors" (`Drawn`) is the program with which the authors made their figures, to compare with them:
  the closest of 5,000 plans drawn at random (with their step losses never reach a millionth of the noise),
  which mostly misses the closest and stops sooner; and shares of the arms are N / sum(N), where a play reads
  several, so that distances are smaller by the arms of a play, and it stops later.

A plan that is missed makes the distance too large, one more reason why these stops have no proof.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Protocol

import numpy as np

from surepick.core.arrays import BoolArray, FloatArray, IntArray
from surepick.core.guarantee import Promise
from surepick.core.oracle_problem import AnyProblem
from surepick.core.plan_sets import plan_set, play_finder, spanned
from surepick.core.policy import check_delta, known_noise_scale
from surepick.core.probes import Plays, Probes
from surepick.core.run import Answer, Measure, Standing, Stop
from surepick.design.play_allocation import covering_plays
from surepick.errors import ProblemError
from surepick.policies.sound import Starting, check_choice

_NEEDED = 'plays whole plans and reads every arm of a play: give the problem measure="plan arms"'
_ROUNDS = 4  # of a game
_MOST_KNOWN = 400  # plans that are remembered
_DRAWS = 4999  # of the authors' 5,000 the last is not made
_POOL, _POOL_SEED = 60_000, 20_231_210
_LEAST = 1e-12  # readings: keeps prices finite


class PlayOracle:
    """Finds the best plays of a problem, vectors of zeros and ones, for weights of which larger is better.

    A play is a plan that is measured as a whole: every arm in it is read. The problem has such plays
    (`measure="plan arms"`), or lists them as probes that read each arm by itself.
    """

    def __init__(self, problem: AnyProblem, method: str) -> None:
        """`method` is the policy's name, for errors."""
        self._probes = problem.probes
        self._probe_of: dict[bytes, int] = {}  # the number of the probe, by the bytes of its play
        if problem.plays:
            self.variance = known_noise_scale(problem, plays=True) ** 2
        elif problem.probes is not None and problem.probes.is_diagonal:
            self.variance, self._probe_of = _listed(problem.probes, problem.n_arms)
        else:
            raise ProblemError(f"{method} {_NEEDED}", field="policy")
        self.sign, self.n_arms = problem.sign, problem.n_arms
        self._plans = plan_set(problem)
        self._box, _ = spanned(self._plans)  # the smallest box that holds all plans
        self.best = play_finder(self._plans, self._box)  # for weights of any sign

    @property
    def relevant(self) -> BoolArray:
        """The arms in which plans differ."""
        return np.asarray(self._box.lower < self._box.upper)

    def answer(self, play: FloatArray) -> Answer:
        """Return the plan as results name it."""
        return self._plans.answer(self.sign * play + 0.0)

    def best_but(self, lead: FloatArray, weights: FloatArray) -> FloatArray:
        """Return the best play other than this one: the exchange that loses least, or by trying every arm."""
        play = self.best(weights)
        if (play != lead).any():
            return play
        inside, plan, box = self.sign * weights, self.sign * play + 0.0, self._box
        losses = self._plans.losses(inside, box, plan)
        if losses is None:
            return max(self.exchanges(lead, weights), key=lambda other: float(weights @ other))
        arm = int(box.free[np.argmin(losses[box.free])])
        (part,) = box.apart(arm, float(plan[arm]), self._plans.step)
        found = self._plans.best(inside, part)
        assert found is not None
        return np.abs(found)

    def exchanges(self, lead: FloatArray, weights: FloatArray) -> list[FloatArray]:
        """Return for every arm the best play that differs from this one there."""
        inside, plan, box = self.sign * weights, self.sign * lead + 0.0, self._box
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
        arms, n = self._probes.rows.indices, len(self.variance)
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

    lead: FloatArray
    means: FloatArray
    variance: FloatArray  # R_s^2

    def price(self, readings: FloatArray) -> FloatArray:
        """Return R_s^2 / n_s."""
        return np.asarray(self.variance / np.maximum(readings, _LEAST))

    def distances(self, plans: FloatArray, readings: FloatArray) -> FloatArray:
        """Return how far each of these plans is from overtaking the leader; infinite for the leader itself.

        >>> estimates = Estimates(np.array([1.0, 0.0]), np.array([0.5, 0.0]), np.ones(2))
        >>> estimates.distances(np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([16.0, 16.0])).tolist()
        [1.0, inf]
        """
        # |x - y| = x + (1 - 2x) y for zeros and ones: two products with the plans
        toward = (1.0 - 2.0 * self.lead) * self.price(readings)
        found = plans @ np.column_stack([self.means, toward, 1.0 - 2.0 * self.lead])
        gaps = self.lead @ self.means - found[:, 0]
        variance = self.lead @ self.price(readings) + found[:, 1]
        differs = found[:, 2] + self.lead.sum() > 0.5
        return np.divide(gaps**2, 2.0 * variance, out=np.full(len(plans), np.inf), where=differs)


class Search(Protocol):
    """Finds the closest plan, as well as it can."""

    def look_around(self, estimates: Estimates, readings: FloatArray) -> None:
        """Look for plans near the leader; called once a play."""

    def closest(
        self, estimates: Estimates, readings: FloatArray, rng: np.random.Generator
    ) -> tuple[FloatArray, float]:
        """Return the closest plan that it finds, and its distance."""
        ...


class Remembered:
    """Some rounds of the game, and what is known from earlier searches."""

    def __init__(self, oracle: PlayOracle) -> None:
        self._oracle = oracle
        self._known = np.zeros((0, oracle.n_arms))  # plans, the last found last
        self._keys: set[bytes] = set()  # of these

    def look_around(self, estimates: Estimates, readings: FloatArray) -> None:
        """Remember for every arm the best plan that differs from the leader there."""
        self._remember(self._oracle.exchanges(estimates.lead, estimates.means), estimates, readings)

    def closest(
        self, estimates: Estimates, readings: FloatArray, rng: np.random.Generator
    ) -> tuple[FloatArray, float]:
        """Return the closest of the game's plans and those that are known."""
        self._remember(self._game(estimates, readings, rng), estimates, readings)
        distances = estimates.distances(self._known, readings)
        k = int(np.argmin(distances))
        return self._known[k], float(distances[k])

    def _game(self, estimates: Estimates, readings: FloatArray, rng: np.random.Generator) -> list[FloatArray]:
        """Return the plans that a short game goes through."""
        lead, means, n = estimates.lead, estimates.means, self._oracle.n_arms
        price = estimates.price(readings)
        size = float(np.abs(means).max()) or 1.0
        width = 4.0 * float(lead.sum()) ** 2 * n * size**2 * float(price[readings > 0].sum())
        step = math.sqrt(n * (math.log(n) + 1.0) / 2.0) / max(width, 1e-300)
        lost, found = np.zeros(n), []
        for s in range(1, _ROUNDS + 1):
            weights = -(step / math.sqrt(s)) * lost - rng.exponential(size=n)
            plan = self._oracle.best_but(lead, weights)
            found.append(plan)
            alpha = float((lead - plan) @ means) / max(float((lead - plan) ** 2 @ price), 1e-300)
            lost -= alpha * means + 0.5 * alpha**2 * price * (1.0 - 2.0 * lead)
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


class Drawn:
    """The closest of many plans drawn at random; the pool is the same in every run on a problem."""

    def __init__(self, oracle: PlayOracle) -> None:
        self._oracle = oracle

    @cached_property
    def _pool(self) -> FloatArray:
        noise = np.random.default_rng(_POOL_SEED).exponential(size=(_POOL, self._oracle.n_arms))
        return np.array([self._oracle.best(-one) for one in noise])

    def look_around(self, estimates: Estimates, readings: FloatArray) -> None:
        """Do nothing: it begins anew each time."""

    def closest(
        self, estimates: Estimates, readings: FloatArray, rng: np.random.Generator
    ) -> tuple[FloatArray, float]:
        """Return the closest of a few thousand."""
        drawn = self._pool[rng.integers(len(self._pool), size=_DRAWS)]
        distances = estimates.distances(drawn, readings)
        k = int(np.argmin(distances))
        return drawn[k], float(distances[k])


@dataclass(frozen=True)
class SemiBanditPolicy(Starting):
    """The settings of methods that play; they have no guarantee."""

    delta: float = 0.05
    variant: str = "paper"

    name: ClassVar[str]
    version: ClassVar[int] = 1
    randomized: ClassVar[bool] = True
    takes_oracle: ClassVar[bool] = True
    takes_probes: ClassVar[bool] = True
    takes_plays: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_delta(self.delta)
        check_choice("variant", self.variant, "paper", "authors")

    @property
    def guarantee(self) -> str:
        """Return what is missing for a guarantee."""
        return Promise.none(
            "the heuristic threshold log((1 + log t)/delta) has no proof, and the closest plan is searched "
            "for"
        ).text


class PlayingRun(ABC):
    """One play a round after a first cover. It changes by `absorb`, and its search remembers plans."""

    def __init__(self, problem: AnyProblem, policy: SemiBanditPolicy) -> None:
        self._oracle, self._delta = PlayOracle(problem, policy.name), policy.delta
        self._as_authors = policy.variant == "authors"
        self._search: Search = Drawn(self._oracle) if self._as_authors else Remembered(self._oracle)
        n = problem.n_arms
        self._cover = covering_plays(self._oracle.best, self._oracle.relevant, np.zeros(n))
        self._counts: IntArray = np.zeros(n, dtype=np.int64)
        self._sums = np.zeros(n)
        self._t = 0  # plays
        self._decision: Measure | Stop | None = None
        self._standing = Standing()

    @abstractmethod
    def choose(self, estimates: Estimates, rng: np.random.Generator) -> FloatArray:
        """Return the next play."""

    @property
    def shares(self) -> FloatArray:
        """Readings of each arm in a play, on average; in the authors' program of all readings."""
        return np.asarray(self._counts / (self._counts.sum() if self._as_authors else self._t))

    def decide(self, rng: np.random.Generator) -> Measure | Stop:
        """Return a cover first; then one play, or the leader once no plan is close."""
        if self._decision is None:
            self._decision = self._decide(rng)
        return self._decision

    def _decide(self, rng: np.random.Generator) -> Measure | Stop:
        if not self._t:
            return self._oracle.request(Plays(self._cover, np.ones(len(self._cover), dtype=np.int64)))
        estimates, readings = self._estimates(), self._t * self.shares
        self._search.look_around(estimates, readings)
        rival, distance = self._search.closest(estimates, readings, rng)
        level = math.log((1.0 + math.log(self._t)) / self._delta)
        self._standing = self._look(estimates, rival, level)
        if distance > level:
            return Stop(self._oracle.answer(estimates.lead))
        play = self.choose(estimates, rng)
        return self._oracle.request(Plays(play[None], np.ones(1, dtype=np.int64)))

    def _estimates(self) -> Estimates:
        means = np.divide(self._sums, self._counts, out=np.zeros(len(self._sums)), where=self._counts > 0)
        means *= self._oracle.sign
        return Estimates(self._oracle.best(means), means, self._oracle.variance)

    def _look(self, estimates: Estimates, rival: FloatArray, level: float) -> Standing:
        contrast = estimates.lead - rival
        radius = math.sqrt(2.0 * level * float(contrast**2 @ estimates.price(self._counts.astype(float))))
        lead, other = self._oracle.answer(estimates.lead), self._oracle.answer(rival)
        return Standing(lead, other, float(contrast @ estimates.means), radius)

    def absorb(self, counts: IntArray, sums: FloatArray) -> None:
        """Add what was read."""
        arms, read = self._oracle.readings(counts, sums)
        self._counts, self._sums = self._counts + arms, self._sums + read
        self._t += 1 if self._t else len(self._cover)
        self._standing = Standing(self._oracle.answer(self._estimates().lead))
        self._decision = None

    def standing(self) -> Standing:
        """Return the leader, the closest plan of the last decision, their gap and the radius."""
        return self._standing
