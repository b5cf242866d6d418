"""Candidate plans: draw the unknown quantities from a box, solve, and keep the distinct solutions."""

from __future__ import annotations

import math
import operator
from bisect import bisect_left, insort
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from surepick.core.arrays import FloatArray, IntArray, read_only
from surepick.core.problem import Problem
from surepick.errors import ProblemError

Oracle: TypeAlias = Callable[[FloatArray], npt.ArrayLike]
Progress: TypeAlias = Callable[[int, int], object]

# Two answers of a solver are the same plan when no entry differs by more than this share of the largest one.
# Solvers that add and subtract floats differ by about 1e-15 between routes to one vertex; distinct vertices
# closer than 1e-9 would differ in value by less than any measurement can tell.
SAME_PLAN = 1e-9


@dataclass(frozen=True, eq=False)
class Instance:
    """A problem together with the truth that a simulation draws from."""

    problem: Problem
    means: FloatArray = field(repr=False)  # (n_arms,)
    description: str


@dataclass(frozen=True, eq=False)
class Candidates:
    """The distinct plans that a search found, in the order of their first appearance.

    `how` says which search it was: "draws" (the best plans of draws from a box), "all" (every plan there is)
    or "best" (the best under a guess; every other plan is at least `margin` worse than the best of them
    there).
    """

    plans: FloatArray  # (n_plans, n_entries)
    counts: IntArray  # (n_plans,) how many draws led to each
    n_draws: int
    draws_since_new: int  # draws after the last one that brought a new plan
    how: Literal["draws", "all", "best"] = "draws"
    margin: float = 0.0

    @property
    def n_plans(self) -> int:
        """The number of distinct plans."""
        return len(self.plans)

    @property
    def chance_of_new(self) -> float:
        """An estimate of the probability that one more draw brings a plan not seen yet.

        Good and Turing's: the share of draws whose plan was seen only once. Near 0 the list is as good as
        complete; near 1 it is a sample of a much larger set. Nothing can be said of the "best" (nan).
        """
        if self.how != "draws":
            return 0.0 if self.how == "all" else math.nan
        return float(np.count_nonzero(self.counts == 1)) / self.n_draws

    def chance_of_new_at_most(self, risk: float = 0.05) -> float:
        """A bound on that probability which holds for all but a share `risk` of seeds.

        The missing mass exceeds its mean by eps with probability at most exp(-n eps^2) (McAllester & Ortiz
        2003), the estimate falls short of its own mean, which is no smaller, with at most exp(-n eps^2 / 2).
        """
        if self.how != "draws":
            return self.chance_of_new
        slack = (1 + math.sqrt(2)) * math.sqrt(math.log(2 / risk) / self.n_draws)
        return min(1.0, self.chance_of_new + slack)

    @property
    def explanation(self) -> str:
        """One sentence for people: how many plans there are, and how sure it is that none is missing."""
        if self.how == "all":
            return f"{self.n_plans} plans, which are all there are"
        if self.how == "best":
            return (
                f"the {self.n_plans} best plans under the guess; every plan left out is at least "
                f"{self.margin:.4g} worse there than the best"
            )
        return (
            f"{self.n_plans} plans from {self.n_draws} draws, the last {self.draws_since_new} without a "
            "new one; "
            f"if the truth is like one more draw, its best plan is missing with a chance of about "
            f"{self.chance_of_new:.2g} (at most {self.chance_of_new_at_most():.2g}, at 95%)"
        )


