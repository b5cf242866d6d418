"""The door: who gets in, from where, and what may be sent."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

import surepick as sp
from surepick.errors import ParameterError
from surepick.sessions.session import Session
from surepick.web import server as web_server
from surepick.web.app import create_app
from surepick.web.security import COOKIE, Keys
from surepick.web.settings import Settings
from web_tools import PROBLEM, TOKEN, Running, positions, running

JSON = {"content-type": "application/json"}
HTML = {"accept": "text/html"}


@pytest.fixture(scope="module")
def guarded(store: str) -> Iterator[Running]:
    """A dashboard that may write and needs the token."""
    with running(store, write=True, token=TOKEN) as server:
        yield server


def port_of(server: Running) -> int:
    return int(server.url.rsplit(":", 1)[1])


def connected(server: Running) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port_of(server)), timeout=10)


# Address and token


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "example.org"])
def test_beyond_this_machine_a_token_is_needed(host: str) -> None:
    with pytest.raises(ParameterError):
        Settings("memory://", host=host)
    assert Settings("memory://", host=host, token=TOKEN).is_local is False


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "127.8.8.8"])
def test_on_this_machine_it_is_not(host: str) -> None:
    assert Settings("memory://", host=host).is_local


def test_a_token_that_can_be_guessed_is_refused() -> None:
    with pytest.raises(ParameterError):
        Settings("memory://", token="secret")


def test_the_token_is_not_shown_where_settings_are() -> None:
    assert TOKEN not in repr(Settings("memory://", token=TOKEN))


@pytest.mark.parametrize(
    "path", ["/", "/sessions/sure", "/sessions/sure/events", "/sessions/sure/certificate.json"]
)
def test_without_the_token_nothing_is_shown(guarded: Running, path: str) -> None:
    answer = guarded.client.get(path)
    assert (answer.status_code, answer.headers["location"]) == (303, "/login")
    answer = guarded.client.get(path, headers={"accept": "*/*"})
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert "sure" not in answer.text.replace("surepick", "").replace("measure", "")


@pytest.mark.parametrize(
    "header", ["Bearer wrong", f"Basic {TOKEN}", "Bearer", f"Bearer {TOKEN}x", "Bearer \xff"]
)
def test_a_wrong_token_opens_nothing(guarded: Running, header: str) -> None:
    headers = {"authorization": header.encode("latin-1"), "accept": "*/*"}
    assert guarded.client.get("/api/", headers=headers).status_code == 401


def test_the_token_in_a_header_opens(guarded: Running) -> None:
    assert guarded.client.get("/api/", headers={"authorization": f"Bearer {TOKEN}"}).status_code == 200


def test_the_token_in_a_url_does_not(guarded: Running) -> None:
    answer = guarded.client.get(f"/api/?token={TOKEN}&access_token={TOKEN}", headers={"accept": "*/*"})
    assert answer.status_code == 401


def test_logging_in_sets_a_cookie_that_scripts_and_other_sites_do_not_get(guarded: Running) -> None:
    wrong = guarded.client.post("/login", data={"token": "wrong"})
    assert wrong.status_code == 401
    assert "set-cookie" not in wrong.headers
    answer = guarded.client.post("/login", data={"token": TOKEN})
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert TOKEN not in cookie
    with httpx.Client(base_url=guarded.url, cookies={COOKIE: answer.cookies[COOKIE]}, headers=HTML) as client:
        assert client.get("/sessions/sure").status_code == 200
        assert "Log out" in client.get("/").text
        assert client.post("/logout", data={"form_key": ""}).headers["set-cookie"].startswith(f'{COOKIE}=""')
    guarded.client.cookies.clear()


@pytest.mark.parametrize("cookie", ["", "1.2", "99999999999.abc", "inf.x", "nan.x", "a" * 4000])
def test_a_forged_cookie_opens_nothing(guarded: Running, cookie: str) -> None:
    answer = guarded.client.get("/api/", headers={"cookie": f"{COOKIE}={cookie}", "accept": "*/*"})
    assert answer.status_code == 401


def test_a_cookie_expires(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = Keys(TOKEN)
    cookie = keys.new_cookie()
    assert keys.remembers(cookie)
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 13 * 3600)
    assert not keys.remembers(cookie)


def test_logging_out_ends_the_cookie_wherever_it_was_copied(guarded: Running) -> None:
    cookie = guarded.client.post("/login", data={"token": TOKEN}).cookies[COOKIE]
    guarded.client.cookies.clear()
    copied = {"cookie": f"{COOKIE}={cookie}"}
    assert guarded.client.get("/api/", headers=copied).status_code == 200
    guarded.client.post("/logout", data={"form_key": ""}, headers=copied)
    assert guarded.client.get("/api/", headers=copied).status_code == 401
    guarded.client.cookies.clear()


def test_without_a_token_the_empty_token_opens_nothing_special() -> None:
    assert not Keys(None).opens("")


# Names and other sites


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8321", "localhost.evil.example", "", "1.2.3.4.example"]
)
def test_a_name_that_points_here_without_our_knowing_is_refused(looking: Running, host: str) -> None:
    assert looking.client.get("/", headers={"host": host}).status_code in (400, 421)


@pytest.mark.parametrize("host", ["localhost:1", "127.0.0.1", "[::1]:8321"])
def test_our_own_names_are_not(looking: Running, host: str) -> None:
    assert looking.client.get("/", headers={"host": host}).status_code == 200


def test_further_names_can_be_allowed() -> None:
    assert Settings("memory://", allowed_hosts=("plans.example",)).knows_host("plans.example")


FOREIGN = [
    {"origin": "https://evil.example"},
    {"origin": "null"},
    {"origin": "http://127.0.0.1:1"},
    {"sec-fetch-site": "cross-site"},
    {"sec-fetch-site": "same-site"},
]


@pytest.mark.parametrize("headers", FOREIGN, ids=str)
@pytest.mark.parametrize(
    "path", ["/sessions/middle/tell", "/api/sessions/middle/tell", "/sessions", "/login"]
)
def test_another_site_cannot_write(writing: Running, store: str, headers: dict[str, str], path: str) -> None:
    before = positions(store)
    form = {"form_key": writing.form_key(), "token": "0.0", "value": "1"}
    answer = writing.client.post(path, data=form, headers=headers)
    assert answer.status_code == 403
    assert writing.client.post(path, json={"token": "0.0", "value": 1}, headers=headers).status_code == 403
    assert positions(store) == before


def test_a_form_without_its_key_writes_nothing_and_loses_nothing(writing: Running, store: str) -> None:
    before = positions(store)
    for key in ("", "wrong"):
        form = {"token": "0.5", "value": "12.25", "who": "Ann", "form_key": key}
        answer = writing.client.post("/sessions/middle/tell", data=form)
        assert answer.status_code == 400
        assert "out of date" in answer.text
        assert 'value="12.25"' in answer.text
    assert positions(store) == before


@pytest.mark.parametrize("kind", ["text/plain", "", "application/xml"])
def test_what_a_form_of_another_site_could_send_as_json_is_refused(writing: Running, kind: str) -> None:
    body = b'{"token": "0.0", "value": 1}'
    answer = writing.client.post("/api/sessions/middle/tell", content=body, headers={"content-type": kind})
    assert answer.status_code == 415


def test_another_site_cannot_read_through_the_browser_but_may_link(looking: Running) -> None:
    foreign = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"}
    assert looking.client.get("/api/sessions/sure", headers=foreign).status_code == 403
    link = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    assert looking.client.get("/sessions/sure", headers=link).status_code == 200


@pytest.mark.parametrize(
    "path", ["/sessions/middle/tell", "/api/sessions/middle/ask", "/sessions", "/api/sessions"]
)
def test_without_write_nothing_is_written(looking: Running, store: str, path: str) -> None:
    before = positions(store)
    answer = looking.client.post(path, json={"token": "0.0", "value": 1})
    assert answer.status_code == 403
    assert "--write" in answer.text
    assert positions(store) == before


# Every answer


@pytest.mark.parametrize("path", ["/", "/sessions/sure", "/api/", "/static/style.css", "/nothing", "/login"])
def test_every_answer_carries_the_headers_that_protect_it(looking: Running, path: str) -> None:
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


def test_pages_load_nothing_from_elsewhere_and_hold_no_inline_code(writing: Running) -> None:
    for path in ("/", "/sessions/sure", "/sessions/middle", "/new"):
        page = writing.client.get(path).text
        assert "http://" not in page.replace("http://www.w3.org", "")
        assert "https://" not in page
        for sign in (" style=", "<style", " onclick=", " onload=", "javascript:", "<script>"):
            assert sign not in page


@pytest.mark.parametrize(
    "path",
    [
        "/static/../app.py",
        "/static/..%2fapp.py",
        "/static/%2e%2e/app.py",
        "/static/....//app.py",
        "/static//etc/passwd",
        "/static/..%5capp.py",
        "/sessions/..%2f..%2fetc%2fpasswd",
        "/sessions/~Li4vLi4vZXRjL3Bhc3N3ZA",
        "/../../etc/passwd",
    ],
)
def test_paths_lead_nowhere_else(looking: Running, path: str) -> None:
    with connected(looking) as line:
        line.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        answer = b"".join(iter(lambda: line.recv(65536), b""))
    assert b" 404 " in answer.split(b"\r\n")[0] or b" 400 " in answer.split(b"\r\n")[0]
    assert b"root:" not in answer
    assert b"def create_app" not in answer


# Names


SCRIPT = """<script>alert(1)</script>"'<img src=x onerror=alert(1)>{{7*7}}"""


