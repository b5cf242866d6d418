"""What all figures share: colours that everybody can tell apart, plain text, quiet axes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from surepick.errors import missing_extra

# Okabe and Ito: people with any colour vision can tell these apart, on white and on black.
BLUE, SKY, ORANGE, RED = "#0072B2", "#56B4E9", "#E69F00", "#D55E00"
PINK, GREEN, GREY, OCHRE = "#CC79A7", "#009E73", "#888888", "#B8860B"
PALETTE = (BLUE, ORANGE, GREEN, PINK, SKY, RED, OCHRE, GREY)

# Reports replace these by the colours of the page, light or dark.
INK, FAINT, PAPER = "#1a1a1a", "#d0d0d0", "#fdfdfd"

STYLE: dict[str, Any] = {
    "font.size": 9,
    "font.family": "sans-serif",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "axes.axisbelow": True,
    "grid.color": FAINT,
    "grid.linewidth": 0.6,
    "text.color": INK,
    "text.parse_math": False,  # names are text, whatever they contain
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "legend.frameon": False,
    "svg.fonttype": "none",  # text stays text: small files that can be searched and read aloud
    "svg.hashsalt": "surepick",  # the same figure gives the same file
}


def pyplot() -> Any:
    """matplotlib's pyplot, drawing into files unless the caller has chosen otherwise."""
    try:
        import matplotlib as mpl
    except ImportError:
        raise missing_extra("matplotlib", "plots") from None
    mpl.use("Agg", force=False)
    import matplotlib.pyplot as plt

    return plt


@contextmanager
def styled() -> Iterator[Any]:
    """pyplot, with this style for as long as the block lasts."""
    plt = pyplot()
    with plt.rc_context(STYLE):
        yield plt


def plain(text: object, length: int = 40) -> str:
    """A name as a label: one line, no control characters, cut off where it gets long.

    >>> plain("a\\nb"), plain("x" * 50, 5)
    ('a b', 'xxxx…')
    """
    clean = "".join(letter if letter.isprintable() else " " for letter in str(text))
    return clean if len(clean) <= length else clean[: length - 1].rstrip() + "…"


def short_number(value: float) -> str:
    """A number with up to three digits, for labels.

    >>> [short_number(x) for x in (0.0, 3.14159, 1234.0, 15000.0, 2.5e6, 0.00012)]
    ['0', '3.14', '1,230', '15k', '2.5M', '0.00012']
    """
    size = abs(value)
    for unit, letter in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if unit <= size < 1e15:
            scale = 1e3 if letter == "k" else unit
            return f"{value / scale:.3g}{letter}"
    if 1000 <= size < 1e4:
        return f"{round(value, 1 - math.floor(math.log10(size)) + 1):,.0f}"
    return f"{value:.3g}"


def times(value: float) -> str:
    """How many times more likely, for labels.

    >>> times(1.0), times(37.4), times(2e9)
    ('1×', '37×', '10⁹×')
    """
    if value >= 1e6:
        return f"10{superscript(math.floor(math.log10(value)))}×"
    return f"{value:.2g}×" if value < 9.95 else f"{value:,.0f}×"


def superscript(number: int) -> str:
    """A whole number as an exponent.

    >>> superscript(-12)
    '⁻¹²'
    """
    return str(number).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
