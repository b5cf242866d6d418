"""Measurements to and from files: CSV with a row each, and JSON with the log and the certificate."""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

from surepick.errors import FileError, ProblemError, SessionError, SurepickError
from surepick.files.log import log_of
from surepick.sessions import codec
from surepick.sessions.commands import number
from surepick.sessions.session import Session
from surepick.sessions.streams import Place
from surepick.tables import SHEETS, as_cell, csv_lines, from_cell, numeral

Row = dict[str, str]
_WHERE = " where"  # in a row: the line that it is of; no column has such a name
NAMES = ("arm", "probe", "reading", "worker", "key", "session")  # the columns that hold words of people
COLUMNS = ("token", "arm", "value", "time", "worker", "key")
PROBE_COLUMNS = ("token", "probe", "reading", *COLUMNS[2:])  # a row per reading
READ = {*COLUMNS, *PROBE_COLUMNS, "session", "remarks", "unit", "count"}  # the columns that mean something
YES, NO = ("yes", "y", "true", "1", "x"), ("", "no", "n", "false", "0")
MEANINGS = {
    "extra": "no request was open",
    "repeated": "in the log already; a new measurement with the same cells needs a `key` of its own",
    "not asked for yet": "nothing was recorded of them; import the file again later",
}


def _rows(session: Session) -> Iterator[dict[str, Any]]:
    by_arm = session.given_problem.arms_alone
    for m in session.measurements():
        if m.removed:
            continue
        moment = datetime.fromtimestamp(m.time, UTC).isoformat()
        yield {
            "token": m.token or "",
            **({"arm": m.arm} if by_arm else {"probe": m.probe_name, "reading": m.reading}),
            "value": repr(m.value),
            "time": moment,
            "worker": m.worker,
            "key": m.key or ("" if m.token else session.exported_key(m.number)),
        }


def write_csv(session: Session, stream: TextIO) -> None:
    """Write every measurement, one per row, with tokens and names that stay text; `import` reads it back.

    Of a probe every reading has a row.
    """
    writer = csv.DictWriter(stream, COLUMNS if session.given_problem.arms_alone else PROBE_COLUMNS)
    writer.writeheader()
    for row in _rows(session):
        token = row["token"] and Place.parse(row["token"]).for_sheets
        writer.writerow(names_as_cells({**row, "token": token}))


def names_as_cells(row: dict[str, Any]) -> dict[str, Any]:
    """The row with its names as cells that no spreadsheet computes."""
    return {column: as_cell(str(of)) if column in NAMES else of for column, of in row.items()}


def write_json(session: Session, stream: TextIO) -> None:
    """Write the log and, once there is one, the certificate: nothing that `verify` does not check."""
    data = {
        "certificate": session.certificate().to_json() if session.status != "running" else None,
        "log": log_of(session.store, session.name).to_json(),
    }
    stream.write(json.dumps(data, indent=1) + "\n")


def read_rows(file: Path) -> list[Row]:
    """Return the checked rows of a CSV file with the columns value, and token, arm or probe.

    A row without a token gets a key, if it has none: a digest of its cells and of all rows before it. So a
    file that is imported again, or again with more rows at its end, is counted once.
    """
    try:
        lines = csv_lines(file)
    except ProblemError as error:
        raise FileError(str(error)) from None
    header = [cell.strip().lower() for cell in lines[0][1]] if lines else []
    if "value" not in header or not {"token", "arm", "probe"} & set(header):
        raise FileError(
            f"{str(file)!r} needs a header with the column 'value', and 'token' or 'arm' (or 'probe'), got "
            f"{header}"
        )
    twice = next((name for name in header if name in READ and header.count(name) > 1), None)
    if twice is not None:
        raise FileError(f"{str(file)!r} has the column {twice!r} twice; keep the right one", field=twice)
    stripped = ((number, [*map(str.strip, cells)]) for number, cells in lines[1:])
    filled = [(number, cells) for number, cells in stripped if not _is_open(header, cells)]
    rows, so_far, mistakes = list[Row](), hashlib.sha256(), list[SurepickError]()
    for line, cells in filled:
        try:
            row = _row(file, line, header, cells)
        except FileError as error:
            mistakes.append(error)
            continue
        so_far.update(codec.dumps([row.get(name, "") for name in sorted(header)]).encode())
        if not row.get("token") and not row.get("key"):
            row["key"] = f"row {so_far.hexdigest()[:24]}"
        rows.append(row)
    if mistakes:
        raise several(mistakes)
    return rows


