"""The arena's tables: for a terminal, as Markdown, CSV and JSON, and a figure."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

from surepick.core.wording import how_many
from surepick.experiments import budget_tables
from surepick.experiments.arena import Arena, ArenaTable, Placing
from surepick.experiments.arena_entrants import QUESTIONS
from surepick.experiments.outputs import write_table
from surepick.experiments.tables import (
    as_csv,
    cut_off,
    markdown_table,
    mean,
    median,
    notes_below,
    plain_table,
    run_counts,
    wrong_answers,
)
from surepick.plots.style import BLUE, GREY, ORANGE, saved, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from rich.console import RenderableType

TITLE = "The arena"
_TICKS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 1000, 10_000)  # of the figure, multiples of the limit
HEADER = ["method", "mean × limit", "median × limit", "measurements", "wrong", "cut off", "CPU", "proof"]


def table_rows(table: ArenaTable) -> list[list[str]]:
    """One line per method, the fewest measurements first."""
    return [_line(placing) for placing in table.placings]


def _line(placing: Placing) -> list[str]:
    summary = placing.summary
    return [
        placing.entrant.label,
        mean(summary.multiple),
        median(summary.multiple),
        mean(summary.measurements),
        wrong_answers(summary.errors),
        cut_off(summary),
        f"{placing.cpu_seconds:.3f}",
        "yes" if placing.proved else "no",
    ]


def _title(table: ArenaTable) -> str:
    runs = max((placing.summary.n_runs for placing in table.placings), default=0)
    return f"{table.family.label}: {how_many(runs, 'run')}, {how_many(table.n_instances, 'instance')}"


def markdown(arena: Arena) -> str:
    """A part for each question, a table for each family, and the notes."""
    parts = [f"# {TITLE}"]
    for question, words in QUESTIONS.items():
        tables = [table for table in arena.tables if table.family.question == question and table.placings]
        if tables:
            parts.append(f"## {words}")
        for table in tables:
            title = _title(table)
            parts += [f"### {title[0].upper()}{title[1:]}", markdown_table(HEADER, table_rows(table))]
    if arena.budget is not None:
        parts += [f"## {QUESTIONS['budget']}", *budget_tables.parts(arena.budget, "###")]
    return "\n\n".join([*parts, "## Notes", "\n".join(f"- {note}" for note in all_notes(arena))]) + "\n"


def all_notes(arena: Arena) -> list[str]:
    """The notes of the tables and, where there are some, of the budgets."""
    return [*arena.footnotes, *(arena.budget.footnotes if arena.budget is not None else ())]


def records(arena: Arena) -> list[dict[str, Any]]:
    """Every number in full, one record for each family and method."""
    return [_record(table, placing) for table in arena.tables for placing in table.placings]


def _record(table: ArenaTable, placing: Placing) -> dict[str, Any]:
    summary = placing.summary
    multiple, measured = summary.multiple, summary.measurements
    return {
        "question": table.family.question,
        "family": table.family.name,
        "method": placing.entrant.name,
        "proved": placing.proved,
        **run_counts(summary),
        "multiple_mean": None if multiple is None else multiple.mean.number,
        "multiple_median": None if multiple is None else multiple.median.number,
        "measurements_mean": None if measured is None else measured.mean.number,
        "measurements_deviation": None if measured is None else measured.deviation,
        "cpu_seconds": placing.cpu_seconds,
    }


def csv_text(arena: Arena) -> str:
    """The records as CSV."""
    return as_csv(records(arena), header=["family"])


def as_json(arena: Arena) -> dict[str, Any]:
    """The whole result as JSON values, without the rows."""
    return {
        "title": TITLE,
        "settings": dataclasses.asdict(arena.settings),
        "table": records(arena),
        "budget": None if arena.budget is None else budget_tables.records(arena.budget),
        "footnotes": all_notes(arena),
        "failures": list(arena.failures),
    }


def terminal(arena: Arena) -> RenderableType:
    """The tables for a terminal of 80 columns, and the notes."""
    from rich.console import Group

    shown: list[RenderableType] = []
    for table in arena.tables:
        title = f"{QUESTIONS[table.family.question]}\n{_title(table)}"
        found = plain_table(title, "method", "× limit", "wrong (95%)", "cut", "CPU", "proof")
        for line in table_rows(table):
            found.add_row(line[0], line[1], line[4], line[5], line[6], line[7])
        shown.append(found)
    if arena.budget is not None:
        shown.append(budget_tables.terminal(arena.budget))
    return Group(*shown, notes_below(arena.footnotes))


def write_arena_outputs(arena: Arena, folder: str | Path) -> list[Path]:
    """Write table.md, table.csv, summary.json and the figure, and the same of budgets; their paths."""
    csv, budget = {"table.csv": csv_text(arena)}, arena.budget
    if budget is not None:
        csv["budget.csv"] = budget_tables.csv_text(budget)
    written = [*write_table(folder, markdown(arena), csv, as_json(arena)), *_draw(arena, Path(folder))]
    return written if budget is None else [*written, *budget_tables.draw(budget, folder)]


def _draw(arena: Arena, folder: Path) -> list[Path]:
    """Mean multiples of the limit, a panel for each family; filled where the stop is proved."""
    tables = [table for table in arena.tables if table.placings]
    if not tables:
        return []
    with styled() as plt:
        n_rows = -(-len(tables) // 2)
        heights = [max(len(table.placings) for table in tables[2 * r : 2 * r + 2]) for r in range(n_rows)]
        figure, panels = plt.subplots(
            n_rows,
            2,
            figsize=(10, sum(0.2 * height + 0.9 for height in heights)),
            squeeze=False,
            height_ratios=[height + 4 for height in heights],
        )
        flat = [axes for row in panels for axes in row]
        for axes, table in zip(flat, tables, strict=False):
            _panel(axes, table)
        for axes in flat[len(tables) :]:
            axes.set_visible(False)
        figure.tight_layout()
        return saved(figure, folder, "arena", dpi=130)


def _panel(axes: Axes, table: ArenaTable) -> None:
    for place, placing in enumerate(table.placings):
        multiple = placing.summary.multiple
        if multiple is None:
            continue
        colour = BLUE if placing.proved else ORANGE
        filled = colour if placing.proved else "none"
        axes.plot(
            multiple.mean.number,
            place,
            marker=">" if multiple.mean.at_least else "o",
            color=colour,
            markerfacecolor=filled,
        )
        if placing.summary.errors.wrong:
            wrong = f"  {placing.summary.errors.wrong}/{placing.summary.errors.answers} wrong"
            axes.annotate(wrong, (multiple.mean.number, place), va="center", fontsize=7)
    axes.axvline(1.0, color=GREY, linewidth=1, linestyle="--", zorder=0)
    axes.set_xscale("log")
    low, high = axes.get_xlim()
    axes.set_xticks(_TICKS, [f"{tick:g}" for tick in _TICKS], fontsize=7)
    axes.minorticks_off()
    axes.set_xlim(max(min(low, 0.8), 0.1), max(high * 1.5, 2.0))
    axes.set_yticks(range(len(table.placings)), [s.entrant.label for s in table.placings], fontsize=7)
    axes.invert_yaxis()
    axes.set_title(f"{table.family.label} ({table.family.question})", fontsize=8)
    axes.set_xlabel("measurements / limit; blue, filled: proved; > : cut off", fontsize=7)
    axes.grid(axis="x")
