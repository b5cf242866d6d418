"""The door: who gets in, from where, and what may be sent."""

import asyncio
import contextlib
import socket
import time
from urllib.parse import quote

import httpx
import pytest

import surepick as sp
from surepick.errors import ParameterError
from surepick.sessions.session import Session
from surepick.web.actions import ACTIONS
from surepick.web.app import create_app
from surepick.web.security import COOKIE, LONGEST_BODY, LONGEST_UPLOAD, Keys
from surepick.web.settings import Settings, token_in
from web_tools import PROBLEM, TOKEN, positions, running

JSON = {"content-type": "application/json"}
BEARER = f"Authorization: Bearer {TOKEN}\r\n"


def port_of(server):
    return int(server.url.rsplit(":", 1)[1])


def connected(server):
    return socket.create_connection(("127.0.0.1", port_of(server)), timeout=10)


def test_settings_refuse_a_short_token_hide_it_and_know_further_names():
    with pytest.raises(ParameterError):
        Settings("memory://", "secret")
    settings = Settings("memory://", TOKEN, allowed_hosts=("plans.example",))
    assert TOKEN not in repr(settings)
    assert settings.knows_host("plans.example")


@pytest.mark.parametrize(
    "path",
    ["/", "/new", "/s/sure", "/s/sure/sheet", "/s/sure/history", "/api/sessions", "/api/sessions/sure"]
    + [f"/api/sessions/sure/{what}" for what in ("stream", "events", "export/certificate.json")],
)
def test_without_the_token_nothing_is_shown(writing, path):
    answer = writing.stranger.get(path)
    assert answer.status_code == 303
    assert answer.headers["location"].startswith("/login")
    answer = writing.stranger.get(path, headers={"accept": "*/*"})
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert "sure" not in answer.text.replace("surepick", "").replace("measure", "")


@pytest.mark.parametrize(
    "path", ["/api/sessions", "/api/check", *(f"/api/sessions/fresh/{a}" for a in ACTIONS)]
)
def test_without_the_token_nothing_is_done(writing, store, path):
    before = positions(store)
    for sent in ({"json": {}}, {"data": {"arm": "copper"}}):
        assert writing.stranger.post(path, **sent).status_code == 401
    assert positions(store) == before


@pytest.mark.parametrize(
    ("query", "header", "status"),
    [("", f"Bearer {TOKEN}", 200), (f"?token={TOKEN}&access_token={TOKEN}", "", 401)]
    + [
        ("", wrong, 401)
        for wrong in ("Bearer wrong", f"Basic {TOKEN}", "Bearer", f"Bearer {TOKEN}x", "Bearer \xff")
    ],
)
def test_the_token_opens_in_a_header_alone(writing, query, header, status):
    headers = {"authorization": header.encode("latin-1"), "accept": "*/*"}
    assert writing.stranger.get(f"/api/sessions{query}", headers=headers).status_code == status


def test_logging_in_sets_a_cookie_that_scripts_and_other_sites_do_not_get(writing):
    wrong = writing.stranger.post("/login", data={"token": "wrong"})
    assert wrong.status_code == 401
    assert "set-cookie" not in wrong.headers
    answer = writing.stranger.post("/login", data={"token": TOKEN})
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert f"Max-Age={30 * 86400}" in cookie
    assert TOKEN not in cookie
    assert writing.stranger.get("/s/sure").status_code == 200
    out = writing.stranger.post("/logout", data={"next": "/"})
    assert out.headers["set-cookie"].startswith(f'{COOKIE}=""')
    writing.stranger.cookies.clear()


@pytest.mark.parametrize(
    ("asked", "opened"),
    [("/s/sure?by=Pat", "/s/sure?by=Pat"), ("//evil.example", "/"), ("https://evil.example/", "/")],
)
def test_the_page_that_was_asked_for_opens_after_log_in(writing, asked, opened):
    answer = writing.stranger.post("/login", data={"token": TOKEN, "next": asked})
    assert (answer.status_code, answer.headers["location"]) == (303, opened)
    writing.stranger.cookies.clear()
    if opened != "/":
        assert writing.stranger.get(asked).headers["location"] == f"/login?next={quote(asked, safe='')}"


@pytest.mark.parametrize("cookie", ["", "1.2", "99999999999.abc", "inf.x", "nan.x", "a" * 4000])
def test_a_forged_cookie_opens_nothing(writing, cookie):
    answer = writing.stranger.get("/api/sessions", headers={"cookie": f"{COOKIE}={cookie}", "accept": "*/*"})
    assert answer.status_code == 401


