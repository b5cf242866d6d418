"""Plans given as data frames, or as sums such as "2*tea + coffee"."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from surepick.core.arrays import FloatArray, labels_of
from surepick.errors import MissingExtraError, ProblemError, suggestion


def is_frame(given: object) -> bool:
    """Return whether this is a data frame of pandas or polars."""
    return hasattr(given, "columns") and (_is_pandas(given) or hasattr(given, "rows"))


def frame_table(frame: Any) -> tuple[FloatArray, tuple[str, ...], tuple[str, ...] | None]:
    """Return the numbers of a data frame, the names of its columns, and those of its rows if it has any.

    An empty cell is 0, as in a spreadsheet. Names of rows are the first column where that is text, unless the
    index of a pandas DataFrame has some.
    """
    columns, rows = frame_cells(frame)
    names = labels_of(frame) if _is_pandas(frame) else None
    if names is None and rows and isinstance(rows[0][0], str):
        names = tuple(str(row[0]) for row in rows)
        columns, rows = columns[1:], [row[1:] for row in rows]
    if names is None and _is_pandas(frame):
        names = tuple(map(str, frame.index))
    numbers = np.zeros((len(rows), len(columns)))
    for k, row in enumerate(rows):
        for s, cell in enumerate(row):
            # empty: None, pandas' own marks, and nan, which is not equal to itself
            if cell is None or type(cell).__name__ in ("NAType", "NaTType") or bool(cell != cell):
                continue
            try:
                numbers[k, s] = float(cell)
            except (TypeError, ValueError, OverflowError):
                row_name = names[k] if names is not None else str(k)
                raise ProblemError(
                    f"row {row_name!r}, column {columns[s]!r}: expected a number, got {cell!r}", field="plans"
                ) from None
    return numbers, columns, names


def make_frame(columns: Mapping[str, Sequence[Any]]) -> Any:
    """Return a pandas data frame of these columns."""
    try:
        import pandas as pd
    except ImportError:
        raise MissingExtraError("a data frame needs pandas; run: pip install pandas") from None
    return pd.DataFrame(dict(columns))


def frame_cells(frame: Any) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    """Return the names of the columns of a data frame, and its rows as they are."""
    rows = frame.to_numpy(dtype=object) if _is_pandas(frame) else frame.rows()
    return tuple(map(str, frame.columns)), [tuple(row) for row in rows]


def _is_pandas(given: object) -> bool:
    return hasattr(given, "columns") and hasattr(given, "index") and hasattr(given, "to_numpy")


_NUMBER = re.compile(r"(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?", re.ASCII)
_TIMES = re.compile(r"\s*(?:\*|·|×|x(?=[\s'\"`]))?\s*")
_QUOTED = re.compile(r"'([^']*)'|\"([^\"]*)\"|`([^`]*)`")
_BARE = re.compile(r"[^\W\d]\w*(?:[ .]+\w+)*")  # words, with single spaces or dots between them
_SPACE = re.compile(r"\s*")


def are_expressions(plans: object) -> bool:
    """Return whether plans are sums of arms: texts in a list, or by name texts or amounts of arms."""
    if isinstance(plans, Mapping):
        return bool(plans) and all(isinstance(plan, str | Mapping) for plan in plans.values())
    return isinstance(plans, list | tuple) and bool(plans) and all(isinstance(plan, str) for plan in plans)


def read_expressions(
    plans: Sequence[str] | Mapping[str, Any], arms: Sequence[str] | None
) -> tuple[FloatArray, list[str], list[str]]:
    """The amounts of each arm, the names of the arms and those of the plans.

    Without names of arms, all that occur are arms, in the order in which they first do.

    >>> amounts, arms, names = read_expressions(["2*tea + coffee", "coffee - 0.5 cocoa"], None)
    >>> amounts.tolist(), arms
    ([[2.0, 1.0, 0.0], [0.0, 1.0, -0.5]], ['tea', 'coffee', 'cocoa'])
    """
    named = dict(plans) if isinstance(plans, Mapping) else {text: text for text in plans}
    if len(named) < len(plans):
        raise ProblemError("two plans are written alike; leave one of them out", field="plans")
    read: dict[str, dict[str, float]] = {}
    for name, plan in named.items():
        try:
            read[str(name)] = (
                amounts_in(str(name), plan, arms)
                if isinstance(plan, str)
                else {str(arm): float(amount) for arm, amount in plan.items()}
            )
        except (TypeError, ValueError, OverflowError) as error:
            if isinstance(error, ProblemError):
                raise
            raise ProblemError(
                f"plan {name!r} must have a number for each arm that it uses, got {plan!r}", field="plans"
            ) from None
    found = list(dict.fromkeys(arm for plan in read.values() for arm in plan)) if arms is None else list(arms)
    at = {arm: s for s, arm in enumerate(found)}
    matrix = np.zeros((len(read), len(found)))
    for k, (name, plan) in enumerate(read.items()):
        for arm, amount in plan.items():
            if arm not in at:
                raise ProblemError(
                    f"plan {name!r} names an unknown arm {arm!r}; {suggestion(arm, found)}", field="plans"
                )
            matrix[k, at[arm]] += amount
    return matrix, found, list(read)


def amounts_in(name: str, text: str, arms: Sequence[str] | None = None) -> dict[str, float]:
    """Return how often the plan uses each arm: numbers times names, added or subtracted.

    A name with other signs than letters, digits, spaces and dots stands in quotes; where the arms are known,
    their names are recognised as they are.

    >>> amounts_in("a", "2*tea + 'A -> B' - 0.5 tea")
    {'tea': 1.5, 'A -> B': 1.0}
    """
    longest = sorted(arms or (), key=len, reverse=True)
    amounts: dict[str, float] = {}

    def expected(what: str, at: int) -> ProblemError:
        here = f"{text[at : at + 12]!r}" if at < len(text) else "its end"
        return ProblemError(
            f"plan {name!r}: expected {what} at {here} in {text!r}; a plan is written like 2*tea + coffee, "
            "and names with other signs than letters, digits and spaces stand in quotes",
            field="plans",
        )

    def skip(pattern: re.Pattern[str], at: int) -> int:
        found = pattern.match(text, at)
        return at if found is None else found.end()

    def known(at: int) -> str | None:
        """The longest known arm whose name stands here, and ends here."""
        for arm in longest:
            rest = text[at + len(arm) : at + len(arm) + 1]
            if text.startswith(arm, at) and not (rest.isalnum() or rest == "_"):
                return arm
        return None

    at, first = skip(_SPACE, 0), True
    while at < len(text) or first:
        factor, sign = 1.0, text[at : at + 1]
        if sign == "-" and not (first or text[at - 1].isspace() or text[at + 1 : at + 2].isspace()):
            raise expected("spaces around a minus that is not part of a name", at)
        if sign and sign in "+-":
            factor, at = -1.0 if sign == "-" else 1.0, skip(_SPACE, at + 1)
        elif not first:
            raise expected("'+' or '-'", at)
        number = _NUMBER.match(text, at) if known(at) is None else None
        if number:
            factor, at = factor * float(number[0]), skip(_TIMES, number.end())
        if (arm := known(at)) is not None:
            end = at + len(arm)
        elif quoted := _QUOTED.match(text, at):
            arm, end = next(part for part in quoted.groups() if part is not None), quoted.end()
        elif bare := _BARE.match(text, at):
            arm, end = bare[0], bare.end()
        else:
            raise expected("the name of an arm", at)
        amounts[arm] = amounts.get(arm, 0.0) + factor
        at, first = skip(_SPACE, end), False
    return amounts
