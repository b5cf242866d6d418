"""The table of actions: by form and by JSON the same happens, and the same is refused."""

import io
import zipfile

import pytest

import session_tools as tools
import surepick as sp
from common import refuses
from surepick.errors import FileError
from surepick.inputs.load import read_problem
from surepick.sessions.session import Session
from surepick.web import uploads
from web_tools import DRIVES, PROBLEM, positions

TRIPS = ("trips.toml", PROBLEM.encode())
SHEET = b'route,ferry,tunnel,bridge\ngoal,smallest\nunit,min\nnoise,"0,5"\nNorth,1,,1\nSouth,,1,1\n'


def begin(store, name, **options):
    return Session.create(store, name, tools.problem(**options), policy=sp.BetGapE())


def values(session):
    return [one.value for one in session.measurements() if not one.removed]


@pytest.mark.parametrize("by_form", [True, False])
def test_a_measurement_is_recorded_and_removed(writing, store, by_form):
    name = f"tell {by_form}"
    session, done = begin(store, name), 303 if by_form else 200
    value = " 1,25 " if by_form else 1.25
    assert writing.act(name, "tell", by_form=by_form, arm="copper", value=value, worker="Ann") == done
    assert [(m.probe_name, m.value, m.worker) for m in session.measurements()] == [("copper", 1.25, "Ann")]
    assert 'data-last="1"' in writing.client.get(f"/s/{name}").text
    assert writing.act(name, "remove", by_form=by_form, number=1, reason="a slip") == done
    assert (values(session), session.view().n_removed) == ([], 1)
    assert session.verify().holds


def test_a_session_is_driven_to_its_end_over_json(writing, store):
    table = {"kind": "table", "goal": "smallest", "plans": [[1, 0], [0, 1]], "arms": ["x", "y"], "noise": 0.5}
    answer = writing.api.post("/api/sessions", json={"name": "driven", "problem": table})
    assert (answer.status_code, answer.json()["slug"]) == (201, "driven")
    while requests := writing.do("driven", "ask", n=4, worker="w")[1]["requests"]:
        for one in requests:
            assert set(one) == {"id", "arm", "readings", "expires"}
            told = {"request": one["id"], "value": {"x": 1.0, "y": 9.0}[one["arm"]], "worker": "w"}
            assert writing.do("driven", "tell", **told, sure=True)[0] == 200
    view = writing.api.get("/api/sessions/driven").json()
    assert (view["state"], view["plan"], view["trusted"]) == ("confident", "plan 0", True)
    assert Session.load(store, "driven").verify().holds


@pytest.mark.parametrize("by_form", [True, False])
def test_a_value_that_surprises_is_asked_about(writing, store, by_form):
    name = f"doubt {by_form}"
    problem = tools.problem().with_about(plausible=[(-10.0, 10.0)] * 4)
    session = Session.create(store, name, problem, policy=sp.BetGapE())
    assert writing.act(name, "tell", by_form=by_form, arm="tin", value=99) == 409
    assert values(session) == []
    assert writing.act(name, "tell", by_form=by_form, arm="tin", value=99, sure=True) in (200, 303)
    assert values(session) == [99.0]
    again = writing.post(f"/api/sessions/{name}/tell", arm="tin", value="98").text
    assert ('name="sure"' in again, 'value="98"' in again) == (True, True)


REFUSED = [
    ("tell", {"value": 1}, "arm"),
    ("tell", {"arm": "copper"}, "value"),
    ("tell", {"arm": "gold", "value": 1}, None),
    ("tell", {"arm": "tin", "request": "0.0", "value": 1}, "arm"),
    ("tell", {"arm": "copper", "value": 1, "worker": "w" * 201}, "worker"),
    ("ask", {"n": 0}, "n"),
    ("ask", {"n": 65}, "n"),
    ("ask", {"n": 1.5}, "n"),
    ("remove", {"number": 99, "reason": "x"}, "number"),
    ("remove", {"number": 1, "reason": " "}, "reason"),
    ("extend", {"delta": 0.9}, None),
    ("final-batch", {"n": 0}, "n"),
    ("plans", {"name": "", "plan": "copper"}, "name"),
    ("plans", {"name": "new", "plan": "gold"}, None),
    ("rename", {"name": " "}, "name"),
    ("rename", {"name": "a\u0000b"}, "name"),
    ("close", {"reason": "x" * 2001}, "reason"),
    ("import", {"rows": [{"arm": "copper"}]}, "value"),
    ("import", {"rows": [{"arm": "gold", "value": 1}]}, None),
    ("close", {"unknown": 1}, "unknown"),
]


