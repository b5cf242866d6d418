"""Row files: one JSON line for each finished case, appended as it finishes.

A file survives a kill at any moment: a torn last line is cut off and its case runs again. Any other line that
is not a row is an error that names it.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from surepick.errors import FileError
from surepick.experiments.cases import Case, Row
from surepick.sessions import codec

SYNC_SECONDS = 1.0  # a power cut may cost the rows of this long; a kill costs none


@dataclass(frozen=True)
class RowsFile:
    """The rows of a file, and the torn end of its last line."""

    rows: tuple[Row, ...]
    torn: bytes = b""  # what a killed run left of the line that it was writing
    n_good_bytes: int = 0  # where the torn end begins


def row_to_line(row: Row) -> str:
    """Return the row as one line of JSON.

    >>> from surepick.experiments.cases import run_case
    >>> spec = {"kind": "given", "plans": [[1, 0], [0, 1]], "means": [1, 0]}
    >>> row = run_case(Case(spec, {"policy": "CombGapE", "radius": "published"}))
    >>> row_from_line(row_to_line(row)) == row
    True
    """
    values = {field.name: getattr(row, field.name) for field in dataclasses.fields(row)}
    return codec.dumps(
        {
            **values,
            "key": row.case.key,
            "case": row.case.to_json(),
            "counts": list(row.counts),
            "limit": codec.finite_or_none(row.limit),
            "characteristic_time": codec.finite_or_none(row.characteristic_time),
            "parameters": dict(row.parameters),
            "versions": dict(row.versions),
        }
    )


def row_from_line(line: str | bytes) -> Row:
    """Return the row of a line; raise a ValueError that says what is wrong with it."""
    try:
        data = json.loads(line)
        lower, upper = (math.inf if end is None else end for end in data["characteristic_time"])
        for computed in ("key", "limit"):
            data.pop(computed)
        changed = {
            "case": Case.from_json(data["case"]),
            "counts": tuple(data["counts"]),
            "characteristic_time": (lower, upper),
        }
        return Row(**{**data, **changed})
    except (TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"it is not a row ({error})") from None


def read_rows(path: str | Path) -> RowsFile:
    """Return the rows of a file; a missing file has none, and a damaged line raises a `FileError`."""
    path = Path(path)
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return RowsFile(())
    except OSError as error:
        raise FileError(f"cannot read {str(path)!r}: {error.strerror}") from None
    whole, newline, last = content.rpartition(b"\n")
    rows = []
    for number, line in enumerate(whole.split(b"\n") if newline else [], start=1):
        try:
            rows.append(row_from_line(line))
        except ValueError as error:
            raise FileError(
                f"line {number} of {str(path)!r} is damaged: {error}. Remove the line; its case runs again.",
                field=f"line {number}",
            ) from None
    return RowsFile(tuple(rows), last, len(content) - len(last))


class RowWriter:
    """Appends rows to a file, each whole and at once; made by `appending`."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._synced = time.monotonic()

    def write(self, row: Row) -> None:
        """Add the row; it survives the death of this process from here on."""
        self._stream.write(row_to_line(row).encode() + b"\n")
        self._stream.flush()
        if time.monotonic() - self._synced > SYNC_SECONDS:
            self.sync()

    def sync(self) -> None:
        """Make all rows survive a power cut too."""
        os.fsync(self._stream.fileno())
        self._synced = time.monotonic()


@contextmanager
def appending(path: str | Path) -> Iterator[RowWriter]:
    """Open the file for more rows, with any torn end cut off; one process at a time."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as stream:
        _lock(stream, path)
        found = read_rows(path)
        if found.torn:
            try:
                row_from_line(found.torn)
                stream.write(b"\n")  # only the line end was missing
                stream.flush()
            except ValueError:
                stream.truncate(found.n_good_bytes)
        writer = RowWriter(stream)
        try:
            yield writer
        finally:
            writer.sync()


def _lock(stream: IO[bytes], path: Path) -> None:
    try:
        import fcntl
    except ImportError:  # Windows has no such lock: there the user must not start two runs on one file
        return
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise FileError(
            f"another run is writing to {str(path)!r}; wait for it, or choose another folder", field="out"
        ) from None
