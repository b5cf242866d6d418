"""A minimax design on single arms, compiled: for OBet and PolyBet, which solve many of them in a batch."""

from __future__ import annotations

import math

from surepick.core.arrays import FloatArray
from surepick.kernels.compiled import compiled_fast, compiled_inner_fast

_STEEPNESS = 1.5  # of the multiplicative step: above 1 it converges faster, at 2 it may swing


@compiled_fast
def divide(
    squares: FloatArray,  # (n_rows, n_arms)
    dual: FloatArray,  # (n_rows,) in: positive start, out: how much each row binds; sums to 1
    share: FloatArray,  # out, (n_arms,): sums to 1
    inverse: FloatArray,  # scratch, (n_arms,)
    value: FloatArray,  # scratch, (n_rows,)
    steps: int,
    tolerance: float,
) -> float:
    """Shares that nearly minimise max_q sum_s squares[q, s] / share_s, and that maximum.

    The multiplicative dual of `design`: share_s in proportion to sqrt(sum_q dual_q squares_qs),
    dual_q growing where row q is worse than the average. The bracket is checked at every step.
    """
    n_rows, n_arms = squares.shape
    worst = 0.0
    for step in range(steps):
        share[:] = 0.0
        for q in range(n_rows):
            if dual[q] > 0.0:
                for s in range(n_arms):
                    share[s] += dual[q] * squares[q, s]
        total = 0.0
        for s in range(n_arms):
            share[s] = math.sqrt(share[s])
            total += share[s]
        for s in range(n_arms):
            inverse[s] = total / share[s] if share[s] > 0.0 else 0.0
        worst, average = 0.0, 0.0
        for q in range(n_rows):
            if dual[q] > 0.0:
                value[q] = 0.0
                for s in range(n_arms):
                    value[q] += squares[q, s] * inverse[s]
                worst = max(worst, value[q])
                average += dual[q] * value[q]
        if worst <= (1.0 + tolerance) * total * total or step == steps - 1:
            break
        _sharpen(dual, value, average, worst)
    for s in range(n_arms):
        share[s] /= total
    return worst


@compiled_inner_fast
def _sharpen(dual: FloatArray, value: FloatArray, average: float, worst: float) -> None:
    """One multiplicative step; rows that neither bind nor come close leave."""
    total = 0.0
    for q in range(len(dual)):
        if dual[q] > 0.0:
            dual[q] *= (value[q] / average) ** _STEEPNESS
            total += dual[q]
    for q in range(len(dual)):
        dual[q] /= total
        if dual[q] < 1e-4 / len(dual) and value[q] < 0.7 * worst:
            dual[q] = 0.0
