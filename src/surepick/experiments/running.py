"""Run many cases on local processes or a Dask cluster; finished cases are on disk, and never run again.

A row file has one JSON line for each finished case. It survives a kill at any moment: a torn last line is cut
off and its case runs again. Every worker computes with one thread, so that sums are added in the same order
wherever a case runs.
"""

from __future__ import annotations

import importlib
import json
import multiprocessing
import os
import signal
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import IO, Any, NamedTuple

from surepick._version import __version__
from surepick.errors import FileError, ParameterError, SurepickError, missing_extra
from surepick.experiments.cases import Case, Row, row_from_json, row_to_json, run_in_worker
from surepick.sessions import codec

POLL_SECONDS = 0.5  # how often to check the cluster and to report the time left
SYNC_SECONDS = 1.0  # a power cut may cost the rows of this long; a kill costs none
CONNECT_SECONDS = 5.0  # how long to look for a cluster
HOPELESS = 2  # worker deaths, each with a single case, before any case finished: nothing can run
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


class ClusterError(SurepickError, ConnectionError):
    """A cluster cannot be reached, has no workers, or runs another version of surepick."""


class Failure(NamedTuple):
    """A case that could not be finished, and why."""

    case: Case
    reason: str


class CasesFailedError(SurepickError, RuntimeError):
    """Some cases could not be finished; all others are in the row file."""

    def __init__(self, failures: Sequence[Failure], path: Path) -> None:
        self.failures = tuple(failures)
        first = f"{failures[0].case.key}: {failures[0].reason}"
        super().__init__(
            f"{len(failures)} of the cases failed, first {first}. All others are in {str(path)!r}."
        )


@dataclass(frozen=True)
class RunProgress:
    """Where a run stands; `seconds_left` is None until there is something to judge by."""

    done: int
    total: int
    resumed: int  # finished by an earlier run
    failed: int
    seconds: float
    seconds_left: float | None


def run_cases(
    cases: Iterable[Case],
    path: str | Path,
    *,
    jobs: int | str = 1,
    progress: Callable[[RunProgress], object] | None = None,
    expected: Callable[[Case], float] | None = None,
) -> list[Row]:
    """Return the rows of all cases, in their order; cases with a row in the file do not run again.

    - path: JSON-lines file to which rows are appended as they finish, so that a killed run can resume.
    - jobs: local processes, or the address of a Dask scheduler ("tcp://host:8786").
    - progress: called with a `RunProgress` before anything runs, after every row and twice a second.
    - expected: seconds that a case may take, for the time left while no case like it has finished.

    A worker that dies costs its cases a retry. Rows do not depend on where or how many at once cases run.

    >>> import tempfile
    >>> spec = {"kind": "given", "plans": [[1, 0], [0, 1]], "means": [1, 0]}
    >>> cases = [Case(spec, {"policy": "CombGapE", "radius": "published"}, seed=s) for s in range(3)]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     rows = run_cases(cases, folder + "/rows.jsonl", jobs=1)
    ...     again = run_cases(cases, folder + "/rows.jsonl")  # nothing left to do: no worker starts
    >>> [row.correct for row in rows], rows == again
    ([True, True, True], True)
    """
    path, wanted = Path(path), list(dict.fromkeys(cases))
    if jobs < 1 if isinstance(jobs, int) else "://" not in jobs:
        raise ParameterError(
            f"jobs is a number of processes or a Dask scheduler (tcp://host:8786), got {jobs!r}", field="jobs"
        )
    for case in wanted:
        case.check()
    read_rows(path)  # damage is an error before anything runs
    with _appending(path) as write:
        tally = Tally({row.case: row for row in read_rows(path)}, wanted, progress, expected)
        todo = [case for case in wanted if case not in tally.rows]
        tally.report()

        def finish(row: Row) -> None:
            write(row)
            tally.add(row)

        _dispatch(todo, jobs, finish, tally)
    if tally.failures:
        raise CasesFailedError(tally.failures, path)
    return [tally.rows[case] for case in wanted]


