"""What is known of a limit: `Limit`, and the formulas that make measurements of a characteristic time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from surepick.core.arrays import FloatArray, IntArray
from surepick.core.policy import check_delta
from surepick.core.run import Answer
from surepick.core.wording import how_many
from surepick.design.allocation import optimal_allocation

WHOLE = 1e-9  # a cover this little below a whole number of uses is that number
LIMIT_FORMULA = "max(T* kl(delta, 1 - delta), (1 - 2 delta) relevant arms)"


@dataclass(frozen=True, eq=False)
class Bracket:
    """A characteristic time or cost between its ends, and the shares of measurements that attain it."""

    lower: float
    upper: float  # infinite where it is not known that no other plan is harder
    shares: FloatArray  # (n_arms,); (n_probes,) with probes; with plan probes the share that reads an arm

    @classmethod
    def twice(cls, lower: float, upper: float, shares: FloatArray) -> Bracket:
        """Return T* of a design whose worst row is between these ends: twice of it."""
        return cls(2.0 * lower, 2.0 * upper, shares)

    def at_price(self, price: float) -> Bracket:
        """Return the same in cost, where every measurement costs this much."""
        return Bracket(price * self.lower, price * self.upper, self.shares)

    @property
    def value(self) -> float:
        """The middle of the ends; the lower one where they are far apart."""
        return 0.5 * (self.lower + self.upper) if self.upper <= 1.01 * self.lower else self.lower


@dataclass(frozen=True)
class Once:
    """The least number of measurements (or uses) that sees every relevant arm once, and the least cost."""

    n: int
    cost: float

    @classmethod
    def of(cls, costs: FloatArray, arms: IntArray) -> Once:
        """Return one measurement of each of these arms."""
        return cls(len(arms), float(costs[arms].sum()))


@dataclass(frozen=True, eq=False)
class Limit:
    """The fewest measurements, on average, that find the best plan, or one within epsilon of it.

    `measurements` is the limit and `shares` how they are best divided between arms (probes). Where plans tie
    with the best, no number of measurements is enough: it is infinite, and `tied` says which they are. Plans
    are indices; of an `OracleProblem` or a `Polytope` they are vectors. `time` and `cost` bracket the
    characteristic time T*, in measurements and in cost; within epsilon, of a bound from below.
    """

    best: Answer
    delta: float
    time: Bracket
    cost: Bracket
    once: Once
    tied: tuple[Answer, ...] = ()
    epsilon: float = 0.0
    is_paired: bool = False  # whether other plans are within epsilon: the bound is by pairs of worlds
    setup_cost: float = 0.0  # of one batch, without which nothing is known

    def __repr__(self) -> str:
        found = f"{self.measurements:.4g} measurements" if self.is_finite else "infinite: plans tie"
        return f"Limit({found}, delta={self.delta:g})"

    @property
    def is_finite(self) -> bool:
        """Whether the best plan is unique, so that measurements can find it."""
        return not self.tied

    @property
    def shares(self) -> FloatArray:
        """The best division of the measurements between arms (probes)."""
        return self.time.shares

    @property
    def measurements(self) -> float:
        """The limit: what every method with a guarantee needs at least, on average."""
        return self.at(self.delta)

    @property
    def price(self) -> float:
        """The limit of the cost, with one set-up where that has a price."""
        return self._fewest(self.cost.lower, self.once.cost, self.delta) + self.setup_cost

    def at(self, delta: float) -> float:
        """Return the limit at another delta: max(T* kl(delta, 1 - delta), (1 - 2 delta) relevant arms).

        >>> import surepick as sp
        >>> found = sp.limit(sp.Problem([[1, 0], [0, 1]], noise=1, goal="largest"), [1.0, 0.0])
        >>> round(found.at(0.05), 2), round(found.at(0.001), 2)
        (21.2, 55.14)
        """
        return self._fewest(self.time.lower, self.once.n, delta)

    def _fewest(self, characteristic_time: float, once: float, delta: float) -> float:
        """Return what every method needs at this delta, if seeing each arm that matters once takes `once`."""
        check_delta(delta)
        if self.is_paired:
            return characteristic_time * half_kl(delta)
        return max(characteristic_time * binary_kl(delta), (1 - 2 * delta) * once)

    @property
    def explanation(self) -> str:
        """The limit in one sentence, or why there is none."""
        if self.tied:
            return (
                f"{how_many(len(self.tied), 'plan ties', 'plans tie')} with the best, so no number of "
                "measurements can tell them apart; ask for a plan within epsilon of the best"
            )
        asked = f" and asked for a plan within {self.epsilon:g} of the best" if self.epsilon else ""
        return (
            f"every method that is wrong with probability at most {self.delta:g}{asked} needs at least "
            f"{self.measurements:.4g} measurements on average"
        )


def least_of(
    differences: Any, gaps: FloatArray, noise: FloatArray, costs: FloatArray, tolerance: float
) -> tuple[Bracket, Bracket]:
    """Return T* and the least cost over rows best - plan, dense or sparse, with these positive gaps."""
    if isinstance(differences, np.ndarray):
        squares: Any = (differences * noise / gaps[:, None]) ** 2
    else:
        squares = differences.copy()
        row_gaps = np.repeat(gaps, np.diff(differences.indptr))
        squares.data = (differences.data * noise[differences.indices] / row_gaps) ** 2
    found = optimal_allocation(squares, tolerance=tolerance)
    time = Bracket.twice(found.lower, found.value, found.weights)
    if np.ptp(costs) == 0:
        return time, time.at_price(float(costs[0]))
    found = optimal_allocation(squares, tolerance=tolerance, costs=costs)
    return time, Bracket.twice(found.lower, found.value, found.weights)


def no_limit(best: Answer, delta: float, n: int, once: Once, tied: tuple[Answer, ...]) -> Limit:
    """Return the infinite limit where these plans tie with the best one."""
    nothing = Bracket(math.inf, math.inf, np.zeros(n))
    return Limit(best, delta, nothing, nothing, once, tied)


def raised(least_gap: float, epsilon: float) -> float:
    """Return what gaps are raised by within epsilon: twice epsilon where another plan is within it, too."""
    return epsilon if least_gap > epsilon or not epsilon else 2 * epsilon


def binary_kl(delta: float) -> float:
    """Return kl(delta, 1 - delta), the nats that an answer wrong with probability delta needs; 0 from 1/2 on.

    >>> round(binary_kl(0.05), 4), binary_kl(0.7)
    (2.65, 0.0)
    """
    return (1 - 2 * delta) * math.log((1 - delta) / delta) if delta < 0.5 else 0.0


def half_kl(delta: float) -> float:
    """Return kl(1/2, delta), the nats that an answer needs which is right in one of two worlds alone.

    >>> round(half_kl(0.05), 4), half_kl(0.5)
    (0.8304, 0.0)
    """
    return -0.5 * math.log(4 * delta * (1 - delta)) if delta < 0.5 else 0.0
