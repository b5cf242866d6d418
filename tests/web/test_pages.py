"""Pages to look at: all of them are there, looking changes nothing, and no page waits for long work."""

import io
from pathlib import Path

import httpx
import pytest

import session_tools as tools
import surepick as sp
from surepick.sessions.session import Session
from surepick.store import Draft, open_store
from surepick.views.build import build
from surepick.web.app import Web
from surepick.web.pages import HISTORY, SESSIONS
from surepick.web.session_cache import name_of, slug_of
from surepick.web.settings import Settings
from web_tools import TOKEN, positions, running

DOCS = Path(__file__).parents[2] / "docs"
PAGES = ["/", "/new", "/s/sure", "/s/middle", "/s/fresh", "/s/middle/sheet", "/s/middle/history"]
PAGES += ["/login", "/static/style.css"]
EXPORTS = ("report.html", "certificate.json", "log.json", "values.csv")


def routes():
    web = Web(Settings("memory://", TOKEN))
    found = [
        (method, route.path)
        for route in web.routes()
        for method in sorted(getattr(route, "methods", None) or {"GET"})
        if method != "HEAD"
    ]
    web.sessions.close()
    return [one for one in found if one != ("POST", "/api/sessions/{slug}")]  # DELETE, for forms


def test_every_route_is_documented():
    page = (DOCS / "reference" / "http.md").read_text(encoding="utf-8")
    for _, path in routes():  # the page writes S for a session
        short = path.replace("/api/sessions/{slug}", "S").replace("/static", "/static/{file}")
        assert f"{short}`" in page


@pytest.mark.parametrize("path", PAGES)
def test_every_page_is_there(writing, looking, path):
    assert writing.client.get(path).status_code == 200
    page = looking.client.get(path)
    assert page.status_code == 200
    if path not in ("/login", "/new", "/static/style.css"):
        assert page.text.count("<form") == page.text.count('action="/logout"'), (
            "a read-only page has no forms"
        )


def test_the_json_of_a_session_is_its_view(looking, store):
    for name in ("sure", "middle", "fresh"):
        found = looking.api.get(f"/api/sessions/{name}").json()
        view = build(Session.load(store, name)).to_json()
        assert found.keys() == view.keys()
        assert found["head"] == view["head"]
        assert found["plans"] == view["plans"]
    listed = {one["session"]: one for one in looking.api.get("/api/sessions").json()["sessions"]}
    assert listed["sure"]["state"] == "confident"


def test_files_can_be_had_and_hold(looking, store):
    for name in EXPORTS:
        answer = looking.client.get(f"/api/sessions/sure/export/{name}")
        assert answer.status_code == 200
        assert answer.headers["content-disposition"].startswith('attachment; filename="sure-')
    certificate = looking.api.get("/api/sessions/sure/export/certificate.json").json()
    assert Session.load(store, "sure").verify(certificate).holds
    assert looking.api.get("/api/sessions/middle/export/certificate.json").status_code == 400
    assert looking.api.get("/api/sessions/sure/export/other.txt").status_code == 404


def test_the_log_is_read_in_parts(looking, store):
    n = Session.load(store, "middle").view().head.position
    first = looking.api.get("/api/sessions/middle/events?n=3").json()["events"]
    rest = looking.api.get("/api/sessions/middle/events?after=3").json()["events"]
    assert [one["position"] for one in first + rest] == list(range(1, n + 1))
    for query in ("after=-1", "after=x", "n=0"):
        assert looking.api.get(f"/api/sessions/middle/events?{query}").status_code in (200, 400)


def test_the_sheet_lists_what_is_open_and_is_imported_filled_in(writing, store):
    openpyxl = pytest.importorskip("openpyxl")
    session = Session.create(store, "by sheet", tools.problem(), policy=sp.BetGapE())
    n_open = session.view().n_open
    book = openpyxl.load_workbook(io.BytesIO(writing.client.get("/s/by sheet/sheet?as=xlsx").content))
    lines = list(book.active.iter_rows(values_only=True))
    assert lines[0][:2] == ("arm", "value")
    assert len(lines) == 1 + n_open
    for row in range(2, 2 + n_open):
        book.active.cell(row, 2).value = 1.5
    filled = io.BytesIO()
    book.save(filled)
    answer = writing.post("/api/sessions/by sheet/import", {"file": ("sheet.xlsx", filled.getvalue())})
    assert answer.status_code == 200
    assert session.view().n_measured == n_open


@pytest.mark.parametrize(
    "path", ["/s/nothing", "/s/~x", "/api/sessions/nothing", "/nothing", "/?page=x", "/?page=0"]
)
def test_what_is_not_there_is_said(looking, path):
    assert looking.client.get(path).status_code in (400, 404)


