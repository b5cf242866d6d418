"""Assignments under a price limit: one option for every slot, with known prices and a budget.

A model for every workload, a supplier for every lane. The arms are the pairs of a slot and an option, whose
worth must be measured; a plan takes one option for each slot and costs no more than the budget.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import TypeAlias, Unpack

import numpy as np

from surepick.core.arrays import FloatArray, IntArray, as_float
from surepick.core.given.numbers import Goal, Numbers
from surepick.core.oracle_problem import AnyProblem
from surepick.core.wording import counted
from surepick.errors import ProblemError
from surepick.problems.candidates import chosen
from surepick.problems.family import DrawOptions, Family
from surepick.problems.numbers import as_table

Prices: TypeAlias = "Mapping[str, Mapping[str, float]] | Numbers"
ROUNDING = 1e-12  # of sums of prices: .1 and .2 are within a budget of .3
MOST_LABELS = 2_000_000  # undominated sums of prices that a solve keeps; beyond it is refused


def assign(
    prices: Prices,
    budget: float,
    guess: Numbers | None = None,
    *,
    goal: Goal,
    slot_names: Sequence[str] | None = None,
    option_names: Sequence[str] | None = None,
    **options: Unpack[DrawOptions],
) -> AnyProblem:
    """Return the problem of choosing one option for every slot within a budget, by what the pairs are worth.

    Every assignment that the budget allows is a plan: in a list up to 1,000 of them, behind an oracle beyond,
    which solves a multiple-choice knapsack exactly. Arms are the possible pairs, named like "mail: small".

    - `prices`: the known price of every pair, a row per slot and a column per option, nan where an option
      cannot be; or a table of prices by option for every slot
    - `budget`: the most that the chosen pairs may cost together
    - `guess`: what each possible pair may be worth, in their order or by name; None
    - `goal`: the total of the best plan, "smallest" or "largest"
    - `slot_names`, `option_names`: their names; those of the prices, or "slot 0", "option 0", ...
    - `options`: `DrawOptions`; `cost` is of measurements and no part of the budget

    >>> prices = {"mail": {"small": 1, "large": 3}, "chat": {"small": 1, "large": 3}}
    >>> assign(prices, 4, goal="largest").plan_names
    ('mail: small + chat: small', 'mail: small + chat: large', 'mail: large + chat: small')
    """
    if isinstance(prices, Mapping):
        slot_names = list(prices) if slot_names is None else slot_names
        found = dict.fromkeys(name for own in prices.values() for name in own)
        option_names = list(found) if option_names is None else option_names
        prices = [[prices[slot].get(name, np.nan) for name in option_names] for slot in slot_names]
    table, slots, columns = as_table("prices", prices, slot_names, option_names, kinds=("slot", "option"))
    possible = np.isfinite(table)
    slot, option = np.nonzero(possible)
    cost = table[possible]
    most = as_float(budget)
    if most is None or not np.isfinite(most):
        raise ProblemError(f"budget must be a number, got {budget!r}", field="budget")
    if (cost < 0).any() or not possible.any(axis=1).all():
        raise ProblemError(
            "prices must be 0 or more, and every slot needs an option with a price; nan: cannot be",
            field="prices",
        )
    least = np.array([cost[slot == k].min() for k in range(len(slots))])
    limit = most * (1 + ROUNDING)
    if least.sum() > limit:
        raise ProblemError(
            f"the budget of {budget:g} allows no plan: the cheapest one costs {least.sum():g}", field="budget"
        )
    pairs = [np.flatnonzero(slot == k) for k in range(len(slots))]
    after = np.append(np.cumsum(least[::-1])[::-1], 0.0)[1:]  # the least that the slots after each one cost
    names = tuple(f"{slots[i]}: {columns[j]}" for i, j in zip(slot, option, strict=True))

    def all_from(taken: list[int], spent: float) -> Iterator[list[int]]:
        """Yield all assignments within the budget that begin like this, the last slot changing fastest."""
        k = len(taken)
        if k == len(pairs):
            yield taken
            return
        for pair in pairs[k].tolist():
            if spent + cost[pair] + after[k] <= limit:
                yield from all_from([*taken, pair], spent + float(cost[pair]))

    family = Family(
        lambda costs: chosen(_best(-costs, cost, pairs, after, limit), len(names)),
        arm_names=names,
        goal=goal,
        n_plans=prod(len(own) for own in pairs),
        kind="assign",
        noun="assignment",
        name_of=lambda plan: counted(names, plan),
        listed=lambda: (chosen(plan, len(names)) for plan in all_from([], 0.0)),
        recipe={
            "prices": [[x if np.isfinite(x) else None for x in row] for row in table.tolist()],
            "budget": most,
            "goal": goal,
            "slot_names": list(slots),
            "option_names": list(columns),
        },
    )
    return family.problem(guess, **options)


def _best(
    worth: FloatArray, cost: FloatArray, pairs: list[IntArray], after: FloatArray, budget: float
) -> list[int]:
    """Return the pairs of largest total worth within the budget, by dynamic programming over the slots.

    A partial assignment is dropped where another one costs no more and is worth no less, or where the
    cheapest options of the slots after it exceed the budget. Ties go to the cheaper one, then to the first.
    """
    # A label is a partial assignment that is kept, by its price and its worth.
    spent, value = np.zeros(1), np.zeros(1)
    steps = list[tuple[IntArray, IntArray]]()  # for every label: the label before it, and its pair
    for own, rest in zip(pairs, after, strict=True):
        total, gained = spent[:, None] + cost[own], value[:, None] + worth[own]
        fits = np.flatnonzero((total + rest <= budget).ravel())
        total, gained = total.ravel()[fits], gained.ravel()[fits]
        order = np.lexsort((fits, -gained, total))  # by price; then the largest worth, the first of equals
        best_before = np.maximum.accumulate(np.append(-np.inf, gained[order][:-1]))
        keep = order[gained[order] > best_before]
        if len(keep) > MOST_LABELS:
            raise ProblemError("too many sums of prices to solve exactly; round the prices", field="prices")
        spent, value = total[keep], gained[keep]
        steps.append((fits[keep] // len(own), own[fits[keep] % len(own)]))
    at, found = len(value) - 1, list[int]()  # worth grows with the price among undominated labels
    for before, pair in reversed(steps):
        found.append(int(pair[at]))
        at = int(before[at])
    return found[::-1]
