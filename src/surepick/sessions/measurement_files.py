"""Measurements to and from files: CSV with a row each, and JSON with the whole session."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

from surepick.core.numerals import numeral
from surepick.core.tables import SHEETS, as_cell, csv_lines, from_cell
from surepick.errors import FileError, ProblemError, SessionError
from surepick.sessions import codec
from surepick.sessions.log_file import log_of
from surepick.sessions.requests import Receipt, Token
from surepick.sessions.session import Session
from surepick.sessions.told_values import number

Row = dict[str, str]
NAMES = ("arm", "probe", "reading", "worker", "key", "session")  # the columns that hold words of people
COLUMNS = ("token", "arm", "value", "count", "time", "worker", "picked")
MEANINGS = {
    "late": "another value of the token came first; kept as one that nobody asked for",
    "unasked": "kept; a row that answers what was asked for needs its token, or --answers",
    "not asked for yet": "nothing was told of them; import the file again later",
}
PROBE_COLUMNS = ("token", "probe", "reading", *COLUMNS[2:])  # a row per reading


def _rows(session: Session) -> Iterator[dict[str, Any]]:
    by_arm = session.given_problem.arms_alone
    for m in session.measurements():
        if m.voided:
            continue
        moment = datetime.fromtimestamp(m.time, UTC).isoformat()
        yield {
            "token": m.token or "",
            **({"arm": m.arm_name} if by_arm else {"probe": m.probe_name, "reading": m.reading}),
            "value": repr(m.value),
            "count": m.count,
            "time": moment,
            "worker": m.worker,
            "picked": "yes" if m.picked else "",
        }


def write_csv(session: Session, stream: TextIO) -> None:
    """Write every measurement, one per row, with tokens and names that stay text; `import` reads it back.

    Of a probe every reading has a row.
    """
    writer = csv.DictWriter(stream, COLUMNS if session.given_problem.arms_alone else PROBE_COLUMNS)
    writer.writeheader()
    for row in _rows(session):
        token = row["token"] and Token.parse(row["token"]).for_sheets
        writer.writerow(names_as_cells({**row, "token": token}))


def names_as_cells(row: dict[str, Any]) -> dict[str, Any]:
    """The row with its names as cells that no spreadsheet computes."""
    return {column: as_cell(str(of)) if column in NAMES else of for column, of in row.items()}


def write_json(session: Session, stream: TextIO) -> None:
    """Write the problem, the policy, every measurement, the log and, once there is one, the certificate."""
    data = {
        "session": session.name,
        "status": "running" if session.status is None else str(session.status),
        "problem": codec.problem_to_json(session.ledger().setup.problem),
        "policy": codec.policy_to_json(session.policy),
        "seed": session.seed,
        "measurements": [{**row, "value": float(row["value"])} for row in _rows(session)],
        "certificate": session.certificate().to_json() if session.status else None,
        "log": log_of(session.store, session.name).to_json(),
    }
    stream.write(json.dumps(data, indent=1) + "\n")


def read_rows(file: Path) -> list[Row]:
    """The rows of a CSV file with the columns value, and token, arm or probe, all of them looked at."""
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
    stripped = ((number, [*map(str.strip, cells)]) for number, cells in lines[1:])
    return [_row(file, number, header, cells) for number, cells in stripped if not _is_open(header, cells)]


def _is_open(header: list[str], cells: list[str]) -> bool:
    """Whether this is a row of a measuring sheet that nobody has filled in."""
    row = dict(zip(header, cells, strict=False))
    return bool(row.get("token")) and not row.get("value") and not any(cells[len(header) :])


def _row(file: Path, number: int, header: list[str], cells: list[str]) -> Row:
    """The row, if it can be told."""
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
    """The row, refused where it has no value, names nothing that was measured, or has no numbers."""
    if not row.get("value") or not (row.get("token") or row.get("arm") or row.get("probe")):
        raise FileError(f"{where} needs a value, and a token or an arm; got {row}")
    for column, kind in (("value", numeral), ("count", _count)):
        try:
            kind(row.get(column) or "1")
        except ValueError:
            raise FileError(f"{where}: expected a number as {column}, got {row[column]!r}") from None
    return row


def import_rows(
    session: Session, rows: list[Row], *, answers: bool, worker: str, picked: bool = False
) -> dict[str, int]:
    """Tell the rows in their order; those far ahead of what is asked wait for the session to move on.

    Rows that follow each other with one token, or one probe without a token, are readings of one measurement.
    What is in the column remarks becomes a note in the log.
    """
    counts = {
        "accepted": 0,
        "partial": 0,
        "repeated": 0,
        "late": 0,
        "unasked": 0,
        "not asked for yet": 0,
    }
    probes_and_values(session, rows)
    waiting = []
    for use in uses_in(rows):
        row = use[0]
        if not row.get("token") and not answers:
            was_picked, told = picked or bool(row.get("picked")), _told(session, use)
            receipt = session.record(_named(row), told, picked=was_picked, key=row.get("key", ""))
            counts["unasked" if receipt == Receipt.ACCEPTED else str(receipt)] += 1
            _keep_remark(session, row, receipt)
        elif not _tell_use(session, use, worker, counts):
            waiting.append(use)
    while waiting:
        left = [use for use in waiting if not _tell_use(session, use, worker, counts)]
        if len(left) == len(waiting):
            counts["not asked for yet"] = len(left)
            break
        waiting = left
    return {name: n for name, n in counts.items() if n or name != "partial"}


def in_words(counts: Mapping[str, int]) -> str:
    """What became of the rows of a file.

    >>> in_words({"accepted": 2, "repeated": 0, "late": 0, "unasked": 1})
    '2 accepted, 1 unasked (kept; a row that answers what was asked for needs its token, or --answers)'
    """
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
        same = bool(uses) and all(uses[-1][0].get(c) == row.get(c) for c in ("token", "probe", "count"))
        reading = row.get("reading", "")
        if same and reading and all(reading != other.get("reading") for other in uses[-1]):
            uses[-1].append(row)
        else:
            uses.append([row])
    return uses


def probes_and_values(session: Session, rows: Sequence[Row]) -> list[tuple[int, Any]]:
    """What rows are measurements of, and their values; what cannot be is refused before anything is told.

    Of a play that nobody has asked for yet nothing can be said.
    """
    return [_probe_and_value(session, row) for row in rows if _is_known(session, row)]


def _probe_and_value(session: Session, row: Row) -> tuple[int, Any]:
    """What a row is a measurement of, and its value; of a probe with several readings, by name.

    A name that is not known, a token of another arm than its row says and a value out of range are refused.
    """
    problem = session.problem
    named = problem.probe(_named(row)) if _named(row) else None
    probe = session.probe_of(row["token"]) if row.get("token") else problem.probe(_named(row))
    if named not in (None, probe):
        raise SessionError(
            f"token {row['token']!r} is a measurement of {problem.probe_names[probe]!r} in session "
            f"{session.name!r}, and the file has {_named(row)!r} beside it, so it was written for other "
            f"{problem.probe_word}s; nothing was told. Import it into the session that it is of, or "
            "leave the column 'token' out and say that the rows answer what is asked (--answers)"
        )
    reads, readings = problem.reads(probe), problem.readings_of(probe)
    name = row.get("reading") or (reads[0] if len(reads) == 1 else "")
    if name not in reads:
        listed = ", ".join(map(repr, reads))
        raise SessionError(
            f"a row of {problem.probe_names[probe]!r} says in the column 'reading' which number it is, one "
            f"of {listed}, got {name!r}; nothing was told"
        )
    value = number(problem, readings[reads.index(name)], row["value"])
    return probe, value if len(reads) == 1 else {name: value}


def _is_known(session: Session, row: Row) -> bool:
    """Whether the row can be looked at; one of a play that nobody has asked for yet has to wait."""
    problem = session.problem
    if not problem.plays or not row.get("token"):
        return True
    return _named(row) in problem.probe_names or Token.parse(row["token"]).probe < problem.n_probes


def _named(row: Row) -> str:
    """The name of the arm or probe that a row says; empty where it does not."""
    return row.get("probe") or row.get("arm") or ""


def _told(session: Session, use: list[Row]) -> Any:
    """What the rows of one measurement tell: a number, or readings by name."""
    probe = (
        session.probe_of(use[0]["token"]) if use[0].get("token") else session.problem.probe(_named(use[0]))
    )
    if len(session.problem.reads(probe)) == 1:
        return numeral(use[0]["value"])
    return {row["reading"]: numeral(row["value"]) for row in use}


def _tell_use(session: Session, use: list[Row], worker: str, counts: dict[str, int]) -> bool:
    """Tell one measurement if its time has come."""
    row = use[0]
    if not _is_known(session, row):
        return False
    token = row.get("token") or _asked_token(session, _named(row))
    if token is None or not session.takes(token):
        return False
    count, told = _count(row.get("count") or "1"), _told(session, use)
    who = row.get("worker") or worker
    if count > 1:
        receipt = session.tell(token, mean=told, count=count, worker=who)
    else:
        receipt = session.tell(token, told, worker=who)
    counts[str(receipt)] += 1
    _keep_remark(session, {**row, "token": token}, receipt)
    return True


def _keep_remark(session: Session, row: Row, receipt: Receipt) -> None:
    """What somebody wrote beside the value on a measuring sheet becomes a note in the log."""
    if row.get("remarks") and receipt in (Receipt.ACCEPTED, Receipt.LATE):
        what = " ".join(filter(None, (_named(row), f"({row['token']})" if row.get("token") else "")))
        session.note(f"{what}: {row['remarks']}")


def _asked_token(session: Session, name: str) -> str | None:
    first = session.pending(1, probe=session.problem.probe(name))
    return first[0].token if first else None


def _count(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,15}", text):
        raise ValueError(f"expected a whole number, got {text!r}")
    return int(text)
