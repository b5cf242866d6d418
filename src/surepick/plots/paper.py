"""Figures for papers: matplotlib, one function for each view."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from surepick.core.wording import shortened
from surepick.errors import SessionError
from surepick.plots import style
from surepick.plots.style import BLUE, FAINT, GREEN, GREY, INK, ORANGE, PALETTE, PAPER, SKY
from surepick.sessions.session import Session
from surepick.views.look import look
from surepick.views.numbers import value
from surepick.views.pictures import LONGEST_NAME, MOST_NAMED, Link, Picture, Place
from surepick.views.pictures import picture as draw_plan
from surepick.views.view import View

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 6.4  # inches
_ROW = 0.26  # inches, of a line of bars
MOST_PLANS = 24
_DASHED = (0, (5, 3))
_MOST_COPIES = 30  # of an item that are drawn one by one


def plain(name: str, length: int = 40) -> str:
    """Return a name as a label: one line, no control characters, cut off where it is long."""
    return shortened("".join(letter if letter.isprintable() else " " for letter in name), length)


def _subplots(height: float, *, width: float = WIDTH, columns: int = 1, **options: Any) -> tuple[Figure, Any]:
    """A figure, to be called within the style; its texts keep it after the style is gone."""
    sizes = {"figsize": (width, height), "layout": "constrained", "squeeze": False}
    figure, axes = style.pyplot().subplots(1, columns, **sizes, **options)
    return figure, axes[0]


def progress(session: Session) -> Figure:
    """The share of the needed evidence over measurements, on the scale of logarithms, by who led."""
    seen = look(session)
    points = [(point.standing, point.evidence) for point in seen.samples]
    points.append((seen.standing, seen.evidence))
    with style.styled():
        figure, (axes,) = _subplots(2.7)
        colours: dict[str, str] = {}
        last = (0, 0.0)
        for standing, evidence in points:
            weight = seen.weigh(standing, evidence)
            here = (evidence.n_measurements, 0.0 if weight is None else weight.toward)
            name = plain(seen.name_of(standing.leader) or "none")
            fresh = name not in colours
            colour = colours.setdefault(name, PALETTE[len(colours) % len(PALETTE)])
            axes.step(
                *zip(last, here, strict=True), where="post", color=colour, label=name if fresh else None
            )
            last = here
        axes.axhline(1.0, color=GREEN, linewidth=1, linestyle=_DASHED)
        axes.set(ylim=(-0.03, 1.15), xlabel="measurements", ylabel="share of the evidence needed")
        axes.grid(axis="y")
        axes.legend(title="leader", fontsize=8, title_fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))
        return figure


def plans(given: Session | View) -> Figure:
    """All plans by how far behind the leader they are: dot and two standard errors; grey is ruled out."""
    view = given.view() if isinstance(given, Session) else given
    rows = [row for row in view.plans if row.behind is not None][:MOST_PLANS]
    with style.styled():
        figure, (axes,) = _subplots(0.95 + _ROW * max(len(rows), 1))
        axes.axvline(0, color=INK, linewidth=1)
        if view.epsilon:
            axes.axvline(-view.epsilon, color=INK, linewidth=1, linestyle=":")
        colours = {"leader": GREEN, "ruled out": GREY}
        for y, row in enumerate(rows):
            at, colour = row.behind or 0.0, colours.get(row.status, BLUE)
            face = PAPER if row.status == "open" else colour
            axes.errorbar(at, y, xerr=2 * (row.behind_se or 0.0), fmt="o", color=colour, markerfacecolor=face)
        _name_rows(axes, [row.name for row in rows])
        axes.set_xlabel(f"{view.unit} behind {plain(view.leader or 'the leader')}".strip())
        axes.grid(axis="x")
        return figure


def _name_rows(axes: Axes, names: list[str]) -> None:
    """A line for each name, from the top down."""
    axes.set_yticks(range(len(names)), [plain(name, 36) for name in names])
    axes.set_ylim(max(len(names), 1) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)


def arms(given: Session | View) -> Figure:
    """Measurements of each arm as bars."""
    view = given.view() if isinstance(given, Session) else given
    rows = [row for row in view.arms if row.n or row.role == "measured"][:MOST_PLANS]
    with style.styled():
        figure, (axes,) = _subplots(0.85 + _ROW * max(len(rows), 1))
        axes.barh(range(len(rows)), [row.n for row in rows], height=0.62, color=SKY)
        _name_rows(axes, [row.name for row in rows])
        axes.set_xlabel("measurements")
        axes.grid(axis="x")
        return figure


def picture(given: Session | Picture) -> Figure:
    """The leader's plan: on a map, on its graph, in its knapsack, or as bars; beside its closest rival."""
    if isinstance(given, Session):
        seen = look(given)
        drawn = draw_plan(seen, other=seen.rival)
        if drawn is None:
            raise SessionError(f"session {given.name!r} has no leader yet, so there is no plan to draw")
        given = drawn
    view = given
    draw = {"items": _knapsack, "table": _bars}.get(view.kind, _network)
    with style.styled():
        return draw(view)


