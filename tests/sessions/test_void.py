"""Values that were no measurements are taken back, and what is promised afterwards is still true."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import surepick as sp
from surepick.errors import ParameterError, SessionError
from surepick.sessions import codec
from surepick.sessions.verify import verify
from surepick.simulation.comparison import binomial_interval
from surepick.store import Draft
from surepick.views import look, summary

MEANS = (1.0, 0.2, -0.3)
SLIP = 1200.0


def problem(**options: object) -> sp.Problem:
    return sp.Problem([[1, 0, 0], [0, 1, 0], [0, 0, 1]], **({"noise": 0.5} | options), goal="largest")


def tapes(seed: int, n: int = 4000, means: tuple[float, ...] = MEANS, scale: float = 0.5) -> np.ndarray:
    return np.array(means)[:, None] + scale * np.random.default_rng(seed).standard_normal((len(means), n))


def go_on(session: sp.Session, values: np.ndarray, used: list[int], most: int = 10**6) -> None:
    """Answer what is asked with the next value of each arm's tape."""
    for _ in range(most):
        requests = session.ask()
        if not requests:
            return
        arm = requests[0].arm
        session.tell(requests[0], float(values[arm, used[arm]]))
        used[arm] += 1


def test_a_value_that_no_round_has_used_is_asked_for_again():
    session = sp.Session.create("memory://", "s", problem(), policy=sp.BetGapE())
    first = session.ask()[0]
    session.tell(first, SLIP)
    assert session.remove(first, "a slip of the pen") is False
    assert session.ledger().n_told == 0
    again = session.ask()[0]
    assert (again.arm, again.token) == (first.arm, f"{first.arm}.1")
    assert session.status == "running"
    with pytest.raises(SessionError) as caught:
        session.tell(first, 3.0)
    assert caught.value.field == "token"


POLICIES: list[Callable[[], sp.Policy]] = [sp.CombGapE, sp.RAGE, sp.GenTSExplore]  # decide again


@pytest.mark.parametrize("policy", POLICIES)
def test_after_a_seen_value_is_voided_the_policy_decides_as_if_it_had_never_been(policy):
    values, used = tapes(1), [0, 0, 0]
    clean = sp.Session.create("memory://", "clean", problem(), policy=policy())
    go_on(clean, values, [0, 0, 0])
    disturbed = sp.Session.create("memory://", "disturbed", problem(), policy=policy())
    go_on(disturbed, values, used, most=2)
    slip = disturbed.ask()[0]
    disturbed.tell(slip, SLIP / 100)
    while disturbed.ledger().n_measurements < 7 and disturbed.status == "running":
        go_on(disturbed, values, used, most=1)
    assert disturbed.remove(slip, "typed 1200 for 1.200") is True
    go_on(disturbed, values, used)
    assert disturbed.outcome.plan == clean.outcome.plan == 0
    assert disturbed.outcome.counts.tolist() == clean.outcome.counts.tolist()
    assert disturbed.outcome.means.tolist() == clean.outcome.means.tolist()
    assert disturbed.certificate().n_voided == 1
    assert "taken back" in disturbed.certificate().noise
    verdict = disturbed.verify(disturbed.certificate().to_json())
    assert verdict.holds, verdict.objections


def test_a_session_that_had_ended_goes_on_and_its_certificate_holds_no_more():
    session = sp.Session.create("memory://", "s", problem(), policy=sp.CombGapE())
    values = tapes(2)
    slip = session.ask()[0]
    session.tell(slip, -SLIP)
    go_on(session, values, [0, 0, 0])
    wrong = session.certificate()
    assert wrong.plan != 0
    session.remove(slip, "minus 1200 is no time")
    go_on(session, values, [0, 300, 300])
    assert session.outcome.plan == 0
    assert not session.verify(wrong.to_json()).holds
    assert session.verify(session.certificate().to_json()).holds


def test_other_processes_and_later_ones_see_the_same(tmp_path: Path):
    place = f"sqlite:///{tmp_path / 's.db'}"
    session = sp.Session.create(place, "s", problem(), policy=sp.BetGapE())
    other = sp.Session.load(place)
    values, used = tapes(3), [0, 0, 0]
    slip = session.ask()[0]
    session.tell(slip, SLIP)
    go_on(session, values, used, most=12)
    assert other.ledger().n_told == 13
    session.remove(slip, "a slip")
    for opened in (session, other, sp.Session.load(place)):
        assert (opened.ledger().n_told, opened.pending()) == (12, session.pending())
        assert [m.voided for m in opened.measurements()] == [True] + [False] * 12
    assert "voided" in {warning.kind for warning in summary(look(other)).warnings}


