"""Certificates say what the log says, and a check of them notices when they do not."""

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import surepick as sp
from common import largest
from session_tools import SCALE, Tapes, answer, holds, problem, run_to_end
from surepick.errors import ParameterError, SessionError
from surepick.policies import Challenge
from surepick.sessions import codec
from surepick.sessions.events import Released
from surepick.sessions.session import Session
from surepick.sessions.state import SessionState
from surepick.store import Draft, MemoryStore

DOCS = Path(__file__).parents[2] / "docs"


def finished(store="memory://", scale=SCALE):
    session = Session.create(store, "mine", problem(noise=scale), policy=sp.CombGapE(delta=0.1), seed=3)
    run_to_end(session, Tapes(scale=scale))
    return session


def test_a_certificate_names_both_deltas_and_a_program_that_checks_it(tmp_path):
    policy = sp.BetGapE(delta=0.1, epsilon=0.05)
    session = Session.create("memory://", "mine", problem().with_about(unit="kg"), policy=policy)
    first = session.tell(session.ask()[0], 7.0).number
    session.remove(first, "a slip")
    run_to_end(session, Tapes())
    session.extend(delta=0.02)
    run_to_end(session, Tapes())
    certificate = session.certificate()
    assert (certificate.first_delta, certificate.delta, certificate.n_removed) == (0.1, 0.02, 1)
    program, _, name = certificate.checker.removeprefix("python ").partition(" ")
    session.export(tmp_path / name)
    command = [sys.executable, str(DOCS / program), str(tmp_path / name)]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0
    assert holds(session)


@pytest.mark.parametrize(
    ("policy", "budget", "checked"),
    [
        (sp.BetGapE(), None, True),
        (sp.BetGapE(), 6, False),  # the checker checks answers
        (sp.CombGapE(), None, False),
        (Challenge("plan 1", epsilon=0.1), 6, False),
    ],
)
def test_every_end_is_certified(policy, budget, checked):
    session = Session.create("memory://", "mine", problem(), policy=policy, budget=budget)
    with pytest.raises(SessionError):
        session.certificate()
    run_to_end(session, Tapes())
    certificate = session.certificate()
    assert certificate.is_confident == (certificate.plan is not None) == (budget is None)
    assert bool(certificate.checker) is checked
    assert holds(session)


def test_counts_and_digests_are_those_of_the_session():
    session = finished()
    certificate, outcome = session.certificate(), session.outcome
    assert (certificate.plan_name, certificate.delta) == (outcome.plan_name, 0.1)
    assert certificate.counts == dict(zip(problem().arm_names, outcome.counts.tolist(), strict=True))
    text = codec.dumps(codec.problem_to_json(problem())).encode()
    assert certificate.problem == hashlib.sha256(text).hexdigest()
    assert len(certificate.log_checksum) == 64
    assert session.verify().remarks == ()


ODD: list[Any] = [None, True, -1, 7, 1e300, 10**400, "x", "", [], [1, "a"], {}, {"a": {"b": []}}]


def test_a_certificate_with_anything_else_in_any_field_is_noticed():
    session = finished(scale=0.05)
    true = json.loads(codec.dumps(session.certificate().to_json()))
    end = {name: true[name] for name in ("log_position", "log_checksum")}
    for value in ODD:
        spoilt = {name for name in true.keys() - end.keys() if true[name] != value}
        found = session.verify({**true, **dict.fromkeys(spoilt, value)})
        assert set(found.fields) == spoilt, value
        assert not any(session.verify({**true, name: value}).holds for name in end)
    assert session.verify(end).fields == tuple(sorted(true.keys() - end.keys()))
    assert session.verify({**true, "mood": "good"}).fields == ("mood",)


def test_a_certificate_with_another_number_or_letter_anywhere_is_noticed():
    session = finished(scale=0.05)
    true = json.loads(codec.dumps(session.certificate().to_json()))
    held = [at for at in leaves(true) if session.verify(other_at(true, at)).holds]
    assert held == [("surepick",)]  # any version may have written it
    assert len(list(leaves(true))) > 50


def leaves(value, at=()):
    """Where numbers, texts, yes and no stand in a JSON value."""
    if isinstance(value, dict | list):
        for name, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(part, (*at, name))
    elif value is not None:
        yield at


