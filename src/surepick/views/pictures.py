"""Pictures as data and SVG: the chart of all plans; a plan on a map or graph, as items, or as a table."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from surepick.core.about import Layout
from surepick.core.arrays import FloatArray
from surepick.core.run import Answer
from surepick.core.wording import shortened
from surepick.views.look import Look
from surepick.views.numbers import value
from surepick.views.view import PlanRow, View

MOST_PLACES = 300  # beyond which a picture shows nothing
MOST_UNUSED = 2000  # links that the plan does not use; beyond it they are left out
SHOWN = 1e-9  # smaller amounts, as a share of the largest, are rounding
MOST_NAMED = 60  # places; the names of more would cover each other
LONGEST_NAME = 24  # letters of a place that are written
LETTER, LINE, CLEAR = 0.022, 0.05, 0.012  # of the drawing's height: a letter's width, a line, the space to it
_WAYS = {"top": (0, 1), "right": (1, 0), "left": (-1, 0), "bottom": (0, -1)}
_PULLS = 60  # steps towards a drawing whose distances are the graph's


@dataclass(frozen=True)
class Place:
    """A place of the picture; x and y are between 0 and 1, x to the right and y up."""

    name: str
    x: float
    y: float
    role: str  # "from", "to", "start", "end" or "node"
    side: str  # of the point on which there is most room for the name: "top", "bottom", "left" or "right"
    amount: float  # that leaves it or comes to it


@dataclass(frozen=True)
class Link:
    """An arm between two places, given by their index; `amount` 0 means that the plan does not use it."""

    arm: int
    name: str
    tail: int
    head: int
    amount: float
    other: float  # what the plan that it is compared with has of it
    mean: float | None


@dataclass(frozen=True)
class Entry:
    """An arm that the plan uses, or the plan that it is compared with."""

    arm: int
    name: str
    amount: float
    other: float
    mean: float | None
    size: float | None  # of one, where arms are items


@dataclass(frozen=True)
class Picture:
    """A plan as something to draw; `kind` is the layout's, or "table"."""

    kind: str
    plan: str
    other: str | None  # the plan that it is compared with
    value: float | None  # by the estimates
    error: float | None
    places: tuple[Place, ...]
    links: tuple[Link, ...]
    aspect: float  # width by height of the places
    geographic: bool
    in_columns: bool  # no places are given: who gives is to the left, who takes to the right
    directed: bool
    room: float | None  # of a knapsack
    filled: float | None
    n_entries: int
    entries: tuple[Entry, ...]


def picture(
    look: Look, plan: Answer | None = None, *, other: Answer | None = None, n: int = 50
) -> Picture | None:
    """A plan, the lead unless given, beside another one; None while nothing leads.

    `n` is how many entries are listed, in the order of the arms.

    >>> import surepick as sp
    >>> from surepick.views import look
    >>> problem = sp.problems.paths([("A", "B", 1), ("B", "C", 1), ("A", "C", 3)], "A", "C", noise=1)
    >>> session = sp.Session.create("memory://", "trips", problem, policy=sp.CombGapE())
    >>> drawn = picture(look(session), 0)
    >>> drawn.kind, [place.name for place in drawn.places]
    ('path', ['A', 'B', 'C'])
    """
    plan = look.leader if plan is None else plan
    if plan is None:
        return None
    vector = _clean(look.vector(plan))
    against = np.zeros_like(vector) if other is None else _clean(look.vector(other))
    layout = look.layout if look.layout is not None and _can_draw(look.layout, look.problem.n_arms) else None
    places, aspect = ((), 1.0) if layout is None else _places(layout, vector)
    value, error = _value(look, vector)
    used = np.flatnonzero((vector != 0) | (against != 0))
    sizes = None if layout is None or not layout.sizes else np.array(layout.sizes)
    return Picture(
        kind="table" if layout is None else layout.kind,
        plan=look.name_of(plan) or "",
        other=look.name_of(other),
        value=value,
        error=error,
        places=places,
        links=() if layout is None else _links(look, layout, vector, against),
        aspect=aspect,
        geographic=layout is not None and layout.geographic,
        in_columns=layout is not None and _in_columns(layout),
        directed=layout is not None and layout.directed,
        room=None if layout is None else layout.room,
        filled=None if sizes is None else float(sizes @ vector),
        n_entries=len(used),
        entries=tuple(
            Entry(
                arm=s,
                name=look.problem.arm_names[s],
                amount=float(vector[s]),
                other=float(against[s]),
                mean=_mean(look, s),
                size=None if sizes is None else float(sizes[s]),
            )
            for s in used[:n].tolist()
        ),
    )


