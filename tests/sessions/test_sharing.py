"""Workers without names, sessions that are deleted while they are open, and leases that nothing needs."""

import os
import signal

import pytest

import surepick as sp
from common import refuses
from session_tools import problem
from store_workers import all_succeed, crowd, wait_for
from surepick.errors import ParameterError, SessionError
from surepick.sessions.session import Session

POLICY = sp.CombGapE(delta=0.1)


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def url(request):
    kind = request.param
    return "memory://" if kind == "memory" else str(request.getfixturevalue(f"{kind}_url"))


def ask_and_wait(i, url, folder):
    """Ask for a request, write it down, and measure it for a long time."""
    session = Session.load(url, "mine")
    (folder / f"asked {i}").write_text(session.ask()[0].token)
    wait_for((folder / "told").exists)
    session.tell((folder / f"asked {i}").read_text(), float(i))


def test_processes_without_names_get_different_requests(sqlite_url, tmp_path):
    Session.create(sqlite_url, "mine", problem(), policy=POLICY)
    workers = crowd(4, ask_and_wait, sqlite_url, tmp_path)
    wait_for(lambda: sum(bool(file.read_text()) for file in tmp_path.glob("asked *")) == 4)
    asked = [(tmp_path / f"asked {i}").read_text() for i in range(4)]
    (tmp_path / "told").touch()
    assert all_succeed(workers)
    assert len(set(asked)) == 4
    assert {m.token for m in Session.load(sqlite_url, "mine").measurements()} == set(asked)


def test_what_a_process_without_a_name_had_is_free_once_it_has_ended(sqlite_url, tmp_path):
    session = Session.create(sqlite_url, "mine", problem(), policy=POLICY)
    (worker,) = crowd(1, ask_and_wait, sqlite_url, tmp_path)
    wait_for((tmp_path / "asked 0").exists)
    wait_for(lambda: bool((tmp_path / "asked 0").read_text()))
    first = (tmp_path / "asked 0").read_text()
    assert session.ask()[0].token != first
    session.journal.log.release([lease.token for lease in session.leases() if lease.token != first])
    with refuses("worker", SessionError):
        session.release(first)
    os.kill(worker.pid or 0, signal.SIGKILL)
    worker.join()
    assert session.ask()[0].token == first


def test_a_lease_ends_within_its_length_when_the_clock_was_put_back(url):
    day, lease, now = 86400.0, 100.0, [1e9]
    session = Session.create(url, "mine", problem(), policy=POLICY, lease=lease, clock=lambda: now[0])
    now[0] += 10 * day  # a clock that is wrong
    (held,) = session.ask(worker="left")
    now[0] -= 10 * day
    taken = {request.token for request in session.ask(64, worker="stays", wait=False)}
    assert held.token not in taken
    assert max(found.expires for found in session.leases()) <= now[0] + lease
    now[0] += lease + 1
    assert held.token in {request.token for request in session.ask(64, worker="stays", wait=False)}


def test_a_short_lease_frees_what_a_worker_elsewhere_had_and_asking_again_keeps_it(url):
    now = [1e9]
    session = Session.create(url, "mine", problem(), policy=POLICY, clock=lambda: now[0])

    def others_get(token):
        found = session.ask(64, worker="stays", wait=False, lease=1.0)
        return token in [request.token for request in found]

    (held,) = session.ask(worker="elsewhere", lease=60.0)
    now[0] += 50
    assert session.ask(worker="elsewhere", lease=60.0)[0].token == held.token
    now[0] += 50
    assert not others_get(held.token)
    now[0] += 11
    assert others_get(held.token)
    with refuses("lease", ParameterError):
        session.ask(lease=0)
