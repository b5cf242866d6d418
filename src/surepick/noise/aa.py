"""Measure one arm as if it were two, A and B: does the set-up find differences where there are none?

Pairs A B, B A are measured in a random order. Any difference then comes from the set-up: the second of a pair
reads otherwise, values move with time, or the noise is not as stated. For independent noise of standard
deviation R these are normal with mean zero, for any mean of the arm: the mean of A - B (label), that of
second - first (order), and the slope of the pairs' means over time (drift). If R is stated, the sum of the
squares of A - B is chi-square in units of 2 R^2 (spread). If it is not, R is estimated from A - B, and
Student's quantile replaces the normal one.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from surepick.core.wording import how_many
from surepick.noise.check import chi_square_tail, normal_above

LEVEL = 0.01  # the probability that an honest set-up is doubted, by any test of any reading
N_TESTS = 4  # of each reading: label, order, drift and spread


@dataclass(frozen=True)
class Doubt:
    """A difference that a test found in one reading."""

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
    """Test whether measurements of one arm, labelled A and B in pairs, differ by label, order or time.

    - labels: "A" or "B" for each measurement, in the order of measuring, as `turns` returns them.
    - uses: the readings of each measurement, by name.
    - scale: the stated standard deviation of each reading; None if it is unknown.

    >>> rng, labels = np.random.default_rng(1), turns(30, 0)
    >>> later = [{"value": rng.normal() + (i % 2)} for i in range(60)]  # what runs second reads 1 more
    >>> [doubt.kind for doubt in against_itself(labels, later, {"value": 1.0}).doubts]
    ['order']
    """
    from scipy.special import stdtrit  # Student's quantile; scipy.stats is slow to import

    n = len(labels) // 2
    level = LEVEL / (N_TESTS * len(scale))  # Bonferroni
    difference = {}
    doubts = list[Doubt]()
    sign = np.where(np.array(labels[::2]) == "A", 1.0, -1.0)
    time = np.arange(n) - (n - 1) / 2.0
    for name, stated in scale.items():
        values = np.array([use[name] for use in uses], dtype=float).reshape(n, 2)  # of each pair, in order
        first, second = values.T
        a_minus_b = (first - second) * sign
        if stated is None:
            deviation = float(a_minus_b.std(ddof=1)) / math.sqrt(2.0)
            quantile = float(stdtrit(n - 1, 1 - level / 2))
        else:
            deviation = stated
            quantile = normal_above(level / 2)
        label = float(a_minus_b.mean())
        order = float((second - first).mean())
        error = deviation * math.sqrt(2.0 / n)  # of both: a mean of n differences of two values
        difference[name] = label, error
        # the least-squares slope of the pairs' means, each of variance deviation^2 / 2, over the n - 1 steps
        drift = (n - 1) * float(time @ values.mean(axis=1) / (time @ time))
        drift_error = (n - 1) * deviation * math.sqrt(0.5 / float(time @ time))
        effects = (
            ("label", label, error, "A reads {:+.3g} more than B"),
            ("order", order, error, "the second of a pair reads {:+.3g} more"),
            ("drift", drift, drift_error, "from the first to the last pair the mean moves by {:+.3g}"),
        )
        for kind, effect, its_error, words in effects:
            if abs(effect) > quantile * its_error:
                in_errors = f"{abs(effect) / its_error:.1f} standard errors"
                doubts.append(Doubt(name, kind, f"{words.format(effect)}, {in_errors}"))
        squares = float((a_minus_b**2).sum()) / 2.0
        if stated and chi_square_tail(squares / stated**2, n) < level:
            words = f"the standard deviation is {math.sqrt(squares / n):.3g}, {stated:.4g} was stated"
            doubts.append(Doubt(name, "spread", words))
    return Against(n, difference, tuple(doubts))
