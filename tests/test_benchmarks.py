"""`make bench` is one command that ends, and the tables that are kept are each of one version."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections import defaultdict
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
FINE = "print('| a | b |')\n"
FAILING = "print('so far')\nraise SystemExit(3)\n"
# the worker would keep the output open, and this command waiting, if it were not ended too
HANGING = """
import subprocess, sys, time
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print("begun", flush=True)
time.sleep(600)
"""


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """benchmarks/run.py as it is."""
    spec = importlib.util.spec_from_file_location("bench", BENCHMARKS / "run.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "bench", module)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def bench(command: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """The same with three scripts of our own."""
    for name, text in (("fine", FINE), ("failing", FAILING), ("hanging", HANGING)):
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.setattr(command, "HERE", tmp_path)
    own = {name: command.Benchmark(name) for name in ("failing", "hanging", "fine")}
    monkeypatch.setattr(command, "BENCHMARKS", own)
    return command


def run(bench: ModuleType, monkeypatch: pytest.MonkeyPatch, *words: str) -> Any:
    """The exit code, or the sentence that it ends with."""
    monkeypatch.setattr(sys, "argv", ["run.py", *words])
    try:
        bench.main()
    except SystemExit as ended:
        return ended.code
    return 0


def test_all_scripts_are_run_by_the_one_command(command: ModuleType) -> None:
    run_by_it = {benchmark.script for benchmark in command.BENCHMARKS.values()}
    assert run_by_it == {path.stem for path in BENCHMARKS.glob("*.py")} - {"run"}


def test_one_that_fails_is_named_and_the_others_go_on(
    bench: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    assert run(bench, monkeypatch, "--only", "failing", "fine", "--out", str(out)) == "failed: failing"
    assert (out / "fine.md").read_text() == "| a | b |\n"
    summary = (out / "README.md").read_text()
    assert "surepick 0." in summary
    assert "numba" in summary
    assert "exit code 3" in summary
    assert "| fine | `python benchmarks/fine.py` |" in summary


def test_one_that_hangs_is_ended_with_all_that_it_started(
    bench: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    ended = run(bench, monkeypatch, "--only", "hanging", "--limit", "0.02", "--out", str(out))
    assert ended == "failed: hanging"
    assert "ended after 0.02 minutes" in (out / "README.md").read_text()


def test_when_all_end_well_so_does_the_command(bench: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(bench, monkeypatch, "--only", "fine") == 0


def versions_of(rows: list[dict[str, Any]]) -> dict[str, set[str]]:
    """By method, or "all" for what was installed: the versions that made these rows."""
    found = defaultdict(set)
    for row in rows:
        policy = dict(row["case"]["policy"])
        version = str(policy.pop("version"))
        found[json.dumps(policy, sort_keys=True)].add(version)
        found["all"].add(json.dumps(row["versions"], sort_keys=True))
    return found


@pytest.mark.parametrize(
    "table", sorted(path.parent.name for path in BENCHMARKS.glob("results/*/rows.jsonl"))
)
def test_the_rows_of_a_table_are_of_one_version(table: str) -> None:
    text = (BENCHMARKS / "results" / table / "rows.jsonl").read_text()
    rows = [json.loads(line) for line in text.splitlines()]
    assert {name: found for name, found in versions_of(rows).items() if len(found) > 1} == {}


def test_rows_of_two_versions_are_noticed() -> None:
    row = {"case": {"policy": {"policy": "BetGapE", "version": 2}}, "versions": {"surepick": "0.1.0"}}
    other = {"case": {"policy": {"policy": "BetGapE", "version": 3}}, "versions": {"surepick": "0.1.0"}}
    assert versions_of([row, other])['{"policy": "BetGapE"}'] == {"2", "3"}
