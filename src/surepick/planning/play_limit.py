"""The limit where plans are played that nobody has listed: rivals and plays both found by the oracle.

With n_s the share of the plays that read arm s, T* = 2 min over shares of plays of the largest A / G^2, where
A = sum_s R_s^2 (best_s - plan_s)^2 / n_s is the variance of a rival's gap G after one play. Rows are found,
and the upper end is proved of all rivals, as where single arms are measured (`unlisted_limit`); the shares
are those of plays, found by column generation with a certified lower end (`design.play_allocation`).

The second bound of `limit` is the least *fractional* cover by plays of the arms in which plans differ. Its
dual is sum_s y_s for y >= 0 with y.x <= 1 on every play x; whatever y is, sum y / max over plays of y.x is
below the cover, and the oracle finds that maximum.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from surepick.core.arrays import BoolArray, FloatArray
from surepick.core.branches import Branch
from surepick.core.plan_sets import PlanSet
from surepick.core.plays import FindPlay
from surepick.design.play_allocation import (
    PlayAllocation,
    PlayEffort,
    covering_plays,
    even,
    play_allocation,
)
from surepick.planning.unlisted_limit import FoundRivals

_STEPS = 300  # of a division between two calls of the oracle
_MOST_CALLS = 200  # for one division
_MOST_COLUMNS = 200  # plays in a cover
_ROUNDING = 1e-9


class PlayedRivals(FoundRivals):
    """Rivals whose gaps are measured by plays; `rows` and the plays known only grow."""

    def __init__(
        self, plans: PlanSet, branch: Branch, best: FloatArray, means: FloatArray, find: FindPlay
    ) -> None:
        super().__init__(plans, branch, best, means)
        self._find = find
        plays = covering_plays(find, branch.lower < branch.upper, np.zeros(len(best)))
        self._last = even(plays)

    def _divide(self, price: FloatArray, tolerance: float) -> PlayAllocation:
        squares = price * ((self.best - self.rows) / self.gaps(self.rows)[:, None]) ** 2
        effort = PlayEffort(tolerance / 4, _STEPS, _MOST_CALLS)
        self._last = play_allocation(squares, self._find, effort, self._last)
        return self._last


def least_play_cover(find: FindPlay, wanted: BoolArray) -> float:
    """How many plays reading every wanted arm takes at least, by fractions; a bound from below.

    >>> plans = np.array([[1.0, 1, 0], [0, 1, 1], [1, 0, 1]])
    >>> least_play_cover(lambda w: plans[np.argmax(plans @ w)], np.ones(3, dtype=bool))
    1.5
    """
    from scipy.optimize import linprog

    plays, least = covering_plays(find, wanted, np.zeros(len(wanted))), 1.0
    for _ in range(_MOST_COLUMNS):
        # maximise sum y with y.x <= 1 on the plays known
        found: Any = linprog(-np.ones(int(wanted.sum())), A_ub=plays[:, wanted], b_ub=np.ones(len(plays)))
        if not found.success:
            return least
        prices = np.zeros(len(wanted))
        prices[wanted] = np.maximum(found.x, 0.0)
        play = find(prices)
        worst = max(float(play @ prices), 1e-300)
        least = max(least, round(float(prices.sum()) / max(worst, 1.0), 9))
        if worst <= 1 + _ROUNDING:
            break
        plays = np.vstack([plays, play])
    return least
