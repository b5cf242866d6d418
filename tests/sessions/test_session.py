"""Sessions: what they decide, what they keep, and what they refuse."""

import json
import random

import numpy as np
import pytest

import surepick as sp
from common import refuses
from policy_contract import FOR_SINGLE_ARMS, OF_PLAYS, OF_POLYTOPES, WITH_A_ZONE, WITHOUT_DELTA, is_peer
from session_tools import Clock, Tapes, answer, holds, problem, run_to_end, same_run, tell_all
from surepick.errors import ParameterError, SessionError, StoreError
from surepick.policies import RAGE, GenTSExplore, Peace, TSExplore
from surepick.sessions.commands import doubts
from surepick.sessions.events import AHEAD, Decision
from surepick.sessions.journal import Journal
from surepick.sessions.run import PolicyRun
from surepick.sessions.session import Session
from surepick.simulation import State
from surepick.store import Event, MemoryStore, open_store

NEEDED = {
    "LinGapE": {"norm_bound": 3.0},
    "Challenge": {"incumbent": 0},
    "Tied": {"epsilon": 0.5},
    **{name: {"zone": 0.3} for name in WITH_A_ZONE},
}


# without a delta, for polytopes, or for plays: they have tests of their own
OWN = [name for name, kind in sp.policies.POLICIES.items() if not is_peer(kind)]
OF_OTHERS = {policy.name for policy in [*WITHOUT_DELTA, *OF_POLYTOPES, *OF_PLAYS]} - {"BetGapE"} | {"Limited"}


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def store(request):
    url = "memory://" if request.param == "memory" else request.getfixturevalue(f"{request.param}_url")
    store = open_store(url)
    yield store
    store.close()


def new(store="memory://", **options):
    options = {"name": "mine", "seed": 3, **options}
    return Session.create(store, problem=problem(), policy=sp.CombGapE(delta=0.1), **options)


KINDS = {name: sp.policies.POLICIES[name] for name in [*OWN, "RAGE", "KN", "TTTS"] if name not in OF_OTHERS}
EVERY_POLICY = [
    *(kind(delta=0.1, **NEEDED.get(name, {})) for name, kind in KINDS.items()),
    sp.BetGapE(delta=0.1, epsilon=0.05, max_batch=3),
    GenTSExplore(delta=0.1),
    TSExplore(delta=0.1),
    RAGE(delta=0.1, variant="authors"),
    Peace(delta=0.1),
]


@pytest.mark.parametrize("policy", EVERY_POLICY, ids=str)
def test_every_policy_decides_in_a_session_as_in_a_simulation_also_from_its_snapshot(policy, monkeypatch):
    monkeypatch.setattr("surepick.sessions.journal.SNAPSHOT_EVERY", 5)
    question = problem()
    if policy.name in FOR_SINGLE_ARMS:
        question = sp.Problem(np.eye(question.n_arms), noise=question.noise_scale, goal="largest")
    expected = sp.simulate(question, Tapes(1), policy=policy, seed=3)
    session = Session.create("memory://", "mine", question, policy=policy, seed=3)
    monkeypatch.setattr(Journal, "_open_whole", lambda self: pytest.fail("the log was replayed"))
    tapes, loads = Tapes(1), random.Random(0)
    while requests := session.ask(20):
        tell_all(session, requests, tapes)
        if session.journal.log.snapshot() is not None and loads.random() < 0.5:
            session = Session.load(session.store, "mine")
    assert same_run(session.outcome, expected)
    assert expected.plan is not None
    monkeypatch.undo()
    assert holds(session)


def test_measuring_ahead_is_bounded_and_the_answer_the_same():
    session, tapes = new(), Tapes()
    requests = session.ask(1000)
    assert 4 < len(requests) <= 4 + AHEAD
    assert session.ask(1000, worker="other", wait=False) == []
    tell_all(session, requests, tapes)
    expected = sp.simulate(problem(), Tapes(), policy=sp.CombGapE(delta=0.1), seed=3)
    assert same_run(run_to_end(session, tapes), expected)


