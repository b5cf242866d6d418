"""The row files of a folder as pages: which there are, and what one says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from surepick.experiments.families import families
from surepick.experiments.rows import RowsFile, read_rows
from surepick.web.session_cache import UnknownSessionError, slug_of

MOST_FILES = 200
MOST_BYTES = 64 * 2**20  # of a row file that is shown


def row_files(folder: Path) -> list[str]:
    """The row files in this folder and in those right inside it, by name."""
    found = [*folder.glob("*.jsonl"), *folder.glob("*/*.jsonl")]
    return sorted(str(path.relative_to(folder)) for path in found if path.is_file())[:MOST_FILES]


def listing(folder: Path) -> dict[str, Any]:
    """The page that lists the row files."""
    return {"files": [{"name": name, "slug": slug_of(name)} for name in row_files(folder)]}


def comparison(folder: Path, name: str) -> dict[str, Any]:
    """The page of one row file; only files of the listing are opened."""
    if name not in row_files(folder):
        raise UnknownSessionError(f"there is no row file {name!r} in this folder")
    path = folder / name
    if path.stat().st_size > MOST_BYTES:
        raise UnknownSessionError(f"{name!r} is larger than {MOST_BYTES >> 20} MiB; it is not shown here")
    found = read_rows(path)
    return {"name": name, "n_rows": len(found.rows), "n_bad": _n_bad(found), "families": families(found.rows)}


def _n_bad(found: RowsFile) -> int:
    return len(found.bad) + bool(found.torn)
