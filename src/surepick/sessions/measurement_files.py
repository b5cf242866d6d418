"""Measurements to and from files: CSV with a row each, and JSON with the whole session."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
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
from surepick.sessions.telling import number

Row = dict[str, str]
NAMES = ("arm", "worker", "key", "session")  # the columns that hold words of people
COLUMNS = ("token", "arm", "value", "count", "time", "worker", "picked")


def _rows(session: Session) -> Iterator[dict[str, Any]]:
    for m in session.measurements():
        if m.voided:
            continue
        moment = datetime.fromtimestamp(m.time, UTC).isoformat()
        yield {
            "token": m.token or "",
            "arm": m.arm_name,
            "value": repr(m.value),
            "count": m.count,
            "time": moment,
            "worker": m.worker,
            "picked": "yes" if m.picked else "",
        }


def write_csv(session: Session, stream: TextIO) -> None:
    """Write every measurement, one per row, with tokens and names that stay text; `import` reads it back."""
    writer = csv.DictWriter(stream, COLUMNS)
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
    """The rows of a CSV file with the columns value, and token or arm, all of them looked at."""
    try:
        lines = csv_lines(file)
    except ProblemError as error:
        raise FileError(str(error)) from None
    header = [cell.strip().lower() for cell in lines[0][1]] if lines else []
    if "value" not in header or not {"token", "arm"} & set(header):
        raise FileError(
            f"{str(file)!r} needs a header with the column 'value', and 'token' or 'arm', got {header}"
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
    if not row.get("value") or not (row.get("token") or row.get("arm")):
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
    """Tell the rows in their order; those far ahead of what is asked wait for the session to move on."""
    counts = {"accepted": 0, "repeated": 0, "late": 0, "unasked": 0, "not asked for yet": 0}
    waiting = []
    for row in rows:  # a name or a value that cannot be is refused before anything is told
        arm_and_value(session, row)
    for row in rows:
        if not row.get("token") and not answers:
            was_picked, value = picked or bool(row.get("picked")), numeral(row["value"])
            receipt = session.record(row["arm"], value, picked=was_picked, key=row.get("key", ""))
            counts["unasked" if receipt == Receipt.ACCEPTED else str(receipt)] += 1
        elif not _tell_row(session, row, worker, counts):
            waiting.append(row)
    while waiting:
        left = [row for row in waiting if not _tell_row(session, row, worker, counts)]
        if len(left) == len(waiting):
            counts["not asked for yet"] = len(left)
            break
        waiting = left
    return counts


def arm_and_value(session: Session, row: Row) -> tuple[int, float]:
    """What a row is a measurement of, and its value.

    A name that is not known, a token of another arm than its row says and a value out of range are refused.
    """
    named = session.problem.arm(row["arm"]) if row.get("arm") else None
    arm = session.arm_of(row["token"]) if row.get("token") else session.problem.arm(row["arm"])
    if named not in (None, arm):
        raise SessionError(
            f"token {row['token']!r} is a measurement of {session.problem.arm_names[arm]!r} in session "
            f"{session.name!r}, and the file has {row['arm']!r} beside it, so it was written for other arms; "
            "nothing was told. Leave the column 'token' out and say --answers, or import it into the session "
            "that it was exported from"
        )
    return arm, number(session.problem, arm, row["value"])


def _tell_row(session: Session, row: Row, worker: str, counts: dict[str, int]) -> bool:
    """Tell one row if its time has come."""
    token = row.get("token") or _asked_token(session, row["arm"])
    if token is None or not session.takes(token):
        return False
    count = _count(row.get("count") or "1")
    who = row.get("worker") or worker
    if count > 1:
        receipt = session.tell(token, mean=numeral(row["value"]), count=count, worker=who)
    else:
        receipt = session.tell(token, numeral(row["value"]), worker=who)
    counts[str(receipt)] += 1
    return True


def _asked_token(session: Session, arm_name: str) -> str | None:
    arm = session.problem.arm(arm_name)
    return next((request.token for request in session.pending() if request.arm == arm), None)


def _count(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,15}", text):
        raise ValueError(f"expected a whole number, got {text!r}")
    return int(text)
