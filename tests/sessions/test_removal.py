"""Values recorded by mistake, lost, late, extra: one stream per probe, and what the evidence rests on."""

import math

import numpy as np
import pytest

import surepick as sp
from common import refuses
from session_tools import answer, gaussian, holds
from surepick.core.policy import start
from surepick.core.run import Stop
from surepick.errors import ParameterError, SessionError
from surepick.policies import CLUCB
from surepick.sessions.events import Asked, Extended, Measured, Stopped, decode

SLIP = 1200.0
MEANS = [2.0, 1.5, 1.2]


def begun(policy=None, store="memory://", **settings):
    problem = sp.Problem(np.eye(3), goal="largest", noise=settings.pop("noise", 1.0))
    return sp.Session.create(store, "s", problem, policy=policy or sp.BetGapE(delta=0.1), **settings)


def measure(session, n, *, seed=0):
    """Answer requests until so many values are recorded, or the session ends."""
    return answer(session, gaussian(MEANS, 1.0, seed), n=n - session.state().n_recorded, worker="w")


def settled_by_hand(session):
    """The evidence of a fresh run that follows the recorded decisions with the values that are left."""
    state = session.state()
    events = [decode(row.kind, row.body) for row in session.events()][1:]
    values = {e.place: e.values[0] for e in events if isinstance(e, Measured) and not e.is_lost}
    cursor, counts, run = [0] * 3, {}, start(sp.BetGapE(delta=0.1), session.problem, None)
    for event in events:
        if isinstance(event, Extended):
            run.lower_delta(sp.BetGapE(delta=event.delta), event.delta)
        if not isinstance(event, Asked | Stopped):
            continue
        n, sums, gone = np.zeros(3, dtype=np.int64), np.zeros(3), np.zeros(3, dtype=np.int64)
        for arm, count in counts.items():
            places = range(cursor[arm], cursor[arm] + count)  # the tests remove used values alone
            cursor[arm] += count
            kept = [values[arm, at] for at in places if (arm, at) not in state.streams.removed]
            n[arm], sums[arm], gone[arm] = len(kept), math.fsum(kept), count - len(kept)
        if counts:
            run.absorb(n, sums, gone)
        counts = {}
        if isinstance(event, Asked):
            counts = dict(event.counts)
            if event.decision is not None:
                run.follow(run.recorded(event.decision))
    return run


@pytest.mark.parametrize("seed", range(5))
def test_the_evidence_after_removals_and_a_smaller_delta_is_that_of_a_settlement_by_hand(seed):
    session = measure(begun(), 25, seed=seed)
    for number in (2, 5, 11):
        if session.status == "running" or number == 2:
            assert session.remove(number, "the wrong road") is True
    session.extend(delta=0.01)
    measure(session, 60, seed=seed + 100)
    by_hand = settled_by_hand(session)
    mine = session.state().run.log_evidence()
    assert mine.tolist() == by_hand.log_evidence().tolist()
    assert session.verify().holds
    state = session.state()
    assert state.n_removed >= 1
    assert (
        state.evidence.counts.sum()
        == state.n_values - state.streams.n_ahead - state.streams.n_recorded_of_batch
    )
    assert not isinstance(by_hand, Stop)


def test_a_removed_value_moves_the_evidence_and_old_certificates_no_longer_hold():
    session = begun()
    measure(session, 4000, seed=2)
    before, wealth = session.certificate(), session.state().run.log_evidence()
    assert session.remove(100, "the wrong road") is True
    assert session.state().run.log_evidence().tolist() != wealth.tolist()
    measure(session, 9000, seed=3)
    right = session.certificate()
    assert right.n_removed == 1
    assert not session.verify(before.to_json()).holds
    assert session.verify(right.to_json()).holds