def other_at(value, at):
    """The same with a change there that is larger than what another machine may compute."""
    changed = part = json.loads(json.dumps(value))
    for name in at[:-1]:
        part = part[name]
    old = part[at[-1]]
    if isinstance(old, bool):
        part[at[-1]] = not old
    else:
        part[at[-1]] = old + "x" if isinstance(old, str) else old * (1 + 1e-6) + 1e-300
    return changed


@pytest.mark.parametrize(
    ("version", "holds"),
    [
        *((sp.__version__, True), ("1.0.0.dev3", True), ("1.0.0rc1", True), ("1.0.0+ours.2", True)),
        *(("99.0.0", True), ("x", False), ("1.0.0\n", False), (1.0, False), (None, False)),
    ],
)
def test_the_version_in_a_certificate_can_have_written_it(version, holds):
    session = finished()
    assert session.verify({**session.certificate().to_json(), "surepick": version}).holds is holds


def test_unasked_measurements_after_the_end_leave_a_certificate_valid():
    session = finished()
    before = session.certificate().to_json()
    session.tell("tin", 0.3)
    now = session.certificate().to_json()
    assert (before["n_extra"], now["n_extra"]) == (0, 1)
    assert session.verify(before).holds
    assert session.verify(now).holds
    assert not session.verify({**now, "n_extra": 2}).holds


def test_whole_numbers_may_be_written_without_a_point():
    session = finished()
    given = json.loads(codec.dumps(session.certificate().to_json()))
    assert given["epsilon"] == 0.0
    assert session.verify({**given, "epsilon": 0}).holds
    assert not session.verify({**given, "epsilon": False}).holds


def test_what_is_no_certificate_is_refused():
    session, deep = finished(), []
    for _ in range(100_000):
        deep = [deep]
    nested = {**session.certificate().to_json(), "plan": deep}
    for odd in ([], "x", 5, [{"log_position": 1}], {"a": float("nan")}, {"a": {1, 2}}, {"a": b"x"}, nested):
        with pytest.raises(ParameterError):
            session.verify(odd)


def test_several_plans_that_are_good_enough_are_all_named_and_verified():
    problem = largest(np.eye(3), plan_names=["road", "rail", "ship"])
    session = sp.Session.create("memory://", "good enough", problem, policy=sp.BetGapE(epsilon=1.0))
    certificate = answer(session, lambda request: [2.0, 2.0, -3.0][request.probe]).certificate()
    assert certificate.good == ("road", "rail")
    assert session.view().proved.plans == ("road", "rail")
    assert session.verify(certificate.to_json()).holds
    assert not session.verify({**certificate.to_json(), "good": ["road", "ship"]}).holds


def test_what_is_given_back_while_the_last_decision_is_made_counts_in_its_end(monkeypatch):
    """It stands before the end in the log, so who decided has to see it there as everybody does."""
    store = MemoryStore()
    session = sp.Session.create(store, "race", largest(np.eye(2)), policy=sp.BetGapE(), budget=2)
    first, second = session.ask(2)
    decide = SessionState.decide

    def decide_slowly(ledger):
        monkeypatch.setattr(SessionState, "decide", decide)
        *_, last = store.log("race").read()
        busy = Draft("released", Released(0, 1, "", "busy").encode(), last.time)
        store.log("race").append([busy], expected=last.head)  # by a worker that dies before it could decide
        return decide(ledger)

    session.tell(first, 1.0)
    monkeypatch.setattr(SessionState, "decide", decide_slowly)
    session.tell(second, 0.0)
    assert [event.kind for event in store.log("race").read()][-2:] == ["released", "stopped"]
    anew = sp.Session.load(store, "race").state().to_json()
    assert anew["releases"] == {"0.1": 1}
    assert session.state().to_json() == anew


def test_what_is_given_back_after_the_end_leaves_the_certificate_valid():
    session = sp.Session.create(
        "memory://", "s", sp.Problem(np.eye(2), noise=0.3, goal="largest"), policy=sp.BetGapE()
    )
    certificate = answer(session, lambda request: float(request.probe)).certificate().to_json()
    token = f"0.{session.state().streams.of[0].end + 3}"
    for _ in range(30):  # which would look as if its values were not wanted
        session.release(token, "not plausible")
    assert session.verify(certificate).holds
    assert session.certificate().to_json() == certificate
    session.extend(delta=1e-9)
    answer(session, lambda request: float(request.probe))
    assert [doubt.code for doubt in session.certificate().doubts] == ["released"]
