"""Pages show what is recorded, in HTML and in JSON, and looking changes nothing."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import session_tools as tools
import surepick as sp
from surepick.sessions.session import Session
from surepick.store import Draft
from surepick.web.app import create_app
from surepick.web.pages import ROWS, SESSIONS
from surepick.web.session_cache import name_of, slug_of
from surepick.web.settings import Settings
from web_tools import Running, positions, running

DOCS = Path(__file__).parent.parent.parent / "docs"
NAMES = ("sure", "middle", "fresh")
SESSION_PAGES = ("", "/rivals", "/arms", "/log", "/history?at=7", "/past?at=7")
FULL_PAGES = [
    "/",
    *(f"/sessions/{name}{page}" for name in NAMES for page in SESSION_PAGES),
]


def routes() -> list[tuple[str, str]]:
    guard, _ = create_app(Settings("memory://"))
    served = [route for route in guard.app.routes if route.path != "/static"]  # a folder, not a route
    return sorted((method, route.path) for route in served for method in route.methods)


@pytest.mark.parametrize("path", FULL_PAGES)
def test_every_page_is_there(looking: Running, path: str) -> None:
    answer = looking.client.get(path)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("text/html")
    assert "None" not in re.sub(r"<[^>]*>", "", answer.text)


@pytest.mark.parametrize("path", [path for path in FULL_PAGES if "/past" not in path])
def test_every_page_has_a_json_twin(looking: Running, path: str) -> None:
    answer = looking.client.get("/api" + path)
    assert answer.status_code == 200
    assert isinstance(answer.json(), dict)


def test_pages_without_write_have_no_form_but_the_slider(looking: Running) -> None:
    page = looking.client.get("/sessions/middle").text
    assert re.findall(r'<form[^>]*method="post"', page) == []
    assert "New session" not in page


def test_the_certificate_can_be_had_and_holds(looking: Running, store: str) -> None:
    answer = looking.client.get("/sessions/sure/certificate.json")
    assert answer.headers["content-disposition"] == 'attachment; filename="certificate-sure.json"'
    assert Session.load(store, "sure").verify(answer.json()).holds
    refused = looking.client.get("/sessions/middle/certificate.json")
    assert refused.status_code == 400
    assert "still running" in refused.text


def test_the_past_is_what_the_session_recorded_then(looking: Running) -> None:
    now = looking.client.get("/api/sessions/sure").json()
    early = looking.client.get("/api/sessions/sure/history?at=8").json()
    assert early["at"] <= 8 < now["at"]
    assert early["summary"]["is_past"]
    assert sum(arm["count"] for arm in early["arms"]["rows"]) == early["at"]
    fragment = looking.client.get("/sessions/sure/past?at=8").text
    assert early["summary"]["sentence"].split(" ")[0].strip("“”") in fragment
    assert "<html" not in fragment


def test_a_session_that_is_not_there_is_not_found(looking: Running) -> None:
    for path in ("/sessions/nobody", "/api/sessions/nobody", "/sessions/nobody/events", "/sessions/~%00"):
        answer = looking.client.get(path)
        assert answer.status_code == 404, path
    assert "no session named" in looking.client.get("/api/sessions/nobody").json()["error"]


@pytest.mark.parametrize("query", ["page=0", "page=x", "page=99999999999", "page=-1"])
def test_a_page_number_that_is_none_is_refused(looking: Running, query: str) -> None:
    assert looking.client.get(f"/sessions/sure/log?{query}").status_code == 400
    assert looking.client.get("/sessions/sure/log?page=1000").status_code == 200


def test_the_log_is_paged_and_complete(looking: Running, store: str) -> None:
    session = Session.load(store, "sure")
    events = list(session.events())
    first = looking.client.get("/api/sessions/sure/log").json()
    assert first["n"] == len(events)
    rows = []
    for page in range(1, first["n_pages"] + 1):
        rows += looking.client.get(f"/api/sessions/sure/log?page={page}").json()["log"]
    assert [row["position"] for row in rows] == [event.position for event in events][::-1]
    assert len(first["log"]) == min(ROWS, len(events))


def test_looking_never_decides_leases_or_writes(writing: Running, store: str) -> None:
    """Not even when a worker died before it could record the decision that its last measurement allowed."""
    session = Session.create(store, "undecided", tools.problem(), policy=sp.CombGapE())
    for token in [request.token for request in session.pending()]:
        arm, place = map(int, token.split("."))
        body = json.dumps({"arm": arm, "index": place, "value": 1.0})
        head = session.store.head("undecided")
        session.store.append("undecided", [Draft("measured", body, 0.0, f"told:{token}")], expected=head)
    before = positions(store)
    for path in [path for method, path in routes() if method == "GET"]:
        for name in ("middle", "undecided"):
            if path.endswith("/events"):
                with writing.client.stream("GET", path.replace("{slug}", name)) as answer:
                    next(lines for lines in answer.iter_lines() if lines.startswith("data:"))
            else:
                answer = writing.client.get(path.replace("{slug}", name))
            assert answer.status_code in (200, 400, 404), path
    assert positions(store) == before
    page = writing.client.get("/sessions/undecided").text
    assert "Decide what is next" in page
    key = writing.form_key()
    assert writing.client.post("/sessions/undecided/ask", data={"form_key": key}).status_code == 303
    assert positions(store) != before, "asking, in contrast, decides"


def test_home_is_paged(memory_disk: Path) -> None:
    url = f"sqlite:///{memory_disk}/many.db"
    for number in range(SESSIONS + 2):
        Session.create(url, f"session {number}", tools.problem(), policy=sp.CombGapE())
    with running(url) as server:
        first, second = (server.client.get(f"/api/?page={page}").json() for page in (1, 2))
    assert first["n_pages"] == 2
    assert [one["session"] for one in second["sessions"]] == ["session 1", "session 0"]


@pytest.mark.parametrize(
    ("event", "says"),
    [
        (Draft("unheard of", "{}", 0.0), "unheard of"),
        (Draft("measured", "{}", 0.0), "arm"),
        (Draft("measured", "[]", 0.0), ""),
        (Draft("stopped", '{"status": "tired"}', 0.0), "tired"),
    ],
    ids=lambda case: getattr(case, "body", ""),
)
def test_a_session_that_cannot_be_read_does_not_hide_the_others(
    tmp_path: Path, event: Draft, says: str
) -> None:
    url = f"sqlite:///{tmp_path}/damaged.db"
    Session.create(url, "good", tools.problem(), policy=sp.CombGapE())
    broken = Session.create(url, "broken", tools.problem(), policy=sp.CombGapE())
    broken.store.append("broken", [event], expected=broken.store.head("broken"))
    broken.store.close()
    with running(url) as server:
        sessions = {one["session"]: one for one in server.client.get("/api/").json()["sessions"]}
        assert server.client.get("/").status_code == 200
        assert server.client.get("/sessions/broken").status_code in (400, 500, 503)
        with server.client.stream("GET", "/events") as stream:
            news = next(line for line in stream.iter_lines() if line.startswith("data:"))
    assert sessions["broken"]["state"] == "unreadable"
    assert says in sessions["broken"]["sentence"]
    assert sessions["good"]["state"] == "running"
    assert "good" in news


@pytest.mark.parametrize(
    "name", ["trips", "a b", "../../etc/passwd", "a/b", "~", "ümlaut", "<b>", "x" * 300, "%2e"]
)
def test_every_name_has_a_url(name: str) -> None:
    assert name_of(slug_of(name)) == name
    assert "/" not in slug_of(name)


@pytest.mark.parametrize(("method", "path"), routes())
def test_every_route_is_documented(method: str, path: str) -> None:
    assert f"`{method} {path}`" in (DOCS / "http.md").read_text(encoding="utf-8")


def test_an_answer_with_doubts_is_amber_and_says_what_to_do_first(writing: Running, store: str) -> None:
    session = Session.create(store, "loud", tools.problem(), policy=sp.CombGapE(delta=0.3))
    tools.run_to_end(session, tools.Tapes(scale=4 * tools.SCALE))
    page = writing.client.get("/sessions/loud").text
    assert re.search(r'class="card hero" data-state="confident" data-trusted="false"', page)
    assert re.findall(r'data-doubt="(\w+)"', page) == [doubt.code for doubt in session.doubts]
    assert page.index("data-doubt") < page.index("<dl")
    shown = writing.client.get("/api/sessions/loud").json()["summary"]
    assert (shown["trusted"], shown["doubts"][0]["code"]) == (False, "noise_larger")
    tile = next(t for t in writing.client.get("/api/").json()["sessions"] if t["session"] == "loud")
    assert (tile["state"], tile["trusted"]) == ("confident", False)
