"""The values of each probe in their order, and the places that the open batch waits for.

Every probe has a stream: the readings of its first, second, third use. A batch asks for the next places of
some streams and is complete when all of them are recorded, in any order. Values that are extra, late or
ahead of the batch take places further on and wait there until a batch asks for them: one mechanism for all.
A place whose use was lost or removed stays empty, and the batch asks for the next place instead.
"""

from __future__ import annotations

import itertools
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

_PLACE = re.compile(r"[tT]?(0|[1-9][0-9]{0,17})\.(0|[1-9][0-9]{0,17})")
Places = range | tuple[int, ...]
Use = tuple[float, ...]  # the readings of one use of a probe


class Place(NamedTuple):
    """A place in the stream of a probe, counted from 0; as text "probe.index", the id of its request."""

    probe: int
    index: int  # type: ignore[assignment]  # hides tuple.index

    def __str__(self) -> str:
        return f"{self.probe}.{self.index}"

    @property
    def for_sheets(self) -> str:
        """The id as text that no spreadsheet takes for a number: 3.10 would become 3.1."""
        return f"t{self}"

    @classmethod
    def parse(cls, text: object) -> Place:
        """Return the place with this id, as `str` or `for_sheets` writes it; a ValueError for anything else.

        >>> Place.parse("3.17"), Place.parse("t3.10") == Place.parse("3.10")
        (Place(probe=3, index=17), True)
        """
        found = _PLACE.fullmatch(text) if isinstance(text, str) else None
        if found is None:
            raise ValueError(f"{text!r} is no request")
        return cls(int(found[1]), int(found[2]))


class Used(NamedTuple):
    """The uses of one probe that a complete batch takes, by place."""

    probe: int
    places: Places
    uses: list[Use]


class Stream:
    """The uses of one probe; it changes by what `Streams` calls.

    pending: recorded uses that no complete batch has taken
    cursor:  the first place after those that complete batches took
    asked:   the places of the open batch, recorded or not
    empty:   places whose use was lost or removed
    extra:   pending places whose values answered no request
    """

    __slots__ = ("asked", "cursor", "empty", "extra", "last", "n_missing", "pending", "stretches")

    def __init__(self) -> None:
        self.pending: dict[int, Use] = {}
        self.cursor = 0
        self.last = -1  # the last recorded place
        self.empty: set[int] = set()
        self.extra: set[int] = set()
        self.asked: Places = ()
        self.n_missing = 0
        self.stretches: dict[int, int] = {}  # where recorded stretches of `asked` begin and end

    def is_recorded(self, index: int) -> bool:
        """Return whether nothing more is to come at this place."""
        return index < self.cursor or index in self.pending or index in self.empty

    def has_value(self, index: int) -> bool:
        """Return whether a use is recorded here that was neither lost nor removed."""
        return index >= 0 and index not in self.empty and (index < self.cursor or index in self.pending)

    def is_missing(self, index: int) -> bool:
        """Return whether the open batch waits for this place."""
        at = bisect_left(self.asked, index)
        return at < len(self.asked) and self.asked[at] == index and not self.is_recorded(index)

    def missing(self) -> Iterator[int]:
        """Yield the places that the open batch waits for, in their order.

        A batch may ask for 100,000 places, recorded in any order, and every `ask` walks from the beginning.
        Each walk notes where a stretch of recorded places begins and ends, and the next walk jumps over it.
        """
        places, pending, ends, at = self.asked, self.pending, self.stretches, 0
        while at < len(places):
            begin = at
            while at < len(places) and places[at] in pending:
                at = ends.get(at, at + 1)
            if at > begin:
                ends[begin] = at
            if at < len(places):
                yield places[at]
                at += 1

    def n_missing_from(self, first: int) -> int:
        """Return how many places the open batch waits for from this one on, without a gap."""
        rest = self.asked[bisect_left(self.asked, first) :]
        if isinstance(rest, range) and first > self.last:
            return len(rest) if first in rest else 0  # may be long: nothing after the last one is recorded
        n = 0
        for index in rest:
            if index != first + n or self.is_recorded(index):
                break
            n += 1
        return n

    @property
    def begin(self) -> int:
        """The first place of the open batch."""
        return self.asked[0] if self.asked else self.cursor

    @property
    def end(self) -> int:
        """The first place after those of the open batch."""
        return self.asked[-1] + 1 if self.asked else self.cursor

    @property
    def appended_at(self) -> int:
        """The place of the next extra value: behind the open batch and all that is recorded."""
        return max(self.end, self.last + 1)

    def ask(self, count: int) -> None:
        """Wait for the next `count` uses."""
        first, empty = self.cursor, self.empty
        places: Places = range(first, first + count) if count else ()
        if max(empty, default=-1) >= first:
            free = (index for index in itertools.count(first) if index not in empty)
            places = tuple(itertools.islice(free, count))
        self.asked, self.stretches = places, {}
        self.n_missing = len(places) - sum(map(places.__contains__, self.pending))

    def take(self, probe: int) -> tuple[Used, int]:
        """Take the uses of the complete batch; return them and how many were extra."""
        places = self.asked
        uses = list(map(self.pending.pop, places))
        n_extra = len(self.extra)
        if self.extra:
            self.extra.difference_update(places)
        self.cursor = places[-1] + 1
        self.asked, self.n_missing = (), 0
        return Used(probe, places, uses), n_extra - len(self.extra)

    def to_json(self) -> list[Any]:
        """Return all but the uses that complete batches took, as JSON values."""
        pending = [[index, *use] for index, use in self.pending.items()]
        return [self.cursor, self.last, pending, sorted(self.empty), sorted(self.extra)]

    @classmethod
    def from_json(cls, kept: Sequence[Any]) -> Stream:
        """Return the stream that was kept; it asks for nothing."""
        stream = cls()
        stream.cursor, stream.last, pending, empty, extra = kept
        stream.pending = {index: tuple(use) for index, *use in pending}
        stream.empty, stream.extra = set(empty), set(extra)
        return stream


