"""The tables of a reproduction, for a terminal, as Markdown, CSV and JSON; and what all tables share."""

from __future__ import annotations

import csv
import dataclasses
import io
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from surepick.core.wording import how_many
from surepick.experiments.reproduction import ColumnResult, Reproduction, has_guarantee
from surepick.experiments.summary import Errors, MethodSummary, Spread, brief

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

NOTHING = "-"
_CAPTION = (
    "Measurements relative to CombGapE on the same instance, mean ± standard deviation, beside the values "
    "that the paper prints."
)
DETAILS = (
    "runs",
    "median relative",
    "median measurements",
    "wrong answers",
    "cut off",
    "mean × limit",
    "median × limit",
    "seconds",
)


def paper_rows(result: Reproduction) -> tuple[list[str], list[list[str]]]:
    """The table as in the paper: a line per method, and for each column our value and the paper's."""
    header = ["method"]
    for found in result.columns:
        header += [found.column.label, "paper"]
    lines = []
    for method in result.methods:
        line = [_label(result, method.name, method.label)]
        for found in result.columns:
            line += [_relative(found.summaries[method.name].relative), _printed(found, method.name)]
        lines.append(line)
    return header, lines


def detail_rows(result: Reproduction) -> tuple[list[str], list[list[str]]]:
    """Everything else that is known of a method, a line for each column and method."""
    lines = [
        [found.column.label, _label(result, name, summary.label), *_details(summary)]
        for found in result.columns
        for name, summary in found.summaries.items()
    ]
    return ["instances", "method", *DETAILS], lines


def _label(result: Reproduction, name: str, label: str) -> str:
    return label if has_guarantee(result, name) else f"{label} †"


def _relative(spread: Spread | None) -> str:
    if spread is None:
        return NOTHING
    return f"{spread.mean} ± {brief(spread.deviation)}"


def _printed(found: ColumnResult, method: str) -> str:
    value = found.printed(method)
    return NOTHING if value is None else f"{_as_printed(value[0])} ± {_as_printed(value[1])}"


def _as_printed(number: float) -> str:
    """The paper's own digits."""
    return brief(number) if number >= 1000 else f"{number:g}"


def _details(summary: MethodSummary) -> list[str]:
    return [
        str(summary.n_runs),
        median(summary.relative),
        median(summary.measurements),
        wrong_answers(summary.errors),
        cut_off(summary),
        mean(summary.multiple),
        median(summary.multiple),
        _seconds(summary.seconds),
    ]


def _seconds(seconds: float) -> str:
    if seconds < 0.01:
        return "<.01"
    return f"{seconds:.2f}" if seconds < 10 else brief(seconds)


def mean(spread: Spread | None) -> str:
    """As it stands in a table."""
    return NOTHING if spread is None else str(spread.mean)


def median(spread: Spread | None) -> str:
    """As it stands in a table."""
    return NOTHING if spread is None else str(spread.median)


def cut_off(summary: MethodSummary) -> str:
    """How many runs their budget ended, if any."""
    return str(summary.n_cut_off) if summary.n_cut_off else NOTHING


def wrong_answers(errors: Errors) -> str:
    """The count and the interval of the rate.

    >>> from surepick.experiments.summary import error_rate
    >>> wrong_answers(error_rate(1, 30))
    '1 of 30 (0.084-17%)'
    """
    if not errors.answers:
        return "no answers"
    return f"{errors.wrong} of {errors.answers} ({brief(100 * errors.low)}-{brief(100 * errors.high)}%)"


def markdown(result: Reproduction) -> str:
    """Both tables and the footnotes as Markdown."""
    parts = [
        f"# {result.experiment.title}",
        _CAPTION,
        markdown_table(*paper_rows(result)),
        "## Details",
        markdown_table(*detail_rows(result)),
        "## Notes",
        "\n".join(f"- {note}" for note in result.footnotes),
    ]
    return "\n\n".join(parts) + "\n"


def markdown_table(header: list[str], lines: list[list[str]]) -> str:
    """The lines as a Markdown table whose numbers stand to the right."""
    rule = ["---", *["---:"] * (len(header) - 1)]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [header, rule, *lines])


def csv_text(result: Reproduction) -> str:
    """One line per column and method with every number in full."""
    return as_csv([_record(result, found, name) for found in result.columns for name in found.summaries])


