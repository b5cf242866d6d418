from __future__ import annotations

import csv
import inspect
import io
import json
import re
import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path

import pytest
from rich.console import Console
from typer import Typer
from typer.testing import CliRunner

import surepick
from surepick.cli.reproduce import reproduce as command
from surepick.errors import ParameterError
from surepick.experiments import Row, Settings, instance_from_spec, read_rows, run_case, theory_report
from surepick.experiments.figures import table_figure, write_figures
from surepick.experiments.outputs import theory_reports
from surepick.experiments.paper import (
    KNAPSACK,
    TRANSPORT,
    cases_of,
    experiments_named,
    methods_named,
    methods_of,
    running_order,
    with_distances,
)
from surepick.experiments.reproduction import (
    Reproduction,
    reproduce,
    summarize_experiment,
)
from surepick.experiments.tables import as_json, csv_text, markdown, terminal
from surepick.experiments.theory_report import theory_markdown

SETTINGS = Settings(runs=3, policies=("CombGapE", "CombGapE-naive", "Uniform"), budget=2000)


@pytest.fixture(scope="module")
def result() -> Reproduction:
    """A small Table 1, some of whose runs are cut off."""
    rows = {case: run_case(case) for case in running_order(cases_of(KNAPSACK, SETTINGS))}
    return summarize_experiment(KNAPSACK, SETTINGS, rows)


def test_every_method_meets_the_same_instances_and_noise() -> None:
    cells = cases_of(TRANSPORT, Settings(runs=4, seed=7))
    trials = [
        [({k: x for k, x in case.problem.items() if k != "plans"}, case.seed) for case in cases]
        for cases in cells.values()
    ]
    assert all(trial == trials[0] for trial in trials)
    assert [problem["seed"] for problem, _ in trials[0]] == [7, 8, 9, 10]


def test_the_paper_s_runs_are_the_default() -> None:
    for experiment, columns, runs in ((KNAPSACK, 3, 30), (TRANSPORT, 1, 100)):
        cells = cases_of(experiment, Settings())
        assert len(cells) == columns * len(methods_of(experiment, Settings()))
        assert len(cells[experiment.columns[0].label, "CombGapE"]) == runs


def test_a_slow_method_that_the_paper_has_not_is_run_if_it_is_named() -> None:
    assert ("d = 81", "GenTSExplore") not in cases_of(TRANSPORT, Settings())
    named = cases_of(TRANSPORT, Settings(runs=2, policies=("GenTSExplore",)))
    assert len(named["d = 81", "GenTSExplore"]) == 2


def test_a_given_budget_is_that_of_every_method() -> None:
    assert {case.budget for case in running_order(cases_of(KNAPSACK, Settings(budget=77)))} == {77}


def test_cases_of_one_instance_are_neighbours() -> None:
    order = running_order(cases_of(KNAPSACK, SETTINGS))
    assert [case.problem["seed"] for case in order[:6]] == [0, 0, 0, 1, 1, 1]


def test_unknown_names_list_the_known_ones() -> None:
    with pytest.raises(ParameterError, match=r"'knapsak'.*Known: knapsack, transport, all, budget"):
        experiments_named("knapsak")
    with pytest.raises(ParameterError, match=r"no policy named 'RAGGE'.*Known: CombGapE, CombGapE-naive"):
        methods_named(["RAGGE"])


def test_the_reference_is_always_run() -> None:
    assert [method.name for method in methods_named(["uniform"])] == ["CombGapE", "Uniform"]


@pytest.mark.parametrize("settings", [{"runs": 0}, {"budget": 0}, {"seed": -1}, {"delta": 2.0}])
def test_settings_out_of_range_are_refused(settings: dict[str, int]) -> None:
    with pytest.raises(ParameterError):
        Settings(**settings)  # type: ignore[arg-type]


def test_the_reference_is_one_everywhere(result: Reproduction) -> None:
    for found in result.columns:
        relative = found.summaries["CombGapE"].relative
        assert relative is not None
        assert (relative.mean.number, relative.deviation) == (1.0, 0.0)


