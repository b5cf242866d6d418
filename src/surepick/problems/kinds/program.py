"""Production, portfolios, and other linear and integer programs: their objective must be measured.

The arms are the coefficients of the objective, one per variable. Programs are solved by HiGHS, through SciPy,
to proven optimality, or refused when time is up: a small program can keep HiGHS busy for hours. Each program
has `SECONDS`; all programs inside `solving_within` together have the time that is given there.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import partial
from math import comb, prod
from pathlib import Path
from typing import Any, TypeAlias, Unpack

import numpy as np

from surepick.core.arrays import BoolArray, FloatArray, as_float, first_true, read_only
from surepick.core.given.numbers import (
    Goal,
    Numbers,
    aligned,
    aligned_table,
    is_smallest,
    labels_of,
    names_for,
    vector,
)
from surepick.core.oracle_problem import AnyProblem
from surepick.core.polytopes.polytope import Polytope
from surepick.core.wording import counted
from surepick.errors import ProblemError, suggestion
from surepick.problems.family import DrawOptions, Family
from surepick.problems.numbers import as_numbers

Groups: TypeAlias = Mapping[str, tuple[Sequence[str], float]]
SENSES = ("<=", ">=", "=")
# Constraints may be missed by this share of their own size; HiGHS guarantees 1e-7 of the scaled program.
FEASIBLE = 1e-6
SECONDS = 60.0  # for one program; each draw solves one, so longer ones would take hours
_deadline = ContextVar[float | None]("deadline", default=None)
_OUT_OF_TIME, _INFEASIBLE = 1, 2  # SciPy's statuses


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

    def to_json(self) -> dict[str, Any]:
        """Return the program as JSON values, None for infinity."""
        kept: dict[str, Any] = {"variable_names": list(self.variable_names), "goal": self.goal}
        for name in _ARRAYS:
            array = getattr(self, name).astype(object)
            array[~np.isfinite(getattr(self, name))] = None
            kept[name] = array.tolist()
        return kept


_ARRAYS = ("matrix", "row_lower", "row_upper", "lower", "upper", "whole", "objective")
_MIXED = (
    "list_plans = false is for programs whose variables are all whole numbers or all amounts: this one has "
    "both, and without a list no policy decides between such plans with a guarantee"
)


def _given_program(given: Program | Mapping[str, Any] | str | Path) -> Program:
    """Return the program as it is, from an MPS file, or from what `Program.to_json` wrote."""
    if isinstance(given, Program):
        return given
    if isinstance(given, Mapping):
        arrays: dict[str, Any] = {name: np.array(given[name], dtype=float) for name in _ARRAYS}
        for name, array in arrays.items():
            array[np.isnan(array)] = np.inf if "upper" in name else -np.inf
        arrays["whole"] = arrays["whole"].astype(bool)
        return Program(**arrays, variable_names=tuple(given["variable_names"]), goal=given["goal"])
    from surepick.problems.mps import read_program

    return read_program(given)


def _family(program: Program, kind: str, noun: str) -> Family:
    """Return all plans that a program allows."""
    sign = 1.0 if is_smallest(program.goal) else -1.0
    least_plan(program, sign * program.objective)  # refuses a program without a plan, or without a best one
    is_whole = bool(program.whole.all())
    is_mixed = bool(program.whole.any()) and not is_whole
    return Family(
        partial(least_plan, program),
        arm_names=program.variable_names,
        goal=program.goal,
        n_plans=_count_at_most(program),
        kind=kind,
        noun=noun,
        name_of=(lambda plan: counted(program.variable_names, plan)) if is_whole else None,
        least_within=partial(_least_within, program) if is_whole else None,
        rows=None if program.whole.any() else polytope_rows(program),
        recipe={"use": program.to_json()} if is_whole else None,
        is_slow=bool(program.whole.any()),
        why_listed=(lambda: _MIXED) if is_mixed else None,
    )


@contextmanager
def solving_within(seconds: float) -> Iterator[None]:
    """Refuse with a `ProblemError` when the programs that are solved in here take longer, all together."""
    token = _deadline.set(time.monotonic() + seconds)
    try:
        yield
    finally:
        _deadline.reset(token)


def polytope_rows(program: Program) -> dict[str, Any]:
    """Return rows and bounds of a program without whole numbers, as `Polytope` takes them."""
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
    """Return the linear program in which `use` times the variables compares to `limits` as `senses` says.

    The other arguments are as in `production`, where `objective` is called `guess`.

    >>> as_program([[1, 2]], [8], senses=">=").row_lower.tolist()
    [8.0]
    """
    named = variable_names or labels_of(use, columns=True) or labels_of(objective) or ()
    rows = labels_of(use) or labels_of(limits) or ()
    given = aligned_table("use", use, rows, named, kinds=("resource", "variable"))
    matrix = as_numbers("use", given, ndim=2)
    n_rows, n_variables = matrix.shape
    names = names_for("variable", named or None, n_variables)
    resources = rows or [f"row {k}" for k in range(n_rows)]
    right = vector("limits", [] if limits is None else limits, resources, kind="resource")
    kinds = [senses] * n_rows if isinstance(senses, str) else list(aligned("senses", senses, rows))
    if len(kinds) != n_rows or any(kind not in SENSES for kind in kinds):
        raise ProblemError(
            f"senses must be {', '.join(map(repr, SENSES))}, one or one per row, got {senses!r}",
            field="senses",
        )
    low, high, is_whole = (
        vector(what, values, names, kind="variable", one_for_all=True, infinite=True)
        for what, values in (("lower", lower), ("upper", upper), ("whole", whole))
    )
    s = first_true(low > high)
    if s is not None:
        raise ProblemError(
            f"lower must not exceed upper, got {low[s]:g} and {high[s]:g} for variable {names[s]!r}",
            field="lower",
        )
    return Program(
        matrix,
        np.array([-np.inf if kind == "<=" else x for kind, x in zip(kinds, right, strict=True)]),
        np.array([np.inf if kind == ">=" else x for kind, x in zip(kinds, right, strict=True)]),
        read_only(low),
        read_only(high),
        is_whole.astype(bool),
        vector("guess", np.zeros(n_variables) if objective is None else objective, names, kind="variable"),
        names,
        goal,
    )


def least_plan(program: Program, weights: FloatArray) -> FloatArray:
    """Return a plan of the least total: a vertex, whole where it has to be, checked against the constraints.

    >>> least_plan(as_program([[2, 3]], [7], whole=True), np.array([-1.0, -1.6])).tolist()
    [2.0, 1.0]
    """
    sizes = np.abs(weights[weights != 0])  # HiGHS has absolute tolerances: the middle cost becomes 1
    costs = weights / (float(np.median(sizes)) if sizes.size else 1.0)
    answer = _least(program, costs)
    if answer.status != 0 or answer.x is None:
        status = _least(program, 0 * costs).status
        why = f"the program could not be solved: {answer.message}"
        if status == _INFEASIBLE:
            why = "the program is infeasible: no plan keeps all constraints; loosen a limit or a bound"
        elif status == 0:
            open_ = np.flatnonzero((costs < 0) & np.isinf(program.upper))
            which = f" such as {program.variable_names[int(open_[0])]!r}" if open_.size else ""
            why = f"the objective is unbounded: it grows for ever along variables{which}; give upper limits"
        raise ProblemError(why)
    rounded = np.where(program.whole, np.round(answer.x), answer.x)
    plan: FloatArray = np.clip(rounded, program.lower, program.upper) + 0.0
    activity = program.matrix @ plan
    size = np.abs(program.matrix) @ np.abs(plan) + 1.0
    missed = np.maximum(program.row_lower - activity, activity - program.row_upper) / size
    if missed.max(initial=0.0) > FEASIBLE:
        raise ProblemError(
            f"the solver's plan misses constraint {int(missed.argmax())} by {missed.max():.1g} of its size: "
            "the program is badly scaled; choose units that make its numbers alike"
        )
    return plan


def _least_within(
    program: Program, costs: FloatArray, lower: FloatArray, upper: FloatArray
) -> FloatArray | None:
    """Return a least plan within tighter bounds, None where they leave no plan."""
    low = np.maximum(program.lower, np.ceil(lower))
    high = np.minimum(program.upper, np.floor(upper))
    tighter = replace(program, lower=low, upper=high)
    if (low > high).any() or _least(tighter, 0 * costs).status == _INFEASIBLE:
        return None
    return least_plan(tighter, costs)


def _least(program: Program, costs: FloatArray) -> Any:
    """Return the answer of HiGHS to: minimise these costs, with a gap of 0 instead of its default 1e-4."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    until = _deadline.get()
    left = SECONDS if until is None else min(SECONDS, until - time.monotonic())
    answer = milp(
        costs,
        integrality=program.whole.astype(int),
        bounds=Bounds(program.lower, program.upper),
        constraints=LinearConstraint(program.matrix, program.row_lower, program.row_upper),
        options={"mip_rel_gap": 0.0, "time_limit": max(left, 0.0)},
    )
    if left <= 0 or answer.status == _OUT_OF_TIME:
        raise ProblemError("the programs were not solved in time; make them smaller, or list fewer plans")
    return answer


