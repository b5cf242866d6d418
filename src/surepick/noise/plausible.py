"""Check whether a value is implausible as a measurement, so that a person should look at it again.

It only asks. A right value is recorded however odd it is: leaving one out for its size would break the
guarantee of every policy.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from surepick.core.oracle_problem import AnyProblem
from surepick.core.wording import how_many

FAR = 6.0  # noise scales from the mean of an arm: once in 30 million measurements, if the scale is right


def doubt(problem: AnyProblem, reading: int, count: int, mean: float, values: Iterable[float]) -> str | None:
    """Return why one of these values is implausible beside the recorded ones (count, mean), or None.

    >>> from surepick.core.problem import Problem
    >>> problem = Problem([[1, 0], [0, 1]], arms=["road", "rail"], noise=1, goal="largest")
    >>> doubt(problem, 0, 4, 8.0, [8.4, 84.0])
    "84 is 76 away from the mean of 4 measurements of 'road', 8, which is 68 times what the noise explains"
    """
    name, about = problem.reading_names[reading], problem.about
    unit = f" {about.unit}" if about.unit else ""
    stated = problem.noise_scale if problem.knows_noise else None
    noise = math.inf if stated is None else float(stated[reading])
    scale = noise * math.sqrt(1 + 1 / count) if count > 1 and noise > 0 else math.inf
    for value in values:
        if about.plausible is not None and problem.probes is None:  # which is said of arms
            low, high = about.plausible[reading]
            if not low <= value <= high:
                return f"{value:.6g}{unit} is not plausible for {name!r}, which is {_range(low, high)}{unit}"
        if abs(value - mean) > FAR * scale:
            return (
                f"{value:.6g}{unit} is {abs(value - mean):.3g} away from the mean of "
                f"{how_many(count, 'measurement')} of {name!r}, {mean:.4g}, which is "
                f"{abs(value - mean) / scale:.0f} times what the noise explains"
            )
    return None


def _range(low: float, high: float) -> str:
    if math.isinf(low):
        return f"at most {high:.4g}"
    return f"at least {low:.4g}" if math.isinf(high) else f"thought to lie between {low:.4g} and {high:.4g}"
