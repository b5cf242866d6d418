"""Covers, whole counts and bases where readings mix arms: the same on every machine, see `steady_kernels`.

None of it bears on the guarantee.
"""

from __future__ import annotations

import math

import numpy as np

from surepick.core.arrays import BoolArray, FloatArray, IntArray
from surepick.kernels.compiled import compiled_allocating, compiled_inner
from surepick.policies.betting.steady_kernels import (
    add_scaled,
    add_squares,
    best_buy,
    dot,
    factor,
    fill_with,
    solve_down,
    solve_up,
)

_SPANNED = 1e-7  # of its length: what is left of a row or a difference that counts as spanned
_NEEDED = 1e-7  # of the largest weight: a probe with less is left out
_MANY = 16  # sums with mixed signs beyond the rank, in place of many differences


@compiled_inner
def _take_out(vectors: FloatArray, unit: FloatArray, along: FloatArray) -> None:
    """Remove from each column its part along a unit vector."""
    fill_with(0.0, along)
    for a in range(len(unit)):
        if unit[a] != 0.0:
            add_scaled(unit[a], vectors[a], along)
    for a in range(len(unit)):
        if unit[a] != 0.0:
            add_scaled(-unit[a], along, vectors[a])


@compiled_inner
def _divide_by(size: float, values: FloatArray) -> None:
    for a in range(len(values)):
        values[a] /= size


@compiled_allocating
def orthonormal(vectors: FloatArray, least: float) -> FloatArray:
    """A basis (rank, n_arms) of what the columns (n_arms, n) span, the longest rest first; they are used up.

    What is shorter than `least` is taken as rounding.
    """
    d, n = vectors.shape
    basis, size, along = np.empty((d, d)), np.empty(n), np.empty(n)
    for r in range(d):
        add_squares(vectors, size)
        which = 0
        for k in range(n):
            if size[k] > size[which]:
                which = k
        if not size[which] > least * least:
            return basis[:r].copy()
        own = basis[r]
        for a in range(d):
            own[a] = vectors[a, which]
        _divide_by(math.sqrt(size[which]), own)
        for q in range(r):
            add_scaled(-dot(basis[q], own), basis[q], own)
        _divide_by(math.sqrt(dot(own, own)), own)
        _take_out(vectors, own, along)
    return basis


@compiled_allocating
def _mixed_signs(away: FloatArray, n: int) -> FloatArray:
    """n sums of the rows (m, rank) with signs that look random, as columns: they span what the rows span."""
    m, rank = away.shape
    sums = np.zeros((n, rank))
    for k in range(n):
        z = np.uint64(88172645463325252 + 2 * k)
        for j in range(m):
            z ^= z << np.uint64(13)
            z ^= z >> np.uint64(7)
            z ^= z << np.uint64(17)
            add_scaled(1.0 if z & np.uint64(1024) else -1.0, away[j], sums[k])
    return sums.T.copy()


@compiled_allocating
def _above(level: float, shares: FloatArray, owner: IntArray) -> IntArray:
    """Readings of probes whose share is above this level of the largest."""
    most, some, n = shares[0], np.empty(len(owner), dtype=np.int64), 0
    for o in range(len(shares)):
        most = max(most, shares[o])
    for i in range(len(owner)):
        if shares[owner[i]] > level * most:
            some[n] = i
            n += 1
    return some[:n]


@compiled_allocating
def find_cover(
    probes: tuple[FloatArray, IntArray, FloatArray, FloatArray],  # rows, owners, costs, shares
    away: FloatArray,  # (m, rank) what is to be shown
    levels: tuple[float, float, float],  # of the largest share: probes that are looked at, more each time
) -> BoolArray:
    """Probes whose readings span the differences, those with large shares first."""
    rows, owner, costs, shares = probes
    rank, many, chosen = rows.shape[1], 2 * (rows.shape[1] + _MANY), np.zeros(len(shares), dtype=np.bool_)
    left = _mixed_signs(away, rank + _MANY) if len(away) > many else away.T.copy()
    largest = 1e-300
    for a in range(rank):
        for j in range(left.shape[1]):
            largest = max(largest, abs(left[a, j]))
    for a in range(rank):
        _divide_by(largest, left[a])
    for level in levels:
        chosen[:] = False
        some = _above(level, shares, owner)
        welcome = np.empty((rank, len(some)))
        for k in range(len(some)):
            probe = owner[some[k]]
            scale = math.sqrt((shares[probe] + 1e-12) / costs[probe])
            for a in range(rank):
                welcome[a, k] = scale * rows[some[k], a]
        if _span(welcome, owner[some], left.copy(), chosen):
            break
    return chosen


