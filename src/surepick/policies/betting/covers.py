"""Whole counts of a block of probes: a cover that shows every gap, and shares of cost rounded well.

None of it bears on the guarantee. A *cover* is a set of probes whose readings span all differences in
question; on single arms it is the set of arms in which they differ.
"""

from __future__ import annotations

import math

import numpy as np

from surepick.core.arrays import BoolArray, FloatArray, IntArray
from surepick.design.information import Dense, Diagonal, Information

_SPANNED = 1e-7  # of its length: what is left of a row or a difference that counts as spanned
_NEEDED = 1e-7  # of the largest weight: a probe with less is left out
_TRACE = 0.05  # of the ideal design, in place of what is not chosen yet
_WORTH = 1e-3  # of the largest share or weight that rounding looks at


def cover(information: Information, shares: FloatArray, costs: FloatArray, away: FloatArray) -> BoolArray:
    """Probes whose readings show all differences, those with large shares first.

    >>> each = np.arange(3)
    >>> arms = Diagonal(each, np.ones(3), each, 3, 3)
    >>> cover(arms, np.full(3, 1 / 3), np.ones(3), np.array([[1.0, -1.0, 0.0]])).tolist()
    [True, True, False]
    """
    if isinstance(information, Diagonal):
        return _set_cover(information, shares, costs, away)
    assert isinstance(information, Dense)
    return _spanning_cover(information, shares, costs, away)


def _set_cover(information: Diagonal, shares: FloatArray, costs: FloatArray, away: FloatArray) -> BoolArray:
    """Greedily: the probe that shows most of what is unseen for its cost, by share among equals."""
    wanted = (away != 0).any(axis=0)
    chosen = np.zeros(information.n_probes, dtype=bool)
    worth = (shares + 1e-9) / costs
    while wanted.any():
        fresh = np.bincount(information.owner, wanted[information.arm], minlength=information.n_probes)
        best = int(np.argmax(fresh * worth))
        if fresh[best] == 0:
            break
        chosen[best] = True
        wanted[information.arm[information.owner == best]] = False
    return chosen


def _spanning_cover(information: Dense, shares: FloatArray, costs: FloatArray, away: FloatArray) -> BoolArray:
    """Pivoted Gram-Schmidt on rows times sqrt(share / cost); then without probes that no gap needs."""
    owner = information.owner
    rest = information.rows * np.sqrt((shares + 1e-12) / costs)[owner][:, None]
    start = (rest**2).sum(axis=1)
    left = away / max(float(np.abs(away).max()), 1e-300)
    chosen = np.zeros(information.n_probes, dtype=bool)
    while (left**2).sum(axis=1).max() > _SPANNED**2:
        size = (rest**2).sum(axis=1)
        size[size <= _SPANNED**2 * start] = 0.0
        if not size.any():
            break
        probe = int(owner[int(np.argmax(size))])
        chosen[probe] = True
        for r in np.flatnonzero(owner == probe):
            length = math.sqrt(float(rest[r] @ rest[r]))
            if length > _SPANNED * math.sqrt(start[r]):
                unit = rest[r] / length
                for _ in range(2):
                    rest = rest - np.outer(rest @ unit, unit)
                    left = left - np.outer(left @ unit, unit)
    rows = chosen[owner]
    weights = np.abs(np.linalg.lstsq(information.rows[rows].T, away.T, rcond=None)[0]).max(axis=1)
    needed = np.bincount(owner[rows], weights > _NEEDED * weights.max(), minlength=len(chosen)) > 0
    return np.asarray(chosen & needed)


def fill(
    information: Dense,
    shares: FloatArray,
    costs: FloatArray,
    targets: FloatArray,  # (n, rank), weighted by the square roots of their duals
    budget: float,
) -> IntArray:
    """Whole counts for a budget: the whole parts of the shares, then use by use where the targets gain most.

    A trace of the ideal design stands for what is not chosen yet.
    """
    counts = np.floor(shares * budget / costs)
    rows = np.flatnonzero((shares > _WORTH * shares.max())[information.owner])
    own = information.owner[rows]
    readings = information.rows[rows]
    ideal = information.matrix(shares / costs)
    known = information.matrix(counts) + _TRACE * budget * ideal
    known += 1e-9 * np.trace(known) * np.eye(len(known))
    through = np.linalg.solve(known, readings.T).T  # rows of X W
    gain, ahead = through @ targets.T, 1.0 + np.einsum("rd,rd->r", through, readings)
    spent = float(counts @ costs)
    while spent < budget * (1 - 1e-9):
        worth = np.bincount(own, (gain * gain).sum(axis=1) / ahead, minlength=len(costs)) / costs
        probe = int(np.argmax(worth))
        if not worth[probe] > 0:
            break
        counts[probe] += 1
        spent += float(costs[probe])
        for i in np.flatnonzero(own == probe):
            row, own_gain, step = through[i].copy(), gain[i].copy(), readings @ through[i] / ahead[i]
            ahead = ahead - step * step * ahead[i]
            through -= np.outer(step, row)
            gain -= np.outer(step, own_gain)
    return counts.astype(np.int64)
