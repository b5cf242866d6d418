"""Stated limits of means: which they are for each reading, and the evidence of its values against them."""

from __future__ import annotations

import math

import numpy as np

from surepick.core.given.numbers import ROUNDING
from surepick.core.oracle_problem import AnyProblem
from surepick.noise.record import ArmRecord

ANY_MEAN = (-math.inf, math.inf)
BETS = [0.75 * 0.5**k for k in range(8)]  # shares of the wealth: up to where log(1 - c) costs too much


def mean_limits(problem: AnyProblem) -> list[tuple[float, float]]:
    """Return the lowest and highest mean of each reading, by the stated limits of the arms' means.

    An arm of which nothing is stated has `ANY_MEAN`, and so has a known one that is measured by no probe.
    """
    bounds, probes = problem.mean_bounds, problem.probes
    if bounds is None:
        return [ANY_MEAN] * problem.n_readings
    if probes is None:
        never_measured = problem.is_known if problem.arms_alone else np.zeros(problem.n_arms, dtype=bool)
        return [
            ANY_MEAN if never else (low, high)
            for never, (low, high) in zip(never_measured.tolist(), bounds.tolist(), strict=True)
        ]
    found = list[tuple[float, float]]()
    for probe in range(len(probes)):
        here = probes.readings_of(probe)
        mix = probes.entries.dense(here.start, here.stop)  # (n_readings, n_arms)
        if probe in probes.covariances and not probes.unknown:
            mix = probes.whiten_use(probe, mix)  # as its values are
        ends = np.zeros((*mix.shape, 2))
        np.multiply(mix[:, :, None], bounds, out=ends, where=mix[:, :, None] != 0)  # 0 times infinity is 0
        found += [(low, high) for low, high in np.sort(ends).sum(axis=1).tolist()]
    return found


def log_evidence_outside(
    record: ArmRecord,
    limits: tuple[float, float],
    scale: float | None,
    between: tuple[float, float] | None = None,
    *,
    is_any_shape: bool = False,
) -> float:
    """Return the log evidence against the stated limits of a mean, 0 if the sample mean is within them.

    If the limits are true, it ever exceeds log(1/p) with probability at most p, however often one looks.

    - record: two values or more
    - scale: the stated standard deviation, None if it is unknown and the noise Gaussian
    - between: the limits of each value, if they were stated
    - is_any_shape: whether the scale bounds the variance alone

    Let S be the sum of the deviations from the true mean, and Q that of their squares. These processes start
    at 1 and are not expected to grow; by Ville's inequality they ever exceed 1/p with probability at most p:

    - noise of scale R: the mean of exp(c S/R - c^2 n / 2) over c from N(0, 1). It is
      exp(S^2 / (2 (n + 1) R^2)) / sqrt(n + 1), which rises with |S|: it is smaller at the nearest limit
    - variance at most R^2, any shape: the mean of exp(c S/R - c^2 (Q/R^2 + 2 n) / 6) over c from N(0, 1)
      (Delyon 2009). It is exp(S^2 / (2 V)) / sqrt(V/R^2) with V = (Q + 2 n R^2) / 3 + R^2. It rises and then
      falls with |S|, so at the true mean it is no smaller than at one of the limits
    - Gaussian noise of unknown scale R: the likelihood of a mean of c R over that of 0, both integrated over
      R with the density 1/R and over c from N(0, 1) (Lai 1976). It is (1 - S^2 / ((n + 1) Q))^(-n/2) /
      sqrt(n + 1), which rises with |S|
    - values within limits: see `_log_evidence_between`
    """
    n, mean, squares = record.n, record.mean, record.squares
    low, high = limits
    distance = max(low - mean, mean - high)
    if distance <= ROUNDING * abs(mean):
        return 0.0
    if between is not None:
        room = high - between[0] if mean > high else between[1] - low
        return _log_evidence_between(n * distance, squares + n * distance**2, room)
    if scale is None:
        share = n * n * distance**2 / ((n + 1) * (squares + n * distance**2))
        return -n / 2 * math.log1p(-share) - math.log1p(n) / 2
    # larger noise is for another test to find: here it makes the evidence weaker
    variance = max(scale**2, squares / (n - 1))
    if not is_any_shape:
        return (n * distance) ** 2 / (2 * (n + 1) * variance) - math.log1p(n) / 2
    found = math.inf
    for far in (mean - low, mean - high):
        v = (squares + n * far**2 + 2 * n * variance) / 3 + scale**2
        found = min(found, (n * far) ** 2 / (2 * v) - math.log(v / scale**2) / 2)
    return found


def _log_evidence_between(total: float, squares: float, room: float) -> float:
    """Return the log evidence that values within limits have a mean beyond a limit of it.

    Let y be the distance of a value beyond the limit, which is at least -room. If the limit is true, bets of
    a share c of the wealth on y have a wealth that is not expected to grow: the product of 1 + c y/room. It
    is at least exp(c sum(y)/room + (log(1 - c) + c) sum(y^2)/room^2) (Fan, Grama and Liu 2015). The wealth
    is divided equally between the shares of `BETS`, and between both limits.

    - total, squares: the sums of y and y^2
    """
    if room <= 0:
        return math.inf  # not even the smallest values have such a mean
    logs = [c * total / room + (math.log1p(-c) + c) * squares / room**2 for c in BETS]
    return max(logs) - math.log(2 * len(BETS))
