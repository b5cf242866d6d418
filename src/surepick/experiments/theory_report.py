"""What theory promises on an instance, beside what was measured there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from surepick.errors import ParameterError
from surepick.experiments.cases import Row
from surepick.experiments.specs import Spec, instance_from_spec
from surepick.experiments.summary import Value, brief
from surepick.planning.theory import theory
from surepick.problems import Instance


@dataclass(frozen=True)
class Bound:
    """A number that theory gives for an instance."""

    name: str
    formula: str
    number: float


@dataclass(frozen=True)
class Measured:
    """What a method took on the instance."""

    label: str
    measurements: Value
    correct: bool | None
    multiple: Value  # of the limit


@dataclass(frozen=True)
class TheoryReport:
    """The bounds of one instance and the runs made on it."""

    description: str
    n_plans: int
    n_arms: int
    delta: float
    bounds: tuple[Bound, ...]
    measured: tuple[Measured, ...]


def theory_report(
    problem: Spec, rows: Sequence[tuple[str, Row]] = (), *, delta: float = 0.05
) -> TheoryReport:
    """The limit, the paper's bound for CombGapE and its rivals' terms, beside the rows given.

    `rows` are (label, row) pairs of runs on this problem.

    >>> spec = {"kind": "given", "plans": [[1, 0], [0, 1]], "means": [1, 0]}
    >>> report = theory_report(spec)
    >>> report.bounds[0].name, round(report.bounds[0].number, 1)
    ('the limit', 21.2)
    """
    instance = instance_from_spec(problem)
    if not isinstance(instance, Instance):
        raise ParameterError("the paper's bounds are about a list of plans, and this problem has none")
    found = theory(instance.problem, instance.means, delta)
    return TheoryReport(
        description=instance.description,
        n_plans=instance.problem.n_plans,
        n_arms=instance.problem.n_arms,
        delta=delta,
        bounds=tuple(Bound(*row) for row in found.rows()),
        measured=tuple(_measured(label, row, found.lower_bound) for label, row in rows),
    )


def _measured(label: str, row: Row, lower_bound: float) -> Measured:
    return Measured(
        label,
        Value(float(row.n_measurements), row.cut_off),
        row.correct,
        Value(row.n_measurements / lower_bound, row.cut_off),
    )


def theory_markdown(reports: Sequence[TheoryReport]) -> str:
    """The reports as one Markdown page."""
    intro = (
        "# Theory beside measurement\n\n"
        "One instance each. The limit holds for the average run of every method that is wrong with "
        "probability at most delta. Terms given up to a constant show how a bound grows, not what it is; "
        "CombGapE's bound is Theorem 4.2 of the paper with its constants. A method without a valid proof may "
        "fall below the limit."
    )
    return "\n\n".join([intro, *map(_report_markdown, reports)]) + "\n"


def _report_markdown(report: TheoryReport) -> str:
    bounds = [f"| {bound.name} | `{bound.formula}` | {brief(bound.number)} |" for bound in report.bounds]
    answers = {True: "right", False: "wrong", None: "cut off"}
    measured = [
        f"| {run.label} | {run.measurements} | {run.multiple} | {answers[run.correct]} |"
        for run in report.measured
    ]
    return "\n".join(
        [
            f"## {report.description}",
            "",
            f"{report.n_plans} plans, {report.n_arms} arms, delta = {report.delta:g}.",
            "",
            "| theory | formula | number |",
            "|---|---|---:|",
            *bounds,
            "",
            "| method | measurements | x the limit | answer |",
            "|---|---:|---:|---|",
            *measured,
        ]
    )
