"""Where things go in a drawing: views turned into coordinates, which the templates draw as SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from surepick import views
from surepick.core.wording import shortened
from surepick.views.progress import confidence_ticks
from surepick.views.text import number

WIDTH, HEIGHT = 640.0, 250.0  # of a chart, in its own units
LEFT, RIGHT, TOP, BOTTOM = 24.0, 24.0, 24.0, 54.0  # margins
CELL = 180.0  # the width of a chart within a table
WIDEST = 9.0  # the stroke of the largest amount
LONGEST_NAME = 22  # letters that are written into a picture
LETTER = 13.0  # the width of one on a telephone, where the letters are largest for the picture
_LABELS = {  # anchor and distance of a label on each side of its place
    "left": ("end", -10.0, 4.0),
    "right": ("start", 10.0, 4.0),
    "top": ("middle", 0.0, -11.0),
    "bottom": ("middle", 0.0, 25.0),
}


@dataclass(frozen=True)
class Tick:
    """A place on an axis with its label."""

    at: float
    label: str


@dataclass(frozen=True)
class NewLead:
    """A moment when another plan took the lead."""

    x: float
    y: float
    name: str
    n_measurements: int


@dataclass(frozen=True)
class ProgressChart:
    """Evidence on the way to what is needed, over measurements."""

    width: float
    height: float
    base: float  # y of nothing
    goal: float  # y of enough
    left: float
    right: float
    points: str
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]  # confidences, or shares of the evidence
    changes: tuple[NewLead, ...]
    last: tuple[float, float]


def progress_chart(progress: views.Progress) -> ProgressChart:
    """The share of the evidence that is needed, along the way."""
    base, goal, right = HEIGHT - BOTTOM, TOP + 6, WIDTH - RIGHT
    most, ticks = max(progress.now.n_measurements, 1), confidence_ticks(progress, closest=0.2)
    spots = [
        (LEFT + (right - LEFT) * point.n_measurements / most, base - (base - goal) * (point.toward or 0.0))
        for point in progress.points
    ]
    changes, before = [], None
    for (x, y), point in zip(spots, progress.points, strict=True):
        if point.lead_name is not None and point.lead_name != before:
            changes.append(NewLead(x, y, point.lead_name, point.n_measurements))
            before = point.lead_name
    return ProgressChart(
        WIDTH,
        HEIGHT,
        base,
        goal,
        LEFT,
        right,
        " ".join(f"{x:.1f},{y:.1f}" for x, y in spots),
        tuple(Tick(LEFT + (right - LEFT) * value / most, f"{value:,}") for value in nice_steps(most)),
        tuple(Tick(base - (base - goal) * at, label) for at, label in ticks if 0 < at < 0.99),
        tuple(changes[-12:]),
        spots[-1],
    )


def nice_steps(most: int) -> list[int]:
    """About five round numbers from 0 up to this one.

    >>> nice_steps(1234), nice_steps(3)
    ([0, 500, 1000], [0, 1, 2, 3])
    """
    rough = most / 4
    power = 10.0 ** math.floor(math.log10(max(rough, 1e-9)))
    step = max(1, round(next(m * power for m in (1, 2, 5, 10) if m * power >= rough)))
    return list(range(0, math.floor(most) + 1, step))


@dataclass(frozen=True)
class IntervalChart:
    """A gap with its interval, on the scale that all rows of a table share."""

    low: float
    high: float
    at: float
    zero: float
    is_open: bool


def interval(rival: views.Rival, rows: Sequence[views.Rival]) -> IntervalChart:
    """Where this rival's interval lies among the intervals of its table."""
    ends = [end for row in rows for end in (row.low, row.high, row.gap) if math.isfinite(end)]
    low, high = min([*ends, 0.0]), max([*ends, 0.0])
    width = (high - low) or 1.0

    def place(value: float) -> float:
        return 6 + (CELL - 12) * min(max((value - low) / width, 0.0), 1.0)

    return IntervalChart(place(rival.low), place(rival.high), place(rival.gap), place(0.0), rival.low <= 0)


@dataclass(frozen=True)
class ShareChart:
    """A share of the measurements and the best one, on the scale that all rows of a table share."""

    bar: float
    mark: float | None


