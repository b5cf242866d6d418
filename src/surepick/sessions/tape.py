"""What is told of one probe, by index, and the stretch of it that a round waits for.

An arm that is measured by itself has one reading, so it has a `Tape`: its first, second, third value. A probe
with several readings has as many tapes, a `Bundle`, and one use of it writes at the same index of all of
them. Both answer the same questions, so that whoever asks need not know which it is.
"""

from __future__ import annotations

import heapq
import itertools
import math
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from surepick.core.arrays import IntArray
from surepick.sessions.snapshot import from_json, to_json

Indices = range | tuple[int, ...]


class Used(NamedTuple):
    """What a complete round has used of one reading of a probe."""

    probe: int
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
        "asked",
        "averaged",
        "first_unused",
        "last_told",
        "n_missing",
        "skipped",
        "stock",
        "stretch_ends",
        "used",
    )

    def __init__(self) -> None:
        self.stock: dict[int, float] = {}
        self.used = array("d")  # nan where an index cannot be read again
        self.first_unused = 0
        self.last_told = -1
        # Indices told as one mean: a round takes them as a whole, a run that starts over skips them.
        self.averaged: set[int] = set()
        self.skipped: set[int] = set()
        self.asked: Indices = ()  # for by the open round, told or not
        self.n_missing = 0  # of them
        self.stretch_ends: dict[int, int] = {}  # where told stretches begin and end

    def is_told(self, index: int) -> bool:
        """Whether nothing more is to come at this index: it is told, or will never be."""
        return index < self.first_unused or index in self.stock or index in self.skipped

    is_begun = is_told  # of a single reading there are no parts

    def untold(self, index: int) -> list[int]:
        """Which readings of the probe, counted from 0, are still to come at this index."""
        return [] if self.is_told(index) else [0]

    def is_wanted(self, index: int) -> bool:
        """Whether the open round waits for this index."""
        at = bisect_left(self.asked, index)
        return at < len(self.asked) and self.asked[at] == index and not self.is_told(index)

    def wanted(self) -> Iterator[int]:
        """The indices that the open round waits for, in their order.

        A round may ask for a hundred thousand, told in any order, and every `ask` walks from its beginning.
        So each walk notes where a stretch of told measurements begins and ends, and the next one jumps over
        it: what is told stays told. A stretch grows when a later walk reaches its end, so that a walk costs
        as much as there are gaps, not as there are measurements.
        """
        indices, stock, ends, at = self.asked, self.stock, self.stretch_ends, 0
        while at < len(indices):
            begin = at
            while at < len(indices) and indices[at] in stock:
                at = ends.get(at, at + 1)
            if at > begin:
                ends[begin] = at
            if at < len(indices):
                yield indices[at]
                at += 1

    def wanted_in(self, told: range) -> set[int]:
        """Those of them in this stretch."""
        low, high = bisect_left(self.asked, told.start), bisect_left(self.asked, told.stop)
        return {index for index in self.asked[low:high] if not self.is_told(index)}

    def n_wanted(self, first: int) -> int:
        """How many the open round still takes, from this index on, without a gap."""
        rest = self.asked[bisect_left(self.asked, first) :]
        if isinstance(rest, range) and first > self.last_told:
            return len(rest) if first in rest else 0  # may be long: nothing after the last told is told
        n = 0
        for index in rest:
            if index != first + n or self.is_told(index):
                break
            n += 1
        return n

    @property
    def begin_of_round(self) -> int:
        """The first index that the open round asks for, told or not."""
        return self.asked[0] if self.asked else self.first_unused

    @property
    def end_of_round(self) -> int:
        """The first index after all that the open round asks for."""
        return self.asked[-1] + 1 if self.asked else self.first_unused

    @property
    def n_ahead(self) -> int:
        """How many told values no round has used and the open one has no use for."""
        return len(self.stock) - (len(self.asked) - self.n_missing)

    def tell(self, first: int, values: Mapping[int, float], count: int = 1) -> None:
        """Take in its one value, or the mean of `count` measurements at this index and the next ones."""
        self.stock.update(dict.fromkeys(range(first, first + count), values[0]))
        self.n_missing -= bisect_left(self.asked, first + count) - bisect_left(self.asked, first)
        self.last_told = max(self.last_told, first + count - 1)
        if count > 1:
            self.averaged.update(range(first, first + count))

    def open_round(self, count: int) -> None:
        """Wait for the next values, so many."""
        first, skipped = self.first_unused, self.skipped
        if max(skipped, default=-1) < first:  # so it is with tapes from a snapshot, which know no others
            self.ask_for(range(first, first + count) if count else ())
        else:
            free = (index for index in itertools.count(first) if index not in skipped)
            self.ask_for(tuple(itertools.islice(free, count)))

    def ask_for(self, indices: Indices) -> None:
        """Wait for these indices."""
        self.asked, self.stretch_ends = indices, {}
        self.n_missing = len(indices) - sum(map(indices.__contains__, self.stock))

    def use(self, probe: int, readings: Sequence[int], *, keep: bool) -> list[Used]:
        """Take the values of a complete round out of stock; kept, they can be read again."""
        indices, averaged = self.asked, self.averaged
        values = list(map(self.stock.pop, indices))
        singles = again = values
        if averaged:
            again = [math.nan if i in averaged else value for i, value in zip(indices, values, strict=True)]
            singles = [value for value in again if not math.isnan(value)]
        self.first_unused = indices[-1] + 1
        if keep:
            self._keep(indices, again)
        self.asked, self.n_missing = (), 0
        told = list(zip(values, itertools.repeat(1))) if not averaged else _as_told(values, again)
        return [Used(probe, readings[0], values, singles, told)]

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

    def is_averaged(self, index: int) -> bool:
        """Whether this index was told as a part of a mean."""
        return index in self.averaged

    def lose(self, index: int) -> None:
        """Skip what is still to come at this index: it never will."""
        if not self.is_told(index):
            self.skip(range(index, index + 1))

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