@pytest.mark.parametrize(
    "change",
    [
        lambda s: s.extend(delta=0.01),
        lambda s: s.extend(budget=10**6),
        lambda s: s.close(),
        lambda s: s.rename("a title"),
        lambda s: s.tell("copper", 1.0, key="row 1"),
        lambda s: s.release(s.ask()[0], "rain"),
        lambda s: s.tell(s.ask()[0], None, lost=True),
        lambda s: s.remove(1, "wrong unit"),
        lambda s: s.add_plan("much", {"copper": 3.0, "zinc": 1.0}),
        lambda s: s.final_batch(50),
    ],
    ids=["delta", "budget", "close", "rename", "tell", "release", "lost", "remove", "plan", "final"],
)
@pytest.mark.parametrize("keeps", [True, False], ids=["kept after", "kept before"])
def test_after_every_kind_of_event_a_snapshot_opens_to_what_the_log_says(
    change, keeps, sqlite_url, monkeypatch
):
    monkeypatch.setattr("surepick.sessions.journal.SNAPSHOT_EVERY", 5)
    session = Session.create(sqlite_url, "mine", problem(), policy=sp.BetGapE(delta=0.1), seed=3)
    tapes = Tapes()
    answer(session, lambda request: tapes.value(request.token), n=12)
    before = session.journal.log.snapshot()
    assert before is not None
    change(session)
    if keeps:
        session.journal._save_snapshot()
    else:
        session.journal.log.save_snapshot(before)
    kept = Session.load(sqlite_url, "mine")
    monkeypatch.setattr(Journal, "_kept_state", lambda self: None)
    whole = Session.load(sqlite_url, "mine")
    assert json.dumps(kept.state().to_json()) == json.dumps(whole.state().to_json())
    assert same_run(kept.outcome, whole.outcome)
    monkeypatch.undo()
    requests = kept.ask(3, worker="next", wait=False)
    tell_all(kept, requests, tapes)
    assert kept.verify().holds


@pytest.mark.parametrize("body", [b"{}", b"[]", b"not json", b'{"format": 1, "state": {}}'])
def test_a_snapshot_that_does_not_fit_is_no_snapshot(body, sqlite_url, monkeypatch):
    monkeypatch.setattr("surepick.sessions.journal.SNAPSHOT_EVERY", 5)
    session, tapes = new(sqlite_url), Tapes()
    answer(session, lambda request: tapes.value(request.token), n=12)
    snapshot = session.journal.log.snapshot()
    assert snapshot is not None
    session.journal.log.save_snapshot(snapshot._replace(body=body))
    again = Session.load(sqlite_url, "mine")
    assert again.state().n_values == session.state().n_values
    expected = sp.simulate(problem(), Tapes(), policy=sp.CombGapE(delta=0.1), seed=3)
    assert same_run(run_to_end(again, tapes), expected)


@pytest.mark.parametrize("is_quick", [True, False])
def test_a_value_is_recorded_although_the_policy_then_fails(is_quick, sqlite_url, monkeypatch):
    session, tapes = new(sqlite_url), Tapes()
    answer(session, lambda request: tapes.value(request.token), n=12)
    monkeypatch.setattr(Journal, "_is_quick", lambda self: is_quick)  # within the transaction, or after it
    monkeypatch.setattr(PolicyRun, "propose", lambda self, number: {}["no such plug-in"])
    (request,) = session.ask()
    with pytest.raises(KeyError):
        session.tell(request, tapes.value(request.token))
    monkeypatch.undo()
    assert [m.token for m in Session.load(sqlite_url, "mine").measurements()][-1] == request.token
    expected = sp.simulate(problem(), Tapes(), policy=sp.CombGapE(delta=0.1), seed=3)
    assert same_run(run_to_end(session, tapes), expected)
    assert holds(session)


class CountingDict(dict[int, float]):
    """Counts how often somebody looks whether a key is there."""

    n_looks = 0

    def __contains__(self, key):
        self.n_looks += 1
        return super().__contains__(key)


def test_a_place_that_stays_open_does_not_make_asking_dearer():
    session = Session.create("memory://", "mine", problem(noise=30.0), policy=RAGE(delta=0.1))
    (slow,) = session.ask(worker="slow")
    state = session.state()
    pending = state.streams.of[slow.probe].pending = CountingDict()
    looks = []
    for _ in range(100):
        before = pending.n_looks
        (request, *_) = session.ask(5, worker="quick")
        looks.append(pending.n_looks - before)
        session.tell(request, [0.5] * 20)
    assert state.n_values == 2000
    assert not state.streams.of[slow.probe].is_recorded(int(slow.token.split(".")[1]))
    assert 0 < max(looks[50:]) <= 2 * max(looks[1:6])  # walking what is recorded would take 2000


