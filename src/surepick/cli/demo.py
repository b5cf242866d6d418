"""`demo`: decide the paper's transport case, or a choice between 6e10 trees, while you watch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.markup import escape

from surepick.cli.against_truth import losses
from surepick.cli.options import Budget, Delta, Epsilon, Json, PolicyText
from surepick.cli.render import bar, console, exit_code, print_json
from surepick.cli.simulate import effort_table, limit_of, outcome_data, print_answer, rehearse
from surepick.core.wording import how_many, in_short

if TYPE_CHECKING:
    from surepick.core.policy import Policy
    from surepick.problems.truth import Truth
    from surepick.simulation.outcome import Outcome

BESIDE_THE_DEMO = ("CombGapE", "Uniform")
DEMO_BUDGET = 3 * 10**6  # how far the demo follows the others
Distances = Literal["great-circle", "freeway"]
Case = Literal["transport", "trees"]


USUAL_OF_LISTS = "BetGapE"
LISTED = (
    "betgape",
    "combgape",
    "uniform",
    "clucb",
    "lingape",
    "rage",
    "peace",
    "gentsexplore",
)  # need a list


@dataclass(frozen=True)
class Listed:
    """What was found in a list of candidates, beside all plans."""

    outcome: Outcome
    n_plans: int
    missed: float  # how much worse the best of the list is than the best of all plans, in hours

    @property
    def text(self) -> str:
        """One sentence for people."""
        worse = f"which is {self.missed:.3g} hours worse than the best of all"
        sure = (
            "finds the best of them" if self.outcome.plan is not None else "is not sure of the best of them"
        )
        return (
            f"The paper draws a list instead: 1,000 draws give {self.n_plans} plans, and {USUAL_OF_LISTS} "
            f"{sure} with {self.outcome.n_measurements:,} measurements, "
            + (f"{worse}." if self.missed else "the same plan.")
        )


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
    surepick choose which trips to make until it knows the best of all plans, wrong with probability at most
    delta. A policy that needs a list (--policy CombGapE) chooses from the paper's: the best plans of draws.

    With --case trees: which cables connect twelve towns for the least cost? There are 6e10 ways.
    """
    from surepick.policies import policy_for

    loaded = _demo_trees(seed) if case == "trees" else _demo_case(seed, distances, policy, as_json)
    chosen = policy_for(policy, delta=delta, epsilon=epsilon)
    introduce(loaded, chosen, as_json)
    outcome = rehearse(loaded, chosen, as_json, seed=seed, budget=budget)
    others = _beside(loaded, outcome, min(budget, DEMO_BUDGET), as_json) if loaded.problem.is_listed else []
    drawn = None
    if case == "transport" and not loaded.problem.is_listed:
        drawn = _of_list(seed, distances, outcome, min(budget, DEMO_BUDGET), as_json)
    _print_demo(loaded, outcome, others, drawn, as_json)
    raise typer.Exit(exit_code(outcome))


def _demo_case(seed: int, distances: Distances, policy: str | None, quiet: bool) -> Truth:
    """All transports between the cities; the paper's list of them where the policy asked for needs one."""
    from surepick.problems import city_hours, transport_instance, whole_transport

    hours = city_hours(distances)
    needs_list = policy is not None and policy.partition(":")[0].lower() in LISTED
    if needs_list:
        with bar("finding candidate plans", quiet=quiet) as progress:
            case = transport_instance(seed, distances=distances, progress=progress)
    else:
        case = whole_transport(seed, distances=distances)
    title = f"Transport between 18 cities, {distances} hours"
    return replace(case, kind="transport", title=title, axes=(hours.row_names, hours.column_names))


def _beside(loaded: Truth, outcome: Outcome, budget: int, quiet: bool) -> list[Outcome]:
    """What the paper's policies need on the same list."""
    from surepick.core.policy import epsilon_of
    from surepick.policies import parse_policy

    settings = {"delta": outcome.policy.delta, "epsilon": epsilon_of(outcome.policy)}
    names = [name for name in BESIDE_THE_DEMO if name != outcome.policy.name]
    how = {"seed": outcome.seed, "budget": budget}
    return [rehearse(loaded, parse_policy(name, **settings), quiet, **how) for name in names]


def _of_list(seed: int, distances: Distances, outcome: Outcome, budget: int, quiet: bool) -> Listed:
    """What BetGapE finds in the paper's list of transports."""
    from surepick.core.policy import epsilon_of
    from surepick.policies import parse_policy

    listed = _demo_case(seed, distances, USUAL_OF_LISTS, quiet)
    settings = {"delta": outcome.policy.delta, "epsilon": epsilon_of(outcome.policy)}
    found = rehearse(listed, parse_policy(USUAL_OF_LISTS, **settings), quiet, seed=seed, budget=budget)
    assert listed.problem.is_listed
    missed = losses(listed, listed.problem.best(listed.true_means))[1]
    return Listed(found, int(listed.problem.n_plans or 0), missed)


def _demo_trees(seed: int) -> Truth:
    from surepick.problems import cable_instance
    from surepick.problems.truth import Truth

    problem, means = cable_instance(seed)
    title = "Cables that connect twelve towns for the least cost"
    return Truth(problem, means, kind="trees", title=title)


def introduce(loaded: Truth, policy: Policy, as_json: bool) -> None:
    """Say what is about to be decided."""
    if as_json:
        return
    from surepick.core.guarantee import Promise
    from surepick.core.polytope import Polytope

    problem = loaded.problem
    console.print(f"[bold]{escape(loaded.title)}[/]")
    plans = (
        f"{in_short(problem.n_plans)} plans, none of them listed"
        if not problem.is_listed and problem.n_plans is not None
        else f"{problem.n_plans} candidate plans"
    )
    if isinstance(problem, Polytope):
        plans = "All plans, none of them listed"
    arms, n_matter = how_many(problem.n_arms, "arm"), int(problem.relevant.sum())
    matter = "" if problem.relevant.all() else f" ({how_many(n_matter, 'matters', 'matter')})"
    promise = Promise.of(policy, problem).text
    console.print(f"{plans}, {arms} to measure{matter}. {policy.name} promises: {promise}.\n")


def _print_demo(
    loaded: Truth, result: Outcome, others: Sequence[Outcome], drawn: Listed | None, as_json: bool
) -> None:
    """The answer of the demo, beside other policies and the limit of any method."""
    found = limit_of(loaded, result)
    if as_json:
        data = outcome_data(loaded, result, found)
        for other in others:
            data[other.policy.name] = {"n_measurements": other.n_measurements, "status": str(other.status)}
        if drawn is not None:
            n, status = drawn.outcome.n_measurements, str(drawn.outcome.status)
            data["list"] = {
                "n_plans": drawn.n_plans,
                "n_measurements": n,
                "status": status,
                "loss": drawn.missed,
            }
        print_json(data)
        return
    print_answer(loaded, result)
    console.print(effort_table([result, *others], found))
    if drawn is not None:
        console.print(f"\n{drawn.text}")
    console.print(
        "\nNext, with a problem of your own: [bold]surepick init table[/], "
        "then [bold]surepick simulate table.toml[/]"
    )
