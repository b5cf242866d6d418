"""Where the arms of a problem lie, so that a plan can be drawn: cities and roads, nodes and edges, items.

A layout decides nothing. It is kept beside the problem, never in its fingerprint, and a problem without one
is shown as a table.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from surepick.errors import ProblemError, suggestion

FORMAT = 1
KINDS = ("shipments", "path", "tree", "matching", "items")


@dataclass(frozen=True)
class Layout:
    """What a picture of a plan needs beyond the plan.

    An arm is a link between two places (`links`, one pair of indices into `places` for each arm), or an item
    of a size (`sizes`, one for each arm). `points` are where the places are: x to the right, y up; with
    `geographic` longitude and latitude in degrees. None: wherever there is room.

    >>> Layout("path", places=("A", "B"), links=((0, 1),), ends=(0, 1)).places
    ('A', 'B')
    """

    kind: str  # one of KINDS
    places: tuple[str, ...] = ()
    links: tuple[tuple[int, int], ...] = ()
    points: tuple[tuple[float, float], ...] | None = None
    geographic: bool = False
    directed: bool = False
    ends: tuple[int, ...] = ()  # where a path begins and where it ends
    sizes: tuple[float, ...] = ()
    room: float | None = None  # how much the items may fill

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ProblemError(
                f"there is no layout of kind {self.kind!r}; {suggestion(str(self.kind), KINDS)}", field="kind"
            )
        inside = range(len(self.places))
        if not all(end in inside for pair in self.links for end in pair) or not set(self.ends) <= set(inside):
            raise ProblemError(
                f"links and ends of a layout are indices of its {len(self.places)} places", field="links"
            )
        if self.points is not None and len(self.points) != len(self.places):
            raise ProblemError(
                f"a layout needs a point for each of its {len(self.places)} places, got {len(self.points)}",
                field="points",
            )
        if not all(map(math.isfinite, self._numbers())):
            raise ProblemError("the points and sizes of a layout must be finite", field="points")

    def _numbers(self) -> list[float]:
        return [*self.sizes, *(number for point in self.points or () for number in point)]

    def check_arms(self, n_arms: int) -> None:
        """Refuse a layout of another number of arms."""
        described = len(self.sizes) if self.kind == "items" else len(self.links)
        if described != n_arms:
            raise ProblemError(
                f"the layout is one of {described} arms and the problem has {n_arms}", field="layout"
            )

    def to_json(self) -> dict[str, Any]:
        """Return this as JSON values."""
        return {"format": FORMAT, **asdict(self)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any] | None) -> Layout | None:
        """The layout that these JSON values describe; None for none, and for one of a newer surepick.

        >>> layout = Layout("items", sizes=(2.0, 3.0), room=7.0)
        >>> Layout.from_json(layout.to_json()) == layout
        True
        """
        if data is None or data.get("format") != FORMAT:
            return None
        return cls(**{field.name: _frozen(data[field.name]) for field in fields(cls)})


def located(layout: Layout | None, points: Mapping[str, Sequence[float]], *, geographic: bool) -> Layout:
    """Return the layout with every place at the point of its name; other points are ignored.

    >>> road = Layout("path", places=("A", "B"), links=((0, 1),))
    >>> located(road, {"B": (4, 1), "A": (0, 0)}, geographic=False).points
    ((0.0, 0.0), (4.0, 1.0))
    """
    if layout is None or not layout.places:
        raise ProblemError(
            "there is nothing to put on a map: arms are links between places in transports, paths, trees and "
            "matchings alone",
            field="places",
        )
    found = tuple(_point(name, points, geographic) for name in layout.places)
    return replace(layout, points=found, geographic=geographic)


def _point(name: str, points: Mapping[str, Sequence[float]], geographic: bool) -> tuple[float, float]:
    """Return the checked point of the place with this name."""
    if name not in points:
        raise ProblemError(
            f"there is no point for the place {name!r}; {suggestion(name, points)}", field="places"
        )
    order = "(longitude, latitude)" if geographic else "(x, y)"
    try:
        x, y = (float(number) for number in points[name])
    except (TypeError, ValueError, OverflowError):
        x = y = math.nan
    if not (math.isfinite(x) and math.isfinite(y)):
        raise ProblemError(
            f"the place {name!r} needs two finite numbers, {order}, got {points[name]!r}", field="places"
        )
    if geographic and not (abs(x) <= 360 and abs(y) <= 90):
        raise ProblemError(
            f"the place {name!r} needs a longitude from -360 to 360 and a latitude from -90 to 90, in "
            f"degrees, got longitude {x:g} and latitude {y:g}",
            field="places",
        )
    return x, y


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list | tuple) else value
