"""Row files that survive kills, local workers that die, and a real Dask cluster."""

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace

import psutil
import pytest

import tiny_cases
from common import refuses
from surepick.errors import FileError, ParameterError
from surepick.experiments import Case, CasesFailedError, read_rows, run_case, run_cases, running
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


@pytest.fixture
def path(tmp_path):
    return tmp_path / "rows.jsonl"


@pytest.fixture
def threads(monkeypatch):
    """Run cases in threads: row files are the same, and processes take a second to start."""

    @contextmanager
    def pool(jobs):
        with ThreadPoolExecutor(jobs) as found:
            yield found, jobs

    monkeypatch.setattr(running, "_open_pool", pool)


def test_a_killed_run_resumes_without_repeating_a_finished_case(path):
    cases = slow_cases(5)
    script = SCRIPT.format(path=sys.path, n=len(cases), rows=str(path))
    call = [sys.executable, "-c", script]
    killed = subprocess.run(call, cwd=path.parent, stdout=subprocess.PIPE, text=True)
    assert killed.returncode == -signal.SIGKILL
    _assert_ended([int(pid) for pid in killed.stdout.split()])
    before = path.read_bytes()
    with path.open("ab") as stream:
        stream.write(b'{"torn')  # and the kill hit the middle of a row
    assert len(read_rows(path)) == 3
    states = []
    rows = run_cases(cases, path, jobs=2, progress=states.append)
    assert path.read_bytes().startswith(before)
    assert len(read_rows(path)) == len(cases)
    assert states[-1].resumed == 3
    assert untimed(rows) == untimed([run_case(case) for case in cases])


def _assert_ended(pids):
    """Workers do not outlive the run that was killed."""
    assert pids
    for _ in range(600):
        if not any(psutil.pid_exists(pid) and psutil.Process(pid).status() != "zombie" for pid in pids):
            return
        time.sleep(0.1)
    raise AssertionError("workers outlived the run that was killed")


@pytest.mark.parametrize("worker", [tiny_cases.die_at_seed_3, tiny_cases.raise_at_seed_3])
def test_a_case_that_kills_its_workers_or_raises_is_given_up_and_the_others_finish(path, monkeypatch, worker):
    monkeypatch.setattr(running, "run_in_worker", worker)
    cases = quick_cases(6)
    with pytest.raises(CasesFailedError) as caught:
        run_cases(cases, path)
    assert [failure.case for failure in caught.value.failures] == [cases[3]]
    assert {row.case for row in read_rows(path)} == set(cases) - {cases[3]}


def test_when_no_worker_can_live_the_run_ends_soon(path, monkeypatch):
    monkeypatch.setattr(running, "run_in_worker", tiny_cases.always_die)
    with pytest.raises(CasesFailedError) as caught:
        run_cases(quick_cases(500), path)
    assert len(caught.value.failures) <= 3


def test_bad_cases_are_refused_before_anything_runs(path):
    bad = Case(problem(), "CombGrapE")
    with pytest.raises(ParameterError):
        run_cases([*quick_cases(2), bad], path)
    for jobs in (0, -1, "localhost", "8786"):
        with refuses("jobs", ParameterError):
            run_cases(quick_cases(2), path, jobs=jobs)
    assert read_rows(path) == []


def test_the_time_left_is_what_is_expected_times_how_much_longer_cases_took():
    cases = quick_cases(4)
    done = {cases[0]: replace(run_case(cases[0]), seconds=6.0)}
    expected, states = dict(zip(cases, (2.0, 1.0, 3.0, 5.0), strict=True)), []
    running.Tally(done, cases, 2, states.append, expected)
    assert states[0].seconds_left == pytest.approx((1 + 3 + 5) * 6 / 2 / 2)
    assert (states[0].done, states[0].total, states[0].resumed) == (1, 4, 1)


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("kept", [1, 50, -1, None])
def test_rows_survive_the_file_and_a_torn_last_line_runs_again(path, kept):
    tie = Case(problem(gap=0.0), PUBLISHED, budget=10)  # its limit is infinite
    rows = run_cases([*quick_cases(3), tie], path)
    assert read_rows(path) == rows
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:3]) + lines[3][:kept])
    assert read_rows(path) == rows[: 4 if kept is None else 3]
    assert untimed(run_cases([*quick_cases(3), tie], path)) == untimed(rows)


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize(
    ("old", "new"),
    [(b'"state":', b'"state"'), (b'"counts":', b'"accounts":'), (b'"loss":', b'"boss":'), (b"{", b"\xff{")],
)
def test_damage_in_the_middle_is_an_error_that_names_the_line(path, old, new):
    run_cases(quick_cases(3), path)
    first, line, *others = path.read_bytes().split(b"\n")
    damaged = b"\n".join([first, line.replace(old, new, 1), *others])
    path.write_bytes(damaged)
    with refuses("line 2", FileError):
        run_cases(quick_cases(4), path)
    assert path.read_bytes() == damaged


@pytest.mark.usefixtures("threads")
def test_two_runs_cannot_write_to_one_file(path):
    pytest.importorskip("fcntl")

    def run_another(state):
        with refuses("out", FileError):
            run_cases(quick_cases(2), path)

    run_cases(quick_cases(1), path, progress=run_another)
    assert len(read_rows(path)) == 1


def test_a_cluster_that_loses_a_worker_gives_the_rows_of_a_local_run(path):
    distributed = pytest.importorskip("distributed")
    cases, killed = slow_cases(5), []
    workers = {"n_workers": 2, "threads_per_worker": 1, "processes": True}
    with distributed.LocalCluster(dashboard_address=None, **workers) as cluster:

        def kill_one(state):
            if state.done and not killed:
                with distributed.Client(cluster.scheduler_address, set_as_default=False) as client:
                    killed.append(next(iter(client.run(os.getpid).values())))
                os.kill(killed[0], signal.SIGKILL)

        rows = run_cases(cases, path, jobs=cluster.scheduler_address, progress=kill_one)
    assert killed
    assert len(read_rows(path)) == len(cases)
    assert untimed(rows) == untimed([run_case(case) for case in cases])


def test_a_cluster_that_is_not_there_is_an_error(path, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr(running, "CONNECT_SECONDS", 1)
    with refuses("jobs", ParameterError):
        run_cases(quick_cases(2), path, jobs="tcp://127.0.0.1:9")