def test_a_cookie_holds_over_restarts_as_long_as_the_token_and_expires(tmp_path, monkeypatch):
    token = token_in(tmp_path / "deep" / "token")
    assert token == token_in(tmp_path / "deep" / "token")
    assert (tmp_path / "deep" / "token").stat().st_mode & 0o077 == 0
    cookie = Keys(token).new_cookie()
    assert Keys(token).remembers(cookie)
    assert not Keys(token_in(tmp_path / "another")).remembers(cookie)
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 31 * 86400)
    assert not Keys(token).remembers(cookie)


def test_logging_out_ends_the_cookie_wherever_it_was_copied(writing):
    cookie = writing.stranger.post("/login", data={"token": TOKEN}).cookies[COOKIE]
    writing.stranger.cookies.clear()
    copied = {"cookie": f"{COOKIE}={cookie}"}
    assert writing.stranger.get("/api/sessions", headers=copied).status_code == 200
    writing.stranger.post("/logout", data={"next": "/"}, headers=copied)
    assert writing.stranger.get("/api/sessions", headers=copied).status_code == 303
    writing.stranger.cookies.clear()


@pytest.mark.parametrize(
    ("host", "known"),
    [(name, True) for name in ("localhost:1", "127.0.0.1", "[::1]:8321")]
    + [
        (name, False)
        for name in ("evil.example", "evil.example:8321", "localhost.evil.example", "", "1.2.3.4.example")
    ],
)
def test_a_name_that_points_here_without_our_knowing_is_refused(looking, host, known):
    status = looking.client.get("/", headers={"host": host}).status_code
    assert status == 200 if known else status in (400, 421)


FOREIGN = [
    {"origin": "https://evil.example"},
    {"origin": "null"},
    {"origin": "http://127.0.0.1:1"},
    {"sec-fetch-site": "cross-site"},
    {"sec-fetch-site": "same-site"},
]


@pytest.mark.parametrize("headers", FOREIGN, ids=str)
@pytest.mark.parametrize("path", ["/api/sessions/middle/tell", "/api/sessions", "/login"])
def test_another_site_cannot_write(writing, store, headers, path):
    before = positions(store)
    form = {"arm": "copper", "value": "1", "token": TOKEN}
    assert writing.client.post(path, data=form, headers=headers).status_code == 403
    assert writing.client.post(path, json={"arm": "copper", "value": 1}, headers=headers).status_code == 403
    assert positions(store) == before


def test_a_form_that_does_not_say_where_it_comes_from_writes_nothing(writing, store):
    before = positions(store)
    cookie = {"cookie": f"{COOKIE}={Keys(TOKEN).new_cookie()}"}
    form = {"arm": "copper", "value": "1"}
    answer = writing.stranger.post("/api/sessions/middle/tell", data=form, headers=cookie)
    assert answer.status_code == 403
    assert positions(store) == before


@pytest.mark.parametrize("kind", ["text/plain", "", "application/xml"])
def test_what_a_form_of_another_site_could_send_as_json_is_refused(writing, kind):
    body = b'{"arm": "copper", "value": 1}'
    answer = writing.client.post("/api/sessions/middle/tell", content=body, headers={"content-type": kind})
    assert answer.status_code == 415


def test_another_site_cannot_read_through_the_browser_but_may_link(looking):
    foreign = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"}
    assert looking.client.get("/api/sessions/sure", headers=foreign).status_code == 403
    link = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    assert looking.client.get("/s/sure", headers=link).status_code == 200


@pytest.mark.parametrize("path", ["/api/sessions", *(f"/api/sessions/middle/{action}" for action in ACTIONS)])
def test_a_read_only_server_writes_nothing(looking, store, path):
    before = positions(store)
    assert looking.api.post(path, json={"arm": "copper", "value": 1}).status_code == 403
    assert looking.api.request("DELETE", path, json={}).status_code == 403
    assert positions(store) == before


@pytest.mark.parametrize("path", ["/", "/s/sure", "/api/sessions", "/static/style.css", "/nothing", "/login"])
def test_every_answer_carries_the_headers_that_protect_it(looking, path):
    headers = looking.client.get(path).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "same-origin"
    assert "access-control-allow-origin" not in headers
    assert "server" not in headers
    assert headers["cache-control"] == "no-store"


