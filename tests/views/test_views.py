"""What a look reads, and what the forecast says."""

import math

import numpy as np
import pytest

import surepick as sp
from common import largest
from session_tools import Tapes, problem, run_to_end, tell_all
from surepick.sessions.session import Session
from surepick.store import open_store


def new(policy=None, store="memory://", **options):
    chosen = {"problem": problem(), "name": "alloys", **options}
    return Session.create(store, policy=policy or sp.BetGapE(delta=0.1), **chosen)


def remaining_at(session, tapes, *, after):
    """The forecast after so many measurements, and what it should have been."""
    while session.status == "running" and session.state().n_measurements < after:
        tell_all(session, session.ask(), tapes)
    coming, n_used = session.view().forecast, session.state().n_measurements
    run_to_end(session, tapes)
    return coming, session.outcome.n_measured - n_used


@pytest.mark.parametrize("policy", [sp.BetGapE(delta=0.01), sp.CombGapE(delta=0.01)], ids=repr)
def test_forecasts_hold_in_most_sessions(policy):
    inside, ratios = 0, []
    for seed in range(7):
        scale = 0.6
        session = new(policy, problem=problem(noise=scale))
        coming, left = remaining_at(session, Tapes(seed, scale=scale), after=24)
        if coming is None or left == 0:
            continue
        inside += (coming.low or 0) <= left <= (coming.high or math.inf)
        ratios.append(left / coming.median if coming.median else 0.0)
    assert inside >= 0.7 * len(ratios)
    assert 1 / 4 < np.median(ratios) < 4


def test_looking_reads_no_events_and_writes_nothing(monkeypatch):
    place = open_store("memory://")
    session, tapes = new(store=place), Tapes()
    for _ in range(50):
        tell_all(session, session.ask(worker="a"), tapes)
    session.ask(worker="b")
    before = (place.head("alloys"), place.leases("alloys"), place.snapshot("alloys"))
    read = []
    original = type(place).read
    monkeypatch.setattr(
        type(place),
        "read",
        lambda *args, **options: read.extend(found := list(original(*args, **options))) or iter(found),
    )
    session.view()
    assert read == []
    assert (place.head("alloys"), place.leases("alloys"), place.snapshot("alloys")) == before


def test_within_epsilon_a_forecast_counts_what_is_proved_and_not_what_was_measured():
    """Of eighty ties nearly any will do, and other plans than the lead are the best in most worlds."""
    problem, rng = largest(np.eye(80)), np.random.default_rng(1)
    session = sp.Session.create("memory://", "ties", problem, policy=sp.BetGapE(epsilon=1.0))
    said = []
    while requests := session.ask(512):
        for request, value in zip(requests, rng.standard_normal(len(requests)), strict=True):
            session.tell(request, value)
        coming = session.view().forecast
        said += [] if coming is None else [(session.state().n_measurements, coming.median)]
    end = session.state().n_measurements
    late = [(end - n) / middle if middle else math.inf for n, middle in said[len(said) // 2 :]]
    assert len(late) > 3
    assert 0.2 < np.median(late) < 3
