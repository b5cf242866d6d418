"""Plans that are added to a session: events of the log, decided, kept, verified and certified."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import surepick as sp
from surepick.errors import ParameterError, SessionError, SurepickError
from surepick.problems.files.load import load

ARMS = ["bus", "train", "walk", "bike"]
MINUTES = {"bus": 20.0, "train": 25.0, "walk": 6.0, "bike": 9.0}
PROBLEM = sp.Problem(
    {"by bus": "bus + walk", "by train": "train + walk"}, arm_names=ARMS, noise_scale=2.0, minimize=True
)


def begun(problem=PROBLEM, policy=None, **settings):
    return sp.Session.create("memory://", problem, policy or sp.BetGapE(), name="trips", **settings)


def measured(session, n=None, seed=0):
    """Told n measurements, or all that it wants."""
    rng, told = np.random.default_rng([seed, session.ledger().n_told]), 0
    while (n is None or told < n) and (requests := session.ask()):
        for request in requests:
            session.tell(request, MINUTES[request.arm_name] + 2.0 * rng.standard_normal())
            told += 1
    return session


def test_a_plan_that_arrives_in_the_middle_of_a_round_can_win_and_is_verified():
    session = measured(begun(), 5)
    asked = [request.token for request in session.pending()]
    session.add_plan("by bike", "bike + walk")
    assert [request.token for request in session.pending()] == asked  # the open round stays as it was
    standing = session.standing()
    assert standing.risk == 1.0
    assert 2 in standing.remaining
    certificate = measured(session).certificate()
    assert (certificate.plan_name, certificate.added) == ("by bike", ("by bike",))
    assert session.verify(certificate.to_json()).holds
    assert "while it ran: by bike" in str(certificate)
    assert session.outcome.counts[3] > 0


def test_one_that_arrives_after_the_answer_reopens_the_session():
    session = measured(begun())
    assert session.outcome.plan_name == "by bus"
    session.add_plan("by bike", {"bike": 1, "walk": 1})
    assert session.status is None
    assert [request.arm_name for request in session.pending()] == ["bike"]  # the only arm never measured
    assert measured(session).outcome.plan_name == "by bike"
    assert session.verify().holds


def test_whoever_loads_it_goes_on_alike_from_the_log_and_from_a_snapshot(tmp_path):
    place = f"sqlite:///{tmp_path}/trips.db"
    first = sp.Session.create(place, PROBLEM, sp.BetGapE(delta=1e-4), name="trips")
    measured(first, 4)
    first.add_plan("by bike", "bike + walk")
    measured(first, 60)
    again = sp.Session.load(place, "trips")
    assert again.problem.plan_names == ("by bus", "by train", "by bike")
    assert [r.token for r in again.pending()] == [r.token for r in first.pending()]
    opened = sp.Session.open(place, PROBLEM, sp.BetGapE(delta=1e-4), name="trips")
    assert opened.standing() == first.standing()
    ledger = first.ledger()
    kept = json.loads(json.dumps(ledger.to_json()))
    restored = type(ledger).from_json(again._setup, kept)
    assert restored.standing() == ledger.standing()


def test_what_would_start_the_policy_over_is_refused_afterwards():
    session = measured(begun(budget=400), 12)
    session.add_plan("by bike", "bike + walk")
    with pytest.raises(SessionError, match="plans were added"):
        session.extend(delta=0.01)
    with pytest.raises(SessionError, match="plans were added"):
        session.void("0.0", reason="a wrong unit")
    session.extend(budget=500)
    assert session.budget == 500


@pytest.mark.parametrize(
    ("name", "plan", "words"),
    [("by bus", "bike", "already"), ("same", "bus + walk", "same as"), ("x", "boat", "unknown arm"),
     ("", "bike", "name"), ("x", [1, 2], "each of the 4 arms")],
)  # fmt: skip
def test_what_is_no_new_plan_is_refused_and_nothing_is_written(name, plan, words):
    session = begun()
    before = session.fingerprint
    with pytest.raises(SurepickError, match=words):
        session.add_plan(name, plan)
    assert session.fingerprint == before


def test_sessions_that_cannot_take_one_say_why():
    with pytest.raises(ParameterError, match="CombGapE cannot"):
        begun(policy=sp.CombGapE()).add_plan("by bike", "bike")
    called = measured(begun(budget=40), 4)
    called.last_call()
    with pytest.raises(SessionError, match="last call"):
        called.add_plan("by bike", "bike")
    closed = begun()
    closed.close()
    with pytest.raises(SessionError, match="ended"):
        closed.add_plan("by bike", "bike")
    learning = begun(PROBLEM.with_noise(None))
    with pytest.raises(SessionError, match="being learned"):
        learning.add_plan("by bike", "bike")
    with pytest.raises(SessionError, match="has not learned"):
        measured(learning, 40).add_plan("by bike", "bike")


def test_a_forged_arrival_is_noticed():
    session = measured(begun(), 6)
    session.add_plan("by bike", "bike + walk")
    from surepick.sessions.rules import ForgedError, Replay

    events = list(session.events())
    out_of_order = [[2, 1.0], [0, 1.0]]
    for change in ({"n_ahead": 3}, {"amounts": [[0, 1]]}, {"amounts": out_of_order}, {"name": "other"}):
        replay = Replay(events[0])
        with pytest.raises(ForgedError):  # noqa: PT012  # whichever event it is
            for event in events[1:]:
                if event.kind == "plan-added":
                    body = {**json.loads(event.body), **change}
                    text = json.dumps(body, sort_keys=True, separators=(",", ":"))
                    event = event._replace(body=text) if hasattr(event, "_replace") else _changed(event, text)
                replay.take(event)


def _changed(event, text):
    from dataclasses import replace

    return replace(event, body=text)


def test_the_command_adds_it_too(tmp_path):
    from surepick.cli import app

    file = tmp_path / "trips.toml"
    arms = 'arm_names = ["bus", "train", "bike"]'
    file.write_text(f'kind = "table"\nplans = [[1, 0, 0], [0, 1, 0]]\n{arms}\n', encoding="utf-8")
    assert load(file).problem.relevant.tolist() == [True, True, False]
    store, runner = f"sqlite:///{tmp_path}/trips.db", CliRunner()
    assert runner.invoke(app, ["new", str(file), "--store", store]).exit_code == 0
    done = runner.invoke(app, ["add-plan", "by bike", "bike", "--store", store])
    assert done.exit_code == 0, done.output
    assert sp.Session.load(store).problem.n_plans == 3
    assert "“by bike” (1 × bike)" in _log_text(store)


def _log_text(store):
    from surepick.views.events import log_row

    session = sp.Session.load(store)
    return "\n".join(log_row(event, session.problem).text for event in session.events())


def test_a_new_epoch_takes_the_values_before_as_past_alone():
    session = measured(begun(budget=100), 4)
    n_used = session.ledger().n_measurements
    with pytest.raises(ParameterError, match="reason"):
        session.new_epoch(" ", name="after")
    later = session.new_epoch("the bridge is closed", name="after")
    assert session.status == sp.Status.CLOSED
    assert later.budget == 100 - n_used
    past = later.ledger().setup.past
    assert past.worth.max() <= 20
    assert past.means[0] == pytest.approx(session.outcome.means[0])
    assert later.standing().risk in (None, 1.0)  # nothing is proved by it
    notes = [json.loads(event.body).get("text") for event in later.events()]
    assert "a new epoch of 'trips': the bridge is closed" in notes
    assert measured(later).verify().holds
    other = begun(policy=sp.CombGapE()).new_epoch("spring", name="other")
    assert other.ledger().setup.past is None
