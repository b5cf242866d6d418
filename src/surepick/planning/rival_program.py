"""The linear program that bounds A / G^2 on a branch of rivals, over the plans seen (`unlisted_limit`).

Unknowns are r_0, r >= 0, t_c >= 0 and t_0 >= 0. With t = t_0 + sum_c t_c as small as possible, every plan
seen keeps

    r_0 + r.n <= t_0 G    and    A <= r_0 G + sum_s r_s g_s n_s + sum_c t_c (2 c G - c^2).

Rows are added while plans outside of the program break its rules.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from surepick.core.arrays import BoolArray, FloatArray, IntArray

_TANGENTS = 8  # numbers c that are tried
_FIRST_ROWS = 60  # of a linear program
_MORE_ROWS = 50
_MISSED = 1e-3  # a plan seen is missing in a program when it breaks a rule by this share


@dataclass(frozen=True, eq=False)
class Seen:
    """The plans seen on a branch, by what the program needs of them."""

    places: IntArray  # among all n_rows plans seen
    n_rows: int
    gaps: FloatArray  # G
    spreads: FloatArray  # what A is at most
    away: FloatArray  # n_s, on the arms where it is affine
    least: FloatArray  # g_s, on the same arms
    has_best: bool  # whether the best plan is on the branch, too: r_0 is then at most 0


class Program:
    """The program, solved. `active` are the rows that it needed, `work` the entries that it had."""

    def __init__(self, seen: Seen, level: float, active: BoolArray) -> None:
        self._seen, self._level = seen, level
        known = np.append(active, np.zeros(seen.n_rows - len(active), dtype=bool))[seen.places]
        if not active.size:
            hardest = np.argsort(-seen.spreads / seen.gaps**2, kind="stable")
            known[hardest[: max(_FIRST_ROWS, len(seen.least))]] = True
        else:
            known |= seen.places >= len(active)
        self._unit = math.exp(float(np.log(seen.gaps).mean()))  # of gaps, as `level` is of A / G^2
        self._centres = np.geomspace(seen.gaps.min(), seen.gaps.max(), 0 if seen.has_best else _TANGENTS)
        self.work = 0
        while True:
            self.work += 2 * int(np.count_nonzero(seen.away[known])) + 1
            self._solve(np.flatnonzero(known))
            missed = self._missed(known)
            if not missed.size:
                break
            known[missed] = True
        self.active = np.zeros(seen.n_rows, dtype=bool)
        self.active[seen.places[known]] = True

    def _solve(self, rows: IntArray) -> None:
        """Unknowns are r_0, r, the t_c and t_0, in units of the level and of a middle gap."""
        from scipy import sparse
        from scipy.optimize import linprog

        seen, centres = self._seen, self._centres / self._unit
        gaps, spreads = seen.gaps[rows] / self._unit, seen.spreads[rows]
        away: Any = sparse.csr_array(seen.away[rows])
        scale = self._level * self._unit**2 / spreads
        n, n_arms, n_centres = len(rows), len(seen.least), len(centres)
        tangents = 2 * np.outer(gaps, centres) - centres**2
        pack: list[Any] = [1 / gaps[:, None], away.multiply(1 / gaps[:, None])]
        pack += [np.zeros((n, n_centres)), np.full((n, 1), -1.0)]
        cover: list[Any] = [-(scale * gaps)[:, None]]
        cover += [away.multiply(-scale[:, None]).multiply(seen.least / self._unit)]
        cover += [-scale[:, None] * tangents, np.zeros((n, 1))]
        blocks = [[sparse.csr_array(block) for block in line] for line in (pack, cover)]
        rules: Any = sparse.vstack([sparse.hstack(line) for line in blocks], format="csr")
        solved: Any = linprog(
            np.concatenate([np.zeros(1 + n_arms), np.ones(n_centres + 1)]),
            A_ub=rules,
            b_ub=np.concatenate([np.zeros(n), -np.ones(n)]),
            bounds=[(None, 0.0 if seen.has_best else None)] + [(0.0, None)] * (n_arms + n_centres + 1),
            method="highs",
        )
        x = np.zeros(n_arms + n_centres + 2) if solved.x is None else solved.x
        marginals = np.zeros(n) if solved.x is None else -solved.ineqlin.marginals[n:]
        self._dual = np.maximum(marginals, 0.0) / spreads  # of the rule about A
        self._rows = rows
        unit = self._level * self._unit
        self.constant, self.r = float(x[0]) * unit, np.maximum(x[1 : 1 + n_arms], 0.0) * unit
        self._t = np.maximum(x[1 + n_arms : -1], 0.0) * self._level
        self.base = max(float(x[-1]), 0.0) * self._level
        self.value = self.base + float(self._t.sum())
        self.tilt = 2 * float(self._t @ self._centres)  # of the tangents: tilt G - drop
        self.drop = float(self._t @ self._centres**2)

    def _missed(self, known: BoolArray) -> IntArray:
        """Plans seen, outside of the program, that break its rules."""
        seen = self._seen
        pack = self.constant + seen.away @ self.r - self.base * seen.gaps
        below = (self.constant + self.tilt) * seen.gaps - self.drop + seen.away @ (self.r * seen.least)
        broken = np.maximum(pack / (self._level * seen.gaps), 1 - below / seen.spreads)
        worst = np.argsort(-np.where(known, -np.inf, broken), kind="stable")[:_MORE_ROWS]
        return np.asarray(worst[(broken[worst] > _MISSED) & ~known[worst]])

    def weakest(self) -> int:
        """The place among the arms on which most is lost by taking g_s for G; -1 where nothing is."""
        seen, rows = self._seen, self._rows
        if not seen.least.size:
            return -1
        lost = np.maximum(seen.gaps[rows][:, None] - seen.least, 0.0) * seen.away[rows]
        loss = self.r * (self._dual @ lost)
        return int(np.argmax(loss)) if loss.max() > 0 else -1
