"""A measuring sheet: what to measure next, with room for what was found, to print or to fill in.

`surepick sheet` writes it, `surepick import` reads it back when it is filled in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from surepick.sessions.requests import Request, Token
from surepick.sessions.session import Session

COLUMNS = ("token", "arm", "value", "worker", "remarks")
PROBE_COLUMNS = ("token", "probe", "reading", *COLUMNS[2:])
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
spreadsheet instead: <code>surepick sheet -o sheet.xlsx</code>, then
<code>surepick import sheet.xlsx</code>.</p>
</html>
"""


@dataclass(frozen=True)
class MeasuringSheet:
    """The measurements that a worker has in hand, in the order in which they are wanted.

    One row each; of a probe one for each reading.
    """

    session: str
    unit: str
    rows: tuple[tuple[str, ...], ...]  # as `columns`; value and remarks are empty
    columns: tuple[str, ...] = COLUMNS

    def to_html(self) -> str:
        """The sheet as a page to print."""
        heading = f"value ({escape(self.unit)})" if self.unit else "value"
        head = "".join(f"<th>{heading if name == 'value' else name}</th>" for name in ("#", *self.columns))
        body = "".join(_row(number, self.columns, row) for number, row in enumerate(self.rows, 1))
        example = self.rows[0][0] if self.rows else "t0.0"
        return PAGE.format(
            style=STYLE, title=escape(self.session), head=head, body=body, example=escape(example)
        )


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
    ('t0.0', 'road', '', 'Ann', '')
    """
    unit = session.problem.about.unit
    if session.given_problem.arms_alone:
        rows = ((Token.parse(r.token).for_sheets, r.arm_name, "", r.worker, "") for r in requests)
        return MeasuringSheet(session.name, unit, tuple(rows))
    lines = (
        (Token.parse(r.token).for_sheets, r.probe_name, reading, "", r.worker, "")
        for r in requests
        for reading in r.readings
    )
    return MeasuringSheet(session.name, unit, tuple(lines), PROBE_COLUMNS)