def test_looking_never_decides_assigns_or_writes(writing, store):
    before = positions(store)
    paths = [path for method, path in routes() if method == "GET" and "static" not in path]
    for path in paths:
        here = path.replace("{slug}", "middle")
        if path.endswith("/stream"):
            with writing.client.stream("GET", here) as answer:
                next(line for line in answer.iter_lines() if line.startswith("data:"))
        else:
            for name in EXPORTS if "{name}" in here else ("",):
                assert writing.client.get(here.replace("{name}", name)).status_code in (200, 400)
    assert positions(store) == before


def test_home_is_paged(memory_disk):
    url = f"sqlite:///{memory_disk}/many.db"
    for number in range(SESSIONS + 2):
        Session.create(url, f"session {number}", tools.problem(), policy=sp.CombGapE())
    with running(url) as server:
        first, second = (server.api.get(f"/api/sessions?page={page}").json() for page in (1, 2))
    assert first["n_pages"] == 2
    assert [one["session"] for one in second["sessions"]] == ["session 1", "session 0"]


def test_history_is_paged(writing, store):
    session = Session.create(store, "long", tools.problem(), policy=sp.BetGapE())
    for number in range(HISTORY + 2):
        session.tell("copper", float(number), sure=True)
    session.remove(1, "a slip")
    first, second = (writing.client.get(f"/s/long/history?page={page}").text for page in (1, 2))
    assert (first.count("<time"), second.count("<time")) == (HISTORY, 2)
    assert 'class="removed"' in second
    assert writing.client.get("/s/long").text.count("/history") == 1


@pytest.mark.parametrize(
    "event",
    [
        Draft("unheard of", "{}", 0.0),
        Draft("measured", "{}", 0.0),
        Draft("stopped", '{"status": "tired"}', 0.0),
    ],
    ids=lambda case: getattr(case, "body", ""),
)
def test_a_session_that_cannot_be_read_does_not_hide_the_others(tmp_path, event):
    url = f"sqlite:///{tmp_path}/damaged.db"
    Session.create(url, "good", tools.problem(), policy=sp.CombGapE())
    broken = Session.create(url, "broken", tools.problem(), policy=sp.CombGapE())
    broken.journal.log.append([event], expected=broken.journal.log.head())
    broken.store.close()
    with running(url) as server:
        sessions = {one["session"]: one for one in server.api.get("/api/sessions").json()["sessions"]}
        assert server.client.get("/").status_code == 200
        assert server.client.get("/s/broken").status_code in (400, 500, 503)
    assert (sessions["broken"]["state"], sessions["good"]["state"]) == ("unreadable", "running")


@pytest.mark.parametrize(
    "name", ["trips", "a b", "../../etc/passwd", "a/b", "~", "ümlaut", "<b>", "x" * 300, "%2e"]
)
def test_every_name_has_a_url(name):
    assert name_of(slug_of(name)) == name
    assert "/" not in slug_of(name)


def test_an_answer_with_doubts_is_amber_and_offers_to_begin_again(writing, store):
    session = Session.create(store, "loud", tools.problem(), policy=sp.CombGapE(delta=0.3))
    tools.run_to_end(session, tools.Tapes(scale=4 * tools.SCALE))
    page = writing.client.get("/s/loud").text
    assert 'data-state="confident" data-trusted="false"' in page
    assert "#menu-new" in page
    assert "data-doubtful" in writing.client.get("/").text
    first = writing.api.get("/api/sessions/loud").json()["doubts"][0]
    assert first["code"] == "noise_larger"


def test_health_needs_no_token_and_fails_with_the_store(tmp_path):
    open_store(f"sqlite:///{tmp_path}/x.db").close()
    with running(f"sqlite:///{tmp_path}/x.db") as server:
        assert server.stranger.get("/healthz").json() == {"store": "readable"}
        (tmp_path / "x.db").write_bytes(b"no database" * 1000)
        answer = server.stranger.get("/healthz", headers={"accept": "*/*"})
        assert (answer.status_code, answer.json()["error"]["class"]) == (503, "DamageError")


def test_a_session_that_cannot_be_opened_is_tried_again(store, monkeypatch):
    load, wrong = Session.load, [True]

    def broken(store, name, **options):
        if name == "middle" and wrong[0]:
            raise ValueError("a damaged page")
        return load(store, name, **options)

    monkeypatch.setattr(Session, "load", broken)
    with running(store) as server:
        # the server closes the connection after an error of its own
        headers = {"connection": "close", "authorization": f"Bearer {TOKEN}"}
        with httpx.Client(base_url=server.url, timeout=60, headers=headers) as client:
            assert client.get("/api/sessions/middle").status_code == 500
            wrong[0] = False
            assert client.get("/api/sessions/middle").status_code == 200
