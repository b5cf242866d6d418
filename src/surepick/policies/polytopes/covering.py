"""Finds the tree of boxes that rules out every plan of a polytope at once, or a plan that is not; compiled.

`core/proofs.py` says what a tree proves and checks one. Here it is found, depth first: linear programs
over the box of a node with secants for Q and a tangent for the wealth. Their answers are guesses: what counts
is what their prices prove, rounded to a few digits so that they are short to write down. A node that is not
ruled out gets tighter bounds, by the reduced costs of these programs, and is split on the variable whose
secant is furthest from its square, or on L where plans of small and of large Q need different tangents.

Cost: 10 to 25 microseconds for a linear program of a transport between nine and nine places, 100 to 10,000 of
them for a proof.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from surepick.core.arrays import FloatArray, IntArray
from surepick.core.proofs import Cut, Inequality, Node, System, system_of
from surepick.core.standard_form import StandardForm
from surepick.kernels import compiled, compiled_inner
from surepick.policies.polytopes.boundary import boundary, measure
from surepick.policies.polytopes.box_cuts import (
    ALIVE,
    COVERED,
    UNKNOWN,
    Box,
    Found,
    Number,
    Shown,
    copy_into,
    cut_box,
    fill_secants,
    make_record,
    show_empty,
    solve_fresh,
)
from surepick.policies.polytopes.simplex import (
    BASIC,
    EMPTY,
    SOLVED,
    empty_tableau,
    find_prices,
    restore,
)

_STACK = 400  # boxes that wait at once: the depth of the tree
_TANGENTS = 7  # that are tried in a node
_PROGRAMS = 30_000  # of one proof, for a transport of nine and nine places
_WORK = 17 * 81  # the entries of that transport's tableau
_LEAST, _FEW, _FEWEST = 500, 500, 20  # programs: of a proof at least, of a quick search, and of one at least


class Search(NamedTuple):
    """The box at hand, first that of the whole polytope, and those that wait."""

    box: Box
    lows: FloatArray  # (n_boxes, n)
    highs: FloatArray
    squares: FloatArray  # (n_boxes,) log Q to begin with


@compiled_inner
def _try_tangents(inequality: Inequality, box: Box, start: float, found: Found) -> int:
    """Look for a tangent that rules out the box; COVERED, ALIVE, or UNKNOWN with what the best one has shown.

    Its value is concave in the slope, and the Q of the points that come back says on which side the best is.
    """
    log_square, below, above = start, -np.inf, np.inf
    shown, shrunk, tries = box.shown, 0, 0
    shown.log_square, shown.slope = start, 0.0
    shown.missing, shown.least_gain, shown.most_gain = np.inf, np.inf, -np.inf
    while tries < _TANGENTS:
        tries += 1
        at_square = math.exp(log_square)
        at_gain, slope = boundary(inequality, at_square)
        fill_secants(inequality, slope, box)
        status = solve_fresh(box.tableau, box.costs, found)
        find_prices(box.tableau, box.prices)
        if status == EMPTY:
            return show_empty(inequality, box, found)
        missing, change = cut_box(inequality, box, at_gain, at_square, found)
        if missing < 0.0:
            return COVERED
        beyond, gain, square = measure(inequality, box.tableau.values)
        if beyond < 0.0 and status == SOLVED:
            copy_into(box.tableau.values, found.alive)
            return ALIVE
        if missing < shown.missing:
            shown.missing, shown.log_square, shown.slope = missing, log_square, slope
            copy_into(box.tableau.values, box.best)
        shown.least_gain, shown.most_gain = min(shown.least_gain, gain), max(shown.most_gain, gain)
        if change > 0.1 * missing and shrunk < 6:  # the box is another now
            shrunk, tries, below, above = shrunk + 1, tries - 1, -np.inf, np.inf
            shown.missing, shown.least_gain, shown.most_gain = np.inf, np.inf, -np.inf
            continue
        step = math.log(max(_above_secants(inequality, box, square), 1e-300)) - log_square
        if step > 0.0:
            below = max(below, log_square)
        else:
            above = min(above, log_square)
        if np.isfinite(below) and np.isfinite(above):
            if above - below < 0.05:
                break
            log_square = 0.5 * (below + above)
        elif abs(step) < 0.02:
            break
        else:
            log_square += max(-3.0, min(3.0, step))
    return UNKNOWN


@compiled_inner
def _above_secants(inequality: Inequality, box: Box, square: float) -> float:
    """Return the Q that the secants of the box give to the point at hand, whose own Q is `square`."""
    for s in range(len(inequality.gains)):
        x = box.tableau.values[s]
        if box.low[s] < x < box.high[s]:
            square += inequality.squares[s] * (x - box.low[s]) * (box.high[s] - x)
    return square


@compiled_inner
def _split(inequality: Inequality, box: Box) -> tuple[int, float]:
    """Return the variable to split the box on, and where; -1 where nothing is wide enough."""
    low, high, best, shown, n_arms = box.low, box.high, box.best, box.shown, len(inequality.gains)
    most, total, arm = 0.0, 0.0, -1
    is_known = np.isfinite(shown.missing)
    for s in range(n_arms):
        below, above = best[s] - low[s], high[s] - best[s]
        if is_known and below > 0.0 and above > 0.0:
            excess = inequality.squares[s] * below * above
            total += excess
            if excess > most:
                most, arm = excess, s
    if (
        is_known
        and shown.slope * total < 0.5 * shown.missing
        and shown.most_gain - shown.least_gain > 1e-3 * abs(shown.most_gain)
    ):
        j = len(low) - 1
        least, greatest = shown.least_gain - inequality.gain, shown.most_gain - inequality.gain
        value = 0.5 * (max(least, low[j]) + min(greatest, high[j]))
        return j, value if low[j] < value < high[j] else 0.5 * (low[j] + high[j])
    if arm >= 0:
        width = high[arm] - low[arm]
        return arm, min(max(best[arm], low[arm] + 0.2 * width), high[arm] - 0.2 * width)
    for s in range(n_arms):  # nothing was learned: halve the widest
        width = inequality.squares[s] * (high[s] - low[s]) ** 2
        if width > most:
            most, arm = width, s
    if arm < 0 or high[arm] - low[arm] < 1e-9:
        return -1, 0.0
    return arm, 0.5 * (low[arm] + high[arm])


@compiled
def _cover(inequality: Inequality, search: Search, start: float, most: int, found: Found) -> int:
    """Return COVERED if every plan of the box is ruled out, ALIVE if one is not; UNKNOWN if it gave up.

    The tangent of log Q = `start` is tried first; `most` is the number of programs.
    """
    box, lows, highs, squares = search
    copy_into(box.low, lows[0])
    copy_into(box.high, highs[0])
    squares[0] = start
    waiting = 1
    while waiting > 0:
        waiting -= 1
        copy_into(lows[waiting], box.low)
        copy_into(highs[waiting], box.high)
        node = found.number.nodes
        found.number.nodes += 1
        if found.number.programs > most or waiting + 2 >= _STACK:
            return UNKNOWN
        status = _try_tangents(inequality, box, squares[waiting], found)
        if status == ALIVE:
            return ALIVE
        variable, value = (-1, 0.0) if status == COVERED else _split(inequality, box)
        if status != COVERED and variable < 0:
            return UNKNOWN
        if node < len(found.node_split):
            found.node_split[node], found.node_value[node] = variable, value
        if variable >= 0:
            for side in range(2):  # above, then below, which is looked at first
                copy_into(box.low, lows[waiting])
                copy_into(box.high, highs[waiting])
                if side == 0:
                    lows[waiting, variable] = value
                else:
                    highs[waiting, variable] = value
                squares[waiting] = box.shown.log_square
                waiting += 1
    return COVERED


class Cover(NamedTuple):
    """What was found: COVERED, with the nodes that prove it if asked for; ALIVE, with a plan; or neither."""

    status: int
    alive: FloatArray
    nodes: list[Node]
    n_programs: int


class Effort(NamedTuple):
    """Where a search begins and how much it may do."""

    basis: IntArray  # of the polytope: where each variable is
    square: float  # the Q of a plan on the boundary, to begin with
    most: int  # linear programs


def cover(inequality: Inequality, system: System, effort: Effort, *, keep: bool = False) -> Cover:
    """Search for boxes that rule out every plan; `keep` asks for the proof."""
    status, found = _search(inequality, system, effort, 1)
    nodes, n_programs = list[Node](), int(found.number.programs)
    if keep and status == COVERED:  # the same again, with room for all of it
        _, found = _search(inequality, system, effort, int(max(found.number.nodes, found.number.cuts)))
        k = 0
        for node in range(int(found.number.nodes)):
            cuts = list[Cut]()
            for _ in range(int(found.node_cuts[node])):
                gain, square, unit = found.tangents[k].tolist()
                cuts.append(Cut(gain, square, unit, found.prices[k].copy()))
                k += 1
            nodes.append(Node(tuple(cuts), int(found.node_split[node]), float(found.node_value[node])))
    return Cover(status, found.alive, nodes, n_programs)


def _search(inequality: Inequality, system: System, effort: Effort, n_kept: int) -> tuple[int, Found]:
    """Return the status of a search and what it found, with room for `n_kept` nodes and cuts."""
    m, n = system.matrix.shape
    tableau = empty_tableau(
        system.matrix, system.right, (system.lower.copy(), system.upper.copy()), priced=True
    )
    tableau.at[:] = np.append(effort.basis, BASIC)
    found = Found(
        make_record(Number),
        np.zeros(len(inequality.gains)),
        np.zeros(n_kept, dtype=np.int64),
        np.full(n_kept, -1, dtype=np.int64),
        np.zeros(n_kept),
        np.zeros((n_kept, 3)),
        np.zeros((n_kept, m)),
    )
    if not restore(tableau):
        return UNKNOWN, found
    costs, reduced, best = np.zeros(n), np.zeros(n), np.zeros(n)
    shown = make_record(Shown)
    box = Box(tableau.lower, tableau.upper, costs, reduced, np.zeros(m), tableau, best, shown)
    search = Search(box, np.empty((_STACK, n)), np.empty((_STACK, n)), np.empty(_STACK))
    start = math.log(max(effort.square, 1e-300))
    return int(_cover(inequality, search, start, effort.most, found)), found


class Prover:
    """Searches for proofs over one polytope, from one basis; less far where linear programs are larger."""

    def __init__(self, form: StandardForm, first: IntArray, epsilon: float) -> None:
        self._form, self._first, self._epsilon = form, first, epsilon
        self._most = max(_LEAST, min(_PROGRAMS, _PROGRAMS * _WORK // form.matrix.size))
        self._few = max(_FEWEST, min(_FEW, _FEW * _WORK // form.matrix.size))

    def prove(self, inequality: Inequality, *, keep: bool = False, quick: bool = False) -> Cover:
        """Look for a proof, and keep it if asked to; a quick search takes a moment and may miss one."""
        square = self._epsilon**2 / (8 * max(inequality.target, 0.1))
        effort = Effort(self._first, square, self._few if quick else self._most)
        return cover(inequality, system_of(self._form, inequality), effort, keep=keep)

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
