"""The table of budgets: for a terminal, as Markdown, CSV and JSON, and a figure."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from surepick.core.wording import how_many
from surepick.experiments.budgets import (
    MULTIPLES,
    UNIFORM,
    BudgetCell,
    BudgetMethod,
    BudgetResult,
    FamilyResult,
)
from surepick.experiments.outputs import write_table
from surepick.experiments.summary import brief
from surepick.experiments.tables import NOTHING, as_csv, markdown_table, notes_below, plain_table
from surepick.plots.style import PALETTE, saved, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from rich.console import RenderableType

TITLE = "What a budget buys"
_CAPTION = (
    "Wrong leads in per cent at budgets of .25 to 4 times T*, and what they lose beside Uniform's loss. The "
    "lowest of a column is bold, with all that are within two standard errors of it."
)
_LABELS = {0.25: ".25 T*", 0.5: ".5 T*", 1.0: "T*", 2.0: "2 T*", 4.0: "4 T*"}


def family_rows(result: BudgetResult, found: FamilyResult) -> tuple[list[str], list[list[str]]]:
    """One line per method: wrong leads at each budget, then the loss at each budget."""
    header = ["method", *_LABELS.values(), *(f"loss {label}" for label in _LABELS.values())]
    lines = []
    for method in _present(result, found):
        wrong = [_wrong(found, method.name, multiple) for multiple in MULTIPLES]
        loss = [_loss(found, method.name, multiple) for multiple in MULTIPLES]
        lines.append([method.label, *wrong, *loss])
    return header, lines


def _present(result: BudgetResult, found: FamilyResult) -> list[BudgetMethod]:
    return [method for method in result.methods if (method.name, MULTIPLES[0]) in found.cells]


def _wrong(found: FamilyResult, method: str, multiple: float) -> str:
    cell = found.cells[method, multiple]
    if not cell.runs:
        return NOTHING
    text = f"{100 * cell.rate:.1f} ±{100 * cell.error:.1f}"
    return f"**{text}**" if is_lowest(found, method, multiple) else text


def is_lowest(found: FamilyResult, method: str, multiple: float) -> bool:
    """Whether no other method has fewer wrong leads at this budget, beyond two standard errors."""
    here = [cell for (_, at), cell in found.cells.items() if at == multiple and cell.runs]
    cell, best = found.cells[method, multiple], min(here, key=lambda other: other.rate)
    return cell.rate - best.rate <= 2.0 * math.hypot(cell.error, best.error)


def _loss(found: FamilyResult, method: str, multiple: float) -> str:
    relative = relative_loss(found, method, multiple)
    return NOTHING if relative is None else f"{relative:.2f}"


def relative_loss(found: FamilyResult, method: str, multiple: float) -> float | None:
    """The mean loss over Uniform's; None where Uniform lost nothing."""
    base = found.cells[UNIFORM.name, multiple].loss
    return found.cells[method, multiple].loss / base if base > 0 else None


def _title(found: FamilyResult) -> str:
    runs = max((cell.runs for cell in found.cells.values()), default=0)
    low, high = (brief(time) for time in found.times)
    times = f"T* {low}" if low == high else f"T* {low} to {high}"
    size = f"{how_many(found.n_instances, 'instance')}, {how_many(runs, 'run')}"
    return f"{found.family.label}: {size}, {times}"


def markdown(result: BudgetResult) -> str:
    """A table for each family, and the footnotes."""
    notes = "\n".join(f"- {note}" for note in result.footnotes)
    return "\n\n".join([f"# {TITLE}", *parts(result, "##"), "## Notes", notes]) + "\n"


def parts(result: BudgetResult, heading: str) -> list[str]:
    """What the tables show, and a table for each family that has rows, under headings of this level."""
    found = [_CAPTION]
    for family in result.families:
        if family.n_instances:
            title = _title(family)
            rows = markdown_table(*family_rows(result, family))
            found += [f"{heading} {title[0].upper()}{title[1:]}", rows]
    return found


