"""Numbers as people write them: one function decides, for tables, `tell`, `run` and the dashboard."""

from __future__ import annotations

import re

from surepick.errors import ParameterError

_EXPONENT = r"(?:[eE][-+]?\d+)?"
_WITH_POINT = re.compile(rf"[-+]?(?:\d+\.?\d*|\.\d+){_EXPONENT}", re.ASCII)
_WITH_COMMA = re.compile(rf"[-+]?\d*,\d+{_EXPONENT}", re.ASCII)
_WITH_THOUSANDS = re.compile(r"[-+]?[1-9]\d{0,2},\d{3}", re.ASCII)  # or three decimals: nobody can know
_COUNT = re.compile(r"\d{1,18}", re.ASCII)
_NO_NUMBER = re.compile(r"[-+]?(?:nan|inf|infinity)", re.IGNORECASE)


def numeral(text: str, *, comma_is_decimal: bool = False) -> float:
    """The number that this text is, with a decimal point or a decimal comma; otherwise a `ParameterError`.

    12,5 is 12.5. 1,234 is refused, since it may be 1.234 or 1234, unless `comma_is_decimal` says what commas
    are; so is anything between thousands. "nan" and "inf" are what Python takes them for: who needs a finite
    number looks for himself.

    >>> numeral("12.5"), numeral(" -0,125 "), numeral("1,234", comma_is_decimal=True)
    (12.5, -0.125, 1.234)
    >>> numeral("1,234")
    Traceback (most recent call last):
    surepick.errors.ParameterError: '1,234' may be 1.234 or 1234; write one of these
    """
    word = text.strip()
    if _WITH_POINT.fullmatch(word) or _NO_NUMBER.fullmatch(word):
        return float(word)
    if _WITH_THOUSANDS.fullmatch(word) and not comma_is_decimal:
        point, none = word.replace(",", "."), word.replace(",", "")
        raise ParameterError(f"{word!r} may be {point} or {none}; write one of these")
    if _WITH_COMMA.fullmatch(word):
        return float(word.replace(",", "."))
    raise ParameterError(
        f"expected a number, got {text!r}; write it like 1234.5, with nothing between thousands and no unit"
    )


def is_numeral(text: str) -> bool:
    """Whether `numeral` takes this text.

    >>> is_numeral("12,5"), is_numeral("12.5 h")
    (True, False)
    """
    try:
        numeral(text)
    except ParameterError:
        return False
    return True


def count_in(text: str) -> int | None:
    """The number that this text of up to 18 digits is; None for any other text.

    Python's tests for digits hold for a raised 2 and for thousands of digits, of which `int` makes nothing.

    >>> count_in("12"), count_in("\u00b2"), count_in("-1"), count_in("9" * 5000)
    (12, None, None, None)
    """
    return int(text) if _COUNT.fullmatch(text) else None
