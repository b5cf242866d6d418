"""Linear and integer programs: known constraints, and an objective whose coefficients must be measured.

The arms are the coefficients of the objective, one per variable. Programs are solved by `integer.least`, to
proven optimality.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import comb, isfinite, prod
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from surepick.core.arrays import (
    BoolArray,
    FloatArray,
    Goal,
    Numbers,
    aligned,
    aligned_table,
    is_smallest,
    labels_of,
    names_for,
    read_only,
)
from surepick.core.wording import counted
from surepick.errors import ProblemError
from surepick.problems.family import Family
from surepick.problems.integer import least
from surepick.problems.numbers import as_numbers, numbers_for

SENSES = ("<=", ">=", "=")
# Constraints may be missed by this share of their own size; HiGHS guarantees 1e-7 of the scaled program.
FEASIBLE = 1e-6


@dataclass(frozen=True, eq=False)
class Program:
    """Known constraints on the variables, and the objective as far as it is known."""

    matrix: FloatArray  # (n_rows, n_variables)
    row_lower: FloatArray
    row_upper: FloatArray
    lower: FloatArray  # (n_variables,)
    upper: FloatArray
    whole: BoolArray  # (n_variables,) which variables take whole numbers only
    objective: FloatArray  # (n_variables,) a guess
    variable_names: tuple[str, ...]
    goal: Goal = "largest"

    def recipe(self) -> dict[str, Any]:
        """All of it as JSON values that `program_family` reads; what has no limit is an empty value."""
        kept = {name: _as_json(getattr(self, name)) for name in _ARRAYS}
        return {**kept, "variable_names": list(self.variable_names), "goal": self.goal}

    @classmethod
    def from_recipe(cls, data: Mapping[str, Any]) -> Program:
        """The program that these JSON values describe."""
        arrays = {name: _from_json(data[name], above="upper" in name) for name in _ARRAYS}
        whole = arrays["whole"].astype(bool)
        names = tuple(data["variable_names"])
        return cls(**{**arrays, "whole": whole}, variable_names=names, goal=data["goal"])


_ARRAYS = ("matrix", "row_lower", "row_upper", "lower", "upper", "whole", "objective")


def _as_json(array: npt.NDArray[Any]) -> list[Any]:
    """JSON has no infinity: None stands for it."""
    if array.ndim > 1:
        return [_as_json(row) for row in array]
    return [x if isfinite(x) else None for x in array.astype(float).tolist()]


def _from_json(values: list[Any], *, above: bool) -> FloatArray:
    array = np.array(values, dtype=float)  # None becomes nan
    return np.where(np.isnan(array), np.inf if above else -np.inf, array)


def program_family(program: Program | Mapping[str, Any] | str | Path) -> Family:
    """All plans that a program allows, known by the best for a given objective.

    >>> program = as_program([[1, 2], [3, 1]], [8, 9])
    >>> program_family(program).best([3.0, 4.0]).tolist()
    [2.0, 3.0]
    """
    limits = _as_program(program)
    solve_program(limits, limits.objective)
    return Family(
        solve=partial(solve_program, limits),
        piece_names=limits.variable_names,
        goal=limits.goal,
        n_plans=_count_at_most(limits),
        noun="program",
        name_of=(lambda plan: counted(limits.variable_names, plan)) if limits.whole.all() else None,
        recipe=lambda: {"kind": "program", "program": limits.recipe()},
        solve_within=partial(_solve_within, limits) if limits.whole.all() else None,
        rows=None if limits.whole.any() else partial(_rows, limits),
        is_slow=bool(limits.whole.any()),
    )


def _rows(program: Program) -> dict[str, Any]:
    """Rows and bounds of a program without whole numbers, as `Polytope` takes them."""
    equal = program.row_lower == program.row_upper
    below, above = np.isfinite(program.row_upper) & ~equal, np.isfinite(program.row_lower) & ~equal
    return {
        "A_ub": np.vstack([program.matrix[below], -program.matrix[above]]),
        "b_ub": np.concatenate([program.row_upper[below], -program.row_lower[above]]),
        "A_eq": program.matrix[equal],
        "b_eq": program.row_upper[equal],
        "lower": program.lower,
        "upper": program.upper,
    }


def _as_program(given: Program | Mapping[str, Any] | str | Path) -> Program:
    if isinstance(given, Mapping):
        return Program.from_recipe(given)
    if isinstance(given, Program):
        return given
    from surepick.problems.program_files import read_program

    return read_program(given)


def as_program(
    use: Numbers,
    limits: Numbers | None,
    objective: Numbers | None = None,
    *,
    senses: str | Sequence[str] | Mapping[str, str] = "<=",
    lower: Numbers = 0.0,
    upper: Numbers = np.inf,
    whole: bool | Sequence[bool] | Mapping[str, bool] = False,
    goal: Goal = "largest",
    variable_names: Sequence[str] | None = None,
) -> Program:
    """A program from matrices: `use` times the variables compares to `limits` as `senses` says.

    The other arguments are as in `production`, where `objective` is called `guess`.

    >>> as_program([[1, 2]], [8], senses=">=").row_lower.tolist()
    [8.0]
    """
    named = variable_names or labels_of(use, columns=True) or labels_of(objective) or ()
    rows = labels_of(use) or labels_of(limits) or ()
    given = aligned_table("use", use, rows, named, kinds=("resource", "variable"))
    matrix = as_numbers("use", given, ndim=2)
    n_rows, n_variables = matrix.shape
    caps = aligned("limits", [] if limits is None else limits, rows, kind="resource")
    right = numbers_for("limits", caps, n_rows, "rows")
    centre = np.zeros(n_variables) if objective is None else objective
    kinds = [senses] * n_rows if isinstance(senses, str) else list(aligned("senses", senses, rows))
    if len(kinds) != n_rows or any(kind not in SENSES for kind in kinds):
        raise ProblemError(
            f"senses must be {', '.join(map(repr, SENSES))}, one or one per row, got {senses!r}",
            field="senses",
        )

    def by_name(what: str, numbers: Any) -> Any:
        return aligned(what, numbers, named, kind="variable")

    low, high = _bounds(by_name("lower", lower), by_name("upper", upper), n_variables)
    return Program(
        matrix,
        np.array([-np.inf if kind == "<=" else x for kind, x in zip(kinds, right, strict=True)]),
        np.array([np.inf if kind == ">=" else x for kind, x in zip(kinds, right, strict=True)]),
        low,
        high,
        np.broadcast_to(np.asarray(by_name("whole", whole), dtype=bool), (n_variables,)).copy(),
        numbers_for("guess", by_name("guess", centre), n_variables, "variables"),
        names_for("variable", named or None, n_variables),
        goal,
    )


def solve_program(program: Program, weights: FloatArray) -> FloatArray:
    """A best plan for this objective: a vertex, whole where it has to be, checked against the constraints.

    >>> solve_program(as_program([[2, 3]], [7], whole=True), np.array([1.0, 1.6])).tolist()
    [2.0, 1.0]
    """
    costs = weights if is_smallest(program.goal) else -weights
    answer = _least(program, costs)
    if answer.status != 0 or answer.x is None:
        raise ProblemError(_why_unsolved(program, weights, str(answer.message)))
    rounded = np.where(program.whole, np.round(answer.x), answer.x)
    plan: FloatArray = np.clip(rounded, program.lower, program.upper) + 0.0
    _refuse_unkept(program, plan)
    return plan


def _solve_within(
    program: Program, weights: FloatArray, lower: FloatArray, upper: FloatArray
) -> FloatArray | None:
    """A best plan within tighter bounds, None where they leave no plan."""
    low, high = np.maximum(program.lower, np.ceil(lower)), np.minimum(program.upper, np.floor(upper))
    tighter = replace(program, lower=low, upper=high)
    if (low > high).any() or _feasibility(tighter) == 2:
        return None
    return solve_program(tighter, weights)


def _least(program: Program, costs: FloatArray) -> Any:
    """Return the answer of HiGHS to: minimise these costs."""
    rows = (program.matrix, program.row_lower, program.row_upper)
    return least(costs, program.whole, (program.lower, program.upper), [rows])


def _feasibility(program: Program) -> int:
    """The solver's status for an objective of 0: 0 where there is a plan, 2 where there is none."""
    return int(_least(program, np.zeros(len(program.lower))).status)