def test_the_paper_s_values_stand_beside_ours(result: Reproduction) -> None:
    text = markdown(result)
    assert "| d = 5 | paper | d = 7 | paper | d = 9 | paper |" in text
    line = next(line for line in text.splitlines() if line.startswith("| CombGapE (naive) †"))
    assert [cell.strip() for cell in line.split("|")][3::2][:3] == ["2.6 ± 4.1", "3 ± 3.3", "2.2 ± 2.5"]


def test_caveats_are_in_the_footnotes(result: Reproduction) -> None:
    text = " ".join(result.footnotes)
    assert "3 runs (the paper: 30), instance seeds 0 to 2" in text
    assert "does not print its delta" in text
    assert "no valid proof of its error probability: CombGapE, CombGapE (naive)" in text
    assert "surepick" in text
    assert "stand-in" in " ".join(TRANSPORT.footnotes)
    assert "freeway" in " ".join(with_distances(TRANSPORT, "freeway").footnotes)


def test_hours_may_come_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "hours.csv"
    path.write_text("from,Erie,Utica\nBuffalo,1.5,1.6\nAlbany,1.7,1.4\n")
    experiment = with_distances(TRANSPORT, str(path))
    assert "hours.csv" in experiment.footnotes[0]
    case = running_order(cases_of(experiment, Settings(runs=1, policies=("CombGapE",), budget=100)))[0]
    assert instance_from_spec({**case.problem, "n_draws": 50, "seed": 2}).means.tolist() == [
        1.5,
        1.6,
        1.7,
        1.4,
    ]
    path.write_text("from,Erie,Utica\nBuffalo,1.5,1.6\nAlbany,1.7,1.5\n")
    changed = with_distances(TRANSPORT, str(path))
    assert running_order(cases_of(changed, Settings(runs=1, budget=100)))[0] != case
    with pytest.raises(ParameterError, match="no distances named 'motorway', and no such file"):
        with_distances(TRANSPORT, "motorway")


