"""Figures of a session, drawn by matplotlib from its View.

    figure = plots.plans(session)
    figure.savefig("plans.pdf")

`plans` and `arms` take a session or its View.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from surepick.core.wording import shortened
from surepick.plots.style import BLUE, GREEN, GREY, INK, PAPER, SKY, styled
from surepick.sessions.session import Session
from surepick.views.view import View

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["arms", "plans"]

WIDTH = 6.4  # inches
ROW = 0.26  # inches, of a line of bars
MOST_PLANS = 24


def plain(name: str, length: int = 40) -> str:
    """Return a name as a label: one line, no control characters, cut off where it is long."""
    return shortened("".join(letter if letter.isprintable() else " " for letter in name), length)


def plans(given: Session | View) -> Figure:
    """Draw all plans by how far behind the leader they are, with two standard errors; grey is ruled out."""
    view = given.view() if isinstance(given, Session) else given
    rows = [row for row in view.plans if row.behind is not None][:MOST_PLANS]
    figure: Figure
    with styled() as pyplot:
        figure, axes = pyplot.subplots(figsize=(WIDTH, 0.95 + ROW * max(len(rows), 1)), layout="constrained")
        axes.axvline(0, color=INK, linewidth=1)
        if view.epsilon:
            axes.axvline(-view.epsilon, color=INK, linewidth=1, linestyle=":")
        colours = {"leader": GREEN, "ruled out": GREY}
        for y, row in enumerate(rows):
            at, colour = row.behind or 0.0, colours.get(row.status, BLUE)
            face = PAPER if row.status == "open" else colour
            axes.errorbar(at, y, xerr=2 * (row.behind_se or 0.0), fmt="o", color=colour, markerfacecolor=face)
        name_rows(axes, [row.name for row in rows])
        axes.set_xlabel(f"{view.unit} behind {plain(view.leader or 'the leader')}".strip())
        axes.grid(axis="x")
        return figure


def name_rows(axes: Axes, names: list[str]) -> None:
    """Name the rows from the top down."""
    axes.set_yticks(range(len(names)), [plain(name, 36) for name in names])
    axes.set_ylim(max(len(names), 1) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)


def arms(given: Session | View) -> Figure:
    """Draw the measurements of each arm as bars."""
    view = given.view() if isinstance(given, Session) else given
    rows = [row for row in view.arms if row.n or row.role == "measured"][:MOST_PLANS]
    figure: Figure
    with styled() as pyplot:
        figure, axes = pyplot.subplots(figsize=(WIDTH, 0.85 + ROW * max(len(rows), 1)), layout="constrained")
        axes.barh(range(len(rows)), [row.n for row in rows], height=0.62, color=SKY)
        name_rows(axes, [row.name for row in rows])
        axes.set_xlabel("measurements")
        axes.grid(axis="x")
        return figure
