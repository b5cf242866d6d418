"""Worlds are means that may be the true ones; this is what "in eight of ten worlds" means everywhere."""

from __future__ import annotations

import math

import numpy as np

from surepick.core.arrays import FloatArray

EIGHT_OF_TEN = (0.1, 0.5, 0.9)  # shares of the worlds: the low end, the middle, the high end
_ROUNDING = 1e-9  # 0.7 * 10 is 7.000000000000001 in floats


def quantile(values: FloatArray, share: float) -> float:
    """The smallest of these values, one per world, that this share of the worlds does not exceed.

    Infinities, where a world has no end, count as largest.

    >>> worlds = np.array([30.0, 10.0, 20.0, np.inf])
    >>> quantile(worlds, 0.5), quantile(worlds, 0.9)
    (20.0, inf)
    """
    rank = math.ceil(share * len(values) - _ROUNDING)
    return float(np.sort(values)[max(rank, 1) - 1])
