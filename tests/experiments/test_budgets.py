"""`reproduce budget`: the same instances, noise and budgets for all, and an honest table."""

import math
from dataclasses import replace

import pytest

from surepick.errors import ParameterError
from surepick.experiments import budgets
from surepick.experiments.budget_tables import csv_text, family_rows, is_lowest, markdown, relative_loss
from surepick.experiments.budgets import (
    MULTIPLES,
    BudgetCell,
    FamilyResult,
    budget_cases,
    budget_methods_named,
    summarize_budget,
)
from surepick.experiments.cases import prepared, run_case
from surepick.experiments.paper import Settings
from surepick.experiments.rows import appending

SMALL = (
    replace(budgets.BUDGET_FAMILIES[0], problems=({"kind": "knapsack", "n_items": 5},), quick=(2, 2)),
    replace(budgets.BUDGET_FAMILIES[2], quick=(1, 1)),
)
SETTINGS = Settings(quick=True, policies=("Pick", "CSA", "CSAR", "BetGapE", "OCBA"))


@pytest.fixture(scope="module")
def found():
    kept, budgets.BUDGET_FAMILIES = budgets.BUDGET_FAMILIES, SMALL
    cells = budget_cases(SETTINGS)
    rows = {case: run_case(case) for cases in cells.values() for case in cases}
    yield cells, rows, summarize_budget(SETTINGS, cells, rows)
    budgets.BUDGET_FAMILIES = kept


def test_every_method_meets_the_same_instances_noise_and_budgets(found):
    cells, _, _ = found
    for multiple in MULTIPLES:
        trials = [
            [(case.problem, case.seed, case.budget) for case in cells["knapsack", name, multiple]]
            for name in ("Pick", "CSA", "BetGapE", "Uniform")
        ]
        assert all(trial == trials[0] for trial in trials)
        assert len({seed for _, seed, _ in trials[0]}) == len(trials[0]) == 4
    assert ("knapsack", "CSAR", 1.0) not in cells  # its plans are no sets
    assert ("ten-arms", "OCBA", 1.0) in cells


def test_budgets_are_multiples_of_the_characteristic_time(found):
    cells, _, _ = found
    for multiple in MULTIPLES:
        for case in cells["knapsack", "Pick", multiple]:
            limit = prepared(case.problem).limit
            assert case.budget == max(math.ceil(multiple * limit.characteristic_time), limit.n_relevant + 1)
            assert limit.characteristic_time >= 4 * limit.n_relevant


def test_wrong_leads_and_losses_are_counted_from_the_rows(found):
    cells, rows, result = found
    for family in result.families:
        for (name, multiple), cell in family.cells.items():
            some = [rows[case] for case in cells[family.family.name, name, multiple]]
            assert all(row.n_measurements <= row.case.budget for row in some)
            assert cell.wrong == sum(row.lead != row.best for row in some)
            losses = [row.loss / row.second_gap for row in some]
            assert cell.loss == pytest.approx(sum(losses) / len(losses))
            assert all(loss == 0 or loss > 0.999 for loss in losses)  # a wrong plan is the second or worse


def test_an_interrupted_run_has_a_table_of_what_is_finished(found, tmp_path, monkeypatch):
    cells, rows, _ = found
    first = list(rows.values())[:40]
    path = tmp_path / "rows.jsonl"

    def interrupted(cases, path, **how):
        with appending(path) as writer:
            for row in first:
                writer.write(row)
        raise KeyboardInterrupt

    monkeypatch.setattr(budgets, "run_cases", interrupted)
    result = budgets.reproduce_budget(SETTINGS, path)
    assert result.n_missing == sum(len(cases) for cases in cells.values()) - 40
    assert any("was cut short: 40 of" in note for note in result.footnotes)
    assert "was cut short" in markdown(result)


def test_families_are_chosen_by_name(found):
    _, rows, _ = found
    some = replace(SETTINGS, families=("Ten-Arms",))
    assert {family for family, _, _ in budget_cases(some)} == {"ten-arms"}
    result = summarize_budget(some, budget_cases(some), rows)
    assert [family.family.name for family in result.families] == ["ten-arms"]
    with pytest.raises(ParameterError, match="no family named 'ten'"):
        budget_cases(replace(SETTINGS, families=("ten",)))


