"""Many processes or threads, and sudden deaths: every measurement counts once, the answer is the same."""

import random
import signal
import sys
import time
from collections import Counter
from dataclasses import dataclass

import pytest

import surepick as sp
from session_tools import Tapes, best_plan, oracle_problem, problem, run_to_end, same_run
from session_workers import work, work_until_statement
from store_contract import in_threads
from store_workers import all_succeed, crowd
from surepick.core.oracle_problem import Best
from surepick.policy import Policy
from surepick.sessions.session import Session


@dataclass(frozen=True)
class Shared:
    """A session that many processes share, and what each of them needs to open it."""

    url: str
    problem: sp.Problem | sp.OracleProblem
    policy: Policy
    best: Best | None = None

    def begin(self, lease):
        """Begin the session. Leases outlast the slowest worker that lives, so that no value is late."""
        return Session.create(self.url, "mine", self.problem, policy=self.policy, seed=3, lease=lease)


@pytest.fixture(params=["sqlite, listed", "postgres, listed", "postgres, function"])
def shared(request):
    kind, plans = request.param.split(", ")
    url = str(request.getfixturevalue(f"{kind}_url"))
    here = Shared(url, problem(), sp.CombGapE(delta=0.01))
    if plans == "function":
        here = Shared(url, oracle_problem(), sp.BetGapE(delta=0.1), best_plan)
    warm = Session.create("memory://", "warm", here.problem, policy=here.policy)
    run_to_end(warm, Tapes(), n=9)  # compiled before the fork
    return here


def check_answer(shared, seed, acknowledged, session=None):
    """The session ended as a simulation on the same measurements, and holds each of them once."""
    session = session or Session.load(shared.url, "mine", problem=shared.best)
    expected = sp.simulate(shared.problem, Tapes(seed), policy=shared.policy, seed=3)
    assert session.status != "running"
    assert same_run(session.outcome, expected)
    told = Counter(m.token for m in session.measurements())
    assert set(told.values()) == {1}
    assert set(acknowledged) <= set(told)
    assert session.verify(session.certificate().to_json()).holds


def test_eight_processes_on_one_session_count_every_tell_once(shared, tmp_path):
    shared.begin(lease=60.0)
    assert all_succeed(crowd(8, work, shared.url, 0, tmp_path / "journal", shared.best))
    check_answer(shared, 0, (tmp_path / "journal").read_text().split())


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_eight_threads_on_one_session_lose_nothing(kind, request):
    """They take turns a hundred times as often as usual, so that they meet in the middle of things."""
    url = "memory://" if kind == "memory" else request.getfixturevalue("sqlite_url")
    shared = Shared(url, problem(), sp.CombGapE(delta=0.1))
    session, tapes, results = shared.begin(lease=60.0), Tapes(4), Counter[str]()

    def measure(i):
        while requests := session.ask(2, worker=f"thread {i}"):
            results.update(session.tell(one, tapes.value(one.token)).result for one in requests)
            assert session.state().standing() is not None
            assert {lease.worker for lease in session.leases()} <= {f"thread {k}" for k in range(8)}

    before = sys.getswitchinterval()
    sys.setswitchinterval(5e-5)
    try:
        in_threads(8, measure)
    finally:
        sys.setswitchinterval(before)
    check_answer(shared, 4, [], session)
    assert results == {"recorded": session.state().n_values}


def test_processes_killed_again_and_again_lose_nothing(shared, tmp_path):
    shared.begin(lease=4.0)
    journal, chance = tmp_path / "journal", random.Random(1)
    journal.touch()
    for _ in range(12):
        workers = crowd(3, work, shared.url, 1, journal, shared.best)
        time.sleep(chance.uniform(0.02, 0.12))
        for worker in workers:
            worker.kill()
            worker.join()
    assert all_succeed(crowd(2, work, shared.url, 1, journal, shared.best))
    check_answer(shared, 1, journal.read_text().split())


def test_death_at_every_statement_of_an_ask_and_a_tell_loses_nothing(shared, tmp_path):
    shared.begin(lease=1.0)
    journal = tmp_path / "journal"
    journal.touch()
    deaths = 0
    for last in range(1, 32):
        (worker,) = crowd(1, work_until_statement, shared.url, 2, journal, last, shared.best)
        worker.join()
        if worker.exitcode == 0:  # it has no more statements
            break
        assert worker.exitcode == -signal.SIGKILL
        deaths += 1
        Session.load(shared.url, "mine", problem=shared.best).ask(wait=False)
    assert deaths >= 8
    time.sleep(1.0)  # until the leases of the dead have ended
    assert all_succeed(crowd(1, work, shared.url, 2, journal, shared.best))
    check_answer(shared, 2, journal.read_text().split())
