"""Rounding of the numbers that decide, so that decisions do not depend on the linear algebra library.

Libraries round sums differently in the last bits. Two machines then decide alike unless a number lies within
its last bits of the middle between two grid points: about once in 2**(52 - bits) numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from surepick.core.arrays import FloatArray

PRIORITY_BITS, SHARE_BITS, GAIN_BITS, VALUE_BITS = 10, 16, 24, 36


def rounded(values: Any, bits: int) -> Any:
    """Return each number rounded to this many binary digits.

    >>> rounded(np.array([1 / 3, 1000.0, 0.0]), 4).tolist()
    [0.34375, 1024.0, 0.0]
    """
    mantissa, exponent = np.frexp(values)
    return np.ldexp(np.rint(np.ldexp(mantissa, bits)), exponent - bits)


def on_grid(values: FloatArray, bits: int) -> FloatArray:
    """Return the numbers rounded to a common grid: this many binary digits of the largest of them.

    >>> on_grid(np.array([1.0, 0.26, 1e-9]), 2).tolist()
    [1.0, 0.5, 0.0]
    """
    if not values.size:
        return values
    _, exponent = np.frexp(np.abs(values).max())
    return np.asarray(np.ldexp(np.rint(np.ldexp(values, bits - exponent)), exponent - bits))
