"""Figures show the numbers of the views, and no name that people type breaks them."""

import surepick as sp
from session_tools import Tapes, answer, problem
from surepick import plots
from surepick.sessions.session import Session

EVIL = "<script>alert('x')</script>\"'&$\\frac{1}$\x1b[31m[bold]\u202e"


def session(*, evil=False):
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
    made = Session.create("memory://", name, chosen, policy=sp.BetGapE(delta=0.1))
    return answer(made, Tapes().answer, n=30, worker=EVIL if evil else None)


def test_every_figure_shows_the_numbers_of_its_view():
    made = session()
    (axes,) = made.plot().axes
    assert [label.get_text() for label in axes.get_yticklabels()] == [row.name for row in made.view().plans]
    (bars,) = made.plot("arms").axes
    assert [bar.get_width() for bar in bars.patches] == [row.n for row in made.view().arms]


def test_names_of_any_letters_are_drawn_and_every_figure_is_listed():
    made = session(evil=True)
    assert plots.__all__ == ["arms", "plans"]
    for name in plots.__all__:
        assert made.plot(name).axes