def plans_from_oracle(
    oracle: Oracle,
    lower: npt.ArrayLike,
    upper: npt.ArrayLike,
    *,
    n_draws: int,
    seed: int = 0,
    tolerance: float = SAME_PLAN,
    known: Candidates | None = None,
    progress: Progress | None = None,
) -> Candidates:
    """The distinct plans that are best somewhere in the box between `lower` and `upper`.

    Draws each arm's mean uniformly from its interval `n_draws` times, asks `oracle(weights)` for a best plan
    (one number per arm) and keeps those that differ, in any entry, by more than `tolerance` times the largest
    entry from every plan kept before. The first draws of a longer run are those of a shorter one with the
    same seed: pass `known`, what a run with the same box and seed has found, to top it up by `n_draws` more.
    `progress(done, total)` is called after each draw.

    >>> cheapest = lambda hours: [1, 0] if hours[0] < hours[1] else [0, 1]
    >>> found = plans_from_oracle(cheapest, [1, 2], [4, 3], n_draws=50)
    >>> sorted(found.plans.tolist()), found.n_draws
    ([[0.0, 1.0], [1.0, 0.0]], 50)
    >>> plans_from_oracle(cheapest, [1, 2], [4, 3], n_draws=30, known=found).n_draws
    80
    """
    low, high = _box(lower, upper)
    search = _Search(oracle, low, high, low.size, seed, tolerance)
    return search.run(as_count("n_draws", n_draws), known, progress)


def piece_plans(
    oracle: Oracle,
    lower: FloatArray,
    upper: FloatArray,
    *,
    n_entries: int,
    n_draws: int,
    seed: int,
    known: Candidates | None = None,
    progress: Progress | None = None,
) -> Candidates:
    """The same for plans made of pieces: the oracle answers with `n_entries` numbers, one per piece.

    >>> oracle = lambda weights: [1, weights[0] < 2, 0]
    >>> piece_plans(oracle, np.ones(1), np.full(1, 3.0), n_entries=3, n_draws=9, seed=0).n_plans
    2
    """
    search = _Search(oracle, lower, upper, n_entries, seed, SAME_PLAN)
    return search.run(as_count("n_draws", n_draws), known, progress)


@dataclass(frozen=True, eq=False)
class _Search:
    oracle: Oracle
    lower: FloatArray
    upper: FloatArray
    n_entries: int
    seed: int
    tolerance: float

    def run(self, n_draws: int, known: Candidates | None, progress: Progress | None) -> Candidates:
        n_arms, done = self.lower.size, 0 if known is None else known.n_draws
        rng, found = seeded(self.seed), _DistinctPlans(self.tolerance, known)
        rng.bit_generator.advance(done * n_arms)  # type: ignore[attr-defined]  # one step a number
        newest = -1 if known is None else done - 1 - known.draws_since_new
        for draw in range(done, done + n_draws):
            weights = self.lower + (self.upper - self.lower) * rng.random(n_arms)
            if found.add(_as_plan(self.oracle(weights), self.n_entries, draw)):
                newest = draw
            if progress is not None:
                progress(draw + 1 - done, n_draws)
        plans, counts = read_only(np.array(found.plans)), read_only(np.array(found.counts, dtype=np.int64))
        return Candidates(plans, counts, done + n_draws, done + n_draws - 1 - newest)


class _DistinctPlans:
    """Plans that differ by more than a tolerance; grows by `add`, and only its owner may add.

    Plans that are close have close projections on any direction, so only those whose projection lies in a
    narrow window of the sorted projections are compared entry by entry.
    """

    def __init__(self, tolerance: float, known: Candidates | None = None) -> None:
        if not 0 <= tolerance < 0.5:
            raise ProblemError(f"tolerance is a small share of a plan's largest entry, got {tolerance!r}")
        self.plans: list[FloatArray] = []
        self.counts: list[int] = []
        self._tolerance = tolerance
        self._by_projection: list[tuple[float, int]] = []
        if known is not None:
            for plan, count in zip(known.plans, known.counts.tolist(), strict=True):
                self.add(plan)
                self.counts[-1] = count

    def add(self, plan: FloatArray) -> bool:
        """Count this plan; True when it was new."""
        direction = np.sqrt(np.arange(2.0, plan.size + 2.0))  # any fixed direction without symmetries
        at, reach = float(direction @ plan), float(np.abs(plan).max(initial=0.0))
        # projections of close plans differ by at most the summed direction times the distance; the second
        # term is the rounding of the projection itself
        window = float(direction.sum()) * reach * (2.0 * self._tolerance + 1e-14)
        for position in range(bisect_left(self._by_projection, (at - window, -1)), len(self.plans)):
            projection, k = self._by_projection[position]
            if projection > at + window:
                break
            if self._same(plan, self.plans[k]):
                self.counts[k] += 1
                return False
        insort(self._by_projection, (at, len(self.plans)))
        self.plans.append(plan)
        self.counts.append(1)
        return True

    def _same(self, plan: FloatArray, other: FloatArray) -> bool:
        scale = max(np.abs(plan).max(), np.abs(other).max())
        return bool(np.abs(plan - other).max() <= self._tolerance * scale)


