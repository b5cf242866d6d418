"""The View: what is proved and what is estimated stay apart, in every state, and its JSON has one shape."""

import json
import math
import re

import numpy as np
import pytest

import surepick as sp
from common import largest, refuses
from session_tools import Tapes, answer, gaussian, problem, run_to_end
from surepick.policies import Challenge, Pick
from surepick.problems import PriorData
from surepick.sessions.session import Session
from surepick.views.chart import plans_chart
from surepick.views.numbers import value
from surepick.views.view import STATES

ARMS = ["depot", "tunnel", "bridge", "station"]
PLANS = {"by tunnel": [1, 1, 0, 1], "by bridge": [1, 0, 1, 1], "on foot": [1, 0, 2, 0]}
MINUTES = {"depot": 6.0, "tunnel": 10.0, "bridge": 13.0, "station": 5.0}
ROADS = [("A", "B", 1), ("B", "C", 1), ("A", "C", 3)]
FIELDS = {
    *("view", "session", "title", "state", "trusted", "doubts", "goal", "unit", "delta", "epsilon", "budget"),
    *("policy", "incumbent", "headline", "plan", "leader", "runner_up", "amounts", "proved", "bet"),
    *("n_measured", "n_open", "n_assigned", "n_extra", "n_removed", "cost", "n_plans", "n_arms"),
    *("forecast", "plans", "arms", "open", "last", "remarks", "next", "created", "head"),
}


def begin(policy=None, *, noise=1.0, guess=False, **settings):
    problem = sp.Problem(
        list(PLANS.values()), arms=ARMS, plan_names=list(PLANS), goal="smallest", noise=noise
    ).with_about(unit="min")
    prior = PriorData.from_guess(problem, [6, 12, 14, 5], spread=3.0) if guess else None
    chosen = policy or sp.BetGapE(epsilon=0.5)
    return sp.Session.create("memory://", "trips", problem, policy=chosen, prior=prior, **settings)


def measure(session, n=math.inf, *, noise=1.0):
    return answer(session, gaussian(MINUTES, noise, seed=1), n=n).view()


def test_every_state_has_its_claim_and_the_json_one_shape():
    new = begin(guess=True).view()
    running = measure(begin(), 5)
    near = measure(begin())
    best = measure(begin(sp.BetGapE()))
    spent = measure(begin(sp.BetGapE(), budget=4))
    kept = measure(begin(Challenge("by tunnel", epsilon=1.0)))
    better = measure(begin(Challenge("on foot")))
    unproved = measure(begin(Pick(), budget=12))
    closing = begin()
    closing.close("road works")
    closed = closing.view()
    views = [new, running, near, best, spent, kept, better, unproved, closed]
    claims = "one_of one_of within_epsilon best one_of incumbent_stays better_than_incumbent none one_of"
    assert [view.proved.claim for view in views] == claims.split()
    for view in views:
        data = json.loads(json.dumps(view.to_json(), allow_nan=False))
        assert set(data) == FIELDS
        assert view.state in STATES
        assert (view.plan is None) == (view.state != "confident")
        assert view.cost == view.n_measured, "also while a batch is open"
        assert [row.status for row in view.plans].count("leader") == (view.leader is not None)
    assert near.plan == best.plan == kept.plan == "by tunnel"
    assert better.plan != "on foot"
    assert set(spent.proved.plans) <= set(PLANS)
    assert "road works" in closed.headline
    assert new.leader == "by tunnel"  # by the guess
    assert new.bet is not None
    assert new.bet.chance is None
    assert best.bet is None, "the proof says as much"
    assert near.bet is not None
    assert running.forecast is not None
    assert near.forecast is None


def test_an_arm_of_all_plans_is_taken_at_its_guess_and_marked():
    view = measure(begin(guess=True))
    depot = view.arms[0]
    assert (depot.role, depot.n, depot.mean) == ("same in all plans", 0, None)
    assert all(row.uses_guess for row in view.plans)
    best = view.best
    assert best is not None
    assert best.value == pytest.approx(6 + view.arms[1].mean + view.arms[3].mean)
    without = measure(begin())
    assert [row.value for row in without.plans] == [None] * 3
    assert all(row.behind is not None for row in without.plans)


