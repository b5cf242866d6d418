"""Figures of a reproduction: measurements per method, their distribution, multiples of the limit."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from surepick.experiments.cases import Row
from surepick.experiments.paper import METHODS, REFERENCE
from surepick.experiments.reproduction import ColumnResult, Reproduction
from surepick.experiments.summary import relative_measurements, spread
from surepick.plots.style import BLUE, GREEN, INK, OCHRE, ORANGE, PAPER, PINK, RED, SKY, pyplot, saved, styled
from surepick.views.text import superscript

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

# One colour per method everywhere.
_PALETTE = (BLUE, SKY, ORANGE, RED, PINK, GREEN, INK, OCHRE)
_COLOURS = {method.name: _PALETTE[i % len(_PALETTE)] for i, method in enumerate(METHODS)}
_OTHERS = OCHRE  # policies of other packages
_CUT_OFF = "; hollow or dotted: at least this, cut off by a budget"

Numbers = Callable[[ColumnResult, str], tuple[Sequence[float], Sequence[bool]]]


def write_figures(result: Reproduction, folder: str | Path) -> list[Path]:
    """Draw the four figures into the folder, each as PNG and SVG; their paths."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    for name, draw in (
        ("measurements", measurements_figure),
        ("distribution", distribution_figure),
        ("limit", limit_figure),
        ("table", table_figure),
    ):
        with styled():
            written += saved(draw(result), folder, f"{result.experiment.name}-{name}")
    return written


def measurements_figure(result: Reproduction) -> Figure:
    """Every run's measurements, a line per method, on a log scale."""
    return _strips(result, _measurements, "measurements until the answer")


def limit_figure(result: Reproduction) -> Figure:
    """Every run's measurements as a multiple of the limit."""
    figure = _strips(result, _multiples, "measurements as a multiple of the limit")
    for axes in figure.axes:
        axes.axvline(1.0, color="0.3", linewidth=1, linestyle="--", zorder=0)
        axes.annotate(
            "limit", (1.0, 1.0), xycoords=("data", "axes fraction"), ha="center", va="bottom", fontsize=8
        )
        axes.set_title(axes.get_title(), pad=14)
    return figure


def distribution_figure(result: Reproduction) -> Figure:
    """The share of runs that had answered by each multiple of CombGapE's measurements."""
    figure, panels = _panels(result, height=3.4)
    for axes, found in zip(panels, result.columns, strict=True):
        for method in result.methods:
            if method.name != REFERENCE.name:
                _answered(
                    axes,
                    *_relative(found, method.name),
                    colour=_COLOURS.get(method.name, _OTHERS),
                    label=method.label,
                )
        axes.axvline(1.0, color="0.3", linewidth=1, linestyle="--", zorder=0)
        axes.set(xscale="log", ylim=(0, 1.03), title=_title(result, found))
        axes.grid(axis="x", color="0.9")
    _plain_ticks(panels)
    panels[0].set_ylabel("share of runs that have answered")
    note = "; triangle: its other runs were cut off" if any(row.cut_off for row in result.rows) else ""
    figure.supxlabel(f"measurements relative to CombGapE (dashed: as many{note})", fontsize=9)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(
        handles,
        labels,
        loc="outside upper center",
        ncols=len(labels) if len(panels) > 1 else 3,
        frameon=False,
    )
    return figure


def table_figure(result: Reproduction) -> Figure:
    """The paper's table as a figure: mean measurements relative to CombGapE, ours beside the printed ones."""
    figure, panels = _panels(result, height=1.35 + 0.38 * len(result.methods))
    for axes, found in zip(panels, result.columns, strict=True):
        for line, method in enumerate(result.methods):
            _table_line(axes, line, found, method.name)
        axes.axvline(1.0, color="0.3", linewidth=1, linestyle="--", zorder=0)
        axes.set(xscale="log", title=_title(result, found), ylim=(len(result.methods) - 0.5, -0.5))
        axes.set_yticks(range(len(result.methods)), [method.label for method in result.methods])
        axes.grid(axis="x")
        axes.tick_params(axis="y", length=0)
    _plain_ticks(panels)
    figure.supxlabel(
        "measurements relative to CombGapE on the same instance (line: 10% to 90% of our runs)", fontsize=9
    )
    figure.legend(handles=_table_legend(), loc="outside upper center", ncols=3)
    return figure


def _table_line(axes: Axes, line: int, found: ColumnResult, method: str) -> None:
    colour, printed = _COLOURS.get(method, _OTHERS), found.printed(method)
    values, _ = _relative(found, method)
    ours = found.summaries[method].relative
    if ours is not None:
        axes.plot(np.quantile(values, [0.1, 0.9]), [line - 0.12] * 2, color=colour, linewidth=2, alpha=0.6)
        shape, face = (">", PAPER) if ours.mean.at_least else ("o", colour)
        axes.plot(
            [ours.mean.number], [line - 0.12], shape, color=colour, markersize=6.5, markerfacecolor=face
        )
    if printed is not None and method != REFERENCE.name:
        axes.plot([printed[0]], [line + 0.16], "D", color=INK, markersize=5, markerfacecolor=PAPER)


