"""Assignments: who does what, when the weight of every pair must be measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import perm
from typing import Unpack

import numpy as np
import numpy.typing as npt

from surepick.core.arrays import (
    BoolArray,
    FloatArray,
    Goal,
    IntArray,
    Numbers,
    aligned_table,
    is_smallest,
    labels_of,
    names_for,
)
from surepick.core.oracle_problem import OracleProblem
from surepick.errors import ProblemError
from surepick.problems.candidates import FoundProblem, chosen
from surepick.problems.family import DrawOptions, Family, builder_problem
from surepick.problems.numbers import as_numbers


def matchings(
    guess: Numbers,
    *,
    goal: Goal,
    row_names: Sequence[str] | None = None,
    column_names: Sequence[str] | None = None,
    **options: Unpack[DrawOptions],
) -> OracleProblem | FoundProblem:
    """The problem of giving each row (worker) a column (job) of its own in the least total weight.

    With fewer columns than rows some rows stay without. Arms are the possible pairs, row by row, named like
    "Ann: paint". Every assignment is a plan: in a list up to 1,000 of them, behind an oracle beyond. Where a
    list is asked for, the plans are the best assignments of draws near the guess, or the `n_best` best under
    it.

    - `guess`: the weight of each pair, a row per worker and a column per job; nan for a pair that cannot be
    - `goal`: the total of the best plan, "smallest" or "largest"
    - `row_names`, `column_names`: their names; those of a DataFrame, or "row 0", "column 0", ...
    - `options`: `DrawOptions`; `spread` may be a table like the guess

    >>> problem = matchings(
    ...     [[2, 3], [2, 2]], row_names=["Ann", "Bob"], column_names=["paint", "weld"], goal="smallest"
    ... )
    >>> sorted(problem.plan_names)
    ['Ann: paint, Bob: weld', 'Ann: weld, Bob: paint']
    """
    row_names = labels_of(guess) if row_names is None else row_names
    column_names = labels_of(guess, columns=True) if column_names is None else column_names
    kinds = ("row", "column")
    in_order = aligned_table("guess", guess, row_names or (), column_names or (), kinds=kinds)
    table = as_numbers("guess", in_order, ndim=2, gaps=True)
    possible = ~np.isnan(table)
    rows, columns = names_for("row", row_names, len(table)), names_for("column", column_names, table.shape[1])
    if np.ndim(options.get("spread", 1.0)) == 2:  # type: ignore[arg-type]
        spread = aligned_table("spread", options["spread"], rows, columns, kinds=kinds)
        options["spread"] = np.asarray(spread, dtype=float)[possible]
    family = matching_family(rows, columns, possible=possible, goal=goal)
    return builder_problem("matchings", family, table[possible], options)


def matching_family(
    row_names: Sequence[str],
    column_names: Sequence[str],
    *,
    possible: npt.ArrayLike | None = None,
    goal: Goal,
) -> Family:
    """All assignments of rows to columns, known by the best for given weights of the possible pairs.

    >>> family = matching_family(["Ann", "Bob"], ["paint", "weld"], goal="smallest")
    >>> family.best([2.0, 3.0, 2.0, 2.0]).tolist(), family.n_plans
    ([1.0, 0.0, 0.0, 1.0], 2)
    """
    mask = np.ones((len(row_names), len(column_names))) if possible is None else np.asarray(possible)
    pairs = _Pairs(
        names_for("row", row_names, len(mask)),
        names_for("column", column_names, mask.shape[1]),
        mask.astype(bool),
    )
    rows, columns = np.nonzero(pairs.possible)
    if _assign(pairs, np.zeros(len(rows)), [], []) is None:
        raise ProblemError(
            "no assignment exists: the possible pairs do not leave every row a column of its own; allow more "
            "pairs (those marked nan are not possible)",
            field="possible",
        )
    sign = 1.0 if is_smallest(goal) else -1.0
    names = tuple(f"{pairs.rows[i]}: {pairs.columns[j]}" for i, j in zip(rows, columns, strict=True))
    return Family(
        solve=lambda weights: chosen(_assign(pairs, sign * weights, [], []) or [], len(names)),
        arm_names=names,
        goal=goal,
        n_plans=perm(max(mask.shape), min(mask.shape)),
        count_is_exact=bool(pairs.possible.all()),
        noun="matching",
        name_of=lambda plan: ", ".join(names[s] for s in np.flatnonzero(plan)),
        within=lambda weights, required, forbidden: _assign(pairs, sign * weights, required, forbidden),
        recipe=lambda: {
            "kind": "matchings",
            "row_names": list(pairs.rows),
            "column_names": list(pairs.columns),
            "possible": pairs.possible.astype(int).tolist(),
            "goal": goal,
        },
    )


@dataclass(frozen=True, eq=False)
class _Pairs:
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    possible: BoolArray  # (n_rows, n_columns)

    @cached_property
    def number(self) -> IntArray:
        """(n_rows, n_columns) the number of each possible pair, -1 for the others."""
        return np.where(self.possible, np.cumsum(self.possible).reshape(self.possible.shape) - 1, -1)


def _assign(
    pairs: _Pairs, weights: FloatArray, required: list[int], forbidden: list[int]
) -> list[int] | None:
    """The pairs of a least assignment with the required pairs and without the forbidden ones."""
    from scipy.optimize import linear_sum_assignment

    costs = np.full(pairs.possible.shape, np.inf)
    costs[pairs.possible] = weights
    rows, columns = np.arange(len(pairs.rows)), np.arange(len(pairs.columns))
    if required or forbidden:
        at_row, at_column = np.nonzero(pairs.possible)
        costs[at_row[forbidden], at_column[forbidden]] = np.inf
        rows, columns = np.setdiff1d(rows, at_row[required]), np.setdiff1d(columns, at_column[required])
    try:
        i, j = linear_sum_assignment(costs[np.ix_(rows, columns)] if required else costs)
    except ValueError:  # infeasible
        return None
    return required + [int(s) for s in pairs.number[rows[i], columns[j]]]
