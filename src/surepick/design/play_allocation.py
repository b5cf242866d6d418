"""Allocate measurements between plays that are not listed: column generation, with a certified bound.

A play x (zeros and ones) reads every arm in it once. With shares u of the plays, n_s = sum of the shares of
the plays that hold s, and the value of u is max_q sum_s squares[q, s] / n_s. Any u gives an upper end, and
any u with weights on the rows a lower one, by weak duality: with phi = sum_q dual_q sum_s squares[q, s] / n_s
and h_s = sum_q dual_q squares[q, s] / n_s^2,

    min over u of max_q sum_s squares[q, s] / n_s  >=  phi^2 / max over plays of h.x.

(Cauchy: (sum_s w_s / n_s)^2 <= (sum_s w_s / m_s) (sum_s w_s m_s / n_s^2) for the m of any other shares, and
the last sum is h.m <= max h.x.) An oracle finds the play with the largest h.x: it certifies the lower end,
and joins the pool of plays if it is new.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from surepick.core.arrays import BoolArray, FloatArray
from surepick.core.plan_sets import FindPlay
from surepick.design.information import Diagonal
from surepick.design.minimax import minimax

_WARMTH = 0.95  # the part of the old shares that is kept when a play joins
_LEAST = 1e-12  # added to the readings of each arm, so that prices stay finite
_ROUNDING = 1e-9  # relative; an exact oracle's sum of prices is wrong by less


@dataclass(frozen=True, eq=False)
class PlayAllocation:
    """Shares of the plays found, weights on the rows, and the certified bracket of the least value.

    Without weights and a bracket it is the start of a search: no rows yet, and any value is possible.
    """

    plays: FloatArray  # (n_plays, n_arms) of zeros and ones
    shares: FloatArray  # (n_plays,) sum 1
    dual: FloatArray = field(default_factory=lambda: np.zeros(0))  # (n_rows,) sum 1
    upper: float = np.inf
    lower: float = 0.0

    @property
    def weights(self) -> FloatArray:
        """(n_arms,): the share of the plays that read each arm."""
        return np.asarray(self.shares @ self.plays)

    @classmethod
    def uniform(cls, plays: FloatArray) -> PlayAllocation:
        """Return these plays in equal shares, to begin a search with."""
        return cls(plays, shares=np.full(len(plays), 1.0 / len(plays)))


def covering_plays(find: FindPlay, wanted: BoolArray, tie_weights: FloatArray) -> FloatArray:
    """Return plays that read every wanted arm, found greedily; ties go to large tie weights.

    Arms that no play reads stay unread.

    >>> find = lambda weights: np.eye(3)[np.argmax(weights)]
    >>> covering_plays(find, np.array([True, False, True]), np.zeros(3)).tolist()
    [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    """
    left = wanted.copy()
    found = list[FloatArray]()
    # together they weigh less than one arm, so that they only break ties
    little = 1e-3 * tie_weights / max(float(tie_weights.max()), 1e-300) / max(len(tie_weights), 1)
    while left.any():
        play = find(left + little)
        if not play[left].any():
            break
        found.append(play)
        left &= play == 0
    return np.array(found).reshape(-1, len(wanted))


def play_allocation(
    squares: FloatArray,  # (n_rows, n_arms)
    find: FindPlay,
    start: PlayAllocation,
    *,
    tolerance: float,
    most_steps: int,
    most_calls: int,
) -> PlayAllocation:
    """Return shares of plays that nearly minimise max_q sum_s squares[q, s] / n_s, and a certified bracket.

    n_s is the sum of the shares of the plays that read arm s. Column generation: find the best shares of the
    plays known so far, let the oracle find the play with the largest price, add it, repeat. That play also
    gives the lower end of the bracket, phi^2 / max h.x at the top of this module (h are the prices).

    - squares: one row for each contrast q; the variance is the sum over arms of squares[q, s] / n_s.
    - find: the oracle; returns the play x with the largest prices.x.
    - start: plays that together read every arm that a row needs, and perhaps a dual of the first rows.
    - tolerance: the relative width of the bracket at which the search ends.
    - most_steps: steps on the shares of the known plays, between two calls of the oracle.
    - most_calls: calls of the oracle.

    >>> find = lambda weights: np.eye(2)[np.argmax(weights)]
    >>> effort = {"tolerance": 1e-6, "most_steps": 100, "most_calls": 9}
    >>> found = play_allocation(np.array([[1.0, 4.0]]), find, PlayAllocation.uniform(np.eye(2)), **effort)
    >>> round(found.upper, 4), found.weights.round(3).tolist()
    (9.0, [0.333, 0.667])
    """
    plays, shares = start.plays, start.shares
    dual = None
    if start.dual.any():
        n_new = len(squares) - len(start.dual)
        dual = np.append(start.dual, np.zeros(n_new))
    best = start
    upper, lower = np.inf, 0.0
    for _ in range(most_calls):
        owner, arm = np.nonzero(plays)
        found = minimax(
            Diagonal(arm, np.ones(len(arm)), owner, *plays.shape),
            np.sqrt(squares),
            np.ones(len(plays)),
            tolerance=tolerance / 2,
            most_steps=most_steps,
            start=shares,
            dual=dual,
        )
        shares, dual = found.shares, found.dual
        readings = shares @ plays + _LEAST
        prices = (dual @ squares) / readings**2
        play = find(prices)
        # an upper bound on prices.x over all plays; a known play may exceed the oracle's by rounding
        largest = max(float(play @ prices), float((plays @ prices).max())) * (1 + _ROUNDING)
        phi = float(dual @ (squares @ (1.0 / readings)))
        lower = max(lower, phi**2 / max(largest, 1e-300))
        if found.upper < upper:
            upper = found.upper
            best = PlayAllocation(plays, shares, dual, upper, lower)
        if upper <= (1 + tolerance) * lower:
            break
        if not (plays == play).all(axis=1).any():
            plays = np.vstack([plays, play])
            shares = np.append(_WARMTH * shares, 0.0) + (1 - _WARMTH) / len(plays)
        elif found.upper <= (1 + tolerance / 2) * found.lower:
            break  # no play is missing, and more steps on these would not help
    return replace(best, lower=min(lower, upper))
