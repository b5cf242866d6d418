"""The statistics of the noise check: shape, blocks, a change of the mean, a mean that wanders.

Each function is of the numbers that `record` keeps, and has no words.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from surepick.core.arrays import FloatArray
from surepick.noise.record import ArmRecord, Shape
from surepick.noise.tails import chi_square_above, normal_below

Arms = Sequence[tuple[ArmRecord, float]]  # records with their noise scales, each of two values or more
FEWEST_FOR_SKEWNESS, FEWEST_FOR_KURTOSIS = 8, 20  # values of an arm
FEWEST_BLOCKS = 4  # of an arm, for its blocks of one length to be looked at
TAU = 1.0  # noise scales: the size of change that the e-process is made for
_TERMS = 16  # of the w_j that vary; the others, less than a hundredth of the sum, are their mean
_STEPS = 60  # of the bisection for the saddle point


def furthest(shape: Shape, scale: float) -> float:
    """Return how far the furthest value is from the mean, in standard deviations of that difference."""
    if shape.n < 2:
        return 0.0
    far = max(shape.high - shape.mean, shape.mean - shape.low)
    return far / (scale * math.sqrt(1.0 - 1.0 / shape.n))


def skewness(shapes: Sequence[Shape]) -> float:
    """Return the skewness of all arms as one standard normal number."""
    return _combined(shapes, FEWEST_FOR_SKEWNESS, _skewness)


def kurtosis(shapes: Sequence[Shape]) -> float:
    """Return the kurtosis of all arms as one standard normal number; large: heavy tails."""
    return _combined(shapes, FEWEST_FOR_KURTOSIS, _kurtosis)


def _combined(shapes: Sequence[Shape], fewest: int, normal: Callable[[Shape], float]) -> float:
    """Return the arms' standard normal numbers as one (Stouffer); 0 where no arm has enough values."""
    enough = [shape for shape in shapes if shape.n >= fewest and shape.squares > 0]
    if not enough:
        return 0.0
    total = math.fsum(math.sqrt(shape.n) * normal(shape) for shape in enough)
    return total / math.sqrt(sum(shape.n for shape in enough))


def _skewness(shape: Shape) -> float:
    """Return D'Agostino's (1970) transformation of the sample skewness to a normal number."""
    n = shape.n
    y = math.sqrt(n) * shape.cubes / shape.squares**1.5 * math.sqrt((n + 1) * (n + 3) / (6 * (n - 2)))
    beta = 3 * (n * n + 27 * n - 70) * (n + 1) * (n + 3) / ((n - 2) * (n + 5) * (n + 7) * (n + 9))
    w = math.sqrt(2 * (beta - 1)) - 1
    return math.asinh(y / math.sqrt(2 / (w - 1))) / math.sqrt(0.5 * math.log(w))


def _kurtosis(shape: Shape) -> float:
    """Return Anscombe and Glynn's (1983) transformation of the sample kurtosis to a normal number."""
    n = shape.n
    variance = 24 * n * (n - 2) * (n - 3) / ((n + 1) ** 2 * (n + 3) * (n + 5))
    x = (n * shape.fourths / shape.squares**2 - 3 * (n - 1) / (n + 1)) / math.sqrt(variance)
    root = math.sqrt(6 * (n + 3) * (n + 5) / (n * (n - 2) * (n - 3)))
    skew = 6 * (n * n - 5 * n + 2) / ((n + 7) * (n + 9)) * root
    a = 6 + 8 / skew * (2 / skew + math.sqrt(1 + 4 / skew**2))
    below = 1 + x * math.sqrt(2 / (a - 4))
    root = math.copysign((abs((1 - 2 / a) / below)) ** (1 / 3), below)
    return (1 - 2 / (9 * a) - root) / math.sqrt(2 / (9 * a))


def worst_blocks(arms: Arms, level: float) -> tuple[int, float] | None:
    """Return the length of the blocks whose means scatter too much, and how many times; None if none do.

    All lengths share the level.
    """
    sums: dict[int, tuple[float, int]] = {}
    for record, scale in arms:
        for length, blocks in enumerate(record.levels[1:], 1):
            if blocks.n >= FEWEST_BLOCKS:
                ratio, freedom = sums.get(length, (0.0, 0))
                sums[length] = ratio + 2**length * blocks.squares / scale**2, freedom + blocks.n - 1
    found = [
        (ratio / freedom, length)
        for length, (ratio, freedom) in sums.items()
        if ratio > chi_square_above(level / len(sums), freedom)
    ]
    if not found:
        return None
    times, length = max(found)
    return 2**length, math.sqrt(times)


