"""From rows to the numbers of a comparison: ratios to a reference, errors with intervals, cut-offs.

A run cut off by its budget has used at least the measurements it shows. It is counted with them and whatever
is computed from it is marked as a lower bound; it is never dropped.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from surepick.errors import ParameterError
from surepick.experiments.cases import Row
from surepick.experiments.specs import ALL_PLANS
from surepick.planning.comparison import binomial_interval
from surepick.sessions import codec

CONFIDENCE = 0.95  # of the intervals for error rates


@dataclass(frozen=True)
class Value:
    """A number, or a lower bound of it."""

    number: float
    at_least: bool = False

    def __str__(self) -> str:
        return ("≥ " if self.at_least else "") + brief(self.number)


@dataclass(frozen=True)
class Spread:
    """The mean, sample standard deviation and median of some numbers, of which some may be lower bounds."""

    n: int
    mean: Value
    deviation: float
    median: Value


@dataclass(frozen=True)
class Errors:
    """How many of the answers were wrong, with an exact binomial interval for the error rate."""

    wrong: int
    answers: int
    low: float
    high: float


@dataclass(frozen=True)
class MethodSummary:
    """One method on all instances of one column of a table.

    `relative` is to the reference on the same instance, over the instances where the reference answered.
    """

    label: str
    n_runs: int
    n_cut_off: int
    errors: Errors
    measurements: Spread | None
    relative: Spread | None
    multiple: Spread | None
    seconds: float  # mean of one run
    budgets: tuple[int, ...]


def summarize(label: str, rows: Sequence[Row], reference: Sequence[Row]) -> MethodSummary:
    """What the rows of one method say, beside the reference rows of the same instances."""
    finite = [row for row in rows if math.isfinite(row.limit)]
    return MethodSummary(
        label=label,
        n_runs=len(rows),
        n_cut_off=sum(row.cut_off for row in rows),
        errors=error_rate(sum(row.correct is False for row in rows), sum(not row.cut_off for row in rows)),
        measurements=spread([row.n_measurements for row in rows], [row.cut_off for row in rows]),
        relative=spread(*relative_measurements(rows, reference)),
        multiple=spread([row.multiple for row in finite], [row.cut_off for row in finite]),
        seconds=float(np.mean([row.seconds for row in rows])) if rows else math.nan,
        budgets=tuple(sorted({row.case.budget for row in rows if row.cut_off})),
    )


def relative_measurements(rows: Sequence[Row], reference: Sequence[Row]) -> tuple[list[float], list[bool]]:
    """Measurements over the reference's on the same instance and noise, and which are lower bounds.

    Instances on which the reference itself was cut off have no ratio: the caller reports how many.
    """
    base = {_trial(row): row.n_measurements for row in reference if not row.cut_off}
    paired = [row for row in rows if _trial(row) in base]
    return [row.n_measurements / base[_trial(row)] for row in paired], [row.cut_off for row in paired]


def _trial(row: Row) -> tuple[str, int]:
    """What rows to be compared have in common: the instance, listed or whole, and the noise."""
    problem = {
        name: value for name, value in row.case.problem.items() if name != "plans" or value != ALL_PLANS
    }
    return codec.dumps(problem), row.case.seed


def spread(numbers: Sequence[float], at_least: Sequence[bool]) -> Spread | None:
    """Mean, deviation and median of numbers, some of which may be lower bounds; None when there are none.

    The median is exact when every lower bound lies at or above it: the true numbers are larger still.

    >>> found = spread([1, 2, 9], [False, False, True])
    >>> str(found.mean), str(found.median)
    ('≥ 4', '2')
    """
    if not numbers:
        return None
    values, bounds = np.asarray(numbers, dtype=float), np.asarray(at_least, dtype=bool)
    ranked = bounds[np.lexsort((bounds, values))]  # at equal numbers the exact ones first
    return Spread(
        len(values),
        Value(float(values.mean()), bool(bounds.any())),
        float(values.std(ddof=1)) if len(values) > 1 else math.nan,
        Value(float(np.median(values)), bool(ranked[: len(values) // 2 + 1].any())),
    )


def error_rate(wrong: int, answers: int) -> Errors:
    """The count with its exact (Clopper-Pearson) interval, which covers the true rate in 95% of cases.

    >>> found = error_rate(0, 30)
    >>> found.low, round(found.high, 3)
    (0.0, 0.116)
    """
    if not 0 <= wrong <= answers:
        raise ParameterError(f"wrong answers are between 0 and all {answers} of them, got {wrong}")
    return Errors(wrong, answers, *binomial_interval(wrong, answers, confidence=CONFIDENCE))


def brief(number: float) -> str:
    """The number with two to three digits, as the paper prints them.

    >>> [brief(x) for x in (2.078, 25.71, 64.9, 812.4, 18234.0, 0.0123, 1.0)]
    ['2.1', '26', '65', '812', '1.8e4', '0.012', '1']
    """
    if not math.isfinite(number):
        return "-" if math.isnan(number) else "∞"
    if number == round(number) and abs(number) < 1000:
        return str(round(number))
    if abs(number) >= 1000:
        mantissa, _, exponent = f"{number:.1e}".partition("e")
        return f"{mantissa}e{int(exponent)}"
    return f"{number:.0f}" if abs(number) >= 10 else f"{number:.2g}"