def test_what_cannot_be_voided_is_refused_and_changes_nothing():
    session = sp.Session.create("memory://", "s", problem(), policy=sp.RAGE())
    values, used = tapes(5), [0, 0, 0]
    go_on(session, values, used, most=4)
    request = next(r for r in session.pending() if r.wanted > 1)
    session.tell(request, [1.0, 2.0])
    before = session.fingerprint
    for token in (session.pending()[0].token, "9.9"):
        with pytest.raises(SessionError) as refused:
            session.remove(token, "because")
        assert refused.value.field == "token"
    with pytest.raises(ParameterError) as without:
        session.remove(request, " ")
    assert without.value.field == "reason"
    assert session.fingerprint == before
    n_told = session.ledger().n_told
    session.remove(request, "the scales were off")
    assert session.ledger().n_told == n_told - 1
    with pytest.raises(SessionError) as caught:
        session.remove(request, "again")
    assert caught.value.field == "token"


def wrong_answers(n_runs: int, takes_back: Callable[[float, bool], bool]) -> int:
    """Runs in which the worse of two arms is declared best; the last value seen may be taken back."""
    n_wrong = 0
    for seed in range(n_runs):
        rng = np.random.default_rng(seed)
        session = sp.Session.create(
            "memory://",
            "s",
            sp.Problem([[1, 0], [0, 1]], noise=1, goal="largest"),
            policy=sp.BetGapE(delta=0.1),
            budget=150,
        )
        while requests := session.ask():
            request, is_slip = requests[0], rng.random() < 0.05
            value = rng.normal(0.5 if request.arm == 0 else 0.0)
            session.tell(request, SLIP if is_slip else value)
            if takes_back(-value if request.arm else value, is_slip):
                session.remove(request, "for a reason")
        n_wrong += session.outcome.plan == 1
    return n_wrong


def test_slips_that_are_taken_back_do_not_make_wrong_answers_and_values_voided_for_their_size_do():
    slips = wrong_answers(25, lambda _, is_slip: is_slip)
    assert binomial_interval(slips, 25, confidence=1 - 1e-6)[0] <= 0.1
    by_size = wrong_answers(25, lambda favours, is_slip: is_slip or favours > 0.3)
    assert binomial_interval(by_size, 25, confidence=1 - 1e-6)[0] > 0.1


def test_a_late_value_counts_like_one_that_nobody_asked_for():
    now = [0.0]
    session = sp.Session.create(
        "memory://", "s", problem(), policy=sp.CombGapE(), lease=10.0, clock=lambda: now[0]
    )
    slow = session.ask(worker="slow")[0]
    now[0] = 20.0
    quick = session.ask(worker="quick")[0]
    assert quick.token == slow.token
    session.tell(quick, 1.0)
    assert session.tell(slow, 3.0).result == "extra"
    assert session.tell(slow, 3.0).result == "extra"
    go_on(session, tapes(6), [0, 0, 0], most=2)
    assert session.ledger().n_unasked == 1
    assert session.ledger().run.n_unasked_counted == 1
    assert session.ledger().evidence.sums[slow.arm] == 4.0
    assert session.verify().holds, session.verify().objections


def test_a_late_value_is_kept_where_the_proof_does_not_allow_it():
    now = [0.0]
    session = sp.Session.create(
        "memory://", "s", problem(), policy=sp.RAGE(), lease=1.0, clock=lambda: now[0]
    )
    slow = session.ask(worker="slow")[0]
    now[0] = 2.0
    session.tell(session.ask(worker="quick")[0], 1.0)
    assert session.tell(slow, 3.0).result == "extra"
    assert not session.counts_unasked
    assert [m.value for m in session.measurements()] == [1.0, 3.0]


