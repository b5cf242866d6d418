"""Betting factors: e-values for "this gap is at most 0", from one batch's estimate of the gap.

A bet of size g >= 0 is fixed before the batch. The batch estimates the gap by D, with variance (or variance
proxy) v. The factor F_g(D) >= 0 multiplies the wealth; it does not fall in D, and E F_g <= 1 whenever the gap
is at most 0. A mean of factors over g, with weights fixed before the batch, is a factor again. Each class has

    log_factors   log F_g for a grid of sizes
    log_mixture   log of the mean of F_g over g ~ N(centre, prior_variance) restricted to g > 0
    log_p         log of a p-value for "gap <= 0": what a final batch uses in place of a bet
"""

from __future__ import annotations

import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from statistics import NormalDist
from typing import Any, ClassVar

import numpy as np

from surepick.core.arrays import FloatArray, divided

# medians of twelve equally likely parts of N(0, 1): a mixture over them stands for one over N(0, 1)
QUANTILES = np.array([NormalDist().inv_cdf((k + 0.5) / 12) for k in range(12)])


def log_sum_exp(logs: FloatArray) -> FloatArray:
    """Return the log of the sum of exponentials along the last axis.

    >>> log_sum_exp(np.log([[1.0, 2.0, 3.0]])).round(4).tolist()
    [1.7918]
    """
    top = logs.max(axis=-1)
    return np.asarray(top + np.log(np.exp(logs - top[..., None]).sum(axis=-1)))


class Factor(ABC):
    """What a batch's estimate of a gap is worth under the null hypothesis."""

    replicates: ClassVar[tuple[int, int]] = (1, 1)  # fewest and most equal parts in which a batch is measured

    @abstractmethod
    def log_factors(self, gap: Any, variance: FloatArray, sizes: FloatArray) -> FloatArray:
        """Return log F, (n, k), for n gaps and k bet sizes each."""

    def log_mixture(
        self, gap: Any, variance: FloatArray, centre: FloatArray, prior_variance: FloatArray
    ) -> FloatArray:
        """Return the log of the mean factor over g ~ N(centre, prior_variance) given g > 0.

        Without a closed form it is the mean over twelve sizes, those of them above 0.
        """
        sizes = centre[:, None] + np.sqrt(prior_variance)[:, None] * QUANTILES
        logs = self.log_mixed(gap, variance, np.maximum(sizes, 0.0))
        return np.asarray(log_sum_exp(np.where(sizes > 0, logs, -np.inf)) - np.log((sizes > 0).sum(axis=1)))

    def log_mixed(self, gap: Any, variance: FloatArray, sizes: FloatArray) -> FloatArray:
        """Return log F for sizes that are mixed; a factor may cap these lower than a single bet."""
        return self.log_factors(gap, variance, sizes)

    @abstractmethod
    def log_p(self, gap: Any, variance: FloatArray, *, gaussian: bool) -> FloatArray:
        """Return log p; 0 where the estimated gap is not above 0. `gaussian` says that the noise is."""


