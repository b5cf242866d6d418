"""Numbers, times and names as people read them: short, plain, one line; text is made of them here alone."""

from __future__ import annotations

import math
from datetime import UTC, datetime

from surepick.core.wording import shortened


def plain(text: object, length: int = 40) -> str:
    """A name as a label: one line, no control characters, cut off where it gets long.

    >>> plain("a\\nb"), plain("x" * 50, 5)
    ('a b', 'xxxx…')
    """
    return shortened("".join(letter if letter.isprintable() else " " for letter in str(text)), length)


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


def rounded(number: float) -> str:
    """A number of measurements with two significant digits.

    >>> [rounded(x) for x in (0.4, 7.2, 123.0, 45678.0, 2.5e9)]
    ['0', '7', '120', '46,000', '2.5e+09']
    """
    if number >= 1e7:
        return f"{number:.2g}"
    digits = max(0, math.floor(math.log10(number)) - 1) if number >= 1 else 0
    return f"{round(number / 10**digits) * 10**digits:,}"


def times(value: float) -> str:
    """How many times more likely, for labels.

    >>> times(1.0), times(37.4), times(2e9), times(1e305)
    ('1×', '37×', '10⁹×', '>10¹⁰⁰×')
    """
    if value >= 1e100:
        return ">10¹⁰⁰×"
    if value >= 1e6:
        return f"10{superscript(math.floor(math.log10(value)))}×"
    return f"{value:.2g}×" if value < 9.95 else f"{value:,.0f}×"


def superscript(number: int) -> str:
    """A whole number as an exponent.

    >>> superscript(-12)
    '⁻¹²'
    """
    return str(number).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def duration(seconds: float) -> str:
    """A span of time in one unit.

    >>> [duration(x) for x in (5, 200, 7300, 400000)]
    ['5 s', '3 min', '2 h', '5 days']
    """
    for unit, size in (("days", 86400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= 2 * size or (unit == "min" and seconds >= 60):
            return f"{seconds / size:.0f} {unit}"
    return f"{max(seconds, 0):.0f} s"


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


def about(value: float | None) -> str:
    """A forecast with two digits that matter.

    >>> about(12345.0), about(0.4), about(None)
    ('≈ 12,000', '≈ 0', '∞')
    """
    return "∞" if value is None else f"≈ {rounded(value)}"


def probability(value: float) -> str:
    """Return a probability to four digits, never rounded up to certainty.

    >>> probability(0.95), probability(0.99997), probability(1.0)
    ('0.9500', '> 0.9999', '1.0000')
    """
    return "> 0.9999" if 0.9999 < value < 1.0 else f"{value:.4f}"


def percent(value: float | None) -> str:
    """A probability in percent, never rounded up to certainty.

    >>> percent(0.95), percent(0.9995), percent(0.999999), percent(1.0), percent(None), percent(0.0)
    ('95%', '99.95%', '> 99.99%', '100%', '–', '0%')
    """
    if value is None:
        return "–"
    if value < 1 and round(100 * value, 2) >= 100:
        return "> 99.99%"
    digits = 2 if value < 1 and round(100 * value, 1) >= 100 else 1
    return f"{100 * value:.{digits}f}".rstrip("0").rstrip(".") + "%"


def chance(value: float) -> str:
    """Return an estimated probability in percent, which is never said to be certain.

    >>> chance(0.876), chance(1.0)
    ('88%', '> 99%')
    """
    return "> 99%" if value > 0.99 else f"{value:.0%}"


def moment(seconds: float | None) -> str:
    """A time as a date, in UTC.

    >>> moment(0.0)
    '1970-01-01 00:00:00 UTC'
    """
    return "–" if seconds is None else datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def local(seconds: float | None) -> str:
    """A time as the clock on this machine's wall shows it, for the terminal; files and pages say UTC.

    >>> len(local(0.0))
    16
    """
    return "–" if seconds is None else datetime.fromtimestamp(seconds).astimezone().strftime("%Y-%m-%d %H:%M")


def clock(seconds: float | None) -> str:
    """A time in the form that a machine reads.

    >>> clock(0.0)
    '1970-01-01T00:00:00+00:00'
    """
    return "" if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
