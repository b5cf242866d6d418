"""`demo` and `init`: see surepick work, and begin with an example."""

from __future__ import annotations

import json
import sys
import time
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer

from surepick.cli.output import Progress, answer, hint, load_file, refuse_existing, settings, show_remarks

SCHEMA = "surepick.schema.json"
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

    from surepick.cli.screen import answer_lines
    from surepick.sessions.session import Session

    loaded = load_file(Path(str(files("surepick.inputs") / "starters" / "trips.csv")))
    session = Session.create("memory://", "demo", loaded.problem, epsilon=1.0, prior=loaded.prior)
    if not (settings.quiet or settings.json):
        print(
            "Six routes share eight roads. A drive on one of them is off by a minute.\n"
            "Which route is fastest, if a minute does not matter?\n",
            file=sys.stderr,
        )
    rng, roads = np.random.default_rng(1), loaded.problem.arm_names
    minutes = dict(zip(roads, loaded.true_means.tolist(), strict=True))
    with Progress() as progress:
        while requests := session.ask(1, worker="demo"):
            (request,) = requests
            drive = minutes[request.probe_name] + rng.standard_normal()
            session.tell(request, drive, sure=True)
            if sys.stderr.isatty() and not settings.quiet:
                progress.say(f"{request.probe_name}: {drive:.1f} min   {session.view().line()}")
                time.sleep(PAUSE)
    view = session.view()
    answer(view, [*answer_lines(view, everything=True), f"{view.n_measured} drives in all."])
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
    from surepick.inputs.keys import schema as json_schema
    from surepick.inputs.starters import write_starter

    if kind is None and not schema:
        wide = max(map(len, KINDS))
        answer({"kinds": KINDS}, [f"  {name:<{wide}}  {text}" for name, text in KINDS.items()])
        hint("surepick init KIND", "Write one")
        return
    if kind is None or schema:  # by the schema, editors check and complete problem files
        written = [folder / SCHEMA]
        refuse_existing(written[0], force=force)
        written[0].write_text(json.dumps(json_schema(), indent=1) + "\n", encoding="utf-8")
    else:
        written = write_starter(kind, folder, force=force)
    answer({"files": [str(file) for file in written]}, [f"Wrote {file}" for file in written])
    if not schema:
        hint(f"surepick check {written[0]}")