class SubGaussian(Factor):
    """E exp(t (D - E D)) <= exp(t^2 v / 2) for all t: F_g = exp((g D - g^2/2) / v)."""

    def log_factors(self, gap: FloatArray, variance: FloatArray, sizes: FloatArray) -> FloatArray:
        """Return log F_g = (g D - g^2/2) / v, (n, k), for n gaps D and k bet sizes g each.

        >>> SubGaussian().log_factors(np.array([0.4]), np.array([0.25]), np.array([[0.5, 1.0]])).tolist()
        [[0.30000000000000004, -0.3999999999999999]]
        """
        return np.asarray((sizes * gap[:, None] - 0.5 * sizes * sizes) / variance[:, None])

    def log_mixture(
        self, gap: FloatArray, variance: FloatArray, centre: FloatArray, prior_variance: FloatArray
    ) -> FloatArray:
        """Return the log of the mean factor, in closed form.

        Prior density times F_g is Gaussian in g, in proportion to exp(-(g - mode)^2 / (2 posterior)), with

            1 / posterior = 1 / prior_variance + 1 / v,  mode / posterior = centre / prior_variance + D / v.

        Its integral over g > 0 is divided by that of the prior.
        """
        from scipy.special import log_ndtr

        posterior = 1.0 / (1.0 / prior_variance + 1.0 / variance)
        mode = posterior * (centre / prior_variance + gap / variance)
        exponent = mode * mode / (2 * posterior) - centre * centre / (2 * prior_variance)
        above_zero = log_ndtr(mode / np.sqrt(posterior)) - log_ndtr(centre / np.sqrt(prior_variance))
        return np.asarray(0.5 * np.log(posterior / prior_variance) + exponent + above_zero)

    @staticmethod
    def errors_for(nats: float, *, gaussian: bool) -> float:
        """Return how many standard errors an estimated gap must be above 0 for p = exp(-nats).

        >>> round(SubGaussian.errors_for(3.0, gaussian=False), 3)
        2.449
        >>> round(SubGaussian.errors_for(3.0, gaussian=True), 3)
        1.647
        """
        from scipy.special import ndtri_exp

        return max(float(-ndtri_exp(-nats)), 1e-9) if gaussian else math.sqrt(2.0 * nats)

    def log_p(self, gap: FloatArray, variance: FloatArray, *, gaussian: bool) -> FloatArray:
        """Return the log of the normal tail of z = D / sqrt(v), or of Chernoff's bound exp(-z^2/2).

        p is 1 where D <= 0, for Gaussian noise too. The stated scale is an upper bound on the noise; with
        less noise P(D > d) is below the normal tail for d > 0, but above it for d < 0.
        """
        from scipy.special import log_ndtr

        z = gap / np.sqrt(variance)
        return np.where(z > 0, log_ndtr(-z) if gaussian else -0.5 * z * z, 0.0)


class BoundedVariance(Factor):
    """Noise of which only a bound on the variance is known: Var D <= v, with any distribution."""

    def log_factors(self, gap: FloatArray, variance: FloatArray, sizes: FloatArray) -> FloatArray:
        """Return log F_g, (n, k), where F_g = [1 + ((1 + x)_+)^2] / 2 / (1 + g^2 / (2 v)) and x = g D / v.

        It is an e-value for "the gap is at most 0" under Var D <= v alone. F_g does not fall in D, so the
        worst case is a gap of 0. Then E ((1 + x)_+)^2 <= E (1 + x)^2 = 1 + Var x <= 1 + g^2 / v, and the
        mean of the numerator is at most the denominator.

        >>> gap, variance, sizes = np.array([0.4]), np.array([0.25]), np.array([[0.5]])
        >>> BoundedVariance().log_factors(gap, variance, sizes).round(4).tolist()
        [[0.346]]
        """
        positive_part = np.maximum(1.0 + sizes * (gap / variance)[:, None], 0.0)
        numerator = 0.5 + 0.5 * positive_part * positive_part
        denominator = 1.0 + 0.5 * sizes * sizes / variance[:, None]
        return np.asarray(np.log(numerator / denominator))

    def log_p(self, gap: FloatArray, variance: FloatArray, *, gaussian: bool) -> FloatArray:
        """Return the log of Cantelli's bound v / (v + D^2)."""
        del gaussian  # a problem that knows the variance alone cannot say so
        return np.where(gap > 0, -np.log1p(np.maximum(gap, 0.0) ** 2 / variance), 0.0)