def as_csv(records: Sequence[Mapping[str, Any]], header: Sequence[str] = ()) -> str:
    """The records as CSV; `header` is for when there are none."""
    stream = io.StringIO()
    names = list(records[0]) if records else list(header)
    writer = csv.DictWriter(stream, fieldnames=names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    return stream.getvalue()


def _record(result: Reproduction, found: ColumnResult, name: str) -> dict[str, Any]:
    summary, printed = found.summaries[name], found.printed(name) or ("", "")
    return {
        "experiment": result.experiment.name,
        "instances": found.column.label,
        "method": name,
        "guarantee": has_guarantee(result, name),
        **run_counts(summary),
        **_spread_record("relative", summary.relative),
        "paper_relative_mean": printed[0],
        "paper_relative_deviation": printed[1],
        **_spread_record("measurements", summary.measurements),
        **_spread_record("multiple_of_limit", summary.multiple),
        "seconds_mean": summary.seconds,
    }


def run_counts(summary: MethodSummary) -> dict[str, Any]:
    """How many runs, answers and wrong answers there were, with the interval of the error rate."""
    return {
        "runs": summary.n_runs,
        "cut_off": summary.n_cut_off,
        "answers": summary.errors.answers,
        "wrong": summary.errors.wrong,
        "wrong_rate_low": summary.errors.low,
        "wrong_rate_high": summary.errors.high,
    }


def _spread_record(name: str, spread: Spread | None) -> dict[str, Any]:
    if spread is None:
        return {
            f"{name}_{part}": ""
            for part in ("n", "mean", "deviation", "median", "mean_is_lower_bound", "median_is_lower_bound")
        }
    return {
        f"{name}_n": spread.n,
        f"{name}_mean": spread.mean.number,
        f"{name}_deviation": "" if math.isnan(spread.deviation) else spread.deviation,
        f"{name}_median": spread.median.number,
        f"{name}_mean_is_lower_bound": spread.mean.at_least,
        f"{name}_median_is_lower_bound": spread.median.at_least,
    }


def as_json(result: Reproduction) -> dict[str, Any]:
    """The whole result as JSON values, without the rows."""
    return {
        "experiment": result.experiment.name,
        "title": result.experiment.title,
        "settings": dataclasses.asdict(result.settings),
        "table": [
            {key: None if value == "" else value for key, value in _record(result, found, name).items()}
            for found in result.columns
            for name in found.summaries
        ],
        "footnotes": list(result.footnotes),
        "failures": list(result.failures),
    }


def terminal(result: Reproduction) -> RenderableType:
    """Both tables and the footnotes, for a terminal of 80 columns or more."""
    from rich.console import Group
    from rich.text import Text

    title = Text(
        f"{result.experiment.title}, measurements relative to CombGapE (in brackets: the paper's)",
        style="bold",
    )
    return Group(title, _paper_table(result), *_detail_tables(result), notes_below(result.footnotes))


def _paper_table(result: Reproduction) -> RenderableType:
    """As in the paper; below each of our values, in brackets, what it printed."""
    table = plain_table(None, "method", *(found.column.label for found in result.columns))
    for method in result.methods:
        cells = []
        for found in result.columns:
            printed = _printed(found, method.name)
            paper = "" if printed == NOTHING else f"\n[dim]({printed})[/]"
            cells.append(_relative(found.summaries[method.name].relative) + paper)
        table.add_row(_label(result, method.name, method.label), *cells)
    return table


# The details that fit into 80 columns, by their place in DETAILS; the others are in the files.
_NARROW = {
    1: "median\nratio",
    2: "median\nmeas.",
    3: "wrong answers\n(95% interval)",
    4: "cut\noff",
    6: "median\n× limit",
    7: "s a\nrun",
}


def _detail_tables(result: Reproduction) -> list[RenderableType]:
    tables: list[RenderableType] = []
    for found in result.columns:
        n_runs = max(summary.n_runs for summary in found.summaries.values())
        table = plain_table(f"{found.column.label}, {how_many(n_runs, 'run')}", "\nmethod", *_NARROW.values())
        for name, summary in found.summaries.items():
            details = _details(summary)
            table.add_row(_label(result, name, summary.label), *(details[place] for place in _NARROW))
        tables.append(table)
    return tables


def notes_below(notes: Sequence[str]) -> Table:
    """The notes of a table, for a terminal."""
    from rich.table import Table
    from rich.text import Text

    found = Table.grid(padding=(0, 1))
    for note in notes:
        found.add_row("·", Text(note, style="dim"))
    return found


def plain_table(title: str | None, first: str, *others: str) -> Table:
    """A table of a name and numbers."""
    from rich import box
    from rich.table import Table

    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column(first, no_wrap=True)
    for name in others:
        table.add_column(name, justify="right", no_wrap=True)
    return table
