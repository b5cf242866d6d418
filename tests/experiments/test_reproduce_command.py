"""`surepick reproduce`: tables, resuming, signals, progress on a pipe, and its page."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import surepick
from command_line import surepick as call_surepick
from surepick.experiments import read_rows

PAGE = Path(__file__).parents[2] / "docs" / "benchmarks.md"
SMALL = ["knapsack", "--runs", "2", "--policy", "BetGapE", "--policy", "Uniform,CombGapE"]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(surepick.__file__).parents[1])}


def test_the_command_prints_the_table_fills_the_folder_and_resumes(tmp_path):
    call = ["reproduce", *SMALL, "--out", str(tmp_path)]
    first = call_surepick(*call)
    assert first.code == 0, first.err
    assert first.out.strip() == (tmp_path / "table.md").read_text().strip()
    written = {path.name for path in tmp_path.iterdir()}
    assert written == {"rows.jsonl", "table.md", "summary.json", "knapsack.svg"}
    before = (tmp_path / "rows.jsonl").read_bytes()
    table = call_surepick(*call, "--json").json["table"]
    assert {(cell["family"], cell["method"], cell["runs"]) for cell in table} == {
        (family, method, 2)
        for family in ("d5", "d7", "d9")
        for method in ("CombGapE:radius=published", "CombGapE", "BetGapE", "Uniform")
    }
    assert (tmp_path / "rows.jsonl").read_bytes() == before


@pytest.mark.parametrize(
    ("words", "field"),
    [
        (["backpack"], "study"),
        (["knapsack", "d6"], "families"),
        (["radii", "--jobs", "many", "--runs", "1"], "jobs"),
    ],
)
def test_names_that_lead_nowhere_are_refused_before_anything_is_written(words, field, tmp_path):
    found = call_surepick("reproduce", *words, "--out", str(tmp_path), "--json")
    assert found.error["field"] == field
    assert not any(path.stat().st_size for path in tmp_path.iterdir())


def test_an_ended_run_prints_the_table_it_has_and_tells_its_progress_to_a_pipe(tmp_path):
    """Ties never end before their budget, so the run is surely ended in the middle."""
    script = "from surepick.cli import main, output; output.A_MINUTE = 0.2; main()"
    words = ["reproduce", "radii", "--runs", "400", "--policy", "BetGapE,CombGapE:radius=published"]
    with subprocess.Popen(
        [sys.executable, "-c", script, *words, "--out", str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
    ) as run:
        for _ in range(1200):
            if len(read_rows(tmp_path / "rows.jsonl")) > 20:
                break
            time.sleep(0.1)
        run.send_signal(signal.SIGTERM)
        printed, progress = run.communicate(timeout=120)
    assert run.returncode == 130
    assert printed.strip() == (tmp_path / "table.md").read_text().strip()
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert 0 < summary["n_missing"] < 2 * 2 * 400
    assert len(re.findall(r"^radii: \d+ of 1600 runs", progress, flags=re.M)) >= 1
    assert re.search(r"^radii: 1600 runs; about [\d.]+ (s|min|h)", progress, flags=re.M)


def test_the_page_about_experiments_runs(tmp_path):
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.S)
    (tmp_path / "mine.py").write_text(code)
    found = subprocess.run(
        [sys.executable, "mine.py"], cwd=tmp_path, capture_output=True, text=True, env=ENVIRONMENT
    )
    assert found.returncode == 0, found.stderr
    assert len(found.stdout.splitlines()) == 4
