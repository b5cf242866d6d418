"""Run many cases on many workers; what is finished is on disk, and is never run again."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, Future, wait
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from surepick.errors import SurepickError
from surepick.experiments.cases import Case, Row, run_in_worker
from surepick.experiments.executors import Workers, open_workers
from surepick.experiments.rows import RowWriter, appending, checked_rows
from surepick.sessions import codec

ATTEMPTS = 3  # how often a case may lose its worker before it is given up
POLL_SECONDS = 0.5  # how often to look whether the cluster is still there, and to report the time left


@dataclass(frozen=True)
class Failure:
    """A case that could not be finished, and why."""

    case: Case
    reason: str


class CasesFailedError(SurepickError, RuntimeError):
    """Some cases could not be finished; all others are in the row file."""

    def __init__(self, failures: Sequence[Failure], path: Path) -> None:
        self.failures = tuple(failures)
        first = failures[0]
        super().__init__(
            f"{len(failures)} case(s) failed, the first being {codec.dumps(first.case.to_json())}: "
            f"{first.reason}; all others are in {str(path)!r}, and running the same again tries the failed "
            "ones once more"
        )


@dataclass(frozen=True)
class RunProgress:
    """Where a run stands; `seconds_left` is None until there is something to judge by."""

    done: int
    total: int
    skipped: int  # done by an earlier run
    failed: int
    seconds: float
    seconds_left: float | None
    last: Row | None


Report = Callable[[RunProgress], object]


def run_cases(
    cases: Iterable[Case],
    path: str | Path,
    *,
    workers: int | None = None,
    cluster: str | None = None,
    progress: Report | None = None,
) -> list[Row]:
    """The rows of all cases, in their order; cases whose row is in the file already are not run again.

    Rows are appended to the JSON-lines file at `path` as they finish, so a killed run resumes where it was.
    Runs on `workers` local processes (default: one per core), or on the Dask cluster at the address `cluster`
    ("tcp://host:8786", or "local:N" for one started here). A worker that dies costs its cases a retry. Rows
    do not depend on where and how many at once the cases ran.

    >>> import tempfile
    >>> spec = {"kind": "given", "plans": [[1, 0], [0, 1]], "means": [1, 0]}
    >>> cases = [Case(spec, {"policy": "CombGapE", "radius": "published"}, seed=s) for s in range(3)]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     rows = run_cases(cases, folder + "/rows.jsonl", workers=1)
    ...     again = run_cases(cases, folder + "/rows.jsonl")  # nothing left to do: no worker starts
    >>> [row.correct for row in rows], rows == again
    ([True, True, True], True)
    """
    path, wanted = Path(path), list(dict.fromkeys(cases))
    for case in wanted:
        case.check()
    checked_rows(path)  # damage is an error before anything runs
    with appending(path) as writer:
        known = {row.case: row for row in checked_rows(path).rows}
        todo = [case for case in wanted if case not in known]
        tally = _Tally(known, wanted, len(wanted) - len(todo), progress)
        if todo:
            with open_workers(workers, cluster) as workforce:
                _Dispatch(workforce, writer, tally, todo).run()
    if tally.failures:
        raise CasesFailedError(tally.failures, path)
    return [known[case] for case in wanted]


class _Tally:
    """What is done and what is left; changed by the dispatch alone."""

    def __init__(
        self, rows: dict[Case, Row], wanted: Sequence[Case], skipped: int, report: Report | None
    ) -> None:
        self.rows = rows
        self.failures: list[Failure] = []
        self._skipped = skipped
        self._report = report
        self._began = time.monotonic()
        self._kinds = {case: _kind(case) for case in wanted}
        self._left = Counter(self._kinds.values())  # of each kind
        self._seconds: dict[str, list[float]] = {}
        for case in wanted:
            if case in rows:
                self._learn(rows[case])

    def add(self, row: Row) -> None:
        self.rows[row.case] = row
        self._learn(row)

    def _learn(self, row: Row) -> None:
        kind = self._kinds[row.case]
        self._left[kind] -= 1
        self._seconds.setdefault(kind, []).append(row.seconds)

    def report(self, parallel: int, last: Row | None = None) -> None:
        """Tell the caller where the run stands."""
        if self._report is None:
            return
        total = len(self._kinds)
        done = total - self._left.total()
        elapsed = time.monotonic() - self._began
        seconds_left = self._seconds_left(parallel)
        failed = len(self.failures)
        self._report(RunProgress(done, total, self._skipped, failed, elapsed, seconds_left, last))

    def _seconds_left(self, parallel: int) -> float | None:
        """Each case left at the mean of its kind (same policy, like problem), shared by the workers."""
        if not self._seconds:
            return None
        means = {kind: fmean(seconds) for kind, seconds in self._seconds.items()}
        unknown = fmean(means.values())
        return sum(n * means.get(kind, unknown) for kind, n in self._left.items()) / max(parallel, 1)


def _kind(case: Case) -> str:
    """What cases that take about as long have in common: all but the seeds and the budget."""
    problem = {name: value for name, value in case.problem.items() if name != "seed"}
    return codec.dumps([problem, dict(case.policy)])


_DIED = (
    f"its worker process died {ATTEMPTS} times (out of memory, or a crash in compiled code; a script that "
    "calls run_cases needs its 'if __name__ == \"__main__\":')"
)


class _Dispatch:
    """Hands cases to an executor and takes rows back, until none is left.

    When a local worker dies the whole pool is broken, and any case that was out may be to blame. Those
    suspects then run one at a time: a case that kills its worker again is known, and the others are cleared.
    """

    def __init__(self, workforce: Workers, writer: RowWriter, tally: _Tally, todo: Sequence[Case]) -> None:
        self._workforce, self._writer, self._tally = workforce, writer, tally
        self._queue = deque(todo)
        self._suspects: deque[Case] = deque()
        self._deaths: dict[Case, int] = {}  # while running alone
        self._n_rows = 0
        self._out: dict[Future[Row], Case] = {}

    def run(self) -> None:
        executor = self._workforce.executor()
        while self._queue or self._suspects or self._out:
            if self._hand_out(executor) and self._take_back():
                continue
            self._workforce.check()
            self._blame_all_out()
            executor = self._workforce.executor()

    def _hand_out(self, executor: Executor) -> bool:
        """Fill the window; False when the executor is broken."""
        while case := self._next():
            try:
                self._out[executor.submit(run_in_worker, case)] = case
            except BrokenExecutor:
                self._suspects.append(case)
                return False
        return True

    def _next(self) -> Case | None:
        if self._suspects:
            return None if self._out else self._suspects.popleft()
        window = self._workforce.window
        if not self._queue or (window is not None and len(self._out) >= window):
            return None
        return self._queue.popleft()

    def _take_back(self) -> bool:
        """Wait for rows and write them down; False when a worker died and took the executor with it."""
        done, _ = wait(self._out, timeout=POLL_SECONDS, return_when=FIRST_COMPLETED)
        if not done:
            self._workforce.check()
            self._tally.report(self._workforce.parallel)
        settled = [self._settle(future) for future in done]  # every one, before judging
        return all(settled)

    def _settle(self, future: Future[Row]) -> bool:
        try:
            row = future.result()
        except (BrokenExecutor, CancelledError):
            return False  # the case stays out, for `_blame_all_out`
        except Exception as error:  # whatever the case raised, or the cluster on its behalf
            self._settle_error(self._out.pop(future), error)
            return True
        self._out.pop(future)
        self._n_rows += 1
        self._writer.write(row)
        self._tally.add(row)
        self._tally.report(self._workforce.parallel, row)
        return True

    def _settle_error(self, case: Case, error: Exception) -> None:
        if type(error).__name__ == "KilledWorker":  # Dask tried it on several workers, and each died
            self._fail(case, f"it lost its worker again and again: {error}")
        else:
            self._fail(case, f"{type(error).__name__}: {error}")

    def _blame_all_out(self) -> None:
        """Every case that is still out lost its worker: try it again alone, unless it was alone too often."""
        for future in [future for future in self._out if _has_row(future)]:
            self._settle(future)
        alone = len(self._out) == 1
        for case in self._out.values():
            self._deaths[case] = self._deaths.get(case, 0) + alone
            if self._deaths[case] < ATTEMPTS - 1:  # the first death was in company
                self._suspects.append(case)
            else:
                self._fail(case, _DIED)
        self._out.clear()
        if self._tally.failures and not self._n_rows:
            self._queue.clear()  # nothing has run at all: the rest would only fail more slowly
            self._suspects.clear()

    def _fail(self, case: Case, reason: str) -> None:
        self._tally.failures.append(Failure(case, reason))
        self._tally.report(self._workforce.parallel)


def _has_row(future: Future[Row]) -> bool:
    return future.done() and not future.cancelled() and future.exception() is None
