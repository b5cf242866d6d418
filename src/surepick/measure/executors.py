"""Workers that call a Python function: threads, processes, coroutines, or an executor of the caller.

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
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Executor, Future, InvalidStateError
from multiprocessing.reduction import ForkingPickler
from typing import Any, TypeAlias

from surepick.errors import MeasureError, ParameterError
from surepick.measure.process import serve
from surepick.sessions.commands import Use
from surepick.sessions.leases import Request

Measure: TypeAlias = Callable[[Any], Use] | Callable[[Any], Awaitable[Use]]
Argument = Callable[[Request], Any]  # what the function is called with
_IMPORTABLE = (
    "a function for processes has to be importable: define it at the top of a module, or of a script whose "
    "work is under `if __name__ == '__main__':`"
)


@contextlib.contextmanager
def workers_for(
    measure: Measure, argument: Argument, *, n: int, executor: str | Executor, timeout: float | None
) -> Iterator[_Futures]:
    """Yield workers that call this function with the argument of each request; they end with the block."""
    function: Callable[[Any], Any] = measure
    workers: _Futures
    is_coroutine = inspect.iscoroutinefunction(measure)
    if takes_seed(measure):
        function, given = _Seeded(function), argument
        argument = lambda request: (given(request), request.seed)  # noqa: E731
    if is_coroutine:
        workers = _Coroutines(function, argument, timeout)
    elif callable(getattr(executor, "submit", None)):
        workers = _Submitted(function, argument, timeout, executor)
    elif executor == "threads":
        workers = _Futures(function, argument, timeout)
    elif executor == "processes":
        workers = _Processes(function, argument, timeout, n)
    else:
        raise ParameterError(
            f"executor is 'threads', 'processes' or an executor of concurrent.futures, got {executor!r}",
            field="executor",
        )
    try:
        yield workers
    finally:
        workers.close()


def takes_seed(measure: Measure) -> bool:
    """Return whether the function has a parameter named `seed`.

    >>> takes_seed(lambda arm, seed: 0.0), takes_seed(lambda arm: 0.0), takes_seed(abs)
    (True, False, False)
    """
    try:
        return "seed" in inspect.signature(measure).parameters
    except ValueError:  # some functions in C have no signature
        return False


class _Seeded:
    """A function of what to measure and its seed, called with both as a pair; processes can import it."""

    def __init__(self, measure: Callable[..., Any]) -> None:
        self._measure = measure

    def __call__(self, pair: tuple[Any, int]) -> Any:
        return self._measure(pair[0], seed=pair[1])


class _Futures:
    """A thread for each measurement; the futures can be ended from outside, whatever the threads do."""

    def __init__(self, measure: Callable[[Any], Any], argument: Argument, timeout: float | None) -> None:
        self._measure, self._argument, self._timeout = measure, argument, timeout
        self._open: set[Future[Use]] = set()

    def begin(self, request: Request) -> Future[Use]:
        """Measure in a thread of its own."""
        future, given = self._new(request), self._argument(request)
        call = [future, lambda: self._call(future, given)]
        threading.Thread(target=_settle, args=call, daemon=True, name=f"surepick {request.token}").start()
        return future

    def stop(self) -> None:
        """Let all fail that are under way."""
        for future in list(self._open):
            _fail(future, MeasureError("stopped"))

    def close(self) -> None:
        """End everything; nothing more will be measured."""
        self.stop()

    def _call(self, future: Future[Use], given: Any) -> Use:
        value: Use = self._measure(given)
        return value

    def _new(self, request: Request) -> Future[Use]:
        """Return a future that fails by itself once the time is over."""
        future = Future[Use]()
        self._open.add(future)
        future.add_done_callback(self._open.discard)
        future.set_running_or_notify_cancel()
        if self._timeout is not None:
            late = MeasureError(f"no answer for {request.probe_name!r} within {self._timeout:g} s")
            timer = threading.Timer(self._timeout, _fail, [future, late])
            timer.daemon = True
            future.add_done_callback(lambda _: timer.cancel())
            timer.start()
        return future


def _fail(future: Future[Use], error: BaseException) -> None:
    """Let this future fail, unless it is done."""
    with contextlib.suppress(InvalidStateError):
        future.set_exception(error)


def _settle(future: Future[Use], measure: Callable[[], Use]) -> None:
    """Call the function and keep what it returns or raises, unless the future is done by then."""
    try:
        value = measure()
    except BaseException as error:  # a thread has no caller that would see it
        _fail(future, error if isinstance(error, Exception) else MeasureError(repr(error)))
        return
    with contextlib.suppress(InvalidStateError):
        future.set_result(value)


class _Submitted(_Futures):
    """An executor of the caller: Dask, loky, a pool with an initializer."""

    def __init__(self, measure: Any, argument: Argument, timeout: float | None, executor: Any) -> None:
        super().__init__(measure, argument, timeout)
        self._executor = executor

    def begin(self, request: Request) -> Future[Use]:
        """Submit it, and follow the executor's own future."""
        future = self._new(request)
        theirs = self._executor.submit(self._measure, self._argument(request))
        theirs.add_done_callback(lambda done: _settle(future, done.result))
        return future