def test_pages_load_nothing_from_elsewhere_and_hold_no_inline_code(writing):
    for path in ("/", "/s/sure", "/s/middle", "/s/middle/sheet", "/new", "/login"):
        page = writing.client.get(path).text
        assert "http://" not in page.replace("http://www.w3.org", "")
        assert "https://" not in page
        for sign in (" style=", "<style", " onclick=", " onload=", "javascript:", "<script>"):
            assert sign not in page


PATHS = [
    f"/static/{way}" for way in ("../app.py", "..%2fapp.py", "%2e%2e/app.py", "....//app.py", "..%5capp.py")
]
PATHS += [
    "/static//etc/passwd",
    "/s/..%2f..%2fetc%2fpasswd",
    "/s/~Li4vLi4vZXRjL3Bhc3N3ZA",
    "/../../etc/passwd",
]


@pytest.mark.parametrize("path", PATHS)
def test_paths_lead_nowhere_else(looking, path):
    with connected(looking) as line:
        line.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n{BEARER}Connection: close\r\n\r\n".encode())
        answer = b"".join(iter(lambda: line.recv(65536), b""))
    assert b" 404 " in answer.split(b"\r\n")[0] or b" 400 " in answer.split(b"\r\n")[0]
    assert b"root:" not in answer
    assert b"def create_app" not in answer


SCRIPT = """<script>alert(1)</script>"'<img src=x onerror=alert(1)>{{7*7}}"""


def test_names_are_escaped_wherever_they_are_shown(memory_disk):
    url = f"sqlite:///{memory_disk}/script.db"
    arms, plans = [f"arm {i} {SCRIPT}" for i in range(3)], [f"plan {i} {SCRIPT}" for i in range(3)]
    options = {"noise": 0.5, "arms": arms, "plan_names": plans}
    problem = sp.Problem([[1, 0, 1], [0, 1, 1], [1, 1, 0]], **{"noise": 1, **options}, goal="largest")
    session = Session.create(url, f"session {SCRIPT}", problem, policy=sp.CombGapE())
    while session.state().n_values < 12:
        for request in session.ask(worker=f"worker {SCRIPT}"):
            session.tell(request, float(request.probe))
    session.ask(worker=f"worker {SCRIPT}")
    session.tell(arms[0], 1.0, note=f"note {SCRIPT}")
    session.rename(f"title {SCRIPT}")
    Session.create(url, "ended " + SCRIPT, problem, policy=sp.CombGapE()).close(f"reason {SCRIPT}")
    with running(url) as server:
        for tile in server.api.get("/api/sessions").json()["sessions"]:
            here, api = f"/s/{tile['slug']}", f"/api/sessions/{tile['slug']}"
            for path in ("/", here, f"{here}/sheet"):
                _assert_harmless(server.client.get(path, params={"by": SCRIPT, "done": SCRIPT}).text)
            assert "&lt;script&gt;" in server.client.get(here).text
            with server.client.stream("GET", f"{api}/stream?parts=page") as stream:
                _assert_harmless(next(line for line in stream.iter_lines() if line.startswith("data:")))
        _assert_harmless(server.client.get("/s/" + "<script>alert(1)<%2fscript>").text)
        form = {"arm": SCRIPT, "value": SCRIPT, "worker": SCRIPT}
        answer = server.client.post(f"{api}/tell", data=form)
        assert answer.status_code == 400
        _assert_harmless(answer.text)
        fields = {"name": SCRIPT, "delta": "other", "delta_other": SCRIPT}
        for path in ("/api/sessions", "/api/check"):
            answer = server.client.post(
                path, data=fields, files={"files": (f"{SCRIPT}.toml", PROBLEM.encode())}
            )
            assert answer.status_code == 400
            _assert_harmless(answer.text)
            assert "&lt;script&gt;" in answer.text


def _assert_harmless(text):
    for sign in ("<script>alert", "<img", 'onerror=alert(1)>"', "alert(1)>49"):
        assert sign not in text


def test_a_body_that_is_too_long_is_refused_by_what_it_announces_and_by_what_it_is(writing):
    long = b" " * (LONGEST_BODY + 1)
    assert writing.api.post("/api/sessions/middle/tell", content=long, headers=JSON).status_code == 413
    files = {"files": ("trips.toml", b" " * (LONGEST_UPLOAD + 1))}
    assert writing.client.post("/api/sessions", files=files).status_code == 413
    assert writing.stranger.post("/login", data={"token": "x" * 5000}).status_code == 413
    sent = []

    def endless():
        while len(sent) < 10_000:
            sent.append(b" " * 65536)
            yield sent[-1]

    with contextlib.suppress(httpx.WriteError):  # the server may hang up while we are still sending
        answer = writing.client.post("/api/sessions/middle/tell", content=endless(), headers=JSON)
        assert answer.status_code == 413
    assert len(sent) < 1000


