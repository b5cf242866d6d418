"""Checks of the numbers that a person gives: refused by name, with what they were and what they may be."""

from __future__ import annotations

import operator
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from surepick.core.arrays import FloatArray
from surepick.errors import ProblemError


def seeded(seed: int) -> np.random.Generator:
    """The generator of this seed, or a clear error for what is not a seed."""
    try:
        return np.random.default_rng(operator.index(seed))
    except (TypeError, ValueError, OverflowError):
        raise ProblemError(f"seed must be a whole number, 0 or more, got {seed!r}", field="seed") from None


def as_count(what: str, given: object, *, most: int | None = None, instead: str = "") -> int:
    """A whole number of at least 1, and where there is a limit at most that; `instead` says what else to do.

    >>> as_count("n_draws", 100)
    100
    """
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
    """These finite numbers as an array of `ndim` dimensions, none of length 0; with `gaps`, nan marks one.

    >>> as_numbers("supply", [1, 2]).tolist()
    [1.0, 2.0]
    """
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


def numbers_for(what: str, given: npt.ArrayLike, count: int, each: str) -> FloatArray:
    """These numbers, exactly one for each of `count` things.

    >>> numbers_for("guess", [3, 4], 2, "items").tolist()
    [3.0, 4.0]
    """
    numbers = as_numbers(what, given)
    if numbers.size != count:
        raise ProblemError(
            f"{what} must have one number for each of the {count} {each}, got {numbers.size}", field=what
        )
    return numbers


def half_widths(spread: npt.ArrayLike, shape: tuple[int, ...]) -> FloatArray:
    """Return how far the means may lie from the guess: one number or one per arm, none negative.

    >>> half_widths(5, (2,)).tolist()
    [5.0, 5.0]
    """
    try:
        widths = np.broadcast_to(np.asarray(spread, dtype=float), shape)
    except (TypeError, ValueError, OverflowError):
        raise ProblemError(
            f"spread must be one number or numbers of shape {shape}, got {spread!r}", field="spread"
        ) from None
    if not ((widths >= 0) & np.isfinite(widths)).all():
        raise ProblemError(f"spread must be 0 or more and finite, got {spread!r}", field="spread")
    return widths