def test_a_token_that_was_handed_on_is_not_taken_from_who_has_it(store):
    clock = Clock()
    session = new(store, clock=clock)
    (late,) = session.ask(worker="anna")
    clock.now += session.journal.setup.lease + 1
    (now,) = session.ask(worker="ben")
    assert now.token == late.token
    for given_back in (
        lambda: session.release(late, "rain"),
        lambda: session.release(late.token, worker="anna"),
        lambda: session.release(late.token),
    ):
        with refuses("worker", SessionError):
            given_back()
    assert [lease.worker for lease in session.leases()] == ["ben"]
    assert all(event.kind != "withdrawn" for event in session.events())
    session.release(late.token, "ben went home", worker="ben")
    assert json.loads(list(session.events())[-1].body)["worker"] == "ben"
    assert session.leases() == []
    assert session.verify().holds


def test_several_values_at_once_are_the_next_places_of_the_tape():
    tapes, alone, together = Tapes(), new(), new()
    (first, *_) = together.ask(4)
    values = [tapes.value(f"{first.probe}.{place}") for place in range(30)]
    assert together.tell(first, values).result == "extra"  # as the last of them, behind the batch
    assert together.tell(first, values).result == "repeated"
    assert len(list(together.measurements())) == 30
    assert same_run(run_to_end(together, tapes), run_to_end(alone, Tapes()))


def test_several_values_leave_other_workers_requests_alone():
    session = new()
    mine = session.ask(1, worker="a")[0]
    theirs = [r for r in session.ask(60, worker="b") if r.probe == mine.probe]
    assert theirs
    session.tell(mine, [0.1] * 5)
    for request in theirs:
        assert session.tell(request, 0.7).result in ("recorded", "extra")
    assert session.state().n_values == 5 + len(theirs)
    assert session.verify().holds


def test_several_values_end_the_leases_of_all_their_places(store):
    policy = RAGE(delta=0.1)
    session = Session.create(store, "mine", problem(noise=30.0), policy=policy)
    theirs = session.ask(3, worker="slow")
    for _ in range(4):
        requests = session.ask(40)
        assert len(store.log("mine").leases()) == len(theirs) + len(requests)  # what the next who asks reads
        for arm in {request.probe for request in requests}:
            mine = [request for request in requests if request.probe == arm]
            session.tell(mine[0], [0.5] * len(mine))
        assert {lease.token for lease in store.log("mine").leases()} == {request.token for request in theirs}
    assert session.state().n_values == 160


