from __future__ import annotations

import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

import tiny_cases
from surepick.errors import ParameterError
from surepick.experiments import (
    Case,
    CasesFailedError,
    Row,
    RunProgress,
    read_rows,
    run_case,
    run_cases,
    running,
)
from tiny_cases import PUBLISHED, problem, quick_cases, slow_cases, untimed

SCRIPT = """
import os, signal, sys
sys.path[:0] = {path!r}
import psutil
from tiny_cases import slow_cases
from surepick.experiments import run_cases

def kill_when_three_are_done(state):
    if state.done >= 3:
        print(*(child.pid for child in psutil.Process().children(recursive=True)), flush=True)
        os.kill(os.getpid(), signal.SIGKILL)

run_cases(slow_cases({n}), {rows!r}, jobs=1, progress=kill_when_three_are_done)
"""


def test_a_killed_run_resumes_without_repeating_a_finished_case(tmp_path: Path) -> None:
    path, cases = tmp_path / "rows.jsonl", slow_cases(5)
    script = SCRIPT.format(path=sys.path, n=len(cases), rows=str(path))
    killed = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    assert killed.returncode == -signal.SIGKILL
    _assert_ended([int(pid) for pid in killed.stdout.split()])
    before = path.read_bytes()
    with path.open("ab") as stream:
        stream.write(b'{"torn')  # and the kill hit the middle of a row
    assert len(read_rows(path).rows) == 3
    states: list[RunProgress] = []
    rows = run_cases(cases, path, jobs=2, progress=states.append)
    assert path.read_bytes().startswith(before)
    assert len(read_rows(path).rows) == len(cases)
    assert states[-1].resumed == 3
    assert untimed(rows) == untimed([run_case(case) for case in cases])


def _assert_ended(pids: list[int]) -> None:
    """Workers do not outlive the run that was killed."""
    assert pids
    for _ in range(600):
        if not any(psutil.pid_exists(pid) and psutil.Process(pid).status() != "zombie" for pid in pids):
            return
        time.sleep(0.1)
    raise AssertionError("workers outlived the run that was killed")


def test_a_case_that_kills_its_workers_is_given_up_and_the_others_finish(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "run_in_worker", tiny_cases.die_at_seed_3)
    cases = quick_cases(6)
    with pytest.raises(CasesFailedError) as caught:
        run_cases(cases, tmp_path / "rows.jsonl", jobs=1)
    assert [failure.case for failure in caught.value.failures] == [cases[3]]
    assert {row.case for row in read_rows(tmp_path / "rows.jsonl").rows} == set(cases) - {cases[3]}


def test_a_case_that_raises_is_reported_and_the_others_finish(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "run_in_worker", tiny_cases.raise_at_seed_3)
    with pytest.raises(CasesFailedError) as caught:
        run_cases(quick_cases(6), tmp_path / "rows.jsonl", jobs=1)
    ((case, reason),) = [(failure.case, failure.reason) for failure in caught.value.failures]
    assert (case.seed, reason.split(":")[0]) == (3, "ValueError")
    assert len(read_rows(tmp_path / "rows.jsonl").rows) == 5


def test_when_no_worker_can_live_the_run_ends_soon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "run_in_worker", tiny_cases.always_die)
    with pytest.raises(CasesFailedError) as caught:
        run_cases(quick_cases(500), tmp_path / "rows.jsonl", jobs=1)
    assert len(caught.value.failures) <= 3


def test_bad_cases_are_refused_before_anything_runs(tmp_path: Path) -> None:
    bad = Case(problem(), {"policy": "CombGrapE"})
    with pytest.raises(ParameterError):
        run_cases([*quick_cases(2), bad], tmp_path / "rows.jsonl")
    with pytest.raises(ParameterError) as caught:
        run_cases(quick_cases(2), tmp_path / "rows.jsonl", jobs=0)
    assert caught.value.field == "jobs"
    assert read_rows(tmp_path / "rows.jsonl").rows == ()


def test_the_time_left_is_judged_by_cases_of_the_same_kind() -> None:
    slow = [Case(problem(), PUBLISHED, seed, budget=99) for seed in range(3)]
    quick = quick_cases(3)
    done = {slow[0]: _timed(slow[0], 10.0), quick[0]: _timed(quick[0], 1.0)}
    states: list[RunProgress] = []
    tally = running.Tally(done, [*slow, *quick], states.append)
    tally.jobs = 2
    tally.report()
    assert states[0].seconds_left == pytest.approx((2 * 10 + 2 * 1) / 2)
    assert (states[0].done, states[0].total, states[0].resumed) == (2, 6, 2)


def _timed(case: Case, seconds: float) -> Row:
    return replace(run_case(case), seconds=seconds)