@compiled_allocating
def _span(
    rows: FloatArray,  # (rank, n_readings), weighted by how welcome they are; changed
    owner: IntArray,
    left: FloatArray,  # (rank, n) what is to be spanned, about 1 in size; changed
    chosen: BoolArray,  # (n_probes,) out: True for the probes taken
) -> bool:
    """Take probes by the longest rest until the targets are spanned, without those that no target needs.

    Whether the targets are spanned.
    """
    (rank, n), m, spanned = rows.shape, left.shape[1], _SPANNED
    start, size, rest = np.empty(n), np.empty(n), np.empty(m)
    add_squares(rows, start)
    of_rows, of_left = np.zeros((rank, n)), np.zeros((rank, m))  # parts along each unit
    taken, unit, k = np.empty(rank, dtype=np.int64), np.empty(rank), 0
    while True:
        add_squares(left, rest)
        longest = 0.0
        for j in range(m):
            longest = max(longest, rest[j])
        if longest <= spanned * spanned:
            break
        add_squares(rows, size)
        which = -1
        for i in range(n):
            if size[i] > spanned * spanned * start[i] and (which < 0 or size[i] > size[which]):
                which = i
        if which < 0 or k == rank:
            return False
        chosen[owner[which]] = True
        for i in range(n):
            if owner[i] == owner[which] and k < rank:
                length = 0.0
                for a in range(rank):
                    length += rows[a, i] * rows[a, i]
                length = math.sqrt(length)
                if length > spanned * math.sqrt(start[i]):
                    for a in range(rank):
                        unit[a] = rows[a, i] / length
                    _take_out(rows, unit, of_rows[k])
                    _take_out(left, unit, of_left[k])
                    taken[k] = i
                    k += 1
    _leave_out(of_rows, of_left, taken[:k], owner, chosen)
    return True


@compiled_inner
def _leave_out(
    of_rows: FloatArray, of_left: FloatArray, taken: IntArray, owner: IntArray, chosen: BoolArray
) -> None:
    """Of the probes chosen, drop those whose readings no target has a weight on, to speak of."""
    k, m = len(taken), of_left.shape[1]
    for r in range(k - 1, -1, -1):  # the weights, from the triangle of the rows that were taken
        own = of_left[r]
        for j in range(m):
            own[j] /= of_rows[r, taken[r]]
        for q in range(r):
            add_scaled(-of_rows[q, taken[r]], own, of_left[q])
    most = 0.0
    for r in range(k):
        for j in range(m):
            most = max(most, abs(of_left[r, j]))
    for r in range(k):
        chosen[owner[taken[r]]] = False
    for r in range(k):
        for j in range(m):
            if abs(of_left[r, j]) > _NEEDED * most:
                chosen[owner[taken[r]]] = True
                break


@compiled_allocating
def fill_counts(
    probes: tuple[FloatArray, IntArray, FloatArray, FloatArray],  # readings worth looking at; see below
    targets: FloatArray,  # (rank, n_targets)
    counts: FloatArray,  # (n_probes,) changed
    budget: float,
) -> None:
    """Add uses one by one where the targets gain most for their cost, until the budget is spent.

    `probes` are rows, owners, costs, and the information so far, which is used up.
    """
    rows, owner, costs, matrix = probes
    (n, rank), m = rows.shape, targets.shape[1]
    upper, inverse = np.zeros((rank, rank)), np.eye(rank)
    if not factor(matrix, upper):
        return
    solve_down(upper, inverse)
    solve_up(upper, inverse)
    across = rows.T.copy()  # (rank, n)
    through, gain, ahead = np.zeros((rank, n)), np.zeros((m, n)), np.ones(n)
    for a in range(rank):
        for b in range(rank):
            add_scaled(inverse[a, b], across[b], through[a])
        for k in range(n):
            ahead[k] += through[a, k] * across[a, k]
    for j in range(m):
        for a in range(rank):
            if targets[a, j] != 0.0:
                add_scaled(targets[a, j], through[a], gain[j])
    worth, each, step, own, row = np.empty(len(costs)), np.empty(n), np.empty(n), np.empty(m), np.empty(rank)
    spent = 0.0
    for o in range(len(costs)):
        spent += counts[o] * costs[o]
    while spent < budget * (1.0 - 1e-9):
        add_squares(gain, each)
        fill_with(0.0, worth)
        for k in range(n):
            worth[owner[k]] += each[k] / ahead[k]
        probe = best_buy(worth, costs)
        if probe < 0:
            break
        counts[probe] += 1.0
        spent += costs[probe]
        for i in range(n):
            if owner[i] == probe:
                for a in range(rank):
                    row[a] = through[a, i]
                for j in range(m):
                    own[j] = gain[j, i]
                scale = ahead[i]
                fill_with(0.0, step)
                for a in range(rank):
                    add_scaled(row[a], across[a], step)
                for k in range(n):
                    step[k] /= scale
                    ahead[k] -= step[k] * step[k] * scale
                for a in range(rank):
                    add_scaled(-row[a], step, through[a])
                for j in range(m):
                    add_scaled(-own[j], step, gain[j])


@compiled_allocating
def in_basis(vectors: FloatArray, basis: FloatArray) -> FloatArray:
    """vectors @ basis.T."""
    across, out = basis.T.copy(), np.zeros((len(vectors), len(basis)))
    for j in range(len(vectors)):
        for s in range(len(across)):
            if vectors[j, s] != 0.0:
                add_scaled(vectors[j, s], across[s], out[j])
    return out