def test_a_value_that_would_surprise_is_doubted_and_nothing_else():
    doubting = problem().with_about(plausible=((-2.0, 4.0),) * 3)
    session = sp.Session.create("memory://", "s", doubting, policy=sp.BetGapE())
    assert session.doubt(0, 1.0) is None
    assert "between -2 and 4" in session.doubt("arm 0", SLIP)
    session.tell(session.ask()[0], SLIP)  # the library takes what it is given
    assert [w.kind for w in summary(look(session)).warnings] == ["value"]
    session.remove("0.0", "a slip")
    assert [w.kind for w in summary(look(session)).warnings] == ["voided"]
    plain = sp.Session.create("memory://", "plain", problem(), policy=sp.BetGapE())
    go_on(plain, tapes(7), [0, 0, 0], most=12)
    assert plain.doubt(0, 1.2) is None
    assert "the noise explains" in plain.doubt(0, SLIP)


@pytest.mark.parametrize(
    ("changes", "key", "says"),
    [
        ({}, "voided:0.0", "voided before"),
        ({"index": 1}, "voided:0.1", "no value"),
        ({"reason": " "}, "voided:1.0", "no reason"),
        ({"count": 2}, "voided:1.0", "no session writes"),
        ({"weight": 1}, "voided:1.0", "no session writes"),
        ({}, "voided:other", "its key"),
    ],
)
def test_a_void_that_no_session_writes_is_noticed(changes, key, says):
    session = sp.Session.create("memory://", "s", problem(), policy=sp.BetGapE())
    for arm in (0, 1):
        session.tell(f"{arm}.0", 1.0)
    session.remove("0.0", "a slip")
    assert session.verify().holds
    body = {"arm": int(key[7]) if key[7].isdigit() else 1, "index": 0, "reason": "a slip", **changes}
    draft = Draft("voided", codec.dumps(body), session.now(), key if says != "voided before" else None)
    session.store.append("s", [draft], expected=session.store.head("s"))
    verdict = verify(session.store, "s")
    assert not verdict.holds
    assert says in verdict.objections[0] or "its key" in verdict.objections[0]


def record_then_go_on(policy: sp.Policy) -> tuple[sp.Session, np.ndarray, list[int], int]:
    """A session with a slip that nobody had asked for, and the number of its event."""
    session = sp.Session.create("memory://", "s", problem(), policy=policy)
    values, used = tapes(8), [0, 0, 0]
    go_on(session, values, used, most=3)
    session.add_extra(1, SLIP / 100, key="sheet 17")
    return session, values, used, session.fingerprint.position


def test_an_unasked_value_that_was_not_counted_is_left_out_and_nothing_else_changes():
    session, values, used, event = record_then_go_on(sp.CombGapE())
    found = next(m for m in session.measurements() if m.token is None)
    assert (found.event, found.name) == (event, str(event))
    assert session._remove(str(event), "the wrong road") is False
    go_on(session, values, used)
    clean = sp.Session.create("memory://", "clean", problem(), policy=sp.CombGapE())
    go_on(clean, values, [0, 0, 0])
    assert session.outcome.counts.tolist() == clean.outcome.counts.tolist()
    certificate = session.certificate()
    assert (certificate.n_unasked, certificate.n_unasked_counted, certificate.n_voided) == (0, 0, 1)
    assert "taken back" in certificate.noise
    assert [m.voided for m in session.measurements() if m.token is None] == [True]
    assert session.verify(certificate.to_json()).holds


def test_after_a_counted_unasked_value_is_voided_the_policy_decides_as_if_it_had_never_been():
    session, values, used, event = record_then_go_on(sp.CombGapE())
    while session.ledger().run.n_unasked_counted == 0:
        go_on(session, values, used, most=1)
    session.add_extra(0, 1.0)  # would count at the next round; not any more when the policy starts over
    assert session._remove(str(event), "typed for another road") is True
    go_on(session, values, used)
    clean = sp.Session.create("memory://", "clean", problem(), policy=sp.CombGapE())
    go_on(clean, values, [0, 0, 0])
    assert session.outcome.counts.tolist() == clean.outcome.counts.tolist()
    assert session.outcome.means.tolist() == clean.outcome.means.tolist()
    certificate = session.certificate()
    assert (certificate.n_unasked, certificate.n_unasked_counted, certificate.n_voided) == (1, 0, 1)
    verdict = session.verify(certificate.to_json())
    assert verdict.holds, verdict.objections
    assert verdict.n_removed == 1


def test_after_a_counted_unasked_value_is_voided_bets_continue_without_it():
    session, values, used, event = record_then_go_on(sp.BetGapE())
    while session.ledger().run.n_unasked_counted == 0:
        go_on(session, values, used, most=1)
    n_before = session.ledger().n_measurements
    assert session._remove(str(event), "typed for another road") is True
    assert session.ledger().n_measurements == n_before - 1  # that value alone; nothing starts over
    go_on(session, values, used)
    certificate = session.certificate()
    assert (certificate.n_unasked_counted, certificate.n_voided) == (0, 1)
    verdict = session.verify(certificate.to_json())
    assert verdict.holds, verdict.objections