@pytest.mark.parametrize(("action", "body", "field"), REFUSED, ids=str)
def test_mistakes_are_refused_with_their_field(writing, store, action, body, field):
    before = positions(store)
    status, found = writing.do("fresh", action, **body)
    assert status == 400
    assert set(found["error"]) >= {"class", "field", "message", "hint"}
    if field is not None:
        assert found["error"]["field"] == field
    if action in ("tell", "extend", "rename", "remove") and "\u0000" not in str(body):
        assert writing.act("fresh", action, by_form=True, **body) == 400
    assert positions(store) == before


@pytest.mark.parametrize("by_form", [True, False])
def test_a_session_is_managed_to_its_end(writing, store, by_form):
    name = f"managed {by_form}"
    session = begin(store, name)

    def do(action, **body):
        assert writing.act(name, action, by_form=by_form, **body) == (303 if by_form else 200)

    do("rename", name="A better name")
    assert session.state().title == "A better name"
    arms = "gold noise=0,3; silver" if by_form else [{"name": "gold", "noise": 0.3}, {"name": "silver"}]
    do("plans", name="new", plan="2*copper + gold + silver", arms=arms)
    assert session.view().n_plans == 6
    assert [arm.name for arm in session.view().arms][-2:] == ["gold", "silver"]
    do("ask", n=2, worker="Ann")
    assert session.view().n_assigned > 0
    do("release", worker="Ann")
    assert session.view().n_assigned == 0
    do("close", reason="road works")
    assert session.view().state == "closed"
    do("extend", delta=0.01)
    assert (session.view().state, session.view().delta) == ("running", 0.01)
    do("final-batch", n=40)
    do("close")
    head = session.view().head
    typed = {"name": name, "head": {"position": head.position, "checksum": head.checksum}}
    stale = {**typed, "head": {"position": head.position - 1, "checksum": head.checksum}}
    for wrong in ({**typed, "name": "another"}, stale):
        assert writing.api.request("DELETE", f"/api/sessions/{name}", json=wrong).status_code in (400, 503)
    if by_form:
        fields = {"name": name, "head": f"{head.position} {head.checksum}"}
        assert writing.post(f"/api/sessions/{name}", **fields).headers["location"] == "/"
    else:
        assert writing.api.request("DELETE", f"/api/sessions/{name}", json=typed).json() == {"deleted": name}
    assert writing.api.get(f"/api/sessions/{name}").status_code == 404


@pytest.mark.parametrize("learns_noise", [False, True])
def test_a_session_begins_again_with_the_old_values(writing, store, learns_noise):
    name, after = f"before {learns_noise}", f"after {learns_noise}"
    session = begin(store, name)
    for one in session.pending():
        session.tell(one, 1.0)
    fields = {"prior": name, "name": after} | ({"noise_unknown": "yes"} if learns_noise else {})
    assert writing.post("/api/sessions", **fields).status_code == 303
    again = writing.post("/api/sessions", **fields)
    assert (again.status_code, 'id="new-name-error"' in again.text) == (400, True)
    assert session.view().state == "closed"
    follower = Session.load(store, after)
    assert (follower.view().n_measured, follower.problem.knows_noise) == (0, not learns_noise)
    assert writing.api.post("/api/sessions", json={"prior": after}).status_code == 201


def test_undo_removes_the_last_value_that_is_left(writing, store):
    session = begin(store, "undone")
    for value in (1.0, 2.0, 3.0):
        writing.do("undone", "tell", arm="copper", value=value)
    for left in ([1.0, 2.0], [1.0], []):
        page = writing.client.get("/s/undone").text
        number = page.split('data-last="')[1].split('"')[0]
        assert writing.post("/api/sessions/undone/remove", number=number, reason="undone").status_code == 303
        assert values(session) == left
    assert "data-last=" not in writing.client.get("/s/undone").text


def test_each_reading_has_a_field(writing, store):
    session = Session.create(store, "drives", DRIVES, policy=sp.BetGapE())
    assert writing.client.get("/s/drives").text.count('class="readings"') == 2
    form = {"arm": "north loop", "worker": "Ann", "reading/north loop/AB": "4,5"}
    wrong = writing.post("/api/sessions/drives/tell", **form, **{"reading/north loop/BD": "wet"})
    assert wrong.status_code == 400
    assert 'value="4,5"' in wrong.text
    assert 'value="wet"' in wrong.text
    right = writing.post("/api/sessions/drives/tell", **form, **{"reading/north loop/BD": "5"})
    assert right.status_code == 303
    assert [(m.reading, m.value) for m in session.measurements()] == [("AB", 4.5), ("BD", 5.0)]
    status, found = writing.do("drives", "tell", arm="south loop", value={"AC": 1.0, "CD": 2.0})
    assert (status, found["number"]) == (200, 2)


