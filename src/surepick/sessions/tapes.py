"""What is told of each probe, by index, and the part of it that the policy waits for.

Every probe has a *tape* for each of its readings: of the first, second, third use; an arm that is measured by
itself has one. A round asks for the next stretch of some tapes, and is complete when all of it is told; in
which order, by whom, and whether some of it was told early, makes no difference to the policy. That is why
many workers may measure ahead of a policy that asks for one measurement at a time: it reads the same tapes as
it would alone.

Of several readings some may be told first and others later. One that is lost is skipped on its own tape, and
the round waits for the next use of the probe instead; what else that use gives lies ahead on the other tapes.
Sound where the noise of readings is independent, or nothing is assumed of it, and where being lost has
nothing to do with the value. Readings with a given covariance are told together (`telling`).
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Any

from surepick.sessions.requests import Token
from surepick.sessions.snapshot import to_json
from surepick.sessions.tape import Tape, Used

__all__ = ["LostTapesError", "Tapes", "Used"]


class LostTapesError(Exception):
    """A run has to start over, and the ledger came from a snapshot: fold the log from its beginning."""


class Tapes:
    """The tapes of all readings, and the round that the policy waits for.

    They change by `tell`, `lose`, `open_round`, `use_round`, `void`, `rewind` and `lengthen`, which the
    ledger calls and nobody else. Those from a snapshot are not whole: used measurements are only counted
    there, so that they cannot be rewound.
    """

    def __init__(self, n_readings: Sequence[int]) -> None:
        """Empty ones, for probes with so many readings each."""
        self.n_told = 0
        self.n_missing = 0  # measurements of the open round
        self._is_whole = True
        self._all = [Tape() for _ in range(sum(n_readings))]
        ends = pairwise(accumulate(n_readings, initial=0))
        self._of = [self._all[begin:end] for begin, end in ends]  # by probe
        self._first = list(accumulate(n_readings, initial=0))
        self.voided: dict[Token, int] = {}  # taken back: the token it was told under, how many measurements
        self.n_lost = 0  # measurements of which some readings never came
        self._round: tuple[int, ...] = ()  # the probes that the open round asks for

    def lengthen(self, n_arms: int) -> None:
        """Have empty tapes of arms after those that there are, each measured by itself."""
        for _ in range(n_arms - len(self._of)):
            self._all.append(Tape())
            self._of.append(self._all[-1:])
            self._first.append(len(self._all))

    @property
    def n_ahead(self) -> int:
        """How many told measurements no round has used and the open one has no use for."""
        return sum(max([tape.n_ahead for tape in tapes]) for tapes in self._of)

    def is_told(self, token: Token) -> bool:
        """Whether all readings of this measurement were told, or will never be."""
        probe, index = token
        return all(tape.has(index) for tape in self._of[probe])

    def untold(self, token: Token) -> list[int]:
        """Which readings of its probe, counted from 0, are still to come for this measurement."""
        return [k for k, tape in enumerate(self._of[token.probe]) if not tape.has(token.index)]

    def is_begun(self, token: Token) -> bool:
        """Whether some reading of this measurement was told, or all were."""
        return any(tape.has(token.index) for tape in self._of[token.probe])

    def first_unused(self, probe: int) -> int:
        """The first index of all tapes of this probe that no complete round has used."""
        return max([tape.first_unused for tape in self._of[probe]])

    def is_wanted(self, token: Token) -> bool:
        """Whether the open round waits for this measurement."""
        return any(tape.lacks(token.index) for tape in self._of[token.probe])

    def wanted(self) -> Iterator[Token]:
        """The measurements that the open round waits for, by probe and index."""
        for probe in self._round:
            yield from self.wanted_of(probe)

    def wanted_of(self, probe: int) -> Iterator[Token]:
        """Those of them that are uses of this probe."""
        last = -1
        for index in heapq.merge(*(tape.lacking() for tape in self._of[probe])):
            if index > last:
                yield Token(probe, index)
            last = index

    def missing(self) -> tuple[tuple[int, int], ...]:
        """How many measurements of each probe the open round waits for, where there are some."""
        missing = ((probe, self._n_missing_of(probe)) for probe in self._round)
        return tuple((probe, n) for probe, n in missing if n)

    @property
    def n_told_of_round(self) -> int:
        """How many measurements of the open round need nothing more."""
        return sum(len(self._of[probe][0].wanted) for probe in self._round) - self.n_missing

    def n_wanted(self, token: Token) -> int:
        """How many measurements of its probe the open round still takes, from this one on, without a gap."""
        probe, first = token
        return min([tape.n_lacking_from(first) for tape in self._of[probe]]) or int(self.is_wanted(token))

    def probes_of_round(self) -> Iterable[int]:
        """The probes that the open round asks for."""
        return self._round

    def begin_of_round(self, probe: int) -> int:
        """The first index of this probe that the open round wants, told or not."""
        begins = [tape.wanted[0] for tape in self._of[probe] if tape.wanted]
        return min(begins) if begins else self.first_unused(probe)

    def end_of_round(self, probe: int) -> int:
        """The first index of this probe after all that the open round wants."""
        return max([tape.end_of_round for tape in self._of[probe]])

    def tell(self, token: Token, values: Mapping[int, float], count: int = 1) -> None:
        """Take in readings of one measurement, or their means over `count` of them from this token on.

        `values` are by the number of the reading within its probe; those that are missing come later.
        """
        probe, first = token
        if not self.is_begun(token):
            self.n_told += count
        tapes, told = self._of[probe], range(first, first + count)
        if len(tapes) == 1:
            before = tapes[0].missing
            tapes[0].tell(first, values[0], count)
            self.n_missing -= before - tapes[0].missing
            return
        before = self._n_lacking(probe, told)
        for k, value in values.items():
            tapes[k].tell(first, value, count)
        self.n_missing -= before - self._n_lacking(probe, told)

    def _n_lacking(self, probe: int, told: range) -> int:
        """How many of these measurements the open round waits for."""
        if len(told) == 1:
            return int(self.is_wanted(Token(probe, told[0])))
        return len(set().union(*(tape.lacking_in(told) for tape in self._of[probe])))

    def lose(self, token: Token) -> None:
        """Skip what is still to come of a measurement that was told in part: it never will."""
        for k in self.untold(token):
            self._of[token.probe][k].skip(range(token.index, token.index + 1))
        self.n_lost += 1
        self._open_again()

    def open_round(self, counts: Iterable[tuple[int, int]]) -> None:
        """Wait for the next measurements, so many of each of these probes."""
        for probe in self._round:
            for tape in self._of[probe]:
                tape.open_round(0)
        counts = list(counts)
        for probe, count in counts:
            for tape in self._of[probe]:
                tape.open_round(count)
        self._round = tuple(probe for probe, _ in counts)
        self.n_missing = sum(self._n_missing_of(probe) for probe in self._round)

    def _open_again(self) -> None:
        """Wait for as many as before, now that some indices are skipped."""
        self.open_round([(probe, len(self._of[probe][0].wanted)) for probe in self._round])

    def _n_missing_of(self, probe: int) -> int:
        tapes = self._of[probe]
        alike = all(tape.wanted == tapes[0].wanted and tape.missing == len(tape.wanted) for tape in tapes[1:])
        if len(tapes) == 1 or (alike and tapes[0].missing == len(tapes[0].wanted)):
            return tapes[0].missing
        return len(set().union(*(tape.lacking() for tape in tapes)))

    def use_round(self) -> list[Used]:
        """Take the measurements of a complete round out of stock; none when no round is open."""
        used = [
            tape.use(self._first[probe] + k, keep=self._is_whole)
            for probe in self._round
            for k, tape in enumerate(self._of[probe])
        ]
        self._round = ()
        return used

    def told_values(self, reading: int) -> list[float]:
        """The single values told of this reading, as far as they are at hand."""
        return self._all[reading].told_values()

    def is_averaged(self, token: Token) -> bool:
        """Whether this measurement was told as a part of a mean."""
        return token.index in self._of[token.probe][0].averaged

    def void(self, token: Token, count: int = 1) -> bool:
        """Take a told measurement, or mean of `count`, off its tapes; whether a complete round had used it.

        Its place stays empty: the open round asks for the next one instead. What a round has used cannot be
        taken out of it, so whoever used it has to read the tapes again, after `rewind`.
        """
        probe, first = token
        is_used = first < self.first_unused(probe)
        for tape in self._of[probe]:
            tape.skip(range(first, first + count))
        self.voided[token] = count
        self.n_told -= count
        if not is_used:
            self._open_again()
        return is_used

    def rewind(self) -> None:
        """Put everything that was told back in stock, for a run that starts at the beginning."""
        if not self._is_whole:
            raise LostTapesError
        self.open_round([])
        for tape in self._all:
            tape.rewind()

    def to_json(self) -> dict[str, Any]:
        """All but the used measurements, as JSON values; a long round is not listed."""
        tapes = self._all
        return {
            "n_told": self.n_told,
            "voided": [[*token, count] for token, count in self.voided.items()],
            **({"n_lost": self.n_lost} if self.n_lost else {}),
            "_missing": self.n_missing,
            "_cursor": [tape.first_unused for tape in tapes],
            "_last_told": [tape.last_told for tape in tapes],
            "stock": [tape.stock_to_json() for tape in tapes],
            "averaged": [to_json(tape.unused(tape.averaged)) for tape in tapes],
            "skipped": [to_json(tape.unused(tape.skipped)) for tape in tapes],
            "asked": [self._asked(reading) for probe in self._round for reading in self._readings(probe)],
        }

    def _readings(self, probe: int) -> range:
        return range(self._first[probe], self._first[probe + 1])

    def _asked(self, reading: int) -> list[Any]:
        of = self._all[reading].wanted
        return [reading, of.start, of.stop] if isinstance(of, range) else [reading, list(of)]

    @classmethod
    def from_json(cls, n_readings: Sequence[int], kept: dict[str, Any]) -> Tapes:
        """The tapes that were kept, which are not whole."""
        tapes = cls(n_readings)
        tapes._is_whole = False
        tapes.n_told, tapes.n_missing = kept["n_told"], kept["_missing"]
        tapes.n_lost = kept.get("n_lost", 0)
        tapes.voided = {Token(probe, index): count for probe, index, count in kept.get("voided", ())}
        numbers = zip(kept["_cursor"], kept["_last_told"], strict=True)
        parts = zip(numbers, kept["stock"], kept["averaged"], kept["skipped"], strict=True)
        tapes._all[:] = [Tape.from_json(*part) for part in parts]
        tapes._of = [[tapes._all[r] for r in tapes._readings(o)] for o in range(len(n_readings))]
        for reading, *rest in kept["asked"] or ():
            tape = tapes._all[reading]
            tape.wanted = tuple(rest[0]) if len(rest) == 1 else range(*rest)
            tape.missing = len(tape.wanted) - sum(index in tape.wanted for index in tape.stock)
        asked = {reading for reading, *_ in kept["asked"] or ()}
        tapes._round = tuple(o for o in range(len(n_readings)) if tapes._first[o] in asked)
        return tapes
