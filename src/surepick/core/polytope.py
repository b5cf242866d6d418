"""All plans of a polytope: amounts that keep linear rows and bounds, none of them listed."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, ClassVar, TypedDict, Unpack

import numpy as np
import numpy.typing as npt

from surepick.core.arrays import BoolArray, FloatArray, Goal, Numbers, PerArm, is_smallest, names_for
from surepick.core.known import Known
from surepick.core.layout import Layout
from surepick.core.oracle_problem import OracleProblem
from surepick.core.standard_form import Rows, StandardForm, as_rows, refuse_empty, standard_form
from surepick.core.wording import in_short, plural
from surepick.errors import ProblemError, unexpected

POLYTOPE = "polytope"  # the kind of its recipe
_KEPT = 1e-7  # rows and bounds may be missed by this share of their own size: the rounding of solvers
_NAMED_ARMS = 4  # of a plan, in its name; the largest amounts


class PolytopeOptions(TypedDict, total=False):
    """What a polytope is made of; `Polytope` explains it."""

    A_ub: Any
    b_ub: npt.ArrayLike
    A_eq: Any
    b_eq: npt.ArrayLike
    lower: npt.ArrayLike
    upper: npt.ArrayLike
    goal: Goal
    noise: PerArm | None
    cost: PerArm | None
    arms: Sequence[str] | None
    layout: Layout | None
    name_plan: Callable[[FloatArray], str] | None
    known: Known | None
    low: Numbers | float | None
    high: Numbers | float | None


MOST_ARMS = 10_000

_DEFAULTS: dict[str, Any] = {
    "A_ub": None,
    "b_ub": None,
    "A_eq": None,
    "b_eq": None,
    "lower": 0.0,
    "upper": np.inf,
    "goal": inspect.Parameter.empty,
    "noise": None,
    "cost": None,
    "arms": None,
    "layout": None,
    "name_plan": None,
    "known": None,
    "low": None,
    "high": None,
}


class Polytope(OracleProblem):
    """A choice between all amounts x that keep rows and bounds: A_ub x <= b_ub, A_eq x = b_eq.

    The value of a plan is the sum over arms of amount times mean, as in `Problem`. Some vertex is best, and
    `BetGapE` finds which, of all of them. Rows are as in `scipy.optimize.linprog`:

    - `A_ub`, `b_ub`, `A_eq`, `b_eq`: a column per arm, a row per limit; arrays or SciPy sparse arrays
    - `lower`, `upper`: of each amount, one number or one per arm; 0 and none
    - `goal`, `noise`, `cost`, `arms`, `low`, `high`, `known`, `layout`: as in `Problem`;
      `low` and `high` are of one measurement, not of the amounts
    - `name_plan`: a function from amounts to a name; without it a plan is called by its largest amounts

    Rows that leave no plan, a single one, or amounts without an end are refused. Rows and bounds that follow
    from others are found and do no harm.

    >>> problem = Polytope(A_ub=[[1, 2], [3, 1]], b_ub=[8, 9], arms=["tables", "chairs"], goal="largest")
    >>> problem.best_plan([3.0, 4.0]).round(9).tolist()
    [2.0, 3.0]
    """

    rows: Rows
    form: StandardForm
    has_batches: ClassVar[bool] = True

    def __init__(self, **given: Unpack[PolytopeOptions]) -> None:
        for name in given:
            if name not in _DEFAULTS:
                raise unexpected("Polytope", name, _DEFAULTS)
        if "goal" not in given:
            raise TypeError('Polytope() needs goal="smallest" or goal="largest"')
        _become(self, {**_DEFAULTS, **given}, is_new=True)

    @property
    def relevant(self) -> BoolArray:
        """The arms whose amounts are not the same in all plans, and whose means are not known."""
        return np.asarray(self.form.moves & ~self.is_known)

    @property
    def completeness(self) -> str:
        """Return what the guarantee is about: every plan there is."""
        return "all plans that keep the rows and bounds, none of them listed"

    def has_plan(self, plan: npt.ArrayLike) -> bool:
        """Return whether these amounts keep the rows and bounds, to within rounding.

        >>> problem = Polytope(A_eq=[[1, 1, 1]], b_eq=[1.0], upper=0.7, goal="largest")
        >>> problem.has_plan([0.3, 0.0, 0.7]), problem.has_plan([0.3, 0.1, 0.7])
        (True, False)
        """
        x, rows = np.asarray(plan, dtype=float), self.rows
        size = _KEPT * max(1.0, float(np.abs(x).max()))
        return bool(
            (rows.lower - size <= x).all()
            and (x <= rows.upper + size).all()
            and (rows.a_ub @ x - rows.b_ub <= _KEPT * (np.abs(rows.a_ub) @ np.abs(x) + 1)).all()
            and (np.abs(rows.a_eq @ x - rows.b_eq) <= _KEPT * (np.abs(rows.a_eq) @ np.abs(x) + 1)).all()
        )

    def name_of(self, plan: npt.ArrayLike | None) -> str | None:
        """The given name of a plan, or its largest amounts.

        >>> problem = Polytope(
        ...     A_eq=[[1, 1, 1]], b_eq=[1.0], upper=0.7, arms=["tea", "milk", "jam"], goal="largest"
        ... )
        >>> problem.name_of((0.3, 0.0, 0.7))
        '0.7 x jam + 0.3 x tea'
        """
        if plan is None or self.name_plan is not None:
            return super().name_of(plan)
        vector = np.asarray(plan, dtype=float)
        order = np.argsort(-np.abs(vector), kind="stable")
        used = [s for s in order.tolist() if vector[s]]
        parts = [f"{vector[s]:.4g} x {self.arm_names[s]}" for s in used[:_NAMED_ARMS]]
        more = len(used) - len(parts)
        return " + ".join(parts) + (f" and {more} more" if more else "") or "nothing"

    def recipe(self) -> Mapping[str, Any]:
        """Rows and bounds as JSON values, of every row the entries that are not 0; None has no limit."""
        rows = self.rows
        return {
            "kind": POLYTOPE,
            "rows": [[[j, float(row[j])] for j in np.flatnonzero(row).tolist()] for row in self._all_rows],
            "right": [*rows.b_ub.tolist(), *rows.b_eq.tolist()],
            "n_equal": len(rows.b_eq),
            "lower": [x if np.isfinite(x) else None for x in rows.lower.tolist()],
            "upper": [x if np.isfinite(x) else None for x in rows.upper.tolist()],
        }

    @cached_property
    def _all_rows(self) -> FloatArray:
        return np.vstack([self.rows.a_ub, self.rows.a_eq])

    def __repr__(self) -> str:
        n_rows = len(self.rows.b_ub) + len(self.rows.b_eq)
        arms = f"{self.n_arms} {plural(self.n_arms, 'arm')}"
        vertices = f"at most {in_short(self.n_plans or 2)} vertices"
        return f"Polytope({arms}, {n_rows} {plural(n_rows, 'row')}, {vertices}, {self.goal})"


Polytope.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
    [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=x) for name, x in _DEFAULTS.items()]
)


def polytope_from(recipe: Mapping[str, Any], **options: Unpack[PolytopeOptions]) -> Polytope:
    """The polytope that `Polytope.recipe` describes: its rows were found to leave plans when it was made.

    >>> problem = Polytope(A_eq=[[1, 2, 0]], b_eq=[1.0], upper=2.0, goal="largest")
    >>> polytope_from(problem.recipe(), goal="largest").rows.a_eq.tolist()
    [[1.0, 2.0, 0.0]]
    """
    n_arms, n_equal = len(recipe["lower"]), recipe["n_equal"]
    matrix, right = np.zeros((len(recipe["right"]), n_arms)), np.array(recipe["right"], dtype=float)
    for k, entries in enumerate(recipe["rows"]):
        for j, value in entries:
            matrix[k, j] = value
    n_ub = len(right) - n_equal
    found: PolytopeOptions = {
        "lower": [-np.inf if x is None else x for x in recipe["lower"]],
        "upper": [np.inf if x is None else x for x in recipe["upper"]],
    }
    if n_ub:
        found |= {"A_ub": matrix[:n_ub], "b_ub": right[:n_ub]}
    if n_equal:
        found |= {"A_eq": matrix[n_ub:], "b_eq": right[n_ub:]}
    problem = Polytope.__new__(Polytope)
    _become(problem, {**_DEFAULTS, **found, **options}, is_new=False)
    return problem


def _become(problem: Polytope, options: dict[str, Any], *, is_new: bool) -> None:
    n_arms = _count_arms(options)
    if n_arms > MOST_ARMS:
        raise ProblemError(
            f"a Polytope has at most {MOST_ARMS:,} arms, got {n_arms:,}: the edges at a plan are a table of "
            "a row and a column each. Leave out arms that no good plan would use, or merge those alike"
        )
    names = names_for("arm", options["arms"], n_arms)
    rows = as_rows(options, names)
    if is_new:
        refuse_empty(rows)
    form = standard_form(rows)
    OracleProblem.__init__(
        problem,
        partial(_best_of_rows, rows, form, is_smallest(options["goal"])),
        len(names),
        arms=names,
        n_plans=form.most_vertices,
        **{
            name: options[name]
            for name in ("goal", "noise", "cost", "name_plan", "layout", "known", "low", "high")
        },
    )
    problem.__dict__.update(rows=rows, form=form)


def _count_arms(options: Mapping[str, Any]) -> int:
    """Return how many arms there are, by the first part that has one entry for each."""
    for name in ("A_ub", "A_eq"):
        if options[name] is not None:
            shape = np.shape(options[name]) if not hasattr(options[name], "shape") else options[name].shape
            if len(shape) != 2:
                raise ProblemError(
                    f"{name} must be a table with a column per arm, got shape {shape}", field=name
                )
            return int(shape[1])
    for name in ("arms", "lower", "upper"):
        if options[name] is not None and np.ndim(options[name]) == 1:
            return len(options[name])
    raise ProblemError("a Polytope needs rows (A_ub or A_eq) or bounds for each arm, got neither")


def _best_of_rows(rows: Rows, form: StandardForm, minimize: bool, weights: FloatArray) -> FloatArray:
    """A best vertex: HiGHS says which variables are basic, and the equations give its entries."""
    answer = rows.best(weights if minimize else -weights)
    if answer.status != 0 or answer.x is None:
        raise ProblemError(f"the linear program could not be solved: {answer.message}; change its units")
    return form.plan(form.vertex(*form.basis_near(answer.x)))
