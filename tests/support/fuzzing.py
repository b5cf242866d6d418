"""Odd inputs by the thousand: whatever comes in from outside is taken or refused by a `SurepickError`.

    python tests/support/fuzzing.py                       # every target, 200 inputs each
    python tests/support/fuzzing.py --inputs 20000        # `make soak`
    python tests/support/fuzzing.py --target codec --seed 4711 --inputs 1   # one input again

An input fails by any other exception, by taking more than ten seconds or more than 1 GB of memory.
"""

import argparse
import asyncio
import contextlib
import io
import json
import os
import random
import re
import resource
import signal
import sys
import tempfile
import tomllib
import traceback
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import numpy as np

import surepick as sp
from fuzzing_edges import forms, mcp
from odd_inputs import NAMES, NUMBERS, garbled, mutated
from surepick.cli import COMMANDS, call, command_of
from surepick.errors import ParameterError, SurepickError
from surepick.inputs.load import read_problem
from surepick.policies import POLICIES
from surepick.problems.kinds.program import solving_within
from surepick.sessions import codec
from surepick.sessions.session import Session
from surepick.web.app import create_app
from surepick.web.settings import Settings

SECONDS, MEGABYTES = 10, 1024
SOLVING = 3.0  # seconds that the integer programs of one file may take together
STARTERS = Path(sp.__file__).parent / "inputs" / "starters"


def as_json(value):
    return json.dumps(value)


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
        path.write_text(as_json(mutated(rng, document)))
    else:
        path = folder / "problem.toml"
        path.write_bytes(garbled(rng, (STARTERS / f"{name}.toml").read_bytes()))
    for attachment in STARTERS.glob("*.csv"):
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
    family = sp.problems.top_k_family(["a", "b", "c"], 2, goal="largest").oracle_problem(noise=1)
    kept: list[Any] = [("problem", codec.problem_to_json(one)) for one in (problem(), family)]
    return kept + [
        ("policy", codec.policy_to_json(POLICIES[name](delta=0.1))) for name in ("BetGapE", "CombGapE")
    ]


def codecs(rng, folder):
    """Problems and policies in JSON."""
    what, value = rng.choice(kept_values())
    changed = json.loads(as_json(mutated(rng, value)))
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
    changed = mutated(rng, json.loads(as_json(honest)))
    path = folder / "certificate.json"
    whole = as_json(changed).encode()
    path.write_bytes(whole if rng.random() < 0.8 else garbled(rng, whole))
    given = certificate_in(read_json(path))
    if given is None:
        raise ParameterError("no certificate")
    assert given == json.loads(as_json(honest)) or not session.verify(given).holds


@cache
def web_app():
    url = f"sqlite:///{tempfile.mkdtemp(prefix='surepick-fuzz-')}/web.db"
    Session.create(url, "s", problem(), policy=sp.BetGapE())
    return create_app(Settings(url, "correct horse battery"))[0]


BODIES = (
    ("/api/sessions/s/tell", {"arm": "a", "value": 1.5, "worker": "w"}),
    ("/api/sessions/s/ask", {"n": 1, "worker": "w"}),
    ("/api/sessions/" + "x" * 40 + "/ask", {"n": 1}),
    ("/login", {"token": "x"}),
)


def http(rng, folder):
    """Bodies and paths over HTTP; an answer of 500 is a failure."""
    path, body = rng.choice(BODIES)
    content = as_json(mutated(rng, body)).encode()
    if rng.random() < 0.3:
        content = garbled(rng, content)
    if rng.random() < 0.3:
        path = "/" + "/".join(rng.choice((*NAMES, "api", "sessions", "s")) for _ in range(rng.randrange(4)))
    kinds = ("json", "x-www-form-urlencoded")
    kinds = (*(f"application/{kind}" for kind in kinds), "multipart/form-data; boundary=x", "text/plain")

    async def ask():
        transport = httpx.ASGITransport(app=web_app(), raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            headers = {
                "content-type": rng.choice(kinds[: rng.randrange(1, 5)]),
                "authorization": "Bearer correct horse battery",
            }
            method = rng.choice(("POST", "POST", "GET"))
            url = httpx.URL("http://localhost").copy_with(
                raw_path=quote(path.encode(errors="replace"), safe="/%").encode()
            )
            answer = await client.request(method, url, content=content, headers=headers)
            return answer.status_code

    status = asyncio.run(ask())
    if status >= 500 and status != 503:
        raise AssertionError(f"status {status} for {path!r}: {content!r}")
    if status >= 400:
        raise ParameterError(f"status {status}")


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
    (folder / "mine.json").write_text(as_json({**table, "measure": probes}))
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
    "http": http,
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
    used = most_memory()
    return f"{used} MB in memory" if used > MEGABYTES else None


def most_memory():
    """The most memory that this process has had, in megabytes.

    Linux counts in `ru_maxrss` what the parent had when it started this process, too; the process's
    status does not."""
    status = Path("/proc/self/status")
    peak = re.search(r"VmHWM:\s+(\d+)", status.read_text()) if status.exists() else None
    if peak:
        return int(peak[1]) // 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


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
