"""The eighteen cities of the paper's transport experiment, and the hours between them.

The paper read its hours from a map service on an unstated day; these are two open stand-ins. `data/README.md`
beside this file says where they come from.
"""

from __future__ import annotations

import csv
import functools
from importlib.resources import as_file, files
from typing import Literal, TypeAlias

import numpy as np

from surepick.core.arrays import FloatArray, read_only
from surepick.errors import ProblemError, suggestion
from surepick.tables import Table, read_table

Distances: TypeAlias = Literal["great-circle", "freeway"]
KNOWN: tuple[Distances, ...] = ("great-circle", "freeway")

EARTH_RADIUS_KM = 6371.0
ROAD_PER_GREAT_CIRCLE = 1.25  # roads are about a quarter longer than the straight line
ROAD_KM_PER_HOUR = 95.0
FREEWAY_MILES_PER_HOUR = 61.1  # the median speed that map services imply on such trips


def city_hours(distances: Distances = "great-circle") -> Table:
    """The travel hours from the nine supplier cities (rows) to the nine demander cities (columns).

    "great-circle" takes the straight distance with a detour factor: gaps between plans are generic.
    "freeway" takes the shortest way over US freeways: real roads share segments, so many plans tie.

    >>> hours = city_hours()
    >>> hours.row_names[0], hours.column_names[0], round(float(hours.numbers[0, 0]), 2)
    ('New York', 'Charlotte', 11.24)
    """
    if distances == "great-circle":
        return _great_circle_hours()
    if distances != "freeway":
        raise ProblemError(
            f"there are no distances named {distances!r}; {suggestion(str(distances), KNOWN)}",
            field="distances",
        )
    with as_file(files("surepick.problems") / "data" / "freeway_miles.csv") as path:
        miles = read_table(path)
    return Table(read_only(miles.numbers / FREEWAY_MILES_PER_HOUR), miles.row_names, miles.column_names)


@functools.cache
def _cities() -> list[dict[str, str]]:
    text = (files("surepick.problems") / "data" / "cities.csv").read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


def _great_circle_hours() -> Table:
    places = _cities()
    ends = [[place for place in places if place["role"] == role] for role in ("supplier", "demander")]
    suppliers, demanders = (tuple(place["city"] for place in end) for end in ends)
    here, there = (_radians(end) for end in ends)
    km = _great_circle_km(here[:, None, :], there[None, :, :])
    return Table(read_only(km * ROAD_PER_GREAT_CIRCLE / ROAD_KM_PER_HOUR), suppliers, demanders)


def _radians(places: list[dict[str, str]]) -> FloatArray:
    degrees = [(float(place["latitude"]), float(place["longitude"])) for place in places]
    return np.asarray(np.radians(degrees))


def _great_circle_km(here: FloatArray, there: FloatArray) -> FloatArray:
    """The haversine formula, on (..., 2) arrays of latitude and longitude in radians."""
    half = np.sin((there - here) / 2) ** 2
    chord = half[..., 0] + np.cos(here[..., 0]) * np.cos(there[..., 0]) * half[..., 1]
    return np.asarray(2 * EARTH_RADIUS_KM * np.arcsin(np.sqrt(chord)))
