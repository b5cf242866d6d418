"""Tours: the shortest way through all places and back, when the ways between them must be measured.

The arms are the ways between two places, used in either direction; a plan is a round trip (the symmetric
travelling salesman). Each question is solved exactly by dynamic programming (Held and Karp 1962).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, permutations
from math import factorial
from typing import Unpack

import numpy as np

from surepick.core.arrays import FloatArray
from surepick.core.given.numbers import Goal, Numbers, aligned_table, names_for
from surepick.core.oracle_problem import AnyProblem
from surepick.errors import ProblemError
from surepick.problems.candidates import chosen
from surepick.problems.family import DrawOptions, Family
from surepick.problems.numbers import as_numbers, is_table

MOST_PLACES = 14  # a question then takes about a second; time and memory double with each place more


def tours(
    places: Sequence[str],
    guess: Numbers | None = None,
    *,
    goal: Goal = "smallest",
    **options: Unpack[DrawOptions],
) -> AnyProblem:
    """Return the problem of the round trip through all places with the least total of its ways.

    Every round trip is a plan: in a list up to 7 places, behind an oracle beyond, up to 14.

    - `places`: their names, four or more
    - `guess`: what each way may take: a symmetric table with a row and a column per place, or one number per
      way, in order or by names such as "Rome - Bari"; None
    - `goal`: the total of the best plan, "smallest" or "largest"; "smallest"
    - `options`: `DrawOptions`

    >>> tours(["Rome", "Bari", "Pisa", "Turin"]).plan_names[0]
    'Rome - Bari - Pisa - Turin - Rome'
    >>> tours([f"place {i}" for i in range(10)])
    FamilyProblem(45 arms, number of plans at most 181,440, smallest)
    """
    names = names_for("place", places, len(places))
    n = len(names)
    if not 4 <= n <= MOST_PLACES:
        raise ProblemError(f"a tour has 4 to {MOST_PLACES} places, got {n}", field="places")
    if is_table(guess):
        table = as_numbers(
            "guess", aligned_table("guess", guess, places, places, kinds=("place", "place")), ndim=2
        )
        if table.shape != (n, n) or not np.allclose(table, table.T):
            raise ProblemError(
                f"a table of guesses is symmetric, with a row and a column for each of {n} places; ways are "
                "used in both directions",
                field="guess",
            )
        guess = table[np.triu_indices(n, 1)]
    pairs = list(combinations(range(n), 2))
    number = np.full((n, n), -1)
    for e, (i, j) in enumerate(pairs):
        number[i, j] = number[j, i] = e

    def plan_of(order: Sequence[int]) -> FloatArray:
        return chosen(
            [int(number[a, b]) for a, b in zip(order, [*order[1:], order[0]], strict=True)], len(pairs)
        )

    def name_of(plan: FloatArray) -> str:
        left, order = set(np.flatnonzero(plan).tolist()), [0]
        while left:
            step = next(e for e in sorted(left) if order[-1] in pairs[e])
            left.discard(step)
            order.append(sum(pairs[step]) - order[-1])
        return " - ".join(names[i] for i in order)

    family = Family(
        lambda costs: plan_of(_held_karp(costs[number])),
        arm_names=tuple(f"{names[i]} - {names[j]}" for i, j in pairs),
        goal=goal,
        n_plans=factorial(n - 1) // 2,
        kind="tours",
        noun="tour",
        count_is_exact=True,
        are_lengths=True,
        name_of=name_of,
        listed=lambda: (plan_of((0, *rest)) for rest in permutations(range(1, n)) if rest[0] < rest[-1]),
        recipe={"places": list(names), "goal": goal},
    )
    return family.problem(guess, **options)


def _held_karp(weights: FloatArray) -> list[int]:
    """Return the places of a least round trip in order, from the first; weights are symmetric, of any sign.

    least[S, j] is the least way from place 0 through the set S of others that ends in j; sets are bits.
    """
    m = len(weights) - 1
    step, start = weights[1:, 1:], weights[0, 1:]
    sizes = np.array([bits.bit_count() for bits in range(1 << m)])
    least, before = np.full((1 << m, m), np.inf), np.zeros((1 << m, m), dtype=np.int8)
    for j in range(m):
        least[1 << j, j] = start[j]
    for size in range(2, m + 1):
        sets = np.flatnonzero(sizes == size)
        for j in range(m):
            ends_here = sets[(sets >> j & 1) == 1]
            ways = least[ends_here ^ (1 << j)] + step[:, j]
            before[ends_here, j] = ways.argmin(axis=1)
            least[ends_here, j] = ways.min(axis=1)
    everything = (1 << m) - 1
    j, order = int(np.argmin(least[everything] + start)), list[int]()
    while everything:
        order.append(j + 1)
        everything, j = everything ^ (1 << j), int(before[everything, j])
    return [0, *order]
