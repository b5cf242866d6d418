"""A measuring sheet: what to measure next, with room for the values, as .csv or .xlsx.

`surepick ask -o` writes it, `surepick tell --from` reads it back. The last column, `token`, says which
request a row answers, so that a sheet that is read twice is recorded once. The browser has one to print.
"""

from __future__ import annotations

import csv
import string
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import IO, Any

from surepick.errors import missing_extra
from surepick.sessions.leases import Request
from surepick.sessions.session import Session
from surepick.sessions.streams import Place
from surepick.tables import as_cell

WIDTHS = {"value": 16, "worker": 16, "token": 12, "number": 10}  # letters; names and remarks have 40


def sheet_table(
    session: Session, requests: Sequence[Request], *, assigned: bool
) -> tuple[list[str], list[tuple[str, ...]]]:
    """Return the columns and rows of a sheet in the order of measuring; of a probe a row for each reading.

    Only requests that are assigned to the sheet have tokens: another worker may measure the others meanwhile.
    """
    by_arm = session.problem.arms_alone
    columns = [*(["arm"] if by_arm else ["probe", "reading"]), "value", "worker", "remarks"]
    rows = []
    for one in requests:
        for reading in one.readings:
            row = [one.probe_name, *([] if by_arm else [reading]), "", one.worker if assigned else "", ""]
            rows.append((*row, Place.parse(one.id).for_sheets) if assigned else tuple(row))
    return [*columns, "token"] if assigned else columns, rows


def write_sheet(session: Session, requests: Sequence[Request], file: Path) -> None:
    """Write the sheet of these requests, which are assigned to it."""
    columns, rows = sheet_table(session, requests, assigned=True)
    if file.suffix.lower() == ".xlsx":
        write_workbook(file, columns, rows)
        return
    with file.open("w", newline="", encoding="utf-8-sig") as stream:  # the mark tells Excel: UTF-8
        csv.writer(stream).writerows([columns, *(map(as_cell, row) for row in rows)])


def write_workbook(file: Path | IO[bytes], columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a table as an Excel workbook; a text such as "=A1" stays a text."""
    workbook, styles = openpyxl()
    book = workbook.Workbook()
    page = book.active
    page.title = "measurements"
    for row in (columns, *rows):
        page.append([None if cell == "" else cell for cell in row])
    thin = styles.Side(style="thin", color="8A94A0")
    for line in page.iter_rows():
        for cell in line:
            cell.border = styles.Border(left=thin, right=thin, top=thin, bottom=thin)
            if isinstance(cell.value, str):
                cell.data_type = "s"
    for cell in page[1]:
        cell.font = styles.Font(bold=True)
        cell.fill = styles.PatternFill("solid", fgColor="EDF0F3")
    for letter, name in zip(string.ascii_uppercase, columns, strict=False):
        page.column_dimensions[letter].width = WIDTHS.get(name, 40)
    page.freeze_panes, page.print_title_rows = "A2", "1:1"
    page.page_setup.orientation, page.page_setup.fitToHeight = "landscape", 0
    page.sheet_properties.pageSetUpPr.fitToPage = True
    book.save(file)


def openpyxl() -> tuple[Any, Any]:
    """Return the package that writes workbooks, and its styles."""
    try:
        import openpyxl as package
        from openpyxl import styles
    except ImportError:
        raise missing_extra("openpyxl", "sheets") from None
    return package, styles
