"""Plays: whole plans that are tried, each use of which reads every arm in the plan (the semi-bandit).

Where plans are listed these are probes like others (`probes="plan arms"` of a `Problem`). Behind an oracle
they are not all known: a request names the plays that it wants, found by the oracle as they are needed.
What a run sees of them are counts and sums per arm: readings are of single arms, with noise of their own.
A play that was asked for is a probe like others from then on (`AskedPlays`): it has a number, a name and
readings, which are those of its arms.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from surepick.core.arrays import FloatArray, IntArray, first_few
from surepick.errors import ProblemError

if TYPE_CHECKING:
    from surepick.core.plan_sets import Branch, PlanSet

# The play with the largest sum of these numbers, none of them negative.
FindPlay: TypeAlias = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True, eq=False)
class Plays:
    """Plans to play, and how often each.

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
        """No more than this many of them, in order."""
        return Plays(self.plans, first_few(self.uses, most))

    def without(self, others: Plays) -> Plays:
        """Return the plays that are left when `others` have been made."""
        return Plays(self.plans, self.uses - others.uses)


@dataclass(frozen=True, eq=False)
class AskedPlays:
    """The plays that have been asked for, by number: the order in which they first were. Immutable.

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
        """How often each play is to be made, by number; and the arms of those that are new, in their order.

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
        taken, own = set(self.names), list[str]()
        for name in names:
            free = name if name not in taken else f"{name} ({len(self) + len(own)})"
            own.append(free)
            taken.add(free)
        return AskedPlays((*self.arms, *map(tuple, arms)), (*self.names, *own))


def play_finder(plans: PlanSet, box: Branch) -> FindPlay:
    """The oracle of these plans as one of plays; the box holds all plans.

    Inside, plans that are minimised are negated, and their entries 0 or -1: a play has zeros and ones.
    """
    ends = set(box.lower.tolist()) | set(box.upper.tolist())
    if not (ends <= {0.0, 1.0} or ends <= {0.0, -1.0}):
        raise ProblemError(
            'probes="plan arms" is for plans of zeros and ones, and some plan uses an arm more than once: '
            "what a play would read of it is not defined; list the plans in a Problem with probes of its own",
            field="measure",
        )
    sign = -1.0 if -1.0 in ends else 1.0

    def find(weights: FloatArray) -> FloatArray:
        plan = plans.best(sign * weights, box)
        assert plan is not None
        return np.abs(plan)

    return find
