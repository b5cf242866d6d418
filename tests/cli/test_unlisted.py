"""Commands on plans that are not listed: from files, and from a function that only Python has."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

import surepick as sp
from surepick import problems
from surepick.cli import app
from surepick.core.oracle_problem import OracleProblem
from surepick.errors import FileError, MissingFunctionError
from surepick.inputs.load import read_problem
from surepick.simulation.comparison import is_error, loss

CABLES = """
kind = "trees"
title = "Cables"
edges = [["A", "B", 4], ["B", "C", 5], ["A", "C", 4.5], ["C", "D", 3], ["B", "D", 6], ["A", "D", 7]]
list_plans = false
spread = 1.0
noise = 0.5

[truth]
means = [4.2, 5.5, 4.0, 3.1, 6.0, 6.5]
"""
MEANS = {"A - B": 4.2, "B - C": 5.5, "A - C": 4.0, "C - D": 3.1, "B - D": 6.0, "A - D": 6.5}
FILES = {
    "paths": """
kind = "paths"
noise = 1
edges = [["A", "B", 4], ["B", "D", 5], ["A", "C", 3], ["C", "D", 8], ["B", "C", 1]]
source = "A"
target = "D"
list_plans = false
[truth]
means = [4.2, 5.5, 2.8, 8.9, 1.0]
""",
    "trees": CABLES,
    "matchings": """
kind = "matchings"
noise = 1
guess = [[4, 6, nan], [5, 5, 1], [2, 3, 4]]
row_names = ["Ann", "Bob", "Cleo"]
list_plans = false
[truth]
means = "guess"
""",
    "subsets": """
kind = "subsets"
noise = 1
arms = ["red", "green", "blue", "black", "white"]
k = 2
list_plans = false
guess = [1, 2, 3, 4, 5]
[truth]
means = "guess"
""",
    "knapsack": """
kind = "knapsack"
noise = 1
capacity = 20
weights = [3, 4, 7]
copies = [2, 3, 2]
guess = [3.0, 5.0, 7.0]
list_plans = false
[truth]
means = [3.2, 5.1, 6.6]
""",
    "production": """
