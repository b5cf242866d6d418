"""Where the places of a problem file are: the key `places`, for maps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from surepick.core.oracle_problem import AnyProblem
from surepick.core.tables import Table
from surepick.inputs.section import Section, is_list_of_numbers, is_number

# The names that the two coordinates may have, that to the right first, and whether they are geographic.
_COORDINATES = {
    ("x", "y"): False,
    ("lon", "lat"): True,
    ("longitude", "latitude"): True,
}
_EXPECTED = "'x' and 'y', or 'lat' and 'lon'"


def on_map(document: Section, problem: AnyProblem) -> AnyProblem:
    """The problem with its places where the file says that they are, if it does."""
    if "places" not in document.values:
        return problem
    if problem.layout is None:
        raise document.error(
            "'places' is for a map of the edges, and with 'arms' the edges are not what is measured; "
            "leave one of the two out",
            "places",
        )
    table = document.attachment("places")
    points, geographic = _by_name(document) if table is None else _by_row(document, table)
    return problem.with_places(points, geographic=geographic)


def _by_row(document: Section, table: Table) -> tuple[dict[str, list[float]], bool]:
    """The places of a CSV file with a row for each."""
    columns = [name.lower() for name in table.column_names]
    order = next((names for names in _COORDINATES if set(names) == set(columns)), None)
    if order is None:
        raise document.wrong(
            "places", f"a CSV file with the columns {_EXPECTED} (its columns are {list(table.column_names)})"
        )
    rows = zip(
        table.row_names, table.numbers[:, [columns.index(name) for name in order]].tolist(), strict=True
    )
    points: dict[str, list[float]] = {}
    for name, point in rows:
        if points.setdefault(name, point) != point:
            raise document.wrong("places", f"a CSV file with one row per place ({name!r} is there twice)")
    return points, _COORDINATES[order]


def _by_name(document: Section) -> tuple[dict[str, list[float]], bool]:
    """The places of a table in the file itself: [x, y], or a table of latitude and longitude."""
    given = document.values["places"]
    if not isinstance(given, dict) or not given:
        raise document.wrong("places", "a table from names to [x, y], or the name of a CSV file")
    part = Section(document.path, "places.", given)
    found = {name: _coordinates(part, name) for name in given}
    kinds = {geographic for _, geographic in found.values()}
    if len(kinds) > 1:
        raise document.error("give all places either by [x, y] or by lat and lon", "places")
    return {name: point for name, (point, _) in found.items()}, kinds.pop()


def _coordinates(part: Section, name: str) -> tuple[list[float], bool]:
    value: Any = part.values[name]
    if is_list_of_numbers(value) and len(value) == 2:
        return [float(number) for number in value], False
    if isinstance(value, Mapping):
        for order, geographic in _COORDINATES.items():
            if set(value) == set(order) and all(map(is_number, value.values())):
                return [float(value[key]) for key in order], geographic
    raise part.wrong(name, "[x, y], or a table of two numbers, { lat = ..., lon = ... }")
