"""Sessions where one measurement gives several numbers: by name, in parts, lost, with a covariance."""

import json

import numpy as np
import pytest

import surepick as sp
from common import refuses
from surepick.errors import SessionError

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


def problem_of(probes=PROBES, **settings):
    return sp.Problem(PLANS, arms=ARMS, noise=1.0, measure=probes, **{"goal": "largest", **settings})


def begun(problem, place="memory://", **settings):
    return sp.Session.create(place, "drives", problem, policy=sp.BetGapE(delta=0.2), **settings)


def use_of(problem, probe, index):
    """The readings of one use; the same whoever makes it, and whenever."""
    assert problem.probes is not None
    rng = np.random.default_rng([probe, index])
    rows = problem.probes.rows[list(problem.readings_of(probe))]
    noise = rng.standard_normal(rows.shape[0])
    if probe in problem.probes.covariances:
        noise = np.linalg.cholesky(problem.probes.covariances[probe]) @ noise
    return dict(zip(problem.reads(probe), (rows @ MEANS + noise).tolist(), strict=True))


def measured(session, request):
    use = use_of(session.given_problem, request.probe, int(request.token.split(".")[1]))
    return use if len(use) > 1 else next(iter(use.values()))


def run_to_end(session, worker=None):
    while requests := session.ask(3, worker=worker):
        for request in requests:
            assert session.tell(request, measured(session, request)).result == "recorded"


def decisions(session):
    return [event.body for event in session.events() if event.kind in ("asked", "stopped")]


def test_a_session_decides_as_the_policy_does_step_by_step():
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


def test_readings_with_a_covariance_are_told_together_or_not_at_all():
    session = begun(problem_of(PAIRED))
    request = next(r for r in session.ask(8) if r.probe_name == "pair")
    before = session.fingerprint
    with refuses("value", SessionError):
        session.tell(request, {"old": 1.0})
    session.state()
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
def test_what_cannot_be_readings_is_refused_by_name(given):
    session = begun(problem_of())
    request = next(r for r in session.ask(4) if r.probe_name == "north")
    with refuses("value"):
        session.tell(request, given)
    assert session.state().n_values == 0


def test_a_whole_use_that_came_late_is_kept_and_counts_where_unasked_ones_do():
    session = begun(problem_of())
    request = next(r for r in session.ask(4, worker="me") if r.probe_name == "north")
    session.tell(request, {"a": 1.0, "b": 2.0})
    assert session.tell(request.token, {"a": 1.1, "b": 2.1}, worker="you").result == "extra"
    run_to_end(session, "me")
    assert session.state().n_extra_used == 1
    assert session.verify(session.certificate().to_json()).holds


def test_a_voided_use_is_asked_for_again_and_decides_nothing():
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


@pytest.mark.parametrize("probes", [PROBES, PAIRED], ids=["independent", "covariance"])
def test_a_session_goes_on_from_a_snapshot_with_the_same_decisions(probes, tmp_path):
    place = f"sqlite:///{tmp_path}/drives.db"
    session, whole = begun(problem_of(probes), place), begun(problem_of(probes))
    run_to_end(whole)
    for _ in range(4):
        request = session.ask()[0]
        session.tell(request, measured(session, request))
    ahead = session.ask(9)[-1]
    session.tell(ahead, measured(session, ahead))
    session.keep_snapshot()
    assert session.store.snapshot("drives") is not None
    again = sp.Session.load(place)
    assert again.state().n_values == 5
    run_to_end(again)
    assert decisions(again) == decisions(whole)


@pytest.mark.parametrize("probes", [PROBES, PAIRED], ids=["independent", "covariance"])
def test_where_a_reading_is_lost_the_use_is_made_again_and_its_values_count_nowhere(probes):
    session, n_lost, used = begun(problem_of(probes)), 0, 0
    while requests := session.ask(2):
        for n, request in enumerate(requests):
            use = measured(session, request)
            if isinstance(use, dict) and n == 0 and n_lost < 4:
                name = request.readings[n_lost % 2]
                session.tell(request, {**dict.fromkeys(use, 1e3), name: None})
                assert request.token not in {r.token for r in session.pending()}
                n_lost += 1
            else:
                session.tell(request, use)
                used += 1
    assert n_lost == session.state().n_lost > 0
    assert session.state().n_measurements <= session.state().n_values == used
    assert np.abs(session.outcome.means).max() < 20
    certificate = session.certificate()
    assert "lost" in certificate.assumption
    assert session.verify(certificate.to_json()).holds


def test_the_noise_check_sees_a_covariance_that_is_too_small_and_none_that_is_right():
    def told_with(correlation):
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
