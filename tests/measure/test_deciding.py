"""`decide`: a whole decision in one call, by threads, processes, coroutines or an executor, and resumed."""

import asyncio
import os
import signal
import socket
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import surepick as sp
from common import refuses
from measuring_functions import ALREADY, HOURS, measure, measure_or_die, measure_or_hang, seeded
from surepick.errors import MeasureError, ParameterError, SessionError
from surepick.measure.loop import release_for_the_dead
from surepick.sessions.leases import is_dead
from surepick.store import MemoryStore


def problem(**options):
    names = {"arms": list(HOURS), "plan_names": ["drive", "ride"]}
    return sp.Problem([[1, 0, 1], [0, 1, 1]], noise=2.0, goal="largest", **names, **options)


async def measure_later(arm):
    await asyncio.sleep(0.001)
    return HOURS[arm]


async def sleep_on(arm):
    await asyncio.sleep(600)
    return HOURS[arm]


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setenv(ALREADY, str(tmp_path / "already"))
    return f"sqlite:///{tmp_path}/runs.db"


def kept(store):
    return sp.Session.load(store, "decision")


@pytest.mark.parametrize("kind", ["threads", "processes", "coroutines", "executor"])
def test_every_executor_comes_to_the_same_answer(kind):
    function, store = (measure_later if kind == "coroutines" else measure), MemoryStore()
    with ThreadPoolExecutor(2) as pool:
        executor = {"processes": "processes", "executor": pool}.get(kind, "threads")
        view = sp.decide(problem(), function, workers=2, executor=executor, store=store)
    assert (view.plan, view.state, view.session) == ("ride", "confident", "decision")
    assert view.n_measured == kept(store).state().n_values
    assert not kept(store).leases()
    assert not [thread for thread in threading.enumerate() if thread.name == "surepick loop"]


def test_it_measures_several_at_a_time():
    barrier, first = threading.Barrier(3, timeout=20), iter(range(3))

    def together(arm):
        if next(first, None) is not None:
            barrier.wait()  # none of the first three goes on before the others are here
        return HOURS[arm]

    assert sp.decide(problem(), together, workers=3, budget=3).n_measured >= 3


def test_a_failure_keeps_what_was_measured_and_the_same_call_resumes(store):
    calls = Counter()

    def fails_at_the_third(arm):
        calls[arm] += 1
        if calls.total() == 3:
            raise ConnectionError("the instrument is off")
        return HOURS[arm]

    with pytest.raises(ConnectionError) as caught:
        sp.decide(problem(), fails_at_the_third, store=store)
    assert "2 measurements" in caught.value.__notes__[0]
    assert (kept(store).state().n_values, kept(store).leases()) == (2, [])
    assert sp.decide(problem(), fails_at_the_third, store=store).plan == "ride"
    assert calls.total() == kept(store).state().n_values + 1


def test_retries_are_tried_before_it_fails():
    calls = Counter()

    def fails_twice_for_each(arm):
        calls[arm] += 1
        if calls[arm] <= 2:
            raise OSError(arm)
        return HOURS[arm]

    assert sp.decide(problem(), fails_twice_for_each, retries=2).plan == "ride"
    calls.clear()
    with pytest.raises(OSError):
        sp.decide(problem(), fails_twice_for_each, retries=1)


@pytest.mark.parametrize("executor", ["threads", "processes"])
def test_a_measurement_that_takes_too_long_fails_and_is_tried_again(store, executor):
    given = {"store": store, "executor": executor, "timeout": 3, "workers": 2}
    assert sp.decide(problem(), measure_or_hang, retries=1, **given).plan == "ride"


def test_without_retries_failures_are_raised(store):
    for function, options, error in (
        (measure_or_hang, {"timeout": 0.1, "store": store}, MeasureError),
        (sleep_on, {"timeout": 0.1}, MeasureError),
        (lambda arm: None, {}, MeasureError),
        (lambda arm: float("nan"), {}, (SessionError, ParameterError)),
        (lambda arm: "high", {}, (SessionError, ParameterError)),
        (abs, {"executor": "processes"}, TypeError),  # what a process raises comes back
    ):
        with pytest.raises(error):
            sp.decide(problem(), function, **options)


