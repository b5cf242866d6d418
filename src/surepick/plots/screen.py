"""Figures for screens: plotly, one function for each view, to point at and to zoom into."""

from __future__ import annotations

import math
from typing import Any

from surepick.core.wording import how_many
from surepick.errors import missing_extra
from surepick.plots.curves import Reach, forecast_reach, lead_stretches
from surepick.plots.given import Given, as_arms, as_picture, as_progress, as_rivals
from surepick.plots.style import BLUE, GREEN, GREY, ORANGE, PALETTE, SKY
from surepick.views import Arms, Link, Picture, Progress, Rival, Rivals
from surepick.views.progress import confidence_ticks
from surepick.views.text import plain, short_number, times

_ROW, _TALL_ROW = 26, 38  # pixels, the second with a line of text above the mark
_LONGEST_NAME, _LONGEST_IN_COLUMN = 36, 16  # letters, of a row and beside two columns: telephones are narrow
_INK = "rgba(123, 123, 123, 1)"  # read on white and on dark grounds
_GRID = "rgba(128, 128, 128, 0.25)"
_NOTHING = "rgba(0, 0, 0, 0)"
_MARKS = {
    "from": ("circle", BLUE),
    "to": ("square", ORANGE),
    "start": ("circle", GREEN),
    "end": ("square", GREEN),
}
_AT = {"top": "top center", "bottom": "bottom center", "left": "middle left", "right": "middle right"}


def _figure(height: int, **layout: Any) -> Any:
    """An empty figure on a clear ground, with quiet axes."""
    try:
        import plotly.graph_objects as go
    except ImportError:
        raise missing_extra("plotly", "plots") from None
    axis = {"gridcolor": _GRID, "zerolinecolor": _GRID, "automargin": True}
    ground = {"paper_bgcolor": _NOTHING, "plot_bgcolor": _NOTHING, "font": {"color": _INK, "size": 13}}
    margin = {"l": 10, "r": 10, "t": 30, "b": 10}
    legend = {"orientation": "h", "y": 1.01, "yanchor": "bottom"}
    figure = go.Figure(layout={"height": height, "margin": margin, "legend": legend, **ground, **layout})
    return figure.update_xaxes(**axis).update_yaxes(**axis)


def progress(given: Given | Progress) -> Any:
    """Confidence over measurements, coloured by who led, and where the forecast sees the end."""
    view = as_progress(given)
    figure = _figure(340)
    for colour, name, xs, ys in lead_stretches(view):
        line = {"color": colour, "width": 3}
        values = [None if math.isnan(y) else y for y in ys]
        hover = "%{x:,} measurements: %{y:.0%} of the evidence"
        figure.add_scatter(x=xs, y=values, mode="lines", line=line, name=_text(name, 40), hovertemplate=hover)
    figure.add_hline(1.0, line={"color": GREEN, "dash": "dash", "width": 1})
    ticks, labels = zip(*confidence_ticks(view), strict=True)
    title = "confidence" if view.proved else "evidence"
    figure.update_yaxes(range=[-0.03, 1.18], tickvals=ticks, ticktext=labels, title=title)
    figure.update_xaxes(title="measurements", rangemode="tozero")
    reach = forecast_reach(view)
    if reach is not None:
        _draw_forecast(figure, view, reach)
    return figure


