"""A small dense simplex for linear programs over bounded variables; compiled.

    minimise c.z,  A z = b,  lower <= z <= upper,  all bounds finite

It starts at a basis that is given, and its tableau is made anew from that basis, so that its answer is a
function of the basis and the numbers: a run that is replayed takes the same pivots. Nothing rests on its
answers but which vertex is looked at next: bounds come from dual values (`safe_bound` in core)
and hold for any of them.

Python calls `begin`, `restore` and `solve`, which are one compiled unit, to wait for it once; compiled code
calls the steps that it is made of.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from surepick.core.arrays import FloatArray, IntArray
from surepick.core.standard_form import StandardForm
from surepick.kernels import compiled, compiled_inner

SOLVED, EMPTY, GAVE_UP = 0, 1, 2
_FEASIBLE = 1e-10  # amounts are near 1
_IMPROVES = 1e-9  # of the largest cost
_PIVOT = 1e-9  # entries that count as zero
_STILL = 60  # steps without progress after which the first column that improves is taken (Bland)
_STEPS = 50  # pivots, for each row and column, before it gives up
_AT_LOWER, _AT_UPPER, BASIC = 0, 1, 2  # as in core.standard_form
_BEGIN, _RESTORE, _SOLVE = range(3)  # the steps of `_advance`


class Tableau(NamedTuple):
    """A linear program at a basis, changed by `solve`."""

    matrix: FloatArray  # (m, n)
    right: FloatArray  # (m,)
    lower: FloatArray  # (n,)
    upper: FloatArray  # (n,)
    rows: FloatArray  # (m, n + 1) the equations solved for the basic variables; last, the right side
    basis: IntArray  # (m,) the basic variable of each row
    at: IntArray  # (n,) where the variables are: at their lower bound, at their upper one, or basic
    values: FloatArray  # (n,)
    weights: FloatArray  # scratch, (m,)


def tableau_of(form: StandardForm) -> Tableau:
    """A tableau without a basis yet; see `begin`."""
    return empty_tableau(form.matrix, form.right, (form.lower, form.upper))


def empty_tableau(
    matrix: FloatArray, right: FloatArray, bounds: tuple[FloatArray, FloatArray], *, priced: bool = False
) -> Tableau:
    """Return a tableau of these equations; a `priced` one keeps the basis inverse for `find_prices`."""
    m, n = matrix.shape
    return Tableau(
        np.array(matrix, order="C"),  # copies: of read-only arrays code would be compiled once more
        np.array(right),
        np.array(bounds[0]),
        np.array(bounds[1]),
        np.zeros((m, n + 1 + (m if priced else 0))),
        np.zeros(m, dtype=np.int64),
        np.zeros(n, dtype=np.int64),
        np.zeros(n),
        np.zeros(m),
    )


def begin(tableau: Tableau) -> int:
    """Go to the first basis that keeps all bounds, from columns chosen by elimination; as `solve` says."""
    return int(_advance(tableau, np.zeros(len(tableau.lower)), _BEGIN))


def restore(tableau: Tableau) -> bool:
    """Make rows and values from basis and bounds alone; False where the basis is singular."""
    return int(_advance(tableau, tableau.lower, _RESTORE)) == SOLVED


def solve(tableau: Tableau, costs: FloatArray) -> int:
    """Go to a basis with the least costs.z; SOLVED, EMPTY where no z keeps all rows, or GAVE_UP."""
    return int(_advance(tableau, costs, _SOLVE))


@compiled
def _advance(tableau: Tableau, costs: FloatArray, step: int) -> int:
    """Take one of the steps; costs are 0 at the beginning, where any basis will do that keeps all bounds."""
    if step == _BEGIN and not _choose_basis(tableau):
        return GAVE_UP
    if step != _SOLVE and not make_rows(tableau):
        return GAVE_UP
    if step == _RESTORE:
        return SOLVED
    status = lower_costs(tableau, costs)
    if step == _BEGIN and status == SOLVED and not make_rows(tableau):
        return GAVE_UP
    return status


@compiled_inner
def make_rows(tableau: Tableau) -> bool:
    """Make rows and values from basis and bounds alone; False where the basis is singular.

    Gauss-Jordan elimination over the basic variables in order, however they came to be basic.
    """
    rows, basis, m, n = tableau.rows, tableau.basis, len(tableau.right), len(tableau.lower)
    found = 0
    for j in range(n):
        if tableau.at[j] == BASIC:
            basis[found] = j
            found += 1
    _fill_rows(tableau)
    for i in range(m):
        best, at = 0.0, i
        for r in range(i, m):
            if abs(rows[r, basis[i]]) > best:
                best, at = abs(rows[r, basis[i]]), r
        if best < _PIVOT:
            return False
        if at != i:
            for k in range(rows.shape[1]):
                rows[i, k], rows[at, k] = rows[at, k], rows[i, k]
        _eliminate(rows, i, basis[i])
    place(tableau)
    return True


@compiled_inner
def _fill_rows(tableau: Tableau) -> None:
    """The equations as they were given, and beside them the unit matrix where prices are wanted."""
    rows, n = tableau.rows, len(tableau.lower)
    for i in range(len(tableau.right)):
        for k in range(n):
            rows[i, k] = tableau.matrix[i, k]
        rows[i, n] = tableau.right[i]
        for k in range(n + 1, rows.shape[1]):
            rows[i, k] = 1.0 if k == n + 1 + i else 0.0


@compiled_inner
def _eliminate(rows: FloatArray, row: int, column: int) -> None:
    """Solve this row for this column and put it into all others."""
    m, n = rows.shape
    pivot = rows[row, column]
    for k in range(n):
        rows[row, k] /= pivot
    rows[row, column] = 1.0
    for i in range(m):
        factor = rows[i, column]
        if i != row and factor != 0.0:
            for k in range(n):
                rows[i, k] -= factor * rows[row, k]
            rows[i, column] = 0.0


@compiled_inner
def place(tableau: Tableau) -> None:
    """The values of all variables at the basis; to be called where bounds have changed."""
    rows, at, values, n = tableau.rows, tableau.at, tableau.values, len(tableau.lower)
    for j in range(n):
        if at[j] != BASIC:
            values[j] = tableau.lower[j] if at[j] == _AT_LOWER else tableau.upper[j]
    for i in range(len(tableau.basis)):
        value = rows[i, n]
        for j in range(n):
            if at[j] != BASIC and values[j] != 0.0:
                value -= rows[i, j] * values[j]
        values[tableau.basis[i]] = value


@compiled_inner
def lower_costs(tableau: Tableau, costs: FloatArray) -> int:
    """Go to a basis with the least costs.z, as `solve` says.

    The sum of what bounds are missed by is lowered first, then the costs (two phases of one loop). Of columns
    the one that improves most by a unit is taken, the first of equals; of rows that block, the largest pivot.
    """
    n, still = len(tableau.lower), 0
    largest = 0.0
    for j in range(n):
        largest = max(largest, abs(costs[j]))
    for _ in range(_STEPS * (len(tableau.basis) + n)):
        missing = _weigh(tableau, costs)
        tolerance = _IMPROVES * (1.0 if missing else max(largest, 1e-300))
        entering = _entering(tableau, costs, missing, tolerance, still > _STILL)
        if entering < 0:
            return EMPTY if missing else SOLVED
        moved = _move(tableau, entering)
        still = 0 if moved > 1e-13 else still + 1
    return GAVE_UP


@compiled_inner
def find_prices(tableau: Tableau, prices: FloatArray) -> None:
    """The prices of the rows where the steps ended: dual values; if EMPTY, what shows it, up to its sign."""
    m, first = len(tableau.basis), len(tableau.lower) + 1
    for k in range(m):
        total = 0.0
        for i in range(m):
            total += tableau.weights[i] * tableau.rows[i, first + k]
        prices[k] = total


@compiled_inner
def _weigh(tableau: Tableau, costs: FloatArray) -> bool:
    """The weights of the rows: by how their variables miss their bounds, else by costs; whether any does."""
    missing = False
    for i in range(len(tableau.basis)):
        j = tableau.basis[i]
        tableau.weights[i] = 0.0
        if tableau.values[j] < tableau.lower[j] - _FEASIBLE:
            tableau.weights[i], missing = -1.0, True
        elif tableau.values[j] > tableau.upper[j] + _FEASIBLE:
            tableau.weights[i], missing = 1.0, True
    if not missing:
        for i in range(len(tableau.basis)):
            tableau.weights[i] = costs[tableau.basis[i]]
    return missing


@compiled_inner
def _entering(tableau: Tableau, costs: FloatArray, missing: bool, tolerance: float, bland: bool) -> int:
    """The variable whose move off its bound improves most, or -1; the first that improves, to end a cycle."""
    best, entering = tolerance, -1
    for j in range(len(tableau.lower)):
        if tableau.at[j] == BASIC or tableau.upper[j] <= tableau.lower[j]:
            continue
        gain = 0.0 if missing else -costs[j]
        for i in range(len(tableau.basis)):
            gain += tableau.weights[i] * tableau.rows[i, j]
        if tableau.at[j] == _AT_UPPER:
            gain = -gain
        if gain > best:
            best, entering = gain, j
            if bland:
                break
    return entering


@compiled_inner
def _move(tableau: Tableau, entering: int) -> float:
    """Move this variable off its bound as far as the others allow; how far that was."""
    rows, basis, at, values = tableau.rows, tableau.basis, tableau.at, tableau.values
    sign = 1.0 if at[entering] == _AT_LOWER else -1.0
    step, leaving, to, pivot = tableau.upper[entering] - tableau.lower[entering], -1, _AT_LOWER, 0.0
    for i in range(len(basis)):
        rate, j = -sign * rows[i, entering], basis[i]
        if abs(rate) < _PIVOT:
            continue
        low, high = tableau.lower[j], tableau.upper[j]
        is_below, is_above = values[j] < low - _FEASIBLE, values[j] > high + _FEASIBLE
        if (rate > 0.0 and is_above) or (rate < 0.0 and is_below):
            continue  # it is missing its bound already, and the weights have counted that
        if rate > 0.0:
            end, side = (low, _AT_LOWER) if is_below else (high, _AT_UPPER)
        else:
            end, side = (high, _AT_UPPER) if is_above else (low, _AT_LOWER)
        room = max((end - values[j]) / rate, 0.0)
        if room < step - 1e-13 or (room <= step + 1e-13 and leaving >= 0 and abs(rate) > pivot):
            step, leaving, to, pivot = min(room, step), i, side, abs(rate)
    for i in range(len(basis)):
        values[basis[i]] -= sign * rows[i, entering] * step
    if leaving < 0:
        at[entering] = _AT_UPPER if at[entering] == _AT_LOWER else _AT_LOWER
        values[entering] = tableau.upper[entering] if sign > 0 else tableau.lower[entering]
        return float(step)
    values[entering] += sign * step
    out = basis[leaving]
    at[out] = to
    values[out] = tableau.lower[out] if to == _AT_LOWER else tableau.upper[out]
    _eliminate(rows, leaving, entering)
    basis[leaving] = entering
    at[entering] = BASIC
    return float(step)


@compiled_inner
def _choose_basis(tableau: Tableau) -> bool:
    """A basis by elimination, of variables with room where there are any; False where there is none."""
    rows, m, n = tableau.rows, len(tableau.right), len(tableau.lower)
    _fill_rows(tableau)
    for j in range(n):
        tableau.at[j] = _AT_LOWER
    for i in range(m):
        best, column = 0.0, -1
        for j in range(n):
            size = abs(rows[i, j])
            if tableau.at[j] != BASIC and tableau.upper[j] > tableau.lower[j] and size > best * (1.0 + 1e-9):
                best, column = size, j
        if best < _PIVOT:
            for j in range(n):  # a variable without room may be basic, too
                if tableau.at[j] != BASIC and abs(rows[i, j]) > best * (1.0 + 1e-9):
                    best, column = abs(rows[i, j]), j
        if best < _PIVOT:
            return False
        tableau.basis[i] = column
        tableau.at[column] = BASIC
        _eliminate(rows, i, column)
    return True
