"""What the noise check keeps of the measurements as they come: a few numbers for each arm.

Everything is in the order in which values of an arm are used.

*Levels.* The scatter of single values, of means of pairs, of pairs of pairs, and so on. If the noise is
independent and of the given scale, the weighted squares of every level are chi-square; noise that is
correlated, or a mean that moves, shows in the longer blocks.

*Successors.* The products of successive recursive residuals e_n = (x_n - mean before it) sqrt((n-1)/n).
These have mean zero for independent noise; von Neumann's ratio is about 2 - 2 (their mean / the variance).

*Marks.* The running total at places that grow by a tenth, from which a change of the mean can be weighed at
any later time.

*Shape.* The central moments up to the fourth, the extremes, and how often a value equals the one before it.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, TypeVar

MARK_RATIO = 1.1  # between the places where a change of the mean may have come
T = TypeVar("T", bound="_Kept")


class _Kept:
    """Numbers that are kept as a JSON list, in the order of `__slots__`."""

    __slots__: ClassVar[tuple[str, ...]] = ()

    def state(self) -> list[Any]:
        """Return it as JSON values."""
        return [getattr(self, name) for name in self.__slots__]

    @classmethod
    def from_state(cls: type[T], state: list[Any]) -> T:
        """Return what these values describe."""
        kept = cls()
        for name, value in zip(cls.__slots__, state, strict=True):
            setattr(kept, name, value)
        return kept


class Level(_Kept):
    """Number, mean and squares of the means of blocks of one length; `add` alone changes it."""

    __slots__ = ("mean", "n", "squares", "waiting")

    def __init__(self) -> None:
        self.n, self.mean, self.squares = 0, 0.0, 0.0
        self.waiting: float | None = None  # the mean of a block without its pair

    def add(self, mean: float) -> float | None:
        """Add the mean of a block; return the mean of a pair of blocks whenever one is complete."""
        self.n += 1
        step = mean - self.mean
        self.mean += step / self.n
        self.squares += step * (mean - self.mean)
        if self.waiting is None:
            self.waiting = mean
            return None
        both, self.waiting = 0.5 * (self.waiting + mean), None
        return both


class Shape(_Kept):
    """Moments, extremes and ties of single values; `add` alone changes it."""

    __slots__ = ("cubes", "fourths", "high", "last", "low", "mean", "n", "n_ties", "squares")

    def __init__(self) -> None:
        self.n = self.n_ties = 0
        self.mean = self.squares = self.cubes = self.fourths = 0.0  # sums of powers of deviations
        self.low = self.high = self.last = 0.0

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
        if n == 1:
            self.low = self.high = value
        else:
            self.n_ties += value == self.last
            self.low, self.high = min(self.low, value), max(self.high, value)
        self.last = value


class ArmRecord(_Kept):
    """The statistics that are kept of one arm; only `add` changes them."""

    __slots__ = (
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
        self.last: float | None = None  # residual
        self.first, self.total = 0.0, 0.0  # the total is of differences from the first value
        self.marks: list[tuple[int, float]] = []  # (n, total)
        self.next_mark = 1.0

    @property
    def n(self) -> int:
        """The number of values."""
        return self.shape.n

    def add(self, value: float) -> None:
        """Update all statistics with the next value of the arm."""
        n = self.n  # before this value
        if not n:
            self.first = value
        else:
            # the recursive residual, and its product with the one before: their mean shows autocorrelation
            residual = (value - self.shape.mean) * math.sqrt(n / (n + 1))
            if self.last is not None:
                product = residual * self.last
                self.n_pairs += 1
                self.product += product
                self.square += product * product
            self.last = residual
            if n >= self.next_mark:
                self.marks.append((n, self.total))
                self.next_mark = max(n + 1.0, n * MARK_RATIO)
        self.shape.add(value)
        self.total += value - self.first
        # level k has the means of 2^k successive values: each complete pair moves up a level
        block_mean = value
        for level in self.levels:
            pair_mean = level.add(block_mean)
            if pair_mean is None:
                return
            block_mean = pair_mean
        self.levels.append(Level())
        self.levels[-1].add(block_mean)

    def state(self) -> list[Any]:
        """Return it as JSON values."""
        nested = {"levels": [level.state() for level in self.levels], "shape": self.shape.state()}
        return [nested.get(name, getattr(self, name)) for name in self.__slots__]

    @classmethod
    def from_state(cls, state: list[Any]) -> ArmRecord:
        """Return the record that these values describe."""
        arm = super().from_state(state)
        arm.levels = [Level.from_state(level) for level in arm.levels]  # type: ignore[arg-type]
        arm.shape = Shape.from_state(arm.shape)  # type: ignore[arg-type]
        return arm


class NoiseRecord:
    """The statistics that are kept of all arms."""

    def __init__(self, n_arms: int) -> None:
        self.arms = [ArmRecord() for _ in range(n_arms)]

    def lengthen(self, n_arms: int) -> None:
        """Add empty records for new arms, up to n_arms in all."""
        self.arms += [ArmRecord() for _ in range(n_arms - len(self.arms))]

    def add(self, arm: int, value: float) -> None:
        """Add a value of this arm."""
        self.arms[arm].add(value)

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
    """How many requests of each arm were released, and how often the same one; only `add` changes it.

    Those of a run that was stopped or died do not count: no value had been seen.
    """

    def __init__(self, n_arms: int) -> None:
        self.counts = [0] * n_arms
        self.longest = [0] * n_arms  # by arm: how often one request was released
        self.often: dict[str, int] = {}

    def lengthen(self, n_arms: int) -> None:
        """Add empty entries for new arms, up to n_arms in all."""
        more = [0] * (n_arms - len(self.counts))
        self.counts, self.longest = self.counts + more, self.longest + more

    def add(self, probe: int, token: str, reason: str) -> None:
        """Count the release of this probe's request."""
        if reason == "stopped" or reason.endswith("is gone"):
            return
        self.often[token] = self.often.get(token, 0) + 1
        self.counts[probe] += 1
        self.longest[probe] = max(self.longest[probe], self.often[token])

    def to_json(self) -> list[Any]:
        """Return it as JSON values."""
        return [self.counts, self.longest, self.often]

    @classmethod
    def from_json(cls, data: list[Any]) -> Withdrawals:
        """Return what these JSON values describe."""
        kept = cls(0)
        kept.counts, kept.longest, kept.often = data
        return kept
