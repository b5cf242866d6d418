"""`sheet`: what to measure next, as a page to print or a spreadsheet to fill in."""

from __future__ import annotations

import csv
import string
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from surepick.cli.opening import open_session
from surepick.cli.options import ALL_HELD, DEFAULT_STORE, ENDED, Name, StoreUrl, Worker
from surepick.cli.render import say
from surepick.core.tables import as_cell
from surepick.core.wording import how_many
from surepick.errors import FileError, missing_extra

if TYPE_CHECKING:
    from surepick.views.sheet import MeasuringSheet

MOST = 40  # rows, unless another number is asked for: about two pages
WIDTHS = {  # of the columns of a workbook, in letters
    "token": 12,
    "arm": 40,
    "probe": 40,
    "reading": 24,
    "value": 16,
    "worker": 16,
    "remarks": 40,
}


def sheet(
    to: Annotated[
        Path, typer.Option("-o", "--to", help="The file: .html to print, .xlsx or .csv to fill in.")
    ] = Path("measuring-sheet.html"),
    n: Annotated[
        int | None,
        typer.Option(
            "-n", min=1, help="This many measurements.", show_default=f"what is wanted now, at most {MOST}"
        ),
    ] = None,
    worker: Worker = "",
    session: Name = None,
    store: StoreUrl = DEFAULT_STORE,
) -> None:
    """Write a measuring sheet: what to measure next, with room for the values.

    The measurements on it are then yours, as after `ask`. Import a filled-in spreadsheet with `surepick
    import`; rows without a value are left out.

    Try: surepick sheet -o sheet.xlsx, and later surepick import sheet.xlsx
    """
    from surepick.views.sheet import measuring_sheet

    opened = open_session(store, session)
    write = _writer(to)
    wanted = max(len(opened.pending(MOST)), 1)
    requests = opened.ask(wanted if n is None else n, worker=worker, wait=False)
    if not requests:
        over = opened.status != "running"
        say("the session has ended; see `surepick status`" if over else "others hold all there is to measure")
        raise typer.Exit(ENDED if over else ALL_HELD)
    write(measuring_sheet(opened, requests), to)
    back = "" if to.suffix.lower() == ".html" else f"; when it is filled in: surepick import {to}"
    say(f"wrote {to} with {how_many(len(requests), 'measurement')} to make{back}")


def _writer(file: Path) -> Callable[[MeasuringSheet, Path], None]:
    """What writes a sheet into a file of this ending; asked before any measurement is taken."""
    writers = {".html": _write_html, ".csv": _write_csv, ".xlsx": _write_workbook}
    if file.suffix.lower() not in writers:
        raise FileError(f"a measuring sheet ends in .html, .xlsx or .csv, got {str(file)!r}")
    if file.suffix.lower() == ".xlsx":
        _openpyxl()
    if file.exists():
        raise FileError(f"{str(file)!r} is already there; move it away, or name another with -o")
    return writers[file.suffix.lower()]


def _write_html(sheet: MeasuringSheet, file: Path) -> None:
    file.write_text(sheet.to_html(), encoding="utf-8")


def _write_csv(sheet: MeasuringSheet, file: Path) -> None:
    with file.open("w", newline="", encoding="utf-8-sig") as stream:  # the mark tells Excel that it is UTF-8
        csv.writer(stream).writerows([sheet.columns, *(map(as_cell, row) for row in sheet.rows)])


def _write_workbook(sheet: MeasuringSheet, file: Path) -> None:
    workbook, styles = _openpyxl()
    book = workbook.Workbook()
    page = book.active
    page.title = "measurements"
    for row in (sheet.columns, *sheet.rows):
        page.append([cell or None for cell in row])
    thin = styles.Side(style="thin", color="8A94A0")
    for line in page.iter_rows():
        for cell in line:
            cell.border = styles.Border(left=thin, right=thin, top=thin, bottom=thin)
            if isinstance(cell.value, str):
                cell.data_type = "s"  # an arm called "=A1" is a name and no formula
    for cell in page[1]:
        cell.font = styles.Font(bold=True)
        cell.fill = styles.PatternFill("solid", fgColor="EDF0F3")
    for letter, name in zip(string.ascii_uppercase, sheet.columns, strict=False):
        page.column_dimensions[letter].width = WIDTHS[name]
    page.freeze_panes, page.print_title_rows = "A2", "1:1"
    page.page_setup.orientation, page.page_setup.fitToHeight = "landscape", 0
    page.sheet_properties.pageSetUpPr.fitToPage = True
    book.save(file)


def _openpyxl() -> tuple[Any, Any]:
    try:
        import openpyxl
        from openpyxl import styles
    except ImportError:
        raise missing_extra("openpyxl", "sheets") from None
    return openpyxl, styles
