"""What curves of confidence have in common, whatever draws them."""

from __future__ import annotations

import math
from typing import NamedTuple

from surepick.plots.style import GREY, PALETTE
from surepick.views import Progress
from surepick.views.text import rounded

FARTHEST = 4.0  # times the measurements so far that the forecast may stretch the axis to
EARLIER = "earlier leads"


class Stretch(NamedTuple):
    """Where one plan led; between two stretches of the same plan there is a nan."""

    colour: str
    name: str
    measurements: list[float]
    toward: list[float]  # the share of the evidence that is needed


def lead_stretches(view: Progress) -> list[Stretch]:
    """The curve as steps, one part for each plan that led; the latest seven have colours of their own."""
    points = [point for point in view.points if point.toward is not None]
    latest = list(dict.fromkeys(point.lead_name or "" for point in reversed(points)))[: len(PALETTE) - 1]
    parts = {name: Stretch(PALETTE[i], name, [], []) for i, name in enumerate(latest)}
    parts[EARLIER] = Stretch(GREY, EARLIER, [], [])
    for i, point in enumerate(points):
        part = parts.get(point.lead_name or "", parts[EARLIER])
        follows = points[i + 1] if i + 1 < len(points) else point
        toward = point.toward or 0.0
        part.measurements.extend([point.n_measurements, follows.n_measurements])
        part.toward.extend([toward, toward])
        if parts.get(follows.lead_name or "", parts[EARLIER]) is not part:
            part.measurements.append(follows.n_measurements)
            part.toward.append(math.nan)
    return [part for part in parts.values() if part.measurements]


class Reach(NamedTuple):
    """The forecast in measurements from the start; infinite where there is no end in sight."""

    low: float
    middle: float
    high: float
    edge: float  # to which the axis is stretched at most
    text: str


def forecast_reach(view: Progress) -> Reach | None:
    """Where the forecast sees the end, if there is a forecast."""
    coming, now = view.forecast, view.now.n_measurements
    if coming is None:
        return None
    low, middle, high = (math.inf if n is None else now + n for n in (coming.low, coming.middle, coming.high))
    text = "no end in sight" if middle == math.inf else f"forecast: {rounded(middle)}"
    return Reach(low, middle, high, FARTHEST * max(now, 1), text)
