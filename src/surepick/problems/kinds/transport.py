"""Transport: how much to send from each supplier to each demander when the unit costs must be measured.

The arms are the pairs (cost or hours per unit sent), a plan is the amount sent over every pair, and the total
cost is minimised: a linear program, solved by HiGHS.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Unpack

import numpy as np
import numpy.typing as npt

from surepick.core.arrays import FloatArray, Goal, Numbers, aligned, aligned_table, labels_of, names_for
from surepick.core.oracle_problem import OracleProblem
from surepick.errors import ProblemError
from surepick.problems.candidates import FoundProblem
from surepick.problems.family import DrawOptions, Family, builder_problem
from surepick.problems.kinds.program import as_program, program_family
from surepick.problems.numbers import as_numbers

# Supply and demand may differ by this share of the total: the rounding of amounts that were computed.
BALANCED = 1e-9


def transport(
    supply: Numbers,
    demand: Numbers,
    guess: Numbers,
    *,
    goal: Goal = "smallest",
    supplier_names: Sequence[str] | None = None,
    demander_names: Sequence[str] | None = None,
    **options: Unpack[DrawOptions],
) -> OracleProblem | FoundProblem:
    """The problem of sending supply to demand at the least total cost, the unit costs being near a guess.

    Every transport is a plan (a `Polytope`). With `list_plans`, or where draws are asked for, the plans are
    the cheapest transports of draws near the guess; equal ones are kept once. Arms are pairs in row-major
    order, named like "New York -> Charlotte".

    - `supply`, `demand`: how much each can send and receives; what is supplied above demand stays
    - `guess`: the cost per unit, a row per supplier and a column per demander; `spread` may be such a table
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
    suppliers = supplier_names or labels_of(guess) or labels_of(supply)
    demanders = demander_names or labels_of(guess, columns=True) or labels_of(demand)
    kinds, names = ("supplier", "demander"), (suppliers or (), demanders or ())
    supplies, demands = _balanced(
        aligned("supply", supply, names[0], kind="supplier"),
        aligned("demand", demand, names[1], kind="demander"),
    )
    table = aligned_table("guess", guess, *names, kinds=kinds)
    centre, shape = as_numbers("guess", table, ndim=2), (supplies.size, demands.size)
    if centre.shape != shape:
        raise ProblemError(
            f"guess must have one row per supplier and one column per demander, shape {shape}, got shape "
            f"{centre.shape}",
            field="guess",
        )
    family = transport_family(
        supplies, demands, goal=goal, supplier_names=suppliers, demander_names=demanders
    )
    if np.ndim(options.get("spread", 1.0)) == 2:  # type: ignore[arg-type]
        spread = aligned_table("spread", options["spread"], *names, kinds=kinds)
        options["spread"] = as_numbers("spread", spread, ndim=2).ravel()
    return builder_problem("transport", family, centre.ravel(), options)


def transport_family(
    supply: Numbers,
    demand: Numbers,
    *,
    goal: Goal = "smallest",
    supplier_names: Sequence[str] | None = None,
    demander_names: Sequence[str] | None = None,
) -> Family:
    """All transports of supply to demand, known by the cheapest for given unit costs, row by row.

    >>> transport_family([3, 2], [4, 1]).best([1, 3, 1, 1]).tolist()
    [3.0, 0.0, 1.0, 1.0]
    """
    supplier_names = supplier_names or labels_of(supply)
    demander_names = demander_names or labels_of(demand)
    needs = aligned("demand", demand, demander_names or (), kind="demander")
    supplies, demands = _balanced(aligned("supply", supply, supplier_names or (), kind="supplier"), needs)
    m, n = supplies.size, demands.size
    is_above = _is_above(supplies, demands)
    columns = n + 1 if is_above else n
    suppliers = names_for("supplier", supplier_names or [str(i) for i in range(m)], m)
    demanders = names_for("demander", demander_names or [str(j) for j in range(n)], n)
    unit = 2.0 ** np.floor(np.log2(supplies.sum()))  # HiGHS has absolute tolerances: totals near 1
    program = as_program(
        np.vstack([np.kron(np.eye(m), np.ones(n)), np.kron(np.ones(m), np.eye(n))]),
        np.concatenate([supplies, demands]) / unit,
        senses=["<=" if is_above else "="] * m + ["="] * n,
        goal=goal,
        variable_names=[f"{supplier} -> {demander}" for supplier in suppliers for demander in demanders],
    )
    in_units = program_family(program)

    def rows() -> dict[str, Any]:
        found = {} if in_units.rows is None else in_units.rows()
        return {**found, "b_ub": unit * found["b_ub"], "b_eq": unit * found["b_eq"]}

    return replace(
        in_units,
        solve=lambda costs: unit * np.asarray(in_units.solve(costs)),
        rows=rows,
        n_plans=m ** (columns - 1) * columns ** (m - 1),  # vertices are spanning trees of the pairs
        noun="plan",
        recipe=lambda: {
            "kind": "transport",
            "supply": supplies.tolist(),
            "demand": as_numbers("demand", needs).tolist(),
            "supplier_names": list(suppliers),
            "demander_names": list(demanders),
            "goal": goal,
        },
    )


def _is_above(supplies: FloatArray, demands: FloatArray) -> bool:
    """Return whether some of the supply stays where it is, beyond rounding."""
    return bool(supplies.sum() - demands.sum() > BALANCED * supplies.sum())


def _balanced(supply: npt.ArrayLike, demand: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Supply and demand as arrays; of the same total, unless there is more supply than demand."""
    supplies, demands = as_numbers("supply", supply), as_numbers("demand", demand)
    for what, amounts in (("supply", supplies), ("demand", demands)):
        if (amounts < 0).any():
            i = int(np.argmax(amounts < 0))
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
    return supplies, demands if _is_above(supplies, demands) else demands * (have / need)
