"""One reading's tape: its first, second, third value, and the stretch of them that a round waits for.

An arm that is measured by itself has one reading, so one tape; a probe with several readings has as many,
and one use of it writes at the same index of all of them (`tapes`).
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
from surepick.sessions.snapshot import from_json, to_json

Indices = range | tuple[int, ...]


class Used(NamedTuple):
    """What a complete round has used of one reading."""

    reading: int
    values: list[float]  # one for each measurement; for those that were told as a mean, the mean
    singles: list[float]  # those of them that are no means
    told: list[tuple[float, int]]  # as they were told: a value, and of how many measurements it is the mean


class Tape:
    """The values of one reading by index; it changes by what `Tapes` calls, and nobody else.

    Told values wait in stock until a complete round uses them. `skipped` are indices that no round asks for:
    taken back, lost, or told as a part of a mean that a run which starts over cannot read again.
    """

    __slots__ = (
        "averaged",
        "first_unused",
        "last_told",
        "missing",
        "skipped",
        "stock",
        "stretch_ends",
        "used",
        "wanted",
    )

    def __init__(self) -> None:
        self.stock: dict[int, float] = {}
        self.used = array("d")  # nan where an index cannot be read again
        self.first_unused = 0
        self.last_told = -1
        # Indices told as one mean: a round takes them as a whole, a run that starts over skips them.
        self.averaged: set[int] = set()
        self.skipped: set[int] = set()
        self.wanted: Indices = ()  # by the open round, told or not
        self.missing = 0  # of them
        self.stretch_ends: dict[int, int] = {}  # where told stretches begin and end

    def has(self, index: int) -> bool:
        """Whether nothing more is to come at this index: it is told, or skipped."""
        return index < self.first_unused or index in self.stock or index in self.skipped

    def lacks(self, index: int) -> bool:
        """Whether the open round waits for this index."""
        at = bisect_left(self.wanted, index)
        return at < len(self.wanted) and self.wanted[at] == index and not self.has(index)

    def lacking(self) -> Iterator[int]:
        """The indices that the open round waits for, in their order.

        A round may want a hundred thousand, told in any order, and every `ask` walks from its beginning. So
        each walk notes where a stretch of told measurements begins and ends, and the next one jumps over it:
        what is told stays told. A stretch grows when a later walk reaches its end, so that a walk costs as
        much as there are gaps, not as there are measurements.
        """
        indices, stock, ends, at = self.wanted, self.stock, self.stretch_ends, 0
        while at < len(indices):
            begin = at
            while at < len(indices) and indices[at] in stock:
                at = ends.get(at, at + 1)
            if at > begin:
                ends[begin] = at
            if at < len(indices):
                yield indices[at]
                at += 1

    def lacking_in(self, told: range) -> set[int]:
        """Those of them in this stretch."""
        low, high = bisect_left(self.wanted, told.start), bisect_left(self.wanted, told.stop)
        return {index for index in self.wanted[low:high] if not self.has(index)}

    def n_lacking_from(self, first: int) -> int:
        """How many the open round still takes, from this index on, without a gap."""
        rest = self.wanted[bisect_left(self.wanted, first) :]
        if isinstance(rest, range) and first > self.last_told:
            return len(rest) if first in rest else 0  # may be long: nothing after the last told is told
        n = 0
        for index in rest:
            if index != first + n or self.has(index):
                break
            n += 1
        return n

    @property
    def end_of_round(self) -> int:
        """The first index after all that the open round wants."""
        return self.wanted[-1] + 1 if self.wanted else self.first_unused

    @property
    def n_ahead(self) -> int:
        """How many told values no round has used and the open one has no use for."""
        return len(self.stock) - (len(self.wanted) - self.missing)

    def tell(self, first: int, value: float, count: int = 1) -> None:
        """Take in one value, or the mean of `count` measurements at this index and the next ones."""
        told = range(first, first + count)
        self.stock.update(dict.fromkeys(told, value))
        self.missing -= bisect_left(self.wanted, told.stop) - bisect_left(self.wanted, first)
        self.last_told = max(self.last_told, told[-1])
        if count > 1:
            self.averaged.update(told)

    def open_round(self, count: int) -> None:
        """Wait for the next values, so many."""
        self.wanted = self._next_indices(count) if count else ()
        self.stretch_ends = {}
        self.missing = len(self.wanted) - sum(index in self.wanted for index in self.stock)

    def _next_indices(self, count: int) -> Indices:
        first, skipped = self.first_unused, self.skipped
        if all(
            index < first for index in skipped
        ):  # the same for tapes from a snapshot, which know no others
            return range(first, first + count)
        return tuple(itertools.islice((i for i in itertools.count(first) if i not in skipped), count))

    def use(self, reading: int, *, keep: bool) -> Used:
        """Take the values of a complete round out of stock; kept, they can be read again."""
        indices, averaged = self.wanted, self.averaged
        values = list(map(self.stock.pop, indices))
        singles = again = values
        if averaged:
            again = [math.nan if i in averaged else value for i, value in zip(indices, values, strict=True)]
            singles = [value for value in again if not math.isnan(value)]
        self.first_unused = indices[-1] + 1
        if keep:
            self._keep(indices, again)
        self.wanted, self.missing = (), 0
        told = [(value, 1) for value in values] if not averaged else _as_told(values, again)
        return Used(reading, values, singles, told)

    def _keep(self, indices: Indices, again: list[float]) -> None:
        """Put used values on the tape; what it skips cannot be read again."""
        tape = self.used
        if isinstance(indices, range):
            tape.extend(itertools.repeat(math.nan, indices.start - len(tape)))
            tape.extend(again)
            return
        for index, value in zip(indices, again, strict=True):
            tape.extend(itertools.repeat(math.nan, index - len(tape)))
            tape.append(value)

    def told_values(self) -> list[float]:
        """The single values that were told, as far as they are at hand: a snapshot has the unused alone."""
        used = [value for value in self.used if not math.isnan(value)]
        return used + [value for index, value in self.stock.items() if index not in self.averaged]

    def skip(self, told: range) -> None:
        """Take these indices off the tape, whether they were told or not."""
        for index in told:
            self.stock.pop(index, None)
            self.averaged.discard(index)
            self.skipped.add(index)

    def rewind(self) -> None:
        """Put everything that was told back in stock, for a run that starts at the beginning."""
        self.skipped |= self.averaged
        told = {index: value for index, value in enumerate(self.used) if not math.isnan(value)}
        told.update(self.stock)
        self.stock = {i: value for i, value in told.items() if i not in self.skipped}
        self.first_unused = 0
        del self.used[:]

    def unused(self, indices: Iterable[int]) -> IntArray:
        """Those of these indices that no round has used."""
        return _whole(sorted(index for index in indices if index >= self.first_unused))

    def stock_to_json(self) -> Any:
        """Told and unused, as JSON values."""
        return to_json([_whole(self.stock), np.array(list(self.stock.values()))])

    @classmethod
    def from_json(cls, numbers: tuple[int, int], stock: Any, averaged: Any, skipped: Any) -> Tape:
        """The tape that was kept: how far it was used and told, and what of it was not used."""
        tape = cls()
        tape.first_unused, tape.last_told = numbers
        indices, values = (part.tolist() for part in from_json(stock))
        tape.stock = dict(zip(indices, values, strict=True))
        tape.averaged, tape.skipped = (set(from_json(part).tolist()) for part in (averaged, skipped))
        return tape


def _as_told(values: list[float], again: list[float]) -> list[tuple[float, int]]:
    """Values with their counts; equal ones side by side that are no singles were told as one mean."""
    told: list[tuple[float, int]] = []
    for (value, averaged), group in itertools.groupby(zip(values, map(math.isnan, again), strict=True)):
        n = sum(1 for _ in group)
        told += [(value, n)] if averaged else [(value, 1)] * n
    return told


def _whole(indices: Iterable[int]) -> IntArray:
    return np.fromiter(indices, dtype=np.int64)
