"""Gaussian readings of unknown scale: a factor that learns the variance, under a rough bound on the scale.

Assumed: a reading is N(mu, sigma^2) given all before it, with an unknown sigma that is the same in every use.

*Lemma 3.* Let a weight w, a centre c and a bound U >= sigma be fixed before a reading x ~ N(mu, sigma^2).
With kappa(V) = (e^V - 1) / V and any k of at least kappa(w^2 U^2),

    F = exp(w (x - c) - k w^2 (x - c)^2 / 2)   has   E F <= exp(w (mu - c)).

Proof: write v = w^2 sigma^2 and m = w (mu - c). The Gaussian integral is

    log E F = -log(1 + k v) / 2 + (m + v / 2 - k m^2 / 2) / (1 + k v).

Less m it is largest at m = -v, where it is (v - log(1 + k v)) / 2. That is at most 0 for 0 <= v <= w^2 U^2:
log(1 + k v) is concave in v, is v at 0, and is at least v at w^2 U^2.

Let weights w_u, centres and bounds be fixed before a batch of readings x_u, with sum_u w_u mu_u = lam gap.
The product of these factors, and of the constants exp(w_u c_u), is

    exp(lam D - k lam^2 q / 2),   lam D = sum_u w_u x_u,   lam^2 q = sum_u (w_u (x_u - c_u))^2,

with a mean of at most exp(lam gap) <= 1 if the gap is at most 0. It is the factor of known noise with k q,
which the batch itself shows, in place of the variance of D. Once the centres, past means, are near the means
and the bets on single readings are small, k q is near that variance: a bound that is several times too large
costs little.

*The bound.* r_n = (x_n - mean of x_1, ..., x_{n-1}) sqrt((n - 1) / n), n >= 2, are independent N(0, sigma^2),
whatever was measured in between. For every g > 1 the product of sqrt(g) exp(-(g - 1) r_n^2 / (2 sigma^2)) is
a martingale from 1, and so is its mean over g ~ Gamma(1, RATE) given g > 1. That mean is a function of n and
of u = S / (2 sigma^2), S = sum r_n^2 = sum (x_n - mean)^2, and falls in u. By Ville's inequality it ever
reaches 1/level with probability at most `level`; until then sigma^2 <= S / (2 u*), at all times at once,
where u* is the u at which the mean is 1/level. At the end of the first batch alone S / sigma^2 is chi-square,
which gives a tighter bound; each of the two has half the level.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from surepick.core.arrays import BoolArray, FloatArray, IntArray
from surepick.core.given.numbers import MOST_SCALES
from surepick.core.probes import Probes
from surepick.errors import ProblemError
from surepick.inference.factors import Factor, SubGaussian
from surepick.inference.noise import Noise, recordable
from surepick.inference.steps import CENTRE_STEPS, are_steps, from_steps, to_steps

RATE = 0.05  # of the exponential mixture over g
MOST_BET = 1.0  # w U of a bet: a larger one loses more by its own kappa than it wins
_BISECTIONS = 60
_PRIOR_FREEDOM = 10.0  # degrees of freedom with which the common variance enters that of one reading
_NO_BOUND = 2.0**900  # a scale that no bet is made with
_ROUNDING = 1e-24  # of the square of a mean: a variance below it is rounding


def kappa(v: FloatArray) -> FloatArray:
    """Return (e^v - 1) / v, which is 1 at 0, and infinite where it overflows.

    >>> kappa(np.array([0.0, 1e-9, 1.0, 1e9])).round(4).tolist()
    [1.0, 1.0, 1.7183, inf]
    """
    with np.errstate(over="ignore"):
        return np.where(v > 0, np.expm1(v) / np.where(v > 0, v, 1.0), 1.0)


def scale_bounds(squares: FloatArray, freedom: FloatArray, level: float) -> FloatArray:
    """Return bounds on scales that hold at all times at once; infinite after too few readings.

    A bound is ever below its scale with probability at most `level`.

    - squares: sums of squared deviations of the readings from their mean
    - freedom: the number of readings less 1

    >>> scale_bounds(np.array([9.0, 99.0, 9999.0]), np.array([9, 99, 9999]), 0.01).round(2).tolist()
    [2.94, 1.37, 1.03]
    """
    from scipy.special import gammaincc, gammaln

    shape = 1.0 + np.asarray(freedom, dtype=float) / 2
    log_gamma = gammaln(shape)

    def log_mean(u: FloatArray) -> FloatArray:
        """Return the log of the mean martingale: a ratio of incomplete gamma functions."""
        with np.errstate(divide="ignore"):
            tail = np.log(gammaincc(shape, RATE + u)) + log_gamma - shape * np.log(RATE + u)
        return np.asarray(u + math.log(RATE) + RATE + tail)

    # bisection for log u, in which log_mean falls
    low, high = np.full_like(shape, -700.0), np.log(shape)
    is_enough = log_mean(np.exp(low)) >= -math.log(level)
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        is_left = log_mean(np.exp(middle)) >= -math.log(level)
        low, high = np.where(is_left, middle, low), np.where(is_left, high, middle)
    return np.where(is_enough, np.sqrt(squares / 2 * np.exp(-low)), np.inf)


@dataclass(frozen=True, eq=False)
class ScatterSums:
    """What a batch shows of gaps: all that Lemma 3 needs, for every bet size. One entry per gap."""

    gap: FloatArray  # (n,) D
    scatter: FloatArray  # (n,) q of lam = 1
    reach: FloatArray  # (n,) the largest w U of any reading at lam = 1

    def __getitem__(self, which: Any) -> ScatterSums:
        """Return what is shown of some gaps."""
        return ScatterSums(self.gap[which], self.scatter[which], self.reach[which])


class LearnedVariance(Factor):
    """Gaussian readings of unknown scale: the factor of Lemma 3.

    `gap` holds scatter sums here, and `variance` is the one expected of the batch: a bet on a gap of size g
    has lam = g / variance, cut at w U = `MOST_BET`. A wrong variance costs measurements, never correctness.
    """

    def log_factors(self, gap: Any, variance: FloatArray, sizes: FloatArray) -> FloatArray:
        """Return log F_g, (n, k), for n gaps and k bet sizes each."""
        reach = gap.reach[:, None]
        lam = np.minimum(sizes / variance[:, None], MOST_BET / reach)
        return np.asarray(
            lam * gap.gap[:, None] - kappa((lam * reach) ** 2) * lam**2 * gap.scatter[:, None] / 2
        )

    def log_p(self, gap: FloatArray, variance: FloatArray, *, gaussian: bool) -> FloatArray:
        """Return the log of the normal tail; gaps are plain here, and variances those of the bounds."""
        return SubGaussian().log_p(gap, variance, gaussian=gaussian)


@dataclass(frozen=True, eq=False)
class Scatter:
    """What the values of a batch show of the scatter of each arm, and what was known of it before."""

    about_centre: FloatArray  # (n_arms,) sums of (x - c)^2
    bound: FloatArray  # (n_arms,) on the standard deviation of one measurement
    scale: FloatArray  # (n_arms,) the same, estimated

    def bound_variance(self, uses: IntArray) -> FloatArray:
        """Return the variance of each arm's average if its noise is as large as the bound."""
        return np.asarray(self.bound**2 / np.maximum(uses, 1))

    def variance(self, uses: IntArray, largest_bet: FloatArray) -> FloatArray:
        """Return what takes the place of the variance of each arm's average in bets up to the largest.

        That is k q of Lemma 3, or the bound's variance where k q is expected to be more. `largest_bet`,
        (n_arms,), is the largest weight of an average in any bet. All but the scatter is fixed before.
        """
        n = np.maximum(uses, 1)
        k = kappa((largest_bet / n * self.bound) ** 2)
        is_learned = k * self.scale**2 < self.bound**2
        learned = np.where(is_learned, k, 1.0) * self.about_centre / n**2
        return np.where(is_learned, learned, self.bound_variance(uses))


