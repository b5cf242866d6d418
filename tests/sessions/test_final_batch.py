"""A session's final batch: asked for as one round, settled as a test, in the log and in the certificate."""

import numpy as np
import pytest

import surepick as sp
from common import largest, refuses
from session_tools import Tapes, answer, gaussian, holds, problem, run_to_end
from surepick.core.run import MOST_MEASUREMENTS
from surepick.errors import ParameterError, SessionError
from surepick.sessions.session import Session
from surepick.simulation import State


def begun(policy=None, **options):
    return Session.create("memory://", "mine", problem(), policy=policy or sp.BetGapE(delta=0.001), **options)


def after_some_rounds(session, tapes):
    return answer(session, lambda request: tapes.value(request.token), n=12)


def test_what_was_told_of_the_open_round_is_spent():
    session, tapes = after_some_rounds(begun(budget=300), Tapes(scale=0.6)), Tapes(scale=0.6)
    while not (session.state().streams.n_recorded_of_batch and session.state().streams.n_missing):
        session.tell(session.ask()[0], 0.5)
    session.final_batch()
    outcome = run_to_end(session, tapes)
    assert outcome.n_measured == 300
    assert session.state().final is not None
    assert session.verify().holds


def test_it_decides_as_a_simulation_does_and_a_reopened_session_goes_on():
    session, tapes = begun(), Tapes(scale=0.3)
    after_some_rounds(session, tapes)
    session.final_batch(120, gaussian=True)
    again = Session.load(session.store, "mine")
    outcome = run_to_end(again, tapes)
    assert outcome.plan_name == "plan 4"
    assert outcome.risk is not None
    assert outcome.risk <= 0.001
    assert "independent Gaussian noise" in outcome.guarantee
    assert "independent Gaussian noise" in again.certificate().assumption
    assert again.certificate().claim == outcome.guarantee
    assert Session.load(session.store, "mine").verify(again.certificate().to_json()).holds


def test_a_session_in_which_no_more_comes_hands_out_nothing_ahead():
    session, tapes = begun(), Tapes(scale=0.6)
    after_some_rounds(session, tapes)
    session.final_batch(20)
    assert len(session.ask(50)) == session.state().streams.n_missing


@pytest.mark.parametrize(
    ("n", "options", "policy"),
    [
        *((n, {}, None) for n in (None, 0, 2, 10**13, 2**63, 10**400)),
        *((60, {"budget": 50}, None), (60, {}, sp.CombGapE())),
    ],
)
def test_what_makes_no_sense_is_refused_and_changes_nothing(n, options, policy):
    session = begun(policy, **options)
    before = session.journal.head
    with pytest.raises(ParameterError):
        session.final_batch(n)
    assert session.journal.head == before


@pytest.mark.parametrize("n", [3, 4, 5, 12, 40])
@pytest.mark.parametrize("before", [0, 1, 3, 9])
@pytest.mark.parametrize("epsilon", [0.0, 1e-6])
def test_a_final_batch_in_the_middle_of_a_block_counts_what_comes_after_it(n, before, epsilon):
    """A block in parts of two: the parts before the call are none of the n, and it never asks for nothing."""
    problem = largest(np.eye(3))
    session = Session.create("memory://", "s", problem, policy=sp.BetGapE(1e-9, epsilon, max_batch=2))
    told = answer(session, gaussian([0.0] * 3), n=before).state().n_values
    session.final_batch(n)
    answer(session, gaussian([0.0] * 3, seed=1), n=200)
    assert session.status is State.BUDGET_SPENT
    assert session.state().n_values == told + n or n < 12
    assert session.verify().holds


def test_it_is_one_batch_and_the_end():
    session, tapes = begun(), Tapes(scale=0.6)
    after_some_rounds(session, tapes)
    before = session.state().n_values
    assert session.state().streams.n_missing < 30
    session.final_batch(30)
    outcome = run_to_end(session, tapes)
    assert outcome.n_measured == before + 30
    kinds = [event.kind for event in session.events()]
    assert kinds[kinds.index("final-batch") :].count("asked") == 1
    assert kinds[-1] == "stopped"
    certificate = session.certificate().to_json()
    assert (certificate["final_batch"], certificate["risk"]) == (30, outcome.standing.risk)
    assert session.verify(certificate).holds
    assert session.verify({**certificate, "final_batch": 31}).fields == ("final_batch",)


@pytest.mark.parametrize(
    ("change", "error", "field"),
    [
        (lambda s: s.final_batch(30), SessionError, "n"),
        (lambda s: s.extend(budget=500), ParameterError, "budget"),
        (lambda s: s.extend(delta=1e-6), ParameterError, "delta"),
        (lambda s: s.remove(1, "a typing error"), SessionError, "number"),
        (lambda s: s.add_plan("more", {"copper": 3.0, "zinc": 1.0}), SessionError, "plan"),
    ],
    ids=["final batch", "budget", "delta", "remove", "plan"],
)
@pytest.mark.parametrize("ended", [False, True])
def test_nothing_comes_after_it(change, error, field, ended):
    session, tapes = begun(), Tapes(scale=0.6)
    after_some_rounds(session, tapes)
    session.final_batch(30)
    if ended:
        run_to_end(session, tapes)
    before = session.journal.head
    with refuses(field, error):
        change(session)
    assert session.journal.log.head() == before


@pytest.mark.parametrize("n_ahead", [0, 2])
def test_values_recorded_ahead_are_named_as_an_assumption(n_ahead):
    session, tapes = begun(), Tapes(scale=0.6)
    after_some_rounds(session, tapes)
    requests = session.ask(12)
    for request in requests[len(requests) - n_ahead :]:
        session.tell(request, tapes.value(request.token))
    assert session.state().streams.n_ahead == n_ahead
    session.final_batch(40)
    run_to_end(session, tapes)
    assert (f"{n_ahead} value" in session.certificate().assumption) == (n_ahead > 0)
    assert holds(session)


def test_looking_at_a_long_batch_walks_not_all_of_it_and_changes_nothing():
    session, far = after_some_rounds(begun(), Tapes(scale=0.6)), MOST_MEASUREMENTS
    session.final_batch(far)
    while session.state().streams.n_missing < 100:  # the batch that was open
        session.tell(session.ask()[0], 0.5)
    before = session.journal.head
    assert session.view().n_open > far / 2
    (first,) = session.pending(1)
    assert first.wanted > 0
    assert session.journal.head == session.journal.log.head() == before
