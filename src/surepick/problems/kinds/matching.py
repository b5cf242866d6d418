"""Assignments: who does what, when the weight of every pair must be measured."""

from __future__ import annotations

from collections.abc import Sequence
from math import perm
from typing import Unpack

import numpy as np
import numpy.typing as npt

from surepick.core.arrays import FloatArray
from surepick.core.given.numbers import Goal, Numbers, names_for
from surepick.core.oracle_problem import AnyProblem
from surepick.core.wording import counted
from surepick.errors import ProblemError
from surepick.problems.candidates import chosen
from surepick.problems.family import DrawOptions, Family
from surepick.problems.numbers import as_table, is_table


def matchings(
    guess: Numbers | None = None,
    *,
    goal: Goal,
    row_names: Sequence[str] | None = None,
    column_names: Sequence[str] | None = None,
    possible: npt.ArrayLike | None = None,
    **options: Unpack[DrawOptions],
) -> AnyProblem:
    """Return the problem of giving each row (worker) a column (job) of its own in the least total weight.

    With fewer columns than rows some rows stay without. Arms are the possible pairs, row by row, named like
    "Ann: paint". Every assignment is a plan: in a list up to 1,000 of them, behind an oracle beyond. Where a
    list is asked for, the plans are the best assignments of draws near the guess, or the `n_best` best under
    it.

    - `guess`: the weight of each pair, a row per worker and a column per job; nan for a pair that cannot be;
      None: the names say which rows and columns there are
    - `goal`: the total of the best plan, "smallest" or "largest"
    - `row_names`, `column_names`: their names; those of a DataFrame, or "row 0", "column 0", ...
    - `possible`: without a guess, a table of which pairs can be; None: all
    - `options`: `DrawOptions`; `spread` may be a table like the guess

    >>> problem = matchings(
    ...     [[2, 3], [2, 2]], row_names=["Ann", "Bob"], column_names=["paint", "weld"], goal="smallest"
    ... )
    >>> sorted(problem.plan_names)
    ['Ann: paint + Bob: weld', 'Ann: weld + Bob: paint']
    """
    kinds = ("row", "column")
    if guess is not None:
        table, rows, columns = as_table("guess", guess, row_names, column_names, kinds=kinds)
        mask = ~np.isnan(table)
    elif row_names is None or column_names is None:
        raise ProblemError("give a guess, or row_names and column_names", field="guess")
    else:
        rows = names_for("row", row_names, len(row_names))
        columns = names_for("column", column_names, len(column_names))
        mask = np.ones((len(rows), len(columns)), dtype=bool)
        mask = mask if possible is None else np.asarray(possible, dtype=bool).reshape(mask.shape)
    if is_table(options.get("spread")):
        spread, *_ = as_table("spread", options["spread"], rows, columns, kinds=kinds)
        options["spread"] = spread[mask]
    at_row, at_column = np.nonzero(mask)
    names = tuple(f"{rows[i]}: {columns[j]}" for i, j in zip(at_row, at_column, strict=True))
    number = np.where(mask, np.cumsum(mask).reshape(mask.shape) - 1, -1)  # of each possible pair

    def within(weights: FloatArray, required: list[int], forbidden: list[int]) -> list[int] | None:
        """Return the pairs of a least assignment with the required pairs and without the forbidden ones."""
        from scipy.optimize import linear_sum_assignment

        costs = np.full(mask.shape, np.inf)
        costs[mask] = weights
        costs[at_row[forbidden], at_column[forbidden]] = np.inf
        free_rows = np.setdiff1d(np.arange(len(rows)), at_row[required])
        free_columns = np.setdiff1d(np.arange(len(columns)), at_column[required])
        try:
            i, j = linear_sum_assignment(costs[np.ix_(free_rows, free_columns)])
        except ValueError:  # infeasible
            return None
        return required + [int(s) for s in number[free_rows[i], free_columns[j]]]

    if within(np.zeros(len(names)), [], []) is None:
        raise ProblemError(
            "no assignment exists: the possible pairs do not leave every row a column of its own; allow more "
            "pairs (those marked nan are not possible)",
            field="possible",
        )
    family = Family(
        lambda costs: chosen(within(costs, [], []) or [], len(names)),
        arm_names=names,
        goal=goal,
        n_plans=perm(max(mask.shape), min(mask.shape)),
        kind="matchings",
        noun="matching",
        count_is_exact=bool(mask.all()),
        name_of=lambda plan: counted(names, plan),
        within=within,
        recipe={
            "row_names": list(rows),
            "column_names": list(columns),
            "possible": mask.astype(int).tolist(),
            "goal": goal,
        },
    )
    return family.problem(None if guess is None else table[mask], **options)
