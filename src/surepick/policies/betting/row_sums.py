"""The compiled inner loop of OBet's bound: the point of a hull with the least log-sum-exp."""

from __future__ import annotations

import math

from surepick.core.arrays import FloatArray
from surepick.kernels.compiled import compiled, compiled_inner

_STEPS = 60
_BISECTIONS = 12
_FLAT = 1e-3  # nats: a hull is searched until its bound is this narrow


@compiled
def least_log_sum(points: FloatArray, share: FloatArray, total: FloatArray, tilt: FloatArray) -> float:
    """Least log sum_r exp(z_r) over convex combinations z of the points (rows), by pairwise Frank-Wolfe.

    In: `share`, a combination to start from. Out: `share` the best combination, `total` its z, `tilt` the
    softmax of z. The value is that of the combination found.
    """
    n, width = points.shape
    for r in range(width):
        total[r] = 0.0
        for k in range(n):
            total[r] += share[k] * points[k, r]
    value = _softmax(total, tilt)
    for _ in range(_STEPS):
        to, away, drop = _steepest(points, share, tilt)
        if drop < _FLAT:
            break
        move = _best_move(points, (to, away), share[away], total, tilt)
        for r in range(width):
            total[r] += move * (points[to, r] - points[away, r])
        share[to] += move
        share[away] = max(0.0, share[away] - move)
        value = _softmax(total, tilt)
    return value


@compiled_inner
def _steepest(points: FloatArray, share: FloatArray, tilt: FloatArray) -> tuple[int, int, float]:
    """The point to move share to, the one in use to take it from, and how far their slopes are apart."""
    n, width = points.shape
    low, high, to, away = math.inf, -math.inf, 0, 0
    for k in range(n):
        slope = 0.0
        for r in range(width):
            slope += tilt[r] * points[k, r]
        if slope < low:
            low, to = slope, k
        if share[k] > 0.0 and slope > high:
            high, away = slope, k
    return to, away, high - low


@compiled_inner
def _best_move(
    points: FloatArray, pair: tuple[int, int], most: float, total: FloatArray, tilt: FloatArray
) -> float:
    """How much share to move to the first from the second, by bisection on the slope; `tilt` is scratch."""
    to, away = pair
    width = points.shape[1]
    left, right = 0.0, most
    for step in range(_BISECTIONS):
        middle = right if step == 0 else 0.5 * (left + right)
        top = -math.inf
        for r in range(width):
            tilt[r] = total[r] + middle * (points[to, r] - points[away, r])
            top = max(top, tilt[r])
        slope = 0.0
        for r in range(width):
            slope += math.exp(tilt[r] - top) * (points[to, r] - points[away, r])
        if slope > 0.0:
            right = middle
        else:
            left = middle
        if left == right:
            break
    return left if left > 0.0 else right


@compiled_inner
def _softmax(total: FloatArray, tilt: FloatArray) -> float:
    """log sum_r exp(total_r); out: `tilt`, the softmax."""
    top = -math.inf
    for r in range(len(total)):
        top = max(top, total[r])
    mass = 0.0
    for r in range(len(total)):
        tilt[r] = math.exp(total[r] - top)
        mass += tilt[r]
    for r in range(len(total)):
        tilt[r] /= mass
    return top + math.log(mass)
