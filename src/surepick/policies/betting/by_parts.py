"""Bets that are fair for Gaussian noise of any size: a gap is seen in several equal parts of a block.

The parts x_1, ..., x_G are independent and Gaussian with one unknown variance, so that their direction
r = sum x / sqrt(sum x^2) is independent of their length where the gap is 0. A bet of delta standard
deviations of one part is E[exp(delta sum(x)/sigma - G delta^2/2) given r] (Student's likelihood ratio):

    F = exp(-G delta^2/2) E[exp(delta r chi_G)].

docs/bet-gap-e.md has the proof. What delta is in units of the gap is guessed from the past.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from surepick.core.arrays import FloatArray
from surepick.policies.betting.by_variance import TWELFTHS

if TYPE_CHECKING:
    from surepick.policies.betting.purses import Settled

MOST = 10.0  # standard deviations of one part that are bet: more wins no more, and loses digits
_POINTS = np.arange(-40, 26) * 0.4  # of the rule below, in widths of the integrand


def log_factors(direction: FloatArray, delta: FloatArray, n_parts: int) -> FloatArray:
    """log F for parts with this direction and bets of this size.

    >>> log_factors(np.array([0.0, 2.0]), np.array([1.0, 1.0]), 4).round(4).tolist()
    [-2.0, 2.8652]
    """
    return _log_mean_exp(delta * direction, n_parts) - 0.5 * n_parts * delta * delta


def settle_parts(bets: Settled, rung: FloatArray, purse: FloatArray) -> None:
    """Multiply purses, (n, n_rungs + 1), by both kinds of bets; the mixture, last, has twelve above 0."""
    parts, centre = bets.gap, bets.centre
    n_parts, scale = parts.shape[1], 1.0 / np.sqrt(bets.spread)[:, None]
    size = np.maximum(np.abs(parts).max(axis=1), 1e-300)[:, None]
    length = np.linalg.norm(parts / size, axis=1)
    direction = np.divide((parts / size).sum(axis=1), length, out=np.zeros(len(parts)), where=length > 0)
    direction, n = direction[:, None], len(rung)
    purse[:, :n] += log_factors(direction, np.minimum(bets.unit[:, None] * rung * scale, MOST), n_parts)
    bet = np.flatnonzero(centre >= 0.0)
    g = centre[bet, None] + np.sqrt(bets.prior[bet])[:, None] * TWELFTHS
    logs = log_factors(direction[bet], np.clip(g * scale[bet], 0.0, MOST), n_parts)
    logs[g <= 0.0] = -np.inf
    purse[bet, n] += _log_sum_exp(logs) - np.log((g > 0.0).sum(axis=1))


def _log_mean_exp(a: FloatArray, n_parts: int) -> FloatArray:
    """log E[exp(a chi)], chi the length of a standard normal vector of n_parts numbers.

    The density in log chi falls off like exp(n_parts log chi) and faster, so that a sum over even steps has
    all digits: with s = log w, E = const * integral of exp(n s - w^2/2 + a w) ds.
    """
    top = 0.5 * (a + np.sqrt(a * a + 4.0 * n_parts))  # where the integrand is largest
    width = 1.0 / np.sqrt(top * top + n_parts)
    s = np.log(top)[..., None] + width[..., None] * _POINTS
    w = np.exp(s)
    logs = n_parts * s + w * (a[..., None] - 0.5 * w)
    log_constant = (0.5 * n_parts - 1.0) * math.log(2.0) + math.lgamma(0.5 * n_parts)
    step = float(_POINTS[1] - _POINTS[0])
    return np.asarray(_log_sum_exp(logs) + np.log(step * width) - log_constant)


def _log_sum_exp(logs: FloatArray) -> FloatArray:
    top = logs.max(axis=-1)
    return np.asarray(top + np.log(np.exp(logs - top[..., None]).sum(axis=-1)))