def seeded(seed: int) -> np.random.Generator:
    """The generator of this seed, or a clear error for what is not a seed."""
    try:
        return np.random.default_rng(operator.index(seed))
    except (TypeError, ValueError):
        raise ProblemError(f"seed must be a whole number, 0 or more, got {seed!r}") from None


def as_count(what: str, given: object) -> int:
    """A whole number of at least 1.

    >>> as_count("n_draws", 100)
    100
    """
    try:
        count = operator.index(given)  # type: ignore[arg-type]
    except TypeError:
        raise ProblemError(f"{what} must be a whole number, got {given!r}") from None
    if count < 1:
        raise ProblemError(f"{what} must be at least 1, got {count}")
    return count


def as_numbers(what: str, given: npt.ArrayLike | Sequence[object], *, ndim: int = 1) -> FloatArray:
    """These finite numbers as an array of `ndim` dimensions, none of length 0.

    >>> as_numbers("supply", [1, 2]).tolist()
    [1.0, 2.0]
    """
    shape = "a list of numbers" if ndim == 1 else "a table of numbers"
    try:
        array = np.array(given, dtype=float)
    except (TypeError, ValueError):
        raise ProblemError(f"{what} must be {shape}, got {given!r}") from None
    if array.ndim != ndim or not array.size:
        raise ProblemError(f"{what} must be {shape}, got shape {array.shape}")
    if not np.isfinite(array).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        place = f"entry {where[0]}" if ndim == 1 else f"row {where[0]}, column {where[1]}"
        raise ProblemError(f"{what} must be finite, got {array[where]} in {place}")
    return array


def half_widths(spread: npt.ArrayLike, shape: tuple[int, ...]) -> FloatArray:
    """How far the means may lie from the guess: one number or one per arm, none negative.

    >>> half_widths(5, (2,)).tolist()
    [5.0, 5.0]
    """
    try:
        widths = np.broadcast_to(np.asarray(spread, dtype=float), shape)
    except (TypeError, ValueError):
        raise ProblemError(f"spread must be one number or numbers of shape {shape}, got {spread!r}") from None
    if not ((widths >= 0) & np.isfinite(widths)).all():
        raise ProblemError(f"spread must be 0 or more and finite, got {spread!r}")
    return widths


def _box(lower: npt.ArrayLike, upper: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    low, high = as_numbers("lower", lower), as_numbers("upper", upper)
    if low.shape != high.shape:
        raise ProblemError(
            f"lower and upper must have one number per arm each, got {low.size} and {high.size}"
        )
    if (low > high).any():
        s = int(np.argmax(low > high))
        raise ProblemError(f"lower must not exceed upper, got {low[s]} and {high[s]} for arm {s}")
    return low, high


def _as_plan(answer: npt.ArrayLike, n_arms: int, draw: int) -> FloatArray:
    try:
        plan = np.array(answer, dtype=float)
    except (TypeError, ValueError):
        raise ProblemError(
            f"the oracle must return one number per arm; at draw {draw} it gave {answer!r}"
        ) from None
    if plan.shape != (n_arms,):
        raise ProblemError(
            f"the oracle must return one number for each of the {n_arms} arms; at draw {draw} it gave an "
            f"array of shape {plan.shape}"
        )
    if not np.isfinite(plan).all():
        raise ProblemError(f"the oracle must return finite numbers; at draw {draw} it gave {plan.tolist()}")
    return plan