def _count_at_most(program: Program) -> int | None:
    """Return an upper bound on the number of plans that can be best; None if whole variables are unbounded.

    For each choice of the whole variables a best plan is a vertex in the others: as many bounds and
    constraints are tight as there are other variables. So the bound is the number of such choices of tight
    ones times the number of values of the whole variables. The constraints bound a variable without an
    upper bound.
    """
    n_free = int((~program.whole).sum())
    ranges = list[float]()
    relaxed = replace(program, whole=np.zeros_like(program.whole))
    for s in np.flatnonzero(program.whole):
        width = float(program.upper[s] - program.lower[s])
        if np.isinf(width) and np.isfinite(program.lower[s]):
            answer = _least(relaxed, -np.eye(len(program.lower))[s])
            width = np.floor(answer.x[s] - program.lower[s] + FEASIBLE) if answer.status == 0 else np.inf
        if np.isinf(width):
            return None
        ranges.append(width)
    return comb(2 * len(program.matrix) + 2 * n_free, n_free) * prod(int(width) + 1 for width in ranges)


def production(
    use: Numbers | Program | Mapping[str, Any] | str | Path,
    limits: Numbers | None = None,
    guess: Numbers | None = None,
    *,
    senses: str | Sequence[str] | Mapping[str, str] = "<=",
    lower: Numbers = 0.0,
    upper: Numbers = np.inf,
    whole: bool | Sequence[bool] | Mapping[str, bool] = False,
    goal: Goal | None = None,
    variable_names: Sequence[str] | None = None,
    **options: Unpack[DrawOptions],
) -> AnyProblem:
    """Return the problem of making the most of limited resources, with yields of products near a guess.

    Every plan that keeps the limits can be chosen: a `Polytope`, or an oracle if all products are whole and
    `list_plans=False`. With `list_plans`, or if draws are asked for, the plans are the best plans of draws
    near the guess.

    - `use`: what each product (column) takes of each resource (row); or a `Program`, or an MPS file.
      A program states its own limits, senses, bounds, goal and names, so of these only `guess` may be given
    - `limits`: one number per resource
    - `guess`: what one unit of each product brings; with a program, its objective unless given. Variables
      that a program's objective does not have are known to bring 0 and are never measured
    - `senses`: how use compares to limits, "<=", ">=" or "=", one or one per resource; "<="
    - `lower`, `upper`: the limits of each product, one number or one per product; 0 and none
    - `whole`: whether a product comes in whole numbers, one or one per product; False
    - `goal`: the total of the best plan, "smallest" or "largest"; "largest"
    - `variable_names`: names for the products; the columns of a DataFrame, or "variable 0", ...
    - `options`: `DrawOptions`; `low` and `high` are of one measurement, not of the variables

    >>> production([[1, 2], [3, 1]], [8, 9], [3.0, 4.0])
    Polytope(2 arms, 2 rows, at most 6 vertices, largest)
    >>> sorted(production([[1, 2], [3, 1]], [8, 9], [3.0, 4.0], n_draws=100).plans.tolist())
    [[0.0, 4.0], [2.0, 3.0]]
    """
    if isinstance(use, Program | str | Path) or (isinstance(use, Mapping) and "row_lower" in use):
        is_given = {
            "limits": limits is not None,
            "senses": senses != "<=",
            "lower": np.any(lower != 0.0),
            "upper": np.any(upper != np.inf),
            "whole": whole is not False,
            "goal": goal is not None,
            "variable_names": variable_names is not None,
        }
        for name, given in is_given.items():
            if given:
                raise ProblemError(f"the program states its own {name}; change it there", field=name)
        program = _given_program(use)
    else:
        if guess is None:
            raise ProblemError("guess is missing: say what one unit of each product brings", field="guess")
        program = as_program(
            use,
            limits,
            guess,
            senses=senses,
            lower=lower,
            upper=upper,
            whole=whole,
            goal=goal or "largest",
            variable_names=variable_names,
        )
    centre = program.objective if guess is None else guess
    problem = _family(program, "production", "program").problem(centre, **options)
    if guess is not None or not isinstance(problem, Polytope):
        return problem
    # The guess is a program's objective. Variables that it leaves out are known to bring 0.
    costs = zip(program.variable_names, program.objective.tolist(), strict=True)
    return problem.with_settings(known={name: 0.0 for name, cost in costs if cost == 0.0})


