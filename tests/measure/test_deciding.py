"""`decide`: a whole decision in one call, by threads, processes, coroutines or an executor, and resumed."""

from __future__ import annotations

import asyncio
import inspect
import logging
import os
import signal
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import surepick as sp
from measuring_functions import ALREADY, HOURS, measure, measure_or_die, measure_or_hang
from surepick.errors import MeasureError, ParameterError, SessionError
from surepick.measure.loop import give_back_for_the_dead
from surepick.sessions.workers import is_dead


def problem(**options):
    return sp.Problem(
        [[1, 0, 1], [0, 1, 1]],
        arm_names=list(HOURS),
        plan_names=["drive", "ride"],
        noise_scale=2.0,
        **options,
    )


async def measure_later(arm: str) -> float:
    await asyncio.sleep(0.001)
    return HOURS[arm]


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv(ALREADY, str(tmp_path / "already"))
    return f"sqlite:///{tmp_path}/runs.db"


@pytest.mark.parametrize("kind", ["threads", "processes", "coroutines", "executor"])
def test_every_crew_comes_to_the_same_answer(kind: str) -> None:
    function, executor = (measure_later if kind == "coroutines" else measure), "threads"
    with ThreadPoolExecutor(2) as pool:
        executor = {"processes": "processes", "executor": pool}.get(kind, "threads")
        session = sp.decide(problem(), function, workers=2, executor=executor)
    assert session.outcome.plan_name == "ride"
    assert session.certificate().status == "confident"
    assert not session.leases()
    assert not [thread for thread in threading.enumerate() if thread.name == "surepick loop"]


def test_it_measures_several_at_a_time() -> None:
    barrier, first = threading.Barrier(3, timeout=20), iter(range(3))

    def together(arm: str) -> float:
        if next(first, None) is not None:
            barrier.wait()  # none of the first three goes on before the others are here
        return HOURS[arm]

    session = sp.decide(problem(), together, workers=3, budget=3)
    assert session.ledger().n_told >= 3


def test_a_failure_keeps_what_was_measured_and_the_same_call_goes_on(store: str) -> None:
    calls = Counter()

    def fails_at_the_third(arm: str) -> float:
        calls[arm] += 1
        if calls.total() == 3:
            raise ConnectionError("the instrument is off")
        return HOURS[arm]

    with pytest.raises(ConnectionError, match="the instrument is off") as caught:
        sp.decide(problem(), fails_at_the_third, store=store)
    assert "2 measurements are kept in" in caught.value.__notes__[0]
    before = sp.Session.load(store)
    assert (before.name, before.ledger().n_told, before.leases()) == ("decision", 2, [])
    session = sp.decide(problem(), fails_at_the_third, store=store)
    assert session.outcome.plan_name == "ride"
    assert calls.total() == session.ledger().n_told + 1


def test_retries_are_tried_before_it_fails() -> None:
    calls = Counter()

    def fails_twice_for_each(arm: str) -> float:
        calls[arm] += 1
        if calls[arm] <= 2:
            raise OSError(arm)
        return HOURS[arm]

    assert sp.decide(problem(), fails_twice_for_each, retries=2).outcome.plan_name == "ride"
    calls.clear()
    with pytest.raises(OSError):
        sp.decide(problem(), fails_twice_for_each, retries=1)


@pytest.mark.parametrize("executor", ["threads", "processes"])
def test_a_measurement_that_takes_too_long_fails_and_is_tried_again(store: str, executor: str) -> None:
    session = sp.decide(
        problem(), measure_or_hang, store=store, executor=executor, timeout=3, retries=1, workers=2
    )
    assert session.outcome.plan_name == "ride"


def test_without_retries_the_time_out_is_raised(store: str) -> None:
    with pytest.raises(MeasureError):
        sp.decide(problem(), measure_or_hang, store=store, timeout=0.1)
    with pytest.raises(MeasureError):
        sp.decide(problem(), sleep_on, timeout=0.1)


async def sleep_on(arm: str) -> float:
    await asyncio.sleep(600)
    return HOURS[arm]


