"""Run many cases on local processes or a Dask cluster; finished cases are on disk, and never run again.

A row file has one JSON line for each finished case. It survives a kill at any moment: a torn last line is cut
off and its case runs again. Every worker computes with one thread, so that sums are added in the same order
wherever a case runs.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import json
import multiprocessing
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from surepick.errors import FileError, ParameterError, SurepickError, missing_extra
from surepick.experiments.cases import Case, Row, run_in_worker
from surepick.measure.workers import end_pool, end_with_parent
from surepick.sessions import codec

POLL_SECONDS = 0.5  # how often to report the time left
CONNECT_SECONDS = 10
HOPELESS = 2  # worker deaths, each with a single case, before any case finished: nothing can run
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


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
    """Where a run stands."""

    done: int
    total: int
    resumed: int  # finished by an earlier run
    failed: int
    seconds_left: float


def run_cases(
    cases: Iterable[Case],
    path: str | Path,
    *,
    jobs: int | str = 1,
    progress: Callable[[RunProgress], object] | None = None,
    expected: Mapping[Case, float] = MappingProxyType({}),
) -> list[Row]:
    """Return the rows of all cases, in their order; cases with a row in the file do not run again.

    - path: JSON-lines file to which rows are appended as they finish, so that a killed run can resume.
    - jobs: local processes, or the address of a Dask scheduler, "tcp://host:8786".
    - progress: called with a `RunProgress` before anything runs, after every row and twice a second.
    - expected: seconds that each case may take, 1 unless stated; the time left is judged by it and by how
      long cases took.

    A worker that dies costs its cases a retry. Rows do not depend on where or how many at once cases run.

    >>> import tempfile
    >>> spec = {"kind": "given", "plans": [[1, 0], [0, 1]], "means": [1, 0]}
    >>> cases = [Case(spec, "CombGapE:radius=published", seed=s) for s in range(3)]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     rows = run_cases(cases, folder + "/rows.jsonl", jobs=1)
    ...     again = run_cases(cases, folder + "/rows.jsonl")  # nothing left to do: no worker starts
    >>> [row.correct for row in rows], rows == again
    ([True, True, True], True)
    """
    path = Path(path)
    wanted = list(dict.fromkeys(cases))
    if not (jobs >= 1 if isinstance(jobs, int) else "://" in jobs):
        raise ParameterError(
            f"jobs is a number of processes, 1 or more, or a Dask scheduler, tcp://host:8786; got {jobs!r}",
            field="jobs",
        )
    for case in wanted:
        case.check()
    read_rows(path)  # damage is an error before anything runs
    with _appending(path) as write:
        rows = {row.case: row for row in read_rows(path)}
        tally = Tally(rows, wanted, jobs if isinstance(jobs, int) else 1, progress, expected)
        _dispatch([case for case in wanted if case not in rows], jobs, write, tally)
    if tally.failures:
        raise CasesFailedError(tally.failures, path)
    return [rows[case] for case in wanted]


def _dispatch(todo: Sequence[Case], jobs: int | str, write: Callable[[Row], None], tally: Tally) -> None:
    """Submit cases and take rows back until none is left.

    When a worker dies, its whole pool is broken, and any case that was out may be to blame: it becomes a
    suspect. Suspects then run one at a time, and the one that breaks the pool again, alone, has failed.
    """
    queue, suspects = deque(todo), deque[Case]()
    deaths = 0
    while queue or suspects:
        alone = bool(suspects)
        source = suspects if alone else queue
        out: dict[Future[Row], Case] = {}
        try:
            with _open_pool(jobs) as (pool, tally.jobs):
                while source or out:
                    # one case waits beside those that run, so that no worker is idle
                    while source and len(out) < (1 if alone else tally.jobs + 1):
                        out[pool.submit(run_in_worker, source[0])] = source[0]
                        source.popleft()
                    done = wait(out, timeout=POLL_SECONDS, return_when=FIRST_COMPLETED).done
                    for future in [future for future in out if future in done]:  # as they were submitted
                        try:
                            row = future.result()
                        except BrokenExecutor:
                            raise
                        except Exception as error:  # whatever the case raised
                            why = f"{type(error).__name__}: {error}"
                            tally.failures.append(Failure(out.pop(future), why))
                        else:
                            del out[future]
                            write(row)
                            tally.add(row)
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
    """What is done of a run, and how long the rest will take.

    The rest is expected to exceed its expected seconds by the same factor as the cases that are done.
    """

    def __init__(
        self,
        rows: dict[Case, Row],
        wanted: Sequence[Case],
        jobs: int,
        report: Callable[[RunProgress], object] | None,
        expected: Mapping[Case, float],
    ) -> None:
        self.rows = rows
        self.jobs = jobs
        self.failures = list[Failure]()
        self.n_new = 0
        self._report = report
        self._expected = {case: expected.get(case, 1.0) for case in wanted}
        finished = [rows[case] for case in wanted if case in rows]
        self._resumed = len(finished)
        # seconds: those that the finished cases took, those expected of them, and those expected of all
        self._taken = sum(row.seconds for row in finished)
        self._expected_of_done = sum(self._expected[row.case] for row in finished)
        self._expected_of_all = sum(self._expected.values())
        self.report()

    def add(self, row: Row) -> None:
        """Count a new row."""
        self.rows[row.case] = row
        self.n_new += 1
        self._taken += row.seconds
        self._expected_of_done += self._expected[row.case]
        self.report()

    def report(self) -> None:
        """Tell the caller where the run stands."""
        if self._report is None:
            return
        factor = self._taken / self._expected_of_done if self._expected_of_done else 1.0
        self._report(
            RunProgress(
                done=self._resumed + self.n_new,
                total=len(self._expected),
                resumed=self._resumed,
                failed=len(self.failures),
                seconds_left=(self._expected_of_all - self._expected_of_done) * factor / self.jobs,
            )
        )


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
            data = json.loads(line)
            rows.append(Row(**{**data, "case": Case(**data["case"]), "counts": tuple(data["counts"])}))
        except (ValueError, TypeError, KeyError) as error:
            raise FileError(
                f"line {number} of {str(path)!r} is damaged: {error}. Remove the line; its case runs again.",
                field=f"line {number}",
            ) from None
    return rows


@contextlib.contextmanager
def _appending(path: Path) -> Iterator[Callable[[Row], None]]:
    """Open the file for more rows, with any torn end cut off; one process at a time.

    A row that was written survives the death of this process; a power cut may cost the last ones.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as stream:
        with contextlib.suppress(ImportError):  # Windows has no such lock: there do not start two runs
            import fcntl

            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise FileError(
                    f"another run is writing to {str(path)!r}; wait for it, or choose another folder",
                    field="out",
                ) from None
        stream.truncate(path.read_bytes().rfind(b"\n") + 1)

        def write(row: Row) -> None:
            text = codec.dumps({**dataclasses.asdict(row), "counts": list(row.counts)})
            stream.write(text.encode() + b"\n")
            stream.flush()

        yield write


# --- Workers ---------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _open_pool(jobs: int | str) -> Iterator[tuple[Executor, int]]:
    """Yield an executor and how many cases it runs at once.

    Local processes are spawned: compiled code and threads do not survive a fork.
    """
    if isinstance(jobs, str):
        with _open_cluster(jobs) as found:
            yield found
        return
    before = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(jobs, mp_context=context, initializer=end_with_parent)
    try:
        yield pool, jobs
    except BaseException:  # interrupted: do not wait for the cases that still run
        end_pool(pool)
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


@contextlib.contextmanager
def _open_cluster(address: str) -> Iterator[tuple[Executor, int]]:
    """Connect to a Dask scheduler; it gives the cases of a worker that dies to another one."""
    try:
        distributed: Any = importlib.import_module("distributed")
    except ImportError:
        raise missing_extra("distributed", "cluster") from None
    try:
        client = distributed.Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError) as error:
        raise ParameterError(
            f"no Dask scheduler answers at {address!r} ({error}); start one with: dask scheduler",
            field="jobs",
        ) from None
    with client, client.get_executor(pure=False) as pool:
        yield pool, max(sum(client.nthreads().values()), 1)
