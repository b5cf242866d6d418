"""What the noise check needs to know of the measurements, kept as they come: a few numbers for each arm.

Everything is in the order in which values of an arm are used.
Four things are kept:

*Levels.* The spread of single values, of the means of pairs of them, of pairs of pairs, and so on. If the
noise is independent and of the given scale, the weighted squares of every level are chi-square; noise that
hangs together, or a mean that moves, shows in the longer blocks.

*Successors.* The products of successive recursive residuals e_i = (x_i - mean before it) sqrt(w/(w + count)).
These have mean zero for independent noise; von Neumann's ratio is about 2 - 2 (their mean / the variance).

*Marks.* The sum of the tape at places that grow by a tenth, from which a change of the mean can be weighed at
any later time.

*Shape.* The central moments up to the fourth, the extremes, and how often a value equals the one before it.
"""

from __future__ import annotations

import math
from typing import Any

MARK_RATIO = 1.1  # between the places where a change of the mean may have come


class Level:
    """Weighted count, mean and squares of the blocks of one length; `add` alone changes it."""

    __slots__ = ("mean", "n", "squares", "waiting", "weight")

    def __init__(self) -> None:
        self.n, self.weight, self.mean, self.squares = 0, 0.0, 0.0, 0.0
        self.waiting: tuple[float, float] | None = None  # mean and weight of a block without its pair

    def add(self, mean: float, weight: float) -> tuple[float, float] | None:
        """Take in a block; the block that it makes with the one before, if that has waited."""
        self.n += 1
        self.weight += weight
        step = mean - self.mean
        self.mean += step * weight / self.weight
        self.squares += weight * step * (mean - self.mean)
        if self.waiting is None:
            self.waiting = mean, weight
            return None
        other, other_weight = self.waiting
        self.waiting, both = None, weight + other_weight
        return (mean * weight + other * other_weight) / both, both

    def state(self) -> list[Any]:
        """As JSON values."""
        return [self.n, self.weight, self.mean, self.squares, self.waiting]

    @classmethod
    def from_state(cls, state: list[Any]) -> Level:
        """The level that these values describe."""
        level = cls()
        level.n, level.weight, level.mean, level.squares, waiting = state
        level.waiting = None if waiting is None else (waiting[0], waiting[1])
        return level


class Shape:
    """Moments, extremes and ties of single values; `add` alone changes it."""

    __slots__ = ("cubes", "fourths", "high", "last", "low", "mean", "n", "n_ties", "squares")

    def __init__(self) -> None:
        self.n = self.n_ties = 0
        self.mean = self.squares = self.cubes = self.fourths = 0.0  # sums of powers of deviations
        self.low, self.high, self.last = math.inf, -math.inf, math.nan

    def add(self, value: float) -> None:
        """Add a value: the update of central sums by one observation."""
        self.n += 1
        n, step = self.n, value - self.mean
        part = step / n
        term = step * part * (n - 1)
        self.fourths += term * part**2 * (n * n - 3 * n + 3) + 6 * part**2 * self.squares
        self.fourths -= 4 * part * self.cubes
        self.cubes += term * part * (n - 2) - 3 * part * self.squares
        self.squares += term
        self.mean += part
        self.low, self.high = min(self.low, value), max(self.high, value)
        self.n_ties += value == self.last
        self.last = value

    def state(self) -> list[Any]:
        """Return it as JSON values."""
        if not self.n:
            return []
        moments = [self.n, self.mean, self.squares, self.cubes, self.fourths]
        return [*moments, self.low, self.high, self.last, self.n_ties]

    @classmethod
    def from_state(cls, state: list[Any]) -> Shape:
        """Return the shape that these values describe."""
        shape = cls()
        if state:
            shape.n, shape.mean, shape.squares, shape.cubes, shape.fourths, *rest = state
            shape.low, shape.high, shape.last, shape.n_ties = rest
        return shape


