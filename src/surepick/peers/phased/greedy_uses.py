"""The compiled loop of XYAdaptive: one greedy use after another."""

from __future__ import annotations

import numpy as np

from surepick.core.arrays import FloatArray, IntArray
from surepick.kernels.compiled import compiled

_LONGEST = 10**6  # uses in a phase
_TIE = 1e-9  # relative


@compiled
def greedy(
    lengths: FloatArray,  # (n_pairs,) y'A^-1 y
    across: FloatArray,  # (n_ways, n_pairs) x'A^-1 y
    between: FloatArray,  # (n_ways, n_ways) x'A^-1 x
    counts: IntArray,  # (n_ways,) written
    goal: float,
) -> float:
    """Use ways until rho/t is below the goal; rho/t then. A phase that would be too long ends.

    A use changes A^-1 by one dyad (Sherman and Morrison), and with it the three arrays, in place.
    """
    n_ways, n_pairs = across.shape
    least = np.inf
    for t in range(1, _LONGEST + 1):
        best, least = 0, np.inf
        for o in range(n_ways):
            worst, scale = 0.0, 1.0 / (1.0 + between[o, o])
            for p in range(n_pairs):
                worst = max(worst, lengths[p] - across[o, p] * across[o, p] * scale)
                if worst > least * (1.0 + _TIE):
                    break
            if worst < least * (1.0 - _TIE) or (worst <= least * (1.0 + _TIE) and counts[o] < counts[best]):
                best, least = o, worst
        counts[best] += 1
        scale = 1.0 / (1.0 + between[best, best])
        for p in range(n_pairs):
            lengths[p] -= across[best, p] * across[best, p] * scale
        for o in range(n_ways):
            if o != best:
                factor = between[o, best] * scale
                for p in range(n_pairs):
                    across[o, p] -= factor * across[best, p]
                for q in range(n_ways):
                    if q != best:
                        between[o, q] -= factor * between[best, q]
        for p in range(n_pairs):
            across[best, p] *= scale
        for o in range(n_ways):
            between[best, o] *= scale
            between[o, best] = between[best, o]
        if least < goal * t:
            return least / t
    return least / _LONGEST
