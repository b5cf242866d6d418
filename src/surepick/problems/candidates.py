"""Candidate plans of a family: the best of draws from a box, every plan, or the best under a guess."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count, islice
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from surepick.core.about import Listing
from surepick.core.arrays import FloatArray, IntArray, read_only
from surepick.core.problem import Problem
from surepick.errors import ProblemError
from surepick.problems.numbers import as_count, seeded

if TYPE_CHECKING:
    from surepick.problems.family import DrawOptions, Family

Progress: TypeAlias = Callable[[int, int], object]

# Two answers of a solver are the same plan when no entry differs by more than this share of the largest one.
# Solvers that add and subtract floats differ by about 1e-15 between routes to one vertex; distinct vertices
# closer than 1e-9 would differ in value by less than any measurement can tell.
SAME_PLAN = 1e-9
MOST_LISTED = 20_000  # plans, half a minute; a longer list is better left to an oracle
MOST_DRAWS = 1_000_000  # at once; after so many a plan that is missing is the best of hardly any draw
LONGEST_NAME = 100  # letters; plans with longer names are numbered


class Candidates(NamedTuple):
    """The distinct plans that a search found, and how complete they are."""

    plans: FloatArray  # (n_plans, n_arms), in the order in which they were found
    listing: Listing


class OneCandidateError(ProblemError):
    """The search found one plan only, so there is nothing to choose."""


def listed_problem(family: Family, candidates: Candidates, measured: Mapping[str, Any]) -> Problem:
    """Return the problem of choosing between these candidates, which knows how complete they are."""
    plans, listing = candidates
    if listing.n_plans < 2:
        reasons = {
            "draws": "all draws lead to the same plan, so within this spread there is nothing to choose; "
            "widen the spread or raise n_draws",
            "best": "n_best = 1 leaves nothing to choose; ask for 2 or more",
            "all": f"there is only one {family.noun}, so there is nothing to choose",
        }
        raise OneCandidateError(reasons[listing.how])
    names = distinct_names(["" if family.name_of is None else family.name_of(x) for x in plans], family.noun)
    problem = Problem(plans, arms=family.arm_names, plan_names=names, goal=family.goal, **measured)
    return problem.with_about(listing=listing)


def distinct_names(names: Iterable[str], noun: str) -> list[str]:
    """Return these names of plans, with the noun and a number in place of one that is empty, long or taken.

    >>> distinct_names(["by bus", "", "by bus"], "route")
    ['by bus', 'route 1', 'route 2']
    """
    found = dict[str, None]()
    for k, name in enumerate(names):
        found[f"{noun} {k}" if not name or len(name) > LONGEST_NAME or name in found else name] = None
    return list(found)


def search(family: Family, guess: FloatArray | None, spread: FloatArray, options: DrawOptions) -> Candidates:
    """Return the candidates for a list: the best plans of draws within the spread of the guess.

    With `n_best` they are the best plans under the guess itself; without a guess all plans, up to 20,000.
    """
    n_best, progress = options.get("n_best"), options.get("progress")
    if guess is None:
        found = complete(family, MOST_LISTED, progress)
        if found is None:
            raise ProblemError(
                f"there are more than {MOST_LISTED:,} {family.noun}s, too many to list; give a guess, or "
                "take them all without a list: list_plans = false",
                field="guess",
            )
        return found
    if n_best is not None:
        return best_plans(family, guess, n_best, progress)
    low = guess - spread
    if family.are_lengths and (guess >= 0).all():
        low = np.maximum(low, 0.0)
    n_draws, seed = options.get("n_draws", family.n_draws), options.get("seed", 0)
    return drawn_plans(family, (low, guess + spread), n_draws, seed, progress)


def drawn_plans(
    family: Family,
    box: tuple[FloatArray, FloatArray],
    n_draws: int = 1000,
    seed: int = 0,
    progress: Progress | None = None,
) -> Candidates:
    """Return the distinct best plans of means drawn evenly from the box.

    A longer run with the same seed begins with the draws of a shorter one.
    """
    n_draws = as_count("n_draws", n_draws, most=MOST_DRAWS, instead="make fewer")
    rng = seeded(seed)
    low, high = box
    plans, counts = list[FloatArray](), list[int]()  # how many draws led to each plan
    seen = dict[bytes, int]()  # the position of every plan that was answered, to the bit
    newest = -1
    for draw in range(n_draws):
        means = low + (high - low) * rng.random(low.size)
        plan = np.array(family.least(family.costs(means)), dtype=float) + 0.0
        k = seen.get(plan.tobytes())
        if k is None:
            k = _position(plan, plans)
            seen[plan.tobytes()] = k
            if k == len(plans):
                plans.append(plan)
                counts.append(0)
                newest = draw
        counts[k] += 1
        if progress is not None:
            progress(draw + 1, n_draws)
    chance, at_most = missing_mass(counts.count(1), n_draws)
    explanation = (
        f"{len(plans)} plans from {n_draws} draws, the last {n_draws - 1 - newest} without a new one; if the "
        f"truth is like one more draw, its best plan is missing with a chance of about {chance:.2g} (at most "
        f"{at_most:.2g}, at 95%)"
    )
    return _candidates(plans, "draws", explanation, chance, at_most)


def missing_mass(n_once: int, n_draws: int, risk: float = 0.05) -> tuple[float, float]:
    """Return the chance that one more draw brings a new plan, estimated, and an upper bound on it.

    The estimate is Good and Turing's: the share of draws whose plan was seen only once. Near 0 the list is as
    good as complete; near 1 it is a sample of a much larger set. The bound holds for all but a share `risk`
    of seeds: the missing mass exceeds its mean by eps with probability at most exp(-n eps^2) (McAllester and
    Ortiz 2003); the estimate, whose mean is no smaller, falls below its mean by eps with probability at most
    exp(-n eps^2 / 2).
    """
    estimate = n_once / n_draws
    slack = (1 + math.sqrt(2)) * math.sqrt(math.log(2 / risk) / n_draws)
    return estimate, min(1.0, estimate + slack)


def _position(plan: FloatArray, plans: list[FloatArray]) -> int:
    """Return which of the plans this one is up to rounding; their number if it is none of them."""
    if not plans or (plan == np.rint(plan)).all():
        return len(plans)
    known = np.array(plans)
    largest = np.maximum(np.abs(known).max(axis=1), np.abs(plan).max())
    same = np.abs(known - plan).max(axis=1) <= SAME_PLAN * largest
    return int(np.argmax(same)) if same.any() else len(plans)


def complete(family: Family, most: int, progress: Progress | None = None) -> Candidates | None:
    """Return every plan of the family; None if there are more than `most`, or none at all."""
    if family.count_is_exact and family.n_plans is not None and family.n_plans > most:
        return None
    if family.listed is not None:
        found = list(islice(family.listed(), most + 1))
    else:
        found = _first(family, np.zeros(family.n_arms), most + 1, progress)
    return _all(found) if 0 < len(found) <= most else None  # the caller refuses a family without plans


def best_plans(
    family: Family, guess: FloatArray, n_best: int, progress: Progress | None = None
) -> Candidates:
    """Return the best plans of the family under a guess of the means."""
    instead = "leave n_best out, or take all plans without a list: list_plans = false"
    wanted = as_count("n_best", n_best, most=MOST_LISTED, instead=instead)
    found = _first(family, family.costs(guess), wanted + 1, progress)
    if len(found) <= wanted:
        return _all(found)
    margin = abs(float(guess @ found[wanted] - guess @ found[0]))
    explanation = (
        f"the {wanted} best plans under the guess; every plan left out is at least {margin:.4g} worse there "
        "than the best"
    )
    return _candidates(found[:wanted], "best", explanation)


def _all(found: list[FloatArray]) -> Candidates:
    """Return these plans as candidates that are known to be all plans of their family."""
    return _candidates(found, "all", f"{len(found)} plans, which are all there are", 0.0, 0.0)


def _candidates(
    found: list[FloatArray],
    how: str,
    explanation: str,
    chance_missing: float | None = None,
    at_most: float | None = None,
) -> Candidates:
    """Return these plans with how complete they are, as in `Listing`."""
    plans = read_only(np.array(found).reshape(len(found), -1))
    return Candidates(plans, Listing(len(found), how, explanation, chance_missing, at_most))


def _first(family: Family, costs: FloatArray, most: int, progress: Progress | None) -> list[FloatArray]:
    """Return the first plans of the family, best first.

    Lawler's partition: without the plan just found, the rest of its branch is the union of branches that
    agree with its first i arms and forbid the next one.
    """
    if family.within is None:
        raise ProblemError(
            f"the {family.noun}s of this family cannot be listed one by one; give a guess", field="guess"
        )
    total = most if family.n_plans is None else min(most, family.n_plans)
    found = list[FloatArray]()
    ticket = count()  # of equal plans the one found first comes first
    heap: list[tuple[float, int, list[int], int, list[int]]] = []
    branches: list[tuple[list[int], list[int]]] = [([], [])]
    while len(found) < most:
        for required, forbidden in branches:
            plan = family.within(costs, required, forbidden)
            if plan is not None:
                value = float(costs[plan].sum())
                heapq.heappush(heap, (value, next(ticket), plan, len(required), forbidden))
        if not heap:
            break
        _, _, plan, n_required, forbidden = heapq.heappop(heap)
        found.append(chosen(plan, family.n_arms))
        branches = [(plan[:i], [*forbidden, plan[i]]) for i in range(n_required, len(plan))]
        if progress is not None:
            progress(min(len(found), total), total)
    return found


def chosen(arms: Sequence[int] | IntArray, n_arms: int) -> FloatArray:
    """Return the plan of zeros and ones that takes these arms."""
    plan = np.zeros(n_arms)
    plan[arms] = 1.0
    return plan
