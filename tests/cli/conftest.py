"""Every test of the command line runs in a folder of its own, with the six routes."""

from __future__ import annotations

from pathlib import Path

import pytest

from command_line import write_trips


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SUREPICK_STORE", raising=False)
    write_trips(tmp_path)
    return tmp_path
