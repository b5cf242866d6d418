"""Odd inputs by the thousand: whatever comes in from outside is taken or refused by a `SurepickError`.

    python tests/support/fuzzing.py                       # every target, 200 inputs each
    python tests/support/fuzzing.py --inputs 20000        # `make soak`
    python tests/support/fuzzing.py --target codec --seed 4711 --inputs 1   # one input again

An input fails by any other exception, by taking more than ten seconds or more than 1 GB of memory.
"""

import argparse
import asyncio
import contextlib
import copy
import io
import json
import os
import random
import re
import signal
import sys
import tempfile
import tomllib
import traceback
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote_from_bytes

import httpx
import numpy as np

import surepick as sp
from surepick.cli import COMMANDS, call, command_of
from surepick.errors import ParameterError, SurepickError
from surepick.inputs.load import read_problem
from surepick.policies import POLICIES
from surepick.problems.kinds.program import solving_within
from surepick.sessions import codec
from surepick.sessions.session import Session
from surepick.store import open_store
from surepick.web.app import create_app
from surepick.web.mcp import make_server
from surepick.web.settings import Settings

SECONDS, MEGABYTES = 10, 1024
SOLVING = 3.0  # seconds that the integer programs of one file may take together
STARTERS = Path(sp.__file__).parent / "inputs" / "starters"


NAMES = (
    *("0.0", "1.0", "t0.0", "-1", "--help", "-s", "1e5", "nan", "inf", "12,5", "$(touch pwned)", "`id`"),
    *("; rm -rf x", "a\tb", "a\nb", "", " ", "\u0000", "caf\u00e9", "\u202e", "'", '"', "\\", "{arm}"),
    *("%s", "../x"),
    *("a" * 300, "\ud800", "\u0661\u0662", "\u00b2", "7" * 5000, "<script>", "=1+1", "@SUM(1)"),
)
NUMBERS = (
    *(0, 1, -1, 2, 0.5, 1e-31, 1e31, 1e155, 1e308, -1e308, 5e-324, 2**63, -(2**63), 10**400, 1e10),
    *(float("nan"), float("inf"), True, False),
)


def odd(rng, depth=0):
    """Something that may stand anywhere in JSON."""
    kind = rng.randrange(8)
    if kind < 3:
        return rng.choice(NUMBERS)
    if kind < 5:
        return rng.choice(NAMES)
    if kind == 5 or depth > 3:
        return None
    if kind == 6:
        return [odd(rng, depth + 1) for _ in range(rng.randrange(4))]
    return {rng.choice(NAMES): odd(rng, depth + 1) for _ in range(rng.randrange(3))}


