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
    name: Annotated[
        str,
        typer.Argument(
            metavar="STUDY",
            help="knapsack (Table 1), transport (Table 2), budget, arena, oracle, polytope or radii.",
        ),
    ],
    runs: Annotated[int | None, typer.Option(help="Instances of each family.")] = None,
    policy: Annotated[list[str] | None, typer.Option(help="A method; repeat, or separate by commas.")] = None,
    families: Annotated[
        str | None, typer.Option(help="Families or questions, separated by commas; all by default.")
    ] = None,
    budget: Annotated[int | None, typer.Option(help="Cut runs off after this many measurements.")] = None,
    delta: Annotated[float, typer.Option(help="Allowed probability of a wrong answer.")] = 0.05,
    seed: Annotated[int, typer.Option(min=0, help="The first instance; the others follow.")] = 0,
    distances: Annotated[
        str, typer.Option(help="For transport: great-circle, freeway, or a CSV file of hours.")
    ] = "great-circle",
    jobs: Annotated[int | None, typer.Option(help="Local processes; one per core by default.")] = None,
    cluster: Annotated[
        str | None, typer.Option(help="Run on a Dask cluster: tcp://host:8786, or local:N.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Output folder; results/STUDY by default.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer runs and smaller budgets.")] = False,
) -> None:
    """Run the experiments of the paper and our own.

    Finished runs are kept in the output folder: the same command resumes. Ctrl-C prints the table so far.

    Try: surepick reproduce arena --families near-tie --policy BetGapE,LUCB --runs 5
    """
    from surepick.experiments import Settings, run_study, study_named
    from surepick.experiments.studies import with_distances
    from surepick.experiments.tables import as_json as to_json
    from surepick.experiments.tables import markdown, write_outputs

    study = with_distances(study_named(name), distances)
    names = None if policy is None else _names(",".join(policy))
    settings = Settings(
        runs, names, None if families is None else _names(families), budget, seed, delta, quick
    )
    folder = out or Path("results") / (f"{name}-quick" if quick else name)
    screen = Progress(name)
    with _terminated_as_interrupt():
        result = run_study(
            study,
            settings,
            folder / "rows.jsonl",
            jobs=jobs,
            cluster=cluster,
            progress=screen.show,
            announce=screen.announce,
        )
    screen.close()
    written = write_outputs(result, folder)
    if call.json:
        typer.echo(json.dumps({**to_json(result), "folder": str(folder)}, indent=2, ensure_ascii=False))
    else:
        typer.echo(markdown(result))
    typer.echo(f"Written to {folder}: rows.jsonl, {', '.join(path.name for path in written)}", err=True)
    if result.failures:
        raise typer.Exit(1)
    if result.n_missing:
        raise typer.Exit(INTERRUPTED)


def _names(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


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


class Progress:
    """Prints progress on standard error: in place on a terminal, otherwise a line a minute."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._in_place = sys.stderr.isatty()
        self._shown = time.monotonic()

    def announce(self, runs: int, done: int, seconds: float) -> None:
        """Say how long the study will take."""
        rest = f", {done} of them finished before" if done else ""
        typer.echo(
            f"{self._name}: {runs} runs{rest}; about {duration(seconds)} of one process. "
            "Ctrl-C prints the table so far; the same command resumes.",
            err=True,
        )

    def show(self, state: RunProgress) -> None:
        """Print where the run stands, if the last line is old enough."""
        now = time.monotonic()
        if now - self._shown < (0.2 if self._in_place else MINUTE):
            return
        self._shown = now
        line = f"{self._name}: {describe(state)}"
        typer.echo(f"\r{line[:79]:<79}" if self._in_place else line, err=True, nl=not self._in_place)

    def close(self) -> None:
        """Clear the line in place."""
        if self._in_place:
            typer.echo(f"\r{'':<79}\r", err=True, nl=False)


def describe(state: RunProgress) -> str:
    """Return where a run stands, in words.

    >>> from surepick.experiments.running import RunProgress
    >>> describe(RunProgress(5, 9, 2, 1, 10.0, 130.0, None))
    '5 of 9 runs, 10 s so far, about 2 min left, 1 failed'
    """
    left = [] if state.seconds_left is None else [f"about {duration(state.seconds_left)} left"]
    failed = [f"{state.failed} failed"] if state.failed else []
    return ", ".join(
        [f"{state.done} of {state.total} runs", f"{duration(state.seconds)} so far", *left, *failed]
    )


def duration(seconds: float) -> str:
    """Return a rough duration.

    >>> [duration(x) for x in (4.2, 130, 5000)]
    ['4 s', '2 min', '1.4 h']
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 3600 else f"{seconds / 3600:.1f} h"
