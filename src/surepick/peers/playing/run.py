"""The run that sequential methods for semi-bandits share: a cover, then one play a round, and the stop.

With t plays, N_s readings of arm s and Z the distance of the closest plan (`closest`), a run stops when

    Z > log((1 + log t) / delta),

the threshold of most published experiments: `heuristic`, which has no proof.

Variant "authors" is the program with which Tzeng et al. (2023) made their figures. It differs from what the
papers describe in two places, which pull in opposite directions. It takes N / sum(N) for the shares of the
arms, where a play reads several: its distances are smaller by the arms of a play (7 on their smaller trees),
so that it stops later. And its search is a draw of 5,000 plans (`closest.Drawn`), which mostly misses the
closest: it stops in the first round in which it has missed all close ones, which is sooner. Neither has to do
with evidence; the variant is there to be compared with printed figures, and "paper" is the method.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from surepick.core.arrays import FloatArray, IntArray
from surepick.core.oracle_problem import AnyProblem
from surepick.core.plays import Plays
from surepick.core.policy import check_delta
from surepick.core.promise import Promise
from surepick.core.run import Measure, Standing, Stop
from surepick.design.play_allocation import covering_plays
from surepick.errors import ParameterError
from surepick.peers.playing.closest import Drawn, Remembered, Search, Seen
from surepick.peers.playing.ground import Ground


@dataclass(frozen=True)
class SemiBanditPolicy:
    """What methods that play have, and that nothing is promised."""

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
        if self.variant not in ("paper", "authors"):
            raise ParameterError(f"variant must be 'paper' or 'authors', got {self.variant!r}")

    @property
    def guarantee(self) -> str:
        """None."""
        return Promise.none(
            "the heuristic threshold log((1 + log t)/delta) has no proof, and the closest plan is searched "
            "for"
        ).text


class PlayingRun(ABC):
    """One play a round after a first cover. It changes by `absorb`, and its search remembers plans."""

    def __init__(self, problem: AnyProblem, policy: SemiBanditPolicy) -> None:
        self._ground, self._delta = Ground(problem, policy.name), policy.delta
        self._as_authors = policy.variant == "authors"
        self._search: Search = Drawn(self._ground) if self._as_authors else Remembered(self._ground)
        n = problem.n_arms
        self._cover = covering_plays(self._ground.best, self._ground.relevant, np.zeros(n))
        self._counts: IntArray = np.zeros(n, dtype=np.int64)
        self._sums = np.zeros(n)
        self._t = 0  # plays
        self._decision: Measure | Stop | None = None
        self._standing = Standing()

    @abstractmethod
    def choose(self, seen: Seen, rng: np.random.Generator) -> FloatArray:
        """The next play."""

    @property
    def shares(self) -> FloatArray:
        """Readings of each arm in a play, on average; in the authors' program of all readings."""
        return np.asarray(self._counts / (self._counts.sum() if self._as_authors else self._t))

    def decide(self, rng: np.random.Generator) -> Measure | Stop:
        """A cover first; then one play, or the lead once no plan is close."""
        if self._decision is None:
            self._decision = self._decide(rng)
        return self._decision

    def _decide(self, rng: np.random.Generator) -> Measure | Stop:
        if not self._t:
            return self._ground.request(Plays(self._cover, np.ones(len(self._cover), dtype=np.int64)))
        seen, readings = self._seen(), self._t * self.shares
        self._search.look_around(seen, readings)
        rival, distance = self._search.closest(seen, readings, rng)
        level = math.log((1.0 + math.log(self._t)) / self._delta)
        self._standing = self._look(seen, rival, level)
        if distance > level:
            return Stop(self._ground.answer(seen.lead))
        play = self.choose(seen, rng)
        return self._ground.request(Plays(play[None], np.ones(1, dtype=np.int64)))

    def _seen(self) -> Seen:
        means = np.divide(self._sums, self._counts, out=np.zeros(len(self._sums)), where=self._counts > 0)
        means *= self._ground.sign
        return Seen(self._ground.best(means), means, self._ground.variance)

    def _look(self, seen: Seen, rival: FloatArray, level: float) -> Standing:
        away = seen.lead - rival
        radius = math.sqrt(2.0 * level * float(away**2 @ seen.price(self._counts.astype(float))))
        lead, other = self._ground.answer(seen.lead), self._ground.answer(rival)
        return Standing(lead, other, float(away @ seen.means), radius)

    def absorb(self, counts: IntArray, sums: FloatArray) -> None:
        """Add what was read."""
        arms, read = self._ground.readings(counts, sums)
        self._counts, self._sums = self._counts + arms, self._sums + read
        self._t += 1 if self._t else len(self._cover)
        self._standing = Standing(self._ground.answer(self._seen().lead))
        self._decision = None

    def standing(self) -> Standing:
        """The lead, the closest plan of the last decision, their gap and the radius of the threshold."""
        return self._standing
