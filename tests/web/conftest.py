"""Servers that the tests of the dashboard look at; each lives for one file of tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from web_tools import Running, running, three_sessions


@pytest.fixture(scope="module")
def store(memory_disk: Path, request: pytest.FixtureRequest) -> str:
    """A store with three sessions."""
    url = f"sqlite:///{memory_disk}/{request.module.__name__.replace('.', '-')}.db"
    three_sessions(url)
    return url


@pytest.fixture(scope="module")
def looking(store: str) -> Iterator[Running]:
    """A dashboard that only shows."""
    with running(store) as server:
        yield server


@pytest.fixture(scope="module")
def writing(store: str) -> Iterator[Running]:
    """A dashboard that may write."""
    with running(store, write=True) as server:
        yield server