class Streams:
    """The streams of all probes, and the open batch; it changes by what `SessionState` calls.

    Streams from a snapshot do not hold the uses that complete batches took: see `SessionState.is_whole`.
    """

    def __init__(self, n_probes: int) -> None:
        self.of = [Stream() for _ in range(n_probes)]
        self.batch: tuple[int, ...] = ()  # probes of the open batch
        self.n_missing = 0  # uses that the open batch waits for
        self.n_values = 0  # uses that are recorded, without lost and removed ones
        self.removed: set[Place] = set()

    def lengthen(self, n_probes: int) -> None:
        """Add empty streams for new probes, up to n_probes in all."""
        self.of += [Stream() for _ in range(n_probes - len(self.of))]

    @property
    def n_ahead(self) -> int:
        """How many recorded uses wait for a later batch."""
        return sum(len(one.pending) - (len(one.asked) - one.n_missing) for one in self.of)

    @property
    def n_recorded_of_batch(self) -> int:
        """How many places of the open batch are recorded."""
        return sum(len(self.of[probe].asked) for probe in self.batch) - self.n_missing

    def missing(self) -> tuple[tuple[int, int], ...]:
        """Return how many uses of each probe the open batch waits for, where there are some."""
        return tuple((probe, self.of[probe].n_missing) for probe in self.batch if self.of[probe].n_missing)

    def add(self, place: Place, use: Use, *, extra: bool) -> None:
        """Record a use at this place."""
        stream, index = self.of[place.probe], place.index
        is_asked = bisect_left(stream.asked, index + 1) - bisect_left(stream.asked, index)
        stream.pending[index] = use
        stream.last = max(stream.last, index)
        stream.n_missing -= is_asked
        self.n_missing -= is_asked
        self.n_values += 1
        if extra:
            stream.extra.add(index)

    def clear(self, place: Place, *, removed: bool = False) -> None:
        """Leave a place empty whose use was lost or is removed; the open batch asks for another one."""
        stream, index = self.of[place.probe], place.index
        if removed:
            self.removed.add(place)
            self.n_values -= 1
        stream.pending.pop(index, None)
        stream.last = max(stream.last, index)
        stream.empty.add(index)
        stream.extra.discard(index)
        if index >= stream.cursor:  # the open batch may have asked for it: it takes the next place instead
            before = stream.n_missing
            stream.ask(len(stream.asked))
            self.n_missing += stream.n_missing - before

    def open_batch(self, counts: Iterable[tuple[int, int]]) -> None:
        """Wait for the next uses of these probes, as many of each as `counts` says."""
        for probe in self.batch:
            self.of[probe].ask(0)
        self.batch, self.n_missing = (), 0
        for probe, count in counts:
            self.of[probe].ask(count)
            self.n_missing += self.of[probe].n_missing
            self.batch += (probe,)

    def take_batch(self) -> tuple[list[Used], int]:
        """Take the uses of the complete batch; return them and how many were extra."""
        found = [self.of[probe].take(probe) for probe in self.batch]
        self.batch = ()
        return [used for used, _ in found], sum(n for _, n in found)

    def without_removed(self, batch: Sequence[Used]) -> tuple[list[Used], dict[int, int]]:
        """Return a batch without the uses that were removed since, and how many of each probe those are."""
        if not self.removed:
            return list(batch), {}
        kept, gone = list[Used](), dict[int, int]()
        for one in batch:
            pairs = zip(one.places, one.uses, strict=True)
            uses = [use for index, use in pairs if (one.probe, index) not in self.removed]
            if len(uses) < len(one.uses):
                gone[one.probe] = len(one.uses) - len(uses)
            kept.append(one._replace(uses=uses))
        return kept, gone

    def to_json(self) -> dict[str, Any]:
        """Return all but the uses that complete batches took, as JSON values."""
        return {
            "n_values": self.n_values,
            "removed": sorted(self.removed),
            "batch": [[probe, len(self.of[probe].asked)] for probe in self.batch],
            "streams": [stream.to_json() for stream in self.of],
        }

    @classmethod
    def from_json(cls, kept: dict[str, Any]) -> Streams:
        """Return the streams that were kept."""
        streams = cls(0)
        streams.of = list(map(Stream.from_json, kept["streams"]))
        streams.n_values = kept["n_values"]
        streams.removed = {Place(probe, index) for probe, index in kept["removed"]}
        streams.open_batch([(probe, count) for probe, count in kept["batch"]])
        return streams
