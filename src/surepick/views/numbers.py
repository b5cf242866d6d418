"""Numbers for people: a value with unit and uncertainty, a count, a duration; and the risk in words."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from fractions import Fraction

DUST = 1e-12  # a smaller number is rounding


def value(number: float | None, unit: str = "", se: float | None = None) -> str:
    """Return a number with its standard error and unit: three digits beside an error, four without.

    >>> value(21.123, "min", 1.42), value(893.4, "EUR", 14.2), value(1234.5, se=0.02), value(7.12, se=0)
    ('21.1 ± 1.4 min', '893 ± 14 EUR', '1234.50 ± 0.02', '7.12')
    >>> value(0.0612345, "min"), value(123456.7), value(1e-15), value(None, "min")
    ('0.06123 min', '123,457', '0', '-')
    """
    if number is None or math.isnan(number):
        return "-"
    if se is None or not DUST < se < math.inf:
        text = _plain(number)
    else:
        decimals = max(min(_decimals(number, 3), _decimals(se, 2)), _decimals(se, 1), 0)
        text = f"{number:.{decimals}f} ± {se:.{decimals}f}"
        if decimals > 6:
            text = f"{number:.3g} ± {se:.2g}"
    return f"{text} {unit}".rstrip()


def _plain(number: float) -> str:
    if math.isinf(number):
        return "unlimited" if number > 0 else "-unlimited"
    if abs(number) < DUST:
        return "0"
    return f"{number:,.0f}" if 1e4 <= abs(number) < 1e12 else f"{number:.4g}"


def _decimals(number: float, digits: int) -> int:
    """Return how many decimals show this many significant digits."""
    return digits - 1 - math.floor(math.log10(abs(number))) if abs(number) > DUST else 0


def count(number: float | None, *, about: bool = False) -> str:
    """Return a number of things; a forecast (`about`) has two digits.

    >>> count(1234567), count(4567.8, about=True), count(24.2, about=True), count(None)
    ('1,234,567', '4,600', '24', '-')
    """
    if number is None:
        return "-"
    if not math.isfinite(number):
        return "unlimited"
    if not about or number < 1:
        return f"{round(number):,}"
    digits = max(0, math.floor(math.log10(number)) - 1)
    return f"{round(number / 10**digits) * 10**digits:,}"


def duration(seconds: float) -> str:
    """Return a span of time in one unit: three digits, or two of minutes and more.

    >>> [duration(x) for x in (4e-6, 0.0136, 5, 150, 7300, 400000)]
    ['4 µs', '13.6 ms', '5 s', '2.5 min', '2 h', '4.6 days']
    """
    for unit, size in (("days", 86400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= 2 * size:
            return f"{seconds / size:.2g} {unit}"
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{max(seconds, 0.0) * 1e6:.3g} µs"


def span(low: float, high: float, unit: str = "") -> str:
    """Return the range of some numbers, or the number if all are the same.

    >>> span(1, 2.5, "min"), span(3, 3)
    ('1 to 2.5 min', '3')
    """
    return value(high, unit) if low == high else f"{value(low)} to {value(high, unit)}"


def safe_range(safe: tuple[float | None, float | None] | None, unit: str = "") -> str:
    """Return in which range of an arm's mean the leader stays best.

    >>> safe_range((None, 12.6), "min"), safe_range((1, math.inf)), safe_range((1, 2)), safe_range(None)
    ('below 12.6 min', 'above 1', '1 to 2', '-')
    """
    if safe is None:
        return "-"
    low, high = (end if end is not None and math.isfinite(end) else None for end in safe)
    if low is None and high is None:
        return "any"
    if high is None:
        return f"above {value(low, unit)}"
    return f"below {value(high, unit)}" if low is None else span(low, high, unit)


def odds(delta: float) -> str:
    """Return a probability as "1 time in 20".

    >>> odds(0.05), odds(0.03), odds(0.01), odds(1e-6)
    ('1 time in 20', '3 times in 100', '1 time in 100', '1 time in 1,000,000')
    """
    risk = Fraction(f"{delta:.3g}")
    return f"{risk.numerator:,} {'time' if risk.numerator == 1 else 'times'} in {risk.denominator:,}"


def chance(probability: float) -> str:
    """Return an estimated probability in percent; an estimate is never certain.

    >>> chance(0.876), chance(1.0), chance(0.0)
    ('88%', '> 99%', '< 1%')
    """
    if probability > 0.99:
        return "> 99%"
    return "< 1%" if probability < 0.01 else f"{probability:.0%}"


def day(seconds: float) -> str:
    """Return a date in UTC.

    >>> day(0.0)
    '1 Jan 1970'
    """
    when = datetime.fromtimestamp(seconds, UTC)
    return f"{when.day} {when:%b %Y}"


def minute(seconds: float) -> str:
    """Return a time in UTC, to the minute.

    >>> minute(0.0)
    '1 Jan 1970, 00:00'
    """
    return f"{day(seconds)}, {datetime.fromtimestamp(seconds, UTC):%H:%M}"


def iso(seconds: float) -> str:
    """Return a time in UTC as JSON has it.

    >>> iso(0.0)
    '1970-01-01T00:00:00Z'
    """
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