def workbook(rows):
    openpyxl = pytest.importorskip("openpyxl")
    book, stream = openpyxl.Workbook(), io.BytesIO()
    for row in rows:
        book.active.append(row)
    book.save(stream)
    return stream.getvalue()


@pytest.mark.parametrize("kind", ["csv", "XLSX"])
def test_a_filled_in_sheet_is_imported_once(writing, store, kind):
    session = begin(store, f"sheet {kind}")
    rows = [("arm", "value", "worker"), ("copper", 8.5, "Ann"), ("tin", 2, "Ann"), ("zinc", None, "")]
    content = "\n".join(",".join("" if c is None else str(c) for c in row) for row in rows[:3]).encode()
    file = {"file": (f"Monday.{kind}", content if kind == "csv" else workbook(rows[:3]))}
    path = f"/api/sessions/sheet {kind}/import"
    for _ in range(2):
        answer = writing.post(path, file, sure="yes")
        assert answer.status_code == 200
    assert sorted(values(session)) == [2.0, 8.5]


def test_rows_are_imported_with_their_remarks(writing, store):
    session = begin(store, "rows")
    rows = [{"arm": "copper", "value": 1.5, "remarks": "wet road"}, {"arm": "tin", "value": 2}]
    assert writing.do("rows", "import", rows=rows)[1]["counts"]["recorded"] == 2
    assert values(session) == [1.5, 2.0]
    assert sum("wet road" in event.body for event in session.events()) == 1


def test_all_mistakes_of_a_sheet_are_listed_and_none_is_recorded(writing, store):
    session = begin(store, "many mistakes")
    content = b"arm,value\ncopper,5\ntin,closed\ngold,4\nzinc,6 min\n"
    answer = writing.post("/api/sessions/many mistakes/import", {"file": ("m.csv", content)})
    assert answer.status_code == 400
    assert "closed" in answer.text
    assert "6 min" in answer.text
    assert 'name="kept"' in answer.text, "the file need not be chosen again"
    content = b"arm,value\ncopper,5\ngold,4\nsilver,4\n"
    answer = writing.post("/api/sessions/many mistakes/import", {"file": ("m.csv", content)})
    assert ("gold" in answer.text, "silver" in answer.text) == (True, True)
    assert values(session) == []


def test_a_workbook_that_unpacks_without_end_does_not_harm_the_server(writing):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("[Content_Types].xml", b" " * 50_000_000)
    file = {"file": ("bomb.xlsx", stream.getvalue())}
    assert writing.post("/api/sessions/fresh/import", file).status_code == 400
    assert writing.client.get("/s/fresh").status_code == 200


def create(server, *files, **fields):
    return server.post("/api/sessions", [("files", file) for file in files], **fields)


def test_a_session_begins_from_a_spreadsheet_under_its_name(writing, store):
    answer = create(writing, ("Monday trips.csv", SHEET), delta="other", delta_other="0,02", epsilon="0,5")
    assert answer.headers["location"] == "/s/Monday%20trips"
    view = Session.load(store, "Monday trips").view()
    assert (view.delta, view.epsilon, view.goal, view.unit) == (0.02, 0.5, "smallest", "min")
    assert Session.load(store, "Monday trips").journal.setup.lease == 3 * 86400
    again = create(writing, ("Monday trips.csv", SHEET + b"epsilon,2\nbudget,30\n"))
    assert again.headers["location"] == "/s/Monday%20trips-2"
    view = Session.load(store, "Monday trips-2").view()
    assert (view.delta, view.epsilon, view.budget) == (0.05, 2.0, 30), "as the file says"
    assert writing.post("/api/sessions", example="yes").headers["location"] == "/s/trips"


