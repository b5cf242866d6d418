"""A decision about a batch, as it is recorded: what fixes its bets, and two numbers that every value moves.

A run that follows recorded decisions computes the same wealth as the run that took them, whatever machine it
is on. Nothing is decided a second time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from surepick.core.arrays import IntArray

MOST_MEASUREMENTS = 10**6  # in a batch: a forged log exhausts no memory
TOLERANCE = 1e-9  # relative: what another machine may compute otherwise


@dataclass(frozen=True, eq=False)
class Decision:
    """A batch: all that fixes its bets, beside the batches before it.

    Every value so far moves the last two numbers: a run that follows recorded decisions with other values
    finds other numbers.
    """

    leader: Any  # a plan by its number, a basis as text, or a plan as a list; -1 in a first batch
    rivals: Any  # (n,) plans that the leader bets against; those that are not ruled out
    uses: IntArray  # (n_probes,) of each replicate
    n_replicates: int
    is_final: bool = False
    more: Mapping[str, Any] = field(default_factory=dict)  # what else the question bets by, as JSON values
    mean_log_wealth: float = 0.0  # over all rows of all accounts, before the batch
    least_evidence: float = 0.0  # against a rival of the leader, before the batch

    @property
    def is_first(self) -> bool:
        """Whether nothing leads yet: the batch only makes a start."""
        return isinstance(self.leader, int) and self.leader < 0

    @property
    def n_measurements(self) -> int:
        """How many measurements the batch takes."""
        return int(self.uses.sum()) * self.n_replicates

    def to_json(self) -> dict[str, Any]:
        """Return the decision as JSON values: rivals as ranges, and the probes that are used.

        >>> Decision(1, np.array([0, 2, 3]), np.array([4, 0, 5]), 1).to_json()["rivals"]
        [[0, 1], [2, 4]]
        """
        return {
            "leader": self.leader if isinstance(self.leader, str | list) else int(self.leader),
            "rivals": _ranges(self.rivals),
            "uses": [[probe, n] for probe, n in enumerate(self.uses.tolist()) if n],
            "replicates": int(self.n_replicates),
            "final": bool(self.is_final),
            **dict(self.more),
            "wealth": float(self.mean_log_wealth),
            "evidence": float(self.least_evidence),
        }

    @classmethod
    def from_json(cls, body: Mapping[str, Any], n_plans: int, n_probes: int) -> Decision:
        """Return the decision that was recorded; a ValueError if it is none on so many plans and probes.

        A leader that is no number is checked by the run that follows the decision.
        """
        named = {"leader", "rivals", "uses", "replicates", "final", "wealth", "evidence"}
        leader, replicates = body["leader"], body["replicates"]
        uses = np.zeros(n_probes, dtype=np.int64)
        for probe, n in body["uses"]:
            if not (0 <= probe < n_probes and 0 < n <= MOST_MEASUREMENTS):
                raise ValueError(f"a batch cannot use probe {probe!r} {n!r} times")
            uses[probe] = n
        in_range = isinstance(leader, str | list) or -1 <= leader < n_plans
        if not (in_range and 0 < replicates * max(int(uses.sum()), 1) <= MOST_MEASUREMENTS):
            raise ValueError(f"leader {leader!r} or replicates {replicates!r} are out of range")
        rivals = _numbers(body["rivals"], n_plans)
        more = {name: value for name, value in body.items() if name not in named}
        numbers = float(body["wealth"]), float(body["evidence"])
        return cls(leader, rivals, uses, replicates, bool(body["final"]), more, *numbers)


def _ranges(numbers: IntArray) -> list[list[int]]:
    """Return ascending numbers as ranges [begin, end)."""
    if not len(numbers):
        return []
    breaks = np.flatnonzero(np.diff(numbers) != 1) + 1
    return [[int(part[0]), int(part[-1]) + 1] for part in np.split(np.asarray(numbers), breaks)]


def _numbers(ranges: Iterable[tuple[int, int]], n: int) -> IntArray:
    """Return the numbers below n in these ascending ranges."""
    found, last = list[IntArray](), -1
    for begin, end in ranges:
        if not last < begin < end <= n:
            raise ValueError(f"[{begin!r}, {end!r}] is no range of plans")
        found.append(np.arange(begin, end))
        last = end
    return np.concatenate(found) if found else np.zeros(0, dtype=np.int64)


def is_close(mine: float, theirs: float) -> bool:
    """Return whether two numbers are equal up to the rounding of another machine.

    >>> is_close(2.0, 2.0 + 1e-9), is_close(2.0, 2.0 + 1e-8)
    (True, False)
    """
    return abs(mine - theirs) <= TOLERANCE * max(1.0, abs(mine))