def test_other_processes_and_snapshots_know_which_unasked_values_were_voided(tmp_path: Path):
    place = f"sqlite:///{tmp_path / 's.db'}"
    doubting = problem().with_about(plausible=((-2.0, 4.0),) * 3)
    session = sp.Session.create(place, "s", doubting, policy=sp.CombGapE())
    other = sp.Session.load(place)
    session.add_extra(2, [SLIP, 0.5])
    first, second = (m.event for m in session.measurements())
    assert f"(event {first})" in next(w.text for w in summary(look(session)).warnings if w.kind == "value")
    session._remove(str(first), "a slip")
    session.keep_snapshot()
    for opened in (session, other, sp.Session.load(place)):
        assert [m.voided for m in opened.measurements()] == [True, False]
        assert opened.ledger().n_unasked == 1
        assert [w.kind for w in summary(look(opened)).warnings] == ["voided"]
    values, used = tapes(9), [0, 0, 0]
    go_on(other, values, used, most=4)
    assert sp.Session.load(place).ledger().run.n_unasked_counted == 1
    other.keep_snapshot()
    assert sp.Session.load(place)._remove(str(second), "a slip too") is True
    assert session.ledger().run.n_unasked_counted == 0


def test_unasked_values_that_cannot_be_voided_are_refused_and_nothing_is_changed():
    session, values, used, event = record_then_go_on(sp.BetGapE())
    session._remove(str(event), "a slip")
    before = session.fingerprint
    for number in (event, 1, 999):  # removed before, of another kind, not there
        with pytest.raises(SessionError) as caught:
            session._remove(str(number), "because")
        assert caught.value.field == "token"
    with pytest.raises(ParameterError) as caught:
        session._remove(str(event), " ")
    assert caught.value.field == "reason"
    with pytest.raises(SessionError) as taken:
        session.add_extra(1, 0.3, key="sheet 17")
    assert taken.value.field == "key"
    assert session.fingerprint == before
    go_on(session, values, used)
    session.add_extra(1, SLIP)
    with pytest.raises(SessionError) as caught:
        session._remove(str(session.fingerprint.position), "after the end")
    assert caught.value.field == "token"


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"event": 1}, "records nothing"),
        ({"arm": 0}, "another arm"),
        ({"reason": ""}, "no reason"),
        ({"event": 3.0}, "its 'event' is 3.0"),
        ({"index": 0}, "no session writes"),
    ],
)
def test_a_void_of_an_unasked_value_that_no_session_writes_is_noticed(changes, says):
    session, _, _, event = record_then_go_on(sp.BetGapE())
    body = {"arm": 1, "event": event, "reason": "a slip", **changes}
    draft = Draft("voided", codec.dumps(body), session.now(), f"voided:{body['event']}")
    session.store.append("s", [draft], expected=session.store.head("s"))
    verdict = verify(session.store, "s")
    assert not verdict.holds
    assert says in verdict.objections[0]


def test_one_of_several_values_is_removed_from_a_session_that_comes_from_a_snapshot():
    session = sp.Session.create("memory://", "s", problem(), policy=sp.RAGE(delta=0.1))
    while requests := session.ask():
        session.tell(requests[0], [MEANS[requests[0].arm]] * requests[0].wanted)
    session.keep_snapshot()
    again = sp.Session.load(session.store, "s")
    assert again.remove("0.1", "the wrong road") is True
    assert [m.token for m in again.measurements() if m.voided] == ["0.1"]
    assert again.verify().holds


@pytest.mark.parametrize("text", ["7" * 5000, "\u00b2", "-1"])
def test_what_is_neither_a_token_nor_the_number_of_an_event_is_refused(text: str) -> None:
    session = sp.Session.create("memory://", "a-" + "7" * 5000, problem(), policy=sp.BetGapE())
    with pytest.raises(SessionError) as caught:
        session.remove(text, "a slip of the pen")
    assert caught.value.field == "token"
    with pytest.raises(SessionError) as caught:
        session.probe_of(text)
    assert caught.value.field == "token"
    assert session.successor("another season").name == f"{session.name}-2"
