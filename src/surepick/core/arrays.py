"""Types of arrays, and small operations on arrays, dense or sparse."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from scipy import sparse

FloatArray: TypeAlias = npt.NDArray[np.float64]
IntArray: TypeAlias = npt.NDArray[np.int64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]
Plans: TypeAlias = "FloatArray | sparse.csr_array"


def read_only(value: Any) -> Any:
    """Make an array, dense or sparse, read-only and return it; return anything else unchanged."""
    parts = (value.data, value.indices, value.indptr) if hasattr(value, "indptr") else (value,)
    for part in parts:
        if isinstance(part, np.ndarray):
            part.flags.writeable = False
    return value


def as_floats(given: Any) -> FloatArray | None:
    """Return these numbers as a new array; None if some are no numbers, or no float can hold them."""
    try:
        return np.array(given, dtype=float)
    except (TypeError, ValueError, OverflowError):
        return None


def as_float(given: Any) -> float | None:
    """Return this number as a float; None if it is no single number, or no float can hold it."""
    number = as_floats(given)
    return None if number is None or number.ndim else float(number)


def first_true(mask: BoolArray) -> int | None:
    """Return the index of the first true entry; None if there is none."""
    return int(np.argmax(mask)) if mask.any() else None


def brief(array: FloatArray) -> str:
    """Return the smallest and the largest of these numbers as text, or the one that all of them are."""
    low, high = float(array.min()), float(array.max())
    return f"{low:g}" if low == high else f"{low:g}..{high:g}"


def as_dense(matrix: Any) -> FloatArray:
    """Return a dense or sparse matrix as a dense array."""
    return matrix if isinstance(matrix, np.ndarray) else np.asarray(matrix.toarray())


def without_columns(plans: Any, out: BoolArray) -> Any:
    """Return the plans, dense or sparse, with zeros in these columns."""
    if isinstance(plans, np.ndarray):
        return np.where(out, 0.0, plans)
    found = plans.copy()
    found.data = np.where(out[found.indices], 0.0, found.data)
    found.eliminate_zeros()
    return found


def row_keys(plans: Any) -> list[bytes]:
    """Return bytes that are equal for equal rows, of dense or sparse plans."""
    if isinstance(plans, np.ndarray):
        return [(row + 0.0).tobytes() for row in plans]  # -0.0 is 0.0
    plans.sort_indices()
    ends = zip(plans.indptr[:-1], plans.indptr[1:], strict=True)
    return [plans.indices[a:b].tobytes() + b"|" + plans.data[a:b].tobytes() for a, b in ends]


def divided(a: Any, b: FloatArray | IntArray) -> FloatArray:
    """Return a / b, and 0 where b is not above 0."""
    b = np.asarray(b, dtype=float)
    return np.asarray(np.divide(a, b, out=np.zeros_like(b), where=b > 0))


def golden_multiples(n: int) -> FloatArray:
    """Return n numbers between 0 and 1 that are unlike each other: the fractions of multiples of .618..."""
    return np.asarray(np.modf(0.618033988749895 * np.arange(1, n + 1))[0])


def first_few(counts: IntArray, most: int) -> IntArray:
    """Return these counts cut to a total of at most `most`: earlier entries are kept, later ones are cut.

    >>> first_few(np.array([2, 3, 4]), 4).tolist()
    [2, 2, 0]
    """
    before = np.cumsum(counts) - counts  # the total of all earlier entries
    return np.asarray(np.minimum(counts, np.maximum(most - before, 0)))