@pytest.mark.parametrize("policy", [sp.BetGapE, sp.CombGapE], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("change", [{"delta": 0.001}, {"budget": 10**6}], ids=str)
def test_another_process_follows_an_extension(policy, change, sqlite_url, monkeypatch):
    monkeypatch.setattr("surepick.sessions.journal.SNAPSHOT_EVERY", 5)
    session = Session.create(sqlite_url, "mine", problem(), policy=policy(delta=0.1), seed=3, budget=25)
    tapes = Tapes()
    before = run_to_end(session, tapes)
    other = Session.load(sqlite_url, "mine")
    extending = Session.load(sqlite_url, "mine")
    if "delta" in change and policy is sp.CombGapE:
        with refuses("delta", ParameterError):
            extending.extend(**change)
        return
    extending.extend(**{"budget": 10**6, **change})
    assert other.status == "running"
    after = run_to_end(other, tapes)
    assert after.n_measured > before.n_measured
    assert same_run(session.outcome, after)
    assert other.policy.delta == change.get("delta", 0.1)
    assert session.verify(other.certificate().to_json()).holds
    for less in ({}, {"delta": 0.5}, {"delta": -1.0}):
        with pytest.raises(ParameterError):
            session.extend(**less)


def test_the_last_values_are_read_from_the_end_of_the_log(store, monkeypatch):
    session = Session.create(store, "mine", problem(), delta=1e-12)
    for _ in range(60):
        session.tell(0, [1.0] * 5)
        tell_all(session, session.ask(4), Tapes())
    read, seen = type(session.journal.log).read, list[Event]()

    def counting(*given, **more):
        for event in read(*given, **more):
            seen.append(event)
            yield event

    expected = list(session.measurements())[-7:]
    monkeypatch.setattr(type(session.journal.log), "read", counting)
    assert list(session.measurements(7)) == expected
    assert len(seen) < 60 < session.state().n_values
    assert len(list(session.measurements(10**6))) == session.state().n_values


def test_the_name_may_be_left_out_when_there_is_only_one():
    store = MemoryStore()
    with pytest.raises(SessionError):
        Session.load(store)
    new(store)
    assert Session.load(store).name == "mine"
    new(store, name="other")
    with pytest.raises(SessionError):
        Session.load(store)


def test_a_policy_whose_version_changed_is_not_continued(monkeypatch):
    store = new().store
    monkeypatch.setattr(sp.CombGapE, "version", 99)
    with pytest.raises(SessionError):
        Session.load(store, "mine")


@pytest.mark.parametrize("options", [{"name": " "}, {"budget": 0}, {"lease": 0.0}], ids=lambda o: str(o))
def test_a_session_that_cannot_work_is_not_begun(options):
    with pytest.raises(ParameterError):
        new(**options)


def test_the_first_decisions_are_checked_as_all_others_are(monkeypatch):
    store = MemoryStore()

    def refuse(self, state):
        raise SessionError("no such decision", field="decision")

    monkeypatch.setattr(Decision, "check", refuse)
    with refuses("decision", SessionError):
        new(store)
    assert store.names() == []


@pytest.mark.parametrize(
    "change", [{"budget": 0}, {"policy": "CombGapE", "epsilon": -1.0}, {"name": "other"}]
)
def test_a_successor_that_is_refused_leaves_the_session_running(change):
    store = MemoryStore()
    session = new(store)
    new(store, name="other")
    with pytest.raises((ParameterError, StoreError)):
        session.successor("the road is new", **change)
    assert session.status == "running"
    assert store.names() == ["mine", "other"]


def test_what_is_no_number_and_no_token_is_refused_in_our_words():
    session = Session.create("memory://", "mine", problem(), policy=sp.CombGapE(delta=0.1))
    for n in (0, 1.5, "two"):
        with pytest.raises(ParameterError):
            session.ask(n)
    assert len(session.ask(np.int64(2))) == 2
    for token in (None, "", "banana", "1.2.3", "9.0", "0.-1", "0.5000"):
        with refuses("request", SessionError):
            session.tell(token, 1.0)


def test_a_session_needs_neither_policy_nor_name_and_has_an_outcome_while_it_runs():
    store, tapes = MemoryStore(), Tapes(2)
    session = Session.create(store, "decision", problem())
    assert (session.name, session.policy.name) == ("decision", "BetGapE")
    assert (session.outcome.state, session.outcome.plan, session.outcome.n_measured) == ("running", None, 0)
    while session.state().n_measurements == 0:
        tell_all(session, session.ask(4), tapes)
    running = session.outcome
    assert (running.state, running.plan) == (State.RUNNING, None)
    assert running.leader == session.state().standing().leader
    assert running.n_measured == running.counts.sum() > 0
    assert Session.open(store, "decision", problem()).journal.head == session.journal.head
    assert run_to_end(session, tapes).state == State.CONFIDENT


@pytest.mark.parametrize("options", [{"noise": None}, {"noise": None, "low": -3, "high": 3}])
def test_a_session_that_has_measured_nothing_has_an_outcome(options):
    session = Session.create("memory://", "decision", problem(**options), policy=sp.BetGapE())
    assert (session.outcome.state, session.outcome.plan, session.outcome.n_rounds) == ("running", None, 0)


def test_with_unknown_noise_a_value_far_from_the_others_is_asked_about():
    session = Session.create("memory://", "mine", sp.Problem(["a", "b"], goal="smallest"))
    for value in (10.1, 10.4, 11.0, 10.2):
        session.tell("a", value)
    assert doubts(session.state(), [("a", 104.0)])
    assert not doubts(session.state(), [("a", 13.0), ("b", 104.0)]), "nothing to compare b with"
    for _ in range(4):
        session.tell("b", 0.0)
    assert session.tell("b", 5.0).result in ("recorded", "extra")  # zeros show no noise to compare with
