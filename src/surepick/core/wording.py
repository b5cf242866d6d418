"""Words for numbers, names, and small tables for notebooks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape


def plural(number: float, one: str, many: str | None = None) -> str:
    """The word for a number that is shown without decimals: `one`, or `many`, which is `one` with an s."""
    return one if 0.5 < number < 1.5 else many or f"{one}s"


def how_many(number: float, one: str, many: str | None = None) -> str:
    """The number with commas at its thousands, and the word that goes with it."""
    return f"{number:,.0f} {plural(number, one, many)}"


def in_short(count: int) -> str:
    """A number of plans for people, of any size.

    >>> in_short(20_000), in_short(61_917_364_224), in_short(2**5000)
    ('20,000', '6.2e10', '1.4e1505')
    """
    if count < 10**6:
        return f"{count:,}"
    power = math.floor(math.log10(count))  # exact to far more digits than are shown
    first = f"{10 ** (math.log10(count) - power):.1f}"
    return f"1.0e{power + 1}" if first == "10.0" else f"{first}e{power}"


def shortened(text: str, length: int, mark: str = "…") -> str:
    """The text, or as much of it as fits, with a mark where it is cut off.

    >>> shortened("a very long name", 8), shortened("a very long name", 8, "...")
    ('a very …', 'a ver...')
    """
    return text if len(text) <= length else text[: length - len(mark)] + mark


def counted(pieces: Sequence[str], plan: Iterable[float], join: str = " + ") -> str:
    """A name for a plan: the pieces that it uses, and how often.

    >>> counted(["tea", "coffee", "cocoa"], [2.0, 0.0, 1.0])
    '2 x tea + cocoa'
    """
    used = [(name, x) for name, x in zip(pieces, plan, strict=True) if x]
    return join.join(name if x == 1 else f"{x:g} x {name}" for name, x in used) or "nothing"


MOST_ROWS = 8  # of a table within a card; the rest is counted
LONGEST = 200  # letters of a cell
_LINE = "border-bottom:1px solid rgba(128,128,128,.3)"
_CELL = f"padding:.15em .9em .15em 0;text-align:left;vertical-align:top;overflow-wrap:break-word;{_LINE}"
_TABLE = "border-collapse:collapse;background:none;color:inherit;font-size:inherit"
_BOX = "display:inline-block;max-width:46em;padding:.4em 0;font-size:.95em;line-height:1.45;color:inherit"
_SOFT = "opacity:.7"


def card(title: str, rows: Iterable[tuple[str, object]], *more: str, first: str = "") -> str:
    """Return a heading with rows of name and value below it; `first` above and `more` below are HTML."""
    lines = "".join(
        f'<tr><td style="{_CELL};{_SOFT}">{escape(name)}</td><td style="{_CELL}">{_text(value)}</td></tr>'
        for name, value in rows
    )
    table = f'<table style="{_TABLE};margin:.3em 0">{lines}</table>'
    return f'<div style="{_BOX}">{first}<b>{_text(title)}</b>{table}{"".join(more)}</div>'


def listing(headings: Sequence[str], rows: Sequence[Sequence[object]], total: int | None = None) -> str:
    """A table under headings, cut off where it gets long; `total` rows are there, unless given these."""
    head = "".join(f'<th style="{_CELL};{_SOFT};font-weight:normal">{escape(name)}</th>' for name in headings)
    body = "".join(_row(row) for row in rows[:MOST_ROWS])
    left = (len(rows) if total is None else total) - MOST_ROWS
    if left > 0:
        body += f'<tr><td style="{_CELL};{_SOFT}" colspan="{len(headings)}">and {left:,} more</td></tr>'
    return f'<table style="{_TABLE}"><tr>{head}</tr>{body}</table>'


def alarm(text: str) -> str:
    """Return an amber bar, for what has to be read first."""
    style = "border-left:.4em solid #d97706;background:rgba(217,119,6,.15);padding:.4em .7em;margin:.2em 0"
    return f'<div style="{style}" role="alert" data-trusted="false">{escape(text)}</div>'


def note(text: str) -> str:
    """A sentence below a card."""
    return f'<div style="{_SOFT};max-width:40em">{escape(text)}</div>'


def _row(cells: Sequence[object]) -> str:
    return "<tr>" + "".join(f'<td style="{_CELL}">{_text(cell)}</td>' for cell in cells) + "</tr>"


def _text(value: object) -> str:
    return escape(shortened(f"{value:.4g}" if isinstance(value, float) else str(value), LONGEST))
