"""The loops of blocks whose readings mix arms, compiled: shares of cost, a cover, whole counts.

None of it bears on the guarantee: a rough division costs measurements, never correctness. Formulas are those
of `design.probe_allocation`, which is certified; here every step counts and a few percent do not.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from surepick.core.arrays import BoolArray, FloatArray, IntArray
from surepick.kernels.compiled import compiled_allocating, compiled_inner, compiled_inner_fast
from surepick.policies.betting.steady_kernels import best_buy

_LOOK = 10  # steps between looks at all probes and all targets
_TRACE = 1e-9  # of the even design, which keeps the information regular
_IN_PLAY, _USEFUL = 1e-5, 0.9  # shares of the largest share, and use of the largest use, that stay in play
_BINDING, _CLOSE = 1e-7, 0.8  # the same for the weight and the value of targets
_OF_SHARES = 0.8  # power of the multiplicative step; that of the targets is 1


class Readings(NamedTuple):
    """The rows of all probes, and what they cost."""

    rows: FloatArray  # (n_readings, rank)
    owner: IntArray  # (n_readings,)
    costs: FloatArray  # (n_probes,)
    even: FloatArray  # (rank, rank) information of a unit of cost spread evenly


class Values(NamedTuple):
    """What is known of the targets z_j under the shares of this step."""

    solved: FloatArray  # (n, rank) M^-1 z_j
    value: FloatArray  # (n,) z_j' M^-1 z_j


class Work(NamedTuple):
    """Scratch of a step, and what a unit of cost on each probe does."""

    weight: FloatArray  # (n_readings,)
    uses: FloatArray  # (n_probes,)
    matrix: FloatArray  # (rank, rank)


@compiled_inner_fast
def add_information(rows: FloatArray, weight: FloatArray, matrix: FloatArray) -> None:
    """matrix += sum_i weight_i x_i x_i'."""
    n, rank = rows.shape
    for i in range(n):
        if weight[i] > 0.0:
            for a in range(rank):
                scaled = weight[i] * rows[i, a]
                for b in range(rank):
                    matrix[a, b] += scaled * rows[i, b]


@compiled_inner_fast
def _dot(first: FloatArray, second: FloatArray) -> float:
    total = 0.0
    for a in range(len(first)):
        total += first[a] * second[a]
    return total


@compiled_inner
def _copy(values: FloatArray, into: FloatArray) -> None:
    """Copy a vector; an assignment of slices takes a second to compile."""
    for a in range(len(values)):
        into[a] = values[a]


@compiled_inner
def _largest(values: FloatArray) -> float:
    """The largest of these, which are not negative."""
    most = 0.0
    for value in values:
        most = max(most, value)
    return most


@compiled_inner_fast
def _apply(matrix: FloatArray, vector: FloatArray, out: FloatArray) -> None:
    """out = matrix @ vector, for a symmetric matrix."""
    out[:] = 0.0
    for a in range(len(vector)):
        scaled = vector[a]
        for b in range(len(vector)):
            out[b] += scaled * matrix[a, b]


@compiled_inner
def invert(matrix: FloatArray, inverse: FloatArray, factor: FloatArray) -> bool:
    """The inverse of a positive definite matrix by its Cholesky factor; False where it has none."""
    rank = len(matrix)
    for a in range(rank):
        for b in range(a + 1):
            total = matrix[a, b] - _dot(factor[a, :b], factor[b, :b])
            if a == b:
                if not total > 0.0:
                    return False
                factor[a, a] = math.sqrt(total)
            else:
                factor[a, b] = total / factor[b, b]
    # the factor's inverse, by rows of its transpose; then its product with itself
    for a in range(rank):
        for b in range(rank):
            inverse[a, b] = 0.0
    for c in range(rank):
        inverse[c, c] = 1.0 / factor[c, c]
        for a in range(c + 1, rank):
            inverse[c, a] = -_dot(factor[a, c:a], inverse[c, c:a]) / factor[a, a]
    for a in range(rank):
        for b in range(a + 1):
            matrix[a, b] = _dot(inverse[a, a:], inverse[b, a:])
            matrix[b, a] = matrix[a, b]
    for a in range(rank):
        for b in range(rank):
            inverse[a, b] = matrix[a, b]
    return True


