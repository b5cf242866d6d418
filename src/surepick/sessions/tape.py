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
    values: list[float]
    indices: Indices


class Tape:
    """The values of one reading by index; it changes by what `Tapes` calls, and nobody else.

    Told values wait in stock until a complete round uses them. `skipped` are the indices that no round asks
    for: their values were removed or lost.
    """

    __slots__ = (
        "asked",
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

    def tell(self, index: int, values: Mapping[int, float]) -> None:
        """Take in its one value."""
        self.stock[index] = values[0]
        self.n_missing -= bisect_left(self.asked, index + 1) - bisect_left(self.asked, index)
        self.last_told = max(self.last_told, index)

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
        indices = self.asked
        values = list(map(self.stock.pop, indices))
        self.first_unused = indices[-1] + 1
        if keep:
            self._keep(indices, values)
        self.asked, self.n_missing = (), 0
        return [Used(probe, readings[0], values, indices)]

    def _keep(self, indices: Indices, values: list[float]) -> None:
        """Put used values on the tape; what it skips cannot be read again."""
        tape = self.used
        if isinstance(indices, range):
            tape.extend(itertools.repeat(math.nan, indices.start - len(tape)))
            tape.extend(values)
            return
        for index, value in zip(indices, values, strict=True):
            tape.extend(itertools.repeat(math.nan, index - len(tape)))
            tape.append(value)

    def told_values(self) -> list[float]:
        """Return the recorded values, as far as they are at hand: a snapshot has the unused ones alone."""
        return [value for value in self.used if not math.isnan(value)] + list(self.stock.values())

    def lose(self, index: int) -> None:
        """Skip what is still to come at this index: it never will."""
        if not self.is_told(index):
            self.skip(index)

    def skip(self, index: int) -> None:
        """Take this index off the tape, whether it was told or not."""
        self.stock.pop(index, None)
        self.skipped.add(index)

    def rewind(self) -> None:
        """Put everything that was told back in stock, for a run that starts at the beginning."""
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
    def from_json(cls, numbers: tuple[int, int], stock: Any, skipped: Any) -> Tape:
        """The tape that was kept: how far it was used and told, and what of it was not used."""
        tape = cls()
        tape.first_unused, tape.last_told = numbers
        indices, values = (part.tolist() for part in from_json(stock))
        tape.stock = dict(zip(indices, values, strict=True))
        tape.skipped = set(from_json(skipped).tolist())
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

    def tell(self, index: int, values: Mapping[int, float]) -> None:
        """Take in readings of the use at this index, by their number."""
        was_wanted = self.is_wanted(index)
        for k, value in values.items():
            self.tapes[k].tell(index, {0: value})
        self.n_missing -= was_wanted - self.is_wanted(index)

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

    def lose(self, index: int) -> None:
        """Skip what is still to come at this index: it never will."""
        for tape in self.tapes:
            tape.lose(index)

    def skip(self, index: int) -> None:
        """Take this index off all tapes, whether it was told or not."""
        for tape in self.tapes:
            tape.skip(index)


def _whole(indices: Iterable[int]) -> IntArray:
    return np.fromiter(indices, dtype=np.int64)
