"""Crews of Python functions: threads, processes, coroutines, or an executor of the caller's own.

Threads that hang cannot be ended from outside, so they are left behind; as daemons they do not keep the
program from ending. Processes can be ended, and are.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import multiprocessing
import queue
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from concurrent.futures import Executor, Future, InvalidStateError
from contextlib import contextmanager
from multiprocessing.reduction import ForkingPickler
from typing import Any, TypeAlias

from surepick.errors import MeasureError, ParameterError
from surepick.measure.loop import Crew
from surepick.measure.process import serve
from surepick.sessions.requests import Request, Use

# It is given the name of an arm or probe; where plans are played, the names of the arms to read.
Measure: TypeAlias = Callable[[Any], Use] | Callable[[Any], Awaitable[Use]]
KINDS = ("threads", "processes")
_IMPORTABLE = (
    "a function for processes has to be importable, so it stands at the top of a module, "
    "or of a script whose work is under `if __name__ == '__main__':`"
)


@contextmanager
def crew_of(
    measure: Measure,
    workers: int,
    executor: str | Executor,
    timeout: float | None,
    *,
    by_arms: bool = False,
    entries: Mapping[str, Any] | None = None,
) -> Iterator[Crew]:
    """Yield a crew that calls this function with the name of an arm or probe; it ends with the block.

    by_arms: call it with the names of the arms to read instead, as of plays.
    entries: call it with what these names stand for.
    """
    crew: _Threads | _Processes | _Coroutines | _Executed
    if inspect.iscoroutinefunction(measure):
        crew = _Coroutines(measure, timeout)
    elif isinstance(executor, Executor) or callable(getattr(executor, "submit", None)):
        crew = _Executed(measure, executor, timeout)
    elif executor == "threads":
        crew = _Threads(measure, timeout)
    elif executor == "processes":
        crew = _Processes(measure, workers, timeout)
    else:
        kinds = " or ".join(map(repr, KINDS))
        raise ParameterError(
            f"executor is {kinds}, or an executor of concurrent.futures, got {executor!r}", field="executor"
        )
    crew.by_arms, crew.entries = by_arms, entries
    try:
        yield crew
    finally:
        crew.close()


class _Futures:
    """The futures under way; they can be ended from outside, whatever their workers do."""

    def __init__(self, timeout: float | None) -> None:
        self._timeout = timeout
        self._open: set[Future[Use]] = set()
        self.by_arms = False  # set once, like the entries, before anything is measured
        self.entries: Mapping[str, Any] | None = None

    def given(self, request: Request) -> Any:
        """Return what the function is called with."""
        if self.entries is not None:
            return self.entries[request.probe_name]
        return request.readings if self.by_arms else request.probe_name

    def new(self, request: Request) -> Future[Use]:
        """A future that fails by itself once the time is over."""
        future = Future[Use]()
        self._open.add(future)
        future.add_done_callback(self._open.discard)
        future.set_running_or_notify_cancel()
        if self._timeout is not None:
            late = MeasureError(f"no answer for {request.probe_name!r} within {self._timeout:g} s")
            timer = threading.Timer(self._timeout, fail, [future, late])
            timer.daemon = True
            future.add_done_callback(lambda _: timer.cancel())
            timer.start()
        return future

    def stop(self) -> None:
        """Let all fail that are under way."""
        for future in list(self._open):
            fail(future, MeasureError("stopped"))

    def close(self) -> None:
        """Nothing more will be measured."""
        self.stop()


def fail(future: Future[Use], error: BaseException) -> None:
    """Let this future fail, unless it is done."""
    with contextlib.suppress(InvalidStateError):
        future.set_exception(error)


def settle(future: Future[Use], measure: Callable[[], Use]) -> None:
    """Call the function and keep what it gives or raises, unless the future is done by then."""
    try:
        value = measure()
    except BaseException as error:  # a thread has nobody else to tell
        fail(future, error if isinstance(error, Exception) else MeasureError(repr(error)))
        return
    with contextlib.suppress(InvalidStateError):
        future.set_result(value)


class _Threads(_Futures):
    """A thread for each measurement."""

    def __init__(self, measure: Callable[[str], Any], timeout: float | None) -> None:
        super().__init__(timeout)
        self._measure = measure

    def begin(self, request: Request) -> Future[Use]:
        """Measure in a thread of its own."""
        future = self.new(request)
        call = [future, lambda: self._measure(self.given(request))]
        threading.Thread(target=settle, args=call, daemon=True, name=f"surepick {request.token}").start()
        return future


class _Executed(_Futures):
    """An executor of the caller's own: Dask, loky, a pool with an initializer."""

    def __init__(self, measure: Callable[[str], Any], executor: Any, timeout: float | None) -> None:
        super().__init__(timeout)
        self._measure, self._executor = measure, executor

    def begin(self, request: Request) -> Future[Use]:
        """Submit it, and follow the executor's own future."""
        future = self.new(request)
        theirs = self._executor.submit(self._measure, self.given(request))
        theirs.add_done_callback(lambda done: settle(future, done.result))
        return future