def _why_unsolved(program: Program, weights: FloatArray, message: str) -> str:
    status = _feasibility(program)
    if status == 2:
        return "the program is infeasible: no plan keeps all constraints; loosen a limit or a bound"
    if status == 0:
        better = weights < 0 if is_smallest(program.goal) else weights > 0
        open_ = np.flatnonzero(better & np.isinf(program.upper))
        which = f" such as {program.variable_names[int(open_[0])]!r}" if open_.size else ""
        return f"the objective is unbounded: it grows for ever along some variables{which}; give upper limits"
    return f"the program could not be solved: {message}"


def _refuse_unkept(program: Program, plan: FloatArray) -> None:
    activity = program.matrix @ plan
    size = np.abs(program.matrix) @ np.abs(plan) + 1.0
    missed = np.maximum(program.row_lower - activity, activity - program.row_upper) / size
    if missed.size and missed.max() > FEASIBLE:
        raise ProblemError(
            f"the solver's plan misses constraint {int(missed.argmax())} by {missed.max():.1g} of its size: "
            "the program is badly scaled; choose units that make its numbers alike"
        )


def _count_at_most(program: Program) -> int | None:
    """A number that the plans that can be best do not exceed; None where there is none.

    Vertices (of all bounds and constraints as many are tight as there are variables that are not whole) times
    the ranges of the whole variables.
    """
    n_free = int((~program.whole).sum())
    ranges = [_range(program, int(s)) for s in np.flatnonzero(program.whole)]
    if not np.isfinite(ranges).all():
        return None
    return comb(2 * len(program.matrix) + 2 * n_free, n_free) * prod(int(width) + 1 for width in ranges)


def _range(program: Program, s: int) -> float:
    """How many values above its least an integer variable can take; infinite when nothing limits it."""
    width = float(program.upper[s] - program.lower[s])
    if np.isfinite(width) or not np.isfinite(program.lower[s]):
        return width
    relaxed = replace(program, whole=np.zeros_like(program.whole))
    answer = _least(relaxed, -np.eye(len(program.lower))[s])
    return float(np.floor(answer.x[s] - program.lower[s] + FEASIBLE)) if answer.status == 0 else np.inf


def _bounds(lower: npt.ArrayLike, upper: npt.ArrayLike, n_variables: int) -> tuple[FloatArray, FloatArray]:
    try:
        low, high = (
            np.broadcast_to(np.asarray(given, dtype=float), (n_variables,)).copy() for given in (lower, upper)
        )
    except (TypeError, ValueError, OverflowError):
        raise ProblemError(
            f"lower and upper must be one number or one for each of the {n_variables} variables, "
            f"got {lower!r} and {upper!r}",
            field="lower",
        ) from None
    bad = np.flatnonzero(~(low <= high))
    if bad.size:
        s = int(bad[0])
        raise ProblemError(
            f"lower must not exceed upper, got {low[s]:g} and {high[s]:g} for variable {s}; a capacity is "
            "0 or more",
            field="lower",
        )
    return read_only(low), read_only(high)
