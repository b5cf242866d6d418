"""`advise`: which policy, delta, epsilon and batch for a problem file, and what to expect."""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from surepick.cli.options import File, Json, Seed
from surepick.cli.render import as_number, bar, console, is_asked, make_table, print_json
from surepick.errors import FileError, ParameterError

if TYPE_CHECKING:
    from surepick.core.arrays import FloatArray
    from surepick.planning.advice import Advice
    from surepick.problems.truth import Truth


def advise(
    file: File,
    delta: Annotated[float | None, typer.Option(help="Keep this delta.", show_default=False)] = None,
    epsilon: Annotated[float | None, typer.Option(help="Keep this epsilon.", show_default=False)] = None,
    budget: Annotated[
        int | None,
        typer.Option(
            help="How many measurements you can afford; asked for at a terminal.", show_default=False
        ),
    ] = None,
    means: Annotated[
        tuple[float, float] | None,
        typer.Option(
            help="Between which two numbers all means lie, where the file has no guess.", show_default=False
        ),
    ] = None,
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

    Choices are rehearsed in worlds drawn from the file's guess and spread; without a guess it asks between
    which numbers the means lie.

    Try: surepick init table, then surepick advise table.toml --budget 5000
    """
    from surepick.planning.advice import advise as find_advice
    from surepick.problems import load

    with bar("finding candidate plans", quiet=as_json) as progress:
        loaded = load(file, progress=progress)
    problem = loaded.problem
    can_ask = not as_json and is_asked()
    centre, spread = _expected(loaded, means, can_ask)
    if budget is None and can_ask:
        budget = typer.prompt("How many measurements can you afford?", type=int, err=True)
    with bar("rehearsing", quiet=as_json) as progress:
        found = find_advice(
            problem,
            centre,
            spread,
            delta=delta,
            epsilon=epsilon,
            budget=budget,
            workers=workers,
            noise=noise,
            n_worlds=worlds,
            seed=seed,
            progress=progress,
        )
    next_command = f"surepick new {file} {_options(found)}" + (f" --budget {budget}" if budget else "")
    if as_json:
        print_json(_data(loaded, found, next_command))
    else:
        _print(loaded, found, next_command)


def _expected(
    loaded: Truth, means: tuple[float, float] | None, can_ask: bool
) -> tuple[FloatArray, FloatArray]:
    """What the means may be, and how far off: from the file, or as somebody says who knows the range."""
    import numpy as np

    centre = loaded.means if loaded.guess is None else loaded.guess
    if means is None and centre is not None:
        spread = np.zeros(centre.size) if loaded.spread is None else loaded.spread
        return centre, spread
    if means is None and can_ask:
        print(
            "The file has no guess, so nobody can know what to expect. Between which two numbers do the "
            "means of the arms lie?",
            file=sys.stderr,
        )
        means = tuple(typer.prompt(which, value_proc=as_number, err=True) for which in ("lowest", "highest"))
    if means is None:
        raise FileError(
            "the file has no guess of the means, so advise cannot know how hard the decision is; add guess "
            "and spread to it (in a spreadsheet rows of these names), or say between which two numbers all "
            "means lie: --means LOW HIGH"
        )
    low, high = means
    if not low < high:
        raise ParameterError(f"--means takes the lower number first, got {low:g} and {high:g}")
    return np.full(loaded.problem.n_arms, (low + high) / 2), np.full(loaded.problem.n_arms, (high - low) / 2)


def _options(found: Advice) -> str:
    from surepick.policies import describe

    epsilon = f" --epsilon {found.epsilon:g}" if found.epsilon else ""
    return f"--policy {describe(found.policy)} --delta {found.delta:g}{epsilon}"


def _data(loaded: Truth, found: Advice, next_command: str) -> dict[str, Any]:
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


def _print(loaded: Truth, found: Advice, next_command: str) -> None:
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
    known = found.limit is not None and math.isfinite(found.limit)
    least = f"; any method needs at least {found.limit:,.0f} on average" if known else ""
    say(f"Expect {found.expectation}{least}.")
    busiest = ", ".join(f"{name} ({share:.0%})" for name, share in found.busiest)
    say(escape(f"Most of them go to {busiest}."))
    if loaded.guess is None and loaded.means is not None:
        say("[dim]The file has no guess; its \\[truth] stands in.[/]")
    for sentence in found.assumptions:
        say(f"[dim]Assumed: {escape(sentence)}.[/]")
    say(f"\nNext: [bold]{escape(next_command)}[/]", soft_wrap=True)
