"""Families of plans: sets too large to write down, known by the best plan for given weights.

A plan of a family is made of *pieces* (edges of a graph, pairs, items, variables). Usually each piece is an
arm of its own. Where the weight of a piece depends on several arms (hours and tolls of an edge), a table of
coefficients, one row per piece and one column per arm, leads from one to the other.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, TypedDict, TypeVar, Unpack

import numpy as np
import numpy.typing as npt

from surepick.core.arrays import FloatArray, Goal, Numbers, PerArm, aligned_table, names_for, vector
from surepick.core.oracle_problem import BestWithin, Losses, OracleProblem
from surepick.core.polytope import Polytope
from surepick.core.wording import in_short
from surepick.errors import FileError, ProblemError, suggestion, unexpected
from surepick.problems.candidates import (
    FoundProblem,
    Progress,
    all_plans,
    best_plans,
    complete,
    drawn_plans,
)
from surepick.problems.numbers import as_numbers, half_widths

# The pieces of a best plan that has all the required pieces and none of the forbidden ones, the required
# first and in the order in which the plan uses them; None when there is no such plan.
Within: TypeAlias = Callable[[FloatArray, "list[int]", "list[int]"], "list[int] | None"]
BuilderT = TypeVar("BuilderT", bound=Callable[..., Any])

COMPLETE = 1_000  # plans: a family of no more is listed completely by default
FEW_AT_MOST = 10**9  # a bound on the plans beyond which they are not counted
GRID = 30  # binary digits that are kept of the entries of a real-valued plan: 1e-9 of the largest
_OF_LISTS = ("n_draws", "n_best", "every", "seed")  # options that ask for a list


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
    """What every builder that draws candidates takes beside its own arguments and those of `Measured`.

    - `spread`: how far the means may lie from the guess, a number or one per arm; 1
    - `n_draws`: how many times means are drawn within the spread and the best plan is found; 1000
    - `seed`: the seed of the draws, a whole number; 0
    - `progress`: a function of (done, total) that is called after each draw; None
    - `list_plans`: True: choose from a list of plans, False: from all plans without a list; None: all plans,
      in a list where they are at most 1,000, unless draws or another list are asked for
    """

    spread: Numbers
    n_draws: int
    seed: int
    progress: Progress | None
    list_plans: bool | None


class SearchOptions(DrawOptions, total=False):
    """The same where plans can be listed in order: two ways to do without draws.

    - `n_best`: take this many best plans under the guess; None
    - `every`: take all plans, up to 20,000; False
    """

    n_best: int | None
    every: bool


@dataclass(frozen=True, eq=False)
class Family:
    """A set of plans, known by the best of them for given weights of their pieces.

    - `solve(weights)`: a plan, one number per piece, with the smallest or largest total weight, as `goal`
      says; it is exact
    - `n_plans`: a number that the plans do not exceed, None where there is no such number
    - `solve_within(weights, lower, upper)`, for plans of whole numbers: the same among the plans within
      bounds, and None where there are none
    - `losses(weights, plan)`, for plans of zeros and ones: how much worse the best plan with the other entry
      at each piece is than `plan`, the best of all; infinite where there is none
    - `rows()`, for plans that are amounts: the rows and bounds that they keep, as `Polytope` takes them
    - `some(most)`: all plans in any order, but no more than `most` of them
    - `recipe()`: the kind of family and the arguments of the function that makes it, as JSON values
    - `are_lengths`: weights are lengths or times: draws around a guess without negative numbers have none
    - `is_slow`: every question is an integer program, and a policy that asks thousands takes minutes
    """

    solve: Callable[[FloatArray], npt.ArrayLike]
    piece_names: tuple[str, ...]
    goal: Goal
    n_plans: int | None
    count_is_exact: bool = False  # or within rounding of it
    noun: str = "plan"
    name_of: Callable[[FloatArray], str] | None = None
    within: Within | None = None
    coefficients: FloatArray | None = None  # (n_pieces, n_arms)
    own_arm_names: tuple[str, ...] | None = None
    recipe: Callable[[], Mapping[str, Any]] | None = None
    solve_within: BestWithin | None = None
    losses: Losses | None = None
    rows: Callable[[], dict[str, Any]] | None = None
    some: Callable[[int], list[FloatArray]] | None = None
    is_slow: bool = False
    are_lengths: bool = False  # whether weights are lengths: draws around a guess of such have none below 0

    @property
    def arm_names(self) -> tuple[str, ...]:
        """The names of what can be measured."""
        return self.piece_names if self.own_arm_names is None else self.own_arm_names

    @property
    def n_arms(self) -> int:
        """The number of quantities that can be measured."""
        return len(self.arm_names)

    def through(self, coefficients: Numbers, arm_names: Sequence[str]) -> Family:
        """Return the family measured by other arms: a piece weighs its row of coefficients times their means.

        >>> from surepick.problems import path_family
        >>> legs = [("A", "B"), ("B", "C"), ("A", "C")]
        >>> by_kind = path_family(legs, "A", "C").through([[30, 0], [0, 20], [45, 9]], ["road km", "toll km"])
        >>> by_kind.best([1.0, 2.0]).tolist()
        [45.0, 9.0]
        """
        kinds = ("piece", "arm")
        given = aligned_table("coefficients", coefficients, self.piece_names, arm_names, kinds=kinds)
        table = as_numbers("coefficients", given, ndim=2)
        if len(table) != len(self.piece_names):
            raise ProblemError(
                f"coefficients must have one row for each of the {len(self.piece_names)} pieces, such as "
                f"{self.piece_names[0]!r}, got {len(table)} rows",
                field="coefficients",
            )
        names, plain = names_for("arm", arm_names, table.shape[1]), self.recipe
        through = {"coefficients": table.tolist(), "arm_names": list(names)}
        return replace(
            self,
            coefficients=table,
            own_arm_names=names,
            recipe=None if plain is None else lambda: {**plain(), "through": through},
            solve_within=None,  # these two are about plans that are numbers per piece
            losses=None,
        )

    def best(self, means: Numbers) -> FloatArray:
        """The best plan under these means of the arms, one number per arm."""
        weights = self.weights(vector("means", means, self.arm_names))
        return self.in_arms(np.asarray(self.solve(weights), dtype=float))

    def weights(self, means: FloatArray) -> FloatArray:
        """The weights of the pieces under these means of the arms."""
        return means if self.coefficients is None else self.coefficients @ means

    def in_arms(self, pieces: FloatArray) -> FloatArray:
        """Plans given by pieces, as numbers per arm."""
        return pieces if self.coefficients is None else on_grid(pieces @ self.coefficients)

    def problem(
        self,
        guess: Numbers | None = None,
        *,
        spread: Numbers = 1.0,
        n_draws: int = 1000,
        n_best: int | None = None,
        every: bool = False,
        seed: int = 0,
        progress: Progress | None = None,
        **measured: Unpack[Measured],
    ) -> FoundProblem:
        """The problem of choosing between candidates of this family; options are as in `SearchOptions`.

        With a guess of the means, the candidates are the best plans of `n_draws` draws within `spread` of it,
        or the `n_best` best under the guess itself; without one, or with `every=True`, they are all plans.
        """
        if every or guess is None:
            return FoundProblem(self, all_plans(self, progress), measured)
        centre = vector("guess", guess, self.arm_names)
        if n_best is not None:
            return FoundProblem(self, best_plans(self, centre, n_best, progress), measured)
        width = half_widths(spread, self.arm_names)
        low = centre - width
        if self.are_lengths and (centre >= 0).all():
            low = np.maximum(low, 0.0)
        found = drawn_plans(self, (low, centre + width), n_draws, seed, progress)
        return FoundProblem(self, found, measured)

    def all_plans(self, **measured: Unpack[Measured]) -> Polytope | FamilyProblem:
        """The problem of choosing between all plans of this family, none listed: a polytope where it is one.

        >>> from surepick.problems import portfolio_family
        >>> portfolio_family(["stocks", "bonds", "gold"], upper=0.5).all_plans()
        Polytope(3 arms, 1 row, at most 3 vertices, largest)
        """
        if self.rows is None or self.coefficients is not None:
            return self.oracle_problem(**measured)
        return Polytope(**self.rows(), arms=self.arm_names, goal=self.goal, **measured)

    def oracle_problem(self, **measured: Any) -> FamilyProblem:
        """The problem of choosing between all plans of this family, none of which is ever listed.

        With measure="plan arms" whole plans are played: see `OracleProblem`.
        """
        return FamilyProblem(self, **measured)

    def choose(
        self,
        guess: Numbers | None,
        options: Mapping[str, Any],
        *,
        list_plans: bool | None = None,
        asked: str = "",
    ) -> Polytope | FamilyProblem | FoundProblem:
        """Return the problem of choosing a plan of this family, with a list of plans or without.

        By default all plans are listed if there are at most 1,000; more are left to the solver. The list is
        one of candidates near the guess where `list_plans` or an option wants a list, or where no policy can
        use the solver, or only slowly.

        - `options`: those of `problem`
        - `asked`: the name of an option that needs a list, such as "n_draws"; "" if none is given
        """
        if list_plans is False and asked:
            raise ProblemError(
                f"{asked!r} is about a list of plans, and list_plans = false takes all plans without a list; "
                "leave one of the two out",
                field=asked,
            )
        measured: Any = {name: options[name] for name in Measured.__annotations__ if name in options}
        if list_plans is None and not asked:
            can_be_listed = self.some is not None or self.within is not None
            if can_be_listed and (self.n_plans or 0) <= FEW_AT_MOST and (few := complete(self, COMPLETE)):
                return FoundProblem(self, few, measured)
            list_plans = self.is_slow or self.coefficients is not None
        if list_plans or asked:
            return self.problem(guess, **options)
        return self.all_plans(**measured)


class FamilyProblem(OracleProblem):
    """The problem of choosing between all plans of a family; `family.recipe()` is enough to make it again."""

    family: Family

    def __init__(self, family: Family, **measured: Any) -> None:
        if family.n_plans == 1:
            raise ProblemError(f"there is one {family.noun} only; there is nothing to choose")
        super().__init__(
            lambda means: on_grid(
                family.in_arms(np.asarray(family.solve(family.weights(means)), dtype=float))
            ),
            family.n_arms,
            arms=family.arm_names,
            n_plans=family.n_plans,
            goal=family.goal,
            name_plan=family.name_of if family.coefficients is None else None,
            best_within=family.solve_within,
            **measured,
        )
        self.__dict__.update(family=family, losses=family.losses)

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
        kept = (
            *("noise_scale", "costs", "bounds", "mean_bounds", "guess", "spread", "about"),
            *("plays", "asked_plays"),
        )
        return _made_again, (dict(recipe),), {name: getattr(self, name) for name in kept}


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
    "assign": "kinds.assignment.assign_family",
    "knapsack": "kinds.knapsack.knapsack_family",
    "matchings": "kinds.matching.matching_family",
    "paths": "kinds.path.path_family",
    "program": "kinds.program.program_family",
    "top k": "kinds.choice.top_k_family",
    "transport": "kinds.transport.transport_family",
    "tours": "kinds.tour.tour_family",
    "trees": "kinds.tree.tree_family",
}


def family_from(recipe: Mapping[str, Any]) -> Family:
    """The family that this recipe makes, equal to the one that it came from."""
    arguments = dict(recipe)
    kind, through = arguments.pop("kind"), arguments.pop("through", None)
    if kind not in _MAKERS:
        raise FileError(
            f"this surepick knows no family of plans of kind {kind!r} ({suggestion(kind, _MAKERS)}); upgrade "
            "surepick to read it",
            field="kind",
        )
    module, _, name = _MAKERS[kind].rpartition(".")
    family: Family = getattr(importlib.import_module(f"surepick.problems.{module}"), name)(**arguments)
    return family if through is None else family.through(**through)


def lists(options: type, **defaults: Any) -> Callable[[BuilderT], BuilderT]:
    """Show `help` and `inspect.signature` the options behind a builder's `**options`, with their defaults."""
    shared = {name: p.default for name, p in inspect.signature(Family.problem).parameters.items()} | defaults
    only = inspect.Parameter.KEYWORD_ONLY
    taken = [inspect.Parameter(name, only, default=shared.get(name)) for name in options.__annotations__]

    def decorate(build: BuilderT) -> BuilderT:
        own = inspect.signature(build)
        parameters = [p for p in own.parameters.values() if p.kind is not p.VAR_KEYWORD]
        build.__signature__ = own.replace(parameters=[*parameters, *taken])  # type: ignore[attr-defined]
        return build

    return decorate


def builder_problem(
    build: Callable[..., Any], family: Family, guess: Numbers | None, options: Mapping[str, Any]
) -> Polytope | FamilyProblem | FoundProblem:
    """Return the problem of a builder: the plans of the family, and the guess, with its spread if stated."""
    parameters = inspect.signature(build).parameters
    for name in options:
        if name not in parameters:
            raise unexpected(build.__name__, name, parameters)
    given = {name: p.default for name, p in parameters.items() if name in SearchOptions.__annotations__}
    given |= options
    listed = given.pop("list_plans", None)
    centre = None if guess is None else vector("guess", guess, family.arm_names)
    width = half_widths(given["spread"], family.arm_names)
    problem = family.choose(centre, given, list_plans=listed, asked=asks_for_list(options))
    if centre is None:
        return problem
    return problem.with_settings(guess=centre, spread=width if "spread" in options else None)


def asks_for_list(options: Mapping[str, Any]) -> str:
    """The first of these options that is about a list of plans; empty where none is."""
    for name in _OF_LISTS:
        if options.get(name) is not None and options[name] is not False:
            return name
    return ""
