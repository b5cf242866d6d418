"""`arena`: every method of the field on the same instances."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from surepick.cli.reproduce import progress_bar, say_if_torn


def arena(
    questions: Annotated[
        str | None,
        typer.Option(help="exact, vectors, plays, epsilon and budget, with commas between; all by default."),
    ] = None,
    families: Annotated[str | None, typer.Option(help="Families with commas between them.")] = None,
    policies: Annotated[str | None, typer.Option(help="Methods with commas between them.")] = None,
    runs: Annotated[int | None, typer.Option(help="Runs of each method on each family.")] = None,
    delta: Annotated[float, typer.Option(help="Allowed probability of a wrong answer.")] = 0.05,
    seed: Annotated[int, typer.Option(min=0, help="The first instance; the others follow.")] = 0,
    workers: Annotated[int | None, typer.Option(help="Local processes; one per core.")] = None,
    cluster: Annotated[
        str | None, typer.Option(help="Run on a Dask cluster: tcp://host:8786, or local:N.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Output folder; by default results/arena.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer runs: minutes.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Put every method on the same instances: measurements, wrong answers, CPU time, proof of the stop.

    Finished runs are kept in the output folder: a killed or repeated command goes on where it was,
    and an interrupted one shows the tables of what there is. More of
    what a budget buys is `surepick reproduce budget`.

    Policies of other packages, and other settings (CombGapE:radius=kaufmann-koolen), enter when they are
    named.

    Try: surepick arena --families near-tie --policies BetGapE,LUCB --runs 5
    """
    from rich.console import Console

    from surepick.experiments import arena_tables as tables
    from surepick.experiments.arena import ArenaSettings, run_arena
    from surepick.experiments.outputs import ROWS_NAME

    settings = ArenaSettings(_names(questions), _names(families), _names(policies), runs, seed, delta, quick)
    folder = out or Path("results") / ("arena-quick" if quick else "arena")
    say_if_torn(folder)
    with progress_bar("arena", quiet=as_json) as progress:
        path = folder / ROWS_NAME
        found = run_arena(settings, path, workers=workers, cluster=cluster, progress=progress)
    written = tables.write_arena_outputs(found, folder)
    if as_json:
        data = {**tables.as_json(found), "folder": str(folder)}
        typer.echo(json.dumps(data, indent=2, ensure_ascii=False))
    else:
        console = Console(highlight=False)
        console.print(tables.terminal(found))
        names = ", ".join(path.name for path in written)
        console.print(f"\nWritten to {folder}: rows.jsonl, {names}\n", soft_wrap=True)
    if found.failures or found.n_missing:
        raise typer.Exit(1)


def _names(text: str | None) -> tuple[str, ...] | None:
    return None if text is None else tuple(part.strip() for part in text.split(",") if part.strip())
