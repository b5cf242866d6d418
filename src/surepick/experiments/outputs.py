"""The folder of an experiment: rows, tables, figures and the theory report."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from surepick.experiments import figures, tables
from surepick.experiments.reproduction import ColumnResult, Reproduction
from surepick.experiments.rows import write_parquet
from surepick.experiments.theory_report import TheoryReport, theory_markdown, theory_report

ROWS_NAME = "rows.jsonl"


def write_table(folder: str | Path, markdown: str, csv: Mapping[str, str], data: Any) -> list[Path]:
    """Write table.md, the CSV files by their names and summary.json into the folder; their paths."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    summary = json.dumps(data, indent=2, ensure_ascii=False) + "\n"
    texts = {"table.md": markdown, **csv, "summary.json": summary}
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    return [folder / name for name in texts]


def write_outputs(result: Reproduction, folder: str | Path) -> list[Path]:
    """Write table.md, table.csv, summary.json, rows.parquet, theory.md and the figures; their paths."""
    csv = {"table.csv": tables.csv_text(result)}
    written = write_table(folder, tables.markdown(result), csv, tables.as_json(result))
    theory, rows = Path(folder) / "theory.md", Path(folder) / "rows.parquet"
    theory.write_text(theory_markdown(theory_reports(result)), encoding="utf-8")
    write_parquet(result.rows, rows)
    return [*written, theory, rows, *figures.write_figures(result, folder)]


def theory_reports(result: Reproduction) -> list[TheoryReport]:
    """For the first instance of each column, theory beside what every method took on it."""
    reports = (_first_instance(result, found) for found in result.columns)
    return [report for report in reports if report is not None]


def _first_instance(result: Reproduction, found: ColumnResult) -> TheoryReport | None:
    firsts = [
        (method.label, found.rows[method.name][0])
        for method in result.methods
        if found.rows[method.name] and not method.all_plans  # the paper's bounds are about lists
    ]
    if not firsts:
        return None
    problem = firsts[0][1].case.problem
    same = [(label, row) for label, row in firsts if row.case.problem == problem]
    return theory_report(problem, same, delta=result.settings.delta)
