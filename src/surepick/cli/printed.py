"""Reading what a measuring program printed: one number, or several readings as a JSON object."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence

from surepick.errors import MeasureError

# Nothing else may stand on the line: "5 ± 0.2", "12:30", "mean=4 sd=2" or "1,234" have more than one meaning.
NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?", re.ASCII)
SHOWN = 120  # characters of the output that an error repeats


def one_number(output: str, name: str) -> float:
    """Return the number on the last line that a program printed for the arm `name`.

    >>> one_number("warming up\\n12.5\\n", "road")
    12.5
    """
    line = _last_line(output)
    if NUMBER.fullmatch(line) is None or not math.isfinite(value := float(line)):
        raise _unreadable(name, line, "one number, such as 1234.5")
    return value


def readings(output: str, name: str, wanted: Sequence[str]) -> dict[str, float]:
    """Return the readings by name from the JSON object on the last line that a program printed.

    >>> readings('done\\n{"A-B": 3.2, "B-C": 4}', "loop", ["A-B", "B-C"])
    {'A-B': 3.2, 'B-C': 4.0}
    """
    line = _last_line(output)
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or not all(_is_number(found.get(reading)) for reading in wanted):
        example = json.dumps(dict.fromkeys(wanted[:3], 1.5))
        raise _unreadable(name, line, f"a JSON object of all {len(wanted)} readings, such as {example}")
    return {reading: float(found[reading]) for reading in wanted}


def _last_line(output: str) -> str:
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return lines[-1] if lines else ""


def _is_number(value: object) -> bool:
    return type(value) in (int, float) and abs(value) < math.inf  # type: ignore[arg-type]


def _unreadable(name: str, line: str, expected: str) -> MeasureError:
    return MeasureError(
        f"the command for {name!r} printed {line[-SHOWN:]!r}; expected {expected} on its last line"
    )
