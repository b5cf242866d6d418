"""Whether the levels of arms wander, instead of staying where they are: Nyblom's test on all arms together.

Of an arm's n measurements with sums C_k let S_k = C_k - (k/n) C_n, in noise scales: how far the first k are
from a straight line. Against a level that takes a small random step at every measurement, the same for all
arms, no test is more powerful near the null than one by the sum of all S_k^2.

With independent noise S is a Brownian bridge, and sum S_k^2 / n^2 = sum_j w_j Z_j^2 with independent normal
Z_j and w_j = 1/(2 n sin(j pi/(2n)))^2. The places that `record` marks, a tenth apart, stand for those
between them; told means count as so many measurements, and the w_j are those of the told values.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from surepick.core.arrays import FloatArray
from surepick.core.tails import normal_below
from surepick.noise.record import ArmRecord

_TERMS = 16  # of the w_j that vary; the others, less than a hundredth of the sum, are their mean
_STEPS = 60  # of the bisection for the saddle point
VISIBLE = 28.0  # a step of this / n scales is found nine times in ten at level .008, by simulation


@dataclass(frozen=True)
class Wander:
    """How much the levels seem to wander, and how likely independent noise looks like that."""

    level: float  # the probability of so large a statistic, or larger
    step: float  # standard deviation of a step at each measurement, in noise scales
    n: int  # measurements of the arm that has most


def wander(arms: Sequence[tuple[ArmRecord, float]]) -> Wander:
    """Look at records with their noise scales, each of two values or more."""
    longest = max(record.count for record, _ in arms)
    shares = np.array([(record.count / longest) ** 2 for record, _ in arms])
    statistic = float(shares @ [_bridge(record) / scale**2 for record, scale in arms])
    told = np.array([record.levels[0].n for record, _ in arms])
    weights = shares[:, None] * _weights(told)
    mean = float(shares @ (1.0 - 1.0 / told**2)) / 6.0  # of the statistic
    step = math.sqrt(max(statistic - mean, 0.0) * 90.0 / float(shares @ shares)) / longest
    return Wander(_tail(weights.ravel(), statistic - (mean - float(weights.sum()))), step, longest)


def visible(n: int) -> float:
    """By how many scales (standard deviation) a level must wander over n measurements to be found."""
    return VISIBLE / math.sqrt(n)


def _bridge(record: ArmRecord) -> float:
    """The sum of all S_k^2 / n^2, in the arm's own unit."""
    n, total = record.count, record.total
    marks = [(k, at) for k, at in record.marks if 0 < k < n]
    places = [0, *(k for k, _ in marks), n]
    squares = (
        (after - before) / 2 * (at - k / n * total) ** 2
        for (k, at), before, after in zip(marks, places, places[2:], strict=False)
    )
    return math.fsum(squares) / n**2


def _weights(told: FloatArray) -> FloatArray:
    """The largest w_j for each number of values, (n_arms, _TERMS); 0 where there are no more."""
    j = np.arange(1, _TERMS + 1)
    sines = np.sin(np.minimum(j / told[:, None], 1.0) * math.pi / 2)
    return np.asarray(np.where(j < told[:, None], 1.0 / (2.0 * told[:, None] * sines) ** 2, 0.0))


def _tail(weights: FloatArray, x: float) -> float:
    """P(sum of weights Z^2 > x) by the saddle point, a few hundredths off; 1 below two standard deviations.

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
