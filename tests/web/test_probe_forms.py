"""Measuring probes in the dashboard: a field for each reading, by form, by JSON and in a real browser."""

from __future__ import annotations

from typing import TYPE_CHECKING

import surepick as sp
from surepick.sessions.session import Session
from web_tools import Running

if TYPE_CHECKING:
    from playwright.sync_api import Page

DRIVES = sp.Problem(
    {"north": "AB + BD", "south": "AC + CD"},
    goal="smallest",
    measure={"north loop": ["AB", "BD"], "south loop": ["AC", "CD"], "ends": {"AB": 1, "AC": -1}},
    noise=1,
)


def begun(store: str, name: str) -> Session:
    return Session.create(store, name, DRIVES, policy=sp.BetGapE())


def test_each_reading_has_a_field_and_what_is_missing_may_come_later(writing: Running, store: str) -> None:
    session = begun(store, "drives")
    shown = writing.client.get("/sessions/drives").text
    assert shown.count('class="readings"') == 2
    form = {"form_key": writing.form_key(), "token": "0.0 north loop", "who": "Ann", "reading-0-0": "4,5"}
    first = writing.client.post("/sessions/drives/tell", data=form)
    assert "done=partial" in first.headers["location"]
    told = writing.client.get(first.headers["location"]).text
    assert "north loop" in told
    again = writing.client.post("/sessions/drives/tell", data={**form, "reading-0-1": "5"})
    assert "done=recorded" in again.headers["location"]
    assert [(m.reading, m.value) for m in session.told("0.0")] == [("AB", 4.5), ("BD", 5.0)]


def test_a_mistake_in_a_reading_is_shown_and_nothing_that_was_entered_is_lost(
    writing: Running, store: str
) -> None:
    session = begun(store, "mistakes")
    form = {"form_key": writing.form_key(), "token": "1.0 south loop", "who": "Ann", "value": "9"}
    for entered in (
        {},
        {"reading-1-0": "wet", "reading-1-1": "7"},
        {"reading-1-0": "6", "reading-1-1": "1e300"},
    ):
        answer = writing.client.post("/sessions/mistakes/tell", data={**form, **entered})
        assert answer.status_code == 400
        assert 'id="value-error"' in answer.text
        assert all(f'value="{text}"' in answer.text for text in entered.values())
    assert session.ledger().n_told == 0


def test_a_play_has_a_field_for_each_of_its_arms_also_one_that_was_asked_for_later(
    writing: Running, store: str
) -> None:
    roads = [("A", "B"), ("B", "C"), ("C", "A")]
    problem = sp.problems.tree_family(roads).oracle_problem(measure="plan arms", noise=1)
    session = Session.create(store, "plays", problem, policy=sp.BetGapE())
    for _ in range(6):
        first = session.pending(1)[0]
        shown = writing.client.get("/sessions/plays").text
        assert f"Readings of {first.probe_name}" in shown
        fields = {f"reading-{first.probe}-{k}": str(k + 1) for k in range(2)}
        chosen = {"token": f"{first.token} {first.probe_name}", "who": "Ann"}
        form = {"form_key": writing.form_key(), **chosen, **fields}
        told = writing.client.post("/sessions/plays/tell", data=form)
        assert "done=recorded" in told.headers["location"]
    assert session.ledger().n_told == 6
    assert [m.reading for m in session.told("0.0")] == list(session.reads(0))


def test_readings_are_told_by_name_over_json(writing: Running, store: str) -> None:
    begun(store, "json")
    told = writing.client.post(
        "/api/sessions/json/tell", json={"token": "0.0", "arm": "north loop", "value": {"AB": 4.0}}
    )
    assert (told.status_code, told.json()["receipt"]) == (200, "partial")
    wrong = writing.client.post("/api/sessions/json/tell", json={"token": "1.0", "value": {"XY": 4.0}})
    assert wrong.status_code == 400
    assert "gives 2 readings" in wrong.json()["error"]


def test_in_a_browser_only_the_fields_of_the_chosen_probe_are_shown(
    writing: Running, store: str, page: Page
) -> None:
    begun(store, "browser")
    page.goto(f"{writing.url}/sessions/browser")
    assert page.locator("fieldset.readings:visible").count() == 1
    assert page.get_by_label("AB", exact=True).is_visible()
    assert not page.get_by_label("Value").is_visible()
    page.select_option("#token", value="1.0 south loop")
    assert page.locator("fieldset.readings:visible").count() == 1
    assert page.get_by_label("AC", exact=True).is_visible()
