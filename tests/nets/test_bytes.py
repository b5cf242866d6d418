"""What the command line prints about sessions of 0.1.0 is the same to the byte: programs read it."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import shown
import stored_sessions as stored

HOW = "if this is meant to change: write a line in CHANGELOG.md, then run python tests/nets/shown.py --write"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the store; nothing here changes it."""
    return stored.copied(tmp_path_factory.mktemp("shown"))


@pytest.mark.parametrize("file", shown.FILES)
def test_a_command_prints_the_same_bytes(file: str, store: Path) -> None:
    then, now = shown.kept(file), shown.printed(file, store)
    if file == "list.json":
        then, now = shown.without_changed(then, store), shown.without_changed(now, store)
    assert now.decode().splitlines(keepends=True) == then.decode().splitlines(keepends=True), HOW


def test_the_fingerprint_of_a_problem_is_that_of_its_json(store: Path) -> None:
    """As anybody can compute it from what `export` writes: sorted keys and no spaces."""
    for short in ("betgape", "obet", "recorded"):
        exported = json.loads(shown.printed(f"{short}-export.json", store))
        text = json.dumps(exported["problem"], sort_keys=True, separators=(",", ":"))
        found = hashlib.sha256(text.encode()).hexdigest()[:16]
        assert exported["certificate"]["problem"] == found


def test_looking_changes_nothing(store: Path) -> None:
    for file in ("betgape-status.json", "costs-export.csv", "function-log.json", "pilot-status.json"):
        shown.printed(file, store)
    assert tables(store) == tables(stored.STORE)


def tables(file: Path) -> list[object]:
    names = ("sessions", "events", "leases", "snapshots")
    with closing(sqlite3.connect(f"file:{file}?immutable=1", uri=True)) as connection:
        return [connection.execute(f"SELECT * FROM surepick_{name}").fetchall() for name in names]
