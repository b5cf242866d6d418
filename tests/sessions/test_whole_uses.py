"""Sessions where one use gives several numbers: of a probe, with a covariance, or of a played plan."""

import io
import json
from collections import Counter

import numpy as np
import pytest

import surepick as sp
from common import refuses
from surepick.core.oracle_problem import absent
from surepick.errors import MissingFunctionError
from surepick.files.measurements import import_rows, read_rows, write_csv
from surepick.sessions import codec
from surepick.sessions.verify import verify_events
from surepick.store import Draft, MemoryStore
from surepick.views import build

EDGES = [("A", "B"), ("B", "C"), ("C", "A"), ("C", "D"), ("D", "A")]
TREE_MEANS = np.array([3.0, 1.0, 2.0, 2.5, 0.5])
MEANS = np.array([1.6, 2.0, 0.2, 0.1])
SETS = np.array([[1.0, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1], [1, 0, 0, 1]])
PROBES = {"north": ["a", "b"], "south": ["c", "d"], "mix": {"a": 1, "c": -1}}
PAIR = sp.Probe({"old": {"a": 1}, "new": {"d": 1}}, covariance=[[1.25, 1.0], [1.0, 1.25]])
PAIRED = {"north": ["a", "b"], "south": ["c", "d"], "pair": PAIR}


def best_set(weights):
    return SETS[int(np.argmax(SETS @ weights))]


def probed(probes=PROBES):
    return sp.Problem(SETS[:3], arms=list("abcd"), noise=1.0, measure=probes, goal="largest")


def trees(**settings):
    return sp.problems.trees(EDGES, list_plans=False, noise=0.5, measure="plan arms", **settings)


KINDS = {"readings": probed, "covariance": lambda: probed(PAIRED), "plays": trees}
of_all_kinds = pytest.mark.parametrize("kind", KINDS)


def begun(problem, place="memory://", policy=None, **settings):
    return sp.Session.create(place, "uses", problem, policy=policy or sp.BetGapE(delta=0.1), **settings)


def use_of(problem, probe, index, names):
    """The readings of one use; the same whoever makes it, and whenever."""
    rng, means = np.random.default_rng([probe, index]), MEANS if problem.n_arms == 4 else TREE_MEANS
    if isinstance(problem, sp.OracleProblem):
        rows, noise = np.eye(len(means))[[problem.arm_names.index(name) for name in names]], 0.5
    else:
        rows, noise = problem.probes.rows[list(problem.readings_of(probe))], 1.0
    noise = noise * rng.standard_normal(len(names))
    if problem.probes is not None and probe in problem.probes.covariances:
        noise = np.linalg.cholesky(problem.probes.covariances[probe]) @ noise
    return dict(zip(names, (rows @ means + noise).tolist(), strict=True))


def measured(session, request, shift=0):
    index = int(request.token.split(".")[1]) - shift
    names = request.readings or session.problem.reads(request.probe)
    use = use_of(session.problem, request.probe, index, names)
    return use if len(use) > 1 else next(iter(use.values()))


def run_to_end(session, worker=None):
    while requests := session.ask(2, worker=worker):
        for request in requests:
            assert session.tell(request, measured(session, request)).result == "recorded"
    return session


def decisions(session):
    return [event.body for event in session.events() if event.kind in ("asked", "stopped")]


@of_all_kinds
def test_a_session_decides_as_the_policy_does_step_by_step(kind):
    problem, plays, used = KINDS[kind](), [], Counter()
    run, is_played = sp.BetGapE(delta=0.1).start(problem), kind == "plays"
    shape = (problem.n_arms,) * 2 if is_played else (problem.n_probes, problem.n_readings)
    for body in map(json.loads, decisions(run_to_end(begun(KINDS[kind]())))):
        decision = run.decide(np.random.default_rng(0))
        if "plan" in body:
            assert (list(decision.plan) if is_played else decision.plan) == body["plan"]
            return
        plays += body.get("plays", [])
        counts, sums = np.zeros(shape[0], dtype=np.int64), np.zeros(shape[1])
        for probe, n in body["counts"]:
            at = plays[probe] if is_played else list(problem.readings_of(probe))
            names = [problem.arm_names[arm] for arm in at] if is_played else problem.reads(probe)
            uses = [list(use_of(problem, probe, used[probe] + i, names).values()) for i in range(n)]
            used[probe] += n
            counts[at if is_played else probe] += n
            sums[at] += np.sum(uses, axis=0)
        assert decision.counts.tolist() == counts.tolist()
        run.absorb(counts, sums)
    raise AssertionError("the session did not end")