@compiled_inner_fast
def _add_uses(
    rows: FloatArray, solved: FloatArray, dual: FloatArray, through: FloatArray, weight: FloatArray
) -> None:
    """weight_i = sum_j dual_j (x_i.solved_j)^2 where it is not negative, by the matrix of the targets."""
    rank = rows.shape[1]
    through[:, :] = 0.0
    for j in range(len(dual)):
        if dual[j] > 0.0:
            for a in range(rank):
                scaled = dual[j] * solved[j, a]
                for b in range(rank):
                    through[a, b] += scaled * solved[j, b]
    for i in range(len(rows)):
        if weight[i] >= 0.0:
            total = 0.0
            for a in range(rank):
                part = 0.0
                for b in range(rank):
                    part += through[a, b] * rows[i, b]
                total += part * rows[i, a]
            weight[i] = max(total, 0.0)


@compiled_inner
def _set_values(
    targets: FloatArray, inverse: FloatArray, dual: FloatArray, looked_at: BoolArray, known: Values
) -> tuple[float, float]:
    """solved_j = M^-1 z_j and value_j = z_j' M^-1 z_j where looked at; returns phi and the largest value."""
    phi, worst = 0.0, 0.0
    for j in range(len(targets)):
        if looked_at[j]:
            _apply(inverse, targets[j], known.solved[j])
            known.value[j] = _dot(targets[j], known.solved[j])
            phi += dual[j] * known.value[j]
            worst = max(worst, known.value[j])
    return phi, worst


@compiled_inner
def _set_uses(
    readings: Readings, solved: FloatArray, dual: FloatArray, looked_at: BoolArray, work: Work
) -> float:
    """uses_o = (1/c_o) sum over its readings of sum_j dual_j (x.solved_j)^2 where looked at; the largest."""
    owner, weight, uses = readings.owner, work.weight, work.uses
    for i in range(len(owner)):
        weight[i] = 0.0 if looked_at[owner[i]] else -1.0
    _add_uses(readings.rows, solved, dual, work.matrix, weight)
    uses[:] = 0.0
    for i in range(len(owner)):
        uses[owner[i]] += max(weight[i], 0.0)
    most = 0.0
    for o in range(len(uses)):
        uses[o] /= readings.costs[o]
        most = max(most, uses[o])
    return most


@compiled_inner
def _keep(weights: FloatArray, worth: FloatArray, least: tuple[float, float], kept: BoolArray) -> None:
    """Keep what has a weight or a worth of at least these, with at least that weight; the rest has none."""
    weight, value = least
    for k in range(len(weights)):
        kept[k] = weights[k] > weight or worth[k] > value
        weights[k] = max(weights[k], weight) if kept[k] else 0.0


@compiled_inner
def _step(shares: FloatArray, uses: FloatArray, playing: BoolArray, phi: float) -> None:
    """Multiply the shares in play by their uses relative to phi, to a power; they sum to 1."""
    total = 0.0
    for o in range(len(shares)):
        if playing[o]:
            shares[o] *= (uses[o] / phi) ** _OF_SHARES
        total += shares[o]
    for o in range(len(shares)):
        shares[o] /= total


@compiled_inner
def _step_dual(dual: FloatArray, value: FloatArray, binding: BoolArray, phi: float) -> None:
    """The same for the weights of the targets, by their values; the others have none."""
    total = 0.0
    for j in range(len(dual)):
        dual[j] *= value[j] / phi if binding[j] else 0.0
        total += dual[j]
    for j in range(len(dual)):
        dual[j] /= total


@compiled_allocating
def divide_probes(
    readings: Readings,
    targets: FloatArray,  # (n, rank)
    shares: FloatArray,  # (n_probes,) in: start, out: the best found; sums to 1
    dual: FloatArray,  # (n,) the same for the targets
    effort: tuple[float, int],  # tolerance and the most steps
) -> float:
    """Shares of cost that nearly minimise the largest z' M^-1 z, and that value."""
    rows, owner, costs = readings.rows, readings.owner, readings.costs
    (tolerance, steps), (n, rank) = effort, targets.shape
    work = Work(np.empty(len(rows)), np.empty(len(costs)), np.empty((rank, rank)))
    known = Values(np.empty((n, rank)), np.zeros(n))
    inverse, factor = np.empty((rank, rank)), np.zeros((rank, rank))
    playing, binding = np.zeros(len(costs), dtype=np.bool_), np.zeros(n, dtype=np.bool_)
    best, best_dual, upper, lower = np.empty(len(costs)), np.empty(n), np.inf, 0.0
    _copy(shares, best)
    _copy(dual, best_dual)
    for step in range(steps):
        full = step % _LOOK == 0 or step == steps - 1
        if full:
            playing[:], binding[:] = True, True
        for i in range(len(rows)):
            work.weight[i] = shares[owner[i]] / costs[owner[i]]
        for a in range(rank):
            for b in range(rank):
                work.matrix[a, b] = _TRACE * readings.even[a, b]
        add_information(rows, work.weight, work.matrix)
        if not invert(work.matrix, inverse, factor):
            break
        phi, worst = _set_values(targets, inverse, dual, binding, known)
        most = _set_uses(readings, known.solved, dual, playing, work)
        if full:
            lower = max(lower, phi * phi / most)
            if worst < upper:
                upper = worst
                _copy(shares, best)
                _copy(dual, best_dual)
            if upper <= (1.0 + tolerance) * lower:
                break
            _keep(dual, known.value, (_BINDING * _largest(dual), _CLOSE * worst), binding)
            _keep(shares, work.uses, (_IN_PLAY * _largest(shares), _USEFUL * most), playing)
        _step_dual(dual, known.value, binding, phi)
        _step(shares, work.uses, playing, phi)
    _copy(best, shares)
    _copy(best_dual, dual)
    return upper