def nested(depth):
    return b'{"a":' * depth + b"1" + b"}" * depth


TABLE = b'{"name": "odd", "problem": {"kind": "table", "goal": "largest", "plans": %s}}'
VALUES = (b"NaN", b"1e400", b"9" * 5000, b"[1, 1e999]", b'"1"', b"true", b"{}", b"[" + b"1," * 5000 + b"1]")
ODD_BODIES = [
    *(("fresh/ask", body) for body in (b"", b"[]", b'{"n": 1e400}', nested(300), b'{"worker": "\\ud800"}')),
    *(("fresh/tell", body) for body in (b"{", b'"text"', b"\xff\xfe", b"[" * 100_000, nested(50_000))),
    *(("fresh/tell", b'{"arm": "copper", "value": ' + value + b"}") for value in VALUES),
    *(("fresh/tell", b'{"request": %s, "value": 1}' % one) for one in (b"0", b'"99.0"', b'"x"')),
    *(
        ("fresh/tell", b'{"arm": "copper", "value": 1, "worker": %s}' % one)
        for one in (b"7", b'"' + b"w" * 500 + b'"', b'"a\\u0000b"')
    ),
    ("fresh/tell", b'{"arm": "copper", "value": 1n": 2}'),  # "expected `,` or `}`" is no pattern to be filled
    ("fresh/tell", b'{"arm": "\\ud800", "value": 1}'),
    *(("", b'{"name": "odd", "problem": %s}' % one) for one in (nested(190), nested(5000), b"[]")),
    *(("", TABLE % plans) for plans in (b"[[1, NaN], [0, 1]]", b'["a", "b"], "delta": "x"')),
]


@pytest.mark.parametrize(("path", "body"), ODD_BODIES, ids=lambda part: str(part[:60]))
def test_odd_bodies_are_refused_in_words_and_change_nothing(writing, store, path, body):
    before = positions(store)
    answer = writing.api.post(f"/api/sessions/{path}".rstrip("/"), content=body, headers=JSON)
    assert answer.status_code in (400, 413)
    assert answer.json()["error"]
    assert positions(store) == before


def test_text_that_utf8_cannot_say_is_shown_and_refused(writing, store):
    """A form in another encoding can hold half a surrogate pair."""
    parts = {"arm": "copper", "value": r"\ud800", "worker": r"\udfff"}
    lines = [f'--x\r\ncontent-disposition: form-data; name="{k}"\r\n\r\n{v}\r\n' for k, v in parts.items()]
    body = "".join([*lines, "--x--\r\n"]).encode()
    before = positions(store)
    headers = {"content-type": "multipart/form-data; boundary=x; charset=unicode_escape"}
    answer = writing.client.post("/api/sessions/fresh/tell", content=body, headers=headers)
    assert answer.status_code == 400
    assert positions(store) == before


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "1e400", "", "  ", "twelve", "1,234", "1 x", "0x10"])
def test_a_value_that_is_none_is_refused_at_its_field(writing, store, value):
    before = positions(store)
    form = {"arm": "copper", "value": value, "worker": "Ann"}
    answer = writing.client.post("/api/sessions/fresh/tell", data=form)
    assert answer.status_code == 400
    assert 'id="tell-value-error"' in answer.text
    assert 'value="Ann"' in answer.text
    assert positions(store) == before


def test_a_body_that_never_comes_is_not_awaited_for_ever(store, monkeypatch):
    monkeypatch.setattr("surepick.web.security.BODY_SECONDS", 0.3)
    with running(store) as server, connected(server) as line:
        line.sendall(
            f"POST /api/sessions/middle/tell HTTP/1.1\r\nHost: localhost\r\n{BEARER}".encode()
            + b"Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
        )
        assert b" 408 " in line.recv(65536).split(b"\r\n")[0]


@pytest.mark.parametrize("announced", [b"\xb2", b"7" * 5000, b"-1", b"1e3"])
def test_a_length_that_is_no_number_is_refused(announced, store):
    app, _ = create_app(Settings(store, TOKEN))

    async def status():
        transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            headers = [(b"content-type", b"application/json"), (b"content-length", announced)]
            headers += [(b"authorization", f"Bearer {TOKEN}".encode())]
            return (await client.post("/api/sessions/sure/ask", content=b"{}", headers=headers)).status_code

    assert asyncio.run(status()) == 413
