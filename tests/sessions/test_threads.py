"""One session shared by threads: nothing is lost, and the answer is that of a simulation."""

import sys
from collections import Counter
from contextlib import suppress

import pytest

import surepick as sp
from session_tools import Tapes, holds, problem, same_run
from store_contract import in_threads
from surepick.errors import SessionError
from surepick.sessions.commands import Receipt
from surepick.sessions.session import Session

N_THREADS = 8


@pytest.fixture(autouse=True)
def often_switched():
    """Threads take turns a hundred times as often as usual, so that they meet in the middle of things."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(5e-5)
    yield
    sys.setswitchinterval(before)


@pytest.fixture(params=["memory", "sqlite"])
def url(request):
    return "memory://" if request.param == "memory" else str(request.getfixturevalue("sqlite_url"))


def test_eight_threads_on_one_session_lose_nothing(url):
    policy = sp.CombGapE(delta=0.1)
    session, tapes = Session.create(url, "mine", problem(), policy=policy, seed=3), Tapes(4)
    receipts: list[Receipt] = []

    def work(i):
        while requests := session.ask(2, worker=f"thread {i}"):
            receipts.extend(session.tell(asked, tapes.value(asked.token)) for asked in requests)
            assert session.state().standing() is not None
            assert {lease.worker for lease in session.leases()} <= {f"thread {k}" for k in range(N_THREADS)}

    in_threads(N_THREADS, work)
    assert session.status != "running"
    assert same_run(session.outcome, sp.simulate(problem(), Tapes(4), policy=policy, seed=3))
    told = Counter(m.token for m in session.measurements())
    assert set(told.values()) == {1}
    assert [receipt.result for receipt in receipts] == ["recorded"] * len(told)
    assert holds(session)
    assert same_run(Session.load(session.store, "mine").outcome, session.outcome)


def test_threads_that_rename_record_and_release_lose_nothing_either(url):
    session = Session.create(url, "mine", problem(), policy=sp.CombGapE(delta=1e-6), seed=3)
    tapes, extra, told = Tapes(5), Tapes(6), list[int]()

    def work(i):
        for n in range(6):
            value = extra.value(f"{n % 4}.{100 * i + n}")
            told.append(session.tell(n % 4, value, key=f"{i}, {n}").number)
            session.rename(f"{i}, {n}")
            for asked in session.ask(2, worker=f"thread {i}", wait=False):
                if n % 3:
                    told.append(session.tell(asked, tapes.value(asked.token)).number)
                else:
                    with suppress(SessionError):  # answered by arm meanwhile
                        session.release(asked)

    in_threads(N_THREADS, work)
    written = Counter(event.kind for event in session.events())
    assert written["renamed"] == 6 * N_THREADS
    assert written["released"] > 0
    assert session.state().n_values == written["measured"] == len(set(told))
    assert sorted(session.state().keys) == sorted(f"{i}, {n}" for i in range(N_THREADS) for n in range(6))
    assert session.verify().holds
