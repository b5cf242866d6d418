"""Files from a browser: read by a process of their own, with limited memory and time, in one folder.

A problem file can ask for a billion candidates, a workbook unpacks to a thousand times its size. Whoever may
write may send that, and gets an error after a while; the server goes on.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import sys
import tempfile
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from surepick.core.about import About
from surepick.core.oracle_problem import AnyProblem
from surepick.core.past import Past
from surepick.errors import FileError, MissingExtraError, SurepickError
from surepick.files.measurements import Row, read_rows
from surepick.sessions import codec

SECONDS = 60
MEMORY = 4 * 2**30  # bytes of address space, most of which no process ever touches
MOST_FILES = 20
MOST_KEPT = 8
_COMMANDS = {"problem": "`surepick new`", "rows": "`surepick import`"}


@dataclass(frozen=True)
class Upload:
    """A file as it came: the name that the browser gave it, and its bytes."""

    name: str
    content: bytes


class Uploads:
    """Reads uploaded problems, one at a time, and keeps the files of forms with a mistake elsewhere.

    Only the last few are kept, so that nobody has to choose them again.

    >>> uploads = Uploads()
    >>> key = uploads.keep([Upload("routes.toml", b"")])
    >>> [upload.name for upload in uploads.kept(key)], uploads.kept("another")
    (['routes.toml'], [])
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[str, list[Upload]] = OrderedDict()
        self._turn = asyncio.Semaphore(1)

    def keep(self, uploads: list[Upload]) -> str:
        """Keep these; a key to them that nobody can guess."""
        key = secrets.token_urlsafe(16)
        self._kept[key] = uploads
        while len(self._kept) > MOST_KEPT:
            self._kept.popitem(last=False)
        return key

    def kept(self, key: str) -> list[Upload]:
        """What was kept under this key, if it still is."""
        return self._kept.get(key, [])

    async def problem(self, uploads: Sequence[Upload]) -> tuple[AnyProblem, Past | None]:
        """The problem in the TOML or JSON file among these, and its guess; the others are attachments."""
        names = [_plain(upload.name) for upload in uploads]
        answer = await self._read("problem", _main_file(names), uploads)
        past, about = answer["past"], vars(About.from_json(answer["about"]))
        problem = codec.problem_from_json(answer["problem"]).with_about(**about)
        return problem, None if past is None else Past.from_json(past)

    async def rows(self, upload: Upload) -> list[Row]:
        """The measurements in a CSV or Excel file."""
        rows: list[Row] = (await self._read("rows", _plain(upload.name), [upload]))["rows"]
        return rows

    async def _read(self, what: str, main: str, uploads: Sequence[Upload]) -> dict[str, Any]:
        """What another process finds in the main one of these files."""
        with tempfile.TemporaryDirectory(prefix="surepick-upload-") as place:
            folder = Path(place)
            for upload in uploads:
                (folder / _plain(upload.name)).write_bytes(upload.content)
            async with self._turn:
                answer = await _in_another_process(what, folder, main)
        if "error" in answer:
            said = answer["error"].replace(str(folder / main), main).replace(str(folder), "the upload")
            raise FileError(said)
        return answer


def _plain(name: str) -> str:
    """The last part of the name that a browser gave, which is all that it may say."""
    plain = name.replace("\\", "/").rsplit("/", 1)[-1].replace("\0", "").encode(errors="replace").decode()
    if plain in ("", ".", "..") or len(plain.encode()) > 200:
        raise FileError(f"a file needs a name of at most 200 letters, got {name[:80]!r}")
    return plain


def _main_file(names: Sequence[str]) -> str:
    if len(set(names)) < len(names):
        raise FileError("two of the files have the same name; attachments need names of their own")
    if len(names) > MOST_FILES:
        raise FileError(f"at most {MOST_FILES} files can be sent together, got {len(names)}")
    found = [name for name in names if name.lower().endswith((".toml", ".json"))]
    if not found and len(names) == 1:
        return names[0]  # a spreadsheet alone, or refused for its ending
    if len(found) != 1:
        got = ", ".join(map(repr, names)) or "none"
        raise FileError(
            "choose one problem file (.toml or .json), and with it its attachments, or a spreadsheet alone "
            f"(.xlsx or .csv); got {got}"
        )
    return found[0]


async def _in_another_process(what: str, folder: Path, name: str) -> dict[str, Any]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-P",  # no module may come from the folder that it runs in
        "-m",
        "surepick.web.uploads",
        what,
        str(folder / name),
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
        return {
            "error": f"{name!r} asks for more memory or time than an upload may use; use {_COMMANDS[what]}"
        }
    answer: dict[str, Any] = json.loads(out)
    return answer


def _limit_this_process() -> None:
    try:
        import resource
    except ImportError:  # not on Windows; the time limit holds everywhere
        return
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))


def _problem(path: str) -> dict[str, Any]:
    from surepick.inputs.load import read_problem
    from surepick.problems.integer import solving_within

    with solving_within(0.75 * SECONDS):  # so that it can say so before it is ended
        loaded = read_problem(path, confined=True)
    problem, past = loaded.problem, None if loaded.past is None else loaded.past.to_json()
    layout = None if problem.layout is None else problem.layout.to_json()
    kept = {**codec.problem_to_json(problem), "layout": layout}
    return {"problem": kept, "past": past, "about": problem.about.to_json()}


def _answer(what: str, path: str) -> dict[str, Any]:
    try:
        return _problem(path) if what == "problem" else {"rows": read_rows(Path(path))}
    except MissingExtraError as error:
        return {"error": f"{error} (where the dashboard runs), or save the spreadsheet as CSV"}
    except SurepickError as error:
        return {"error": str(error)}
    except RecursionError:
        return {"error": f"{path!r} is nested too deeply to be a problem"}


if __name__ == "__main__":
    _limit_this_process()
    print(json.dumps(_answer(*sys.argv[1:3])))
