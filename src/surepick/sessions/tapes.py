"""What is told of each arm, by index, and the part of it that the policy waits for.

Every arm has a *tape*: its first, second, third measurement. A round asks for the next stretch of some tapes,
and is complete when all of it is told; in which order, by whom, and whether some of it was told early, makes
no difference to the policy. That is why many workers may measure ahead of a policy that asks for one
measurement at a time: it reads the same tapes as it would alone.
"""

from __future__ import annotations

import itertools
import math
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from surepick.core.arrays import IntArray
from surepick.sessions.requests import Token
from surepick.sessions.snapshot import from_json, to_json

Indices = range | tuple[int, ...]


class Used(NamedTuple):
    """What a complete round has used of one arm."""

    arm: int
    values: list[float]  # one for each measurement; for those that were told as a mean, the mean
    singles: list[float]  # those of them that are no means
    told: list[tuple[float, int]]  # as they were told: a value, and of how many measurements it is the mean


class LostTapesError(Exception):
    """A run has to start over, and the ledger came from a snapshot: fold the log from its beginning."""


class Tapes:
    """Every arm's told measurements, and the round that the policy waits for.

    Told measurements wait in stock until a complete round uses them. Tapes change by `tell`, `open_round`,
    `use_round`, `void`, `rewind` and `lengthen`, which the ledger calls and nobody else. Those from a
    snapshot are not whole: used measurements are only counted there, so that they cannot be rewound.
    """

    def __init__(self, n_arms: int) -> None:
        self.n_told = 0
        self.n_missing = 0  # of the open round
        self._is_whole = True
        self._stock: list[dict[int, float]] = [{} for _ in range(n_arms)]
        self._used = [array("d") for _ in range(n_arms)]  # nan where an index cannot be read again
        self._first_unused = [0] * n_arms
        self._last_told = [-1] * n_arms
        # Indices told as one mean: a round takes them as a whole, a run that starts over skips them.
        self._averaged: list[set[int]] = [set() for _ in range(n_arms)]
        self._skipped: list[set[int]] = [set() for _ in range(n_arms)]
        self.voided: dict[Token, int] = {}  # taken back: the token it was told under, how many measurements
        self._round: dict[int, Indices] = {}  # by arm: what the open round wants, told or not
        self._stretch_ends: dict[int, dict[int, int]] = {}  # by arm: where told stretches begin and end

    def lengthen(self, n_arms: int) -> None:
        """Have empty tapes of arms after those that there are."""
        more = Tapes(n_arms - len(self._stock))
        self._stock, self._used = self._stock + more._stock, self._used + more._used
        self._first_unused = self._first_unused + more._first_unused
        self._last_told = self._last_told + more._last_told
        self._averaged, self._skipped = self._averaged + more._averaged, self._skipped + more._skipped

    @property
    def n_ahead(self) -> int:
        """How many told measurements no round has used and the open one has no use for."""
        wanted = sum(map(len, self._round.values()))
        return sum(map(len, self._stock)) - (wanted - self.n_missing)

    def is_told(self, token: Token) -> bool:
        """Whether this measurement was told."""
        arm, index = token
        return index < self._first_unused[arm] or index in self._stock[arm] or index in self._skipped[arm]

    def first_unused(self, arm: int) -> int:
        """The first index of this tape that no complete round has used."""
        return self._first_unused[arm]

    def is_wanted(self, token: Token) -> bool:
        """Whether the open round waits for this measurement."""
        indices = self._round.get(token.arm, ())
        at = bisect_left(indices, token.index)
        return at < len(indices) and indices[at] == token.index and not self.is_told(token)

    def wanted(self) -> Iterator[Token]:
        """The measurements that the open round waits for, by arm and index.

        A round may want a hundred thousand, told in any order, and every `ask` walks from its beginning. So
        each walk notes where a stretch of told measurements begins and ends, and the next one jumps over it:
        what is told stays told. A stretch grows when a later walk reaches its end, so that a walk costs as
        much as there are gaps, not as there are measurements.
        """
        stretch_ends = self._stretch_ends  # of this round, also for who reads on when it is over
        for arm, indices in self._round.items():
            stock, ends, at = self._stock[arm], stretch_ends.setdefault(arm, {}), 0
            while at < len(indices):
                begin = at
                while at < len(indices) and indices[at] in stock:
                    at = ends.get(at, at + 1)
                if at > begin:
                    ends[begin] = at
                if at < len(indices):
                    yield Token(arm, indices[at])
                    at += 1

    def n_wanted(self, token: Token) -> int:
        """How many measurements of its arm the open round still takes, from this one on, without a gap."""
        arm, first = token
        indices = self._round.get(arm, ())
        rest = indices[bisect_left(indices, first) :]
        if isinstance(rest, range) and first > self._last_told[arm]:
            return len(rest) if first in rest else 0  # may be long: nothing after the last told is told
        n = 0
        for index in rest:
            if index != first + n or self.is_told(Token(arm, index)):
                break
            n += 1
        return n

    def arms_of_round(self) -> Iterable[int]:
        """The arms that the open round asks for."""
        return self._round.keys()

    def end_of_round(self, arm: int) -> int:
        """The first index of this tape after all that the open round wants."""
        indices = self._round.get(arm)
        return indices[-1] + 1 if indices else self._first_unused[arm]

    def tell(self, arm: int, first: int, value: float, count: int = 1) -> None:
        """Take in one value, or the mean of `count` measurements at this index and the next ones."""
        told, wanted = range(first, first + count), self._round.get(arm, ())
        self._stock[arm].update(dict.fromkeys(told, value))
        self.n_missing -= bisect_left(wanted, told.stop) - bisect_left(wanted, first)
        self.n_told += count
        self._last_told[arm] = max(self._last_told[arm], told[-1])
        if count > 1:
            self._averaged[arm].update(told)

    def open_round(self, counts: Iterable[tuple[int, int]]) -> None:
        """Wait for the next measurements, so many of each of these arms."""
        self._round = {arm: self._next_indices(arm, count) for arm, count in counts}
        self._stretch_ends = {}
        told = sum(index in wanted for arm, wanted in self._round.items() for index in self._stock[arm])
        self.n_missing = sum(map(len, self._round.values())) - told

    def _next_indices(self, arm: int, count: int) -> Indices:
        first, skipped = self._first_unused[arm], self._skipped[arm]
        if all(
            index < first for index in skipped
        ):  # the same for tapes from a snapshot, which know no others
            return range(first, first + count)
        return tuple(itertools.islice((i for i in itertools.count(first) if i not in skipped), count))

    def use_round(self) -> list[Used]:
        """Take the measurements of a complete round out of stock; none when no round is open."""
        used = [self._use(arm, indices) for arm, indices in self._round.items()]
        self._round = {}
        return used

    def _use(self, arm: int, indices: Indices) -> Used:
        averaged = self._averaged[arm]
        values = list(map(self._stock[arm].pop, indices))
        singles = again = values
        if averaged:
            again = [math.nan if i in averaged else value for i, value in zip(indices, values, strict=True)]
            singles = [value for value in again if not math.isnan(value)]
        self._first_unused[arm] = indices[-1] + 1
        if self._is_whole:
            self._keep(arm, indices, again)
        told = [(value, 1) for value in values] if not averaged else _as_told(values, again)
        return Used(arm, values, singles, told)

    def _keep(self, arm: int, indices: Indices, again: list[float]) -> None:
        """Put used measurements on the tape; what it skips cannot be read again."""
        tape = self._used[arm]
        if isinstance(indices, range):
            tape.extend(itertools.repeat(math.nan, indices.start - len(tape)))
            tape.extend(again)
            return
        for index, value in zip(indices, again, strict=True):
            tape.extend(itertools.repeat(math.nan, index - len(tape)))
            tape.append(value)

    def told_values(self, arm: int) -> list[float]:
        """The single values told of this arm, as far as they are at hand: a snapshot has the unused alone."""
        used = [value for value in self._used[arm] if not math.isnan(value)]
        averaged = self._averaged[arm]
        return used + [value for index, value in self._stock[arm].items() if index not in averaged]

    def is_averaged(self, token: Token) -> bool:
        """Whether this measurement was told as a part of a mean."""
        return token.index in self._averaged[token.arm]

    def void(self, token: Token, count: int = 1) -> bool:
        """Take a told value, or mean of `count`, off its tape; whether a complete round had used it.

        Its place stays empty: the open round asks for the next one instead. What a round has used cannot be
        taken out of it, so whoever used it has to read the tapes again, after `rewind`.
        """
        arm, first = token
        is_used = first < self._first_unused[arm]
        for index in range(first, first + count):
            self._stock[arm].pop(index, None)
            self._averaged[arm].discard(index)
            self._skipped[arm].add(index)
        self.voided[token] = count
        self.n_told -= count
        if not is_used:
            self.open_round([(arm, len(indices)) for arm, indices in self._round.items()])
        return is_used

    def rewind(self) -> None:
        """Put everything that was told back in stock, for a run that starts at the beginning."""
        if not self._is_whole:
            raise LostTapesError
        self.open_round([])
        for arm, tape in enumerate(self._used):
            self._skipped[arm] |= self._averaged[arm]
            told = {index: value for index, value in enumerate(tape) if not math.isnan(value)}
            told.update(self._stock[arm])
            self._stock[arm] = {i: value for i, value in told.items() if i not in self._skipped[arm]}
            self._first_unused[arm] = 0
            del tape[:]

    def to_json(self) -> dict[str, Any]:
        """All but the used measurements, as JSON values; a long round is not listed."""
        return {
            "n_told": self.n_told,
            "voided": [[*token, count] for token, count in self.voided.items()],
            "_missing": self.n_missing,
            "_cursor": self._first_unused,
            "_last_told": self._last_told,
            "stock": [to_json([_whole(stock), np.array(list(stock.values()))]) for stock in self._stock],
            "averaged": [to_json(self._unused(arm, of)) for arm, of in enumerate(self._averaged)],
            "skipped": [to_json(self._unused(arm, of)) for arm, of in enumerate(self._skipped)],
            "asked": [
                [arm, of.start, of.stop] if isinstance(of, range) else [arm, list(of)]
                for arm, of in self._round.items()
            ],
        }

    def _unused(self, arm: int, indices: Iterable[int]) -> IntArray:
        return _whole(sorted(index for index in indices if index >= self._first_unused[arm]))

    @classmethod
    def from_json(cls, kept: dict[str, Any]) -> Tapes:
        """The tapes that were kept, which are not whole."""
        tapes = cls(len(kept["stock"]))
        tapes._is_whole = False
        tapes.n_told, tapes.n_missing = kept["n_told"], kept["_missing"]
        tapes.voided = {Token(arm, index): count for arm, index, count in kept.get("voided", ())}
        tapes._first_unused, tapes._last_told = kept["_cursor"], kept["_last_told"]
        stocks = [[part.tolist() for part in from_json(stock)] for stock in kept["stock"]]
        tapes._stock = [dict(zip(indices, values, strict=True)) for indices, values in stocks]
        tapes._averaged = [set(from_json(indices).tolist()) for indices in kept["averaged"]]
        tapes._skipped = [set(from_json(indices).tolist()) for indices in kept["skipped"]]
        tapes._round = {
            arm: tuple(rest[0]) if len(rest) == 1 else range(*rest) for arm, *rest in kept["asked"] or ()
        }
        return tapes


def _as_told(values: list[float], again: list[float]) -> list[tuple[float, int]]:
    """Values with their counts; equal ones side by side that are no singles were told as one mean."""
    told: list[tuple[float, int]] = []
    for (value, averaged), group in itertools.groupby(zip(values, map(math.isnan, again), strict=True)):
        n = sum(1 for _ in group)
        told += [(value, n)] if averaged else [(value, 1)] * n
    return told


def _whole(indices: Iterable[int]) -> IntArray:
    return np.fromiter(indices, dtype=np.int64)
