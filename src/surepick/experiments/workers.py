"""Where cases run: a pool of local processes or a Dask cluster, both as `concurrent.futures` executors.

Every worker computes with one thread, so that sums are added in the same order wherever a case runs.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import re
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from surepick._version import __version__
from surepick.errors import ParameterError, SurepickError, missing_extra

CONNECT_SECONDS = 5.0  # how long to look for a cluster
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


class ClusterError(SurepickError, ConnectionError):
    """A cluster cannot be reached, has no workers, or runs another version of surepick."""


@dataclass(frozen=True)
class Workers:
    """Executors that run `jobs` cases at once."""

    jobs: int
    window: int | None  # how many cases to submit at once; None: all
    executor: Callable[[], Executor]  # returns a working executor, in place of the one before
    check: Callable[[], None]  # raises a ClusterError when no result can arrive any more


@contextmanager
def open_workers(jobs: int | None, cluster: str | None) -> Iterator[Workers]:
    """Start local processes (`jobs`, default one per core) or connect to the Dask cluster at this address."""
    if cluster is None:
        with _single_threaded(), _local_pool(_job_count(jobs)) as workers:
            yield workers
    else:
        with _connected(cluster) as client:
            yield _dask_workers(client)


def _job_count(jobs: int | None) -> int:
    if jobs is not None and jobs < 1:
        raise ParameterError(f"jobs is a number of processes, 1 or more, got {jobs}", field="jobs")
    if jobs is not None:
        return jobs
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def _local_pool(jobs: int) -> Iterator[Workers]:
    """Start processes by spawning: compiled code and threads do not survive a fork."""
    pools: list[ProcessPoolExecutor] = []

    def executor() -> Executor:
        if pools:
            pools[-1].shutdown(wait=False, cancel_futures=True)
        context = multiprocessing.get_context("spawn")
        pools.append(ProcessPoolExecutor(jobs, mp_context=context, initializer=end_with_parent))
        return pools[-1]

    try:
        # one case waits beside those that run, so that no worker is idle
        yield Workers(jobs, jobs + 1, executor, lambda: None)  # a broken pool says so through its futures
    except BaseException:  # interrupted: do not wait for the cases that still run
        for process in list((pools[-1]._processes or {}).values()) if pools else []:
            process.terminate()
        raise
    finally:
        if pools:
            pools[-1].shutdown(wait=True, cancel_futures=True)


def end_with_parent() -> None:
    """Leave Ctrl-C to the parent process, and end when the parent has ended, even by SIGKILL."""

    def wait_for_parent() -> None:
        parent = multiprocessing.parent_process()
        if parent is not None:
            parent.join()
            os._exit(1)

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=wait_for_parent, daemon=True).start()


def _dask_workers(client: Any) -> Workers:
    """Return the workers of a Dask client; its scheduler gives the cases of a dead worker to another one."""

    def executor() -> Executor:
        found: Executor = client.get_executor(pure=False)
        return found

    def check() -> None:
        if client.status != "running":
            raise ClusterError(
                "the connection to the Dask scheduler was lost; finished cases are kept. "
                "Run the same command again to resume.",
                field="cluster",
            )

    # Dask queues all cases itself, and feeds workers that join later
    return Workers(max(1, sum(client.nthreads().values())), None, executor, check)


@contextmanager
def _connected(address: str) -> Iterator[Any]:
    try:
        distributed: Any = importlib.import_module("distributed")
    except ImportError:
        raise missing_extra("distributed", "cluster") from None
    if local := re.fullmatch(r"local:(\d+)", address):
        with (
            _single_threaded(),
            distributed.LocalCluster(
                n_workers=_job_count(int(local[1])), threads_per_worker=1, dashboard_address=None
            ) as cluster,
            distributed.Client(cluster, set_as_default=False) as client,
        ):
            yield client
        return
    if not re.match(r"(tcp|tls|ws|wss|ucx)://", address):
        raise ParameterError(
            f"a cluster is the address of a Dask scheduler (tcp://host:8786) or local:N, got {address!r}",
            field="cluster",
        )
    try:
        client = distributed.Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise ClusterError(
            f"no Dask scheduler at {address} ({_first_line(error)}); start one: dask scheduler",
            field="cluster",
        ) from None
    try:
        _check_workers(client, address)
        yield client
    finally:
        client.close(timeout=2)


def _check_workers(client: Any, address: str) -> None:
    """Refuse a cluster without workers, or whose workers run another version of surepick."""
    try:
        client.wait_for_workers(1, timeout=CONNECT_SECONDS)
    except TimeoutError:
        raise ClusterError(
            f"the Dask scheduler at {address} has no workers; start some: dask worker {address} --nthreads 1",
            field="cluster",
        ) from None
    try:
        found = set(client.run(installed_version).values())
    except Exception as error:  # whatever a worker raised
        raise ClusterError(
            f"the workers of {address} cannot import surepick ({_first_line(error)}); "
            f"install version {__version__} there",
            field="cluster",
        ) from None
    if found != {__version__}:
        raise ClusterError(
            f"workers of {address} have surepick {', '.join(sorted(found))}, this process has {__version__}; "
            "install the same version everywhere",
            field="cluster",
        )


def installed_version() -> str:
    """Return the version of surepick where this is called."""
    return __version__


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


@contextmanager
def _single_threaded() -> Iterator[None]:
    """Let the processes that start meanwhile compute with one thread each."""
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
