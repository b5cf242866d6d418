"""Sessions where whole plans are played, which the oracle finds: parts, replays, files, forgeries."""

import io
import json

import numpy as np
import pytest

import surepick as sp
from common import refuses
from surepick.core.oracle_problem import absent
from surepick.core.probes import AskedPlays, Plays
from surepick.errors import MissingFunctionError, ProblemError
from surepick.files.measurements import import_rows, read_rows, write_csv
from surepick.policies import Uniform
from surepick.problems import tree_family
from surepick.sessions import codec
from surepick.sessions.leases import Request
from surepick.sessions.verify import verify_events
from surepick.store import Draft, MemoryStore
from surepick.views import build, look

EDGES = [("A", "B"), ("B", "C"), ("C", "A"), ("C", "D"), ("D", "A")]
MEANS = np.array([3.0, 1.0, 2.0, 2.5, 0.5])
SETS = np.array([[1.0, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1], [1, 0, 0, 1]])


def trees(**settings):
    return tree_family(EDGES).oracle_problem(noise=0.5, measure="plan arms", **settings)


def best_set(weights):
    return np.asarray(SETS[int(np.argmax(SETS @ weights))])


def sets(**settings):
    return sp.OracleProblem(
        best_set, 4, noise=0.5, arms=list("abcd"), measure="plan arms", **{"goal": "largest", **settings}
    )


def begun(problem=None, place="memory://", **settings):
    policy = settings.pop("policy", sp.BetGapE(delta=0.1))
    return sp.Session.create(
        place, "tours", trees() if problem is None else problem, policy=policy, **settings
    )


def use_of(request, means=MEANS):
    """The readings of one play, the same whoever makes it and whenever; by the names in its name."""
    names = tree_family(EDGES).arm_names if len(means) == 5 else tuple("abcd")
    arms = [names.index(name) for name in request.readings]
    rng = np.random.default_rng([sum(2**arm for arm in arms), int(request.token.split(".")[1])])
    return dict(zip(request.readings, (means[arms] + 0.5 * rng.normal(size=len(arms))).tolist(), strict=True))


def run_to_end(session, n=2, means=MEANS):
    while requests := session.ask(n):
        for request in requests:
            assert session.tell(request, use_of(request, means)).result == "recorded"


def decisions(session):
    return [event.body for event in session.events() if event.kind in ("asked", "stopped")]


def test_a_session_decides_as_the_policy_does_step_by_step():
    problem, session = trees(), begun()
    run_to_end(session)
    run, roster, used = sp.BetGapE(delta=0.1).start(problem), list[list[int]](), dict[int, int]()
    for body in map(json.loads, decisions(session)):
        decision = run.decide(np.random.default_rng(0))
        if "plan" in body:
            assert list(decision.plan) == body["plan"]
            return
        roster += body.get("plays", [])
        values: dict[int, list[float]] = {}
        for play, n in body["counts"]:
            names = tuple(problem.arm_names[arm] for arm in roster[play])
            for index in range(used.get(play, 0), used.get(play, 0) + n):
                told = use_of(Request(f"{play}.{index}", play, "", 1, "", 0.0, names))
                for arm, value in zip(roster[play], told.values(), strict=True):
                    values.setdefault(arm, []).append(value)
            used[play] = used.get(play, 0) + n
        counts, sums = np.zeros(5, dtype=np.int64), np.zeros(5)
        for arm, of_arm in values.items():
            counts[arm], sums[arm] = len(of_arm), sum(of_arm)
        assert decision.counts.tolist() == counts.tolist()
        run.absorb(counts, sums)
    raise AssertionError("the session did not end")


@pytest.mark.parametrize("policy", [sp.BetGapE(delta=0.1, max_batch=2), sp.policies.PFWS(0.1)], ids=str)
def test_a_session_goes_on_from_what_was_kept_as_if_it_had_never_been_away(policy):
    store = MemoryStore()
    there = sp.Session.create(store, "tours", trees(), policy=policy)
    whole = begun(policy=policy)
    run_to_end(whole, 1)
    while requests := there.ask():
        for request in requests:
            there.tell(request, use_of(request))
        there.keep_snapshot()
        there = sp.Session.load(store, "tours")
        assert there.state().evidence.n_measurements == there.state().n_measurements
    assert decisions(there) == decisions(whole)
    assert [s.n_measurements for s in look(there).samples] == [s.n_measurements for s in look(whole).samples]
    assert there.verify(there.certificate().to_json()).holds


def test_without_a_removed_value_the_policy_continues_with_the_plays_that_are_known():
    session = begun()
    run_to_end(session)
    names = session.probe_names
    assert session.remove("1.0", "it was another tree")
    assert session.probe_names[: len(names)] == names
    run_to_end(session)
    assert len(set(session.probe_names)) == len(session.probe_names)
    assert session.verify(session.certificate().to_json()).holds


