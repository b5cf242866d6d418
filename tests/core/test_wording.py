"""Counts of one are said as such, wherever a person reads them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

import surepick as sp
from surepick import report, views
from surepick.cli import app
from surepick.core.wording import how_many
from surepick.sessions.session import Session
from web_tools import running

COUNTED = "measurement|rival|plan|arm|round|event|run|line|instance|time|warning|entrie|value|worker"
SLIP = re.compile(
    rf"(?<![\d,.])1(?:</strong>)? (?:more |other |unasked |of the first )?(?:(?:{COUNTED}|one)s\b|are\b)"
)


@pytest.fixture
def store(tmp_path: Path) -> str:
    """A session of one arm, two plans, one rival, one round and one measurement."""
    url = f"sqlite:///{tmp_path / 'one.db'}"
    problem = sp.Problem([[1], [-1]], arm_names=["tin"], plan_names=["up", "down"], noise_scale=0.01)
    session = Session.create(url, problem, sp.BetGapE(delta=0.05), name="one", budget=1)
    session.tell(session.ask()[0], 1.0)
    session.record("tin", 1.0)
    session.ask()
    return url


def slips(text: str) -> list[str]:
    return [match.group() for match in SLIP.finditer(text)]


def test_the_search_for_slips_finds_them() -> None:
    assert slips("1 rivals, 21 rivals, <strong>1</strong> measurements, 1 are left") == [
        "1 rivals",
        "1</strong> measurements",
        "1 are",
    ]
    assert not slips("1 rival, 11 plans, 0.1 plans, 1,001 arms, 1 measurement is missing")


def test_numbers_are_said_with_the_word_for_so_many() -> None:
    assert how_many(0, "plan") == "0 plans"
    assert how_many(1.2, "plan") == "1 plan"


@pytest.mark.parametrize("command", ["status", "list", "verify", "doctor", "watch --once"])
def test_the_command_line_says_one(store: str, command: str) -> None:
    result = CliRunner().invoke(app, [*command.split(), "--store", store])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.output
    assert len(result.stdout) > 10
    assert not slips(result.stdout)


def test_checking_simulating_and_comparing_say_one(tmp_path: Path) -> None:
    file = tmp_path / "one.toml"
    table = 'kind = "table"\nplans = [[1], [-1], [1]]\narm_names = ["tin"]\nnoise_scale = 0.1\n'
    file.write_text(table + "[truth]\nmeans = [1.0]\n")
    for command in ("check", "simulate", "compare --runs 1", "limit"):
        result = CliRunner().invoke(app, [*command.split(), str(file)])
        assert result.exit_code == 0, (result.output, result.exception)
        assert not slips(result.stdout)


def test_views_the_report_and_the_certificate_say_one(store: str) -> None:
    session = Session.load(store)
    assert not slips(report.report(session))
    assert not slips(str(session.certificate()))
    assert not slips(str(session.certificate().to_json()))
    page = views.page(views.look(session))
    assert page.rivals.n_rivals == 1
    assert not slips(page.summary.sentence)


def test_every_page_of_the_dashboard_says_one(store: str) -> None:
    with running(store, write=True) as server:
        pages = ["/", *(f"/sessions/one{end}" for end in ("", "/rivals", "/arms", "/log", "/history?at=1"))]
        for page in pages:
            answer = server.client.get(page)
            assert answer.status_code == 200
            assert not slips(answer.text), page


def test_what_a_session_waits_for_is_said_as_one() -> None:
    problem = sp.Problem([[1, 0], [0, 1]], noise_scale=1.0)
    session = Session.create("memory://", problem, sp.Uniform(delta=0.05), name="two", budget=3)
    session.tell(session.ask()[0], 1.0)
    said = views.summary(views.look(session)).sentence
    assert said == "The first round is not complete: 1 measurement is missing."
