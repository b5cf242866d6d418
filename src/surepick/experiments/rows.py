"""Row files: one JSON line for each finished case, appended as it finishes.

A file survives a kill at any moment: a torn last line is cut off and its case runs again. A line elsewhere
that is not a row is an error that names it.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from surepick.errors import FileError, missing_extra
from surepick.experiments.cases import Case, Row
from surepick.sessions import codec

FORMAT = 1
SYNC_SECONDS = 1.0  # a power cut may cost the rows of this long; a kill costs none


@dataclass(frozen=True)
class BadLine:
    """A line that is not a whole row, and why."""

    number: int
    reason: str


@dataclass(frozen=True)
class RowsFile:
    """What a row file holds: its good rows, its damaged lines, and the torn end of the last one."""

    rows: tuple[Row, ...]
    bad: tuple[BadLine, ...]
    torn: bytes  # what a killed run left of a line that it was writing
    n_good_bytes: int  # where the torn end begins


def row_to_line(row: Row) -> str:
    """The row as one line of JSON.

    >>> from surepick.experiments.cases import run_case
    >>> spec = {"kind": "given", "plans": [[1, 0], [0, 1]], "means": [1, 0]}
    >>> row = run_case(Case(spec, {"policy": "CombGapE", "radius": "published"}))
    >>> row_from_line(row_to_line(row)) == row
    True
    """
    return codec.dumps(_row_to_json(row))


def row_from_line(line: str) -> Row:
    """The row of a line; a ValueError says what is wrong with it."""
    try:
        data = json.loads(line)
    except json.JSONDecodeError as error:
        raise ValueError(f"it is not JSON ({error.msg} at column {error.colno})") from None
    if not isinstance(data, dict) or "format" not in data:
        raise ValueError("it is JSON but not a row")
    data.pop("crc", None)  # of 0.1.0
    if data.pop("format") != FORMAT:
        raise ValueError("it was written in another format, by another version of surepick")
    return _row_from_json(data)


def read_rows(path: str | Path) -> RowsFile:
    """The rows of a file, with what is damaged in it; a file that is not there has none."""
    path = Path(path)
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return RowsFile((), (), b"", 0)
    except OSError as error:
        raise FileError(f"cannot read {str(path)!r}: {error.strerror}") from None
    whole, newline, last = content.rpartition(b"\n")
    rows: list[Row] = []
    bad: list[BadLine] = []
    for number, line in enumerate(whole.split(b"\n") if newline else [], start=1):
        _take(line, number, rows, bad)
    return RowsFile(tuple(rows), tuple(bad), last, len(content) - len(last))


def _take(line: bytes, number: int, rows: list[Row], bad: list[BadLine]) -> None:
    if not line.strip():
        return
    try:
        rows.append(row_from_line(line.decode()))
    except (ValueError, KeyError, TypeError) as error:
        bad.append(BadLine(number, str(error)))


def checked_rows(path: str | Path) -> RowsFile:
    """The rows of a file, or an error that names its first damaged line and says what to do."""
    found = read_rows(path)
    if found.bad:
        first = found.bad[0]
        more = f" ({len(found.bad)} such lines)" if len(found.bad) > 1 else ""
        raise FileError(
            f"line {first.number} of {str(path)!r} is damaged: {first.reason}{more}; the other "
            f"{len(found.rows)} rows are good. Remove the line to keep them and run its case again"
        )
    return found


class RowWriter:
    """Appends rows to a file, each whole and at once; used inside `appending` alone."""

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
    """A writer of rows at the end of the file, with any torn end cut off; one process at a time."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as stream:
        _lock(stream, path)
        _cut_torn_end(stream, path)
        writer = RowWriter(stream)
        try:
            yield writer
        finally:
            writer.sync()


def _cut_torn_end(stream: IO[bytes], path: Path) -> None:
    found = read_rows(path)
    if not found.torn:
        return
    try:
        row_from_line(found.torn.decode())
    except (ValueError, KeyError, TypeError):
        stream.truncate(found.n_good_bytes)
    else:
        stream.write(b"\n")  # only the line end was missing
        stream.flush()


def _lock(stream: IO[bytes], path: Path) -> None:
    try:
        import fcntl
    except ImportError:  # no such lock on Windows: two runs on one file are the user's to avoid
        return
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise FileError(
            f"another run is writing to {str(path)!r}; wait for it to end, or choose another output folder"
        ) from None


def write_parquet(rows: Iterable[Row], path: str | Path) -> None:
    """The rows as a Parquet table: one column per field, specs as JSON text, the case first."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise missing_extra("pyarrow", "cluster") from None
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist([_flat(row) for row in rows]), path)


def _flat(row: Row) -> dict[str, Any]:
    case = row.case
    values = {f.name: getattr(row, f.name) for f in dataclasses.fields(row) if f.name != "case"}
    lower, upper = values.pop("characteristic_time")
    for name in ("parameters", "versions"):
        values[name] = codec.dumps(dict(values[name]))
    return {
        "key": case.key,
        "problem": codec.dumps(dict(case.problem)),
        "policy": str(case.policy["policy"]),
        "policy_spec": codec.dumps(dict(case.policy)),
        "seed": case.seed,
        "budget": case.budget,
        **values,
        "counts": list(row.counts),
        "characteristic_time_lower": lower,
        "characteristic_time_upper": upper,
    }


def _row_to_json(row: Row) -> dict[str, Any]:
    values = {f.name: getattr(row, f.name) for f in dataclasses.fields(row) if f.name != "case"}
    return {
        **values,
        "format": FORMAT,
        "key": row.case.key,
        "case": row.case.to_json(),
        "counts": list(row.counts),
        "limit": codec.finite_or_none(row.limit),
        "characteristic_time": codec.finite_or_none(row.characteristic_time),
        "parameters": dict(row.parameters),
        "versions": dict(row.versions),
    }


def _row_from_json(data: dict[str, Any]) -> Row:
    data.pop("key")
    data.pop("limit")
    lower, upper = (math.inf if end is None else end for end in data["characteristic_time"])
    return Row(
        **{
            **data,
            "case": Case.from_json(data["case"]),
            "counts": tuple(data["counts"]),
            "characteristic_time": (lower, upper),
        }
    )
