"""Files from a browser: read by a process of their own, with limited memory and time, in one folder.

A problem file can ask for a billion candidates, a workbook unpacks to a thousand times its size. Such a file
gets an error after a while; the server continues.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
import sys
import tempfile
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from surepick.core.about import About
from surepick.core.prior_data import PriorData
from surepick.errors import FileError, MissingExtraError, SurepickError
from surepick.files.measurements import Row, read_rows
from surepick.problems.truth import Truth
from surepick.sessions import codec
from surepick.tables import SHEETS
from surepick.views.view import to_json

EXAMPLE = "trips.csv"
SECONDS = 60
MEMORY = 4 * 2**30  # bytes of address space, most of which no process ever touches
MOST_FILES = 20
MOST_KEPT = 8  # uploads of forms with a mistake elsewhere
FORECAST_SECONDS = 8.0  # after which no further choice is tried
_COMMANDS = {"problem": "`surepick new`", "check": "`surepick check`", "rows": "`surepick tell --from`"}


@dataclass(frozen=True)
class Upload:
    """A file as it came: the name that the browser gave it, and its bytes."""

    name: str
    content: bytes


def example() -> Upload:
    """Return the spreadsheet to try surepick with: the routes of `surepick demo`."""
    return Upload(EXAMPLE, (files("surepick.inputs") / "starters" / EXAMPLE).read_bytes())


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
        """Keep these files and return a key to them that cannot be guessed; equal files keep their key."""
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

    async def problem(self, uploads: Sequence[Upload], limits: Mapping[str, float | None]) -> Truth:
        """Return the problem in the file among these, within these limits; the others are attachments."""
        answer = await self.read("problem", uploads, limits)
        about, prior = vars(About.from_json(answer["about"])), answer["prior"]
        return Truth(
            codec.problem_from_json(answer["problem"]).with_about(**about),
            prior=None if prior is None else PriorData.from_json(prior),
            settings=answer["settings"],
        )

    async def rows(self, upload: Upload) -> list[Row]:
        """Return the measurements in this spreadsheet."""
        name = _plain(upload.name)
        if not name.lower().endswith((".csv", *SHEETS)):
            raise FileError(f"expected a spreadsheet (.xlsx or .csv), got {name!r}", field="file")
        try:
            answer = await self.read("rows", [upload])
        except FileError as error:
            error.field = "file"
            raise
        return [Row(**row) for row in answer["rows"]]

    async def read(
        self, what: str, uploads: Sequence[Upload], settings: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Return what another process reads in these files: a "problem", its "check", or "rows" of values."""
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


def _answer(what: str, path: str, settings: dict[str, Any]) -> dict[str, Any]:
    """Return what is read in this file."""
    from surepick.inputs.load import read_problem
    from surepick.problems.kinds.program import solving_within
    from surepick.report.check import check, with_limits

    try:
        if what == "rows":
            return {"rows": [vars(row) for row in read_rows(Path(path))]}
        with solving_within(0.75 * SECONDS):  # so that it can say so before it is ended
            loaded = read_problem(path, confined=True)
        loaded = with_limits(loaded, settings["low"], settings["high"])
        if what == "check":
            found: dict[str, Any] = to_json(check(loaded, settings, seconds=FORECAST_SECONDS).to_json())
            return found
        problem, prior = loaded.problem, None if loaded.prior is None else loaded.prior.to_json()
        return {
            "problem": codec.problem_to_json(problem),
            "about": problem.about.to_json(),
            "prior": prior,
            "settings": dict(loaded.settings),
        }
    except MissingExtraError as error:
        return {"error": f"{error} (where the server runs), or save the spreadsheet as CSV"}
    except SurepickError as error:
        return {"error": str(error)}
    except RecursionError:
        return {"error": f"{path!r} is nested too deeply to be a problem"}


if __name__ == "__main__":
    with contextlib.suppress(ImportError):  # not on Windows; the time limit of the caller holds everywhere
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    print(json.dumps(_answer(sys.argv[1], sys.argv[2], json.loads(sys.argv[3]))))