def _draw_forecast(figure: Any, view: Progress, reach: Reach) -> None:
    """Where the curve is thought to reach the line."""
    quiet = {"mode": "lines", "showlegend": False, "hoverinfo": "skip"}
    now, right = view.now.n_measurements, min(reach.high, reach.edge)
    figure.update_xaxes(range=[0, 1.03 * right])
    if reach.low < reach.edge:
        band = {"color": GREEN, "width": 8}
        figure.add_scatter(x=[reach.low, right], y=[1, 1], line=band, opacity=0.35, **quiet)
    if reach.middle < reach.edge:
        way = {"color": GREEN, "width": 1, "dash": "dot"}
        figure.add_scatter(x=[now, reach.middle], y=[view.now.toward or 0.0, 1], line=way, **quiet)
        end = {"marker": {"color": GREEN, "symbol": "diamond", "size": 10}, "hovertext": reach.text}
        figure.add_scatter(x=[reach.middle], y=[1], mode="markers", showlegend=False, **end)
    at = min(reach.middle, reach.edge)
    side = "right" if at > 0.8 * right else "center"
    figure.add_annotation(x=at, y=1, text=reach.text, showarrow=False, yshift=14, xanchor=side)


def rivals(given: Given | Rivals) -> Any:
    """The lead against its rivals: gap and interval of each, and the evidence in its mark."""
    view = as_rivals(given)
    figure = _figure(90 + _TALL_ROW * max(len(view.rows), 1))
    for ruled_out, colour, symbol, name in (
        (False, ORANGE, "diamond-open", "not ruled out"),
        (True, BLUE, "circle", "ruled out"),
    ):
        rows = [(y, row) for y, row in enumerate(view.rows) if row.ruled_out is ruled_out]
        reaches = [row.high - row.gap for _, row in rows]
        figure.add_scatter(
            x=[row.gap for _, row in rows],
            y=[y for y, _ in rows],
            error_x={"array": reaches, "color": colour, "thickness": 2.5, "width": 0},
            mode="markers+text",
            marker={"color": colour, "symbol": symbol, "size": 10},
            text=[times(row.times) for _, row in rows],
            textposition="top center",
            textfont={"size": 11},
            hovertext=[_about(row, view.needed) for _, row in rows],
            hoverinfo="text",
            name=name,
        )
    figure.add_vline(0, line={"color": _INK, "width": 1})
    _name_rows(figure, [row.label for row in view.rows])
    return figure.update_xaxes(title="behind the lead by")


def _about(row: Rival, needed: float) -> str:
    evidence = f"evidence {times(row.times)} of {times(needed)}"
    return f"{_text(row.name, 80)}: behind by {row.gap:.4g} ± {row.error:.2g}, {evidence}"


def _text(name: str, length: int) -> str:
    """A name as text: plotly would take some of it for markup."""
    return plain(name, length).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _name_rows(figure: Any, names: list[str]) -> None:
    places = list(range(len(names)))
    figure.update_yaxes(
        tickvals=places,
        ticktext=[_text(name, _LONGEST_NAME) + "  " for name in names],
        range=[max(len(names), 1) - 0.3, -0.75],
        showgrid=False,
        zeroline=False,
    )


def arms(given: Given | Arms) -> Any:
    """Measurements of each arm as bars, and a mark where the best allocation would have them."""
    view = as_arms(given)
    rows = [row for row in view.rows if row.matters or row.count] or list(view.rows)
    figure = _figure(100 + _ROW * max(len(rows), 1))
    hover = [f"{_text(row.name, 80)}: {how_many(row.count, 'measurement')}" for row in rows]
    shown = {"name": "measured", "marker": {"color": SKY}, "hovertext": hover, "hoverinfo": "text"}
    _bar(figure, [row.count for row in rows], **shown)
    best = [(row.best_count, y) for y, row in enumerate(rows) if row.best_count is not None]
    if best:
        xs, ys = zip(*best, strict=True)
        mark = {"symbol": "line-ns", "size": 14, "line": {"width": 3, "color": _INK}}
        said = {"name": "best, if the estimates are right", "hovertemplate": "best: %{x:,.0f}<extra></extra>"}
        figure.add_scatter(x=xs, y=ys, mode="markers", marker=mark, **said)
    _name_rows(figure, [row.name for row in rows])
    return figure.update_xaxes(title="measurements")


def _bar(figure: Any, values: list[float], **options: Any) -> None:
    """Bars to the right, one for each value, in rows unless told otherwise."""
    figure.add_bar(**{"x": values, "y": list(range(len(values))), "orientation": "h", **options})


