"""The session layer in simulated histories: seeded schedules, faults at every statement, all operations.

`make soak` runs tens of thousands of them. A failure names its seed and the command that shows it again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace

import pytest

from session_histories import History, replay_command, run_history
from simulated_store import DiedError
from surepick.sessions import codec, telling
from surepick.sessions.ledger import NewEvent
from surepick.sessions.replica import Change, Replica
from surepick.sessions.session import Session
from surepick.sessions.settings import Setup

N_HISTORIES, PART = 200, 50
ENOUGH = 150  # histories in which a planted mistake must come to light


@pytest.mark.parametrize("first", range(0, N_HISTORIES, PART))
def test_in_simulated_histories_nothing_acknowledged_is_lost(first: int) -> None:
    for seed in range(first, first + PART):
        run_history(seed)


def test_the_histories_hold_what_they_are_meant_to_hold() -> None:
    seen: Counter[str] = Counter()
    for seed in range(5000, 5040):
        done = run_history(seed).done
        seen += done.seen + done.tried
        seen += Counter(late=len(done.late), certificates=len(done.certificates), told=len(done.told))
    wanted = "death", "no answer", "power cut", "late", "certificates", "told"
    for what in (*wanted, "closed", "extended", "recorded", "withdrawn", "noted"):
        assert seen[what] > 0, what


def test_a_history_happens_again_exactly() -> None:
    for seed in (1, 2, 3):
        first, second = [], []
        run_history(seed, told=first.append)
        run_history(seed, told=second.append)
        assert first == second


def test_a_failure_names_its_seed_and_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(History, "check", lambda self, store: 1 / 0)
    with pytest.raises(ZeroDivisionError) as caught:
        run_history(7)
    assert replay_command(7) in caught.value.__notes__[0]


# What a history must notice: mistakes of a kind that were made, or nearly.


def _close_before_the_decision(patch: pytest.MonkeyPatch) -> None:
    def close(self: Session, reason: str = "") -> None:
        closed = NewEvent("closed", {"reason": reason}, self._ledger.closing_key())
        with self._changing() as replica:
            replica.commit(lambda: Change([] if self._ledger.is_over else [closed]), quick=False)

    patch.setattr(Session, "close", close)


def _extend_what_was_seen_before(patch: pytest.MonkeyPatch) -> None:
    def extend(self: Session, *, delta: float | None = None, budget: int | None = None) -> None:
        setup = self._ledger.setup.extended({} if delta is None else {"delta": delta}, budget)
        body = {"policy": codec.policy_to_json(setup.policy), "budget": setup.budget}
        with self._changing() as replica:
            replica.commit(lambda: Change([NewEvent("extended", body)]), quick=False)

    patch.setattr(Session, "extend", extend)


def _take_any_delta(patch: pytest.MonkeyPatch) -> None:
    def extended(self: Setup, changes: dict[str, float], budget: int | None) -> Setup:
        policy = replace(self.policy, **changes)  # type: ignore[type-var]
        return replace(self, policy=policy, budget=budget or self.budget)

    patch.setattr(Setup, "extended", extended)


def _trust_a_ledger_whose_append_failed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Replica, "is_stale", property(lambda self: False, lambda self, value: None), raising=False)


def _acknowledge_before_the_commit(patch: pytest.MonkeyPatch) -> None:
    commit = Replica.commit

    def hasty(self: Replica, make: Callable[[], Change], *, quick: bool = True) -> None:
        try:
            commit(self, make, quick=quick)
        except telling.LostRaceError:
            raise
        except Exception as error:
            if "simulated" not in str(error):
                raise

    patch.setattr(Replica, "commit", hasty)


def _decide_whatever_others_wrote(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Replica, "_is_beside", lambda self, kind: True)


def _share_a_session_without_its_lock(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("session_histories.TurnLock", lambda scheduler: nullcontext())


def _keep_an_unasked_measurement_twice(patch: pytest.MonkeyPatch) -> None:
    recorded = telling.Telling._recorded

    def careless(self: telling.Telling, key: str | None, body: dict[str, object]) -> Change:
        return recorded(self, None, body)

    patch.setattr(telling.Telling, "_recorded", careless)


MISTAKES = [
    _close_before_the_decision,
    _extend_what_was_seen_before,
    _take_any_delta,
    _trust_a_ledger_whose_append_failed,
    _acknowledge_before_the_commit,
    _decide_whatever_others_wrote,
    _share_a_session_without_its_lock,
    _keep_an_unasked_measurement_twice,
]


@contextmanager
def patched(mistake: Callable[[pytest.MonkeyPatch], None]) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        mistake(patch)
        yield


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda m: m.__name__.strip("_").replace("_", " "))
def test_a_planted_mistake_comes_to_light(mistake: Callable[[pytest.MonkeyPatch], None]) -> None:
    with patched(mistake):
        for seed in range(9000, 9000 + ENOUGH):
            try:
                run_history(seed)
            except (Exception, DiedError):
                return
    pytest.fail(f"{ENOUGH} histories do not notice it")
