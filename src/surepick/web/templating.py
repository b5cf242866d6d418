"""From models to HTML: templates that escape everything, and the words for numbers in them."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from surepick._version import __version__
from surepick.core.oracle_problem import in_short
from surepick.core.wording import how_many, plural
from surepick.web import charts
from surepick.web.keys import Keys
from surepick.web.session_cache import slug_of
from surepick.web.settings import Settings


class Renderer:
    """Templates of this dashboard; every value in them is escaped."""

    def __init__(self, settings: Settings, keys: Keys) -> None:
        self._templates = Environment(
            loader=PackageLoader("surepick.web"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.filters.update(
            number=number,
            whole=whole,
            how_many=how_many,
            in_short=in_short,
            plural=plural,
            percent=percent,
            times=times,
            about=about,
            moment=moment,
            clock=clock,
            slug=slug_of,
            progress_chart=charts.progress_chart,
            interval=charts.interval,
            share=charts.share,
            map_chart=charts.map_chart,
        )
        self._templates.globals.update(
            version=__version__,
            can_write=settings.write,
            has_results=settings.results is not None,
            has_token=keys.needed,
            form_key=keys.form_key,
        )

    def page(self, template: str, model: Any) -> str:
        """The page, or the part of one, that shows this model."""
        return self._templates.get_template(template).render(it=model)


def number(value: float | None, digits: int = 4) -> str:
    """A number for people: four digits that matter, and a proper minus.

    >>> number(1234567.0), number(-0.000123456), number(None), number(2.0)
    ('1.235e+06', '−0.0001235', '–', '2')
    """
    if value is None or math.isnan(value):
        return "–"
    text = f"{value:.{digits}g}" if math.isfinite(value) else "∞" if value > 0 else "-∞"
    return text.replace("-", "−")


def whole(value: float | None) -> str:
    """A count with its thousands apart.

    >>> whole(1234567), whole(None)
    ('1,234,567', '–')
    """
    return "–" if value is None else f"{round(value):,}"


def times(value: float) -> str:
    """How many times more likely.

    >>> times(1.0), times(20.0), times(12345.0), times(3.2e9), times(1e305)
    ('1 ×', '20 ×', '12,345 ×', '3×10⁹ ×', 'more than 10¹⁰⁰ ×')
    """
    if value >= 1e100:
        return "more than 10¹⁰⁰ ×"
    if value >= 1e6:
        digits, _, power = f"{value:.0e}".partition("e+")
        return f"{digits}×10{power.lstrip('0').translate(_RAISED)} ×"
    return f"{whole(value)} ×" if value >= 1000 else f"{value:.3g} ×"


_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def about(value: float | None) -> str:
    """A forecast with two digits that matter.

    >>> about(12345.0), about(0.4), about(None)
    ('≈ 12,000', '≈ 0', '∞')
    """
    if value is None:
        return "∞"
    return f"≈ {whole(float(f'{value:.2g}'))}" if value < 1e7 else f"≈ {value:.1e}"


def percent(value: float | None) -> str:
    """A probability in percent, never rounded up to certainty.

    >>> percent(0.95), percent(0.99996), percent(None), percent(0.0)
    ('95%', '99.996%', '–', '0%')
    """
    if value is None:
        return "–"
    digits = 1
    while digits < 12 and value < 1 and round(100 * value, digits) >= 100:
        digits += 1
    return f"{100 * value:.{digits}f}".rstrip("0").rstrip(".") + "%"


def moment(seconds: float | None) -> str:
    """A time as a date, in UTC.

    >>> moment(0.0)
    '1970-01-01 00:00:00 UTC'
    """
    return "–" if seconds is None else datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def clock(seconds: float | None) -> str:
    """A time in the form that a machine reads.

    >>> clock(0.0)
    '1970-01-01T00:00:00+00:00'
    """
    return "" if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