def several(mistakes: Sequence[SurepickError]) -> FileError:
    """Return one error for all mistakes of a table, which its `mistakes` list; nothing of it is recorded."""
    words = [str(mistake) for mistake in mistakes]
    if len(words) == 1:
        return FileError(words[0], field=mistakes[0].field)
    listed = "\n  ".join(words)
    error = FileError(f"{len(words)} rows cannot be read; none recorded\n  {listed}", field=mistakes[0].field)
    error.__dict__["mistakes"] = tuple(words)
    return error


def _is_open(header: list[str], cells: list[str]) -> bool:
    """Return whether this row of a measuring sheet has no value yet."""
    row = dict(zip(header, cells, strict=False))
    return bool(row.get("token")) and not row.get("value") and not any(cells[len(header) :])


def _row(file: Path, number: int, header: list[str], cells: list[str]) -> Row:
    """Return the row by column name; refuse one that cannot be recorded."""
    if any(cells[len(header) :]):
        raise FileError(
            f"line {number} of {str(file)!r} has {len(cells)} cells, the header has {len(header)}: {cells}; "
            "write numbers with a decimal point, or separate cells by semicolons where numbers have a comma"
        )
    row = dict(zip(header, cells, strict=False))
    if file.suffix.lower() not in SHEETS:  # whose cells say that they are text
        row |= {column: from_cell(row[column]) for column in NAMES if column in row}
    return checked_row(f"line {number} of {str(file)!r}", row)


def checked_row(where: str, row: Row) -> Row:
    """Return the row; refuse what cannot be read in one way only."""
    if not row.get("value") or not (row.get("token") or row.get("arm") or row.get("probe")):
        raise FileError(f"{where} needs a value, and a token or an arm; got {row}", field="value")
    try:
        numeral(row["value"])
    except ValueError:
        raise FileError(f"{where}: expected a number as value, got {row['value']!r}", field="value") from None
    arm, probe = row.get("arm"), row.get("probe")
    if arm and probe and arm != probe:
        raise FileError(
            f"{where} has {arm!r} as arm and {probe!r} as probe; leave one of them out", field="probe"
        )
    if row.get("count", "") not in ("", "1"):
        raise FileError(
            f"{where}: a row is one measurement, got {row['count']!r} as count; give the single values",
            field="count",
        )
    return {**row, _WHERE: where}


def import_rows(session: Session, rows: list[Row], *, worker: str) -> dict[str, int]:
    """Record the rows in their order and return how many had each result.

    A row answers the request that it names, else the oldest open one of its arm; with none open it is extra.
    Consecutive rows with the same request, or probe, are readings of one measurement. The column "remarks" is
    kept as a note. A row whose key is in the log is not recorded again.

    A row far ahead of the open batch cannot be recorded yet. Such rows are tried again, since the others may
    complete the batch, until a pass over them records none.
    """
    counts = {"recorded": 0, "repeated": 0, "extra": 0, "not asked for yet": 0}
    probes_and_values(session, rows)
    waiting = [use for use in uses_in(rows) if not _tell_use(session, use, worker, counts)]
    while waiting:
        left = [use for use in waiting if not _tell_use(session, use, worker, counts)]
        if len(left) == len(waiting):
            counts["not asked for yet"] = len(left)
            break
        waiting = left
    return counts


def in_words(counts: Mapping[str, int]) -> str:
    """Say what became of the rows of a file.

    >>> in_words({"recorded": 2, "repeated": 0, "extra": 1})
    '2 recorded, 1 extra (no request was open)'
    >>> in_words({"recorded": 0, "repeated": 3})
    'nothing new: all 3 rows are in the log already'
    """
    if counts["repeated"] and counts["repeated"] == sum(counts.values()):
        return f"nothing new: all {counts['repeated']} rows are in the log already"
    became = [
        f"{count} {what}" + (f" ({MEANINGS[what]})" if what in MEANINGS else "")
        for what, count in counts.items()
        if count
    ]
    return ", ".join(became) or "nothing to import: no row has a value"


