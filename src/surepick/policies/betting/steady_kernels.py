"""Shares of cost where readings mix arms, compiled so that every machine comes to the same ones.

A log is replayed on another machine than it was written on. So nothing here, or in `steady_counts`, calls
BLAS or a library's powers and logarithms, whose last bits differ: sums are added in one order, nothing is
fused, and there are only + - * / and square roots, which every machine rounds alike. Passes run along
contiguous rows, so that they are vectorised all the same; vectors stand in columns, (rank, n), for that.

None of it bears on the guarantee. Formulas are those of `design.probe_allocation`, which is certified.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from surepick.core.arrays import BoolArray, FloatArray, IntArray
from surepick.kernels.compiled import compiled_allocating, compiled_inner

_CHUNK = 64  # columns that are solved together, so that they stay in the cache
_TRACE = 1e-9  # of the even design, which keeps the information regular
_IN_PLAY, _USEFUL = 1e-4, 0.9  # shares of the largest share, and use of the largest use, that stay in play
_BINDING, _CLOSE = 1e-4, 0.8  # the same for the weight and the value of targets
_ALWAYS = 64  # probes in play beyond twice the rank
_ENTERS = 5e-3  # of the largest share or weight: with what one that is useful comes into play


class Readings(NamedTuple):
    """The rows of all probes, and what they cost."""

    rows: FloatArray  # (n_readings, rank)
    owner: IntArray  # (n_readings,)
    costs: FloatArray  # (n_probes,)
    even: FloatArray  # (rank, rank) information of a unit of cost spread evenly


@compiled_inner
def add_scaled(scale: float, values: FloatArray, into: FloatArray) -> None:
    """into += scale values."""
    for a in range(len(into)):
        into[a] += scale * values[a]


@compiled_inner
def dot(first: FloatArray, second: FloatArray) -> float:
    """Their product in eight sums side by side, which is vectorised in one order."""
    s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = 0.0
    n = len(first)
    for a in range(0, n - n % 8, 8):
        s0 += first[a] * second[a]
        s1 += first[a + 1] * second[a + 1]
        s2 += first[a + 2] * second[a + 2]
        s3 += first[a + 3] * second[a + 3]
        s4 += first[a + 4] * second[a + 4]
        s5 += first[a + 5] * second[a + 5]
        s6 += first[a + 6] * second[a + 6]
        s7 += first[a + 7] * second[a + 7]
    total = ((s0 + s4) + (s2 + s6)) + ((s1 + s5) + (s3 + s7))
    for a in range(n - n % 8, n):
        total += first[a] * second[a]
    return total


@compiled_inner
def fill_with(value: float, into: FloatArray) -> None:
    """Have this number everywhere."""
    for a in range(len(into)):
        into[a] = value


@compiled_inner
def _add_information(rows: FloatArray, weight: FloatArray, some: IntArray, matrix: FloatArray) -> None:
    """matrix += sum over some i of weight_i x_i x_i'; four at a time, for the cache."""
    n, rank = len(some), rows.shape[1]
    for k in range(0, n - n % 4, 4):
        i0, i1, i2, i3 = some[k], some[k + 1], some[k + 2], some[k + 3]
        first, second, third, fourth = rows[i0], rows[i1], rows[i2], rows[i3]
        for a in range(rank):
            s0, s1 = weight[i0] * first[a], weight[i1] * second[a]
            s2, s3 = weight[i2] * third[a], weight[i3] * fourth[a]
            if s0 != 0.0 or s1 != 0.0 or s2 != 0.0 or s3 != 0.0:
                out = matrix[a]
                for b in range(a, rank):
                    out[b] = out[b] + s0 * first[b] + s1 * second[b] + s2 * third[b] + s3 * fourth[b]
    for k in range(n - n % 4, n):
        row = rows[some[k]]
        for a in range(rank):
            scaled = weight[some[k]] * row[a]
            if scaled != 0.0:
                for b in range(a, rank):
                    matrix[a, b] += scaled * row[b]
    for a in range(rank):
        for b in range(a):
            matrix[a, b] = matrix[b, a]


@compiled_inner
def factor(matrix: FloatArray, upper: FloatArray) -> bool:
    """U with U'U = matrix, above its diagonal; the matrix is used up. False where there is none."""
    rank = len(matrix)
    for c in range(rank):
        if not matrix[c, c] > 0.0:
            return False
        root = math.sqrt(matrix[c, c])
        for b in range(c, rank):
            upper[c, b] = matrix[c, b] / root
        for a in range(c + 1, rank):
            if upper[c, a] != 0.0:
                add_scaled(-upper[c, a], upper[c, a:], matrix[a, a:])
    return True


