"""Servers that the tests of the dashboard look at; each lives for one file of tests."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from web_tools import Running, running, three_sessions

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


@pytest.fixture(scope="session")
def three(memory_disk: Path) -> Path:
    """A file with three sessions, which is copied for every file of tests."""
    path = memory_disk / "three.db"
    three_sessions(f"sqlite:///{path}")
    return path


@pytest.fixture(scope="module")
def store(three: Path, request: pytest.FixtureRequest) -> str:
    """A store with three sessions."""
    path = three.with_name(f"{request.module.__name__.replace('.', '-')}.db")
    with closing(sqlite3.connect(three)) as first, closing(sqlite3.connect(path)) as copy:
        first.backup(copy)
    return f"sqlite:///{path}"


@pytest.fixture(scope="module")
def looking(store: str) -> Iterator[Running]:
    """A dashboard that only shows."""
    with running(store, read_only=True) as server:
        yield server


@pytest.fixture(scope="module")
def writing(store: str) -> Iterator[Running]:
    """A dashboard that may write."""
    with running(store) as server:
        yield server


def find_chromium() -> str | None:
    """Where the browser is: Debian's, or one of the usual others."""
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    return next((path for path in map(shutil.which, names) if path), None)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A real headless Chromium."""
    path = find_chromium()
    if path is None:
        pytest.skip("there is no chromium on this machine; `apt-get install chromium` lets these tests run")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as tool:
        root = os.name == "posix" and os.geteuid() == 0  # whom chromium refuses its sandbox
        opened = tool.chromium.launch(executable_path=path, args=["--no-sandbox"] if root else [])
        yield opened
        opened.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A fresh page that must not report any error, of scripts or of the content security policy."""
    context = browser.new_context(accept_downloads=True, viewport={"width": 1280, "height": 900})
    opened = context.new_page()
    opened.set_default_timeout(20_000)
    complaints: list[str] = []
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    opened.on("dialog", lambda dialog: complaints.append(f"dialog: {dialog.message}") or dialog.dismiss())
    opened.on("console", lambda m: complaints.append(m.text) if m.type == "error" else None)
    yield opened
    context.close()
    # a refused form; a stream whose server has gone
    allowed = ("status of 400", "status of 401", "status of 409", "net::ERR")
    assert [text for text in complaints if not any(sign in text for sign in allowed)] == []