def test_a_guess_without_a_stated_noise_is_shown_too_and_kept_in_the_log():
    routes = {"by bus": "depot + bus", "by train": "depot + train"}
    guess = {"depot": 6.0, "bus": 20.0, "train": 25.0}
    session = Session.create(
        "memory://", "trips", sp.Problem(routes, goal="smallest", guess=guess, spread=3.0)
    )
    answer(session, gaussian(guess, seed=1))
    for one in (session, Session.load(session.store, "trips")):
        first = one.view().plans[0]
        assert (first.name, first.uses_guess) == ("by bus", True)
        assert first.value == pytest.approx(26.0, abs=1.5)
    session.add_plan("by bike", "depot + bike", arms=["bike"])
    values = {row.name: row.value for row in session.view().plans}
    assert values["by bus"] == pytest.approx(26.0, abs=1.5)
    assert values["by bike"] is None


def test_doubts_replace_the_headline_and_the_bet():
    session = begin(sp.BetGapE(delta=1e-9), noise=0.2)
    view = measure(session, 300, noise=3.0)
    assert not view.trusted
    assert view.bet is None
    assert view.doubts[0].code == "noise_larger"
    assert view.doubts[0].text in view.headline
    assert [view.doubts[0].text in one.text for one in view.remarks] == [False], "it is not said twice"
    assert "DOUBTFUL" in repr(view)
    assert 'data-trusted="false"' in view._repr_html_()
    assert "--prior" in view.next[0].command


def test_what_is_open_says_who_has_it_and_the_last_value_its_number():
    session = begin()
    (request,) = session.ask(1, worker="Pat")
    view = session.view()
    assert view.n_assigned == 1
    assert view.n_open == sum(one.n for one in view.open)
    (assigned,) = next(one for one in view.open if one.arm == request.arm).assigned
    assert assigned.worker == "Pat"
    session.tell(request, 9.5)
    last = session.view().last
    assert last is not None
    assert (last.number, last.arm, last.value, last.worker) == (1, request.arm, 9.5, "Pat")


def test_the_last_value_keeps_its_number_when_others_are_removed():
    session = begin()
    numbers = [session.tell(request, 9.0 + k).number for k, request in enumerate(session.ask(4))]
    session.tell(session.ask(1)[0], None, lost=True)
    left = {number: 9.0 + k for k, number in enumerate(numbers)}
    for number in (numbers[1], numbers[3], numbers[2], numbers[0]):
        last = session.view().last
        assert last is not None
        assert (last.number, last.value) == max(left.items())
        session.remove(number, "a slip")
        del left[number]
    assert session.view().last is None
    number = session.tell(session.ask(1)[0], 7.0).number
    assert (session.view().last.number, number) == (6, 6)  # lost and removed ones keep their numbers


def test_the_chart_has_all_plans_worse_to_the_right_and_no_markup_of_names():
    drawn = plans_chart(measure(begin()))
    assert re.findall(r'data-status="([\w ]+)"', drawn) == ["leader", "ruled out", "ruled out"]
    assert drawn.count('class="epsilon"') == 3
    dots = [float(x) for x in re.findall(r'cx="([\d.]+)%"', drawn)]
    assert dots == sorted(dots)
    ends = re.findall(r'class="whisker" x1="([\d.]+)%" x2="([\d.]+)%"', drawn)
    assert all(0 <= float(a) <= at <= float(b) <= 100 for (a, b), at in zip(ends, dots[1:], strict=True))
    problem = largest([[1, 0], [0, 1]], plan_names=["<b>a", "b"])
    evil = sp.Session.create("memory://", "x", problem, policy=sp.BetGapE())
    for value_ in (1.0, 2.0):
        evil.tell(evil.ask()[0], value_)
    assert "<b>" not in evil.view()._repr_html_()


