"""How a raw random draw becomes a simulated measurement, as data that compiled loops can read."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from surepick.core.arrays import FloatArray, IntArray

AFFINE, THRESHOLD, TABLE = range(3)  # the kinds of a feed


class Feed(NamedTuple):
    """How a raw draw becomes a measurement of an arm; see `measured.measured`."""

    kind: int
    shift: FloatArray  # (n_arms,)
    stretch: FloatArray  # (n_arms,)
    table: FloatArray = np.zeros(0)
    table_start: IntArray = np.zeros(1, dtype=np.int64)  # (n_arms + 1,)


def unchanged(n_arms: int) -> Feed:
    """The feed whose draws are the measurements themselves."""
    return Feed(AFFINE, np.zeros(n_arms), np.ones(n_arms))
