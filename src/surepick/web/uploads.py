"""Files from a browser: read by a process of their own, with limited memory and time, in one folder.

A problem file can ask for a billion candidates, a workbook unpacks to a thousand times its size. Such a file
gets an error after a while; the server continues.
"""

from __future__ import annotations

import asyncio
import json
import math
import secrets
import sys
import tempfile
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from surepick.core.about import About
from surepick.core.oracle_problem import AnyProblem
from surepick.core.past import Past
from surepick.core.tables import SHEETS
from surepick.errors import FileError, MissingExtraError, ParameterError, SurepickError
from surepick.files.measurements import Row, read_rows
from surepick.sessions import codec

if TYPE_CHECKING:
    from surepick.problems.truth import Truth

SECONDS = 60
MEMORY = 4 * 2**30  # bytes of address space, most of which no process ever touches
MOST_FILES = 20
MOST_KEPT = 8  # uploads of forms with a mistake elsewhere
MOST_NAMED = 12  # plans
REHEARSALS, MOST_REHEARSED = 20, 20_000  # runs of a forecast, and measurements after which one is cut off
FORECAST_SECONDS = 8.0  # after which no further epsilon is tried
_COMMANDS = {"problem": "`surepick new`", "check": "`surepick check`", "rows": "`surepick tell --from`"}


@dataclass(frozen=True)
class Upload:
    """A file as it came: the name that the browser gave it, and its bytes."""

    name: str
    content: bytes


class Uploads:
    """Reads uploads, one at a time, and keeps the files of forms with a mistake elsewhere.

    Only the last few are kept, so that the same file need not be chosen again.

    >>> uploads = Uploads()
    >>> key = uploads.keep([Upload("routes.toml", b"")])
    >>> [upload.name for upload in uploads.kept(key)], uploads.kept("another")
    (['routes.toml'], [])
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[str, list[Upload]] = OrderedDict()
        self._turn = asyncio.Semaphore(1)

    def keep(self, uploads: list[Upload]) -> str:
        """Keep these; return a key to them that cannot be guessed."""
        known = next((key for key, kept in self._kept.items() if kept == uploads), None)
        key = known or secrets.token_urlsafe(16)
        self._kept[key] = uploads
        self._kept.move_to_end(key)
        while len(self._kept) > MOST_KEPT:
            self._kept.popitem(last=False)
        return key

    def kept(self, key: str) -> list[Upload]:
        """Return what was kept under this key, if it still is."""
        return self._kept.get(key, [])

    async def problem(self, uploads: Sequence[Upload]) -> tuple[AnyProblem, Past | None]:
        """Return the problem in the file among these, and its guess; the other files are attachments."""
        answer = await self._read("problem", uploads)
        past, about = answer["past"], vars(About.from_json(answer["about"]))
        problem = codec.problem_from_json(answer["problem"]).with_about(**about)
        return problem, None if past is None else Past.from_json(past)

    async def check(self, uploads: Sequence[Upload], settings: Mapping[str, Any]) -> dict[str, Any]:
        """Return what was read in these files, and a forecast for these settings."""
        return await self._read("check", uploads, settings)

    async def rows(self, upload: Upload) -> list[Row]:
        """Return the measurements in this spreadsheet."""
        name = _plain(upload.name)
        if not name.lower().endswith((".csv", *SHEETS)):
            raise FileError(f"expected a spreadsheet (.xlsx or .csv), got {name!r}", field="file")
        try:
            rows: list[Row] = (await self._read("rows", [upload]))["rows"]
        except FileError as error:
            error.field = "file"
            raise
        return rows

    async def _read(
        self, what: str, uploads: Sequence[Upload], settings: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        names = [_plain(upload.name) for upload in uploads]
        main = names[0] if what == "rows" else _main_file(names)
        async with self._turn:
            with tempfile.TemporaryDirectory(prefix="surepick-") as temporary:
                folder = Path(temporary)
                for name, upload in zip(names, uploads, strict=True):
                    (folder / name).write_bytes(upload.content)
                answer = await _in_another_process(what, folder, main, json.dumps(settings or {}))
        if "error" in answer:
            text = answer["error"].replace(str(folder / main), main)
            raise FileError(text.replace(str(folder), "the upload"))
        return answer


def _plain(name: str) -> str:
    """Return the last part of the name that a browser gave."""
    plain = name.replace("\\", "/").rsplit("/", 1)[-1].replace("\0", "").encode(errors="replace").decode()
    if plain in ("", ".", "..") or len(plain.encode()) > 200:
        raise FileError(f"a file needs a name of at most 200 letters, got {name[:80]!r}")
    return plain


def _main_file(names: Sequence[str]) -> str:
    if not names:
        raise FileError("choose a file: a spreadsheet (.xlsx, .csv) or a problem file (.toml, .json)")
    if len(set(names)) < len(names):
        raise FileError("two of the files have the same name; give attachments names of their own")
    if len(names) > MOST_FILES:
        raise FileError(f"at most {MOST_FILES} files can be sent together, got {len(names)}")
    found = [name for name in names if name.lower().endswith((".toml", ".json"))]
    if not found and len(names) == 1:
        return names[0]  # a spreadsheet alone, or refused for its ending
    if len(found) != 1:
        raise FileError(
            "choose one problem file (.toml or .json) with its attachments, or a spreadsheet alone (.xlsx or "
            f".csv); got {', '.join(map(repr, names))}"
        )
    return found[0]


async def _in_another_process(what: str, folder: Path, name: str, settings: str) -> dict[str, Any]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-P",  # no module may come from the folder that it runs in
        "-m",
        "surepick.web.uploads",
        what,
        str(folder / name),
        settings,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        async with asyncio.timeout(SECONDS):
            out, _ = await process.communicate()
    except TimeoutError:
        said = f"reading {name!r} took more than {SECONDS} s; make it smaller, or use {_COMMANDS[what]}"
        return {"error": said}
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode != 0:
        return {"error": f"{name!r} needs more memory or time than an upload may use; use {_COMMANDS[what]}"}
    answer: dict[str, Any] = json.loads(out)
    return answer


# What follows runs in the other process.


def _limit_this_process() -> None:
    try:
        import resource
    except ImportError:  # not on Windows; the time limit holds everywhere
        return
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))


def _load(path: str) -> Truth:
    from surepick.inputs.load import read_problem
    from surepick.problems.integer import solving_within

    with solving_within(0.75 * SECONDS):  # so that it can say so before it is ended
        return read_problem(path, confined=True)


def _problem(path: str) -> dict[str, Any]:
    loaded = _load(path)
    problem, past = loaded.problem, None if loaded.past is None else loaded.past.to_json()
    layout = None if problem.layout is None else problem.layout.to_json()
    kept = {**codec.problem_to_json(problem), "layout": layout}
    return {"problem": kept, "past": past, "about": problem.about.to_json()}


def describe(loaded: Truth, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return how a problem was read, and forecasts: at the given epsilon, and at others to choose from."""
    problem = loaded.problem
    plans = list(problem.plan_names[:MOST_NAMED]) if problem.is_listed else []
    noise = "unknown" if problem.noise_scale is None else "stated"
    if problem.bounds is not None:
        noise = "low and high"
    words = {
        "unknown": "The noise is not stated: it is learned while measuring.",
        "stated": "The noise is stated. If it is larger, nothing is guaranteed.",
        "low and high": "low and high are stated: readings outside them are refused.",
    }
    goal = "smallest" if problem.sign < 0 else "largest"
    unit = f", in {problem.about.unit}" if problem.about.unit else ""
    listed = f"{problem.n_plans:,} plans" if plans else problem.completeness
    return {
        "n_plans": problem.n_plans,
        "n_arms": problem.n_arms,
        "plans": plans,
        "n_more": max(0, (problem.n_plans or 0) - len(plans)) if plans else 0,
        "arms": list(problem.arm_names[:200]),
        "goal": goal,
        "unit": problem.about.unit,
        "noise": noise,
        "noise_text": words[noise],
        "text": f"Read: {listed} over {problem.n_arms:,} arms. The {goal} total is best{unit}.",
        **_forecasts(loaded, settings),
    }


