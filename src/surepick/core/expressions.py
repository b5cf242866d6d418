"""Plans written as sums, such as "2*tea + coffee": how often a plan uses each arm."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from surepick.core.arrays import FloatArray
from surepick.errors import ProblemError, suggestion

_NUMBER = re.compile(r"(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?", re.ASCII)
_TIMES = re.compile(r"\s*(?:\*|·|×|x(?=[\s'\"`]))\s*")
_QUOTED = re.compile(r"'([^']*)'|\"([^\"]*)\"|`([^`]*)`")
_BARE = re.compile(r"[^\W\d]\w*(?:[ .]+\w+)*")  # words, with single spaces or dots between them
_SPACE = re.compile(r"\s*")


def are_expressions(plans: object) -> bool:
    """Whether plans are given as sums of arms: texts in a list, or by name texts or amounts of arms.

    >>> are_expressions(["tea"]), are_expressions({"a": {"tea": 2}}), are_expressions([[1, 0]])
    (True, True, False)
    """
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
    >>> names
    ['2*tea + coffee', 'coffee - 0.5 cocoa']
    """
    named = dict(plans) if isinstance(plans, Mapping) else {text: text for text in plans}
    if len(named) < len(plans):
        raise ProblemError("two plans are written alike; leave one of them out", field="plans")
    read = {
        str(name): amounts_in(str(name), plan, arms) if isinstance(plan, str) else _checked(str(name), plan)
        for name, plan in named.items()
    }
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


def _checked(name: str, plan: Mapping[str, Any]) -> dict[str, float]:
    try:
        return {str(arm): float(amount) for arm, amount in plan.items()}
    except (TypeError, ValueError, OverflowError):
        raise ProblemError(
            f"plan {name!r} must have a number for each arm that it uses, got {plan!r}", field="plans"
        ) from None


def amounts_in(name: str, text: str, arms: Sequence[str] | None = None) -> dict[str, float]:
    """How often the plan uses each arm: numbers times names, added or subtracted.

    A name with other signs than letters, digits, spaces and dots stands in quotes; where the arms are known,
    their names are recognised as they are.

    >>> amounts_in("a", "2*tea + 'A -> B' - 0.5 tea")
    {'tea': 1.5, 'A -> B': 1.0}
    """
    longest = sorted(arms or (), key=len, reverse=True)
    amounts: dict[str, float] = {}
    at, first = _skip(text, 0), True
    while at < len(text) or first:
        sign, at = _sign(name, text, at, first=first)
        number = _NUMBER.match(text, at) if not _known(text, at, longest) else None
        factor = 1.0
        if number:
            factor, at = float(number[0]), number.end()
            times = _TIMES.match(text, at)
            at = times.end() if times else _skip(text, at)
        arm, end = _arm(name, text, at, longest)
        amounts[arm] = amounts.get(arm, 0.0) + sign * factor
        at, first = _skip(text, end), False
    return amounts


def _skip(text: str, at: int) -> int:
    space = _SPACE.match(text, at)
    return space.end() if space else at


def _sign(name: str, text: str, at: int, *, first: bool) -> tuple[float, int]:
    if (
        text[at : at + 1] == "-"
        and not first
        and not (text[at - 1].isspace() or text[at + 1 : at + 2].isspace())
    ):
        raise _wrong(name, text, at, "spaces around a minus that is not part of a name")
    if at < len(text) and text[at] in "+-":
        return (-1.0 if text[at] == "-" else 1.0), _skip(text, at + 1)
    if first:
        return 1.0, at
    raise _wrong(name, text, at, "'+' or '-'")


def _known(text: str, at: int, longest: Sequence[str]) -> str | None:
    """The longest known arm whose name stands here, and ends here."""
    for arm in longest:
        rest = text[at + len(arm) : at + len(arm) + 1]
        if text.startswith(arm, at) and not (rest.isalnum() or rest == "_"):
            return arm
    return None


def _arm(name: str, text: str, at: int, longest: Sequence[str]) -> tuple[str, int]:
    known = _known(text, at, longest)
    if known is not None:
        return known, at + len(known)
    quoted = _QUOTED.match(text, at)
    if quoted:
        return next(part for part in quoted.groups() if part is not None), quoted.end()
    bare = _BARE.match(text, at)
    if bare is None:
        raise _wrong(name, text, at, "the name of an arm")
    return bare[0], bare.end()


def _wrong(name: str, text: str, at: int, expected: str) -> ProblemError:
    here = f"{text[at : at + 12]!r}" if at < len(text) else "its end"
    return ProblemError(
        f"plan {name!r}: expected {expected} at {here} in {text!r}; a plan is written like 2*tea + coffee, "
        "and names with other signs than letters, digits and spaces stand in quotes",
        field="plans",
    )
