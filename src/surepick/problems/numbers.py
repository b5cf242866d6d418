"""Checks of the numbers that a person gives: refused by name, with what they were and what they may be."""

from __future__ import annotations

import operator
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from surepick.core.arrays import FloatArray, Numbers, vector
from surepick.errors import ProblemError


def seeded(seed: int) -> np.random.Generator:
    """The generator of this seed, or a clear error for what is not a seed."""
    try:
        return np.random.default_rng(operator.index(seed))
    except (TypeError, ValueError, OverflowError):
        raise ProblemError(f"seed must be a whole number, 0 or more, got {seed!r}", field="seed") from None


def as_count(what: str, given: object, *, most: int | None = None, instead: str = "") -> int:
    """A whole number from 1 to `most`; `instead` says what else to do."""
    try:
        count = operator.index(given)  # type: ignore[arg-type]
    except TypeError:
        raise ProblemError(f"{what} must be a whole number, got {given!r}", field=what) from None
    if count < 1:
        raise ProblemError(f"{what} must be at least 1, got {count}", field=what)
    if most is not None and count > most:
        raise ProblemError(f"{what} must be at most {most:,}, got {count:,}; {instead}", field=what)
    return count


def as_numbers(
    what: str, given: npt.ArrayLike | Sequence[object], *, ndim: int = 1, gaps: bool = False
) -> FloatArray:
    """These finite numbers as an array of `ndim` dimensions, none of length 0; with `gaps`, nan marks one."""
    shape = "a list of numbers" if ndim == 1 else "a table of numbers"
    try:
        array = np.array(given, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise ProblemError(f"{what} must be {shape}, got {given!r}", field=what) from None
    if array.ndim != ndim or not array.size:
        raise ProblemError(f"{what} must be {shape}, got shape {array.shape}", field=what)
    wrong = ~np.isfinite(array) & ~(gaps & np.isnan(array))
    if wrong.any():
        where = tuple(int(i) for i in np.argwhere(wrong)[0])
        place = f"entry {where[0]}" if ndim == 1 else f"row {where[0]}, column {where[1]}"
        raise ProblemError(f"{what} must be finite, got {array[where]} in {place}", field=what)
    return array


def half_widths(spread: Numbers, names: Sequence[str]) -> FloatArray:
    """Return how far the means may lie from the guess: one number or one per arm, none negative."""
    widths = vector("spread", spread, names, one_for_all=True)
    if (widths < 0).any():
        raise ProblemError(f"spread must be 0 or more, got {widths.min():g}", field="spread")
    return widths
