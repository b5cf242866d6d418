"""Run one of the paper's experiments and say what came of it, with every caveat."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from surepick.core.promise import Promise
from surepick.core.wording import how_many, plural
from surepick.experiments.cases import Case, Row
from surepick.experiments.paper import (
    REFERENCE,
    Column,
    Experiment,
    Method,
    Settings,
    cases_of,
    methods_of,
    running_order,
    seeds_of,
)
from surepick.experiments.rows import read_rows
from surepick.experiments.running import CasesFailedError, Report, run_cases
from surepick.experiments.summary import MethodSummary, brief, summarize
from surepick.planning.limit_value import LIMIT_FORMULA
from surepick.sessions import codec


@dataclass(frozen=True)
class ColumnResult:
    """One column of the table: a summary per method, the paper's values, and the rows behind them."""

    column: Column
    summaries: Mapping[str, MethodSummary]  # by method name
    rows: Mapping[str, tuple[Row, ...]]

    def printed(self, method: str) -> tuple[float, float] | None:
        """The paper's mean and deviation, where it has this cell."""
        return self.column.printed.get(method)


@dataclass(frozen=True)
class Reproduction:
    """A table of the paper, run again."""

    experiment: Experiment
    settings: Settings
    methods: tuple[Method, ...]
    columns: tuple[ColumnResult, ...]
    footnotes: tuple[str, ...]
    failures: tuple[str, ...] = ()

    @property
    def rows(self) -> tuple[Row, ...]:
        """Every row behind the table."""
        return tuple(row for column in self.columns for rows in column.rows.values() for row in rows)


def reproduce(
    experiment: Experiment,
    settings: Settings,
    path: str | Path,
    *,
    workers: int | None = None,
    cluster: str | None = None,
    progress: Report | None = None,
) -> Reproduction:
    """Run what is missing of the experiment into the row file, and summarize all of it.

    A case that cannot be finished is named in `failures`; the table is made of the others.
    """
    cells = cases_of(experiment, settings)
    failures: tuple[str, ...] = ()
    try:
        run_cases(running_order(cells), path, workers=workers, cluster=cluster, progress=progress)
    except CasesFailedError as error:
        failures = tuple(f"{codec.dumps(f.case.to_json())}: {f.reason}" for f in error.failures)
    rows = {row.case: row for row in read_rows(path).rows}
    return summarize_experiment(experiment, settings, rows, failures)


def summarize_experiment(
    experiment: Experiment, settings: Settings, rows: Mapping[Case, Row], failures: tuple[str, ...] = ()
) -> Reproduction:
    """The table that these rows make; cases without a row are left out and counted in a footnote."""
    methods, cells = methods_of(experiment, settings), cases_of(experiment, settings)
    columns = tuple(_column_result(column, methods, cells, rows) for column in experiment.columns)
    notes = _footnotes(experiment, settings, methods, columns, failures)
    return Reproduction(experiment, settings, methods, columns, notes, failures)


def _column_result(
    column: Column,
    methods: Sequence[Method],
    cells: Mapping[tuple[str, str], Sequence[Case]],
    rows: Mapping[Case, Row],
) -> ColumnResult:
    found = {
        method.name: tuple(rows[case] for case in cells[column.label, method.name] if case in rows)
        for method in methods
    }
    reference = found[REFERENCE.name]
    summaries = {method.name: summarize(method.label, found[method.name], reference) for method in methods}
    return ColumnResult(column, summaries, found)


def _footnotes(
    experiment: Experiment,
    settings: Settings,
    methods: Sequence[Method],
    columns: Sequence[ColumnResult],
    failures: Sequence[str],
) -> tuple[str, ...]:
    return (
        *_setting_notes(experiment, settings),
        *(method.note for method in methods if method.note),
        *_guarantee_notes(methods, columns),
        *_cut_off_notes(methods, columns),
        *_instance_notes(columns),
        *([f"{len(failures)} case(s) failed and are missing: {failures[0]}"] if failures else []),
        *_version_notes(columns),
    )


