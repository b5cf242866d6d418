"""`export` and `import`: measurements to and from files."""

from __future__ import annotations

import csv
import json
import re
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from surepick.cli.ask import ending
from surepick.cli.doubts import Yes, ask_if_doubtful
from surepick.cli.opening import open_session
from surepick.cli.options import DEFAULT_STORE, Json, Name, StoreUrl, Worker
from surepick.cli.render import answer, say
from surepick.cli.status import state_of
from surepick.core.numerals import numeral
from surepick.core.wording import how_many
from surepick.errors import FileError, ProblemError, SessionError

if TYPE_CHECKING:
    from surepick.sessions.session import Session

Row = dict[str, str]
COLUMNS = ("token", "arm", "value", "count", "time", "worker", "picked")


def export(
    to: Annotated[Path | None, typer.Option("-o", "--to", help="A file; the terminal unless given.")] = None,
    form: Annotated[str, typer.Option("--format", help="csv (measurements) or json (everything).")] = "csv",
    session: Name = None,
    store: StoreUrl = DEFAULT_STORE,
) -> None:
    """Write all measurements as CSV, or the whole session as JSON."""
    opened = open_session(store, session, read_only=True)
    if form not in ("csv", "json"):
        raise SessionError(f"--format is csv or json, got {form!r}")
    write = write_csv if form == "csv" else write_json
    if to is None:
        write(opened, sys.stdout)
        return
    with to.open("w", newline="", encoding="utf-8") as stream:
        write(opened, stream)