class ArmRecord:
    """What is kept of one arm; `add` alone changes it."""

    __slots__ = (
        "count",
        "first",
        "last",
        "levels",
        "marks",
        "n_pairs",
        "next_mark",
        "product",
        "shape",
        "square",
        "total",
    )

    def __init__(self) -> None:
        self.levels, self.shape = [Level()], Shape()
        self.n_pairs, self.product, self.square = 0, 0.0, 0.0  # of successive residuals
        self.last = math.nan
        self.first, self.count, self.total = 0.0, 0, 0.0  # the total is of differences from the first value
        self.marks: list[tuple[int, float]] = []  # (count, total)
        self.next_mark = 1.0

    def add(self, value: float, count: int) -> None:
        """Take in a value, which is the mean of this many measurements."""
        singles = self.levels[0]
        if count == 1:
            self.shape.add(value)
        if not singles.n:
            self.first = value
        else:
            old = singles.weight
            residual = (value - singles.mean) * math.sqrt(count * old / (old + count))
            if not math.isnan(self.last):
                product = residual * self.last
                self.n_pairs += 1
                self.product += product
                self.square += product * product
            self.last = residual
            if self.count >= self.next_mark:
                self.marks.append((self.count, self.total))
                self.next_mark = max(self.count + 1.0, self.count * MARK_RATIO)
        self.count += count
        self.total += (value - self.first) * count
        block = value, float(count)
        for level in self.levels:
            pair = level.add(*block)
            if pair is None:
                return
            block = pair
        self.levels.append(Level())
        self.levels[-1].add(*block)

    def state(self) -> list[Any]:
        """As JSON values."""
        last = None if math.isnan(self.last) else self.last
        numbers = [self.n_pairs, self.product, self.square, last, self.first, self.count, self.total]
        levels = [level.state() for level in self.levels]
        return [numbers, levels, self.marks, self.next_mark, self.shape.state()]

    @classmethod
    def from_state(cls, state: list[Any]) -> ArmRecord:
        """The record that these values describe."""
        arm = cls()
        numbers, levels, marks, arm.next_mark, shape = state
        arm.shape = Shape.from_state(shape)
        arm.n_pairs, arm.product, arm.square, last, arm.first, arm.count, arm.total = numbers
        arm.last = math.nan if last is None else last
        arm.levels = [Level.from_state(level) for level in levels]
        arm.marks = [(count, total) for count, total in marks]
        return arm


class NoiseRecord:
    """What is kept of all arms."""

    def __init__(self, n_arms: int) -> None:
        self.arms = [ArmRecord() for _ in range(n_arms)]

    def lengthen(self, n_arms: int) -> None:
        """Make room for arms after those that there are."""
        self.arms += [ArmRecord() for _ in range(n_arms - len(self.arms))]

    def add(self, arm: int, value: float, count: int = 1) -> None:
        """Take in a value of this arm, which is the mean of `count` measurements."""
        self.arms[arm].add(value, count)

    def to_json(self) -> list[Any]:
        """Return it as JSON values."""
        return [arm.state() for arm in self.arms]

    @classmethod
    def from_json(cls, data: list[Any]) -> NoiseRecord:
        """Return the record that these JSON values describe."""
        record = cls(0)
        record.arms = [ArmRecord.from_state(arm) for arm in data]
        return record


class Withdrawals:
    """How many tokens of each arm were given back, and how often one of them in a row; it grows by `add`.

    Those of a run that was stopped or died are none: nobody had looked at a value.
    """

    def __init__(self, n_arms: int) -> None:
        self.counts = [0] * n_arms
        self.longest = [0] * n_arms  # by arm: how often one token was given back
        self.often: dict[str, int] = {}

    def lengthen(self, n_arms: int) -> None:
        """Make room for arms after those that there are."""
        more = [0] * (n_arms - len(self.counts))
        self.counts, self.longest = self.counts + more, self.longest + more

    def add(self, probe: int, token: str, reason: str) -> None:
        """Count the release of this probe's token."""
        if reason == "stopped" or reason.endswith("is gone"):
            return
        self.often[token] = self.often.get(token, 0) + 1
        self.counts[probe] += 1
        self.longest[probe] = max(self.longest[probe], self.often[token])

    def to_json(self) -> list[Any]:
        """As JSON values."""
        return [self.counts, self.longest, self.often]

    @classmethod
    def from_json(cls, data: list[Any]) -> Withdrawals:
        """What these JSON values describe."""
        kept = cls(0)
        kept.counts, kept.longest, kept.often = data
        return kept