def share(arm: views.Arm, rows: Sequence[views.Arm]) -> ShareChart:
    """How long the bar of this arm is among the bars of its table."""
    most = max([*(max(row.share, row.best_share or 0.0) for row in rows), 1e-9])
    mark = None if arm.best_share is None else CELL * arm.best_share / most
    return ShareChart(CELL * arm.share / most, mark)


@dataclass(frozen=True)
class BagItem:
    """An item of a knapsack, as many as are packed."""

    x: float
    width: float
    text: str


@dataclass(frozen=True)
class BagChart:
    """A knapsack from left to right; what is free is at its end."""

    blocks: tuple[BagItem, ...]
    filled: float


def bag_chart(picture: views.Picture) -> BagChart:
    """Where the items of a knapsack lie."""
    sizes = [(entry, (entry.size or 0.0) * entry.amount) for entry in picture.entries if entry.amount > 0]
    scale = WIDTH / max(sum(size for _, size in sizes), picture.room or 0.0, 1e-9)
    blocks, x = [], 0.0
    for entry, size in sizes:
        text = f"{number(entry.amount)} × {entry.name}, {number(entry.size)} each"
        blocks.append(BagItem(x, scale * size, text))
        x += scale * size
    return BagChart(tuple(blocks), x)


@dataclass(frozen=True)
class Spot:
    """A place of a picture."""

    x: float
    y: float
    name: str
    label: str
    role: str
    anchor: str  # of its label, which stands at dx, dy from it
    dx: float
    dy: float


@dataclass(frozen=True)
class Line:
    """A link of a picture."""

    x1: float
    y1: float
    x2: float
    y2: float
    width: float
    text: str
    used: bool
    other: bool  # only the plan that it is compared with has it


@dataclass(frozen=True)
class MapChart:
    """A plan as places and links."""

    width: float
    height: float
    spots: tuple[Spot, ...]
    lines: tuple[Line, ...]


def map_chart(picture: views.Picture) -> MapChart:
    """Where the places and links of a plan are drawn."""
    edge_x, edge_y = 100.0, 32.0
    height = min(max((WIDTH - 2 * edge_x) / picture.aspect, 200.0), 520.0)
    if picture.in_columns:
        rows = max(sum(place.role == side for place in picture.places) for side in ("from", "to"))
        edge_x, height = 150.0, max(26.0 * rows, 120.0)
    spots = tuple(
        _spot(place, edge_x + place.x * (WIDTH - 2 * edge_x), edge_y + (1 - place.y) * height)
        for place in picture.places
    )
    most = max(
        [abs(link.amount) for link in picture.links] + [abs(link.other) for link in picture.links] + [1e-9]
    )
    lines = tuple(
        _line(link, spots, most) for link in sorted(picture.links, key=lambda link: link.amount != 0)
    )
    return MapChart(WIDTH, height + 2 * edge_y, spots, lines)


def _spot(place: views.Place, x: float, y: float) -> Spot:
    label = shortened(place.name, LONGEST_NAME)
    anchor, dx, dy = _LABELS[_side_with_room(place.side, x, LETTER * len(label))]
    return Spot(x, y, place.name, label, place.role, anchor, dx, dy)


def _side_with_room(side: str, x: float, width: float) -> str:
    """The side that is wanted for a label of this width, or another where it would stick out.

    >>> _side_with_room("left", 300, 80), _side_with_room("left", 50, 80), _side_with_room("top", 600, 120)
    ('left', 'right', 'left')
    """
    room_left, room_right = x - 10, WIDTH - x - 10
    fits = {"left": width <= room_left, "right": width <= room_right}
    middle = width / 2 <= min(room_left, room_right)
    if fits.get(side, middle):
        return side
    return "right" if room_right > room_left else "left"


def _line(link: views.Link, spots: Sequence[Spot], most: float) -> Line:
    tail, head = spots[link.tail], spots[link.head]
    used, amount = link.amount != 0, abs(link.amount or link.other)
    each = "" if link.mean is None else f", estimated {number(link.mean)} each"
    text = f"{link.name}: {number(link.amount)}{each}"
    return Line(
        tail.x,
        tail.y,
        head.x,
        head.y,
        max(1.5, WIDEST * amount / most) if amount else 1.0,
        text,
        used,
        not used and link.other != 0,
    )