def _clean(vector: FloatArray) -> FloatArray:
    return np.where(np.abs(vector) > SHOWN * np.abs(vector).max(), vector, 0.0)


def _can_draw(layout: Layout, n_arms: int) -> bool:
    if layout.kind == "items":
        return len(layout.sizes) == n_arms
    return len(layout.links) == n_arms and 0 < len(layout.places) <= MOST_PLACES


def _in_columns(layout: Layout) -> bool:
    return layout.points is None and layout.kind in ("shipments", "matching")


def _value(look: Look, vector: FloatArray) -> tuple[float | None, float | None]:
    """The value of the plan by the estimates, and its standard deviation."""
    used = vector != 0
    if not np.isfinite(look.variance[used]).all():
        return None, None
    return float(vector @ look.means), math.sqrt(float(vector[used] ** 2 @ look.variance[used]))


def _mean(look: Look, arm: int) -> float | None:
    return float(look.means[arm]) if np.isfinite(look.variance[arm]) else None


def _links(look: Look, layout: Layout, vector: FloatArray, against: FloatArray) -> tuple[Link, ...]:
    """The links that one of the two plans uses; on a graph, as far as they are not too many, all others."""
    all_of_them = layout.kind in ("path", "tree") and len(layout.links) <= MOST_UNUSED
    return tuple(
        Link(
            arm=s,
            name=look.problem.arm_names[s],
            tail=tail,
            head=head,
            amount=float(vector[s]),
            other=float(against[s]),
            mean=_mean(look, s),
        )
        for s, (tail, head) in enumerate(layout.links)
        if all_of_them or vector[s] or against[s]
    )


def _places(layout: Layout, vector: FloatArray) -> tuple[tuple[Place, ...], float]:
    if not layout.places:
        return (), 1.0
    spots, aspect = _spots(layout)
    roles = _roles(layout)
    amounts = np.zeros(len(layout.places))
    for s in np.flatnonzero(vector).tolist():
        amounts[list(layout.links[s])] += vector[s]
    return tuple(
        Place(name, float(x), float(y), role, side, float(amount))
        for name, (x, y), role, side, amount in zip(
            layout.places, spots, roles, _sides(layout, spots, roles, vector, aspect), amounts, strict=True
        )
    ), aspect


def _roles(layout: Layout) -> list[str]:
    roles = ["node"] * len(layout.places)
    if layout.kind in ("shipments", "matching"):
        for tail, head in layout.links:
            roles[tail], roles[head] = "from", "to"
    for place, role in zip(layout.ends, ("start", "end"), strict=False):
        roles[place] = role
    return roles


def _sides(
    layout: Layout, spots: FloatArray, roles: list[str], vector: FloatArray, aspect: float
) -> list[str]:
    """Return the side for each name where it covers the fewest places, earlier names and used links."""
    if _in_columns(layout):
        return ["left" if role == "from" else "right" for role in roles]
    if len(roles) > MOST_NAMED:
        return ["top"] * len(roles)
    links = [layout.links[s] for s in np.flatnonzero(vector).tolist()]
    on_links = [spots[a] + t * (spots[b] - spots[a]) for a, b in links for t in np.linspace(0.02, 0.98, 49)]
    taken = [*spots, *on_links]
    named: list[tuple[FloatArray, FloatArray]] = []
    chosen: list[str] = []
    scale = np.array([aspect, 1.0])
    for name, spot in zip(layout.places, spots, strict=True):
        half = np.array([LETTER * len(name[:LONGEST_NAME]) / 2, LINE / 2])
        boxes = {side: (spot * scale + np.array(way) * (half + CLEAR), half) for side, way in _WAYS.items()}
        hits = {
            side: sum(bool((np.abs(other * scale - centre) < half).all()) for other in taken)
            + 8 * sum(bool((np.abs(box - centre) < half + size).all()) for box, size in named)
            for side, (centre, half) in boxes.items()
        }
        chosen.append(min(hits, key=lambda side: hits[side]))
        named.append(boxes[chosen[-1]])
    return chosen


def _spots(layout: Layout) -> tuple[FloatArray, float]:
    """Return where the places are drawn, between 0 and 1, and the drawing's ratio of width to height."""
    if layout.points is not None:
        points = np.array(layout.points)
        if layout.geographic:  # degrees of longitude shrink with the latitude
            points[:, 0] *= math.cos(math.radians(float(points[:, 1].mean())))
        return _framed(points)
    if _in_columns(layout):
        return _two_columns(_roles(layout)), 1.0
    ends = layout.ends if len(layout.ends) == 2 else None
    return _framed(_drawing(len(layout.places), layout.links, ends))


