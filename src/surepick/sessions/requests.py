"""What a session and its workers say to each other: tokens, requests, receipts, measurements."""

from __future__ import annotations

import enum
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from surepick.store import Event

_TOKEN = re.compile(r"[tT]?(0|[1-9][0-9]{0,17})\.(0|[1-9][0-9]{0,17})")


class Token(NamedTuple):
    """One measurement of an arm, the one at `index` of its tape, counted from 0; as text "arm.index".

    That looks like a number, and spreadsheets make 3.1 of 3.10. What is written for a spreadsheet has
    `for_sheets` in its place, which stays text; `parse` reads both.

    >>> str(Token(3, 10)), Token(3, 10).for_sheets, Token.parse("3.10") == Token.parse("t3.10")
    ('3.10', 't3.10', True)
    """

    arm: int
    index: int  # type: ignore[assignment]  # hides tuple.index, which nobody calls on a token

    def __str__(self) -> str:
        return f"{self.arm}.{self.index}"

    @property
    def for_sheets(self) -> str:
        """The token as text that no spreadsheet takes for a number."""
        return f"t{self}"

    @classmethod
    def parse(cls, text: object) -> Token:
        """The token with this text, as `str` or `for_sheets` writes it; a ValueError for anything else."""
        found = _TOKEN.fullmatch(text) if isinstance(text, str) else None
        if found is None:
            raise ValueError(f"{text!r} is not a token")
        return cls(int(found[1]), int(found[2]))


def told_key(token: Token) -> str:
    """The key of the event that tells this token."""
    return f"told:{token}"


@dataclass(frozen=True)
class Request:
    """A measurement that a worker should make: of this arm, told under this token.

    `wanted` is how many measurements of the arm the policy waits for from this token on, for those who can
    make several at once; 0 means that it is made ahead, to keep a worker busy.
    """

    token: str
    arm: int
    arm_name: str
    wanted: int
    worker: str
    expires: float  # seconds since 1970, UTC


class Receipt(enum.StrEnum):
    """What became of a told value."""

    ACCEPTED = "accepted"
    REPEATED = "repeated"  # it was told before with the same value; nothing changed
    LATE = "late"  # another worker told this token first; kept as a measurement that nobody asked for


@dataclass(frozen=True)
class Measurement:
    """A measurement as it was told; `token` is None for one that nobody asked for.

    `picked` says of an unasked one that it was chosen after looking, and is not counted for that. `event` is
    where it stands in the log, by which an unasked one is taken back.
    """

    arm: int
    arm_name: str
    value: float
    count: int  # of how many measurements `value` is the mean
    time: float
    token: str | None
    worker: str
    picked: bool = False
    voided: bool = False  # taken back since
    event: int = 0

    @property
    def name(self) -> str:
        """What `void` calls it: its token or, where it has none, the number of its event."""
        return str(self.event) if self.token is None else self.token


def told_in(body: Mapping[str, Any]) -> list[tuple[int, float]]:
    """The indices of the tape and the values of an event that tells some."""
    if "values" in body:
        return list(zip(body["places"], body["values"], strict=True))
    return [(body["index"], body["value"])]


def measurements_in(event: Event, arm_names: tuple[str, ...]) -> Iterator[Measurement]:
    """The measurements that this event of a log tells or records."""
    if event.kind not in ("measured", "recorded"):
        return
    body = json.loads(event.body)
    arm = body["arm"]
    told: Iterable[tuple[int | None, float]]
    told = told_in(body) if event.kind == "measured" else [(None, body["value"])]
    for index, value in told:
        yield Measurement(
            arm=arm,
            arm_name=arm_names[arm],
            value=value,
            count=body.get("count", 1),
            time=event.time,
            token=None if index is None else str(Token(arm, index)),
            worker=body.get("worker", ""),
            picked=bool(body.get("picked", False)),
            event=event.position,
        )
