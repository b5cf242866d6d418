"""Views by their numbers: what they say of a session, and that looking changes nothing."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

import surepick as sp
from session_tools import SCALE, Tapes, problem, run_to_end, tell_all
from surepick import problems, views
from surepick.core.layout import Layout
from surepick.core.policy import Policy
from surepick.core.run import parts_of
from surepick.policies.betting.within import MOST_PLANS
from surepick.sessions import codec
from surepick.sessions.session import Session
from surepick.store import Store, open_store
from surepick.views import State, look
from surepick.views.progress import MOST_LEADS


class Clock:
    """A clock that goes when it is told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def new(policy: Policy | None = None, store: Store | str = "memory://", **options: object) -> Session:
    chosen = {"problem": problem(), "name": "alloys", **options}
    return Session.create(store, policy=policy or sp.BetGapE(delta=0.1), **chosen)  # type: ignore[arg-type]


def two_plans(policy: Policy, values: dict[int, list[float]], *, scale: float = 2.0) -> Session:
    """Two plans of one arm each, with these measurements."""
    session = new(
        policy, problem=sp.Problem([[1, 0], [0, 1]], plan_names=["road", "rail"], noise=scale, goal="largest")
    )
    left = {arm: list(told) for arm, told in values.items()}
    while session.status == "running" and any(left.values()):
        request = session.ask()[0]
        if not left[request.arm]:
            break
        session.tell(request, left[request.arm].pop(0))
    return session


# What is said


def test_the_state_and_the_sentence_follow_the_session() -> None:
    clock = Clock()
    session = new(sp.CombGapE(delta=0.1), clock=clock)
    seen = views.summary(look(session))
    assert (seen.state, seen.n_told, seen.lead) == (State.RUNNING, 0, None)
    requests = session.ask(2, worker="truck 7")
    session.tell(requests[0], 1.0)
    clock.now += 7200.0
    seen = views.summary(look(session))
    assert (seen.state, seen.n_told, seen.n_missing) == (State.RUNNING, 1, 3)
    run_to_end(session, Tapes())
    seen = views.summary(look(session))
    assert (seen.state, seen.answer, seen.trusted, seen.doubts) == (State.CONFIDENT, "plan 4", True, ())


def test_values_that_contradict_the_guarantee_come_before_everything_else() -> None:
    session = new(sp.CombGapE(delta=0.3))
    run_to_end(session, Tapes(scale=4 * SCALE))
    seen = views.summary(look(session))
    assert (seen.state, seen.trusted, seen.confidence) == (State.CONFIDENT, False, None)
    assert seen.doubts == session.doubts
    assert seen.doubts[0].text in seen.sentence
    assert seen.warnings[0].kind == "noise"
    assert views.rivals(look(session)).trusted is False
    data = views.to_json(seen)
    assert data["trusted"] is False
    assert data["doubts"][0]["code"] == "noise_larger"
    assert "confident" not in seen.promised.split(":")[0]


def test_with_epsilon_a_rival_is_only_shown_to_be_at_most_epsilon_better() -> None:
    exact, near = new(sp.BetGapE(delta=0.1)), new(sp.BetGapE(delta=0.1, epsilon=2.0))
    words = []
    for session in (exact, near):
        run_to_end(session, Tapes())
        seen = views.rivals(look(session))
        assert any(row.ruled_out for row in seen.rows)
        words.append((seen.epsilon, seen.ruled_out_words("min")))
    assert words == [(0.0, "ruled out"), (2.0, "at most 2 min better")]
    assert any(row.low < 0 for row in views.rivals(look(near)).rows if row.ruled_out)


def test_an_end_without_certainty_promises_nothing() -> None:
    spent = new(budget=6)
    run_to_end(spent, Tapes())
    seen = views.summary(look(spent))
    assert (seen.state, seen.answer, seen.lead) == (State.BUDGET_SPENT, None, "plan 4")
    assert seen.promised.startswith("none")
    closed = new()
    closed.close()
    seen = views.summary(look(closed))
    assert (seen.state, seen.lead) == (State.CLOSED, None)


