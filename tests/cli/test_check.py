"""`init`, `check` and `simulate` for every kind of problem file."""

import json
import math
import sys

import pytest
from typer.testing import CliRunner

from surepick.cli import app, main
from surepick.errors import FileError
from surepick.inputs.kinds import KINDS


def run(*words, code=0):
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == code, result.output
    return result.stdout


def fail(monkeypatch, capsys, *words):
    monkeypatch.setattr(sys, "argv", ["surepick", *map(str, words)])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
    return capsys.readouterr().err


@pytest.mark.parametrize("kind", KINDS)
def test_init_check_and_simulate_work_for_every_kind(tmp_path, kind):
    file = tmp_path / f"{kind}.toml"
    assert f"{kind}.toml" in run("init", kind, "--into", tmp_path)
    understood = json.loads(run("check", file, "--json", "--worlds", "5"))
    assert understood["kind"] == kind
    assert understood["n_plans"] >= 2
    assert understood["arms_that_matter"]
    assert understood["has_truth"]
    cast = understood["forecast"]
    assert cast["from"] == "guess"
    assert 0 < cast["low"] <= (cast["median"] or math.inf) <= (cast["high"] or math.inf)  # cut off: None
    outcome = json.loads(run("simulate", file, "--json"))
    assert outcome["status"] == "confident"


@pytest.mark.parametrize("kind", KINDS)
def test_every_starter_is_commented_and_decides_between_named_arms(tmp_path, kind):
    run("init", kind, "--into", tmp_path)
    text = (tmp_path / f"{kind}.toml").read_text()
    assert text.count("#") >= 4
    answer = run("check", tmp_path / f"{kind}.toml", "--worlds", "2")
    assert "forecast" in answer
    assert "arm 0" not in answer


def test_check_names_the_arms_on_which_all_plans_agree(tmp_path):
    file = tmp_path / "case.toml"
    file.write_text(
        'kind = "table"\nnoise = 1\nplans = [[1, 0, 1], [0, 1, 1], [0, 1, 1]]\narms = ["a", "b", "same"]'
    )
    data = json.loads(run("check", file, "--json"))
    assert (data["n_arms"], data["arms_that_matter"]) == (3, ["a", "b"])
    assert (len(data["merged"]), data["forecast"], data["has_truth"]) == (1, None, False)
    run("check", file)


def test_check_forecasts_from_the_truth_where_there_is_no_guess(tmp_path):
    file = tmp_path / "case.toml"
    file.write_text('kind = "table"\nnoise = 1\nplans = [[1, 0], [0, 1]]\n[truth]\nmeans = [1, 0]')
    data = json.loads(run("check", file, "--json"))
    assert data["forecast"]["from"] == "truth"
    assert data["forecast"]["low"] <= data["forecast"]["high"]


def test_check_lists_the_first_ten_plans(tmp_path):
    file = tmp_path / "ways.csv"
    file.write_text("plan,road,rail\n" + "".join(f"way {k},{k},2\n" for k in range(12)))
    data = json.loads(run("check", file, "--json"))
    assert data["n_plans"] == 12
    assert len(data["first_plans"]) == 10
    assert data["first_plans"][1] == ["way 1", "road + 2 x rail"]
    assert "way 9" in run("check", file)
    assert "way 10" not in run("check", file)


def test_init_never_replaces_a_file_unless_told_to(monkeypatch, capsys, tmp_path):
    run("init", "paths", "--into", tmp_path)
    (tmp_path / "paths.toml").write_text("mine")
    assert "paths.toml" in fail(monkeypatch, capsys, "init", "paths", "--into", tmp_path)
    assert (tmp_path / "paths.toml").read_text() == "mine"
    run("init", "paths", "--into", tmp_path, "--force")
    assert (tmp_path / "paths.toml").read_text() != "mine"


