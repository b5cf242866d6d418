"""Running a session from the dashboard: notes, titles, going on, ending, comparing, taking away, deleting."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import session_tools as tools
import surepick as sp
from surepick.errors import StoreError
from surepick.inputs.load import read_problem
from surepick.sessions.session import Session
from web_tools import Running, positions, problem_file

if TYPE_CHECKING:
    from playwright.sync_api import Page

ROOT = Path(__file__).parent.parent.parent
PICTURES = ROOT / "build" / "screenshots"


def post(server: Running, path: str, **fields: str) -> object:
    return server.client.post(path, data={"form_key": server.form_key(), **fields})


def begin(store: str, name: str, **options: object) -> Session:
    return Session.create(store, name, tools.problem(), policy=sp.BetGapE(), **options)


def test_a_note_and_a_title_are_in_the_log_and_on_the_pages(writing: Running, store: str) -> None:
    session = begin(store, "to note")
    assert post(writing, "/sessions/to note/note", note="a flat <b>tyre</b>").status_code == 303
    assert post(writing, "/sessions/to note/rename", title="The way to work").status_code == 303
    assert post(writing, "/sessions/to note/rename", title="The way home").status_code == 303
    assert session.title == "The way home"
    page = writing.client.get("/sessions/to note").text
    assert "<h1>The way home</h1>" in page
    assert "a flat &lt;b&gt;tyre&lt;/b&gt;" in page
    assert "“The way home”" in page  # in the log
    assert "The way home" in writing.client.get("/").text
    assert session.verify().holds
    for path, field in (("note", "note"), ("rename", "title")):
        refused = post(writing, f"/sessions/to note/{path}", **{field: "x" * 3000})
        assert refused.status_code == 400
        assert f'id="{field}-error"' in refused.text


def test_a_session_is_closed_and_goes_on(writing: Running, store: str) -> None:
    session = begin(store, "to close", budget=5)
    assert post(writing, "/sessions/to close/close", reason="snow").status_code == 303
    assert str(session.status) == "closed"
    again = post(writing, "/sessions/to close/extend", delta="0,01", epsilon="", budget="50")
    assert again.status_code == 303, again.text
    assert session.status == "running"
    assert (session.policy.delta, session.budget) == (0.01, 50)
    for given, field in (({"delta": "2"}, "extend"), ({"budget": "0"}, "budget"), ({}, "extend")):
        refused = post(writing, "/sessions/to close/extend", **{"delta": "", "budget": "", **given})
        assert refused.status_code == 400
        assert f'id="{field}-error"' in refused.text


def test_deleting_needs_an_end_the_name_and_the_log_as_it_was_seen(writing: Running, store: str) -> None:
    session = begin(store, "to delete")
    seen = {"position": str(session.fingerprint.position), "checksum": session.fingerprint.checksum}
    running = post(writing, "/sessions/to delete/delete", typed="to delete", **seen)
    assert (running.status_code, "to delete" in positions(store)) == (400, True)
    session.close()
    closed = session.store.head("to delete")
    now = {"position": str(closed.position), "checksum": closed.checksum}
    for given in (
        {**now, "typed": "to"},
        {**seen, "typed": "to delete"},
        {"typed": "to delete"},
        {**now, "position": "\u00b2", "typed": "to delete"},
        {**now, "position": "7" * 5000, "typed": "to delete"},
    ):
        assert post(writing, "/sessions/to delete/delete", **given).status_code == 400
        assert "to delete" in positions(store)
    assert post(writing, "/sessions/to delete/delete", typed="to delete", **now).status_code == 303
    assert "to delete" not in positions(store)
    assert writing.client.get("/sessions/to delete").status_code == 404
    with pytest.raises(StoreError):
        session.note("too late")
    begin(store, "to delete")  # the name is free again
    with pytest.raises(StoreError):
        session.note("not into another one")


def test_forms_need_their_key_and_a_dashboard_that_may_write(
    writing: Running, looking: Running, store: str
) -> None:
    before = positions(store)
    for path in ("note", "rename", "extend", "close", "delete"):
        assert writing.client.post(f"/sessions/sure/{path}", data={"note": "x"}).status_code == 400
        assert looking.client.post(f"/sessions/sure/{path}", data={"note": "x"}).status_code == 403
    assert looking.client.get("/sessions/sure/manage").status_code == 404
    assert positions(store) == before


def test_the_report_is_downloaded(looking: Running) -> None:
    answer = looking.client.get("/sessions/sure/report.html")
    assert answer.headers["content-disposition"] == 'attachment; filename="report-sure.html"'
    assert answer.text.startswith("<!doctype html>")


def test_measurements_go_to_a_file_and_come_back(writing: Running, store: str) -> None:
    session = begin(store, "to export")
    tools.tell_all(session, session.ask(2), tools.Tapes())
    answer = writing.client.get("/sessions/to export/export.csv")
    assert answer.headers["content-disposition"] == 'attachment; filename="measurements-to-export.csv"'
    assert len(answer.text.splitlines()) == 3
    everything = writing.client.get("/sessions/to export/export.json").json()
    assert [event["kind"] for event in everything["log"]["events"]].count("measured") == 2
    assert writing.client.get("/sessions/to export/export.exe").status_code == 400
    other = begin(store, "to import")
    form = {"form_key": writing.form_key()}

    def send(name: str, content: bytes, **fields: str) -> object:
        data, files = {**form, **fields}, {"file": (name, content)}
        return writing.client.post("/sessions/to import/import", data=data, files=files)

    assert "to-export.csv" in send("to-export.csv", answer.content).text
    assert [m.value for m in other.measurements()] == [m.value for m in session.measurements()]
    arm = tools.problem().arm_names[0]
    assert send("a.csv", f"arm,value\n{arm},0.5\n".encode(), picked="yes").status_code == 200
    assert [m.picked for m in other.measurements()] == [False, False, True]
    before = other.fingerprint
    for name, content, named in (
        ("a.csv", b"arm,value\nnobody,1\n", "nobody"),
        ("a.csv", f"arm,value\n{arm},x\n".encode(), "line 2"),
        ("a.xlsx", b"PK", "a.xlsx"),
        ("a.ods", b"PK", "a.ods"),
        ("a.csv", b"", "a.csv"),
    ):
        refused = send(name, content)
        assert refused.status_code == 400
        assert named in refused.text.split('id="file-error"')[1].split("</p>")[0]
        assert "surepick-upload-" not in refused.text
    assert other.fingerprint == before


def test_a_value_that_surprises_is_asked_about_and_a_slip_is_taken_back(writing: Running, store: str) -> None:
    problem = tools.problem().with_about(plausible=[(-10.0, 10.0)] * 4)
    session = Session.create(store, "to doubt", problem, policy=sp.BetGapE())
    request = session.pending()[0]
    form = {"token": f"{request.token} {request.arm_name}", "value": "1200", "who": "Ann"}
    doubted = post(writing, "/sessions/to doubt/tell", **form)
    assert doubted.status_code == 400
    assert 'name="sure"' in doubted.text
    assert not list(session.measurements())
    assert post(writing, "/sessions/to doubt/tell", **form, sure="yes").status_code == 303
    choice = f"{request.token} {request.arm_name}"
    for given, field in (({"why": ""}, "why"), ({"void": f"{request.token} other", "why": "x"}, "void")):
        refused = post(writing, "/sessions/to doubt/void", **{"void": choice, **given})
        assert refused.status_code == 400
        assert f'id="{field}-error"' in refused.text
    assert choice in writing.client.get("/sessions/to doubt/manage").text
    assert (
        post(writing, "/sessions/to doubt/void", void=choice, why="typed 1200 for 12.00").status_code == 303
    )
    assert choice not in writing.client.get("/sessions/to doubt/manage").text
    assert [m.voided for m in session.measurements()] == [True]
    session.add_extra(1, 9.0)
    unasked = f"{session.fingerprint.position} {problem.arm_names[1]}"
    assert unasked in writing.client.get("/sessions/to doubt/manage").text
    assert post(writing, "/sessions/to doubt/void", void=unasked, why="the wrong road").status_code == 303
    assert [m.voided for m in session.measurements()] == [True, True]
    assert session.verify().holds


def workbook(rows: list[tuple[object, ...]]) -> bytes:
    openpyxl = pytest.importorskip("openpyxl")
    book, stream = openpyxl.Workbook(), io.BytesIO()
    for row in rows:
        book.active.append(row)
    book.save(stream)
    return stream.getvalue()


def test_a_workbook_is_imported_like_a_csv_file(writing: Running, store: str) -> None:
    session = begin(store, "to fill in")
    first, second = session.pending()[:2]
    filled = [
        ("token", "arm", "value"),
        (first.token, first.arm_name, 8.5),
        (second.token, second.arm_name, None),
    ]
    data = {"form_key": writing.form_key()}
    answer = writing.client.post(
        "/sessions/to fill in/import", data=data, files={"file": ("Monday.XLSX", workbook(filled))}
    )
    assert "Monday.XLSX" in answer.text
    assert [m.value for m in session.measurements()] == [8.5]


def test_a_workbook_that_unpacks_without_end_does_not_harm_the_server(writing: Running, store: str) -> None:
    begin(store, "to bomb")
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("[Content_Types].xml", b" " * 50_000_000)
    answer = writing.client.post(
        "/sessions/to bomb/import",
        data={"form_key": writing.form_key()},
        files={"file": ("bomb.xlsx", stream.getvalue())},
    )
    assert answer.status_code == 400
    assert writing.client.get("/sessions/to bomb").status_code == 200


def test_surprising_values_of_a_file_are_asked_about(writing: Running, store: str) -> None:
    problem = tools.problem().with_about(plausible=[(-10.0, 10.0)] * 4)
    session = Session.create(store, "to doubt a file", problem, policy=sp.BetGapE())
    request = session.pending()[0]
    content = f"token,arm,value\n{request.token},{request.arm_name},1200\n".encode()

    def send(**fields: str) -> object:
        data = {"form_key": writing.form_key(), **fields}
        return writing.client.post(
            "/sessions/to doubt a file/import", data=data, files={"file": ("a.csv", content)}
        )

    refused = send()
    assert refused.status_code == 400
    assert 'name="sure"' in refused.text
    assert not list(session.measurements())
    assert send(sure="yes").status_code == 200
    assert [m.value for m in session.measurements()] == [1200.0]


# The same as JSON


def api(server: Running, session: str, action: str, /, **body: object) -> tuple[int, dict[str, object]]:
    answer = server.client.post(f"/api/sessions/{session}/{action}", json=body)
    return answer.status_code, answer.json()


def test_a_session_is_managed_over_json(writing: Running, store: str) -> None:
    session = begin(store, "by json")
    request = session.pending()[0]
    assert api(writing, "by json", "note", note="a flat tyre") == (200, {"status": "running"})
    assert api(writing, "by json", "rename", title="By hand") == (
        200,
        {"title": "By hand", "status": "running"},
    )
    rows = [{"token": request.token, "arm": request.arm_name, "value": 8.25, "worker": "Ann"}]
    told = {"recorded": 1, "repeated": 0, "extra": 0, "not asked for yet": 0}
    assert api(writing, "by json", "import", rows=rows) == (200, {"told": told, "status": "running"})
    assert api(writing, "by json", "import", rows=rows)[1]["told"]["repeated"] == 1
    voided = api(
        writing, "by json", "void", token=request.token, arm=request.arm_name, reason="the wrong road"
    )
    assert voided == (200, {"seen": False, "status": "running"})
    assert api(writing, "by json", "close", reason="snow") == (200, {"status": "closed"})
    assert api(writing, "by json", "extend", delta=0.01) == (200, {"status": "running"})
    assert session.status == "running"
    assert (session.title, session.policy.delta) == ("By hand", 0.01)
    assert [(m.value, m.worker, m.voided) for m in session.measurements()] == [(8.25, "Ann", True)]
    assert writing.client.get("/api/sessions/by json/export.json").json()["log"]["session"] == "by json"
    assert session.verify().holds
    api(writing, "by json", "close")
    summary = writing.client.get("/api/sessions/by json").json()["summary"]
    seen = {"position": summary["position"], "checksum": summary["checksum"]}
    assert api(writing, "by json", "delete", name="by json", **seen) == (200, {"deleted": "by json"})
    assert "by json" not in positions(store)
    assert writing.client.get("/api/sessions/by json").status_code == 404


@pytest.mark.parametrize(
    ("action", "body", "named"),
    [
        ("note", {"note": " "}, "note"),
        ("note", {"note": "x" * 2001}, "2,000"),
        ("note", {"note": "x", "remark": "x"}, "remark"),
        ("rename", {"title": "x" * 201}, "200"),
        ("extend", {"delta": 0.5}, "delta"),
        ("extend", {"budget": 0}, "budget"),
        ("extend", {}, "delta"),
        ("void", {"token": "0.0", "reason": "x"}, "0.0"),
        ("void", {"token": "0.0", "reason": "x", "arm": 1}, "arm"),
        ("void", {"token": "0.0"}, "reason"),
        ("add-plan", {"name": "new", "plan": "brass"}, "'brass'"),
        ("add-plan", {"name": "new", "plan": {"copper": "1"}}, "plan"),
        ("add-plan", {"name": "new", "plan": "tin", "new_arms": [{"name": "brass"}]}, "'brass'"),
        ("new-epoch", {"reason": " "}, "reason"),
        ("new-epoch", {"reason": "x", "name": "odd bodies"}, "odd bodies"),
        ("import", {"rows": [{"value": 1.0}]}, "value"),
        ("import", {"rows": [{"arm": "nobody", "value": 1.0}]}, "nobody"),
        ("import", {"rows": [{"arm": "x", "value": "1"}]}, "rows"),
        ("import", {"rows": [{"token": "0.0", "value": 1200.0}]}, '"sure": true'),
        ("delete", {"name": "odd bodies", "position": 1, "checksum": "x"}, "odd bodies"),
        ("delete", {"name": "odd", "position": 1, "checksum": "x"}, "odd bodies"),
    ],
)
def test_json_is_refused_as_forms_are_and_changes_nothing(writing, store, action, body, named) -> None:
    if "odd bodies" not in positions(store):
        problem = tools.problem().with_about(plausible=[(-10.0, 10.0)] * 4)
        Session.create(store, "odd bodies", problem, policy=sp.BetGapE())
    before = positions(store)
    status, answer = api(writing, "odd bodies", action, **body)
    assert status == (409 if "confirm" in answer else 400)
    assert ("confirm" in answer) == ("sure" in named)
    assert named in answer["error"]
    assert positions(store) == before


@pytest.mark.parametrize("told", [{"value": 1200.0}, {"value": [1.0, 1200.0]}])
def test_json_is_asked_about_values_that_surprise_before_they_are_told(writing, store, told) -> None:
    name = f"to doubt over JSON, {len(positions(store))}"
    problem = tools.problem().with_about(plausible=[(-10.0, 10.0)] * 4)
    session = Session.create(store, name, problem, policy=sp.BetGapE())
    body = {"token": session.pending()[0].token, **told}
    status, answer = api(writing, name, "tell", **body)
    assert (status, answer["confirm"]) == (409, "sure")
    assert "1200" in answer["error"]
    assert not list(session.measurements())
    assert api(writing, name, "tell", **body, sure=True) == (200, {"receipt": "recorded"})
    again = {"token": session.pending()[-1].token, "value": 2.0}
    assert api(writing, name, "tell", **again) == (200, {"receipt": "recorded"})


def test_json_needs_its_content_type_and_a_dashboard_that_may_write(
    writing: Running, looking: Running, store: str
) -> None:
    before = positions(store)
    for action in ("note", "rename", "extend", "close", "void", "add-plan", "new-epoch", "import", "delete"):
        assert looking.client.post(f"/api/sessions/sure/{action}", json={}).status_code == 403
        plain = writing.client.post(
            f"/api/sessions/sure/{action}", content=b"{}", headers={"content-type": "text/plain"}
        )
        assert plain.status_code in (403, 415)
    assert positions(store) == before


def test_a_session_begun_in_the_browser_has_the_usual_policy_and_knows_what_it_is_about(
    writing: Running, store: str
) -> None:
    edges = [[f"s{i}", f"s{j}", 5 + (i + j) % 3] for i in range(8) for j in range(i)]
    problem = {"kind": "trees", "edges": edges, "title": "Cables", "unit": "km", "spread": 2.0}
    answer = writing.client.post("/api/sessions", json={"name": "cables", "problem": problem})
    assert answer.status_code == 201
    session = Session.load(store, "cables")
    assert session.policy.name == "BetGapE"
    assert (session.title, session.given_problem.about.unit) == ("Cables", "km")
    assert session.given_problem.about.plausible is not None
    form = {**dict.fromkeys(("policy", "budget"), ""), "delta": "0.05", "epsilon": "0", "seed": "0"}
    files = {"files": ("mix.toml", b'kind = "portfolio"\nnoise = 1\nguess = [1, 2, 3]\nupper = 0.5\n')}
    begun = post_files(writing, {**form, "name": "mix"}, files)
    assert begun.status_code == 303, begun.text
    assert Session.load(store, "mix").policy.name == "BetGapE"


def post_files(server: Running, fields: dict[str, str], files: dict[str, tuple[str, bytes]]) -> object:
    return server.client.post("/sessions", data={"form_key": server.form_key(), **fields}, files=files)


def test_sessions_side_by_side(looking: Running) -> None:
    found = looking.client.get("/api/compare?s=sure&s=middle").json()
    assert {row["summary"]["session"] for row in found["rows"]} == {"sure", "middle"}
    page = looking.client.get("/compare?s=sure&s=middle&s=nobody").text
    assert 'href="/sessions/sure"' in page
    assert looking.client.get("/compare").status_code == 200
    assert looking.client.get("/compare?" + "&".join(["s=a"] * 13)).status_code == 400


def test_a_plan_with_a_new_arm_and_a_new_epoch(writing: Running, store: str) -> None:
    session = begin(store, "to grow")
    arm = {"name": "brass", "cost": 2.0}
    added = api(writing, "to grow", "add-plan", name="door", plan={"brass": 1, "tin": 2.5}, new_arms=[arm])
    assert added == (200, {"n_plans": 6, "status": "running"})
    fields = {"plan_name": "gate", "plan": "2*iron + tin", "new_arms": "iron;", "noise_scale": "0,5"}
    refused = post(writing, "/sessions/to grow/add-plan", **fields, cost="")
    assert refused.status_code == 400
    assert 'id="new_arms-error"' in refused.text
    assert 'value="2*iron + tin"' in refused.text
    assert post(writing, "/sessions/to grow/add-plan", **fields, cost="3").status_code == 303
    assert session.ledger().problem.plan_names[-2:] == ("door", "gate")
    assert session.problem.arm_names[-2:] == ("brass", "iron")
    assert session.problem.costs[-2:].tolist() == [2.0, 3.0]
    wrong = post(writing, "/sessions/to grow/add-plan", plan_name="", plan="tin")
    assert 'id="plan_name-error"' in wrong.text
    assert "brass" in writing.client.get("/sessions/to grow").text
    assert post(writing, "/sessions/to grow/new-epoch", changed="  ", epoch="").status_code == 400
    begun = post(writing, "/sessions/to grow/new-epoch", changed="a new furnace", epoch="")
    assert begun.headers["location"].endswith("/sessions/to%20grow-2")
    assert session.status == "closed"
    later = sp.Session.load(store, "to grow-2")
    assert later.problem.n_plans == 7
    for name, is_open in (("to grow-2", True), ("to grow", False)):
        assert ('/add-plan"' in writing.client.get(f"/sessions/{name}/manage").text) == is_open
    taken = post(writing, "/sessions/to grow-2/new-epoch", changed="rain", epoch="to grow")
    assert taken.status_code == 400
    assert 'id="epoch-error"' in taken.text
    assert later.status == "running"  # it goes on


def test_managing_in_a_browser(page: Page, writing: Running, store: str, tmp_path: Path) -> None:
    Session.create(store, "managed", read_problem(problem_file(tmp_path)).problem, policy=sp.BetGapE())
    PICTURES.mkdir(parents=True, exist_ok=True)
    page.goto(f"{writing.url}/sessions/managed")
    page.get_by_role("link", name="Manage").click()
    page.get_by_label("Title").fill("The bridge or the ferry")
    page.get_by_role("button", name="Rename").click()
    page.get_by_text("It has its new title.").wait_for()
    page.get_by_role("textbox", name="Note").fill("a flat tyre")
    page.get_by_role("button", name="Add the note").click()
    page.get_by_text("The note is in the log.").wait_for()
    page.get_by_label("Its name").fill("by boat")
    page.get_by_label("What it takes of each arm").fill("boat")
    page.get_by_text("It needs something that nobody has measured yet").click()
    page.get_by_label("New arms").fill("boat")
    page.screenshot(path=PICTURES / "manage.png", full_page=True)
    page.get_by_role("button", name="Add the plan").click()
    page.get_by_text("The plan is in the list").wait_for()
    page.get_by_role("button", name="Close the session").click()
    page.get_by_text("The session has ended.").wait_for()
    page.get_by_label("Type its name, managed").fill("manged")
    page.get_by_role("button", name="Delete it for good").click()
    assert "managed" in page.get_by_role("alert").inner_text()
    page.get_by_label("Type its name, managed").fill("managed")
    page.get_by_role("button", name="Delete it for good").click()
    page.wait_for_url(f"{writing.url}/")
    assert page.get_by_text("The bridge or the ferry").count() == 0
    page.goto(f"{writing.url}/compare?s=sure&s=middle&s=fresh")
    page.screenshot(path=PICTURES / "compare.png", full_page=True)
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
