"""Run many cases on many workers; finished cases are on disk, and never run again."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Future, wait
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from surepick.errors import SurepickError
from surepick.experiments.cases import Case, Row, run_in_worker
from surepick.experiments.rows import appending, read_rows
from surepick.experiments.workers import Workers, open_workers
from surepick.sessions import codec

POLL_SECONDS = 0.5  # how often to check the cluster and to report the time left
HOPELESS = 2  # worker deaths in a row, each with a single case, before any case finished: nothing can run


@dataclass(frozen=True)
class Failure:
    """A case that could not be finished, and why."""

    case: Case
    reason: str


class CasesFailedError(SurepickError, RuntimeError):
    """Some cases could not be finished; all others are in the row file."""

    def __init__(self, failures: Sequence[Failure], path: Path) -> None:
        self.failures = tuple(failures)
        super().__init__(
            f"{len(failures)} of the cases failed, first {failures[0].case.key}: {failures[0].reason}. "
            f"All others are in {str(path)!r}."
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
    last: Row | None


Report = Callable[[RunProgress], object]


def run_cases(
    cases: Iterable[Case],
    path: str | Path,
    *,
    jobs: int | None = None,
    cluster: str | None = None,
    progress: Report | None = None,
    expected: Callable[[Case], float] | None = None,
) -> list[Row]:
    """Return the rows of all cases, in their order; cases with a row in the file do not run again.

    - path: JSON-lines file to which rows are appended as they finish, so that a killed run can resume.
    - jobs: local processes; default one per core.
    - cluster: address of a Dask scheduler ("tcp://host:8786"), or "local:N" to start a cluster here.
    - progress: called with a `RunProgress` after every row and twice a second.
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
    for case in wanted:
        case.check()
    read_rows(path)  # damage is an error before anything runs
    with appending(path) as writer:
        rows = {row.case: row for row in read_rows(path).rows}
        tally = Tally(rows, wanted, progress, expected)

        def finish(row: Row) -> None:
            writer.write(row)
            tally.add(row)

        todo = [case for case in wanted if case not in rows]
        if todo:
            with open_workers(jobs, cluster) as workers:
                tally.jobs = workers.jobs
                _dispatch(todo, workers, finish, tally)
    if tally.failures:
        raise CasesFailedError(tally.failures, path)
    return [tally.rows[case] for case in wanted]


def _dispatch(todo: Sequence[Case], workers: Workers, finish: Callable[[Row], None], tally: Tally) -> None:
    """Submit cases and take rows back until none is left.

    When a local worker dies, its whole pool is broken, and any case that was out may be to blame. Those cases
    then run one at a time: the case that breaks the pool again, alone, has failed.
    """
    queue, n_suspects, deaths = deque(todo), 0, 0
    out: dict[Future[Row], Case] = {}
    executor = workers.executor()
    while queue or out:
        window = 1 if n_suspects else workers.window
        broken = False
        try:
            while queue and (window is None or len(out) < window):
                out[executor.submit(run_in_worker, queue[0])] = queue[0]
                queue.popleft()
        except BrokenExecutor:
            broken = True
        done, _ = wait(out, timeout=POLL_SECONDS, return_when=FIRST_COMPLETED)
        workers.check()
        for future in done:
            try:
                row = future.result()
            except (BrokenExecutor, CancelledError):
                broken = True  # the case stays in `out`
                continue
            except Exception as error:  # whatever the case raised, or Dask for it (KilledWorker)
                tally.failures.append(Failure(out.pop(future), f"{type(error).__name__}: {error}"))
            else:
                out.pop(future)
                finish(row)
                deaths = 0
            n_suspects = max(0, n_suspects - 1)
        tally.report()
        if not broken:
            continue
        alone = n_suspects > 0
        lost = list(out.values())
        out.clear()
        if alone and lost:
            n_suspects, deaths = n_suspects - 1, deaths + 1
            tally.failures.append(Failure(lost[0], "its worker process died twice (memory, or a crash)"))
            if deaths >= HOPELESS and not tally.n_new:
                tally.failures.append(
                    Failure(lost[0], "no worker can run; a script needs its 'if __name__ == \"__main__\":'")
                )
                return
        else:
            queue.extendleft(reversed(lost))
            n_suspects = len(lost)
        executor = workers.executor()


class Tally:
    """What is done and what is left of a run, and how long the rest will take."""

    def __init__(
        self,
        rows: dict[Case, Row],
        wanted: Sequence[Case],
        report: Report | None = None,
        expected: Callable[[Case], float] | None = None,
    ) -> None:
        self.rows, self.failures, self.jobs, self.n_new = rows, list[Failure](), 1, 0
        self._report, self._began = report, time.monotonic()
        self._kinds = {case: _kind(case) for case in wanted}
        self._left = Counter(self._kinds.values())
        self._prior = {self._kinds[case]: expected(case) for case in wanted} if expected else {}
        self._seconds: dict[str, list[float]] = {}
        self._last: Row | None = None
        self.resumed = sum(case in rows for case in wanted)
        for case in wanted:
            if case in rows:
                self._learn(rows[case])

    def add(self, row: Row) -> None:
        """Count a new row."""
        self.rows[row.case], self._last = row, row
        self.n_new += 1
        self._learn(row)
        self.report()

    def _learn(self, row: Row) -> None:
        kind = self._kinds[row.case]
        self._left[kind] -= 1
        self._seconds.setdefault(kind, []).append(row.seconds)

    def report(self) -> None:
        """Tell the caller where the run stands."""
        if self._report is None:
            return
        total, elapsed = len(self._kinds), time.monotonic() - self._began
        done = total - self._left.total()
        last, self._last = self._last, None
        left = self.seconds_left()
        self._report(RunProgress(done, total, self.resumed, len(self.failures), elapsed, left, last))

    def seconds_left(self) -> float | None:
        """Return the sum over cases left of the mean seconds of their kind, divided by the workers.

        A kind without a finished case counts as `expected`, or as the average kind.
        """
        means = {**self._prior, **{kind: fmean(seconds) for kind, seconds in self._seconds.items()}}
        if not means:
            return None
        unknown = fmean(means.values())
        return sum(n * means.get(kind, unknown) for kind, n in self._left.items()) / self.jobs


def _kind(case: Case) -> str:
    """Return what cases that take about as long have in common: all but the seeds and the budget."""
    problem = {name: value for name, value in case.problem.items() if name != "seed"}
    return codec.dumps([problem, dict(case.policy)])
