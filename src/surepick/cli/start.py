"""`demo` and `init`: see surepick work, and begin with an example."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from surepick.cli.output import Progress, answer, hint, refuse_existing, settings

ROUTES = {  # minutes of each stretch of road, hidden from the policy
    "Depot road": 6.0,
    "Tunnel": 10.4,
    "Bridge": 12.9,
    "Old town": 12.6,
    "Harbour": 9.1,
    "Station road": 5.2,
    "Ring east": 18.9,
    "Ring west": 20.6,
}
PLANS = {
    "Tunnel + station": "Depot road + Tunnel + Station road",
    "Through centre": "Depot road + Old town + Station road",
    "Bridge + station": "Depot road + Bridge + Station road",
    "Ring east": "Depot road + Ring east",
    "Ring west": "Depot road + Ring west",
    "Bridge + harbour": "Depot road + Bridge + Harbour",
}
SCHEMA = "surepick.schema.json"
NOISE, EPSILON = 1.0, 1.0  # minutes
KINDS = {
    "table": "Plans in a table: a row for each plan, a column for each arm.",
    "drives": "The same, measured by whole drives that give a value per stretch.",
    "paths": "The shortest way through a network.",
    "plays": "The same, measured by whole trips.",
    "trees": "The cheapest network that connects all places.",
    "matchings": "Who does what: the best assignment.",
    "choice": "The best of several things.",
    "top-k": "The best few of many.",
    "assign": "One option for each slot within a budget.",
    "knapsack": "What to pack into a limited space.",
    "transport": "How much to ship from where to where.",
    "production": "How much to make of each product with limited means.",
    "portfolio": "How to split a sum over several investments.",
}
PAUSE = 0.21  # seconds for each drive on a terminal, where people watch


def demo() -> None:
    """Watch surepick choose between six routes.

    Example: surepick demo
    """
    import numpy as np

    from surepick.cli.new import show_remarks
    from surepick.cli.screen import answer_lines
    from surepick.core.problem import Problem
    from surepick.sessions.session import Session

    problem = Problem(PLANS, goal="smallest", noise=NOISE)
    problem = problem.with_about(unit="min", title="Six routes to the station")
    session = Session.create("memory://", "demo", problem, epsilon=EPSILON)
    if not (settings.quiet or settings.json):
        print(
            "Six routes share eight roads. A drive on one of them is off by a minute.\n"
            "Which route is fastest, if a minute does not matter?\n",
            file=sys.stderr,
        )
    rng = np.random.default_rng(1)
    with Progress() as progress:
        while requests := session.ask(1, worker="demo"):
            (request,) = requests
            minutes = ROUTES[request.probe_name] + NOISE * rng.standard_normal()
            session.tell(request, minutes, sure=True)
            if sys.stderr.isatty() and not settings.quiet:
                progress.say(f"{request.probe_name}: {minutes:.1f} min   {session.view().line()}")
                time.sleep(PAUSE)
    view = session.view()
    answer(
        view,
        [
            *answer_lines(view, everything=True),
            f"{view.n_measured} drives in all.",
        ],
    )
    show_remarks(view)
    hint("surepick init table", "A problem of your own")


def init(
    kind: Annotated[str | None, typer.Argument(help="A kind of problem. [list them]")] = None,
    folder: Annotated[Path, typer.Option("-o", help="The folder to write to.")] = Path(),
    force: Annotated[bool, typer.Option("--force", help="Replace files that are there.")] = False,
    schema: Annotated[
        bool, typer.Option("--schema", help="Write the JSON schema of problem files alone.")
    ] = False,
) -> None:
    """Write an example problem to change into yours.

    Example: surepick init paths
    """
    from surepick.inputs.starters import write_starter

    if kind is None and not schema:
        wide = max(map(len, KINDS))
        answer({"kinds": KINDS}, [f"  {name:<{wide}}  {text}" for name, text in KINDS.items()])
        hint("surepick init KIND", "Write one")
        return
    if kind is None or schema:
        written = [_write_schema(folder, force=force)]
    else:
        written = write_starter(kind, folder, force=force)
    answer({"files": [str(file) for file in written]}, [f"Wrote {file}" for file in written])
    if not schema:
        hint(f"surepick check {written[0]}")


def _write_schema(folder: Path, *, force: bool) -> Path:
    """Write surepick.schema.json, by which editors check and complete problem files."""
    from surepick.inputs.keys import schema

    file = folder / SCHEMA
    refuse_existing(file, force=force)
    file.write_text(json.dumps(schema(), indent=1) + "\n", encoding="utf-8")
    return file
