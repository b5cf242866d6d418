"""One session shared by threads: nothing is lost, and the answer is that of a simulation."""

import sys
from collections import Counter

import pytest

import surepick as sp
from session_tools import Tapes, holds, problem, same_run
from store_contract import in_threads
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