def test_a_process_that_dies_is_replaced(store: str) -> None:
    with pytest.raises(MeasureError):
        sp.decide(problem(), measure_or_die, store=store, executor="processes")
    assert sp.decide(problem(), measure_or_die, store=store, executor="processes").outcome.plan_name == "ride"


def test_what_a_process_raises_comes_back() -> None:
    with pytest.raises(KeyError):
        sp.decide(
            sp.Problem([[1, 0], [0, 1]], arm_names=["a", "b"], noise_scale=1), measure, executor="processes"
        )


def test_a_function_that_processes_cannot_import_is_refused_before_anything_is_asked_for(store: str) -> None:
    with pytest.raises(ParameterError) as caught:
        sp.decide(problem(), lambda arm: 1.0, store=store, executor="processes")
    assert caught.value.field == "executor"
    assert sp.Session.load(store, "decision").leases() == []


def test_a_function_that_returns_nothing_is_told_so() -> None:
    with pytest.raises(sp.SurepickError):
        sp.decide(problem(), lambda arm: None)


def test_ctrl_c_gives_back_what_is_under_way(store: str) -> None:
    def interrupts(session: sp.Session, *_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sp.decide(problem(), measure, store=store, workers=3, callbacks=[interrupts])
    session = sp.Session.load(store)
    assert session.ledger().n_told >= 1
    assert session.leases() == []
    assert sp.decide(problem(), measure, store=store).outcome.plan_name == "ride"


@pytest.mark.parametrize("interrupts", [1, 2])
def test_ctrl_c_waits_for_what_is_under_way_and_a_second_one_drops_it(store: str, interrupts: int) -> None:
    both, go_on, n_sent = threading.Barrier(3), threading.Event(), 0

    def slow(arm: str) -> float:
        both.wait(60)
        go_on.wait(60)
        return HOURS[arm]

    def press() -> None:
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
    session = sp.Session.load(store)
    assert n_sent == interrupts
    assert session.ledger().n_told == (2 if interrupts == 1 else 0)
    assert session.leases() == []


@pytest.mark.parametrize("kind", ["list", "dictionary", "frame"])
def test_options_are_chosen_from_without_a_problem(kind: str) -> None:
    pandas = pytest.importorskip("pandas")
    draw, given = np.random.default_rng(3), []
    options = {
        "list": [1, 5, 3],
        "dictionary": {"one": 1, "five": 5, "three": 3},
        "frame": pandas.DataFrame({"level": [1, 5, 3]}, index=["one", "five", "three"]),
    }[kind]

    def score(option: object) -> float:
        given.append(option)
        level = option["level"] if kind == "frame" else option
        return float(level + 0.1 * draw.standard_normal())

    expected = {"list": "5", "dictionary": "five", "frame": "five"}[kind]
    session = sp.decide(options, score, goal="largest")
    assert (session.outcome.plan_name, session.status) == (expected, sp.Status.CONFIDENT)
    assert {"level": 3} in given if kind == "frame" else set(given) == {1, 5, 3}
    assert sp.decide(options, score, goal="smallest").outcome.plan_name in ("1", "one")


@pytest.mark.parametrize(
    ("options", "goal", "field"),
    [
        (["a", "b"], None, "goal"),
        (["a", "b"], "best", "goal"),
        (["a", "a"], "largest", "problem"),
        (["a"], "largest", "problem"),
        ("ab", "largest", "problem"),
        (problem(), "largest", "goal"),
    ],
)
def test_options_without_a_goal_or_a_choice_are_refused(options: object, goal: str, field: str) -> None:
    with pytest.raises(ParameterError) as caught:
        sp.decide(options, measure, goal=goal)
    assert caught.value.field == field


def test_values_that_cannot_be_are_failures() -> None:
    for wrong in (float("nan"), "high", None):
        with pytest.raises((SessionError, ParameterError)):
            sp.decide(problem(), lambda arm, wrong=wrong: wrong)


def test_a_callback_sees_every_measurement_and_may_close_the_session() -> None:
    seen = []

    def close_after_four(session: sp.Session, request: object, value: float) -> None:
        seen.append((request.arm_name, value))
        if len(seen) == 4:
            session.close("enough")

    session = sp.decide(problem(), measure, callbacks=[close_after_four], delta=1e-6, policy="CombGapE")
    assert str(session.status) == "closed"
    assert [(m.arm_name, m.value) for m in session.measurements()] == seen


def test_it_says_what_happens_to_the_log_and_to_standard_error(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    with caplog.at_level(logging.DEBUG, logger="surepick"):
        sp.decide(problem(), measure, name="trips", progress=True)
    texts = [record.getMessage() for record in caplog.records]
    assert texts[0].startswith("session 'trips' in")
    assert "session 'trips': 'road' is 4.0" in texts
    assert texts[-1].startswith("session 'trips': confident after")
    assert "trips: confident, 'ride' is the best" in capsys.readouterr().err


def test_nothing_is_printed_unless_asked_for(capfd: pytest.CaptureFixture[str]) -> None:
    sp.decide(problem(), measure)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    "options",
    [
        {"workers": 0},
        {"retries": -1},
        {"timeout": 0},
        {"executor": "fibres"},
        {"policy": sp.CombGapE(), "delta": 0.1},
    ],
)
def test_wrong_options_are_refused(options: dict) -> None:
    with pytest.raises(ParameterError):
        sp.decide(problem(), measure, **options)


def test_an_unknown_option_is_named_and_help_lists_the_known_ones() -> None:
    with pytest.raises(TypeError, match="'worker'; did you mean 'workers'"):
        sp.decide(problem(), measure, worker=3)
    assert {"workers", "store", "timeout"} <= set(inspect.signature(sp.decide).parameters)


def test_two_calls_in_one_process_share_a_session(store: str) -> None:
    results = []
    threads = [
        threading.Thread(target=lambda: results.append(sp.decide(problem(), measure, store=store, workers=2)))
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert [session.outcome.plan_name for session in results] == ["ride", "ride"]


def test_names_of_runs_in_one_process_differ_and_tell_whether_they_live() -> None:
    import socket

    host = socket.gethostname()
    assert is_dead(f"run on {host}, process 999999999")
    assert is_dead(f"run on {host}, process 999999999, call 2")
    assert not is_dead(f"run on {host}, process {os.getpid()}, call 2")
    session = sp.Session.open("memory://", "x", problem(), policy=sp.CombGapE())
    session.ask(worker=f"run on {host}, process 999999999, call 2")
    give_back_for_the_dead(session)
    assert session.leases() == []


# Session.open


def test_open_begins_a_session_and_later_goes_on_with_it(store: str) -> None:
    first = sp.Session.open(store, "trips", problem(), policy=sp.CombGapE(), seed=3, budget=40)
    first.tell(first.ask()[0], 4.0)
    again = sp.Session.open(store, "trips", problem(), policy=sp.CombGapE())
    assert (again.ledger().n_told, again.seed, again.budget) == (1, 3, 40)


@pytest.mark.parametrize(
    "change",
    [{"problem": problem(costs=2.0)}, {"policy": sp.CombGapE(delta=0.01)}, {"seed": 4}, {"budget": 41}],
)
def test_open_refuses_another_decision_of_the_same_name(store: str, change: dict) -> None:
    given = {"problem": problem(), "policy": sp.CombGapE(), "name": "trips", "seed": 3, "budget": 40}
    sp.Session.open(store, **given)
    with pytest.raises(SessionError):
        sp.Session.open(store, **{**given, **change})


def test_a_function_of_ones_own_is_given_again_by_opening(store: str) -> None:
    def best(weights):
        return [float(weights[0] >= weights[1]), float(weights[0] < weights[1])]

    oracle = sp.OracleProblem(best, n_arms=2, arm_names=["road", "rail"], noise_scale=2.0)
    for _ in range(2):
        session = sp.decide(oracle, measure, store=store)
    assert session.outcome.plan == (0.0, 1.0)