def _framed(points: FloatArray) -> tuple[FloatArray, float]:
    low, size = points.min(axis=0), np.ptp(points, axis=0)
    size = np.where(size > 0, size, 1.0)
    aspect = float(np.clip(size[0] / size[1], 0.4, 2.5))
    return np.where(np.ptp(points, axis=0) > 0, (points - low) / size, 0.5), aspect


def _two_columns(roles: list[str]) -> FloatArray:
    """Those that give on the left, those that take on the right, each from the top down."""
    spots = np.zeros((len(roles), 2))
    for x, side in (
        (0.0, [i for i, r in enumerate(roles) if r == "from"]),
        (1.0, [i for i, r in enumerate(roles) if r != "from"]),
    ):
        for row, place in enumerate(side):
            spots[place] = x, 1.0 - (row + 0.5) / len(side)
    return spots


@functools.lru_cache(maxsize=32)
def _drawing(n: int, links: tuple[tuple[int, int], ...], ends: tuple[int, int] | None) -> FloatArray:
    """Points whose distances are about the numbers of links between them; the first end to the left."""
    hops = _hops(n, links)
    points = _from_distances(hops)
    weight = 1.0 / np.maximum(hops, 1.0) ** 2
    np.fill_diagonal(weight, 0.0)
    laplacian = np.diag(weight.sum(axis=1)) - weight
    inverse = np.linalg.pinv(laplacian)
    for _ in range(_PULLS if n <= 120 else 10):  # stress majorisation: each step fits better
        apart = np.linalg.norm(points[:, None] - points[None, :], axis=2)
        ratio = np.divide(hops * weight, apart, out=np.zeros_like(apart), where=apart > 1e-9)
        points = inverse @ ((np.diag(ratio.sum(axis=1)) - ratio) @ points)
    return points if ends is None else _turned(points, *ends)


def _hops(n: int, links: tuple[tuple[int, int], ...]) -> FloatArray:
    """Links between any two places, either way; those that are not connected are a little further apart.

    Layer by layer from all places at once, without scipy, which takes longer to load than this takes.
    """
    tails, heads = np.array(links).T
    near = np.zeros((n, n), dtype=np.float32)  # products of floats are faster than those of whole numbers
    near[tails, heads] = near[heads, tails] = 1.0
    hops, reached, layer = np.full((n, n), np.inf), np.eye(n, dtype=bool), np.eye(n, dtype=bool)
    hops[reached] = 0.0
    for step in range(1, n):
        layer = (layer.astype(np.float32) @ near > 0) & ~reached
        if not layer.any():
            break
        hops[layer] = step
        reached |= layer
    far = 1.5 * max(float(hops[np.isfinite(hops)].max()), 1.0)
    return np.where(np.isfinite(hops), hops, far)


def _from_distances(hops: FloatArray) -> FloatArray:
    """Classical scaling, with a little fixed disorder so that no two places begin at one point."""
    n = len(hops)
    centre = np.eye(n) - 1.0 / n
    values, vectors = np.linalg.eigh(-0.5 * centre @ hops**2 @ centre)
    points = vectors[:, -2:] * np.sqrt(np.maximum(values[-2:], 1e-6)) if n > 1 else np.zeros((1, 2))
    disorder = np.column_stack([np.cos(2.4 * np.arange(n)), np.sin(2.4 * np.arange(n))])
    return np.asarray(points + 0.05 * disorder)


def _turned(points: FloatArray, start: int, end: int) -> FloatArray:
    """The same drawing, turned so that the way from start to end goes to the right."""
    dx, dy = points[end] - points[start]
    length = math.hypot(dx, dy)
    if length < 1e-9:
        return points
    turn = np.array([[dx, -dy], [dy, dx]]) / length
    return np.asarray(points @ turn)


MOST_ROWS = 12  # plans in the chart
WIDTH, ROW, NAMES, TOTALS, TOP = 720, 30, 210, 110, 34  # of the chart, in pixels


