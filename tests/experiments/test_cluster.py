from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from surepick.errors import ParameterError
from surepick.experiments import ClusterError, RunProgress, read_rows, run_cases
from tiny_cases import quick_cases, slow_cases, untimed

distributed = pytest.importorskip("distributed")


@pytest.fixture
def cluster() -> Iterator[Any]:
    """A real scheduler and two real worker processes."""
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    ) as cluster:
        yield cluster


def test_a_cluster_that_loses_a_worker_gives_the_rows_of_a_local_run(cluster: Any, tmp_path: Path) -> None:
    cases, killed = slow_cases(5), []

    def kill_one(state: RunProgress) -> None:
        if state.last is not None and not killed:
            with distributed.Client(cluster.scheduler_address, set_as_default=False) as client:
                killed.append(next(iter(client.run(os.getpid).values())))
            os.kill(killed[0], signal.SIGKILL)

    rows = run_cases(cases, tmp_path / "rows.jsonl", cluster=cluster.scheduler_address, progress=kill_one)
    assert killed
    assert len(read_rows(tmp_path / "rows.jsonl").rows) == len(cases)
    local = run_cases(cases, tmp_path / "local.jsonl", jobs=2)
    assert untimed(rows) == untimed(local)


def test_a_cluster_that_is_not_there_is_an_error_within_seconds(tmp_path: Path) -> None:
    began = time.monotonic()
    with pytest.raises(ClusterError) as caught:
        run_cases(quick_cases(2), tmp_path / "rows.jsonl", cluster="tcp://127.0.0.1:9")
    assert caught.value.field == "cluster"
    assert time.monotonic() - began < 10


@pytest.mark.parametrize("address", ["localhost", "local:", "local:x", "8786"])
def test_what_is_no_address_is_refused(address: str, tmp_path: Path) -> None:
    with pytest.raises(ParameterError) as caught:
        run_cases(quick_cases(1), tmp_path / "rows.jsonl", cluster=address)
    assert caught.value.field == "cluster"
