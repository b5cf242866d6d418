"""What people should know about a problem beside its numbers; it decides nothing."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from surepick.core.arrays import FloatArray, as_floats
from surepick.core.given.numbers import aligned
from surepick.core.wording import in_short, plural
from surepick.errors import ProblemError

Range = tuple[float, float]
LISTED = "listed"  # the order in which measurements of one round are made, unless it is balanced


@dataclass(frozen=True)
class Listing:
    """How complete a list of plans is that a search found in a larger family.

    `chance_missing` is the estimated chance that the best plan of the family is not in the list, if the truth
    is like one more draw, and `chance_missing_at_most` bounds it at 95%; None where nothing can be said.
    """

    n_plans: int
    how: str  # "draws", "best" or "all"
    explanation: str
    chance_missing: float | None = None
    chance_missing_at_most: float | None = None

    @property
    def is_complete(self) -> bool:
        """Whether every plan of the family is listed."""
        return self.how == "all"

    @property
    def words(self) -> str:
        """The plans that the answer is the best of."""
        return f"the {self.n_plans:,} listed plans"

    def warning(self, delta: float) -> str | None:
        """Return a warning if the best plan of all is missing with a chance above delta, else None.

        >>> print(Listing(1000, "draws", "", 0.97, 1.0).warning(0.05))
        the best plan of all is missing from the list with a chance of about 0.97 (more than delta, 0.05):
        the guarantee is for the best of the 1,000 listed plans
        """
        chance = self.chance_missing
        if self.is_complete or (chance is not None and chance <= delta):
            return None
        missing = "it is unknown how likely the best plan of all is missing from the list"
        if chance is not None:
            about = f"with a chance of about {chance:.2g} (more than delta, {delta:g})"
            missing = f"the best plan of all is missing from the list {about}"
        return f"{missing}: the guarantee is for the best of {self.words}"


@dataclass(frozen=True)
class About:
    """Title and unit of a problem, the values that are plausible, how complete its list is, and the order.

    `unit` is that of a measurement and of a plan's value. `plausible` has the lowest and the highest value of
    a plausible measurement, one pair per arm: others are asked about before they are recorded. `listing` is
    None where the plans are exactly those that were given, and where they are not listed. `order` is that of
    measuring within a round: "balanced" (also where it is empty) or "listed".
    """

    title: str = ""
    unit: str = ""
    plausible: tuple[Range, ...] | None = None
    listing: Listing | None = None
    order: str = ""
    noun: str = ""  # for a plan: "route"; empty: "plan"

    def plans(self, n: int) -> str:
        """Return n plans in the words of this problem: "6 routes"."""
        return f"{in_short(n)} {plural(n, self.noun or 'plan')}"

    def to_json(self) -> dict[str, Any]:
        """Return the settings that are known as JSON values; infinite ends are null."""
        known = {name: value for name, value in asdict(self).items() if value}
        if self.plausible is not None:
            known["plausible"] = [
                [end if math.isfinite(end) else None for end in pair] for pair in self.plausible
            ]
        return known

    @classmethod
    def from_json(cls, kept: Mapping[str, Any] | None) -> About:
        """Invert `to_json`.

        >>> about = About("Trips", "min", ((0.0, math.inf),), Listing(9, "draws", "nine", 0.1, 0.3))
        >>> About.from_json(about.to_json()) == about
        True
        """
        found = dict(kept or {})
        if "plausible" in found:
            found["plausible"] = tuple(
                (-math.inf if low is None else float(low), math.inf if high is None else float(high))
                for low, high in found["plausible"]
            )
        if "listing" in found:
            found["listing"] = Listing(**found["listing"])
        return cls(**found)


def plausible_pairs(given: Any, arms: Sequence[str]) -> tuple[Range, ...]:
    """Return the plausible values of each arm, from one pair (low, high) or one per arm."""
    pairs = as_floats(aligned("plausible", given, arms))
    is_fit = pairs is not None and pairs.shape in ((2,), (len(arms), 2))
    if pairs is None or not is_fit or not (pairs.T[0] < pairs.T[1]).all():
        raise ProblemError(
            f"plausible must be (low, high) with low below high, or one such pair per arm, got {given!r}",
            field="plausible",
        )
    return tuple((low, high) for low, high in np.broadcast_to(pairs, (len(arms), 2)).tolist())


def plausible_range(
    guess: FloatArray, spread: FloatArray, noise_scale: FloatArray | None
) -> tuple[Range, ...] | None:
    """Return the plausible values of each arm: within twice the spread and four noise scales of the guess.

    None where the spread is 0 for all arms, as it is unknown how far the guess may be off. A noise scale
    that is not known yet is taken for half the spread.

    >>> plausible_range(np.array([8.0]), np.array([5.0]), np.array([0.5]))
    ((-4.0, 20.0),)
    """
    if not spread.any():
        return None
    reach = 2 * spread + 4 * (spread / 2 if noise_scale is None else noise_scale)
    return tuple(zip((guess - reach).tolist(), (guess + reach).tolist(), strict=True))
