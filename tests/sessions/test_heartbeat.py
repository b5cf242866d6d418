"""Heartbeats: a worker that has died is noticed in seconds, one that lives keeps what it has."""

import os
import signal
import subprocess
import sys
import time

import pytest

import surepick as sp
from common import refuses
from session_tools import Clock, problem
from store_workers import crowd, wait_for
from surepick.errors import ParameterError, SessionError
from surepick.sessions.session import Session
from surepick.store import open_store

LEASE, BEAT = 100.0, 30.0


def a_pair(clock):
    """Two sessions of two processes on one log."""
    store = open_store("memory://")
    one = Session.create(store, "mine", problem(), policy=sp.CombGapE(), lease=LEASE, clock=clock)
    return one, Session.load(store, "mine", clock=clock)


def tokens(requests):
    return [request.token for request in requests]


def test_a_silent_worker_loses_its_tokens_after_the_heartbeat_and_a_beating_one_does_not():
    clock = Clock()
    mine, other = a_pair(clock)
    held = tokens(mine.ask(3, worker="a", heartbeat=BEAT))
    for _ in range(3):
        clock.now += BEAT - 1
        mine._heartbeat.beat()
        assert not set(tokens(other.ask(3, worker="b", wait=False))) & set(held)
    clock.now += BEAT + 1  # no beat for so long
    assert set(tokens(other.ask(9, worker="c", wait=False))) >= set(held)


def test_a_worker_that_hangs_loses_its_tokens_at_the_end_of_the_lease():
    clock = Clock()
    mine, other = a_pair(clock)
    held = tokens(mine.ask(2, worker="a", heartbeat=BEAT))
    for _ in range(8):
        clock.now += LEASE / 7
        mine._heartbeat.beat()
    assert set(tokens(other.ask(9, worker="b", wait=False))) >= set(held)


def test_a_beat_just_after_a_tell_leases_nothing_again(monkeypatch):
    mine, _ = a_pair(Clock())
    (request,) = mine.ask(worker="a", heartbeat=BEAT)
    append = mine.store.append

    def append_and_beat(*arguments, **named):
        head = append(*arguments, **named)
        mine._heartbeat.beat()
        return head

    monkeypatch.setattr(mine.store, "append", append_and_beat)
    mine.tell(request, 1.0)
    assert mine.store.leases("mine") == []


def test_a_token_whose_value_was_refused_is_still_kept():
    clock = Clock()
    mine, other = a_pair(clock)
    (request,) = mine.ask(worker="a", heartbeat=BEAT)
    with refuses("value", SessionError):
        mine.tell(request, float("nan"))
    clock.now += BEAT - 1
    mine._heartbeat.beat()
    clock.now += BEAT - 1
    assert request.token not in tokens(other.ask(9, worker="b", wait=False))


def test_what_was_told_given_back_or_taken_by_others_is_kept_no_longer():
    clock = Clock()
    mine, other = a_pair(clock)
    told, withdrawn, taken = mine.ask(3, worker="a", heartbeat=BEAT)
    mine.tell(told, 1.0)
    mine.release(withdrawn)
    clock.now += BEAT + 1
    other.store.claim("mine", [taken.token], worker="b", until=clock.now + LEASE, now=clock.now)
    mine._heartbeat.beat()
    assert [lease.worker for lease in mine.leases()] == ["b"]
    assert withdrawn.token in tokens(other.ask(3, worker="b", wait=False))


@pytest.mark.parametrize("heartbeat", [0.0, -1.0, float("nan"), float("inf")])
def test_a_heartbeat_is_a_number_of_seconds(heartbeat):
    mine, _ = a_pair(Clock())
    with refuses("heartbeat", ParameterError):
        mine.ask(heartbeat=heartbeat)
    assert mine.leases() == []


def measure_for_ever(i, url, ready, heartbeat):
    """Take everything that can be had, and never tell any of it."""
    held = Session.load(url, "mine").ask(100, worker="mortal", heartbeat=heartbeat)
    ready.write_text(" ".join(tokens(held)))
    time.sleep(60)


def one_who_holds_all(url, ready, heartbeat):
    (worker,) = crowd(1, measure_for_ever, url, ready, heartbeat)
    wait_for(lambda: ready.exists() and bool(ready.read_text()))
    return worker


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_killed_process_is_noticed_and_a_living_one_is_left_alone(kind, request, tmp_path):
    url, ready = str(request.getfixturevalue(f"{kind}_url")), tmp_path / "ready"
    session = Session.create(url, "mine", problem(), policy=sp.CombGapE())
    worker = one_who_holds_all(url, ready, 5.0)
    first = min(lease.expires for lease in session.leases())
    wait_for(lambda: min(lease.expires for lease in session.leases()) > first)  # it lives, and says so
    assert session.ask(worker="heir", wait=False) == []
    os.kill(worker.pid, signal.SIGKILL)
    worker.join()
    assert session.ask(worker="heir")[0].token in ready.read_text().split()  # it waits, and gets what is free


def test_a_fork_leaves_the_tokens_to_the_parent(sqlite_url):
    session = Session.create(sqlite_url, "mine", problem(), policy=sp.CombGapE())
    held = {request.token for request in session.ask(2, worker="a", heartbeat=0.05)}
    for _ in range(20):
        child = os.fork()
        if child == 0:
            try:
                assert session._heartbeat._holds == {}
                grandchild = os.fork()
                if grandchild == 0:
                    os._exit(0)
                os.waitpid(grandchild, 0)
                os._exit(0 if session.ask(1, worker="b", wait=False) else 1)
            finally:
                os._exit(2)
        assert os.waitpid(child, 0)[1] == 0
        time.sleep(0.01)
    assert session._heartbeat._holds.keys() == held
    assert session.verify().holds


def test_a_fork_during_a_beat_that_opens_a_connection_does_not_hang():
    """Beats end before the store stops opening connections; the other order waits for ever."""
    code = """
import os, threading, time
import surepick.sessions.heartbeat as heartbeat
from surepick.store import connections

class Slow:
    def claim(self, *_, **__):
        begun.set()
        time.sleep(0.2)  # the fork begins here
        with connections._FORKING:  # as every connection that is opened does
            return ["0.0"]

    def disconnect(self):
        pass

begun = threading.Event()
heart = heartbeat.Heartbeat(Slow(), "mine", time.time)
heart.hold(["0.0"], heartbeat.Hold("me", 0.03, time.time() + 60))
begun.wait()
child = os.fork()
if child == 0:
    os._exit(7)
raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    done = subprocess.run([sys.executable, "-c", code], timeout=20, check=False)
    assert done.returncode == 7
