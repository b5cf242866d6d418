"""The standard form of a polytope: equations over bounded variables, for linear programs and edges.

Rows a.x <= b get a slack each, so that plans are the first entries of {z: A z = b, lower <= z <= upper}.
Every bound is finite. A bound that follows from the rows is moved away from the plans, where it can never be
active: kept, it would make vertices degenerate (x_ij <= supply_i in a transport), and moving it changes no
plan.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from surepick.core.arrays import BoolArray, FloatArray, IntArray, as_floats, first_true, read_only
from surepick.core.given.numbers import vector
from surepick.errors import ProblemError

_INFEASIBLE = 2  # SciPy's status of a linear program
_TRIED_ROWS = 60  # rows that are left out one by one to name the one that leaves no plan
_DEPENDENT = 1e-9  # of a row's largest entry: what elimination leaves of a row that follows from others
_CONTRADICTION = 1e-7  # of the sizes: a right side may miss what the other rows imply by this much
_SAME = 4e-12  # of a bound or the room between two: one that follows from rows up to rounding
_SNAP = 1e-13  # of the larger bound: amounts this near to a bound are at it
_NEARLY_WHOLE = 1e-9  # entries of a tableau of whole numbers this near to one are it
_NOTHING = 1e-11  # entries of a tableau that are rounding
_PASSES = 10  # of finding bounds that follow from others

ROUNDING = 2.0**-40  # a sum of up to 4000 products errs by less than this share of the sum of their sizes
AT_LOWER, AT_UPPER, BASIC = 0, 1, 2  # where a variable is at a basis

_ONE_PLAN = "the rows and bounds leave one plan only; with one plan there is nothing to choose"


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows and bounds of a polytope as they were given, and the names of its arms."""

    a_ub: FloatArray  # (n_ub, n_arms): a_ub x <= b_ub
    b_ub: FloatArray
    a_eq: FloatArray  # (n_eq, n_arms): a_eq x = b_eq
    b_eq: FloatArray
    lower: FloatArray  # (n_arms,)
    upper: FloatArray
    names: tuple[str, ...]

    def without(self, kind: str, k: int) -> Rows:
        """Return the constraints without row k of a_ub or of a_eq, as `kind` ("ub" or "eq") says."""
        parts = [f"a_{kind}", f"b_{kind}"]
        return replace(self, **{part: np.delete(getattr(self, part), k, axis=0) for part in parts})

    def best(self, weights: FloatArray) -> Any:
        """Return the answer of HiGHS to: minimise weights.x."""
        from scipy.optimize import linprog

        return linprog(  # type: ignore[call-overload]
            weights,
            A_ub=self.a_ub if len(self.b_ub) else None,
            b_ub=self.b_ub if len(self.b_ub) else None,
            A_eq=self.a_eq if len(self.b_eq) else None,
            b_eq=self.b_eq if len(self.b_eq) else None,
            bounds=np.column_stack([self.lower, self.upper]),
            method="highs-ds",
            options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
        )


def as_rows(
    a_ub: Any,
    b_ub: Any,
    a_eq: Any,
    b_eq: Any,
    lower: npt.ArrayLike,
    upper: npt.ArrayLike,
    names: tuple[str, ...],
) -> Rows:
    """Rows and bounds as checked arrays."""
    low = vector("lower", lower, names, one_for_all=True, infinite=True)
    high = vector("upper", upper, names, one_for_all=True, infinite=True)
    s = first_true((low > high) | (low == np.inf) | (high == -np.inf))
    if s is not None:
        raise ProblemError(
            f"lower must not exceed upper, got {low[s]:g} and {high[s]:g} for arm {s} ({names[s]!r})",
            field="lower",
        )
    below, right_below = _sided("ub", a_ub, b_ub, len(names))
    equal, right_equal = _sided("eq", a_eq, b_eq, len(names))
    for array in (below, right_below, equal, right_equal, low, high):
        read_only(array)
    return Rows(below, right_below, equal, right_equal, low, high, names)


