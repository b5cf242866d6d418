"""Fixtures that several test files share."""

from __future__ import annotations

import uuid
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def postgres_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a real PostgreSQL server, which lives as long as the test run."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about a missing runtime folder, which is not needed
        import pgserver
    folder = tmp_path_factory.mktemp("postgres", numbered=True)
    try:
        server = pgserver.get_server(folder, cleanup_mode="delete")
    except Exception as error:
        pytest.fail(f"the PostgreSQL server of these tests could not be started (package pgserver): {error}")
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
def sqlite_url(tmp_path: Path) -> str:
    """The address of a SQLite file that does not exist yet."""
    return f"sqlite:///{tmp_path / 'store.db'}"