def test_what_was_read_is_shown_with_forecasts_before_a_session_begins(writing, store):
    before = positions(store)
    answer = writing.post("/api/check", example="yes")
    assert answer.status_code == 200
    assert 'data-plans="6"' in answer.text
    assert "data-epsilon=" in answer.text
    assert 'name="kept"' in answer.text
    found = writing.api.post("/api/check", files={"files": ("t.csv", SHEET)}, data={"epsilon": "1"}).json()
    expected = {"n_plans": 2, "goal": "smallest", "unit": "min", "noise": [0.5] * 3}
    assert expected.items() <= found.items()
    limits = {"low": "0", "high": "60"}
    found = writing.api.post("/api/check", files={"files": ("t.csv", SHEET)}, data=limits).json()
    assert found["limits"] == [[0.0, 60.0]] * 3
    wrong = writing.post("/api/check", {"files": ("t.csv", SHEET)}, low="5", high="5")
    assert (wrong.status_code, 'id="new-low-error"' in wrong.text) == (400, True)
    assert positions(store) == before


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"delta": "other", "delta_other": "2"}, "delta"),
        ({"epsilon": "x"}, "epsilon"),
        ({"budget": "0"}, "budget"),
        ({"name": "fresh"}, "name"),
        ({"policy": "Nothing"}, "policy"),
        ({"seed": "-1"}, "seed"),
    ],
    ids=str,
)
def test_a_rejected_form_keeps_the_upload_and_what_was_entered(writing, store, fields, field):
    before = positions(store)
    answer = create(writing, TRIPS, **fields)
    assert answer.status_code == 400
    assert f'id="new-{field}-error"' in answer.text or field in ("delta",)
    kept = answer.text.split('name="kept" value="')[1].split('"')[0]
    assert positions(store) == before
    again = writing.post("/api/sessions", kept=kept, name=f"kept {field}")
    assert again.status_code == 303, again.text


@pytest.mark.parametrize(
    "files",
    [
        [("", b"")],
        [("a.csv", b"x")],
        [("a.xlsx", b"PK")],
        [("a.csv", b""), ("b.csv", b"")],
        [TRIPS, ("b.json", b"{}")],
        [TRIPS, ("x.csv", b""), ("x.csv", b"")],
        [("a.toml", b"kind = ")],
        [("a.toml", b'kind = "table"\ngoal = "largest"\nplans = "/etc/passwd"')],
        [("..", b""), TRIPS],
    ],
    ids=lambda case: str(case)[:60],
)
def test_files_that_are_no_problem_are_refused(writing, store, files):
    before = positions(store)
    answer = create(writing, *files)
    assert answer.status_code == 400
    assert 'id="new-files-error"' in answer.text
    assert "root:" not in answer.text
    assert "surepick-" not in answer.text, "where the server keeps its files is not shown"
    assert positions(store) == before


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.toml", b"\xff\xfe"),
        ("a.json", b"[" * 100_000),
        ("a.toml", b'kind = "production"\nprogram = "/etc/passwd"'),
        ("a.toml", PROBLEM.encode() + b'\n[truth]\nmeans = "/etc/passwd"'),
    ],
)
def test_the_reader_of_uploads_refuses(tmp_path, name, text):
    (tmp_path / name).write_bytes(text)
    answer = uploads._answer("problem", str(tmp_path / name), {"low": None, "high": None})
    assert answer["error"]
    assert "root:" not in str(answer)


def test_a_file_cannot_leave_its_folder_and_is_not_run(writing, tmp_path):
    target = tmp_path / "stolen.toml"
    for name in (f"../../../../../..{target}", str(target), "..\\..\\stolen.toml"):
        create(writing, (name, PROBLEM.encode()), name=f"escape {len(name)}")
        assert not target.exists()
    trap = f"open({str(tmp_path / 'trapped')!r}, 'w')".encode()
    names = ("json.py", "numpy.py", "sitecustomize.py", "surepick.py", "usercustomize.py")
    assert create(writing, TRIPS, *((name, trap) for name in names), name="trap").status_code == 303
    assert not (tmp_path / "trapped").exists()


def test_a_file_that_asks_for_too_much_is_given_up(writing, monkeypatch):
    monkeypatch.setattr(uploads, "SECONDS", 3)
    sites = [3] * 12
    endless = f'kind = "transport"\nnoise = 1\nsupply = {sites}\ndemand = {sites}\nguess = {[sites] * 12}\n'
    answer = create(writing, ("endless.toml", (endless + "n_draws = 1000000\n").encode()))
    assert answer.status_code == 400
    assert writing.client.get("/").status_code == 200


def test_confined_files_reach_only_their_folder(tmp_path):
    (tmp_path / "outside.csv").write_text("plan,road,rail\nNorth,1,0\nSouth,0,1\n")
    (tmp_path / "inside").mkdir()
    file = tmp_path / "inside" / "a.toml"
    file.write_text('kind = "table"\ngoal = "largest"\nnoise = 1\nplans = "../outside.csv"\n')
    assert read_problem(file).problem.n_plans == 2
    with refuses("plans", FileError):
        read_problem(file, confined=True)