def test_the_page_about_experiments_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (Path(__file__).parents[2] / "docs" / "experiments.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", page, flags=re.S)
    (tmp_path / "mine.py").write_text(code)
    monkeypatch.setenv("PYTHONPATH", str(Path(surepick.__file__).parents[1]))
    found = subprocess.run([sys.executable, "mine.py"], cwd=tmp_path, capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    assert len(found.stdout.splitlines()) == 8


def test_every_option_and_field_is_documented() -> None:
    page = (Path(__file__).parents[2] / "docs" / "experiments.md").read_text(encoding="utf-8")
    options = [name.replace("as_json", "json") for name in inspect.signature(command).parameters]
    assert [name for name in options[1:] if f"--{name}" not in page] == []
    assert [field.name for field in fields(Row) if f"`{field.name}`" not in page] == []


def test_cut_off_runs_are_counted_and_told() -> None:
    settings = replace(SETTINGS, budget=12)
    cells = cases_of(KNAPSACK, settings)
    found = summarize_experiment(KNAPSACK, settings, {case: run_case(case) for case in running_order(cells)})
    cut = {name: summary.n_cut_off for name, summary in found.columns[0].summaries.items()}
    assert max(cut.values()) > 0
    assert "were cut off at their budget of 12 measurements" in " ".join(found.footnotes)
    assert "≥" in markdown(found)


def test_rows_of_different_builds_are_not_compared_unnoticed(result: Reproduction) -> None:
    rows = {row.case: row for row in result.rows}
    first = next(iter(rows))
    rows[first] = replace(rows[first], instance="another")
    notes = " ".join(summarize_experiment(KNAPSACK, SETTINGS, rows).footnotes)
    assert "not built alike" in notes


def test_csv_and_json_hold_every_cell(result: Reproduction) -> None:
    lines = list(csv.DictReader(io.StringIO(csv_text(result))))
    assert [(line["instances"], line["method"]) for line in lines] == list(cases_of(KNAPSACK, SETTINGS))
    assert lines[1]["paper_relative_mean"] == "2.6"
    table = json.loads(json.dumps(as_json(result), allow_nan=False))["table"]
    assert [line["method"] for line in table] == [line["method"] for line in lines]


def test_the_terminal_table_fits_80_columns(result: Reproduction) -> None:
    console = Console(width=80, file=io.StringIO(), record=True)
    console.print(terminal(result))
    text = console.export_text()
    assert "…" not in text
    assert "(2.6 ± 4.1)" in text


def test_figures_are_written(result: Reproduction, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    paths = write_figures(result, tmp_path)
    assert len(paths) == 8  # four figures, each as PNG and SVG
    for path in paths:
        start = path.read_bytes()[:8]
        assert start == b"\x89PNG\r\n\x1a\n" if path.suffix == ".png" else start.startswith(b"<?xml")


def test_the_table_as_a_figure_shows_our_means_and_the_printed_ones(result: Reproduction) -> None:
    pytest.importorskip("matplotlib")
    for axes, found in zip(table_figure(result).axes, result.columns, strict=True):
        shown = {float(line.get_xdata()[0]) for line in axes.lines if len(line.get_xdata()) == 1}
        ours = {summary.relative.mean.number for summary in found.summaries.values() if summary.relative}
        printed = [found.printed(method.name) for method in result.methods if method.name != "CombGapE"]
        assert shown == ours | {value[0] for value in printed if value is not None}


def test_theory_stands_beside_what_was_measured(result: Reproduction) -> None:
    row = result.columns[0].rows["CombGapE"][0]
    report = theory_report(row.case.problem, [("CombGapE", row)])
    names = [bound.name for bound in report.bounds]
    assert names[0] == "the limit"
    assert {"CombGapE, Theorem 4.2", "RAGE, up to a constant"} <= set(names)
    assert report.measured[0].multiple.number == pytest.approx(row.n_measurements / report.bounds[0].number)
    page = theory_markdown(theory_reports(result))
    assert page.count("| CombGapE, Theorem 4.2 |") == len(result.columns)


def _surepick(*arguments: str) -> tuple[int, str]:
    app = Typer()
    app.command()(command)
    found = CliRunner().invoke(app, list(arguments))
    if isinstance(found.exception, ParameterError):
        raise found.exception
    return found.exit_code, found.output


def test_the_command_prints_the_table_and_fills_the_folder(tmp_path: Path) -> None:
    arguments = [
        "knapsack",
        "--runs",
        "2",
        "--policies",
        "CombGapE",
        "--workers",
        "1",
        "--out",
        str(tmp_path),
    ]
    code, output = _surepick(*arguments)
    assert code == 0
    assert "Table 1: knapsack" in output
    names = {path.name for path in tmp_path.iterdir()}
    assert {"rows.jsonl", "rows.parquet", "table.md", "table.csv", "summary.json", "theory.md"} <= names
    before = (tmp_path / "rows.jsonl").read_bytes()
    code, output = _surepick(*arguments, "--json")
    assert json.loads(output)["experiments"][0]["table"][0]["runs"] == 2
    assert (tmp_path / "rows.jsonl").read_bytes() == before
    assert len(read_rows(tmp_path / "rows.jsonl").rows) == 6


def test_the_command_refuses_unknown_names(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="known: knapsack, transport, all, budget"):
        _surepick("backpack", "--out", str(tmp_path))
    with pytest.raises(ParameterError, match="no policy named 'nobody'"):
        _surepick("knapsack", "--policies", "nobody", "--out", str(tmp_path))
    assert not list(tmp_path.iterdir())


def test_the_transports_are_decided_between_all_plans_too(tmp_path: Path) -> None:
    """A line more: the same instances and noise with every transport as a plan; rows that are there stay."""
    column = replace(TRANSPORT.columns[0], problem={**TRANSPORT.columns[0].problem, "n_draws": 10})
    few, path = replace(TRANSPORT, columns=(column,)), tmp_path / "rows.jsonl"
    before = Settings(runs=1, policies=("CombGapE",), budget=10**7)
    reproduce(few, before, path, workers=1)
    old = path.read_bytes()
    result = reproduce(few, replace(before, policies=("PolyBet",)), path, workers=1)
    assert path.read_bytes().startswith(old)
    (row,) = result.columns[0].rows["PolyBet"]
    assert row.case.problem["plans"] == "all"
    assert row.parameters["version"] == surepick.PolyBet().version
    assert (row.correct, row.status) == (True, "confident")
    assert row.limit < row.n_measurements < 10 * row.limit
    summary = result.columns[0].summaries["PolyBet"]
    assert summary.relative is not None
    assert summary.relative.n == 1
    assert any("between all transports" in note for note in result.footnotes)