def test_names_are_escaped_wherever_they_are_shown(memory_disk: Path) -> None:
    url = f"sqlite:///{memory_disk}/script.db"
    arms, plans = [f"arm {i} {SCRIPT}" for i in range(3)], [f"plan {i} {SCRIPT}" for i in range(3)]
    options = {"noise_scale": 0.5, "arm_names": arms, "plan_names": plans}
    problem = sp.Problem([[1, 0, 1], [0, 1, 1], [1, 1, 0]], **{"noise": 1, **options}, goal="largest")
    session = Session.create(url, f"session {SCRIPT}", problem, policy=sp.CombGapE())
    while session.ledger().n_told < 12:
        for request in session.ask(worker=f"worker {SCRIPT}"):
            session.tell(request, float(request.arm))
    session.ask(worker=f"worker {SCRIPT}")
    session.add_extra(arms[0], 1.0, note=f"note {SCRIPT}")
    session.note(f"remark {SCRIPT}")
    Session.create(url, "ended " + SCRIPT, problem, policy=sp.CombGapE()).close(f"reason {SCRIPT}")
    with running(url, write=True) as server:
        for tile in server.client.get("/api/").json()["sessions"]:
            here = f"/sessions/{tile['slug']}"
            for path in (
                "/",
                here,
                *(here + page for page in ("/rivals", "/arms", "/log", "/history", "/past")),
            ):
                page = server.client.get(path, params={"who": SCRIPT}).text
                assert "<script>alert" not in page
                assert "<img" not in page
                assert 'onerror=alert(1)>"' not in page
                assert "alert(1)>49" not in page
            assert "&lt;script&gt;" in server.client.get(here).text
            with server.client.stream("GET", here + "/events") as stream:
                data = next(line for line in stream.iter_lines() if line.startswith("data:"))
            assert "<script>" not in data
            assert "<img" not in data
        missing = server.client.get("/sessions/" + "<script>alert(1)<%2fscript>")
        assert "<script>alert" not in missing.text
        form = {"form_key": server.form_key(), "token": SCRIPT, "value": SCRIPT, "who": SCRIPT}
        answer = server.client.post(here + "/tell", data=form)
        assert answer.status_code == 400
        assert "<script>alert" not in answer.text
        files = {"files": (f"{SCRIPT}.toml", PROBLEM.encode())}
        answer = server.client.post("/sessions", data={**form, "name": SCRIPT, "delta": SCRIPT}, files=files)
        assert answer.status_code == 400
        assert "<script>alert" not in answer.text
        assert answer.text.count("&lt;script&gt;") >= 2