def _sided(kind: str, left: Any, right: Any, n_arms: int) -> tuple[FloatArray, FloatArray]:
    if left is None and right is None:
        return np.zeros((0, n_arms)), np.zeros(0)
    if left is None or right is None:
        raise ProblemError(
            f"A_{kind} and b_{kind} belong together; give both or neither",
            field=f"A_{kind}" if left is None else f"b_{kind}",
        )
    left = left.toarray() if hasattr(left, "toarray") else left
    matrix, side = as_floats(left), as_floats(right)
    if matrix is None or side is None:
        raise ProblemError(f"A_{kind} and b_{kind} must be tables of numbers", field=f"A_{kind}")
    matrix, side = np.atleast_2d(matrix), np.atleast_1d(side)
    if matrix.ndim != 2 or matrix.shape[1] != n_arms or side.shape != (len(matrix),):
        raise ProblemError(
            f"A_{kind} must have a column for each of the {n_arms} arms and b_{kind} a number for each of "
            f"its rows, got shapes {matrix.shape} and {side.shape}",
            field=f"A_{kind}",
        )
    row = first_true(~(np.isfinite(matrix).all(axis=1) & np.isfinite(side)))
    if row is not None:
        raise ProblemError(
            f"row {row} of A_{kind} and b_{kind} must be finite; leave out a row without a limit",
            field=f"A_{kind}",
        )
    return matrix, side


def refuse_empty(rows: Rows) -> None:
    """Refuse rows that leave no plan, naming one that would have to go, or that leave a single one."""
    n = len(rows.names)
    if rows.best(np.zeros(n)).status == _INFEASIBLE:
        why = "no amounts keep all rows and bounds"
        each = [("ub", k) for k in range(len(rows.b_ub))] + [("eq", k) for k in range(len(rows.b_eq))]
        for kind, k in each if len(each) <= _TRIED_ROWS else ():
            if rows.without(kind, k).best(np.zeros(n)).status != _INFEASIBLE:
                why += f", and without row {k} of A_{kind} there would be some"
                break
        raise ProblemError(f"there is no plan: {why}; check rows and bounds")
    # the ends in a direction that no face is perpendicular to: where they are the same, there is one plan
    toward = np.random.default_rng(n).uniform(0.5, 1.5, n)
    ends = [rows.best(sign * toward) for sign in (1.0, -1.0)]
    if all(end.status == 0 for end in ends) and np.allclose(ends[0].x, ends[1].x, atol=1e-9):
        width = float((ends[1].x - ends[0].x) @ toward)
        if width <= 1e-9 * float(np.abs(ends[0].x) @ toward):
            raise ProblemError(_ONE_PLAN)


