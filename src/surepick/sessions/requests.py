"""What a session and its workers say to each other: tokens, requests, receipts, measurements."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from surepick.core.oracle_problem import AnyProblem
from surepick.core.probes import VALUE
from surepick.store import Event

# What one measurement gives: a number, or its readings by name or in their order.
Use: TypeAlias = float | Sequence[float] | Mapping[str, float]
_TOKEN = re.compile(r"[tT]?(0|[1-9][0-9]{0,17})\.(0|[1-9][0-9]{0,17})")


class Token(NamedTuple):
    """One measurement: the use of a probe at `index` of its tapes, counted from 0; as text "probe.index".

    Where each arm is measured by itself, the probe is the arm. A token looks like a number, and spreadsheets
    make 3.1 of 3.10. What is written for a spreadsheet has `for_sheets` in its place, which stays text;
    `parse` reads both.

    >>> str(Token(3, 10)), Token(3, 10).for_sheets, Token.parse("3.10") == Token.parse("t3.10")
    ('3.10', 't3.10', True)
    """

    probe: int
    index: int  # type: ignore[assignment]  # hides tuple.index, which nobody calls on a token

    def __str__(self) -> str:
        return f"{self.probe}.{self.index}"

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

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> Token:
        """The token that an event is about."""
        return cls(probe_in(body), body["index"])

    def to_body(self, problem: AnyProblem, worker: str = "") -> dict[str, Any]:
        """As an event says it, with the word for what is measured, and who it was if that is known."""
        body: dict[str, Any] = {problem.probe_word: self.probe, "index": self.index}
        return {**body, "worker": str(worker)} if worker else body


def probe_in(body: Mapping[str, Any]) -> int:
    """What an event is a measurement of; logs say "arm" where each arm is measured by itself."""
    probe: int = body["probe"] if "probe" in body else body["arm"]
    return probe


def told_key(token: Token | str, part: int = 0) -> str:
    """The key of the event that tells this token; of the second, third part of its readings with a number.

    >>> told_key(Token(3, 17)), told_key(Token(3, 17), 1)
    ('told:3.17', 'told:3.17+1')
    """
    return f"told:{token}" + (f"+{part}" if part else "")


class _OfProbe:
    """What is about one use of a probe; where each arm is measured by itself, the probe is the arm."""

    probe: int
    probe_name: str

    @property
    def arm(self) -> int:
        """The same as `probe`, for problems where each arm is measured by itself."""
        return self.probe

    @property
    def arm_name(self) -> str:
        """The same as `probe_name`, for problems where each arm is measured by itself."""
        return self.probe_name


@dataclass(frozen=True)
class Request(_OfProbe):
    """A measurement that a worker should make: one use of this probe, told under this token.

    `readings` are the names of the numbers that are wanted of it; where each arm is measured by itself it is
    one. `wanted` is how many measurements of the probe the policy waits for from this token on, for those who
    can make several at once; 0 means that it is made ahead, to keep a worker busy.
    """

    token: str
    probe: int
    probe_name: str
    wanted: int
    worker: str
    expires: float  # seconds since 1970, UTC
    readings: tuple[str, ...] = (VALUE,)

    @property
    def id(self) -> str:
        """The text by which `tell` and `release` know the request."""
        return self.token


@dataclass(frozen=True)
class Receipt:
    """What became of a value: its number, and "recorded", "repeated" or "extra".

    Numbers count values in the order of recording, from 1; `remove` finds a value by it. "repeated" says that
    it was recorded before and nothing changed; "extra" that it answers no request, so it waits for a batch
    that needs it. "partial": readings of it are still to come.
    """

    number: int
    result: str

    def __str__(self) -> str:
        return self.result


@dataclass(frozen=True)
class Measurement(_OfProbe):
    """A number as it was told; `token` is None for one that nobody asked for.

    `picked` says of an unasked one that it was chosen after looking, and is not counted for that. `event` is
    where it stands in the log, by which an unasked one is taken back.
    """

    probe: int
    probe_name: str
    value: float
    time: float
    token: str | None
    worker: str
    picked: bool = False
    voided: bool = False  # taken back since
    event: int = 0
    reading: str = VALUE  # which number of the probe's it is
    key: str = ""  # under which it was recorded or imported
    number: int = 0  # 1 for the first value of the session

    @property
    def name(self) -> str:
        """What `void` calls it: its token or, where it has none, the number of its event."""
        return str(self.event) if self.token is None else self.token


def told_in(body: Mapping[str, Any]) -> list[tuple[int, Mapping[str, float]]]:
    """The indices of the tapes, and the values by reading, of an event that tells some."""
    if "values" in body:
        return [(i, {VALUE: value}) for i, value in zip(body["places"], body["values"], strict=True)]
    return [(body["index"], readings_in(body))]


def readings_in(body: Mapping[str, Any]) -> Mapping[str, float]:
    """The values of one use by reading: several of them by their names, or one."""
    return body["readings"] if "readings" in body else {VALUE: body["value"]}


def numbered(values: Mapping[str, float], reads: tuple[str, ...]) -> dict[int, float]:
    """The values by the number of their reading within the probe, whose readings have these names.

    >>> numbered({"B-C": 4.1}, ("A-B", "B-C")), numbered({"value": 2.0}, ("A-B",))
    ({1: 4.1}, {0: 2.0})
    """
    if len(reads) == 1:
        (value,) = values.values()
        return {0: value}
    return {reads.index(name): value for name, value in values.items()}


def numbers_in(body: Mapping[str, Any], reads: tuple[str, ...]) -> list[tuple[int, dict[int, float]]]:
    """The same by the number of the reading within the probe, whose readings have these names."""
    if len(reads) == 1 and "values" not in body:
        return [(body["index"], {0: body["value"]})]
    return [(index, numbered(values, reads)) for index, values in told_in(body)]


def _given_key(event: Event, body: Mapping[str, Any]) -> str:
    """Return the key that a value was recorded or imported with; late values have one of surepick's own."""
    if event.kind == "measured":
        return str(body.get("key", ""))
    return "" if event.key is None or "late" in body else event.key.removeprefix("recorded:")


def measurements_in(event: Event, problem: AnyProblem) -> Iterator[Measurement]:
    """The numbers that this event of a log tells or records."""
    if event.kind not in ("measured", "recorded"):
        return
    body = json.loads(event.body)
    probe = probe_in(body)
    told: Iterable[tuple[int | None, Mapping[str, float]]]
    told = told_in(body) if event.kind == "measured" else [(None, readings_in(body))]
    reads = problem.reads(probe)
    for index, values in told:
        for k, value in numbered(values, reads).items():
            yield Measurement(
                probe=probe,
                probe_name=problem.probe_names[probe],
                value=value,
                time=event.time,
                token=None if index is None else str(Token(probe, index)),
                worker=body.get("worker", ""),
                picked=bool(body.get("picked", False)),
                event=event.position,
                reading=reads[k],
                key=_given_key(event, body),
            )
