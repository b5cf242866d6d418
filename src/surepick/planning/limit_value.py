"""What is known of a limit: `Limit`, and the formulas that make measurements of a characteristic time."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from surepick.core.arrays import FloatArray, IntArray
from surepick.core.cards import card, note
from surepick.core.close_call import CloseCall
from surepick.core.policy import check_delta
from surepick.core.run import Answer
from surepick.core.wording import how_many

LIMIT_FORMULA = "max(T* kl(delta, 1 - delta), (1 - 2 delta) relevant arms)"


@dataclass(frozen=True, eq=False)
class Limit:
    """How few measurements any method needs to find the best plan, with a certified bracket.

    `characteristic_time` is T*, between `lower` and `upper`; `allocation` is the share of measurements of
    each arm that attains it. `characteristic_cost`, `cost_lower`, `cost_upper` and `cost_allocation` (again
    shares of measurements) are the same when cost is counted instead. When rivals tie with the best plan no
    number of measurements is enough: all of them are infinite, `tied` says which, the allocations are empty.
    Plans are indices; of an `OracleProblem` they are vectors, and `characteristic_time` is the lower end.
    With `epsilon` it is about finding a plan within epsilon of the best: `lower` holds for every delta, and
    `upper` is what methods can come near to as delta goes to 0. The two may be far apart.
    """

    best: Answer
    delta: float
    characteristic_time: float
    lower: float
    upper: float
    allocation: FloatArray  # (n_arms,) shares of measurements; (n_probes,) with probes; plays that read it
    characteristic_cost: float
    cost_lower: float
    cost_upper: float
    cost_allocation: FloatArray  # (n_arms,) shares of measurements when cost is what counts
    n_relevant: int  # arms in which plans differ; with probes, uses that seeing them all takes at least
    tied: tuple[Answer, ...]
    relevant_cost: float  # of measuring each of those arms once, or of those uses
    suggested_epsilon: float | None = None  # where plans of a polytope tie, or nearly: one that would end it
    epsilon: float = 0.0  # how much worse than the best the answer may be
    pair_time: float = 0.0  # with epsilon: times kl(1/2, delta), another bound; see `epsilon_limit`
    pair_cost: float = 0.0  # the same in cost
    closest: CloseCall | None = None  # of a polytope: the neighbour that takes most measurements
    setup_cost: float = 0.0  # of one batch, without which nothing is known

    def __repr__(self) -> str:
        found = f"{self.lower_bound:.4g} measurements" if self.is_finite else "infinite: plans tie"
        return f"Limit({found}, delta={self.delta:g})"

    def _repr_html_(self) -> str:
        rows: list[tuple[str, object]] = [
            ("measurements", self.lower_bound),
            ("cost", self.cost_lower_bound),
            ("delta", self.delta),
            *([("epsilon", self.epsilon)] if self.epsilon else []),
            ("characteristic time", f"{self.characteristic_time:.6g}"),
        ]
        return card("Limit of any method", rows, note(self.explanation + "."))

    @property
    def is_finite(self) -> bool:
        """Whether the best plan is unique, so that measurements can find it."""
        return not self.tied

    @property
    def lower_bound(self) -> float:
        """The limit: the expected measurements of every method that keeps its promise are at least these."""
        return self.measurements()

    @property
    def upper_bound(self) -> float:
        """The same at the upper end: measurements that methods come near to as delta goes to 0."""
        return fewest(self.upper, self.n_relevant, self.delta)

    @property
    def cost_lower_bound(self) -> float:
        """The same for the expected cost of the measurements, with one set-up where that has a price."""
        least = fewest(self.cost_lower, self.relevant_cost, self.delta)
        least = max(least, self.pair_cost * half_kl(self.delta)) if self.epsilon else least
        return least + self.setup_cost

    def measurements(self, delta: float | None = None) -> float:
        """The limit at another delta: max(T* kl(delta, 1 - delta), (1 - 2 delta) n_relevant).

        >>> import surepick as sp
        >>> found = sp.limit(sp.Problem([[1, 0], [0, 1]], noise_scale=1), [1.0, 0.0])
        >>> round(found.measurements(0.05), 2), round(found.measurements(0.001), 2)
        (21.2, 55.14)
        """
        delta = self.delta if delta is None else delta
        least = fewest(self.lower, self.n_relevant, delta)
        return max(least, self.pair_time * half_kl(delta)) if self.epsilon else least

    @property
    def explanation(self) -> str:
        """One sentence for people: the limit, or why there is none."""
        if self.tied:
            named = "" if self.closest is None else f" ({self.closest.change} changes nothing)"
            tie = (
                f"{how_many(len(self.tied), 'plan ties', 'plans tie')} with the best{named}, so no number of "
                "measurements can tell them apart; ask for a plan within epsilon of the best instead"
            )
            nearest = self.suggested_epsilon
            if nearest is None:
                return tie
            return (
                f"{tie}: epsilon = {nearest:.3g}, say, which is what the nearest of the easier half of its "
                "neighbours loses"
            )
        asked = f" and asked for a plan within {self.epsilon:g} of the best" if self.epsilon else ""
        least = (
            f"every method that is wrong with probability at most {self.delta:g}{asked} needs at least "
            f"{self.lower_bound:.4g} measurements on average"
        )
        if not self.epsilon:
            return least
        return f"{least}, and the best possible one at most {self.upper_bound:.4g} as delta falls"


@dataclass(frozen=True, eq=False)
class Bracket:
    """A characteristic time or cost, its ends, and the shares of measurements that attain it."""

    value: float
    lower: float
    upper: float
    shares: FloatArray

    @classmethod
    def around(cls, lower: float, upper: float, shares: FloatArray, factor: float = 2.0) -> Bracket:
        """With these ends times a factor; its value is the middle, which is as good as exact."""
        return cls(factor * (lower + upper) / 2, factor * lower, factor * upper, shares)

    @classmethod
    def from_below(cls, lower: float, upper: float, shares: FloatArray, factor: float = 2.0) -> Bracket:
        """The same; its value is the lower end, since the ends may be far apart."""
        return cls(factor * lower, factor * lower, factor * upper, shares)

    @classmethod
    def infinite(cls, n_arms: int) -> Bracket:
        """Where plans tie."""
        return cls(math.inf, math.inf, math.inf, np.zeros(n_arms))


@dataclass(frozen=True)
class Once:
    """What seeing every arm that matters takes at least: in uses or measurements, and in cost."""

    n: int
    cost: float

    @classmethod
    def of(cls, costs: FloatArray, relevant: IntArray) -> Once:
        """One measurement of each of these arms."""
        return cls(len(relevant), float(costs[relevant].sum()))


def limit_of(best: Answer, delta: float, time: Bracket, cost: Bracket, once: Once) -> Limit:
    """The limit between these ends, in measurements and in cost."""
    return Limit(
        best,
        delta,
        *(time.value, time.lower, time.upper, time.shares),
        *(cost.value, cost.lower, cost.upper, cost.shares),
        n_relevant=once.n,
        tied=(),
        relevant_cost=once.cost,
    )


def no_limit(best: Answer, delta: float, n_arms: int, once: Once, tied: tuple[Answer, ...]) -> Limit:
    """Infinite: these plans tie with the best one."""
    nothing = Bracket.infinite(n_arms)
    return replace(limit_of(best, delta, nothing, nothing, once), tied=tied)


def fewest(characteristic_time: float, once: float, delta: float) -> float:
    """The limit: what every method needs at this delta, if seeing each arm that matters once takes `once`."""
    check_delta(delta)
    return max(characteristic_time * binary_kl(delta), (1 - 2 * delta) * once)


def binary_kl(delta: float) -> float:
    """kl(delta, 1 - delta): the information that an answer wrong with probability delta needs, in nats.

    From delta = 1/2 on no information is needed.

    >>> round(binary_kl(0.05), 4), binary_kl(0.7)
    (2.65, 0.0)
    """
    return (1 - 2 * delta) * math.log((1 - delta) / delta) if delta < 0.5 else 0.0


def half_kl(delta: float) -> float:
    """kl(1/2, delta): what an answer needs that is as good as one of two worlds allows, in nats.

    >>> round(half_kl(0.05), 4), half_kl(0.5)
    (0.8304, 0.0)
    """
    return -0.5 * math.log(4 * delta * (1 - delta)) if delta < 0.5 else 0.0
