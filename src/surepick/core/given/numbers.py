"""Numbers with one entry per arm or plan, as a user gives them: their types and their checks.

Numbers that carry labels (a dictionary, a pandas Series or DataFrame) are put in order by them, never taken
by position: `aligned` is the one place that does so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from surepick.core.arrays import FloatArray, as_floats, brief, first_true
from surepick.errors import ProblemError, suggestion

if TYPE_CHECKING:
    import pandas as pd

# One number for all arms, or one for each: in their order, or by name.
PerArm: TypeAlias = "float | Sequence[float] | FloatArray | Mapping[str, float] | pd.Series[Any]"
Goal: TypeAlias = Literal["smallest", "largest"]
Numbers: TypeAlias = "npt.ArrayLike | Mapping[str, Any] | pd.Series[Any] | pd.DataFrame"
# by the names of arms: the mean, or the two numbers between which it lies
Known: TypeAlias = Mapping[str, float | Sequence[float]]

ROUNDING = 1e-9  # of the width: how far a mean of measurements may lie outside its bounds by rounding
# A value may lie this many noise scales from zero. A double has sixteen digits: at 1e10 the sum of 1e5 values
# is rounded by a fiftieth of what the noise leaves open (L * 1.1e-16 * sqrt(n) / 6 against 1 / sqrt(n)), at
# 1e13 the rounding outweighs the noise. Policies square values and multiply the squares, so that at 1e155
# they would overflow.
MOST_SCALES = 1e10
# Noise scales, costs and entries of plans: the products of their squares have to stay within 1e-308..1e308.
SMALLEST, LARGEST = 1e-30, 1e30


def is_smallest(goal: str) -> bool:
    """Return whether this goal is the smallest value; "largest" is the other one there is."""
    if goal not in ("smallest", "largest"):
        raise ProblemError(f"goal must be 'smallest' or 'largest', got {goal!r}", field="goal")
    return goal == "smallest"


def names_for(kind: str, given: Sequence[str] | None, count: int) -> tuple[str, ...]:
    """Return the given names, checked to be all different; or else the kind with numbers, "arm 0"."""
    if given is None:
        return tuple(f"{kind} {i}" for i in range(count))
    field = "arms" if kind == "arm" else f"{kind}_names"
    if isinstance(given, str):
        raise ProblemError(f"{field} must be a list of names, got the text {given!r}", field=field)
    names = tuple(str(name) for name in given)
    if len(names) != count:
        raise ProblemError(
            f"{field} must have one name for each of the {count} {kind}s, got {len(names)}", field=field
        )
    if len(set(names)) < count:
        twice = Counter(names).most_common(1)[0][0]
        raise ProblemError(
            f"{kind} names must differ, got {twice!r} more than once; rename one of them", field=field
        )
    if "" in names:
        raise ProblemError(f"{kind} {names.index('')} has an empty name; give it one", field=field)
    return names


def index_of(kind: str, name: str, names: tuple[str, ...], *, field: str = "") -> int:
    """Return the index of this name; errors blame the argument `field`, or else the kind ("arm", "plan")."""
    try:
        return names.index(name)
    except ValueError:
        raise ProblemError(
            f"there is no {kind} named {name!r}; {suggestion(name, names)}", field=field or kind
        ) from None


def labels_of(given: object, *, columns: bool = False) -> tuple[str, ...] | None:
    """Return the labels of these numbers: the keys of a dictionary, or the index of pandas.

    With `columns`, those of the columns of a DataFrame. None where there are none but the positions
    0, 1, 2, ... that pandas puts there by itself.

    >>> labels_of({"road": 1.0, "rail": 2.0}), labels_of([1.0, 2.0])
    (('road', 'rail'), None)
    """
    labels = _labels(given, columns)
    return None if labels is None or (not isinstance(given, Mapping) and _are_positions(labels)) else labels


def aligned(what: str, given: Any, names: Sequence[str], *, kind: str = "arm") -> Any:
    """Return these numbers in the order of the names if they carry labels, otherwise as they came.

    Labels that are no names, names without a label and labels that repeat are refused. The positions that
    pandas numbers rows with by itself are labels only where the names are those very numbers.

    >>> aligned("costs", {"rail": 2.0, "road": 1.0}, ("road", "rail"))
    [1.0, 2.0]
    """
    labels = _labels(given)
    if labels is None:
        return given
    if isinstance(given, Mapping):
        values = list(given.values())
        return [values[i] for i in _places(what, labels, names, kind)]
    if _are_positions(labels) and set(labels) != set(names):
        return given.to_numpy()
    return given.to_numpy()[_places(what, labels, names, kind, by_position=True)]


def aligned_table(
    what: str, given: Any, rows: Sequence[str], columns: Sequence[str], *, kinds: tuple[str, str]
) -> Any:
    """Return a table in the order of these rows and columns, if it is a DataFrame with labels."""
    labels = labels_of(given, columns=True)
    if labels is not None:
        given = given.iloc[:, _places(what, labels, columns, kinds[1], by_position=True)]
    return aligned(what, given, rows, kind=kinds[0])


def _labels(given: object, columns: bool = False) -> tuple[str, ...] | None:
    if isinstance(given, Mapping):
        return None if columns else tuple(map(str, given))
    found = getattr(given, "columns" if columns else "index", None)
    if found is None or callable(found) or not hasattr(given, "to_numpy"):  # a list has a method `index`
        return None
    return tuple(map(str, found)) if hasattr(given, "index") else None


def _are_positions(labels: Sequence[str]) -> bool:
    return list(labels) == [str(i) for i in range(len(labels))]


def _places(
    what: str, labels: Sequence[str], names: Sequence[str], kind: str, *, by_position: bool = False
) -> list[int]:
    """Return the position of each name among the labels."""
    way_out = " (to take them in the order in which they stand, pass .to_numpy())" if by_position else ""
    known, at = set(names), {label: i for i, label in enumerate(labels)}
    for label in labels:
        if label not in known:
            raise ProblemError(
                f"{what} has the label {label!r}, which is no {kind}; {suggestion(label, names)}{way_out}",
                field=what,
            )
    if len(at) < len(labels):
        twice = Counter(labels).most_common(1)[0][0]
        raise ProblemError(f"{what} has the label {twice!r} more than once; keep one of them", field=what)
    for name in names:
        if name not in at:
            raise ProblemError(
                f"{what} has no number for the {kind} {name!r}; it needs one for each{way_out}", field=what
            )
    return [at[name] for name in names]


def vector(
    what: str,
    given: Numbers | float,
    names: Sequence[str],
    *,
    kind: str = "arm",
    one_for_all: bool = False,
    infinite: bool = False,
) -> FloatArray:
    """Return one number per arm, in order or by name; one alone holds for all where `one_for_all`.

    `kind` is the word for an arm in error messages. Infinities are refused unless `infinite`, nan always.

    >>> vector("cost", {"rail": 2.0, "road": 1.0}, ["road", "rail"]).tolist()
    [1.0, 2.0]
    """
    expected = f"one number or one per {kind}" if one_for_all else f"one number per {kind}"
    array = as_floats(aligned(what, given, names, kind=kind))
    if array is None:
        raise ProblemError(f"{what} must be {expected}, got {given!r}", field=what)
    if array.ndim == 0 and one_for_all:
        array = np.full(len(names), float(array))
    if array.shape != (len(names),):
        raise ProblemError(
            f"{what} must be {expected}, for {len(names)} {kind}s, got shape {array.shape}", field=what
        )
    s = first_true(np.isnan(array) if infinite else ~np.isfinite(array))
    if s is not None:
        must = "a number" if infinite else "finite"
        raise ProblemError(f"{what} of {kind} {s} ({names[s]!r}) must be {must}, got {array[s]}", field=what)
    return array


def per_arm(what: str, given: PerArm, arms: Sequence[str], *, kind: str = "arm") -> FloatArray:
    """Return one positive number per arm, from one number, one per arm, or numbers by arm name.

    >>> per_arm("cost", 2.0, ["road", "rail"]).tolist()
    [2.0, 2.0]
    """
    array = vector(what, given, arms, kind=kind, one_for_all=True)
    s = first_true((array < SMALLEST) | (array > LARGEST))
    if s is not None:
        must = f"lie between {SMALLEST:g} and {LARGEST:g}" if array[s] > 0 else "be positive"
        advice = "; use another unit" if array[s] > 0 else ""
        raise ProblemError(
            f"{what} of {kind} {s} ({arms[s]!r}) must {must}, got {array[s]}{advice}", field=what
        )
    return array


def half_widths(spread: Numbers | float, names: Sequence[str]) -> FloatArray:
    """Return how far each mean may lie from its guess, one number per arm, from one for all or one each."""
    widths = vector("spread", spread, names, one_for_all=True)
    if (widths < 0).any():
        raise ProblemError(f"spread must be 0 or more, got {widths.min():g}", field="spread")
    return widths


def furthest_values(noise_scale: FloatArray | None, n_arms: int) -> FloatArray:
    """Return how far from zero values of each arm may lie without losing precision, (n_arms,)."""
    return np.full(n_arms, LARGEST) if noise_scale is None else MOST_SCALES * noise_scale


def scale_and_bounds(
    noise: PerArm | None, low: Numbers | float | None, high: Numbers | float | None, arms: Sequence[str]
) -> tuple[FloatArray | None, FloatArray | None]:
    """Return the noise scale of each arm and the limits (n_arms, 2) of its readings; None if not known.

    >>> scale, bounds = scale_and_bounds(None, 0, [4, 6], ["road", "rail"])
    >>> scale.tolist(), bounds.tolist()
    ([2.0, 3.0], [[0.0, 4.0], [0.0, 6.0]])
    """
    scale = None if noise is None else per_arm("noise", noise, arms)
    if low is None and high is None:
        return scale, None
    if low is None or high is None:
        raise ProblemError(
            "readings have a low and a high end, and one is missing; give both",
            field="low" if low is None else "high",
        )
    lows = vector("low", low, arms, one_for_all=True)
    highs = vector("high", high, arms, one_for_all=True)
    s = first_true(lows >= highs)
    if s is not None:
        raise ProblemError(
            f"low must be below high, got {lows[s]:g} and {highs[s]:g} for arm {s} ({arms[s]!r})", field="low"
        )
    half = highs / 2 - lows / 2  # their difference could overflow
    reach = np.maximum(np.abs(lows), np.abs(highs))
    s = first_true((reach > LARGEST) | (reach > MOST_SCALES * np.minimum(half, LARGEST)))
    if s is not None:
        raise ProblemError(
            f"low and high of arm {s} ({arms[s]!r}) must lie within {MOST_SCALES:g} times half their "
            f"distance of zero, and within {LARGEST:g}, got {lows[s]:g} to {highs[s]:g}; subtract a constant",
            field="low",
        )
    if scale is not None and not np.array_equal(scale, half):
        raise ProblemError(
            f"low and high bound the noise by {brief(half)} (half of their distance), and noise says "
            f"{brief(scale)}; leave noise out, or, if you know that it is smaller, low and high",
            field="noise",
        )
    return half, np.column_stack([lows, highs])


def mean_bounds(known: Known, arms: Sequence[str]) -> FloatArray:
    """Return the lowest and highest mean of each arm, (n_arms, 2): equal where it is known exactly.

    >>> mean_bounds({"rail": 3, "road": (1, 2)}, ["road", "rail", "sea"]).tolist()
    [[1.0, 2.0], [3.0, 3.0], [-inf, inf]]
    """
    if not isinstance(known, Mapping):
        raise ProblemError(f"known is a dictionary of means by arm, got {known!r}", field="known")
    found, at = np.tile([-np.inf, np.inf], (len(arms), 1)), {name: s for s, name in enumerate(arms)}
    for name, value in known.items():
        if name not in at:
            raise ProblemError(
                f"known has {name!r}, and no arm is called so; {suggestion(str(name), arms)}", field="known"
            )
        ends = as_floats(value)
        if ends is not None and ends.ndim == 0:
            ends = np.full(2, ends)
        if ends is None or ends.shape != (2,) or not (np.abs(ends) <= LARGEST).all() or ends[0] > ends[1]:
            raise ProblemError(
                f"known says of arm {name!r} its mean, or (low, high) between which it lies, got {value!r}",
                field="known",
            )
        found[at[name]] = ends
    return found


def outside(bounds: FloatArray, reading: int, value: float) -> bool:
    """Return whether a value of this reading, or a mean of values, lies outside the bounds of readings."""
    low, high = bounds[reading].tolist()
    slack = ROUNDING * (high - low)
    return not low - slack <= value <= high + slack