BAD = {
    "paths": [
        ('edges = [["A","B"],["C","D"]]\nsource = "A"\ntarget = "D"', "edges"),
        ('edges = [["A","B"],["B","C"]]\nsource = "A"\ntarget = "Z"', "target"),
        ('edges = "none.csv"\nsource = "A"\ntarget = "Z"', "edges"),
        ('edges = 3\nsource = "A"\ntarget = "Z"', "edges"),
        ('edges = [["A","B"]]\nsource = "A"\ntarget = "B"', None),
        ('edges = [["A","B"]]\nsource = "A"\ntarget = "B"\narms = ["km"]', "arms"),
    ],
    "trees": [('edges = [["A","B"],["C","D"]]', "edges"), ('edges = [["A","B"]]', None)],
    "matchings": [("guess = [[1, nan], [1, nan]]", "guess"), ("guess = [[1, 2], [3]]", "guess")],
    "subsets": [
        ('arms = ["a", "b"]', "k"),
        ('arms = ["a", "b"]\nk = 2', "k"),
        ('arms = ["a", "b"]\nsets = [["a"], ["c"]]', "sets"),
        ('arms = ["a", "b"]\nsets = 3', "sets"),
    ],
    "production": [
        ("use = [[1, 1]]\nlimits = [-1]\nguess = [1, 1]", None),
        ("use = [[1, -1]]\nlimits = [1]\nguess = [1, 1]", None),
        ("use = [[1, 1]]\nlimits = [1]\nguess = [1, 1]\nupper = -1", "lower"),
        ("use = [[1, 1]]\nguess = [1, 1]", "limits"),
        ('program = "none.mps"', "program"),
        ('program = "none.mps"\nuse = [[1]]', "program"),
        ('program = "none.mps"\nlimits = [1]', "limits"),
        ("use = [[1, 1]]\nlimits = [1]\nguess = [1, 1]\nwhole = 3", "whole"),
    ],
    "portfolio": [
        ("guess = [1, 2]\nupper = 0.2", "budget"),
        ("guess = [1, 2]\ngroups.g = 3", "groups.g"),
        ("guess = [1, 2]\ngroups.g = { assets = ['x'], most = 1 }", "groups"),
    ],
    "transport": [
        ("supply = [1, -1]\ndemand = [0]\nguess = [[1], [1]]", "supply"),
        ("supply = [1]\ndemand = [2]\nguess = [[1]]", "supply"),
    ],
    "knapsack": [("weights = [4, 5]\nguess = [4, 5]\ncapacity = 10\ncopies = -1", "copies")],
}


@pytest.mark.parametrize(
    ("kind", "text", "field"), [(kind, *case) for kind, cases in BAD.items() for case in cases]
)
def test_bad_input_of_every_kind_is_refused_with_its_key(monkeypatch, capsys, tmp_path, kind, text, field):
    file = tmp_path / "case.toml"
    file.write_text(f'kind = "{kind}"\n{text}\n')
    refused = CliRunner().invoke(app, ["check", str(file)]).exception
    assert isinstance(refused, FileError)
    assert refused.field == field
    assert "Traceback" not in fail(monkeypatch, capsys, "check", file)


BRACKETS = """kind = "table"
title = "Milk [kg] [/]"
plans = [[1, 0, 1, 5], [0, 1, 1, 5], [1, 1, 0, 5], [1, 0, 1, 5]]
arms = ["ferry [kg]", "lot [3]", "[/red] way", "same [/]"]
plan_names = ["[/]", "[bold]north", "[x", "twin [/bold]"]
noise = 0.5
guess = [1, 2, 3, 1]
spread = 0.2

[truth]
means = [1, 2, 3, 1]
"""


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (("check",), ["Milk [kg] [/]", "same [/]", "'twin [/bold]' with '[/]'", "ferry [kg]"]),
        (("simulate",), ["[bold]north", "lot [3]"]),
        (("limit",), ["Milk [kg] [/]", "[bold]north", "ferry [kg]"]),
        (("compare", "--runs", "2", "--policies", "Uniform"), ["Milk [kg] [/]"]),
    ],
)
def test_names_with_brackets_are_shown_as_they_are(tmp_path, words, shown):
    (tmp_path / "milk.toml").write_text(BRACKETS)
    text = " ".join(run(*words, tmp_path / "milk.toml").split())
    for name in shown:
        assert name in text


def test_ties_of_a_transport_are_named_with_an_epsilon_before_and_after_measuring(tmp_path):
    file = tmp_path / "freight.toml"
    (tmp_path / "hours.csv").write_text(",Mill,Port,Market\nNorth,2,3,4\nSouth,3,4,6\n", encoding="utf-8")
    file.write_text(
        'kind = "transport"\nsupply = [60, 40]\ndemand = [50, 30, 20]\nguess = "hours.csv"\nspread = 0.0\n'
        'noise = 1.0\n[truth]\nmeans = "guess"\n',
        encoding="utf-8",
    )
    assert "epsilon = 20" in " ".join(run("check", file).split())
    assert json.loads(run("check", file, "--json"))["closest_call"]["epsilon"] == 20.0
    assert json.loads(run("check", file, "--epsilon", "20", "--json"))["closest_call"] is None
    assert "(30 x North" in " ".join(run("limit", file).split())
    spent = json.loads(run("simulate", file, "--budget", "300", "--json", code=1))
    assert spent["n_measurements"] == 300
    assert "epsilon = " in spent["estimates"]["what_if"]
