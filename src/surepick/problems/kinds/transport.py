"""Transport: how much to send from each supplier to each demander when the unit costs must be measured.

The arms are the pairs (cost or hours per unit sent), a plan is the amount sent over every pair, and the total
cost is minimised. Each transport problem is solved by POT's network simplex, and no answer is believed
unchecked: it is silently wrong on badly scaled costs (POT issue 229).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
import numpy.typing as npt

from surepick.core.arrays import (
    FloatArray,
    Numbers,
    aligned,
    aligned_table,
    labels_of,
    names_for,
    read_only,
)
from surepick.core.oracle_problem import OracleProblem
from surepick.errors import ProblemError, missing_extra
from surepick.problems.candidates import FoundProblem, Progress
from surepick.problems.cities import Distances, city_hours
from surepick.problems.family import DrawOptions, Family, builder_problem, lists
from surepick.problems.numbers import as_numbers, seeded
from surepick.problems.truth import Truth
from surepick.tables import Table

# Supply and demand may differ by this share of the total: the rounding of amounts that were computed.
BALANCED = 1e-9
# Marginals of a solved plan may be off by this share of the total; the simplex loses about 1e-15.
MARGINALS_MET = 1e-10
# A plan counts as optimal when it is proved to cost at most this much more than the best, as a share of the
# largest cost it pays times the total sent; rounding leaves about 1e-14.
OPTIMAL = 1e-9
# Costs above this multiple of the typical one are lowered to it before solving, so that they cannot drown the
# others in rounding. The answer is checked against the true costs.
LARGEST_COST = 1e4
# The rounding of the sums in that proof, as a share of the largest dual price times the total sent.
ROUNDING = 1e-13


@lists(DrawOptions)
def transport(
    supply: Numbers,
    demand: Numbers,
    guess: Numbers,
    *,
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
    - `supplier_names`, `demander_names`: their names; the labels of the guess or of the amounts, or "0", ...
    - `options`: `DrawOptions`; `cost` is of measurements and no part of the transport

    >>> problem = transport([3, 2], [4, 1], guess=[[2, 3], [2, 2]], supplier_names=["X", "Y"])
    >>> problem
    Polytope(4 arms, 4 rows, at most 3 vertices, smallest)
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
    family = transport_family(supplies, demands, supplier_names=suppliers, demander_names=demanders)
    if np.ndim(options.get("spread", 1.0)) == 2:  # type: ignore[arg-type]
        spread = aligned_table("spread", options["spread"], *names, kinds=kinds)
        options["spread"] = as_numbers("spread", spread, ndim=2).ravel()
    return builder_problem(transport, family, centre.ravel(), options)


def transport_family(
    supply: Numbers,
    demand: Numbers,
    *,
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
    shape = m, n = supplies.size, demands.size
    is_above = _surplus(supplies, demands) > 0
    columns = n + 1 if is_above else n
    suppliers = names_for("supplier", supplier_names or [str(i) for i in range(m)], m)
    demanders = names_for("demander", demander_names or [str(j) for j in range(n)], n)
    return Family(
        solve=lambda costs: _cheapest(supplies, demands, costs.reshape(shape)).ravel(),
        piece_names=tuple(f"{supplier} -> {demander}" for supplier in suppliers for demander in demanders),
        goal="smallest",
        n_plans=m ** (columns - 1) * columns ** (m - 1),  # vertices are spanning trees of the pairs
        noun="plan",
        recipe=lambda: {
            "kind": "transport",
            "supply": supplies.tolist(),
            "demand": as_numbers("demand", needs).tolist(),
            "supplier_names": list(suppliers),
            "demander_names": list(demanders),
        },
        rows=lambda: _rows(supplies, demands, is_above=is_above),
    )


def _rows(supplies: FloatArray, demands: FloatArray, *, is_above: bool) -> dict[str, Any]:
    """Every demand is met; supply is used up, or at most used where there is more than is needed."""
    m, n = supplies.size, demands.size
    sent, received = np.kron(np.eye(m), np.ones(n)), np.kron(np.ones(m), np.eye(n))
    if is_above:
        return {"A_ub": sent, "b_ub": supplies, "A_eq": received, "b_eq": demands}
    return {"A_eq": np.vstack([sent, received]), "b_eq": np.concatenate([supplies, demands])}


def _surplus(supplies: FloatArray, demands: FloatArray) -> float:
    """Return how much of the supply stays where it is; 0 up to rounding."""
    rest = float(supplies.sum() - demands.sum())
    return rest if rest > BALANCED * supplies.sum() else 0.0


def transport_instance(
    seed: int,
    *,
    distances: Distances | Table = "great-circle",
    n_draws: int = 1000,
    progress: Progress | None = None,
) -> Truth:
    """The paper's transport between eighteen cities, with supply and demand drawn from the seed.

    `distances` may also be a table of hours, with a row per supplier and a column per demander.

    Supplies and demands are U[0, 1] and normalised; the true means are the travel hours between the cities,
    and the plans are the distinct cheapest transports of `n_draws` draws within one hour of them.

    >>> instance = transport_instance(0, n_draws=20)
    >>> instance.problem.n_arms, instance.problem.arm_names[0]
    (81, 'New York -> Charlotte')
    """
    hours, source = _hours(distances)
    family, rng = _between_cities(seed, hours)
    means = read_only(hours.numbers.ravel())
    seed_of_draws = int(rng.integers(2**63))
    problem = family.problem(means, n_draws=n_draws, seed=seed_of_draws, noise=1, progress=progress)
    return Truth(problem, means, title=f"transport between cities, {source} hours, seed {seed}")


def whole_transport(seed: int, *, distances: Distances | Table = "great-circle") -> Truth:
    """Return the case of `transport_instance` with every transport as a plan: a polytope.

    >>> whole_transport(0).problem
    Polytope(81 arms, 18 rows, at most 1.3e17 vertices, smallest)
    """
    hours, source = _hours(distances)
    family, _ = _between_cities(seed, hours)
    title = f"all transports between cities, {source} hours, seed {seed}"
    return Truth(family.all_plans(noise=1), read_only(hours.numbers.ravel()), title=title)


def _hours(distances: Distances | Table) -> tuple[Table, str]:
    return (distances, "given") if isinstance(distances, Table) else (city_hours(distances), distances)


def _between_cities(seed: int, hours: Table) -> tuple[Family, np.random.Generator]:
    """The transports of supplies and demands that are drawn from the seed, and the generator after that."""
    rng = seeded(seed)
    supply, demand = rng.random(len(hours.row_names)), rng.random(len(hours.column_names))
    family = transport_family(
        supply / supply.sum(),
        demand / demand.sum(),
        supplier_names=hours.row_names,
        demander_names=hours.column_names,
    )
    return family, rng


@dataclass(frozen=True, eq=False)
class _Solution:
    amounts: FloatArray  # (suppliers, demanders)
    potentials: FloatArray  # (suppliers,) dual prices


def _cheapest(supply: FloatArray, demand: FloatArray, costs: FloatArray) -> FloatArray:
    """A cheapest transport, proved to be one; what stays goes to a demander of its own, at no cost."""
    if rest := _surplus(supply, demand):
        stays = np.zeros((len(supply), 1))
        return _cheapest(supply, np.append(demand, rest), np.hstack([costs, stays]))[:, :-1]
    sends, takes = supply > 0, demand > 0  # without supply or demand there is no dual price
    active = np.ix_(sends, takes)
    unit = 2.0 ** np.floor(np.log2(supply.sum()))  # solvers like totals near 1; a power of 2 divides exactly
    reduced = costs[active] - costs[active].min(axis=1, keepdims=True)  # all transports cost as much less
    reduced -= reduced.min(axis=0)
    solved = _proved(supply[sends] / unit, demand[takes] / unit, reduced)
    if solved is None:
        raise ProblemError(
            f"no transport could be proved cheapest: the costs, from {costs.min():g} to {costs.max():g}, "
            "differ too much in size for floating-point numbers; give pairs not to be used a cost nearer the "
            "others"
        )
    amounts = np.zeros(costs.shape)
    amounts[active] = solved * unit
    return amounts


def _proved(supply: FloatArray, demand: FloatArray, reduced: FloatArray) -> FloatArray | None:
    """Return the first solution that is proved optimal, or None.

    The solvers have absolute tolerances, so costs are divided by a unit. After a solution without a proof the
    unit is the largest cost that it pays.
    """
    positive = np.sort(reduced[reduced > 0])
    unit = float(positive[positive.size // 2]) if positive.size else 1.0
    for solve in (_network_simplex, _network_simplex, _network_simplex, _linear_programme):
        solution = solve(supply, demand, reduced / unit)
        if solution is None:
            continue
        if _is_optimal(solution, supply, demand, reduced / unit):
            return solution.amounts
        unit = float(reduced[solution.amounts > 0].max(initial=0.0)) or unit
    return None


def _network_simplex(supply: FloatArray, demand: FloatArray, costs: FloatArray) -> _Solution | None:
    try:
        import ot
    except ImportError:
        raise missing_extra("ot", "problems") from None
    capped = np.minimum(costs, LARGEST_COST)
    amounts, log = ot.emd(supply, demand, capped, log=True, center_dual=False, check_marginals=False)
    return None if log["warning"] else _Solution(amounts, log["u"])


def _linear_programme(supply: FloatArray, demand: FloatArray, costs: FloatArray) -> _Solution | None:
    """Solve by HiGHS, forty times slower than the network simplex; used where that one fails."""
    from scipy.optimize import linprog

    m, n = costs.shape
    answer = linprog(
        costs.ravel(),
        A_eq=np.vstack([np.kron(np.eye(m), np.ones(n)), np.kron(np.ones(m), np.eye(n))]),
        b_eq=np.concatenate([supply, demand]),
        method="highs-ds",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    if answer.x is None:
        return None
    amounts = np.where(answer.x > MARGINALS_MET * supply.sum(), answer.x, 0.0)
    return _Solution(amounts.reshape(m, n), answer.eqlin.marginals[:m])


def _is_optimal(solution: _Solution, supply: FloatArray, demand: FloatArray, costs: FloatArray) -> bool:
    """Return whether the amounts meet supply and demand and weak duality proves that nothing is cheaper.

    For any prices u the prices v_j = min_i (c_ij - u_i) satisfy u_i + v_j <= c_ij, so no transport costs less
    than u.supply + v.demand.
    """
    amounts, u = solution.amounts, solution.potentials
    total = supply.sum()
    miss = max(np.abs(amounts.sum(axis=1) - supply).max(), np.abs(amounts.sum(axis=0) - demand).max())
    if amounts.min() < 0 or miss > MARGINALS_MET * total:
        return False
    v = (costs - u[:, None]).min(axis=0)
    gap = float((costs * amounts).sum() - u @ supply - v @ demand)
    highest, largest_price = costs[amounts > 0].max(), max(np.abs(u).max(), np.abs(v).max())
    return bool(gap <= (OPTIMAL * highest + ROUNDING * largest_price) * total)


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
    return supplies, demands if _surplus(supplies, demands) else demands * (have / need)
