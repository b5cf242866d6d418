"""Every test of the command line runs in a folder of its own, with the six routes."""

import pytest

from command_line import write_trips


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SUREPICK_STORE", raising=False)
    write_trips(tmp_path)
    return tmp_path
