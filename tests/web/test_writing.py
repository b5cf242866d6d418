"""What --write allows: measurements and sessions by form and by JSON; mistakes are shown at their field."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

import session_tools as tools
import surepick as sp
from surepick.errors import FileError
from surepick.inputs.load import read_problem
from surepick.sessions.session import Session
from surepick.web import uploads
from web_tools import PROBLEM, Running, positions

FIELDS = {"name": "trips", "policy": "BetGapE", "delta": "0.05", "epsilon": "0", "budget": "", "seed": "0"}
TRIPS = ("trips.toml", PROBLEM.encode())


def create(server: Running, *files: tuple[str, bytes], **fields: str) -> object:
    form = {**FIELDS, "form_key": server.form_key(), **fields}
    return server.client.post("/sessions", data=form, files=[("files", file) for file in files])


# Measuring


def test_a_measurement_by_form_is_recorded_under_its_name(writing: Running, store: str) -> None:
    session = Session.create(store, "by form", tools.problem(), policy=sp.CombGapE())
    token, name = session.pending()[0].token, session.pending()[0].arm_name
    form = {"form_key": writing.form_key(), "token": token, "value": " 1.25 ", "who": "Ann"}
    answer = writing.client.post("/sessions/by form/tell", data=form)
    assert answer.status_code == 303
    assert answer.headers["location"] == f"/sessions/by%20form?who=Ann&done=recorded&token={token}#h-next"
    assert f"{name} = 1.25 ({token})" in writing.client.get(answer.headers["location"]).text
    told = list(session.measurements())
    assert [(m.token, m.value, m.worker) for m in told] == [(token, 1.25, "Ann")]
    again = writing.client.post("/sessions/by form/tell", data=form)
    assert "done=repeated" in again.headers["location"]
    other = writing.client.post("/sessions/by form/tell", data={**form, "value": "7"})
    assert other.status_code == 400
    assert 'value="7"' in other.text


def test_a_token_of_another_arm_than_the_one_that_was_measured_is_refused(
    writing: Running, store: str
) -> None:
    session = Session.create(store, "mismatch", tools.problem(), policy=sp.CombGapE())
    names, token = tools.problem().arm_names, session.pending()[0].token
    other = next(name for i, name in enumerate(names) if not token.startswith(f"{i}."))
    form = {"form_key": writing.form_key(), "token": f"{token} {other}", "value": "1", "who": "Ann"}
    answer = writing.client.post("/sessions/mismatch/tell", data=form)
    assert answer.status_code == 400
    assert "nothing was recorded" in answer.text.split('id="token-error"')[1].split("</p>")[0]
    body = {"token": token, "arm": other, "value": 1.0}
    answer = writing.client.post("/api/sessions/mismatch/tell", json=body)
    assert answer.status_code == 400
    assert "nothing was recorded" in answer.json()["error"]
    assert not list(session.measurements())
    for arm in (int(token.split(".")[0]), names[int(token.split(".")[0])]):
        body = {"token": token, "arm": arm, "value": 1.0}
        assert writing.client.post("/api/sessions/mismatch/tell", json=body).status_code == 200
    right = f"{token} {names[int(token.split('.')[0])]}"
    assert writing.client.post("/sessions/mismatch/tell", data={**form, "token": right}).status_code == 303


def test_large_finite_values_leave_the_dashboard_up_and_nothing_logged(writing: Running, store: str) -> None:
    """Two of them, 1e308 and -1e308, once took the server down; 1e155 broke the session for good."""
    name = "large"
    session = Session.create(
        store, name, sp.Problem([[1, 0], [0, 1]], noise=1, goal="largest"), policy=sp.BetGapE()
    )
    (request,) = session.ask()
    before = session.fingerprint
    for value in (1e308, -1e308, 1e155, -1e155, 1.0000001e10):
        body = {"token": request.token, "value": value}
        form = {"form_key": writing.form_key(), "token": request.token, "value": repr(value), "who": "Ann"}
        bodies = (body, {**body, "value": [1.0, value]})
        answers = [writing.client.post(f"/api/sessions/{name}/tell", json=given) for given in bodies]
        answers.append(writing.client.post(f"/sessions/{name}/tell", data=form))
        assert [answer.status_code for answer in answers] == [400] * 3
    assert Session.load(store, name).fingerprint == before
    assert writing.client.get("/api/").status_code == 200
    assert writing.client.get(f"/sessions/{name}").status_code == 200
    told = writing.client.post(f"/api/sessions/{name}/tell", json={"token": request.token, "value": 1e10})
    assert told.status_code == 200  # the control: the limit itself is taken
    assert writing.client.get(f"/sessions/{name}").status_code == 200


@pytest.mark.parametrize(
    ("field", "entered"),
    [("token", {"token": "7.7"}), ("value", {"value": "9"}), ("who", {"who": "A" * 300})],
)
def test_a_refused_measurement_is_shown_at_its_field(
    writing: Running, store: str, field: str, entered: dict[str, str]
) -> None:
    problem = sp.Problem([[1, 0], [0, 1]], arms=["token", "told before"], low=0, high=1, goal="largest")
    if "one token" not in positions(store):
        Session.create(store, "one token", problem, policy=sp.CombGapE())
    form = {"form_key": writing.form_key(), "token": "0.0", "value": "0.5", "who": "Ann", **entered}
    answer = writing.client.post("/sessions/one token/tell", data=form)
    assert answer.status_code == 400
    shown = {name: f'id="{name}-error"' in answer.text for name in ("token", "value")}
    assert shown == {name: name == field for name in ("token", "value")}


def test_taking_the_next_one_leases_it(writing: Running, store: str) -> None:
    Session.create(store, "to take", tools.problem(), policy=sp.CombGapE())
    form = {"form_key": writing.form_key(), "who": "Ann"}
    answer = writing.client.post("/sessions/to take/ask", data=form)
    assert "done=taken" in answer.headers["location"]
    tokens = writing.client.get("/api/sessions/to take").json()["work"]["tokens"]
    assert tokens[0]["worker"] == "Ann"


def test_a_session_can_be_driven_to_its_end_over_json(writing: Running, store: str) -> None:
    policy = sp.BetGapE(delta=0.4)
    Session.create(store, "over json", tools.problem(), policy=policy)
    here, tapes = "/api/sessions/over json", tools.Tapes()
    while True:
        asked = writing.client.post(f"{here}/ask", json={"n": 8, "worker": "w"}).json()
        if not asked["requests"]:
            break
        for request in asked["requests"]:
            told = {"token": request["token"], "value": tapes.value(request["token"]), "worker": "w"}
            assert writing.client.post(f"{here}/tell", json=told).json() == {"receipt": "recorded"}
    assert asked["status"] == "confident"
    alone = sp.simulate(tools.problem(), tools.Tapes(), policy=policy)
    assert writing.client.get(here).json()["summary"]["answer"] == tools.problem().plan_names[alone.plan]


@pytest.mark.parametrize("n", [0, 65, 1.5, "1", True])
def test_asking_for_no_number_of_measurements_is_refused(writing: Running, n: object) -> None:
    assert writing.client.post("/api/sessions/middle/ask", json={"n": n}).status_code == 400


# Beginning a session


def test_a_session_begins_from_an_uploaded_file(writing: Running, store: str) -> None:
    answer = create(writing, TRIPS, name="uploaded", delta="0.1", epsilon="0.25", budget="500", seed="7")
    assert answer.headers["location"] == "/sessions/uploaded"
    session = Session.load(store, "uploaded")
    assert session.problem.arm_names == ("ferry", "tunnel", "bridge")
    assert session.problem.minimize
    assert (session.policy, session.budget, session.seed) == (sp.BetGapE(delta=0.1, epsilon=0.25), 500, 7)


def test_the_plans_that_were_read_are_shown_before_a_session_begins(writing: Running, store: str) -> None:
    table = "plan,road,rail\n" + "".join(f"way {k},{k},1\n" for k in range(12))
    shown = create(writing, ("ways.csv", table.encode()), step="check", name="")
    assert shown.status_code == 200
    page = shown.text
    assert [f'data-plan="way {k}"' in page for k in (0, 9, 10)] == [True, True, False]
    assert 'data-plans="12"' in page
    assert 'data-noise="unknown"' in page
    kept = page.split('name="kept" value="')[1].split('"')[0]
    assert create(writing, name="after the look", kept=kept).status_code == 303
    assert Session.load(store, "after the look").problem.n_plans == 12


def test_attachments_come_with_it(writing: Running, store: str) -> None:
    file = b'kind = "table"\nnoise = 1\nplans = "plans.csv"\n'
    table = b"plan,road,rail\nNorth,1,0\nSouth,0,1\n"
    assert create(writing, ("a.toml", file), ("plans.csv", table), name="attached").status_code == 303
    assert Session.load(store, "attached").problem.plan_names == ("North", "South")


def test_a_layout_survives_the_upload(writing: Running, store: str) -> None:
    file = b'kind = "paths"\nsource = "A"\ntarget = "C"\nedges = [["A","B",1],["B","C",1],["A","C",3]]\n'
    assert create(writing, ("p.toml", file), name="drawn").status_code == 303
    layout = Session.load(store, "drawn").layout
    assert layout is not None
    assert layout.kind == "path"


def test_a_session_begins_over_json(writing: Running, store: str) -> None:
    problem = {"kind": "table", "plans": [[1, 0], [0, 1]], "arms": ["road", "rail"]}
    answer = writing.client.post("/api/sessions", json={"name": "a/b", "problem": problem, "delta": 0.2})
    assert answer.status_code == 201
    assert answer.json()["slug"].startswith("~")
    assert Session.load(store, "a/b").policy == sp.BetGapE(delta=0.2)
    assert writing.client.get(f"/sessions/{answer.json()['slug']}").status_code == 200


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("delta", "2"),
        ("delta", "x"),
        ("delta", "nan"),
        ("epsilon", "-1"),
        ("epsilon", "1,234"),
        ("budget", "0"),
        ("budget", "1e400"),
        ("budget", "9" * 400),
        ("seed", "-1"),
        ("policy", "Nobody"),
        ("policy", "BetGapE:delta=0.9"),
        ("name", "  "),
        ("name", "a\x07b"),
        ("name", "sure"),
    ],
)
def test_a_mistake_is_shown_at_its_field_and_nothing_is_lost(
    writing: Running, store: str, field: str, value: str
) -> None:
    before = positions(store)
    answer = create(writing, TRIPS, **{"seed": "77", field: value})
    assert answer.status_code == 400
    assert f'id="{field}-error" role="alert">' in answer.text
    if field != "seed":
        assert 'value="77"' in answer.text
    assert "trips.toml" in answer.text
    assert positions(store) == before


def test_files_need_not_be_chosen_again_after_a_mistake(writing: Running, store: str) -> None:
    answer = create(writing, TRIPS, delta="2")
    kept = answer.text.split('name="kept" value="')[1].split('"')[0]
    assert create(writing, name="mended", kept=kept).status_code == 303
    assert "mended" in positions(store)


def test_a_spreadsheet_alone_begins_a_session(writing: Running, store: str) -> None:
    sheet = ("ways.csv", b"plan;bus;walk\nnoise;0,5;0,5\nby bus;1;\non foot;;1\n")
    assert create(writing, sheet, name="from a sheet").status_code == 303
    assert "from a sheet" in positions(store)
    assert Session.load(store, "from a sheet").lease == 3 * 86400, "who measures by hand may need days"


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ([], "choose one problem file"),
        ([("a.csv", b"x")], "needs a header that names the columns"),
        ([("a.xlsx", b"PK")], "is not an Excel workbook"),
        ([("a.csv", b""), ("b.csv", b"")], "choose one problem file"),
        ([TRIPS, ("b.json", b"{}")], "choose one problem file"),
        ([TRIPS, ("x.csv", b""), ("x.csv", b"")], "same name"),
        ([("a.toml", b"kind = ")], "not valid TOML"),
        ([("a.toml", b'kind = "table"\nplans = "/etc/passwd"')], "came together with this one"),
        ([("..", b""), TRIPS], "needs a name"),
    ],
    ids=lambda case: str(case)[:60],
)
def test_files_that_are_no_problem_are_refused(
    writing: Running, store: str, files: list[tuple[str, bytes]], says: str
) -> None:
    before = positions(store)
    answer = create(writing, *files) if files else create(writing, ("", b""))
    assert answer.status_code == 400
    assert says in answer.text
    assert "root:" not in answer.text
    assert "surepick-upload-" not in answer.text, "where the server keeps its files is nobody's business"
    assert positions(store) == before


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("a.toml", b"\xff\xfe", "not UTF-8"),
        ("a.json", b"[" * 100_000, "nested too deeply"),
        ("a.json", b'{"kind": "table", "plans": [[1, 1e400], [0, 1]]}', "finite"),
        ("a.json", b'{"kind": "table", "plans": [[1, NaN], [0, 1]]}', "finite"),
        ("a.toml", b'kind = "table"\nnoise = 1\nplans = "plans.csv"', "came together with this one"),
        ("a.toml", b'kind = "table"\nplans = "../../../../etc/passwd"', "came together with this one"),
        ("a.toml", b'kind = "production"\nprogram = "/etc/passwd"', "came together with this one"),
        ("a.toml", b'kind = "trees"\nedges = "/etc/passwd"', "came together with this one"),
        ("a.toml", PROBLEM.encode() + b'\n[truth]\nmeans = "/etc/passwd"', "came together with this one"),
    ],
)
def test_the_reader_of_uploads_refuses(tmp_path: Path, name: str, text: bytes, says: str) -> None:
    (tmp_path / name).write_bytes(text)
    answer = uploads._answer("problem", str(tmp_path / name))
    assert says in answer["error"]


def test_a_file_cannot_leave_its_folder_by_its_name(writing: Running, tmp_path: Path) -> None:
    target = tmp_path / "stolen.toml"
    for name in (f"../../../../../..{target}", str(target), "..\\..\\stolen.toml"):
        create(writing, (name, PROBLEM.encode()), name=f"escape {len(name)}")
        assert not target.exists()


def test_a_file_named_like_a_module_is_not_run(writing: Running, tmp_path: Path) -> None:
    trap = f"open({str(tmp_path / 'trapped')!r}, 'w')".encode()
    names = ("json.py", "numpy.py", "sitecustomize.py", "surepick.py", "usercustomize.py")
    assert create(writing, TRIPS, *((name, trap) for name in names), name="trap").status_code == 303
    assert not (tmp_path / "trapped").exists()


def test_a_file_that_asks_for_too_much_is_given_up(
    writing: Running, store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uploads, "SECONDS", 3)
    sites = [3] * 12
    endless = f'kind = "transport"\nnoise = 1\nsupply = {sites}\ndemand = {sites}\nguess = {[sites] * 12}\n'
    endless += "n_draws = 1000000\n"
    began = time.monotonic()
    answer = create(writing, ("endless.toml", endless.encode()))
    assert answer.status_code == 400
    assert "took more than" in answer.text or "more memory or time" in answer.text
    assert time.monotonic() - began < 30
    assert writing.client.get("/").status_code == 200


def test_confined_files_reach_only_their_folder(tmp_path: Path) -> None:
    (tmp_path / "outside.csv").write_text("plan,road,rail\nNorth,1,0\nSouth,0,1\n")
    inside = tmp_path / "inside"
    inside.mkdir()
    file = inside / "a.toml"
    file.write_text('kind = "table"\nnoise = 1\nplans = "../outside.csv"\n')
    assert read_problem(file).problem.n_plans == 2
    with pytest.raises(FileError) as caught:
        read_problem(file, confined=True)
    assert caught.value.field == "plans"


def test_ask_answers_with_the_keys_that_the_page_promises(writing: Running) -> None:
    page = (Path(__file__).parents[2] / "docs" / "http.md").read_text(encoding="utf-8")
    row = next(line for line in page.splitlines() if line.startswith("| `POST /api/sessions/{slug}/ask`"))
    promised = re.findall(r'"(\w+)"', row.split("[{")[1].split("}]")[0])
    answer = writing.client.post("/api/sessions/fresh/ask", json={"n": 1, "worker": "reader"})
    (asked,) = answer.json()["requests"]
    assert sorted(asked) == sorted(promised)
    assert asked["arm_name"] in tools.problem().arm_names