class Student(Factor):
    """Gaussian noise of unknown variance: a gap is estimated by G equal replicates x_1, ..., x_G.

    The replicates are independent with one mean and one unknown variance, so that r = sum x / |x| is
    independent of |x| where the mean is 0. With d = g / (one replicate's standard deviation, as guessed
    before the batch), F = E[exp(d sum(x)/sigma - G d^2/2) given r] = exp(-G d^2/2) E exp(d r chi_G), whatever
    sigma is.

    `gap` has shape (n, G) here, and `variance` is the guess of one replicate's variance. A bad guess costs
    measurements, never correctness.
    """

    replicates: ClassVar[tuple[int, int]] = (4, 12)
    largest_bet: ClassVar[float] = 10.0  # standard deviations; more wins no more and loses digits

    def log_factors(self, gap: FloatArray, variance: FloatArray, sizes: FloatArray) -> FloatArray:
        """Return log F.

        >>> opposed = np.array([[1.0, -1.0, 1.0, -1.0]])
        >>> Student().log_factors(opposed, np.ones(1), np.ones((1, 1))).round(4).tolist()
        [[-2.0]]
        """
        n_replicates = gap.shape[1]
        scaled = (
            gap / np.maximum(np.abs(gap).max(axis=1), 1e-300)[:, None]
        )  # squares neither over- nor underflow
        length = np.sqrt((scaled * scaled).sum(axis=1))
        direction = divided(scaled.sum(axis=1), length)
        d = np.minimum(sizes / np.sqrt(variance)[:, None], self.largest_bet)
        table = _log_mean_exp(n_replicates)
        # the table's error is below 1e-9, and is taken off so that the factor is never too large
        return np.asarray(table(d * direction[:, None]) - 1e-9 - 0.5 * n_replicates * d * d)

    def log_p(self, gap: FloatArray, variance: FloatArray, *, gaussian: bool) -> FloatArray:
        """Return the log of the upper tail of Student's t."""
        from scipy.special import stdtr

        del variance, gaussian  # the noise is Gaussian by assumption, and the replicates show its variance
        n_replicates = gap.shape[1]
        spread = gap.std(axis=1, ddof=1)
        mean = gap.mean(axis=1)
        t = divided(mean * math.sqrt(n_replicates), spread)
        t = np.where((spread == 0) & (mean > 0), 1e9, np.minimum(t, 1e9))
        tail = np.log(np.maximum(stdtr(n_replicates - 1, -t), 1e-300))
        return np.where(t > 0, tail, 0.0)


@functools.cache
def _log_mean_exp(n: int) -> Callable[[FloatArray], FloatArray]:
    """Return a -> log E exp(a chi_n) for |a| <= 36 as a table with cubic steps, with an error below 1e-9.

    chi_n is the length of a standard normal vector of n numbers, with the density
    w^(n-1) exp(-w^2/2) / (2^(n/2-1) Gamma(n/2)). With s = log w the expectation is, up to that constant, the
    integral of exp(n s - w^2/2 + a w) ds. The integrand falls off doubly exponentially, so that an
    equidistant sum around its mode has all digits: steps of .4 widths, a width being 1 / sqrt of minus the
    second derivative of the exponent there. The slope is E[w exp(a w)] / E exp(a w).
    (A spline of scipy.interpolate would do, but its import takes longer than a hundred decisions.)
    """
    a = np.linspace(-36.0, 36.0, 7201)
    mode = 0.5 * (a + np.sqrt(a * a + 4.0 * n))  # the w at which n - w^2 + a w = 0
    width = 1.0 / np.sqrt(mode * mode + n)
    s = np.log(mode)[:, None] + width[:, None] * np.arange(-40, 26) * 0.4  # (n_a, n_nodes)
    w = np.exp(s)
    terms = n * s + w * (a[:, None] - 0.5 * w)
    logs = log_sum_exp(terms)
    step = a[1] - a[0]
    slopes = step * np.exp(log_sum_exp(terms + s) - logs)  # for a step of the table
    logs += np.log(0.4 * width) - (0.5 * n - 1.0) * math.log(2.0) - math.lgamma(0.5 * n)
    # the cubic with these values and slopes at both ends of a step (Hermite)
    rise = np.diff(logs)
    second = 3.0 * rise - 2.0 * slopes[:-1] - slopes[1:]
    third = slopes[:-1] + slopes[1:] - 2.0 * rise

    def table(x: FloatArray) -> FloatArray:
        k = np.clip(((x - a[0]) / step).astype(int), 0, len(rise) - 1)
        t = (x - a[k]) / step
        return np.asarray(logs[k] + t * (slopes[k] + t * (second[k] + t * third[k])))

    return table
