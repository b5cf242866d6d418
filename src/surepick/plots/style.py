"""What all figures share: colours that all people can tell apart, plain text, quiet axes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from surepick.errors import missing_extra

# Okabe and Ito: people with any colour vision can tell these apart, on white and on black.
BLUE, SKY, ORANGE, GREEN, GREY = "#0072B2", "#56B4E9", "#E69F00", "#009E73", "#888888"
INK, FAINT, PAPER = "#1a1a1a", "#d0d0d0", "#fdfdfd"

STYLE: Any = {
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


@contextmanager
def styled() -> Iterator[Any]:
    """Give matplotlib's pyplot with this style; it draws into files unless another backend was chosen."""
    try:
        import matplotlib as mpl
    except ImportError:
        raise missing_extra("matplotlib", "plots") from None
    mpl.use("Agg", force=False)
    import matplotlib.pyplot as plt

    with plt.rc_context(STYLE):
        yield plt
