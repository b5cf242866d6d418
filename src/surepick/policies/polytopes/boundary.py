"""Where plans are ruled out: the least L for each Q, its tangents, and the plans that are hardest; compiled.

`core/proofs.py` has the words: L, Q and the wealth W. W is convex in (L, Q), grows with L and falls
with Q, so that the boundary W = target is a concave function of Q.
"""

from __future__ import annotations

import math

import numpy as np

from surepick.core.arrays import FloatArray
from surepick.core.proofs import Inequality
from surepick.kernels import compiled, compiled_inner
from surepick.policies.polytopes.simplex import SOLVED, Tableau, lower_costs

_NATS = 2e-9  # twice what the check of a proof allows logarithms to err by
_DESCENTS = 30  # linear programs of one local search


@compiled_inner
def _wealth(inequality: Inequality, gain: float, square: float) -> tuple[float, float, float]:
    """Log wealth at (L, Q), and the means of the rates and of their squares under its terms."""
    rates, top = inequality.rates, inequality.log_cash
    for j in range(len(rates)):
        top = max(top, inequality.log_stakes[j] + rates[j] * (gain - 0.5 * rates[j] * square))
    total, first, second = math.exp(inequality.log_cash - top), 0.0, 0.0
    for j in range(len(rates)):
        e = math.exp(inequality.log_stakes[j] + rates[j] * (gain - 0.5 * rates[j] * square) - top)
        total += e
        first += e * rates[j]
        second += e * rates[j] * rates[j]
    return top + math.log(total), first / total, second / total


@compiled_inner
def boundary(inequality: Inequality, square: float) -> tuple[float, float]:
    """The least L with which a plan of this Q is ruled out, and its slope in Q: a concave function."""
    if len(inequality.rates) == 0:
        return inequality.target * math.sqrt(square), inequality.target / (2.0 * math.sqrt(square))
    gain = np.inf
    for j in range(len(inequality.rates)):
        rate = inequality.rates[j]
        gain = min(gain, (inequality.target - inequality.log_stakes[j]) / rate + 0.5 * rate * square)
    value, first, second = _wealth(inequality, gain, square)
    for _ in range(60):  # Newton from the right, where a convex function is met monotonically
        step = (value - inequality.target) / first
        gain -= step
        value, first, second = _wealth(inequality, gain, square)
        if abs(step) < 1e-13 * (1.0 + abs(gain)):
            break
    gain += max(0.0, inequality.target - value) / first
    return gain, 0.5 * second / first


@compiled_inner
def tangent(inequality: Inequality, gain: float, square: float) -> tuple[float, float]:
    """The slope r and the need of L - r Q >= need, a little more than the check will ask for."""
    if len(inequality.rates) == 0:
        root = math.sqrt(square)
        return inequality.target / (2.0 * root), 0.5 * inequality.target * root * (1.0 + _NATS)
    value, first, second = _wealth(inequality, gain, square)
    slope = second / (2.0 * first)
    return slope, gain - slope * square + (inequality.target - value + _NATS) / first


@compiled_inner
def measure(inequality: Inequality, point: FloatArray) -> tuple[float, float, float]:
    """Return how far a point is beyond the boundary (below 0: not ruled out), its L and its Q."""
    gain, square = inequality.gain, inequality.square
    for s in range(len(inequality.gains)):
        gain += inequality.gains[s] * point[s]
        square += point[s] * (inequality.squares[s] * point[s] - 2.0 * inequality.crosses[s])
    square = max(square, 1e-300)
    return gain - boundary(inequality, square)[0], gain, square


@compiled
def descend(inequality: Inequality, tableau: Tableau, costs: FloatArray, point: FloatArray) -> float:
    """Go from a plan to a vertex where L - boundary(Q) is least locally; return that, below 0: not ruled out.

    Q is replaced by its tangent, which is above it: every linear program gives a better vertex. `costs` is
    scratch of all variables; `point` is changed.
    """
    n_arms = len(inequality.gains)
    least, _, square = measure(inequality, point)
    for _ in range(_DESCENTS):
        _, slope = boundary(inequality, square)
        for s in range(n_arms):
            costs[s] = inequality.gains[s] - 2.0 * slope * (
                inequality.squares[s] * point[s] - inequality.crosses[s]
            )
        if lower_costs(tableau, costs) != SOLVED:
            break
        value, _, square = measure(inequality, tableau.values)
        if value >= least - 1e-12 * abs(least):
            break
        least = value
        for s in range(n_arms):
            point[s] = tableau.values[s]
    return float(least)
