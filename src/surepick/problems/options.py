"""The options that builders share: how candidates are searched, and what is known of the measurements.

A builder takes them as `**options: Unpack[SearchOptions]`, so that type checkers and editors know them, and
is decorated by `lists`, so that `help` and `inspect.signature` do. `Family.problem` has
their defaults.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypedDict, TypeVar

from surepick.core.arrays import Bounds, Numbers, PerArm
from surepick.core.polytope import Polytope
from surepick.errors import suggestion
from surepick.problems.candidates import Progress
from surepick.problems.family import Family, FamilyProblem, FoundProblem

BuilderT = TypeVar("BuilderT", bound=Callable[..., Any])
OptionsT = TypeVar("OptionsT", bound=Mapping[str, Any])


class DrawOptions(TypedDict, total=False):
    """What every builder that draws candidates takes beside its own arguments.

    Numbers of arms may be a dictionary or a pandas Series, whose labels are then the arms' names.

    - `spread`: how far the means may lie from the guess, a number or one per arm; 1
    - `n_draws`: how many times means are drawn within the spread and the best plan is found; 1000
    - `seed`: the seed of the draws, a whole number; 0
    - `noise_scale`: the standard deviation of one measurement, a number or one per arm, None: unknown; 1
    - `costs`: the price of one measurement, a number or one per arm; None: 1
    - `bounds`: between which two numbers a measurement lies, or one pair per arm; None
    - `progress`: a function of (done, total) that is called after each draw; None
    """

    spread: Numbers
    n_draws: int
    seed: int
    noise_scale: PerArm | None
    costs: PerArm | None
    bounds: Bounds | None
    progress: Progress | None


class SearchOptions(DrawOptions, total=False):
    """The same where plans can be listed in order: two ways to do without draws.

    - `n_best`: take this many best plans under the guess; None
    - `every`: take all plans, up to 20,000; False
    """

    n_best: int | None
    every: bool


class AmountOptions(DrawOptions, total=False):
    """The same where plans are amounts, all of which can be chosen from without a list.

    - `list_plans`: whether to choose from the best plans of draws, instead of all plans there are; None: yes
      where `n_draws` or `seed` is given
    """

    list_plans: bool | None


def lists(options: type, **defaults: Any) -> Callable[[BuilderT], BuilderT]:
    """Show `help` and `inspect.signature` the options behind a builder's `**options`, with their defaults."""
    shared = inspect.signature(Family.problem).parameters
    named = options.__annotations__
    taken = [p.replace(default=defaults.get(p.name, p.default)) for p in shared.values() if p.name in named]
    if "list_plans" in named:
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
            hint = suggestion(name, parameters)
            raise TypeError(f"{build.__name__}() got an unexpected keyword argument {name!r}; {hint}")
    defaults = {name: p.default for name, p in parameters.items() if name in SearchOptions.__annotations__}
    return {**defaults, **options}  # type: ignore[return-value]


def amounts_problem(
    build: Callable[..., Any], family: Family, guess: Numbers, options: AmountOptions
) -> Polytope | FamilyProblem | FoundProblem:
    """All plans of a family of amounts; its candidates where a list is asked for, or plans are whole."""
    given = dict(completed(build, options))
    listed = given.pop("list_plans", None)
    if listed is None:
        listed = family.rows is None or "n_draws" in options or "seed" in options
    if listed:
        return family.problem(guess, **given)  # type: ignore[arg-type]
    return family.all_plans(**{name: given[name] for name in ("noise_scale", "costs", "bounds")})  # type: ignore[arg-type]
