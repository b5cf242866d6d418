"""Tails of normal and chi-square variables in plain arithmetic, for small commands.

To load scipy.special takes a quarter of a second; where there are many values, it is quicker all the same.
"""

from __future__ import annotations

import functools
import math

MOST_FREEDOM = 200  # of a chi-square variable that is worked out here
_STEPS = 80  # of a bisection


def normal_above(level: float) -> float:
    """Return the value that a standard normal variable exceeds with this probability.

    >>> round(normal_above(0.025), 6)
    1.959964
    """
    from statistics import NormalDist

    return -NormalDist().inv_cdf(level)


def normal_below(x: float) -> float:
    """The probability that a standard normal variable is below x.

    >>> normal_below(0.0)
    0.5
    """
    return 0.5 * math.erfc(-x / math.sqrt(2.0))


@functools.lru_cache(maxsize=256)
def chi_square_above(level: float, freedom: int) -> float:
    """Return the value that a chi-square variable exceeds with this probability.

    >>> round(chi_square_above(0.05, 3), 6)
    7.814728
    """
    if freedom > MOST_FREEDOM:
        from scipy.special import gammainccinv

        return 2.0 * float(gammainccinv(freedom / 2, level))
    low, high = 0.0, float(freedom)
    while _upper_gamma(freedom / 2, high / 2) > level:
        low, high = high, 2.0 * high
    for _ in range(_STEPS):
        middle = 0.5 * (low + high)
        if _upper_gamma(freedom / 2, middle / 2) > level:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)


def _upper_gamma(a: float, x: float) -> float:
    """Q(a, x): one less the power series below the mean, and the continued fraction above."""
    if x <= 0.0:
        return 1.0
    scale = math.exp(a * math.log(x) - x - math.lgamma(a))
    if x < a + 1.0:
        term = total = 1.0 / a
        n = a
        while term > 1e-17 * total:
            n += 1.0
            term *= x / n
            total += term
        return 1.0 - scale * total
    b = x + 1.0 - a
    c, d = math.inf, 1.0 / b
    value = d
    for i in range(1, 1000):  # Lentz's way
        b += 2.0
        numerator = -i * (i - a)
        d = 1.0 / (numerator * d + b)
        c = b + numerator / c
        value *= c * d
        if abs(c * d - 1.0) < 1e-16:
            break
    return scale * value
