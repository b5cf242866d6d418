"""Workers that measure several things at the same time: a thread for each, whatever it calls.

A thread calls a Python function, waits for a coroutine, for an executor of the caller or for a process, or
runs a program (`commands`). This module imports little, so that processes begin quickly.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import multiprocessing
import os
import queue
import signal
import threading
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Executor, Future, InvalidStateError, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from multiprocessing.reduction import ForkingPickler
from typing import TYPE_CHECKING, Any, TypeAlias

from surepick.errors import MeasureError, ParameterError

if TYPE_CHECKING:
    from surepick.sessions.commands import Use
    from surepick.sessions.leases import Request

Measure: TypeAlias = "Callable[[Any], Use] | Callable[[Any], Awaitable[Use]]"
_IMPORTABLE = (
    "a function for processes has to be importable: define it at the top of a module, or of a script whose "
    "work is under `if __name__ == '__main__':`"
)


class TerminatedError(KeyboardInterrupt):
    """The process was asked to end (SIGTERM): there is no time to wait for open measurements."""


@contextlib.contextmanager
def ended_as_interrupted() -> Iterator[None]:
    """Within, a request to end (SIGTERM: a shutdown, a scheduler) is a Ctrl-C that waits for nothing."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(*_: object) -> None:
        raise TerminatedError

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


class Workers:
    """A thread for each measurement; its future can be ended from outside, whatever the thread does.

    A thread that hangs is left behind; as a daemon it does not keep the program from ending. `end` ends what
    the calls have begun, such as processes.
    """

    def __init__(
        self,
        measure: Callable[[Request], Use],
        *,
        timeout: float | None = None,
        end: Callable[[], object] = lambda: None,
    ) -> None:
        self._measure = measure
        self._timeout = timeout
        self._end = end
        self._open: set[Future[Use]] = set()

    def begin(self, request: Request) -> Future[Use]:
        """Begin to measure; the value, or why there is none, comes later."""
        future = Future["Use"]()
        future.set_running_or_notify_cancel()
        self._open.add(future)
        future.add_done_callback(self._open.discard)
        if self._timeout is not None:
            timer = threading.Timer(self._timeout, _fail, [future, _late(request, self._timeout)])
            timer.daemon = True
            future.add_done_callback(lambda _: timer.cancel())
            timer.start()
        name = f"surepick {request.token}"
        threading.Thread(target=self._settle, args=[future, request], daemon=True, name=name).start()
        return future

    def stop(self) -> None:
        """Let all fail that are under way."""
        self._end()
        for future in list(self._open):
            _fail(future, MeasureError("stopped"))

    def _settle(self, future: Future[Use], request: Request) -> None:
        try:
            value = self._measure(request)
        except BaseException as error:  # a thread has no caller that would see it
            _fail(future, error if isinstance(error, Exception) else MeasureError(repr(error)))
            return
        with contextlib.suppress(InvalidStateError):
            future.set_result(value)


def _fail(future: Future[Use], error: Exception) -> None:
    """Let this future fail, unless it is done."""
    with contextlib.suppress(InvalidStateError):
        future.set_exception(error)


def _late(request: Request, timeout: float | None) -> MeasureError:
    return MeasureError(f"no answer for {request.probe_name!r} within {timeout:g} s")


@contextlib.contextmanager
def workers_for(
    measure: Measure,
    argument: Callable[[Request], Any],
    *,
    n: int,
    executor: str | Executor,
    timeout: float | None,
) -> Iterator[Workers]:
    """Yield workers that call this function with the argument of each request; they end with the block."""
    function: Callable[[Any], Any] = measure
    if takes_seed(measure):
        function, given = partial(_with_seed, measure), argument
        argument = lambda request: (given(request), request.seed)  # noqa: E731

    def result(theirs: Any, request: Request) -> Use:
        """Wait for a future of another executor."""
        try:
            value: Use = theirs.result(timeout)
        except TimeoutError:
            if theirs.done():  # the function itself raised it
                raise
            theirs.cancel()
            raise _late(request, timeout) from None
        return value

    with contextlib.ExitStack() as stack:
        if inspect.iscoroutinefunction(measure):
            loop, then = stack.enter_context(_event_loop()), asyncio.run_coroutine_threadsafe
            workers = Workers(lambda request: result(then(function(argument(request)), loop), request))
        elif callable(submit := getattr(executor, "submit", None)):
            send: Callable[..., Any] = submit
            workers = Workers(lambda request: result(send(function, argument(request)), request))
        elif executor == "threads":
            workers = Workers(lambda request: function(argument(request)), timeout=timeout)
        elif executor == "processes":
            processes = _Processes(function, n, timeout)
            workers = Workers(lambda one: processes.measure(argument(one), one), end=processes.kill)
        else:
            raise ParameterError(
                f"executor is 'threads', 'processes' or an executor of concurrent.futures, got {executor!r}",
                field="executor",
            )
        stack.callback(workers.stop)
        yield workers


