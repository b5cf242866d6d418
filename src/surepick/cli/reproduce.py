"""`reproduce`: the paper's tables, run again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from surepick.cli.options import INTERRUPTED

if TYPE_CHECKING:
    from surepick.experiments.paper import Settings
    from surepick.experiments.reproduction import Reproduction
    from surepick.experiments.running import Report, RunProgress


BUDGET = "budget"  # the experiment that is not of the paper


def reproduce(
    name: Annotated[
        str, typer.Argument(help="knapsack (Table 1), transport (Table 2), all (both), or budget.")
    ],
    runs: Annotated[int | None, typer.Option(help="Instances; as in the paper: 30 and 100.")] = None,
    policies: Annotated[str | None, typer.Option(help="Methods with commas between them.")] = None,
    families: Annotated[
        str | None,
        typer.Option(help="Of budget: knapsack, three-of-ten, ten-arms, transport; by default all."),
    ] = None,
    budget: Annotated[
        int | None, typer.Option(help="Cut every run off after this many measurements.")
    ] = None,
    delta: Annotated[float, typer.Option(help="Allowed probability of a wrong answer.")] = 0.05,
    seed: Annotated[int, typer.Option(min=0, help="The first instance; the others follow.")] = 0,
    distances: Annotated[
        str, typer.Option(help="Travel hours: great-circle, freeway, or a CSV file.")
    ] = "great-circle",
    workers: Annotated[int | None, typer.Option(help="Local processes; one per core.")] = None,
    cluster: Annotated[
        str | None, typer.Option(help="Run on a Dask cluster: tcp://host:8786, or local:N.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Output folder; by default results/NAME.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer runs, smaller budgets: minutes.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Run the paper's experiments again, and print its tables beside what it printed.

    `budget` is not of the paper: wrong leads and their loss where a budget ends every run.

    Finished runs are kept in the output folder: a killed or repeated command goes on where it was. The folder
    gets the table (Markdown, CSV, JSON), the rows (JSON lines, Parquet), figures and a report of theory.
    """
    from surepick.errors import ParameterError
    from surepick.experiments.outputs import ROWS_NAME
    from surepick.experiments.paper import Settings, experiments_named, methods_named, with_distances
    from surepick.experiments.reproduction import reproduce as run

    names = _names(policies)
    settings = Settings(runs, names, budget, seed, delta, quick, _names(families))
    if families is not None and name != BUDGET:
        raise ParameterError("the paper's tables have one family each; --families is for budget")
    if name == BUDGET:
        _reproduce_budget(settings, out, workers=workers, cluster=cluster, as_json=as_json)
        return
    chosen = [with_distances(experiment, distances) for experiment in experiments_named(name)]
    methods_named(names)
    several = len(chosen) > 1
    folders = {e.name: _folder(out, e.name, quick=quick, several=several) for e in chosen}
    results = []
    for experiment in chosen:
        folder = folders[experiment.name]
        say_if_torn(folder)
        with progress_bar(experiment.name, quiet=as_json) as progress:
            path = folder / ROWS_NAME
            result = run(experiment, settings, path, workers=workers, cluster=cluster, progress=progress)
        _write(result, folder, quiet=as_json)
        results.append(result)
    if as_json:
        _print_json(results, folders)
    if any(result.failures for result in results):
        raise typer.Exit(1)


def _names(given: str | None) -> tuple[str, ...] | None:
    return None if given is None else tuple(part.strip() for part in given.split(",") if part.strip())


def _reproduce_budget(
    settings: Settings, out: Path | None, *, workers: int | None, cluster: str | None, as_json: bool
) -> None:
    """What a budget buys: its own budgets, its own table."""
    from rich.console import Console

    from surepick.errors import ParameterError
    from surepick.experiments import budget_tables as tables
    from surepick.experiments.budgets import budget_families_named, budget_methods_named, reproduce_budget
    from surepick.experiments.outputs import ROWS_NAME

    if settings.budget is not None:
        raise ParameterError(
            "this experiment tries budgets of .25 to 4 T*; leave --budget out", field="budget"
        )
    budget_methods_named(settings.policies)
    budget_families_named(settings.families)
    folder = _folder(out, BUDGET, quick=settings.quick, several=False)
    say_if_torn(folder)
    with progress_bar(BUDGET, quiet=as_json) as progress:
        path = folder / ROWS_NAME
        result = reproduce_budget(settings, path, workers=workers, cluster=cluster, progress=progress)
    written = tables.write_budget_outputs(result, folder)
    if as_json:
        typer.echo(
            json.dumps({**tables.as_json(result), "folder": str(folder)}, indent=2, ensure_ascii=False)
        )
    else:
        console = Console(highlight=False)
        console.print(tables.terminal(result))
        names = ", ".join(path.name for path in written)
        console.print(f"\nWritten to {folder}: rows.jsonl, {names}\n", soft_wrap=True)
    if result.failures or result.n_missing:
        raise typer.Exit(1 if result.failures else INTERRUPTED)


def _folder(out: Path | None, name: str, *, quick: bool, several: bool) -> Path:
    if out is None:
        return Path("results") / (f"{name}-quick" if quick else name)
    return out / name if several else out


def say_if_torn(folder: Path) -> None:
    """Say on standard error that the last row of this folder was torn."""
    from surepick.experiments.outputs import ROWS_NAME
    from surepick.experiments.rows import read_rows

    path = folder / ROWS_NAME
    if read_rows(path).torn:
        typer.echo(f"{path}: the last row was torn by a kill; its case runs again", err=True)


def _write(result: Reproduction, folder: Path, *, quiet: bool) -> None:
    from rich.console import Console

    from surepick.experiments.outputs import write_outputs
    from surepick.experiments.tables import terminal

    written = write_outputs(result, folder)
    if quiet:
        return
    console = Console(highlight=False)
    console.print(terminal(result))
    console.print(
        f"\nWritten to {folder}: rows.jsonl, {', '.join(path.name for path in written)}\n", soft_wrap=True
    )


@contextmanager
def progress_bar(name: str, *, quiet: bool) -> Iterator[Report | None]:
    """A bar with the cases done and the time left, on standard error."""
    if quiet:
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("[bold]{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}", style="dim"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(name, total=None, left="")

        def show(state: RunProgress) -> None:
            bar.update(task, completed=state.done, total=state.total, left=describe_progress(state))

        yield show


def describe_progress(state: RunProgress) -> str:
    """What a bar cannot show: the time left, what an earlier run had done, what failed.

    >>> from surepick.experiments.running import RunProgress
    >>> describe_progress(RunProgress(5, 9, 2, 1, 10.0, 130.0, None))
    '2:10 left, 2 from an earlier run, 1 failed'
    """
    parts = []
    if state.seconds_left is not None:
        minutes, seconds = divmod(round(state.seconds_left), 60)
        hours, minutes = divmod(minutes, 60)
        clock = f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
        parts.append(f"{clock} left")
    elif state.done < state.total:
        parts.append("starting; the very first run compiles its loops, half a minute")
    if state.skipped:
        parts.append(f"{state.skipped} from an earlier run")
    if state.failed:
        parts.append(f"{state.failed} failed")
    return ", ".join(parts)


def _print_json(results: list[Reproduction], folders: dict[str, Path]) -> None:
    from surepick.experiments.tables import as_json

    found = [{**as_json(result), "folder": str(folders[result.experiment.name])} for result in results]
    typer.echo(json.dumps({"experiments": found}, indent=2, ensure_ascii=False))
