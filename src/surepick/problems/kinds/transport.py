"""Transport: how much to send from each supplier to each demander when the unit costs must be measured.

The arms are the pairs (cost or hours per unit sent), a plan is the amount sent over every pair, and the total
cost is minimised: a linear program, solved by HiGHS.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Unpack

import numpy as np

from surepick.core.arrays import FloatArray, first_true
from surepick.core.given.numbers import Goal, Numbers, aligned, aligned_table, labels_of, names_for
from surepick.core.oracle_problem import AnyProblem
from surepick.errors import ProblemError
from surepick.problems.family import DrawOptions, Family
from surepick.problems.kinds.program import as_program, least_plan, polytope_rows
from surepick.problems.numbers import as_numbers, is_table

# Supply and demand may differ by this share of the total: the rounding of amounts that were computed.
BALANCED = 1e-9


def transport(
    supply: Numbers,
    demand: Numbers,
    guess: Numbers | None = None,
    *,
    goal: Goal = "smallest",
    supplier_names: Sequence[str] | None = None,
    demander_names: Sequence[str] | None = None,
    **options: Unpack[DrawOptions],
) -> AnyProblem:
    """Return the problem of sending supply to demand at the least total cost, with unit costs near a guess.

    Every transport is a plan (a `Polytope`). With `list_plans`, or where draws are asked for, the plans are
    the cheapest transports of draws near the guess; equal ones are kept once. Arms are pairs in row-major
    order, named like "New York -> Charlotte".

    - `supply`, `demand`: how much each can send and receives; what is supplied above demand stays
    - `guess`: the cost per unit, a row per supplier and a column per demander; `spread` may be such a table;
      None: nothing is known
    - `goal`: the total of the best plan, "smallest" or "largest"; "smallest"
    - `supplier_names`, `demander_names`: their names; the labels of the guess or of the amounts, or "0", ...
    - `options`: `DrawOptions`; `cost` is of measurements and no part of the transport

    >>> problem = transport([3, 2], [4, 1], guess=[[2, 3], [2, 2]], supplier_names=["X", "Y"])
    >>> problem
    Polytope(4 arms, 4 rows, at most 2 vertices, smallest)
    >>> listed = transport([3, 2], [4, 1], guess=[[2, 3], [2, 2]], n_draws=100)
    >>> listed.arm_names, sorted(listed.plans.tolist())
    (('0 -> 0', '0 -> 1', '1 -> 0', '1 -> 1'), [[2.0, 1.0, 2.0, 0.0], [3.0, 0.0, 1.0, 1.0]])
    """
    sent_by = supplier_names or labels_of(guess) or labels_of(supply)
    sent_to = demander_names or labels_of(guess, columns=True) or labels_of(demand)
    kinds, labels = ("supplier", "demander"), (sent_by or (), sent_to or ())
    supplies = as_numbers("supply", aligned("supply", supply, labels[0], kind="supplier"))
    demands = as_numbers("demand", aligned("demand", demand, labels[1], kind="demander"))
    shape = (supplies.size, demands.size)
    if guess is not None:
        guess = as_numbers("guess", aligned_table("guess", guess, *labels, kinds=kinds), ndim=2)
        if guess.shape != shape:
            raise ProblemError(
                f"guess must have a row per supplier and a column per demander, {shape}, got {guess.shape}",
                field="guess",
            )
    if is_table(options.get("spread")):
        spread = aligned_table("spread", options["spread"], *labels, kinds=kinds)
        options["spread"] = as_numbers("spread", spread, ndim=2).ravel()
    suppliers = names_for("supplier", sent_by or [str(i) for i in range(shape[0])], shape[0])
    demanders = names_for("demander", sent_to or [str(j) for j in range(shape[1])], shape[1])
    names = [f"{supplier} -> {demander}" for supplier in suppliers for demander in demanders]
    family = all_transports(supplies, demands, names, goal=goal)
    return family.problem(None if guess is None else guess.ravel(), **options)


def all_transports(supplies: FloatArray, demands: FloatArray, names: Sequence[str], *, goal: Goal) -> Family:
    """Return the family of all transports; the names are those of the pairs, row by row."""
    demands, is_above = _balanced(supplies, demands)
    m, n = supplies.size, demands.size
    program = as_program(
        np.vstack([np.kron(np.eye(m), np.ones(n)), np.kron(np.ones(m), np.eye(n))]),
        np.concatenate([supplies, demands]),
        senses=["<=" if is_above else "="] * m + ["="] * n,
        goal=goal,
        variable_names=names,
    )
    unit = 2.0 ** np.floor(np.log2(supplies.sum()))  # HiGHS has absolute tolerances: totals near 1
    in_units = replace(program, row_lower=program.row_lower / unit, row_upper=program.row_upper / unit)
    columns = n + 1 if is_above else n
    return Family(
        lambda costs: unit * least_plan(in_units, costs),
        arm_names=program.variable_names,
        goal=goal,
        n_plans=m ** (columns - 1) * columns ** (m - 1),  # vertices are spanning trees of the pairs
        kind="transport",
        rows=polytope_rows(program),
    )


def _balanced(supplies: FloatArray, demands: FloatArray) -> tuple[FloatArray, bool]:
    """Return the demands, of the same total as the supplies, and whether some supply stays where it is.

    Then the demands are as given: there is more supply than demand, beyond rounding.
    """
    for what, amounts in (("supply", supplies), ("demand", demands)):
        i = first_true(amounts < 0)
        if i is not None:
            raise ProblemError(f"{what} must not be negative, got {amounts[i]:g} in entry {i}", field=what)
    have, need = float(supplies.sum()), float(demands.sum())
    if not have > 0:
        raise ProblemError(
            "supply must be positive somewhere, got zeros only; there is nothing to send", field="supply"
        )
    if need - have > BALANCED * have:
        raise ProblemError(
            f"supply must cover demand, got {have:.10g} and {need:.10g}; {need - have:.10g} is missing",
            field="supply",
        )
    is_above = have - need > BALANCED * have
    return (demands, True) if is_above else (demands * (have / need), False)
