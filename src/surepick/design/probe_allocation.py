"""How to divide cost between probes so that every difference is known well: a certified bracket.

For targets z_j (rows) the value of shares of cost u is max_j z_j' M(u)^-1 z_j, M(u) = sum_o (u_o/c_o) A_o.
Any u gives an upper end, and any u and weights on the targets a lower one, by weak duality: with
phi = sum_j dual_j z_j' M^-1 z_j and g_o = (1/c_o) sum_k sum_j dual_j (x_ok' M^-1 z_j)^2,

    min over u of max_j z_j' M(u)^-1 z_j  >=  phi^2 / max_o g_o.

(z'M^-1z = max_v 2 z.v - v'Mv; exchange minimum and maximum, and scale v.) The steps are multiplicative on
both sides; on single arms the share's exponent 1/2 is the exact minimiser of the dual.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from surepick.core.arrays import FloatArray, IntArray
from surepick.design.information import TRACE, Diagonal, Information

_LOOK = 10  # steps between looks at all probes and all targets
_WARMTH = 0.9  # of a start from an earlier solution
_IN_PLAY, _USEFUL = 1e-5, 0.9  # shares of the largest share, and use of the largest use, that stay in play
_BINDING, _CLOSE = 1e-7, 0.8  # the same for the weight and the value of targets


class Effort(NamedTuple):
    """When a search may end."""

    tolerance: float  # relative width of the bracket
    most_steps: int = 3000


@dataclass(frozen=True, eq=False)
class ProbeAllocation:
    """Shares of cost, weights on the targets, and the certified bracket of the least largest value."""

    shares: FloatArray  # (n_probes,) of cost, sum 1
    dual: FloatArray  # (n_targets,) sum 1
    upper: float
    lower: float
    n_steps: int


def probe_allocation(
    information: Information,
    targets: Any,  # (n, rank) in the information's coordinates
    costs: FloatArray,
    effort: Effort,
    *,
    start: ProbeAllocation | None = None,
) -> ProbeAllocation:
    """Shares of cost that minimise the largest z' M^-1 z, to a certified relative tolerance.

    >>> from surepick.design.information import Diagonal
    >>> each = np.arange(2)
    >>> arms = Diagonal(each, np.ones(2), each, 2, 2)
    >>> found = probe_allocation(arms, np.array([[1.0, -2.0]]), np.ones(2), Effort(1e-9))
    >>> round(found.upper, 6), found.shares.round(3).tolist()
    (9.0, [0.333, 0.667])
    """
    search = _Search(information, targets, costs, start)
    for step in range(effort.most_steps):
        if step % _LOOK == 0 or step == effort.most_steps - 1:
            search.look()
            if search.upper <= (1 + effort.tolerance) * search.lower:
                break
        search.step()
    return ProbeAllocation(search.best, search.dual, search.upper, search.lower, step + 1)


class _Search:
    """The state of one search; changed by `look` and `step` alone."""

    def __init__(
        self, information: Information, targets: Any, costs: FloatArray, start: ProbeAllocation | None
    ) -> None:
        n, m = information.n_probes, targets.shape[0]
        self.information, self.targets, self.costs = information, targets, costs
        # exact inner minimiser on single arms; elsewhere calmer targets, bolder shares take fewer steps
        self.powers = (0.5, 1.5) if isinstance(information, Diagonal) else (0.8, 1.0)
        self.shares, self.dual = np.full(n, 1.0 / n), np.full(m, 1.0 / m)
        if start is not None:
            self.shares = _WARMTH * start.shares + (1 - _WARMTH) / n
            self.dual = _WARMTH * start.dual + (1 - _WARMTH) / m
        self.upper, self.lower, self.best = np.inf, 0.0, self.shares
        self.rivals: IntArray = np.arange(m)
        self.playing = np.ones(n, dtype=bool)

    def look(self) -> None:
        """Price all probes and all targets: the bracket, and who stays in play."""
        shares, dual = self.shares, self.dual
        values, uses = self.information.play(shares, self.costs, None).prices(self.targets, dual)
        average = max(float(dual @ values), 1e-300)
        self.lower = max(self.lower, average**2 / max(float(uses.max()), 1e-300))
        if values.max() < self.upper:
            self.upper = float(values.max())
            self.best = (1 - TRACE) * shares + TRACE / len(shares)
        self.rivals = np.flatnonzero((dual > _BINDING * dual.max()) | (values > _CLOSE * values.max()))
        kept = np.zeros_like(dual)
        kept[self.rivals] = np.maximum(dual[self.rivals], _BINDING * dual.max())
        self.dual = kept / kept.sum()
        self.playing = (shares > _IN_PLAY * shares.max()) | (uses > _USEFUL * uses.max())
        shares = np.where(self.playing, np.maximum(shares, _IN_PLAY * shares.max()), 0.0)
        self.shares = shares / shares.sum()

    def step(self) -> None:
        """One multiplicative step among those in play."""
        dual = self.dual[self.rivals]
        play = self.information.play(self.shares, self.costs, self.playing)
        values, uses = play.prices(self.targets[self.rivals], dual)
        average = max(float(dual @ values), 1e-300)
        of_shares, of_dual = self.powers
        dual = dual * (values / average) ** of_dual
        self.dual = np.zeros_like(self.dual)
        self.dual[self.rivals] = dual / dual.sum()
        shares = self.shares * (uses / average) ** of_shares
        self.shares = shares / shares.sum()
