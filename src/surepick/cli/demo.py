"""`demo`: decide the paper's transport case, or a choice between 6e10 trees, while you watch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.markup import escape

from surepick.cli.options import Budget, Delta, Epsilon, Json, PolicyText
from surepick.cli.render import bar, console, exit_code, print_json
from surepick.cli.simulate import effort_table, limit_of, outcome_data, print_answer, rehearse
from surepick.core.wording import how_many

if TYPE_CHECKING:
    from surepick.core.policy import Policy
    from surepick.problems.truth import Loaded
    from surepick.simulation.outcome import Outcome

BESIDE_THE_DEMO = ("CombGapE", "Uniform")
DEMO_BUDGET = 3 * 10**6  # how far the demo follows the others
Distances = Literal["great-circle", "freeway"]
Case = Literal["transport", "trees"]


def demo(
    case: Annotated[Case, typer.Option(help="trees: a choice between 6e10 plans that are never listed.")] = (
        "transport"
    ),
    seed: Annotated[int, typer.Option(min=0, help="Draws the case, and the noise.")] = 1,
    delta: Delta = 0.05,
    epsilon: Epsilon = 0.0,
    policy: PolicyText = None,
    distances: Annotated[
        Distances, typer.Option(help="Travel hours. By freeway many plans tie: add --epsilon 0.05.")
    ] = "great-circle",
    budget: Budget = 10**7,
    as_json: Json = False,
) -> None:
    """Decide the paper's transport case: which shipments between 18 cities take the fewest hours?

    Nobody knows the 81 travel times exactly. Each can be measured by a trip, with an hour of noise. Watch
    surepick choose which trips to make until it knows the best plan, wrong with probability at most delta.

    With --case trees: which cables connect twelve towns for the least cost? There are 6e10 ways.
    """
    from surepick.policies import parse_policy, policy_for

    loaded = _demo_trees(seed) if case == "trees" else _demo_case(seed, distances, as_json)
    chosen = policy_for(loaded.problem, policy, delta=delta, epsilon=epsilon)
    introduce(loaded, chosen, as_json)
    outcome = rehearse(loaded, chosen, seed, budget, as_json)
    others = [
        rehearse(
            loaded, parse_policy(name, delta=delta, epsilon=epsilon), seed, min(budget, DEMO_BUDGET), as_json
        )
        for name in BESIDE_THE_DEMO
        if name != chosen.name and case == "transport"
    ]
    _print_demo(loaded, outcome, others, as_json)
    raise typer.Exit(exit_code(outcome))


def _demo_case(seed: int, distances: Distances, quiet: bool) -> Loaded:
    from surepick.problems import city_hours, transport_instance
    from surepick.problems.truth import Loaded

    hours = city_hours(distances)
    with bar("finding candidate plans", quiet=quiet) as progress:
        case = transport_instance(seed, distances=distances, progress=progress)
    title = f"Transport between 18 cities, {distances} hours"
    return Loaded(case.problem, case.means, "transport", title, (hours.row_names, hours.column_names))


def _demo_trees(seed: int) -> Loaded:
    from surepick.problems import cable_instance
    from surepick.problems.truth import Loaded

    problem, means = cable_instance(seed)
    return Loaded(problem, means, "trees", "Cables that connect twelve towns for the least cost")


def introduce(loaded: Loaded, policy: Policy, as_json: bool) -> None:
    """Say what is about to be decided."""
    if as_json:
        return
    from surepick.core.oracle_problem import in_short
    from surepick.core.promise import Promise

    problem = loaded.problem
    console.print(f"[bold]{escape(loaded.title)}[/]")
    plans = (
        f"{in_short(problem.n_plans)} plans, none of them listed"
        if not problem.is_listed and problem.n_plans is not None
        else f"{problem.n_plans} candidate plans"
    )
    arms, n_matter = how_many(problem.n_arms, "arm"), int(problem.relevant.sum())
    matter = "" if problem.relevant.all() else f" ({how_many(n_matter, 'matters', 'matter')})"
    promise = Promise.of(policy, problem).text
    console.print(f"{plans}, {arms} to measure{matter}. {policy.name} promises: {promise}.\n")


def _print_demo(loaded: Loaded, result: Outcome, others: Sequence[Outcome], as_json: bool) -> None:
    """The answer of the demo, beside other policies and the limit of any method."""
    found = limit_of(loaded, result)
    if as_json:
        data = outcome_data(loaded, result, found)
        for other in others:
            data[other.policy.name] = {"n_measurements": other.n_measurements, "status": str(other.status)}
        print_json(data)
        return
    print_answer(loaded, result)
    console.print(effort_table([result, *others], found))
    console.print(
        "\nNext: [bold]surepick simulate examples/routes.toml[/], or "
        "[bold]surepick compare examples/routes.toml[/]"
    )
