"""Shares of measurements to whole numbers of them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from surepick.core.arrays import IntArray
from surepick.errors import ParameterError

MOST = 2**50  # measurements that are dealt out: beyond it whole numbers are not exact in a double
_SMALLEST_SHARE = 1e-280  # below it a weight is 0, so that counts / weight cannot overflow


def refuse_too_many(n: float) -> None:
    """Refuse a number of measurements that nobody can make, and that whole numbers cannot count."""
    if n > MOST:
        raise ParameterError(
            f"{n:.3g} measurements are more than anybody can make; noise scales and plans may be in units in "
            "which the gaps between plans are tiny: use another unit, or a policy without phases (BetGapE)"
        )


def round_allocation(weights: npt.ArrayLike, n: int) -> IntArray:
    """Whole numbers of measurements in proportion to `weights` that sum to n (Pukelsheim's rounding).

    Start from ceil((n - p/2) w_s) with p the number of positive weights, then remove from the largest
    (n_s - 1) / w_s or add to the smallest n_s / w_s; ties go to the lowest index. Every arm of positive
    weight gets at least one measurement, so n must be at least p.

    >>> round_allocation([0.5, 0.3, 0.2, 0.0], 7).tolist()
    [3, 2, 2, 0]
    """
    shares = np.asarray(weights, dtype=float)
    shares = shares / shares.sum()
    support = np.flatnonzero(shares > _SMALLEST_SHARE)
    if n < len(support):
        raise ParameterError(
            f"n must be at least the {len(support)} arms of positive weight, got {n}; "
            "drop arms of small weight or measure more",
            field="n",
        )
    refuse_too_many(n)
    w = shares[support]
    counts = np.maximum(np.ceil((n - len(w) / 2) * w).astype(np.int64), 1)
    while int(counts.sum()) > n:
        counts[np.argmax((counts - 1) / w)] -= 1
    while int(counts.sum()) < n:
        counts[np.argmin(counts / w)] += 1
    result = np.zeros(len(shares), dtype=np.int64)
    result[support] = counts
    return result
