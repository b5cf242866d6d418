"""The compiled reading of a `Feed`: what a raw draw measures."""

from __future__ import annotations

from surepick.core.arrays import FloatArray
from surepick.kernels.compiled import compiled
from surepick.kernels.feed import AFFINE, THRESHOLD, Feed


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