@pytest.mark.parametrize(
    ("kind", "problem"),
    [
        ("paths", lambda: sp.problems.paths(ROADS, "A", "C", noise=1)),
        ("polytope", lambda: sp.Polytope(A_eq=[[1, 1, 1]], b_eq=[1.0], noise=1, goal="largest")),
        ("probes", lambda: largest([[1, 0], [0, 1]], measure={"both": ["arm 0", "arm 1"]})),
    ],
)
def test_every_kind_of_problem_has_a_view(kind, problem):
    session = sp.Session.create("memory://", kind, problem())
    for k in range(40):
        requests = session.ask(1, wait=False)
        if not requests:
            break
        readings = {name: float(k % 3 + i) for i, name in enumerate(requests[0].readings)}
        session.tell(requests[0], readings if len(readings) > 1 else next(iter(readings.values())))
        json.dumps(session.view().to_json(), allow_nan=False)
    assert session.view().leader is not None


def test_frames_and_figures_have_names():
    session = begin()
    view = measure(session, 4)
    frames = {what: session.to_frame(what) for what in ("values", "plans", "arms")}
    assert [len(frame) for frame in frames.values()] == [4, len(PLANS), len(ARMS)]
    assert list(frames["plans"]["name"]) == [row.name for row in view.plans]
    assert "<svg" in view._repr_html_()
    for call in (session.to_frame, session.plot):
        with refuses("what"):
            call("rows")


def test_a_number_never_loses_the_digits_that_its_error_leaves():
    rng = np.random.default_rng(0)
    for _ in range(200):
        number, se = rng.normal() * 10 ** rng.uniform(-3, 5), 10 ** rng.uniform(-4, 3)
        shown, error = (float(part) for part in value(number, se=se).split(" ± "))
        assert math.isclose(error, se, rel_tol=0.51)
        assert abs(shown - number) <= 0.51 * se


def new(policy=None, store="memory://", **options):
    chosen = {"problem": problem(), "name": "alloys", **options}
    return Session.create(store, policy=policy or sp.BetGapE(delta=0.1), **chosen)


def remaining_at(session, tapes, *, after):
    """The forecast after so many measurements, and what it should have been."""
    answer(session, tapes.answer, n=after)
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
    session, tapes = new(), Tapes()
    log = session.journal.log
    answer(session, tapes.answer, n=50, worker="a")
    session.ask(worker="b")
    before = (log.head(), log.leases(), log.snapshot())
    read = []
    original = type(log).read
    monkeypatch.setattr(
        type(log),
        "read",
        lambda *args, **options: read.extend(found := list(original(*args, **options))) or iter(found),
    )
    session.view()
    assert read == []
    assert (log.head(), log.leases(), log.snapshot()) == before


def test_within_epsilon_a_forecast_counts_what_is_proved_and_not_what_was_measured():
    """Of eighty ties nearly any will do, and other plans than the lead are the best in most worlds."""
    problem, rng = largest(np.eye(80)), np.random.default_rng(1)
    session = sp.Session.create("memory://", "ties", problem, policy=sp.BetGapE(epsilon=1.0))
    said = []
    while requests := session.ask(512):
        for request, drawn in zip(requests, rng.standard_normal(len(requests)), strict=True):
            session.tell(request, drawn)
        coming = session.view().forecast
        said += [] if coming is None else [(session.state().n_measurements, coming.median)]
    end = session.state().n_measurements
    late = [(end - n) / middle if middle else math.inf for n, middle in said[len(said) // 2 :]]
    assert len(late) > 3
    assert 0.2 < np.median(late) < 3


def test_what_is_stated_as_known_is_among_what_the_proof_assumes():
    ways = {"bridge": "bridge + toll", "ring": "ring"}
    assumed = {
        sp.Session.open("memory://", "s", sp.Problem(ways, goal="smallest", noise=1, known=known))
        .view()
        .proved.assumes
        for known in (None, {"toll": 3})
    }
    assert len(assumed) == 2