def places(value, at=()):
    """Where something can be changed in a JSON value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (*at, key)
        yield from places(item, (*at, key))


def mutated(rng, value):
    """The value with one to three changes."""
    value = copy.deepcopy(value)
    for _ in range(rng.randrange(1, 4)):
        found = list(places(value))
        if not found:
            return odd(rng)
        *path, last = rng.choice(found)
        part = value
        for key in path:
            part = part[key]
        change = rng.randrange(6)
        if change == 0:
            del part[last]
        elif change == 1 and isinstance(part, list):
            part.append(copy.deepcopy(rng.choice(part)))
        elif change == 2 and isinstance(part, dict):
            part[rng.choice(NAMES)] = part.pop(last)
        elif change == 3:
            nested: Any = []
            for _ in range(rng.choice((5, 60, 120))):
                nested = [nested]
            part[last] = nested
        else:
            part[last] = odd(rng)
    return value


def garbled(rng, text):
    """The text with some of its bytes changed, removed or doubled."""
    data = bytearray(text)
    for _ in range(rng.randrange(1, 6)):
        at = rng.randrange(len(data) + 1)
        change = rng.randrange(4)
        if change == 0:
            data[at : at + rng.randrange(8)] = b""
        elif change == 1 and rng.random() < 0.1:
            data[at:at] = rng.choice((b"[", b'{"a":')) * 100_000
        elif change == 1:
            data[at:at] = rng.choice(NAMES).encode(errors="surrogatepass")
        elif change == 2:
            data[at:at] = data[at : at + rng.randrange(20)]
        else:
            data[at:at] = bytes([rng.randrange(256)])
    return bytes(data)


@cache
def documents():
    """Small problem files, as values."""
    starters = sorted(STARTERS.glob("*.toml"))
    found = [(path.stem, tomllib.loads(path.read_text(encoding="utf-8"))) for path in starters]
    table = {"kind": "table", "goal": "largest", "plans": [[1, 0, 2], [0, 1, 1]], "arms": list("abc")}
    table["noise"] = 0.5
    return [*found, ("table", table), ("table", {**table, "truth": {"means": [1, 2, 3]}})]


def files(rng, folder):
    """Problem files: JSON with odd values, TOML with odd letters."""
    name, document = rng.choice(documents())
    path = folder / "problem.json"
    if rng.random() < 0.7:
        path.write_text(json.dumps(mutated(rng, document)))
    else:
        path = folder / "problem.toml"
        path.write_bytes(garbled(rng, (STARTERS / f"{name}.toml").read_bytes()))
    for attachment in STARTERS.glob("*-*.csv"):
        (folder / attachment.name.split("-")[1]).write_bytes(attachment.read_bytes())
    with solving_within(SOLVING):
        read_problem(path, confined=True)


@cache
def problem():
    return sp.Problem(np.eye(3), arms=["a", "b", "0.0"], noise=0.5, goal="largest")


def csv_rows(rng, folder):
    """Measurements in CSV for `import`."""
    from surepick.files.measurements import import_rows, read_rows

    rows = ["token,arm,value,count,worker,picked,key,session"]
    for _ in range(rng.randrange(1, 5)):
        cells = [rng.choice(("0.0", "1.0", "t2.0", "", *NAMES)), rng.choice(("a", "b", "", *NAMES))]
        cells += [rng.choice((1.5, "2,5", *NUMBERS)), rng.choice(("", 1, 2, *NUMBERS)), "w", "", "", "s"]
        rows.append(rng.choice(",;\t").join(str(cell) for cell in cells))
    path = folder / "rows.csv"
    path.write_bytes(garbled(rng, "\n".join(rows).encode(errors="surrogatepass")) if rng.random() < 0.5 else
                     "\n".join(rows).encode(errors="surrogatepass"))  # fmt: skip
    session = Session.create("memory://", "s", problem(), policy=sp.BetGapE())
    import_rows(session, read_rows(path), worker="")
    session.ask()


@cache
def kept_values():
    """Problems and policies as logs keep them."""
    family = sp.problems.top_k(["a", "b", "c"], 2, goal="largest", list_plans=False, noise=1)
    kept: list[Any] = [("problem", codec.problem_to_json(one)) for one in (problem(), family)]
    return kept + [
        ("policy", codec.policy_to_json(POLICIES[name](delta=0.1))) for name in ("BetGapE", "CombGapE")
    ]


def codecs(rng, folder):
    """Problems and policies in JSON."""
    what, value = rng.choice(kept_values())
    changed = json.loads(json.dumps(mutated(rng, value)))
    if what == "problem":
        codec.problem_from_json(changed)
    else:
        codec.policy_from_json(changed)


@cache
def finished():
    session = Session.create("memory://", "s", problem(), policy=sp.CombGapE())
    while requests := session.ask():
        session.tell(requests[0], 5.0 if requests[0].probe == 0 else 0.1)
    return session


def certificates(rng, folder):
    """Certificates for `verify`; whatever was changed, it does not hold."""
    from surepick.files.log import certificate_in, read_json

    session = finished()
    honest = session.certificate().to_json()
    changed = mutated(rng, json.loads(json.dumps(honest)))
    path = folder / "certificate.json"
    whole = json.dumps(changed).encode()
    path.write_bytes(whole if rng.random() < 0.8 else garbled(rng, whole))
    given = certificate_in(read_json(path))
    if given is None:
        raise ParameterError("no certificate")
    assert given == json.loads(json.dumps(honest)) or not session.verify(given).holds


ARMS = ["a", "b", "0.0"]
BY_PROBES = {"both": ["a", "b"], "0.0": ["0.0", "a"]}
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
        probes = BY_PROBES if name == "p" else "arms"
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
BODIES = (
    (HERE + "/s/tell", {"arm": "a", "value": 1.5, "worker": "w"}),
    (HERE + "/p/tell", {"arm": "both", "value": {"a": 1.0, "b": 2.0}, "sure": True}),
    (HERE + "/s/ask", {"n": 1, "worker": "w"}),
    (HERE + "/" + "x" * 40 + "/ask", {"n": 1}),
    ("/login", {"token": "x"}),
)
PAGES = (
    *("/s/{}?by={}&done={}", "/s/{}/history?page={}", "/s/{}/sheet?as={}", "/?page={}", "/new?name={}"),
    *(HERE + "?page={}", HERE + "/{}", HERE + "/{}/events?after={}&n={}", HERE + "/{}/export/{}"),
)


def forms(rng, folder):
    """Odd forms, odd JSON, and the pages around them; an answer of 500 is a failure, as is a lost log."""
    app, url = dashboard()
    make_sessions(url)
    name = rng.choice(SESSIONS)
    if rng.random() < 0.2:
        parts = (quote_from_bytes(words(rng, rng.choice(("0", "w", "accepted"))))[:LONG] for _ in range(4))
        sent = ("GET", rng.choice(PAGES).format(name, *parts), b"", "text/html")
    elif rng.random() < 0.6:
        sent = ("POST", *filled(rng, rng.choice(FORMS), name))
    else:
        path, given = rng.choice(BODIES)
        content = json.dumps(mutated(rng, given)).encode()
        sent = ("POST", path, garbled(rng, content) if rng.random() < 0.3 else content, "application/json")
    status = asyncio.run(status_of(app, *sent))
    if status >= 500 and status != 503:
        raise AssertionError(f"status {status} for {sent!r}")
    assert set(open_store(url).names()) >= set(SESSIONS) - {name}
    if status >= 400:
        raise ParameterError(f"status {status}")


def filled(rng, form, name):
    """Path, body and kind of content of a form as a person, or a program, fills it in."""
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


ENDLESS = ("serve", "reproduce", "demo")  # commands that take long, whatever they are given
PROBES = {"0.0": ["1.0", "-x"], "$(id)": {"1.0": 1}}


@cache
def commands():
    """The parameters of all commands but those; a new command is among them by itself."""
    return {name: command_of(name).params for name in COMMANDS if name not in ENDLESS}


def command_line(rng, folder):
    """Commands with odd words, in a folder with a problem and a session, of arms or of probes."""
    os.chdir(folder)
    probes = PROBES if rng.random() < 0.5 else "arms"
    table = {"kind": "table", "goal": "largest", "plans": [[1, 0], [0, 1]], "arms": ["1.0", "-x"]}
    (folder / "mine.json").write_text(json.dumps({**table, "measure": probes}))
    asked = sp.Problem(np.eye(2), arms=["1.0", "-x"], measure=probes, noise=1, goal="largest")
    Session.create("surepick.db", "s", asked, policy=sp.BetGapE())
    name = rng.choice(list(commands()))
    words = name.split() + (["mine.json"] if rng.random() < 0.4 else [])
    words += ["0.0"] if rng.random() < 0.3 else []
    odd_words = (*NAMES, *map(str, NUMBERS), "s", "mine.json", "surepick.db", "5")
    for _ in range(rng.randrange(4)):
        option = rng.choice(commands()[name])
        if option.param_type_name == "option" and rng.random() < 0.7:
            words.append(rng.choice(option.opts))
        if rng.random() < 0.8:
            words.append(rng.choice(odd_words))
    if any("--budget" in option.opts for option in commands()[name]):
        words += ["--budget", "50"]  # or it would measure for long
    words = [word for word in words if _is_text(word) and "\u0000" not in word]
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        code = call(words)
    assert code in (0, 1, 2, 3, 4, 130)
    if code:
        raise ParameterError(f"exit code {code}")


def _is_text(word):
    """Whether the terminal could give it; others are refused by `main` before any command."""
    return not any("\ud800" <= letter <= "\udfff" for letter in word)


TARGETS: dict[str, Callable[[random.Random, Path], None]] = {
    "files": files,
    "csv": csv_rows,
    "codec": codecs,
    "certificate": certificates,
    "cli": command_line,
    "forms": forms,
    "mcp": mcp,
}


TAKEN = Counter[str]()  # inputs that were not refused: without any, a target tests nothing


def too_long(*_):
    raise AssertionError(f"it took more than {SECONDS} s")


def fuzz(target, seed):
    """One input; how it failed, if it did."""
    signal.setitimer(signal.ITIMER_PROF, SECONDS)  # of its own time: a busy machine is no failure
    try:
        with (
            tempfile.TemporaryDirectory(prefix="surepick-fuzz-") as folder,
            contextlib.redirect_stderr(io.StringIO()),
        ):
            TARGETS[target](random.Random(f"{target} {seed}"), Path(folder))
        TAKEN[target] += 1
    except SurepickError:
        return None
    except BaseException:  # whatever it is, it is a failure
        return traceback.format_exc()
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        os.chdir("/")
    # of this process alone: ru_maxrss counts what the parent had when it started this one, too
    used = int(re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())[1]) // 1024
    return f"{used} MB in memory" if used > MEGABYTES else None


def main():
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--target", choices=TARGETS, action="append")
    parser.add_argument("--inputs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    signal.signal(signal.SIGPROF, too_long)
    finished()  # compiles, which takes its time
    Session.create("memory://", "s", problem(), policy=sp.BetGapE()).ask()
    failures = 0
    for target in options.target or TARGETS:
        for seed in range(options.seed, options.seed + options.inputs):
            failure = fuzz(target, seed)
            if failure is not None:
                failures += 1
                print(f"--target {target} --seed {seed} --inputs 1\n{failure}", flush=True)
        print(f"{target}: {options.inputs} inputs, {TAKEN[target]} taken", flush=True)
    sys.exit(failures > 0)


if __name__ == "__main__":
    main()