@pytest.mark.parametrize(
    ("kind", "policy"),
    [*((kind, sp.BetGapE(delta=0.1, max_batch=2)) for kind in KINDS), ("plays", sp.policies.PFWS(0.1))],
    ids=str,
)
def test_a_session_goes_on_from_what_was_kept_as_if_it_had_never_been_away(kind, policy):
    there, turn = begun(KINDS[kind](), MemoryStore(), policy), 0
    whole = run_to_end(begun(KINDS[kind](), policy=policy))
    while requests := there.ask():
        turn += 1
        for request in [*requests, *(there.ask(9)[-1:] if turn == 4 else ())]:  # one of them ahead
            there.tell(request, measured(there, request))
        there.journal.keep_if_small()
        there = sp.Session.load(there.store, "uses")
    assert decisions(there) == decisions(whole)
    assert there.verify(there.certificate().to_json()).holds


@of_all_kinds
def test_a_removed_use_is_asked_for_again_and_decides_nothing(kind):
    session, clean = begun(KINDS[kind]()), run_to_end(begun(KINDS[kind]()))
    removed = next(r for r in session.ask(4) if len(r.readings) > 1)
    session.tell(removed, dict.fromkeys(removed.readings, 80.0))
    session.remove(removed, "the wrong road")
    while requests := session.ask(3):  # the same values, one place further on the tapes of that probe
        for request in requests:
            session.tell(request, measured(session, request, request.probe == removed.probe))
    assert decisions(session) == decisions(clean)
    assert session.verify(session.certificate().to_json()).holds


@of_all_kinds
def test_where_a_reading_is_lost_the_use_is_made_again_and_its_values_count_nowhere(kind):
    session, n_lost, used = begun(KINDS[kind]()), 0, 0
    while requests := session.ask(2):
        for n, request in enumerate(requests):
            use = measured(session, request)
            if isinstance(use, dict) and n == 0 and n_lost < 4:
                name = request.readings[n_lost % 2]
                session.tell(request, {**dict.fromkeys(use, 1e3), name: None}, sure=True)
                assert request.token not in {r.token for r in session.pending()}
                assert request.readings in {r.readings for r in session.pending()}
                n_lost += 1
            else:
                session.tell(request, use)
                used += 1
    assert n_lost == session.state().n_lost > 0
    assert session.state().n_measurements <= session.state().n_values == used
    assert np.nanmax(np.abs(session.outcome.means)) < 20
    certificate = session.certificate()
    assert "lost" in certificate.assumption
    assert session.verify(certificate.to_json()).holds


@pytest.mark.parametrize(
    "given",
    [
        *(1.0, [1.0, 2.0, 3.0], {"a": 1.0, "x": 2.0}, {}, {"a": float("nan"), "b": 1.0}),
        *({"a": "wet", "b": 1.0}, {"a": True, "b": 1e30}),
    ],
)
def test_what_cannot_be_readings_is_refused_by_name(given):
    session = begun(probed())
    request = next(r for r in session.ask(4) if r.probe_name == "north")
    with refuses("value"):
        session.tell(request, given)
    assert session.state().n_values == 0


def test_the_noise_check_sees_a_covariance_that_is_too_small_and_none_that_is_right():
    def told_with(correlation):
        pair = sp.Probe({"x": {"a": 1}, "y": {"c": 1}}, covariance=[[1.0, 0.9], [0.9, 1.0]])
        session = begun(probed({"pair": pair, "rest": ["b", "d"]}), policy=sp.BetGapE(delta=1e-12))
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


def test_without_a_removed_value_the_policy_continues_with_the_plays_that_are_known():
    session = run_to_end(begun(trees()))
    names = session.problem.probe_names
    assert session.remove("1.0", "it was another tree")
    assert session.problem.probe_names[: len(names)] == names
    run_to_end(session)
    assert len(set(session.problem.probe_names)) == len(session.problem.probe_names)
    assert session.verify(session.certificate().to_json()).holds


