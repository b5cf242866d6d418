"""Many processes and sudden deaths: every measurement counts once, and the answer is the same."""

from __future__ import annotations

import random
import signal
import time
from collections import Counter
from pathlib import Path

import pytest

import surepick as sp
from session_tools import Tapes, problem, run_to_end, same_run
from session_workers import work, work_until_statement
from store_workers import all_succeed, crowd
from surepick.session import Session

POLICY = sp.CombGapE(delta=0.01)


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest) -> str:
    url = str(request.getfixturevalue(f"{request.param}_url"))
    run_to_end(
        Session.create("memory://", problem(), POLICY, name="warm"), Tapes()
    )  # compiled before the fork
    Session.create(url, problem(), POLICY, name="mine", seed=3, lease=0.5)
    return url


def check_answer(url: str, seed: int, acknowledged: list[str]) -> None:
    """The session ended as a simulation on the same measurements, and holds each of them once."""
    session = Session.load(url, "mine")
    expected = sp.simulate(problem(), POLICY, Tapes(seed), seed=3)
    assert session.outcome is not None
    assert same_run(session.outcome, expected)
    told = Counter(m.token for m in session.measurements())
    assert set(told.values()) == {1}
    assert set(acknowledged) <= set(told)
    assert session.verify(session.certificate().to_json()).holds


def test_eight_processes_on_one_session_count_every_tell_once(url: str, tmp_path: Path) -> None:
    assert all_succeed(crowd(8, work, url, 0, tmp_path / "journal"))
    check_answer(url, 0, (tmp_path / "journal").read_text().split())


def test_processes_killed_again_and_again_lose_nothing(url: str, tmp_path: Path) -> None:
    journal, chance = tmp_path / "journal", random.Random(1)
    journal.touch()
    for _ in range(12):
        workers = crowd(3, work, url, 1, journal)
        time.sleep(chance.uniform(0.02, 0.12))
        for worker in workers:
            worker.kill()
            worker.join()
    assert all_succeed(crowd(2, work, url, 1, journal))
    check_answer(url, 1, journal.read_text().split())


def test_death_at_every_statement_of_an_ask_and_a_tell_loses_nothing(url: str, tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    journal.touch()
    deaths = 0
    for last in range(1, 32):
        (worker,) = crowd(1, work_until_statement, url, 2, journal, last)
        worker.join()
        deaths += worker.exitcode == -signal.SIGKILL
        Session.load(url, "mine").ask(wait=False)
    assert deaths > 10
    time.sleep(0.5)  # until the leases of the dead have ended
    assert all_succeed(crowd(1, work, url, 2, journal))
    check_answer(url, 2, journal.read_text().split())