def picture(given: Given | Picture) -> Any:
    """The plan itself: on a map, on its graph, in its knapsack, or as bars."""
    view = as_picture(given)
    return {"items": _knapsack, "table": _bars}.get(view.kind, _network)(view)


def _network(view: Picture) -> Any:
    figure = _figure(460, showlegend=False)
    length = _LONGEST_IN_COLUMN if view.in_columns else 24
    largest = max((abs(link.amount) for link in view.links), default=1.0) or 1.0
    for link in view.links:
        _draw_link(figure, view, link, largest)
    for role in dict.fromkeys(place.role for place in view.places):
        places = [place for place in view.places if place.role == role]
        symbol, colour = _MARKS.get(role, ("circle", GREY))
        figure.add_scatter(
            x=[place.x for place in places],
            y=[place.y for place in places],
            mode="markers+text",
            marker={"symbol": symbol, "color": colour, "size": 10},
            text=[_text(place.name, length) for place in places],
            textposition=[_AT[place.side] for place in places],
            hovertext=[_text(place.name, 80) for place in places],
            hoverinfo="text",
            cliponaxis=False,
        )
    if view.in_columns:
        figure.update_xaxes(visible=False, range=[-0.45, 1.45])
        return figure.update_yaxes(visible=False, range=[-0.12, 1.12])
    figure.update_xaxes(visible=False, range=[-0.2, 1.2])
    return figure.update_yaxes(
        visible=False, range=[-0.12, 1.12], scaleanchor="x", scaleratio=1 / view.aspect
    )


def _draw_link(figure: Any, view: Picture, link: Link, largest: float) -> None:
    tail, head = view.places[link.tail], view.places[link.head]
    line: dict[str, Any] = {"color": _GRID, "width": 1.5}
    if link.amount:
        width = 1.5 + 5 * abs(link.amount) / largest if view.kind == "shipments" else 4
        line = {"color": BLUE, "width": width}
    elif link.other:
        line = {"color": ORANGE, "width": 2, "dash": "dash"}
    middle = ((tail.x + head.x) / 2, (tail.y + head.y) / 2)
    figure.add_scatter(
        x=[tail.x, middle[0], head.x],
        y=[tail.y, middle[1], head.y],
        mode="lines",
        line=line,
        hovertext=f"{_text(link.name, 80)}: {link.amount:.4g}",
        hoverinfo="text",
    )


def _knapsack(view: Picture) -> Any:
    figure = _figure(220, barmode="stack")
    packed = [entry for entry in view.entries if entry.amount > 0]
    for i, entry in enumerate(packed):
        size = entry.size or 0.0
        name = f"{entry.amount:g} × {_text(entry.name, 30)} ({short_number(size)} each)"
        _bar(figure, [size * entry.amount], y=[""], name=name, marker={"color": PALETTE[i % len(PALETTE)]})
    if view.room is not None and view.filled is not None and view.filled < view.room:
        free = {"color": _NOTHING, "line": {"color": GREY, "width": 1}}
        _bar(figure, [view.room - view.filled], y=[""], name="free", marker=free)
    return figure.update_xaxes(title="filled")


def _bars(view: Picture) -> Any:
    rows = view.entries[:30]
    figure = _figure(100 + _ROW * max(len(rows), 1), barmode="overlay")
    amounts, others = [row.amount for row in rows], [row.other for row in rows]
    _bar(figure, amounts, name=_text(view.plan, 40), width=0.5, marker={"color": BLUE})
    if view.other is not None:
        hollow = {"color": _NOTHING, "line": {"color": ORANGE, "width": 2}}
        _bar(figure, others, name=_text(view.other, 40), width=0.76, marker=hollow)
    _name_rows(figure, [row.name for row in rows])
    return figure.update_xaxes(title="amount")