def test_a_process_that_dies_is_replaced(store):
    with pytest.raises(MeasureError):
        sp.decide(problem(), measure_or_die, store=store, executor="processes")
    assert sp.decide(problem(), measure_or_die, store=store, executor="processes").plan == "ride"


def test_a_function_that_processes_cannot_import_is_refused_before_anything_is_asked_for(store):
    with refuses("executor", ParameterError):
        sp.decide(problem(), lambda arm: 1.0, store=store, executor="processes")
    assert kept(store).leases() == []


@pytest.mark.parametrize("interrupts", [1, 2])
def test_ctrl_c_waits_for_what_is_under_way_and_a_second_one_drops_it(store, interrupts):
    both, go_on, n_sent = threading.Barrier(3), threading.Event(), 0
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it for background jobs

    def slow(arm):
        both.wait(60)
        go_on.wait(60)
        return HOURS[arm]

    def press():
        nonlocal n_sent
        both.wait(60)
        while n_sent < interrupts:
            time.sleep(0.5)  # until it waits
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
            n_sent += 1
        time.sleep(0.5)
        if interrupts == 1:
            go_on.set()

    person = threading.Thread(target=press)
    person.start()
    with pytest.raises(KeyboardInterrupt):
        sp.decide(problem(), slow, store=store, workers=2)
    go_on.set()
    person.join()
    assert n_sent == interrupts
    assert (kept(store).state().n_values, kept(store).leases()) == (2 if interrupts == 1 else 0, [])
    assert sp.decide(problem(), measure, store=store).plan == "ride"


@pytest.mark.parametrize("kind", ["list", "dictionary", "frame"])
def test_options_are_chosen_from_without_a_problem(kind):
    pandas = pytest.importorskip("pandas")
    draw, given = np.random.default_rng(3), []
    options = {
        "list": [1, 5, 3],
        "dictionary": {"one": 1, "five": 5, "three": 3},
        "frame": pandas.DataFrame({"level": [1, 5, 3]}, index=["one", "five", "three"]),
    }[kind]

    def score(option):
        given.append(option)
        level = option["level"] if kind == "frame" else option
        return float(level + 0.1 * draw.standard_normal())

    view = sp.decide(options, score, goal="largest")
    assert (view.plan, view.state) == ("5" if kind == "list" else "five", "confident")
    assert {"level": 3} in given if kind == "frame" else set(given) == {1, 5, 3}
    assert sp.decide(options, score, goal="smallest").plan in ("1", "one")


def test_successes_and_failures_need_no_more_than_their_limits():
    draw, rates = np.random.default_rng(4), {"never": 0.0, "often": 0.9}

    def succeeds(name):
        return float(draw.random() < rates[name])

    assert sp.decide(list(rates), succeeds, goal="largest", low=0, high=1).plan == "often"
    with pytest.raises(sp.SurepickError) as refused:  # the noise of "never" cannot be learned
        sp.decide(list(rates), succeeds, goal="largest")
    assert refused.value.field == "noise"


@pytest.mark.parametrize(
    ("given", "options", "field"),
    [
        (["a", "b"], {"goal": None}, "goal"),
        (["a", "b"], {"goal": "best"}, "goal"),
        (["a", "a"], {"goal": "largest"}, "problem"),
        (["a"], {"goal": "largest"}, "problem"),
        ("ab", {"goal": "largest"}, "problem"),
        (problem(), {"goal": "largest"}, "goal"),
        (problem(), {"noise": 1.0}, "noise"),
        (problem(), {"workers": 0}, "workers"),
        (problem(), {"retries": -1}, "retries"),
        (problem(), {"timeout": 0}, "timeout"),
        (problem(), {"executor": "fibres"}, "executor"),
        (problem(), {"final_batch": 3}, "budget"),
        (problem(), {"policy": sp.CombGapE(), "delta": 0.1}, None),
    ],
)
def test_wrong_options_are_refused(given, options, field):
    with pytest.raises(ParameterError) as caught:
        sp.decide(given, measure, **options)
    assert field is None or caught.value.field == field


