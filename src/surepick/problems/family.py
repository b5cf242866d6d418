"""Families of plans: sets too large to write down, known by the best plan for given weights.

A plan of a family is made of *pieces* (edges of a graph, pairs, items, variables). Usually each piece is an
arm of its own. Where the weight of a piece depends on several arms (hours and tolls of an edge), a table of
coefficients, one row per piece and one column per arm, leads from one to the other.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from surepick.core.about import Layout
from surepick.core.arrays import (
    FloatArray,
    Goal,
    Numbers,
    PerArm,
    aligned,
    aligned_table,
    names_for,
    read_only,
)
from surepick.core.given_probes import ARMS
from surepick.core.oracle_problem import BestWithin, Losses, OracleProblem
from surepick.core.polytope import Polytope
from surepick.core.wording import in_short
from surepick.errors import FileError, ProblemError, suggestion
from surepick.problems.candidates import Box, Progress, all_plans, best_plans
from surepick.problems.found import FoundProblem, drawn
from surepick.problems.numbers import as_numbers, half_widths, numbers_for

# The pieces of a best plan that has all the required pieces and none of the forbidden ones, the required
# first and in the order in which the plan uses them; None when there is no such plan.
Within: TypeAlias = Callable[[FloatArray, "list[int]", "list[int]"], "list[int] | None"]

COMPLETE = 1_000  # plans: a family of no more is listed completely by default
GRID = 30  # binary digits that are kept of the entries of a real-valued plan: 1e-9 of the largest


@dataclass(frozen=True, eq=False)
class Family:
    """A set of plans, known by the best of them for given weights of their pieces.

    `solve(weights)` returns a plan, one number per piece, with the smallest or largest total weight, as
    `goal` says; it is exact. `n_plans` is a number that the plans do not exceed, None
    where there is no such number. `solve_within(weights, lower, upper)`, for plans of whole numbers, is the
    same among the plans within bounds, and None where there are none. `losses(weights, plan)`, for plans of
    zeros and ones, says of every piece how much worse the best plan with the other entry there is than
    `plan`, which is the best of all; infinite where there is none. `rows()`, for plans that are amounts,
    gives the rows and bounds that they keep, as `Polytope` takes them. `some(most)` gives all plans in any
    order, but no more than `most` of them. `recipe()` gives the kind of family and the arguments of the
    function that makes it, as JSON values, so that it can be kept in a file. Where `is_slow`, every question
    is an integer program, and a policy that asks thousands of them takes minutes.
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
    layout: Layout | None = None  # of the pieces
    solve_within: BestWithin | None = None
    losses: Losses | None = None
    rows: Callable[[], dict[str, Any]] | None = None
    some: Callable[[int], list[FloatArray]] | None = None
    is_slow: bool = False

    @property
    def arm_names(self) -> tuple[str, ...]:
        """The names of what can be measured."""
        return self.piece_names if self.own_arm_names is None else self.own_arm_names

    @property
    def n_arms(self) -> int:
        """The number of quantities that can be measured."""
        return len(self.arm_names)

    def through(self, coefficients: Numbers, arm_names: Sequence[str]) -> Family:
        """Return the plans with other arms: a piece weighs the sum of its coefficients times their means.

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
        names = names_for("arm", arm_names, table.shape[1])
        plain = self.recipe

        def recipe() -> Mapping[str, Any]:
            through = {"coefficients": table.tolist(), "arm_names": list(names)}
            return {**plain(), "through": through} if plain is not None else {}

        return replace(
            self,
            coefficients=table,
            own_arm_names=names,
            recipe=None if plain is None else recipe,
            layout=None,  # these three are about plans that are numbers per piece
            solve_within=None,
            losses=None,
        )

    def best(self, means: Numbers) -> FloatArray:
        """The best plan under these means of the arms, one number per arm."""
        in_order = as_numbers("means", aligned("means", means, self.arm_names))
        return self.in_arms(np.asarray(self.solve(self.weights(in_order)), dtype=float))

    def as_guess(self, guess: Numbers) -> FloatArray:
        """This guess, in the order of the arms or by their names, as one finite number per arm."""
        in_order = aligned("guess", guess, self.arm_names)
        return numbers_for("guess", in_order, self.n_arms, f"arms, such as {self.arm_names[0]!r}")

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
        noise: PerArm | None = None,
        cost: PerArm | None = None,
        low: Numbers | float | None = None,
        high: Numbers | float | None = None,
        progress: Progress | None = None,
    ) -> FoundProblem:
        """The problem of choosing between candidates of this family.

        With a guess of the means, the candidates are the best plans of `n_draws` draws within `spread` of it,
        or the `n_best` best under the guess itself; without one, or with `every=True`, they are all plans.
        `options.SearchOptions` says what each option is.
        """
        options = {"noise": noise, "cost": cost, "low": low, "high": high}
        if every or guess is None:
            return FoundProblem(self, all_plans(self, progress), options)
        centre = self.as_guess(guess)
        if n_best is not None:
            return FoundProblem(self, best_plans(self, centre, n_best, progress), options)
        width = half_widths(aligned("spread", spread, self.arm_names), centre.shape)
        box = Box(read_only(centre - width), read_only(centre + width), seed)
        return FoundProblem(self, drawn(self, box, n_draws, progress), options)

    def all_plans(
        self,
        *,
        noise: PerArm | None = None,
        cost: PerArm | None = None,
        low: Numbers | float | None = None,
        high: Numbers | float | None = None,
    ) -> Polytope | FamilyProblem:
        """The problem of choosing between all plans of this family, none listed: a polytope where it is one.

        >>> from surepick.problems import portfolio_family
        >>> portfolio_family(["stocks", "bonds", "gold"], upper=0.5).all_plans()
        Polytope(3 arms, 1 row, at most 3 vertices, largest)
        """
        if self.rows is None or self.coefficients is not None:
            return self.oracle_problem(noise=noise, cost=cost, low=low, high=high)
        given: Any = {
            **self.rows(),
            "arms": self.arm_names,
            "goal": self.goal,
            "layout": self.layout,
            "noise": noise,
            "cost": cost,
            "low": low,
            "high": high,
        }
        return Polytope(**given)

    def oracle_problem(
        self,
        *,
        noise: PerArm | None = None,
        cost: PerArm | None = None,
        low: Numbers | float | None = None,
        high: Numbers | float | None = None,
        measure: str = ARMS,
    ) -> FamilyProblem:
        """The problem of choosing between all plans of this family, none of which is ever listed.

        With measure="plan arms" whole plans are played: see `OracleProblem`.
        """
        return FamilyProblem(self, noise=noise, cost=cost, low=low, high=high, measure=measure)


class FamilyProblem(OracleProblem):
    """The problem of choosing between all plans of a family; `family.recipe()` is enough to make it again."""

    family: Family

    def __init__(
        self,
        family: Family,
        *,
        noise: PerArm | None = None,
        cost: PerArm | None = None,
        low: Numbers | float | None = None,
        high: Numbers | float | None = None,
        measure: str = ARMS,
    ) -> None:
        if family.n_plans == 1:
            raise ProblemError(f"there is one {family.noun} only; there is nothing to choose")
        super().__init__(
            lambda means: on_grid(
                family.in_arms(np.asarray(family.solve(family.weights(means)), dtype=float))
            ),
            family.n_arms,
            noise=noise,
            cost=cost,
            low=low,
            high=high,
            arms=family.arm_names,
            n_plans=family.n_plans,
            goal=family.goal,
            name_plan=family.name_of if family.coefficients is None else None,
            layout=family.layout,
            best_within=family.solve_within,
            measure=measure,
        )
        object.__setattr__(self, "family", family)
        object.__setattr__(self, "losses", family.losses)

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
        kept = ("noise_scale", "costs", "bounds", "mean_bounds", "layout", "about", "plays", "asked_plays")
        return _made_again, (dict(recipe),), {name: getattr(self, name) for name in kept}


def _made_again(recipe: Mapping[str, Any]) -> FamilyProblem:
    return FamilyProblem(family_from(recipe))


def on_grid(plan: FloatArray) -> FloatArray:
    """The plan rounded to thirty binary digits of its largest entry.

    Solvers reach one vertex by several routes that differ by rounding; on the grid they are equal to the bit.

    >>> on_grid(np.array([1.0, 0.1 + 0.2])).tolist() == on_grid(np.array([1.0, 0.3])).tolist()
    True
    """
    if not np.count_nonzero(plan - np.rint(plan)):
        return plan
    largest = float(np.abs(plan).max())
    unit = 2.0 ** (np.floor(np.log2(largest)) - GRID)
    return np.asarray(np.round(plan / unit) * unit) + 0.0


# By the kind in a recipe: the function that takes the rest of it as arguments.
_MAKERS = {
    "knapsack": "kinds.knapsack.knapsack_family",
    "matchings": "kinds.matching.matching_family",
    "paths": "kinds.path.path_family",
    "program": "program.program_family",
    "top k": "kinds.choice.top_k_family",
    "transport": "kinds.transport.transport_family",
    "trees": "kinds.tree.tree_family",
}


def family_from(recipe: Mapping[str, Any]) -> Family:
    """The family that this recipe makes, equal to the one that it came from.

    >>> from surepick.problems import top_k_family
    >>> family_from(top_k_family(["tea", "coffee", "cocoa"], 2, goal="largest").recipe()).best(
    ...     [1.0, 3.0, 2.0]
    ... ).tolist()
    [0.0, 1.0, 1.0]
    """
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
