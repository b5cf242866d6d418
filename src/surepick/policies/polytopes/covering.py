"""Finds the tree of boxes that rules out every plan of a polytope at once, or a plan that is not; compiled.

`core/proofs.py` says what a tree proves and checks one. Here it is found, depth first: linear programs
over the box of a node with secants for Q and a tangent for the wealth. Their answers are guesses: what counts
is what their prices prove, rounded to a few digits so that they are short to write down. A node that is not
ruled out gets tighter bounds, by the reduced costs of these programs and by more of them, and is split on the
variable whose secant is furthest from its square, or on L where plans of small and of large Q need different
tangents.

Cost: 10 to 25 microseconds for a linear program of a transport between nine and nine places, 100 to 10,000 of
them for a proof.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from surepick.core.arrays import FloatArray, IntArray
from surepick.core.proofs import Cut, Inequality, Node, System
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
    show_empty,
    solve_fresh,
)
from surepick.policies.polytopes.records import make_record
from surepick.policies.polytopes.simplex import (
    BASIC,
    EMPTY,
    SOLVED,
    Tableau,
    empty_tableau,
    find_prices,
    restore,
)
from surepick.policies.polytopes.tightening import Wide, tighten

_STACK = 400  # boxes that wait at once: the depth of the tree
_ROOM = 800  # nodes and cuts that are kept beyond the most programs, at first
_TANGENTS = 7  # that are tried in a node
ROOT_ROUNDS = 12  # of tightening all arms at the root
_NODE_ARMS = 20  # arms that are tightened at another node


class Search(NamedTuple):
    """The box at hand, first that of the whole polytope, and those that wait."""

    box: Box
    wide: Wide
    lows: FloatArray  # (n_boxes, n)
    highs: FloatArray
    squares: FloatArray  # (n_boxes,) log Q to begin with
    depths: IntArray  # (n_boxes,)


@compiled_inner
def _try_tangents(inequality: Inequality, box: Box, start: float, found: Found) -> int:
    """Look for a tangent that rules out the box; COVERED, ALIVE, or UNKNOWN with what the best one has shown.

    Its value is concave in the slope, and the Q of the points that come back says on which side the best is.
    """
    log_square, below, above = start, -np.inf, np.inf
    shown, shrunk, tries = box.shown, 0, 0
    shown.log_square, shown.slope = start, 0.0
    _forget(shown)
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
            _forget(shown)
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
def _forget(shown: Shown) -> None:
    """Before any tangent of the box as it is now; the best one so far says where to begin."""
    shown.missing, shown.least_gain, shown.most_gain = np.inf, np.inf, -np.inf


@compiled_inner
def _above_secants(inequality: Inequality, box: Box, square: float) -> float:
    """The Q that the secants of the box take this point to have, which has this one."""
    for s in range(len(inequality.gains)):
        x = box.tableau.values[s]
        if box.low[s] < x < box.high[s]:
            square += inequality.squares[s] * (x - box.low[s]) * (box.high[s] - x)
    return square


@compiled_inner
def _split(inequality: Inequality, box: Box) -> tuple[int, float]:
    """The variable to split the box on, and where; -1 where nothing is wide enough."""
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
def _cover(inequality: Inequality, search: Search, effort: tuple[float, int, int], found: Found) -> int:
    """COVERED if every plan of the box is ruled out, ALIVE if one is not.

    `effort`: a first log Q, the most programs, and the rounds of tightening at the root.
    """
    start, most, rounds = effort
    box, wide, lows, highs, squares, depths = search
    copy_into(box.low, lows[0])
    copy_into(box.high, highs[0])
    squares[0], depths[0] = start, 0
    waiting = 1
    while waiting > 0:
        waiting -= 1
        copy_into(lows[waiting], box.low)
        copy_into(highs[waiting], box.high)
        depth, node = depths[waiting], found.number.nodes
        found.number.nodes += 1
        if found.number.programs > most or waiting + 2 >= _STACK:
            return UNKNOWN
        status = _try_tangents(inequality, box, squares[waiting], found)
        if status == ALIVE:
            return ALIVE
        if status == UNKNOWN and np.isfinite(box.shown.missing):
            tightening = (rounds, len(inequality.gains)) if depth == 0 else (1, _NODE_ARMS)
            if tighten(inequality, box, wide, tightening, found):
                status = COVERED
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
                squares[waiting], depths[waiting] = box.shown.log_square, depth + 1
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
    most: int  # linear programs, after those at the root
    rounds: int = ROOT_ROUNDS  # of tightening all arms there


def cover(inequality: Inequality, system: System, effort: Effort, *, keep: bool = False) -> Cover:
    """Search for boxes that rule out every plan; `keep` asks for the proof."""
    n_kept = effort.most + _ROOM if keep else 1
    status, found = _search(inequality, system, effort, n_kept)
    n_found = int(max(found.number.nodes, found.number.cuts))
    if keep and n_found > n_kept:
        status, found = _search(
            inequality, system, effort, n_found
        )  # the same again, with room for all of it
    nodes = _nodes(found) if keep and status == COVERED else []
    return Cover(status, found.alive, nodes, int(found.number.programs))


def _search(inequality: Inequality, system: System, effort: Effort, n_kept: int) -> tuple[int, Found]:
    """The status of a search and what it found, of which so many nodes and cuts are kept."""
    m, n = system.matrix.shape
    tableau = empty_tableau(
        system.matrix, system.right, (system.lower.copy(), system.upper.copy()), priced=True
    )
    tableau.at[:] = np.append(effort.basis, BASIC)
    wide_matrix = np.zeros((m + 1, n + 1))
    wide_matrix[:m, :n] = system.matrix
    bounds = np.zeros(n + 1), np.zeros(n + 1)
    wide = Wide(
        empty_tableau(wide_matrix, np.append(system.right, 0.0), bounds, priced=True),
        np.zeros(n + 1),
        np.zeros(m + 1),
        np.zeros(len(inequality.gains)),
    )
    found = Found(
        make_record(Number),
        np.zeros(len(inequality.gains)),
        np.zeros(n_kept, dtype=np.int64),
        np.full(n_kept, -1, dtype=np.int64),
        np.zeros(n_kept),
        np.zeros((n_kept, 3)),
        np.zeros((n_kept, m)),
    )
    status = UNKNOWN
    if restore(tableau):
        begin = math.log(max(effort.square, 1e-300))
        lows, highs, depths = np.empty((_STACK, n)), np.empty((_STACK, n)), np.zeros(_STACK, np.int64)
        search = Search(_box_of(tableau), wide, lows, highs, np.empty(_STACK), depths)
        status = _cover(inequality, search, (begin, effort.most, effort.rounds), found)
    return status, found


def _box_of(tableau: Tableau) -> Box:
    """The box of the whole polytope; its bounds are those of the tableau."""
    m, n = tableau.matrix.shape
    costs, reduced, best = np.zeros(n), np.zeros(n), np.zeros(n)
    return Box(tableau.lower, tableau.upper, costs, reduced, np.zeros(m), tableau, best, make_record(Shown))


def _nodes(found: Found) -> list[Node]:
    """The tree as the check reads it."""
    n_nodes, nodes, k = int(found.number.nodes), [], 0
    for node in range(n_nodes):
        cuts = []
        for _ in range(int(found.node_cuts[node])):
            gain, square, unit = found.tangents[k].tolist()
            cuts.append(Cut(gain, square, unit, found.prices[k].copy()))
            k += 1
        nodes.append(Node(tuple(cuts), int(found.node_split[node]), float(found.node_value[node])))
    return nodes