def _forecasts(loaded: Truth, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the forecast at the epsilon that was given, and at others to choose from."""
    from surepick.policies import BetGapE
    from surepick.simulation.forecast import Rehearsals

    problem, centre = loaded.problem, loaded.means if loaded.guess is None else loaded.guess
    nothing: dict[str, Any] = {"forecast": None, "choices": [], "rehearsals": 0}
    if centre is None:
        return {**nothing, "no_forecast": "A forecast needs a row guess: what you expect of each arm."}
    rough, limit = loaded.noise_scale, settings["budget"] or MOST_REHEARSED
    spread = 0.0 if loaded.spread is None else loaded.spread
    try:
        stage = Rehearsals.around(problem, centre, spread, noise=rough, budget=limit, rehearsals=REHEARSALS)
    except ParameterError:
        return {**nothing, "no_forecast": "A forecast needs a row noise."}
    choices: list[dict[str, Any]] = []
    until, asked = time.monotonic() + FORECAST_SECONDS, settings["epsilon"]
    for one in sorted({0.0, asked, *_round_shares(stage.stake(problem))}, key=lambda e: (e != asked, e)):
        if choices and time.monotonic() > until:
            break
        found = stage.forecast(problem, BetGapE(delta=settings["delta"], epsilon=one), loaded.past)
        spans = {key: codec.finite_or_none(getattr(found, key)) for key in ("median", "low", "high")}
        choices.append({"epsilon": one, **spans})
    first = {key: choices[0][key] for key in ("median", "low", "high")}
    choices = sorted((one for one in choices if one["median"] is not None), key=lambda one: one["epsilon"])
    no_forecast = "" if choices else f"No end within {limit:,} measurements in most rehearsals."
    return {"forecast": first, "choices": choices, "rehearsals": REHEARSALS, "no_forecast": no_forecast}


def _round_shares(stake: float) -> list[float]:
    """Return two round differences below what choosing well is worth.

    >>> _round_shares(10.0)
    [2.0, 5.0]
    """
    if not stake > 0:
        return []
    power = 10.0 ** math.floor(math.log10(stake / 2))
    step = max(one * power for one in (1, 2, 5) if one * power <= stake / 2 * 1.001)
    half = {1: 0.5, 2: 1.0, 5: 2.0}[round(step / power)] * power
    return [round(half, 12), round(step, 12)]


def _answer(what: str, path: str, settings: str) -> dict[str, Any]:
    try:
        match what:
            case "problem":
                return _problem(path)
            case "check":
                return describe(_load(path), json.loads(settings))
            case _:
                return {"rows": read_rows(Path(path))}
    except MissingExtraError as error:
        return {"error": f"{error} (where the server runs), or save the spreadsheet as CSV"}
    except SurepickError as error:
        return {"error": str(error)}
    except RecursionError:
        return {"error": f"{path!r} is nested too deeply to be a problem"}


if __name__ == "__main__":
    _limit_this_process()
    print(json.dumps(_answer(*sys.argv[1:4])))
