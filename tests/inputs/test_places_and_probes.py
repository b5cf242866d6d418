"""Places and probes in problem files of every kind."""

import pytest

import surepick as sp
from common import largest, refuses
from surepick.errors import FileError, ProblemError
from surepick.inputs.load import read_problem
from surepick.sessions import codec
from surepick.simulation import Gaussian
from surepick.store import open_store

TRANSPORT = """kind = "transport"
noise = 1
supply = [60, 40]
demand = [55, 45]
guess = [[2.0, 3.0], [2.0, 2.0]]
supplier_names = ["Zürich", "Bern"]
demander_names = ["Genève", "Basel"]
spread = 1.5
n_draws = 100
"""
SITES = (
    "site,lat,lon\nZürich,47.37,8.54\nBern,46.95,7.45\nGenève,46.2,6.14\nBasel,47.56,7.59\nChur,46.85,9.53\n"
)
POINTS = ((8.54, 47.37), (7.45, 46.95), (6.14, 46.2), (7.59, 47.56))
BY_NAME = """[places]
"Zürich" = { lat = 47.37, lon = 8.54 }
Bern = { latitude = 46.95, longitude = 7.45 }
"Genève" = { lon = 6.14, lat = 46.2 }
Basel = { lat = 47.56, lon = 7.59 }
"""
EDGES = 'edges = [["A", "B", 4], ["B", "D", 5], ["A", "C", 3], ["C", "D", 6]]\n'
CORNERS = "[places]\nA = [0, 0]\nB = [4, 0]\nC = [0, 2]\nD = [4, 2.0]\n"


@pytest.fixture
def load(tmp_path):
    def load_text(text):
        (tmp_path / "sites.csv").write_text(SITES, encoding="utf-8")
        (tmp_path / "legs.csv").write_text(
            "from,to,road,toll\nA,B,1,0\nB,D,2,1\nA,C,2,0\nC,D,2,0\n", encoding="utf-8"
        )
        (tmp_path / "case.toml").write_text(text, encoding="utf-8")
        return read_problem(tmp_path / "case.toml").problem

    return load_text


@pytest.mark.parametrize("places", ['places = "sites.csv"\n', BY_NAME], ids=["csv", "by name"])
def test_places_by_latitude_and_longitude(load, places):
    layout = load(TRANSPORT + places).layout
    assert (layout.places, layout.points) == (("Zürich", "Bern", "Genève", "Basel"), POINTS)
    assert layout.geographic


@pytest.mark.parametrize(
    "text",
    [
        f'kind = "paths"\nnoise = 1\nsource = "A"\ntarget = "D"\n{EDGES}{CORNERS}',
        f'kind = "paths"\nnoise = 1\nsource = "A"\ntarget = "D"\nlist_plans = false\n{EDGES}{CORNERS}',
        f'kind = "trees"\nnoise = 1\n{EDGES}{CORNERS}',
        (
            'kind = "matchings"\ngoal = "smallest"\nguess = [[4, 6], [5, 5]]\nspread = 2\n'
            'row_names = ["A", "B"]\n'
            f'column_names = ["C", "D"]\n{CORNERS}'
        ),
    ],
    ids=["paths", "paths, not listed", "trees", "matchings"],
)
def test_places_by_x_and_y_for_every_kind_with_places(load, text):
    layout = load(text).layout
    assert dict(zip(layout.places, layout.points, strict=True))["D"] == (4.0, 2.0)
    assert not layout.geographic


def test_places_change_no_fingerprint_and_stay_with_the_session(load):
    plain, placed = load(TRANSPORT), load(TRANSPORT + 'places = "sites.csv"\n')
    assert codec.problem_to_json(placed) == codec.problem_to_json(plain)
    store = open_store("memory://")
    session = sp.Session.create(store, "map", placed, policy=sp.BetGapE(), seed=1)
    without = sp.Session.create("memory://", "map", plain, policy=sp.BetGapE(), seed=1)
    assert [r.token for r in session.ask(4)] == [r.token for r in without.ask(4)]
    assert sp.Session.load(store, "map").layout == placed.layout


@pytest.mark.parametrize(
    "lines",
    [
        "places = 3\n",
        'places = "nowhere.csv"\n',
        "[places]\nBern = [1, 2, 3]\n",
        '[places]\nBern = ["x", 2]\n',
        "[places]\nBern = { lat = 1 }\n",
        "[places]\nBern = [1, 2]\nBasel = { lat = 1, lon = 2 }\n",
        *(BY_NAME.replace(*pair) for pair in (("Genève", "Geneve"), ("47.37", "97.37"), ("47.37", "nan"))),
    ],
)
def test_wrong_places_are_refused(load, lines):
    with refuses("places.Bern" if lines.startswith("[places]\nBern") and "Basel" not in lines else "places"):
        load(TRANSPORT + lines)


def test_what_has_no_places_takes_none(load):
    with refuses("places", FileError):
        load('kind = "choice"\ngoal = "largest"\nnoise = 1\narms = ["a", "b"]\n' + CORNERS)
    legs = 'kind = "paths"\nnoise = 1\nsource = "A"\ntarget = "D"\nedges = "legs.csv"\nevery = true\n'
    legs += 'arms = ["road", "toll"]\n'
    with refuses("places", FileError):
        load(legs + CORNERS)
    with refuses("places", ProblemError):
        largest([[1, 0], [0, 1]]).with_places({"A": (0, 0)})


PATHS = """
kind = "paths"
edges = [["A", "B"], ["B", "C"], ["A", "D"], ["D", "C"], ["B", "D"]]
source = "A"
target = "C"
"""


def loaded(tmp_path, text):
    file = tmp_path / "routes.toml"
    file.write_text(text)
    return read_problem(file).problem


@pytest.mark.parametrize("kind", ["plan arms", "plans"])
def test_paths_are_driven_whole(tmp_path, kind):
    plain = loaded(tmp_path, PATHS)
    problem = loaded(tmp_path, PATHS + f'measure = "{kind}"\nnoise = 0.5\ncost = 3')
    assert problem.probe_names == plain.plan_names
    assert problem.costs.tolist() == [3.0] * problem.n_plans
    assert set(problem.noise_scale.tolist()) == {0.5}
    means = [1.0, 2.0, 2.5, 1.5, 0.2]
    outcome = sp.simulate(problem, Gaussian(means), policy=sp.BetGapE(), seed=1)
    assert outcome.plan == problem.best(means)


def test_unknown_noise_and_the_default(tmp_path):
    problem = loaded(tmp_path, PATHS + 'measure = "plan arms"\nnoise = "unknown"')
    assert problem.probes.unknown
    assert loaded(tmp_path, PATHS + 'measure = "arms"\nnoise = [1, 2, 3, 4, 5]').probes is None


def test_a_probe_that_reads_no_road_of_the_network_is_refused(tmp_path):
    with refuses("measure"):
        loaded(tmp_path, PATHS + '[measure.loop]\nreads = ["A-X"]')


def test_plans_that_are_in_no_list_are_played_and_other_probes_say_what_to_do(tmp_path):
    played = loaded(tmp_path, PATHS + 'measure = "plan arms"\nlist_plans = false\nnoise = 2.0\ncost = 3')
    assert played.plays
    assert (played.noise_scale == 2.0).all()
    assert (played.costs == 3.0).all()
    with refuses("measure"):
        loaded(tmp_path, PATHS + 'measure = "plans"\nlist_plans = false')
