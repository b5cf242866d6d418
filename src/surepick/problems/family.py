"""Families of plans: sets too large to write down, known by the best plan for given means of the arms."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, TypedDict, Unpack

import numpy as np
import numpy.typing as npt

from surepick.core.arrays import FloatArray, Goal, Numbers, PerArm, vector
from surepick.core.oracle_problem import BestWithin, OracleProblem
from surepick.core.polytope import Polytope
from surepick.core.wording import in_short
from surepick.errors import FileError, ProblemError, suggestion, unexpected
from surepick.problems.candidates import (
    MOST_LISTED,
    FoundProblem,
    Progress,
    best_plans,
    complete,
    drawn_plans,
)
from surepick.problems.numbers import half_widths, in_numbers

# The arms of a best plan that has all the required arms and none of the forbidden ones, the required first
# and in the order in which the plan uses them; None when there is no such plan.
Within: TypeAlias = Callable[[FloatArray, "list[int]", "list[int]"], "list[int] | None"]

COMPLETE = 1_000  # plans: a family of no more is listed completely by default
FEW_AT_MOST = 10**9  # a bound on the plans beyond which they are not counted
GRID = 30  # binary digits that are kept of the entries of a real-valued plan: 1e-9 of the largest
_OF_LISTS = ("n_draws", "n_best", "seed")  # options that ask for a list


class Measured(TypedDict, total=False):
    """What is known of the measurements, as for `Problem`: by arm, or one number for all.

    - `noise`: the standard deviation of one measurement; None: unknown
    - `cost`: the price of one measurement; None: 1
    - `low`, `high`: limits of every measurement; None
    """

    noise: PerArm | None
    cost: PerArm | None
    low: Numbers | float | None
    high: Numbers | float | None


class DrawOptions(Measured, total=False):
    """What every builder takes beside its own arguments and those of `Measured`.

    - `list_plans`: True: choose from a list of plans, False: from all plans without a list; None: all plans,
      in a list where they are at most 1,000, unless draws or another list are asked for
    - `spread`: how far the means may lie from the guess, a number or "10%" of it, one or one per arm; 1
    - `n_draws`: how many times means are drawn within the spread and the best plan is found; 1000
    - `seed`: the seed of the draws, a whole number; 0
    - `n_best`: take this many best plans under the guess instead (paths, trees and matchings); None
    - `progress`: a function of (done, total) that is called after each draw; None
    """

    list_plans: bool | None
    spread: Numbers | str
    n_draws: int
    seed: int
    n_best: int | None
    progress: Progress | None


@dataclass(frozen=True, eq=False)
class Family:
    """A set of plans, known by the best of them for given means of the arms.

    - `solve(means)`: a plan, one number per arm, with the smallest or largest total, as `goal` says; exact
    - `n_plans`: a number that the plans do not exceed, None where there is no such number
    - `solve_within(means, lower, upper)`, for plans of whole numbers: the same among the plans within bounds,
      and None where there are none
    - `rows()`, for plans that are amounts: the rows and bounds that they keep, as `Polytope` takes them
    - `listed()`: all plans, one after the other, in any order
    - `recipe()`: the kind of family and the arguments of the function that makes it, as JSON values
    - `are_lengths`: means are lengths or times: draws around a guess without negative numbers have none
    - `is_slow`: a policy that asks for thousands of best plans would take minutes: prefer a list
    - `why_listed()`: why all plans cannot be had without a list; empty where they can
    """

    solve: Callable[[FloatArray], npt.ArrayLike]
    arm_names: tuple[str, ...]
    goal: Goal
    n_plans: int | None
    count_is_exact: bool = False  # or within rounding of it
    noun: str = "plan"
    name_of: Callable[[FloatArray], str] | None = None
    within: Within | None = None
    recipe: Callable[[], Mapping[str, Any]] | None = None
    solve_within: BestWithin | None = None
    rows: Callable[[], dict[str, Any]] | None = None
    listed: Callable[[], Iterator[FloatArray]] | None = None
    is_slow: bool = False
    are_lengths: bool = False
    why_listed: Callable[[], str] | None = None

    @property
    def n_arms(self) -> int:
        """The number of quantities that can be measured."""
        return len(self.arm_names)

    def best(self, means: Numbers) -> FloatArray:
        """The best plan under these means of the arms, one number per arm."""
        return np.asarray(self.solve(vector("means", means, self.arm_names)), dtype=float)

    def problem(
        self,
        guess: Numbers | None = None,
        *,
        spread: Numbers = 1.0,
        n_draws: int = 1000,
        n_best: int | None = None,
        seed: int = 0,
        progress: Progress | None = None,
        **measured: Unpack[Measured],
    ) -> FoundProblem:
        """The problem of choosing between candidates of this family; options are as in `DrawOptions`.

        With a guess of the means, the candidates are the best plans of `n_draws` draws within `spread` of it,
        or the `n_best` best under the guess itself; without a guess they are all plans, up to 20,000.
        """
        if guess is None:
            found = complete(self, MOST_LISTED, progress)
            if found is None:
                raise ProblemError(
                    f"there are more than {MOST_LISTED:,} {self.noun}s, too many to list; give a guess, or "
                    "take them all without a list: list_plans = false",
                    field="guess",
                )
            return FoundProblem(self, found, measured)
        centre = vector("guess", guess, self.arm_names)
        if n_best is not None:
            return FoundProblem(self, best_plans(self, centre, n_best, progress), measured)
        width = half_widths(spread, self.arm_names)
        low = centre - width
        if self.are_lengths and (centre >= 0).all():
            low = np.maximum(low, 0.0)
        return FoundProblem(self, drawn_plans(self, (low, centre + width), n_draws, seed, progress), measured)

    def all_plans(self, **measured: Unpack[Measured]) -> Polytope | FamilyProblem:
        """The problem of choosing between all plans of this family, none listed: a polytope where it is one.

        >>> from surepick.problems import portfolio_family
        >>> portfolio_family(["stocks", "bonds", "gold"], upper=0.5).all_plans()
        Polytope(3 arms, 1 row, at most 3 vertices, largest)
        """
        if self.rows is None:
            return self.oracle_problem(**measured)
        return Polytope(**self.rows(), arms=self.arm_names, goal=self.goal, **measured)

    def oracle_problem(self, **measured: Any) -> FamilyProblem:
        """The problem of choosing between all plans of this family, none of which is ever listed.

        With measure="plan arms" whole plans are played: see `OracleProblem`.
        """
        return FamilyProblem(self, **measured)


class FamilyProblem(OracleProblem):
    """The problem of choosing between all plans of a family; `family.recipe()` is enough to make it again."""

    family: Family

    def __init__(self, family: Family, **measured: Any) -> None:
        if family.n_plans == 1:
            raise ProblemError(f"there is one {family.noun} only; there is nothing to choose")
        if family.why_listed is not None and (why := family.why_listed()):
            raise ProblemError(why, field="list_plans")
        super().__init__(
            lambda means: on_grid(np.asarray(family.solve(means), dtype=float)),
            family.n_arms,
            arms=family.arm_names,
            n_plans=family.n_plans,
            goal=family.goal,
            name_plan=family.name_of,
            best_within=family.solve_within,
            **measured,
        )
        self._set(family=family)

    @property
    def completeness(self) -> str:
        """How many plans there are, none of them listed."""
        about = "" if self.family.count_is_exact else "at most "
        return f"{about}{in_short(self.n_plans or 0)} {self.family.noun}s, none of them listed"

    def recipe(self) -> Mapping[str, Any] | None:
        """The kind of the family and its parameters; None where it has no such text."""
        return None if self.family.recipe is None else self.family.recipe()

    def __copy__(self) -> FamilyProblem:
        return self._with()

    def __reduce__(self) -> Any:
        # families hold functions, which cannot be pickled; other processes make them again
        recipe = self.recipe()
        if recipe is None:
            return super().__reduce__()
        made_again = ("family", "best", "best_within", "name_plan")
        state = {name: value for name, value in vars(self).items() if name not in made_again}
        return _made_again, (dict(recipe),), state


def _made_again(recipe: Mapping[str, Any]) -> FamilyProblem:
    return FamilyProblem(family_from(recipe))


def on_grid(plan: FloatArray) -> FloatArray:
    """The plan rounded to thirty binary digits of its largest entry.

    Solvers reach one vertex by several routes that differ by rounding; on the grid they are equal to the bit.
    """
    if not np.count_nonzero(plan - np.rint(plan)):
        return plan
    unit = 2.0 ** (np.floor(np.log2(float(np.abs(plan).max()))) - GRID)
    return np.asarray(np.round(plan / unit) * unit) + 0.0


# By the kind in a recipe: the function that takes the rest of it as arguments.
_MAKERS = {
    "assign": "assignment.assign_family",
    "knapsack": "knapsack.knapsack_family",
    "matchings": "matching.matching_family",
    "paths": "path.path_family",
    "program": "program.program_family",
    "top k": "choice.top_k_family",
    "transport": "transport.transport_family",
    "tours": "tour.tour_family",
    "trees": "tree.tree_family",
}


def family_from(recipe: Mapping[str, Any]) -> Family:
    """The family that this recipe makes, equal to the one that it came from."""
    arguments = dict(recipe)
    kind = arguments.pop("kind")
    if kind not in _MAKERS:
        raise FileError(
            f"this surepick knows no family of plans of kind {kind!r} ({suggestion(kind, _MAKERS)}); upgrade "
            "surepick to read it",
            field="kind",
        )
    module, _, name = _MAKERS[kind].partition(".")
    family: Family = getattr(importlib.import_module(f"surepick.problems.kinds.{module}"), name)(**arguments)
    return family


def builder_problem(
    builder: str, family: Family, guess: Numbers | None, options: Mapping[str, Any], **defaults: Any
) -> Polytope | FamilyProblem | FoundProblem:
    """Return the problem of a builder of this name: the plans of the family, and the guess.

    By default all plans are listed if there are at most 1,000; more are left to the solver. The list is one
    of candidates near the guess where an option asks for a list, or where the solver would be slow.

    - `options`: those of `DrawOptions` that were given
    - `defaults`: of the builder, where they differ from those of `Family.problem`
    """
    for name in options:
        if name not in DrawOptions.__annotations__:
            raise unexpected(builder, name, DrawOptions.__annotations__)
    given = {**defaults, **options}
    listed = given.pop("list_plans", None)
    asked = next((name for name in _OF_LISTS if options.get(name) is not None), "")
    if listed is False and asked:
        raise ProblemError(
            f"{asked!r} is about a list of plans, and list_plans = false takes all plans without a list; "
            "leave one of the two out",
            field=asked,
        )
    centre = None if guess is None else vector("guess", guess, family.arm_names)
    given["spread"] = width = half_widths(given.get("spread", 1.0), family.arm_names, centre)
    if "noise" in given:
        of = None if centre is None else np.abs(centre) + width
        given["noise"] = in_numbers("noise", given["noise"], family.arm_names, of)
    measured: Any = {name: given[name] for name in Measured.__annotations__ if name in given}
    problem: Polytope | FamilyProblem | FoundProblem | None = None
    if listed is None and not asked:
        can_be_listed = family.listed is not None or family.within is not None
        if can_be_listed and (family.n_plans or 0) <= FEW_AT_MOST and (few := complete(family, COMPLETE)):
            problem = FoundProblem(family, few, measured)
    if problem is None and (listed or asked or (listed is None and family.is_slow)):
        problem = family.problem(centre, **given)
    if problem is None:
        problem = family.all_plans(**measured)
    if centre is None:
        return problem
    return problem.with_settings(guess=centre, spread=width if "spread" in options else None)
