"""What procedures with an indifference zone share: their settings, their promise, variances as they go."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from surepick.core.arrays import BoolArray, FloatArray, IntArray
from surepick.core.policy import check_delta
from surepick.core.problem import Problem
from surepick.errors import ParameterError
from surepick.peers.selection.candidates import CandidatesRun

ASSUMPTION = "independent Gaussian noise"  # of any scales, which are estimated


def zone_promise(delta: float, zone: float) -> str:
    """The best, if it is better than every other by at least the zone.

    >>> zone_promise(0.05, 0.3).partition(", wrong")[0]
    'the best plan, if it is better than every other by at least 0.3'
    """
    return (
        f"the best plan, if it is better than every other by at least {zone:g}, wrong with probability at "
        f"most {delta:g}, given {ASSUMPTION}"
    )


@dataclass(frozen=True)
class ZonePolicy:
    """What procedures with a zone have; `first` is how often every arm is measured to see its noise."""

    delta: float = 0.05
    zone: float = 0.1
    first: int = 20

    version: ClassVar[int] = 1
    randomized: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_delta(self.delta)
        if not (self.zone > 0 and math.isfinite(self.zone)):
            raise ParameterError(
                f"zone is the smallest difference that matters, above 0, got {self.zone!r}", field="zone"
            )
        if not self.first >= 2:
            raise ParameterError(
                f"first is how often every arm is measured to see its noise, 2 or more, got {self.first!r}"
            )

    @property
    def guarantee(self) -> str:
        """The promise and its assumption."""
        return zone_promise(self.delta, self.zone)


class ZoneRun(CandidatesRun):
    """A run whose rounds measure every candidate in contention once, so that single values are seen.

    Sums of products are kept of the values less those of the first round, which does not cancel.
    """

    def __init__(self, problem: Problem, name: str, *, by_probes: bool = False) -> None:
        super().__init__(problem, name, by_probes=by_probes)
        n = self._candidates.n_plans
        self._zero = np.zeros(n)  # the values of the first round
        self._products = np.zeros((n, n))
        self._active: BoolArray = np.ones(n, dtype=bool)

    def next_counts(self, rng: np.random.Generator) -> IntArray:
        """Everything in contention once."""
        del rng  # nothing is drawn
        return self._active.astype(np.int64)

    def see(self, sums: FloatArray) -> None:
        """Take the values of a round into the sums of products."""
        if self._n == 1:
            self._zero = sums
        away = np.where(self._active, sums - self._zero, 0.0)
        self._products += np.outer(away, away)

    def difference_variances(self) -> FloatArray:
        """The sample variance of the difference of each two, over the rounds that both have seen."""
        n = self._n
        away = self._sums - n * self._zero
        covariance = (self._products - np.outer(away, away) / n) / (n - 1)
        own = np.diag(covariance)
        return np.asarray(np.maximum(own[:, None] + own - 2.0 * covariance, 0.0))

    def state(self) -> dict[str, Any]:
        """With the sums of products and who is in contention."""
        mine = {"zero": self._zero, "products": self._products, "active": self._active}
        return {**super().state(), **mine}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on with these."""
        super().restore(state)
        self._zero, self._products = state["zero"], np.array(state["products"])
        self._active = np.asarray(state["active"], dtype=bool)

    @property
    def _n(self) -> int:
        """Rounds seen: what every candidate in contention was measured."""
        return int(self._counts.max())

    def _best_active(self) -> int:
        return int(np.argmax(np.where(self._active, self._means, -np.inf)))
