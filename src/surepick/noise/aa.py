"""Measure one arm as if it were two, A and B: does the set-up find differences where there are none?

Pairs A B, B A are measured in a random order. What differs then comes from the set-up: what runs second, what
runs later, or noise that is not as stated. For independent noise of scale R these are normal with mean zero,
whatever the mean is: the mean of A - B (label), that of second - first (order), and the slope of the pairs'
means over time (drift). Where R is stated, the squares of A - B are chi-square in units of 2 R^2 (spread);
where it is not, it is estimated, and Student's quantile takes the place of the normal one.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from surepick.core.wording import how_many
from surepick.noise.check import chi_square_tail, normal_above

LEVEL = 0.01  # how often an honest set-up is doubted, all looks at all readings together


@dataclass(frozen=True)
class Doubt:
    """Something that differs in one reading."""

    reading: str
    kind: str  # "label", "order", "drift" or "spread"
    what: str


@dataclass(frozen=True)
class Against:
    """The result of measuring one arm as two."""

    n_pairs: int
    difference: Mapping[str, tuple[float, float]]  # A minus B by reading, with its standard error
    doubts: tuple[Doubt, ...]

    @property
    def is_honest(self) -> bool:
        """Whether nothing was found."""
        return not self.doubts

    @property
    def sentence(self) -> str:
        """The result in words."""
        n = how_many(self.n_pairs, "pair")
        if self.is_honest:
            return f"nothing differs in {n}: what one measurement finds does not depend on its turn"
        return f"{how_many(len(self.doubts), 'thing differs', 'things differ')} in {n} that should not"


def turns(n_pairs: int, seed: int) -> list[str]:
    """Return the labels in the order of measuring: A B or B A in each pair, drawn from the seed.

    >>> turns(2, 0)
    ['B', 'A', 'A', 'B']
    """
    order = random.Random(f"aa {seed}")
    return [label for _ in range(n_pairs) for label in (("A", "B") if order.random() < 0.5 else ("B", "A"))]


def against_itself(
    labels: Sequence[str], uses: Sequence[Mapping[str, float]], scale: Mapping[str, float | None]
) -> Against:
    """Return what uses with these labels, in this order, show that one and the same arm should not.

    >>> rng, labels = np.random.default_rng(1), turns(30, 0)
    >>> later = [{"value": rng.normal() + (i % 2)} for i in range(60)]  # what runs second reads 1 more
    >>> [doubt.kind for doubt in against_itself(labels, later, {"value": 1.0}).doubts]
    ['order']
    """
    from scipy.special import stdtrit  # Student's quantile; scipy.stats is slow to import

    n = len(labels) // 2
    level = LEVEL / (4 * len(scale))
    difference = {}
    doubts = list[Doubt]()
    sign = np.where(np.array(labels[::2]) == "A", 1.0, -1.0)
    time = np.arange(n) - (n - 1) / 2.0
    for name, stated in scale.items():
        values = np.array([use[name] for use in uses], dtype=float).reshape(n, 2)
        apart = (values[:, 0] - values[:, 1]) * sign  # A minus B
        single = float(apart.std(ddof=1)) / math.sqrt(2.0) if stated is None else stated
        quantile = normal_above(level / 2) if stated else float(stdtrit(n - 1, 1 - level / 2))
        label, second = float(apart.mean()), float((values[:, 1] - values[:, 0]).mean())
        moved = (n - 1) * float(time @ values.mean(axis=1) / (time @ time))
        error = single * math.sqrt(2.0 / n)
        difference[name] = label, error
        far = quantile * error
        move_error = (n - 1) * single * math.sqrt(0.5 / float(time @ time))
        if abs(label) > far:
            words = f"A reads {label:+.3g} more than B, {abs(label) / error:.1f} standard errors"
            doubts.append(Doubt(name, "label", words))
        if abs(second) > far:
            words = (
                f"the second of a pair reads {second:+.3g} more, {abs(second) / error:.1f} standard errors"
            )
            doubts.append(Doubt(name, "order", words))
        if abs(moved) > quantile * move_error:
            doubts.append(
                Doubt(name, "drift", f"from the first to the last pair the mean moves by {moved:+.3g}")
            )
        squares = float((apart**2).sum()) / 2.0
        if stated and chi_square_tail(squares / stated**2, n) < level:
            words = f"the standard deviation is {math.sqrt(squares / n):.3g}, {stated:.4g} was stated"
            doubts.append(Doubt(name, "spread", words))
    return Against(n, difference, tuple(doubts))
