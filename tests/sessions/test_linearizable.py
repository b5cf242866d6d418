"""What real threads and processes see of one session could have happened one call after the other."""

import multiprocessing
import random
import threading
import time
from collections import Counter
from typing import Any

import pytest

import surepick as sp
from linearizability import Call, SessionState, is_linearizable, session_model
from session_tools import problem
from store_workers import all_succeed, crowd
from surepick.errors import ParameterError, SessionError
from surepick.sessions.session import Session

TOKENS, KEYS, VALUES = ["0.0", "1.0", "2.0", "0.1"], ["sheet 1", "sheet 2"], [1.0, 2.0]
DELTAS = [0.1, 0.09, 0.08, 0.05, 0.02]
KEPT = {"recorded": "kept", "extra": "kept"}  # a value told by its arm, whether or not a request was open
BEGIN = SessionState(delta=0.1)
N_PROCESSES, N_THREADS, N_CALLS = 3, 2, 9


def act(session, what, arguments):
    """What a user is told when doing this."""
    try:
        if what == "tell":
            token, value, worker = arguments
            return str(session.tell(token, value, worker=worker))
        if what == "record":
            key, value = arguments
            return KEPT.get(str(session.tell(3, value, key=key)), "repeated")
        if what == "release":
            session.release(*arguments)
        elif what == "extend":
            session.extend(delta=arguments[0])
        else:
            with session.journal.held() as ledger:
                n = len(ledger.late) + len(ledger.keys)
                return ledger.n_recorded - n, n, ledger.setup.policy.delta
    except (SessionError, ParameterError):
        return "refused"
    return "done"


def draw(rng, worker):
    """Something to do; few tokens, keys and values, so that many do the same at once."""
    what = rng.choice(["tell", "tell", "tell", "record", "release", "extend", "look", "look"])
    arguments: dict[str, tuple[Any, ...]] = {
        "tell": (rng.choice(TOKENS), rng.choice(VALUES), worker),
        "record": (rng.choice(KEYS), rng.choice(VALUES)),
        "release": (rng.choice(TOKENS),),
        "extend": (rng.choice(DELTAS),),
        "look": (),
    }
    return what, arguments[what]


def live(i, url, seed, line, seen):
    """A process of two threads that share a session; all of them begin together."""
    session, calls = Session.load(url, "mine"), []

    def work(k):
        rng, worker = random.Random(f"{seed} {i} {k}"), f"worker {i}.{k}"
        line.wait(60)
        for _ in range(N_CALLS):
            what, arguments = draw(rng, worker)
            began = time.monotonic_ns()
            result = act(session, what, arguments)
            calls.append(Call(began, time.monotonic_ns(), what, arguments, result))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(N_THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seen.put(calls)


def recorded(url, seed):
    """A history of real processes and threads on one new session."""
    Session.create(url, "mine", problem(), policy=sp.BetGapE(delta=0.1))
    context = multiprocessing.get_context("fork")
    seen, line = context.Queue(), context.Barrier(N_PROCESSES * N_THREADS)
    workers = crowd(N_PROCESSES, live, url, seed, line, seen)
    calls = [call for _ in workers for call in seen.get(timeout=120)]
    assert all_succeed(workers)
    assert len(calls) == N_PROCESSES * N_THREADS * N_CALLS
    return calls


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_histories_of_real_processes_and_threads_are_linearizable(kind, seed, request):
    url = str(request.getfixturevalue(f"{kind}_url"))
    calls = recorded(url, seed)
    assert is_linearizable(calls, session_model, BEGIN), calls
    together = sum(b.began < a.ended and a.began < b.ended for a in calls for b in calls if a is not b)
    assert together > 0, "nothing happened at the same time"
    assert Session.load(url, "mine").verify().holds
    # what cannot be: the same history with one answer changed
    for wrong in spoiled(calls):
        assert not is_linearizable(wrong, session_model, BEGIN)


def spoiled(calls):
    """The history with a lost update, with a look that sees too little, with a measurement counted twice."""
    first = next(i for i, call in enumerate(calls) if (call.what, call.result) == ("tell", "recorded"))
    last = max(calls, key=lambda call: call.ended)
    n_told = Counter(call.what for call in calls if call.result == "recorded")["tell"]
    after = Call(last.ended + 1, last.ended + 2, "look", (), (n_told - 1, 0, BEGIN.delta))
    lost = [*calls[:first], calls[first]._replace(result="repeated"), *calls[first + 1 :]]
    twice = [*calls, calls[first]._replace(began=last.ended + 1, ended=last.ended + 2)]
    return [[*calls, after], lost, twice]


LATE = ("tell", ("0.0", 1.0, "b"), "extra")  # it takes the place of request 0.1


@pytest.mark.parametrize(
    ("calls", "possible"),
    [
        ([("tell", ("0.0", 1.0, "a"), "recorded"), ("tell", ("0.0", 1.0, "b"), "extra")], True),
        ([("tell", ("0.0", 1.0, "a"), "recorded"), ("tell", ("0.0", 1.0, "b"), "repeated")], False),
        ([("tell", ("0.0", 1.0, "a"), "recorded"), ("tell", ("0.0", 2.0, "b"), "recorded")], False),
        ([("tell", ("0.0", 1.0, "a"), "recorded"), ("look", (), (0, 0, 0.1))], True),
        ([LATE, ("tell", ("0.0", 1.0, "a"), "recorded"), ("tell", ("0.1", 1.0, "a"), "extra")], True),
        ([LATE, ("tell", ("0.0", 1.0, "a"), "recorded"), ("tell", ("1.0", 1.0, "a"), "extra")], False),
        ([("extend", (0.05,), "done"), ("extend", (0.08,), "done")], True),
        ([("extend", (0.05,), "done"), ("extend", (0.08,), "done"), ("look", (), (0, 0, 0.08))], True),
        ([("extend", (0.05,), "done"), ("extend", (0.05,), "refused")], True),
        ([("extend", (0.05,), "done"), ("extend", (0.05,), "done")], False),
    ],
)
def test_the_search_tells_what_can_be_from_what_cannot(calls, possible):
    together = [Call(0, 10, *call) for call in calls]
    assert is_linearizable(together, session_model, BEGIN) is possible


def test_an_order_that_time_forbids_is_none():
    told = Call(0, 10, "tell", ("0.0", 1.0, "a"), "recorded")
    assert is_linearizable([told, Call(5, 20, "look", (), (0, 0, 0.1))], session_model, BEGIN)
    assert not is_linearizable([told, Call(11, 20, "look", (), (0, 0, 0.1))], session_model, BEGIN)
