"""`reproduce`: the paper's tables, the arena, and studies of our own."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from surepick.cli.output import INTERRUPTED, Progress, answer
from surepick.views.numbers import duration

if TYPE_CHECKING:
    from surepick.experiments.running import RunProgress


def reproduce(
    table: Annotated[
        str,
        typer.Argument(
            metavar="TABLE",
            help="knapsack (Table 1), transport (Table 2), budget, arena, oracle, polytope or radii.",
        ),
    ] = "",
    families: Annotated[
        list[str] | None, typer.Argument(metavar="FAMILY", help="Families of the table, or questions; all.")
    ] = None,
    policy: Annotated[list[str] | None, typer.Option(help="A method; repeat, or separate by commas.")] = None,
    runs: Annotated[int | None, typer.Option(help="Instances of each family.")] = None,
    jobs: Annotated[
        str, typer.Option(help="Local processes, or a Dask scheduler such as tcp://host:8786.")
    ] = "1",
    seed: Annotated[int, typer.Option(min=0, help="The first instance; the others follow.")] = 0,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer runs, no slow methods.")] = False,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Output folder; results/TABLE by default.")
    ] = None,
) -> None:
    """Run the experiments of the paper and our own.

    Finished runs are kept in the output folder: the same command resumes. Ctrl-C prints the table so far.

    Example: surepick reproduce arena near-tie --policy BetGapE,LUCB --runs 5
    """
    from surepick.experiments import Settings, run_study, study_named
    from surepick.experiments.tables import as_json, markdown, write_outputs
    from surepick.measure.workers import ended_as_interrupted

    names = [part.strip() for text in policy or () for part in text.split(",") if part.strip()]
    settings = Settings(runs, tuple(names) or None, tuple(families or ()) or None, seed, quick)
    folder = out or Path("results") / (f"{table}-quick" if quick else table)
    is_begun = False
    with ended_as_interrupted(), Progress() as line:

        def show(state: RunProgress) -> None:
            left = duration(state.seconds_left)
            nonlocal is_begun
            if not is_begun:
                is_begun = True
                before = f", {state.resumed} of them finished before" if state.resumed else ""
                print(
                    f"{table}: {state.total} runs{before}; about {left} of one process. "
                    "Ctrl-C prints the table so far; the same command resumes.",
                    file=sys.stderr,
                )
            failed = f", {state.failed} failed" if state.failed else ""
            line.say(f"{table}: {state.done} of {state.total} runs, about {left} left{failed}")

        n_jobs = int(jobs) if jobs.isdecimal() else jobs
        rows = folder / "rows.jsonl"
        result = run_study(study_named(table), settings, rows, jobs=n_jobs, progress=show)
    written = write_outputs(result, folder)
    answer({**as_json(result), "folder": str(folder)}, markdown(result))
    print(f"Written to {folder}: rows.jsonl, {', '.join(path.name for path in written)}", file=sys.stderr)
    if result.failures:
        raise typer.Exit(1)
    if result.n_missing:
        raise typer.Exit(INTERRUPTED)