# Bodies


def test_a_body_that_is_too_long_is_refused_by_what_it_announces(writing: Running) -> None:
    long = b" " * (writing.settings.max_body + 1)
    assert writing.client.post("/api/sessions/middle/tell", content=long, headers=JSON).status_code == 413


def test_and_by_what_it_is(writing: Running) -> None:
    sent = []

    def endless() -> Iterator[bytes]:
        while len(sent) < 10_000:
            sent.append(b" " * 65536)
            yield sent[-1]

    try:
        answer = writing.client.post("/api/sessions/middle/tell", content=endless(), headers=JSON)
        assert answer.status_code == 413
    except httpx.WriteError:
        pass  # the server has hung up while we were still sending
    assert len(sent) < 1000


def test_an_upload_that_is_too_long_is_refused(writing: Running) -> None:
    files = {"files": ("trips.toml", b" " * (writing.settings.max_upload + 1))}
    assert writing.client.post("/sessions", files=files).status_code == 413


def test_a_login_is_short(guarded: Running) -> None:
    assert guarded.client.post("/login", data={"token": "x" * 5000}).status_code == 413


MALFORMED = [
    b"",
    b"{",
    b"[1]",
    b'"text"',
    b"\xff\xfe",
    b'{"token": "0.0", "value": NaN}',
    b'{"token": "0.0", "value": Infinity}',
    b'{"token": "0.0", "value": 1e400}',
    b'{"token": "0.0", "value": ' + b"9" * 5000 + b"}",
    b'{"token": "0.0", "value": [1, 1e999]}',
    b'{"token": "0.0", "value": "1"}',
    b'{"token": "0.0", "value": true}',
    b'{"token": "0.0", "value": {}}',
    b'{"token": "0.0", "value": []}',
    b'{"token": "0.0", "value": [' + b"1," * 5000 + b"1]}",
    b'{"token": "0.0"}',
    b'{"token": 0, "value": 1}',
    b'{"token": "99.0", "value": 1}',
    b'{"token": "0.99999999999999999999", "value": 1}',
    b'{"token": "x", "value": 1}',
    b'{"token": "0.0", "value": 1, "worker": 7}',
    b'{"token": "0.0", "value": 1, "worker": "' + b"w" * 500 + b'"}',
    b'{"token": "0.0", "value": 1, "worker": "a\\u0000b"}',
    b'{"token": "0.0", "mean": 1, "count": 1.5}',
    b'{"token": "0.0", "value": 1, "surprise": 1}',
    b"[" * 100_000,
    b'{"a":' * 50_000 + b"1" + b"}" * 50_000,
]


