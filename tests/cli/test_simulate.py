import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from surepick.cli import app, main

ROOT = Path(__file__).parent.parent.parent
ROUTES = str(ROOT / "examples" / "routes.toml")


def run(*words, code=0):
    result = CliRunner().invoke(app, words)
    assert result.exit_code == code, result.output
    return result.output


def fail(monkeypatch, capsys, *words):
    monkeypatch.setattr(sys, "argv", ["surepick", *words])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
    return capsys.readouterr().err


def test_help_names_every_command_and_has_an_example():
    text = run("--help")
    for command in ("demo", "simulate", "compare", "limit"):
        assert command in text
    assert "surepick simulate table.toml" in re.sub(r"\s+", " ", run("simulate", "--help"))


def test_simulate_answers_with_names_and_its_guarantee():
    text = run("simulate", ROUTES, "--seed", "3")
    assert "Tunnel and harbour" in text
    assert "at most 0.05" in re.sub(r"[\s│]+", " ", text)


def test_simulate_in_json_is_the_same_for_the_same_seed():
    first, again = (json.loads(run("simulate", ROUTES, "--json", "--seed", "3")) for _ in range(2))
    assert first["plan"] == "Tunnel and harbour"
    assert first["status"] == "confident"
    assert sum(first["counts"].values()) == first["n_measurements"]
    first.pop("seconds"), again.pop("seconds")
    assert first == again


def test_a_spent_budget_is_exit_code_one_and_promises_nothing():
    data = json.loads(run("simulate", ROUTES, "--budget", "20", "--json", code=1))
    assert data["plan"] is None
    assert data["status"] == "budget spent"


def test_compare_shows_policies_side_by_side():
    words = ("compare", ROUTES, "--runs", "4", "--policies", "CombGapE,CombGapE:radius=published,Uniform")
    assert "Uniform" in run(*words)
    data = json.loads(run(*words, "--json"))
    assert [row["policy"] for row in data["policies"]] == ["CombGapE", "CombGapE:radius=published", "Uniform"]
    assert all(row["errors"] == 0 and row["runs"] == 4 for row in data["policies"])


def test_limit_shows_the_allocation():
    assert "market street" in run("limit", ROUTES)
    data = json.loads(run("limit", ROUTES, "--json"))
    assert data["bracket"][0] <= data["characteristic_time"] <= data["bracket"][1]
    assert sum(data["allocation"].values()) == pytest.approx(1.0)


def test_demo_decides_the_cities():
    text = run("demo", "--seed", "12")  # says that it compiles, where it has to
    data = json.loads(run("demo", "--json", "--seed", "12"))
    assert (data["status"], data["policy"]) == ("confident", "BetGapE")
    assert data["loss"] == 0
    assert data["list"]["n_plans"] > 500
    assert "Manchester" in text


def test_a_file_without_truth_says_what_to_add(monkeypatch, capsys, tmp_path):
    file = tmp_path / "two.toml"
    file.write_text('kind = "table"\nnoise = 1\nplans = [[1, 0], [0, 1]]\n')
    assert "[truth]" in fail(monkeypatch, capsys, "simulate", str(file))


def test_importing_surepick_loads_nothing_heavy():
    code = (
        "import sys, surepick, surepick.cli;"
        "heavy = ('numba', 'scipy', 'pandas', 'ot', 'psycopg', 'matplotlib');"
        "print([m for m in heavy if m in sys.modules])"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"


GUESSED = """
plan,bus,train,walk
by bus,1,,1
by train,,1,1
guess,20,26,5
spread,2,2,2
noise,4,4,4
truth,20,25,5
goal,smallest,,
"""


def test_simulate_begins_with_the_guess_of_the_file(tmp_path):
    file = tmp_path / "trips.csv"
    file.write_text(GUESSED.strip(), encoding="utf-8")
    with_it, without = (
        json.loads(run("simulate", str(file), "--json", *words)) for words in ((), ("--no-guess",))
    )
    assert with_it["past"] == {"bus": 4.0, "train": 4.0, "walk": 4.0}
    assert without["past"] is None
    assert with_it["n_measurements"] != without["n_measurements"]
    assert "guess" in run("simulate", str(file))
    assert "guess" not in run("simulate", str(file), "--no-guess")
    assert json.loads(run("simulate", str(file), "--json", "--policy", "CombGapE"))["past"] is None
