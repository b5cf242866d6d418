"""What may be told: which token, how many values, and which numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Set
from typing import Any, cast

from surepick.core.arrays import MOST_SCALES, furthest_value, outside
from surepick.core.oracle_problem import AnyProblem
from surepick.core.tables import numeral
from surepick.core.wording import shortened
from surepick.errors import SessionError
from surepick.sessions.leasing import AHEAD
from surepick.sessions.ledger import Ledger
from surepick.sessions.replica import Replica
from surepick.sessions.requests import Token, numbered, probe_in, readings_in
from surepick.sessions.settings import Body

_HOW_TOKENS_LOOK = "tokens are what `ask` gives, like 3.17 (or t3.17) for the measurement 17 of arm 3"


def token_of(replica: Replica, text: object) -> Token:
    """The token with this text, if it can be one of this session; its arm may have come a moment ago."""
    try:
        token = Token.parse(text)
    except ValueError:
        token = None
    if token is not None and token.probe >= len(replica.ledger.tapes.of):
        replica.catch_up()
    if token is None or token.probe >= len(replica.ledger.tapes.of):
        raise SessionError(
            f"{text!r} is not a token of session {replica.name!r}; {_HOW_TOKENS_LOOK}", field="token"
        )
    return token


def takes(ledger: Ledger, token: Token) -> bool:
    """Whether a value for this token can be told: it is asked for, told already, or not far ahead."""
    return token.index < ledger.tapes.of[token.probe].end_of_round + AHEAD


def refuse_unasked(ledger: Ledger, token: Token) -> None:
    """Refuse a token that cannot have been handed out."""
    if not takes(ledger, token):
        raise SessionError(f"token '{token}' was never handed out; {_HOW_TOKENS_LOOK}", field="token")


def is_list(value: object) -> bool:
    """Whether these are several values in an order; bytes and mappings are neither a number nor several."""
    one = isinstance(value, str | bytes | bytearray | memoryview | Mapping | Set)
    return isinstance(value, Iterable) and not one and getattr(value, "ndim", 1) > 0


def check_numbers(problem: AnyProblem, body: Body) -> None:
    """Refuse an event whose values cannot be measurements."""
    probe = probe_in(body)
    readings = problem.readings_of(probe)
    if "values" in body:
        for value in body["values"]:
            number(problem, readings[0], value)
        return
    for k, value in numbered(readings_in(body), problem.reads(probe)).items():
        number(problem, readings[k], value)


def number(problem: AnyProblem, reading: int, value: object) -> float:
    """Return the value of this reading as a float; refuse what cannot be one."""
    try:
        if isinstance(value, bytes | bytearray | memoryview):
            raise TypeError  # which float would read
        found = numeral(value) if isinstance(value, str) else float(cast(Any, value))
    except (TypeError, ValueError, OverflowError):
        shown = shortened(repr(value), 60)
        what = problem.reading_in_words(reading)
        raise SessionError(f"the value of {what} must be a number, got {shown}", field="value") from None
    if not math.isfinite(found):
        raise SessionError(
            f"the value of {problem.reading_in_words(reading)} must be finite, got {found}; repeat the "
            "measurement, or withdraw its token",
            field="value",
        )
    if problem.bounds is not None and outside(problem.bounds, reading, found):
        low, high = problem.bounds[reading].tolist()
        raise SessionError(
            f"the value of {problem.reading_in_words(reading)} must lie within its bounds, {low:g} to "
            f"{high:g}, got {found:g}; the guarantee rests on them, so if the value is right, begin again "
            "with wider bounds",
            field="value",
        )
    furthest = furthest_value(problem.noise_scale, reading)
    if abs(found) > furthest:
        scales = f" ({MOST_SCALES:g} noise scales)" if problem.noise_scale is not None else ""
        raise SessionError(
            f"the value of {problem.reading_in_words(reading)} must lie within {furthest:g} of zero{scales}, "
            f"got {found:g}; beyond it rounding outweighs the noise: check the value and its unit, and where "
            "all values are that large begin again with a constant subtracted from them",
            field="value",
        )
    return found
