"""`reproduce`: the paper's tables, the arena, and studies of our own."""

from __future__ import annotations

import json
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from surepick.cli.output import INTERRUPTED
from surepick.cli.output import settings as call

if TYPE_CHECKING:
    from surepick.experiments.running import RunProgress

MINUTE = 60.0  # between two lines of progress where the output is not a terminal


def reproduce(
    table: Annotated[
        str,
        typer.Argument(
            metavar="TABLE",
            help="knapsack (Table 1), transport (Table 2), budget, arena, oracle, polytope, radii, prior, "
            "estimates or final-batch.",
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

    Try: surepick reproduce arena near-tie --policy BetGapE,LUCB --runs 5
    """
    from surepick.experiments import Settings, run_study, study_named
    from surepick.experiments.tables import as_json, markdown, write_outputs

    names = [part.strip() for text in policy or () for part in text.split(",") if part.strip()]
    settings = Settings(runs, tuple(names) or None, tuple(families or ()) or None, seed, quick)
    folder = out or Path("results") / (f"{table}-quick" if quick else table)
    screen = Screen(table)
    with _terminated_as_interrupt():
        result = run_study(
            study_named(table),
            settings,
            folder / "rows.jsonl",
            jobs=int(jobs) if jobs.isdecimal() else jobs,
            progress=screen.show,
        )
    screen.clear()
    written = write_outputs(result, folder)
    if call.json:
        typer.echo(json.dumps({**as_json(result), "folder": str(folder)}, indent=2, ensure_ascii=False))
    else:
        typer.echo(markdown(result))
    typer.echo(f"Written to {folder}: rows.jsonl, {', '.join(path.name for path in written)}", err=True)
    if result.failures:
        raise typer.Exit(1)
    if result.n_missing:
        raise typer.Exit(INTERRUPTED)


@contextmanager
def _terminated_as_interrupt() -> Iterator[None]:
    """Treat SIGTERM as Ctrl-C, so that `kill` prints the table so far too."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    try:
        before = signal.signal(signal.SIGTERM, interrupt)
    except ValueError:  # not the main thread: leave signals alone
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


class Screen:
    """Prints progress on standard error: in place on a terminal, otherwise a line a minute."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._in_place = sys.stderr.isatty()
        self._shown: float | None = None

    def show(self, state: RunProgress) -> None:
        """Say at first how long the study will take, then where it stands, if the last line is old enough."""
        now = time.monotonic()
        left = "" if state.seconds_left is None else duration(state.seconds_left)
        if self._shown is None:
            before = f", {state.resumed} of them finished before" if state.resumed else ""
            typer.echo(
                f"{self._name}: {state.total} runs{before}; about {left} of one process. "
                "Ctrl-C prints the table so far; the same command resumes.",
                err=True,
            )
        elif now - self._shown < (0.2 if self._in_place else MINUTE):
            return
        else:
            failed = f", {state.failed} failed" if state.failed else ""
            so_far = f"{state.done} of {state.total} runs, {duration(state.seconds)} so far"
            line = f"{self._name}: {so_far}, about {left} left{failed}"
            typer.echo(f"\r{line[:79]:<79}" if self._in_place else line, err=True, nl=not self._in_place)
        self._shown = now

    def clear(self) -> None:
        """Clear the line in place."""
        if self._in_place:
            typer.echo(f"\r{'':<79}\r", err=True, nl=False)


def duration(seconds: float) -> str:
    """Return a rough duration.

    >>> [duration(x) for x in (4.2, 130, 5000)]
    ['4 s', '2 min', '1.4 h']
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 3600 else f"{seconds / 3600:.1f} h"
