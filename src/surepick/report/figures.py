"""Figures as SVG that belongs into a page: its colours, its text, no ids that meet another figure's."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING

from surepick.plots.style import FAINT, INK, PAPER, styled
from surepick.report.html import Html, tag

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MARKUP = re.compile(r"<[^<>]*>")
_COLOURS = {INK: "currentColor", FAINT: "var(--faint)", PAPER: "var(--paper)"}


def inline_svg(figure: Figure, name: str, description: str) -> Html:
    """The figure as an SVG element; `name` is a prefix for its ids, all in one page differ."""
    stream = io.StringIO()
    with styled() as plt:
        figure.savefig(stream, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
        plt.close(figure)
    text = stream.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.S)
    text = re.sub(r"<!--.*?-->", "", text, flags=re.S)
    text = _MARKUP.sub(lambda found: _for_page(found.group(), name), text)
    return tag("figure", Html(text), tag("figcaption", description))


def _for_page(markup: str, name: str) -> str:
    """One piece of markup with the colours of the page and ids of its own."""
    for colour, of_page in _COLOURS.items():
        markup = markup.replace(colour, of_page)
    markup = re.sub(r'\bid="', f'id="{name}-', markup)
    markup = re.sub(r'(xlink:href="|href="|url\()#', rf"\1#{name}-", markup)
    return re.sub(
        r'<svg\b([^>]*?) (?:width|height)="[^"]*"([^>]*?) (?:width|height)="[^"]*"',
        r'<svg role="img"\1\2',
        markup,
    )
