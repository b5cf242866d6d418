"""The options that builders share: how candidates are searched, and what is known of the measurements.

A builder takes them as `**options: Unpack[SearchOptions]`, so that type checkers and editors know them, and
is decorated by `lists`, so that `help` and `inspect.signature` do. `Family.problem` has
their defaults.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypedDict, TypeVar

from surepick.core.about import plausible_range
from surepick.core.arrays import Numbers, PerArm, aligned
from surepick.core.polytope import Polytope
from surepick.errors import ProblemError, unexpected
from surepick.problems.candidates import FEW_AT_MOST, Candidates, Progress, complete
from surepick.problems.family import COMPLETE, Family, FamilyProblem
from surepick.problems.found import FoundProblem
from surepick.problems.numbers import half_widths

BuilderT = TypeVar("BuilderT", bound=Callable[..., Any])
OptionsT = TypeVar("OptionsT", bound=Mapping[str, Any])
OF_LISTS = ("n_draws", "n_best", "every", "seed")  # options that ask for a list


class DrawOptions(TypedDict, total=False):
    """What every builder that draws candidates takes beside its own arguments.

    Numbers of arms may be a dictionary or a pandas Series, whose labels are then the arms' names.

    - `spread`: how far the means may lie from the guess, a number or one per arm; 1
    - `n_draws`: how many times means are drawn within the spread and the best plan is found; 1000
    - `seed`: the seed of the draws, a whole number; 0
    - `noise`: the standard deviation of one measurement, a number or one per arm; None: unknown
    - `cost`: the price of one measurement, a number or one per arm; None: 1
    - `low`, `high`: limits of every measurement, a number or one per arm; None
    - `progress`: a function of (done, total) that is called after each draw; None
    - `list_plans`: True: choose from a list of plans, False: from all plans without a list; None: all plans,
      in a list where they are at most 1,000, unless draws or another list are asked for
    """

    spread: Numbers
    n_draws: int
    seed: int
    noise: PerArm | None
    cost: PerArm | None
    low: Numbers | float | None
    high: Numbers | float | None
    progress: Progress | None
    list_plans: bool | None


class SearchOptions(DrawOptions, total=False):
    """The same where plans can be listed in order: two ways to do without draws.

    - `n_best`: take this many best plans under the guess; None
    - `every`: take all plans, up to 20,000; False
    """

    n_best: int | None
    every: bool


def lists(options: type, **defaults: Any) -> Callable[[BuilderT], BuilderT]:
    """Show `help` and `inspect.signature` the options behind a builder's `**options`, with their defaults."""
    shared = inspect.signature(Family.problem).parameters
    named = options.__annotations__
    taken = [p.replace(default=defaults.get(p.name, p.default)) for p in shared.values() if p.name in named]
    taken.append(inspect.Parameter("list_plans", inspect.Parameter.KEYWORD_ONLY, default=None))

    def decorate(build: BuilderT) -> BuilderT:
        own = inspect.signature(build)
        parameters = [p for p in own.parameters.values() if p.kind is not p.VAR_KEYWORD]
        build.__signature__ = own.replace(parameters=[*parameters, *taken])  # type: ignore[attr-defined]
        return build

    return decorate


def completed(build: Callable[..., Any], options: OptionsT) -> OptionsT:
    """All options that a builder lists: these, and the others by their defaults. Others are refused."""
    parameters = inspect.signature(build).parameters
    for name in options:
        if name not in parameters:
            raise unexpected(build.__name__, name, parameters)
    defaults = {name: p.default for name, p in parameters.items() if name in SearchOptions.__annotations__}
    return {**defaults, **options}  # type: ignore[return-value]


def builder_problem(
    build: Callable[..., Any], family: Family, guess: Numbers | None, options: Mapping[str, Any]
) -> Polytope | FamilyProblem | FoundProblem:
    """Return the problem of a builder: the plans of the family, and plausible values.

    Plausible values are known if a guess was given together with its spread.
    """
    given = dict(completed(build, options))
    listed = given.pop("list_plans", None)
    centre = None if guess is None else family.as_guess(guess)
    width = half_widths(aligned("spread", given["spread"], family.arm_names), (family.n_arms,))
    problem = family_problem(family, centre, given, list_plans=listed, asked=asks_for_list(options))
    if centre is None or "spread" not in options:
        return problem
    return problem.with_about(plausible=plausible_range(centre, width, problem.noise_scale))


def family_problem(
    family: Family, guess: Numbers | None, options: Mapping[str, Any], *, list_plans: bool | None, asked: str
) -> Polytope | FamilyProblem | FoundProblem:
    """All plans of the family, in a list where they are few; its candidates where a list is asked for.

    `asked` is the option that asks for a list, if there is one. Where no policy can do without a list, or
    only slowly, the plans are candidates as well.
    """
    if list_plans is False and asked:
        raise ProblemError(
            f"{asked!r} is about a list of plans, and list_plans = false takes all plans without a list; "
            "leave one of the two out",
            field=asked,
        )
    measured = {name: options[name] for name in ("noise", "cost", "low", "high") if name in options}
    if list_plans is None and not asked:
        if few := _few(family):
            return FoundProblem(family, few, measured)
        list_plans = family.is_slow or family.coefficients is not None
    if list_plans or asked:
        return family.problem(guess, **options)
    return family.all_plans(**measured)


def asks_for_list(options: Mapping[str, Any]) -> str:
    """The first of these options that is about a list of plans; empty where none is.

    >>> asks_for_list({"spread": 2.0, "seed": 0}), asks_for_list({"every": False})
    ('seed', '')
    """
    return next((name for name in OF_LISTS if name in options and not _is_no(options[name])), "")


def _is_no(value: Any) -> bool:
    """Return whether an option is as good as not given; a seed of 0 is not."""
    return value is None or value is False


def _few(family: Family) -> Candidates | None:
    """All plans of a family that has at most `COMPLETE`; amounts have no such list."""
    can_be_listed = family.some is not None or family.within is not None
    if not can_be_listed or (family.n_plans or 0) > FEW_AT_MOST:
        return None
    return complete(family, COMPLETE)