@compiled_inner
def solve_down(upper: FloatArray, columns: FloatArray) -> None:
    """columns = U'^-1 columns."""
    rank = len(upper)
    for c in range(rank):
        own = columns[c]
        for k in range(len(own)):
            own[k] /= upper[c, c]
        for a in range(c + 1, rank):
            if upper[c, a] != 0.0:
                add_scaled(-upper[c, a], own, columns[a])


@compiled_inner
def solve_up(upper: FloatArray, columns: FloatArray) -> None:
    """columns = U^-1 columns."""
    rank = len(upper)
    for c in range(rank - 1, -1, -1):
        own = columns[c]
        for k in range(len(own)):
            own[k] /= upper[c, c]
        for a in range(c):
            if upper[a, c] != 0.0:
                add_scaled(-upper[a, c], own, columns[a])


@compiled_inner
def add_squares(columns: FloatArray, out: FloatArray) -> None:
    """The square of the length of each column."""
    fill_with(0.0, out)
    for c in range(len(columns)):
        own = columns[c]
        for k in range(len(out)):
            out[k] += own[k] * own[k]


@compiled_inner
def best_buy(worth: FloatArray, costs: FloatArray) -> int:
    """The first probe with the most worth for its cost; -1 where none is worth anything."""
    probe, most = -1, 0.0
    for o in range(len(costs)):
        if worth[o] / costs[o] > most:
            probe, most = o, worth[o] / costs[o]
    return probe


@compiled_allocating
def _places(marks: FloatArray | BoolArray) -> IntArray:
    """Where something is; Numba's `flatnonzero` takes long to compile."""
    found, n = np.empty(len(marks), dtype=np.int64), 0
    for k in range(len(marks)):
        if marks[k]:
            found[n] = k
            n += 1
    return found[:n]


@compiled_allocating
def _readings_of(marks: FloatArray | BoolArray, owner: IntArray) -> IntArray:
    """Where something is, of the readings of these owners."""
    found, n = np.empty(len(owner), dtype=np.int64), 0
    for i in range(len(owner)):
        if marks[owner[i]]:
            found[n] = i
            n += 1
    return found[:n]


@compiled_allocating
def information(rows: FloatArray, weight: FloatArray) -> FloatArray:
    """sum_i weight_i x_i x_i'."""
    matrix = np.zeros((rows.shape[1], rows.shape[1]))
    _add_information(rows, weight, _places(weight), matrix)
    return matrix


@compiled_allocating
def together(rows: FloatArray, sums: FloatArray) -> FloatArray:
    """sum_i sums_i x_i."""
    total = np.zeros(rows.shape[1])
    for i in range(len(rows)):
        if sums[i] != 0.0:
            add_scaled(sums[i], rows[i], total)
    return total


@compiled_inner
def _factor_regular(matrix: FloatArray, even: FloatArray, regular: FloatArray, upper: FloatArray) -> bool:
    """Factor the matrix with a trace of the even one, which makes it regular from the first block on."""
    own, of_even = 0.0, 0.0
    for a in range(len(matrix)):
        own += matrix[a, a]
        of_even += even[a, a]
    share = _TRACE * own / max(of_even, 1e-300) + 1e-30
    for a in range(len(matrix)):
        for b in range(len(matrix)):
            regular[a, b] = matrix[a, b] + share * even[a, b]
    return bool(factor(regular, upper))


@compiled_allocating
def solved(matrix: FloatArray, even: FloatArray, vector: FloatArray) -> FloatArray:
    """matrix^-1 vector, the matrix made regular; nan where that failed."""
    upper, column = np.zeros(matrix.shape), vector.copy().reshape(-1, 1)
    if not _factor_regular(matrix, even, np.empty(matrix.shape), upper):
        return np.full(len(vector), np.nan)
    solve_down(upper, column)
    solve_up(upper, column)
    return column[:, 0].copy()


@compiled_allocating
def spreads(matrix: FloatArray, even: FloatArray, away: FloatArray) -> FloatArray:
    """y' matrix^-1 y of each row y, the matrix made regular; nan where that failed."""
    (n, rank), upper, out = away.shape, np.zeros(matrix.shape), np.full(len(away), np.nan)
    if not _factor_regular(matrix, even, np.empty(matrix.shape), upper):
        return out
    columns = np.empty((rank, _CHUNK))
    for low in range(0, n, _CHUNK):
        size = min(_CHUNK, n - low)
        for k in range(size):
            for a in range(rank):
                columns[a, k] = away[low + k, a]
        solve_down(upper, columns[:, :size])
        add_squares(columns[:, :size], out[low : low + size])
    return out