def _dispatch(todo: Sequence[Case], jobs: int | str, finish: Callable[[Row], None], tally: Tally) -> None:
    """Submit cases and take rows back until none is left.

    When a local worker dies, its whole pool is broken, and any case that was out may be to blame. Those cases
    then run one at a time: the case that breaks the pool again, alone, has failed.
    """
    queue, suspects = deque(todo), deque[Case]()
    deaths = 0
    while queue or suspects:
        alone = bool(suspects)
        source = suspects if alone else queue
        out: dict[Future[Row], Case] = {}
        try:
            with _open_pool(jobs) as pool:
                tally.jobs = pool.jobs
                while source or out:
                    while source and len(out) < (1 if alone else pool.window):
                        out[pool.executor.submit(run_in_worker, source[0])] = source[0]
                        source.popleft()
                    done = wait(out, timeout=POLL_SECONDS, return_when=FIRST_COMPLETED).done
                    for future in [future for future in out if future in done]:  # as they were submitted
                        try:
                            row = future.result()
                        except BrokenExecutor:
                            raise
                        except Exception as error:  # whatever the case raised, or Dask for it
                            why = f"{type(error).__name__}: {error}"
                            tally.failures.append(Failure(out.pop(future), why))
                        else:
                            del out[future]
                            finish(row)
                    pool.check()
                    tally.report()
        except BrokenExecutor:
            if not alone or not out:
                suspects.extend(out.values())
                continue
            deaths += 1
            (case,) = out.values()
            tally.failures.append(Failure(case, "its worker process died twice (memory, or a crash)"))
            if deaths >= HOPELESS and not tally.n_new:
                why = "no worker can run; a script needs its 'if __name__ == \"__main__\":'"
                tally.failures.append(Failure(case, why))
                return


class Tally:
    """What is done and what is left of a run, and how long the rest will take."""

    def __init__(
        self,
        rows: dict[Case, Row],
        wanted: Sequence[Case],
        report: Callable[[RunProgress], object] | None = None,
        expected: Callable[[Case], float] | None = None,
    ) -> None:
        self.rows, self.failures, self.jobs, self.n_new = rows, list[Failure](), 1, 0
        self._report, self._began = report, time.monotonic()
        self._kinds = {case: _kind(case) for case in wanted}
        self._left = Counter(self._kinds.values())
        self._prior = {self._kinds[case]: expected(case) for case in wanted} if expected else {}
        self._seconds: dict[str, list[float]] = {}
        finished = [rows[case] for case in wanted if case in rows]
        self._resumed = len(finished)
        for row in finished:
            self._learn(row)

    def add(self, row: Row) -> None:
        """Count a new row."""
        self.rows[row.case] = row
        self.n_new += 1
        self._learn(row)
        self.report()

    def _learn(self, row: Row) -> None:
        kind = self._kinds[row.case]
        self._left[kind] -= 1
        self._seconds.setdefault(kind, []).append(row.seconds)

    def report(self) -> None:
        """Tell the caller where the run stands.

        The time left is the mean seconds of the kind of each case left, divided by the workers. A kind
        without a finished case counts as expected, or as the average kind.
        """
        if self._report is None:
            return
        means = {**self._prior, **{kind: fmean(seconds) for kind, seconds in self._seconds.items()}}
        usual = fmean(means.values()) if means else 0.0
        left = sum(n * means.get(kind, usual) for kind, n in self._left.items()) / self.jobs
        total, elapsed = len(self._kinds), time.monotonic() - self._began
        done, failed = total - self._left.total(), len(self.failures)
        self._report(RunProgress(done, total, self._resumed, failed, elapsed, left if means else None))


def _kind(case: Case) -> str:
    """Return what cases that take about as long have in common: all but the seeds and the budget."""
    problem = {name: value for name, value in case.problem.items() if name != "seed"}
    return codec.dumps([problem, dict(case.policy)])


# --- Row files -------------------------------------------------------------------------------------------