def plans_chart(view: View, *, most: int = MOST_ROWS) -> str:
    """Return all plans as SVG: how far behind the leader each is, worse to the right; empty without a leader.

    A dot is an estimate, a whisker two standard errors to each side. Grey plans are ruled out, hollow dots
    are open. The dotted line is epsilon better than the leader: nothing ruled out lies beyond it.
    """
    rows = [row for row in view.plans if row.behind is not None][:most]
    if len(rows) < 2 or view.leader is None:
        return ""
    low, high = _span(rows, view.epsilon)
    left, right, bottom = NAMES, WIDTH - TOTALS, TOP + ROW * len(rows)

    def x(behind: float) -> float:
        return left + (right - left) * (min(max(behind, low), high) - low) / (high - low)

    unit = f"{view.unit} behind" if view.unit else "behind"
    parts = [
        f'<text x="{left}" y="12" class="axis">{escape(f"{unit} {shortened(view.leader, 40)}")}</text>',
        f'<line x1="{x(0):.1f}" x2="{x(0):.1f}" y1="{TOP - 6}" y2="{bottom}" class="zero"/>',
    ]
    parts += [
        f'<text x="{x(tick):.1f}" y="{TOP - 10}" text-anchor="middle" class="tick">{tick:g}</text>'
        for tick in _ticks(0.0, high)
    ]
    if view.epsilon:
        at = x(-view.epsilon)
        note = f"{value(view.epsilon, view.unit)} better"
        parts.append(f'<line x1="{at:.1f}" x2="{at:.1f}" y1="{TOP - 6}" y2="{bottom}" class="epsilon"/>')
        parts.append(f'<text x="{at:.1f}" y="{bottom + 14}" text-anchor="middle" class="tick">{note}</text>')
    parts += [_chart_row(row, TOP + ROW * (k + 0.5), x, view.unit) for k, row in enumerate(rows)]
    caption = "dot: estimate; line: ± 2 standard errors; grey: ruled out" + (
        "; *: partly by a guess" if any(row.uses_guess for row in rows) else ""
    )
    parts.append(f'<text x="{WIDTH}" y="{bottom + 30}" text-anchor="end" class="tick">{caption}</text>')
    label = escape(f"{len(rows)} plans, {unit} {view.leader}")
    return (
        f'<svg class="plans" role="img" aria-label="{label}" viewBox="0 0 {WIDTH} {bottom + 36}" '
        f'style="max-width:{WIDTH}px;width:100%;height:auto">{CHART_STYLE}{"".join(parts)}</svg>'
    )


CHART_STYLE = (
    "<style>.plans text{font:14px system-ui,sans-serif;fill:currentColor}"
    ".plans .tick,.plans .axis{font-size:12px;opacity:.75}"
    ".plans line{stroke:currentColor;stroke-width:2}.plans .zero{stroke-width:1;opacity:.5}"
    ".plans .epsilon{stroke-width:1;stroke-dasharray:2 4;opacity:.8}"
    ".plans .out{opacity:.45}.plans circle{fill:currentColor;stroke:currentColor;stroke-width:2}"
    ".plans .open circle{fill:Canvas}.plans .leader circle{fill:#16803c;stroke:#16803c}"
    ".plans .leader text{font-weight:bold}</style>"
)


def _chart_row(row: PlanRow, y: float, x: Callable[[float], float], unit: str) -> str:
    status = {"leader": "leader", "ruled out": "out"}.get(row.status, "open")
    at, se = row.behind or 0.0, row.behind_se or 0.0
    total = value(row.value, unit, row.se) + ("*" if row.uses_guess else "")
    whisker = (
        f'<line x1="{x(at - 2 * se):.1f}" x2="{x(at + 2 * se):.1f}" y1="{y:.1f}" y2="{y:.1f}"/>' if se else ""
    )
    name = escape(shortened(row.name, 28))
    return (
        f'<g class="{status}" data-plan="{escape(row.name)}"><title>{escape(row.name)}: {row.status}</title>'
        f'<text x="{NAMES - 10}" y="{y + 5:.1f}" text-anchor="end">{name}</text>{whisker}'
        f'<circle cx="{x(at):.1f}" cy="{y:.1f}" r="5"/>'
        f'<text x="{WIDTH}" y="{y + 5:.1f}" text-anchor="end">{escape(total)}</text></g>'
    )


def _span(rows: Sequence[PlanRow], epsilon: float) -> tuple[float, float]:
    """Return the ends of the axis: all dots and whiskers, but no whisker makes it thrice as wide."""
    dots = [row.behind or 0.0 for row in rows]
    ends = [(row.behind or 0.0, 2 * (row.behind_se or 0.0)) for row in rows]
    wide = 2 * max(max(dots) - min(dots), epsilon) or 1.0
    low = max(min(at - se for at, se in ends), min(dots) - wide)
    high = min(max(at + se for at, se in ends), max(dots) + wide)
    low, high = min(low, 0.0, -1.1 * epsilon), max(high, 0.0)
    margin = 0.03 * (high - low) or 1.0
    return low - margin, high + margin


def _ticks(low: float, high: float) -> list[float]:
    """Return up to six round numbers between these."""
    step = 10 ** math.floor(math.log10(max(high - low, 1e-300)))
    step = next(step * k for k in (0.1, 0.2, 0.5, 1, 2) if (high - low) / (step * k) <= 6)
    first = math.ceil(low / step)
    return [k * step for k in range(first, math.floor(high / step) + 1)]
