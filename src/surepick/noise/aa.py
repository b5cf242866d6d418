"""A measured against itself: whether a set-up finds differences where there are none.

One arm or probe is measured as if it were two, A and B, in pairs A B, B A, each pair shuffled. Whatever
differs then is the set-up's: what runs second, what runs later, or a noise that is not what was said. Four
looks at every reading share a level; each has a statistic that is normal, or chi-square, for independent
noise of the given scale, whatever the mean is:

| look | statistic |
|---|---|
| A against B | the mean of A - B in a pair, against 2 R^2 / n |
| first against second | the same of second - first |
| early against late | the slope of the sums of pairs, against 2 R^2 |
| spread | the squares of A - B, against 2 R^2 |

Without a scale, which is to be learned then, the spread is that of the pairs, and the last look is left out.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from surepick.core.arrays import FloatArray
from surepick.core.tails import chi_square_above, normal_above
from surepick.core.wording import how_many

LEVEL = 0.01  # how often an honest set-up is doubted, all looks at all readings together


@dataclass(frozen=True)
class Doubt:
    """Something that differs, of one reading."""

    reading: str
    kind: str  # "label", "order", "drift" or "spread"
    what: str


@dataclass(frozen=True)
class Against:
    """What came of measuring one thing as two."""

    n_pairs: int
    difference: Mapping[str, tuple[float, float]]  # of A less B by reading, and its standard error
    doubts: tuple[Doubt, ...]

    @property
    def is_honest(self) -> bool:
        """Whether nothing was found."""
        return not self.doubts

    @property
    def sentence(self) -> str:
        """For people."""
        n = how_many(self.n_pairs, "pair")
        if self.is_honest:
            return f"nothing differs in {n}: what one measurement finds does not depend on its turn"
        return f"{how_many(len(self.doubts), 'thing differs', 'things differ')} in {n} that should not"


def turns(n_pairs: int, seed: int) -> list[str]:
    """The labels in the order of measuring: A B or B A in each pair, drawn from the seed.

    >>> turns(2, 0)
    ['B', 'A', 'A', 'B']
    """
    order = random.Random(f"aa {seed}")
    return [label for _ in range(n_pairs) for label in (("A", "B") if order.random() < 0.5 else ("B", "A"))]


def against_itself(
    labels: Sequence[str], uses: Sequence[Mapping[str, float]], scale: Mapping[str, float | None]
) -> Against:
    """What the uses, with these labels and in this order, show that one and the same thing should not.

    >>> rng = np.random.default_rng(1)
    >>> labels = turns(30, 0)
    >>> against_itself(labels, [{"value": rng.normal()} for _ in labels], {"value": 1.0}).is_honest
    True
    >>> later = [{"value": rng.normal() + (i % 2)} for i in range(60)]  # what runs second reads 1 more
    >>> [doubt.kind for doubt in against_itself(labels, later, {"value": 1.0}).doubts]
    ['order']
    """
    n = len(labels) // 2
    each = LEVEL / (4 * len(scale))
    difference, doubts = {}, []
    for name, given in scale.items():
        values = np.array([use[name] for use in uses], dtype=float).reshape(n, 2)
        sign = np.where(np.array(labels[::2]) == "A", 1.0, -1.0)
        apart = (values[:, 0] - values[:, 1]) * sign  # A less B
        single = given if given is not None else float(apart.std(ddof=1)) / math.sqrt(2.0)
        error = single * math.sqrt(2.0 / n)
        difference[name] = float(apart.mean()), error
        doubts += _doubts(name, values, apart, (single, given is not None, each))
    return Against(n, difference, tuple(doubts))


def _doubts(
    name: str, values: FloatArray, apart: FloatArray, noise: tuple[float, bool, float]
) -> list[Doubt]:
    from scipy.special import stdtrit  # Student's quantile; scipy.stats is slow to import

    single, is_given, each = noise
    n = len(apart)
    far = normal_above(each / 2) if is_given else float(stdtrit(n - 1, 1 - each / 2))
    error = single * math.sqrt(2.0 / n)
    found = []
    label, second = float(apart.mean()), float((values[:, 1] - values[:, 0]).mean())
    if abs(label) > far * error:
        what = f"A reads {label:+.3g} more than B, {abs(label) / error:.1f} standard errors"
        found.append(Doubt(name, "label", f"{what}: they are the same"))
    if abs(second) > far * error:
        what = f"what is measured second in a pair reads {second:+.3g} more, {abs(second) / error:.1f} errors"
        found.append(Doubt(name, "order", f"{what}: the order matters"))
    time = np.arange(n) - (n - 1) / 2.0
    slope = float(time @ values.mean(axis=1) / (time @ time))
    slope_error = single * math.sqrt(0.5 / float(time @ time))
    if abs(slope) > far * slope_error:
        drift = slope * (n - 1)
        found.append(Doubt(name, "drift", f"from the first to the last pair the level moves by {drift:+.3g}"))
    squares = float((apart**2).sum()) / (2.0 * single**2)
    if is_given and squares > chi_square_above(each, n):
        times = math.sqrt(squares / n)
        what = f"measurements spread {times:.3g} times as much as the noise scale {single:.4g} says"
        found.append(Doubt(name, "spread", what))
    return found
