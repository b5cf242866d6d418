"""The leader's plan as a figure: on a map, on its graph, in its knapsack, or as bars."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from surepick.core.about import Layout
from surepick.core.arrays import FloatArray
from surepick.errors import SessionError
from surepick.plots import style
from surepick.plots.paper import ROW, WIDTH, name_rows, plain, subplots
from surepick.plots.style import BLUE, FAINT, GREEN, GREY, INK, ORANGE, PALETTE, PAPER
from surepick.sessions.session import Session
from surepick.views.look import Look, look
from surepick.views.numbers import value

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_PLACES = 300  # with more, a plan is drawn as bars
MOST_LINKS = 2000  # beyond which links that no plan uses are left out
MOST_NAMED = 60  # places; the names of more would cover each other
MOST_BARS = 30
MOST_COPIES = 30  # of an item that are drawn one by one
ROUNDING = 1e-9  # smaller amounts, as a share of the largest, are rounding
COLUMNS = ("shipments", "matching")  # kinds whose places give or take
STEPS = 60  # towards a drawing whose distances are the graph's
SIDES = {  # of the point: offset of its name, and how that is aligned
    (0, 1): ((0, 5), "center", "bottom"),
    (0, -1): ((0, -5), "center", "top"),
    (-1, 0): ((-7, 0), "right", "center"),
    (1, 0): ((7, 0), "left", "center"),
}


def picture(session: Session) -> Figure:
    """Draw the leader's plan, and dashed or hollow what its closest rival has instead."""
    seen = look(session)
    if seen.leader is None:
        raise SessionError(f"session {session.name!r} has no leader yet, so there is no plan to draw")
    amounts = _without_dust(seen.vector(seen.leader))
    other = np.zeros_like(amounts) if seen.rival is None else _without_dust(seen.vector(seen.rival))
    layout = seen.layout
    with style.styled():
        if layout is not None and layout.kind == "items" and len(layout.sizes) == len(amounts):
            return _knapsack(layout, amounts, seen.problem.arm_names)
        if layout is not None and len(layout.links) == len(amounts) and len(layout.places) <= MOST_PLACES:
            return _network(layout, amounts, other)
        return _bars(seen, amounts, other)


def _without_dust(vector: FloatArray) -> FloatArray:
    return np.where(np.abs(vector) > ROUNDING * np.abs(vector).max(), vector, 0.0)


def _network(layout: Layout, amounts: FloatArray, other: FloatArray) -> Figure:
    """Draw places and links; the plan's are blue, those of the other plan orange and dashed."""
    points, in_columns = positions(layout), layout.points is None and layout.kind in COLUMNS
    size = np.ptp(points, axis=0)
    height = min(max(WIDTH * size[1] / max(size[0], 1e-9), 2.6), 5.2)
    figure, (axes,) = subplots(max(2.2, 0.5 + 0.15 * len(points)) if in_columns else height)
    largest, is_graph = np.abs(amounts).max() or 1.0, layout.kind in ("path", "tree")
    for (tail, head), amount, rival in zip(layout.links, amounts, other, strict=True):
        if amount:
            width = 0.8 + 3.2 * abs(amount) / largest if layout.kind == "shipments" else 3.0
            line: dict[str, Any] = {"color": BLUE, "linewidth": width}
        elif rival:
            line = {"color": ORANGE, "linewidth": 1.4, "linestyle": (0, (4, 2))}
        elif is_graph and len(layout.links) <= MOST_LINKS:
            line = {"color": FAINT, "linewidth": 1.0}
        else:
            continue
        arrow = "-|>" if layout.directed and (amount or rival) else "-"
        line |= {"arrowstyle": arrow, "shrinkA": 4, "shrinkB": 5, "mutation_scale": 9, "alpha": 0.85}
        axes.annotate(
            "", points[head], points[tail], arrowprops=line, zorder=1 + bool(rival) + 2 * bool(amount)
        )
    givers, takers = {tail for tail, _ in layout.links}, {head for _, head in layout.links}
    for place, (name, spot) in enumerate(zip(layout.places, points, strict=True)):
        shape, colour = "o", INK
        if place in layout.ends:
            shape, colour = "os"[layout.ends.index(place)], GREEN
        elif layout.kind in COLUMNS:
            shape, colour = ("s", ORANGE) if place in takers else ("o", BLUE)
        axes.plot(*spot, shape, color=colour, markersize=4.5 if colour == INK else 6.5, zorder=4)
        if len(points) <= MOST_NAMED:
            way = (-1 if place in givers else 1, 0) if in_columns else _free_side(place, layout, points)
            offset, across, along = SIDES[way]
            text: dict[str, Any] = {
                "xytext": offset,
                "textcoords": "offset points",
                "ha": across,
                "va": along,
            }
            axes.annotate(plain(name, 24), spot, fontsize=8, zorder=5, **text)
    axes.set_axis_off()
    axes.margins(0.3 if in_columns else 0.16, 0.08)
    return figure


def _free_side(place: int, layout: Layout, points: FloatArray) -> tuple[int, int]:
    """Return the side of a place that its links point away from."""
    ends = [pair[place == pair[0]] for pair in layout.links if place in pair]
    pull = sum((points[end] - points[place] for end in ends), np.zeros(2))
    return min(SIDES, key=lambda way: float(np.array(way) @ pull))


