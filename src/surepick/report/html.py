"""HTML that cannot be broken by what people type: all text is escaped unless it was made here."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from html import escape
from typing import Any


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


def tag(name: str, *children: Any, **attributes: Any) -> Html:
    """An element; plain text among its children and all attributes are escaped.

    >>> tag("p", "1 < 2 ", tag("b", "yes"), class_="big")
    '<p class="big">1 &lt; 2 <b>yes</b></p>'
    """
    words = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(str(value))}"' for key, value in attributes.items()
    )
    return Html(f"<{name}{words}>{joined(children)}</{name}>")


def joined(children: Iterable[Any]) -> Html:
    """The children one after the other, those that are plain text escaped."""
    return Html("".join(child if isinstance(child, Html) else escape(str(child)) for child in children))


def table(header: Iterable[Any], rows: Iterable[Iterable[Any]], *, numbers: int = 99) -> Html:
    """A table whose first column is text; of the others the first `numbers` are numbers."""

    def line(name: str, cells: Iterable[Any], **more: str) -> Html:
        kinds = ("number" if 0 < i <= numbers else "text" for i in itertools.count())
        return tag(
            "tr", *(tag(name, cell, class_=kind, **more) for cell, kind in zip(cells, kinds, strict=False))
        )

    head = line("th", header, scope="col")
    body = [line("td", row) for row in rows]
    return tag("div", tag("table", tag("thead", head), tag("tbody", *body)), class_="scroll")