class _Known(NamedTuple):
    """Scratch of a division, and what is known under the shares of this step."""

    matrix: FloatArray  # (rank, rank)
    upper: FloatArray  # (rank, rank) its factor
    columns: FloatArray  # (rank, n) M^-1 z_j sqrt(dual_j) of the targets that bind, the first ones
    value: FloatArray  # (n,) z_j' M^-1 z_j
    weight: FloatArray  # (n_readings,)
    uses: FloatArray  # (n_probes,) what a unit of cost on each probe does
    parts: FloatArray  # (4, max(n, rank))


@compiled_inner
def _factor_shares(readings: Readings, shares: FloatArray, some: IntArray, known: _Known) -> bool:
    """Factor the information of these shares of cost, which are those of some readings."""
    owner, weight = readings.owner, known.weight
    for i in some:
        weight[i] = shares[owner[i]] / readings.costs[owner[i]]
    for a in range(len(known.matrix)):
        for b in range(len(known.matrix)):
            known.matrix[a, b] = _TRACE * readings.even[a, b]
    _add_information(readings.rows, weight, some, known.matrix)
    return bool(factor(known.matrix, known.upper))


@compiled_inner
def _set_values(targets: FloatArray, some: IntArray, known: _Known) -> None:
    """value_j of some targets; their columns, U'^-1 z_j, stand side by side afterwards."""
    for low in range(0, len(some), _CHUNK):
        high = min(low + _CHUNK, len(some))
        columns = known.columns[:, low:high]
        for k in range(high - low):
            for a in range(len(targets)):
                columns[a, k] = targets[a, some[low + k]]
        solve_down(known.upper, columns)
    squares = known.parts[0, : len(some)]
    add_squares(known.columns[:, : len(some)], squares)
    for k in range(len(some)):
        known.value[some[k]] = squares[k]


@compiled_inner
def _set_uses(readings: Readings, some: IntArray, dual: FloatArray, rows: IntArray, known: _Known) -> float:
    """uses_o = (1/c_o) sum over its readings of sum_j dual_j (x.M^-1 z_j)^2, by these readings; the largest.

    From the columns that `_set_values` has left for these targets.
    """
    n = 0
    for k in range(len(some)):  # those without weight are left out
        if dual[some[k]] > 0.0:
            root = math.sqrt(dual[some[k]])
            for a in range(len(known.columns)):
                known.columns[a, n] = root * known.columns[a, k]
            n += 1
    columns = known.columns[:, :n]
    for low in range(0, n, _CHUNK):
        solve_up(known.upper, columns[:, low : min(low + _CHUNK, n)])
    by_targets = n <= len(known.matrix)
    if not by_targets:
        _add_outer(columns, known.matrix)
    fill_with(0.0, known.uses)
    for k in range(0, len(rows), 4):
        size = min(4, len(rows) - k)
        _add_projected(
            readings, columns if by_targets else known.matrix, by_targets, rows[k : k + size], known
        )
    most = 0.0
    for o in range(len(known.uses)):
        known.uses[o] = max(known.uses[o], 0.0) / readings.costs[o]  # x'Tx may come out as -1e-19
        most = max(most, known.uses[o])
    return most


@compiled_inner
def _add_outer(columns: FloatArray, matrix: FloatArray) -> None:
    """matrix = columns columns'."""
    for a in range(len(matrix)):
        for b in range(a, len(matrix)):
            matrix[a, b] = matrix[b, a] = dot(columns[a], columns[b])


@compiled_inner
def _add_projected(
    readings: Readings, columns: FloatArray, squared: bool, four: IntArray, known: _Known
) -> None:
    """uses += |columns' x|^2 of up to four readings; or x' columns x, where they are squares already."""
    n, owner = columns.shape[1], readings.owner
    p0, p1, p2, p3 = known.parts[0, :n], known.parts[1, :n], known.parts[2, :n], known.parts[3, :n]
    for r in range(4):
        fill_with(0.0, known.parts[r, :n])
    last = len(four) - 1  # a place that is not taken repeats the last, and is not counted
    x0, x1 = readings.rows[four[0]], readings.rows[four[min(1, last)]]
    x2, x3 = readings.rows[four[min(2, last)]], readings.rows[four[min(3, last)]]
    for a in range(len(columns)):
        s0, s1, s2, s3, own = x0[a], x1[a], x2[a], x3[a], columns[a]
        if s0 != 0.0 or s1 != 0.0 or s2 != 0.0 or s3 != 0.0:
            for j in range(n):
                p0[j] += s0 * own[j]
                p1[j] += s1 * own[j]
                p2[j] += s2 * own[j]
                p3[j] += s3 * own[j]
    for r in range(len(four)):
        part = known.parts[r, :n]
        known.uses[owner[four[r]]] += dot(part, part if squared else readings.rows[four[r]])


