"""The search for the closest plan: of all plans the one that needs the least evidence to overtake the lead.

With lead x, means m and n_s readings of each arm, a plan y is as far away as

    distance(y) = ((x - y).m)^2 / (2 sum over the arms in which they differ of R_s^2 / n_s).

Tzeng et al. (2023), Algorithm 1, find the least one by a game: against the losses so far, and a draw of
exponential noise, the oracle names a plan; alpha answers as is best; the loss of that alpha is added. The
plan of the last rounds that was closest is taken. To be sure of it takes about (width / distance)^2 rounds
with a width in the millions, so nobody plays it to its end:

- `Remembered`, variant "paper": some rounds of the game, and beside them every plan that earlier searches of
  the run have found, up to some hundreds, and once a play, for every arm, the best plan that differs from the
  lead there. On the published trees this was the closest of all plans in each of 1,996 plays.
- `Drawn`, variant "authors": 5,000 rounds, nothing remembered, as in the program of the authors' experiments.
  With their step the losses never reach a millionth of the noise, so that the rounds are independent draws of
  a plan; here they are drawn from a pool of such plans instead of by the oracle each time.

A plan that is missed makes the distance too large, one more reason why these stops have no proof.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from surepick.core.arrays import FloatArray
from surepick.peers.playing.ground import Ground

_ROUNDS = 4  # of a game
_MOST_KNOWN = 400  # plans that are remembered
_DRAWS = 4999  # of the authors' 5,000 the last is not made
_POOL, _POOL_SEED = 60_000, 20_231_210
_LEAST = 1e-12  # readings: keeps prices finite


@dataclass(frozen=True, eq=False)
class Seen:
    """The lead and the means that distances are counted from; larger is better."""

    lead: FloatArray
    means: FloatArray
    variance: FloatArray  # R_s^2

    def price(self, readings: FloatArray) -> FloatArray:
        """R_s^2 / n_s."""
        return np.asarray(self.variance / np.maximum(readings, _LEAST))

    def distances(self, plans: FloatArray, readings: FloatArray) -> FloatArray:
        """How far each of these plans is from overtaking the lead; infinite for the lead itself.

        >>> seen = Seen(np.array([1.0, 0.0]), np.array([0.5, 0.0]), np.ones(2))
        >>> seen.distances(np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([16.0, 16.0])).tolist()
        [1.0, inf]
        """
        # |x - y| = x + (1 - 2x) y for zeros and ones: two products with the plans
        toward = (1.0 - 2.0 * self.lead) * self.price(readings)
        found = plans @ np.column_stack([self.means, toward, 1.0 - 2.0 * self.lead])
        gaps, spread = self.lead @ self.means - found[:, 0], self.lead @ self.price(readings) + found[:, 1]
        differs = found[:, 2] + self.lead.sum() > 0.5
        return np.divide(gaps**2, 2.0 * spread, out=np.full(len(plans), np.inf), where=differs)


class Search(Protocol):
    """Finds the closest plan, as well as it can."""

    def look_around(self, seen: Seen, readings: FloatArray) -> None:
        """Once a play, before it is asked."""

    def closest(self, seen: Seen, readings: FloatArray, rng: np.random.Generator) -> tuple[FloatArray, float]:
        """The closest plan that it finds, and its distance."""
        ...


class Remembered:
    """Some rounds of the game, and what is known from earlier searches."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self._known = np.zeros((0, ground.n_arms))  # plans, the last found last
        self._keys: set[bytes] = set()  # of these

    def look_around(self, seen: Seen, readings: FloatArray) -> None:
        """For every arm the best plan that differs from the lead there."""
        self._remember(self._ground.exchanges(seen.lead, seen.means), seen, readings)

    def closest(self, seen: Seen, readings: FloatArray, rng: np.random.Generator) -> tuple[FloatArray, float]:
        """Of the game's plans and those that are known the closest."""
        self._remember(self._game(seen, readings, rng), seen, readings)
        distances = seen.distances(self._known, readings)
        k = int(np.argmin(distances))
        return self._known[k], float(distances[k])

    def _game(self, seen: Seen, readings: FloatArray, rng: np.random.Generator) -> list[FloatArray]:
        """The plans that a short game goes through."""
        lead, means, n = seen.lead, seen.means, self._ground.n_arms
        price = seen.price(readings)
        size = float(np.abs(means).max()) or 1.0
        width = 4.0 * float(lead.sum()) ** 2 * n * size**2 * float(price[readings > 0].sum())
        step = math.sqrt(n * (math.log(n) + 1.0) / 2.0) / max(width, 1e-300)
        lost, found = np.zeros(n), []
        for s in range(1, _ROUNDS + 1):
            weights = -(step / math.sqrt(s)) * lost - rng.exponential(size=n)
            plan = self._ground.best_but(lead, weights)
            found.append(plan)
            spread = float((lead - plan) ** 2 @ price)
            alpha = float((lead - plan) @ means) / max(spread, 1e-300)
            lost -= alpha * means + 0.5 * alpha**2 * price * (1.0 - 2.0 * lead)
        return found

    def _remember(self, plans: list[FloatArray], seen: Seen, readings: FloatArray) -> None:
        """Add these to the plans known; where they are too many, the closest stay."""
        new = {plan.tobytes(): plan for plan in plans if plan.tobytes() not in self._keys}
        if not new:
            return
        self._keys |= new.keys()
        self._known = np.vstack([self._known, *new.values()])
        if len(self._known) > _MOST_KNOWN:
            order = np.argsort(seen.distances(self._known, readings), kind="stable")
            self._known = self._known[np.sort(order[: _MOST_KNOWN // 2])]
            self._keys = {plan.tobytes() for plan in self._known}


class Drawn:
    """The closest of many plans drawn at random; the pool is the same in every run on a problem."""

    def __init__(self, ground: Ground) -> None:
        noise = np.random.default_rng(_POOL_SEED).exponential(size=(_POOL, ground.n_arms))
        self._pool = np.array([ground.best(-one) for one in noise])

    def look_around(self, seen: Seen, readings: FloatArray) -> None:
        """Nothing: it begins anew each time."""

    def closest(self, seen: Seen, readings: FloatArray, rng: np.random.Generator) -> tuple[FloatArray, float]:
        """The closest of a few thousand."""
        drawn = self._pool[rng.integers(len(self._pool), size=_DRAWS)]
        distances = seen.distances(drawn, readings)
        k = int(np.argmin(distances))
        return drawn[k], float(distances[k])
