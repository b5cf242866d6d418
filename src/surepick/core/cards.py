"""Values as small tables in HTML, for notebooks: light and dark, with the page's own colours and letters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from surepick.core.wording import shortened

MOST_ROWS = 8  # of a table within a card; the rest is counted
LONGEST = 200  # letters of a cell
_LINE = "border-bottom:1px solid rgba(128,128,128,.3)"
_CELL = f"padding:.15em .9em .15em 0;text-align:left;vertical-align:top;overflow-wrap:break-word;{_LINE}"
_TABLE = "border-collapse:collapse;background:none;color:inherit;font-size:inherit"
_BOX = "display:inline-block;max-width:46em;padding:.4em 0;font-size:.95em;line-height:1.45;color:inherit"
_SOFT = "opacity:.7"


def card(title: str, rows: Iterable[tuple[str, object]], *more: str, first: str = "") -> str:
    """Return a heading with rows of name and value below it; `first` above and `more` below are HTML.

    >>> "<b>Trips &amp; more</b>" in card("Trips & more", [("lead", "by road")])
    True
    """
    lines = "".join(
        f'<tr><td style="{_CELL};{_SOFT}">{escape(name)}</td><td style="{_CELL}">{_text(value)}</td></tr>'
        for name, value in rows
    )
    table = f'<table style="{_TABLE};margin:.3em 0">{lines}</table>'
    return f'<div style="{_BOX}">{first}<b>{_text(title)}</b>{table}{"".join(more)}</div>'


def listing(headings: Sequence[str], rows: Sequence[Sequence[object]], total: int | None = None) -> str:
    """A table under headings, cut off where it gets long; `total` rows are there, unless given these.

    >>> listing(["arm"], [[s] for s in range(20)]).count("<tr>"), "12 more" in listing(["arm"], [[0]] * 20)
    (10, True)
    """
    head = "".join(f'<th style="{_CELL};{_SOFT};font-weight:normal">{escape(name)}</th>' for name in headings)
    body = "".join(_row(row) for row in rows[:MOST_ROWS])
    left = (len(rows) if total is None else total) - MOST_ROWS
    if left > 0:
        body += f'<tr><td style="{_CELL};{_SOFT}" colspan="{len(headings)}">and {left:,} more</td></tr>'
    return f'<table style="{_TABLE}"><tr>{head}</tr>{body}</table>'


def alarm(text: str) -> str:
    """Return an amber bar, for what has to be read first.

    >>> 'data-trusted="false"' in alarm("noise 2, 1 stated")
    True
    """
    style = "border-left:.4em solid #d97706;background:rgba(217,119,6,.15);padding:.4em .7em;margin:.2em 0"
    return f'<div style="{style}" role="alert" data-trusted="false">{escape(text)}</div>'


def note(text: str) -> str:
    """A sentence below a card.

    >>> note("a < b").endswith("a &lt; b</div>")
    True
    """
    return f'<div style="{_SOFT};max-width:40em">{escape(text)}</div>'


def _row(cells: Sequence[object]) -> str:
    return "<tr>" + "".join(f'<td style="{_CELL}">{_text(cell)}</td>' for cell in cells) + "</tr>"


def _text(value: object) -> str:
    return escape(shortened(f"{value:.4g}" if isinstance(value, float) else str(value), LONGEST))