@dataclass(frozen=True, eq=False)
class StandardForm:
    """{z: matrix z = right, lower <= z <= upper}; the first `n_arms` entries times `unit` are a plan.

    The other variables are slacks: variable n_arms + k is that of row k, the equations without one come last.
    """

    matrix: FloatArray  # (n_rows, n_variables)
    right: FloatArray  # (n_rows,)
    lower: FloatArray  # (n_variables,) finite
    upper: FloatArray  # (n_variables,) finite
    n_arms: int
    unit: float  # a power of 2, so that amounts are near 1
    kept: IntArray  # (n_rows,) of the given rows, through a_ub, then a_eq, those that follow from no others
    is_whole: bool  # whether all entries of the matrix are whole numbers
    moves: BoolArray  # (n_arms,) which arms can differ between plans
    n_tight: int  # inequalities that can hold with equality

    @property
    def n_slacks(self) -> int:
        """The number of inequality rows, each with a slack."""
        return len(self.lower) - self.n_arms

    @property
    def n_edges(self) -> int:
        """The number of edges at a basis: one for each variable that is not basic."""
        return len(self.lower) - len(self.right)

    @property
    def most_vertices(self) -> int:
        """A number that the vertices do not exceed: at each, as many inequalities as dimensions are tight."""
        dimension = self.n_arms - (len(self.right) - self.n_slacks)
        return max(2, math.comb(self.n_tight, max(dimension, 0)))

    def variables(self, plan: FloatArray) -> FloatArray:
        """Return the values of all variables at a plan, which is in the caller's units."""
        amounts = plan / self.unit
        used = self.matrix[: self.n_slacks, : self.n_arms] @ amounts
        return np.append(amounts, self.right[: self.n_slacks] - used)

    def plan(self, values: FloatArray) -> FloatArray:
        """Return the plan of these values of all variables, in the caller's units.

        An amount within rounding of a bound is put at the bound, so that equal plans have equal bytes.
        """
        low, high = self.lower[: self.n_arms], self.upper[: self.n_arms]
        near = _SNAP * np.maximum(np.abs(low), np.abs(high))
        amounts = values[: self.n_arms]
        amounts = np.where(np.abs(amounts - low) <= near, low, amounts)
        amounts = np.where(np.abs(amounts - high) <= near, high, amounts)
        return np.asarray(amounts * self.unit + 0.0)

    def basis_near(self, plan: FloatArray) -> tuple[IntArray, IntArray]:
        """Return the basic variables of a vertex that a solver found, and where each variable is.

        The second, (n_variables,), says AT_LOWER, AT_UPPER or BASIC. Variables far from their bounds are
        basic; at a degenerate vertex there are too few of them, and the first others make up a basis.
        """
        values = self.variables(plan)
        inside = np.minimum(values - self.lower, self.upper - values)
        order = np.argsort(-np.minimum(inside, 1e-7), kind="stable")
        basis = np.sort(independent_columns(self.matrix, order))
        at = np.where(values - self.lower <= self.upper - values, AT_LOWER, AT_UPPER)
        at[basis] = BASIC
        return basis, at.astype(np.int64)

    def vertex(self, basis: IntArray, at: IntArray) -> FloatArray:
        """Return the values of all variables at this basis."""
        values = np.where(at == AT_UPPER, self.upper, self.lower)
        values[basis] = 0.0
        values[basis] = np.linalg.solve(self.matrix[:, basis], self.right - self.matrix @ values)
        return values

    def directions(self, basis: IntArray, at: IntArray, solved: FloatArray | None = None) -> FloatArray:
        """Return how all variables move when one leaves its bound by 1, (n_edges, n_variables).

        There is a row for each variable that is not basic, in order; one without room moves nothing. Every
        plan z is vertex + sum_j |z_j - vertex_j| direction_j, because A z = b. `solved` is B^-1 A with the
        basic columns B, if the caller has it.
        """
        moving = np.flatnonzero(at != BASIC)
        sign = np.where(at[moving] == AT_LOWER, 1.0, -1.0) * (self.upper > self.lower)[moving]
        tableau = np.linalg.solve(self.matrix[:, basis], self.matrix) if solved is None else solved
        tableau = tableau[:, moving]
        if self.is_whole:  # exact where bases have determinants of 1, as in every transport
            near = np.rint(tableau)
            tableau = np.where(np.abs(tableau - near) < _NEARLY_WHOLE, near, tableau)
        tableau = np.where(np.abs(tableau) < _NOTHING, 0.0, tableau)
        found = np.zeros((len(moving), len(at)))
        found[:, basis] = -(tableau * sign).T
        found[np.arange(len(moving)), moving] = sign
        return found + 0.0


def standard_form(rows: Rows) -> StandardForm:
    """Return the equations of rows; refuse rows that leave one plan alone, or amounts without an end."""
    (lower, upper), is_active = _finite_bounds(rows)
    kept = _independent_rows(rows.a_eq, rows.b_eq)
    n, n_ub = len(rows.names), len(rows.b_ub)
    unit = _power_of_two(max(float(np.abs(lower).max()), float(np.abs(upper).max()), 1e-300))
    matrix = np.zeros((n_ub + len(kept), n + n_ub))
    matrix[:n_ub, :n], matrix[n_ub:, :n] = rows.a_ub, rows.a_eq[kept]
    right = np.concatenate([rows.b_ub, rows.b_eq[kept]])
    is_whole = bool((matrix == np.rint(matrix)).all() and np.abs(matrix).max(initial=0.0) <= 2**20)
    if not is_whole:
        sizes = np.array([_power_of_two(size) for size in np.abs(matrix).max(axis=1)])
        matrix, right = matrix / sizes[:, None], right / sizes
    matrix[:n_ub, n:] = np.eye(n_ub)
    least = (np.minimum(matrix[:n_ub, :n] * lower, matrix[:n_ub, :n] * upper)).sum(axis=1)
    slack = np.maximum(right[:n_ub] - least, 0.0)
    low = np.concatenate([lower, np.zeros(n_ub)]) / unit
    high = np.concatenate([upper, 2.0 * slack + unit]) / unit
    moves = _moving(matrix, high > low)[:n]
    if not moves.any():
        raise ProblemError(_ONE_PLAN)
    n_tight = n_ub + int(is_active.sum())
    right = right / unit
    given = np.append(np.arange(n_ub), n_ub + kept)
    for array in (matrix, right, low, high, given, moves):
        read_only(array)
    return StandardForm(matrix, right, low, high, n, unit, given, is_whole, moves, n_tight)


