"""Sessions of plays in the shell: the starter, ask and tell by reading, a program, files, checks."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from surepick.cli import app
from surepick.errors import FileError, SessionError

TREES = """
kind = "trees"
title = "A network for four villages"
edges = [["A", "B"], ["B", "C"], ["C", "A"], ["C", "D"], ["D", "A"]]
guess = [3.0, 1.0, 2.0, 2.5, 0.5]
spread = 1.0
list_plans = false
measure = "plan arms"
noise = 0.2
cost = 4
[truth]
means = "guess"
"""
TRY = """
import json, os, sys
values = {"A - B": 3.0, "B - C": 1.0, "C - A": 2.0, "C - D": 2.5, "D - A": 0.5}
wanted = os.environ["SUREPICK_READINGS"].split("\\n")
assert sys.argv[1].split(" + ") == wanted
print(json.dumps({name: values[name] for name in wanted}))
"""

Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SUREPICK_STORE", "sqlite:///plays.db")
    Path("trees.toml").write_text(TREES)
    Path("try.py").write_text(TRY)
    return lambda *words: CliRunner().invoke(app, list(words))


def test_ask_prints_the_arms_of_a_play_and_tell_takes_them_in_parts(run: Run) -> None:
    assert run("new", "trees.toml").exit_code == 0
    first = run("ask").stdout.splitlines()[0].split("\t")
    token, name, readings = first
    assert name.split(" + ") == readings.split(", ")
    own = readings.split(", ")
    part = run("tell", token, f"{own[1]}=1.5")
    assert f"{own[0]}, {own[2]}" in part.stdout
    assert isinstance(run("tell", token, "1", "2", "3", "4").exception, SessionError)
    assert run("tell", token, "2.5", "0,5").exit_code == 0
    state = json.loads(run("status", "--json").stdout)
    assert state["n_told"] == 1
    assert run("status").exit_code == 0
    asked = json.loads(run("ask", "--json").stdout)["requests"][0]
    assert set(asked) == {"token", "probe", "readings", "wanted"}


def test_a_program_plays_to_the_end_and_the_log_goes_from_place_to_place(run: Run) -> None:
    measured = run("run", "trees.toml", "--measure", f"{sys.executable} try.py {{probe}}")
    assert measured.exit_code == 0, measured.output
    assert "B - C + C - A + D - A" in measured.stdout
    assert run("verify").exit_code == 0
    assert run("report").exit_code == 0
    assert "C - A" in Path("report.html").read_text()
    state = json.loads(run("status", "--json").stdout)
    assert sum(state["counts"].values()) == 3 * state["n_used"]
    assert state["cost"] == 4 * state["n_used"]
    Path("told.csv").write_text(run("export").stdout)
    run("new", "trees.toml", "--name", "again")
    imported = run("import", "told.csv", "--session", "again")
    assert imported.exit_code == 0, imported.output
    assert json.loads(run("status", "--session", "again", "--json").stdout)["counts"] == state["counts"]
    run("export", "--session", "trees", "--to", "log.json")
    assert run("import", "log.json", "--session", "third").exit_code == 0
    assert run("verify", "--session", "third").exit_code == 0


def test_measurements_are_rescued_with_the_names_of_their_plays(run: Run) -> None:
    run("new", "trees.toml")
    asked = run("ask").stdout.splitlines()[0].split("\t")
    run("tell", asked[0], "1", "2", "3")
    run("tell", asked[1], "4", "5", "6", "--unasked", "--yes")
    assert run("doctor", "--rescue", "saved.csv").exit_code == 0
    with Path("saved.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["arm"].lstrip("'") for row in rows] == [asked[1]] * 6
    run("new", "trees.toml", "--name", "again")
    told = run("import", "saved.csv", "--rows-of", "trees", "--session", "again", "--yes", "--json")
    imported = json.loads(told.stdout)["imported"]
    assert (imported["recorded"], imported["extra"]) == (1, 1)


def test_the_starter_is_checked_limited_rehearsed_and_tried_against_itself(run: Run) -> None:
    assert run("init", "plays").exit_code == 0
    assert run("check", "plays.toml").exit_code == run("limit", "plays.toml").exit_code == 0
    assert json.loads(run("check", "plays.toml", "--json").stdout)["plays"] is True
    found = json.loads(run("limit", "plays.toml", "--json").output)
    assert 80 < found["lower_bound"] < 95
    rehearsed = run("simulate", "plays.toml", "--json")
    assert rehearsed.exit_code == 0, rehearsed.output
    assert json.loads(rehearsed.stdout)["plan"] == "A1 -> A2 -> A3 -> B3 -> C3 -> D3 -> D4"
    tried = run(
        "aa", "trees.toml", "--measure", f"{sys.executable} try.py {{probe}}", "--pairs", "4", "--json"
    )
    assert json.loads(tried.stdout)["probe"] == "B - C + C - A + D - A"


@pytest.mark.parametrize(
    ("line", "change", "field"),
    [
        ('measure = "plan arms"', 'measure = "plans"', "measure"),
        ("spread = 1.0", 'spread = 1.0\nreadings = "dependent"', "readings"),
        ("spread = 1.0", "spread = 1.0\nlow = 0\nhigh = 9", "low"),
        ("noise = 0.2", 'noise = "unknown"', "noise"),
        ("cost = 4", "cost = [1, 2, 3, 4, 5]", "cost"),
    ],
)
def test_what_cannot_be_played_is_refused(run: Run, line: str, change: str, field: str) -> None:
    assert run("check", "trees.toml").exit_code == 0
    Path("trees.toml").write_text(TREES.replace(line, change))
    refused = run("check", "trees.toml").exception
    assert isinstance(refused, FileError)
    assert refused.field == field


def test_plans_that_use_an_arm_twice_are_not_played(run: Run) -> None:
    items = 'kind = "knapsack"\nweights = [1, 2, 3]\nguess = [1, 2, 4]\ncapacity = 9\nlist_plans = false\n'
    items += 'measure = "plan arms"\nnoise = 1\n'
    Path("items.toml").write_text(items + "copies = 3\n")
    assert isinstance(run("check", "items.toml").exception, FileError)
    Path("items.toml").write_text(items + "copies = 1\n")
    assert run("check", "items.toml").exit_code == 0