kind = "production"
noise = 1
use = [[1, 2], [3, 1]]
limits = [8, 9]
whole = true
variable_names = ["chairs", "tables"]
guess = [3.0, 4.0]
list_plans = false
[truth]
means = [3.3, 3.9]
""",
}
ANSWERS = {
    "paths": "A -> C -> B -> D",
    "trees": "A - B + A - C + C - D",
    "matchings": "Ann: column 0, Bob: column 2, Cleo: column 1",
    "subsets": "black + white",
    "knapsack": "3 x item 1 + item 2",
    "production": "2 x chairs + 3 x tables",
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SUREPICK_STORE", "sqlite:///surepick.db")
    return tmp_path


def write(folder, text=CABLES, name="cables.toml"):
    file = folder / name
    file.write_text(text)
    return str(file)


def call(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def answer(*words, code=0):
    result = call(*words, "--json")
    assert result.exit_code == code, result.output + repr(result.exception)
    return json.loads(result.stdout)


@pytest.mark.parametrize("kind", FILES)
def test_a_file_without_a_list_decides_between_all_plans(folder, kind):
    file = write(folder, FILES[kind])
    loaded = read_problem(file)
    assert isinstance(loaded.problem, OracleProblem)
    assert loaded.guess is not None
    found = answer("simulate", file)
    assert (found["plan"], found["policy"]) == (ANSWERS[kind], "BetGapE")
    assert found["times_the_limit"] > 0


@pytest.mark.parametrize(
    "change",
    [
        ("list_plans = false", "list_plans = 0"),
        ("spread = 1.0", "n_draws = 10"),
        ("spread = 1.0", "n_best = 10"),
        ("spread = 1.0", "every = true"),
    ],
)
def test_keys_about_a_list_are_refused(folder, change):
    with pytest.raises(FileError):
        read_problem(write(folder, CABLES.replace(*change)))


@pytest.mark.parametrize(
    "text",
    [
        'kind = "table"\nnoise = 1\nplans = [[1, 0], [0, 1]]',
        'kind = "transport"\nnoise = 1\nsupply = [1]\ndemand = [1]\nguess = [[1]]',
        'kind = "portfolio"\nnoise = 1\nguess = [1, 2]\nn_draws = 9',
        'kind = "production"\nuse = [[1, 1]]\nlimits = [1]\nguess = [1, 1]\nwhole = [true, false]',
        'kind = "subsets"\nnoise = 1\narms = ["a", "b"]\nsets = [["a"], ["b"]]',
    ],
)
def test_a_kind_that_cannot_says_why(folder, text):
    with pytest.raises(FileError):
        read_problem(write(folder, f"list_plans = false\n{text}"))


def test_check_counts_the_plans_and_forecasts(folder):
    file = write(folder)
    data = answer("check", file, "--worlds", 4)
    assert data["listed"] is False
    assert (data["n_plans"], data["n_arms"]) == (16, 6)
    assert 0 < data["forecast"]["low"] <= data["forecast"]["median"]
    assert "C - D" in call("check", file, "--worlds", 2).output


def test_limit_and_compare_know_the_plan(folder):
    file = write(folder)
    found = answer("limit", file)
    listed = write(folder, CABLES.replace("list_plans = false", "every = true"), "listed.toml")
    expected = answer("limit", listed)
    assert found["best_plan"] == expected["best_plan"] == ANSWERS["trees"]
    assert found["characteristic_time"] == pytest.approx(expected["characteristic_time"], rel=2e-3)
    (row,) = answer("compare", file, "--runs", 5)["policies"]
    assert (row["policy"], row["errors"], row["cut_off"]) == ("BetGapE", 0, 0)
    both = answer("compare", file, "--runs", 1, "--policies", "BetGapE,GenTSExplore", "--budget", 50)
    assert [row["policy"] for row in both["policies"]] == ["BetGapE", "GenTSExplore"]


def test_a_wrong_answer_would_be_counted(folder):
    loaded = read_problem(write(folder))
    truth = sp.Gaussian(loaded.means, 0.5)
    outcome = sp.simulate(loaded.problem, truth, policy=sp.BetGapE())
    assert not is_error(loaded.problem, truth, outcome)
    worse = replace(outcome, plan=(0.0, 1.0, 1.0, 1.0, 0.0, 0.0))
    assert is_error(loaded.problem, truth, worse)
    assert loss(loaded.problem, worse.plan, loaded.means) == pytest.approx(5.5 - 4.2)


def test_a_session_from_ask_to_verify(folder):
    answer("new", write(folder, CABLES.replace("noise = 0.5", "noise = 0.1")))
    while True:
        result = call("ask", "-n", 6, "--json")
        if result.exit_code == 1:
            break
        for request in json.loads(result.stdout)["requests"]:
            answer("tell", request["token"], MEANS[request["arm"]])
    status = answer("status")
    assert status["answer"] == ANSWERS["trees"]
    assert status["certificate"]["plan"] == [1, 0, 1, 1, 0, 0]
    assert status["certificate"]["rivals"][0]["plan_name"].count(" + ") == 2
    (folder / "certificate.json").write_text(json.dumps(status))
    assert answer("verify", folder / "certificate.json")["holds"]
    assert "A - B + A - C + C - D" in call("status").output


# A function that only Python has


def least_tree(weights):
    return problems.tree_family([("A", "B"), ("B", "C"), ("A", "C")]).best(weights)


@pytest.fixture
def of_python(folder):
    problem = OracleProblem(least_tree, 3, noise=0.3, arms=["AB", "BC", "AC"], n_plans=3, goal="smallest")
    session = sp.Session.create("sqlite:///surepick.db", "mine", problem, policy=sp.BetGapE())
    for request in session.ask(3):
        session.tell(request, float(request.arm))
    session.store.close()
    return folder


def test_commands_show_what_only_python_can_drive(of_python):
    assert answer("status")["n_told"] == 3
    assert "mine" in call("status").output
    assert answer("list")[0]["measurements"] == 3
    assert len([e for e in answer("log", "--last", 0) if e["kind"] == "measured"]) == 3
    assert call("export").output.count("\n") == 4
    call("export", "--format", "json", "-o", "all.json")
    created = json.loads(Path("all.json").read_text())["log"]["events"][0]["body"]
    assert json.loads(created)["problem"]["oracle"]["kind"] == "function"


@pytest.mark.parametrize(
    "words", [["ask"], ["tell", "0.1", "1.0"], ["close"], ["extend", "--budget", "9"], ["verify"]]
)
def test_other_commands_say_that_it_has_to_be_driven_from_python(of_python, words):
    result = call(*words)
    assert isinstance(result.exception, MissingFunctionError)
    assert answer("status")["n_told"] == 3


# The demo
