"""Finds the tree of boxes that rules out every plan of a polytope at once, or a plan that is not.

`core/polytopes/proofs.py` says what a tree proves and checks one; the same function makes the cuts here.
The search is depth first: linear programs over the box of a node with secants for Q and a tangent for the
wealth. Their answers are guesses: what counts is what their prices prove, rounded to a few digits so that
they are short to write down. A node that is not ruled out gets tighter bounds, by the reduced costs of these
programs, and is split on the variable whose secant is furthest from its square, or on L where plans of small
and of large Q need different tangents.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from surepick.core.arrays import FloatArray, IntArray
from surepick.core.polytopes.proofs import Cut, Inequality, Node, System, cut_box, halves, secants, system_of
from surepick.core.polytopes.standard_form import BASIC, StandardForm
from surepick.policies.polytopes.simplex import EMPTY, SOLVED, Simplex

COVERED, ALIVE, UNKNOWN = 1, 0, -1
_STACK = 400  # boxes that wait at once: the depth of the tree
_TANGENTS = 7  # that are tried in a node
_FRESH = 12  # linear programs after which a tableau is computed afresh
_DIGITS = 6  # of prices
_WORTH = 0.02  # of a width: how much a bound must move to be written down
_ALLOWED = 2.0  # times the rounding of the check, which may add up in another order
_EXACT = 1e-9  # of L on the boundary; a tangent is valid wherever it touches
_PROGRAMS = 30_000  # of one proof, for a transport of nine and nine places
_WORK = 17 * 81  # the entries of that transport's tableau
_LEAST, _FEW, _FEWEST = 500, 500, 20  # programs: of a proof at least, of a quick search, and of one at least


def boundary(inequality: Inequality, square: float) -> tuple[float, float]:
    """Return the least L with which a plan of this Q is ruled out, and its slope in Q: a concave function."""
    rates, target = inequality.rates, inequality.target
    if not len(rates):
        return target * math.sqrt(square), target / (2.0 * math.sqrt(square))
    gain = float(((target - inequality.log_stakes) / rates + 0.5 * rates * square).min())
    for _ in range(60):  # Newton from the right, where a convex function is met monotonically
        value, first, second = inequality.at(gain, square)
        step = (value - target) / first
        if abs(step) < _EXACT * (1.0 + abs(gain)):
            break
        gain -= step
    return gain, 0.5 * second / first


def is_beyond(inequality: Inequality, gain: float, square: float) -> bool:
    """Return whether plans with these L and Q are ruled out."""
    if not len(inequality.rates):
        return gain >= inequality.target * math.sqrt(max(square, 0.0))
    return inequality.at(gain, square)[0] >= inequality.target


class Cover(NamedTuple):
    """What was found: COVERED, with the nodes that prove it; ALIVE, with a plan; or neither."""

    status: int
    alive: FloatArray
    nodes: list[Node]
    n_programs: int


class _Box:
    """The box of a node, its cuts, and what the tangents tried on it have shown."""

    def __init__(self, inequality: Inequality, system: System, bounds: tuple[FloatArray, FloatArray]) -> None:
        self._inequality, self._system, (self.low, self.high) = inequality, system, bounds
        self.cuts: list[Cut] = []
        self.alive: FloatArray = system.lower[: len(inequality.gains)]  # a plan that is not ruled out
        self._forget()

    def _forget(self) -> None:
        self._missing = math.inf  # what the best tangent lacks
        self._slope, self._best = 0.0, self.low  # of the best one, and the point that came back
        self._gains: list[float] = []  # L of all points that came back

    def try_tangents(self, program: Simplex, start: float) -> tuple[int, float]:
        """Look for a tangent that rules out the box; return COVERED, ALIVE or UNKNOWN, and the best log Q.

        A plan is ruled out if L >= boundary(Q). On the box Q is at most its secants, and the boundary, which
        is concave, at most its tangent at a point Q0. One linear program then finds the plan that is furthest
        from being ruled out, and its prices a bound (`_cut`). The bound is concave in Q0, and best where Q0
        is the secant's Q at the plan that comes back: that Q says on which side the best Q0 lies. `start` is
        the first log Q0; once it lies between two others the interval is halved.
        """
        inequality, n, log_square = self._inequality, len(self._inequality.gains), start
        below, above, shrunk, tries, best = -math.inf, math.inf, 0, 0, start
        while tries < _TANGENTS:
            tries += 1
            at_square = math.exp(log_square)
            at_gain, slope = boundary(inequality, at_square)
            costs = np.zeros(len(self.low))
            costs[:n] = secants(inequality, slope, self.low[:n], self.high[:n])[0]
            program.lower, program.upper = self.low, self.high
            if not program.restart(afresh=program.n_solved % _FRESH == 0):
                return UNKNOWN, best
            status, prices = program.solve(costs), program.prices()
            if status == EMPTY:
                is_empty = any(self._cut(sign * prices, None)[0] < 0 for sign in (1.0, -1.0))
                return COVERED if is_empty else UNKNOWN, best
            missing, change = self._cut(prices, (at_gain, at_square))
            if missing < 0.0:
                return COVERED, best
            point = program.values[:n].copy()
            gain, square = map(float, inequality.sums(point))
            if status == SOLVED and not is_beyond(inequality, gain, square):
                self.alive = point
                return ALIVE, best
            if (
                slope * change > 0.1 * missing and shrunk < 6
            ):  # the cut made the box smaller: begin again on it
                shrunk, tries, below, above = shrunk + 1, tries - 1, -math.inf, math.inf
                self._forget()
                continue
            self._gains.append(gain)
            if missing < self._missing:
                self._missing, self._slope, self._best, best = missing, slope, point, log_square
            # the secant of x^2 is above it by (x - low) (high - x)
            inside = np.clip(point - self.low[:n], 0.0, None) * np.clip(self.high[:n] - point, 0.0, None)
            by_secants = max(square + float(inequality.squares @ inside), 1e-300)
            step = math.log(by_secants) - log_square
            if step > 0:
                below = max(below, log_square)
            else:
                above = min(above, log_square)
            if math.isfinite(above - below):
                if above - below < 0.05:
                    break
                log_square = 0.5 * (below + above)
            elif abs(step) < 0.02:
                break
            else:
                log_square += max(-3.0, min(3.0, step))
        return UNKNOWN, best

    def _cut(self, prices: FloatArray, at: tuple[float, float] | None) -> tuple[float, float]:
        """Bound the box by these prices and a tangent.

        Return what is missing to rule it out (below 0: nothing), and how much its squared widths have shrunk,
        each times how much of Q it is. The cut is kept where it moves a bound far enough.
        """
        largest = float(np.abs(prices).max(initial=0.0))
        unit = 10.0 ** (math.floor(math.log10(largest)) - _DIGITS) if largest > 0 else 1.0
        cut = Cut(at, unit, tuple(np.rint(prices / unit).astype(np.int64).tolist()))
        missing, low, high = cut_box(self._inequality, self._system, self.low, self.high, cut, _ALLOWED)
        if missing < 0.0 or (low > high).any():
            self.cuts.append(cut)
            return -1.0, 0.0
        width = self.high - self.low
        if not (width - (high - low) > _WORTH * width).any():
            return missing, 0.0
        n = len(self._inequality.gains)
        change = float(self._inequality.squares @ (width * (width - (high - low)))[:n])
        self.cuts.append(cut)
        self.low, self.high = low, high
        return missing, change

    def split(self) -> tuple[int, float] | None:
        """Return the variable to split the box on, and where; None where nothing is wide enough.

        Where secants cause less than half of what the best tangent lacks, plans of small and of large Q need
        different tangents: the box is split on L, its last variable. Else it is split on the arm whose secant
        is furthest above its square at the plan that came back.
        """
        inequality, low, high, n = self._inequality, self.low, self.high, len(self._inequality.gains)
        if self._gains:
            below, above = self._best - low[:n], high[:n] - self._best
            excess = np.where((below > 0) & (above > 0), inequality.squares * below * above, 0.0)
            least, most = min(self._gains), max(self._gains)
            if self._slope * excess.sum() < 0.5 * self._missing and most - least > 1e-3 * abs(most):
                j = len(low) - 1
                value = 0.5 * (max(least - inequality.gain, low[j]) + min(most - inequality.gain, high[j]))
                return j, float(value if low[j] < value < high[j] else 0.5 * (low[j] + high[j]))
            if excess.any():
                arm = int(np.argmax(excess))
                room = 0.2 * (high[arm] - low[arm])
                return arm, float(np.clip(self._best[arm], low[arm] + room, high[arm] - room))
        # nothing was learned: halve the widest
        arm = int(np.argmax(inequality.squares * (high - low)[:n] ** 2))
        if high[arm] - low[arm] < 1e-9:
            return None
        return arm, float(0.5 * (low[arm] + high[arm]))


def cover(inequality: Inequality, system: System, basis: IntArray, square: float, most: int) -> Cover:
    """Search for boxes that rule out every plan, with at most `most` linear programs.

    The first starts at this basis of the polytope, with the tangent at Q = `square`.
    """
    program, nodes = Simplex(*system), list[Node]()
    nothing = system.lower[: len(inequality.gains)]
    if not program.go_to(np.append(basis, BASIC)):
        return Cover(UNKNOWN, nothing, nodes, 0)
    waiting = [((system.lower, system.upper), math.log(max(square, 1e-300)))]
    while waiting:
        bounds, start = waiting.pop()
        box = _Box(inequality, system, bounds)
        if program.n_solved > most or len(waiting) > _STACK:
            return Cover(UNKNOWN, nothing, nodes, program.n_solved)
        status, best = box.try_tangents(program, start)
        split = box.split() if status == UNKNOWN else None
        if status == ALIVE or (status == UNKNOWN and split is None):
            return Cover(status, box.alive, nodes, program.n_solved)
        nodes.append(Node(box.cuts, split))
        if split is not None:
            waiting += [(half, best) for half in halves(box.low, box.high, *split)]
    return Cover(COVERED, nothing, nodes, program.n_solved)


class Prover:
    """Searches for proofs over one polytope, from one basis; less far where linear programs are larger."""

    def __init__(self, form: StandardForm, first: IntArray, epsilon: float) -> None:
        self._form, self._first, self._epsilon = form, first, epsilon
        self._most = max(_LEAST, min(_PROGRAMS, _PROGRAMS * _WORK // form.matrix.size))
        self._few = max(_FEWEST, min(_FEW, _FEW * _WORK // form.matrix.size))

    def prove(self, inequality: Inequality, *, quick: bool = False) -> Cover:
        """Look for a proof; a quick search takes a moment and may miss one."""
        square = self._epsilon**2 / (8 * max(inequality.target, 0.1))
        most = self._few if quick else self._most
        return cover(inequality, system_of(self._form, inequality), self._first, square, most)

    def first_level(
        self,
        levels: Iterable[float],
        least: float,
        ask: Callable[[float], Inequality],
        *,
        quick: bool = False,
    ) -> float:
        """Return the first of these levels above the least whose inequality is proved; else the least."""
        for level in levels:
            if level <= least:
                break
            if self.prove(ask(level), quick=quick).status == COVERED:
                return level
        return least
