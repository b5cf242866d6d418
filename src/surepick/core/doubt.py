"""Doubts: what the values show that contradicts the assumption of a guarantee."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

CODES = ("noise_larger", "heavy_tails", "coarse", "dependent", "drift", "released")


@dataclass(frozen=True)
class Doubt:
    """Something that the guarantee does not allow, seen in one arm, or in all arms together (`arm` None).

    `stated` is the standard deviation of one measurement that the guarantee assumes, None where it is
    unknown; `seen` is the one that the values show.
    """

    code: str  # one of CODES
    arm: str | None
    n_measurements: int
    stated: float | None
    seen: float
    text: str
    advice: str

    def __str__(self) -> str:
        return f"{self.text}; {self.advice}"


def no_guarantee(doubts: Sequence[Doubt]) -> str:
    """Return why the guarantee does not apply, in one line: the first doubt, and how many more there are."""
    more = f" (and {len(doubts) - 1} more)" if len(doubts) > 1 else ""
    return f"the guarantee does not apply: {doubts[0].text}{more}"
