"""What a program of the user's printed: one number, or the readings of a probe."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence

from surepick.core.numerals import is_numeral, numeral
from surepick.core.wording import shortened
from surepick.errors import MeasureError

HAS_NUMBER = re.compile(r"\d|(?<!\w)(?:nan|inf|infinity)(?!\w)", re.IGNORECASE)
LIST = re.compile(r"[;:=|]+")  # what may stand between numbers of one word, beside commas
DECIMALS = re.compile(r"[-+]?\d*\.\d+(?:[eE][-+]?\d+)?", re.ASCII)  # between commas these are a list
GROUPS = re.compile(r"(?<![\d.,])[-+]?\d{1,3}(?: \d{3})+(?:[.,]\d+)?$")  # 1 234 at the end of the output
BRACKETS = "()[]{}<>"
AROUND = BRACKETS + "\"'$\u20ac\u00a3%"  # may stand around a number
TAIL = 400  # characters of a program's output to show
BETWEEN = re.compile(r"[\s=:]+")  # what may stand between the name of a reading and its value


def last_number(output: str, name: str) -> float:
    """The number that a program printed last; what is not plainly one number is refused.

    Words are looked at from the end: the first that has a digit must be a number, or a list that ends with
    one. So a unit may follow after a space, and 1,234 or 1'234 or 12.5h is an error instead of a wrong value.

    >>> last_number("run 3 took\\n 12.5 h", "road"), last_number("12,5", "road")
    (12.5, 12.5)
    """
    words = re.split(r"[ \t\r\n\f\v]+", output.strip())  # other spaces, as in 1 234, belong to a word
    word = next((word for word in reversed(words) if HAS_NUMBER.search(word)), None)
    if word is None:
        shown = output.strip()[-TAIL:]
        raise MeasureError(f"the command for {name!r} printed no number, got {shown!r}")
    piece = _last_of_list(word.strip(AROUND + ",;.!"), bracketed=any(sign in word for sign in BRACKETS))
    if piece is None or not is_numeral(piece) or GROUPS.search(output.strip()):
        raise MeasureError(
            f"the command for {name!r} printed {output.strip()[-TAIL:]!r}, and {word!r} is not "
            "plainly one number; print the value last, with a decimal point and nothing between thousands, "
            "such as 1234.5; a unit may follow after a space"
        )
    value = numeral(piece)
    if not math.isfinite(value):
        raise MeasureError(f"the command for {name!r} measured {value}, which is not a finite number")
    return value


def _last_of_list(word: str, *, bracketed: bool) -> str | None:
    """The last number of a word that may be a list; None where commas may be decimal ones or not.

    >>> [_last_of_list(word, bracketed=False) for word in ("x=12,5", "12.5,13.5", "1,2,3")]
    ['12,5', '13.5', None]
    >>> _last_of_list("3,4", bracketed=True)
    """
    last = LIST.split(word)[-1].strip(AROUND)
    parts = last.split(",")
    if len(parts) == 1 or (len(parts) == 2 and not bracketed and parts[1].isdecimal()):
        return last
    return parts[-1] if all(map(DECIMALS.fullmatch, parts)) else None


def readings(output: str, name: str, wanted: Sequence[str]) -> dict[str, float]:
    """The readings that a program printed: a JSON object, lines `name value`, or a last line of numbers.

    Of a name that was printed twice the last value counts; numbers alone are exactly as many as there are
    readings, in their order.

    >>> readings('{"A-B": 3.2, "B-C": 4}', "loop", ["A-B", "B-C"])
    {'A-B': 3.2, 'B-C': 4.0}
    >>> readings("A-B 3.2\\nB-C: 4.1", "loop", ["A-B", "B-C"])
    {'A-B': 3.2, 'B-C': 4.1}
    >>> readings("done\\n3.2 4.1", "loop", ["A-B", "B-C"])
    {'A-B': 3.2, 'B-C': 4.1}
    """
    lines = [line.strip() for line in output.strip().splitlines() if line.strip()]
    found = _of_json(output, lines) or _of_lines(lines, wanted)
    if not found and lines:
        words = re.split(r"[\s,;]+", lines[-1])
        if len(words) == len(wanted) and all(map(is_numeral, words)):
            found = dict(zip(wanted, map(numeral, words), strict=True))
    missing = [one for one in wanted if one not in found]
    listed = shortened(", ".join(map(repr, missing)), 200, "...")
    if missing:
        raise MeasureError(
            f"the command for {name!r} did not print {listed}; print a JSON object of all readings by name, "
            f"a line `name value` for each, or last a line of {len(wanted)} numbers in the order of "
            f"SUREPICK_READINGS; got {output.strip()[-TAIL:]!r}"
        )
    wrong = [one for one in wanted if not math.isfinite(found[one])]
    if wrong:
        raise MeasureError(
            f"the command for {name!r} measured {found[wrong[0]]} as {wrong[0]!r}, not a number"
        )
    return {one: found[one] for one in wanted}


def _of_json(output: str, lines: Sequence[str]) -> dict[str, float]:
    """The numbers of a JSON object that is all of the output, or its last line."""
    for text in (output, lines[-1] if lines else ""):
        try:
            data = json.loads(text)
        except (ValueError, RecursionError):
            continue
        if isinstance(data, dict):
            numbers = (int, float)
            return {k: float(v) for k, v in data.items() if type(v) in numbers}
    return {}


def _of_lines(lines: Sequence[str], wanted: Sequence[str]) -> dict[str, float]:
    """The numbers of lines that begin with the name of a reading."""
    found = {}
    for line in lines:
        for name in wanted:
            rest = BETWEEN.split(line.removeprefix(name), maxsplit=1)
            if line.startswith(name) and len(rest) == 2 and rest[0] == "" and is_numeral(rest[1]):
                found[name] = numeral(rest[1])
    return found
