"""How to divide measurements between plays that nobody has listed: column generation, certified.

A play x (zeros and ones) reads every arm in it once. With shares u of the plays, n_s = sum of the shares of
the plays that hold s, and the value of u is max_q sum_s squares[q, s] / n_s. Any u gives an upper end, and
any u with weights on the rows a lower one, by weak duality: with phi = sum_q dual_q sum_s squares[q, s] / n_s
and h_s = sum_q dual_q squares[q, s] / n_s^2,

    min over u of max_q sum_s squares[q, s] / n_s  >=  phi^2 / max over plays of h.x.

(Cauchy: (sum_s w_s / n_s)^2 <= (sum_s w_s / m_s) (sum_s w_s m_s / n_s^2) for the m of any other shares, and
the last sum is h.m <= max h.x.) The play with the largest h.x is what an oracle finds: it certifies the lower
end, and joins the pool of plays if it is better than those there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from surepick.core.arrays import BoolArray, FloatArray, IntArray
from surepick.core.plays import FindPlay

_OF_SHARES, _OF_DUAL = 0.8, 1.0  # powers of the multiplicative steps
_WARMTH = 0.95  # of shares when a play joins
_DUAL_WARMTH = 0.9
_LEAST = 1e-12  # readings a play: keeps prices finite
_ROUNDING = 1e-9  # of a sum of prices: more than an exact oracle loses
_IN_USE = 1e-4  # of the largest share: a play with less may be forgotten


class PlayEffort(NamedTuple):
    """When a search may end."""

    tolerance: float  # relative width of the bracket
    steps: int  # between two calls of the oracle
    most_calls: int


@dataclass(frozen=True, eq=False)
class PlayAllocation:
    """Shares of the plays found, weights on the rows, and the certified bracket of the least value."""

    plays: FloatArray  # (n_plays, n_arms) of zeros and ones
    shares: FloatArray  # (n_plays,) sum 1
    dual: FloatArray  # (n_rows,) sum 1
    upper: float
    lower: float

    @property
    def weights(self) -> FloatArray:
        """(n_arms,): the share of the plays that read each arm."""
        return np.asarray(self.shares @ self.plays)

    def kept(self, most: int) -> PlayAllocation:
        """The same without plays of little use, where there are more than this many."""
        if len(self.plays) <= most:
            return self
        order = np.argsort(-self.shares, kind="stable")[:most]
        some = np.sort(order[self.shares[order] > _IN_USE * self.shares.max()])
        shares = self.shares[some] / self.shares[some].sum()
        return PlayAllocation(self.plays[some], shares, self.dual, self.upper, self.lower)


def covering_plays(find: FindPlay, wanted: BoolArray, prices: FloatArray) -> FloatArray:
    """Plays that read every wanted arm, found greedily; of equals the one with the largest prices.

    Arms that no play reads stay unread.

    >>> find = lambda weights: np.eye(3)[np.argmax(weights)]
    >>> covering_plays(find, np.array([True, False, True]), np.zeros(3)).tolist()
    [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    """
    left, found = wanted.copy(), list[FloatArray]()
    little = 1e-3 * prices / max(float(prices.max()), 1e-300) / max(len(prices), 1)
    while left.any():
        play = find(left + little)
        if not play[left].any():
            break
        found.append(play)
        left &= play == 0
    return np.array(found).reshape(-1, len(wanted))


def even(plays: FloatArray) -> PlayAllocation:
    """These plays in equal shares, to begin a search with."""
    return PlayAllocation(plays, np.full(len(plays), 1.0 / len(plays)), np.zeros(0), np.inf, 0.0)


def play_allocation(
    squares: FloatArray,  # (n_rows, n_arms)
    find: FindPlay,
    effort: PlayEffort,
    start: PlayAllocation,
) -> PlayAllocation:
    """Shares of plays that minimise the largest sum_s squares[q, s] / n_s, and a certified bracket.

    The plays to start with must together read every arm that a row has; weights of the first rows may be
    known.

    >>> find = lambda weights: np.eye(2)[np.argmax(weights)]
    >>> found = play_allocation(np.array([[1.0, 4.0]]), find, PlayEffort(1e-6, 100, 9), even(np.eye(2)))
    >>> round(found.upper, 4), found.weights.round(3).tolist()
    (9.0, [0.333, 0.667])
    """
    search = _Search(squares, start)
    for _ in range(effort.most_calls):
        search.settle(effort)
        play = find(search.prices)
        is_new = search.price(play)
        if search.upper <= (1 + effort.tolerance) * search.lower:
            break
        if is_new:
            search.join(play)
        elif search.is_settled:
            break
    return search.found()


class _Search:
    """The state of one search; changed by `settle`, `price` and `join` alone."""

    def __init__(self, squares: FloatArray, start: PlayAllocation) -> None:
        n, m = len(start.plays), len(squares)
        self.squares, self.plays = squares, start.plays
        self.keys = {play.tobytes() for play in start.plays}
        self.shares = _WARMTH * start.shares + (1 - _WARMTH) / n
        known = np.append(start.dual, np.zeros(m - len(start.dual)))
        self.dual = _DUAL_WARMTH * known + (1 - _DUAL_WARMTH) / m
        self.dual = self.dual / self.dual.sum()
        self.upper, self.lower = np.inf, 0.0
        self.best, self.binding = self.shares, self.dual
        self.prices, self.average, self.dearest = np.zeros(squares.shape[1]), 0.0, 0.0
        self.is_settled = False

    def settle(self, effort: PlayEffort) -> None:
        """Divide between the plays of the pool, until its own bracket is narrow."""
        self.is_settled = False
        for _ in range(effort.steps):
            readings = self.shares @ self.plays + _LEAST
            values = self.squares @ (1.0 / readings)
            self.prices = (self.dual @ self.squares) / readings**2
            uses = self.plays @ self.prices
            self.average, self.dearest = float(self.dual @ values), float(uses.max())
            worst = float(values.max())
            if worst < self.upper:
                self.upper, self.best, self.binding = worst, self.shares, self.dual
            if worst * self.dearest <= (1 + effort.tolerance / 2) * self.average**2:
                self.is_settled = True
                return
            dual = self.dual * (values / self.average) ** _OF_DUAL
            shares = self.shares * (uses / self.average) ** _OF_SHARES
            self.dual, self.shares = dual / dual.sum(), shares / shares.sum()

    def price(self, play: FloatArray) -> bool:
        """Raise the lower end by what the best play of all costs; whether it is a new one."""
        most = max(float(play @ self.prices), self.dearest) * (1 + _ROUNDING)
        self.lower = max(self.lower, self.average**2 / max(most, 1e-300))
        return play.tobytes() not in self.keys

    def join(self, play: FloatArray) -> None:
        """Take a new play into the pool, with a small share."""
        self.keys.add(play.tobytes())
        self.plays = np.vstack([self.plays, play])
        n = len(self.plays)
        self.shares = np.append(_WARMTH * self.shares, 0.0) + (1 - _WARMTH) / n
        self.best = np.append(self.best, 0.0)

    def found(self) -> PlayAllocation:
        """The best division so far."""
        return PlayAllocation(self.plays, self.best, self.binding, self.upper, min(self.lower, self.upper))


def rounded(shares: FloatArray, n: int) -> IntArray:
    """Whole numbers in proportion to the shares, n in all: the largest remainders are rounded up.

    >>> rounded(np.array([0.5, 0.3, 0.2]), 4).tolist()
    [2, 1, 1]
    """
    exact = shares / shares.sum() * n
    whole: IntArray = np.floor(exact + 1e-9).astype(np.int64)
    short = max(0, n - int(whole.sum()))
    order = np.argsort(-(exact - whole), kind="stable")
    whole[order[:short]] += 1
    return whole
