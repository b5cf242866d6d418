"""Sessions where one measurement gives several numbers: by name, in parts, lost, with a covariance."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest

import surepick as sp
from surepick.errors import SessionError, SurepickError
from surepick.files.measurements import import_rows, read_rows, write_csv
from surepick.sessions.codec import dumps
from surepick.sessions.requests import Request
from surepick.sessions.verify import verify_events
from surepick.store import Draft, Event, MemoryStore, open_store

ARMS = ("a", "b", "c", "d")
PLANS = [[1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1]]
MEANS = np.array([1.6, 2.0, 0.2, 0.1])
COVARIANCE = [[1.25, 1.0], [1.0, 1.25]]
PROBES = {"north": ["a", "b"], "south": ["c", "d"], "mix": {"a": 1, "c": -1}}
PAIRED = {
    "north": ["a", "b"],
    "south": ["c", "d"],
    "pair": sp.Probe({"old": {"a": 1}, "new": {"d": 1}}, covariance=COVARIANCE),
}


def problem_of(probes: dict[str, object] = PROBES, **settings: object) -> sp.Problem:
    return sp.Problem(PLANS, arms=ARMS, noise=1.0, measure=probes, **{"goal": "largest", **settings})  # type: ignore[arg-type]


def begun(problem: sp.Problem, place: str = "memory://", **settings: object) -> sp.Session:
    return sp.Session.create(place, "drives", problem, policy=sp.BetGapE(delta=0.2), **settings)  # type: ignore[arg-type]


def use_of(problem: sp.Problem, probe: int, index: int) -> dict[str, float]:
    """The readings of one use; the same whoever makes it, and whenever."""
    assert problem.probes is not None
    rng = np.random.default_rng([probe, index])
    rows = problem.probes.rows[list(problem.readings_of(probe))]
    noise = rng.standard_normal(rows.shape[0])
    if problem.must_be_whole(probe):
        noise = np.linalg.cholesky(problem.probes.covariances[probe]) @ noise
    return dict(zip(problem.reads(probe), (rows @ MEANS + noise).tolist(), strict=True))


def measured(session: sp.Session, request: Request) -> dict[str, float] | float:
    use = use_of(session.given_problem, request.probe, int(request.token.split(".")[1]))
    return use if len(use) > 1 else next(iter(use.values()))


def run_to_end(session: sp.Session, worker: str | None = None) -> None:
    while requests := session.ask(3, worker=worker):
        for request in requests:
            assert session.tell(request, measured(session, request)).result == "recorded"


def decisions(session: sp.Session) -> list[str]:
    return [event.body for event in session.events() if event.kind in ("asked", "stopped")]


def test_a_request_names_its_probe_and_the_readings_that_are_wanted() -> None:
    session = begun(problem_of(PAIRED))
    first = next(request for request in session.ask(3) if request.probe == 0)
    assert (first.probe_name, first.token, first.readings) == ("north", "0.0", ("a", "b"))


def test_a_session_decides_as_the_policy_does_step_by_step() -> None:
    problem = problem_of(PAIRED)
    session = begun(problem)
    run_to_end(session)
    assert problem.probes is not None
    run, used = sp.BetGapE(delta=0.2).start(problem), np.zeros(problem.n_probes, dtype=int)
    for body in map(json.loads, decisions(session)):
        decision = run.decide(np.random.default_rng(0))
        if "plan" in body:
            assert decision.plan == body["plan"]
            return
        counts, sums = np.zeros(problem.n_probes, dtype=np.int64), np.zeros(problem.n_readings)
        for probe, n in body["counts"]:
            uses = [list(use_of(problem, probe, used[probe] + i).values()) for i in range(n)]
            counts[probe], used[probe] = n, used[probe] + n
            sums[problem.readings_of(probe)] = np.sum(uses, axis=0)
        assert decision.counts.tolist() == counts.tolist()
        run.absorb(counts, sums)
    raise AssertionError("the session did not end")


def test_readings_that_come_one_by_one_and_later_lead_to_the_same_decisions() -> None:
    whole, parted = begun(problem_of()), begun(problem_of())
    run_to_end(whole)
    while requests := parted.ask(4):
        rest = []
        for request in requests:
            use = measured(parted, request)
            if isinstance(use, float):
                assert parted.tell(request, use).result == "recorded"
                continue
            (first, value), (second, other) = use.items()
            assert parted.tell(request, {second: other}).result == "partial"
            assert parted.readings_wanted(request.token) == (first,)
            rest.append((request, {first: value}))
        for request, part in rest:
            assert parted.tell(request, part).result == "recorded"
    assert decisions(parted) == decisions(whole)
    assert parted.verify(parted.certificate().to_json()).holds


def test_a_token_told_in_part_stays_open_for_the_rest_of_its_readings() -> None:
    session = begun(problem_of())
    request = next(r for r in session.ask(4, worker="me") if r.probe_name == "north")
    session.tell(request, {"a": 1.0})
    again = next(r for r in session.ask(4, worker="me") if r.token == request.token)
    assert again.readings == ("b",)
    assert session.tell(again, [2.0]).result == "recorded"  # in the order of request.readings


def test_a_lost_reading_is_read_again_by_another_use_and_nothing_else_is_lost() -> None:
    session, n = begun(problem_of()), 0
    while requests := session.ask(2):
        for request in requests:
            use = measured(session, request)
            if isinstance(use, dict) and set(request.readings) == set(use) and n % 3 == 0:
                name = request.readings[n % 2]
                session.tell(request, {name: use[name]})
                session.release(request, "the sensor was off")
                assert session.is_told(request.token)
            else:
                session.tell(request, use)
            n += 1
    certificate = session.certificate()
    assert certificate.plan is not None
    assert "readings were lost" in certificate.noise
    assert session.verify(certificate.to_json()).holds
    assert session.ledger().evidence.n_measurements <= session.ledger().n_told


def test_readings_with_a_covariance_are_told_together_or_not_at_all() -> None:
    session = begun(problem_of(PAIRED))
    request = next(r for r in session.ask(8) if r.probe_name == "pair")
    before = session.fingerprint
    with pytest.raises(SessionError) as caught:
        session.tell(request, {"old": 1.0})
    assert caught.value.field == "value"
    session.ledger()
    assert session.fingerprint == before
    assert session.tell(request, [1.0, 0.2]).result == "recorded"


@pytest.mark.parametrize(
    "given",
    [
        1.0,
        [1.0, 2.0, 3.0],
        {"a": 1.0, "x": 2.0},
        {},
        {"a": float("nan"), "b": 1.0},
        {"a": "wet", "b": 1.0},
        {"a": True, "b": 1e30},
    ],
)
def test_what_cannot_be_readings_is_refused_by_name(given: object) -> None:
    session = begun(problem_of())
    request = next(r for r in session.ask(4) if r.probe_name == "north")
    with pytest.raises(SurepickError) as caught:
        session.tell(request, given)  # type: ignore[arg-type]
    assert caught.value.field == "value"
    assert session.ledger().n_told == 0


def test_a_reading_told_twice_stays_what_it_was() -> None:
    session = begun(problem_of())
    request = next(r for r in session.ask(4, worker="me") if r.probe_name == "north")
    session.tell(request, {"a": 1.0})
    assert session.tell(request, {"a": 1.0}).result == "repeated"
    with pytest.raises(SessionError) as caught:
        session.tell(request, {"a": 1.5, "b": 2.0})
    assert caught.value.field == "value"
    assert session.tell(request, {"a": 1.0, "b": 2.0}).result == "recorded"
    assert session.tell(request, {"b": 2.0}).result == "repeated"
    with pytest.raises(SessionError) as caught:
        session.tell(request, {"b": 3.0})
    assert caught.value.field == "value"


def test_another_worker_adds_what_is_missing_and_the_rest_of_its_use_is_noted() -> None:
    session = begun(problem_of())
    request = next(r for r in session.ask(4, worker="me") if r.probe_name == "north")
    session.tell(request, {"a": 1.0})
    assert session.tell(request.token, {"a": 9.0, "b": 2.0}, worker="you").result == "recorded"
    assert [m.value for m in session.told(request.token)] == [1.0, 2.0]
    assert session.verify().holds


def test_a_whole_use_that_came_late_is_kept_and_counts_where_unasked_ones_do() -> None:
    session = begun(problem_of())
    request = next(r for r in session.ask(4, worker="me") if r.probe_name == "north")
    session.tell(request, {"a": 1.0, "b": 2.0})
    assert session.tell(request.token, {"a": 1.1, "b": 2.1}, worker="you").result == "extra"
    run_to_end(session, "me")
    assert session.ledger().run.n_unasked_counted == 1
    assert session.verify(session.certificate().to_json()).holds


def test_unasked_uses_count_when_they_are_whole() -> None:
    session = begun(problem_of())
    session.add_extra("north", {"a": 1.5, "b": 2.0})
    session.add_extra("south", {"c": 0.0})
    run_to_end(session)
    assert (session.ledger().n_unasked, session.ledger().run.n_unasked_counted) == (2, 1)
    assert session.verify(session.certificate().to_json()).holds


def test_a_voided_use_is_asked_for_again_and_decides_nothing() -> None:
    session, clean = begun(problem_of(PAIRED)), begun(problem_of(PAIRED))
    request = next(r for r in session.ask(4) if r.probe_name == "north")
    session.tell(request, {"a": 80.0, "b": 2.0})
    session.remove(request, "the wrong road")
    # the same values, one place further on the tapes of that probe
    while requests := session.ask(3):
        for r in requests:
            index = int(r.token.split(".")[1]) - (r.probe == request.probe)
            use = use_of(session.given_problem, r.probe, index)
            session.tell(r, use if len(use) > 1 else next(iter(use.values())))
    run_to_end(clean)
    assert decisions(session) == decisions(clean)
    assert session.verify(session.certificate().to_json()).holds


def test_a_session_goes_on_from_a_snapshot_with_the_same_decisions(tmp_path) -> None:  # type: ignore[no-untyped-def]
    place = f"sqlite:///{tmp_path}/drives.db"
    session, whole = begun(problem_of(PAIRED), place), begun(problem_of(PAIRED))
    run_to_end(whole)
    for _ in range(4):
        request = session.ask()[0]
        session.tell(request, measured(session, request))
    request = next(r for r in session.ask(9) if len(r.readings) == 2 and r.probe_name != "pair")
    use = use_of(session.given_problem, request.probe, int(request.token.split(".")[1]))
    first, second = request.readings
    session.tell(request, {first: use[first]})
    session.keep_snapshot()
    again = sp.Session.load(place)
    probe, index = again._token(request.token)
    assert again.ledger().tapes.of[probe].untold(index) == [1]
    again.tell(request.token, {second: use[second]})
    run_to_end(again)
    assert decisions(again) == decisions(whole)
    assert again.status != "running"
    assert again.outcome.counts.shape == (3,)


def test_a_csv_file_has_a_row_per_reading_and_is_read_back(tmp_path) -> None:  # type: ignore[no-untyped-def]
    session, other = begun(problem_of(PAIRED)), begun(problem_of(PAIRED))
    run_to_end(session)
    text = io.StringIO()
    write_csv(session, text)
    header = text.getvalue().splitlines()[0]
    assert header == "token,probe,reading,value,time,worker,picked,key"
    (tmp_path / "told.csv").write_text(text.getvalue())
    counts = import_rows(other, read_rows(tmp_path / "told.csv"), answers=False, worker="")
    assert counts["recorded"] == session.ledger().n_told
    assert decisions(other) == decisions(session)


def forged(session: sp.Session, reading: str, instead: str | None) -> list[Event]:
    """The log without this reading of its first event, or with another name for it, sealed again."""
    events = list(session.events())
    at = next(i for i, e in enumerate(events) if e.kind == "measured" and f'"{reading}":' in e.body)
    body = json.loads(events[at].body)
    value = body["readings"].pop(reading)
    if instead is not None:
        body["readings"][instead] = value
    text = json.dumps(body, sort_keys=True, separators=(",", ":"))
    drafts = [Draft(e.kind, text if i == at else e.body, e.time, e.key) for i, e in enumerate(events)]
    store = open_store("memory://")
    store.create(session.name, drafts)
    return list(store.read(session.name))


@pytest.mark.parametrize("instead", [None, "mean", "old"])
def test_verify_objects_to_readings_that_no_session_writes(instead: str | None) -> None:
    session = begun(problem_of(PAIRED))
    run_to_end(session)
    events = forged(session, "old", instead)
    verdict = verify_events(session.name, events, events[-1].head)
    assert verdict.holds == (instead == "old")  # the log as it was, sealed again, holds


def test_the_noise_check_sees_a_covariance_that_is_too_small_and_none_that_is_right() -> None:
    def told_with(correlation: float) -> tuple[object, ...]:
        pair = sp.Probe({"x": {"a": 1}, "y": {"c": 1}}, covariance=[[1.0, 0.9], [0.9, 1.0]])
        problem = problem_of({"pair": pair, "rest": ["b", "d"]})
        session = sp.Session.create("memory://", "drives", problem, policy=sp.BetGapE(delta=1e-12))
        rng = np.random.default_rng(1)
        shared = np.linalg.cholesky([[1.0, correlation], [correlation, 1.0]])
        for _ in range(150):
            if not (requests := session.ask()):
                break
            noise = rng.standard_normal(2)
            noise = shared @ noise if requests[0].probe_name == "pair" else noise
            session.tell(requests[0], noise.tolist())
        if session.status == "running":
            session.close()
        return session.certificate().doubts

    assert told_with(0.9) == ()
    assert any("freed of shared noise" in str(found) for found in told_with(0.2))


def test_a_delivery_that_comes_again_after_a_race_counts_nothing_twice() -> None:
    """Two workers told parts of one use; the second repeats its whole use, as one does after an error."""
    session = begun(problem_of())
    token = next(request.token for request in session.ask(3, worker="ann") if request.probe == 0)
    assert session.tell(token, {"a": 1.5}, worker="ann").result == "partial"
    assert session.tell(token, {"a": 1.25, "b": 2.25}, worker="bob").result == "recorded"
    for _ in range(3):
        session.tell(token, {"a": 1.25, "b": 2.25}, worker="bob")
    told = [m.value for m in session.measurements()]
    assert sorted(told) == [1.25, 1.5, 2.25]
    assert session.ledger().n_told == 1
    run_to_end(session, worker="ann")
    assert session.ledger().run.n_unasked_counted == 0  # what was late is not a whole use
    assert session.verify(session.certificate().to_json()).holds


def test_a_reading_that_comes_after_its_worker_lost_the_race_is_kept_as_late() -> None:
    session = begun(problem_of())
    token = next(request.token for request in session.ask(3, worker="ann") if request.probe == 0)
    session.tell(token, {"a": 1.5}, worker="ann")
    session.tell(token, {"b": 2.25}, worker="bob")
    assert session.tell(token, {"a": 1.5, "b": 2.0}, worker="ann").result == "extra"
    assert session.tell(token, {"b": 2.0}, worker="ann").result == "extra"  # again, and kept once
    with pytest.raises(SessionError) as caught:
        session.tell(token, {"a": 7.0}, worker="ann")
    assert caught.value.field == "value"
    with pytest.raises(SessionError) as caught:
        session.tell(token, {"b": 2.5}, worker="ann")
    assert caught.value.field == "value"
    assert sorted(m.value for m in session.measurements()) == [1.5, 2.0, 2.25]
    assert session.verify().holds


def test_a_late_record_of_what_its_worker_told_is_noticed() -> None:
    session = begun(problem_of())
    token = next(request.token for request in session.ask(3, worker="ann") if request.probe == 0)
    session.tell(token, {"a": 1.5}, worker="ann")
    session.tell(token, {"a": 1.25, "b": 2.25}, worker="bob")
    drafts = [Draft(e.kind, e.body, e.time, e.key) for e in session.events()]
    body = {"late": token, "note": "", "probe": 0, "readings": {"b": 2.25}, "worker": "bob"}
    twice = Draft("recorded", dumps(body), drafts[-1].time, f"recorded:late:{token}:bob:1")
    store = MemoryStore()
    store.create("drives", [*drafts, twice])
    (objection,) = sp.Session.load(store, "drives").verify().objections
    assert "is not another worker's" in objection


def test_a_reading_that_is_lost_after_the_end_leaves_the_certificate_valid() -> None:
    session = begun(problem_of())
    run_to_end(session)
    certificate = session.certificate().to_json()
    token = f"0.{session.ledger().tapes.of[0].end_of_round + 2}"
    session.tell(token, {"a": 1.5})
    session.release(token, "the gauge broke")
    assert session.verify(certificate).holds
    assert session.certificate().to_json() == certificate
    session.extend(delta=0.01)  # it goes on, and what was lost is said from now on
    run_to_end(session)
    assert "in 1 measurement readings were lost" in session.certificate().noise
    assert session.verify(session.certificate().to_json()).holds
