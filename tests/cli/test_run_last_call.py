"""`run --last-call`: the last share of the budget is one block and a test."""

import json
import sys

import pytest
from typer.testing import CliRunner

import surepick as sp
from surepick.cli import app
from surepick.errors import ParameterError

FILE = """
kind = "table"
noise = 1
plans = [[1, 0], [0, 1]]
arms = ["road", "rail"]
"""
MEASURE = "import sys, random; print({'road': 0.6, 'rail': 0.0}[sys.argv[1]] + random.gauss(0, 1))"


@pytest.fixture
def place(tmp_path):
    (tmp_path / "trips.toml").write_text(FILE, encoding="utf-8")
    (tmp_path / "drive.py").write_text(MEASURE, encoding="utf-8")
    return tmp_path


def run(place, *options):
    measure = f"{sys.executable} {place}/drive.py {{arm}}"
    common = ["--measure", measure, "--store", f"sqlite:///{place}/trips.db", "--json"]
    return CliRunner().invoke(app, ["run", str(place / "trips.toml"), *common, *options])


def test_it_is_called_once_and_spends_the_budget(place):
    done = run(place, "--budget", "24", "--delta", "0.0001", "--last-call", "0.5", "--gaussian")
    assert done.exit_code in (0, 1), done.output
    session = sp.Session.load(f"sqlite:///{place}/trips.db")
    calls = [json.loads(event.body) for event in session.events() if event.kind == "called"]
    assert len(calls) == 1
    assert calls[0]["gaussian"]
    assert 8 <= calls[0]["n"] <= 14
    assert session.ledger().n_measurements == 24
    assert session.certificate().last_call == calls[0]["n"]


@pytest.mark.parametrize(
    ("options", "words"),
    [(["--last-call", "0.5"], "--budget"), (["--last-call", "1.5", "--budget", "20"], "between 0 and 1")],
)
def test_a_share_of_nothing_is_refused_before_anything_is_measured(place, options, words):
    done = run(place, *options)
    assert isinstance(done.exception, ParameterError)
    assert words in str(done.exception)
    assert sp.Session.load(f"sqlite:///{place}/trips.db").ledger().n_told == 0
