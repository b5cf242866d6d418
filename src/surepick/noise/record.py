"""What the noise check keeps of the values of an arm, in the order in which they are used: a few numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

MARK_RATIO = 1.1  # between the places at which the running mean is kept


@dataclass(slots=True)
class ArmRecord:
    """The statistics that are kept of one arm, or of a reading of a probe; only `add` changes them.

    - squares, cubes, fourths: sums of powers of deviations from the mean
    - residual: of the last value, e_n = (x_n - mean before it) sqrt((n-1)/n); independent noise makes these
      independent with mean zero, so `product`, the sum of products of successive ones, is about zero
    - marks: (n, mean of the first n values), from which a mean that moves can be seen at any later time
    """

    n: int = 0
    mean: float = 0.0
    squares: float = 0.0
    cubes: float = 0.0
    fourths: float = 0.0
    low: float = 0.0
    high: float = 0.0
    last: float = 0.0
    n_ties: int = 0  # how often a value equals the one before it
    residual: float = 0.0
    product: float = 0.0
    product_squares: float = 0.0
    marks: list[tuple[int, float]] = field(default_factory=list)

    def add(self, value: float) -> None:
        """Update all statistics with the next value."""
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
            before, self.residual = self.residual, step * math.sqrt((n - 1) / n)
            self.product += before * self.residual
            self.product_squares += (before * self.residual) ** 2
        self.last = value
        if not self.marks or n >= MARK_RATIO * self.marks[-1][0]:
            self.marks.append((n, self.mean))

    def to_json(self) -> list[Any]:
        """Return the numbers as JSON values; `ArmRecord(*values)` is this record again."""
        return [getattr(self, name) for name in self.__slots__]


def count_release(releases: dict[str, int], token: str, reason: str) -> None:
    """Count that this request was released unmeasured.

    A run that was stopped or has died had seen no value: its releases do not count.
    """
    if reason != "stopped" and not reason.endswith("is gone"):
        releases[token] = releases.get(token, 0) + 1
