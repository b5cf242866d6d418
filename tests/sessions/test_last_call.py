"""A session's last call: asked for as one round, settled as a test, in the log and in the certificate."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import surepick as sp
from session_tools import Tapes, problem, run_to_end
from surepick import views
from surepick.errors import ParameterError, SessionError
from surepick.sessions import codec
from surepick.sessions.session import Session
from surepick.sessions.verify import verify
from surepick.store import Draft, MemoryStore


def begun(policy: Any = None, **options: Any) -> Session:
    return Session.create("memory://", "mine", problem(), policy=policy or sp.BetGapE(delta=0.001), **options)


def after_some_rounds(session: Session, tapes: Tapes, n: int = 12) -> Session:
    for _ in range(n):
        for request in session.ask():
            session.tell(request, tapes.value(request.token))
    return session


def test_a_round_is_looked_at_without_walking_all_of_it() -> None:
    session, far = after_some_rounds(begun(), Tapes(scale=0.6)), 10**9  # walked, it would take hours
    session.final_batch(far)
    while session.ledger().tapes.n_missing < 100:  # the round that was open
        session.tell(session.ask()[0], 0.5)
    assert views.look(session).n_missing > far / 2
    (first,) = session.pending(1)
    assert session.is_pending(first.token)
    assert not any(map(session.is_pending, ("0.0", "99.0", "a road")))
    assert [request.probe for request in session.pending(2, probe=1)] == [1, 1]


def test_what_was_told_of_the_open_round_is_spent() -> None:
    session, tapes = after_some_rounds(begun(budget=300), Tapes(scale=0.6)), Tapes(scale=0.6)
    while not (session.ledger().tapes.n_told_of_round and session.ledger().tapes.n_missing):
        session.tell(session.ask()[0], 0.5)
    session.final_batch()
    outcome = run_to_end(session, tapes)
    assert outcome.n_measurements == 300
    assert session.ledger().run.called is not None
    assert session.verify().holds


def test_it_is_one_round_and_the_end() -> None:
    session, tapes = begun(), Tapes(scale=0.6)
    after_some_rounds(session, tapes)
    before, missing = session.ledger().n_told, session.ledger().tapes.n_missing
    session.final_batch(30)
    outcome = run_to_end(session, tapes)
    assert outcome.n_measurements == before + 30
    asked = [event for event in session.events() if event.kind == "asked"]
    called = [event.position for event in session.events() if event.kind == "called"]
    assert sum(event.position > called[0] for event in asked) == 1
    assert missing < 30
    certificate = session.certificate()
    assert certificate.last_call == 30
    assert outcome.standing.risk == certificate.risk
    assert "last call    30 measurements" in str(certificate)
    assert session.verify(certificate.to_json()).holds
    assert not session.verify({**certificate.to_json(), "last_call": 31}).holds


def test_it_decides_as_a_simulation_does_and_a_reopened_session_goes_on() -> None:
    session, tapes = begun(), Tapes(scale=0.3)
    after_some_rounds(session, tapes)
    session.final_batch(120, gaussian=True)
    again = Session.load(session.store, "mine")
    outcome = run_to_end(again, tapes)
    assert outcome.plan_name == "plan 4"
    assert outcome.risk is not None
    assert outcome.risk <= 0.001
    assert "independent Gaussian noise" in outcome.guarantee
    assert "with Gaussian noise" in again.certificate().noise
    assert again.certificate().guarantee == outcome.guarantee
    assert Session.load(session.store, "mine").verify(again.certificate().to_json()).holds


def test_without_a_number_it_is_the_rest_of_the_budget_which_is_spent() -> None:
    session, tapes = begun(budget=50), Tapes(scale=0.6)
    after_some_rounds(session, tapes)
    session.final_batch()
    assert run_to_end(session, tapes).n_measurements == 50


def test_a_budget_is_spent_to_the_last_measurement() -> None:
    session = begun(budget=21)
    assert run_to_end(session, Tapes(scale=0.6)).n_measurements == 21
    session.extend(budget=33)
    assert run_to_end(session, Tapes(scale=0.6)).n_measurements == 33
    assert session.verify(session.certificate().to_json()).holds


def test_values_told_ahead_become_an_assumption() -> None:
    session, tapes = begun(), Tapes(scale=0.6)
    after_some_rounds(session, tapes)
    requests = session.ask(12)
    for request in requests[-2:]:
        session.tell(request, tapes.value(request.token))
    assert session.ledger().tapes.n_ahead == 2
    session.final_batch(40)
    run_to_end(session, tapes)
    assert "did not depend on 2 values that were told ahead" in session.certificate().noise


def test_a_session_in_which_no_more_comes_hands_out_nothing_ahead() -> None:
    session, tapes = begun(), Tapes(scale=0.6)
    after_some_rounds(session, tapes)
    session.final_batch(20)
    assert len(session.ask(50)) == session.ledger().tapes.n_missing


@pytest.mark.parametrize(
    ("n", "options", "policy"),
    [(None, {}, None), (0, {}, None), (2, {}, None), (60, {"budget": 50}, None), (60, {}, sp.CombGapE())],
)
def test_what_makes_no_sense_is_refused_and_changes_nothing(
    n: int | None, options: dict[str, Any], policy: Any
) -> None:
    session = begun(policy, **options)
    before = session.fingerprint
    with pytest.raises(ParameterError):
        session.final_batch(n)
    assert session.fingerprint == before


def test_there_is_one_and_nothing_comes_after_it() -> None:
    session, tapes = begun(), Tapes(scale=0.6)
    session.final_batch(30)
    with pytest.raises(SessionError):
        session.final_batch(30)
    run_to_end(session, tapes)
    with pytest.raises(SessionError):
        session.final_batch(30)
    with pytest.raises(ParameterError) as caught:
        session.extend(budget=500)
    assert caught.value.field == "budget"
    session.extend(delta=0.0001)  # starts over, from the same measurements
    assert session.status == "running"
    run_to_end(session, Tapes(scale=0.6))
    assert session.certificate().last_call is None
    assert session.verify(session.certificate().to_json()).holds


def test_nothing_is_taken_back_after_it() -> None:
    session, tapes = begun(), Tapes(scale=0.6)
    after_some_rounds(session, tapes)
    session.final_batch(30)
    run_to_end(session, tapes)
    with pytest.raises(SessionError) as caught:
        session.remove("0.0", "a typing error")
    assert caught.value.field == "token"


@pytest.mark.parametrize(
    "change",
    [{"n": 3}, {"n": True}, {"n_ahead": 1}, {"gaussian": 0}, {"more": 1}],
    ids=str,
)
def test_a_forged_last_call_is_noticed(change: dict[str, Any]) -> None:
    """The log is sealed anew, with checksums that fit; verify asks whether a session writes such a thing."""
    session, tapes = begun(), Tapes(scale=0.6)
    session.final_batch(30)
    run_to_end(session, tapes)
    drafts = [Draft(e.kind, e.body, e.time, e.key) for e in session.events()]
    at = next(k for k, draft in enumerate(drafts) if draft.kind == "called")
    store = MemoryStore()
    store.create("mine", drafts)
    assert Session.load(store, "mine").verify().objections == ()
    body = codec.dumps({**json.loads(drafts[at].body), **change})
    drafts[at] = drafts[at]._replace(body=body)
    forged = MemoryStore()
    forged.create("mine", drafts)
    (first, *_) = verify(forged, "mine").objections
    assert first.startswith(f"event {at + 1} (called)")


@pytest.mark.parametrize("n", [3, 4, 5, 12, 40])
@pytest.mark.parametrize("before", [0, 1, 3, 9])
@pytest.mark.parametrize("epsilon", [0.0, 1e-6])
def test_a_last_call_in_the_middle_of_a_block_counts_what_comes_after_it(
    n: int, before: int, epsilon: float
) -> None:
    """A block in parts of two: the parts before the call are none of the n, and it never asks for nothing."""
    problem = sp.Problem(np.eye(3), noise=1, goal="largest")
    session = Session.create("memory://", "s", problem, policy=sp.BetGapE(1e-9, epsilon, max_batch=2))
    rng = np.random.default_rng(0)
    for _ in range(before):
        session.tell(session.ask()[0], rng.standard_normal())
    told = session.ledger().n_told
    session.final_batch(n)
    while requests := session.ask():
        session.tell(requests[0], rng.standard_normal())
        assert session.ledger().n_told <= told + 200
    assert session.status is sp.Status.BUDGET_SPENT
    assert session.ledger().n_told == told + n or n < 12
    assert session.verify().holds


@pytest.mark.parametrize("n", [10**13, 2**63, 10**400])
def test_a_last_call_of_more_than_anybody_can_make_is_refused_and_nothing_is_written(n):
    """Its block could not be divided among the arms, and the session could not go on."""
    session = begun()
    before = session.fingerprint
    with pytest.raises(ParameterError) as caught:
        session.final_batch(n)
    assert caught.value.field == "n"
    assert session.store.head(session.name) == before
