"""The compiled dynamic programmes of the knapsack; importing them imports Numba."""

from __future__ import annotations

import numpy as np

from surepick.core.arrays import FloatArray, IntArray
from surepick.kernels.compiled import compiled_allocating


@compiled_allocating
def fill(weights: IntArray, values: FloatArray, capacity: int) -> IntArray:
    """How many copies of each item to pack for the largest total value within the capacity.

    best[c] = max(best[c - 1], max_s best[c - weights[s]] + values[s]). Ties go to leaving room unused, then
    to the item with the lowest index.
    """
    best = np.zeros(capacity + 1)
    last = np.full(capacity + 1, -1, dtype=np.int64)  # the item packed last; -1: one unit of room left unused
    for c in range(1, capacity + 1):
        best[c] = best[c - 1]
        for s in range(weights.size):
            if weights[s] <= c and best[c - weights[s]] + values[s] > best[c]:
                best[c] = best[c - weights[s]] + values[s]
                last[c] = s
    copies = np.zeros(weights.size, dtype=np.int64)
    c = capacity
    while c > 0:
        if last[c] < 0:
            c -= 1
        else:
            copies[last[c]] += 1
            c -= weights[last[c]]
    return copies


@compiled_allocating
def fill_bounded(weights: IntArray, values: FloatArray, most: IntArray, capacity: int) -> IntArray:
    """The same with at most `most[s]` copies of item s.

    best_s[c] = max over q <= most[s] of best_{s-1}[c - q weights[s]] + q values[s]. Ties go to fewer copies
    of the item with the highest index.
    """
    best = np.zeros(capacity + 1)
    taken = np.zeros((weights.size, capacity + 1), dtype=np.int32)
    for s in range(weights.size):
        if values[s] <= 0:
            continue
        for c in range(capacity, weights[s] - 1, -1):  # downwards: best[c - q w] is still without item s
            start = best[c]
            for q in range(1, min(most[s], c // weights[s]) + 1):
                worth = best[c - q * weights[s]] + q * values[s]
                if worth > start:
                    start = worth
                    taken[s, c] = q
            best[c] = start
    copies = np.zeros(weights.size, dtype=np.int64)
    c = capacity
    for s in range(weights.size - 1, -1, -1):
        copies[s] = taken[s, c]
        c -= copies[s] * weights[s]
    return copies