class LearnedScale(Noise):
    """Means and scatter of the readings of single arms, by all complete batches. Changed by `add`.

    The means are the centres of the next bets; the scatter bounds the scales, and estimates them for
    planning.
    """

    STATE: ClassVar[tuple[str, ...]] = ("level", "uses", "means", "squares", "first_squares", "first_freedom")
    is_learned = needs_values = True

    def __init__(self, probes: Probes, level: float, first_uses: int) -> None:
        """`level` is the probability that the bound of any arm is ever too small."""
        super().__init__(probes, LearnedVariance())
        self.level, self.first_uses = level, first_uses
        self.uses, self.means, self.squares = np.zeros((3, len(probes)))
        self.first_squares, self.first_freedom = np.zeros((2, len(probes)))  # of the first batch of each arm

    def is_known(self, uses: FloatArray) -> BoolArray:
        """Return which arms were measured: prior data do not bound their scales."""
        del uses
        return self.uses > 0

    def bounds(self) -> FloatArray:
        """Return a bound on the scale of each arm."""
        from scipy.special import gammaincinv

        level = self.level / (2 * len(self.uses))
        always = scale_bounds(self.squares, np.maximum(self.uses - 1, 0), level)
        quantile = 2 * gammaincinv(np.maximum(self.first_freedom, 1) / 2, level)
        first = np.where(self.first_freedom > 0, np.sqrt(self.first_squares / quantile), np.inf)
        return np.minimum(np.minimum(always, first), _NO_BOUND)

    def terms(self, probes: Probes) -> dict[str, Any]:
        """Return the estimated noise, the bounds on it, rounded up, and centres in parts of the bounds."""
        bounds = to_steps(self.bounds()) + 1
        centres = np.rint(CENTRE_STEPS * self.means / from_steps(bounds)).astype(np.int64)
        return super().terms(probes) | {"bounds": bounds, "centres": centres}

    def checks(self, probes: Probes) -> dict[str, Callable[[Any], bool]]:
        """Return that the bounds are at least those of this noise, and centres are whole numbers."""
        least = to_steps(self.bounds())

        def are_bounds(steps: Any) -> bool:
            return are_steps(steps, len(least)) and bool((np.asarray(steps) >= least).all())

        def are_centres(parts: Any) -> bool:
            parts = parts.tolist() if isinstance(parts, np.ndarray) else parts
            is_list = isinstance(parts, list) and len(parts) == len(least)
            return is_list and all(type(k) is int and abs(k) < 2**53 for k in parts)

        return super().checks(probes) | {"bounds": are_bounds, "centres": are_centres}

    def shown(self, values: Mapping[int, FloatArray], terms: Mapping[str, Any]) -> Scatter | None:
        """Return what the values of a batch, (n_uses, 1) by arm, show about the centres of its decision."""
        if "centres" not in terms:
            return None
        bounds = from_steps(terms["bounds"])
        centres = np.asarray(terms["centres"], dtype=float) / CENTRE_STEPS * bounds
        squares = np.zeros(len(bounds))
        for arm, own in values.items():
            squares[arm] = ((own - centres[arm]) ** 2).sum()
        return Scatter(squares, bounds, from_steps(terms["noise"]))

    def add(self, uses: IntArray, averages: FloatArray, values: Mapping[int, FloatArray]) -> None:
        """Add the values of a batch, (n_uses, 1) by arm.

        Values that never differ, or lie too far from 0 for their scatter to be more than rounding, are
        refused.
        """
        del uses, averages
        for arm, own in values.items():
            n, mean = len(own), float(own.mean())
            total = self.uses[arm] + n
            step = mean - self.means[arm]
            self.squares[arm] += ((own - mean) ** 2).sum() + step**2 * self.uses[arm] * n / total
            self.means[arm] += step * n / total
            if not self.uses[arm]:
                self.first_squares[arm], self.first_freedom[arm] = self.squares[arm], n - 1
            self.uses[arm] = total
        variances = self.squares / np.maximum(self.uses - 1, 1)
        enough = self.uses >= self.first_uses
        constant = np.flatnonzero(enough & (variances <= _ROUNDING * self.means**2))
        if len(constant):
            raise ProblemError(
                f"all measurements of {self._given.names[constant[0]]!r} are equal, so its noise cannot be "
                "learned; begin again with a stated noise, or with low and high (0 and 1 for success)",
                field="noise",
            )
        far = np.flatnonzero(enough & (np.abs(self.means) > MOST_SCALES * np.sqrt(variances)))
        if len(far):
            raise ProblemError(
                f"measurements of {self._given.names[far[0]]!r} are about {self.means[far[0]]:g}, over "
                f"{MOST_SCALES:g} times their noise, so that rounding outweighs it; subtract a constant",
                field="noise",
            )

    def probes(self) -> Probes:
        """Return the probes with estimated noise: the variance of each, shrunk to the common one."""
        freedom = np.maximum(self.uses - 1, 0)
        if not freedom.any():
            return recordable(self._given)
        common = self.squares.sum() / freedom.sum()
        variance = (self.squares + _PRIOR_FREEDOM * common) / (freedom + _PRIOR_FREEDOM)
        return recordable(replace(self._given, noise_scale=np.sqrt(variance)))