def test_measurements_in_a_file_can_be_told_to_another_session(tmp_path):
    first, second = begun(), begun()
    run_to_end(first)
    file, text = tmp_path / "told.csv", io.StringIO()
    write_csv(first, text)
    file.write_text(text.getvalue(), encoding="utf-8")
    rows = read_rows(file)
    assert {"probe", "reading"} <= set(rows[0])
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
    assert codec.problem_to_json(again) == kept
    assert codec.problem_to_json(trees(cost=3.0)) == kept
    alone = tree_family(EDGES).oracle_problem(noise=0.5, cost=3.0)
    assert codec.fingerprint(codec.problem_to_json(alone)) != codec.fingerprint(kept)
    # a session that begins with the problem of another one begins with no play
    other = sp.Session.create("memory://", "other", session.problem, policy=sp.BetGapE(delta=0.1))
    assert other.given_problem.n_probes == 0
    assert other.state().setup.fingerprint == session.state().setup.fingerprint


def test_plays_of_a_function_need_it_to_decide_and_can_be_looked_at_without(tmp_path):
    place = f"sqlite:///{tmp_path / 'plays.db'}"
    means = np.array([1.6, 2.0, 0.2, 0.1])
    session = begun(sets(), place)
    requests = session.ask(2)
    for request in requests:
        session.tell(request, use_of(request, means))
    with pytest.raises(MissingFunctionError):
        sp.Session.load(place, "tours")
    shown = sp.Session.load(place, "tours", problem=absent)
    assert shown.probe_names == session.probe_names
    assert build(shown).open == build(session).open
    again = sp.Session.load(place, "tours", problem=best_set)
    run_to_end(again, means=means)
    assert again.certificate().plan_name == "a + b"
    assert again.verify(again.certificate().to_json()).holds


def rewritten(events, place, body):
    """The log with another body at this place, its checksums made anew."""
    store = MemoryStore()
    drafts = [Draft(e.kind, e.body, e.time, e.key) for e in events]
    drafts[place] = drafts[place]._replace(body=codec.dumps(body))
    store.create("forged", drafts)
    return list(store.read("forged"))


def test_decide_calls_the_function_with_the_arms_to_read():
    seen: list[tuple[str, ...]] = []
    means = dict(zip(trees().arm_names, MEANS.tolist(), strict=True))

    def tried(arms):
        seen.append(arms)
        return {arm: means[arm] for arm in arms}

    view = sp.decide(trees(), tried, delta=0.1)
    assert view.plan == "B - C + C - A + D - A"
    assert all(isinstance(arms, tuple) and len(arms) == 3 for arms in seen)
    assert len(seen) == view.n_measured


def test_noise_that_is_too_large_is_found_by_arm_over_all_plays():
    session = begun(policy=sp.BetGapE(delta=1e-12), budget=120)
    rng, names = np.random.default_rng(5), tree_family(EDGES).arm_names
    while requests := session.ask(4):
        for request in requests:
            arms = [names.index(name) for name in request.readings]
            session.tell(request, (MEANS[arms] + rng.normal(size=3)).tolist())  # twice the scale
    assert {doubt.code for doubt in session.certificate().doubts} >= {"noise_larger"}


@pytest.mark.parametrize("policy", [sp.CombGapE(), Uniform()], ids=str)
def test_a_policy_that_measures_arms_says_so_and_no_session_begins(policy):
    store = MemoryStore()
    with refuses("policy", ProblemError):
        sp.Session.create(store, "tours", trees(), policy=policy)
    assert store.names() == []


def test_plays_are_numbered_once_and_named_apart():
    asked = AskedPlays().with_new([[0, 1]], ["tour"]).with_new([[0, 2], [1, 2]], ["tour", "way"])
    assert asked.names == ("tour", "tour (1)", "way")
    plays = Plays(np.array([[1.0, 0, 1], [0, 1, 0], [1, 0, 1]]), np.array([2, 1, 3]))
    assert asked.numbered(plays) == ([[1, 5], [3, 1]], [[1]])
    with refuses("policy", ProblemError):
        asked.numbered(Plays(np.zeros((1, 3)), np.ones(1, dtype=np.int64)))


def test_where_a_reading_is_lost_the_same_plan_is_measured_again():
    session = begun()
    (request,) = session.ask(1)
    first, *rest = request.readings
    session.tell(request, {first: 1e3, **dict.fromkeys(rest)})
    again = next(r for r in session.pending() if r.probe == request.probe)
    assert (again.token, again.readings) == (f"{request.probe}.1", request.readings)
    run_to_end(session)
    assert session.state().n_lost == 1
    assert np.nanmax(session.outcome.means) < 20
    certificate = session.certificate()
    assert "lost" in certificate.assumption
    assert session.verify(certificate.to_json()).holds


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
    session = begun()
    run_to_end(session)
    events = list(session.events())
    asked = json.loads(events[1].body)
    other = change(asked["plays"])
    forged = rewritten(events, 1, {**asked, "plays": other})
    assert verify_events("forged", forged, forged[-1].head).holds == (other == asked["plays"])
