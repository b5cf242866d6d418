"""Whole counts of a block of probes: a cover that shows every gap, and shares of cost rounded well.

None of it bears on the guarantee. A *cover* is a set of probes whose readings span all differences in
question; on single arms it is the set of arms in which they differ.
"""

from __future__ import annotations

import numpy as np

from surepick.core.arrays import BoolArray, FloatArray, IntArray
from surepick.design.information import Dense, Diagonal, Information
from surepick.policies.betting.steady import Steady

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
    if isinstance(information, Steady):
        return information.cover(shares, costs, away)
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
    from surepick.policies.betting.probe_kernels import span_targets

    owner, chosen = information.owner, np.zeros(information.n_probes, dtype=bool)
    size = max(float(np.abs(away).max()), 1e-300)
    for least in (_WORTH * float(shares.max()), -1.0):  # all probes, where those with shares do not span
        chosen[:] = False
        some = np.flatnonzero((shares > least)[owner])
        welcome = np.sqrt((shares + 1e-12) / costs)[owner[some], None]
        if span_targets(information.rows[some] * welcome, owner[some], away / size, chosen, _SPANNED):
            break
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
    from surepick.policies.betting.probe_kernels import Readings, fill_counts

    counts = np.floor(shares * budget / costs)
    some = np.flatnonzero((shares > _WORTH * shares.max())[information.owner])
    known = information.matrix(counts) + _TRACE * budget * information.matrix(shares / costs)
    known += 1e-9 * np.trace(known) * np.eye(len(known))
    if isinstance(information, Steady):
        information.fill(counts, known, some, targets, (costs, float(budget)))
        return counts.astype(np.int64)
    readings = Readings(
        information.rows[some], information.owner[some], costs, np.asarray(np.linalg.inv(known), dtype=float)
    )
    fill_counts(readings, targets, counts, float(budget))
    return counts.astype(np.int64)