def positions(layout: Layout) -> FloatArray:
    """Return where the places are drawn: as given, in two columns, or so that links have equal lengths."""
    if layout.points is not None:
        points = np.array(layout.points)
        if layout.geographic:  # degrees of longitude shrink with the latitude
            points[:, 0] *= math.cos(math.radians(float(points[:, 1].mean())))
        return points
    if layout.kind not in COLUMNS:
        return _graph_drawing(layout)
    takers = {head for _, head in layout.links}
    spots = np.zeros((len(layout.places), 2))
    for x in (0, 1):
        column = [place for place in range(len(spots)) if (place in takers) == bool(x)]
        spots[column] = [(x, 1.0 - (row + 0.5) / len(column)) for row in range(len(column))]
    return spots


def _graph_drawing(layout: Layout) -> FloatArray:
    """Return points whose distances are about the numbers of links between them; ends lie left and right."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import shortest_path

    n, (tails, heads) = len(layout.places), np.array(layout.links).T
    graph = csr_array((np.ones(len(tails)), (tails, heads)), shape=(n, n))
    hops = shortest_path(graph, directed=False, unweighted=True)
    hops = np.where(np.isfinite(hops), hops, 1.5 * hops[np.isfinite(hops)].max())
    centre = np.eye(n) - 1.0 / n  # classical scaling, with a little disorder that parts equal points
    values, vectors = np.linalg.eigh(-0.5 * centre @ hops**2 @ centre)
    points = vectors[:, -2:] * np.sqrt(np.maximum(values[-2:], 1e-6))
    points += 0.05 * np.column_stack([np.cos(2.4 * np.arange(n)), np.sin(2.4 * np.arange(n))])
    weight = 1.0 / np.maximum(hops, 1.0) ** 2
    np.fill_diagonal(weight, 0.0)
    inverse = np.linalg.pinv(np.diag(weight.sum(axis=1)) - weight)
    for _ in range(STEPS):  # stress majorisation: each step fits the distances better
        apart = np.linalg.norm(points[:, None] - points[None, :], axis=2)
        ratio = np.divide(hops * weight, apart, out=np.zeros_like(apart), where=apart > 1e-9)
        points = inverse @ ((np.diag(ratio.sum(axis=1)) - ratio) @ points)
    if len(layout.ends) != 2:
        return np.asarray(points)
    dx, dy = points[layout.ends[1]] - points[layout.ends[0]]
    return np.asarray(points @ np.array([[dx, -dy], [dy, dx]]) / (math.hypot(dx, dy) or 1.0))


def _knapsack(layout: Layout, amounts: FloatArray, names: tuple[str, ...]) -> Figure:
    """Draw the knapsack from left to right: a block for each item that is packed."""
    packed = np.flatnonzero(amounts > 0).tolist()
    figure, (axes,) = subplots(1.5 + 0.22 * math.ceil(len(packed) / 3))
    left, block = 0.0, {"height": 0.8, "edgecolor": PAPER, "linewidth": 1}
    for k, item in enumerate(packed):
        size, amount = layout.sizes[item], float(amounts[item])
        copies = round(amount) if amount == round(amount) <= MOST_COPIES else 1
        width = size * amount / copies
        label = f"{amount:g} × {plain(names[item], 22)} ({value(size)} each)"
        starts, colour = left + width * np.arange(copies), PALETTE[k % len(PALETTE)]
        axes.barh(np.zeros(copies), width, left=starts, color=colour, label=label, **block)
        left += size * amount
    room = left if layout.room is None else layout.room
    if left < room:
        free = {"height": 0.8, "facecolor": "none", "edgecolor": GREY, "hatch": "///", "linewidth": 0.8}
        axes.barh(0, room - left, left=left, label=f"free ({value(room - left)})", **free)
    axes.set(xlim=(0, room), ylim=(-0.5, 0.5), yticks=[], xlabel=f"filled: {value(left)} of {value(room)}")
    axes.spines["left"].set_visible(False)
    figure.legend(loc="outside upper left", ncols=3, fontsize=8)
    return figure


def _bars(seen: Look, amounts: FloatArray, other: FloatArray) -> Figure:
    """Draw how much of each arm the plan has; hollow, what the other plan has."""
    used = np.flatnonzero((amounts != 0) | (other != 0))[:MOST_BARS]
    figure, (axes,) = subplots(0.85 + ROW * max(len(used), 1))
    label = plain(seen.name_of(seen.leader) or "", 30)
    axes.barh(range(len(used)), amounts[used], height=0.5, color=BLUE, label=label)
    if seen.rival is not None:
        hollow = {"height": 0.76, "facecolor": "none", "edgecolor": ORANGE, "linewidth": 1.2}
        label = f"closest rival: {plain(seen.name_of(seen.rival) or '', 30)}"
        axes.barh(range(len(used)), other[used], label=label, **hollow)
    figure.legend(fontsize=8, loc="outside upper right", ncols=2)
    name_rows(axes, [seen.problem.arm_names[s] for s in used])
    axes.set_xlabel("amount")
    axes.grid(axis="x")
    return figure