class _Coroutines(_Futures):
    """A loop of coroutines in a thread of its own: the caller may have a running loop, as notebooks do."""

    def __init__(self, measure: Callable[[str], Any], timeout: float | None) -> None:
        super().__init__(timeout)
        self._measure = measure
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True, name="surepick loop")
        self._thread.start()

    def begin(self, request: Request) -> Future[Use]:
        """Measure in the loop; when the time is over, the coroutine is cancelled."""
        future = self.new(request)
        theirs = asyncio.run_coroutine_threadsafe(self._measure(self.given(request)), self._loop)
        theirs.add_done_callback(lambda done: settle(future, done.result))
        future.add_done_callback(lambda _: theirs.cancel())
        return future

    def close(self) -> None:
        """End the coroutines and their loop."""
        self.stop()
        asyncio.run_coroutine_threadsafe(_cancel_all(), self._loop).result(timeout=10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=10)
        self._loop.close()


async def _cancel_all() -> None:
    tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


class _Processes(_Futures):
    """Processes that measure one thing after the other; one that hangs or dies is replaced."""

    def __init__(self, measure: Callable[[str], Any], workers: int, timeout: float | None) -> None:
        super().__init__(None)  # a worker sees to the time: it begins when the process is there
        try:
            ForkingPickler.dumps(measure)
        except Exception as error:  # pickle raises whatever the object raises
            raise ParameterError(f"{_IMPORTABLE}; got {measure!r} ({error})", field="executor") from None
        self._measure, self._seconds = measure, timeout
        # a fork would copy this process with its threads and connections; a fork server, an old environment
        self._context = multiprocessing.get_context("spawn")
        self._free: queue.SimpleQueue[_Worker | None] = queue.SimpleQueue()
        self._all: set[_Worker] = set()
        for _ in range(workers):
            self._free.put(None)  # begun when it is first needed

    def begin(self, request: Request) -> Future[Use]:
        """Measure in the first process that is free."""
        future = self.new(request)
        call = [future, lambda: self._in_process(future, self.given(request))]
        threading.Thread(target=settle, args=call, daemon=True, name=f"surepick {request.token}").start()
        return future

    def close(self) -> None:
        """End all processes."""
        self.stop()
        for worker in list(self._all):
            worker.kill()

    def _in_process(self, future: Future[Use], probe: Any) -> Use:
        worker = self._free.get()
        if worker is None or not worker.is_alive():
            worker = _Worker(self._context, self._measure)
            self._all.add(worker)
        future.add_done_callback(lambda _: worker.kill() if worker.is_busy else None)
        try:
            return worker.measure(probe, self._seconds)
        finally:
            if not worker.is_alive():
                self._all.discard(worker)
            self._free.put(worker)


class _Worker:
    """One process with a pipe to it."""

    def __init__(self, context: Any, measure: Callable[[str], Any]) -> None:
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=serve, args=(theirs, measure), daemon=True)
        self._process.start()
        theirs.close()
        self.is_busy = self._is_ready = False

    def is_alive(self) -> bool:
        """Whether the process runs."""
        return bool(self._process.is_alive())

    def kill(self) -> None:
        """End the process at once."""
        self._process.kill()

    def measure(self, probe: Any, seconds: float | None) -> Use:
        """Let the process measure this, and wait for it; one that takes longer than that is ended."""
        self.is_busy = True
        try:
            if not self._is_ready:
                self._is_ready = self._pipe.recv()
            self._pipe.send(probe)
            if not self._pipe.poll(seconds):
                self.kill()
                raise MeasureError(f"no answer for {probe!r} within {seconds:g} s")
            value, error = self._pipe.recv()
        except (EOFError, OSError):
            self._process.join()
            raise MeasureError(
                f"the process that measured {probe!r} ended (exit code {self._process.exitcode}); "
                f"if it never began: {_IMPORTABLE}"
            ) from None
        finally:
            self.is_busy = False
        if error is not None:
            raise error
        measured: Use = value
        return measured
