"""The box of a node and its cuts: bounds by prices, and bounds of single variables that follow; compiled.

`core/proofs.py` has the words and checks what is written down here. Prices are rounded to a few
digits: any are right, and these are short. What is allowed for rounding is twice what the check allows for,
so that it finds what is found here, in whatever order it adds up.
"""

from __future__ import annotations

import math
from typing import NamedTuple, TypeVar, cast, get_type_hints

import numpy as np

from surepick.core.arrays import FloatArray, IntArray
from surepick.core.proofs import Inequality
from surepick.kernels import compiled_inner
from surepick.policies.polytopes.boundary import tangent
from surepick.policies.polytopes.simplex import GAVE_UP, Tableau, lower_costs, make_rows, place

COVERED, ALIVE, UNKNOWN = 1, 0, -1

_ROUNDING = 2.0**-39
_OUTWARDS = 1e-10  # of a bound: how far it is moved outwards
_DIGITS = 6  # of prices
_WORTH = 0.02  # of a width: how much a bound must move to be written down
_FRESH = 12  # linear programs after which a tableau is made anew


_Fields = TypeVar("_Fields")


def make_record(fields: type[_Fields]) -> _Fields:
    """Return a record with these fields, zero at first, which compiled code and Python change in place.

    Compiled code takes its state as a NamedTuple of arrays, in which no number can change; a record can.
    """
    kinds = {int: np.int64, float: np.float64}
    layout = np.dtype([(name, kinds[kind]) for name, kind in get_type_hints(fields).items()], align=True)
    return cast(_Fields, np.zeros(1, dtype=np.dtype((np.record, layout)))[0])


class Number:
    """Counters of a search."""

    nodes: int
    cuts: int
    programs: int


class Found(NamedTuple):
    """What a search has found; filled by it."""

    number: Number
    alive: FloatArray  # (n_arms,) a plan that is not ruled out
    node_cuts: IntArray  # (most_nodes,) how many cuts each node has
    node_split: IntArray  # (most_nodes,) its variable, or -1
    node_value: FloatArray  # (most_nodes,)
    tangents: FloatArray  # (most_cuts, 3) at_gain, at_square, unit
    prices: FloatArray  # (most_cuts, m + 1)


class Shown:
    """What the tangents of a node have shown: `missing` is what the best one lacks, infinite before any."""

    missing: float
    log_square: float  # log Q at which the best one touches
    slope: float  # of the best one
    least_gain: float  # of the points that came back
    most_gain: float


class Box(NamedTuple):
    """The box of a node, the linear program over it, and scratch."""

    low: FloatArray  # (n,)
    high: FloatArray
    costs: FloatArray
    reduced: FloatArray
    prices: FloatArray  # (m,)
    tableau: Tableau
    best: FloatArray  # (n,) the point of the tangent that came closest
    shown: Shown


@compiled_inner
def fill_secants(inequality: Inequality, slope: float, box: Box) -> tuple[float, float]:
    """Fill `box.costs` so that const + costs.x <= L(x) - slope Q(x) on the box; return const and size.

    L(x) = gain + gains.x and Q(x) = square - 2 crosses.x + sum_s squares_s x_s^2. On the box each x_s^2 lies
    below its secant (low_s + high_s) x_s - low_s high_s. `size` adds up the absolute values of all terms; it
    bounds the rounding error.
    """
    low, high, costs = box.low, box.high, box.costs
    const = inequality.gain - slope * inequality.square
    size = abs(inequality.gain) + slope * abs(inequality.square)
    for s in range(len(inequality.gains)):
        square, cross, gain = inequality.squares[s], inequality.crosses[s], inequality.gains[s]
        product = slope * square * low[s] * high[s]
        const += product
        costs[s] = gain - slope * (square * (low[s] + high[s]) - 2.0 * cross)
        part = abs(gain) + slope * (square * (abs(low[s]) + abs(high[s])) + 2.0 * abs(cross))
        size += abs(product) + part * max(abs(low[s]), abs(high[s]))
    return const, size


@compiled_inner
def _bound(box: Box) -> float:
    """Return a lower bound of costs.x on the box by weak duality with the prices; fill `box.reduced`."""
    tableau, low, high, prices = box.tableau, box.low, box.high, box.prices
    total, size = 0.0, 0.0
    for i in range(len(prices)):
        total += prices[i] * tableau.right[i]
        size += abs(prices[i] * tableau.right[i])
    for j in range(len(low)):
        reduced, part = box.costs[j], abs(box.costs[j])
        for i in range(len(prices)):
            reduced -= tableau.matrix[i, j] * prices[i]
            part += abs(tableau.matrix[i, j] * prices[i])
        box.reduced[j] = reduced
        total += min(reduced * low[j], reduced * high[j])
        size += part * max(abs(low[j]), abs(high[j]))
    return total - _ROUNDING * size


