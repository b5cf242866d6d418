"""From views to HTML: templates that escape everything, shared by the pages and the report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from surepick._version import __version__
from surepick.core.wording import how_many, in_short, plural
from surepick.errors import missing_extra
from surepick.views import text
from surepick.web import charts

try:
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup, escape
except ImportError:
    raise missing_extra("jinja2", "report") from None


def unbroken(name: str) -> Markup:
    """The name, escaped, with arrows in it that no line ends within.

    >>> print(unbroken("<A> -> B"))
    &lt;A&gt; <span class="arrow">-&gt;</span> B
    """
    return Markup(str(escape(name)).replace("-&gt;", '<span class="arrow">-&gt;</span>'))


FILTERS = {
    "about": text.about,
    "bag_chart": charts.bag_chart,
    "chance": text.chance,
    "clock": text.clock,
    "how_many": how_many,
    "in_short": in_short,
    "interval": charts.interval,
    "map_chart": charts.map_chart,
    "moment": text.moment,
    "number": text.number,
    "percent": text.percent,
    "plural": plural,
    "progress_chart": charts.progress_chart,
    "share": charts.share,
    "times": text.times,
    "unbroken": unbroken,
    "whole": text.whole,
}


class Templates:
    """The templates of the dashboard and of further packages; every value in them is escaped.

    The values in `known` are known to all of them.
    """

    def __init__(self, *packages: str, **known: Any) -> None:
        self._environment = Environment(
            loader=ChoiceLoader([PackageLoader(package) for package in ("surepick.web", *packages)]),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.filters.update(FILTERS)
        self._environment.globals.update(version=__version__, **known)

    def page(self, template: str, model: Mapping[str, Any]) -> str:
        """The page, or the part of one, that shows this model; what UTF-8 cannot say is a question mark."""
        return self._environment.get_template(template).render(it=model).encode(errors="replace").decode()
