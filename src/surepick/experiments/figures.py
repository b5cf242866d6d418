"""One figure of a study, as SVG: a panel per family with a line per method."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from surepick.experiments.study import Family, Result
from surepick.experiments.summary import Spread, Summary
from surepick.plots.style import BLUE, GREY, INK, ORANGE, PALETTE, PAPER, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

KEY = (
    "dot: mean, filled if proved, triangle: at least; line: median to 90% quantile; diamond: the paper's mean"
)


def write_figure(result: Result, folder: str | Path) -> list[Path]:
    """Draw the study into the folder; return its path, or nothing without matplotlib or rows."""
    if find_spec("matplotlib") is None or not result.cells:
        return []
    path = Path(folder) / f"{result.study.name}.svg"
    with styled() as plt:
        figure = draw(result, plt)
        figure.savefig(path, metadata={"Date": None})
        plt.close(figure)
    return [path]


def draw(result: Result, plt: Any) -> Figure:
    """Return the figure: measurements of each method, or wrong leaders at each budget."""
    families = [f for f in result.families if any(name == f.name for name, *_ in result.cells)]
    n_columns = min(3, len(families))
    n_rows = -(-len(families) // n_columns)
    height = 1.2 + 0.22 * len(result.methods) if len(result.study.budgets) == 1 else 3.2
    figure: Figure
    figure, panels = plt.subplots(
        n_rows,
        n_columns,
        figsize=(1.5 + 3.3 * n_columns, n_rows * height),
        squeeze=False,
        layout="constrained",
    )
    for axes, family in zip(panels.flat, families, strict=False):
        (_strips if len(result.study.budgets) == 1 else _curves)(axes, result, family)
        axes.set_title(family.label)
    for axes in panels.flat[len(families) :]:
        axes.set_visible(False)
    if len(result.study.budgets) == 1:
        figure.supxlabel(KEY, fontsize=8)
    return figure


def _strips(axes: Axes, result: Result, family: Family) -> None:
    """Draw each method from its median to its 90% quantile, with a dot at the mean, as `KEY` says."""
    is_ratio = result.study.reference is not None
    budget = next(iter(result.study.budgets))
    found: list[tuple[str, str, Summary, Spread]] = []
    for method in result.methods:
        cell = result.cells.get((family.name, method.name, budget))
        numbers = cell and (cell.relative if is_ratio else cell.multiple or cell.measurements)
        if cell and numbers:
            found.append((method.name, method.label, cell, numbers))
    for place, (name, _, cell, numbers) in enumerate(found):
        colour = BLUE if cell.proved else ORANGE
        axes.plot([numbers.median.number, numbers.high.number], [place] * 2, color=colour, alpha=0.6)
        axes.plot(
            [numbers.mean.number],
            [place],
            ">" if numbers.mean.at_least else "o",
            color=colour,
            markersize=5,
            markerfacecolor=colour if cell.proved else PAPER,
        )
        if name in family.printed:
            axes.plot([family.printed[name][0]], [place], "D", color=INK, markersize=4, markerfacecolor=PAPER)
    axes.axvline(1.0, color=GREY, linewidth=1, linestyle="--", zorder=0)
    axes.set(xscale="log", ylim=(len(found) - 0.5, -0.5))
    axes.set_yticks(range(len(found)), [label for _, label, _, _ in found], fontsize=7)
    unit = f"measurements / {result.study.reference}'s" if is_ratio else "measurements / limit"
    axes.set_xlabel(unit, fontsize=8)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,g}")
    axes.minorticks_off()
    axes.tick_params(axis="x", labelsize=6)
    axes.grid(axis="x")


def _curves(axes: Axes, result: Result, family: Family) -> None:
    """Draw the share of wrong leaders against the budget."""
    budgets = list(result.study.budgets)
    for place, method in enumerate(result.methods):
        cells = [result.cells.get((family.name, method.name, budget)) for budget in budgets]
        points = [(k, *cell.lead_rate) for k, cell in enumerate(cells) if cell is not None]
        if points:
            x, rates, errors = zip(*points, strict=True)
            colour = PALETTE[place % len(PALETTE)]
            axes.errorbar(x, rates, yerr=errors, label=method.label, color=colour, marker="o", markersize=3)
    axes.set_xticks(range(len(budgets)), budgets)
    axes.set_ylim(0, 1)
    axes.set_ylabel("wrong leaders")
    axes.grid(axis="y")
    axes.legend(fontsize=6)
