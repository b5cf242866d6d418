"""Odd inputs for the forms of the dashboard and the MCP server.

What is drawn comes from `odd_inputs`; `fuzzing` runs it and says what a failure is.
"""

import asyncio
import os
import tempfile
from functools import cache
from typing import NamedTuple
from urllib.parse import quote_from_bytes

import httpx
import numpy as np

import surepick as sp
from odd_inputs import NAMES, NUMBERS, garbled, mutated
from surepick.errors import ParameterError
from surepick.sessions.session import Session
from surepick.store import open_store
from surepick.web.app import create_app
from surepick.web.mcp import make_server
from surepick.web.settings import Settings

ARMS = ["a", "b", "0.0"]
PROBES = {"both": ["a", "b"], "0.0": ["0.0", "a"]}
SESSIONS = ("s", "p", "done")
BEARER = {"authorization": "Bearer correct horse battery", "accept": "text/html"}
LONG = 3000  # letters, more than a form takes


def words(rng, right):
    """What may stand in a field: what belongs there, more often than not, or anything."""
    kind = rng.randrange(8)
    if kind < 4:
        return right.encode()
    if kind < 6:
        return str(rng.choice((*NAMES, *NUMBERS))).encode(errors="surrogatepass")
    return garbled(rng, right.encode()) if kind == 6 else right.encode() * rng.choice((2, LONG))


def make_sessions(url):
    """One of arms, one of probes, one that has ended; those that are there stay as they are."""
    there = open_store(url).names()
    for name in SESSIONS:
        if name in there:
            continue
        probes = PROBES if name == "p" else "arms"
        asked = sp.Problem(np.eye(3), arms=ARMS, noise=0.5, measure=probes, goal="largest")
        session = Session.create(url, name, asked, policy=sp.BetGapE(delta=0.1))
        session.ask(worker="w")
        if name == "done":
            session.close("to have one that has ended")


@cache
def dashboard():
    """The application, and the address of its store."""
    url = f"sqlite:///{tempfile.mkdtemp(prefix='surepick-fuzz-')}/forms.db"
    make_sessions(url)
    return create_app(Settings(url, "correct horse battery"))[0], url


class Form(NamedTuple):
    """A form of the dashboard, with what belongs into its fields; one with a `file` is an upload."""

    path: str
    fields: dict[str, str]
    file: tuple[str, str, bytes] | None = None  # field, name and content


PROBLEM = b'kind = "table"\ngoal = "largest"\nnoise = 1\nplans = [[1, 0], [0, 1]]\narms = ["a", "b"]\n'
ROWS = b"arm,value\na,1.5\n"
HERE = "/api/sessions"
NEW = {"name": "n", "policy": "", "delta": "0.1", "epsilon": "0", "budget": "50", "seed": "0", "kept": ""}
FORMS = (
    Form("/login", {"token": "x"}),
    Form("/logout", {}),
    Form(HERE + "/{}/tell", {"worker": "w", "arm": "a", "value": "1,5", "sure": "yes"}),
    Form(HERE + "/p/tell", {"arm": "both", "reading/both/a": "1", "reading/both/b": "2", "sure": "yes"}),
    Form(HERE + "/{}/ask", {"worker": "w", "n": "2"}),
    Form(HERE + "/{}/release", {"worker": "w"}),
    Form(HERE + "/{}/rename", {"name": "Trips"}),
    Form(HERE + "/{}/extend", {"delta": "0.01", "budget": "100"}),
    Form(HERE + "/{}/remove", {"number": "1", "reason": "a slip of the pen"}),
    Form(HERE + "/{}/plans", {"name": "new", "plan": "2*a + d", "arms": "d noise=1; e"}),
    Form(HERE + "/{}/final-batch", {"n": "9"}),
    Form(HERE + "/{}/close", {"reason": "enough"}),
    Form(HERE + "/{}", {"name": "s", "head": "3 " + "0" * 64}),  # delete
    Form(HERE + "/{}/import", {"worker": "w", "sure": "yes"}, ("file", "rows.csv", ROWS)),
    Form("/api/check", {"delta": "0.1", "low": "", "high": ""}, ("files", "mine.toml", PROBLEM)),
    Form(HERE, NEW, ("files", "mine.toml", PROBLEM)),
)
PAGES = (
    *(
        "/s/{}?by={}&done={}",
        "/s/{}/history?page={}",
        "/s/{}/sheet?as={}",
        "/?page={}",
        "/new?name={}",
        HERE + "?page={}",
    ),
    *(HERE + "/{}", HERE + "/{}/events?after={}&n={}", HERE + "/{}/export/{}"),
)


