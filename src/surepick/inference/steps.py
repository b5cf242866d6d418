"""Bet sizes as a decision records them: whole numbers, which every reader turns into the same sizes.

A bet may have any size that was fixed before its batch. So sizes are rounded first, recorded as whole
numbers, and the bets are made with what was recorded: a log has few digits, and rounding on another machine
cannot change a bet.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from surepick.core.arrays import FloatArray, IntArray, divided

STEPS = 16  # of a doubling: sizes are rounded to a sixteenth of an octave
CENTRE_STEPS = 2**12  # of an interval: where a centre lies between the bounds of a reading
_MOST = 16 * 1000  # steps: sizes between 2^-1000 and 2^1000
_NO_BET = -1  # as the centre of a mixture


def to_steps(sizes: FloatArray) -> IntArray:
    """Return sizes above 0 as whole steps, logarithmically.

    >>> to_steps(np.array([1.0, 2.0, 0.51])).tolist()
    [0, 16, -16]
    """
    logs = np.log2(np.maximum(sizes, 1e-300))
    return np.asarray(np.rint(np.clip(STEPS * logs, -_MOST, _MOST)).astype(np.int64))


def from_steps(steps: Sequence[int] | IntArray) -> FloatArray:
    """Return the sizes of these steps.

    >>> from_steps([0, 16, -16]).tolist()
    [1.0, 2.0, 0.5]
    """
    return np.asarray(np.exp2(np.asarray(steps, dtype=float) / STEPS))


def mixture_steps(centre: FloatArray, variance: FloatArray) -> list[IntArray]:
    """Return mixtures N(centre, variance) over bet sizes as steps: centres in errors, and the errors.

    There is no bet where the centre is below 0 or nothing is known.
    """
    is_bet = np.isfinite(variance) & (centre >= 0)
    error = np.sqrt(np.where(is_bet, variance, 1.0))
    in_errors = divided(np.where(is_bet, centre, 0.0), error)
    centres = np.where(is_bet, np.minimum(np.rint(STEPS * in_errors), _MOST), _NO_BET)
    return [centres.astype(np.int64), to_steps(error)]


def mixture_of(steps: Sequence[Any]) -> tuple[FloatArray, FloatArray]:
    """Return centre and variance of these mixtures; a centre is below 0 where there is no bet.

    >>> [part.tolist() for part in mixture_of([[8, -1], [16, 0]])]
    [[1.0, -0.0625], [4.0, 1.0]]
    """
    error = from_steps(steps[1])
    return np.asarray(steps[0], dtype=float) / STEPS * error, error * error


def are_steps(values: Any, n: int, least: int = -_MOST) -> bool:
    """Return whether these are n whole numbers, of sizes that there can be."""
    if isinstance(values, np.ndarray):
        values = values.tolist()
    is_list = isinstance(values, list) and len(values) == n
    return is_list and all(type(step) is int and least <= step <= _MOST for step in values)


def are_mixtures(recorded: Any, n: int) -> bool:
    """Return whether these are n mixtures as steps, and perhaps the units of their fixed bet sizes."""
    if not isinstance(recorded, list) or len(recorded) not in (2, 3):
        return False
    return are_steps(recorded[0], n, least=_NO_BET) and all(are_steps(part, n) for part in recorded[1:])


def is_share(value: Any) -> bool:
    """Return whether this is a share of some cash, neither nothing nor all of it."""
    return type(value) is float and 0 < value < 1
