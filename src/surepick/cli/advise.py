"""`advise`: which policy, delta, epsilon and batch for a problem file, and what to expect."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from surepick.cli.options import File, Json, Seed
from surepick.cli.render import bar, console, make_table, print_json
from surepick.core.wording import plural

if TYPE_CHECKING:
    from surepick.planning.advice import Advice
    from surepick.problems.truth import Loaded


def advise(
    file: File,
    delta: Annotated[float | None, typer.Option(help="Keep this delta.", show_default=False)] = None,
    epsilon: Annotated[float | None, typer.Option(help="Keep this epsilon.", show_default=False)] = None,
    budget: Annotated[int, typer.Option(help="How many measurements you can afford.")] = 200_000,
    workers: Annotated[int, typer.Option(help="How many measure at the same time.")] = 1,
    noise: Annotated[
        float | None, typer.Option(help="A rough noise scale, where the file says 'unknown'.")
    ] = None,
    worlds: Annotated[
        int | None,
        typer.Option(help="Worlds to rehearse in: 12, or 5 where plans are not listed.", show_default=False),
    ] = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Recommend policy, delta, epsilon and batch size for this problem, with reasons and what to expect.

    Choices are rehearsed in worlds drawn from the file's guess and spread. Try: surepick advise
    examples/knapsack.toml
    """
    from surepick.planning.advice import advise as find_advice
    from surepick.problems import load

    with bar("finding candidate plans", quiet=as_json) as progress:
        loaded = load(file, progress=progress)
    problem = loaded.problem
    centre = loaded.means if loaded.guess is None else loaded.guess
    with bar("rehearsing", quiet=as_json) as progress:
        found = find_advice(
            problem,
            centre,
            0.0 if loaded.spread is None else loaded.spread,
            delta=delta,
            epsilon=epsilon,
            budget=budget,
            workers=workers,
            noise=noise,
            n_worlds=worlds,
            seed=seed,
            progress=progress,
        )
    next_command = f"surepick new {file} {_options(found)}"
    if as_json:
        print_json(_data(loaded, found, next_command))
    else:
        _print(loaded, found, next_command)


def _options(found: Advice) -> str:
    from surepick.policies import describe

    epsilon = f" --epsilon {found.epsilon:g}" if found.epsilon else ""
    return f"--policy {describe(found.policy)} --delta {found.delta:g}{epsilon}"


def _data(loaded: Loaded, found: Advice, next_command: str) -> dict[str, Any]:
    from surepick.policies import describe

    return {
        "title": loaded.title,
        "policy": describe(found.policy),
        "delta": found.delta,
        "epsilon": found.epsilon,
        "batch": found.batch,
        "expected": found.expected,
        "low": found.low,
        "high": found.high,
        "limit": found.limit,
        "budget": found.budget,
        "reasons": found.reasons,
        "assumptions": list(found.assumptions),
        "busiest_arms": [{"arm": name, "share": share} for name, share in found.busiest],
        "rehearsals": [
            {
                "choice": one.label,
                "low": one.quantile(0.1),
                "median": one.quantile(0.5),
                "high": one.quantile(0.9),
            }
            for one in found.rehearsals
        ],
        "next": next_command,
    }


def _print(loaded: Loaded, found: Advice, next_command: str) -> None:
    from surepick.planning.advice import count
    from surepick.policies import describe

    say = console.print
    table = make_table(f"{escape(loaded.title)}: the advice", "", "use", "because")
    table.columns[1].justify = table.columns[2].justify = "left"
    table.columns[2].no_wrap = False
    values = {
        "policy": describe(found.policy),
        "delta": f"{found.delta:g}",
        "epsilon": f"{found.epsilon:g}",
        "batch": str(found.batch),
    }
    for name, value in values.items():
        table.add_row(name, f"[bold]{value}[/]", escape(found.reasons[name]))
    say(table)
    low, middle, high, least = (
        count(n, found.budget) for n in (found.low, found.expected, found.high, found.limit)
    )
    measurements = plural(found.expected, "measurement")
    say(
        f"Expect about [bold]{middle}[/] {measurements}, between {low} and {high} in eight of ten worlds; "
        f"the best possible method needs {least}."
    )
    busiest = ", ".join(f"{name} ({share:.0%})" for name, share in found.busiest)
    say(escape(f"Most of them go to {busiest}."))
    if loaded.guess is None and loaded.means is not None:
        say("[dim]The file has no guess; its \\[truth] stands in.[/]")
    for sentence in found.assumptions:
        say(f"[dim]Assumed: {escape(sentence)}.[/]")
    say(f"\nNext: [bold]{escape(next_command)}[/]", soft_wrap=True)
