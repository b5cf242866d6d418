"""Figures show the numbers of the views, and no name that people type breaks them."""

import pytest

import surepick as sp
from session_tools import Tapes, problem, tell_all
from surepick import plots, views
from surepick.plots.plan import positions
from surepick.sessions.session import Session

EVIL = "<script>alert('x')</script>\"'&$\\frac{1}$\x1b[31m[bold]\u202e"


def session(*, n=30, evil=False, delta=0.1):
    chosen = problem()
    if evil:
        chosen = sp.Problem(
            chosen.plans,
            arms=[f"{EVIL}arm {s}" for s in range(4)],
            plan_names=[f"{EVIL}plan {k}" for k in range(5)],
            noise=0.3,
            goal="largest",
        )
    name = f"{EVIL}alloys" if evil else "alloys"
    made = Session.create("memory://", name, chosen, policy=sp.BetGapE(delta=delta))
    tapes = Tapes()
    while made.status == "running" and made.state().n_values < n:
        tell_all(made, made.ask(worker=EVIL if evil else None), tapes)
    return made


def test_every_figure_shows_the_numbers_of_its_view():
    made = session()
    (axes,) = made.plot().axes
    assert [label.get_text() for label in axes.get_yticklabels()] == [row.name for row in made.view().plans]
    (bars,) = made.plot("arms").axes
    assert [bar.get_width() for bar in bars.patches] == [row.n for row in made.view().arms]
    (curve,) = made.plot("progress").axes
    weight = views.look(made).weigh()
    assert weight is not None
    assert curve.lines[-2].get_ydata()[-1] == weight.toward
    assert made.plot("picture").axes


def test_names_of_any_letters_are_drawn_and_every_figure_is_listed():
    made = session(evil=True)
    assert sorted(dir(plots)) == ["arms", "picture", "plans", "progress"]
    for name in dir(plots):
        assert made.plot(name).axes


@pytest.mark.parametrize("kind", ["knapsack", "path", "tree", "matching", "transport"])
def test_every_kind_of_plan_can_be_drawn(kind):
    chosen = {
        "knapsack": lambda: sp.problems.knapsack([4, 5], guess=[4.0, 5.0], capacity=11, spread=1.0, noise=1),
        "path": lambda: sp.problems.paths([("A", "B", 1), ("B", "C", 1), ("A", "C", 3)], "A", "C", noise=1),
        "tree": lambda: sp.problems.trees([("A", "B", 1), ("B", "C", 1), ("A", "C", 1)], noise=1),
        "matching": lambda: sp.problems.matchings([[2, 3], [2, 2]], noise=1, goal="smallest"),
        "transport": lambda: sp.problems.transport(
            [3, 2], [4, 1], guess=[[2, 3], [2, 2]], n_draws=50, noise=1
        ),
    }[kind]()
    made = Session.create("memory://", kind, chosen, policy=sp.CombGapE())
    for request in made.ask(chosen.n_arms):
        made.tell(request, float(request.probe))
    (axes,) = made.plot("picture").axes
    drawn = {text.get_text() for text in axes.texts} | {text.get_text() for text in axes.get_yticklabels()}
    places = set() if chosen.layout is None else set(chosen.layout.places)
    assert places <= drawn
    if kind == "knapsack":
        assert sum(bar.get_width() for bar in axes.patches) == pytest.approx(11)


def test_a_path_goes_from_left_to_right_and_a_map_is_drawn_as_it_lies():
    graph = sp.problems.paths([("A", "B", 1), ("B", "C", 1), ("A", "C", 3)], "A", "C", noise=1)
    points = dict(zip(graph.layout.places, positions(graph.layout), strict=True))
    assert points["A"][0] < points["B"][0] < points["C"][0]
    cities = sp.problems.transport_instance(0, n_draws=20).problem.layout
    on_map = dict(zip(cities.places, positions(cities), strict=True))
    assert (on_map["Atlanta"] < on_map["Boston"]).all()
    columns = sp.problems.transport([3, 2], [4, 1], guess=[[2, 3], [2, 2]], n_draws=50, noise=1).layout
    assert positions(columns)[:, 0].tolist() == [0, 0, 1, 1]


def test_a_session_without_a_lead_has_no_picture():
    with pytest.raises(sp.SurepickError):
        plots.picture(session(n=0))
