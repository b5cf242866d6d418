"""Families of plans: sets too large to write down, known by the best plan for given means of the arms."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, TypedDict, Unpack

import numpy as np
import numpy.typing as npt

from surepick.core.arrays import FloatArray
from surepick.core.given.numbers import Goal, Known, Numbers, PerArm, is_smallest, vector
from surepick.core.given.probes import ARMS, GivenProbes
from surepick.core.oracle_problem import AnyProblem, BestWithin, OracleProblem
from surepick.core.polytopes.polytope import Polytope
from surepick.core.wording import in_short
from surepick.errors import FileError, ProblemError, suggestion, unexpected
from surepick.problems.candidates import Candidates, Progress, complete, listed_problem, search
from surepick.problems.numbers import in_numbers

# The arms of a least plan that has all the required arms and none of the forbidden ones, the required first
# and in the order in which the plan uses them; None when there is no such plan.
Within: TypeAlias = Callable[[FloatArray, "list[int]", "list[int]"], "list[int] | None"]

COMPLETE = 1_000  # plans: a family of no more is listed completely by default
FEW_AT_MOST = 10**9  # a bound on the plans beyond which they are not counted
_OF_LISTS = ("n_draws", "n_best", "seed")  # options that ask for a list
# The builders whose problems are written down as a recipe: the name, and arguments in JSON.
_WITH_RECIPE = ("assign", "knapsack", "matchings", "paths", "production", "top_k", "tours", "trees")


class Measured(TypedDict, total=False):
    """How the arms are measured, as for `Problem`: numbers by arm, or one for all.

    - `noise`: the standard deviation of one measurement; None: unknown
    - `cost`: the price of one measurement; None: 1
    - `low`, `high`: limits of every measurement; None
    - `known`: means that need no measurement, by arm, or the two numbers between which they lie; None
    - `measure`: "arms", "plan arms", "plans" or probes; of plans without a list "arms" or "plan arms"
    """

    noise: PerArm | None
    cost: PerArm | None
    low: Numbers | float | None
    high: Numbers | float | None
    known: Known | None
    measure: GivenProbes


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
    """A set of plans, known by the one with the least total for given costs of the arms.

    - `least(costs)`: a plan, one number per arm, with the least total; exact. Where the goal is the largest
      total, the costs are the means with the other sign
    - `n_plans`: a number that the plans do not exceed, None where there is no such number
    - `least_within(costs, lower, upper)`, for plans of whole numbers: the same among the plans within bounds,
      and None where there are none
    - `rows`, for plans that are amounts: the rows and bounds that they keep, as `Polytope` takes them
    - `listed()`: all plans, one after the other, in any order
    - `recipe`: the arguments of the builder `kind` that make the family again, as JSON values
    - `are_lengths`: means are lengths or times: draws around a guess without negative numbers have none
    - `is_slow`: a policy that asks for thousands of best plans would take minutes: prefer a list
    - `why_listed()`: why all plans cannot be had without a list; empty where they can
    - `spread`, `n_draws`: the defaults of these options
    """

    least: Callable[[FloatArray], npt.ArrayLike]
    arm_names: tuple[str, ...]
    goal: Goal
    n_plans: int | None
    kind: str = ""  # the name of the builder
    noun: str = "plan"
    count_is_exact: bool = False  # or within rounding of it
    name_of: Callable[[FloatArray], str] | None = None
    within: Within | None = None
    least_within: BestWithin | None = None
    rows: Mapping[str, Any] | None = None
    listed: Callable[[], Iterator[FloatArray]] | None = None
    recipe: Mapping[str, Any] | None = None
    is_slow: bool = False
    are_lengths: bool = False
    why_listed: Callable[[], str] | None = None
    spread: float = 1.0
    n_draws: int = 1000

    @property
    def n_arms(self) -> int:
        """The number of quantities that can be measured."""
        return len(self.arm_names)

    def costs(self, means: FloatArray) -> FloatArray:
        """Return these means with the sign that makes the best plan the least one."""
        return means if is_smallest(self.goal) else -means

    def best(self, means: Numbers) -> FloatArray:
        """Return the best plan under these means of the arms, one number per arm."""
        return np.asarray(self.least(self.costs(vector("means", means, self.arm_names))), dtype=float)

    def problem(self, guess: Numbers | None = None, **options: Unpack[DrawOptions]) -> AnyProblem:
        """Return the problem of choosing between the plans of this family, with the guess of its arms.

        By default all plans are listed if there are at most 1,000; more are left to the solver. The list is
        one of candidates near the guess where an option asks for a list, or where the solver would be slow.
        """
        for name in options:
            if name not in DrawOptions.__annotations__:
                raise unexpected(self.kind or "problem", name, DrawOptions.__annotations__)
        listed = options.get("list_plans")
        asked = next((name for name in _OF_LISTS if options.get(name) is not None), "")
        if listed is False and asked:
            raise ProblemError(
                f"{asked!r} is about a list of plans, and list_plans = false takes all plans without a list; "
                "leave one of the two out",
                field=asked,
            )
        spread = options.get("spread", self.spread)
        centre, width, noise = in_numbers(self.arm_names, guess, spread, options.get("noise"))
        measured = {name: options[name] for name in Measured.__annotations__ if name in options}  # type: ignore[literal-required]
        measured["noise"] = noise
        candidates: Candidates | None = None
        if listed or asked:
            candidates = search(self, centre, width, options)
        elif listed is None:
            is_small = (self.n_plans or 0) <= FEW_AT_MOST and bool(self.listed or self.within)
            candidates = complete(self, COMPLETE) if is_small else None
            if candidates is None and self.is_slow:
                candidates = search(self, centre, width, options)
        problem: AnyProblem = (
            self._unlisted(measured) if candidates is None else listed_problem(self, candidates, measured)
        )
        if centre is None:
            return problem
        return problem.with_settings(guess=centre, spread=width if "spread" in options else None)

    def _unlisted(self, measured: dict[str, Any]) -> Polytope | FamilyProblem:
        """Return the problem of choosing between all plans, none listed: a polytope where it is one."""
        if self.rows is None:
            return FamilyProblem(self, **measured)
        measure = measured.pop("measure", ARMS)
        if not (isinstance(measure, str) and measure == ARMS):
            raise ProblemError(
                "plans that are amounts are measured arm by arm; for probes list candidates with n_draws",
                field="measure",
            )
        return Polytope(**self.rows, arms=self.arm_names, goal=self.goal, **measured)


class FamilyProblem(OracleProblem):
    """The problem of choosing between all plans of a family; `recipe()` is enough to make it again."""

    family: Family

    def __init__(self, family: Family, **measured: Any) -> None:
        if family.n_plans == 1:
            raise ProblemError(f"there is one {family.noun} only; there is nothing to choose")
        if family.why_listed is not None and (why := family.why_listed()):
            raise ProblemError(why, field="list_plans")
        within = family.least_within
        super().__init__(
            lambda means: family.least(family.costs(means)),
            family.n_arms,
            arms=family.arm_names,
            n_plans=family.n_plans,
            goal=family.goal,
            name_plan=family.name_of,
            best_within=within and (lambda means, *bounds: within(family.costs(means), *bounds)),
            **measured,
        )
        self._set(family=family)

    @property
    def completeness(self) -> str:
        """How many plans there are, none of them listed."""
        about = "" if self.family.count_is_exact else "at most "
        return f"{about}{in_short(self.n_plans or 0)} {self.family.noun}s, none of them listed"

    def recipe(self) -> Mapping[str, Any] | None:
        """Return the builder of the family and its arguments as JSON values; None if it has no recipe."""
        return None if self.family.recipe is None else {"kind": self.family.kind, **self.family.recipe}

    def __copy__(self) -> FamilyProblem:
        return self._with()

    def __reduce__(self) -> Any:
        # families hold functions, which cannot be pickled; other processes make them again
        recipe = self.recipe()
        if recipe is None:
            return super().__reduce__()
        made_again = ("family", "best", "best_within", "name_plan")
        state = {name: value for name, value in vars(self).items() if name not in made_again}
        return problem_from, (recipe,), state


def problem_from(recipe: Mapping[str, Any], **measured: Any) -> FamilyProblem:
    """Return the problem that this recipe makes, with the plans of the one that it came from."""
    from surepick import problems  # whose builders import this module

    arguments = dict(recipe)
    kind = arguments.pop("kind")
    if kind not in _WITH_RECIPE:
        raise FileError(
            f"this surepick knows no family of plans of kind {kind!r} ({suggestion(kind, _WITH_RECIPE)}); "
            "upgrade surepick to read it",
            field="kind",
        )
    if isinstance(arguments.get("graph") or arguments.get("use"), str):
        raise FileError("a recipe holds its network or program, never the name of a file", field="kind")
    problem: FamilyProblem = getattr(problems, kind)(**arguments, list_plans=False, **measured)
    return problem