class _Coroutines(_Futures):
    """A loop of coroutines in a thread of its own: the caller may have a running loop, as notebooks do."""

    def __init__(self, measure: Any, argument: Argument, timeout: float | None) -> None:
        super().__init__(measure, argument, timeout)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True, name="surepick loop")
        self._thread.start()

    def begin(self, request: Request) -> Future[Use]:
        """Measure in the loop; when the time is over, the coroutine is cancelled."""
        future = self._new(request)
        theirs = asyncio.run_coroutine_threadsafe(self._measure(self._argument(request)), self._loop)
        theirs.add_done_callback(lambda done: _settle(future, done.result))
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

    def __init__(self, measure: Any, argument: Argument, timeout: float | None, n: int) -> None:
        super().__init__(measure, argument, None)  # a worker sees to the time: it begins when it is there
        try:
            ForkingPickler.dumps(measure)
        except Exception as error:  # pickle raises whatever the object raises
            raise ParameterError(f"{_IMPORTABLE}; got {measure!r} ({error})", field="executor") from None
        self._seconds = timeout
        # a fork would copy this process with its threads and connections; a fork server, an old environment
        self._context = multiprocessing.get_context("spawn")
        self._free: queue.SimpleQueue[_Worker | None] = queue.SimpleQueue()
        self._all: set[_Worker] = set()
        for _ in range(n):
            self._free.put(None)  # begun when it is first needed

    def close(self) -> None:
        """End all processes."""
        self.stop()
        for worker in list(self._all):
            worker.kill()

    def _call(self, future: Future[Use], given: Any) -> Use:
        """Measure in the first process that is free."""
        worker = self._free.get()
        if worker is None or not worker.is_alive():
            worker = _Worker(self._context, self._measure)
            self._all.add(worker)
        future.add_done_callback(lambda _: worker.kill() if worker.is_busy else None)
        try:
            return worker.measure(given, self._seconds)
        finally:
            if not worker.is_alive():
                self._all.discard(worker)
            self._free.put(worker)


class _Worker:
    """One process with a pipe to it."""

    def __init__(self, context: Any, measure: Callable[[Any], Any]) -> None:
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=serve, args=(theirs, measure), daemon=True)
        self._process.start()
        theirs.close()
        self.is_busy = self._is_ready = False

    def is_alive(self) -> bool:
        """Return whether the process runs."""
        return bool(self._process.is_alive())

    def kill(self) -> None:
        """End the process at once."""
        self._process.kill()

    def measure(self, given: Any, seconds: float | None) -> Use:
        """Let the process measure this, and wait for it; one that takes longer than that is ended."""
        self.is_busy = True
        try:
            if not self._is_ready:
                self._is_ready = self._pipe.recv()
            self._pipe.send(given)
            if not self._pipe.poll(seconds):
                self.kill()
                raise MeasureError(f"no answer for {given!r} within {seconds:g} s")
            value, error = self._pipe.recv()
        except (EOFError, OSError):
            self._process.join()
            raise MeasureError(
                f"the process that measured {given!r} ended (exit code {self._process.exitcode}); "
                f"if it never began: {_IMPORTABLE}"
            ) from None
        finally:
            self.is_busy = False
        if error is not None:
            raise error
        measured: Use = value
        return measured