def _network(view: Picture) -> Figure:
    """Places and links; what the other plan uses instead is dashed."""
    width = 4.6 if view.kind == "matching" and view.in_columns else WIDTH
    height = min(max(width / view.aspect, 2.6), 5.2)
    if view.in_columns:
        height = max(2.2, 0.5 + 0.15 * len(view.places))
    figure, (axes,) = _subplots(height, width=width)
    largest = max((abs(link.amount) for link in view.links), default=1.0) or 1.0
    for link in view.links:
        _draw_link(axes, view, link, largest)
    for place in view.places:
        _draw_place(axes, place, named=len(view.places) <= MOST_NAMED)
    axes.set_axis_off()
    axes.margins(0.3 if view.in_columns else 0.16, 0.08)
    return figure


def _draw_link(axes: Axes, view: Picture, link: Link, largest: float) -> None:
    tail, head = view.places[link.tail], view.places[link.head]
    look: dict[str, Any] = {"color": FAINT, "linewidth": 1.0, "zorder": 1}
    if link.amount:
        width = 0.8 + 3.2 * abs(link.amount) / largest if view.kind == "shipments" else 3.0
        look = {"color": BLUE, "linewidth": width, "zorder": 3}
    elif link.other:
        look = {"color": ORANGE, "linewidth": 1.4, "linestyle": (0, (4, 2)), "zorder": 2}
    arrow = "-|>" if view.directed and (link.amount or link.other) else "-"
    shape = {"arrowstyle": arrow, "shrinkA": 4, "shrinkB": 5, "mutation_scale": 9, "alpha": 0.85}
    axes.annotate("", (head.x, head.y), (tail.x, tail.y), arrowprops={**shape, **look}, zorder=look["zorder"])


def _draw_place(axes: Axes, place: Place, *, named: bool) -> None:
    shape, colour = _ROLES.get(place.role, ("o", INK))
    size = 4.5 if place.role == "node" else 6.5
    axes.plot([place.x], [place.y], shape, color=colour, markersize=size, zorder=4)
    if named:
        x, y, ha, va = _SIDES[place.side]
        away: dict[str, Any] = {"xytext": (x, y), "textcoords": "offset points", "ha": ha, "va": va}
        axes.annotate(plain(place.name, LONGEST_NAME), (place.x, place.y), fontsize=8, zorder=5, **away)


_ROLES = {"from": ("o", BLUE), "to": ("s", ORANGE), "start": ("o", GREEN), "end": ("s", GREEN)}
_SIDES = {
    "top": (0, 5, "center", "bottom"),
    "bottom": (0, -5, "center", "top"),
    "left": (-7, 0, "right", "center"),
    "right": (7, 0, "left", "center"),
}


def _knapsack(view: Picture) -> Figure:
    """The knapsack from left to right: a block for each item that is packed."""
    packed = [entry for entry in view.entries if entry.amount > 0]
    figure, (axes,) = _subplots(1.5 + 0.22 * math.ceil(len(packed) / 3))
    left, block = 0.0, {"height": 0.8, "edgecolor": PAPER, "linewidth": 1}
    for i, entry in enumerate(packed):
        size, colour = entry.size or 0.0, PALETTE[i % len(PALETTE)]
        label = f"{entry.amount:g} × {plain(entry.name, 22)} ({value(size)} each)"
        copies = round(entry.amount) if entry.amount == round(entry.amount) <= _MOST_COPIES else 1
        width = size * entry.amount / copies
        starts = left + width * np.arange(copies)
        axes.barh(np.zeros(copies), width, left=starts, color=colour, label=label, **block)
        left += size * entry.amount
    room = left if view.room is None else view.room
    if left < room:
        free = {"height": 0.8, "facecolor": "none", "edgecolor": GREY, "hatch": "///", "linewidth": 0.8}
        axes.barh(0, room - left, left=left, label=f"free ({value(room - left)})", **free)
    axes.set(xlim=(0, room), ylim=(-0.5, 0.5), yticks=[])
    axes.spines["left"].set_visible(False)
    axes.set_xlabel(f"filled: {value(left)} of {value(room)}")
    figure.legend(loc="outside upper left", ncols=3, fontsize=8)
    return figure


def _bars(view: Picture) -> Figure:
    """Draw how much of each arm the plan has; hollow, what the other plan has."""
    rows = view.entries[:30]
    figure, (axes,) = _subplots(0.85 + _ROW * max(len(rows), 1))
    axes.barh(
        range(len(rows)), [row.amount for row in rows], height=0.5, color=BLUE, label=plain(view.plan, 30)
    )
    if view.other is not None:
        hollow = {"height": 0.76, "facecolor": "none", "edgecolor": ORANGE, "linewidth": 1.2}
        label = f"closest rival: {plain(view.other, 30)}"
        axes.barh(range(len(rows)), [row.other for row in rows], label=label, **hollow)
    figure.legend(fontsize=8, loc="outside upper right", ncols=2)
    _name_rows(axes, [row.name for row in rows])
    axes.set_xlabel("amount")
    axes.grid(axis="x")
    return figure