def test_an_unused_value_is_asked_for_again_and_its_place_stays_empty(tmp_path):
    place = f"sqlite:///{tmp_path / 's.db'}"
    session = begun(store=place)
    first = session.ask(worker="w")[0]
    number = session.tell(first, SLIP).number
    n_open = len(session.pending())
    assert session.remove(number, "a slip") is False
    assert len(session.pending()) == n_open + 1
    with refuses("request", SessionError):
        session.tell(first, 1.0)
    other = sp.Session.load(place)
    assert [m.removed for m in other.measurements()] == [True]
    measure(other, 40)
    assert session.verify().holds


@pytest.mark.parametrize("policy", [sp.CombGapE(delta=0.1), CLUCB(delta=0.1)], ids=lambda p: p.name)
def test_a_policy_that_decides_again_refuses_to_lose_a_used_value(policy):
    session = measure(begun(policy), 6)
    head = session.journal.head
    with refuses("number", SessionError):
        session.remove(1, "a slip")
    with refuses("delta", ParameterError):
        session.extend(delta=0.01)
    assert session.journal.head == head
    later = session.successor("a slip", delta=0.01)
    assert later.policy.delta == 0.01
    assert (session.status, later.state().n_values) == ("closed", 0)


@pytest.mark.parametrize(
    ("number", "reason", "field"),
    [(1, " ", "reason"), (99, "so", "number"), ("0.50", "so", "number"), ("x", "so", "request")],
)
def test_what_cannot_be_removed_is_refused_and_changes_nothing(number, reason, field):
    session = measure(begun(), 8)
    head = session.journal.head
    with refuses(field, (SessionError, ParameterError)):
        session.remove(number, reason)
    assert session.journal.head == head
    session.remove(1, "so")
    with pytest.raises(SessionError):
        session.remove(1, "again")


def test_extra_late_and_early_values_wait_in_the_stream_and_are_used_in_order():
    now = [0.0]
    session = begun(lease=10.0, clock=lambda: now[0])
    slow = session.ask(worker="slow")[0]
    now[0] = 20.0
    assert session.tell(slow.token, 1.0, worker="fast").result == "recorded"
    late = session.tell(slow, 1.5)
    assert late.result == "extra"
    assert session.tell(slow, 1.5) == type(late)(late.number, "repeated")
    with pytest.raises(SessionError):
        session.tell(slow, 2.5)
    arm = slow.arm
    for _ in [one for one in session.pending() if one.probe == slow.probe]:
        assert session.tell(arm, 1.0).result == "recorded"
    extra = session.tell(arm, 9.0, key="row 1", sure=True)
    assert (extra.result, session.tell(arm, 9.0, key="row 1").result) == ("extra", "repeated")
    with refuses("key", SessionError):
        session.tell(arm, 8.0, key="row 1")
    assert session.state().n_extra == 2
    measure(session, 60)
    assert session.state().n_extra_used == 2
    session.close()
    assert "2 extra measurements" in session.certificate().assumption
    assert holds(session)


def test_a_value_of_an_arm_that_another_process_added_is_removed_by_its_number():
    session = begun()
    other = sp.Session.load(session.store, "s")
    other.add_plan("new", {"arm 0": 1.0, "more": 1.0}, arms=["more"])
    session.remove(other.tell("more", 1.0).number, "a slip")
    assert session.state().n_removed == 1


def test_a_lost_value_counts_for_nothing_and_is_an_assumption():
    session = begun()
    request = session.ask(worker="w")[0]
    assert session.tell(request, None, lost=True).number == 1
    assert request.token not in [one.token for one in session.pending()]
    measure(session, 30)
    session.close()
    assert session.state().n_lost == 1
    assert "1 measurement was lost" in session.certificate().assumption
    assert session.verify().holds


def test_a_surprising_value_is_refused_unless_it_is_sure():
    session = measure(begun(), 30)
    with refuses("sure", SessionError):
        session.tell(0, 500.0)
    assert session.tell(0, 500.0, key="row 9", sure=True).number == session.state().n_recorded
    assert session.tell(0, 500.0, key="row 9").result == "repeated"