def forms(rng, folder):
    """Forms with odd fields, and the pages around them; an answer of 500 is a failure, as is a lost log."""
    app, url = dashboard()
    make_sessions(url)
    name = rng.choice(SESSIONS)
    if rng.random() < 0.2:
        parts = (quote_from_bytes(words(rng, rng.choice(("0", "w", "accepted"))))[:LONG] for _ in range(4))
        sent = ("GET", rng.choice(PAGES).format(name, *parts), b"", "text/html")
    else:
        sent = ("POST", *filled(rng, rng.choice(FORMS), name))
    status = asyncio.run(status_of(app, *sent))
    if status >= 500 and status != 503:
        raise AssertionError(f"status {status} for {sent!r}")
    assert set(open_store(url).names()) >= set(SESSIONS) - {name}
    if status >= 400:
        raise ParameterError(f"status {status}")


def filled(rng, form, name):
    """Path, body and kind of content of a form that somebody, or something, has filled in."""
    path = form.path.format(name if rng.random() < 0.9 else quote_from_bytes(words(rng, name))[:LONG])
    fields = {key: words(rng, right) for key, right in form.fields.items() if rng.random() < 0.95}
    if rng.random() < 0.1:
        fields[rng.choice(NAMES)] = words(rng, "1")
    if form.file is None and rng.random() < 0.9:
        pairs = [f"{quote_from_bytes(_bytes(key))}={quote_from_bytes(of)}" for key, of in fields.items()]
        body, kind = "&".join(pairs).encode(), "application/x-www-form-urlencoded"
    else:
        body, kind = (
            multipart(rng, fields, form.file or ("file", "x.csv", b"")),
            "multipart/form-data; boundary=x",
        )
    return path, garbled(rng, body) if rng.random() < 0.1 else body, kind


def multipart(rng, fields, file):
    field, name, content = file
    parts = [b'name="%s"\r\n\r\n%s' % (_bytes(key), of) for key, of in fields.items()]
    shown = words(rng, name).replace(b"\n", b"")
    parts += [b'name="%s"; filename="%s"\r\n\r\n' % (field.encode(), shown) + words(rng, content.decode())]
    return b"".join(b"--x\r\nContent-Disposition: form-data; " + of + b"\r\n" for of in parts) + b"--x--\r\n"


def _bytes(text):
    return text.encode(errors="surrogatepass")


async def status_of(app, method, path, body, kind):
    transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        url = httpx.URL("http://localhost").copy_with(raw_path=path.encode())
        answer = await client.request(method, url, content=body, headers={"content-type": kind, **BEARER})
        return answer.status_code


# The MCP server

CALLS = (
    ("check", {"file": "mine.toml", "delta": 0.05}),
    ("new", {"file": "mine.toml", "name": "n", "delta": 0.05, "epsilon": 0.0, "budget": 50}),
    ("ask", {"session": "s", "n": 1, "worker": "w"}),
    ("tell", {"session": "s", "request": "0.0", "arm": "a", "value": 1.5, "sure": True}),
    ("tell", {"session": "p", "request": "0.0", "arm": "both", "value": {"a": 1.0, "b": 2.0}}),
    ("status", {"session": "done"}),
)
FILES = ("/dev/zero", "/dev/stdin", "/proc/self/mem", ".", "pipe", "loop.toml", "mine.toml/x", "s.db")


def mcp(rng, folder):
    """Calls of tools with odd arguments; refused by a ToolError, and never by the server's own failure."""
    from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError

    os.chdir(folder)
    (folder / "mine.toml").write_bytes(garbled(rng, PROBLEM) if rng.random() < 0.2 else PROBLEM)
    (folder / "loop.toml").symlink_to("loop.toml")
    os.mkfifo(folder / "pipe")
    url = f"sqlite:///{folder}/s.db"
    make_sessions(url)
    server = make_server(url)
    n_refused = 0
    for _ in range(3):
        tool, given = rng.choice(CALLS)
        if rng.random() < 0.8:
            changed = mutated(rng, given)
            given = changed if isinstance(changed, dict) else given
        if "file" in given and rng.random() < 0.3:
            given["file"] = rng.choice(FILES)
        try:
            asyncio.run(server.call_tool(tool if rng.random() < 0.97 else rng.choice(NAMES), given))
        except UnexpectedToolError as error:
            raise error.__cause__ or error from None
        except ToolError:
            n_refused += 1
    if n_refused == 3:
        raise ParameterError("all calls were refused")
