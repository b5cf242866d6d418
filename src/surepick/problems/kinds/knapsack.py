"""Knapsacks: how many copies of each item to pack when the items' values must be measured.

The plans are numbers of copies, the arms are the items' values per copy. Weights and capacity are known whole
numbers; an item may be packed any number of times, or up to a number of copies (one: the 0/1 knapsack).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count
from math import gcd, prod
from typing import TYPE_CHECKING, Any, TypeAlias, Unpack

import numpy as np
import numpy.typing as npt

from surepick.core.arrays import (
    FloatArray,
    IntArray,
    Numbers,
    aligned,
    labels_of,
    names_for,
    read_only,
    vector,
)
from surepick.core.oracle_problem import OracleProblem
from surepick.core.wording import counted
from surepick.errors import ProblemError
from surepick.problems.candidates import FoundProblem, OneCandidateError
from surepick.problems.family import DrawOptions, Family, builder_problem, lists
from surepick.problems.numbers import as_count, as_numbers, seeded
from surepick.problems.truth import Truth

if TYPE_CHECKING:
    import pandas as pd

Weights: TypeAlias = "Sequence[int] | npt.NDArray[np.integer] | Mapping[str, int] | pd.Series[Any]"

# The settings of the paper's Table 1.
PAPER_CAPACITY = 100
PAPER_LIGHTEST, PAPER_HEAVIEST = 5, 50
PAPER_SPREAD = 5.0
PAPER_DRAWS = 100

# The dynamic programme keeps 16 bytes per unit of capacity; beyond this it would not fit in ordinary memory.
LARGEST_CAPACITY = 10**8
# With limited copies it keeps a table of 4 bytes for every item and unit of capacity.
LARGEST_TABLE = 4 * 10**8


@lists(DrawOptions, spread=PAPER_SPREAD, n_draws=PAPER_DRAWS)
def knapsack(
    weights: Weights,
    guess: Numbers,
    capacity: int,
    *,
    item_names: Sequence[str] | None = None,
    copies: int | Sequence[int] | Mapping[str, int] | None = None,
    **options: Unpack[DrawOptions],
) -> OracleProblem | FoundProblem:
    """The problem of packing a knapsack whose items have values near a guess.

    Every packing that fits is a plan: in a list up to 1,000 of them, behind an oracle beyond. With
    `list_plans`, or where draws are asked for, the plans are the best packings of draws near the guess, each
    solved exactly; ties between packings go to room left unused, then to the item with the lowest index.

    - `weights`: the weight of one copy of each item, whole numbers
    - `guess`: what one copy of each item is thought to be worth
    - `capacity`: the total weight that fits, a whole number
    - `item_names`: names for the items; the labels of the weights or the guess, or "item 0", ...
    - `copies`: the most copies of an item, one number (1: the 0/1 knapsack) or one per item; None: any number
    - `options`: `DrawOptions`; here `spread` is 5 and `n_draws` 100 unless given

    >>> problem = knapsack([4, 5], [4.0, 5.0], 10, item_names=["tea", "coffee"])
    >>> problem.plan_names
    ('nothing', 'coffee', '2 x coffee', 'tea', 'tea + coffee', '2 x tea')
    >>> sorted(knapsack([4, 5], [4.0, 5.0], 10, spread=1.0, n_draws=100).plans.tolist())
    [[0.0, 2.0], [2.0, 0.0]]
    """
    names = item_names or labels_of(weights) or labels_of(guess)
    family = knapsack_family(weights, capacity, copies=copies, item_names=names)
    return builder_problem(knapsack, family, guess, options)


def knapsack_family(
    weights: Weights,
    capacity: int,
    *,
    copies: int | Sequence[int] | Mapping[str, int] | None = None,
    item_names: Sequence[str] | None = None,
) -> Family:
    """All packings that fit, known by the best for given values of the items.

    >>> family = knapsack_family([3, 4], 10, copies=1, item_names=["tea", "coffee"])
    >>> family.best([4.0, 5.0]).tolist(), family.n_plans
    ([1.0, 1.0], 4)
    """
    named = labels_of(weights) if item_names is None else item_names
    heavy = aligned("weights", weights, named or (), kind="item")
    loads, room = _loads(heavy, capacity)
    names = names_for("item", named, loads.size)
    each = aligned("copies", copies, names, kind="item")
    most = room // loads
    if each is not None:
        allowed = vector("copies", each, names, kind="item", one_for_all=True)
        if not ((allowed >= 0) & (allowed == np.floor(allowed))).all():
            raise ProblemError(f"copies must be whole numbers, 0 or more, got {copies!r}", field="copies")
        most = np.minimum(most, allowed.astype(np.int64))
    if not most.any():
        raise ProblemError(
            "nothing can be packed: copies allows no item; allow at least one copy of one", field="copies"
        )
    bounded = bool((most < room // loads).any())
    if bounded and loads.size * room > LARGEST_TABLE:
        raise ProblemError(
            f"the capacity {capacity} is too fine to solve exactly; choose a larger unit of weight",
            field="capacity",
        )
    return Family(
        solve=lambda values: _solve(loads, values, room, most if bounded else None),
        piece_names=names,
        goal="largest",
        n_plans=prod(int(k) + 1 for k in most),
        noun="packing",
        name_of=lambda plan: counted(names, plan),
        recipe=lambda: {
            "kind": "knapsack",
            "weights": np.asarray(heavy).tolist(),
            "capacity": int(capacity),
            "copies": most.tolist(),
            "item_names": list(names),
        },
        solve_within=lambda values, lower, upper: _solve_within(loads, values, room, most, (lower, upper)),
        some=lambda enough: _packings(loads, room, most, enough),
    )


def knapsack_instance(n_items: int, seed: int) -> Truth:
    """One of the paper's random knapsacks, with the true values; the same for the same seed.

    Weights are uniform on {5..50}, values are weight + U[-5, 5], the capacity is 100 and the plans are the
    distinct best packings of 100 draws within 5 of the weights. Where all draws agree on one packing there is
    nothing to choose, and the next instance of the same seed is taken.

    >>> instance = knapsack_instance(5, seed=0)
    >>> instance.problem.n_arms, instance.means.shape
    (5, (5,))
    """
    n_items = as_count("n_items", n_items)
    if n_items < 2:
        raise ProblemError(f"a knapsack to choose for needs at least 2 items, got {n_items}", field="n_items")
    seeded(seed)
    for attempt in count():
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(attempt,)))
        weights = rng.integers(PAPER_LIGHTEST, PAPER_HEAVIEST + 1, size=n_items)
        values = weights + rng.uniform(-PAPER_SPREAD, PAPER_SPREAD, size=n_items)
        draw_seed = int(rng.integers(2**63))
        try:
            problem = knapsack_family(weights, PAPER_CAPACITY).problem(
                weights, spread=PAPER_SPREAD, n_draws=PAPER_DRAWS, seed=draw_seed, noise=1
            )
        except OneCandidateError:
            continue
        return Truth(problem, read_only(values), title=f"knapsack of {n_items} items, seed {seed}")
    raise AssertionError("unreachable")


def _solve(loads: IntArray, values: FloatArray, room: int, most: IntArray | None = None) -> IntArray:
    from surepick.problems.kernels import fill, fill_bounded  # here: Numba is loaded only when it is needed

    packed: IntArray = fill(loads, values, room) if most is None else fill_bounded(loads, values, most, room)
    return packed


def _solve_within(
    loads: IntArray, values: FloatArray, room: int, most: IntArray, bounds: tuple[FloatArray, FloatArray]
) -> IntArray | None:
    """The best packing with copies between these bounds: pack the least, then fill the room left."""
    packed = np.maximum(np.ceil(bounds[0]), 0).astype(np.int64)
    extra = np.minimum(np.floor(bounds[1]), most).astype(np.int64) - packed
    left = room - int(loads @ packed)
    if left < 0 or (extra < 0).any():
        return None
    return np.asarray(packed + _solve(loads, values, left, extra))


def _packings(loads: IntArray, room: int, most: IntArray, enough: int) -> list[FloatArray]:
    """All packings that fit, the last item changing fastest, but no more than `enough`."""
    found: list[FloatArray] = []

    def pack(item: int, left: int, packed: tuple[int, ...]) -> None:
        if item == loads.size:
            found.append(np.array(packed, dtype=float))
            return
        for n in range(min(int(most[item]), left // int(loads[item])) + 1):
            if len(found) < enough:
                pack(item + 1, left - n * int(loads[item]), (*packed, n))

    pack(0, room, ())
    return found


def _loads(weights: Any, capacity: int) -> tuple[IntArray, int]:
    """The weights and the capacity in the largest unit that divides all weights."""
    given = as_numbers("weights", weights)
    bad = np.flatnonzero((given < 1) | (given != np.floor(given)))
    if bad.size:
        s = int(bad[0])
        raise ProblemError(
            f"weights must be whole numbers of at least 1, got {given[s]:g} for item {s}; "
            "choose a smaller unit, such as grams for kilograms",
            field="weights",
        )
    room = as_count("capacity", capacity)
    if room < given.min():
        raise ProblemError(
            f"no item fits: the capacity is {room}, the lightest weight {given.min():g}", field="capacity"
        )
    loads = given.astype(np.int64)
    unit = gcd(*loads.tolist())
    if room // unit > LARGEST_CAPACITY:
        raise ProblemError(
            f"the capacity {room} is too fine to solve exactly; choose a larger unit of weight",
            field="capacity",
        )
    return loads // unit, room // unit