@compiled_inner
def cut_box(
    inequality: Inequality, box: Box, gain: float, square: float, found: Found
) -> tuple[float, float]:
    """Bound the box by its prices and a tangent at (gain, square), or by prices alone if gain is nan.

    What is missing to rule it out (below 0: it is), and how much the sum of squared widths has shrunk. Bounds
    are moved, and the cut is written down, where that is worth it.
    """
    unit = _round_prices(box.prices)
    slope, need, const, size = 0.0, 0.0, 0.0, 0.0
    if not math.isnan(gain):
        slope, need = tangent(inequality, gain, square)
        const, size = fill_secants(inequality, slope, box)
    else:
        for j in range(len(box.costs)):
            box.costs[j] = 0.0
    missing = need - (const + _bound(box) - _ROUNDING * size)
    if missing < 0.0:
        _write(found, box.prices, gain, square, unit)
        return missing, 0.0
    moved, change = _tighten(inequality, box, missing)
    if moved:
        _write(found, box.prices, gain, square, unit)
    return (-1.0, 0.0) if change < 0.0 else (missing, slope * change)


@compiled_inner
def _tighten(inequality: Inequality, box: Box, missing: float) -> tuple[bool, float]:
    """Move bounds of variables as far as reduced costs show that all plans beyond are ruled out.

    Return whether any moved, and by how much the weighted squared widths shrank; -1 where no plan is left.
    """
    low, high, moved, change = box.low, box.high, False, 0.0
    for j in range(len(low)):
        width, reduced = high[j] - low[j], box.reduced[j]
        if width <= 0.0 or missing >= (1.0 - _WORTH) * width * abs(reduced):
            continue
        square = inequality.squares[j] if j < len(inequality.squares) else 0.0
        reach = missing / abs(reduced)
        if reduced > 0.0:
            end = low[j] + reach + _OUTWARDS * (abs(low[j]) + width)
            change += square * width * max(high[j] - end, 0.0)
            high[j] = min(high[j], end)
        else:
            end = high[j] - reach - _OUTWARDS * (abs(high[j]) + width)
            change += square * width * max(end - low[j], 0.0)
            low[j] = max(low[j], end)
        moved = True
        if low[j] > high[j]:
            return True, -1.0
    return moved, change


@compiled_inner
def copy_into(values: FloatArray, into: FloatArray) -> None:
    """Copy the first values; a slice would allocate."""
    for j in range(len(into)):
        into[j] = values[j]


@compiled_inner
def _round_prices(prices: FloatArray) -> float:
    """Round to whole multiples of a unit, which is returned: any prices are right, and these are short."""
    largest = 0.0
    for i in range(len(prices)):
        largest = max(largest, abs(prices[i]))
    if largest == 0.0:
        return 1.0
    unit = 10.0 ** (math.floor(math.log10(largest)) - _DIGITS)
    for i in range(len(prices)):
        prices[i] = np.rint(prices[i] / unit) * unit
    return float(unit)


@compiled_inner
def _write(found: Found, prices: FloatArray, gain: float, square: float, unit: float) -> None:
    """Keep a cut of the node at hand, as long as there is room for more."""
    k, node = found.number.cuts, found.number.nodes - 1
    if k < len(found.prices):
        found.tangents[k, 0], found.tangents[k, 1], found.tangents[k, 2] = gain, square, unit
        for i in range(len(prices)):
            found.prices[k, i] = np.rint(prices[i] / unit)
    found.number.cuts += 1
    if node < len(found.node_cuts):
        found.node_cuts[node] += 1


@compiled_inner
def solve_fresh(tableau: Tableau, costs: FloatArray, found: Found) -> int:
    """Solve from the basis at hand; every `_FRESH`-th time its tableau is computed afresh from the basis."""
    found.number.programs += 1
    if found.number.programs % _FRESH == 0:
        if not make_rows(tableau):
            return GAVE_UP
    else:
        place(tableau)
    return lower_costs(tableau, costs)


@compiled_inner
def show_empty(inequality: Inequality, box: Box, found: Found) -> int:
    """Return whether the prices, or their opposite, show that the box holds no plan."""
    for _ in range(2):
        if cut_box(inequality, box, np.nan, np.nan, found)[0] < 0.0:
            return COVERED
        for i in range(len(box.prices)):
            box.prices[i] = -box.prices[i]
    return UNKNOWN
