"""No page waits for a session whose loops are being compiled: it is shown without, and then changes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from surepick.sessions.session import Session
from web_tools import Running, running

if TYPE_CHECKING:
    from playwright.sync_api import Page


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Until it is set, the session "middle" cannot be opened, as if a compiler were at work."""
    opened, load = threading.Event(), Session.load

    def slow(store: Any, name: str, **options: Any) -> Session:
        if name == "middle":
            opened.wait(60)
        return load(store, name, **options)

    monkeypatch.setattr(Session, "load", slow)
    yield opened
    opened.set()


@pytest.fixture
def impatient(store: str, gate: threading.Event) -> Iterator[Running]:
    with running(store, patience=0.3) as server:
        yield server
        gate.set()  # a server that stops waits for its threads


def test_the_list_shows_the_others_and_then_the_one_that_was_late(
    impatient: Running, gate: threading.Event, page: Page
) -> None:
    expect = pytest.importorskip("playwright.sync_api").expect
    page.goto(f"{impatient.url}/")
    late = page.locator(".tile", has=page.get_by_role("link", name="middle"))
    expect(late.locator(".badge")).to_have_text("opening")
    other = page.locator(".tile", has=page.get_by_role("link", name="sure"))
    expect(other.locator(".badge")).to_have_text("confident")
    gate.set()
    expect(late.locator(".badge")).to_have_text("running")  # without a reload


def test_a_page_says_that_it_is_being_opened_and_then_shows_the_session(
    impatient: Running, gate: threading.Event, page: Page
) -> None:
    expect = pytest.importorskip("playwright.sync_api").expect
    page.goto(f"{impatient.url}/sessions/middle")
    expect(page.get_by_text("The session is being opened")).to_be_visible()
    gate.set()
    expect(page.locator(".answer")).to_be_visible()
    expect(page.get_by_text("The session is being opened")).to_have_count(0)


def test_programs_are_told_to_come_back_and_other_pages_do_not_wait(
    impatient: Running, gate: threading.Event
) -> None:
    with httpx.Client(base_url=impatient.url, timeout=30) as client:
        waiting = [client.get("/sessions/middle") for _ in range(6)]  # more than there are threads
        assert {one.status_code for one in waiting} == {202}
        told = client.get("/api/sessions/middle")
        assert (told.status_code, "retry-after" in told.headers) == (503, True)
        assert "still being opened" in told.json()["error"]
        assert client.get("/sessions/nobody").status_code == 404
        gate.set()
        impatient_no_more = next(one for one in _until_there(client) if one.status_code != 202)
        assert impatient_no_more.status_code == 200


def _until_there(client: httpx.Client) -> Iterator[httpx.Response]:
    for _ in range(200):
        yield client.get("/sessions/middle")


def test_a_session_that_cannot_be_read_says_why_and_is_tried_again(
    store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    load, wrong = Session.load, [True]

    def broken(store: Any, name: str, **options: Any) -> Session:
        if name == "middle" and wrong[0]:
            raise ValueError("a damaged page")
        return load(store, name, **options)

    monkeypatch.setattr(Session, "load", broken)
    # the server hangs up after an error of its own, so that no connection is used twice
    options = {"timeout": 60, "headers": {"connection": "close"}}
    with running(store) as server, httpx.Client(base_url=server.url, **options) as client:
        assert "a damaged page" in client.get("/").text
        assert client.get("/sessions/middle").status_code == 500
        wrong[0] = False
        assert client.get("/sessions/middle").status_code == 200
