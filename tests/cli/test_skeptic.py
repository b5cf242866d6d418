"""The journey of a skeptic: is the promise true, does the certificate hold, is a forgery caught?"""

import json
import sqlite3
from contextlib import closing

import numpy as np
import pytest
from typer.testing import CliRunner

import surepick as sp
from surepick.cli import app
from surepick.planning.comparison import binomial_interval

ROADS = """
kind = "table"
title = "The way to the customer"
unit = "min"
plans = [[1, 0, 1, 0], [0, 1, 1, 0], [0, 1, 0, 1]]
arm_names = ["ring road", "bridge", "tunnel", "ferry"]
minimize = true
noise_scale = 1.0
[truth.means]
"ring road" = 9.0
bridge = 8.4
tunnel = 4.0
ferry = 5.0
"""
MINUTES = np.array([9.0, 8.4, 4.0, 5.0])


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SUREPICK_STORE", raising=False)
    (tmp_path / "roads.toml").write_text(ROADS)
    return tmp_path


def run(*words, code=0):
    result = CliRunner().invoke(app, list(words))
    assert result.exit_code == code, (result.output, result.exception)
    return result.stdout


def test_the_promise_is_kept_in_rehearsals_and_a_false_assumption_is_seen(folder):
    problem = sp.problems.load("roads.toml").problem

    def at_least_wrong(problem, n=150):
        """A lower bound on the share of wrong answers that errs once in a million tests."""
        policy, truth = sp.BetGapE(delta=0.1), sp.Gaussian(MINUTES, 1.0)
        runs = (sp.simulate(problem, policy, truth, seed=seed, allow_noisier=True) for seed in range(n))
        wrong = sum(outcome.plan != 1 for outcome in runs)
        return binomial_interval(wrong, n, confidence=1 - 1e-6)[0]

    assert at_least_wrong(problem) <= 0.1
    assert at_least_wrong(problem.with_noise(np.full(4, 0.03)), n=300) > 0.1  # vouched for too little noise
    shown = " ".join(run("simulate", "roads.toml").split())
    assert "The truth of this simulation agrees: it is the best plan." in shown


def measured(rng):
    session = sp.Session.load("surepick.db")
    while requests := session.ask():
        session.tell(requests[0], float(MINUTES[requests[0].arm] + rng.standard_normal()))
    return session


def test_a_certificate_holds_and_every_forgery_of_it_is_caught(folder):
    run("new", "roads.toml")
    session = measured(np.random.default_rng(1))
    status = json.loads(run("status", "--json"))
    kept = folder / "certificate.json"
    kept.write_text(json.dumps(status["certificate"]))
    assert "holds" in run("verify", "certificate.json")
    forgeries = {
        "plan": 0,
        "plan_name": "plan 0",
        "delta": 0.001,
        "n_measurements": 5,
        "title": "Another way",
        "lead_value": [1.0, 0.1],
        "closest_rival": "plan 7",
        "guarantee": "the best plan, wrong with probability at most 0.001",
        "noise": "none",
    }
    for key, value in forgeries.items():
        kept.write_text(json.dumps({**status["certificate"], key: value}))
        assert key in run("verify", "certificate.json", code=1), key
    left_out = {key: value for key, value in status["certificate"].items() if key != "risk"}
    kept.write_text(json.dumps(left_out))
    assert "risk" in run("verify", "certificate.json", code=1)
    assert session.verify(status["certificate"]).holds


@pytest.mark.parametrize("change", ["value", "reason", "dropped"])
def test_a_log_that_was_changed_is_caught_even_where_it_was_voided(folder, change):
    run("new", "roads.toml")
    slip = sp.Session.load("surepick.db").ask()[0]
    run("tell", slip.token, "1200", "--yes")
    measured(np.random.default_rng(2))
    run("void", slip.token, "--reason", "typed 1200 for 12.00")
    measured(np.random.default_rng(3))
    assert "holds" in run("verify")
    with closing(sqlite3.connect("surepick.db")) as connection, connection:
        if change == "value":
            connection.execute("UPDATE surepick_events SET body = replace(body, '1200.0', '12.0')")
        elif change == "reason":
            connection.execute("UPDATE surepick_events SET body = replace(body, 'typed', 'liked')")
        else:
            connection.execute("DELETE FROM surepick_events WHERE kind = 'voided'")
    assert "does not hold" in run("verify", code=1)
