"""Builders: what importing them loads, their options, truths, and the cities' hours."""

import subprocess
import sys

import numpy as np
import pytest

import surepick as sp
from common import refuses
from surepick import problems
from surepick.problems import family
from surepick.problems.candidates import drawn_plans
from surepick.problems.truth import Truth

SLOW = ("numba", "ot", "pandas")


def loaded_after(code):
    """Which of the slow packages a fresh interpreter has loaded after running this."""
    report = f"import sys; {code}; print(*[name for name in {SLOW} if name in sys.modules])"
    return subprocess.run(
        [sys.executable, "-c", report], capture_output=True, text=True, check=True
    ).stdout.split()


def test_importing_the_builders_loads_nothing_slow():
    assert loaded_after("import surepick.problems; surepick.problems.knapsack") == []


def test_a_table_file_loads_nothing_slow(tmp_path):
    (tmp_path / "case.toml").write_text('kind = "table"\ngoal = "largest"\nplans = [[1, 0], [0, 1]]')
    assert loaded_after(f"import surepick; surepick.load({str(tmp_path / 'case.toml')!r})") == []


EDGES = [("A", "B", 2), ("B", "D", 2), ("A", "C", 1), ("C", "D", 4)]
BUILDERS = {
    "knapsack": lambda **options: problems.knapsack([4, 5], [4.0, 5.0], 10, **options),
    "matchings": lambda **options: problems.matchings([[2, 3], [2, 2]], **{"goal": "smallest", **options}),
    "paths": lambda **options: problems.paths(EDGES, "A", "D", **options),
    "portfolio": lambda **options: problems.portfolio([5, 4, 3], upper=0.5, **options),
    "production": lambda **options: problems.production([[1, 2], [3, 1]], [8, 9], [3.0, 4.0], **options),
    "top_k": lambda **options: problems.top_k(
        ["a", "b", "c"], 2, [1.0, 1.5, 2.0], **{"goal": "largest", **options}
    ),
    "transport": lambda **options: problems.transport([3, 2], [4, 1], [[2, 3], [2, 2]], **options),
    "trees": lambda **options: problems.trees([("A", "B", 1), ("B", "C", 2), ("A", "C", 2)], **options),
}


@pytest.mark.parametrize("name", BUILDERS)
def test_every_builder_takes_the_options_of_a_search(name, monkeypatch):
    seen, boxes = [], []
    monkeypatch.setattr(family, "drawn_plans", lambda *given: boxes.append(given) or drawn_plans(*given))
    options = {"spread": 3.0, "n_draws": 40, "seed": 7, "noise": None, "cost": 2.0, "low": -9, "high": 9}
    problem = BUILDERS[name](**options, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (40, 40)
    assert problem.candidates.n_draws == 40
    ((_, (low, high), *_, seed, _),) = boxes
    assert seed == 7
    assert (high - low == 6).all() or (name in ("paths", "trees") and low.min() == 0)  # lengths
    assert (problem.noise_scale == 9).all()
    assert (problem.costs == 2).all()
    with pytest.raises(TypeError, match="n_draws"):
        BUILDERS[name](n_drawz=3)


PROBLEM = sp.Problem([[1, 0], [0, 1]], noise=None, goal="largest")
MEANS = np.array([1.0, 2.0])


def test_means_that_are_needed_and_not_known_are_refused():
    assert Truth(PROBLEM, MEANS).true_means is MEANS
    with refuses("truth.means", sp.errors.FileError):
        _ = Truth(PROBLEM).true_means


@pytest.mark.parametrize(
    ("kind", "supplier", "demander", "hours"),
    [
        # Portland is 1.2990 degrees north and .8021 degrees east of Boston, at a latitude of about 43.01;
        # over so short a way the earth is flat, with 111.19 km a degree, and a detour of a quarter at 95 km/h
        (
            "great-circle",
            "Boston",
            "Portland",
            111.19 * np.hypot(1.2990, 0.8021 * np.cos(np.radians(43.01))) * 1.25 / 95,
        ),
        ("freeway", "New York", "Charlotte", 612.0 / 61.1),  # miles over the median speed
    ],
)
def test_hours_between_cities(kind, supplier, demander, hours):
    found = problems.city_hours(kind)
    assert found.numbers.shape == (9, 9)
    row, column = found.row_names.index(supplier), found.column_names.index(demander)
    assert found.numbers[row, column] == pytest.approx(hours, rel=1e-3)