def test_an_end_without_certainty_says_which_plans_remain() -> None:
    spent = new(sp.BetGapE(delta=0.1), budget=12)
    run_to_end(spent, Tapes())
    seen = views.summary(look(spent))
    assert seen.n_remaining == 4
    assert seen.among == (
        "The best of 5 plans is one of these 4: plan 4, plan 0, plan 1, plan 3; wrong with probability at "
        "most 0.1."
    )
    assert seen.sentence.endswith("“plan 4 (copper, zinc)” leads, but that it is the best is not proved.")
    certificate = spent.certificate()
    assert certificate.remaining == ("plan 4", "plan 0", "plan 1", "plan 3")
    assert seen.among[1:-1] == str(certificate.among)[1:]
    assert str(certificate.among) in str(certificate)
    given = certificate.to_json()
    assert spent.verify(given).holds
    assert not spent.verify({**given, "remaining": ["plan 4"]}).holds
    assert views.summary(look(new())).among is None


def test_a_policy_without_a_promise_is_not_said_to_be_sure_of_anything() -> None:
    session = new(sp.CombGapE(delta=0.1, radius="published"))
    run_to_end(session, Tapes())
    seen = views.summary(look(session))
    assert not seen.is_proved
    assert [warning.kind for warning in seen.warnings] == ["promise"]


# Evidence


def test_the_evidence_against_a_rival_is_the_likelihood_ratio() -> None:
    session = two_plans(sp.CombGapE(radius="published"), {0: [3.0], 1: [1.0]})
    seen = look(session)
    (row,) = views.rivals(seen).rows
    error = 2.0 * math.sqrt(2)
    assert (row.name, row.gap) == ("rail", 2.0)
    assert row.error == pytest.approx(error)
    assert row.times == pytest.approx(math.exp((2.0 / error) ** 2 / 2))
    needed = (seen.standing.radius / error) ** 2 / 2
    assert row.toward == pytest.approx((2.0 / error) ** 2 / 2 / needed)
    assert (row.low, row.high) == (
        pytest.approx(2.0 - seen.standing.radius),
        pytest.approx(2.0 + seen.standing.radius),
    )
    assert not views.rivals(seen).proved


@pytest.mark.parametrize("policy", [sp.BetGapE(delta=0.1), sp.CombGapE(delta=0.1)], ids=repr)
def test_proved_evidence_is_one_over_the_risk_and_reaches_one_over_delta_at_the_end(policy: Policy) -> None:
    session, tapes = new(policy), Tapes()
    for _ in range(400):
        if session.status != "running":
            break
        tell_all(session, session.ask(), tapes)
        seen = look(session)
        found = views.rivals(seen)
        if found.rows and seen.standing.risk < 1:
            assert found.proved
            assert min(row.times for row in found.rows) == pytest.approx(1 / seen.standing.risk)
            assert views.progress(seen).now.confidence == pytest.approx(1 - seen.standing.risk)
    assert session.status is sp.Status.CONFIDENT
    found = views.rivals(look(session))
    assert found.n_ruled_out == found.n_rivals == 4
    assert found.needed == pytest.approx(10)
    assert all(row.ruled_out and row.times >= 10 for row in found.rows)


def test_rivals_come_in_pages_of_which_none_is_twice() -> None:
    session, tapes = new(), Tapes()
    for _ in range(40):
        tell_all(session, session.ask(), tapes)
    seen = look(session)
    whole = views.rivals(seen, n=10).rows
    assert [row.log_evidence for row in whole] == sorted(row.log_evidence for row in whole)
    assert views.rivals(seen, n=2).rows + views.rivals(seen, first=2, n=2).rows == whole


