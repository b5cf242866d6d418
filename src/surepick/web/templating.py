"""From views to HTML: templates that escape everything."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from surepick._version import __version__
from surepick.errors import missing_extra
from surepick.views import numbers

try:
    from jinja2 import Environment, PackageLoader, StrictUndefined
except ImportError:
    raise missing_extra("jinja2", "web") from None


def when(moment: str) -> str:
    """Return a moment of a View for people: in UTC, to the minute.

    >>> when("2026-11-17T20:01:59Z")
    '17 Nov, 20:01 UTC'
    """
    found = datetime.fromisoformat(moment)
    return f"{found.day} {found:%b, %H:%M} UTC"


FILTERS = {
    "value": numbers.value,
    "count": numbers.count,
    "odds": numbers.odds,
    "when": when,
    "safe_range": numbers.safe_range,
}


class Templates:
    """The templates of the pages; every value in them is escaped. All of them know the values in `known`."""

    def __init__(self, **known: Any) -> None:
        self._environment = Environment(
            loader=PackageLoader("surepick.web"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.filters.update(FILTERS)
        self._environment.globals.update(version=__version__, **known)

    def page(self, template: str, model: Mapping[str, Any]) -> str:
        """Return the page, or the part of one, that shows this model; what UTF-8 cannot say becomes "?"."""
        return self._environment.get_template(template).render(it=model).encode(errors="replace").decode()