def _table_legend() -> list[Line2D]:
    from matplotlib.lines import Line2D

    shapes = {
        "our mean": ("o", INK),
        "our mean is at least this": (">", PAPER),
        "the paper's mean": ("D", PAPER),
    }
    return [
        Line2D(
            [], [], marker=mark, color=INK, markerfacecolor=face, linestyle="none", markersize=6, label=text
        )
        for text, (mark, face) in shapes.items()
    ]


def _strips(result: Reproduction, numbers: Numbers, label: str) -> Figure:
    """A panel per column: a line per method with a dot per run and a bar at the median."""
    figure, panels = _panels(result, height=1.1 + 0.38 * len(result.methods))
    cut_off = False
    for axes, found in zip(panels, result.columns, strict=True):
        for line, method in enumerate(result.methods):
            values, bounds = numbers(found, method.name)
            _strip(axes, line, values, bounds, _COLOURS.get(method.name, _OTHERS))
            cut_off = cut_off or any(bounds)
        axes.set(xscale="log", title=_title(result, found), ylim=(len(result.methods) - 0.5, -0.5))
        axes.set_yticks(range(len(result.methods)), [method.label for method in result.methods])
        axes.grid(axis="x", color="0.9")
        axes.tick_params(axis="y", length=0)
    _plain_ticks(panels)
    figure.supxlabel(f"{label} (bar: median{_CUT_OFF if cut_off else ''})", fontsize=9)
    return figure


def _title(result: Reproduction, found: ColumnResult) -> str:
    return f"{result.experiment.name}, {found.column.label}"


def _plain_ticks(panels: Sequence[Axes]) -> None:
    """Powers of ten, those near 1 as plain numbers; no labels between them."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    def label(value: float, _: object) -> str:
        exponent = round(math.log10(value))
        return f"{value:g}" if -2 <= exponent <= 3 else f"10{superscript(exponent)}"

    for axes in panels:
        axes.xaxis.set_major_formatter(FuncFormatter(label))
        axes.xaxis.set_minor_formatter(NullFormatter())


def _strip(axes: Axes, line: int, values: Sequence[float], bounds: Sequence[bool], colour: str) -> None:
    if not values:
        return
    x, hollow = np.asarray(values, dtype=float), np.asarray(bounds, dtype=bool)
    y = line + np.linspace(-0.22, 0.22, len(x)) if len(x) > 1 else np.array([float(line)])
    axes.plot(x[~hollow], y[~hollow], "o", color=colour, markersize=3.5, alpha=0.7, markeredgewidth=0)
    axes.plot(x[hollow], y[hollow], ">", color=colour, markersize=4.5, fillstyle="none", markeredgewidth=0.9)
    middle = spread(values, bounds)
    if middle is not None:
        ends, style = [line - 0.33, line + 0.33], (0, (1.2, 0.8)) if middle.median.at_least else "solid"
        axes.plot([middle.median.number] * 2, ends, color=colour, linewidth=2.2, linestyle=style, zorder=3)


def _answered(
    axes: Axes, values: Sequence[float], bounds: Sequence[bool], *, colour: str, label: str
) -> None:
    """Steps up at every answer; runs that were cut off never answer, so the curve stays below 1."""
    answered = np.sort([value for value, bound in zip(values, bounds, strict=True) if not bound])
    if not values:
        return
    shares = np.arange(len(answered) + 1) / len(values)
    x = np.concatenate([answered[:1], answered, [max(values)]]) if len(answered) else np.array([max(values)])
    y = np.concatenate([shares, shares[-1:]]) if len(answered) else np.array([0.0])
    axes.step(x, y, where="post", color=colour, linewidth=1.6, label=label)
    if len(answered) < len(values):
        axes.plot(x[-1:], y[-1:], ">", color=colour, markersize=5, fillstyle="none")


def _measurements(found: ColumnResult, method: str) -> tuple[list[float], list[bool]]:
    rows = found.rows[method]
    return [float(row.n_measurements) for row in rows], [row.cut_off for row in rows]


def _multiples(found: ColumnResult, method: str) -> tuple[list[float], list[bool]]:
    rows: list[Row] = [row for row in found.rows[method] if math.isfinite(row.limit)]
    return [row.multiple for row in rows], [row.cut_off for row in rows]


def _relative(found: ColumnResult, method: str) -> tuple[list[float], list[bool]]:
    return relative_measurements(found.rows[method], found.rows[REFERENCE.name])


def _panels(result: Reproduction, *, height: float) -> tuple[Figure, list[Axes]]:
    n = len(result.columns)
    figure, panels = pyplot().subplots(
        1,
        n,
        figsize=(2.2 + 2.9 * n if n > 1 else 7.0, height),
        sharex=True,
        sharey=True,
        squeeze=False,
        layout="constrained",
    )
    return figure, list(panels[0])
