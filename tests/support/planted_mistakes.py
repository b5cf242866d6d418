"""Mistakes of a kind that were made, or nearly: planted to see whether tests of sessions notice them."""

from contextlib import nullcontext
from dataclasses import replace
from typing import Any

from simulated_store import Database, SimulatedLog
from surepick.policies.betting.batch_run import BatchRun
from surepick.sessions import commands, journal, leases
from surepick.sessions.events import EVENTS, Closed, Extended, Measured
from surepick.sessions.journal import Change, Journal
from surepick.sessions.session import Session
from surepick.sessions.state import SessionState
from surepick.store import Lease
from surepick.store.memory import MemoryLog


def unchecked(patch, kind):
    patch.setattr(kind, "check", lambda self, state: None)


def close_before_the_decision(patch):
    def close(self, reason=""):
        with self.journal.lock:
            event = Closed(self.journal.state.n_closed + 1, reason)
            self.journal.commit(lambda state: Change([] if state.is_over else [event]))

    patch.setattr(Session, "close", close)
    unchecked(patch, Closed)


def extend_what_was_seen_before(patch):
    def extend(self, *, delta=None, budget=None):
        change = commands.extended(self.journal.state, delta, budget)
        checked(change.events[0], self.journal.state)
        self.journal.commit(lambda state: change)

    checked: Any = Extended.check
    patch.setattr(Session, "extend", extend)
    unchecked(patch, Extended)


def take_any_delta(patch):
    unchecked(patch, Extended)


def trust_a_ledger_whose_append_failed(patch):
    patch.setattr(Journal, "is_stale", property(lambda self: False, lambda self, value: None), raising=False)


def acknowledge_before_the_commit(patch):
    commit = Journal.commit

    def hasty(self, make, **how):
        try:
            return commit(self, make, **how)
        except Exception as error:
            if "simulated" not in str(error):
                raise
            return make(self.state).result

    patch.setattr(Journal, "commit", hasty)


def decide_whatever_others_wrote(patch):
    patch.setattr(journal, "BESIDE", set(EVENTS))


def share_a_session_without_its_lock(patch):
    patch.setattr("session_clients.TurnLock", lambda scheduler: nullcontext())


def record_a_key_twice(patch):
    measured = commands.measured

    def careless(journal, what, value, **given):
        return measured(journal, what, value, **{**given, "key": ""})

    patch.setattr(commands, "measured", careless)


def delete_what_others_wrote_meanwhile(patch):
    def delete(self, *, expected):
        self.journal.log.delete(expected=self.journal.log.head())

    patch.setattr(Session, "delete", delete)


def hand_out_what_somebody_holds(patch):
    claim = MemoryLog.claim

    def greedy(self, tokens, *, worker, until, now):
        wanted = list(tokens)
        self.release(wanted)
        return claim(self, wanted, worker=worker, until=until, now=now)

    patch.setattr(MemoryLog, "claim", greedy)


def remove_without_settling_again(patch):
    patch.setattr(SessionState, "_removed", lambda self, event: self.streams.clear(event.place, removed=True))


def read_a_snapshot_of_another_log(patch):
    """A snapshot is not tied to its log, and a log that was deleted is another one of its name."""

    def save(self, snapshot):
        self._snapshot = snapshot

    patch.setattr(SimulatedLog, "of", lambda self, state: state.log(self.name))
    patch.setattr(MemoryLog, "save_snapshot", save)


def acknowledge_what_is_not_on_disk(patch):
    """A commit returns before its events are on disk, as after a failed fsync: a power cut loses them."""
    commit = Database.commit

    def hasty(self, state, *, durable):
        before = self.now
        commit(self, state, durable=False)
        if durable:
            self.on_disk = before

    patch.setattr(Database, "commit", hasty)


def choose_what_others_hold(patch):
    """A worker chooses requests without looking at the leases, and believes that it holds them."""
    choose = leases._choose

    def careless(state, active, n, worker):
        chosen = choose(state, {}, n, worker)
        active.update((place, Lease(str(place), worker, 1e12)) for place in chosen)
        return chosen

    patch.setattr(leases, "_choose", careless)


def leave_leases_on_recorded_requests(patch):
    patch.setattr(journal, "leases_ended", lambda events: [])
    patch.setattr(leases, "_is_needed", lambda state, place, lease: True)


def drop_a_late_value(patch):
    known = commands._known

    def careless(journal, place, given):
        found = known(journal, place, given)
        return commands.Receipt(0, "extra") if found is None else found

    patch.setattr(commands, "_known", careless)


def settle_a_batch_with_a_lost_value(patch):
    """A use whose reading was lost counts as if it were 0."""
    patch.setattr(Measured, "is_lost", property(lambda self: False))
    measured = SessionState._measured

    def careless(self, event):
        measured(self, replace(event, values=[value or 0.0 for value in event.values]))

    patch.setattr(SessionState, "_measured", careless)


def take_in_plans_in_the_middle_of_a_block(patch):
    patch.setattr(BatchRun, "may_grow", True)


MISTAKES = [one for name, one in list(vars().items()) if getattr(one, "__module__", "") == __name__]
MISTAKES.remove(unchecked)