def test_a_rival_with_a_long_name_is_told_by_what_is_different() -> None:
    names = [f"all the way over the mountains by road number {i}" for i in range(5)]
    session = new(problem=problem(plan_names=names))
    tapes = Tapes()
    for _ in range(8):
        tell_all(session, session.ask(), tapes)
    labels = {row.plan: row.label for row in views.rivals(look(session)).rows}
    assert look(session).lead == 4  # copper and zinc
    assert labels[0] == "with tin"


# What was measured


def test_the_best_shares_are_those_of_the_limit_when_the_estimates_are_good() -> None:
    means = np.array([1.0, 0.3, 0.6, -0.2])
    session = new(sp.Uniform(delta=1e-6), problem=problem(noise=0.01))
    tapes = Tapes(scale=1e-9)
    for _ in range(30):
        tell_all(session, session.ask(), tapes)
    found = views.arms(look(session))
    best = sp.limit(problem(), means).shares
    assert {arm.name: arm.best_share for arm in found.rows} == pytest.approx(
        dict(zip(problem().arm_names, best, strict=True)), abs=0.02
    )
    assert sum(arm.count for arm in found.rows) == found.n_measurements
    assert sum(arm.best_count for arm in found.rows) == pytest.approx(found.n_measurements)


def test_arms_are_listed_by_measurements_and_in_pages() -> None:
    session = new()
    run_to_end(session, Tapes())
    seen = look(session)
    found = views.arms(seen)
    counts = [arm.count for arm in found.rows]
    assert counts == sorted(counts, reverse=True)
    assert views.arms(seen, first=1, n=2).rows == found.rows[1:3]
    assert {arm.name: arm.mean for arm in found.rows} == dict(
        zip(problem().arm_names, session.outcome.means.tolist(), strict=True)
    )
    assert {arm.name for arm in found.rows if arm.in_lead} == {"copper", "zinc"}


# The past


@pytest.mark.parametrize("policy", [sp.BetGapE(delta=0.1), sp.CombGapE(delta=0.1)], ids=repr)
def test_a_past_look_shows_what_a_look_showed_then(policy: Policy) -> None:
    session, tapes, then = new(policy), Tapes(), {}
    while session.status == "running":
        seen = look(session)
        if seen.missing == seen.asked:  # a round has just been asked for
            then[seen.n_used] = seen
        tell_all(session, session.ask(), tapes)
    for n_used, before in then.items():
        now = look(session, n_used=n_used)
        assert now.is_past
        assert parts_of(now.standing) == parts_of(before.standing)
        assert now.standing.remaining is None  # which may be a long list, and is kept for now alone
        assert (now.asked, now.decided_at) == (before.asked, before.decided_at)
        assert now.evidence.counts.tolist() == before.evidence.counts.tolist()
        assert views.arms(now).rows == tuple(
            type(arm)(**{**vars(arm), "missing": 0}) for arm in views.arms(before).rows
        )
        assert views.progress(now).points == views.progress(before).points
    assert [moment.n_measurements for moment in views.moments(look(session))] == [
        *then,
        session.outcome.n_measurements,
    ]