def nested(depth: int) -> bytes:
    return b'{"a":' * depth + b"1" + b"}" * depth


ODD_BODIES = [
    *(("fresh/ask", body) for body in (b"", b"[]", b'{"n": 1e400}', b'{"n": null, "m": 1}', nested(300))),
    ("fresh/ask", b'{"worker": "\\ud800"}'),
    ("fresh/tell", b'{"token": "0.0", "value": 1n": 2}'),  # "expected `,` or `}`" is no pattern to be filled
    ("fresh/tell", b'{"token": "0.0", "{0}": "{x}"}}'),
    ("fresh/tell", b'{"token": "\\ud800", "value": 1}'),
    ("fresh/tell", b'{"token": "0.0", "value": 1, "worker": "\\udfff"}'),
    ("", b'{"name": "odd", "problem": ' + nested(190) + b"}"),
    ("", b'{"name": "odd", "problem": ' + nested(5000) + b"}"),
    ("", b'{"name": "odd", "problem": []}'),
    ("", b'{"name": "odd", "problem": {"kind": "table", "plans": [[1, NaN], [0, 1]]}}'),
    ("", b'{"name": "\\ud800", "problem": {"kind": "table", "plans": [[1, 0], [0, 1]]}}'),
    ("", b'{"name": "odd", "problem": {"kind": "table", "plans": [[1, 0], [0, 1]]}, "delta": "x"}'),
    ("", b'{"name": "odd", "problem": {"kind": "table", "plans": [[1, 0], [0, 1]]}, "seed": -1}'),
    ("", b'{"name": "odd", "problem": {"kind": "table", "plans": [[1, 0], [0, 1]]}, "policy": {}}'),
]


@pytest.mark.parametrize(("path", "body"), ODD_BODIES, ids=lambda part: str(part[:40]))
def test_odd_bodies_are_refused_in_words(writing: Running, store: str, path: str, body: bytes) -> None:
    before = positions(store)
    answer = writing.client.post(f"/api/sessions/{path}".rstrip("/"), content=body, headers=JSON)
    assert answer.status_code in (400, 413)
    assert answer.json()["error"]
    assert positions(store) == before


