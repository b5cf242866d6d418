"""Unknown noise, bounds and unasked measurements from the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from surepick.cli import app
from surepick.core.guarantee import UNKNOWN_NOISE
from surepick.errors import SessionError

UNKNOWN = """kind = "table"
plans = [[1, 0, 1], [0, 1, 1]]
arms = ["old", "new", "both"]
noise = "unknown"
[truth]
means = [1.0, 2.0, 0.0]
"""
WITH_SCALE = UNKNOWN + "noise = 0.5\n"
BOUNDED = UNKNOWN.replace('noise = "unknown"', "low = 0\nhigh = 3")


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SUREPICK_STORE", raising=False)
    for name, text in (("unknown", UNKNOWN), ("scaled", WITH_SCALE), ("bounded", BOUNDED)):
        Path(f"{name}.toml").write_text(text)


def run(*words: str) -> Result:
    return CliRunner().invoke(app, words)


def answer(*words: str) -> Any:
    result = run(*words, "--json")
    assert result.exit_code == 0, (result.output, result.exception)
    return json.loads(result.stdout)


def test_check_forecasts_with_a_rough_scale_where_the_file_has_none() -> None:
    assert answer("check", "unknown.toml")["forecast"] is None
    assert "--noise" in run("check", "unknown.toml").stdout
    rough = answer("check", "unknown.toml", "--noise", "0.5")["forecast"]
    assert rough == answer("check", "scaled.toml")["forecast"]


def test_simulate_learns_the_noise_or_gives_the_true_one_to_a_policy_that_cannot() -> None:
    data = answer("simulate", "scaled.toml")
    assert data["plan"] == "plan 1"
    assert data["guarantee"].endswith(UNKNOWN_NOISE)
    assert answer("simulate", "scaled.toml", "--policy", "CombGapE")["noise_scale"] == [0.5, 0.5, 0.5]


def test_simulate_needs_a_scale_to_draw_with() -> None:
    assert r"[truth]" in str(run("simulate", "unknown.toml").exception)


def test_tell_and_import_say_whether_unasked_measurements_count() -> None:
    run("new", "bounded.toml")
    for words, counts in (("--unasked", True), ("--unasked", True), ("--picked", False)):
        assert answer("tell", "old", "1.5", words)["will_count"] is counts
    refused = run("tell", "old", "4.5", "--unasked").exception  # beyond its bounds
    assert isinstance(refused, SessionError)
    assert refused.field == "value"
    Path("rows.csv").write_text("arm,value,picked\nold,1.0,\nnew,2.0,yes\n")
    assert answer("import", "rows.csv")["imported"]["extra"] == 2
    for request in answer("ask", "-n", "2")["requests"]:
        run("tell", request["token"], "1.5")
    state = answer("status")
    assert (state["n_unasked"], state["n_unasked_counted"]) == (5, 3)


def test_an_export_imports_into_the_same_decisions_unasked_ones_included() -> None:
    run("new", "bounded.toml", "--policy", "CombGapE")
    for n in range(12):
        for request in answer("ask")["requests"]:
            run("tell", request["token"], str(1.0 + 0.1 * n))
            run("tell", "new", "2.5", "--unasked" if n % 2 else "--picked")
    run("export", "-o", "all.csv")
    run("new", "bounded.toml", "--policy", "CombGapE", "--name", "again")
    answer("import", "all.csv", "-s", "again")
    first, again = answer("status", "-s", "bounded"), answer("status", "-s", "again")
    assert first["n_unasked_counted"] > 0
    assert {**first, "session": ""} == {**again, "session": ""}