def read_rows(path: str | Path) -> list[Row]:
    """Return the rows of a file; a missing file has none, and a damaged line raises a `FileError`.

    A last line without its end is what a killed run left, and is passed over.
    """
    try:
        content = Path(path).read_bytes()
    except FileNotFoundError:
        return []
    except OSError as error:
        raise FileError(f"cannot read {str(path)!r}: {error.strerror}") from None
    rows = []
    for number, line in enumerate(content.split(b"\n")[:-1], start=1):
        try:
            rows.append(row_from_json(json.loads(line)))
        except ValueError as error:
            raise FileError(
                f"line {number} of {str(path)!r} is damaged: {error}. Remove the line; its case runs again.",
                field=f"line {number}",
            ) from None
    return rows


@contextmanager
def _appending(path: Path) -> Iterator[Callable[[Row], None]]:
    """Open the file for more rows, with any torn end cut off; one process at a time.

    A row that was written survives the death of this process.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    synced = time.monotonic()
    with path.open("ab") as stream:
        _lock(stream, path)
        stream.truncate(path.read_bytes().rfind(b"\n") + 1)

        def write(row: Row) -> None:
            nonlocal synced
            stream.write(codec.dumps(row_to_json(row)).encode() + b"\n")
            stream.flush()
            if time.monotonic() - synced > SYNC_SECONDS:
                os.fsync(stream.fileno())
                synced = time.monotonic()

        try:
            yield write
        finally:
            os.fsync(stream.fileno())


def _lock(stream: IO[bytes], path: Path) -> None:
    try:
        import fcntl
    except ImportError:  # Windows has no such lock: there the user must not start two runs on one file
        return
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise FileError(
            f"another run is writing to {str(path)!r}; wait for it, or choose another folder", field="out"
        ) from None


# --- Workers ---------------------------------------------------------------------------------------------


class Pool(NamedTuple):
    """An executor that runs `jobs` cases at once, of which `window` are submitted."""

    executor: Executor
    jobs: int
    window: int
    check: Callable[[], None]  # raises a ClusterError when no result can arrive any more


@contextmanager
def _open_pool(jobs: int | str) -> Iterator[Pool]:
    """Start local processes, by spawning: compiled code and threads do not survive a fork. Or a cluster's."""
    if isinstance(jobs, str):
        with _dask_pool(jobs) as found:
            yield found
        return
    before = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(jobs, mp_context=context, initializer=end_with_parent)
    try:
        # one case waits beside those that run, so that no worker is idle
        yield Pool(pool, jobs, jobs + 1, lambda: None)
    except BaseException:  # interrupted: do not wait for the cases that still run
        for process in list((pool._processes or {}).values()):
            process.terminate()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def end_with_parent() -> None:
    """Leave Ctrl-C to the parent process, and end when the parent has ended, even by SIGKILL."""

    def wait_for_parent() -> None:
        parent = multiprocessing.parent_process()
        if parent is not None:
            parent.join()
            os._exit(1)

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=wait_for_parent, daemon=True).start()


@contextmanager
def _dask_pool(address: str) -> Iterator[Pool]:
    """Connect to a Dask scheduler, which gives the cases of a dead worker to another one."""
    try:
        distributed: Any = importlib.import_module("distributed")
    except ImportError:
        raise missing_extra("distributed", "cluster") from None
    try:
        client = distributed.Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise ClusterError(
            f"no Dask scheduler at {address} ({error}); start one: dask scheduler", field="jobs"
        ) from None

    def check() -> None:
        if client.status != "running":
            raise ClusterError(
                f"the connection to {address} was lost; finished cases are kept: run the command again",
                field="jobs",
            )

    try:
        try:
            client.wait_for_workers(1, timeout=CONNECT_SECONDS)
            found = set(client.run(installed_version).values())
        except Exception as error:  # whatever a worker raised
            raise ClusterError(
                f"{address} has no worker with surepick ({error}); start one: dask worker {address}",
                field="jobs",
            ) from None
        if found != {__version__}:
            others = ", ".join(sorted(found))
            raise ClusterError(
                f"workers of {address} have surepick {others}, not {__version__}", field="jobs"
            )
        # Dask queues all cases itself, and feeds workers that join later
        yield Pool(client.get_executor(pure=False), max(1, sum(client.nthreads().values())), 10**9, check)
    finally:
        client.close(timeout=2)


def installed_version() -> str:
    """Return the version of surepick where this is called."""
    return __version__
