"""Whether values have the shape of Gaussian noise: no heavy tails, no skew, no coarse rounding.

Where the scale is known, one value is compared with it: noise that is sub-Gaussian with scale s is further
than t s from its mean with probability at most 2 exp(-t^2/2), shared by all values.

Where it is unknown, each arm's skewness and kurtosis are turned into standard normal numbers by the
transformations of D'Agostino (1970) and of Anscombe and Glynn (1983), close from 8 and 20 values on, and the
arms' numbers are added with the roots of their counts as weights (Stouffer).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from surepick.core.tails import normal_above
from surepick.noise.record import Shape

FEWEST_FOR_SKEWNESS, FEWEST_FOR_KURTOSIS = 8, 20  # values of an arm
FINE = 0.1  # of successive values are equal where the step of rounding is .35 standard deviations


def too_far(shape: Shape, scale: float, n_values: int, level: float) -> float:
    """Return how far the furthest value is from the mean, if that is too far for the scale; else 0.

    `n_values` are those of all arms, which share the level.
    """
    if shape.n < 2:
        return 0.0
    far = max(shape.high - shape.mean, shape.mean - shape.low)
    reach = scale * math.sqrt((1.0 - 1.0 / shape.n) * 2.0 * math.log(2.0 * n_values / level))
    return far if far > reach else 0.0


def coarse(shapes: Sequence[Shape], level: float) -> float | None:
    """Return the share of successive values that are equal, if it is surely above `FINE`; else None.

    Arms whose values are all equal do not count: they may have no noise at all.
    """
    vary = [shape for shape in shapes if shape.squares > 0]
    ties, pairs = sum(shape.n_ties for shape in vary), sum(shape.n - 1 for shape in vary)
    if ties <= FINE * pairs:
        return None
    from scipy.special import bdtrc

    return ties / pairs if float(bdtrc(ties - 1, pairs, FINE)) < level else None


def heavy_tails(shapes: Sequence[Shape], level: float) -> str | None:
    """Return in which way the values are not Gaussian, if they are not; both ways share the level."""
    skew = _combined(shapes, FEWEST_FOR_SKEWNESS, _skewness)
    tails = _combined(shapes, FEWEST_FOR_KURTOSIS, _kurtosis)
    if tails > normal_above(level / 2):
        kurtosis = max(shape.n * shape.fourths / shape.squares**2 for shape in shapes if shape.squares > 0)
        return f"values have heavy tails (kurtosis up to {kurtosis:.3g}, Gaussian 3)"
    if abs(skew) > normal_above(level / 4):
        return f"values are skewed towards {'large' if skew > 0 else 'small'} ones"
    return None


def _combined(shapes: Sequence[Shape], fewest: int, normal: Callable[[Shape], float]) -> float:
    """Return the arms' standard normal numbers as one; 0 where no arm has enough values."""
    enough = [shape for shape in shapes if shape.n >= fewest and shape.squares > 0]
    if not enough:
        return 0.0
    total = math.fsum(math.sqrt(shape.n) * normal(shape) for shape in enough)
    return total / math.sqrt(sum(shape.n for shape in enough))


def _skewness(shape: Shape) -> float:
    """Return D'Agostino's transformation of the sample skewness."""
    n = shape.n
    y = math.sqrt(n) * shape.cubes / shape.squares**1.5 * math.sqrt((n + 1) * (n + 3) / (6 * (n - 2)))
    beta = 3 * (n * n + 27 * n - 70) * (n + 1) * (n + 3) / ((n - 2) * (n + 5) * (n + 7) * (n + 9))
    w = math.sqrt(2 * (beta - 1)) - 1
    return math.asinh(y / math.sqrt(2 / (w - 1))) / math.sqrt(0.5 * math.log(w))


def _kurtosis(shape: Shape) -> float:
    """Return Anscombe and Glynn's transformation of the sample kurtosis."""
    n = shape.n
    variance = 24 * n * (n - 2) * (n - 3) / ((n + 1) ** 2 * (n + 3) * (n + 5))
    x = (n * shape.fourths / shape.squares**2 - 3 * (n - 1) / (n + 1)) / math.sqrt(variance)
    skew = (
        6
        * (n * n - 5 * n + 2)
        / ((n + 7) * (n + 9))
        * math.sqrt(6 * (n + 3) * (n + 5) / (n * (n - 2) * (n - 3)))
    )
    a = 6 + 8 / skew * (2 / skew + math.sqrt(1 + 4 / skew**2))
    below = 1 + x * math.sqrt(2 / (a - 4))
    root = math.copysign((abs((1 - 2 / a) / below)) ** (1 / 3), below)
    return (1 - 2 / (9 * a) - root) / math.sqrt(2 / (9 * a))