def import_(
    file: Annotated[
        Path,
        typer.Argument(
            help="CSV or .xlsx with the columns token,value or arm,value; or the JSON of `export`."
        ),
    ],
    answers: Annotated[
        bool, typer.Option("--answers", help="Rows without a token answer what is asked, in their order.")
    ] = False,
    picked: Annotated[
        bool, typer.Option("--picked", help="Unasked rows were chosen after looking at values.")
    ] = False,
    yes: Yes = False,
    rows_of: Annotated[
        str | None,
        typer.Option(help="With a column `session`: take the rows of this one.", show_default="this session"),
    ] = None,
    worker: Worker = "",
    session: Name = None,
    store: StoreUrl = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """Tell measurements from a CSV file, for example one filled in by hand or written by `export`.

    The JSON that `export` writes holds the whole session: if its log holds, it is put into the store as it
    is, under its own name or the one that --session gives.

    Rows with a token answer it. Rows with an arm alone are measurements that nobody asked for, unless
    --answers says that they were made because surepick asked for them. Unasked ones are counted if the
    policy's proof allows it, and never with --picked; with a column `key` each is kept once, however often
    the file is imported. Where there is a column `session`, as in what `doctor --rescue` writes, only rows of
    this session are taken.
    """
    if file.suffix.lower() == ".json":
        _import_log(file, session, store, as_json)
        return
    opened = open_session(store, session)
    rows = _rows_of(file, read_rows(file), rows_of or opened.name)
    told = [_arm_and_value(opened, row) for row in rows]
    ask_if_doubtful(opened, told, yes=yes)
    counts = import_rows(opened, rows, answers=answers, picked=picked, worker=worker)
    text = ", ".join(f"{count} {what}" for what, count in counts.items() if count) or "nothing to import"
    answer({"imported": counts, **state_of(opened)}, as_json, lambda: _print_imported(text, opened, store))


def _import_log(file: Path, session: str | None, store: str, as_json: bool) -> None:
    from surepick.sessions.log_file import log_in, put_log, read_json
    from surepick.store import open_store

    log = log_in(read_json(file))
    if log is None:
        raise FileError(f"{str(file)!r} holds no log; write one with `surepick export --format json`")
    name = put_log(open_store(store), log, name=session)
    data = {"session": name, "events": log.head.position}
    answer(data, as_json, lambda: say(f"session {name!r} imported: {how_many(log.head.position, 'event')}"))


def _print_imported(text: str, session: Session, store: str) -> None:
    say(text)
    if session.status is not None:
        say(ending(session, store))


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
    """Write every measurement, one per row, with tokens that stay text; `import` reads it back."""
    from surepick.sessions.requests import Token

    writer = csv.DictWriter(stream, COLUMNS)
    writer.writeheader()
    for row in _rows(session):
        writer.writerow({**row, "token": row["token"] and Token.parse(row["token"]).for_sheets})


def write_json(session: Session, stream: TextIO) -> None:
    """Write the problem, the policy, every measurement, the log and, once there is one, the certificate."""
    from surepick.sessions import codec
    from surepick.sessions.log_file import log_of

    data = {
        "session": session.name,
        "status": "running" if session.status is None else str(session.status),
        "problem": codec.problem_to_json(session.given_problem),
        "policy": codec.policy_to_json(session.policy),
        "seed": session.seed,
        "measurements": [{**row, "value": float(row["value"])} for row in _rows(session)],
        "certificate": session.certificate().to_json() if session.status else None,
        "log": log_of(session.store, session.name).to_json(),
    }
    stream.write(json.dumps(data, indent=1) + "\n")


def read_rows(file: Path) -> list[Row]:
    """The rows of a CSV file with the columns value, and token or arm, all of them looked at."""
    from surepick.core.tables import csv_lines

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
    if not row.get("value") or not (row.get("token") or row.get("arm")):
        raise FileError(f"line {number} of {str(file)!r} needs a value, and a token or an arm; got {row}")
    for column, kind in (("value", numeral), ("count", _count)):
        try:
            kind(row.get(column) or "1")
        except ValueError:
            raise FileError(
                f"line {number} of {str(file)!r}: expected a number as {column}, got {row[column]!r}"
            ) from None
    return row


def _rows_of(file: Path, rows: list[Row], session: str) -> list[Row]:
    """The rows of this session; all of them in a file that does not say whose they are."""
    mine = [row for row in rows if row.get("session", "") in ("", session)]
    others = sorted({row["session"] for row in rows if row.get("session")} - {session})
    if rows and not mine:
        shown = ", ".join(map(repr, others[:8])) + (" ..." if len(others) > 8 else "")
        raise FileError(
            f"{str(file)!r} has no rows of session {session!r}, only of {shown}; choose one with --rows-of"
        )
    if len(mine) < len(rows):
        print(
            f"surepick: {how_many(len(rows) - len(mine), 'row')} of other sessions left out", file=sys.stderr
        )
    return mine


def import_rows(
    session: Session, rows: list[Row], *, answers: bool, worker: str, picked: bool = False
) -> dict[str, int]:
    """Tell the rows in their order; those far ahead of what is asked wait for the session to move on."""
    from surepick.sessions.requests import Receipt

    counts = {"accepted": 0, "repeated": 0, "late": 0, "unasked": 0, "not asked for yet": 0}
    waiting = []
    for row in rows:  # a name or a value that cannot be is refused before anything is told
        _check_row(session, row)
    for row in rows:
        if not row.get("token") and not answers:
            was_picked = picked or bool(row.get("picked"))
            receipt = session.record(row["arm"], _value(row), picked=was_picked, key=row.get("key", ""))
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


def _check_row(session: Session, row: Row) -> None:
    """Refuse a name that is not known, a token of another arm than its row says, a value out of range."""
    from surepick.sessions.telling import number

    named = session.problem.arm(row["arm"]) if row.get("arm") else None
    arm = session.arm_of(row["token"]) if row.get("token") else session.problem.arm(row["arm"])
    if named not in (None, arm):
        raise SessionError(
            f"token {row['token']!r} is a measurement of {session.problem.arm_names[arm]!r} in session "
            f"{session.name!r}, and the file has {row['arm']!r} beside it, so it was written for other arms; "
            "nothing was told. Leave the column 'token' out and say --answers, or import it into the session "
            "that it was exported from"
        )
    number(session.problem, arm, row["value"])


def _arm_and_value(session: Session, row: Row) -> tuple[int | str, float]:
    _check_row(session, row)
    return (session.arm_of(row["token"]) if row.get("token") else row["arm"]), _value(row)


def _tell_row(session: Session, row: Row, worker: str, counts: dict[str, int]) -> bool:
    """Tell one row if its time has come."""
    token = row.get("token") or _asked_token(session, row["arm"])
    if token is None or not session.takes(token):
        return False
    count = _count(row.get("count") or "1")
    who = row.get("worker") or worker
    if count > 1:
        receipt = session.tell(token, mean=_value(row), count=count, worker=who)
    else:
        receipt = session.tell(token, _value(row), worker=who)
    counts[str(receipt)] += 1
    return True


def _asked_token(session: Session, arm_name: str) -> str | None:
    arm = session.problem.arm(arm_name)
    return next((request.token for request in session.pending() if request.arm == arm), None)


def _value(row: Row) -> float:
    return numeral(row["value"])


def _count(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,15}", text):
        raise ValueError(f"expected a whole number, got {text!r}")
    return int(text)
