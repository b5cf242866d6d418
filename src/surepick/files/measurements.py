"""Measurements to and from tables: CSV files and workbooks with a row for each reading."""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

from surepick.errors import FileError, ProblemError, SessionError, StoreError, SurepickError
from surepick.sessions import codec
from surepick.sessions.commands import exported_key, number
from surepick.sessions.events import AHEAD, place_of
from surepick.sessions.session import Session
from surepick.sessions.streams import Place
from surepick.tables import SHEETS, as_cell, csv_lines, from_cell, numeral

NAMES = ("arm", "probe", "reading", "worker", "key", "session")  # the columns with text that people write
COLUMNS = ("token", "arm", "value", "time", "worker", "key")
PROBE_COLUMNS = ("token", "probe", "reading", *COLUMNS[2:])  # a row per reading
READ = {*COLUMNS, *PROBE_COLUMNS, "session", "remarks", "unit", "count"}  # the columns that mean something


@dataclass(frozen=True)
class Row:
    """A row of a table: one reading. Cells that it does not have are empty; `where` names it in errors."""

    where: str
    value: str
    token: str = ""
    name: str = ""  # of the arm or probe
    reading: str = ""
    worker: str = ""
    key: str = ""
    remarks: str = ""
    unit: str = ""

    @classmethod
    def from_cells(cls, where: str, cells: Mapping[str, str]) -> Row:
        """Return the row of these cells by column; refuse what cannot be read in one way only."""
        arm, probe, value = (cells.get(column, "") for column in ("arm", "probe", "value"))
        if not value or not (cells.get("token") or arm or probe):
            raise FileError(f"{where} needs a value, and a token or an arm; got {dict(cells)}", field="value")
        try:
            numeral(value)
        except ValueError:
            raise FileError(
                f"{where}: expected a number as value, got {value!r}; leave the cell empty if there is none",
                field="value",
            ) from None
        if arm and probe and arm != probe:
            raise FileError(
                f"{where} has {arm!r} as arm and {probe!r} as probe; leave one of them out", field="probe"
            )
        if cells.get("count", "") not in ("", "1"):
            raise FileError(
                f"{where}: a row is one measurement, got {cells['count']!r} as count; give the single values",
                field="count",
            )
        others = ("token", "reading", "worker", "key", "remarks", "unit")
        return cls(where, value, name=probe or arm, **{column: cells.get(column, "") for column in others})


def write_csv(session: Session, stream: TextIO) -> None:
    """Write every measurement, with tokens and names that stay text; `import` reads the file back.

    There is a row for each reading of a probe.
    """
    by_arm = session.problem.arms_alone
    writer = csv.DictWriter(stream, COLUMNS if by_arm else PROBE_COLUMNS)
    writer.writeheader()
    for m in session.measurements():
        if m.removed:
            continue
        row = {
            "token": m.token and Place.parse(m.token).for_sheets,
            **({"arm": m.arm} if by_arm else {"probe": m.probe_name, "reading": m.reading}),
            "value": repr(m.value),
            "time": datetime.fromtimestamp(m.time, UTC).isoformat(),
            "worker": m.worker,
            "key": m.key or ("" if m.token else exported_key(session.journal, m.number)),
        }
        writer.writerow({name: as_cell(str(cell)) if name in NAMES else cell for name, cell in row.items()})


def read_rows(file: Path) -> list[Row]:
    """Return the checked rows of a CSV file with the columns value, and token, arm or probe.

    A row with neither a token nor a key gets a key: a digest of its cells and of all such rows before it. So
    a row is counted once if its file is imported again, with more rows at its end, or with more values beside
    the tokens of a measuring sheet. A row with a token and without a value is left out.
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
    rows = list[Row]()
    so_far = hashlib.sha256()
    mistakes = list[SurepickError]()
    for line, given in lines[1:]:
        cells = [*map(str.strip, given)]
        where = f"line {line} of {str(file)!r}"
        row = dict(zip(header, cells, strict=False))  # by column
        try:
            if any(cells[len(header) :]):
                raise FileError(
                    f"{where} has {len(cells)} cells, the header has {len(header)}: {cells}; write numbers "
                    "with a decimal point, or separate cells by semicolons where numbers have a comma"
                )
            if row.get("token") and not row.get("value"):
                continue
            # a spreadsheet marks its text cells as text; in a CSV file a name may be quoted against formulas
            if file.suffix.lower() not in SHEETS:
                row |= {column: from_cell(row[column]) for column in NAMES if column in row}
            found = Row.from_cells(where, row)
        except FileError as error:
            mistakes.append(error)
            continue
        if not found.token and not found.key:
            so_far.update(codec.dumps([row.get(name, "") for name in sorted(header)]).encode())
            found = replace(found, key=f"row {so_far.hexdigest()[:24]}")
        rows.append(found)
    if mistakes:
        raise several(mistakes)
    return rows


def several(mistakes: Sequence[SurepickError]) -> SurepickError:
    """Return one error for all mistakes of a table, a line for each; nothing of the table is recorded."""
    if len(mistakes) == 1:
        return mistakes[0]
    lines = "\n  ".join(map(str, mistakes))
    return FileError(
        f"{len(mistakes)} rows cannot be read; none recorded\n  {lines}", field=mistakes[0].field
    )


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
    waiting: list[list[Row]] = []  # the rows of one use of a probe together
    for row in rows:
        use = waiting[-1] if waiting else []
        same = bool(use) and (use[0].token, use[0].name) == (row.token, row.name)
        if same and row.reading and all(row.reading != other.reading for other in use):
            use.append(row)
        else:
            waiting.append([row])
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
    '2 recorded, 1 extra'
    >>> in_words({"recorded": 0, "repeated": 3})
    'nothing new: all 3 rows are in the log already'
    """
    if counts["repeated"] and counts["repeated"] == sum(counts.values()):
        return f"nothing new: all {counts['repeated']} rows are in the log already"
    return ", ".join(f"{n} {what}" for what, n in counts.items() if n) or "no row has a value"


