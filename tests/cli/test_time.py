"""`surepick time`: the fastest of several commands."""

import csv
import json
from pathlib import Path

import pytest

from command_line import surepick, view
from surepick.measure.timing import load

FAST, SLOW = "true", "sleep 0.02"


def test_the_fastest_command_is_found_with_what_is_proved():
    said = surepick("time", SLOW, FAST, "--name", "slow", "--json", "-o", "times.csv")
    assert said.code == 0
    found = said.json
    assert (found["view"]["plan"], found["view"]["policy"]) == (FAST, "SignRace")
    first, second = found["commands"]
    assert (first["name"], first["ratio"], second["name"], second["command"]) == (FAST, 1.0, "slow", SLOW)
    assert second["slower_in"] <= second["rounds"] == found["rounds"]
    assert second["median"] > 0.02
    rows = list(csv.DictReader(Path("times.csv").read_text().splitlines()))
    assert len(rows) == found["rounds"]
    assert float(rows[0]["slow"]) > 0.02
    assert not Path("surepick.db").exists(), "nothing is kept without a name"


def test_a_race_is_kept_under_its_name_and_resumed_with_its_settings():
    assert surepick("time", FAST, FAST, "-s", "same", "--budget", "6").code == 1
    assert view("same")["n_measured"] == 6
    assert surepick("session", "extend", "-s", "same", "--budget", "8").code == 0
    assert surepick("time", FAST, FAST, "-s", "same", "--json").json["rounds"] == 4
    other = surepick("time", FAST, FAST, "-s", "same", "--epsilon", "2%", "--json")
    assert (other.code, other.error["field"]) == (2, "policy")
    assert surepick("export", "-s", "same", "-o", "report.html").code == 0
    assert surepick("verify", "report.html").code == 0


def test_a_system_that_does_not_know_its_load_counts_as_idle(monkeypatch):
    monkeypatch.delattr("os.getloadavg")  # as on Windows
    assert load() == 0.0


def test_a_difference_that_does_not_matter_ends_a_tie():
    words = ("time", "sleep 0.005", "sleep 0.005", "--epsilon", "90%")
    assert surepick(*words, "-o", "x.md").code == 0
    assert len(Path("x.md").read_text().splitlines()) == 4
    assert surepick(*words, "-o", "x.json").code == 0
    assert json.loads(Path("x.json").read_text())["view"]["state"] == "confident"
    assert surepick(*words, "-o", "x.pdf", "--json").error["field"] == "o"


@pytest.mark.parametrize(
    ("words", "field"),
    [
        ((FAST,), "commands"),
        (("ls | wc", FAST), "shell"),
        (("'ls", FAST), "commands"),
        ((FAST, FAST, "--epsilon", "0.02"), "epsilon"),
        ((FAST, FAST, *["--name", "x"] * 3), "name"),
    ],
)
def test_a_mistake_names_its_field(words, field):
    said = surepick("time", *words, "--json")
    assert (said.code, said.error["field"]) == (2, field)


@pytest.mark.parametrize("words", [("false",), ("no-such-program",), ("sleep 9", "--timeout", "0.05")])
def test_a_command_that_fails_is_an_error(words):
    said = surepick("time", FAST, *words, "--json")
    assert (said.code, said.error["class"]) == (2, "MeasureError")


def test_a_shell_may_ignore_failures_and_each_run_be_prepared():
    words = ("--budget", "4", "--warmup", "0", "--shell", "--prepare", "echo x >> n")
    said = surepick("time", "false || true", "exit 0", *words, "--json")
    assert said.code == 1
    assert Path("n").read_text().count("x") == said.json["view"]["n_measured"] == 4
