"""Sessions on probes in the shell: ask and tell by reading, and a program that prints several numbers."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from surepick.cli import app

DRIVES = """
kind = "table"
plans = { north = "AB + BD", south = "AC + CD" }
goal = "smallest"
noise = 1.0
[measure."north loop"]
reads = ["AB", "BD"]
cost = 3
[measure."south loop"]
reads = ["AC", "CD"]
[measure.ends]
mix = { AB = 1.0, AC = -1.0 }
"""
DRIVE = """
import json, os, sys
values = {"AB": 4.0, "BD": 5.0, "AC": 6.0, "CD": 7.0}
wanted = os.environ["SUREPICK_READINGS"].split("\\n")
if sys.argv[1] == "ends":
    print(-2.0)
else:
    print("driving ...")
    print(json.dumps({name: values[name] for name in wanted}))
"""

Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(tmp_path)
    Path("drives.toml").write_text(DRIVES)
    Path("drive.py").write_text(DRIVE)
    return lambda *words: CliRunner().invoke(app, [*words, "--store", "sqlite:///drives.db"])


def test_ask_prints_the_readings_and_tell_takes_them_by_name_in_order_and_in_parts(run: Run) -> None:
    run("new", "drives.toml")
    asked = run("ask", "-n", "3").stdout.splitlines()
    assert sorted(asked) == ["0.0\tnorth loop\tAB, BD", "1.0\tsouth loop\tAC, CD", "2.0\tends"]
    assert "0.0: BD" in run("tell", "0.0", "AB=4.1").stdout  # which is still to come
    assert run("tell", "0.0", "5,2").exit_code == 0  # the one that is missing
    assert run("tell", "south loop", "CD=6", "AC=5").exit_code == 0
    asked = json.loads(run("ask", "--json").stdout)["requests"]
    assert asked == [{"token": "2.0", "probe": "ends", "readings": ["value"], "wanted": 1}]
    state = json.loads(run("tell", "2.0", "-1", "--json").stdout)
    assert state["counts"] == {"north loop": 1, "south loop": 1, "ends": 1}


def test_what_is_no_set_of_readings_is_refused_with_their_names(run: Run) -> None:
    run("new", "drives.toml")
    wrong = [("4.1",), ("4.1", "5", "6"), ("AB=4", "5"), ("AB=4", "AB=5"), ("XY=4",)]
    for words in wrong:
        refused = run("tell", "0.0", *words)
        assert refused.exit_code != 0, words
    assert json.loads(run("status", "--json").stdout)["n_told"] == 0


def test_a_program_that_prints_several_numbers_is_run_to_the_end(run: Run) -> None:
    measured = run("run", "drives.toml", "--measure", f"{sys.executable} drive.py {{probe}}")
    assert measured.exit_code == 0, measured.output
    assert "Readings: 5" in measured.stdout
    assert "south loop: AC" in measured.stdout
    assert run("verify").exit_code == 0
    assert run("report").exit_code == 0
    exported = run("export").stdout.splitlines()
    assert exported[0] == "token,probe,reading,value,time,worker,picked,key"
    Path("told.csv").write_text("\n".join(exported))
    run("new", "drives.toml", "--name", "again")
    run("import", "told.csv", "--session", "again")
    first, second = (json.loads(run("status", "--session", n, "--json").stdout) for n in ("drives", "again"))
    assert first["counts"] == second["counts"]
    assert second["status"] == "confident"


def test_a_sheet_has_a_line_for_each_reading(run: Run) -> None:
    run("new", "drives.toml")
    run("sheet", "-o", "sheet.csv", "-n", "3")
    lines = Path("sheet.csv").read_text(encoding="utf-8-sig").splitlines()
    assert lines[0] == "token,probe,reading,value,worker,remarks"
    assert {"t0.0,north loop,AB,,,", "t0.0,north loop,BD,,,"} <= {*lines}
    Path("sheet.csv").write_text("\n".join([lines[0], "t0.0,north loop,AB,4,,", "t0.0,north loop,BD,5,,"]))
    assert json.loads(run("import", "sheet.csv", "--json").stdout)["imported"]["recorded"] == 1


def test_the_example_with_probes_is_checked_forecast_limited_and_compared(run: Run) -> None:
    assert CliRunner().invoke(app, ["init", "drives", "--force"]).exit_code == 0
    shown = CliRunner().invoke(app, ["check", "drives.toml"])
    assert shown.exit_code == 0, shown.output
    assert all(fact in shown.output for fact in ("4 probes", "8 readings", "3 plans"))
    assert "middle street" in shown.output  # how the forecast divides measurements
    found = json.loads(CliRunner().invoke(app, ["limit", "drives.toml", "--json"]).output)
    assert 30 < found["lower_bound"] < 50
    words = ["compare", "drives.toml", "--runs", "2", "--policies", "CombGapE,BetGapE"]
    assert "CombGapE" in CliRunner().invoke(app, words).output  # it is named, and left out
    compared = CliRunner().invoke(app, [*words, "--json"])
    assert [row["policy"] for row in json.loads(compared.stdout)["policies"]] == ["BetGapE"]
    alone = CliRunner().invoke(app, [*words[:4], "--policies", "CombGapE"])
    assert alone.exit_code != 0
