"""How commands print: tables, progress, JSON; what libraries print by themselves is kept off by `stdout`."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich import box
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from surepick.core.tables import numeral
from surepick.core.wording import shortened
from surepick.errors import ParameterError

if TYPE_CHECKING:
    from surepick.problems.truth import Truth
    from surepick.simulation.outcome import Outcome

console = Console(highlight=False)
LONGEST_NAME = 100  # letters of a plan in one line
MOST_ROWS = 20  # of a plan or an allocation; the rest is summed up in one line


@contextmanager
def bar(what: str, *, quiet: bool) -> Iterator[Callable[[int, int], None] | None]:
    """A progress bar on standard error, if somebody watches it; None when quiet."""
    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed}/{task.total}"))
    with Progress(*columns, TimeRemainingColumn(), console=console, transient=True) as progress:
        task = progress.add_task(what, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


def make_table(title: str, first: str, *others: str) -> Table:
    """A table whose first column is text and whose other columns are numbers."""
    table = Table(
        title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0)
    )
    table.add_column(first, no_wrap=True)
    for heading in others:
        table.add_column(heading, justify="right", no_wrap=True)
    return table


def number(value: float) -> str:
    """A number in few letters; a dash where there is none."""
    if math.isnan(value):
        return "-"
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}" if abs(value) < 1e7 else f"{value:.2e}"


def is_asked() -> bool:
    """Whether somebody sits at the terminal who can be asked."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def as_number(text: str) -> float:
    """The number that somebody typed, with a decimal point or comma."""
    try:
        return numeral(text)
    except ParameterError as error:
        raise typer.BadParameter(str(error)) from None


@dataclass(frozen=True)
class Typed:
    """A number that somebody typed, with the name of its reading where it is one of several."""

    value: float
    reading: str = ""


def as_typed(text: str) -> Typed:
    """What somebody typed as a measurement: 12.5, or A-B=12.5 for a reading.

    >>> as_typed("12,5"), as_typed("A-B=3")
    (Typed(value=12.5, reading=''), Typed(value=3.0, reading='A-B'))
    """
    reading, _, number = text.rpartition("=")
    return Typed(as_number(number), reading)


def print_json(data: dict[str, Any]) -> None:
    """Print one JSON object, laid out for people."""
    from surepick.sessions.codec import finite_or_none

    print(json.dumps(finite_or_none(data), indent=2))


def short(name: str | None) -> str:
    """A name that fits a line."""
    return shortened(name or "", LONGEST_NAME, "...")


def exit_code(result: Outcome) -> int:
    """0 when the answer is certain, 1 when the run ended without certainty."""
    return 0 if result.plan is not None else 1


def answer(data: Any, as_json: bool, text: Callable[[], None]) -> None:
    """Print the data, or what it gives when called, as one line of JSON; or call what prints it as text."""
    if as_json:
        typer.echo(json.dumps(data() if callable(data) else data, default=list))
    else:
        text()


def say(text: str) -> None:
    """Print one line as it is."""
    typer.echo(text)


def remark(text: str) -> None:
    """Print one line on standard error: about the answer, and no part of it."""
    typer.echo(text, err=True)


def print_columns(columns: tuple[str, ...], rows: list[dict[str, Any]]) -> None:
    """Print rows under the names of their columns, aligned."""
    cells = [columns, *(tuple(_cell(row[column]) for column in columns) for row in rows)]
    widths = [max(len(line[i]) for line in cells) for i in range(len(columns))]
    for line in cells:
        say("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if not isinstance(value, dict):
        return str(value)
    return shortened(json.dumps(value), 100, "...")


def load_file(file: Path, quiet: bool) -> Truth:
    """The problem of this file, with progress while its plans are found."""
    from surepick.inputs.load import read_problem

    with bar("finding candidate plans", quiet=quiet) as progress:
        return read_problem(file, progress=progress)
