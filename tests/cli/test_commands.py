"""The whole surface: help, global options, mistakes, exit codes, and what small commands load."""

import importlib
import subprocess
import sys

import pytest

from command_line import surepick, view, write_trips
from surepick.cli import COMMANDS, EXPECTED, HELP, SESSION_HELP

WIDTH = 80


def test_the_help_names_every_command_with_its_own_first_line():
    assert surepick().out == surepick("--help").out == HELP
    assert surepick("session").out == SESSION_HELP
    for name, (module, function) in COMMANDS.items():
        first = importlib.import_module(f"surepick.cli.{module}").__dict__[function].__doc__.splitlines()[0]
        text = SESSION_HELP if name.startswith("session ") else HELP
        assert any(first in line or first.rstrip(".") in line for line in text.splitlines()), name
        assert len(first) <= 70
        shown = surepick(*name.split(), "--help")
        assert shown.code == 0
        assert first in shown.out
    assert max(len(line) for line in HELP.splitlines()) <= WIDTH
    assert len(HELP.splitlines()) <= 34


def test_store_and_json_stand_before_or_after_the_command():
    assert surepick("--store", "a.db", "new", "trips.csv").code == 0
    assert surepick("new", "trips.csv", "--store=b.db", "--json").json["session"] == "trips"
    for words in (("--json", "--store", "a.db", "status"), ("status", "--json", "--store", "a.db")):
        assert surepick(*words).json["session"] == "trips"
    said = surepick("status", "--store", "a.db")
    assert "--store a.db" in said.err
    assert surepick("-q", "status", "--store", "a.db").err == ""
    assert surepick("status").code == 2, "there is no surepick.db"


def test_names_that_people_expect_get_the_right_command():
    for name, instead in EXPECTED.items():
        said = surepick(name, "x")
        assert said.code == 2
        assert f"surepick {instead}".split("{")[0].strip()[:30] in " ".join(said.err.split())
    assert "session extend" in surepick("extend", "--delta", "0.01").err
    assert "tell --from" in surepick("imprt").err
    assert "status" in surepick("stauts").err


@pytest.mark.parametrize(
    ("words", "field"),
    [
        (("new", "trips.csv", "--delta", "nan"), "delta"),
        (("new", "trips.csv", "--delta", "1.5"), "delta"),
        (("new", "trips.csv", "--epsilon", "inf"), "epsilon"),
        (("new", "trips.csv", "--budget", "0"), "budget"),
        (("new", "trips.csv", "--policy", "BetGap"), "policy"),
        (("new", "trips.csv", "--incumbent", "Tunel"), "incumbent"),
        (("new",), "file"),
        (("tell", "Tunnel"), "values"),
        (("tell", "Tunnel", "ten"), "values"),
        (("session", "extend"), "delta"),
        (("run", "trips.csv"), "program"),
        (("run", "trips.csv", "--", "./drive.sh"), "measure"),
        (("run", "trips.csv", "--", "sh", "-c", "echo {arm}"), "measure"),
        (("export", "-o", "x.foo"), "path"),
        (("status", "--store="), "store"),
        (("ask", "-o", "x.pdf"), "o"),
        (("frobnicate",), "command"),
    ],
)
def test_a_mistake_names_its_field_and_changes_nothing(words, field):
    if words[0] != "new":
        surepick("new", "trips.csv")
    said = surepick(*words[:1], "--json", *words[1:])
    assert said.code == 2
    assert said.out == ""
    assert said.error["field"] == field
    assert set(said.error) == {"class", "field", "message", "hint"}
    plain = surepick(*words)
    assert plain.code == 2
    assert plain.err.startswith("error: ")


@pytest.mark.parametrize(
    "words", ["check /dev/zero", "tell --from /dev/zero", "verify /dev/zero", "tell road\udcff 3"]
)
def test_a_file_without_end_and_words_that_are_no_text_are_refused(words):
    surepick("new", "trips.csv")
    assert surepick(*words.split()).code == 2


def test_unknown_options_are_refused_and_negative_numbers_are_values(folder):
    write_trips(folder, "cold.csv", guess="-6,-11,-13,-13,-9,-5,-19,-20", truth=None)
    surepick("new", "cold.csv")
    assert surepick("tell", "Tunnel", "-10.5").code == 0
    assert view()["last"]["value"] == -10.5
    for option in ("--wroker", "--minimise", "--measure"):
        said = surepick("tell", "Tunnel", "-10", option, "x", "--json")
        assert (said.code, said.error["class"]) == (2, "UsageError")
    assert view()["n_measured"] == 1


def test_one_of_several_sessions_is_chosen_by_name():
    surepick("new", "trips.csv")
    surepick("new", "trips.csv", "-s", "again")
    said = surepick("ask", "--json")
    assert (said.code, said.error["field"]) == (2, "session")
    assert [row["session"] for row in surepick("status", "--json").json["sessions"]] == ["trips", "again"]
    assert view("again")["session"] == view("-s", "again")["session"] == "again"
    assert "-s again" in surepick("ask", "-s", "again").err
    assert "surepick ask -s trips-2" in surepick("new", "--prior", "trips").err, "it is not the only one"


def test_small_commands_load_nothing_slow():
    surepick("new", "trips.csv")
    code = (
        "import sys, surepick.cli as cli; cli.call(['ask', '--json']); "
        "print([m for m in ('scipy.optimize', 'matplotlib', 'fastapi', 'numba', 'rich') if m in sys.modules])"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert loaded.splitlines()[-1] in ("[]", "['rich']")