def takes_seed(measure: Measure) -> bool:
    """Return whether the function has a parameter named `seed`.

    >>> takes_seed(lambda arm, seed: 0.0), takes_seed(lambda arm: 0.0), takes_seed(abs)
    (True, False, False)
    """
    try:
        return "seed" in inspect.signature(measure).parameters
    except ValueError:  # some functions in C have no signature
        return False


def _with_seed(measure: Callable[..., Any], pair: tuple[Any, int]) -> Any:
    """Call a function with a pair, what to measure and a seed; processes can import this one."""
    return measure(pair[0], seed=pair[1])


@contextlib.contextmanager
def _event_loop() -> Iterator[asyncio.AbstractEventLoop]:
    """Run coroutines in a thread of their own: the caller may have a running loop, as notebooks do."""
    begun = Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]]()

    async def serve() -> None:
        done = asyncio.Event()
        begun.set_result((asyncio.get_running_loop(), done))
        await done.wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True, name="surepick loop")
    thread.start()
    loop, done = begun.result()
    try:
        yield loop
    finally:
        loop.call_soon_threadsafe(done.set)  # `asyncio.run` cancels all coroutines that are left
        thread.join(timeout=10)


class _Processes:
    """Processes that measure one thing after the other; one that hangs or dies is replaced.

    Each is a pool of one, so that it can be ended alone. They begin when they are needed.
    """

    def __init__(self, function: Callable[[Any], Any], n: int, timeout: float | None) -> None:
        try:
            ForkingPickler.dumps(function)
        except Exception as error:  # pickle raises whatever the object raises
            raise ParameterError(f"{_IMPORTABLE}; got {function!r} ({error})", field="executor") from None
        self._function = function
        self._timeout = timeout
        self._pools: list[ProcessPoolExecutor] = []
        self._free: queue.SimpleQueue[ProcessPoolExecutor | None] = queue.SimpleQueue()
        for _ in range(n):
            self._free.put(None)

    def measure(self, given: Any, request: Request) -> Use:
        """Measure in the first process that is free; one that takes longer than the timeout is ended."""
        pool = self._free.get()
        try:
            pool = pool or self._begin()
            future = pool.submit(self._function, given)
            try:
                value: Use = future.result(self._timeout)
            except TimeoutError:
                if future.done():  # the function itself raised it
                    raise
                end_pool(pool)
                pool = None
                raise _late(request, self._timeout) from None
        except BrokenProcessPool:
            pool = None
            raise MeasureError(
                f"the process that measured {request.probe_name!r} ended; if it never began: {_IMPORTABLE}"
            ) from None
        finally:
            self._free.put(pool)
        return value

    def _begin(self) -> ProcessPoolExecutor:
        # a fork would copy this process with its threads and connections
        context = multiprocessing.get_context("spawn")
        pool = ProcessPoolExecutor(1, mp_context=context, initializer=end_with_parent)
        self._pools.append(pool)
        pool.submit(os.getpid).result()  # it is ready: the time begins
        return pool

    def kill(self) -> None:
        """End all processes."""
        for pool in self._pools:
            end_pool(pool)


def end_pool(pool: ProcessPoolExecutor) -> None:
    """End the processes of a pool at once, whatever they do; Python 3.14 has `kill_workers` for it."""
    for process in list((pool._processes or {}).values()):
        process.kill()
    pool.shutdown(wait=False, cancel_futures=True)


def end_with_parent() -> None:
    """Leave Ctrl-C to the parent process, and end when the parent has ended, even by SIGKILL."""

    def wait_for_parent() -> None:
        parent = multiprocessing.parent_process()
        if parent is not None:
            parent.join()
            os._exit(1)

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=wait_for_parent, daemon=True).start()
