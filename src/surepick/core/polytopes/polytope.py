"""All plans of a polytope: amounts that keep linear rows and bounds, none of them listed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from surepick.core.arrays import BoolArray, FloatArray, as_floats
from surepick.core.base_problem import arm_fields
from surepick.core.given.numbers import Goal, Known, Numbers, PerArm, is_smallest, names_for
from surepick.core.given.probes import Limits
from surepick.core.oracle_problem import OracleProblem
from surepick.core.polytopes.standard_form import Rows, StandardForm, as_rows, refuse_empty, standard_form
from surepick.core.wording import in_short, plural
from surepick.errors import ProblemError, hinted

POLYTOPE = "polytope"  # the kind of its recipe
_MET = 1e-8  # how far a row or a bound may be missed, of 1 and the largest amount
_NAMED_ARMS = 4  # of a plan, in its name; the largest amounts
MOST_ARMS = 10_000


class Polytope(OracleProblem):
    """A choice between all amounts x that keep rows and bounds: A_ub x <= b_ub, A_eq x = b_eq.

    The value of a plan is the sum over arms of amount times mean, as in `Problem`. Some vertex is best, and
    `BetGapE` finds which, of all of them. Rows are as in `scipy.optimize.linprog`:

    - `A_ub`, `b_ub`, `A_eq`, `b_eq`: a column per arm, a row per limit; arrays or SciPy sparse arrays
    - `lower`, `upper`: of each amount, one number or one per arm; 0 and none
    - `goal`, `noise`, `cost`, `arms`, `low`, `high`, `known`: as in `Problem`;
      `low` and `high` are of one measurement, not of the amounts
    - `name_plan`: a function from amounts to a name; without it a plan is called by its largest amounts
    - `check`: False spares the linear programs that refuse rows without a plan, for rows that passed before

    Rows that leave no plan, a single one, or amounts without an end are refused. Rows and bounds that follow
    from others are found and do no harm.

    >>> problem = Polytope(A_ub=[[1, 2], [3, 1]], b_ub=[8, 9], arms=["tables", "chairs"], goal="largest")
    >>> problem.best_plan([3.0, 4.0]).round(9).tolist()
    [2.0, 3.0]
    """

    rows: Rows
    form: StandardForm
    has_batches: ClassVar[bool] = True

    @hinted
    def __init__(
        self,
        *,
        A_ub: Any = None,
        b_ub: npt.ArrayLike | None = None,
        A_eq: Any = None,
        b_eq: npt.ArrayLike | None = None,
        lower: npt.ArrayLike = 0.0,
        upper: npt.ArrayLike = np.inf,
        goal: Goal,
        noise: PerArm | None = None,
        cost: PerArm | None = None,
        arms: Sequence[str] | None = None,
        low: Numbers | float | None = None,
        high: Numbers | float | None = None,
        known: Known | None = None,
        name_plan: Callable[[FloatArray], str] | None = None,
        check: bool = True,
    ) -> None:
        n_arms = _count_arms(A_ub=A_ub, A_eq=A_eq, arms=arms, lower=lower, upper=upper)
        if n_arms > MOST_ARMS:
            raise ProblemError(
                f"a Polytope has at most {MOST_ARMS:,} arms, got {n_arms:,}; leave out those that no good "
                "plan would use, or merge those alike"
            )
        names = names_for("arm", arms, n_arms)
        rows = as_rows(A_ub, b_ub, A_eq, b_eq, lower, upper, names)
        if check:
            refuse_empty(rows)
        form = standard_form(rows)
        self._set(
            **arm_fields(names, goal, Limits(noise, low, high), cost),
            best=partial(_best_of_rows, rows, form, is_smallest(goal)),
            n_plans=form.most_vertices,
            name_plan=name_plan,
            rows=rows,
            form=form,
        )
        self._apply_known(known)

    @property
    def relevant(self) -> BoolArray:
        """The arms whose amounts are not the same in all plans, and whose means are not known."""
        return np.asarray(self.form.moves & ~self.is_known)

    def keeps(self, plan: FloatArray) -> bool:
        """Return whether these amounts keep all rows and bounds, up to rounding."""
        rows = self.rows
        room = _MET * (1 + np.abs(plan).max(initial=0.0))
        return bool(
            (rows.a_ub @ plan <= rows.b_ub + room).all()
            and (np.abs(rows.a_eq @ plan - rows.b_eq) <= room).all()
            and (plan >= rows.lower - room).all()
            and (plan <= rows.upper + room).all()
        )

    @property
    def completeness(self) -> str:
        """Return what the guarantee is about: every plan there is."""
        return "all plans that keep the rows and bounds, none of them listed"

    def name_of(self, plan: npt.ArrayLike | None) -> str | None:
        """Return the given name of a plan, or its largest amounts."""
        if plan is None or self.name_plan is not None:
            return super().name_of(plan)
        vector = np.asarray(plan, dtype=float)
        order = np.argsort(-np.abs(vector), kind="stable")
        used = [s for s in order.tolist() if vector[s]]
        parts = [f"{vector[s]:.4g} x {self.arm_names[s]}" for s in used[:_NAMED_ARMS]]
        more = len(used) - len(parts)
        return " + ".join(parts) + (f" and {more} more" if more else "") or "nothing"

    def recipe(self) -> Mapping[str, Any]:
        """Return rows, by their entries that are not 0, and bounds as JSON values; None has no limit."""
        rows = self.rows
        matrix = np.vstack([rows.a_ub, rows.a_eq])
        return {
            "kind": POLYTOPE,
            "rows": [[[j, float(row[j])] for j in np.flatnonzero(row).tolist()] for row in matrix],
            "right": [*rows.b_ub.tolist(), *rows.b_eq.tolist()],
            "n_equal": len(rows.b_eq),
            "lower": [x if np.isfinite(x) else None for x in rows.lower.tolist()],
            "upper": [x if np.isfinite(x) else None for x in rows.upper.tolist()],
        }

    def __repr__(self) -> str:
        n_rows = len(self.rows.b_ub) + len(self.rows.b_eq)
        arms = f"{self.n_arms} {plural(self.n_arms, 'arm')}"
        vertices = f"at most {in_short(self.n_plans or 2)} vertices"
        return f"Polytope({arms}, {n_rows} {plural(n_rows, 'row')}, {vertices}, {self.goal})"


def polytope_from(recipe: Mapping[str, Any], **settings: Any) -> Polytope:
    """Return the polytope that `Polytope.recipe` describes; settings are those that are no rows or bounds.

    >>> problem = Polytope(A_eq=[[1, 2, 0]], b_eq=[1.0], upper=2.0, goal="largest")
    >>> polytope_from(problem.recipe(), goal="largest").rows.a_eq.tolist()
    [[1.0, 2.0, 0.0]]
    """
    right = np.array(recipe["right"], dtype=float)
    n_ub = len(right) - recipe["n_equal"]
    matrix = np.zeros((len(right), len(recipe["lower"])))
    for k, entries in enumerate(recipe["rows"]):
        for j, value in entries:
            matrix[k, j] = value
    return Polytope(
        A_ub=matrix[:n_ub],
        b_ub=right[:n_ub],
        A_eq=matrix[n_ub:],
        b_eq=right[n_ub:],
        lower=[-np.inf if x is None else x for x in recipe["lower"]],
        upper=[np.inf if x is None else x for x in recipe["upper"]],
        check=False,
        **settings,
    )


def _count_arms(**given: Any) -> int:
    """Return how many arms there are, by the first part that has one entry for each."""
    for name in ("A_ub", "A_eq"):
        if given[name] is not None:
            table = given[name] if hasattr(given[name], "shape") else as_floats(given[name])
            if table is None or len(table.shape) != 2 or not table.shape[1]:
                raise ProblemError(f"{name} must be a table of numbers, a column per arm", field=name)
            return int(table.shape[1])
    for name in ("arms", "lower", "upper"):
        if given[name] is not None and np.ndim(given[name]) == 1:
            return len(given[name])
    raise ProblemError("a Polytope needs rows (A_ub or A_eq) or bounds for each arm, got neither")


def _best_of_rows(rows: Rows, form: StandardForm, minimize: bool, weights: FloatArray) -> FloatArray:
    """Return a best vertex: HiGHS says which variables are basic, and the equations give its entries."""
    answer = rows.best(weights if minimize else -weights)
    if answer.status != 0 or answer.x is None:
        raise ProblemError(f"the linear program could not be solved: {answer.message}; change its units")
    return form.plan(form.vertex(*form.basis_near(answer.x)))