def test_a_reopened_session_remembers_its_past_without_the_log(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("surepick.sessions.replica.SNAPSHOT_EVERY", 10)
    session, tapes = new(store=store), Tapes()
    for _ in range(60):
        tell_all(session, session.ask(), tapes)
    again = Session.load(store, "alloys", read_only=True)
    assert views.page(look(again)).progress == views.page(look(session)).progress


@pytest.fixture
def store() -> Store:
    return open_store("memory://")


def test_the_trace_is_small_however_long_the_session_is() -> None:
    session = new(sp.Uniform(delta=1e-12), problem=problem(noise=50.0))
    ledger = session.ledger()
    for n in range(2000):
        arm = next(iter(ledger.tapes.wanted()))
        ledger.apply("measured", {"arm": arm.probe, "index": arm.index, "value": float(n % 7)})
        ledger.decide()
    rounds = [sample.n_rounds for sample in ledger.run.trace.samples]
    assert 128 <= len(rounds) <= 256
    assert set(np.diff(rounds)) == {8}


# What is to come


def remaining_at(session: Session, tapes: Tapes, *, after: int) -> tuple[views.Forecast | None, int]:
    """The forecast after so many measurements, and what it should have been."""
    while session.status == "running" and session.ledger().n_measurements < after:
        tell_all(session, session.ask(), tapes)
    seen = look(session)
    run_to_end(session, tapes)
    return views.progress(seen).forecast, session.outcome.n_measurements - seen.n_used


@pytest.mark.parametrize("policy", [sp.BetGapE(delta=0.01), sp.CombGapE(delta=0.01)], ids=repr)
def test_forecasts_hold_in_most_sessions(policy: Policy) -> None:
    inside, ratios = 0, []
    for seed in range(7):
        scale = 0.6
        session = new(policy, problem=problem(noise=scale))
        forecast, left = remaining_at(session, Tapes(seed, scale=scale), after=24)
        if forecast is None or left == 0:
            continue
        inside += forecast.low <= left <= (forecast.high or math.inf)
        ratios.append(left / forecast.middle if forecast.middle else 0.0)
    assert inside >= 0.7 * len(ratios)
    assert 1 / 4 < np.median(ratios) < 4


def test_near_ties_are_named() -> None:
    means = np.array([1.0, 0.3, 0.3, -0.2])  # copper with tin is as good as copper with zinc
    session = new(
        sp.BetGapE(delta=0.1),
        problem=sp.Problem([[1, 1, 0, 0], [1, 0, 1, 0], [0, 0, 0, 1]], noise=0.3, goal="largest"),
    )
    tapes = Tapes(3, means=means)
    assert views.summary(look(session)).warnings == ()
    while look(session).n_used < 600:
        tell_all(session, session.ask(50), tapes)
    found = views.summary(look(session)).warnings
    assert [warning.kind for warning in found] == ["tie"]
    assert "“plan 0” and “plan 1”" in found[0].text.replace("“plan 1” and “plan 0”", "“plan 0” and “plan 1”")
    sure = new()
    run_to_end(sure, Tapes())
    assert views.summary(look(sure)).warnings == ()


def test_noise_that_is_larger_than_the_scale_is_named() -> None:
    session, tapes = new(), Tapes(scale=1.2)
    for _ in range(40):
        tell_all(session, session.ask(5), tapes)
    assert {warning.kind for warning in views.summary(look(session)).warnings} >= {"noise"}


# The work


def test_the_open_round_shows_who_holds_what_and_who_is_gone() -> None:
    clock = Clock()
    session = new(sp.CombGapE(delta=0.1), clock=clock, lease=100.0)
    session.ask(1, worker="truck 7")
    clock.now += 50
    session.ask(2, worker="truck 8")
    seen = views.work(look(session))
    assert (seen.n_missing, seen.n_held) == (4, 3)
    assert [token.worker for token in seen.tokens] == ["truck 7", "truck 8", "truck 8", None]
    assert {token.name for token in seen.tokens} == {"copper", "tin", "zinc", "lead"}
    clock.now += 60
    seen = views.work(look(session))
    assert [(w.name, w.is_stale, w.expires_in) for w in seen.workers] == [
        ("truck 7", True, -10.0),
        ("truck 8", False, 40.0),
    ]
    (warning,) = views.summary(look(session)).warnings
    assert warning.kind == "worker"
    assert "“truck 7”" in warning.text
    session.tell(views.work(look(session)).tokens[0].token, 1.0, worker="truck 7")
    assert [worker.name for worker in views.work(look(session)).workers] == ["truck 8"]


# Looking


def test_looking_reads_no_events_and_writes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
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
    for n_used in (None, 5):
        views.to_json(views.page(look(session, n_used=n_used)))
    assert read == []
    assert (place.head("alloys"), place.leases("alloys"), place.snapshot("alloys")) == before


def test_a_complete_round_is_not_decided_by_looking() -> None:
    session = new(sp.CombGapE(delta=0.1))
    ledger = session.ledger()
    for arm in range(4):
        ledger.apply("measured", {"arm": arm, "index": 0, "value": 1.0})
    seen = look(session)
    assert seen.n_rounds == 0
    assert views.work(seen).is_deciding
    assert {warning.kind for warning in views.summary(seen).warnings} == {"decision"}


def test_every_view_is_json(tmp_path: object) -> None:
    for policy in (sp.BetGapE(), sp.GenTSExplore(delta=0.1), sp.RAGE(), sp.Uniform()):
        session, tapes = new(policy), Tapes()
        for _ in range(12):
            text = json.dumps(views.to_json(views.page(look(session))), allow_nan=False)
            assert json.loads(text)["summary"]["session"] == "alloys"
            tell_all(session, session.ask(), tapes)


def test_plans_that_are_not_listed_are_shown_by_their_arms() -> None:
    roads = [("A", "B"), ("B", "C"), ("A", "C"), ("C", "D"), ("A", "D")]
    means = np.array([1.0, 2.0, 0.3, 2.5, 1.7])
    hidden = problems.tree_family(roads).oracle_problem(noise=0.1)
    session = new(sp.GenTSExplore(delta=0.1), problem=hidden)
    tapes = Tapes(1, means=means, scale=0.1)
    for _ in range(12):
        tell_all(session, session.ask(), tapes)
    page = views.page(look(session))
    json.dumps(views.to_json(page), allow_nan=False)
    assert page.summary.lead == "A - B + A - C + A - D"
    assert page.picture.kind == "tree"
    assert {page.picture.places[link.head].name for link in page.picture.links if link.amount} == {
        "B",
        "C",
        "D",
    }
    assert page.arms.rows[0].best_share is None


# Pictures


def told(chosen: sp.Problem, means: list[float]) -> views.Picture:
    """The picture of the lead after one exact measurement of each arm."""
    session = new(sp.CombGapE(radius="published"), problem=chosen)
    for request in session.ask(chosen.n_arms):
        session.tell(request, means[request.arm])
    return views.page(look(session)).picture


def test_a_knapsack_shows_what_is_packed_and_how_full_it_is() -> None:
    chosen = problems.knapsack(
        [4, 5], guess=[4.0, 5.0], capacity=11, spread=1.0, item_names=["tea", "coffee"], noise=1
    )
    drawn = told(chosen, [4.5, 5.0])
    assert (drawn.kind, drawn.room) == ("items", 11.0)
    assert drawn.filled == sum(entry.size * entry.amount for entry in drawn.entries)
    assert drawn.value == pytest.approx(sum(entry.mean * entry.amount for entry in drawn.entries))


def test_a_path_is_drawn_from_left_to_right_on_its_graph() -> None:
    drawn = told(
        problems.paths([("A", "B", 1), ("B", "C", 1), ("A", "C", 3)], "A", "C", noise=1),
        [1.0, 1.0, 3.0],
    )
    places = {place.name: place for place in drawn.places}
    assert places["A"].x == 0.0
    assert places["C"].x == 1.0
    assert places["A"].role == "start"
    assert [(link.name, link.amount, link.other) for link in drawn.links] == [
        ("A - B", 1.0, 0.0),
        ("B - C", 1.0, 0.0),
        ("A - C", 0.0, 1.0),
    ]


def test_shipments_between_known_cities_are_drawn_on_a_map() -> None:
    instance = problems.transport_instance(0, n_draws=20)
    drawn = told(instance.problem, instance.means.tolist())
    places = {place.name: place for place in drawn.places}
    assert drawn.geographic
    assert places["Atlanta"].x < places["Boston"].x
    assert places["Atlanta"].y < places["Boston"].y
    assert sum(place.amount for place in drawn.places if place.role == "from") == pytest.approx(1.0)
    unknown = problems.transport(
        [3, 2], [4, 1], guess=[[2, 3], [2, 2]], supplier_names=["X", "Y"], n_draws=50, noise=1
    )
    drawn = told(unknown, [1.0, 2.0, 3.0, 4.0])
    assert [(place.name, place.x) for place in drawn.places] == [("X", 0), ("Y", 0), ("0", 1), ("1", 1)]


def test_a_layout_is_kept_with_the_session_and_is_no_part_of_the_problem(store: Store) -> None:
    chosen = problems.paths([("A", "B", 1), ("B", "C", 1), ("A", "C", 3)], "A", "C", noise=1)
    bare = sp.Problem(
        chosen.plans, arms=chosen.arm_names, plan_names=chosen.plan_names, goal="smallest", noise=1
    )
    assert codec.fingerprint(codec.problem_to_json(chosen)) == codec.fingerprint(codec.problem_to_json(bare))
    new(problem=chosen, store=store)
    assert Session.load(store, "alloys").layout == chosen.layout
    assert Layout.from_json({**chosen.layout.to_json(), "format": 99}) is None  # of a newer surepick


def test_a_layout_of_another_problem_is_refused() -> None:
    with pytest.raises(sp.SurepickError) as caught:
        problem(layout=Layout("items", sizes=(1.0, 2.0, 3.0)))
    assert caught.value.field == "layout"


# Computed once


def test_a_page_that_is_drawn_again_solves_no_design(monkeypatch: pytest.MonkeyPatch) -> None:
    session, tapes = new(), Tapes()
    while session.ledger().n_rounds < 3:
        tell_all(session, session.ask(), tapes)
    first = views.page(look(session))

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("solved again")

    monkeypatch.setattr("surepick.views.gaps.optimal_allocation", refuse)
    again = views.page(look(session))
    assert [arm.best_share for arm in again.arms.rows] == [arm.best_share for arm in first.arms.rows]
    assert first.arms.rows[0].best_share is not None
    tell_all(session, session.ask(), tapes)
    with pytest.raises(AssertionError, match="solved again"):
        views.page(look(session))


def test_the_forecast_says_the_chance_to_be_sure_and_the_arms_what_one_more_brings():
    problem = sp.Problem(
        [[1, 0], [0, 1]], arms=["tea", "coffee"], plan_names=["A", "B"], noise=1, goal="largest"
    )
    session = sp.Session.create("memory://", "cups", problem, policy=sp.BetGapE(), budget=400)
    for k in range(24):
        for request in session.ask():
            session.tell(request, 1.0 + (request.arm_name == "tea") * 0.2 + (-1) ** (k // 2) * 0.9)
    seen = views.page(views.look(session))
    chances = seen.progress.forecast.chances
    assert [n for n, _ in chances][-1] == 400 - seen.summary.n_measurements  # what the budget leaves
    assert [chance for _, chance in chances] == sorted(chance for _, chance in chances)
    assert "within" in seen.progress.forecast.explanation
    assert all(arm.worth > 0 for arm in seen.arms.rows)
    assert {arm.stays_to is None for arm in seen.arms.rows} == {True, False}
    assert seen.summary.what_if.startswith(f"“{seen.summary.runner_up}” would win if")


def test_within_epsilon_a_forecast_counts_what_is_proved_and_not_what_was_measured():
    """Of eighty ties nearly any will do, and other plans than the lead are the best in most worlds."""
    problem, rng = sp.Problem(np.eye(80), noise=1, goal="largest"), np.random.default_rng(1)
    session = sp.Session.create("memory://", "ties", problem, policy=sp.BetGapE(epsilon=1.0))
    said = []
    while requests := session.ask(512):
        for request, value in zip(requests, rng.standard_normal(len(requests)), strict=True):
            session.tell(request, value)
        coming = views.progress(look(session)).forecast
        said += [] if coming is None else [(session.ledger().n_measurements, coming.middle)]
    end = session.ledger().n_measurements
    late = [(end - n) / middle if middle else math.inf for n, middle in said[len(said) // 2 :]]
    assert len(late) > 3
    assert 0.2 < np.median(late) < 3
    assert MOST_LEADS == MOST_PLANS