def test_measurements_in_a_file_can_be_told_to_another_session(tmp_path):
    first, second, text = run_to_end(begun(trees())), begun(trees()), io.StringIO()
    write_csv(first, text)
    (tmp_path / "told.csv").write_text(text.getvalue(), encoding="utf-8")
    rows = read_rows(tmp_path / "told.csv")
    assert rows[0].name
    assert rows[0].reading
    n_known = second.problem.n_probes
    counts = import_rows(second, rows, worker="")
    assert first.problem.n_probes > n_known  # some plays were asked for in the middle of the file only
    assert counts["recorded"] == first.state().n_values
    assert decisions(second) == decisions(first)


def test_the_problem_is_kept_with_its_plays_and_without_those_that_were_asked_for():
    session = begun(trees(cost=3.0))
    kept = codec.problem_to_json(session.problem)
    assert kept["plays"] is True
    again = codec.problem_from_json(kept)
    assert again.plays
    assert not len(again.asked_plays)
    assert codec.problem_to_json(again) == kept == codec.problem_to_json(trees(cost=3.0))
    alone = sp.problems.trees(EDGES, list_plans=False, noise=0.5, cost=3.0)
    assert codec.fingerprint(codec.problem_to_json(alone)) != codec.fingerprint(kept)
    other = begun(session.problem)  # with the problem of another session, and no play
    assert other.state().given.problem.n_probes == 0
    assert other.state().setup.fingerprint == session.state().setup.fingerprint


def test_plays_of_a_function_need_it_to_decide_and_can_be_looked_at_without(tmp_path):
    place = f"sqlite:///{tmp_path / 'plays.db'}"
    problem = sp.OracleProblem(best_set, 4, noise=0.5, arms=list("abcd"), measure="plan arms", goal="largest")
    session = begun(problem, place)
    for request in session.ask(2):
        session.tell(request, measured(session, request))
    with pytest.raises(MissingFunctionError):
        sp.Session.load(place, "uses")
    shown = sp.Session.load(place, "uses", problem=absent)
    assert shown.problem.probe_names == session.problem.probe_names
    assert build(shown).open == build(session).open
    again = run_to_end(sp.Session.load(place, "uses", problem=best_set))
    assert again.certificate().plan_name == "a + b"
    assert again.verify(again.certificate().to_json()).holds


def test_decide_calls_the_function_with_the_arms_to_read():
    seen, means = [], dict(zip(trees().arm_names, TREE_MEANS.tolist(), strict=True))

    def tried(arms):
        seen.append(arms)
        return {arm: means[arm] for arm in arms}

    view = sp.decide(trees(), tried, delta=0.1)
    assert view.plan == "B - C + C - A + D - A"
    assert all(isinstance(arms, tuple) and len(arms) == 3 for arms in seen)
    assert len(seen) == view.n_measured


def test_noise_that_is_too_large_is_found_by_arm_over_all_plays():
    session = begun(trees(), policy=sp.BetGapE(delta=1e-12), budget=120)
    rng, names = np.random.default_rng(5), session.problem.arm_names
    while requests := session.ask(4):
        for request in requests:
            arms = [names.index(name) for name in request.readings]
            session.tell(request, (TREE_MEANS[arms] + rng.normal(size=3)).tolist())  # twice the scale
    assert {doubt.code for doubt in session.certificate().doubts} >= {"noise_larger"}


@pytest.mark.parametrize(
    "change",
    [
        lambda plays: plays,
        lambda plays: [[0, 1, 2], *plays[1:]],
        lambda plays: plays[::-1],
        lambda plays: [*plays, [0, 1, 3]],
        lambda plays: plays[1:],
        *(lambda plays, arms=arms: [*plays[1:], arms] for arms in ([5], [-1], [], [0.5], ["A - B"], [True])),
    ],
)
def test_a_log_that_asks_for_other_plan_probes_does_not_hold(change):
    events = list(run_to_end(begun(trees())).events())
    asked, store = json.loads(events[1].body), MemoryStore()
    other = change(asked["plays"])
    drafts = [Draft(e.kind, e.body, e.time, e.key) for e in events]
    drafts[1] = drafts[1]._replace(body=codec.dumps({**asked, "plays": other}))
    store.create("forged", drafts)
    forged = list(store.log("forged").read())
    assert verify_events("forged", forged, forged[-1].head).holds == (other == asked["plays"])
