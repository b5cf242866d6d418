"""Reprs in one line, small tables for notebooks, and a session that is watched while it runs."""

import threading

import pytest

import surepick as sp
from common import largest
from surepick.simulation import Gaussian
from surepick.store import MemoryStore

ARMS = {"<b>road</b>": 1.0, "rail": 9.0}


@pytest.fixture(scope="module")
def session():
    problem = largest([[1, 0], [0, 1]], arms=list(ARMS), plan_names=["drive & park", "ride"])
    store = MemoryStore()
    sp.decide(problem, ARMS.get, store=store, session="trips")
    return sp.Session.load(store)


def test_reprs_are_one_short_line(session):
    problem = session.problem
    oracle = sp.problems.top_k(["a", "b", "c"], 2, goal="largest", list_plans=False, noise=1)
    outcome = sp.simulate(problem, Gaussian([1.0, 9.0]), policy=sp.CombGapE())
    limit = sp.limit(problem, [1.0, 9.0])
    for shown in (problem, oracle, session):
        assert "<b>road" not in shown._repr_html_()  # names are text
    for shown in (problem, oracle, outcome, session, limit, session.certificate()):
        assert "\n" not in repr(shown)
        assert len(repr(shown)) < 200


def test_watching_updates_in_place_until_the_session_has_ended(capsys):
    problem = sp.Problem([[1, 0], [0, 1]], arms=list(ARMS), noise=2.0, goal="largest")
    session = sp.Session.open("memory://", "trips", problem, policy=sp.CombGapE())
    watcher = threading.Thread(target=session.watch, args=(0.01,))
    watcher.start()
    while requests := session.ask():
        session.tell(requests[0], ARMS[requests[0].arm])
    watcher.join(20)
    assert not watcher.is_alive()
    shown = capsys.readouterr().err
    assert shown.count("\n") == 1  # all in one line
    assert "trips: confident, 'plan 1' is the best" in shown.split("\r")[-1]


def test_a_notebook_is_updated_by_its_display_handle(session, monkeypatch):
    import IPython.display

    updates = []

    class Handle:
        def update(self, value):
            updates.append(value)

    monkeypatch.setattr(IPython, "get_ipython", object)
    monkeypatch.setattr(IPython.display, "display", lambda value, display_id: Handle())
    session.watch(every=0.01)
    assert updates == [session]
