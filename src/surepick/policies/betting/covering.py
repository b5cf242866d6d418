"""Finds the tree of boxes that rules out every plan of a polytope at once, or a plan that is not; compiled.

`core/average_proof.py` says what a tree proves and checks one. Here it is found, depth first: linear programs
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
from surepick.core.average_proof import Cut, Node, Question, System
from surepick.kernels.compiled import compiled, compiled_inner
from surepick.kernels.simplex import EMPTY, SOLVED, Tableau, empty_tableau, find_prices, make_rows, restore
from surepick.policies.betting.boundary import boundary, measure, tangent
from surepick.policies.betting.box_cuts import (
    ALIVE,
    AT,
    COVERED,
    LEAST,
    MOST,
    SHORT,
    SLOPE,
    UNKNOWN,
    Box,
    Found,
    copy_into,
    cut_box,
    fill_secants,
    show_empty,
    solve_fresh,
)

_STACK = 400  # boxes that wait at once: the depth of the tree
_ROOM = 800  # nodes and cuts that are kept beyond the most programs, at first
_TANGENTS = 7  # that are tried in a node
ROOT_ROUNDS = 12  # of tightening all arms at the root
_NODE_ARMS = 20  # arms that are tightened at another node
_BASIC = 2  # as in core.standard_form


class Wide(NamedTuple):
    """The program of a box with a row more, for what the best tangent leaves; and scratch."""

    tableau: Tableau
    objective: FloatArray  # (n + 1,) of zeros
    prices: FloatArray  # (m + 1,)
    width: FloatArray  # (n_arms,) spread of squares


class Search(NamedTuple):
    """The box at hand, first that of the whole polytope, and those that wait."""

    box: Box
    wide: Wide
    lows: FloatArray  # (n_boxes, n)
    highs: FloatArray
    squares: FloatArray  # (n_boxes,) log Q to begin with
    depths: IntArray  # (n_boxes,)


@compiled_inner
def _try_tangents(question: Question, box: Box, start: float, found: Found) -> int:
    """Look for a tangent that rules out the box; COVERED, ALIVE, or UNKNOWN with notes of the best one.

    Its value is concave in the slope, and the Q of the points that come back says on which side the best is.
    """
    log_square, below, above = start, -np.inf, np.inf
    notes, shrunk, tries = box.notes, 0, 0
    notes[SHORT], notes[AT], notes[SLOPE], notes[LEAST], notes[MOST] = (
        np.inf,
        start,
        0.0,
        np.inf,
        -np.inf,
    )
    n_arms = len(question.gains)
    while tries < _TANGENTS:
        tries += 1
        at_square = math.exp(log_square)
        at_gain, slope = boundary(question, at_square)
        fill_secants(question, slope, box)
        status = solve_fresh(box.tableau, box.costs, found)
        find_prices(box.tableau, box.prices)
        if status == EMPTY:
            return show_empty(question, box, found)
        missing, change = cut_box(question, box, at_gain, at_square, found)
        if missing < 0.0:
            return COVERED
        beyond, gain, square = measure(question, box.tableau.values)
        if beyond < 0.0 and status == SOLVED:
            copy_into(box.tableau.values, found.alive)
            return ALIVE
        for s in range(n_arms):
            x = box.tableau.values[s]
            if box.low[s] < x < box.high[s]:
                square += question.squares[s] * (x - box.low[s]) * (box.high[s] - x)
        if missing < notes[SHORT]:
            notes[SHORT], notes[AT], notes[SLOPE] = missing, log_square, slope
            copy_into(box.tableau.values, box.best)
        notes[LEAST], notes[MOST] = min(notes[LEAST], gain), max(notes[MOST], gain)
        if change > 0.1 * missing and shrunk < 6:  # the box is another now
            shrunk, tries, below, above = shrunk + 1, tries - 1, -np.inf, np.inf
            notes[SHORT], notes[LEAST], notes[MOST] = np.inf, np.inf, -np.inf
            continue
        step = math.log(max(square, 1e-300)) - log_square
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
def _tighten_arms(question: Question, box: Box, wide: Wide, n_arms: int, found: Found) -> tuple[bool, float]:
    """Bound single arms over the plans of the box that the best tangent does not rule out.

    Whether the box is ruled out, and the share of the spread of squares that is left.
    """
    m, n = box.tableau.matrix.shape
    at_square = math.exp(box.notes[AT])
    at_gain, _ = boundary(question, at_square)
    slope, need = tangent(question, at_gain, at_square)
    const, _ = fill_secants(question, slope, box)
    tableau, objective, prices, width = wide
    _widen(box, tableau, need - const)
    if not make_rows(tableau):
        return False, 1.0
    before = 0.0
    for s in range(len(width)):
        width[s] = question.squares[s] * (box.high[s] - box.low[s]) ** 2
        before += width[s]
    for _ in range(min(n_arms, len(width))):
        s = _widest(width)
        if width[s] < 1e-4 * before:
            break
        width[s] = -1.0  # it had its turn
        for side in (1.0, -1.0):
            objective[s] = -side
            status = solve_fresh(tableau, objective, found)
            find_prices(tableau, prices)
            objective[s] = 0.0
            if status == SOLVED:
                weight = -prices[m]
                is_plain = weight <= 1e-12
                for i in range(m):
                    box.prices[i] = prices[i] if is_plain else prices[i] / weight
                at = np.nan if is_plain else at_gain
                missing, _ = cut_box(question, box, at, at_square, found)
            else:
                missing = (
                    1.0
                    if status != EMPTY
                    else _show_nothing_left(question, box, (at_gain, at_square), prices, found)
                )
            if missing < 0.0:
                return True, 0.0
            for j in range(n):
                tableau.lower[j], tableau.upper[j] = box.low[j], box.high[j]
    after = 0.0
    for s in range(len(width)):
        after += question.squares[s] * (box.high[s] - box.low[s]) ** 2
    return False, after / before if before > 0.0 else 1.0


@compiled_inner
def _widest(width: FloatArray) -> int:
    """Where the largest of these is, the first of equals."""
    widest = 0
    for s in range(1, len(width)):
        if width[s] > width[widest]:
            widest = s
    return widest


@compiled_inner
def _widen(box: Box, wide: Tableau, most: float) -> None:
    """Make `wide` the program of the box with the row costs.x - t = 0, t <= most."""
    m, n = box.tableau.matrix.shape
    least = 0.0
    for j in range(n):
        wide.matrix[m, j] = box.costs[j]
        wide.lower[j], wide.upper[j], wide.at[j] = box.low[j], box.high[j], box.tableau.at[j]
        least += min(box.costs[j] * box.low[j], box.costs[j] * box.high[j])
    wide.matrix[m, n], wide.at[n] = -1.0, _BASIC
    wide.lower[n], wide.upper[n] = min(least - 1e-9 * (1.0 + abs(least)), most), most


@compiled_inner
def _show_nothing_left(
    question: Question, box: Box, at: tuple[float, float], prices: FloatArray, found: Found
) -> float:
    """Whether prices of an empty wide program show that the tangent at `at` leaves no plan."""
    m = len(box.prices)
    for sign in (1.0, -1.0):
        weight = -sign * prices[m]
        if weight > 1e-12:
            for i in range(m):
                box.prices[i] = sign * prices[i] / weight
            missing, _ = cut_box(question, box, at[0], at[1], found)
            if missing < 0.0:
                return missing
    return 1.0


@compiled_inner
def _split(question: Question, box: Box) -> tuple[int, float]:
    """The variable to split the box on, and where; -1 where nothing is wide enough."""
    low, high, best, notes, n_arms = box.low, box.high, box.best, box.notes, len(question.gains)
    most, total, arm = 0.0, 0.0, -1
    is_known = np.isfinite(notes[SHORT])
    for s in range(n_arms):
        below, above = best[s] - low[s], high[s] - best[s]
        if is_known and below > 0.0 and above > 0.0:
            excess = question.squares[s] * below * above
            total += excess
            if excess > most:
                most, arm = excess, s
    if (
        is_known
        and notes[SLOPE] * total < 0.5 * notes[SHORT]
        and notes[MOST] - notes[LEAST] > 1e-3 * abs(notes[MOST])
    ):
        j = len(low) - 1
        value = 0.5 * (max(notes[LEAST] - question.gain, low[j]) + min(notes[MOST] - question.gain, high[j]))
        return j, value if low[j] < value < high[j] else 0.5 * (low[j] + high[j])
    if arm >= 0:
        width = high[arm] - low[arm]
        return arm, min(max(best[arm], low[arm] + 0.2 * width), high[arm] - 0.2 * width)
    for s in range(n_arms):  # nothing was learned: halve the widest
        spread = question.squares[s] * (high[s] - low[s]) ** 2
        if spread > most:
            most, arm = spread, s
    if arm < 0 or high[arm] - low[arm] < 1e-9:
        return -1, 0.0
    return arm, 0.5 * (low[arm] + high[arm])


@compiled
def _cover(question: Question, search: Search, effort: tuple[float, int, int], found: Found) -> int:
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
        depth, node = depths[waiting], found.numbers[1]
        found.numbers[1] += 1
        if found.numbers[3] > most or waiting + 2 >= _STACK:
            return UNKNOWN
        status = _try_tangents(question, box, squares[waiting], found)
        if status == ALIVE:
            return ALIVE
        if status == UNKNOWN and np.isfinite(box.notes[SHORT]):
            for _ in range(rounds if depth == 0 else 1):
                arms = len(question.gains) if depth == 0 else _NODE_ARMS
                is_out, left = _tighten_arms(question, box, wide, arms, found)
                if is_out:
                    status = COVERED
                    break
                if left > 0.9:
                    break
        variable, value = (-1, 0.0) if status == COVERED else _split(question, box)
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
                squares[waiting], depths[waiting] = box.notes[AT], depth + 1
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


def cover(question: Question, system: System, effort: Effort, *, keep: bool = False) -> Cover:
    """Whether every plan is ruled out; `keep` asks for the proof."""
    n_kept = effort.most + _ROOM if keep else 1
    status, found = _search(question, system, effort, n_kept)
    n_found = int(max(found.numbers[1], found.numbers[2]))  # nodes and cuts
    if keep and n_found > n_kept:
        status, found = _search(question, system, effort, n_found)  # the same again, with room for all of it
    nodes = _nodes(found) if keep and status == COVERED else []
    return Cover(status, found.alive, nodes, int(found.numbers[3]))


def _search(question: Question, system: System, effort: Effort, n_kept: int) -> tuple[int, Found]:
    """The status of a search and what it found, of which so many nodes and cuts are kept."""
    m, n = system.matrix.shape
    tableau = empty_tableau(
        system.matrix, system.right, (system.lower.copy(), system.upper.copy()), priced=True
    )
    tableau.at[:] = np.append(effort.basis, _BASIC)
    wide_matrix = np.zeros((m + 1, n + 1))
    wide_matrix[:m, :n] = system.matrix
    bounds = np.zeros(n + 1), np.zeros(n + 1)
    wide = Wide(
        empty_tableau(wide_matrix, np.append(system.right, 0.0), bounds, priced=True),
        np.zeros(n + 1),
        np.zeros(m + 1),
        np.zeros(len(question.gains)),
    )
    found = Found(
        np.zeros(4, dtype=np.int64),
        np.zeros(len(question.gains)),
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
        status = _cover(question, search, (begin, effort.most, effort.rounds), found)
    return status, found


def _box_of(tableau: Tableau) -> Box:
    """The box of the whole polytope; its bounds are those of the tableau."""
    m, n = tableau.matrix.shape
    costs, reduced, best = np.zeros(n), np.zeros(n), np.zeros(n)
    return Box(tableau.lower, tableau.upper, costs, reduced, np.zeros(m), tableau, best, np.zeros(5))


def _nodes(found: Found) -> list[Node]:
    """The tree as the check reads it."""
    n_nodes, nodes, k = int(found.numbers[1]), [], 0
    for node in range(n_nodes):
        cuts = []
        for _ in range(int(found.node_cuts[node])):
            gain, square, unit = found.tangents[k].tolist()
            cuts.append(Cut(gain, square, unit, found.prices[k].copy()))
            k += 1
        nodes.append(Node(tuple(cuts), int(found.node_split[node]), float(found.node_value[node])))
    return nodes
