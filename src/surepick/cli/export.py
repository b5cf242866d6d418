"""`export` and `import`: measurements to and from files."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from surepick.cli.ask import ending
from surepick.cli.doubts import Yes, ask_if_doubtful
from surepick.cli.opening import open_session
from surepick.cli.options import DEFAULT_STORE, Json, Name, StoreUrl, Worker
from surepick.cli.render import answer, say
from surepick.cli.status import state_of
from surepick.core.wording import how_many
from surepick.errors import FileError, SessionError

if TYPE_CHECKING:
    from surepick.files.measurements import Row
    from surepick.sessions.session import Session


def export(
    to: Annotated[Path | None, typer.Option("-o", "--to", help="A file; the terminal unless given.")] = None,
    form: Annotated[
        str | None,
        typer.Option(
            "--format",
            help="csv (measurements) or json (everything).",
            show_default="json for a file of that name, else csv",
        ),
    ] = None,
    session: Name = None,
    store: StoreUrl = DEFAULT_STORE,
) -> None:
    """Write all measurements as CSV, or the whole session as JSON (--to log.json)."""
    from surepick.files.measurements import write_csv, write_json

    opened = open_session(store, session, read_only=True)
    if form is None:
        form = "json" if to is not None and to.suffix.lower() == ".json" else "csv"
    if form not in ("csv", "json"):
        raise SessionError(f"--format is csv or json, got {form!r}")
    write = write_csv if form == "csv" else write_json
    if to is None:
        write(opened, sys.stdout)
        return
    with to.open("w", newline="", encoding="utf-8") as stream:
        write(opened, stream)
    say(f"written to {to}")


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
    """Tell measurements from a CSV or Excel file: one filled in by hand, a measuring sheet, an export.

    The JSON that `export` writes holds the whole session: if its log holds, it is put into the store as it
    is, under its own name or the one that --session gives.

    Rows with a token answer it. Rows with an arm alone are measurements that nobody asked for, unless
    --answers says that they were made because surepick asked for them. Unasked ones are counted if the
    policy's proof allows it, and never with --picked; with a column `key` each is kept once, however often
    the file is imported. Where there is a column `session`, as in what `doctor --rescue` writes, only rows of
    this session are taken.
    """
    from surepick.files.measurements import import_rows, in_words, probes_and_values, read_rows

    if file.suffix.lower() == ".json":
        _import_log(file, session, store, as_json)
        return
    opened = open_session(store, session)
    rows = _rows_of(file, read_rows(file), rows_of or opened.name)
    ask_if_doubtful(opened, probes_and_values(opened, rows), yes=yes)
    counts = import_rows(opened, rows, answers=answers, picked=picked, worker=worker)
    opened.keep_snapshot()
    answer(
        lambda: {"imported": counts, **state_of(opened)},
        as_json,
        lambda: _print_imported(in_words(counts), opened, store),
    )


def _import_log(file: Path, session: str | None, store: str, as_json: bool) -> None:
    from surepick.files.log import log_in, put_log, read_json
    from surepick.store import open_store

    log = log_in(read_json(file))
    if log is None:
        raise FileError(f"{str(file)!r} holds no log; write one with `surepick export --format json`")
    name = put_log(open_store(store), log, name=session)
    data = {"session": name, "events": log.head.position}
    answer(data, as_json, lambda: say(f"session {name!r} imported: {how_many(log.head.position, 'event')}"))


def _print_imported(text: str, session: Session, store: str) -> None:
    say(text)
    if session.status != "running":
        say(ending(session, store))


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