class Bundle:
    """The tapes of a probe with several readings; it changes by what `Tapes` calls, and nobody else.

    A measurement is told when all its readings are, and wanted while the open round waits for one of them.
    """

    __slots__ = ("n_missing", "tapes")

    def __init__(self, tapes: list[Tape]) -> None:
        self.tapes = tapes
        self.n_missing = 0  # measurements of the open round
        self.count_missing()

    def is_told(self, index: int) -> bool:
        """Whether all readings at this index were told, or will never be."""
        return all(tape.is_told(index) for tape in self.tapes)

    def is_begun(self, index: int) -> bool:
        """Whether some reading at this index was told, or all were."""
        return any(tape.is_told(index) for tape in self.tapes)

    def untold(self, index: int) -> list[int]:
        """Which readings, counted from 0, are still to come at this index."""
        return [k for k, tape in enumerate(self.tapes) if not tape.is_told(index)]

    def is_wanted(self, index: int) -> bool:
        """Whether the open round waits for a reading at this index."""
        return any(tape.is_wanted(index) for tape in self.tapes)

    def wanted(self) -> Iterator[int]:
        """The indices at which the open round waits for some reading, in their order."""
        return (index for index, _ in itertools.groupby(heapq.merge(*[tape.wanted() for tape in self.tapes])))

    def n_wanted(self, first: int) -> int:
        """How many measurements the open round still takes, from this one on, without a gap."""
        return min([tape.n_wanted(first) for tape in self.tapes]) or int(self.is_wanted(first))

    @property
    def asked(self) -> Indices:
        """The indices of the first reading that the open round asks for: as many as of the others."""
        return self.tapes[0].asked

    @property
    def first_unused(self) -> int:
        """The first index that no complete round has used, of any reading."""
        return max([tape.first_unused for tape in self.tapes])

    @property
    def begin_of_round(self) -> int:
        """The first index that the open round asks for, told or not."""
        begins = [tape.asked[0] for tape in self.tapes if tape.asked]
        return min(begins) if begins else self.first_unused

    @property
    def end_of_round(self) -> int:
        """The first index after all that the open round asks for."""
        return max([tape.end_of_round for tape in self.tapes])

    @property
    def n_ahead(self) -> int:
        """How many told measurements no round has used and the open one has no use for."""
        return max([tape.n_ahead for tape in self.tapes])

    def tell(self, first: int, values: Mapping[int, float], count: int = 1) -> None:
        """Take in readings by their number, or their means over `count` measurements from this index on."""
        told = range(first, first + count)
        before = self._wanted_in(told)
        for k, value in values.items():
            self.tapes[k].tell(first, {0: value}, count)
        self.n_missing -= len(before) - len(self._wanted_in(told))

    def _wanted_in(self, told: range) -> set[int]:
        return set().union(*[tape.wanted_in(told) for tape in self.tapes])

    def open_round(self, count: int) -> None:
        """Wait for the next uses of the probe, so many."""
        for tape in self.tapes:
            tape.open_round(count)
        self.count_missing()

    def count_missing(self) -> None:
        """Count the measurements that the open round waits for."""
        first = self.tapes[0].asked
        if all(tape.asked == first and tape.n_missing == len(first) for tape in self.tapes):
            self.n_missing = len(first)  # a long round, of which nothing was told
        else:
            self.n_missing = sum(1 for _ in self.wanted())

    def use(self, probe: int, readings: Sequence[int], *, keep: bool) -> list[Used]:
        """Take the values of a complete round out of stock, as those of these readings."""
        self.n_missing = 0
        pairs = zip(readings, self.tapes, strict=True)
        return [used for reading, tape in pairs for used in tape.use(probe, [reading], keep=keep)]

    def is_averaged(self, index: int) -> bool:
        """Whether this measurement was told as a part of a mean."""
        return self.tapes[0].is_averaged(index)

    def lose(self, index: int) -> None:
        """Skip what is still to come at this index: it never will."""
        for tape in self.tapes:
            tape.lose(index)

    def skip(self, told: range) -> None:
        """Take these indices off all tapes, whether they were told or not."""
        for tape in self.tapes:
            tape.skip(told)


def _as_told(values: list[float], again: list[float]) -> list[tuple[float, int]]:
    """Values with their counts; equal ones side by side that are no singles were told as one mean."""
    told: list[tuple[float, int]] = []
    for (value, averaged), group in itertools.groupby(zip(values, map(math.isnan, again), strict=True)):
        n = sum(1 for _ in group)
        told += [(value, n)] if averaged else [(value, 1)] * n
    return told


def _whole(indices: Iterable[int]) -> IntArray:
    return np.fromiter(indices, dtype=np.int64)