def test_the_table_has_every_family_method_and_note(found):
    _, _, result = found
    text = markdown(result)
    for family in result.families:
        assert family.family.label in text.replace("Knapsacks", "knapsacks").replace("One of", "one of")
        header, lines = family_rows(result, family)
        assert len(header) == 11
        assert {line[0] for line in lines} >= {"Pick", "Uniform", "CSA"}
        assert all(line[6:] == ["1.00"] * 5 or "-" in line for line in lines if line[0] == "Uniform")
    assert "No method promises anything here" in text
    assert "from seed 70000 on" in text
    assert csv_text(result).count("\n") == 1 + sum(len(family.cells) for family in result.families)


def test_lowest_counts_what_chance_could_explain():
    def cell(wrong):
        return BudgetCell(400, wrong, 0.0, 1.0, wrong / 400, 0.0, 0.0)

    cells = {("Pick", 1.0): cell(40), ("CSA", 1.0): cell(48), ("Uniform", 1.0): cell(100)}
    family = FamilyResult(SMALL[0], cells, 1, (1.0, 1.0))
    assert [is_lowest(family, name, 1.0) for name in ("Pick", "CSA", "Uniform")] == [True, True, False]
    assert relative_loss(family, "Pick", 1.0) == pytest.approx(0.4)


def test_names_are_checked_and_uniform_is_always_there():
    assert [method.name for method in budget_methods_named(["csa"])] == ["Uniform", "CSA"]
    with pytest.raises(ParameterError, match=r"no policy named 'CSB'.*Known: Pick"):
        budget_methods_named(["CSB"])


def test_the_command_makes_a_table_and_goes_on_where_it_was(tmp_path, monkeypatch):
    from typer.testing import CliRunner

    from surepick.cli import app

    monkeypatch.setattr(budgets, "BUDGET_FAMILIES", (replace(SMALL[1], quick=(1, 1)),))
    call = ["reproduce", "budget", "--quick", "--policies", "CSA", "--workers", "1", "--out", str(tmp_path)]
    first = CliRunner().invoke(app, call)
    assert first.exit_code == 0, first.output
    assert "wrong leads, %" in first.output
    assert {"table.md", "table.csv", "summary.json", "budget-wrong.png"} <= {
        p.name for p in tmp_path.iterdir()
    }
    kept = (tmp_path / "rows.jsonl").read_bytes()
    again = CliRunner().invoke(app, [*call, "--json"])
    assert again.exit_code == 0, again.output
    assert (tmp_path / "rows.jsonl").read_bytes() == kept
    refused = CliRunner().invoke(app, [*call, "--budget", "10"])
    assert refused.exit_code != 0


def test_equal_shares_on_two_arms_err_as_often_as_the_normal_tail_says():
    """With gap .3 T* is 8 / gap^2, and at multiples of it 23.6, 15.7, 7.9, 2.3% of leads are wrong."""
    import numpy as np
    from scipy.stats import binom, norm

    import surepick as sp

    problem, truth = sp.Problem(np.eye(2)), sp.Gaussian([0.3, 0.0])
    time = sp.limit(problem, truth.means).characteristic_time
    assert time == pytest.approx(8 / 0.09, rel=1e-3)
    exact = [norm.sf(0.3 * math.sqrt(multiple * time) / 2) for multiple in (0.25, 0.5, 1, 2)]
    assert exact == pytest.approx([0.2398, 0.1587, 0.0786, 0.0228], abs=1e-4)
    for multiple, rate in ((0.25, norm.sf(0.3 * math.sqrt(22) / 2)), (1, norm.sf(0.3 * math.sqrt(88) / 2))):
        budget = 2 * int(multiple * time / 2)
        leads = [
            sp.simulate(problem, sp.Uniform(delta=1e-9), truth, seed=seed, budget=budget).lead
            for seed in range(300)
        ]
        assert 1e-6 < binom.cdf(sum(leads), 300, rate) < 1 - 1e-6