def _power_of_two(size: float) -> float:
    return float(2.0 ** math.floor(math.log2(size))) if size > 0 else 1.0


def _finite_bounds(rows: Rows) -> tuple[FloatArray, BoolArray]:
    """Return finite bounds (2, n), and which of them can hold with equality in some plan.

    A bound that is infinite, or that follows from rows and other bounds, is replaced by one so far away that
    no plan reaches it. Redundant bounds are replaced one after the other, so that of two bounds that imply
    each other one stays.
    """
    matrix, right, bounds = _ends_by_rows(rows)
    n = len(rows.names)
    for side, s in np.argwhere(np.isinf(bounds)).tolist():  # those that only a linear program finds
        bounds[side, s] = _extreme(rows, s, side)
    given = np.array([rows.lower, rows.upper])
    active = np.isfinite(given)
    _loosen(bounds, ~active)
    implied = implied_bounds(matrix, right, bounds, rounding=0.0)
    same = _SAME * np.maximum(np.abs(bounds), bounds[1] - bounds[0])
    redundant = np.array([implied[0] >= bounds[0] - same[0], implied[1] <= bounds[1] + same[1]]) & active
    for side, s in np.argwhere(redundant).tolist():
        # whether it still follows now that other bounds have been moved away
        end = implied_bounds(matrix, right, bounds, only=s, rounding=0.0)[side][0]
        beyond = bounds[0, s] - end if side == 0 else end - bounds[1, s]
        if beyond <= same[side, s]:
            active[side, s] = False
            bounds[side, s] = end
            moved = np.zeros((2, n), dtype=bool)
            moved[side, s] = True
            _loosen(bounds, moved)
    return bounds, active