_READING = (
    "CombGapE, the reference of every ratio, has the paper's published radius.",
    "wrong answers: of the runs that answered, with the exact (Clopper-Pearson) 95% interval of the rate.",
    f"× limit: measurements over {LIMIT_FORMULA}, the least that keeps the promise on average.",
)


def _setting_notes(experiment: Experiment, settings: Settings) -> list[str]:
    seeds = seeds_of(experiment, settings)
    few = f" (the paper: {experiment.runs})" if len(seeds) != experiment.runs else ""
    runs = how_many(len(seeds), "run")
    return [
        f"{runs}{few}, instance seeds {seeds[0]} to {seeds[-1]}, the same for all methods.",
        f"delta = {settings.delta:g}; the paper does not print its delta.",
        *experiment.footnotes,
        *_READING,
    ]


def _guarantee_notes(methods: Sequence[Method], columns: Sequence[ColumnResult]) -> list[str]:
    """Which methods promise nothing, and which broke a promise beyond chance."""
    unproved = [m.label for m in methods if not _has_guarantee(columns, m.name)]
    notes = [f"† no valid proof of its error probability: {', '.join(unproved)}."] if unproved else []
    for result in columns:
        for name, summary in result.summaries.items():
            delta = result.rows[name][0].parameters["delta"] if result.rows[name] else 1.0
            if summary.errors.low > delta:
                notes.append(
                    f"{summary.label} was wrong more often than delta allows at {result.column.label}: "
                    f"{summary.errors.wrong} of {summary.errors.answers} answers."
                )
    return notes


def _has_guarantee(columns: Sequence[ColumnResult], method: str) -> bool:
    rows = (row for result in columns for row in result.rows[method])
    return all(Promise.read(row.guarantee).proved for row in rows)


def has_guarantee(result: Reproduction, method: str) -> bool:
    """Whether the method's answers came with a promise that has a proof."""
    return _has_guarantee(result.columns, method)


def _cut_off_notes(methods: Sequence[Method], columns: Sequence[ColumnResult]) -> list[str]:
    notes = []
    for result in columns:
        for method in methods:
            summary = result.summaries[method.name]
            if summary.n_cut_off:
                budgets = " and ".join(brief(budget) for budget in summary.budgets)
                runs, cut = how_many(summary.n_runs, "run"), summary.n_cut_off
                ends = plural(cut, "was cut off at its budget", "were cut off at their budget")
                counts = plural(cut, "counts as what it used", "count as what they used")
                notes.append(
                    f"{method.label}, {result.column.label}: {cut} of {runs} {ends} of {budgets} "
                    f"measurements and {counts} (≥)."
                )
        lost = result.summaries[REFERENCE.name].n_cut_off
        if lost:
            notes.append(
                f"{result.column.label}: on {how_many(lost, 'instance')} CombGapE itself was cut off; "
                f"{plural(lost, 'it has', 'they have')} no "
                "ratio and enter the other figures only."
            )
    return notes


def _instance_notes(columns: Sequence[ColumnResult]) -> list[str]:
    """Say so when rows that should be of one instance are not."""
    builds: dict[str, set[str]] = {}
    for result in columns:
        for rows in result.rows.values():
            for row in rows:
                builds.setdefault(codec.dumps(dict(row.case.problem)), set()).add(row.instance)
    mixed = [problem for problem, found in builds.items() if len(found) > 1]
    if not mixed:
        return []
    found = how_many(len(mixed), "instance was", "instances were")
    note = (
        f"{found} not built alike in all rows, the first being {mixed[0]}: the rows "
        "come from different versions or machines; run again in an empty folder to compare like with like."
    )
    return [note]


def _version_notes(columns: Sequence[ColumnResult]) -> list[str]:
    found: dict[str, set[str]] = {}
    for result in columns:
        for rows in result.rows.values():
            for row in rows:
                for name, version in row.versions.items():
                    found.setdefault(name, set()).add(str(version))
    shown = ", ".join(f"{name} {' and '.join(sorted(versions))}" for name, versions in found.items())
    return [f"Versions: {shown}."] if shown else []
