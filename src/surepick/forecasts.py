"""Forecasts: how many measurements a decision may take, before any is made.

The means are not known, but where they are thought to lie is. For worlds drawn from there, the limit of any
method is computed; its quantiles over the worlds are the forecast.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from surepick.errors import ParameterError
from surepick.limits import limit
from surepick.oracle import AnyProblem, OracleProblem
from surepick.policy import check_delta
from surepick.problem import FloatArray
from surepick.problems.candidates import Progress

TOLERANCE = 1e-2  # of each limit; the spread between worlds is far larger
UNLISTED_TOLERANCE = 0.5  # where plans are not listed: of the upper end, which no forecast uses


@dataclass(frozen=True, eq=False)
class Forecast:
    """The measurements that any method needs in each of many worlds drawn from the prior guess."""

    delta: float
    measurements: FloatArray  # (n_worlds,) sorted; infinite where plans tie
    arm_shares: FloatArray  # (n_arms,) the mean share of the measurements that an arm gets

    def quantile(self, q: float) -> float:
        """The measurements that are enough in a share q of the worlds; infinite when ties are more frequent.

        >>> Forecast(0.05, np.array([10.0, 20.0, np.inf]), np.ones(1)).quantile(0.5)
        20.0
        """
        return float(self.measurements[int(np.ceil(q * (len(self.measurements) - 1)))])

    @property
    def explanation(self) -> str:
        """One sentence for people."""
        low, middle, high = (self.quantile(q) for q in (0.1, 0.5, 0.9))
        return (
            f"the best possible method needs about {middle:,.0f} measurements at delta {self.delta:g}, "
            "between "
            f"{low:,.0f} and {high:,.0f} in eight of ten worlds like the guess; methods that exist take a "
            "few "
            "times as many"
        )


def forecast(
    problem: AnyProblem,
    guess: npt.ArrayLike,
    spread: npt.ArrayLike = 0.0,
    *,
    delta: float = 0.05,
    n_worlds: int = 20,
    seed: int = 0,
    progress: Progress | None = None,
) -> Forecast:
    """How many measurements any method needs in `n_worlds` worlds within `spread` of the guess.

    >>> from surepick.problem import Problem
    >>> problem = Problem([[1, 0], [0, 1]])
    >>> found = forecast(problem, [1.0, 0.0], 0.2, n_worlds=10)
    >>> bool(found.quantile(0.1) <= found.quantile(0.9))
    True
    """
    check_delta(delta)
    if n_worlds < 1:
        raise ParameterError(f"n_worlds must be 1 or more, got {n_worlds!r}")
    centre = problem.as_means(guess)
    width = np.broadcast_to(np.asarray(spread, dtype=float), centre.shape)
    worlds = 1 if not width.any() else n_worlds
    tolerance = UNLISTED_TOLERANCE if isinstance(problem, OracleProblem) else TOLERANCE
    rng = np.random.default_rng(seed)
    needed, shares = np.empty(worlds), np.zeros(problem.n_arms)
    for w in range(worlds):
        means = centre + width * rng.uniform(-1.0, 1.0, centre.size)
        found = limit(problem, means, delta=delta, tolerance=tolerance)
        needed[w] = found.measurements()
        if found.is_finite:
            shares += found.allocation
        if progress is not None:
            progress(w + 1, worlds)
    return Forecast(delta, np.sort(needed), shares / max(shares.sum(), 1e-300))
