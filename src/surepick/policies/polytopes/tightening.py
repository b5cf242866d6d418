"""Tighter bounds of single arms, over the plans of a box that its best tangent does not rule out; compiled.

A program over the box with a row more, costs.x - t = 0 with t at most what the tangent leaves, says how small
and how large an arm can be there; its prices make a cut of the box.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from surepick.core.arrays import FloatArray
from surepick.core.proofs import Inequality
from surepick.kernels import compiled_inner
from surepick.policies.polytopes.boundary import boundary, tangent
from surepick.policies.polytopes.box_cuts import Box, Found, cut_box, fill_secants, solve_fresh
from surepick.policies.polytopes.simplex import BASIC, EMPTY, SOLVED, Tableau, find_prices, make_rows


class Wide(NamedTuple):
    """The program of a box with a row more, for what the best tangent leaves; and scratch."""

    tableau: Tableau
    objective: FloatArray  # (n + 1,) of zeros
    prices: FloatArray  # (m + 1,)
    width: FloatArray  # (n_arms,) squared widths, by their weights


@compiled_inner
def tighten(inequality: Inequality, box: Box, wide: Wide, effort: tuple[int, int], found: Found) -> bool:
    """Tighten so many arms, in so many rounds, while that helps; whether the box is ruled out by it."""
    rounds, n_arms = effort
    for _ in range(rounds):
        is_out, left = _tighten_arms(inequality, box, wide, n_arms, found)
        if is_out:
            return True
        if left > 0.9:
            break
    return False


@compiled_inner
def _tighten_arms(
    inequality: Inequality, box: Box, wide: Wide, n_arms: int, found: Found
) -> tuple[bool, float]:
    """Bound single arms over the plans of the box that the best tangent does not rule out.

    Whether the box is ruled out, and the share of the squared widths, by their weights that is left.
    """
    n = len(box.low)
    at_square = math.exp(box.shown.log_square)
    at_gain, _ = boundary(inequality, at_square)
    slope, need = tangent(inequality, at_gain, at_square)
    const, _ = fill_secants(inequality, slope, box)
    tableau, objective, prices, width = wide
    _widen(box, tableau, need - const)
    if not make_rows(tableau):
        return False, 1.0
    before = 0.0
    for s in range(len(width)):
        width[s] = inequality.squares[s] * (box.high[s] - box.low[s]) ** 2
        before += width[s]
    for _ in range(min(n_arms, len(width))):
        s = _widest(width)
        if width[s] < 1e-4 * before:
            break
        width[s] = -1.0  # it had its turn
        for side in (1.0, -1.0):
            objective[s] = -side
            status = solve_fresh(tableau, objective, found)
            find_prices(tableau, prices)
            objective[s] = 0.0
            missing = _cut_by(inequality, box, (at_gain, at_square), (status, prices), found)
            if missing < 0.0:
                return True, 0.0
            for j in range(n):
                tableau.lower[j], tableau.upper[j] = box.low[j], box.high[j]
    after = 0.0
    for s in range(len(width)):
        after += inequality.squares[s] * (box.high[s] - box.low[s]) ** 2
    return False, after / before if before > 0.0 else 1.0


@compiled_inner
def _cut_by(
    inequality: Inequality,
    box: Box,
    at: tuple[float, float],
    solved: tuple[int, FloatArray],
    found: Found,
) -> float:
    """Cut the box by the prices of a wide program with this status; what is missing to rule it out."""
    status, prices = solved
    if status == EMPTY:
        return _show_nothing_left(inequality, box, at, prices, found)
    if status != SOLVED:
        return 1.0
    m = len(box.prices)
    weight = -prices[m]
    is_plain = weight <= 1e-12
    for i in range(m):
        box.prices[i] = prices[i] if is_plain else prices[i] / weight
    missing, _ = cut_box(inequality, box, np.nan if is_plain else at[0], at[1], found)
    return missing


@compiled_inner
def _widest(width: FloatArray) -> int:
    """Return the index of the largest width; ties go to the lowest."""
    widest = 0
    for s in range(1, len(width)):
        if width[s] > width[widest]:
            widest = s
    return widest


@compiled_inner
def _widen(box: Box, wide: Tableau, most: float) -> None:
    """Make `wide` the program of the box with the row costs.x - t = 0, t <= most."""
    m, n = box.tableau.matrix.shape
    least = 0.0
    for j in range(n):
        wide.matrix[m, j] = box.costs[j]
        wide.lower[j], wide.upper[j], wide.at[j] = box.low[j], box.high[j], box.tableau.at[j]
        least += min(box.costs[j] * box.low[j], box.costs[j] * box.high[j])
    wide.matrix[m, n], wide.at[n] = -1.0, BASIC
    wide.lower[n], wide.upper[n] = min(least - 1e-9 * (1.0 + abs(least)), most), most


@compiled_inner
def _show_nothing_left(
    inequality: Inequality, box: Box, at: tuple[float, float], prices: FloatArray, found: Found
) -> float:
    """Return whether prices of an empty wide program show that the tangent at `at` leaves no plan."""
    m = len(box.prices)
    for sign in (1.0, -1.0):
        weight = -sign * prices[m]
        if weight > 1e-12:
            for i in range(m):
                box.prices[i] = sign * prices[i] / weight
            missing, _ = cut_box(inequality, box, at[0], at[1], found)
            if missing < 0.0:
                return missing
    return 1.0