def test_text_that_utf8_cannot_say_is_shown_and_refused(writing: Running, store: str) -> None:
    """A form in another encoding can hold half a surrogate pair."""
    parts = {"form_key": writing.form_key(), "token": "0.0", "value": r"\ud800", "who": r"\udfff"}
    lines = [f'--x\r\ncontent-disposition: form-data; name="{k}"\r\n\r\n{v}\r\n' for k, v in parts.items()]
    body = "".join([*lines, "--x--\r\n"]).encode()
    before = positions(store)
    headers = {"content-type": "multipart/form-data; boundary=x; charset=unicode_escape"}
    answer = writing.client.post("/sessions/fresh/tell", content=body, headers=headers)
    assert answer.status_code == 400
    assert positions(store) == before


@pytest.mark.parametrize("body", MALFORMED, ids=lambda body: body[:44].decode("latin-1"))
def test_malformed_json_is_refused_and_changes_nothing(writing: Running, store: str, body: bytes) -> None:
    before = positions(store)
    answer = writing.client.post("/api/sessions/fresh/tell", content=body, headers=JSON)
    assert answer.status_code in (400, 413)
    assert answer.json()["error"]
    assert positions(store) == before


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "1e400", "", "  ", "twelve", "1,234", "1 x", "0x10"])
def test_a_value_that_is_none_is_refused_at_its_field(writing: Running, store: str, value: str) -> None:
    before = positions(store)
    form = {"form_key": writing.form_key(), "token": "0.0", "value": value, "who": "Ann"}
    answer = writing.client.post("/sessions/fresh/tell", data=form)
    assert answer.status_code == 400
    assert 'id="value-error"' in answer.text
    assert 'value="Ann"' in answer.text
    assert positions(store) == before


# Clients that hold it up


def hung_up(line: socket.socket, *, every: float, most: int) -> bool:
    """Whether the other side ends the connection while one header after another is sent."""
    for _ in range(most):
        try:
            line.sendall(b"X-Slow: 1\r\n")
        except ConnectionError:
            return True
        time.sleep(every)
    return False


def test_a_client_that_never_finishes_its_headers_is_hung_up_on(
    store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web_server, "HEADER_SECONDS", 0.3)
    with (
        running(store) as server,
        socket.create_connection(("127.0.0.1", port_of(server)), timeout=10) as line,
    ):
        line.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n")
        assert hung_up(line, every=0.05, most=100)
        assert server.client.get("/").status_code == 200


def test_a_body_that_never_comes_is_not_awaited_for_ever(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("surepick.web.security.BODY_SECONDS", 0.3)
    with running(store, write=True) as server, connected(server) as line:
        line.sendall(
            b"POST /api/sessions/middle/tell HTTP/1.1\r\nHost: localhost\r\n"
            b"Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
        )
        assert b" 408 " in line.recv(65536).split(b"\r\n")[0]


def test_a_viewer_that_takes_nothing_is_hung_up_on_and_harms_nobody(
    store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web_server, "STALL_SECONDS", 0.5)
    monkeypatch.setattr(web_server, "SEND_BUFFER", 4096)
    monkeypatch.setattr("surepick.web.live.LOOK_SECONDS", 0.02)
    monkeypatch.setattr("surepick.web.pages._moment", lambda session: time.monotonic())
    monkeypatch.setattr(
        "surepick.web.pages._session_parts",
        lambda context, name: {"answer": f"{time.monotonic()}" + 100_000 * "x"},
    )
    with running(store) as server, socket.socket() as line:
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        line.connect(("127.0.0.1", port_of(server)))
        line.sendall(b"GET /sessions/middle/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        hub = server.server.hub
        assert eventually(lambda: hub.n_viewers == 1)
        with server.client.stream("GET", "/sessions/middle/events") as stream:
            messages = (line for line in stream.iter_lines() if line.startswith("data:"))
            assert eventually(lambda: next(messages) and hub.n_viewers == 1), "the other one reads on"
        assert eventually(lambda: hub.n_viewers == 0)


def eventually(happens: Callable[[], bool], *, seconds: float = 20.0) -> bool:
    """Whether it happens before long."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if happens():
            return True
        time.sleep(0.02)
    return False


@pytest.mark.parametrize("announced", [b"\xb2", b"7" * 5000, b"-1", b"1e3"])
def test_a_length_that_is_no_number_is_refused(announced: bytes, store: str) -> None:
    app, _ = create_app(Settings(store, write=True))

    async def status() -> int:
        transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            headers = [(b"content-type", b"application/json"), (b"content-length", announced)]
            return (await client.post("/api/sessions/sure/ask", content=b"{}", headers=headers)).status_code

    assert asyncio.run(status()) == 413
