"""The paper's transport between eighteen cities, and the hours between them.

The paper read its hours from a map service on an unstated day; these are two open stand-ins. `data/README.md`
beside this file says where they come from.
"""

from __future__ import annotations

import csv
from importlib.resources import as_file, files
from typing import Any, Literal, TypeAlias

import numpy as np

from surepick.core.arrays import read_only
from surepick.errors import ProblemError, suggestion
from surepick.problems.candidates import Progress
from surepick.problems.kinds.transport import transport
from surepick.problems.numbers import seeded
from surepick.problems.truth import Truth
from surepick.tables import Table, read_table

Distances: TypeAlias = Literal["great-circle", "freeway"]

EARTH_RADIUS_KM = 6371.0
ROAD_PER_GREAT_CIRCLE = 1.25  # roads are about a quarter longer than the straight line
ROAD_KM_PER_HOUR = 95.0
FREEWAY_MILES_PER_HOUR = 61.1  # the median speed that map services imply on such trips


def city_hours(distances: Distances = "great-circle") -> Table:
    """Return the travel hours from the nine supplier cities (rows) to the nine demander cities (columns).

    "great-circle" takes the straight distance with a detour factor: gaps between plans are generic.
    "freeway" takes the shortest way over US freeways: real roads share segments, so many plans tie.

    >>> hours = city_hours()
    >>> hours.row_names[0], hours.column_names[0], round(float(hours.numbers[0, 0]), 2)
    ('New York', 'Charlotte', 11.24)
    """
    if distances == "freeway":
        with as_file(files("surepick.problems") / "data" / "freeway_miles.csv") as path:
            miles = read_table(path)
        return Table(read_only(miles.numbers / FREEWAY_MILES_PER_HOUR), miles.row_names, miles.column_names)
    if str(distances) != "great-circle":
        known = suggestion(str(distances), ("great-circle", "freeway"))
        raise ProblemError(f"there are no distances named {distances!r}; {known}", field="distances")
    text = (files("surepick.problems") / "data" / "cities.csv").read_text(encoding="utf-8")
    cities = list(csv.DictReader(text.splitlines()))
    names, roles = [city["city"] for city in cities], [city["role"] for city in cities]
    ends = [[i for i, own in enumerate(roles) if own == role] for role in ("supplier", "demander")]
    latitude, longitude = np.radians(
        [[float(city[at]) for city in cities] for at in ("latitude", "longitude")]
    )
    # the haversine formula
    half_north, half_east = (
        np.sin((at[ends[1]] - at[ends[0]][:, None]) / 2) ** 2 for at in (latitude, longitude)
    )
    chord = half_north + np.cos(latitude[ends[0]])[:, None] * np.cos(latitude[ends[1]]) * half_east
    km = 2 * EARTH_RADIUS_KM * np.arcsin(np.sqrt(chord))
    hours = read_only(np.asarray(km * ROAD_PER_GREAT_CIRCLE / ROAD_KM_PER_HOUR))
    suppliers, demanders = (tuple(names[i] for i in own) for own in ends)
    return Table(hours, suppliers, demanders)


def transport_instance(
    seed: int,
    *,
    distances: Distances = "great-circle",
    n_draws: int = 1000,
    progress: Progress | None = None,
) -> Truth:
    """Return the paper's transport between eighteen cities, with supply and demand drawn from the seed.

    Supplies and demands are U[0, 1] and normalised; the true means are the travel hours between the cities,
    and the plans are the distinct cheapest transports of `n_draws` draws within one hour of them.

    >>> instance = transport_instance(0, n_draws=20)
    >>> instance.problem.n_arms, instance.problem.arm_names[0]
    (81, 'New York -> Charlotte')
    """
    hours, rng = city_hours(distances), seeded(seed)
    amounts = _amounts(hours, rng)
    seed_of_draws = int(rng.integers(2**63))
    problem = transport(
        **amounts, guess=hours.numbers, n_draws=n_draws, seed=seed_of_draws, noise=1, progress=progress
    )
    title = f"transport between cities, {distances} hours, seed {seed}"
    return Truth(problem, read_only(hours.numbers.ravel()), title=title)


def whole_transport(seed: int, *, distances: Distances = "great-circle") -> Truth:
    """Return the case of `transport_instance` with every transport as a plan: a polytope.

    >>> whole_transport(0).problem
    Polytope(81 arms, 18 rows, at most 1.3e17 vertices, smallest)
    """
    hours = city_hours(distances)
    problem = transport(**_amounts(hours, seeded(seed)), noise=1)
    title = f"all transports between cities, {distances} hours, seed {seed}"
    return Truth(problem, read_only(hours.numbers.ravel()), title=title)


def _amounts(hours: Table, rng: np.random.Generator) -> dict[str, Any]:
    """Return supplies and demands that are drawn evenly and normalised, with the names of the cities."""
    supply, demand = rng.random(len(hours.row_names)), rng.random(len(hours.column_names))
    return {
        "supply": supply / supply.sum(),
        "demand": demand / demand.sum(),
        "supplier_names": hours.row_names,
        "demander_names": hours.column_names,
    }
