"""A small dense simplex for linear programs over bounded variables, which starts from any basis.

    minimise c.z,  A z = b,  lower <= z <= upper,  all bounds finite

It starts at a basis that is given, whose tableau is computed afresh, so that its answer is a function of the
basis and the numbers. Nothing rests on its answers but which vertex is looked at next: bounds come from dual
values (`core.polytopes.proofs`) and hold for any of them. SciPy's solver takes a millisecond a call and no
basis; one of these programs, begun near its end, takes a tenth of that.
"""

from __future__ import annotations

import numpy as np

from surepick.core.arrays import FloatArray, IntArray
from surepick.core.polytopes.standard_form import AT_LOWER, AT_UPPER, BASIC, independent_columns

SOLVED, EMPTY, GAVE_UP = 0, 1, 2
_FEASIBLE = 1e-10  # amounts are near 1
_IMPROVES = 1e-9  # of the largest cost
_PIVOT = 1e-9  # entries that count as zero
_STILL = 60  # steps without progress after which the first column that improves is taken (Bland)
_STEPS = 50  # pivots, for each row and column, before it gives up


class Simplex:
    """A linear program at a basis; `solve` moves it to another one."""

    def __init__(self, matrix: FloatArray, right: FloatArray, lower: FloatArray, upper: FloatArray) -> None:
        self.matrix, self.right, self.lower, self.upper = matrix, right, lower, upper
        m, n = matrix.shape
        self._given = np.hstack([matrix, right[:, None], np.eye(m)])
        self.rows = self._given.copy()  # solved for the basic variables: A, the right side, B^-1
        self.basis: IntArray = np.zeros(m, dtype=np.int64)  # the basic variable of each row
        self.at: IntArray = np.zeros(n, dtype=np.int64)  # AT_LOWER, AT_UPPER or BASIC, of each variable
        self.values = np.zeros(n)
        self._weights = np.zeros(m)  # of the rows, in the last step
        self.n_solved = 0  # programs so far

    def begin(self) -> bool:
        """Go to a first basis that keeps all bounds; return whether there is one."""
        has_room = self.upper > self.lower
        self.at[:] = AT_LOWER
        self.at[independent_columns(self.matrix, np.argsort(~has_room, kind="stable"))] = BASIC
        costs = np.zeros(len(self.lower))
        return self.go_to(self.at) and self.solve(costs) == SOLVED and self.go_to(self.at)

    def go_to(self, at: IntArray) -> bool:
        """Go to the basis `at`; return False where it is singular."""
        basis = np.flatnonzero(at == BASIC)
        if len(basis) != len(self.right):
            return False
        try:
            rows = np.linalg.solve(self.matrix[:, basis], self._given)
        except np.linalg.LinAlgError:
            return False
        if not np.abs(rows).max(initial=0.0) < 1.0 / _PIVOT:
            return False
        self.at, self.basis, self.rows = at.copy(), basis, rows
        self._place()
        return True

    def restart(self, *, afresh: bool) -> bool:
        """Find the values at the basis for bounds that have changed; `afresh`: its rows, too."""
        if afresh:
            return self.go_to(self.at)
        self._place()
        return True

    def _place(self) -> None:
        """Find the values of all variables at the basis."""
        n = len(self.lower)
        self.values = np.where(self.at == AT_UPPER, self.upper, self.lower)
        self.values[self.basis] = 0.0
        self.values[self.basis] = self.rows[:, n] - self.rows[:, :n] @ self.values

    def solve(self, costs: FloatArray) -> int:
        """Go to a basis with the least costs.z; return SOLVED, EMPTY where no z keeps all rows, or GAVE_UP.

        The sum of what bounds are missed by is lowered first, then the costs (two phases of one loop). Of
        columns the one that improves most by a unit is taken; of rows that block, the largest pivot.
        """
        self.n_solved += 1
        n, still, largest = len(self.lower), 0, float(np.abs(costs).max(initial=0.0))
        towards = np.where(self.at == AT_UPPER, -1.0, 1.0)  # how a variable leaves its bound; 0: it does not
        towards[(self.at == BASIC) | (self.upper <= self.lower)] = 0.0
        for _ in range(_STEPS * (len(self.basis) + n)):
            basis = self.basis
            values, low, high = self.values[basis], self.lower[basis], self.upper[basis]
            below, above = values < low - _FEASIBLE, values > high + _FEASIBLE
            is_missing = bool(below.any() or above.any())
            self._weights = above.astype(float) - below if is_missing else costs[basis]
            gains = self._weights @ self.rows[:, :n]
            gains = towards * (gains if is_missing else gains - costs)
            least = _IMPROVES * (1.0 if is_missing else max(largest, 1e-300))
            entering = int(np.argmax(gains > least) if still > _STILL else np.argmax(gains))
            if not gains[entering] > least:
                return EMPTY if is_missing else SOLVED
            # how far the entering variable can go until a basic one is at a bound
            rates = -towards[entering] * self.rows[:, entering]
            ends = np.where((rates > 0) != (below | above), high, low)
            is_blocked = (np.abs(rates) >= _PIVOT) & ~np.where(rates > 0, above, below)
            room = np.full(len(rates), np.inf)
            np.divide(ends - values, rates, out=room, where=is_blocked)
            room = np.maximum(room, 0.0)
            width = float(self.upper[entering] - self.lower[entering])
            step = min(float(room.min(initial=np.inf)), width)
            self.values[basis] += rates * step
            if step >= width:
                self.at[entering] = AT_UPPER if towards[entering] > 0 else AT_LOWER
                self.values[entering] = (self.upper if towards[entering] > 0 else self.lower)[entering]
                towards[entering] = -towards[entering]
            else:
                leaving = int(np.argmax(np.where(room <= step + 1e-13, np.abs(rates), 0.0)))
                self.values[entering] += towards[entering] * step
                self._exchange(entering, leaving, bool(ends[leaving] == low[leaving]), towards)
            still = 0 if step > 1e-13 else still + 1
        return GAVE_UP

    def _exchange(self, entering: int, row: int, at_lower: bool, towards: FloatArray) -> None:
        """Make a variable basic in this row, in place of the one that is at a bound now."""
        leaving = int(self.basis[row])
        self.at[leaving] = AT_LOWER if at_lower else AT_UPPER
        self.values[leaving] = (self.lower if at_lower else self.upper)[leaving]
        towards[leaving] = (1.0 if at_lower else -1.0) * (self.upper[leaving] > self.lower[leaving])
        self.basis[row], self.at[entering], towards[entering] = entering, BASIC, 0.0
        pivot = self.rows[row] / self.rows[row, entering]
        self.rows -= np.outer(self.rows[:, entering], pivot)
        self.rows[row] = pivot

    def prices(self) -> FloatArray:
        """Return the dual values of the rows; where the program is EMPTY, what shows it, up to its sign."""
        return np.asarray(self._weights @ self.rows[:, len(self.lower) + 1 :])
