"""Whole counts of a block of probes: a cover that shows every gap, and shares of cost rounded well.

None of it bears on the guarantee. A *cover* is a set of probes whose readings span all differences in
question; on single arms it is the set of arms in which they differ.
"""

from __future__ import annotations

import numpy as np

from surepick.core.arrays import BoolArray, FloatArray, IntArray
from surepick.design.information import Diagonal, Information
from surepick.policies.betting.steady import Steady

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
    assert isinstance(information, Steady)
    return information.cover(shares, costs, away)


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


def fill(
    information: Steady,
    shares: FloatArray,
    costs: FloatArray,
    targets: FloatArray,  # (n, rank), weighted by the square roots of their duals
    budget: float,
) -> IntArray:
    """Whole counts for a budget: the whole parts of the shares, then use by use where the targets gain most.

    A trace of the ideal design stands for what is not chosen yet.
    """
    counts = np.floor(shares * budget / costs)
    some = np.flatnonzero((shares > _WORTH * shares.max())[information.owner])
    known = information.matrix(counts) + _TRACE * budget * information.matrix(shares / costs)
    known += 1e-9 * np.trace(known) * np.eye(len(known))
    information.fill(counts, known, some, targets, (costs, float(budget)))
    return counts.astype(np.int64)
