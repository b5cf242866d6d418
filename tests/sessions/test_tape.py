"""Tapes by themselves: one reading, and several that answer the same questions together."""

from __future__ import annotations

from random import Random

import pytest

from surepick.sessions.requests import Token
from surepick.sessions.tape import Bundle, Tape
from surepick.sessions.tapes import Tapes

FURTHEST = 14  # index that is looked at


class Plain:
    """What a probe with some readings was told, kept in the plainest way: a set of (index, reading)."""

    def __init__(self, n_readings: int) -> None:
        self.readings = range(n_readings)
        self.done: set[tuple[int, int]] = set()  # told or never to come
        self.skipped: set[tuple[int, int]] = set()
        self.used = [0] * n_readings
        self.asked: list[list[int]] = [[] for _ in self.readings]

    def untold(self, index: int) -> list[int]:
        return [k for k in self.readings if (index, k) not in self.done]

    def open_round(self, count: int) -> None:
        for k in self.readings:
            free = (i for i in range(self.used[k], 10**6) if (i, k) not in self.skipped)
            self.asked[k] = [next(free) for _ in range(count)]

    def wanted(self) -> list[int]:
        lacking = {i for k in self.readings for i in self.asked[k] if (i, k) not in self.done}
        return sorted(lacking)

    def skip(self, index: int, readings: list[int]) -> None:
        self.done |= {(index, k) for k in readings}
        self.skipped |= {(index, k) for k in readings}

    def use_round(self) -> None:
        for k in self.readings:
            if self.asked[k]:
                self.used[k] = self.asked[k][-1] + 1
                self.done |= {(i, k) for i in range(self.used[k])}
        self.asked = [[] for _ in self.readings]


def assert_alike(tapes: Tapes, plain: Plain) -> None:
    of = tapes.of[0]
    wanted = plain.wanted()
    assert [token.index for token in tapes.wanted()] == list(of.wanted()) == wanted
    assert tapes.n_missing == of.n_missing == len(wanted)
    for index in range(FURTHEST):
        untold = plain.untold(index)
        assert of.untold(index) == untold
        assert of.is_told(index) == (not untold)
        assert of.is_begun(index) == (len(untold) < len(plain.readings))
        assert of.is_wanted(index) == (index in wanted)
        assert (of.n_wanted(index) > 0) == (index in wanted)
    assert of.end_of_round == max(
        asked[-1] + 1 if asked else used for asked, used in zip(plain.asked, plain.used, strict=True)
    )


@pytest.mark.parametrize("n_readings", [1, 2, 3])
@pytest.mark.parametrize("seed", range(40))
def test_tapes_answer_as_a_plain_record_of_what_was_told_does(n_readings: int, seed: int) -> None:
    chance, tapes, plain = Random(seed), Tapes([range(n_readings)]), Plain(n_readings)
    assert isinstance(tapes.of[0], Tape if n_readings == 1 else Bundle)
    for _ in range(60):
        index = chance.randrange(FURTHEST - 4)
        untold, token = plain.untold(index), Token(0, index)
        if tapes.n_missing == 0:
            if tapes.probes_of_round():
                tapes.use_round()
                plain.use_round()
            count = chance.randint(1, 3)
            tapes.open_round([(0, count)])
            plain.open_round(count)
        elif untold and chance.random() < 0.8:
            some = [k for k in untold if chance.random() < 0.7] or untold[:1]
            tapes.tell(token, {k: float(index) for k in some})
            plain.done |= {(index, k) for k in some}
        elif untold and len(untold) < n_readings:
            whole = chance.random() < 0.5 and all(used <= index for used in plain.used)
            tapes.lose(token, whole=whole)
            plain.skip(index, list(plain.readings) if whole else untold)
            plain.open_round(len(plain.asked[0]))
        elif not untold and index >= tapes.of[0].first_unused and token not in tapes.voided:
            tapes.void(token)
            plain.skip(index, list(plain.readings))
            plain.open_round(len(plain.asked[0]))
        assert_alike(tapes, plain)


def test_tapes_from_a_snapshot_go_on_where_they_were() -> None:
    tapes = Tapes([range(1), range(1, 3)])
    tapes.open_round([(0, 2), (1, 2)])
    tapes.tell(Token(0, 0), {0: 1.5})
    tapes.tell(Token(1, 1), {1: 2.5})
    again = Tapes.from_json([range(1), range(1, 3)], tapes.to_json())
    assert list(again.wanted()) == list(tapes.wanted()) == [Token(0, 1), Token(1, 0), Token(1, 1)]
    assert again.missing() == tapes.missing() == ((0, 1), (1, 2))
    assert (again.n_missing, again.n_told, again.n_ahead) == (3, 2, 0)
