"""Portfolios: how to spread a budget over assets, within limits, when their returns must be measured.

The arms are the returns per unit invested, a plan is the amount in each asset, and the expected return is
maximised: the value of a plan is linear, risk enters through the limits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias, Unpack

import numpy as np

from surepick.core.arrays import FloatArray, Numbers, aligned, labels_of, names_for
from surepick.core.oracle_problem import OracleProblem
from surepick.errors import ProblemError, suggestion
from surepick.problems.family import Family
from surepick.problems.found import FoundProblem
from surepick.problems.numbers import as_numbers
from surepick.problems.options import DrawOptions, builder_problem, lists
from surepick.problems.program import Program, as_program, program_family

Groups: TypeAlias = Mapping[str, tuple[Sequence[str], float]]


@lists(DrawOptions)
def portfolio(
    guess: Numbers,
    *,
    budget: float = 1.0,
    lower: Numbers = 0.0,
    upper: Numbers = np.inf,
    groups: Groups | None = None,
    asset_names: Sequence[str] | None = None,
    **options: Unpack[DrawOptions],
) -> OracleProblem | FoundProblem:
    """The problem of investing a budget for the largest return, the returns being near a guess.

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
    named = labels_of(guess) if asset_names is None else asset_names
    centre = as_numbers("guess", aligned("guess", guess, named or (), kind="asset"))
    names = names_for("asset", named, centre.size)
    family = portfolio_family(names, budget=budget, lower=lower, upper=upper, groups=groups)
    return builder_problem(portfolio, family, centre, options)


def portfolio_family(
    asset_names: Sequence[str],
    *,
    budget: float = 1.0,
    lower: Numbers = 0.0,
    upper: Numbers = np.inf,
    groups: Groups | None = None,
) -> Family:
    """All portfolios within the limits, known by the best for given returns.

    >>> portfolio_family(["stocks", "bonds", "gold"], upper=0.5).best([3.0, 1.0, 2.0]).tolist()
    [0.5, 0.0, 0.5]
    """
    names = names_for("asset", asset_names, len(asset_names))
    if not (np.isfinite(budget) and budget > 0):
        raise ProblemError(f"budget must be positive and finite, got {budget!r}", field="budget")
    rows, limits = [np.ones(len(names))], [float(budget)]
    for group, (members, most) in (groups or {}).items():
        rows.append(_membership(names, group, members))
        limits.append(float(most))
    program = as_program(
        np.array(rows),
        limits,
        senses=["=", *["<="] * (len(rows) - 1)],
        lower=lower,
        upper=np.minimum(np.asarray(aligned("upper", upper, names, kind="asset"), dtype=float), budget),
        variable_names=names,
    )
    _refuse_impossible(program, budget)
    return replace(program_family(program), noun="portfolio")


def _membership(names: tuple[str, ...], group: str, members: Sequence[str]) -> FloatArray:
    row = np.zeros(len(names))
    for name in members:
        if name not in names:
            raise ProblemError(
                f"group {group!r} names an unknown asset {name!r}; {suggestion(name, names)}", field="groups"
            )
        row[names.index(name)] = 1.0
    return row


def _refuse_impossible(program: Program, budget: float) -> None:
    least, most = float(program.lower.sum()), float(program.upper.sum())
    if (program.lower < 0).any():
        s = int(np.argmax(program.lower < 0))
        raise ProblemError(
            f"lower must be 0 or more, got {program.lower[s]:g} for {program.variable_names[s]!r}",
            field="lower",
        )
    if not least <= budget <= most:
        raise ProblemError(
            f"the limits cannot hold the budget of {budget:g}: the least amounts add up to {least:g}, the "
            f"most to {most:g}; change the limits",
            field="budget",
        )