def _ends_by_rows(rows: Rows) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return rows as a.x <= b, and bounds (2, n) with the ends that follow from single rows."""
    matrix = np.vstack([rows.a_ub, rows.a_eq, -rows.a_eq])
    right = np.concatenate([rows.b_ub, rows.b_eq, -rows.b_eq])
    bounds = np.array([rows.lower, rows.upper])  # (2, n)
    for _ in range(_PASSES):  # replace infinite bounds by those that single rows imply
        implied = implied_bounds(matrix, right, bounds)
        new = [np.where(np.isinf(bounds[side]), implied[side], bounds[side]) for side in (0, 1)]
        if np.array_equal(new, bounds):
            break
        bounds = np.array(new)
    return matrix, right, bounds


def priced_ends(rows: Rows) -> list[tuple[int, int, list[float]]]:
    """Return the ends of amounts that no single row shows, with prices of the rows that show them together.

    Each is (side, arm, prices): side 0 is the least amount and 1 the largest. With c = 1 on the arm, -1 for
    the largest amount, and prices y that are at most 0 for rows a.x <= b, every plan has c.x >= y.b + r.x,
    where r = c - y A is 0 up to rounding on arms without bounds.
    """
    found = []
    for side, arm in np.argwhere(np.isinf(_ends_by_rows(rows)[2])).tolist():
        weights = np.zeros(len(rows.names))
        weights[arm] = 1.0 if side == 0 else -1.0
        answer = rows.best(weights)
        prices = np.append(np.minimum(answer.ineqlin.marginals, 0.0), answer.eqlin.marginals)
        found.append((side, arm, prices.tolist()))
    return found


def _loosen(bounds: FloatArray, mask: BoolArray) -> None:
    """Move these bounds away from the plans, so far that rounding cannot reach them."""
    room = np.maximum(np.abs(bounds), np.maximum(bounds[1] - bounds[0], 0.0))
    room = np.where(room > 0, room, 1.0)
    bounds[0] = np.where(mask[0], bounds[0] - room[0], bounds[0])
    bounds[1] = np.where(mask[1], bounds[1] + room[1], bounds[1])


def implied_bounds(
    matrix: FloatArray,
    right: FloatArray,
    bounds: FloatArray,
    *,
    only: int | None = None,
    rounding: float = ROUNDING,
) -> tuple[FloatArray, FloatArray]:
    """Return the bounds of each variable, or of `only` one, that follow from one row and the other bounds.

    A row a.x <= b says a_j x_j <= b - sum_{i != j} min(a_i x_i), with the least of a_i x_i over its bounds.
    `bounds` are lower and upper ones, (2, n), which may be infinite. The result is moved outwards by a share
    `rounding` of the sizes of all terms, so that it holds in spite of rounding.
    """
    if not len(right):
        n = bounds.shape[1] if only is None else 1
        return np.full(n, -np.inf), np.full(n, np.inf)
    with np.errstate(invalid="ignore", divide="ignore"):
        least = np.where(matrix > 0, matrix * bounds[0], np.where(matrix < 0, matrix * bounds[1], 0.0))
        endless = np.isneginf(least)
        finite = np.where(endless, 0.0, least)
        sizes = np.abs(right) + np.abs(finite).sum(axis=1)
        part = slice(None) if only is None else slice(only, only + 1)
        a = matrix[:, part]
        others_end = (endless.sum(axis=1)[:, None] - endless[:, part]) == 0  # all other terms are bounded
        others = finite.sum(axis=1)[:, None] - finite[:, part]
        room = (right + rounding * sizes)[:, None] - others
        ends = np.where(others_end, room, np.inf) / a
        high = np.where(a > 0, ends, np.inf).min(axis=0)
        low = np.where(a < 0, ends, -np.inf).max(axis=0)
    return low, high


def _extreme(rows: Rows, arm: int, side: int) -> float:
    """Return the least (0) or the largest (1) amount of this arm, refused where there is none."""
    weights = np.zeros(len(rows.names))
    weights[arm] = 1.0 if side == 0 else -1.0
    answer = rows.best(weights)
    if answer.status != 0:
        where = "below" if side == 0 else "above"
        raise ProblemError(
            f"the amount of arm {arm} ({rows.names[arm]!r}) has no end {where}: it may be any; give "
            f"it {'a lower' if side == 0 else 'an upper'} bound",
            field="lower" if side == 0 else "upper",
        )
    end = float(answer.x[arm])
    return end + (1e-7 * (1 + abs(end)) if side else -1e-7 * (1 + abs(end)))


def _independent_rows(matrix: FloatArray, right: FloatArray) -> IntArray:
    """Return the first rows that do not follow from earlier ones; refuse a row that contradicts them."""
    sizes = np.abs(matrix).max(axis=1, initial=1e-300)
    kept = independent_columns((matrix / sizes[:, None]).T, np.arange(len(matrix)))
    others = np.setdiff1d(np.arange(len(matrix)), kept)
    factors = np.linalg.lstsq(matrix[kept].T, matrix[others].T, rcond=None)[0]  # other rows by those kept
    implied = right[kept] @ factors
    k = first_true(np.abs(implied - right[others]) > _CONTRADICTION * (1.0 + np.abs(right).max(initial=0.0)))
    if k is not None:
        raise ProblemError(
            f"row {others[k]} of A_eq contradicts the rows before it: they ask for {implied[k]:.10g} where "
            f"b_eq has {right[others[k]]:.10g}; leave it out or correct it",
            field="A_eq",
        )
    return kept


def independent_columns(matrix: FloatArray, order: IntArray) -> IntArray:
    """Return the first columns, in this order, that form a basis: Gaussian elimination, column by column."""
    left = matrix.copy()
    rows = np.ones(len(matrix), dtype=bool)  # that have no pivot yet
    chosen = list[int]()
    for column in order.tolist() if len(matrix) else ():
        sizes = np.where(rows, np.abs(left[:, column]), 0.0)
        row = int(np.argmax(sizes))
        if sizes[row] <= _DEPENDENT:
            continue
        chosen.append(column)
        rows[row] = False
        factor = np.where(rows, left[:, column] / left[row, column], 0.0)
        left -= np.outer(factor, left[row])
        if not rows.any():
            break
    return np.array(chosen, dtype=np.int64)


def _moving(matrix: FloatArray, has_room: BoolArray) -> BoolArray:
    """Return which variables are not the same in all solutions of the equations, (n_variables,).

    Variables without room are fixed. All others that are not basic can move. A basic one moves if the
    equations, solved for the basis, have a variable that moves in its row.
    """
    left, free = matrix * has_room, np.flatnonzero(has_room)
    basis = independent_columns(left, free)
    moves = has_room.copy()
    if len(basis):
        solved = np.linalg.lstsq(left[:, basis], left, rcond=None)[0]
        others = np.setdiff1d(free, basis)
        moves[basis] = (np.abs(solved[:, others]) > _DEPENDENT).any(axis=1)
    return moves
