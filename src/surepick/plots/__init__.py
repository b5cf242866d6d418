"""Figures of a session: for papers with matplotlib, for screens with plotly, both drawn from the same views.

    figure = plots.rivals(session)          # matplotlib; figure.savefig("rivals.pdf")
    figure = plots.screen.rivals(session)   # plotly; figure.show()

There is a function for each view: `progress`, `rivals`, `arms`, `picture`. Each takes a session, a look at
one (`views.look`), or the view itself. This room may import `views` and the rooms below it.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from surepick.plots import screen as screen
    from surepick.plots.paper import arms as arms
    from surepick.plots.paper import picture as picture
    from surepick.plots.paper import progress as progress
    from surepick.plots.paper import rivals as rivals

__all__ = ["arms", "picture", "progress", "rivals", "screen"]


def __getattr__(name: str) -> Any:
    if name == "screen":
        return importlib.import_module("surepick.plots.screen")
    if name in __all__:
        return getattr(importlib.import_module("surepick.plots.paper"), name)
    raise AttributeError(f"module 'surepick.plots' has no attribute {name!r}")
