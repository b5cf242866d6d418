"""How the compiled loops of every policy get their simulated measurements."""

from __future__ import annotations

from typing import NamedTuple

from surepick.core.arrays import FloatArray, IntArray
from surepick.kernels.compiled import compiled

AFFINE, THRESHOLD, TABLE = 0, 1, 2  # the kinds of a feed


class Feed(NamedTuple):
    """How a raw draw becomes a measurement of an arm; see `measured`."""

    kind: int
    shift: FloatArray  # (n_arms,)
    stretch: FloatArray  # (n_arms,)
    table: FloatArray
    table_start: IntArray  # (n_arms + 1,)


@compiled
def measured(feed: Feed, arm: int, draw: float) -> float:
    """The measurement of this arm that the raw draw stands for."""
    if feed.kind == AFFINE:
        return feed.shift[arm] + feed.stretch[arm] * draw
    if feed.kind == THRESHOLD:
        return 1.0 if draw < feed.shift[arm] else 0.0
    start = feed.table_start[arm]
    return feed.table[start + int(draw * (feed.table_start[arm + 1] - start))]


@compiled
def sum_measured(feed: Feed, arm: int, draws: FloatArray) -> float:
    """The sum of the measurements of this arm that the raw draws stand for."""
    total = 0.0
    for draw in draws:
        total += measured(feed, arm, draw)
    return total