def probes_and_values(session: Session, rows: Sequence[Row]) -> list[tuple[int, Any]]:
    """Return the probe and the value of each row; all rows that cannot be right are refused together.

    Call it before anything is recorded. Rows of a play that has no request yet are left out. A name that is
    not known, a token of another arm than its row says and a value out of range are refused.
    """
    found = list[tuple[int, Any]]()
    mistakes = list[SurepickError]()
    for row in rows:
        if not _is_known(session, row):
            continue
        try:
            found.append(_probe_and_value(session, row))
        except StoreError:
            raise  # about the store, and not about the row
        except SurepickError as error:
            mistakes.append(error)
    if mistakes:
        raise several(mistakes)
    return found


def _probe_and_value(session: Session, row: Row) -> tuple[int, Any]:
    """Return the probe and the value of a row; raise if its unit or its name contradicts the session."""
    problem = session.problem
    unit = problem.about.unit
    if row.unit not in ("", unit):
        known = f"measures in {unit!r}" if unit else "has no unit"
        raise SessionError(
            f"{row.where} has the unit {row.unit!r} and this session {known}; convert the values, or "
            "leave the column 'unit' out",
            field="unit",
        )
    named = problem.probe(row.name) if row.name else None
    probe = _probe(session, row)
    if named not in (None, probe):
        raise SessionError(
            f"token {row.token!r} is a measurement of {problem.probe_names[probe]!r} in session "
            f"{session.name!r}, and the file has {row.name!r} beside it; nothing was recorded. Import it "
            "into its own session, or leave the column 'token' out",
            field="token",
        )
    reads = problem.reads(probe)
    reading = row.reading or (reads[0] if len(reads) == 1 else "")
    if reading not in reads:
        listed = ", ".join(map(repr, reads))
        raise SessionError(
            f"{row.where}: the column 'reading' says which number of {problem.probe_names[probe]!r} it is, "
            f"one of {listed}, got {reading!r}; nothing was recorded",
            field="reading",
        )
    value = number(problem, problem.readings_of(probe)[reads.index(reading)], row.value)
    return probe, value if len(reads) == 1 else {reading: value}


def _probe(session: Session, row: Row) -> int:
    return place_of(row.token, session.state()).probe if row.token else session.problem.probe(row.name)


def _is_known(session: Session, row: Row) -> bool:
    """Return whether the row can be checked; one of a play without a request yet has to wait."""
    problem = session.problem
    if not problem.plays or not row.token:
        return True
    return row.name in problem.probe_names or Place.parse(row.token).probe < problem.n_probes


def _takes(session: Session, token: str) -> bool:
    """Return whether a value for this request can be recorded: it is open, answered, or not far ahead."""
    state = session.state()
    place = place_of(token, state)
    return place.index < state.streams.of[place.probe].end + AHEAD


def _tell_use(session: Session, use: list[Row], worker: str, counts: dict[str, int]) -> bool:
    """Record one measurement and count its result; return False if it is too far ahead to record yet."""
    row = use[0]
    if not _is_known(session, row) or (row.token and not _takes(session, row.token)):
        return False
    is_single = len(session.problem.reads(_probe(session, row))) == 1
    receipt = session.tell(
        place_of(row.token, session.state()) if row.token else row.name,
        numeral(row.value) if is_single else {one.reading: numeral(one.value) for one in use},
        worker=row.worker or worker,
        key="" if row.token else row.key,
        note=row.remarks,
        sure=True,  # callers have asked about surprising values before
    )
    counts[receipt.result] += 1
    return True