def test_progress_is_printed_or_handed_on(capfd):
    sp.decide(problem(), measure)
    assert capfd.readouterr() == ("", "")
    views = []
    sp.decide(problem(), measure, progress=views.append)
    assert {view.state for view in views} >= {"running", "confident"}
    sp.decide(problem(), measure, progress=True)
    out, err = capfd.readouterr()
    assert out == ""
    assert "confident" in err.splitlines()[-1]


def test_a_final_batch_is_the_end_of_the_budget():
    store, tied = MemoryStore(), dict.fromkeys(HOURS, 5.0)
    draw = np.random.default_rng(0)
    view = sp.decide(
        problem(), lambda arm: tied[arm] + draw.normal(), store=store, budget=40, final_batch=20, delta=0.01
    )
    assert (view.state, view.n_measured) == ("budget spent", 40)
    assert kept(store).state().final is not None


def test_an_incumbent_is_asked_about():
    assert sp.decide(problem(), measure, incumbent="drive").proved.claim == "better_than_incumbent"


def test_two_calls_in_one_process_share_a_session(store):
    with ThreadPoolExecutor(2) as pool:
        calls = [pool.submit(sp.decide, problem(), measure, store=store, workers=2) for _ in range(2)]
    assert [call.result().plan for call in calls] == ["ride", "ride"]


def test_requests_of_a_run_that_died_are_released():
    host = socket.gethostname()
    assert is_dead(f"run on {host}, process 999999999")
    assert is_dead(f"run on {host}, process 999999999, call 2")
    assert not is_dead(f"run on {host}, process {os.getpid()}, call 2")
    session = sp.Session.open("memory://", "x", problem())
    session.ask(worker=f"run on {host}, process 999999999, call 2")
    release_for_the_dead(session)
    assert session.leases() == []


def test_a_measurement_longer_than_a_lease_stays_assigned(store, monkeypatch):
    monkeypatch.setattr("surepick.measure.loop.LEASE", 0.8)
    seen = []

    def measure_slowly(arm):
        if not seen:
            seen.append(arm)
            time.sleep(2.0)  # more than two leases
            seen.extend(lease.expires > time.time() for lease in kept(store).leases())
        return measure(arm)

    sp.decide(problem(), measure_slowly, store=store)
    assert True in seen
    assert sum(event.kind == "measured" for event in kept(store).events()) == kept(store).state().n_values


def test_a_function_of_the_callers_is_given_again_by_the_same_call(store):
    def best(weights):
        return [float(weights[0] >= weights[1]), float(weights[0] < weights[1])]

    oracle = sp.OracleProblem(best, n_arms=2, arms=["road", "rail"], noise=2.0, goal="largest")
    for _ in range(2):
        assert sp.decide(oracle, measure, store=store).state == "confident"


@pytest.mark.parametrize(
    "change", [{"problem": problem(cost=2.0)}, {"delta": 0.01}, {"seed": 4}, {"budget": 41}]
)
def test_another_decision_of_the_same_name_is_refused(store, change):
    given = {"problem": problem(), "measure": measure, "store": store, "seed": 3, "budget": 40}
    sp.decide(**given)
    with pytest.raises(SessionError):
        sp.decide(**{**given, **change})


async def seeded_later(arm, seed):
    return seeded(arm, seed)


@pytest.mark.parametrize("kind", [seeded, seeded_later])
@pytest.mark.parametrize("executor", ["threads", "processes"])
def test_a_function_with_a_seed_gets_one_of_its_own_for_each_measurement(
    kind, executor, tmp_path, monkeypatch
):
    monkeypatch.setenv(ALREADY, str(tmp_path / "seeds"))
    view = sp.decide(["road", "rail"], kind, goal="smallest", executor=executor, budget=40)
    seeds = (tmp_path / "seeds").read_text().split()
    assert len(set(seeds)) == len(seeds) == view.n_measured
