"""Means that are known before anything is measured: exactly, or to lie between two numbers.

An arm whose mean is known exactly is never measured; it shifts the values of plans by a constant. Bounds on
means rule plans out at once: a plan is out if another one is at least as good all over the box of means.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from surepick.core.arrays import LARGEST, BoolArray, FloatArray
from surepick.errors import ProblemError, suggestion

# by the names of arms: the mean, or the two numbers between which it lies
Known: TypeAlias = Mapping[str, float | Sequence[float]]

_MOST_COMPARED = 256  # plans that all others are compared with over the box, those with the best middle


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
        found[at[name]] = _interval(name, value)
    return found


def _interval(name: str, value: Any) -> FloatArray:
    try:
        ends = np.array(value, dtype=float)
        ends = np.full(2, ends) if ends.ndim == 0 else ends
    except (TypeError, ValueError, OverflowError):
        ends = np.zeros(0)
    if ends.shape != (2,) or not (np.abs(ends) <= LARGEST).all() or ends[0] > ends[1]:
        raise ProblemError(
            f"known says of arm {name!r} its mean, or (low, high) between which it lies, got {value!r}",
            field="known",
        )
    return ends


def refuse_contradiction(means: FloatArray, bounds: FloatArray, arms: Sequence[str]) -> None:
    """Refuse readings whose bounds leave no room for what is known of their mean."""
    wrong = np.flatnonzero((means[:, 0] > bounds[:, 1]) | (means[:, 1] < bounds[:, 0]))
    if wrong.size:
        s = int(wrong[0])
        raise ProblemError(
            f"the known mean of arm {arms[s]!r}, {means[s, 0]:g} to {means[s, 1]:g}, lies outside the bounds "
            f"of its readings, {bounds[s, 0]:g} to {bounds[s, 1]:g}",
            field="known",
        )


def without_columns(plans: Any, out: BoolArray) -> Any:
    """Return the plans, dense or sparse, with zeros in these columns."""
    if isinstance(plans, np.ndarray):
        return np.where(out, 0.0, plans)
    found = plans.copy()
    found.data = np.where(out[found.indices], 0.0, found.data)
    found.eliminate_zeros()
    return found


def contenders(plans: Any, constants: FloatArray, means: FloatArray) -> BoolArray:
    """Return which plans may still be the only best one, by what is known of the means.

    - `plans`: (n_plans, n_arms) larger is better, with zeros where a mean is known exactly
    - `constants`: (n_plans,) what the exactly known arms add
    - `means`: (n_arms, 2) lowest and highest mean

    Of plans that differ in exactly known arms alone the best one stays, the first of equals. Each plan that
    is out is no better than one that stays, whatever the means are.
    """
    n = int(plans.shape[0])
    stays = np.zeros(n, dtype=bool)
    best_of: dict[bytes, int] = {}
    for k, key in enumerate(row_keys(plans)):
        first = best_of.setdefault(key, k)
        if constants[k] > constants[first]:
            best_of[key] = k
    stays[list(best_of.values())] = True
    is_bounded = np.asarray(np.isfinite(means).all(axis=1))
    if not (means[is_bounded, 0] < means[is_bounded, 1]).any():
        return stays
    low, high = np.where(is_bounded[:, None], means, 0.0).T
    middle, half = (low + high) / 2, (high - low) / 2
    value = np.asarray(plans @ middle) + constants
    order = np.argsort(-np.where(stays, value, -np.inf), kind="stable")[:_MOST_COMPARED]
    for i in order[stays[order]].tolist():
        if not stays[i]:
            continue
        difference = abs(plans[[i] * n] - plans)
        # the least of (plan i - plan j).mu over the box, where both have the same amounts of unbounded arms
        least = value[i] - value - np.asarray(difference @ half)
        comparable = np.asarray(difference @ (~is_bounded).astype(float)) == 0
        beaten = comparable & (least > 0)
        beaten[i] = False
        stays &= ~beaten
    return stays


def row_keys(plans: Any) -> list[bytes]:
    """Return bytes that are equal for equal rows, of dense or sparse plans."""
    if isinstance(plans, np.ndarray):
        return [(row + 0.0).tobytes() for row in plans]  # -0.0 is 0.0
    plans.sort_indices()
    ends = zip(plans.indptr[:-1], plans.indptr[1:], strict=True)
    return [plans.indices[a:b].tobytes() + b"|" + plans.data[a:b].tobytes() for a, b in ends]
