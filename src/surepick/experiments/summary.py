"""From rows to numbers: ratios to a reference, quantiles, errors with exact intervals, losses.

A run cut off by its budget needed at least the measurements it shows. It counts with them, and whatever is
computed from it is marked as a lower bound; it is never dropped.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from surepick.experiments.cases import Row
from surepick.simulation.comparison import binomial_interval

GROUP = 30  # runs: the paper's tables are means of this many


@dataclass(frozen=True)
class Value:
    """A number, or a lower bound of it."""

    number: float
    at_least: bool = False

    def __str__(self) -> str:
        return ("≥ " if self.at_least else "") + brief(self.number)


@dataclass(frozen=True)
class Distribution:
    """How numbers are distributed, some of which may be lower bounds; `high` is their 90% quantile.

    `group_means` are the least and the largest mean of disjoint groups of `GROUP` numbers, where there are
    at least two groups: they show what a mean of so many runs can settle.
    """

    n: int
    mean: Value
    deviation: float
    median: Value
    high: Value
    largest: Value
    group_means: tuple[float, float] | None


@dataclass(frozen=True)
class Summary:
    """One method on one family at one budget.

    `relative` is to the reference on the same instance and noise, where the reference has answered. `wrong`
    counts answers, `wrong_leads` the runs whose leading plan at the end was not the best.
    """

    runs: int
    instances: int
    cut_off: int
    proved: bool
    answers: int
    wrong: int
    wrong_interval: tuple[float, float]  # exact (Clopper-Pearson), 95%
    wrong_leads: int
    loss: float  # mean loss of the leader, in units of the gap of the second best plan
    cpu_seconds: float  # median
    measurements: Distribution | None
    relative: Distribution | None
    multiple: Distribution | None  # of the limit


def summarize(rows: Sequence[Row | None], reference: Sequence[Row | None] = ()) -> Summary:
    """Return what the rows of one method say; `reference` has the rows of the same trials in the same order.

    A trial on which the reference was cut off, or has no row, has no ratio.
    """
    trials = zip(rows, reference or [None] * len(rows), strict=True)
    pairs = [(row, base) for row, base in trials if row and base and not base.cut_off]
    some = [row for row in rows if row is not None]
    limited = [(row, row.limit) for row in some if row.limit]
    answers = sum(not row.cut_off for row in some)
    wrong = sum(row.correct is False for row in some)
    losses = [row.loss / row.second_gap for row in some if row.second_gap and row.loss is not None]
    return Summary(
        runs=len(some),
        instances=len({row.instance for row in some}),
        cut_off=sum(row.cut_off for row in some),
        proved=all(row.proved for row in some),
        answers=answers,
        wrong=wrong,
        wrong_interval=binomial_interval(wrong, answers) if answers else (0.0, 1.0),
        wrong_leads=sum(row.wrong_lead for row in some),
        loss=fmean(losses) if losses else math.nan,
        cpu_seconds=float(np.median([row.cpu_seconds for row in some])),
        measurements=distribution_of([row.n_measured for row in some], [row.cut_off for row in some]),
        relative=distribution_of(
            [row.n_measured / base.n_measured for row, base in pairs],
            [row.cut_off for row, _ in pairs],
        ),
        multiple=distribution_of(
            [row.n_measured / limit for row, limit in limited],
            [row.cut_off for row, _ in limited],
        ),
    )


def distribution_of(numbers: Sequence[float], bounds: Sequence[bool]) -> Distribution | None:
    """Return how the numbers are distributed, of which `bounds` marks lower bounds; None without numbers.

    A quantile is exact while every lower bound lies above it: the true numbers are larger still.

    >>> found = distribution_of([1, 2, 9], [False, False, True])
    >>> str(found.mean), str(found.median)
    ('≥ 4', '2')
    """
    if not numbers:
        return None
    values, cut = np.asarray(numbers, dtype=float), np.asarray(bounds, dtype=bool)
    ranked = cut[np.lexsort((cut, values))]  # at equal numbers the exact ones first
    groups = [values[k : k + GROUP].mean() for k in range(0, len(values) - GROUP + 1, GROUP)]

    def quantile(share: float) -> Value:
        upper = math.ceil(share * (len(values) - 1))  # rank of the larger of the numbers it lies between
        return Value(float(np.quantile(values, share)), bool(ranked[: upper + 1].any()))

    return Distribution(
        n=len(values),
        mean=Value(float(values.mean()), bool(cut.any())),
        deviation=float(values.std(ddof=1)) if len(values) > 1 else math.nan,
        median=quantile(0.5),
        high=quantile(0.9),
        largest=quantile(1.0),
        group_means=(float(min(groups)), float(max(groups))) if len(groups) > 1 else None,
    )


def brief(number: float) -> str:
    """Return the number with two to three digits, as the paper prints them.

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