@compiled_inner_fast
def _take_out(vectors: FloatArray, unit: FloatArray) -> None:
    """Remove from each row its part along a unit vector."""
    for i in range(len(vectors)):
        along = 0.0
        for a in range(len(unit)):
            along += vectors[i, a] * unit[a]
        for a in range(len(unit)):
            vectors[i, a] -= along * unit[a]


@compiled_allocating
def span_targets(
    rows: FloatArray,  # (n_readings, rank), weighted by how welcome they are; changed
    owner: IntArray,
    left: FloatArray,  # (n, rank) what is to be spanned, about 1 in size; changed
    chosen: BoolArray,  # (n_probes,) out: True for the probes taken
    spanned: float,  # of its length: what is left of a vector that counts as spanned
) -> bool:
    """Take probes by the longest row that is left until the targets are spanned; whether they are."""
    rank = rows.shape[1]
    start = np.empty(len(rows))
    for i in range(len(rows)):
        start[i] = _dot(rows[i], rows[i])
    unit = np.empty(rank)
    for _ in range(rank + 1):
        most = 0.0
        for j in range(len(left)):
            most = max(most, _dot(left[j], left[j]))
        if most <= spanned * spanned:
            return True
        longest, which = 0.0, -1
        for i in range(len(rows)):
            size = _dot(rows[i], rows[i])
            if size > longest and size > spanned * spanned * start[i]:
                longest, which = size, i
        if which < 0:
            return False
        probe = owner[which]
        chosen[probe] = True
        for i in range(len(rows)):
            if owner[i] == probe:
                length = math.sqrt(_dot(rows[i], rows[i]))
                if length > spanned * math.sqrt(start[i]):
                    for a in range(rank):
                        unit[a] = rows[i, a] / length
                    for _ in range(2):
                        _take_out(rows, unit)
                        _take_out(left, unit)
    return False


@compiled_inner_fast
def _worth(gain: FloatArray, ahead: FloatArray, owner: IntArray, worth: FloatArray) -> None:
    worth[:] = 0.0
    for i in range(len(ahead)):
        total = 0.0
        for j in range(gain.shape[1]):
            total += gain[i, j] * gain[i, j]
        worth[owner[i]] += total / ahead[i]


@compiled_allocating
def fill_counts(
    readings: Readings,  # those worth looking at; `even` is the inverse of the information so far
    targets: FloatArray,  # (n_targets, rank)
    counts: FloatArray,  # (n_probes,) changed
    budget: float,
) -> None:
    """Add uses one by one where the targets gain most for their cost, until the budget is spent."""
    rows, owner, costs, inverse = readings
    n, rank = rows.shape
    through, gain = np.empty((n, rank)), np.empty((n, len(targets)))
    for i in range(n):
        _apply(inverse, rows[i], through[i])
        for j in range(len(targets)):
            gain[i, j] = _dot(through[i], targets[j])
    ahead, worth, step = np.empty(n), np.empty(len(costs)), np.empty(n)
    row, own = np.empty(rank), np.empty(gain.shape[1])
    for i in range(n):
        ahead[i] = 1.0 + _dot(through[i], rows[i])
    spent = 0.0
    for o in range(len(costs)):
        spent += counts[o] * costs[o]
    while spent < budget * (1.0 - 1e-9):
        _worth(gain, ahead, owner, worth)
        probe = best_buy(worth, costs)
        if probe < 0:
            break
        counts[probe] += 1.0
        spent += costs[probe]
        for i in range(n):
            if owner[i] == probe:
                scale = ahead[i]
                _copy(through[i], row)
                _copy(gain[i], own)
                for k in range(n):
                    step[k] = _dot(rows[k], row) / scale
                for k in range(n):
                    ahead[k] -= step[k] * step[k] * scale
                    for a in range(rank):
                        through[k, a] -= step[k] * row[a]
                    for j in range(len(own)):
                        gain[k, j] -= step[k] * own[j]
