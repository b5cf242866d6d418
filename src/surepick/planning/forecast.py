"""Forecasts: how many measurements a decision may take, before any is made.

The means are not known, but where they are thought to lie is. For worlds drawn from there, the limit of any
method is computed; its quantiles over the worlds are the forecast.
Within epsilon, of a polytope, the limit is a bracket, and so is the forecast.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from surepick.core.arrays import FloatArray, Numbers, PerArm, aligned, per_arm
from surepick.core.estimates import EIGHT_OF_TEN, quantile
from surepick.core.oracle_problem import AnyProblem
from surepick.core.policy import check_delta
from surepick.core.wording import how_many
from surepick.errors import ParameterError
from surepick.limits.limit import limit
from surepick.problems.candidates import Progress
from surepick.problems.numbers import half_widths

TOLERANCE = 1e-2  # of each limit; the spread between worlds is far larger
UNLISTED_TOLERANCE = 0.5  # where plans are not listed: of the upper end, which no forecast uses


@dataclass(frozen=True, eq=False)
class Forecast:
    """The measurements that any method needs in each of many worlds drawn from the prior guess."""

    delta: float
    measurements: FloatArray  # (n_worlds,) sorted; infinite where plans tie
    arm_shares: FloatArray  # (n_arms,) the mean share of the measurements that an arm gets
    epsilon: float = 0.0  # how much worse than the best the answer may be
    upper: FloatArray | None = None  # (n_worlds,) with epsilon: sorted upper ends; `measurements` are lower

    def __repr__(self) -> str:
        low, middle, high = map(self.quantile, EIGHT_OF_TEN)
        return f"Forecast({low:,.0f} .. {middle:,.0f} .. {high:,.0f} measurements, delta={self.delta:g})"

    def quantile(self, q: float) -> float:
        """The measurements that are enough in a share q of the worlds; infinite when ties are more frequent.

        >>> Forecast(0.05, np.array([10.0, 20.0, np.inf]), np.ones(1)).quantile(0.5)
        20.0
        """
        return quantile(self.measurements, q)

    @property
    def upper_median(self) -> float | None:
        """The median of the upper ends, with epsilon."""
        return None if self.upper is None else quantile(self.upper, 0.5)

    @property
    def explanation(self) -> str:
        """One sentence for people."""
        low, middle, high = map(self.quantile, EIGHT_OF_TEN)
        most = self.upper_median
        if most is not None:
            return (
                f"a plan within {self.epsilon:g} of the best takes at least "
                f"{how_many(middle, 'measurement')} with any method at delta {self.delta:g}, and at "
                f"most {most:,.0f} with the best possible one as delta falls (medians of "
                "worlds like the guess); BetGapE takes some five to ten times the latter"
            )
        return (
            f"the best possible method needs about {how_many(middle, 'measurement')} at delta {self.delta:g}"
            f", between {low:,.0f} and {high:,.0f} in eight of ten worlds like the guess; methods "
            "that exist take a few times as many"
        )


def forecast(
    problem: AnyProblem,
    guess: Numbers,
    spread: Numbers = 0.0,
    *,
    delta: float = 0.05,
    n_worlds: int = 20,
    seed: int = 0,
    noise: PerArm | None = None,
    progress: Progress | None = None,
    epsilon: float = 0.0,
) -> Forecast:
    """How many measurements any method needs in `n_worlds` worlds within `spread` of the guess.

    With `epsilon`, which is for a `Polytope`, to find a plan within epsilon of the best.

    A problem with `noise_scale=None` needs `noise`, a rough standard deviation of one measurement.

    >>> from surepick.core.problem import Problem
    >>> problem = Problem([[1, 0], [0, 1]], noise=1, goal="largest")
    >>> found = forecast(problem, [1.0, 0.0], 0.2, n_worlds=10)
    >>> bool(found.quantile(0.1) <= found.quantile(0.9))
    True
    """
    check_delta(delta)
    if n_worlds < 1:
        raise ParameterError(f"n_worlds must be 1 or more, got {n_worlds!r}", field="n_worlds")
    told = _with_noise(problem, noise)
    centre = problem.as_means(guess)
    width = half_widths(aligned("spread", spread, problem.arm_names), centre.shape)
    worlds = 1 if not width.any() else n_worlds
    tolerance = TOLERANCE if problem.is_listed else UNLISTED_TOLERANCE
    rng = np.random.default_rng(seed)
    needed, upper, shares = np.empty(worlds), np.empty(worlds), np.zeros(len(problem.counted_names))
    for w in range(worlds):
        means = centre + width * rng.uniform(-1.0, 1.0, centre.size)
        found = limit(told, means, delta=delta, tolerance=tolerance, epsilon=epsilon)
        needed[w], upper[w] = found.measurements, found.upper_bound
        if found.is_finite:
            shares += found.shares
        if progress is not None:
            progress(w + 1, worlds)
    return Forecast(
        delta,
        np.sort(needed),
        shares / max(shares.sum(), 1e-300),
        epsilon,
        np.sort(upper) if epsilon else None,
    )


def _with_noise(problem: AnyProblem, noise: PerArm | None) -> AnyProblem:
    """Return the problem, with a rough noise where its own is unknown."""
    if problem.noise_scale is not None:
        return problem
    if noise is None:
        raise ParameterError(
            "the noise of the problem is unknown, so a forecast needs a rough one: pass noise=... (on the "
            "command line --noise)",
            field="noise",
        )
    return problem.with_noise(per_arm("noise", noise, problem.arm_names))