def uses_in(rows: list[Row]) -> list[list[Row]]:
    """The rows by measurement: of a probe with several readings, those that belong to one use of it."""
    uses: list[list[Row]] = []
    for row in rows:
        same = bool(uses) and all(uses[-1][0].get(c) == row.get(c) for c in ("token", "probe"))
        reading = row.get("reading", "")
        if same and reading and all(reading != other.get("reading") for other in uses[-1]):
            uses[-1].append(row)
        else:
            uses.append([row])
    return uses


def probes_and_values(session: Session, rows: Sequence[Row]) -> list[tuple[int, Any]]:
    """Return the probe and the value of each row; a row that cannot be right is refused.

    Call it before anything is recorded. Rows of a play that has no request yet are left out.
    """
    return [_probe_and_value(session, row) for row in rows if _is_known(session, row)]


def _probe_and_value(session: Session, row: Row) -> tuple[int, Any]:
    """Return the probe and the value of a row; by reading name, if the probe has several readings.

    A name that is not known, a token of another arm than its row says and a value out of range are refused.
    """
    problem, unit = session.problem, session.problem.about.unit
    if row.get("unit", "") not in ("", unit):
        known = f"measures in {unit!r}" if unit else "has no unit"
        raise SessionError(
            f"{_where(row)} has the unit {row['unit']!r} and this session {known}; convert the values, or "
            "leave the column 'unit' out",
            field="unit",
        )
    named = problem.probe(_named(row)) if _named(row) else None
    probe = session.probe_of(row["token"]) if row.get("token") else problem.probe(_named(row))
    if named not in (None, probe):
        raise SessionError(
            f"token {row['token']!r} is a measurement of {problem.probe_names[probe]!r} in session "
            f"{session.name!r}, and the file has {_named(row)!r} beside it, so it was written for other "
            f"{problem.probe_word}s; nothing was recorded. Import it into its own session, or leave the "
            "column 'token' out",
            field="token",
        )
    reads, readings = problem.reads(probe), problem.readings_of(probe)
    name = row.get("reading") or (reads[0] if len(reads) == 1 else "")
    if name not in reads:
        listed = ", ".join(map(repr, reads))
        raise SessionError(
            f"{_where(row)}: the column 'reading' says which number of {problem.probe_names[probe]!r} it is, "
            f"one of {listed}, got {name!r}; nothing was told",
            field="reading",
        )
    value = number(problem, readings[reads.index(name)], row["value"])
    return probe, value if len(reads) == 1 else {name: value}


def _is_known(session: Session, row: Row) -> bool:
    """Return whether the row can be checked; one of a play without a request yet has to wait."""
    problem = session.problem
    if not problem.plays or not row.get("token"):
        return True
    return _named(row) in problem.probe_names or Place.parse(row["token"]).probe < problem.n_probes


def _where(row: Row) -> str:
    return row.get(_WHERE, "a row")


def _named(row: Row) -> str:
    """The name of the arm or probe that a row says; empty where it does not."""
    return row.get("probe") or row.get("arm") or ""


def _told(session: Session, use: list[Row]) -> Any:
    """Return the value of one measurement from its rows: a number, or readings by name."""
    probe = (
        session.probe_of(use[0]["token"]) if use[0].get("token") else session.problem.probe(_named(use[0]))
    )
    if len(session.problem.reads(probe)) == 1:
        return numeral(use[0]["value"])
    return {row["reading"]: numeral(row["value"]) for row in use}


def _tell_use(session: Session, use: list[Row], worker: str, counts: dict[str, int]) -> bool:
    """Record one measurement and count its result; return False if it is too far ahead to record yet."""
    row = use[0]
    token = row.get("token", "")
    if not _is_known(session, row) or (token and not session.takes(token)):
        return False
    receipt = session.tell(
        token or _named(row),
        _told(session, use),
        worker=row.get("worker") or worker,
        key="" if token else row.get("key", ""),
        note=row.get("remarks", ""),
        sure=True,  # callers have asked about surprising values before
    )
    counts[receipt.result] += 1
    return True
