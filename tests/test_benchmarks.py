"""`make bench` is one command that ends, whatever its benchmarks do; results are tables alone."""

from __future__ import annotations

import importlib.util
import sys
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


def lines_of(folder: Path) -> dict[str, list[str]]:
    """The lines of the summary by benchmark: command, seconds, CPU seconds, how it ended."""
    rows = [
        line.strip("| \n").split(" | ") for line in (folder / "README.md").open() if line.startswith("| ")
    ]
    return {name: cells for name, *cells in rows[1:]}


def test_one_that_fails_is_named_and_the_others_go_on(
    bench: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    assert run(bench, monkeypatch, "--only", "failing", "fine", "--out", str(out)) == "failed: failing"
    assert (out / "fine.md").read_text() == "| a | b |\n"
    lines = lines_of(out)
    assert lines["fine"][0] == "`python benchmarks/fine.py`"
    assert lines["failing"][-1].endswith("3")  # its exit code
    assert lines["fine"][-1] != lines["failing"][-1]


def test_one_that_hangs_is_ended_with_all_that_it_started(
    bench: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    ended = run(bench, monkeypatch, "--only", "hanging", "--limit", "0.02", "--out", str(out))
    assert ended == "failed: hanging"
    assert float(lines_of(out)["hanging"][1]) < 60


def test_when_all_end_well_so_does_the_command(bench: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(bench, monkeypatch, "--only", "fine") == 0


def test_results_are_one_folder_of_tables() -> None:
    assert {path.suffix for path in (BENCHMARKS / "results").rglob("*")} == {".md"}
