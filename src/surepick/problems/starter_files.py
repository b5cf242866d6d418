"""Starter files: a commented problem of every kind that runs, to be changed into one's own."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from surepick.errors import FileError, suggestion
from surepick.problems.file_kinds import KINDS


def write_starter(kind: str, folder: str | Path = ".", *, force: bool = False) -> list[Path]:
    """Write the starter of this kind, KIND.toml first, and its attachments into a folder.

    >>> import tempfile
    >>> [path.name for path in write_starter("paths", tempfile.mkdtemp())]
    ['paths.toml', 'paths-edges.csv']
    """
    if kind not in KINDS:
        raise FileError(f"there is no kind of problem named {kind!r}; {suggestion(kind, KINDS)}")
    target = Path(folder)
    parts = [p for p in (files("surepick.problems") / "starters").iterdir() if _belongs(p.name, kind)]
    parts.sort(key=lambda part: (not part.name.endswith(".toml"), part.name))
    there = [target / part.name for part in parts if (target / part.name).exists()]
    if there and not force:
        raise FileError(f"{str(there[0])!r} is already there; move it away, or replace it with --force")
    try:
        target.mkdir(parents=True, exist_ok=True)
        for part in parts:
            (target / part.name).write_text(part.read_text(encoding="utf-8"), encoding="utf-8")
    except OSError as error:
        raise FileError(f"cannot write to {str(target)!r}: {error.strerror}") from None
    return [target / part.name for part in parts]


def _belongs(name: str, kind: str) -> bool:
    return name == f"{kind}.toml" or name.startswith(f"{kind}-")
