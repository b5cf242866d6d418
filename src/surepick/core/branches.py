"""A branch: the plans whose entries lie within bounds, one pair of bounds per arm, and its parts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from surepick.core.arrays import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Branch:
    """The plans whose entries lie within these bounds."""

    lower: FloatArray  # (n_arms,)
    upper: FloatArray  # (n_arms,)

    @property
    def free(self) -> IntArray:
        """The arms that are not pinned to one value."""
        return np.flatnonzero(self.lower < self.upper)

    def holds(self, plans: FloatArray) -> FloatArray:
        """Which of these plans (rows) are in the branch."""
        return np.asarray(((plans >= self.lower) & (plans <= self.upper)).all(axis=-1))

    def pinned(self, arm: int, value: float) -> Branch:
        """The plans of this branch with this value on this arm."""
        return self._with(arm, value, value)

    def apart(self, arm: int, value: float, step: float) -> Iterator[Branch]:
        """The plans of this branch with another value on this arm: those below it and those above."""
        below, above = _neighbours(value, step)
        if self.lower[arm] <= below:
            yield self._with(arm, self.lower[arm], below)
        if self.upper[arm] >= above:
            yield self._with(arm, above, self.upper[arm])

    def without(
        self, plan: FloatArray, step: float, *, one_size: bool = False, left_out: BoolArray | None = None
    ) -> Iterator[Branch]:
        """Branches that hold every plan of this one but `plan`, and no plan twice (Lawler's partition).

        The i-th agrees with the plan on the first i free arms and differs on the next; both ways, so that
        plans that contain others are not lost. Where all entries of a plan always add up to the same sum
        (`one_size`), another plan must fall below this one somewhere and rise above it elsewhere, so that
        looking at the arms where it can fall is enough, or at those where it can rise. Parts that differ from
        the plan on arms of `left_out` are left out.
        """
        rest, arms = self, self.free
        if one_size:
            falls, rises = arms[plan[arms] > self.lower[arms]], arms[plan[arms] < self.upper[arms]]
            arms = falls if len(falls) <= len(rises) else rises
        for arm in arms:
            if left_out is None or not left_out[arm]:
                yield from rest.apart(arm, plan[arm], step)
            rest = rest.pinned(arm, plan[arm])

    def _with(self, arm: int, low: float, high: float) -> Branch:
        lower, upper = self.lower.copy(), self.upper.copy()
        lower[arm], upper[arm] = low, high
        return Branch(lower, upper)


def _neighbours(value: float, step: float) -> tuple[float, float]:
    """The nearest values a plan may have on either side; without a step, the nearest floats."""
    if step:
        return value - step, value + step
    return float(np.nextafter(value, -np.inf)), float(np.nextafter(value, np.inf))