def records(result: BudgetResult) -> list[dict[str, Any]]:
    """Every number in full, one record for each family, method and budget."""
    return [
        {
            "family": found.family.name,
            "method": method.name,
            "budget_over_T*": multiple,
            **_numbers(found.cells[method.name, multiple]),
            "relative_loss": relative_loss(found, method.name, multiple),
        }
        for found in result.families
        for method in _present(result, found)
        for multiple in MULTIPLES
    ]


def _numbers(cell: BudgetCell) -> dict[str, Any]:
    return {**dataclasses.asdict(cell), "rate": cell.rate, "rate_error": cell.error}


def csv_text(result: BudgetResult) -> str:
    """The records as CSV."""
    return as_csv(records(result))


def as_json(result: BudgetResult) -> dict[str, Any]:
    """The whole result as JSON values, without the rows."""
    return {
        "experiment": "budget",
        "title": TITLE,
        "settings": dataclasses.asdict(result.settings),
        "table": records(result),
        "footnotes": list(result.footnotes),
        "failures": list(result.failures),
    }


def terminal(result: BudgetResult) -> RenderableType:
    """Wrong leads and losses of each family, for a terminal of 80 columns, and the footnotes."""
    from rich.console import Group

    shown: list[RenderableType] = []
    for found in result.families:
        wrong = plain_table(f"{_title(found)}\nwrong leads, %", "method", *_LABELS.values())
        loss = plain_table("loss beside Uniform's", "method", *_LABELS.values())
        for method in _present(result, found):
            cells = [_wrong(found, method.name, multiple) for multiple in MULTIPLES]
            wrong.add_row(method.label, *(_bold(cell) for cell in cells))
            loss.add_row(method.label, *(_loss(found, method.name, multiple) for multiple in MULTIPLES))
        shown += [wrong, loss]
    return Group(*shown, notes_below(result.footnotes))


def _bold(cell: str) -> str:
    return f"[bold]{cell.strip('*')}[/]" if cell.startswith("**") else cell


def write_budget_outputs(result: BudgetResult, folder: str | Path) -> list[Path]:
    """Write table.md, table.csv, summary.json and the figure; their paths."""
    csv = {"table.csv": csv_text(result)}
    return [*write_table(folder, markdown(result), csv, as_json(result)), *draw(result, folder)]


def draw(result: BudgetResult, folder: str | Path) -> list[Path]:
    """Wrong leads against the budget, a panel for each family."""
    with styled() as plt:
        n = len(result.families)
        figure, panels = plt.subplots(1, n, figsize=(3.1 * n, 3.6), sharey=True, squeeze=False)
        for axes, found in zip(panels[0], result.families, strict=True):
            _panel(axes, result, found)
        panels[0][0].set_ylabel("wrong leads, %")
        handles: dict[Any, Any] = {}
        for axes in panels[0]:
            handles |= {line.get_label(): line for line in axes.get_lines()}
        figure.legend(handles.values(), handles.keys(), loc="lower center", ncols=4)
        figure.tight_layout(rect=(0, 0.14, 1, 1))
        return saved(figure, folder, "budget-wrong")


def _panel(axes: Axes, result: BudgetResult, found: FamilyResult) -> None:
    for place, method in enumerate(result.methods):
        if (method.name, MULTIPLES[0]) not in found.cells:
            continue
        cells = [found.cells[method.name, multiple] for multiple in MULTIPLES]
        axes.errorbar(
            MULTIPLES,
            [100 * cell.rate for cell in cells],
            yerr=[100 * cell.error for cell in cells],
            label=method.label,
            color=PALETTE[place % len(PALETTE)],
            linewidth=2.2 if place == 0 else 1.2,
            marker="o",
            markersize=3,
        )[0].set_label(method.label)
    axes.set_xscale("log", base=2)
    axes.set_xticks(MULTIPLES, [".25", ".5", "1", "2", "4"])
    axes.set_xlabel("budget / T*")
    axes.set_ylim(0, 100)
    axes.set_title(found.family.label, fontsize=9)
    axes.grid(axis="y")
