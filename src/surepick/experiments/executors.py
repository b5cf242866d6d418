"""Where cases run: a pool of local processes, or a Dask cluster; both are `concurrent.futures` executors.

Every worker computes with one thread, so that sums are added in the same order wherever a case runs.
"""

from __future__ import annotations

import multiprocessing
import os
import re
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from typing import Any, Protocol

from surepick._version import __version__
from surepick.errors import ParameterError, SurepickError, missing_extra

CONNECT_SECONDS = 5.0  # how long to look for a cluster before saying that it is not there
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


class ClusterError(SurepickError, ConnectionError):
    """A cluster is not there, has no workers, or has other software than this process."""


class Workers(Protocol):
    """Something that gives executors, and a new one after the last was broken."""

    @property
    def window(self) -> int | None:
        """How many cases to hand out at once; None: all of them."""
        ...

    @property
    def parallel(self) -> int:
        """How many cases run at once."""
        ...

    def executor(self) -> Executor:
        """An executor that works; the one before is given up."""
        ...

    def check(self) -> None:
        """Raise a ClusterError when no result can come any more."""
        ...


@contextmanager
def open_workers(workers: int | None, cluster: str | None) -> Iterator[Workers]:
    """Local processes (`workers`, default one per core) or the Dask cluster with this address."""
    if cluster is None:
        with _single_threaded(), _LocalPool(_worker_count(workers)) as pool:
            yield pool
    else:
        with _connected(cluster) as client:
            yield _DaskCluster(client)


def _worker_count(workers: int | None) -> int:
    if workers is not None and workers < 1:
        raise ParameterError(f"workers is a number of processes, 1 or more, got {workers}")
    if workers is not None:
        return workers
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _LocalPool:
    """Processes started afresh (spawned, since compiled code and threads do not survive a fork)."""

    def __init__(self, workers: int) -> None:
        self.window = workers + 1  # one waiting, so that no worker idles
        self.parallel = workers
        self._pool: ProcessPoolExecutor | None = None

    def executor(self) -> Executor:
        self._give_up()
        context = multiprocessing.get_context("spawn")
        self._pool = ProcessPoolExecutor(self.parallel, mp_context=context, initializer=live_with_parent)
        return self._pool

    def check(self) -> None:
        """A broken pool says so through its futures."""

    def _give_up(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)

    def __enter__(self) -> _LocalPool:
        return self

    def __exit__(self, *error: object) -> None:
        if self._pool is None:
            return
        if any(error):  # interrupted: what still runs has nobody waiting for it
            for process in list((self._pool._processes or {}).values()):
                process.terminate()
        self._pool.shutdown(wait=True, cancel_futures=True)


def live_with_parent() -> None:
    """Leave interrupts to the parent process, and end when it has ended, even by a kill."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


class _DaskCluster:
    """A Dask client; the scheduler hands the cases of a dead worker to another by itself."""

    def __init__(self, client: Any) -> None:
        self.window = None  # Dask's scheduler does the queueing, and feeds workers that join later
        self.parallel = max(1, sum(client.nthreads().values()))
        self._client = client
        self._executor: Executor | None = None

    def executor(self) -> Executor:
        if self._executor is not None:
            self._executor.shutdown(wait=False)
        self._executor = self._client.get_executor(pure=False)
        return self._executor

    def check(self) -> None:
        if self._client.status != "running":
            raise ClusterError(
                "the connection to the Dask scheduler was lost; finished cases are kept: run the same again "
                "when the cluster is back"
            )


@contextmanager
def _connected(address: str) -> Iterator[Any]:
    try:
        import distributed
    except ImportError:
        raise missing_extra("distributed", "cluster") from None
    local = re.fullmatch(r"local:(\d+)", address)
    if not local and not re.match(r"(tcp|tls|ws|wss|ucx)://", address):
        raise ParameterError(
            "a cluster is the address of a Dask scheduler, as 'tcp://host:8786', or 'local:N', got "
            f"{address!r}"
        )
    if local:
        with _local_cluster(distributed, int(local[1])) as client:
            yield client
        return
    client = _client(distributed, address)
    try:
        _refuse_unfit(client, address)
        yield client
    finally:
        client.close(timeout=2)


@contextmanager
def _local_cluster(distributed: Any, workers: int) -> Iterator[Any]:
    with (
        _single_threaded(),
        distributed.LocalCluster(
            n_workers=_worker_count(workers), threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client


def _client(distributed: Any, address: str) -> Any:
    try:
        return distributed.Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise ClusterError(
            f"there is no Dask scheduler at {address}: {_first_line(error)}; start one with 'dask "
            "scheduler', or leave the cluster out to run on this machine"
        ) from None


def _refuse_unfit(client: Any, address: str) -> None:
    """A cluster without workers, or whose workers cannot import this surepick, is no use."""
    try:
        client.wait_for_workers(1, timeout=CONNECT_SECONDS)
    except TimeoutError:
        raise ClusterError(
            f"the Dask scheduler at {address} has no workers; start some with 'dask worker {address} "
            "--nthreads 1'"
        ) from None
    try:
        found = client.run(installed_version)
    except Exception as error:  # whatever a worker raised
        raise ClusterError(
            f"the workers of {address} cannot import surepick: {_first_line(error)}; install version "
            f"{__version__} there"
        ) from None
    others = sorted({version for version in found.values() if version != __version__})
    if others:
        raise ClusterError(
            f"workers of {address} have surepick {', '.join(others)} and this process has {__version__}; "
            "install the same version everywhere, or results would depend on where a case runs"
        )


def installed_version() -> str:
    """The version of surepick where this is called."""
    return __version__


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


@contextmanager
def _single_threaded() -> Iterator[None]:
    """Let the processes that start in the meantime compute with one thread each."""
    before = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
