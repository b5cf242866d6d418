"""Knapsacks: how many copies of each item to pack when the items' values must be measured.

The plans are numbers of copies, the arms are the items' values per copy. Weights and capacity are known whole
numbers; an item may be packed any number of times, or up to a number of copies (one: the 0/1 knapsack).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from math import gcd, prod
from typing import TYPE_CHECKING, Any, TypeAlias, Unpack

import numpy as np
import numpy.typing as npt

from surepick.core.arrays import FloatArray, IntArray, first_true, read_only
from surepick.core.given.numbers import Numbers, aligned, labels_of, names_for, vector
from surepick.core.oracle_problem import AnyProblem
from surepick.core.wording import counted
from surepick.errors import ProblemError
from surepick.problems.candidates import OneCandidateError
from surepick.problems.family import DrawOptions, Family
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

# The dynamic programme keeps a table of a byte for each unit of capacity and each lot of copies.
LARGEST_TABLE = 10**9


def knapsack(
    weights: Weights,
    guess: Numbers | None,
    capacity: int,
    *,
    item_names: Sequence[str] | None = None,
    copies: int | Sequence[int] | Mapping[str, int] | None = None,
    **options: Unpack[DrawOptions],
) -> AnyProblem:
    """Return the problem of packing a knapsack whose items have values near a guess.

    Every packing that fits is a plan: in a list up to 1,000 of them, behind an oracle beyond. With
    `list_plans`, or where draws are asked for, the plans are the best packings of draws near the guess, each
    solved exactly.

    - `weights`: the weight of one copy of each item, whole numbers
    - `guess`: what one copy of each item is thought to be worth; None: nothing is known
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
    named = item_names or labels_of(weights) or labels_of(guess)
    heavy = as_numbers("weights", aligned("weights", weights, named or (), kind="item"))
    names = names_for("item", named, heavy.size)
    s = first_true((heavy < 1) | (heavy != np.floor(heavy)))
    if s is not None:
        raise ProblemError(
            f"weights must be whole numbers of at least 1, got {heavy[s]:g} for {names[s]!r}; "
            "choose a smaller unit, such as grams for kilograms",
            field="weights",
        )
    room = as_count("capacity", capacity)
    if room < heavy.min():
        raise ProblemError(
            f"no item fits: the capacity is {room}, the lightest weight {heavy.min():g}", field="capacity"
        )
    unit = gcd(*heavy.astype(np.int64).tolist())  # the largest that divides all weights
    loads, room = heavy.astype(np.int64) // unit, room // unit
    most = room // loads
    if copies is not None:
        allowed = vector("copies", copies, names, kind="item", one_for_all=True)
        if not ((allowed >= 0) & (allowed == np.floor(allowed))).all():
            raise ProblemError(f"copies must be whole numbers, 0 or more, got {copies!r}", field="copies")
        most = np.minimum(most, allowed.astype(np.int64))
    if not most.any():
        raise ProblemError(
            "nothing can be packed: copies allows no item; allow at least one copy of one", field="copies"
        )
    # `fill` has a row for each lot of 1, 2, 4, ... copies, and a column for each weight
    if sum(int(k).bit_length() for k in most) * (room + 1) > LARGEST_TABLE:
        raise ProblemError(
            f"the capacity {capacity} is too fine to solve exactly; choose a larger unit of weight",
            field="capacity",
        )

    def least_within(costs: FloatArray, lower: FloatArray, upper: FloatArray) -> IntArray | None:
        """Return the best packing between these bounds: pack the least, then fill the room left."""
        packed = np.maximum(np.ceil(lower), 0).astype(np.int64)
        extra = np.minimum(np.floor(upper), most).astype(np.int64) - packed
        left = room - int(loads @ packed)
        if left < 0 or (extra < 0).any():
            return None
        return np.asarray(packed + fill(loads, -costs, extra, left))

    def packings(item: int = 0, left: int = room) -> Iterator[tuple[int, ...]]:
        """Yield all packings of the items from this one on, the last item changing fastest."""
        if item == loads.size:
            yield ()
            return
        load = int(loads[item])
        for n in range(min(int(most[item]), left // load) + 1):
            yield from ((n, *rest) for rest in packings(item + 1, left - n * load))

    family = Family(
        lambda costs: fill(loads, -costs, most, room),
        arm_names=names,
        goal="largest",
        n_plans=prod(int(k) + 1 for k in most),
        kind="knapsack",
        noun="packing",
        name_of=lambda plan: counted(names, plan),
        least_within=least_within,
        listed=lambda: (np.array(packing, dtype=float) for packing in packings()),
        recipe={
            "weights": heavy.tolist(),
            "guess": None,
            "capacity": int(capacity),
            "copies": most.tolist(),
            "item_names": list(names),
        },
        spread=PAPER_SPREAD,
        n_draws=PAPER_DRAWS,
    )
    return family.problem(guess, **options)


def fill(loads: IntArray, values: FloatArray, most: IntArray, room: int) -> IntArray:
    """Return how many copies of each item to pack for the largest total value, at most `most[s]` of item s.

    The copies of an item are lots of 1, 2, 4, ... and the rest, each packed or not, so that any number up to
    `most` is a sum of lots. Ties go to leaving lots out, those of the last item first.
    """
    lots = list[tuple[int, int]]()
    for s in np.flatnonzero((values > 0) & (loads <= room)).tolist():
        left, size = min(int(most[s]), room // int(loads[s])), 1
        while left > 0:
            lots.append((s, min(size, left)))
            left, size = left - lots[-1][1], 2 * size
    best, taken = np.zeros(room + 1), np.zeros((len(lots), room + 1), dtype=bool)
    for lot, (s, n) in enumerate(lots):
        load = n * int(loads[s])
        worth = best[: room + 1 - load] + n * values[s]
        taken[lot, load:] = worth > best[load:]
        best[load:] = np.maximum(worth, best[load:])
    copies, left = np.zeros(loads.size, dtype=np.int64), room
    for lot in range(len(lots) - 1, -1, -1):
        if taken[lot, left]:
            s, n = lots[lot]
            copies[s] += n
            left -= n * int(loads[s])
    return copies


def knapsack_instance(n_items: int, seed: int) -> Truth:
    """Return one of the paper's random knapsacks, with the true values; the same for the same seed.

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
            problem = knapsack(weights, weights, PAPER_CAPACITY, seed=draw_seed, noise=1)
        except OneCandidateError:
            continue
        return Truth(problem, read_only(values), title=f"knapsack of {n_items} items, seed {seed}")
    raise AssertionError("unreachable")