def portfolio(
    guess: Numbers,
    *,
    budget: float = 1.0,
    lower: Numbers = 0.0,
    upper: Numbers = np.inf,
    groups: Groups | None = None,
    asset_names: Sequence[str] | None = None,
    **options: Unpack[DrawOptions],
) -> AnyProblem:
    """Return the problem of investing a budget for the largest return, the returns being near a guess.

    Every portfolio within the limits can be chosen (a `Polytope`). With `list_plans`, or where draws are
    asked for, the plans are the best portfolios of draws near the guess.

    - `guess`: the return per unit of each asset
    - `budget`: what the amounts add up to; 1
    - `lower`, `upper`: the limits of each amount, one number or one per asset; 0 and the budget
    - `groups`: limits of sums, a name with the assets in it and the most that they may hold together; None
    - `asset_names`: names for the assets; the labels of the guess, or "asset 0", ...
    - `options`: `DrawOptions`; `low` and `high` are of one measurement, not of the amounts

    >>> portfolio([5, 4, 3], upper=0.5)
    Polytope(3 arms, 1 row, at most 3 vertices, largest)
    >>> sorted(portfolio([5, 4, 3], upper=0.5, spread=2, n_draws=100).plans.tolist())
    [[0.0, 0.5, 0.5], [0.5, 0.0, 0.5], [0.5, 0.5, 0.0]]
    """
    named = asset_names or labels_of(guess)
    centre = as_numbers("guess", aligned("guess", guess, named or (), kind="asset"))
    names = names_for("asset", named, centre.size)
    total = as_float(budget)
    if total is None or not 0 < total < np.inf:
        raise ProblemError(f"budget must be positive and finite, got {budget!r}", field="budget")
    rows, limits = [np.ones(len(names))], [total]
    for group, (members, most) in (groups or {}).items():
        if unknown := [name for name in members if name not in names]:
            raise ProblemError(
                f"group {group!r} names an unknown asset {unknown[0]!r}; {suggestion(unknown[0], names)}",
                field="groups",
            )
        rows.append(np.isin(names, list(members)).astype(float))
        limits.append(float(most))
    program = as_program(
        np.array(rows),
        limits,
        senses=["=", *["<="] * (len(rows) - 1)],
        lower=lower,
        upper=np.minimum(
            vector("upper", upper, names, kind="asset", one_for_all=True, infinite=True), budget
        ),
        variable_names=names,
    )
    least_sum, most_sum = float(program.lower.sum()), float(program.upper.sum())
    if (program.lower < 0).any():
        raise ProblemError(f"lower must be 0 or more, got {program.lower.min():g}", field="lower")
    if not least_sum <= budget <= most_sum:
        raise ProblemError(
            f"the limits cannot hold the budget of {budget:g}: the least amounts add up to {least_sum:g}, "
            f"the most to {most_sum:g}; change the limits",
            field="budget",
        )
    return _family(program, "portfolio", "portfolio").problem(centre, **options)
