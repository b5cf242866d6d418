"""Plays: whole plans that are measured, where no list has all plans: one play reads every arm in its plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from surepick.core.arrays import FloatArray, IntArray, first_few
from surepick.errors import ProblemError


@dataclass(frozen=True, eq=False)
class Plays:
    """Plans to play, and how often each: a use of one reads every arm in it (the semi-bandit).

    Where plans are listed plays are probes like others (measure="plan arms"). Behind an oracle they are not
    all known: a request names the plays that it wants, and a run sees counts and sums per arm.

    >>> plays = Plays(np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0]]), np.array([2, 1]))
    >>> plays.n_uses, plays.counts.tolist()
    (3, [2, 3, 1])
    """

    plans: FloatArray  # (n_plays, n_arms) of zeros and ones
    uses: IntArray  # (n_plays,)

    @property
    def n_uses(self) -> int:
        """Plays in all."""
        return int(self.uses.sum())

    @property
    def counts(self) -> IntArray:
        """(n_arms,): how many readings of each arm they give."""
        return np.asarray(np.rint(self.uses @ self.plans), dtype=np.int64)

    def first(self, most: int) -> Plays:
        """Return the first of them, in order, at most this many uses in all."""
        return Plays(self.plans, first_few(self.uses, most))

    def without(self, others: Plays) -> Plays:
        """Return the plays that are left when `others` have been made."""
        return Plays(self.plans, self.uses - others.uses)


@dataclass(frozen=True, eq=False)
class AskedPlays:
    """The plays that have been asked for, by number: the order in which they first were. Immutable.

    Each is a probe like others from then on, with a name and readings, which are those of its arms.

    >>> asked = AskedPlays().with_new([[0, 2]], ["a + c"])
    >>> asked.numbered(Plays(np.array([[0.0, 1.0, 1.0], [1.0, 0.0, 1.0]]), np.array([2, 1])))
    ([[0, 1], [1, 2]], [[1, 2]])
    """

    arms: tuple[tuple[int, ...], ...] = ()  # of each play, in their order
    names: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.arms)

    @cached_property
    def _number(self) -> dict[tuple[int, ...], int]:
        return {arms: number for number, arms in enumerate(self.arms)}

    def numbered(self, plays: Plays) -> tuple[list[list[int]], list[list[int]]]:
        """Return how often each play is to be made, by number, and the arms of those that are new.

        A play that stands twice among them is made as often as both say.
        """
        known, new, uses = self._number, dict[tuple[int, ...], int](), dict[int, int]()
        for plan, n in zip(plays.plans, plays.uses.tolist(), strict=True):
            arms = tuple(np.flatnonzero(plan).tolist())
            if not n:
                continue
            if not arms:
                raise ProblemError(
                    "a plan without arms is to be played, and nothing can be read of it; use BetGapE, which "
                    "plays plans for their readings",
                    field="policy",
                )
            number = known.get(arms)
            if number is None:
                number = new.setdefault(arms, len(known) + len(new))
            uses[number] = uses.get(number, 0) + n
        return [[number, uses[number]] for number in sorted(uses)], [list(arms) for arms in new]

    def with_new(self, arms: Sequence[Sequence[int]], names: Sequence[str]) -> AskedPlays:
        """Return these plays with new ones added; a name that is taken gets a number."""
        own = list(self.names)
        for name in names:
            own.append(name if name not in own else f"{name} ({len(own)})")
        return AskedPlays((*self.arms, *map(tuple, arms)), tuple(own))
