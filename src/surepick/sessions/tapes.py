"""What is told of each probe, by index, and the part of it that the policy waits for.

Every probe has a *tape* for each of its readings: of the first, second, third use; an arm that is measured by
itself has one. A round asks for the next stretch of some tapes, and is complete when all of it is told; in
which order, by whom, and whether some of it was told early, makes no difference to the policy. That is why
many workers may measure ahead of a policy that asks for one measurement at a time: it reads the same tapes as
it would alone.

Of several readings some may be told first and others later. One that is lost is skipped on its own tape, and
the round waits for the next use of the probe instead; what else that use gives lies ahead on the other tapes.
That is sound where readings are independent and being lost has nothing to do with the value. Where readings
may depend on each other in any way, a lost reading drops the whole use; readings with a given covariance are
recorded together (`telling`).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Any

from surepick.core.oracle_problem import AnyProblem
from surepick.sessions.requests import Token
from surepick.sessions.snapshot import to_json
from surepick.sessions.tape import Bundle, Tape, Used

__all__ = ["LostTapesError", "Tapes", "Used", "readings_per_probe"]


class LostTapesError(Exception):
    """A run has to start over, and the ledger came from a snapshot: fold the log from its beginning."""


class Tapes:
    """The tapes of all probes, and the round that the policy waits for.

    `of` has those of each probe, to ask about a measurement. They change by `tell`, `lose`, `open_round`,
    `use_round`, `void`, `rewind` and `lengthen`, which the ledger calls and nobody else. Those from a
    snapshot are not whole: used measurements are only counted there, so that they cannot be rewound.
    """

    def __init__(self, readings: Sequence[Sequence[int]]) -> None:
        """Empty ones, for probes with these readings each; plays share readings, which have tapes of each."""
        self.n_told = 0
        self.n_missing = 0  # measurements of the open round
        self.voided: set[Token] = set()  # whose values were removed
        self.n_lost = 0  # measurements of which some readings never came
        self._is_whole = True
        self._round: tuple[int, ...] = ()  # the probes that the open round asks for
        self._readings = list(readings)
        self._first = list(accumulate(map(len, readings), initial=0))  # tape of each probe
        self._hold([Tape() for _ in range(self._first[-1])])

    def _hold(self, tapes: list[Tape]) -> None:
        """Have these tapes, of all readings of all probes."""
        self._all = tapes
        self.of: list[Tape | Bundle] = [
            tapes[begin] if end == begin + 1 else Bundle(tapes[begin:end])
            for begin, end in pairwise(self._first)
        ]

    def lengthen(self, readings: Sequence[Sequence[int]]) -> None:
        """Have empty tapes of probes after those that there are; these are the readings of all of them."""
        for own in readings[len(self.of) :]:
            tapes = [Tape() for _ in own]
            self._all += tapes
            self.of.append(tapes[0] if len(tapes) == 1 else Bundle(tapes))
            self._readings.append(own)
            self._first.append(len(self._all))

    @property
    def n_ahead(self) -> int:
        """How many told measurements no round has used and the open one has no use for."""
        return sum([of.n_ahead for of in self.of])

    def wanted(self) -> Iterator[Token]:
        """The measurements that the open round waits for, by probe and index."""
        for probe in self._round:
            for index in self.of[probe].wanted():
                yield Token(probe, index)

    def missing(self) -> tuple[tuple[int, int], ...]:
        """How many measurements of each probe the open round waits for, where there are some."""
        return tuple((probe, self.of[probe].n_missing) for probe in self._round if self.of[probe].n_missing)

    @property
    def n_told_of_round(self) -> int:
        """How many measurements of the open round need nothing more."""
        return sum(len(self.of[probe].asked) for probe in self._round) - self.n_missing

    def probes_of_round(self) -> Iterable[int]:
        """The probes that the open round asks for."""
        return self._round

    def tell(self, token: Token, values: Mapping[int, float]) -> None:
        """Take in readings of one measurement.

        `values` are by the number of the reading within its probe; those that are missing come later.
        """
        probe, index = token
        of = self.of[probe]
        if not of.is_begun(index):
            self.n_told += 1
        before = of.n_missing
        of.tell(index, values)
        self.n_missing -= before - of.n_missing

    def lose(self, token: Token, *, whole: bool) -> None:
        """Skip what is still to come of a measurement that was told in part, or all of it if `whole`.

        Readings that may depend on each other in any way are lost together: the values that came say
        something about those that did not.
        """
        of = self.of[token.probe]
        if whole:
            of.skip(token.index)
        else:
            of.lose(token.index)
        self.n_lost += 1
        self._open_again()

    def open_round(self, counts: Iterable[tuple[int, int]]) -> None:
        """Wait for the next measurements, so many of each of these probes."""
        for probe in self._round:
            self.of[probe].open_round(0)
        probes, self.n_missing = list[int](), 0
        for probe, count in counts:
            self.of[probe].open_round(count)
            self.n_missing += self.of[probe].n_missing
            probes.append(probe)
        self._round = tuple(probes)

    def _open_again(self) -> None:
        """Wait for as many as before, now that some indices are skipped."""
        self.open_round([(probe, len(self.of[probe].asked)) for probe in self._round])

    def use_round(self) -> list[Used]:
        """Take the measurements of a complete round out of stock; none when no round is open."""
        used: list[Used] = []
        for probe in self._round:
            used += self.of[probe].use(probe, self._readings[probe], keep=self._is_whole)
        self._round = ()
        return used

    def without_removed(self, used: list[Used]) -> tuple[list[Used], dict[int, int]]:
        """Return a complete round without what was removed since, and how many uses of each probe that is.

        Of the readings of a probe as many are left as of the one that lost most, the first ones.
        """
        if not any(one.probe in self._removed_of for one in used):
            return used, {}
        kept, removed = dict[int, list[Used]](), dict[int, int]()
        for one in used:
            gone = self._removed_of.get(one.probe, ())
            pairs = zip(one.indices, one.values, strict=True)
            left = [value for index, value in pairs if index not in gone]
            kept.setdefault(one.probe, []).append(one._replace(values=left))
            removed[one.probe] = max(removed.get(one.probe, 0), len(one.values) - len(left))
        counts = {one.probe: len(one.values) - removed[one.probe] for one in used}
        found = [one._replace(values=one.values[: counts[probe]]) for probe in kept for one in kept[probe]]
        return found, {probe: n for probe, n in removed.items() if n}

    @property
    def _removed_of(self) -> dict[int, set[int]]:
        """The removed indices of each probe."""
        found: dict[int, set[int]] = {}
        for probe, index in self.voided:
            found.setdefault(probe, set()).add(index)
        return found

    def check_whole(self) -> None:
        """Refuse where used measurements are only counted, so that they cannot be read again."""
        if not self._is_whole:
            raise LostTapesError

    def told_values(self, reading: int) -> list[float]:
        """The single values told of this reading, as far as they are at hand."""
        tapes = zip(itertools.chain(*self._readings), self._all, strict=True)
        return [value for own, tape in tapes if own == reading for value in tape.told_values()]

    def void(self, token: Token) -> bool:
        """Take a recorded measurement off its tapes; return whether a complete round had used it.

        Its place stays empty: the open round asks for the next one instead. What a round has used cannot be
        taken out of it, so whoever used it has to read the tapes again, after `rewind`.
        """
        of = self.of[token.probe]
        is_used = token.index < of.first_unused
        of.skip(token.index)
        self.voided.add(token)
        self.n_told -= 1
        if not is_used:
            self._open_again()
        return is_used

    def rewind(self) -> None:
        """Put everything that was told back in stock, for a run that starts at the beginning."""
        self.check_whole()
        self.open_round([])
        for tape in self._all:
            tape.rewind()

    def to_json(self) -> dict[str, Any]:
        """All but the used measurements, as JSON values; a long round is not listed."""
        tapes = self._all
        return {
            "n_told": self.n_told,
            "voided": sorted(self.voided),
            "n_lost": self.n_lost,
            "_missing": self.n_missing,
            "_cursor": [tape.first_unused for tape in tapes],
            "_last_told": [tape.last_told for tape in tapes],
            "stock": [tape.stock_to_json() for tape in tapes],
            "skipped": [to_json(tape.unused(tape.skipped)) for tape in tapes],
            "asked": [self._asked(at) for probe in self._round for at in self._tapes_of(probe)],
        }

    def _tapes_of(self, probe: int) -> range:
        return range(self._first[probe], self._first[probe + 1])

    def _asked(self, at: int) -> list[Any]:
        asked = self._all[at].asked
        return [at, asked.start, asked.stop] if isinstance(asked, range) else [at, list(asked)]

    @classmethod
    def from_json(cls, readings: Sequence[Sequence[int]], kept: dict[str, Any]) -> Tapes:
        """The tapes that were kept, which are not whole."""
        tapes = cls(readings)
        tapes._is_whole = False
        tapes.n_told, tapes.n_missing = kept["n_told"], kept["_missing"]
        tapes.n_lost = kept["n_lost"]
        tapes.voided = {Token(probe, index) for probe, index in kept["voided"]}
        numbers = zip(kept["_cursor"], kept["_last_told"], strict=True)
        parts = zip(numbers, kept["stock"], kept["skipped"], strict=True)
        held = [Tape.from_json(*part) for part in parts]
        asked = {at: rest for at, *rest in kept["asked"] or ()}
        for at, rest in asked.items():
            held[at].ask_for(tuple(rest[0]) if len(rest) == 1 else range(*rest))
        tapes._hold(held)
        tapes._round = tuple(probe for probe in range(len(readings)) if tapes._first[probe] in asked)
        return tapes


def readings_per_probe(problem: AnyProblem) -> list[Sequence[int]]:
    """The readings that one use of each probe gives; an arm that is measured by itself gives one."""
    return [problem.readings_of(probe) for probe in range(problem.n_probes)]
