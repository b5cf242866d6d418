"""Bets that are fair for any noise of bounded variance, as arrays; docs/bet-gap-e.md has the proof.

The factor is that of `bets.factor_by_variance`, which compiled code uses for one bet at a time.
"""

from __future__ import annotations

from statistics import NormalDist

import numpy as np

from surepick.core.arrays import FloatArray

# the middles of twelve equally likely parts of N(0, 1)
TWELFTHS = np.array([NormalDist().inv_cdf((k + 0.5) / 12) for k in range(12)])


def log_factors(gap: FloatArray, spread: FloatArray, g: FloatArray) -> FloatArray:
    """log of [1 + (1 + x)_+^2] / 2 / (1 + g^2 / (2 spread)), x = g gap / spread, for bets of these sizes.

    >>> log_factors(np.array([0.4]), np.array([0.25]), np.array([0.5])).round(4).tolist()
    [0.346]
    """
    up = np.maximum(1.0 + g * gap / spread, 0.0)
    return np.asarray(np.log((0.5 + 0.5 * up**2) / (1.0 + 0.5 * g**2 / spread)))


def log_mixtures(gap: FloatArray, spread: FloatArray, centre: FloatArray, prior: FloatArray) -> FloatArray:
    """log of the mean of such factors over g ~ N(centre, prior) in twelve parts, those above 0; centre >= 0.

    >>> one = np.array([1.0])
    >>> bool(log_mixtures(one, one, one, 0.01 * one)[0] < log_mixtures(2 * one, one, one, 0.01 * one)[0])
    True
    """
    g = centre[:, None] + np.sqrt(prior)[:, None] * TWELFTHS
    factors = np.exp(log_factors(gap[:, None], spread[:, None], np.maximum(g, 0.0)))
    return np.asarray(np.log((factors * (g > 0)).sum(axis=1) / (g > 0).sum(axis=1)))