def change(record: ArmRecord, scale: float) -> tuple[float, int, float]:
    """Return the log e-value against one mean, the likeliest place of a change, and the change there.

    The average, over places k with weights 1/(k(k+1)) (those between two marks go to the later one), of the
    Bayes factors of a change by N(0, tau^2) scales against none: with D the later mean less the earlier one
    and v its variance, sqrt(v/(v + tau^2)) exp(D^2 tau^2 / (2 v (v + tau^2))). Under the flat prior on the
    common mean each is a martingale in the stream, whatever decides how much of it is read.
    """
    prior = (TAU * scale) ** 2
    n, total, before = record.n, record.total, 0
    terms = [(-math.log(n), 0, 0.0)]  # changes that are still to come: evidence of 1
    for k, at_mark in record.marks:
        if not 0 < k < n:
            continue
        weight = 1 / (before + 1) - 1 / (k + 1)
        before = k
        shift = (total - at_mark) / (n - k) - at_mark / k
        variance = scale**2 * (1 / k + 1 / (n - k))
        both = variance + prior
        log = 0.5 * math.log(variance / both) + shift**2 * prior / (2 * variance * both)
        terms.append((math.log(weight) + log, k, shift))
    top, at, shift = max(terms)
    return top + math.log(sum(math.exp(log - top) for log, _, _ in terms)), at, shift


@dataclass(frozen=True)
class Wander:
    """How much the means seem to wander, and how likely independent noise looks like that."""

    level: float  # the probability of so large a statistic, or larger
    step: float  # standard deviation of a step at each measurement, in noise scales
    n: int  # measurements of the arm that has most


def wander(arms: Arms) -> Wander:
    """Apply Nyblom's test to all arms together.

    Of an arm's n measurements with sums C_k let S_k = C_k - (k/n) C_n, in noise scales. Against a mean that
    takes a small random step at every measurement, the same for all arms, no test is more powerful near the
    null than one by the sum of all S_k^2. With independent noise S is a Brownian bridge, and
    sum S_k^2 / n^2 = sum_j w_j Z_j^2 with independent normal Z_j and w_j = 1/(2 n sin(j pi/(2n)))^2. The
    marks of the record, a tenth apart, stand for the places between them.
    """
    longest = max(record.n for record, _ in arms)
    shares = np.array([(record.n / longest) ** 2 for record, _ in arms])
    statistic = float(shares @ [_bridge(record) / scale**2 for record, scale in arms])
    n_values = np.array([record.n for record, _ in arms])
    weights = shares[:, None] * _weights(n_values)  # (n_arms, _TERMS)
    mean = float(shares @ (1.0 - 1.0 / n_values**2)) / 6.0  # of the statistic
    step = math.sqrt(max(statistic - mean, 0.0) * 90.0 / float(shares @ shares)) / longest
    return Wander(_tail(weights.ravel(), statistic - (mean - float(weights.sum()))), step, longest)


def _bridge(record: ArmRecord) -> float:
    """Return the sum of all S_k^2 / n^2, in the arm's own unit."""
    n, total = record.n, record.total
    marks = [(k, at) for k, at in record.marks if 0 < k < n]
    places = [0, *(k for k, _ in marks), n]
    squares = (
        (after - before) / 2 * (at - k / n * total) ** 2
        for (k, at), before, after in zip(marks, places, places[2:], strict=False)
    )
    return math.fsum(squares) / n**2


def _weights(n_values: FloatArray) -> FloatArray:
    """Return the largest w_j for each number of values, (n_arms, _TERMS); 0 where there are no more."""
    j = np.arange(1, _TERMS + 1)
    sines = np.sin(np.minimum(j / n_values[:, None], 1.0) * math.pi / 2)
    return np.asarray(np.where(j < n_values[:, None], 1.0 / (2.0 * n_values[:, None] * sines) ** 2, 0.0))


def _tail(weights: FloatArray, x: float) -> float:
    """Return P(sum of weights Z^2 > x) by the saddle point; 1 below two standard deviations.

    >>> round(_tail(np.array([1.0, 1.0]), 2 * math.log(100)), 4)
    0.0102
    """
    if x <= weights.sum() + 2.0 * math.sqrt(2.0 * float(weights @ weights)):
        return 1.0
    low, high = 0.0, 0.5 / float(weights.max())
    for _ in range(_STEPS):
        t = 0.5 * (low + high)
        if float((weights / (1.0 - 2.0 * t * weights)).sum()) < x:
            low = t
        else:
            high = t
    t, left = low, 1.0 - 2.0 * low * weights
    r = math.sqrt(2.0 * t * x + float(np.log(left).sum()))
    u = t * math.sqrt(2.0 * float(((weights / left) ** 2).sum()))
    return normal_below(-(r + math.log(u / r) / r))
