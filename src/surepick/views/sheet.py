"""A measuring sheet: what to measure next, with room for the values, to print or to fill in.

`surepick ask -o` writes it, `surepick tell --from` reads it back. The last column, `token`, says which
request a row answers, so that a sheet that is read twice is recorded once.
"""

from __future__ import annotations

import csv
import string
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import IO, Any

from surepick.errors import FileError, missing_extra
from surepick.sessions.leases import Request
from surepick.sessions.session import Session
from surepick.sessions.streams import Place
from surepick.tables import as_cell

COLUMNS = ("arm", "value", "worker", "remarks", "token")
PROBE_COLUMNS = ("probe", "reading", *COLUMNS[1:])
WIDTHS = {"value": 16, "worker": 16, "token": 12, "number": 10}  # letters; names and remarks have 40
STYLE = """
@page { margin: 15mm }
body { font: 11pt/1.4 system-ui, "Segoe UI", Roboto, "Liberation Sans", sans-serif; margin: 2rem auto;
       max-width: 60rem; padding: 0 1rem; color: #16202b; background: #fff }
h1 { font-size: 1.4rem; margin: 0 } p { margin: .4rem 0 1rem }
table { border-collapse: collapse; width: 100% } thead { display: table-header-group }
th, td { border: 1px solid #8a94a0; padding: .45rem .6rem; text-align: left } tr { break-inside: avoid }
th { background: #edf0f3; print-color-adjust: exact } td.n, td.token { white-space: nowrap }
td.value { width: 22% } td.remarks { width: 26% } code { font-size: .95em }
@media print { body { margin: 0; max-width: none; padding: 0 } .screen { display: none } }
"""
PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>{title}: what to measure</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>{style}</style>
<h1>{title}: what to measure</h1>
<p>Write each value on its line. Leave a line empty where nothing could be measured. A reading that looks odd
is written down all the same, with a remark.</p>
<table><thead><tr>{head}</tr></thead>
<tbody>{body}</tbody></table>
<p class="screen">Back at the desk: <code>surepick tell {example} VALUE</code> for each line. To fill in a
spreadsheet instead: <code>surepick ask -o sheet.xlsx</code>, then
<code>surepick tell --from sheet.xlsx</code>.</p>
</html>
"""


@dataclass(frozen=True)
class MeasuringSheet:
    """The measurements assigned to a worker, in the order of measuring; of a probe a row per reading."""

    session: str
    unit: str
    rows: tuple[tuple[str, ...], ...]  # as `columns`; value and remarks are empty
    columns: tuple[str, ...] = COLUMNS

    def to_html(self) -> str:
        """Return the sheet as a page to print."""
        heading = f"value ({escape(self.unit)})" if self.unit else "value"
        head = "".join(f"<th>{heading if name == 'value' else name}</th>" for name in ("#", *self.columns))
        body = "".join(_row(number, self.columns, row) for number, row in enumerate(self.rows, 1))
        example = f'"{self.rows[0][0]}"' if self.rows else "ARM"
        return PAGE.format(
            style=STYLE, title=escape(self.session), head=head, body=body, example=escape(example)
        )

    def write(self, file: Path) -> None:
        """Write the sheet as .html, .csv or .xlsx."""
        kind = file.suffix.lower()
        if kind == ".html":
            file.write_text(self.to_html(), encoding="utf-8")
        elif kind == ".csv":
            with file.open("w", newline="", encoding="utf-8-sig") as stream:  # the mark tells Excel: UTF-8
                csv.writer(stream).writerows([self.columns, *(map(as_cell, row) for row in self.rows)])
        elif kind == ".xlsx":
            write_workbook(file, self.columns, self.rows)
        else:
            raise FileError(f"a measuring sheet ends in .xlsx, .csv or .html, got {str(file)!r}", field="o")


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


def _row(number: int, columns: Sequence[str], row: Sequence[str]) -> str:
    named = zip(columns, row, strict=True)
    cells = "".join(f'<td class="{name}">{escape(text)}</td>' for name, text in named)
    return f'<tr><td class="n">{number}</td>{cells}</tr>\n'


def measuring_sheet(session: Session, requests: Sequence[Request]) -> MeasuringSheet:
    """The sheet of these requests of a session.

    >>> import surepick as sp
    >>> problem = sp.Problem([[1, 0], [0, 1]], arms=["road", "rail"], noise=1, goal="largest")
    >>> session = sp.Session.create("memory://", "trips", problem, policy=sp.CombGapE())
    >>> measuring_sheet(session, session.ask(2, worker="Ann")).rows[0]
    ('road', '', 'Ann', '', 't0.0')
    """
    unit = session.problem.about.unit
    ids = [Place.parse(one.id).for_sheets for one in requests]
    if session.given_problem.arms_alone:
        rows = [(one.probe_name, "", one.worker, "", id) for one, id in zip(requests, ids, strict=True)]
        return MeasuringSheet(session.name, unit, tuple(rows))
    lines = [
        (one.probe_name, reading, "", one.worker, "", id)
        for one, id in zip(requests, ids, strict=True)
        for reading in one.readings
    ]
    return MeasuringSheet(session.name, unit, tuple(lines), PROBE_COLUMNS)
