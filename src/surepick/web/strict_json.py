"""JSON from strangers: of limited depth, with numbers that are numbers."""

from __future__ import annotations

import json
import math
from typing import Any

from surepick.errors import ParameterError

DEEPEST = 16
LONGEST_WHOLE = 15  # digits; larger whole numbers are no longer exact as floating-point numbers


def read_object(body: bytes) -> dict[str, Any]:
    """The JSON object in this body; NaN, infinities, numbers too large and deep nests are refused.

    >>> read_object(b'{"value": 1.5}')
    {'value': 1.5}
    >>> read_object(b'{"value": 1e400}')
    Traceback (most recent call last):
    surepick.errors.ParameterError: the number 1e400 in the JSON is too large
    """
    try:
        text = body.decode("utf-8")
        _check_depth(text)
        found = json.loads(text, parse_constant=_no_constant, parse_float=_finite, parse_int=_whole)
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise ParameterError(f"the body is not JSON in UTF-8: {error}") from None
    if not isinstance(found, dict):
        raise ParameterError(f"the body must be a JSON object, got a {type(found).__name__}")
    return found


def _check_depth(text: str) -> None:
    """Refuse deep nests before they are read; brackets within texts are not counted."""
    depth, quoted, escaped = 0, False, False
    for sign in text:
        if quoted:
            quoted, escaped = sign != '"' or escaped, sign == "\\" and not escaped
        elif sign == '"':
            quoted = True
        elif sign in "[{":
            depth += 1
            if depth > DEEPEST:
                raise ParameterError(f"the JSON is nested more than {DEEPEST} deep")
        elif sign in "]}":
            depth -= 1


def _no_constant(text: str) -> float:
    raise ParameterError(f"{text} is not a JSON number; leave the measurement out or repeat it")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ParameterError(f"the number {text[:20]} in the JSON is too large")
    return number


def _whole(text: str) -> int | float:
    return int(text) if len(text) <= LONGEST_WHOLE else _finite(text)
