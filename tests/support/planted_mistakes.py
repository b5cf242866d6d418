"""Mistakes of a kind that were made, or nearly: planted to see whether tests of sessions notice them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pytest

from simulated_store import Database
from surepick.policies.betting.batch_run import BatchRun
from surepick.sessions import codec, leasing, telling
from surepick.sessions.arriving import ADDED, additions
from surepick.sessions.ending import calling
from surepick.sessions.ledger import Ledger, NewEvent
from surepick.sessions.replica import Change, Replica
from surepick.sessions.requests import Token
from surepick.sessions.session import Session
from surepick.sessions.settings import Body, Setup
from surepick.store import Claim, Head, MemoryStore, Snapshot


def close_before_the_decision(patch: pytest.MonkeyPatch) -> None:
    def close(self: Session, reason: str = "") -> None:
        closed = NewEvent("closed", {"reason": reason}, self._ledger.closing_key())
        with self._changing() as replica:
            replica.commit(lambda: Change([] if self._ledger.is_over else [closed]), quick=False)

    patch.setattr(Session, "close", close)


def extend_what_was_seen_before(patch: pytest.MonkeyPatch) -> None:
    def extend(self: Session, *, delta: float | None = None, budget: int | None = None) -> None:
        setup = self._ledger.setup.extended({} if delta is None else {"delta": delta}, budget)
        body = {"policy": codec.policy_to_json(setup.policy), "budget": setup.budget}
        body["n_ahead"] = self._ledger.tapes.n_ahead
        with self._changing() as replica:
            replica.commit(lambda: Change([NewEvent("extended", body)]), quick=False)

    patch.setattr(Session, "extend", extend)


def take_any_delta(patch: pytest.MonkeyPatch) -> None:
    def extended(self: Setup, changes: dict[str, float], budget: int | None) -> Setup:
        policy = replace(self.policy, **changes)  # type: ignore[type-var]
        return replace(self, policy=policy, budget=budget or self.budget)

    patch.setattr(Setup, "extended", extended)


def trust_a_ledger_whose_append_failed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Replica, "is_stale", property(lambda self: False, lambda self, value: None), raising=False)


def acknowledge_before_the_commit(patch: pytest.MonkeyPatch) -> None:
    commit = Replica.commit

    def hasty(self: Replica, make: Callable[[], Change], **how: Any) -> None:
        try:
            commit(self, make, **how)
        except telling.LostRaceError:
            raise
        except Exception as error:
            if "simulated" not in str(error):
                raise

    patch.setattr(Replica, "commit", hasty)


def decide_whatever_others_wrote(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Replica, "_is_beside", lambda self, kind: True)


def share_a_session_without_its_lock(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("session_clients.TurnLock", lambda scheduler: nullcontext())


def keep_an_unasked_measurement_twice(patch: pytest.MonkeyPatch) -> None:
    recorded = telling.Telling._recorded

    def careless(self: telling.Telling, events: list[NewEvent]) -> Change:
        return recorded(self, [event._replace(key=None) for event in events])

    patch.setattr(telling.Telling, "_recorded", careless)


def delete_what_others_wrote_meanwhile(patch: pytest.MonkeyPatch) -> None:
    def delete(self: Session, *, expected: Head) -> None:
        self.store.delete(self.name, expected=self.store.head(self.name))

    patch.setattr(Session, "delete", delete)


def hand_out_what_somebody_holds(patch: pytest.MonkeyPatch) -> None:
    claim = MemoryStore.claim

    def greedy(
        self: MemoryStore, name: str, tokens: Iterable[str], *, worker: str, until: float, now: float
    ) -> list[str]:
        wanted = list(tokens)
        self.release(name, wanted)
        return claim(self, name, wanted, worker=worker, until=until, now=now)

    patch.setattr(MemoryStore, "claim", greedy)


def void_without_starting_over(patch: pytest.MonkeyPatch) -> None:
    right = Ledger._voided

    def voided(self: Ledger, body: Body) -> None:
        if "event" in body:
            right(self, body)
        else:
            self.tapes.void(Token.of(body))

    patch.setattr(Ledger, "_voided", voided)


def read_a_snapshot_of_another_log(patch: pytest.MonkeyPatch) -> None:
    """A snapshot is not tied to its log, and an id is used again after its log was deleted."""
    number = MemoryStore.number

    def by_name(self: MemoryStore, name: str) -> int:
        self._pinned = None
        return number(self, name)

    def save(self: MemoryStore, name: str, snapshot: Snapshot) -> None:
        self._log(name).snapshot = snapshot

    patch.setattr(MemoryStore, "number", by_name)
    patch.setattr(MemoryStore, "save_snapshot", save)


def acknowledge_what_is_not_on_disk(patch: pytest.MonkeyPatch) -> None:
    """A commit returns before its events are on disk, as after a failed fsync: a power cut loses them."""
    commit = Database.commit

    def hasty(self: Database, state: MemoryStore, *, durable: bool) -> None:
        before = self.now
        commit(self, state, durable=False)
        if durable:
            self.on_disk = before

    patch.setattr(Database, "commit", hasty)


def claim_without_looking_first(patch: pytest.MonkeyPatch) -> None:
    """A worker chooses requests by what it knew at its last look, and takes them whoever holds them."""
    look = leasing.Leasing._note_granted

    def trusting(self: leasing.Leasing, chosen: Any, claim: Claim, held: Iterable[str]) -> list[Token]:
        return look(self, chosen, claim, claim.tokens)

    patch.setattr(leasing.Leasing, "_note_granted", trusting)


def leave_leases_on_recorded_requests(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Replica, "recorded", lambda self, leases: [])


def record_a_late_use_with_what_counts_already(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(telling, "_untold", lambda parts, body: body)


def count_an_unasked_value_that_was_taken_back(patch: pytest.MonkeyPatch) -> None:
    def voided(self: Ledger, position: int) -> None:
        self.unasked_voided.add(position)
        self.n_unasked -= 1

    patch.setattr(Ledger, "_voided_unasked", voided)


def take_in_plans_in_the_middle_of_a_block(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(BatchRun, "may_grow", True)


def add_plans_to_what_was_seen_before(patch: pytest.MonkeyPatch) -> None:
    def add_plans(self: Session, plans: Any, *, new_arms: Any = ()) -> None:
        bodies = additions(self._ledger, plans, new_arms)
        with self._changing() as replica:
            events = [NewEvent(ADDED, body, f"plan:{body['name']}") for body in bodies]
            replica.commit(lambda: Change(events), quick=False)

    patch.setattr(Session, "add_plans", add_plans)


def call_the_last_call_on_what_was_seen_before(patch: pytest.MonkeyPatch) -> None:
    def last_call(self: Session, n: int | None = None, *, gaussian: bool = False) -> None:
        change = calling(self._ledger, n, gaussian=gaussian)
        with self._changing() as replica:
            replica.commit(lambda: change, quick=False)

    patch.setattr(Session, "final_batch", last_call)


MISTAKES = [
    close_before_the_decision,
    extend_what_was_seen_before,
    take_any_delta,
    trust_a_ledger_whose_append_failed,
    acknowledge_before_the_commit,
    decide_whatever_others_wrote,
    share_a_session_without_its_lock,
    keep_an_unasked_measurement_twice,
    delete_what_others_wrote_meanwhile,
    hand_out_what_somebody_holds,
    void_without_starting_over,
    read_a_snapshot_of_another_log,
    acknowledge_what_is_not_on_disk,
    claim_without_looking_first,
    leave_leases_on_recorded_requests,
    record_a_late_use_with_what_counts_already,
    count_an_unasked_value_that_was_taken_back,
    take_in_plans_in_the_middle_of_a_block,
    add_plans_to_what_was_seen_before,
    call_the_last_call_on_what_was_seen_before,
]
