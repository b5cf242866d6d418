"""Checks of the numbers that a person gives: refused by name, with what they were and what they may be."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from surepick.core.arrays import FloatArray, as_floats
from surepick.core.given.numbers import (
    Numbers,
    aligned,
    aligned_table,
    half_widths,
    labels_of,
    names_for,
    vector,
)
from surepick.errors import ParameterError, ProblemError
from surepick.tables import numeral


def seeded(seed: int) -> np.random.Generator:
    """Return the random generator of this seed; refuse what is no seed."""
    try:
        return np.random.default_rng(operator.index(seed))
    except (TypeError, ValueError, OverflowError):
        raise ProblemError(f"seed must be a whole number, 0 or more, got {seed!r}", field="seed") from None


def as_count(what: str, given: object, *, most: int | None = None, instead: str = "") -> int:
    """Return a whole number from 1 to `most`; `instead` says what else to do."""
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
    """Return finite numbers as an array of `ndim` dimensions, not empty; nan marks a gap if `gaps`."""
    shape = "a list of numbers" if ndim == 1 else "a table of numbers"
    array = as_floats(given)
    if array is None:
        raise ProblemError(f"{what} must be {shape}, got {given!r}", field=what)
    if array.ndim != ndim or not array.size:
        raise ProblemError(f"{what} must be {shape}, got shape {array.shape}", field=what)
    wrong = ~np.isfinite(array) & ~(gaps & np.isnan(array))
    if wrong.any():
        where = tuple(int(i) for i in np.argwhere(wrong)[0])
        place = f"entry {where[0]}" if ndim == 1 else f"row {where[0]}, column {where[1]}"
        raise ProblemError(f"{what} must be finite, got {array[where]} in {place}", field=what)
    return array


def is_table(given: Any) -> bool:
    """Return whether these are numbers in rows and columns."""
    numbers = as_floats(given)
    return numbers is not None and numbers.ndim == 2


def as_table(
    what: str,
    given: Any,
    row_names: Sequence[str] | None,
    column_names: Sequence[str] | None,
    *,
    kinds: tuple[str, str],
) -> tuple[FloatArray, tuple[str, ...], tuple[str, ...]]:
    """Return a table of numbers, in which nan marks a gap, and the names of its rows and columns.

    Names that are not given are the labels of a DataFrame, or the kind with a number: "row 0".
    """
    rows, columns = row_names or labels_of(given), column_names or labels_of(given, columns=True)
    table = aligned_table(what, given, rows or (), columns or (), kinds=kinds)
    numbers = as_numbers(what, table, ndim=2, gaps=True)
    return (
        numbers,
        names_for(kinds[0], rows, len(numbers)),
        names_for(kinds[1], columns, numbers.shape[1]),
    )


def in_numbers(
    names: Sequence[str], guess: Numbers | None, spread: Any, noise: Any
) -> tuple[FloatArray | None, FloatArray, Any]:
    """Return guess, spread and noise with every percentage turned into a number.

    A percentage of `spread` is a share of the guess. A percentage of `noise` is a share of guess plus spread,
    the largest that a mean can be. Both are one number or percentage for all arms, or one per arm, in order
    or by name. Noise without a percentage is returned as it is.

    >>> guess, spread, noise = in_numbers(["road", "rail"], [30, 8], {"road": "10%", "rail": 2}, "5%")
    >>> spread.tolist(), noise
    ([3.0, 2.0], [1.6500000000000001, 0.5])
    """
    centre = None if guess is None else vector("guess", guess, names)
    width = half_widths(_shares("spread", spread, names, centre), names)
    largest_mean = None if centre is None else np.abs(centre) + width
    return centre, width, _shares("noise", noise, names, largest_mean)


def _shares(what: str, given: Any, names: Sequence[str], of: FloatArray | None) -> Any:
    """Return these numbers as they are, or, if one is a text such as "10%", as that share of `of`."""
    parts = given.values() if isinstance(given, Mapping) else given if isinstance(given, list) else [given]
    if not any(isinstance(part, str) for part in parts):
        return given
    if of is None:
        raise ProblemError(
            f"{what} in percent needs a guess to take it of; give guess, or a number", field=what
        )
    per_arm = [given] * len(names) if isinstance(given, str) else aligned(what, given, names)
    if len(per_arm) != len(names):
        raise ProblemError(f"{what} needs one number for each of {len(names)} arms", field=what)
    found = []
    for part, base in zip(per_arm, np.abs(of).tolist(), strict=True):
        try:
            share = numeral(part.strip().removesuffix("%")) / 100 * base if isinstance(part, str) else part
        except ParameterError:
            expected = 'numbers, or shares such as "10%"'
            raise ProblemError(f"{what} must be {expected}, got {part!r}", field=what) from None
        found.append(float(share))
    return found
