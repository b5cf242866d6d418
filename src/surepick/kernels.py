"""How loops are compiled, and how a raw random draw becomes a simulated measurement in them.

Numba compiles where it is installed and keeps machine code on disk; without it every function runs as it is,
slowly. `NUMBA_CACHE_DIR` says where machine code is kept. Numba looks at a function's own file alone: after a
change in a file that others call into, remove the cache.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np

from surepick.core.arrays import FloatArray, IntArray

_F = TypeVar("_F", bound=Callable[..., Any])

AFFINE, THRESHOLD, TABLE = range(3)  # the kinds of a feed


def is_compiling() -> bool:
    """Return whether Numba is installed."""
    try:
        import numba
    except ImportError:
        return False
    return bool(numba)


def compiled(function: _F) -> _F:
    """Compile a function, with exact floating point, or leave it as it is where there is no Numba."""
    if not is_compiling():
        return function
    import numba

    return cast(_F, numba.njit(cache=True)(function))


class Feed(NamedTuple):
    """How a raw draw becomes a measurement of an arm, as data for compiled loops; see `measured`."""

    kind: int
    shift: FloatArray  # (n_arms,)
    stretch: FloatArray  # (n_arms,)
    table: FloatArray = np.zeros(0)
    table_start: IntArray = np.zeros(1, dtype=np.int64)  # (n_arms + 1,)


def unchanged(n_arms: int) -> Feed:
    """Return the feed whose draws are the measurements themselves."""
    return Feed(AFFINE, np.zeros(n_arms), np.ones(n_arms))


def measured(feed: Feed, arm: int, draw: Any) -> Any:
    """Return the measurement of this arm that a raw draw stands for; of an array of draws, each one's."""
    if feed.kind == AFFINE:
        return feed.shift[arm] + feed.stretch[arm] * draw
    if feed.kind == THRESHOLD:
        return 1.0 * (draw < feed.shift[arm])
    start = feed.table_start[arm]
    return feed.table[start + np.int64(draw * (feed.table_start[arm + 1] - start))]
