"""Arrays and names of one entry per arm or plan: their types, and the checks that a user's numbers pass.

Numbers that carry labels (a dictionary, a pandas Series or DataFrame) are put in order by them, never taken
by position: `aligned` is the one place that does so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from surepick.errors import ProblemError, suggestion

if TYPE_CHECKING:
    import pandas as pd
    from scipy import sparse

FloatArray: TypeAlias = npt.NDArray[np.float64]
IntArray: TypeAlias = npt.NDArray[np.int64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]
Plans: TypeAlias = "FloatArray | sparse.csr_array"
# One number for all arms, or one for each: in their order, or by name.
PerArm: TypeAlias = "float | Sequence[float] | FloatArray | Mapping[str, float] | pd.Series[Any]"
Bounds: TypeAlias = (
    "Sequence[float] | Sequence[Sequence[float]] | FloatArray | Mapping[str, Sequence[float]] | pd.DataFrame"
)
Goal: TypeAlias = Literal["smallest", "largest"]
Numbers: TypeAlias = "npt.ArrayLike | Mapping[str, Any] | pd.Series[Any] | pd.DataFrame"

ROUNDING = 1e-9  # of the width: how far a mean of measurements may lie outside its bounds by rounding
# A value may lie this many noise scales from zero. A double has sixteen digits: at 1e10 the sum of 1e5 values
# is rounded by a fiftieth of what the noise leaves open (L * 1.1e-16 * sqrt(n) / 6 against 1 / sqrt(n)), at
# 1e13 the rounding outweighs the noise. Policies square values and multiply the squares, so that at 1e155
# they would overflow.
MOST_SCALES = 1e10
# Noise scales, costs and entries of plans: the products of their squares have to stay within 1e-308..1e308.
SMALLEST, LARGEST = 1e-30, 1e30


def read_only(value: Any) -> Any:
    """Make an array, dense or sparse, read-only and return it; return anything else unchanged.

    >>> read_only(np.zeros(2)).flags.writeable
    False
    """
    parts = (value.data, value.indices, value.indptr) if hasattr(value, "indptr") else (value,)
    for part in parts:
        if isinstance(part, np.ndarray):
            part.flags.writeable = False
    return value


def is_smallest(goal: str) -> bool:
    """Return whether this goal is the smallest value; "largest" is the other one there is.

    >>> is_smallest("smallest"), is_smallest("largest")
    (True, False)
    """
    if goal not in ("smallest", "largest"):
        raise ProblemError(f"goal must be 'smallest' or 'largest', got {goal!r}", field="goal")
    return goal == "smallest"


def names_for(kind: str, given: Sequence[str] | None, count: int) -> tuple[str, ...]:
    """The names given, checked to be one for each arm or plan and all different; numbers where none are.

    >>> names_for("arm", None, 2)
    ('arm 0', 'arm 1')
    """
    if given is None:
        return tuple(f"{kind} {i}" for i in range(count))
    field = "arms" if kind == "arm" else f"{kind}_names"
    if isinstance(given, str):
        raise ProblemError(
            f"{field} must be a list of names, got the text {given!r}; put it in a list",
            field=field,
        )
    names = tuple(str(name) for name in given)
    if len(names) != count:
        raise ProblemError(
            f"{field} must have one name for each of the {count} {kind}s, got {len(names)}",
            field=field,
        )
    if len(set(names)) < count:
        twice = Counter(names).most_common(1)[0][0]
        raise ProblemError(
            f"{kind} names must differ, got {twice!r} more than once; rename one of them",
            field=field,
        )
    if "" in names:
        raise ProblemError(f"{kind} {names.index('')} has an empty name; give it one", field=field)
    return names


def index_of(kind: str, name: str, names: tuple[str, ...], *, field: str = "") -> int:
    """The index of this arm or plan by its name; `field` is the argument that names it, if not its kind.

    >>> index_of("arm", "rail", ("road", "rail"))
    1
    """
    try:
        return names.index(name)
    except ValueError:
        raise ProblemError(
            f"there is no {kind} named {name!r}; {suggestion(name, names)}", field=field or kind
        ) from None


def labels_of(given: object) -> tuple[str, ...] | None:
    """The labels of these numbers: the keys of a dictionary, the index of a pandas Series or DataFrame.

    None where there are none but the positions 0, 1, 2, ... that pandas puts there by itself.

    >>> labels_of({"road": 1.0, "rail": 2.0}), labels_of([1.0, 2.0])
    (('road', 'rail'), None)
    """
    labels = _labels(given)
    return None if labels is None or (not isinstance(given, Mapping) and _are_positions(labels)) else labels


def column_labels_of(given: object) -> tuple[str, ...] | None:
    """The labels of the columns of a pandas DataFrame; None where there are none but positions."""
    columns = getattr(given, "columns", None)
    if columns is None or not hasattr(given, "index"):
        return None
    labels = tuple(map(str, columns))
    return None if _are_positions(labels) else labels


def first_named(*names: Sequence[str] | None) -> Sequence[str] | None:
    """The first of these names that are there; None where none are.

    >>> first_named(None, ["road", "rail"])
    ['road', 'rail']
    """
    return next((given for given in names if given is not None), None)


def aligned(what: str, given: Any, names: Sequence[str], *, kind: str = "arm") -> Any:
    """These numbers in the order of the names if they carry labels, otherwise as they came.

    Labels that are no names, names without a label and labels that repeat are refused. The positions that
    pandas numbers rows with by itself are labels only where the names are those very numbers.

    >>> aligned("costs", {"rail": 2.0, "road": 1.0}, ("road", "rail"))
    [1.0, 2.0]
    """
    labels = _labels(given)
    if labels is None:
        return given
    if not isinstance(given, Mapping) and _are_positions(labels) and set(labels) != set(names):
        return given.to_numpy()
    at = _places(what, labels, names, kind, by_position=not isinstance(given, Mapping))
    if isinstance(given, Mapping):
        values = list(given.values())
        return [values[i] for i in at]
    return given.to_numpy()[at]


def aligned_table(
    what: str, given: Any, rows: Sequence[str], columns: Sequence[str], *, kinds: tuple[str, str]
) -> Any:
    """A table in the order of the names of its rows and columns, where it is a DataFrame with labels.

    >>> aligned_table("guess", [[1, 2]], ["X"], ["Y", "Z"], kinds=("supplier", "demander"))
    [[1, 2]]
    """
    labels = column_labels_of(given)
    if labels is not None:
        order = _places(what, labels, columns, kinds[1], by_position=True)
        given = given.iloc[:, order]
    return aligned(what, given, rows, kind=kinds[0])


def _labels(given: object) -> tuple[str, ...] | None:
    if isinstance(given, Mapping):
        return tuple(map(str, given))
    index = getattr(given, "index", None)
    if index is None or callable(index) or not hasattr(given, "to_numpy"):  # a list has a method `index`
        return None
    return tuple(map(str, index))


def _are_positions(labels: Sequence[str]) -> bool:
    return list(labels) == [str(i) for i in range(len(labels))]


def _places(
    what: str, labels: Sequence[str], names: Sequence[str], kind: str, *, by_position: bool
) -> list[int]:
    """Return the position of each name among the labels."""
    way_out = " (to take them in the order in which they stand, pass .to_numpy())" if by_position else ""
    known = set(names)
    for label in labels:
        if label not in known:
            raise ProblemError(
                f"{what} has the label {label!r}, and no {kind} is called so; "
                f"{suggestion(label, names)}{way_out}",
                field=what,
            )
    at = {label: i for i, label in enumerate(labels)}
    if len(at) < len(labels):
        twice = Counter(labels).most_common(1)[0][0]
        raise ProblemError(f"{what} has the label {twice!r} more than once; keep one of them", field=what)
    for name in names:
        if name not in at:
            raise ProblemError(
                f"{what} has no number for the {kind} {name!r}; it needs one for each{way_out}", field=what
            )
    return [at[name] for name in names]


def per_arm(what: str, given: PerArm, arms: Sequence[str], *, kind: str = "arm") -> FloatArray:
    """Return one positive number per arm, from one number, one per arm, or numbers by arm name.

    `kind` is the word for an arm in error messages.

    >>> per_arm("costs", 2.0, ["road", "rail"]).tolist()
    [2.0, 2.0]
    >>> per_arm("costs", {"rail": 2.0, "road": 1.0}, ["road", "rail"]).tolist()
    [1.0, 2.0]
    """
    in_order = aligned(what, given, arms, kind=kind)
    try:
        array = np.array(in_order, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise ProblemError(
            f"{what} must be one number or one per {kind}, got {given!r}", field=what
        ) from None
    if array.ndim == 0:
        array = np.full(len(arms), float(array))
    if array.shape != (len(arms),):
        raise ProblemError(
            f"{what} must be one number or one for each of the {len(arms)} {kind}s, got shape {array.shape}",
            field=what,
        )
    bad = np.flatnonzero(~((array > 0) & np.isfinite(array)))
    if bad.size:
        s = int(bad[0])
        raise ProblemError(
            f"{what} of {kind} {s} ({arms[s]!r}) must be positive and finite, got {array[s]}", field=what
        )
    far = np.flatnonzero((array < SMALLEST) | (array > LARGEST))
    if far.size:
        s = int(far[0])
        raise ProblemError(
            f"{what} of {kind} {s} ({arms[s]!r}) must lie between {SMALLEST:g} and {LARGEST:g}, "
            f"got {array[s]}; use another unit",
            field=what,
        )
    return array


def furthest_value(noise_scale: FloatArray | None, arm: int) -> float:
    """Return how far from zero a measurement of this arm may lie without a loss of precision that matters.

    >>> furthest_value(np.array([0.5, 2.0]), 1), furthest_value(None, 0)
    (20000000000.0, 1e+30)
    """
    return LARGEST if noise_scale is None else MOST_SCALES * float(noise_scale[arm])


def furthest_values(noise_scale: FloatArray | None, n_arms: int) -> FloatArray:
    """Return `furthest_value` of every arm, (n_arms,)."""
    return np.full(n_arms, LARGEST) if noise_scale is None else MOST_SCALES * noise_scale


def checked_means(means: Numbers, arms: Sequence[str], what: str = "means") -> FloatArray:
    """These means, or the guess of them, as an array of one finite number for each arm.

    >>> checked_means([1, 2], ["road", "rail"]).tolist()
    [1.0, 2.0]
    """
    in_order = aligned(what, means, arms)
    try:
        array = np.asarray(in_order, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise ProblemError(f"{what} must be one number per arm, got {means!r}", field=what) from None
    if array.shape != (len(arms),):
        raise ProblemError(
            f"{what} must be one number for each of the {len(arms)} arms, got shape {array.shape}",
            field=what,
        )
    if not np.isfinite(array).all():
        s = int(np.flatnonzero(~np.isfinite(array))[0])
        raise ProblemError(f"the mean of arm {s} ({arms[s]!r}) must be finite, got {array[s]}", field=what)
    return array


def ends(low: Numbers | float | None, high: Numbers | float | None, arms: Sequence[str]) -> Bounds | None:
    """Return the limits of readings as pairs, from their low and high ends: one number, or one per arm.

    >>> ends(0, {"rail": 5, "road": 4}, ["road", "rail"])
    [(0.0, 4.0), (0.0, 5.0)]
    """
    if low is None and high is None:
        return None
    if low is None or high is None:
        raise ProblemError(
            "readings have a low and a high end, and one is missing; give both",
            field="low" if low is None else "high",
        )
    if not any(isinstance(end, Mapping | str) or np.ndim(cast(Any, end)) for end in (low, high)):
        return cast(Bounds, (low, high))
    found = []
    for field, given in (("low", low), ("high", high)):
        try:
            found.append(np.array(aligned(field, given, arms), dtype=float))
        except (TypeError, ValueError, OverflowError) as error:
            if isinstance(error, ProblemError):
                raise
            raise ProblemError(
                f"{field} must be a number or one per arm, got {given!r}", field=field
            ) from None
    try:
        return list(zip(*(array.tolist() for array in np.broadcast_arrays(*found)), strict=True))
    except ValueError:
        raise ProblemError(
            f"low and high must be numbers or one per arm, got {low!r} and {high!r}", field="low"
        ) from None


def scale_and_bounds(
    noise_scale: PerArm | None, bounds: Bounds | None, arms: Sequence[str]
) -> tuple[FloatArray | None, FloatArray | None]:
    """Return the noise scale of each arm and the bounds of its measurements, None for what is not known.

    >>> scale, bounds = scale_and_bounds(None, (0.0, 4.0), ["road", "rail"])
    >>> scale.tolist(), bounds.tolist()
    ([2.0, 2.0], [[0.0, 4.0], [0.0, 4.0]])
    """
    scale = None if noise_scale is None else per_arm("noise", noise_scale, arms)
    if bounds is None:
        return scale, None
    limits = _pairs(bounds, arms)
    half = (limits[:, 1] - limits[:, 0]) / 2
    if scale is not None and not np.array_equal(scale, half):
        raise ProblemError(
            f"low and high bound the noise by {brief(half)} (half of their distance), and noise says "
            f"{brief(scale)}; leave noise out, or, if you know that it is smaller, low and high",
            field="noise",
        )
    return half, limits


def _pairs(bounds: Bounds, arms: Sequence[str]) -> FloatArray:
    """Low and high for each arm, from one pair or one per arm."""
    in_order = aligned_table("bounds", bounds, arms, ("low", "high"), kinds=("arm", "column"))
    try:
        array = np.array(in_order, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise ProblemError(
            f"low and high must be numbers, or one per arm, got {bounds!r}", field="low"
        ) from None
    if array.shape == (2,):
        array = np.tile(array, (len(arms), 1))
    if array.shape != (len(arms), 2):
        raise ProblemError(
            f"low and high must be numbers, or one for each of the {len(arms)} arms, got shape {array.shape}",
            field="low",
        )
    bad = np.flatnonzero(~(np.isfinite(array).all(axis=1) & (array[:, 0] < array[:, 1])))
    if bad.size:
        s = int(bad[0])
        raise ProblemError(
            f"low must be below high, and both finite, got {array[s].tolist()} for arm {s} ({arms[s]!r})",
            field="low",
        )
    half = array[:, 1] / 2 - array[:, 0] / 2  # which cannot overflow
    furthest = np.minimum(MOST_SCALES * np.minimum(half, LARGEST), LARGEST)
    far = np.flatnonzero(np.abs(array).max(axis=1) > furthest)
    if far.size:
        s = int(far[0])
        raise ProblemError(
            f"low and high of arm {s} ({arms[s]!r}) must lie within {MOST_SCALES:g} times half their "
            f"distance of zero, and within {LARGEST:g}, got {array[s].tolist()}; subtract a constant",
            field="low",
        )
    return array


def outside(bounds: FloatArray, arm: int, value: float, count: int = 1) -> bool:
    """Return whether the sum of `count` measurements of this arm says that one lay outside the bounds.

    >>> outside(np.array([[0.0, 1.0]]), 0, 1.5), outside(np.array([[0.0, 1.0]]), 0, 1.5, count=2)
    (True, False)
    """
    low, high = bounds[arm].tolist()
    slack = ROUNDING * (high - low)
    return not low - slack <= value / count <= high + slack


def brief(array: FloatArray) -> str:
    """The smallest and the largest of these numbers, or the one that all of them are.

    >>> brief(np.array([2.0, 1.0, 2.0])), brief(np.ones(2))
    ('1..2', '1')
    """
    low, high = float(array.min()), float(array.max())
    return f"{low:g}" if low == high else f"{low:g}..{high:g}"


def as_dense(matrix: Any) -> FloatArray:
    """These numbers as a dense array, be they sparse or not."""
    return matrix if isinstance(matrix, np.ndarray) else np.asarray(matrix.toarray())


def first_few(counts: IntArray, most: int) -> IntArray:
    """No more than this many of these in all, the first ones first.

    >>> first_few(np.array([2, 0, 3, 1]), 4).tolist()
    [2, 0, 2, 0]
    """
    before = np.cumsum(counts) - counts
    return np.asarray(np.minimum(counts, np.maximum(most - before, 0)))
