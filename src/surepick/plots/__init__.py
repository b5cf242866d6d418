"""Figures of a session, drawn by matplotlib from the views.

    figure = plots.plans(session)
    figure.savefig("plans.pdf")

`plans`, `progress`, `arms` and `picture` take a session. This package may import `views` and the packages
below it.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from surepick.plots.paper import arms as arms
    from surepick.plots.paper import plans as plans
    from surepick.plots.paper import progress as progress
    from surepick.plots.plan import picture as picture

__all__ = ["arms", "picture", "plans", "progress"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        home = "plan" if name == "picture" else "paper"
        return getattr(importlib.import_module(f"surepick.plots.{home}"), name)
    raise AttributeError(f"module 'surepick.plots' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