@compiled_inner
def _keep(weights: FloatArray, worth: FloatArray, least: tuple[float, float], kept: BoolArray) -> None:
    """Keep what has this share of the largest weight or worth; what is new enters with a little."""
    largest, most = 0.0, 0.0
    for k in range(len(weights)):
        largest, most = max(largest, weights[k]), max(most, worth[k])
    for k in range(len(weights)):
        useful = worth[k] > least[1] * most
        kept[k] = useful or weights[k] > least[0] * largest
        weights[k] = max(weights[k], _ENTERS * largest if useful else 0.0) if kept[k] else 0.0


@compiled_inner
def _drop_small(weights: FloatArray, in_order: FloatArray, most: int, kept: BoolArray) -> None:
    """Keep this many, the largest: an optimal design seldom needs more, and each of them costs time."""
    if len(weights) > most:
        least = in_order[len(weights) - most]
        for k in range(len(weights)):
            if weights[k] < least:
                kept[k], weights[k] = False, 0.0


@compiled_inner
def _normalise(weights: FloatArray) -> None:
    total = 0.0
    for k in range(len(weights)):
        total += weights[k]
    for k in range(len(weights)):
        weights[k] /= total


@compiled_inner
def _step(shares: FloatArray, dual: FloatArray, phi: float, known: _Known) -> None:
    """Multiply shares by their uses relative to phi, to the power 3/4, and weights by their values."""
    for o in range(len(shares)):
        if shares[o] > 0.0:
            root = math.sqrt(known.uses[o] / phi)
            shares[o] *= root * math.sqrt(root)
    for j in range(len(dual)):
        if dual[j] > 0.0:
            dual[j] *= known.value[j] / phi
    _normalise(shares)
    _normalise(dual)


@compiled_inner
def _largest(values: FloatArray) -> float:
    most = values[0]
    for j in range(len(values)):
        most = max(most, values[j])
    return float(most)


@compiled_inner
def _weighted(dual: FloatArray, value: FloatArray) -> float:
    total = 0.0
    for j in range(len(dual)):
        if dual[j] > 0.0:
            total += dual[j] * value[j]
    return total


@compiled_allocating
def divide(
    probes: tuple[
        FloatArray, IntArray, FloatArray, FloatArray
    ],  # what `Readings` has: plain tuples are quick
    targets: FloatArray,  # (rank, n)
    shares: FloatArray,  # (n_probes,) in: start, out: what was found; sums to 1
    dual: FloatArray,  # (n,) the same for the targets
    effort: tuple[float, int, int],  # tolerance, the most steps, and after how many all probes are looked at
) -> None:
    """Shares of cost that nearly minimise the largest z' M^-1 z."""
    readings = Readings(probes[0], probes[1], probes[2], probes[3])
    (rank, n), n_probes = targets.shape, len(shares)
    tolerance, steps, look = effort
    known = _Known(
        np.empty((rank, rank)),
        np.zeros((rank, rank)),
        np.empty((rank, n)),
        np.zeros(n),
        np.empty(len(readings.rows)),
        np.empty(n_probes),
        np.empty((4, max(n, rank))),
    )
    playing, binding = np.ones(n_probes, dtype=np.bool_), np.ones(n, dtype=np.bool_)
    for step in range(steps):
        full = step % look == 0
        if full:
            playing[:], binding[:] = True, True
        if not _factor_shares(readings, shares, _readings_of(shares, readings.owner), known):
            break
        some = _places(binding)
        _set_values(targets, some, known)
        most = _set_uses(readings, some, dual, _readings_of(playing, readings.owner), known)
        phi = _weighted(dual, known.value)
        if not (phi > 0.0 and most > 0.0):
            break
        if full:
            if _largest(known.value) * most <= (1.0 + tolerance) * phi * phi:
                break
            _keep(dual, known.value, (_BINDING, _CLOSE), binding)
            _keep(shares, known.uses, (_IN_PLAY, _USEFUL), playing)
            _drop_small(shares, np.sort(shares), 2 * rank + _ALWAYS, playing)
            _normalise(dual)
        _step(shares, dual, phi, known)
